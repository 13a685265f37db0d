// Which instruction sets can run here.
#include "kernel_table.hpp"

namespace recometer {

std::vector<const InstructionSet*> instruction_sets() {
    std::vector<const InstructionSet*> sets;
#if defined(RECOMETER_X86)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")) {
        sets.push_back(&kAvx512);
    }
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) sets.push_back(&kAvx2);
#elif defined(RECOMETER_NEON)
    sets.push_back(&kNeon);
#endif
    sets.push_back(&kPlain);
    return sets;
}

}  // namespace recometer

// Choose among the instruction sets that this processor supports.
#include "kernel_table.hpp"

namespace recometer {
#if defined(RECOMETER_X86)
namespace {

template <class Real>
std::int64_t rank_with_vbmi2(const RankFactors<Real>& p) {
    return p.scores.check ? kernel(kAvx512, Real{}).rank_factors(p) : rank_by_signs(p);
}

/// AVX-512, with VBMI2 for ranking by factors.
const InstructionSet& vbmi2() {
    static const InstructionSet set = [] {
        InstructionSet changed = kAvx512;
        changed.name = "avx512_vbmi2";
        changed.single.rank_factors = rank_with_vbmi2;
        changed.twice.rank_factors = rank_with_vbmi2;
        return changed;
    }();
    return set;
}

}  // namespace
#endif

std::vector<const InstructionSet*> instruction_sets() {
    std::vector<const InstructionSet*> sets;
#if defined(RECOMETER_X86)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")) {
        if (__builtin_cpu_supports("avx512vbmi2")) sets.push_back(&vbmi2());
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

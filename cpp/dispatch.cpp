// Find the instruction sets that this processor supports.
#include "kernel_table.hpp"

#if defined(RECOMETER_X86)
#include <cpuid.h>
#include <immintrin.h>
#endif

namespace recometer {
#if defined(RECOMETER_X86)
namespace {

/// Return a mask of the registers that the operating system saves on context switches. The
/// processor must support OSXSAVE.
[[gnu::target("xsave")]] std::uint64_t kept_registers() { return _xgetbv(0); }

/// The instruction sets that both the processor and the operating system support.
/// __builtin_cpu_supports cannot be used, because it needs a library that clang-cl does not link.
struct Processor {
    bool avx2 = false, avx512 = false, vbmi2 = false;

    Processor() {
        unsigned a, b, c, d, b7, c7;
        if (__get_cpuid(1, &a, &b, &c, &d) == 0) return;
        constexpr unsigned kFma = 1u << 12, kPopcnt = 1u << 23, kOsxsave = 1u << 27;
        constexpr unsigned kNeeded = kFma | kPopcnt | kOsxsave;
        if ((c & kNeeded) != kNeeded || __get_cpuid_count(7, 0, &a, &b7, &c7, &d) == 0) return;
        std::uint64_t kept = kept_registers();
        constexpr unsigned kAvxKept = 0x6, kAvx512Kept = 0xE6, kBmi = 1u << 3, kAvx2 = 1u << 5;
        constexpr unsigned kF = 1u << 16, kDq = 1u << 17, kBw = 1u << 30, kVl = 1u << 31;
        constexpr unsigned k512 = kF | kDq | kBw | kVl, kVbmi2 = 1u << 6;
        if ((kept & kAvxKept) != kAvxKept || (b7 & kBmi) == 0) return;
        avx2 = (b7 & kAvx2) != 0;
#if defined(__APPLE__)
        kept |= kAvx512Kept;  // macOS starts saving these registers when a program first uses them
#endif
        avx512 = (kept & kAvx512Kept) == kAvx512Kept && (b7 & k512) == k512;
        vbmi2 = avx512 && (c7 & kVbmi2) != 0;
    }
};

template <class Real>
std::int64_t rank_with_vbmi2(const RankFactors<Real>& p) {
    return p.scores.check ? kernel(kAvx512, Real{}).rank_factors(p) : rank_by_signs(p);
}

/// AVX-512 with a version of rank_factors that uses VBMI2.
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
    // Query the processor only once, because under a hypervisor, a query takes as long as ranking
    // the items for a few users.
    static const Processor processor;
    if (processor.vbmi2) sets.push_back(&vbmi2());
    if (processor.avx512) sets.push_back(&kAvx512);
    if (processor.avx2) sets.push_back(&kAvx2);
#elif defined(RECOMETER_NEON)
    sets.push_back(&kNeon);
#endif
    sets.push_back(&kPlain);
    return sets;
}

}  // namespace recometer

// The function tables that the kernel_*.cpp files export.
#pragma once

#include "kernel.hpp"
#include "top.hpp"

#define RECOMETER_KERNEL(S) \
    {score_items<S>, rank_factors<S>, rank_scores<S>, top_factors<S>, top_scores<S>}
#define RECOMETER_INSTRUCTION_SET(name, S, D) \
    {name, S::kUsers, RECOMETER_KERNEL(S), RECOMETER_KERNEL(D)}

namespace recometer {
extern const InstructionSet kAvx512, kAvx2, kNeon, kPlain;

/// A version of rank_factors for AVX-512 with VBMI2. All scores must be finite.
std::int64_t rank_by_signs(const RankFactors<float>& p);
std::int64_t rank_by_signs(const RankFactors<double>& p);
}  // namespace recometer

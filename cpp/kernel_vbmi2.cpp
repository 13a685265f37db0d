// This file is compiled for AVX-512 with VBMI2. It must not share code or data with other files
// (see kernel.hpp).
#include "kernel.hpp"
#include "kernel_table.hpp"
#include "simd_vbmi2.hpp"

namespace recometer {

std::int64_t rank_by_signs(const RankFactors<float>& p) {
    return rank_factors<SingleVbmi2, BySigns<SingleVbmi2>, ByKeys<Keys512>>(p);
}

std::int64_t rank_by_signs(const RankFactors<double>& p) {
    return rank_factors<DoubleVbmi2, BySigns<DoubleVbmi2>>(p);
}

}  // namespace recometer

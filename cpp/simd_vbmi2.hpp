// What AVX-512 VBMI2 adds to vectors of 512 bits: one operation that appends a sign to a path.
#pragma once

#include "simd_avx512.hpp"

namespace recometer {
namespace {

struct SingleVbmi2 : Single512 {
    static Vec subtract(Vec a, Vec b) { return _mm512_sub_ps(a, b); }
    static Int push_sign(Int path, Vec x) {
        return _mm512_shldi_epi32(path, _mm512_castps_si512(x), 1);
    }
    static Vec lookup_in_two(Vec low, Vec high, Int index) {
        return _mm512_permutex2var_ps(low, index, high);
    }
};

struct DoubleVbmi2 : Double512 {
    static Vec subtract(Vec a, Vec b) { return _mm512_sub_pd(a, b); }
    static Int push_sign(Int path, Vec x) {
        return _mm512_shldi_epi64(path, _mm512_castpd_si512(x), 1);
    }
    static Vec lookup_in_two(Vec low, Vec high, Int index) {
        return _mm512_permutex2var_pd(low, index, high);
    }
};

}  // namespace
}  // namespace recometer

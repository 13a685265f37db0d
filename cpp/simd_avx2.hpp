// Vectors of 256 bits (AVX2 and FMA). kernel.hpp describes the operations.
#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

namespace recometer {
namespace {

struct Bits256 {
    using Int = __m256i;

    static Int zero() { return _mm256_setzero_si256(); }
    static Int load_bits(const Int* p) { return _mm256_load_si256(p); }
    static void store_bits(Int* p, Int x) { _mm256_store_si256(p, x); }
    static Int exclusive(Int a, Int b) { return _mm256_xor_si256(a, b); }
    static Int both(Int a, Int b) { return _mm256_and_si256(a, b); }
    static Int parity(Int a, Int b, Int c) { return exclusive(exclusive(a, b), c); }
    static Int majority(Int a, Int b, Int c) {
        return _mm256_or_si256(both(a, b), both(exclusive(a, b), c));
    }
};

struct Single256 : Bits256 {
    using Real = float;
    using Vec = __m256;
    using Mask = __m256;
    static constexpr int kLanes = 8;
    static constexpr int kUsers = 6;
    static constexpr int kLevels = 4;
    static constexpr int kTogether = 1;

    static Vec load(const float* p) { return _mm256_loadu_ps(p); }
    static void store(float* p, Vec x) { _mm256_storeu_ps(p, x); }
    static Vec broadcast(float x) { return _mm256_set1_ps(x); }
    static Vec fma(Vec a, Vec b, Vec c) { return _mm256_fmadd_ps(a, b, c); }
    static float fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
    static Mask reaches(Vec a, Vec b) { return _mm256_cmp_ps(a, b, _CMP_GE_OQ); }
    static Mask equals(Vec a, Vec b) { return _mm256_cmp_ps(a, b, _CMP_EQ_OQ); }
    static Vec select(Mask m, Vec a, Vec b) { return _mm256_blendv_ps(b, a, m); }
    static std::uint32_t bits(Mask m) { return static_cast<std::uint32_t>(_mm256_movemask_ps(m)); }
    static Vec table(const float* p) { return load(p); }
    template <int kBit>
    static Vec lookup(Vec table, Int index) {
        return _mm256_permutevar8x32_ps(table, index);
    }
    template <int kBit>
    static Int set_bit(Mask m, Int x) {
        return _mm256_or_si256(x, both(_mm256_castps_si256(m), _mm256_set1_epi32(1 << kBit)));
    }
    static Int one_hot(Int x) { return _mm256_sllv_epi32(_mm256_set1_epi32(1), x); }
    static int count_bit(Int x, int bit) {
        const Int sign = _mm256_sll_epi32(x, _mm_cvtsi32_si128(31 - bit));
        return __builtin_popcount(bits(_mm256_castsi256_ps(sign)));
    }
};

struct Double256 : Bits256 {
    using Real = double;
    using Vec = __m256d;
    using Mask = __m256d;
    static constexpr int kLanes = 4;
    static constexpr int kUsers = 6;
    static constexpr int kLevels = 3;
    static constexpr int kTogether = 1;

    static Vec load(const double* p) { return _mm256_loadu_pd(p); }
    static void store(double* p, Vec x) { _mm256_storeu_pd(p, x); }
    static Vec broadcast(double x) { return _mm256_set1_pd(x); }
    static Vec fma(Vec a, Vec b, Vec c) { return _mm256_fmadd_pd(a, b, c); }
    static double fma(double a, double b, double c) { return __builtin_fma(a, b, c); }
    static Mask reaches(Vec a, Vec b) { return _mm256_cmp_pd(a, b, _CMP_GE_OQ); }
    static Mask equals(Vec a, Vec b) { return _mm256_cmp_pd(a, b, _CMP_EQ_OQ); }
    static Vec select(Mask m, Vec a, Vec b) { return _mm256_blendv_pd(b, a, m); }
    static std::uint32_t bits(Mask m) { return static_cast<std::uint32_t>(_mm256_movemask_pd(m)); }
    static Vec table(const double* p) { return load(p); }
    // AVX2 cannot permute doubles by a vector of indices, so permute the two halves of each double
    // as floats.
    template <int kBit>
    static Vec lookup(Vec table, Int index) {
        const Int low = _mm256_slli_epi64(index, 1);
        const Int twice = _mm256_shuffle_epi32(low, 0xA0);
        const Int halves = _mm256_add_epi32(twice, _mm256_set1_epi64x(1ll << 32));
        return _mm256_castps_pd(_mm256_permutevar8x32_ps(_mm256_castpd_ps(table), halves));
    }
    template <int kBit>
    static Int set_bit(Mask m, Int x) {
        return _mm256_or_si256(x, both(_mm256_castpd_si256(m), _mm256_set1_epi64x(1 << kBit)));
    }
    static Int one_hot(Int x) { return _mm256_sllv_epi64(_mm256_set1_epi64x(1), x); }
    static int count_bit(Int x, int bit) {
        const Int sign = _mm256_sll_epi64(x, _mm_cvtsi32_si128(63 - bit));
        return __builtin_popcount(bits(_mm256_castsi256_pd(sign)));
    }
};

}  // namespace
}  // namespace recometer

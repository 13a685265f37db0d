// Vectors of 512 bits (AVX-512 F, BW, DQ, VL). kernel.hpp describes the operations.
#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

namespace recometer {
namespace {

struct Bits512 {
    using Int = __m512i;

    /// Convert a mask to an integer. For a plain conversion, GCC 12 may spill 16 bits to the stack
    /// and read 32 bits back.
    static std::uint32_t bits_of(__mmask16 mask) {
        std::uint32_t bits;
        // NOLINTNEXTLINE(portability-no-assembler): intrinsics do not guarantee this instruction
        __asm__("kmovw %1, %0" : "=r"(bits) : "k"(mask));
        return bits;
    }

    static Int zero() { return _mm512_setzero_si512(); }
    static Int load_bits(const Int* p) { return _mm512_load_si512(p); }
    static void store_bits(Int* p, Int x) { _mm512_store_si512(p, x); }
    static Int parity(Int a, Int b, Int c) { return _mm512_ternarylogic_epi32(a, b, c, 0x96); }
    static Int majority(Int a, Int b, Int c) { return _mm512_ternarylogic_epi32(a, b, c, 0xE8); }
    static Int exclusive(Int a, Int b) { return _mm512_xor_si512(a, b); }
    static Int both(Int a, Int b) { return _mm512_and_si512(a, b); }
};

struct Single512 : Bits512 {
    using Real = float;
    using Vec = __m512;
    using Mask = __mmask16;
    static constexpr int kLanes = 16;
    static constexpr int kUsers = 14;
    static constexpr int kLevels = 5;
    static constexpr int kTogether = 3;

    static Vec load(const float* p) { return _mm512_loadu_ps(p); }
    static void store(float* p, Vec x) { _mm512_storeu_ps(p, x); }
    static Vec broadcast(float x) { return _mm512_set1_ps(x); }
    static Vec fma(Vec a, Vec b, Vec c) { return _mm512_fmadd_ps(a, b, c); }
    static float fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
    static Mask reaches(Vec a, Vec b) { return _mm512_cmp_ps_mask(a, b, _CMP_GE_OQ); }
    static Mask equals(Vec a, Vec b) { return _mm512_cmp_ps_mask(a, b, _CMP_EQ_OQ); }
    static Vec select(Mask m, Vec a, Vec b) { return _mm512_mask_mov_ps(b, m, a); }
    static std::uint32_t bits(Mask m) { return bits_of(m); }
    static Vec table(const float* p) { return load(p); }
    template <int kBit>
    static Vec lookup(Vec table, Int index) {
        return _mm512_permutexvar_ps(index, table);
    }
    template <int kBit>
    static Int set_bit(Mask m, Int x) {
        return _mm512_mask_add_epi32(x, m, x, _mm512_set1_epi32(1 << kBit));
    }
    static Int one_hot(Int x) { return _mm512_sllv_epi32(_mm512_set1_epi32(1), x); }
    static int count_bit(Int x, int bit) {
        const auto mask = _mm512_set1_epi32(static_cast<int>(1u << bit));
        return __builtin_popcount(bits_of(_mm512_test_epi32_mask(x, mask)));
    }
};

struct Double512 : Bits512 {
    using Real = double;
    using Vec = __m512d;
    using Mask = __mmask8;
    static constexpr int kLanes = 8;
    static constexpr int kUsers = 14;
    static constexpr int kLevels = 4;
    static constexpr int kTogether = 3;

    static Vec load(const double* p) { return _mm512_loadu_pd(p); }
    static void store(double* p, Vec x) { _mm512_storeu_pd(p, x); }
    static Vec broadcast(double x) { return _mm512_set1_pd(x); }
    static Vec fma(Vec a, Vec b, Vec c) { return _mm512_fmadd_pd(a, b, c); }
    static double fma(double a, double b, double c) { return __builtin_fma(a, b, c); }
    static Mask reaches(Vec a, Vec b) { return _mm512_cmp_pd_mask(a, b, _CMP_GE_OQ); }
    static Mask equals(Vec a, Vec b) { return _mm512_cmp_pd_mask(a, b, _CMP_EQ_OQ); }
    static Vec select(Mask m, Vec a, Vec b) { return _mm512_mask_mov_pd(b, m, a); }
    static std::uint32_t bits(Mask m) { return bits_of(m); }
    static Vec table(const double* p) { return load(p); }
    template <int kBit>
    static Vec lookup(Vec table, Int index) {
        return _mm512_permutexvar_pd(index, table);
    }
    template <int kBit>
    static Int set_bit(Mask m, Int x) {
        return _mm512_mask_add_epi64(x, m, x, _mm512_set1_epi64(1 << kBit));
    }
    static Int one_hot(Int x) { return _mm512_sllv_epi64(_mm512_set1_epi64(1), x); }
    static int count_bit(Int x, int bit) {
        const auto mask = _mm512_set1_epi64(1ll << bit);
        return __builtin_popcount(bits_of(_mm512_test_epi64_mask(x, mask)));
    }
};

}  // namespace
}  // namespace recometer

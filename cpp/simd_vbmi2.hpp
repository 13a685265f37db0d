// Vectors for a descent by signs with AVX-512 VBMI2, which can append a sign to a path in a single
// instruction, even for 16-bit numbers.
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

/// Vectors of 16-bit keys; see keys.hpp.
struct Keys512 : Bits512 {
    using Real = float;
    using Vec = __m512;
    static constexpr int kLanes = 32;
    static constexpr int kLevels = 4;
    static constexpr int kTogether = 3;
    static constexpr int kTable = 1 << kLevels;  // the number of entries in a table
    static constexpr int kStart = 64 / sizeof(float);
    static constexpr float kSteps = 65'000;
    static constexpr std::int16_t kLeastKey = -32'768, kMostKey = 32'766, kNoKey = 32'767;

    static Vec broadcast(float x) { return _mm512_set1_ps(x); }
    static Int broadcast_number(std::int16_t x) { return _mm512_set1_epi16(x); }
    static Int table(const std::int16_t* p) {
        return _mm512_castsi256_si512(_mm256_load_si256(reinterpret_cast<const __m256i*>(p)));
    }
    template <int kBit>
    static Int lookup(Int table, Int index) {
        return _mm512_permutexvar_epi16(index, table);
    }
    static Int subtract(Int a, Int b) { return _mm512_subs_epi16(a, b); }
    static Int push_sign(Int path, Int x) { return _mm512_shldi_epi16(path, x, 1); }
    static Int one_hot(Int x) { return _mm512_sllv_epi16(_mm512_set1_epi16(1), x); }
    static std::uint32_t equal(Int a, Int b) { return _mm512_cmpeq_epi16_mask(a, b); }
    static int count_bit(Int x, int bit) {
        const auto mask = _mm512_set1_epi16(static_cast<std::int16_t>(1u << bit));
        return __builtin_popcount(_mm512_test_epi16_mask(x, mask));
    }

    static Int keys(const float* p, Vec scale, Vec offset) {
        // The conversion turns NaN, and values below the 32-bit range, into the lowest 32-bit
        // integer.
        const auto rounded = [&](const float* q) {
            const Vec exact = _mm512_fmadd_ps(_mm512_loadu_ps(q), scale, offset);
            return _mm512_cvtps_epi32(_mm512_min_ps(_mm512_set1_ps(kMostKey), exact));
        };
        return _mm512_packs_epi32(rounded(p), rounded(p + 16));
    }
    static std::int16_t key(float score, float scale, float offset) {
        const float exact = __builtin_fmaf(score, scale, offset);
        const int rounded = _mm_cvtss_si32(_mm_set_ss(exact < kMostKey ? exact : kMostKey));
        return static_cast<std::int16_t>(rounded < kLeastKey ? kLeastKey : rounded);
    }
    /// Undo the reordering by _mm512_packs_epi32, which takes four numbers from each of its two
    /// vectors in turn.
    static std::uint32_t in_order(std::uint32_t lanes) {
        const auto every_other_four = [](std::uint32_t x) {
            x &= 0x0F0F0F0F;
            x = (x | x >> 4) & 0x00FF00FF;
            return (x | x >> 8) & 0xFFFF;
        };
        return every_other_four(lanes) | every_other_four(lanes >> 4) << 16;
    }
};

}  // namespace
}  // namespace recometer

// Vectors of 128 bits (NEON, which every 64-bit Arm processor has). kernel.hpp describes the
// operations.
#pragma once

#include <arm_neon.h>

#include <cstddef>
#include <cstdint>

namespace recometer {
namespace {

struct Bits128 {
    using Int = uint32x4_t;

    static Int zero() { return vdupq_n_u32(0); }
    static Int load_bits(const Int* p) { return *p; }
    static void store_bits(Int* p, Int x) { *p = x; }
    static Int exclusive(Int a, Int b) { return veorq_u32(a, b); }
    static Int both(Int a, Int b) { return vandq_u32(a, b); }
    static Int parity(Int a, Int b, Int c) { return exclusive(exclusive(a, b), c); }
    static Int majority(Int a, Int b, Int c) { return vbslq_u32(exclusive(a, b), c, a); }

    /// Look up bytes in a table of kBytes bytes. The more registers the table takes up, the slower
    /// the lookup.
    template <int kBytes>
    static uint8x16_t entries(const uint8x16x4_t& table, uint8x16_t bytes) {
        if constexpr (kBytes <= 16) return vqtbl1q_u8(table.val[0], bytes);
        if constexpr (kBytes == 32) return vqtbl2q_u8({{table.val[0], table.val[1]}}, bytes);
        if constexpr (kBytes == 64) return vqtbl4q_u8(table, bytes);
    }
};

struct Single128 : Bits128 {
    using Real = float;
    using Vec = float32x4_t;
    using Mask = uint32x4_t;
    using Table = uint8x16x4_t;
    static constexpr int kLanes = 4;
    static constexpr int kUsers = 10;
    static constexpr int kLevels = 5;
    static constexpr int kTogether = 1;

    static Vec load(const float* p) { return vld1q_f32(p); }
    static void store(float* p, Vec x) { vst1q_f32(p, x); }
    static Vec broadcast(float x) { return vdupq_n_f32(x); }
    static Vec fma(Vec a, Vec b, Vec c) { return vfmaq_f32(c, a, b); }
    static float fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
    static Mask reaches(Vec a, Vec b) { return vcgeq_f32(a, b); }
    static Mask equals(Vec a, Vec b) { return vceqq_f32(a, b); }
    static Vec select(Mask m, Vec a, Vec b) { return vbslq_f32(m, a, b); }
    static std::uint32_t bits(Mask m) {
        const uint32x4_t places = {1, 2, 4, 8};
        return vaddvq_u32(vandq_u32(m, places));
    }
    static Table table(const float* p) {
        return {{vreinterpretq_u8_f32(load(p)), vreinterpretq_u8_f32(load(p + 4)),
                 vreinterpretq_u8_f32(load(p + 8)), vreinterpretq_u8_f32(load(p + 12))}};
    }
    template <int kBit>
    static Vec lookup(const Table& table, Int index) {
        const Int bytes =
            vmlaq_u32(vdupq_n_u32(0x03020100), index, vdupq_n_u32(sizeof(float) * 0x01010101));
        return vreinterpretq_f32_u8(
            entries<(sizeof(float) << kBit)>(table, vreinterpretq_u8_u32(bytes)));
    }
    template <int kBit>
    static Int set_bit(Mask m, Int x) {
        return vorrq_u32(x, vandq_u32(m, vdupq_n_u32(1u << kBit)));
    }
    static Int one_hot(Int x) { return vshlq_u32(vdupq_n_u32(1), vreinterpretq_s32_u32(x)); }
    static int count_bit(Int x, int bit) {
        const Int last = vshlq_u32(x, vdupq_n_s32(-bit));
        return static_cast<int>(vaddvq_u32(both(last, vdupq_n_u32(1))));
    }
};

struct Double128 : Bits128 {
    using Real = double;
    using Vec = float64x2_t;
    using Mask = uint64x2_t;
    using Table = uint8x16x4_t;
    static constexpr int kLanes = 2;
    static constexpr int kUsers = 10;
    static constexpr int kLevels = 4;
    static constexpr int kTogether = 1;

    static Vec load(const double* p) { return vld1q_f64(p); }
    static void store(double* p, Vec x) { vst1q_f64(p, x); }
    static Vec broadcast(double x) { return vdupq_n_f64(x); }
    static Vec fma(Vec a, Vec b, Vec c) { return vfmaq_f64(c, a, b); }
    static double fma(double a, double b, double c) { return __builtin_fma(a, b, c); }
    static Mask reaches(Vec a, Vec b) { return vcgeq_f64(a, b); }
    static Mask equals(Vec a, Vec b) { return vceqq_f64(a, b); }
    static Vec select(Mask m, Vec a, Vec b) { return vbslq_f64(m, a, b); }
    static std::uint32_t bits(Mask m) {
        const uint64x2_t places = {1, 2};
        return static_cast<std::uint32_t>(vaddvq_u64(vandq_u64(m, places)));
    }
    static Table table(const double* p) {
        return {{vreinterpretq_u8_f64(load(p)), vreinterpretq_u8_f64(load(p + 2)),
                 vreinterpretq_u8_f64(load(p + 4)), vreinterpretq_u8_f64(load(p + 6))}};
    }
    template <int kBit>
    static Vec lookup(const Table& table, Int index) {
        const uint8x16_t first = {0, 0, 0, 0, 0, 0, 0, 0, 8, 8, 8, 8, 8, 8, 8, 8};
        const uint8x16_t byte = {0, 1, 2, 3, 4, 5, 6, 7, 0, 1, 2, 3, 4, 5, 6, 7};
        const uint8x16_t entry = vqtbl1q_u8(vreinterpretq_u8_u32(index), first);
        const uint8x16_t bytes = vmlaq_u8(byte, entry, vdupq_n_u8(sizeof(double)));
        return vreinterpretq_f64_u8(entries<(sizeof(double) << kBit)>(table, bytes));
    }
    template <int kBit>
    static Int set_bit(Mask m, Int x) {
        return vorrq_u32(x, vreinterpretq_u32_u64(vandq_u64(m, vdupq_n_u64(1u << kBit))));
    }
    static Int one_hot(Int x) {
        const int64x2_t by = vreinterpretq_s64_u32(x);
        return vreinterpretq_u32_u64(vshlq_u64(vdupq_n_u64(1), by));
    }
    static int count_bit(Int x, int bit) {
        const uint64x2_t last = vshlq_u64(vreinterpretq_u64_u32(x), vdupq_n_s64(-bit));
        return static_cast<int>(vaddvq_u64(vandq_u64(last, vdupq_n_u64(1))));
    }
};

}  // namespace
}  // namespace recometer

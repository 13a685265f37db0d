// "Vectors" in plain C++, for processors whose instruction set has no file of its own. The compiler
// may vectorise the loops. kernel.hpp describes the operations.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>

namespace recometer {
namespace {

// The multiplication and the addition are fused if the processor supports this, both in the tile
// and for the scores of the judged items.
template <class R>
inline R multiply_add(R a, R b, R c) {
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
    return std::fma(a, b, c);
#else
    return a * b + c;  // not fused, because of -ffp-contract=off
#endif
}

template <class R, class U>
struct Plain {
    using Real = R;
    static constexpr int kLanes = 4;
    static constexpr int kUsers = 4;
    static constexpr int kLevels = 5;
    static constexpr int kTogether = 0;
    struct Vec {
        R x[kLanes];
    };
    struct Int {
        U x[kLanes];
    };
    struct Mask {
        bool x[kLanes];
    };

    template <class T, class F>
    static T each(F f) {
        T out;
        for (int i = 0; i < kLanes; ++i) out.x[i] = f(i);
        return out;
    }

    static Vec load(const R* p) {
        return each<Vec>([=](int i) { return p[i]; });
    }
    static void store(R* p, const Vec& v) {
        for (int i = 0; i < kLanes; ++i) p[i] = v.x[i];
    }
    static Vec broadcast(R x) {
        return each<Vec>([=](int) { return x; });
    }
    static Vec fma(const Vec& a, const Vec& b, const Vec& c) {
        return each<Vec>([&](int i) { return multiply_add(a.x[i], b.x[i], c.x[i]); });
    }
    static R fma(R a, R b, R c) { return multiply_add(a, b, c); }
    static Mask reaches(const Vec& a, const Vec& b) {
        return each<Mask>([&](int i) { return a.x[i] >= b.x[i]; });
    }
    static Mask equals(const Vec& a, const Vec& b) {
        return each<Mask>([&](int i) { return a.x[i] == b.x[i]; });
    }
    static Vec select(const Mask& m, const Vec& a, const Vec& b) {
        return each<Vec>([&](int i) { return m.x[i] ? a.x[i] : b.x[i]; });
    }
    static std::uint32_t bits(const Mask& m) {
        std::uint32_t out = 0;
        for (int i = 0; i < kLanes; ++i) out |= static_cast<std::uint32_t>(m.x[i]) << i;
        return out;
    }
    static const R* table(const R* p) { return p; }
    template <int kBit>
    static Vec lookup(const R* table, const Int& index) {
        return each<Vec>([&](int i) { return table[index.x[i]]; });
    }
    template <int kBit>
    static Int set_bit(const Mask& m, const Int& v) {
        return each<Int>([&](int i) { return v.x[i] | (static_cast<U>(m.x[i]) << kBit); });
    }
    static Int zero() {
        return each<Int>([](int) { return U{0}; });
    }
    static Int load_bits(const Int* p) { return *p; }
    static void store_bits(Int* p, const Int& v) { *p = v; }
    static Int one_hot(const Int& v) {
        return each<Int>([&](int i) { return U{1} << v.x[i]; });
    }
    static Int exclusive(const Int& a, const Int& b) {
        return each<Int>([&](int i) { return a.x[i] ^ b.x[i]; });
    }
    static Int both(const Int& a, const Int& b) {
        return each<Int>([&](int i) { return a.x[i] & b.x[i]; });
    }
    static Int parity(const Int& a, const Int& b, const Int& c) {
        return each<Int>([&](int i) { return a.x[i] ^ b.x[i] ^ c.x[i]; });
    }
    static Int majority(const Int& a, const Int& b, const Int& c) {
        return each<Int>([&](int i) { return (a.x[i] & b.x[i]) | ((a.x[i] ^ b.x[i]) & c.x[i]); });
    }
    static int count_bit(const Int& v, int bit) {
        int out = 0;
        for (int i = 0; i < kLanes; ++i) out += static_cast<int>((v.x[i] >> bit) & 1);
        return out;
    }
};

}  // namespace
}  // namespace recometer

// Count how many candidates in a chunk reach each of a user's thresholds. kernel.hpp describes the
// instruction set S.
//
// The thresholds are the distinct scores of a user's judged items. They are sorted in ascending
// order and split into groups of at most 2^kLevels - 1. For each candidate in a vector, a descent
// (descent.hpp) finds the gap between thresholds into which the candidate falls, and encodes the
// gap as a one-hot word. Carry-save adders add up these words bit by bit: plane p holds bit p of
// each counter, and a lane has as many counters as its word has bits. The few candidates that equal
// a threshold are resolved one by one (board.hpp).
#pragma once

#include "basics.hpp"
#include "descent.hpp"

namespace recometer {
namespace {

constexpr int kChunkVectors = 16;  // the number of vectors counted per call
constexpr int kLowPlanes = 4;      // log2(kChunkVectors)
constexpr int kPlanes = kLowPlanes + 8;
// The maximum number of chunks between two flushes, which is as far as 8 high planes can count.
constexpr std::int64_t kMaxChunks = 255;
// If the planes of all users are kept, each user has only 5 high planes, and this limit applies
// instead.
constexpr std::int64_t kKeptChunks = 31;
constexpr std::size_t kKeptBytes = 4 << 20;

/// Add 2^kHeight words, starting with word `first`, to the low planes. Returns the carry. words(n,
/// out) computes a batch of words, starting with word n.
template <class S, int kHeight, class Words>
__attribute__((always_inline)) inline typename S::Int carry_of(typename S::Int* low, int first,
                                                               typename S::Int* out, Words words) {
    using Int = typename S::Int;
    if constexpr (kHeight == S::kTogether) words(first, out);
    if constexpr (kHeight == 0) {
        return out[first % (1 << S::kTogether)];
    } else {
        constexpr int kHalf = 1 << (kHeight - 1);
        const Int a = carry_of<S, kHeight - 1>(low, first, out, words);
        const Int b = carry_of<S, kHeight - 1>(low, first + kHalf, out, words);
        const Int old = low[kHeight - 1];
        low[kHeight - 1] = S::parity(old, a, b);
        return S::majority(old, a, b);
    }
}

/// Add 2^kLow words to the counters whose bits are spread across the planes.
template <class S, int kLow, class Words>
__attribute__((always_inline)) inline void add_words(typename S::Int* planes, int n_planes,
                                                     Words words) {
    using Int = typename S::Int;
    Int low[kLow], out[1 << S::kTogether];
    for (int p = 0; p < kLow; ++p) low[p] = S::load_bits(planes + p);
    Int carry = carry_of<S, kLow>(low, 0, out, words);
    for (int p = 0; p < kLow; ++p) S::store_bits(planes + p, low[p]);
    for (int p = kLow; p < n_planes; ++p) {
        const Int old = S::load_bits(planes + p);
        S::store_bits(planes + p, S::exclusive(old, carry));
        carry = S::both(old, carry);
    }
}

/// Counts how many candidates reach each threshold of a group.
/// @tparam D the kind of descent, a class from descent.hpp or keys.hpp
/// @tparam kLow log2 of the number of vectors counted per call
template <class S, class D = ByMasks<S>, int kLow = kLowPlanes>
struct Counting {
    using Real = typename S::Real;
    using Int = typename S::Int;
    static constexpr int kGroup = (1 << S::kLevels) - 1;
    static constexpr int kChunk = (1 << kLow) * S::kLanes;

    /// Add the chunk's candidates to the planes of a group. For each vector, write a mask of the
    /// lanes that equal a threshold. Returns 0 if there are no such lanes.
    template <int L>
    __attribute__((noinline)) static std::uint32_t count(const Real* scores, const Real* tables,
                                                         Int* planes, int n_planes,
                                                         std::uint32_t* ties) {
        const typename D::template Tree<L> tree(tables);
        std::uint32_t any = 0;
        auto words = [&](int first, Int* out) __attribute__((always_inline)) {
            Int path[D::kTogether];
            tree.descend(scores + first * S::kLanes, path, ties + first);
            for (int i = 0; i < D::kTogether; ++i) {
                any |= ties[first + i];
                out[i] = S::one_hot(path[i]);
            }
        };
        add_words<S, kLow>(planes, n_planes, words);
        return any;
    }

    static std::uint32_t count(int levels, const Real* scores, const Real* tables, Int* planes,
                               int n_planes, std::uint32_t* ties) {
        switch (levels) {
            case 1:
                return count<1>(scores, tables, planes, n_planes, ties);
            case 2:
                return count<2>(scores, tables, planes, n_planes, ties);
            case 3:
                return count<3>(scores, tables, planes, n_planes, ties);
            case 4:
                if constexpr (S::kLevels >= 4)
                    return count<4>(scores, tables, planes, n_planes, ties);
                [[fallthrough]];
            default:
                if constexpr (S::kLevels >= 5)
                    return count<5>(scores, tables, planes, n_planes, ties);
        }
        return 0;
    }

    static int levels_for(int thresholds) {
        int levels = 1;
        while ((1 << levels) - 1 < thresholds) ++levels;
        return levels;
    }

    /// Return the number of planes needed to count `chunks` chunks.
    static int planes_for(std::int64_t chunks) {
        int planes = kLow;
        while ((1ll << (planes - kLow)) <= chunks) ++planes;
        return planes;
    }

    /// Add the number of candidates that reach each threshold to reached[0..n), and clear the
    /// planes.
    static void flush(Int* planes, int n_planes, int n, int levels, std::int64_t* reached) {
        std::int64_t in_gap[kGroup + 1] = {};
        for (int path = 0; path < (1 << levels); ++path) {
            const int rank = D::rank_of(path, levels);
            if (rank == 0 || rank > n) continue;
            std::int64_t sum = 0;
            for (int p = 0; p < n_planes; ++p) {
                sum += static_cast<std::int64_t>(S::count_bit(S::load_bits(planes + p), path)) << p;
            }
            in_gap[rank] = sum;
        }
        std::int64_t sum = 0;
        for (int j = n; j >= 1; --j) {
            sum += in_gap[j];
            reached[j - 1] += sum;
        }
        for (int p = 0; p < n_planes; ++p) S::store_bits(planes + p, S::zero());
    }
};

}  // namespace
}  // namespace recometer

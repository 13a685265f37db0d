// A descent by 16-bit keys, which processes twice as many candidates per vector as a descent by
// signs.
//
// The range of a user's thresholds is divided into about 65,000 equal steps. The key of a score is
// the number of the step that contains it, so a higher score never has a lower key. If a candidate
// and a threshold have different keys, the keys decide which score is higher. If the keys are
// equal, which is rare, the full scores are compared (board.hpp).
#pragma once

#include <type_traits>

#include "basics.hpp"
#include "descent.hpp"

namespace recometer {
namespace {

/// A placeholder for score types that have no keys.
template <class S>
struct NoKeys {
    using Vectors = S;
    static constexpr bool kUsed = false;
    static constexpr int kTables = 0;
};

/// S provides vectors of 16-bit numbers, the operations that kernel.hpp lists for counting and for
/// a descent by signs, and the following operations:
///     keys(p, scale, offset)  the keys of the kLanes scores at p: scale * score + offset, rounded
///                             and clipped to [kLeastKey, kMostKey]; kLeastKey for NaN
///     key(score, scale, offset)  the key of a single score
///     in_order(lanes)         the mask `lanes`, reordered to match the scores at p
template <class S>
struct ByKeys {
    using Vectors = S;
    using Real = typename S::Real;
    using Int = typename S::Int;
    static constexpr bool kUsed = true;
    static constexpr int kTogether = 1 << S::kTogether;
    // If a user has fewer thresholds than this, a descent by signs is faster.
    static constexpr int kFewest = 4;
    static constexpr int kMost = (1 << S::kLevels) - 1;
    static constexpr int kReached = S::kTable * S::kLevels;  // the offset of the table `reached`
                                                             // (see write_by_signs)
    static constexpr int kPerReal = sizeof(Real) / sizeof(std::int16_t);
    static constexpr int kTables = S::kStart + (kReached + S::kTable) / kPerReal;

    static int rank_of(int path, int levels) { return rank_by_signs(path, levels); }

    /// Return the 16-bit numbers that follow the scale and the offset. For each level, these are
    /// the keys of the next thresholds, indexed by path. The keys of the last thresholds reached
    /// come at the end.
    template <class Tables>
    static auto numbers(Tables* tables) {
        using Number =
            std::conditional_t<std::is_const_v<Tables>, const std::int16_t, std::int16_t>;
        return reinterpret_cast<Number*>(tables + S::kStart);
    }

    static std::int16_t key(Real score, const Real* tables) {
        return S::key(score, tables[0], tables[1]);
    }

    /// Write the tables. Returns false if two thresholds have the same key, or if a threshold has
    /// the same key as NaN; the tables are then unusable.
    static bool build(const Real* thresholds, int n, int levels, Real* tables) {
        const Real lowest = thresholds[0] / 2, highest = thresholds[n - 1] / 2;
        tables[0] = S::kSteps / 2 / (highest - lowest);
        tables[1] = -tables[0] * (lowest + highest);
        std::int16_t keys[kMost];
        for (int i = 0, before = S::kLeastKey; i < n; before = keys[i++]) {
            keys[i] = key(thresholds[i], tables);
            if (keys[i] <= before) return false;
        }
        std::int16_t* const next = numbers(tables);
        write_by_signs(
            n, levels, S::kTable, S::kNoKey, [&](int at) { return keys[at]; }, next,
            next + kReached);
        return true;
    }

    template <int L>
    class Tree {
     public:
        __attribute__((always_inline)) explicit Tree(const Real* tables)
            : reached_(S::table(numbers(tables) + kReached)),
              root_(S::broadcast_number(numbers(tables)[0])),
              scale_(S::broadcast(tables[0])),
              offset_(S::broadcast(tables[1])) {
            for (int l = 0; l < L; ++l) level_[l] = S::table(numbers(tables) + l * S::kTable);
        }

        /// Write the paths of kTogether vectors and, for each vector, a mask of the lanes whose key
        /// equals a threshold's key.
        __attribute__((always_inline)) void descend(const Real* scores, Int* path,
                                                    std::uint32_t* ties) const {
            Int key[kTogether];
            for (int i = 0; i < kTogether; ++i) {
                key[i] = S::keys(scores + i * S::kLanes, scale_, offset_);
                path[i] = S::push_sign(S::zero(), S::subtract(key[i], root_));
            }
            descend_by_signs<S, 1, L>(level_, key, path);
            for (int i = 0; i < kTogether; ++i) {
                ties[i] = S::equal(key[i], S::template lookup<L>(reached_, path[i]));
            }
        }

     private:
        Int level_[L], reached_, root_;
        typename S::Vec scale_, offset_;
    };
};

}  // namespace
}  // namespace recometer

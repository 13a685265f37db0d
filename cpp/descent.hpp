// For each candidate in a vector, find the gap between thresholds into which it falls.
//
// The thresholds of a group form a binary search tree, with one lookup and one comparison per
// level. A candidate's path contains one decision per comparison so far: whether the candidate
// reached the threshold. The path identifies the next node and, at the end, the gap. The last
// threshold that a candidate reached on its path is the only one that it can equal.
#pragma once

#include "basics.hpp"

namespace recometer {
namespace {

/// Return the position, among the 2^levels - 1 thresholds, of the node reached after `depth`
/// decisions. `reached` has one bit per decision, and the first decision is the highest bit; a bit
/// is 1 if the candidate reached the threshold.
inline int node_at(int reached, int depth, int levels) {
    const int step = 1 << (levels - 1 - depth);
    return 2 * step * reached + step - 1;
}

/// A descent for arbitrary scores. Decisions are masks, and the first decision is the lowest bit of
/// the path.
template <class S>
struct ByMasks {
    using Real = typename S::Real;
    using Vec = typename S::Vec;
    using Int = typename S::Int;
    using Mask = typename S::Mask;
    static constexpr int kTable = 1 << (S::kLevels - 1);
    static constexpr int kTables = kTable * S::kLevels;  // the size of a group's tables, in Reals
    static constexpr int kTogether = 1 << S::kTogether;

    /// Return the rank of a path (the number of thresholds reached), which is the path with its
    /// bits reversed.
    static int rank_of(int path, int levels) {
        constexpr unsigned char kReversed[32] = {0,  16, 8,  24, 4,  20, 12, 28, 2,  18, 10,
                                                 26, 6,  22, 14, 30, 1,  17, 9,  25, 5,  21,
                                                 13, 29, 3,  19, 11, 27, 7,  23, 15, 31};
        return kReversed[path] >> (5 - levels);
    }

    static void build(const Real* thresholds, int n, int levels, Real* tables) {
        for (int l = 0; l < levels; ++l) {
            for (int path = 0; path < (1 << l); ++path) {
                const int at = node_at(rank_of(path, l), l, levels);
                tables[l * kTable + path] = at < n ? thresholds[at] : not_a_number<Real>();
            }
        }
    }

    template <int L>
    class Tree {
     public:
        __attribute__((always_inline)) explicit Tree(const Real* tables)
            : root_(S::broadcast(tables[0])), none_(S::broadcast(not_a_number<Real>())) {
            for (int l = 0; l < L; ++l) level_[l] = S::table(tables + l * kTable);
        }

        /// Write the paths of kTogether vectors and, for each vector, a mask of the lanes that
        /// equal a threshold.
        __attribute__((always_inline)) void descend(const Real* scores, Int* path,
                                                    std::uint32_t* ties) const {
            Vec score[kTogether], reached[kTogether];
            // Interleave several vectors, because each step of a descent depends on the previous
            // one.
            for (int i = 0; i < kTogether; ++i) {
                score[i] = S::load(scores + i * S::kLanes);
                const Mask up = S::reaches(score[i], root_);
                path[i] = S::template set_bit<0>(up, S::zero());
                reached[i] = S::select(up, root_, none_);
            }
            descend_from<1>(score, path, reached);
            for (int i = 0; i < kTogether; ++i) ties[i] = S::bits(S::equals(score[i], reached[i]));
        }

     private:
        template <int kLevel>
        __attribute__((always_inline)) void descend_from(const Vec* score, Int* path,
                                                         Vec* reached) const {
            if constexpr (kLevel < L) {
                for (int i = 0; i < kTogether; ++i) {
                    const Vec threshold = S::template lookup<kLevel>(level_[kLevel], path[i]);
                    const Mask up = S::reaches(score[i], threshold);
                    path[i] = S::template set_bit<kLevel>(up, path[i]);
                    reached[i] = S::select(up, threshold, reached[i]);
                }
                descend_from<kLevel + 1>(score, path, reached);
            }
        }

        decltype(S::table(nullptr)) level_[L];
        Vec root_, none_;
    };
};

/// Return the rank of a path whose bits are 1 for thresholds that were not reached.
inline int rank_by_signs(int path, int levels) { return (1 << levels) - 1 - path; }

/// Extend paths whose bits are signs by the decisions at levels kLevel to L - 1.
/// @param level the table of each level
/// @param score 2^kTogether vectors of scores or keys
template <class S, int kLevel, int L, class Vec>
__attribute__((always_inline)) inline void descend_by_signs(const Vec* level, const Vec* score,
                                                            typename S::Int* path) {
    if constexpr (kLevel < L) {
        for (int i = 0; i < 1 << S::kTogether; ++i) {
            const Vec threshold = S::template lookup<kLevel>(level[kLevel], path[i]);
            path[i] = S::push_sign(path[i], S::subtract(score[i], threshold));
        }
        descend_by_signs<S, kLevel + 1, L>(level, score, path);
    }
}

/// Write two tables of n thresholds, indexed by paths whose bits are signs. `next` contains the
/// threshold of the next node (`table` numbers per level), and `reached` contains the last
/// threshold that was reached. `none` takes the place of thresholds that do not exist.
template <class Number, class Threshold>
inline void write_by_signs(int n, int levels, int table, Number none, Threshold threshold,
                           Number* next, Number* reached) {
    for (int l = 0; l < levels; ++l) {
        for (int path = 0; path < (1 << l); ++path) {
            const int at = node_at(rank_by_signs(path, l), l, levels);
            next[l * table + path] = at < n ? threshold(at) : none;
        }
    }
    for (int path = 0; path < (1 << levels); ++path) {
        const int at = rank_by_signs(path, levels) - 1;
        reached[path] = at >= 0 && at < n ? threshold(at) : none;
    }
}

/// A descent for scores that are finite or `not_a_number()`. Decisions are the signs of
/// differences, and the last decision is the lowest bit of the path. This takes fewer operations
/// than ByMasks.
///
/// A bit of the path is 1 if the score is below the threshold. The signs are always correct: x - x
/// and 0 - (-0) are +0, small differences are not rounded to 0, differences that overflow keep
/// their sign, and the sign bit of `not_a_number()` is set.
template <class S>
struct BySigns {
    using Real = typename S::Real;
    using Vec = typename S::Vec;
    using Int = typename S::Int;
    static constexpr int kTable = 1 << (S::kLevels - 1);
    static constexpr int kReached =
        kTable * S::kLevels;  // the offset of the table `reached` (see write_by_signs)
    static constexpr int kTables = kReached + 2 * kTable;
    static constexpr int kTogether = 1 << S::kTogether;

    static int rank_of(int path, int levels) { return rank_by_signs(path, levels); }

    static void build(const Real* thresholds, int n, int levels, Real* tables) {
        const auto threshold = [&](int at) {
            return thresholds[at] == 0 ? -Real{0} : thresholds[at];
        };
        write_by_signs(n, levels, kTable, not_a_number<Real>(), threshold, tables,
                       tables + kReached);
    }

    template <int L>
    class Tree {
     public:
        __attribute__((always_inline)) explicit Tree(const Real* tables)
            : root_(S::broadcast(tables[0])) {
            for (int l = 0; l < L; ++l) level_[l] = S::load(tables + l * kTable);
            for (int i = 0; i < 2; ++i) reached_[i] = S::load(tables + kReached + i * kTable);
        }

        /// Write the paths of kTogether vectors and, for each vector, a mask of the lanes that
        /// equal a threshold.
        __attribute__((always_inline)) void descend(const Real* scores, Int* path,
                                                    std::uint32_t* ties) const {
            Vec score[kTogether];
            // Interleave several vectors, because each step of a descent depends on the previous
            // one.
            for (int i = 0; i < kTogether; ++i) {
                score[i] = S::load(scores + i * S::kLanes);
                path[i] = S::push_sign(S::zero(), S::subtract(score[i], root_));
            }
            descend_by_signs<S, 1, L>(level_, score, path);
            for (int i = 0; i < kTogether; ++i) {
                Vec reached;
                if constexpr (L < S::kLevels) {
                    reached = S::template lookup<L>(reached_[0], path[i]);
                } else {
                    reached = S::lookup_in_two(reached_[0], reached_[1], path[i]);
                }
                ties[i] = S::bits(S::equals(score[i], reached));
            }
        }

     private:
        Vec level_[L], reached_[2], root_;
    };
};

}  // namespace
}  // namespace recometer

// The kernel, written once for a generic instruction set S and compiled for each instruction set.
//
//     tile.hpp      computes the scores of a tile of users and items
//     scoring.hpp   computes or reads the scores of a block of users, chunk by chunk
//     top.hpp       finds the top candidates of a block of users
//     counting.hpp  counts how many scores in a chunk reach each of a user's thresholds
//     descent.hpp   finds the gap between thresholds into which each score falls
//     keys.hpp      does the same with scores rounded to 16 bits
//     excluding.hpp removes excluded items from a chunk of scores
//     board.hpp     stores the thresholds and counts of a block of users
//     kernel.hpp    ranks the judged items
//
// S provides these types, for scores of type Real:
//     Vec, Mask, Int    vectors of kLanes Reals, booleans and integers
// these operations for the tile (tile.hpp) and the shelves (top.hpp):
//     load, store, broadcast, select(m, a, b)
//     fma(a, b, c)      a * b + c, rounded the same way for vectors and for single Reals
//     reaches(a, b)     a >= b per lane (false for NaN); equals(a, b)
//     bits(m)           a mask as the bits of an integer
// these operations for counting:
//     table(p)          the 2^(kLevels - 1) Reals at p, in the form that lookup expects
//     lookup<B>(t, i)   t[i] per lane; i < 2^B
//     set_bit<B>(m, x)  x | 1 << B in the lanes of m
//     one_hot(x)        1 << x
//     zero, load_bits, store_bits, exclusive(a, b), both(a, b)
//     parity, majority  the two outputs of a full adder, bit by bit
//     count_bit(x, b)   the number of lanes with bit b set
// and these operations for a descent by signs:
//     subtract(a, b)    a - b
//     push_sign(i, x)   2 * i + (whether the sign bit of x is set)
//     lookup_in_two(t, u, i)  i < kLanes ? t[i] : u[i - kLanes] per lane
// A descent processes 2^kTogether vectors together, and compares them with at most 2^kLevels - 1
// thresholds. A tile contains the scores of kUsers users for 2 vectors of items.
//
// Everything in these files has internal linkage, and no object needs a static initialiser. If
// files for different instruction sets shared a function or an object, the linker could pick a
// version that the processor cannot run.
#pragma once

#include <cstring>

#include "board.hpp"
#include "counting.hpp"
#include "ranking.hpp"
#include "scoring.hpp"

namespace recometer {
namespace {

/// Counts candidates whose scores are computed from factors. Used as the `Out` argument of
/// score_by_factors.
/// @tparam D the kind of descent, a class from descent.hpp
/// @tparam K the kind of keys, a class from keys.hpp
template <class S, class D, class K>
class FactorCounts {
 public:
    using Real = typename S::Real;
    using Int = typename S::Int;

    explicit FactorCounts(const RankFactors<Real>& p)
        : p_(p.scores),
          board_(p.judged, p_.falling, p_.finished, p_.n_users, p_.first, p_.last, p.limit),
          chunks_(chunks_at_once<S>(p_)),
          everybody_(p.limit >= p_.items.n_items),
          most_(everybody_ && chunks_ < kKeptChunks ? kKeptChunks : chunks_),
          n_planes_(Counting<S, D>::planes_for(most_)),
          user_planes_(board_.max_groups() * static_cast<std::size_t>(n_planes_)),
          keeps_(everybody_ && p_.n_users * user_planes_ * sizeof(Int) <= kKeptBytes),
          n_planes_in_all_((keeps_ ? p_.n_users : std::size_t{S::kUsers}) * user_planes_),
          planes_(n_planes_in_all_) {
        std::memset(static_cast<void*>(planes_.get()), 0, n_planes_in_all_ * sizeof(Int));
    }

    bool leaves() const { return !everybody_; }

    bool stays(std::size_t user, std::int64_t from) {
        board_.drop(user);
        return board_.active(user) &&
               (from == p_.items.n_items || !p_.falling.all_below(board_.lowest(user), user, from));
    }

    void prefetch(std::size_t user) const { board_.prefetch(user); }

    void next(std::int64_t n_chunks, bool last) {
        pending_ += n_chunks;
        flushes_ = !keeps_ || last || pending_ + chunks_ > most_;
        if (flushes_) pending_ = 0;
    }

    void begin(std::size_t first) { group_ = planes_.get() + (keeps_ ? first * user_planes_ : 0); }

    void put(std::size_t u, std::size_t user, const Real* scores, std::int64_t from) {
        board_.count(user, scores, from, group_ + u * user_planes_, n_planes_);
    }

    void end(const std::size_t* users, std::size_t n) {
        for (std::size_t u = 0; flushes_ && u < n; ++u) {
            board_.flush(users[u], group_ + u * user_planes_, n_planes_);
        }
    }

    std::int64_t finish() { return board_.finish(); }

 private:
    const FactorScores<Real>& p_;
    Board<S, D, K> board_;
    const std::int64_t chunks_;
    const bool everybody_;
    // The maximum number of chunks between two flushes. If no user can finish early, the maximum
    // can be higher, because the planes of all users can then be kept.
    const std::int64_t most_;
    const int n_planes_;
    const std::size_t user_planes_;
    const bool keeps_;
    const std::size_t n_planes_in_all_;
    Buffer<Int> planes_;
    Int* group_ = nullptr;      // the planes of the group's first user
    bool flushes_ = false;      // whether to flush after the current chunks
    std::int64_t pending_ = 0;  // the number of chunks counted since the last flush
};

template <class S, class D = ByMasks<S>, class K = NoKeys<S>>
std::int64_t rank_factors(const RankFactors<typename S::Real>& p) {
    FactorCounts<S, D, K> counts(p);
    score_by_factors<S>(p.scores, counts);
    return counts.finish();
}

/// Counts candidates whose scores are passed in, not computed from factors. Used as the `Out`
/// argument of read_scores.
template <class S>
class ScoreCounts {
 public:
    using Real = typename S::Real;
    using Int = typename S::Int;

    explicit ScoreCounts(const RankScores<Real>& p)
        : board_(p.judged, Falling{}, nullptr, p.scores.n_users, 0, p.scores.n_items, p.limit),
          first_step_(p.limit < p.scores.n_items ? 1 : kMaxChunks),
          planes_(board_.max_groups() * kPlanes) {
        std::memset(static_cast<void*>(planes_.get()), 0,
                    board_.max_groups() * kPlanes * sizeof(Int));
    }

    void begin(std::size_t) {
        pending_ = 0;
        step_ = first_step_;
    }

    void put(std::size_t user, const Real* scores, std::int64_t from) {
        board_.count(user, scores, from, planes_.get(), kPlanes);
        if (++pending_ < step_) return;
        end(user);
        board_.drop(user);
        pending_ = 0;
        step_ = 2 * step_ < kMaxChunks ? 2 * step_ : kMaxChunks;
    }

    void end(std::size_t user) { board_.flush(user, planes_.get(), kPlanes); }

    std::int64_t finish() { return board_.finish(); }

 private:
    Board<S> board_;
    // The number of chunks to count before `drop` is called for the first time. Counting for a
    // judged item usually stops early if it stops at all, so later calls are less frequent.
    const std::int64_t first_step_;
    Buffer<Int> planes_;
    std::int64_t pending_ = 0, step_ = 0;
};

template <class S>
std::int64_t rank_scores(const RankScores<typename S::Real>& p) {
    ScoreCounts<S> counts(p);
    read_scores<S>(p.scores, counts);
    return counts.finish();
}

}  // namespace
}  // namespace recometer

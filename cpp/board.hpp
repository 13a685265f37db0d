// The thresholds of a block of users, with their counts and ties, and the rules that decide when
// counting stops for a threshold.
#pragma once

#include <cstring>

#include "counting.hpp"
#include "keys.hpp"
#include "ranking.hpp"

namespace recometer {
namespace {

// A candidate is undecided if it has the same key as a threshold, but a different score. If a user
// has more undecided candidates than kFewUndecided plus one for every kPerUndecided candidates
// counted, keys cost more than they save and are no longer used for this user.
constexpr std::int64_t kPerUndecided = 4096;
constexpr std::int64_t kFewUndecided = 2;
// If a user has more thresholds than this, a binary search for each candidate is faster than
// comparing the candidate with every group of thresholds.
constexpr std::int64_t kFewThresholds = 512;
constexpr int kSearched = 8;  // the number of interleaved binary searches

/// For a block of users, the thresholds (the distinct scores of the judged items) and the number of
/// candidates that reach each threshold.
///
/// Data that are used together are stored together, because the thresholds of users with many
/// judged items do not fit into the inner caches.
///
/// @tparam D the kind of descent, a class from descent.hpp
/// @tparam K the kind of keys for users with few thresholds, a class from keys.hpp
template <class S, class D = ByMasks<S>, class K = NoKeys<S>>
class Board {
 public:
    using Real = typename S::Real;
    using Int = typename S::Int;
    using C = Counting<S, D>;
    using N = typename K::Vectors;
    using Keyed = Counting<N, K, kLowPlanes - 1>;  // vectors with twice as many lanes
    static_assert(!K::kUsed || (Keyed::kChunk == C::kChunk && K::kTables <= D::kTables));

    /// @param finished see FactorScores; may be null
    Board(const Judged<Real>& judged, const Falling& falling, const std::uint8_t* finished,
          std::size_t n_users, std::int64_t first, std::int64_t last, std::int64_t limit)
        : judged_(judged),
          falling_(falling),
          n_users_(n_users),
          first_(first),
          last_(last),
          limit_(limit),
          user_(n_users),
          value_(judged_count()),
          reached_(judged_count()),
          ties_(judged_count()),
          lower_(judged_count()),
          landed_(searches() ? judged_count() : 0),
          tables_(table_count() * D::kTables) {
        std::size_t tables = 0;
        for (std::size_t u = 0; u < n_users; ++u) {
            User& user = user_[u];
            user.tables = tables_.get() + tables * D::kTables;
            user.begin = judged.table.indptr[u] - judged.table.indptr[0];
            user.end = finished != nullptr && finished[u] != 0 ? user.begin : collect(u);
            user.active = user.begin;
            user.keyed = 0;
            user.undecided = 0;
            user.searched = user.end - user.begin > kFewThresholds;
            if (user.searched) {
                std::memset(landed_.get() + user.begin, 0,
                            static_cast<std::size_t>(user.end - user.begin) * sizeof(std::int64_t));
            }
            const std::size_t groups =
                user.searched
                    ? 0
                    : static_cast<std::size_t>(user.end - user.begin + C::kGroup - 1) / C::kGroup;
            tables += groups;
            if (groups > max_groups_) max_groups_ = groups;
            if (!drop(u)) build(user);
        }
    }

    bool active(std::size_t u) const { return user_[u].active < user_[u].end; }
    std::size_t max_groups() const { return max_groups_; }

    /// Return the lowest threshold for which counting continues. The user must be active.
    Real lowest(std::size_t u) const { return value_[user_[u].active]; }

    /// Prefetch the data that `settle` needs for the user.
    void prefetch(std::size_t u) const {
        const User& user = user_[u];
        __builtin_prefetch(value_.get() + user.active, 0, 2);
        for (std::int64_t t = user.active; t < user.end; ++t) {
            __builtin_prefetch(ties_.get() + t, 1, 2);
        }
    }

    /// Count the candidates in a chunk of the user's scores. The chunk starts at position `from`;
    /// the scores of items that are not candidates must be NaN.
    void count(std::size_t u, const Real* scores, std::int64_t from, Int* planes, int n_planes) {
        User& user = user_[u];
        if (user.searched) return search(user, scores, from);
        std::uint32_t ties[kChunkVectors];
        if constexpr (K::kUsed) {
            if (user.keyed != 0) {
                if (Keyed::count(user.keyed, scores, user.tables, planes, n_planes - 1, ties) ==
                    0) {
                    return;
                }
                settle_keys(user, scores, from, ties);
                if (user.undecided > kFewUndecided + (from - first_) / kPerUndecided) {
                    flush(u, planes, n_planes);
                    user.undecided = kDense;
                    build(user);
                }
                return;
            }
        }
        const Real* tables = user.tables;
        for (std::int64_t group = user.active; group < user.end; group += C::kGroup) {
            const int n = size(group, user);
            if (C::count(C::levels_for(n), scores, tables, planes, n_planes, ties) != 0) {
                settle(group, n, scores, from, ties);
            }
            tables += D::kTables;
            planes += n_planes;
        }
    }

    void flush(std::size_t u, Int* planes, int n_planes) {
        const User& user = user_[u];
        if (user.searched) {
            std::int64_t higher = 0;
            for (std::int64_t t = user.end; t-- > user.active; landed_[t] = 0) {
                higher += landed_[t];
                reached_[t] += higher;
            }
            return;
        }
        if constexpr (K::kUsed) {
            if (user.keyed != 0) {
                Keyed::flush(planes, n_planes - 1, size(user.active, user), user.keyed,
                             reached_.get() + user.active);
                return;
            }
        }
        for (std::int64_t group = user.active; group < user.end; group += C::kGroup) {
            const int n = size(group, user);
            C::flush(planes, n_planes, n, C::levels_for(n), reached_.get() + group);
            planes += n_planes;
        }
    }

    /// Stop counting for thresholds that at least `limit` candidates exceed. Returns whether
    /// counting stopped for any threshold.
    bool drop(std::size_t u) {
        User& user = user_[u];
        const std::int64_t old = user.active;
        for (; user.active < user.end; ++user.active) {
            const std::int64_t t = user.active;
            const std::int64_t earlier = judged_.above[judged_.order[ties_[t].begin]];
            if (earlier + reached_[t] - ties_[t].equal < limit_) break;
        }
        if (user.active == old) return false;
        build(user);
        return true;
    }

    /// Add the counts for the thresholds to the counts of the judged items. Returns the position of
    /// a judged item whose own score was not found among the candidates, or -1 if there is none.
    std::int64_t finish() {
        for (std::size_t u = 0; u < n_users_; ++u) {
            const User& user = user_[u];
            for (std::int64_t t = user.begin; t < user.end; ++t) add(t, t >= user.active);
        }
        return lost_;
    }

 private:
    struct User {
        std::int64_t begin, end;  // the user's thresholds, in ascending order
        std::int64_t active;      // the first threshold for which counting continues
        Real* tables;
        bool searched;  // whether the user has too many thresholds for tables; if so, a binary
                        // search finds each candidate's threshold, and `landed_` holds the counts
        int keyed;      // the number of levels in the key tables, or 0 if keys are not used
        std::int64_t undecided;  // the number of candidates that keys left undecided
    };
    struct Ties {
        std::int64_t begin, end;  // the judged items with this score, as positions in Judged::order
        std::int64_t passed;      // if items are scored in index order, all judged items before
                                  // this position have lower indices than the remaining candidates
        std::int64_t item;        // the first judged item with this score
        std::int64_t equal;       // the number of candidates with this score
        std::int64_t met;         // the number of judged items among the candidates with this score
    };

    // The value of User::undecided once keys are no longer used for the user.
    static constexpr std::int64_t kDense = -1;

    std::size_t judged_count() const {
        return static_cast<std::size_t>(judged_.table.indptr[n_users_] - judged_.table.indptr[0]);
    }

    std::size_t table_count() const {
        std::size_t count = 0;
        for (std::size_t u = 0; u < n_users_; ++u) {
            count += static_cast<std::size_t>(judged_.table.indptr[u + 1] -
                                              judged_.table.indptr[u] + C::kGroup - 1) /
                     C::kGroup;
        }
        return count;
    }

    /// Whether any user has so many judged items that a binary search may be faster.
    bool searches() const {
        for (std::size_t u = 0; u < n_users_; ++u) {
            const std::int64_t n = judged_.table.indptr[u + 1] - judged_.table.indptr[u];
            if (n > kFewThresholds) return true;
        }
        return false;
    }

    static int size(std::int64_t group, const User& user) {
        return static_cast<int>(user.end - group < C::kGroup ? user.end - group : C::kGroup);
    }

    std::int32_t item_at(std::int64_t ordered) const {
        return judged_.table.items[judged_.order[ordered]];
    }

    /// Write the user's thresholds, starting at the user's `begin`. Returns the position after the
    /// last threshold.
    std::int64_t collect(std::size_t u) const {
        const std::int64_t end = judged_.order_end[u];
        std::int64_t t = user_[u].begin;
        for (std::int64_t o = t; o < end; ++t) {
            const Real value = judged_.scores[judged_.order[o]];
            Ties ties{o, o, o, item_at(o), 0, 0};
            for (; ties.end < end && judged_.scores[judged_.order[ties.end]] == value; ++ties.end) {
                lower_[ties.end] = 0;
            }
            o = ties.end;
            value_[t] = value;
            // Judged items with higher scores are also candidates. If there are at least `limit_`
            // of them, `drop` stops counting for threshold t.
            reached_[t] = end - o >= limit_ ? limit_ : 0;
            ties_[t] = ties;
        }
        return t;
    }

    void build(User& user) const {
        if (user.searched) return;
        Real* tables = user.tables;
        if constexpr (K::kUsed) {
            const std::int64_t n = user.end - user.active;
            user.keyed = 0;
            if (n >= K::kFewest && n <= K::kMost && user.undecided != kDense) {
                const int levels = C::levels_for(static_cast<int>(n));
                const Real* const values = value_.get() + user.active;
                if (K::build(values, static_cast<int>(n), levels, tables)) user.keyed = levels;
            }
            if (user.keyed != 0) return;
        }
        for (std::int64_t group = user.active; group < user.end; group += C::kGroup) {
            const int n = size(group, user);
            D::build(value_.get() + group, n, C::levels_for(n), tables);
            tables += D::kTables;
        }
    }

    /// For each candidate in a chunk, record the highest threshold that it reaches.
    void search(const User& user, const Real* scores, std::int64_t from) {
        if (user.active == user.end) return;
        const Real* const values = value_.get();
        for (int first = 0; first < kChunkVectors * S::kLanes; first += kSearched) {
            std::int64_t at[kSearched];  // the last threshold that the candidate reaches, or the
                                         // first threshold if it reaches none
            for (int i = 0; i < kSearched; ++i) at[i] = user.active;
            for (std::int64_t n = user.end - user.active; n > 1;) {
                const std::int64_t half = n / 2;
                for (int i = 0; i < kSearched; ++i) {
                    at[i] += values[at[i] + half] <= scores[first + i] ? half : 0;
                }
                n -= half;
            }
            for (int i = 0; i < kSearched; ++i) {
                if (!(values[at[i]] <= scores[first + i])) continue;
                ++landed_[at[i]];
                if (values[at[i]] == scores[first + i]) meet(ties_[at[i]], from + first + i);
            }
        }
    }

    /// Resolve the ties between a chunk's candidates and the thresholds of a group.
    void settle(std::int64_t group, int n, const Real* scores, std::int64_t from,
                const std::uint32_t* ties) {
        std::int64_t t = group;
        for (int v = 0; v < kChunkVectors; ++v) {
            for (std::uint32_t mask = ties[v]; mask != 0; mask &= mask - 1) {
                const int at = v * S::kLanes + __builtin_ctz(mask);
                if (!(value_[t] == scores[at])) t = find(group, group + n, scores[at]);
                meet(ties_[t], from + at);
            }
        }
    }

    /// Resolve the candidates in a chunk that have the same key as a threshold. They have already
    /// been counted as reaching that threshold.
    void settle_keys(User& user, const Real* scores, std::int64_t from, const std::uint32_t* ties) {
        for (int v = 0; v < Keyed::kChunk / N::kLanes; ++v) {
            if (ties[v] == 0) continue;
            for (std::uint32_t mask = N::in_order(ties[v]); mask != 0; mask &= mask - 1) {
                const int at = v * N::kLanes + __builtin_ctz(mask);
                const Real score = scores[at];
                const std::int64_t higher = user.active + reached_by(score, user);
                if (higher > user.active && value_[higher - 1] == score) {
                    meet(ties_[higher - 1], from + at);
                    continue;
                }
                ++user.undecided;
                if (higher < user.end &&
                    K::key(value_[higher], user.tables) == K::key(score, user.tables)) {
                    --reached_[higher];
                }
            }
        }
    }

    /// Return how many of the user's remaining thresholds a score reaches. At most kLanes
    /// thresholds may remain.
    int reached_by(Real score, const User& user) const {
        const auto reached = S::reaches(S::broadcast(score), S::load(value_.get() + user.active));
        return __builtin_popcount(S::bits(reached) & ((1u << (user.end - user.active)) - 1));
    }

    /// Record that the candidate at `place` ties with a threshold.
    void meet(Ties& tie, std::int64_t place) {
        const std::int64_t item = falling_.item(place);
        ++tie.equal;
        // In almost all cases, the candidate is the judged item itself, and no other judged item
        // has the same score.
        if (tie.item == item && tie.end - tie.begin == 1) {
            ++tie.met;
            return;
        }
        std::int64_t higher = first_not_below(tie, item);
        if (higher < tie.end && item_at(higher) == item) {
            ++tie.met;
            ++higher;
        }
        if (higher < tie.end) ++lower_[higher];
    }

    /// Return the position of the first judged item in this tie whose index is at least `item`, or
    /// the end of the tie.
    std::int64_t first_not_below(Ties& tie, std::int64_t item) const {
        std::int64_t from = tie.passed, to = tie.end;
        if (falling_.items == nullptr) {
            while (from < to && item_at(from) < item) ++from;
            return tie.passed = from;
        }
        while (from < to) {
            const std::int64_t middle = from + (to - from) / 2;
            if (item_at(middle) < item) {
                from = middle + 1;
            } else {
                to = middle;
            }
        }
        return from;
    }

    /// Return the position of the threshold that equals `value`. There must be one in [from, to).
    std::int64_t find(std::int64_t from, std::int64_t to, Real value) const {
        while (to - from > 1) {
            const std::int64_t middle = from + (to - from) / 2;
            if (value_[middle] <= value) {
                from = middle;
            } else {
                to = middle;
            }
        }
        return from;
    }

    void add(std::int64_t t, bool kept) {
        const Ties& tie = ties_[t];
        std::int64_t lower = 0, missed = -tie.met;
        for (std::int64_t o = tie.begin; o < tie.end; ++o) {
            const std::int64_t j = judged_.order[o];
            const std::int64_t place = falling_.place(judged_.table.items[j]);
            const bool here = place >= first_ && place < last_;
            lower += lower_[o];
            judged_.above[j] += reached_[t] - tie.equal;
            judged_.tied[j] += tie.equal - (here && kept ? 1 : 0);
            judged_.before[j] += lower;
            missed += here ? 1 : 0;
        }
        if (kept && missed != 0) lost_ = judged_.order[tie.begin];
    }

    const Judged<Real> judged_;
    const Falling falling_;
    const std::size_t n_users_;
    const std::int64_t first_, last_, limit_;
    Buffer<User> user_;
    Buffer<Real> value_;
    Buffer<std::int64_t> reached_;
    Buffer<Ties> ties_;
    Buffer<std::int64_t> lower_;   // per judged item: the number of tied candidates whose index is
                                   // between those of the previous judged item and this item
    Buffer<std::int64_t> landed_;  // per threshold of `searched` users: the number of candidates
                                   // since the last flush that reach this threshold, but not the
                                   // next one
    Buffer<Real> tables_;
    std::size_t max_groups_ = 1;
    std::int64_t lost_ = -1;
};

}  // namespace
}  // namespace recometer

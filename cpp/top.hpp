// Find the top candidates of a block of users.
//
// Each user has a shelf with room for a little more than 2k entries. Each vector of scores in a
// chunk is compared with the k-th best score so far, and candidates that reach this score are put
// on the shelf. A full shelf is cut to its best k entries. On average, the cost per entry is
// constant, regardless of the order of the scores.
#pragma once

#include "counting.hpp"
#include "ranking.hpp"
#include "scoring.hpp"
#include "sorting.hpp"

namespace recometer {
namespace {

template <class S>
class Shelves {
 public:
    using Real = typename S::Real;
    static constexpr std::int64_t kChunk = Counting<S>::kChunk;

    Shelves(const Top<Real>& top, const Falling& falling, std::size_t n_users)
        : top_(top),
          falling_(falling),
          n_users_(n_users),
          room_(static_cast<std::size_t>(2 * top.k) + S::kLanes),
          user_(n_users),
          entries_(n_users * room_) {
        for (std::size_t u = 0; u < n_users; ++u) {
            User& user = user_[u];
            const std::size_t list = u * static_cast<std::size_t>(top.k);
            for (user.n = 0; user.n < top.n[u]; ++user.n) {
                const std::size_t at = list + static_cast<std::size_t>(user.n);
                shelf(u)[user.n] = {top.scores[at], top.items[at]};
            }
            user.reach = user.n == top.k ? shelf(u)[user.n - 1].score : -infinity<Real>();
        }
    }

    /// Put candidates from a chunk of the user's scores on the user's shelf. The chunk starts at
    /// place `from`; the scores of items that are not candidates must be NaN.
    void put(std::size_t u, const Real* scores, std::int64_t from) {
        User& user = user_[u];
        Entry<Real>* const out = shelf(u);
        auto reach = S::broadcast(user.reach);
        for (int v = 0; v < kChunkVectors; ++v) {
            std::uint32_t mask = S::bits(S::reaches(S::load(scores + v * S::kLanes), reach));
            if (mask == 0) continue;
            for (; mask != 0; mask &= mask - 1) {
                const int at = v * S::kLanes + __builtin_ctz(mask);
                out[user.n++] = {scores[at], static_cast<std::int32_t>(falling_.item(from + at))};
            }
            if (user.n < 2 * top_.k) continue;
            cut(u);
            reach = S::broadcast(user.reach);
        }
    }

    /// Whether the bounds show that k entries on the user's shelf score higher than every item from
    /// place `from` on.
    bool decided(std::size_t u, std::int64_t from) const {
        const Entry<Real>* const entries = shelf(u);
        std::int64_t higher = 0;
        for (std::int64_t i = 0; i < user_[u].n; ++i) {
            higher += falling_.all_below(entries[i].score, u, from) ? 1 : 0;
        }
        return higher >= top_.k;
    }

    /// Write each user's list of top candidates.
    void finish() {
        for (std::size_t u = 0; u < n_users_; ++u) {
            if (user_[u].n > top_.k) cut(u);
            Entry<Real>* const entries = shelf(u);
            sort_best(entries, user_[u].n, top_.order, top_.keys[u]);
            const std::size_t list = u * static_cast<std::size_t>(top_.k);
            for (std::int64_t i = 0; i < user_[u].n; ++i) {
                const std::size_t at = list + static_cast<std::size_t>(i);
                top_.scores[at] = entries[i].score;
                top_.items[at] = entries[i].item;
            }
            top_.n[u] = user_[u].n;
        }
    }

 private:
    struct User {
        std::int64_t n;  // the number of entries on the shelf
        Real reach;      // the k-th best score when the shelf was last cut
    };

    Entry<Real>* shelf(std::size_t u) const { return entries_.get() + u * room_; }

    /// Keep only the best k entries on the shelf.
    void cut(std::size_t u) {
        User& user = user_[u];
        if (user.n <= top_.k) return;
        Entry<Real>* const entries = shelf(u);
        const std::int64_t left = keep_best(entries, user.n, top_.k, top_.order, top_.keys[u]);
        const Real reach = entries[top_.k - 1].score;
        top_.left[u] = left + (reach == user.reach ? top_.left[u] : 0);
        user.reach = reach;
        user.n = top_.k;
    }

    const Top<Real> top_;
    const Falling falling_;
    const std::size_t n_users_;
    const std::size_t room_;
    Buffer<User> user_;
    Buffer<Entry<Real>> entries_;
};

/// Puts candidates on shelves, using scores that are computed from factors. Used as the `Out`
/// argument of score_by_factors.
template <class S>
class FactorShelves {
 public:
    using Real = typename S::Real;

    explicit FactorShelves(const TopFactors<Real>& p)
        : p_(p.scores), shelves_(p.top, p_.falling, p_.n_users) {}

    bool leaves() const { return p_.falling.items != nullptr && !p_.check; }
    bool stays(std::size_t user, std::int64_t from) const {
        return !leaves() || from == p_.items.n_items || !shelves_.decided(user, from);
    }
    void prefetch(std::size_t) const {}
    void next(std::int64_t, bool) const {}
    void begin(std::size_t) const {}
    void put(std::size_t, std::size_t user, const Real* scores, std::int64_t from) {
        shelves_.put(user, scores, from);
    }
    void end(const std::size_t*, std::size_t) const {}
    void finish() { shelves_.finish(); }

 private:
    const FactorScores<Real>& p_;
    Shelves<S> shelves_;
};

template <class S>
void top_factors(const TopFactors<typename S::Real>& p) {
    FactorShelves<S> shelves(p);
    score_by_factors<S>(p.scores, shelves);
    shelves.finish();
}

/// Puts candidates on shelves, using scores that are passed in, not computed from factors. Used as
/// the `Out` argument of read_scores.
template <class S>
class ScoreShelves : public Shelves<S> {
 public:
    explicit ScoreShelves(const TopScores<typename S::Real>& p)
        : Shelves<S>(p.top, Falling{}, p.scores.n_users) {}

    void begin(std::size_t) const {}
    void end(std::size_t) const {}
};

template <class S>
void top_scores(const TopScores<typename S::Real>& p) {
    ScoreShelves<S> shelves(p);
    read_scores<S>(p.scores, shelves);
    shelves.finish();
}

}  // namespace
}  // namespace recometer

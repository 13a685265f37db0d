// The best candidates of a block of users.
//
// Each user has a shelf of 2k and some places. A chunk of scores is compared with the k-th best
// score so far, vector by vector; what reaches it is put on the shelf, which is cut to the best k
// when it is full. However the scores are sorted, that costs a constant per score put there.
#pragma once

#include "counting.hpp"
#include "excluding.hpp"
#include "ranking.hpp"
#include "sorting.hpp"
#include "tile.hpp"

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

    /// Put down the candidates among a chunk of the user's scores, the first of which is that of
    /// the place `from`; what is not a candidate must be NaN.
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

    /// Whether no item from a place on can score like one of the user's best k.
    bool decided(std::size_t u, std::int64_t from) const {
        const Entry<Real>* const entries = shelf(u);
        std::int64_t higher = 0;
        for (std::int64_t i = 0; i < user_[u].n; ++i) {
            higher += falling_.all_below(entries[i].score, u, from) ? 1 : 0;
        }
        return higher >= top_.k;
    }

    /// Write the lists.
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
        std::int64_t n;  // entries on the shelf
        Real reach;      // the score of the k-th best when the shelf was last cut
    };

    Entry<Real>* shelf(std::size_t u) const { return entries_.get() + u * room_; }

    /// Leave the best k on the shelf.
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

template <class S>
void top_factors(const TopFactors<typename S::Real>& p) {
    using Real = typename S::Real;
    constexpr std::int64_t kChunk = Counting<S>::kChunk;
    constexpr std::size_t kUsers = S::kUsers;

    const std::int64_t most = kChunk * packed_chunks<Real>(p.n_factors, p.last - p.first, kChunk);
    const bool leaving = p.falling.items != nullptr && !p.check;
    Shelves<S> shelves(p.top, p.falling, p.n_users);
    Excluding<S> excluding(p.excluded, p.n_users, p.first, most / kChunk);
    Buffer<Real> items(static_cast<std::size_t>(most) * (p.n_factors + 1));
    Buffer<Real> users((p.n_users + kUsers) * (p.n_factors + 1));
    Buffer<Real> scores(kUsers * static_cast<std::size_t>(kChunk));
    Buffer<std::size_t> active(p.n_users);
    std::size_t n_active = 0;
    for (std::size_t u = 0; u < p.n_users; ++u) {
        if (p.finished[u] == 0) active[n_active++] = u;
    }

    // Where users leave, most do after a few items: begin with few.
    std::int64_t step = leaving ? kChunk : most;
    bool users_changed = true;
    for (std::int64_t from = p.first, to; from < p.last && n_active > 0; from = to) {
        to = p.last - from < step ? p.last : from + step;
        step = next_step(step, kChunk, most);
        const std::int64_t n_chunks = (to - from + kChunk - 1) / kChunk;
        pack_items<S>(p.items, p.falling, p.n_factors, from, to, from + n_chunks * kChunk,
                      items.get());
        if (users_changed) {
            pack_users<S>(p.users, p.n_factors, active.get(), n_active, users.get());
            users_changed = false;
        }
        for (std::size_t first = 0; first < n_active; first += kUsers) {
            const std::size_t n = n_active - first < kUsers ? n_active - first : kUsers;
            const Real* panel = items.get();
            const std::size_t* const group = active.get() + first;
            excluding.find(group, n, from, to);
            for (std::int64_t c = from; c < to; c += kChunk) {
                const std::int64_t n_items = to - c < kChunk ? to - c : kChunk;
                panel = score_chunk<S>(panel, users.get() + first * p.n_factors, p.n_factors,
                                       scores.get(), kChunk);
                std::int64_t absent = 0;
                finish_chunk(excluding, (c - from) / kChunk, scores.get(), group, n, n_items,
                             p.check, p.nan_rule, false, p.flags, absent);
                for (std::size_t u = 0; u < n; ++u) {
                    shelves.put(group[u], scores.get() + u * static_cast<std::size_t>(kChunk), c);
                }
            }
        }
        if (!leaving || to == p.items.n_items) continue;
        std::size_t left = 0;
        for (std::size_t a = 0; a < n_active; ++a) {
            if (shelves.decided(active[a], to)) {
                p.finished[active[a]] = 1;
            } else {
                active[left++] = active[a];
            }
        }
        if (left < n_active) users_changed = true;
        n_active = left;
    }
    shelves.finish();
}

template <class S>
void top_scores(const TopScores<typename S::Real>& p) {
    using Real = typename S::Real;
    constexpr std::int64_t kChunk = Counting<S>::kChunk;

    Shelves<S> shelves(p.top, Falling{}, p.n_users);
    Excluding<S> excluding(p.excluded, p.n_users, 0, 1);
    Buffer<Real> scores(static_cast<std::size_t>(kChunk));
    for (std::size_t u = 0; u < p.n_users; ++u) {
        const Real* const in = p.scores + static_cast<std::ptrdiff_t>(u) * p.user_stride;
        std::int64_t absent = 0;
        for (std::int64_t from = 0; from < p.n_items; from += kChunk) {
            const std::int64_t to = p.n_items - from < kChunk ? p.n_items : from + kChunk;
            read_chunk<S>(in, p.columns, from, to, scores.get());
            excluding.find(&u, 1, from, to);
            finish_chunk(excluding, 0, scores.get(), &u, 1, to - from, true, p.nan_rule, true,
                         p.flags, absent);
            shelves.put(u, scores.get(), from);
        }
        p.no_candidates[u] += absent;
    }
    shelves.finish();
}

}  // namespace
}  // namespace recometer

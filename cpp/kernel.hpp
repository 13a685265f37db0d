// The kernel, written once over an instruction set S and compiled once for each.
//
//     tile.hpp      scores of users x items
//     top.hpp       the best candidates of a block of users
//     counting.hpp  a chunk of scores against the thresholds of a user
//     descent.hpp   the same for a vector of scores: a search tree
//     keys.hpp      the same for scores that are rounded to 16 bits
//     excluding.hpp items taken out of a chunk of scores
//     board.hpp     the thresholds of a block of users
//     kernel.hpp    the loops around them
//
// S offers, for scores of the type Real,
//     Vec, Mask, Int    vectors of kLanes Reals, of as many truth values, and of as many integers
// and with them, for the tile and the shelves,
//     load, store, broadcast, select(m, a, b)
//     fma(a, b, c)      a * b + c, for vectors and for single Reals, rounded alike
//     reaches(a, b)     a >= b per lane (false for NaN); equals(a, b)
//     bits(m)           a mask as the bits of an integer
// and for the counting,
//     table(p)          what lookup takes of the 2^(kLevels - 1) Reals at p
//     lookup<B>(t, i)   t[i] per lane, where only the first 2^B entries are looked up
//     set_bit<B>(m, x)  x | 1 << B in the lanes of m
//     one_hot(x)        1 << x
//     zero, load_bits, store_bits, exclusive(a, b), both(a, b)
//     parity, majority  the two outputs of a full adder, bit by bit
//     count_bit(x, b)   in how many lanes bit b is set
// and, where descent.hpp goes by signs,
//     subtract(a, b)    a - b
//     push_sign(i, x)   2 * i + (whether the sign of x is set)
//     lookup_in_two(t, u, i)  i < kLanes ? t[i] : u[i - kLanes] per lane
// 2^kTogether vectors are counted side by side, against at most 2^kLevels - 1 thresholds at once.
// A tile of scores is kUsers users x 2 vectors of items.
//
// Everything in these files has internal linkage and no static initialiser: a function or object
// shared between the instruction sets could be taken from the wrong one by the linker.
#pragma once

#include <cstring>

#include "board.hpp"
#include "counting.hpp"
#include "excluding.hpp"
#include "ranking.hpp"
#include "tile.hpp"

namespace recometer {
namespace {

/// @tparam D one of descent.hpp
/// @tparam K one of keys.hpp
template <class S, class D = ByMasks<S>, class K = NoKeys<S>>
std::int64_t rank_factors(const RankFactors<typename S::Real>& p) {
    using Real = typename S::Real;
    using Int = typename S::Int;
    using C = Counting<S, D>;
    constexpr std::int64_t kChunk = C::kChunk;
    constexpr std::size_t kUsers = S::kUsers;

    const std::size_t row = p.n_factors + 1;
    const std::int64_t range = p.last - p.first;
    std::int64_t chunks = packed_chunks<Real>(p.n_factors, range, kChunk);
    if (chunks > kMaxChunks) chunks = kMaxChunks;

    Board<S, D, K> board(p.judged, p.falling, p.finished, p.n_users, p.first, p.last, p.limit);
    // Planes are read out seldom where nobody leaves and those of all users fit into a cache.
    const bool everybody = p.limit >= p.items.n_items;
    const std::int64_t most = everybody && chunks < kKeptChunks ? kKeptChunks : chunks;
    const int n_planes = C::planes_for(most);
    const std::size_t user_planes = board.max_groups() * static_cast<std::size_t>(n_planes);
    const bool keep = everybody && p.n_users * user_planes * sizeof(Int) <= kKeptBytes;
    const std::size_t n_slots = keep ? p.n_users : kUsers;
    Buffer<Real> items(static_cast<std::size_t>(chunks * kChunk) * row);
    Buffer<Real> users((p.n_users + kUsers) * (p.n_factors + 1));
    Buffer<Real> scores(kUsers * static_cast<std::size_t>(kChunk));
    Buffer<Int> planes(n_slots * user_planes);
    Excluding<S> excluding(p.excluded, p.n_users, p.first, chunks);
    std::memset(static_cast<void*>(planes.get()), 0, n_slots * user_planes * sizeof(Int));
    // Users with something left to count; all of them where scores are to be looked at.
    Buffer<std::size_t> active(p.n_users);
    std::size_t n_active = 0;
    // Whether the items from a place on can change what is kept of the user.
    const auto undecided = [&](std::size_t u, std::int64_t from) {
        if (p.check) return true;
        return board.active(u) &&
               (from == p.items.n_items || !p.falling.all_below(board.lowest(u), u, from));
    };
    for (std::size_t u = 0; u < p.n_users; ++u) {
        if (p.finished[u] != 0) continue;
        if (undecided(u, p.first)) {
            active[n_active++] = u;
        } else {
            p.finished[u] = 1;
        }
    }

    // Where judged items are given up, most are after a few candidates: begin with few.
    std::int64_t step = p.limit < p.items.n_items ? kChunk : chunks * kChunk;
    bool users_changed = true;
    std::int64_t pending = 0;  // chunks counted since planes were read out
    for (std::int64_t from = p.first, to; from < p.last && n_active > 0; from = to) {
        to = p.last - from < step ? p.last : from + step;
        step = next_step(step, kChunk, chunks * kChunk);
        const std::int64_t n_chunks = (to - from + kChunk - 1) / kChunk;
        pending += n_chunks;
        const bool full = !keep || to == p.last || pending + chunks > most;
        if (full) pending = 0;
        pack_items<S>(p.items, p.falling, p.n_factors, from, to, from + n_chunks * kChunk,
                      items.get());
        if (users_changed) {
            pack_users<S>(p.users, p.n_factors, active.get(), n_active, users.get());
            users_changed = false;
        }
        for (std::size_t first = 0; first < n_active; first += kUsers) {
            const std::size_t n = n_active - first < kUsers ? n_active - first : kUsers;
            Int* const slots = planes.get() + (keep ? first * user_planes : 0);
            const Real* panel = items.get();
            const std::size_t* const group = active.get() + first;
            excluding.find(group, n, from, to);
            // What the next group needs comes while this one is scored, where that takes a while.
            const std::size_t next = n_chunks > 1 ? first + n + kUsers : 0;
            for (std::size_t a = first + n; a < n_active && a < next; ++a) {
                excluding.prefetch(active[a]);
                board.prefetch(active[a]);
            }
            for (std::int64_t c = from; c < to; c += kChunk) {
                const std::int64_t n_items = to - c < kChunk ? to - c : kChunk;
                panel = score_chunk<S>(panel, users.get() + first * p.n_factors, p.n_factors,
                                       scores.get(), kChunk);
                std::int64_t absent = 0;
                finish_chunk(excluding, (c - from) / kChunk, scores.get(), group, n, n_items,
                             p.check, p.nan_rule, false, p.flags, absent);
                for (std::size_t u = 0; u < n; ++u) {
                    board.count(group[u], scores.get() + u * static_cast<std::size_t>(kChunk), c,
                                slots + u * user_planes, n_planes);
                }
            }
            for (std::size_t u = 0; full && u < n; ++u) {
                board.flush(group[u], slots + u * user_planes, n_planes);
            }
        }
        if (!full || everybody) continue;
        // Users whose judged items have all been given up, or found, need no more scores.
        std::size_t left = 0;
        for (std::size_t a = 0; a < n_active; ++a) {
            const std::size_t u = active[a];
            board.drop(u);
            if (undecided(u, to)) {
                active[left++] = u;
            } else {
                p.finished[u] = 1;
            }
        }
        if (left < n_active) users_changed = true;
        n_active = left;
    }
    return board.finish();
}

template <class S>
std::int64_t rank_scores(const RankScores<typename S::Real>& p) {
    using Real = typename S::Real;
    using Int = typename S::Int;
    constexpr std::int64_t kChunk = Counting<S>::kChunk;

    Board<S> board(p.judged, Falling{}, nullptr, p.n_users, 0, p.n_items, p.limit);
    Excluding<S> excluding(p.excluded, p.n_users, 0, 1);
    Buffer<Real> scores(static_cast<std::size_t>(kChunk));
    const std::size_t n = board.max_groups() * kPlanes;
    Buffer<Int> planes(n);
    std::memset(static_cast<void*>(planes.get()), 0, n * sizeof(Int));
    for (std::size_t u = 0; u < p.n_users; ++u) {
        const Real* const in = p.scores + static_cast<std::ptrdiff_t>(u) * p.user_stride;
        // Where judged items are given up, most are after a few candidates: look early, then later.
        std::int64_t absent = 0, pending = 0, step = p.limit < p.n_items ? 1 : kMaxChunks;
        // Scores are looked at even where nothing is left to count: flags and candidates.
        for (std::int64_t from = 0; from < p.n_items; from += kChunk) {
            const std::int64_t to = p.n_items - from < kChunk ? p.n_items : from + kChunk;
            read_chunk<S>(in, p.columns, from, to, scores.get());
            excluding.find(&u, 1, from, to);
            finish_chunk(excluding, 0, scores.get(), &u, 1, to - from, true, p.nan_rule, true,
                         p.flags, absent);
            board.count(u, scores.get(), from, planes.get(), kPlanes);
            if (++pending == step) {
                board.flush(u, planes.get(), kPlanes);
                board.drop(u);
                pending = 0;
                step = 2 * step < kMaxChunks ? 2 * step : kMaxChunks;
            }
        }
        board.flush(u, planes.get(), kPlanes);
        p.no_candidates[u] += absent;
    }
    return board.finish();
}

}  // namespace
}  // namespace recometer

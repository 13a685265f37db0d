// Compute or read the scores of a block of users, chunk by chunk.
#pragma once

#include "counting.hpp"
#include "excluding.hpp"
#include "ranking.hpp"
#include "tile.hpp"

namespace recometer {
namespace {

template <class S>
constexpr std::int64_t kChunkOf = Excluding<S>::kChunk;

/// Return the number of chunks of items to pack at once. It never exceeds the number that can be
/// counted between two flushes.
template <class S>
std::int64_t chunks_at_once(const FactorScores<typename S::Real>& p) {
    const std::int64_t chunks =
        packed_chunks<typename S::Real>(p.n_factors, p.last - p.first, kChunkOf<S>);
    return chunks < kMaxChunks ? chunks : kMaxChunks;
}

/// Compute scores from factors. The packed items are scored for all users before more items are
/// packed.
///
/// @tparam Out receives the scores. It provides
///     leaves()              returns whether users can finish before the last item
///     stays(user, from)     returns whether items from index `from` on can change a user's results
///     prefetch(user)        prefetches the data that `put` needs
///     next(n_chunks, last)  announces the next n_chunks chunks; `last` is true if none follow
///     begin(first)          announces a group of users, starting with active user number `first`
///     put(u, user, scores, from)  receives a chunk of scores for the group's u-th user
///     end(users, n)         marks the end of the group's chunks
template <class S, class Out>
void score_by_factors(const FactorScores<typename S::Real>& p, Out& out) {
    using Real = typename S::Real;
    constexpr std::int64_t kChunk = kChunkOf<S>;
    constexpr std::size_t kUsers = S::kUsers;

    const std::int64_t chunks = chunks_at_once<S>(p), most = chunks * kChunk;
    Buffer<Real> items(static_cast<std::size_t>(most) * (p.n_factors + 1));
    Buffer<Real> users((p.n_users + kUsers) * (p.n_factors + 1));
    Buffer<Real> scores(kUsers * static_cast<std::size_t>(kChunk));
    Excluding<S> excluding(p.excluded, p.n_users, p.first, chunks);
    // The users whose results can still change, or all users if scores must be checked.
    Buffer<std::size_t> active(p.n_users);
    std::size_t n_active = 0;
    const auto keep = [&](std::size_t u, std::int64_t from) {
        if (out.stays(u, from) || p.check) {
            active[n_active++] = u;
        } else {
            p.finished[u] = 1;
        }
    };
    for (std::size_t u = 0; u < p.n_users; ++u) {
        if (p.finished[u] == 0) keep(u, p.first);
    }

    // If users can finish early, most of them finish after a few candidates, so start with a small
    // step.
    std::int64_t step = out.leaves() ? kChunk : most;
    bool users_changed = true;
    for (std::int64_t from = p.first, to; from < p.last && n_active > 0; from = to) {
        to = p.last - from < step ? p.last : from + step;
        step = next_step(step, kChunk, most);
        const std::int64_t n_chunks = (to - from + kChunk - 1) / kChunk;
        out.next(n_chunks, to == p.last);
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
            // Prefetch the next group's data while this group is scored, if scoring takes long
            // enough.
            const std::size_t next = n_chunks > 1 ? first + n + kUsers : 0;
            for (std::size_t a = first + n; a < n_active && a < next; ++a) {
                excluding.prefetch(active[a]);
                out.prefetch(active[a]);
            }
            out.begin(first);
            for (std::int64_t c = from; c < to; c += kChunk) {
                const std::int64_t n_items = to - c < kChunk ? to - c : kChunk;
                panel = score_chunk<S>(panel, users.get() + first * p.n_factors, p.n_factors,
                                       scores.get(), kChunk);
                std::int64_t absent = 0;
                finish_chunk(excluding, (c - from) / kChunk, scores.get(), group, n, n_items,
                             p.check, p.nan_rule, false, p.flags, absent);
                for (std::size_t u = 0; u < n; ++u) {
                    out.put(u, group[u], scores.get() + u * static_cast<std::size_t>(kChunk), c);
                }
            }
            out.end(group, n);
        }
        if (!out.leaves()) continue;
        const std::size_t before = n_active;
        n_active = 0;
        for (std::size_t a = 0; a < before; ++a) keep(active[a], to);
        if (n_active < before) users_changed = true;
    }
}

/// Read scores that are passed in rather than computed from factors, one user at a time.
///
/// @tparam Out receives the scores. It provides `begin(user)`, `put(user, scores, from)` and
///     `end(user)`
template <class S, class Out>
void read_scores(const GivenScores<typename S::Real>& p, Out& out) {
    using Real = typename S::Real;
    constexpr std::int64_t kChunk = kChunkOf<S>;

    Excluding<S> excluding(p.excluded, p.n_users, 0, 1);
    Buffer<Real> scores(static_cast<std::size_t>(kChunk));
    for (std::size_t u = 0; u < p.n_users; ++u) {
        const Real* const in = p.scores + static_cast<std::ptrdiff_t>(u) * p.user_stride;
        std::int64_t absent = 0;
        out.begin(u);
        // All scores are read, even after counting has stopped for every judged item, because the
        // flags and the number of candidates depend on every score.
        for (std::int64_t from = 0; from < p.n_items; from += kChunk) {
            const std::int64_t to = p.n_items - from < kChunk ? p.n_items : from + kChunk;
            read_chunk<S>(in, p.columns, from, to, scores.get());
            excluding.find(&u, 1, from, to);
            finish_chunk(excluding, 0, scores.get(), &u, 1, to - from, true, p.nan_rule, true,
                         p.flags, absent);
            out.put(u, scores.get(), from);
        }
        out.end(u);
        p.no_candidates[u] += absent;
    }
}

}  // namespace
}  // namespace recometer

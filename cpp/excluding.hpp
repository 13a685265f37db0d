// Remove excluded items from the scores of a group of users.
#pragma once

#include "basics.hpp"
#include "counting.hpp"
#include "ranking.hpp"
#include "tile.hpp"

namespace recometer {
namespace {

/// For a group of users, the positions of the excluded items in the next chunks of scores.
///
/// There are few excluded items, and they can be anywhere. Finding them for many chunks at once
/// causes fewer branch mispredictions than looking for them in each chunk.
template <class S>
class Excluding {
 public:
    using Real = typename S::Real;
    static constexpr std::int64_t kChunk = kChunkVectors * S::kLanes;

    /// @param first the place where scoring begins
    /// @param chunks the maximum number of chunks per call to `find`
    Excluding(const Ragged& excluded, std::size_t n_users, std::int64_t first, std::int64_t chunks)
        : excluded_(excluded),
          next_(n_users),
          n_(static_cast<std::size_t>(chunks)),
          at_(static_cast<std::size_t>(chunks * kGroup)) {
        for (std::size_t u = 0; u < n_users; ++u) {
            next_[u] =
                first_at_least(excluded.items, excluded.indptr[u], excluded.indptr[u + 1], first);
        }
    }

    /// For a group of users, find the excluded items at places [from, to), in chunks that start at
    /// `from`. In successive calls, a user's ranges must be in ascending order and must not
    /// overlap.
    /// @param which [n]: the users, at most kUsers
    void find(const std::size_t* which, std::size_t n, std::int64_t from, std::int64_t to) {
        for (std::int64_t chunk = 0; chunk * kChunk < to - from; ++chunk) n_[chunk] = 0;
        for (std::size_t u = 0; u < n; ++u) {
            const std::int64_t end = excluded_.indptr[which[u] + 1];
            std::int64_t& next = next_[which[u]];
            for (; next < end && excluded_.items[next] < to; ++next) {
                const std::int64_t place = excluded_.items[next] - from;
                const std::int64_t chunk = place / kChunk;
                const std::int64_t at = static_cast<std::int64_t>(u) * kChunk + place % kChunk;
                at_[chunk * kGroup + n_[chunk]++] = static_cast<std::int32_t>(at);
            }
        }
    }

    /// Prefetch the data that `find` needs for the user.
    void prefetch(std::size_t u) const { __builtin_prefetch(excluded_.items + next_[u]); }

    /// Overwrite the scores of a chunk's excluded items with `value`.
    /// @param scores [n users][kChunk]
    void fill(std::int64_t chunk, Real* scores, Real value) const {
        const std::int32_t* const at = at_.get() + chunk * kGroup;
        for (std::int64_t i = 0; i < n_[chunk]; ++i) scores[at[i]] = value;
    }

 private:
    // The number of scores in a chunk, for all users in a group.
    static constexpr std::int64_t kGroup = kChunk * S::kUsers;

    const Ragged excluded_;
    Buffer<std::int64_t> next_;  // per user: the position in `excluded_` of the next excluded item
    Buffer<std::int64_t> n_;     // per chunk: the number of excluded items
    Buffer<std::int32_t> at_;    // per chunk: the positions of the excluded items among the scores
};

/// Remove excluded items from a chunk of scores, and check the other scores if `check` is set.
/// @param which [n_users]: the users, as indices into `flags`
template <class S>
void finish_chunk(const Excluding<S>& excluding, std::int64_t chunk, typename S::Real* scores,
                  const std::size_t* which, std::size_t n_users, std::int64_t n_items, bool check,
                  NanRule rule, bool minus_infinity_is_absent, std::uint32_t* flags,
                  std::int64_t& absent) {
    using Real = typename S::Real;
    if (check) {
        excluding.fill(chunk, scores, Real{0});
        for (std::size_t u = 0; u < n_users; ++u) {
            check_scores(scores + u * static_cast<std::size_t>(Excluding<S>::kChunk), n_items, rule,
                         minus_infinity_is_absent, flags[which[u]], absent);
        }
    }
    excluding.fill(chunk, scores, not_a_number<Real>());
}

}  // namespace
}  // namespace recometer

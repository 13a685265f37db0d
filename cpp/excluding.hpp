// Excluded items: how they are taken out of the scores of a group of users.
#pragma once

#include "basics.hpp"
#include "counting.hpp"
#include "ranking.hpp"
#include "tile.hpp"

namespace recometer {
namespace {

/// Where the excluded items of a group of users lie among the chunks of scores that come next.
///
/// They are few, and anywhere: found for many chunks at once, they cost few mispredicted branches.
template <class S>
class Excluding {
 public:
    using Real = typename S::Real;
    static constexpr std::int64_t kChunk = kChunkVectors * S::kLanes;

    /// @param first the place where scoring begins
    /// @param chunks the largest number of chunks that are looked at together
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

    /// Find those of a group of users at the places [from, to), in chunks that begin at `from`.
    /// A user's places must be asked for in their order, and none twice.
    /// @param which [n]: the users, kUsers at most
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

    /// Fetch what `find` will read of a user.
    void prefetch(std::size_t u) const { __builtin_prefetch(excluded_.items + next_[u]); }

    /// Write a value over the scores of those in a chunk.
    /// @param scores [n users][kChunk]
    void fill(std::int64_t chunk, Real* scores, Real value) const {
        const std::int32_t* const at = at_.get() + chunk * kGroup;
        for (std::int64_t i = 0; i < n_[chunk]; ++i) scores[at[i]] = value;
    }

 private:
    static constexpr std::int64_t kGroup = kChunk * S::kUsers;  // the scores of a chunk

    const Ragged excluded_;
    Buffer<std::int64_t> next_;  // per user: the position of the first that may follow
    Buffer<std::int64_t> n_;     // per chunk
    Buffer<std::int32_t> at_;    // per chunk: their positions among its scores
};

/// Take excluded items out of a chunk of scores, and check the rest where that is asked for.
/// @param which [n_users]: whose flags are written
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

// Sort judged items, top candidates, excluded items and vector lengths.
//
// This header requires neither Python nor a particular instruction set.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "ranking.hpp"

namespace recometer {

template <class Real>
struct Entry {
    Real score;  ///< not NaN
    std::int32_t item;
};

/// Move the best k of n entries to the front, with the worst of these k at position k - 1.
/// @param key the seed of the random order
/// @returns how many of the remaining entries have the same score as the entry at position k - 1
template <class Real>
std::int64_t keep_best(Entry<Real>* entries, std::int64_t n, std::int64_t k, TieOrder order,
                       std::uint64_t key);

/// Sort entries from best to worst.
template <class Real>
void sort_best(Entry<Real>* entries, std::int64_t n, TieOrder order, std::uint64_t key);

/// Sort each user's judged items by (score, item). Items with NaN scores are left out.
/// @param order, order_end as in Judged; order_end is [n_users]
template <class Real>
void sort_judged(const Ragged& judged, std::size_t n_users, const Real* scores, std::int64_t* order,
                 std::int64_t* order_end);

/// The judged items of a block of users, sorted by score.
template <class Real>
class SortedJudged {
 public:
    /// Sort `judged`. Its `order` and `order_end` are ignored.
    SortedJudged(const Judged<Real>& judged, std::size_t n_users)
        : order_(static_cast<std::size_t>(judged.table.indptr[n_users] - judged.table.indptr[0])),
          order_end_(n_users),
          judged_(judged) {
        sort_judged(judged.table, n_users, judged.scores, order_.data(), order_end_.data());
        judged_.order = order_.data();
        judged_.order_end = order_end_.data();
    }
    SortedJudged(const SortedJudged&) = delete;
    SortedJudged& operator=(const SortedJudged&) = delete;

    const Judged<Real>& judged() const { return judged_; }

 private:
    std::vector<std::int64_t> order_, order_end_;
    Judged<Real> judged_;
};

/// The excluded items of a block of users, as sorted places in [first, last); see Falling.
class ExcludedPlaces {
 public:
    /// @param finished [n_users]: users whose entry is 1 are skipped
    ExcludedPlaces(const Ragged& excluded, std::size_t n_users, const Falling& falling,
                   std::int64_t first, std::int64_t last, const std::uint8_t* finished);

    Ragged table() const { return {indptr_.data(), places_.data()}; }

 private:
    std::vector<std::int64_t> indptr_;
    std::vector<std::int32_t> places_;
};

/// Sort each user's judged items from best to worst, by (above, before). Unranked items, whose
/// `above` is -1, come last.
/// @param before null if there are no ties
/// @param order output, at the offsets of `indptr`: the positions of the sorted items in the table
void best_first(const std::int64_t* indptr, std::size_t n_users, const std::int64_t* above,
                const std::int64_t* before, std::int64_t* order);

/// Sort numbers in descending order. Numbers that differ by less than 1 / 65,535 of the largest
/// finite number may end up in either order. Infinite numbers are sorted as if they were equal to
/// the largest finite number.
/// @param lengths [n]: at least 0, not NaN
/// @param order [n]: output
/// @param bounds [n]: output; for each place, the largest number at that place or later
void longest_first(const double* lengths, std::size_t n, std::int32_t* order, double* bounds);

}  // namespace recometer

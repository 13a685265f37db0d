// Sorting: the judged items of each user, and the best candidates. No instruction set matters here.
//
// This header knows neither Python nor an instruction set.
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

/// Bring the best k of n entries to the front, the worst of them last.
/// @param key what the random order is drawn from
/// @returns how many of the others have the score of that one
template <class Real>
std::int64_t keep_best(Entry<Real>* entries, std::int64_t n, std::int64_t k, TieOrder order,
                       std::uint64_t key);

/// Sort entries best first.
template <class Real>
void sort_best(Entry<Real>* entries, std::int64_t n, TieOrder order, std::uint64_t key);

/// Sort each user's judged items by (score, item), NaN left out.
/// @param order, order_end see Judged; order_end is [n_users]
template <class Real>
void sort_judged(const Ragged& judged, std::size_t n_users, const Real* scores, std::int64_t* order,
                 std::int64_t* order_end);

/// The judged items of a block of users together with their order.
template <class Real>
class SortedJudged {
 public:
    /// Sort `judged`, whose `order` and `order_end` are not read.
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

/// The excluded items of a block of users as places [first, last), ascending; see Falling.
class ExcludedPlaces {
 public:
    /// @param finished [n_users]: users with a 1 are left out
    ExcludedPlaces(const Ragged& excluded, std::size_t n_users, const Falling& falling,
                   std::int64_t first, std::int64_t last, const std::uint8_t* finished);

    Ragged table() const { return {indptr_.data(), places_.data()}; }

 private:
    std::vector<std::int64_t> indptr_;
    std::vector<std::int32_t> places_;
};

/// Sort each user's judged items best first: by (above, before), not ranked (above -1) last.
/// @param before null where nothing is tied
/// @param order positions in the table, written at the same offsets
void best_first(const std::int64_t* indptr, std::size_t n_users, const std::int64_t* above,
                const std::int64_t* before, std::int64_t* order);

/// Order numbers from the largest to the smallest, but for differences of less than 1 / 65,535 of
/// the largest finite one; infinite ones count as that one.
/// @param lengths [n]: at least 0, not NaN
/// @param order, bounds [n]: written, and the largest of the number at each place and those after
/// it
void longest_first(const double* lengths, std::size_t n, std::int32_t* order, double* bounds);

}  // namespace recometer

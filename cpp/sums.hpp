// Sums over the first places of users, at several cut-offs in one pass.
//
// This header knows neither Python nor an instruction set.
#pragma once

#include <cstddef>
#include <cstdint>

namespace recometer {

/// Rows of a user that are added one by one: a part of many, and the most that are not parted.
constexpr std::size_t kRowsOfPart = 1024, kRowsWithoutParts = 2048;

/// The rows of each user, which lie at ascending places.
struct PlacedRows {
    std::size_t n_users;
    const std::int64_t* indptr;  ///< [n_users + 1]
    const std::int64_t* place;   ///< [n_rows], from 0 on
};

/// Add up what rows add that lie at places below cut-offs, in the order given.
///
/// If there are more than kRowsWithoutParts rows, parts of kRowsOfPart are added first, then these
/// sums, so that errors of rounding grow with the logarithm of their number.
/// @param terms [n_rows]
/// @param sums [n_cutoffs, n_users]: written
/// @throws std::invalid_argument where the places of a user do not ascend
void add_within(const PlacedRows& rows, const double* terms, const std::int64_t* cutoffs,
                std::size_t n_cutoffs, double* sums);

/// The same where every row adds 1.
void add_hits(const PlacedRows& rows, const std::int64_t* cutoffs, std::size_t n_cutoffs,
              double* sums);

/// The same where a row adds the precision at its place j from 1 on: (others before + 1) / j, where
/// the others are the user's rows before it.
void add_precisions(const PlacedRows& rows, const std::int64_t* cutoffs, std::size_t n_cutoffs,
                    double* sums);

/// A gain of each row: `stride` numbers lie from one to the next, 0 where all are the same.
struct Gains {
    const double* first;
    std::ptrdiff_t stride;
};

/// The same for gains, each divided by the logarithm of its place from 1 on, plus 1.
/// @param logarithms [n_logarithms]: those of 0, 1, 2, ...
/// @throws std::invalid_argument where there are too few logarithms
void add_discounted(const PlacedRows& rows, const Gains& gains, const double* logarithms,
                    std::size_t n_logarithms, const std::int64_t* cutoffs, std::size_t n_cutoffs,
                    double* sums);

/// Count the rows of each user that lie at places below a number of the user's own.
/// @param limits [n_users]
/// @param counts [n_users]: written
void count_within(const PlacedRows& rows, const std::int64_t* limits, std::int64_t* counts);

}  // namespace recometer

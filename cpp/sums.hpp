// Sum over each user's rows within a cut-off, for several cut-offs in one pass.
//
// This header requires neither Python nor a particular instruction set.
#pragma once

#include <cstddef>
#include <cstdint>

namespace recometer {

/// The number of rows per part of a long sum, and the largest number of rows whose sum is not split
/// into parts.
constexpr std::size_t kRowsOfPart = 1024, kRowsWithoutParts = 2048;

/// Each user's rows, in ascending order of place.
struct PlacedRows {
    std::size_t n_users;
    const std::int64_t* indptr;  ///< [n_users + 1]: the offsets of the users' rows
    const std::int64_t* place;   ///< [n_rows]: the place of each row, counted from 0
};

/// For each user and each cut-off, sum the terms of the user's rows whose place is below the
/// cut-off. The terms are added in input order.
///
/// A sum of more than kRowsWithoutParts terms is computed in parts of kRowsOfPart terms, whose sums
/// are then added in the same way. The rounding error therefore grows only with the logarithm of
/// the number of rows.
/// @param terms [n_rows]
/// @param sums [n_cutoffs, n_users]: output
/// @throws std::invalid_argument if the places of a user's rows are not in ascending order
void add_within(const PlacedRows& rows, const double* terms, const std::int64_t* cutoffs,
                std::size_t n_cutoffs, double* sums);

/// Like add_within, but the term of every row is 1.
void add_hits(const PlacedRows& rows, const std::int64_t* cutoffs, std::size_t n_cutoffs,
              double* sums);

/// Like add_within, but the term of a row is the precision at its place: (n + 1) / j, where j is
/// the place, counted from 1, and n is the number of the user's earlier rows.
void add_precisions(const PlacedRows& rows, const std::int64_t* cutoffs, std::size_t n_cutoffs,
                    double* sums);

/// The gains of the rows: row i has the gain first[i * stride]. A stride of 0 gives all rows the
/// same gain.
struct Gains {
    const double* first;
    std::ptrdiff_t stride;
};

/// Like add_within, but the term of a row is gain / log(place + 1), where places are counted from
/// 1.
/// @param logarithms [n_logarithms]: the logarithms of 0, 1, 2, ...
/// @throws std::invalid_argument if there are too few logarithms
void add_discounted(const PlacedRows& rows, const Gains& gains, const double* logarithms,
                    std::size_t n_logarithms, const std::int64_t* cutoffs, std::size_t n_cutoffs,
                    double* sums);

/// For each user, count the rows whose place is below the user's own limit.
/// @param limits [n_users]
/// @param counts [n_users]: output
void count_within(const PlacedRows& rows, const std::int64_t* limits, std::int64_t* counts);

}  // namespace recometer

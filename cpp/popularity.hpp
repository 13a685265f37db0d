// Item popularity: how many rows each item has, and how many judged items of each popularity band
// rank within a cut-off.
//
// This header requires neither Python nor a particular instruction set.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tables.hpp"

namespace recometer {

/// The popularity of items, counted over the rows of a table.
///
/// Band 0 contains the most popular items. The items of each band together have about the same
/// number of rows. The last band also contains items without rows.
struct Popularity {
    std::size_t n_items, n_bands;
    std::int64_t* counts;  ///< [n_items]: the number of rows of each item
    std::int64_t* sums;    ///< [n_users]: the sum of the item counts over each user's rows
    std::int8_t* band;     ///< [n_items]: the band of each item
    std::int64_t* ranges;  ///< [n_bands, 2]: the smallest and the largest count of each band; both
                           ///< are 0 for an empty band. The smallest count of the last band is
                           ///< always given as 0
};

/// Count the rows of each item, and assign bands.
/// @param users the positions of the users in `rows`
/// @throws std::invalid_argument if an item is not below n_items
void count_items(const Ragged& rows, std::size_t n_rows, const TableUsers& users,
                 const Popularity& popularity);

/// The judged items of users, and the popularity band of each item.
struct BandedRows {
    std::size_t n_users, n_items, n_bands;
    const std::int64_t* indptr;  ///< [n_users + 1]: the offsets of the users' rows
    const std::int64_t* item;    ///< [n_rows]: the item of each row
    const bool* counted;         ///< [n_rows]: whether the row counts; other rows are skipped
    const std::int64_t* above;   ///< [n_rows]: the number of items ranked above the item; negative
                                 ///< if it is not ranked
    const std::int64_t* tied;    ///< [n_rows]: the number of other items with the same score
    std::size_t n_banded;
    const std::int64_t* banded;  ///< [n_banded]: the items with a band; all other items are in the
                                 ///< last band
    const std::int8_t* band;     ///< [n_banded]: the bands of these items
};

/// For each user, count the items per band, and compute the expected number of these items within a
/// cut-off. A tied item counts as the share of the orders of tied items that place it within the
/// cut-off.
/// @param counts [n_users, n_bands]: output, the numbers of items
/// @param within [n_users, n_bands]: output, the expected numbers within the cut-off
/// @throws std::invalid_argument if an item or a band does not exist
void count_in_bands(const BandedRows& rows, std::int64_t cutoff, std::int32_t* counts,
                    float* within);

}  // namespace recometer

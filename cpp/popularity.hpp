// How popular items are: how many users have them, and what was found of the popular ones.
//
// This header knows neither Python nor an instruction set.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tables.hpp"

namespace recometer {

/// What is written of items, from the rows of a table that have them.
///
/// Band 0 holds those that most users have, with about as many rows as any other band. The last
/// band holds all items that nobody has.
struct Popularity {
    std::size_t n_items, n_bands;
    std::int64_t* counts;  ///< [n_items]: the rows of each item
    std::int64_t* sums;    ///< [n_users]: these numbers, added up over the rows of each user
    std::int8_t* band;     ///< [n_items]
    std::int64_t* ranges;  ///< [n_bands, 2]: the smallest and the largest number of each band, or 0
};

/// Count the rows of each item, and say what follows from that.
/// @param users who they are in `rows`
/// @throws std::invalid_argument for an item that is not below n_items
void count_items(const Ragged& rows, std::size_t n_rows, const TableUsers& users,
                 const Popularity& found);

/// The judged items of users, and the band of each item.
struct BandedRows {
    std::size_t n_users, n_items, n_bands;
    const std::int64_t* indptr;  ///< [n_users + 1]
    const std::int64_t* item;    ///< [n_rows]: -1 for an item without a number
    const bool* counted;         ///< [n_rows]
    const std::int64_t* above;   ///< [n_rows]: items above; below 0 for one that was not ranked
    const std::int64_t* tied;    ///< [n_rows]: other items with the same score
    std::size_t n_banded;
    const std::int64_t* banded;  ///< [n_banded]: the items with a band; others are in the last one
    const std::int8_t* band;     ///< [n_banded]
};

/// Count the items of each user by their bands: all, and the share of each that is expected to be
/// within a cut-off.
/// @param counts [n_users, n_bands]: written
/// @param within [n_users, n_bands]: written
/// @throws std::invalid_argument for an item or a band that does not exist
void count_in_bands(const BandedRows& rows, std::int64_t cutoff, std::int32_t* counts,
                    float* within);

}  // namespace recometer

// Item popularity: how many rows each item has, and the sum of these numbers over each user's rows.
//
// This header requires neither Python nor a particular instruction set.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tables.hpp"

namespace recometer {

/// The popularity of items, counted over the rows of a table.
struct Popularity {
    std::size_t n_items;
    std::int64_t* counts;  ///< [n_items]: the number of rows of each item
    std::int64_t* sums;    ///< [n_users]: the sum of the item counts over each user's rows
};

/// Count the rows of each item, and add up the counts over each user's rows.
/// @param users the positions of the users in `rows`
/// @throws std::invalid_argument if an item is not below n_items
void count_items(const Ragged& rows, std::size_t n_rows, const TableUsers& users,
                 const Popularity& popularity);

}  // namespace recometer

// Find the rows of one ragged table of users and items in another table, and check whether a table
// is sorted.
//
// This header requires neither Python nor a particular instruction set.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ranking.hpp"

namespace recometer {

/// Users, and their positions in a table.
struct TableUsers {
    std::size_t n;
    const std::int64_t* places;  ///< [n]: the position of each user, or -1 if the user is not in
                                 ///< the table; null if user i is at position i
};

/// The rows [begin, end) of a table.
struct Range {
    std::int64_t begin, end;
};

/// Return the rows of a user, or an empty range if the user is not in the table.
inline Range rows_of(const Ragged& table, const TableUsers& users, std::size_t user) {
    const std::int64_t at = users.places ? users.places[user] : static_cast<std::int64_t>(user);
    return at < 0 ? Range{0, 0} : Range{table.indptr[at], table.indptr[at + 1]};
}

/// For each row of a table, find the row of another table with the same user and item.
/// @param rows the rows to find; items may be in any order, and negative items are never found
/// @param users for each user of `rows`, the user's position in `other`
/// @param found output: for each row of `rows`, the row of `other`, or -1 if there is none
void find_rows(const Ragged& rows, const TableUsers& users, const Ragged& other,
               std::int64_t* found);

/// Whether each user's items are strictly ascending and between 0 and n_items - 1.
/// @param indptr [>= last + 1]: the offsets of the table, in ascending order
/// @param first, last the range of users to check: [first, last)
template <class Item>
bool rows_ascend(const std::int64_t* indptr, const Item* items, std::int64_t n_items,
                 std::size_t first, std::size_t last);

}  // namespace recometer

// Ragged tables of users and items: the rows of one found in another.
//
// This header knows neither Python nor an instruction set.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ranking.hpp"

namespace recometer {

/// Some users, and who they are in a table.
struct TableUsers {
    std::size_t n;
    const std::int64_t* places;  ///< [n]: -1 for nobody; null: the same users
};

/// Some rows of a table, from one to the one before another.
struct Range {
    std::int64_t begin, end;
};

/// The rows of one of some users.
inline Range rows_of(const Ragged& table, const TableUsers& users, std::size_t user) {
    const std::int64_t at = users.places ? users.places[user] : static_cast<std::int64_t>(user);
    return at < 0 ? Range{0, 0} : Range{table.indptr[at], table.indptr[at + 1]};
}

/// Find the rows of a table in another one: those of the same user and item.
/// @param rows items in any order; negative ones are not found
/// @param users the users of `rows` in `other`
/// @param found per row: the row of `other`, or -1
void find_rows(const Ragged& rows, const TableUsers& users, const Ragged& other,
               std::int64_t* found);

/// Tell whether the items of some users ascend strictly, and lie from 0 to n_items - 1.
/// @param indptr [>= last + 1]: of the table, rising
/// @param first, last the users, from the first to the one before the last
template <class Item>
bool rows_ascend(const std::int64_t* indptr, const Item* items, std::int64_t n_items,
                 std::size_t first, std::size_t last);

}  // namespace recometer

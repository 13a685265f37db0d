// Decide which interactions a split holds out, based on an ordering of each user's rows.
//
// Rows may be in any order and are never moved. Each call processes a range of users: it gathers
// the keys of their rows, and sorts each user's rows only as far as necessary. Calls for different
// ranges can run at the same time, and each call needs memory only for its own range.
//
// This header requires neither Python nor a particular instruction set.
#pragma once

#include <cstddef>
#include <cstdint>

namespace recometer {

/// Interactions, one per row. The draw of a row is the pseudorandom number mix(user_draws[user] ^
/// item_draws[item]).
struct InteractionRows {
    std::size_t n;
    const std::uint32_t* users;
    const std::uint32_t* items;
    const std::uint64_t* user_draws;
    const std::uint64_t* item_draws;  ///< [n_items]: a different draw for each item
    std::size_t n_items;              ///< every item is below this bound
    const std::int64_t* times;        ///< [n]: the time of each row; may be null
    bool float_times;                 ///< whether `times` holds the bits of doubles
    const double* values;             ///< [n]: the value of each row; may be null
};

/// The users [first, first + n), and each user's number of rows.
struct UserRange {
    std::uint32_t first;
    std::size_t n;
    const std::int64_t* counts;
};

/// How to order a user's rows.
enum class RowOrder {
    kLatest,    ///< latest time first, then lowest draw, then largest value, then last row
    kDrawn,     ///< lowest draw first, then latest time, then largest value, then last row
    kPairs,     ///< grouped by item; within an item, latest time first, then largest value, then
                ///< last row
    kOldPairs,  ///< grouped by item; within an item, in the reverse order of kPairs
};

/// Set `held` to 1 for the first sizes[u] rows of each user u in the range, and to 0 for the user's
/// other rows.
/// @returns false if the order of some rows depends on their values, but `values` is null
/// @throws std::invalid_argument if a user's number of rows differs from `counts`, or if an item is
/// not below n_items
bool hold_first(const InteractionRows& rows, const UserRange& users, const std::int64_t* sizes,
                RowOrder order, std::uint8_t* held);

/// Write the place of each row, counted from 0, among the rows of the same user or, for kPairs and
/// kOldPairs, of the same user and item. The return value and the exceptions are the same as for
/// hold_first.
bool number_rows(const InteractionRows& rows, const UserRange& users, RowOrder order,
                 std::uint32_t* places);

/// Set `held` to 1 for rows whose draw is below `limit`, and to 0 for all other rows. Times and
/// values are not used.
void hold_below(const InteractionRows& rows, std::uint64_t limit, std::uint8_t* held);

/// Add the number of rows with each code to `counts`.
/// @throws std::invalid_argument if a code is not below n_codes
void count_codes(const std::uint32_t* codes, std::size_t n, std::size_t n_codes,
                 std::int64_t* counts);

/// In one pass, remove the rows whose user or item has too few rows left.
/// @param user_counts, item_counts the number of remaining rows of each user and item; updated
/// @param kept [n]: 1 for rows that remain, 0 for removed rows; updated
/// @param backwards whether the pass goes from the last row to the first; alternating between the
/// two directions reduces the number of passes
/// @returns the number of removed rows; 0 means that every remaining user and item has enough rows
std::int64_t trim_core(const std::uint32_t* users, const std::uint32_t* items, std::size_t n,
                       std::int64_t* user_counts, std::int64_t* item_counts,
                       std::int64_t least_user, std::int64_t least_item, bool backwards,
                       std::uint8_t* kept);

}  // namespace recometer

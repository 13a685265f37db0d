// Which rows of interactions a split holds out: the rows of each user, in an order.
//
// Rows come in any order, and stay there. A call takes the users of a range, brings together what
// it needs to know of their rows, and puts each user's in order, or as much as the question needs.
// So calls for different ranges may run at the same time, and memory is that of one range.
//
// This header knows neither Python nor an instruction set.
#pragma once

#include <cstddef>
#include <cstdint>

namespace recometer {

/// Rows of interactions. The draw of a row is mix(user_draws[user] ^ item_draws[item]).
struct InteractionRows {
    std::size_t n;
    const std::uint32_t* users;
    const std::uint32_t* items;
    const std::uint64_t* user_draws;
    const std::uint64_t* item_draws;  ///< different for different items
    std::size_t n_items;              ///< more than any item
    const std::int64_t* times;        ///< or null
    bool float_times;                 ///< whether the bits of `times` are doubles
    const double* values;             ///< or null
};

/// Users [first, first + n) with the number of their rows.
struct UserRange {
    std::uint32_t first;
    std::size_t n;
    const std::int64_t* counts;
};

/// The order of rows.
enum class RowOrder {
    kLatest,    ///< later times, then lower draws, then larger values, then later rows first
    kDrawn,     ///< lower draws, then later times, then larger values, then later rows first
    kPairs,     ///< rows of the same item together: later times, ... first
    kOldPairs,  ///< rows of the same item together: the reverse
};

/// Set `held` to 1 for the first sizes[u] rows of each user u of the range, to 0 for the others.
/// @returns false if the order of rows mattered that differ in nothing but perhaps their value,
/// and values are not given
/// @throws std::invalid_argument where a user has more rows than `counts` says, or an item is
/// not below n_items
bool hold_first(const InteractionRows& rows, const UserRange& users, const std::int64_t* sizes,
                RowOrder order, std::uint8_t* held);

/// Write the place of each row among those of its user, or (kPairs, kOldPairs) of its user and
/// item, from 0 on. Returns and throws as hold_first does.
bool number_rows(const InteractionRows& rows, const UserRange& users, RowOrder order,
                 std::uint32_t* places);

/// Set `held` to 1 for the rows whose draw is below a limit; reads users, items and draws.
void hold_below(const InteractionRows& rows, std::uint64_t limit, std::uint8_t* held);

/// Add the number of rows of each code to `counts`.
/// @throws std::invalid_argument for a code that is not below n_codes
void count_codes(const std::uint32_t* codes, std::size_t n, std::size_t n_codes,
                 std::int64_t* counts);

/// Remove rows whose user or item has too few rows left, in one pass over the rows.
/// @param user_counts, item_counts  rows that are left, brought up to date
/// @param kept [n]  1 for rows that are left, 0 for others
/// @param backwards  the direction of the pass; taking turns ends soonest
/// @returns how many rows were removed; 0: what is left is the core
std::int64_t trim_core(const std::uint32_t* users, const std::uint32_t* items, std::size_t n,
                       std::int64_t* user_counts, std::int64_t* item_counts,
                       std::int64_t least_user, std::int64_t least_item, bool backwards,
                       std::uint8_t* kept);

}  // namespace recometer

// Where judged items stand in lists that were ranked elsewhere.
//
// One pass over a user's list drops padding, training items and repeated items; a mark per item
// then tells each judged item its place. Where there are scores, that of each judged item is
// compared with all others of its list; nothing is sorted.
//
// This header knows neither Python nor an instruction set.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ranking.hpp"

namespace recometer {

/// Lists of a block of users.
struct Lists {
    const std::int32_t* items;  ///< all lists; negative entries are padding
    const double* scores;       ///< per entry, or null: the order given is the order. -inf marks
                                ///< an item that is not recommended
    const std::int64_t* begin;  ///< [n_users]: where the user's list begins
    const std::int64_t* end;    ///< [n_users]: and ends
};

/// Find the judged items of a block of users in their lists.
struct RankLists {
    Lists lists;
    std::size_t n_users;
    std::size_t n_items;  ///< more than any item
    Ragged excluded;
    Ragged judged;           ///< negative items are in no list
    bool input_order;        ///< whether `before` counts by the order given, not by item
    NanRule nan_rule;        ///< NaN under kUndefined is left out and flagged
    std::int64_t* above;     ///< per judged item: listed items with a higher score, -1 not listed
    std::int64_t* tied;      ///< other listed items with the same score; like `before`, null
                             ///< where nobody asks (without scores there are none)
    std::int64_t* before;    ///< those of them that come first
    std::uint32_t* flags;    ///< [n_users], ScoreFlag bits are added
    std::int64_t* given;     ///< [n_users]: entries of the list that are not padding
    std::int64_t* listed;    ///< [n_users]: distinct items that remain
    std::int64_t* removed;   ///< [n_users]: entries that were training items
    std::int64_t* repeated;  ///< [n_users]: entries that repeated an item; the best one counts
    std::int64_t k;          ///< how many of the first items are written, perhaps 0
    TieOrder order;          ///< of equal scores among them, unless `input_order`
    const std::uint64_t* keys;  ///< [n_users]: what the random order is drawn from
    std::int32_t* top;          ///< [n_users][k]: items, best first; places beyond stay as they are
    std::int64_t* left;         ///< [n_users]: items beyond that score like the last of them
};

void rank_lists(const RankLists& problem);

// Rows that belong to lists, in any order, are brought together in two steps, each of which
// threads do for some rows each: count the rows of each list, then write every row to its place.

/// Count the rows of each list.
/// @param list [n]: to which list each row belongs
/// @param counts [n_lists], added to
/// @returns whether every row belongs to one of the lists
bool count_rows(const std::int32_t* list, std::size_t n, std::size_t n_lists, std::int64_t* counts);

/// Write a column of the rows into their lists, in the order given.
/// @param list [n]: to which list each row belongs
/// @param next [n_lists]: where the next row of each list goes; moved on
template <class Value>
void group_rows(const std::int32_t* list, std::size_t n, const Value* values, std::int64_t* next,
                Value* grouped);

/// Write rows to given places of their lists. Several threads may write to the same place; some
/// other place is then not written to.
/// @param places [n]: the place of each row in its list, counted from `first`
/// @param indptr [n_lists + 1]: list l has the places indptr[l] to indptr[l + 1] - 1
/// @returns whether every place lies in its list; otherwise only some rows are written
bool place_rows(const std::int32_t* list, std::size_t n, const std::int32_t* items,
                const std::int32_t* places, std::int32_t first, const std::int64_t* indptr,
                std::int32_t* sorted_items);

/// Take a batch of lists, one for each of some users who had none before.
/// @param items [n][k]: -1 is padding
/// @param users [n]: who has each list
/// @param came [n_users]: who has a list; those are added whose lists are taken
/// @param taken [n][k]: the same items
/// @param taken_users [n]: the same users
/// @returns whether all items lie from -1 to n_items - 1 and all users are new; otherwise none of
/// them has come, and what is in `taken` and `taken_users` means nothing
template <class Item>
bool take_lists(const Item* items, std::size_t n, std::size_t k, std::int32_t n_items,
                const std::int64_t* users, std::size_t n_users, bool* came, std::int32_t* taken,
                std::int64_t* taken_users);

}  // namespace recometer

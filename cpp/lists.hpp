// Find the judged items in lists that were ranked elsewhere.
//
// One pass over a user's list drops padding, training items and repeated items, and marks each
// remaining item with its place. If the list has scores, the score of each judged item is compared
// with all other scores in the list. The list is sorted for this purpose only if the user has many
// judged items.
//
// This header requires neither Python nor a particular instruction set.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ranking.hpp"

namespace recometer {

/// The lists of a block of users.
struct Lists {
    const std::int32_t* items;  ///< the entries of all lists; negative entries are padding
    const double* scores;  ///< the score of each entry; null if the lists are in ranking order. A
                           ///< score of -inf marks an item that is not recommended
    const std::int64_t* begin;  ///< [n_users]: the start of each user's list
    const std::int64_t* end;    ///< [n_users]: the end of each user's list
};

/// The inputs and outputs of `rank_lists`, for a block of users.
struct RankLists {
    Lists lists;
    std::size_t n_users;
    std::size_t n_items;  ///< every item is below this bound
    Ragged excluded;
    Ragged judged;     ///< the judged items; negative items count as not listed
    bool input_order;  ///< whether ties are broken by input order instead of by item
    NanRule nan_rule;  ///< under kUndefined, entries whose score is NaN are dropped, and the user
                       ///< is flagged
    std::int64_t* above;    ///< per judged item: the number of listed items with a higher score, or
                            ///< -1 if the judged item is not listed
    std::int64_t* tied;     ///< the number of other listed items with the same score. `tied` and
                            ///< `before` may be null for lists without scores, which have no ties
    std::int64_t* before;   ///< the number of tied items that come before the judged item
    std::uint32_t* flags;   ///< [n_users]: ScoreFlag bits are added
    std::int64_t* given;    ///< [n_users]: the number of entries that are not padding
    std::int64_t* listed;   ///< [n_users]: the number of distinct items that remain in the list
    std::int64_t* removed;  ///< [n_users]: the number of entries that are training items
    std::int64_t* repeated;     ///< [n_users]: the number of surplus entries of items that occur
                                ///< repeatedly; only an item's best entry is used
    std::int64_t k;             ///< the number of top items to write; may be 0
    TieOrder order;             ///< how to break ties among the top items, unless `input_order` is
                                ///< true
    const std::uint64_t* keys;  ///< [n_users]: the seed of each user's random order
    std::int32_t* top;          ///< [n_users][k]: items, best first; unused places are not written
    std::int64_t* left;  ///< [n_users]: the number of items outside the top k that tie with the
                         ///< last item in the top k
};

void rank_lists(const RankLists& problem);

// Rows that arrive in any order are grouped into lists in two steps: count the rows in each list,
// then write every row to its place. In both steps, several threads can each process some of the
// rows.

/// Count the rows in each list.
/// @param list [n]: the index of each row's list
/// @param counts [n_lists]: incremented by the number of rows in each list
/// @returns whether every index is below n_lists; if not, counting stops early
bool count_rows(const std::int32_t* list, std::size_t n, std::size_t n_lists, std::int64_t* counts);

/// Group the values of a column by list. Within a list, values keep their input order.
/// @param list [n]: the index of each row's list
/// @param next [n_lists]: the position in `grouped` of each list's next value; updated
template <class Value>
void group_rows(const std::int32_t* list, std::size_t n, const Value* values, std::int64_t* next,
                Value* grouped);

/// Write each row to its place in its list. If two rows of a list have the same place, another
/// place stays unwritten, which the caller can detect. Several threads may write at the same time.
/// @param places [n]: the place of each row in its list, counted from `first`
/// @param indptr [n_lists + 1]: list l occupies the positions indptr[l] to indptr[l + 1] - 1
/// @returns whether every place lies within its list; if not, only some rows were written
bool place_rows(const std::int32_t* list, std::size_t n, const std::int32_t* items,
                const std::int32_t* places, std::int32_t first, const std::int64_t* indptr,
                std::int32_t* sorted_items);

/// Accept and copy a batch of lists, or reject the whole batch.
/// @param items [n][k]: -1 is padding
/// @param users [n]: the user of each list
/// @param came [n_users]: whether each user already has a list; updated if the batch is accepted
/// @param taken [n][k]: output, a copy of the items
/// @param taken_users [n]: output, a copy of the users
/// @returns whether the batch is accepted, that is, whether all items are between -1 and
/// n_items - 1, and every user exists and had no list before. If the batch is rejected, `came` is
/// unchanged, and the contents of `taken` and `taken_users` are undefined
template <class Item>
bool take_lists(const Item* items, std::size_t n, std::size_t k, std::int32_t n_items,
                const std::int64_t* users, std::size_t n_users, bool* came, std::int32_t* taken,
                std::int64_t* taken_users);

}  // namespace recometer

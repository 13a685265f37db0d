// Counting where judged items land among all candidates, without sorting.
//
//     user factors ──> a tile of scores (users x items, in registers, then level-1 cache)
//                          │  items of the user's training set and padding become NaN
//                          v
//     scores of the judged items (sorted) ──> for every candidate: how many of them does it
//                                             reach, and does it equal one?  ──> counts
//
// The scores of the judged items are computed first, with the same operations in the same
// order as in the tile, so that "equal" is exact. Counts over ranges of items add up.
//
// This header knows neither Python nor an instruction set.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace recometer {

/// Facts about a user's candidates; the values are those of ranks.UserFlag.
enum ScoreFlag : std::uint32_t { kNanScore = 4, kInfiniteScore = 8 };

/// What becomes of a candidate whose score is NaN.
enum class NanRule { kUndefined, kFirst, kLast };

/// A limit of places that no ranking reaches: no judged item is given up.
constexpr std::int64_t kNoLimit = std::int64_t{1} << 62;

/// A ragged table of items per user. Offsets are absolute, so a slice of `indptr` is a block
/// of users over the whole `items`.
struct Ragged {
    const std::int64_t* indptr;  ///< [n_users + 1]
    const std::int32_t* items;   ///< ascending within a user
};

/// Item factors as they lie in memory, any strides (counted in elements).
template <class Real>
struct ItemFactors {
    const Real* data;
    std::ptrdiff_t item_stride;
    std::ptrdiff_t factor_stride;
    const Real* bias;          ///< [n_items], or null
    const std::int64_t* rows;  ///< [n_items]: the row of each item, or null where they are equal
    std::int64_t n_items;
};

/// Another order in which items are scored, by falling bounds: "places". Users leave where no
/// item that follows can change anything. Results do not depend on it.
struct Falling {
    const std::int32_t* items;   ///< [n_items]: the item at each place; null: no other order
    const std::int32_t* places;  ///< [n_items]: the place of each item
    /// [n_users] and [n_items], the latter descending: no score, as it is computed, of the user
    /// and the item at this place or a later one is above their product.
    const double* user_bound;
    const double* item_bound;

    std::int64_t item(std::int64_t place) const { return items == nullptr ? place : items[place]; }
    std::int64_t place(std::int64_t item) const { return items == nullptr ? item : places[item]; }

    /// Whether the scores of all items from this place on are below `score`; equal is not below.
    bool all_below(double score, std::size_t user, std::int64_t place) const {
        return items != nullptr && score > user_bound[user] * item_bound[place];
    }
};

/// The judged items of a block of users and the counts that are added to.
template <class Real>
struct Judged {
    Ragged table;
    const Real* scores;             ///< per judged item
    const std::int64_t* order;      ///< per user: its judged items by (score, item); offsets
                                    ///< are those of `table`, counted from its first
    const std::int64_t* order_end;  ///< [n_users]: where the user's part of `order` ends; items
                                    ///< left out are not ranked and keep their counts
    std::int64_t* above;            ///< candidates with a higher score
    std::int64_t* tied;             ///< other candidates with the same score
    std::int64_t* before;           ///< those of them with a lower index
};

/// Scores of listed items, acc = bias, then acc = fma(user[f], item[f], acc) for f = 0, 1, ...
/// @param users [n_users][n_factors], contiguous
/// @param scores written for the entries of `listed` of these users, at their offsets
template <class Real>
struct ScoreItems {
    const Real* users;
    std::size_t n_users;
    std::size_t n_factors;
    ItemFactors<Real> items;
    Ragged listed;
    Real* scores;
};

/// Scores of a block of users and the items at the places [first, last), by factors.
template <class Real>
struct FactorScores {
    const Real* users;  ///< [n_users][n_factors], contiguous
    std::size_t n_users;
    std::size_t n_factors;
    ItemFactors<Real> items;
    Falling falling;
    std::int64_t first, last;
    Ragged excluded;         ///< places
    bool check;              ///< look for scores that are not finite
    NanRule nan_rule;        ///< read where `check` is set
    std::uint32_t* flags;    ///< [n_users], ScoreFlag bits are added where `check` is set
    std::uint8_t* finished;  ///< [n_users]: users with a 1 are passed over; set where no item that
                             ///< follows can change anything that is kept
};

/// Scores of a block of users and all items, given. -inf marks what is not a candidate.
template <class Real>
struct GivenScores {
    const Real* scores;  ///< [n_users][n_items]
    std::ptrdiff_t user_stride;
    std::size_t n_users;
    const std::int64_t* columns;  ///< [n_items]: the column of each item, or null
    std::int64_t n_items;
    Ragged excluded;
    NanRule nan_rule;
    std::uint32_t* flags;         ///< [n_users]
    std::int64_t* no_candidates;  ///< [n_users]: + items that are not excluded but scored -inf
};

/// Rank the judged items of a block of users.
/// @tparam Scores FactorScores or GivenScores
template <class Scores, class Real>
struct Rank {
    Scores scores;
    Judged<Real> judged;
    std::int64_t limit;  ///< judged items with this many candidates above them are given up
};

/// In which order candidates with equal scores stand.
enum class TieOrder { kItem, kItemDescending, kRandom };

/// The best candidates of each user of a block, to which those of further items may be added.
template <class Real>
struct Top {
    std::int64_t k;             ///< places per user, at least 1
    TieOrder order;             ///< of equal scores
    const std::uint64_t* keys;  ///< [n_users]: what the random order is drawn from
    Real* scores;               ///< [n_users][k], best first
    std::int32_t* items;        ///< [n_users][k]
    std::int64_t* n;            ///< [n_users]: how many there are
    std::int64_t* left;         ///< [n_users]: candidates that are not among them though they
                                ///< score like the last of them
};

/// Find the best candidates of a block of users.
/// @tparam Scores FactorScores or GivenScores
template <class Scores, class Real>
struct FindTop {
    Scores scores;
    Top<Real> top;
};

template <class Real>
using RankFactors = Rank<FactorScores<Real>, Real>;
template <class Real>
using RankScores = Rank<GivenScores<Real>, Real>;
template <class Real>
using TopFactors = FindTop<FactorScores<Real>, Real>;
template <class Real>
using TopScores = FindTop<GivenScores<Real>, Real>;

/// The functions of one instruction set.
///
/// rank_* return -1, or the position of a judged item that did not find its own score exactly
/// once among the candidates: an internal error.
template <class Real>
struct Kernel {
    void (*score_items)(const ScoreItems<Real>&);
    std::int64_t (*rank_factors)(const RankFactors<Real>&);
    std::int64_t (*rank_scores)(const RankScores<Real>&);
    void (*top_factors)(const TopFactors<Real>&);
    void (*top_scores)(const TopScores<Real>&);
};

struct InstructionSet {
    const char* name;
    int users_at_once;  ///< of a tile of scores: other numbers leave a part of it empty
    Kernel<float> single;
    Kernel<double> twice;
};

/// The functions for scores of the type of the second argument.
inline const Kernel<float>& kernel(const InstructionSet& set, float) { return set.single; }
inline const Kernel<double>& kernel(const InstructionSet& set, double) { return set.twice; }

/// Those that this processor has, best first; the last one runs everywhere.
std::vector<const InstructionSet*> instruction_sets();

}  // namespace recometer

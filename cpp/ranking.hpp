// Rank judged items among all candidates by counting, without sorting.
//
//     user factors ──> a tile of scores (users x items, in registers, then level-1 cache)
//                          │  the user's training items and the padding become NaN
//                          v
//     scores of the judged items (sorted) ──> for every candidate: how many of them does it
//                                             reach, and does it equal any?  ──> counts
//
// The scores of the judged items are computed first, with the same operations in the same order as
// in the tile, so each score is exactly equal to the item's score in the tile. Counts over disjoint
// ranges of items can be added up.
//
// This header requires neither Python nor a particular instruction set.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace recometer {

/// Flags for a user's scores, with the same values as in recometer.ranks.UserFlag.
enum ScoreFlag : std::uint32_t { kNanScore = 4, kInfiniteScore = 8 };

/// How to treat a candidate whose score is NaN.
enum class NanRule { kUndefined, kFirst, kLast };

/// A limit that no rank reaches. With this limit, counting never stops early for a judged item.
constexpr std::int64_t kNoLimit = std::int64_t{1} << 62;

/// A ragged table of items per user. Offsets are absolute, so a slice of `indptr` together with all
/// of `items` describes a block of users.
struct Ragged {
    const std::int64_t* indptr;  ///< [n_users + 1]: the offsets of the users' items
    const std::int32_t* items;   ///< the items of each user, in ascending order
};

/// Item factors as they are stored in memory. Strides are counted in elements and can have any
/// value.
template <class Real>
struct ItemFactors {
    const Real* data;
    std::ptrdiff_t item_stride;
    std::ptrdiff_t factor_stride;
    const Real* bias;          ///< one bias per row of `data`; null if there are none
    const std::int64_t* rows;  ///< [n_items]: the row of each item; null if row i holds item i
    std::int64_t n_items;
};

/// An order in which to score items, by descending upper bounds on their scores. A "place" is a
/// position in this order. Scoring stops for a user as soon as no later item can change that user's
/// results; the user is then "finished". Results do not depend on the order.
struct Falling {
    const std::int32_t* items;   ///< [n_items]: the item at each place; null means index order
    const std::int32_t* places;  ///< [n_items]: the place of each item
    /// user_bound[u] * item_bound[p] is an upper bound on the computed scores of user u for the
    /// items at place p and all later places. `user_bound` is [n_users]; `item_bound` is [n_items],
    /// in descending order.
    const double* user_bound;
    const double* item_bound;

    std::int64_t item(std::int64_t place) const { return items == nullptr ? place : items[place]; }
    std::int64_t place(std::int64_t item) const { return items == nullptr ? item : places[item]; }

    /// Whether the bounds show that all items from this place on score below `score`.
    bool all_below(double score, std::size_t user, std::int64_t place) const {
        return items != nullptr && score > user_bound[user] * item_bound[place];
    }
};

/// The judged items of a block of users, and their counts, which are updated.
template <class Real>
struct Judged {
    Ragged table;
    const Real* scores;             ///< the score of each judged item
    const std::int64_t* order;      ///< the positions of each user's judged items, sorted by
                                    ///< (score, item). A user's part starts at the user's offset
                                    ///< in `table`, minus the table's first offset
    const std::int64_t* order_end;  ///< [n_users]: the end of each user's part of `order`; judged
                                    ///< items outside these parts are not ranked and keep their
                                    ///< counts
    std::int64_t* above;            ///< the number of candidates with a higher score
    std::int64_t* tied;             ///< the number of other candidates with the same score
    std::int64_t* before;           ///< the number of tied candidates with a lower index
};

/// Score the listed items. A score starts as the item's bias, and is then replaced by fma(user[f],
/// item[f], score) for each f = 0, 1, ...
/// @param users [n_users][n_factors], contiguous
/// @param scores output: the score of each listed item, at the offsets of `listed`
template <class Real>
struct ScoreItems {
    const Real* users;
    std::size_t n_users;
    std::size_t n_factors;
    ItemFactors<Real> items;
    Ragged listed;
    Real* scores;
};

/// Scores computed from factors, for a block of users and the items at places [first, last).
template <class Real>
struct FactorScores {
    const Real* users;  ///< [n_users][n_factors], contiguous
    std::size_t n_users;
    std::size_t n_factors;
    ItemFactors<Real> items;
    Falling falling;
    std::int64_t first, last;
    Ragged excluded;         ///< the excluded items, as places
    bool check;              ///< whether to check for scores that are not finite
    NanRule nan_rule;        ///< how to treat NaN if `check` is set
    std::uint32_t* flags;    ///< [n_users]: ScoreFlag bits are added if `check` is set
    std::uint8_t* finished;  ///< [n_users]: users whose entry is 1 are skipped. A user's entry is
                             ///< set to 1 once no later item can change the user's results
};

/// Scores that are passed in, for a block of users and all items. -inf marks an item that is not a
/// candidate.
template <class Real>
struct GivenScores {
    const Real* scores;  ///< [n_users][n_items]
    std::ptrdiff_t user_stride;
    std::size_t n_users;
    const std::int64_t* columns;  ///< [n_items]: the column of each item; null if item i is in
                                  ///< column i
    std::int64_t n_items;
    Ragged excluded;
    NanRule nan_rule;
    std::uint32_t* flags;         ///< [n_users]: ScoreFlag bits are added
    std::int64_t* no_candidates;  ///< [n_users]: incremented by the number of items that
                                  ///< score -inf and are not excluded
};

/// Rank the judged items of a block of users.
/// @tparam Scores FactorScores or GivenScores
template <class Scores, class Real>
struct Rank {
    Scores scores;
    Judged<Real> judged;
    std::int64_t limit;  ///< counting stops for a judged item once this many candidates have a
                         ///< higher score
};

/// How to order candidates with equal scores.
enum class TieOrder { kItem, kItemDescending, kRandom };

/// The top candidates of each user in a block. Later calls can add more candidates.
template <class Real>
struct Top {
    std::int64_t k;             ///< the number of places in each list (at least 1)
    TieOrder order;             ///< how to order equal scores
    const std::uint64_t* keys;  ///< [n_users]: the seed of each user's random order
    Real* scores;               ///< [n_users][k]: the best scores, in descending order
    std::int32_t* items;        ///< [n_users][k]: the items with these scores
    std::int64_t* n;            ///< [n_users]: the length of each list
    std::int64_t* left;  ///< [n_users]: the number of candidates outside the list that tie with its
                         ///< last item
};

/// Find the top candidates of a block of users.
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

/// The kernel's functions for one instruction set and one score type.
///
/// rank_factors and rank_scores return -1 on success. Any other value indicates an internal error
/// and is the position of a judged item whose own score was not found exactly once among the
/// candidates.
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
    int users_at_once;  ///< the number of users per tile of scores; if the size of a block is not a
                        ///< multiple of this number, part of the last tile stays empty
    Kernel<float> single;
    Kernel<double> twice;
};

/// Return the functions for scores of the second argument's type.
inline const Kernel<float>& kernel(const InstructionSet& set, float) { return set.single; }
inline const Kernel<double>& kernel(const InstructionSet& set, double) { return set.twice; }

/// Return the instruction sets that this processor supports, best first. The last one is plain C++,
/// which runs on every processor.
std::vector<const InstructionSet*> instruction_sets();

}  // namespace recometer

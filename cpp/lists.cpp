#include "lists.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "sorting.hpp"

namespace recometer {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNothing = std::numeric_limits<double>::quiet_NaN();  // not equal to any score

// If a user has more judged items than this, the list is sorted once, and a binary search finds
// each judged item.
constexpr std::int64_t kFewJudged = 16;

class Ranker {
 public:
    explicit Ranker(const RankLists& problem) : p(problem), mark(problem.n_items, 0) {}

    void rank(std::size_t user) {
        // Marks left by earlier users are below `base`, so they need not be cleared.
        const std::int64_t length = p.lists.end[user] - p.lists.begin[user];
        if (base > std::numeric_limits<std::int32_t>::max() - length - 1) {
            std::fill(mark.begin(), mark.end(), 0);
            base = 1;
        }
        for (auto j = p.excluded.indptr[user]; j < p.excluded.indptr[user + 1]; ++j) {
            if (p.excluded.items[j] >= 0) mark[index(p.excluded.items[j])] = base;
        }
        const std::int32_t places = p.lists.scores ? read_scored(user) : read(user);
        if (p.lists.scores && p.k > 0) write_top(user);
        const std::int64_t begin = p.judged.indptr[user], end = p.judged.indptr[user + 1];
        const bool few = end - begin <= kFewJudged;
        if (p.lists.scores && !few) {
            collect();
            sort_best(entries.data(), static_cast<std::int64_t>(entries.size()), TieOrder::kItem,
                      0);
        }
        for (auto j = begin; j < end; ++j) {
            const std::int32_t item = p.judged.items[j];
            const std::int32_t place = item < 0 ? 0 : mark[index(item)] - base;
            p.above[j] = place > 0 ? place - 1 : -1;
            if (p.tied) p.tied[j] = p.before[j] = 0;
            if (place <= 0 || !p.lists.scores) continue;
            if (few) {
                compare(j, index(place - 1));
            } else {
                search(j, index(place - 1));
            }
        }
        base += places + 1;
    }

 private:
    static std::size_t index(std::int32_t item) { return static_cast<std::size_t>(item); }

    std::int32_t* top(std::size_t user) const {
        return p.top + static_cast<std::int64_t>(user) * p.k;
    }

    /// Return the number that breaks ties: the item or, if ties are broken by input order, the
    /// entry's position.
    std::int32_t name(std::size_t entry) const {
        return p.input_order ? static_cast<std::int32_t>(entry) : items[entry];
    }

    /// Build entries from the items that `read_scored` kept.
    void collect() {
        entries.clear();
        for (std::size_t i = 0; i < items.size(); ++i) {
            if (scores[i] == scores[i]) entries.push_back({scores[i], name(i)});
        }
    }

    /// Write the top items among those that `read_scored` kept.
    void write_top(std::size_t user) {
        collect();
        const TieOrder order = p.input_order ? TieOrder::kItem : p.order;
        auto n = static_cast<std::int64_t>(entries.size());
        if (n > p.k) {
            p.left[user] = keep_best(entries.data(), n, p.k, order, p.keys[user]);
            n = p.k;
        }
        sort_best(entries.data(), n, order, p.keys[user]);
        for (std::int64_t i = 0; i < n; ++i) {
            const std::int32_t best = entries[static_cast<std::size_t>(i)].item;
            top(user)[i] = p.input_order ? items[index(best)] : best;
        }
    }

    /// Mark each item with `base` plus its place, counted from 1. Returns the last place.
    std::int32_t read(std::size_t user) {
        std::int32_t last = base;
        std::int64_t given = 0, removed = 0;
        for (auto j = p.lists.begin[user]; j < p.lists.end[user]; ++j) {
            const std::int32_t item = p.lists.items[j];
            if (item < 0) continue;
            ++given;
            std::int32_t& item_mark = mark[index(item)];
            if (item_mark < base) {
                const std::int64_t place = last - base;
                if (place < p.k) top(user)[place] = item;
                item_mark = ++last;
            } else if (item_mark == base) {
                ++removed;
            }
        }
        p.given[user] = given;
        p.removed[user] = removed;
        p.listed[user] = last - base;
        p.repeated[user] = given - removed - p.listed[user];
        return last - base;
    }

    /// Like `read`, but for a list with scores. Here, a place is a position, counted from 1, in
    /// `items` and `scores`, which keep the order of the input.
    std::int32_t read_scored(std::size_t user) {
        std::int32_t last = base;
        std::int64_t given = 0, removed = 0, repeated = 0, replaced = 0;
        items.clear();
        scores.clear();
        for (auto j = p.lists.begin[user]; j < p.lists.end[user]; ++j) {
            const std::int32_t item = p.lists.items[j];
            if (item < 0) continue;
            ++given;
            std::int32_t& item_mark = mark[index(item)];
            if (item_mark == base) {
                ++removed;
                continue;
            }
            double score = p.lists.scores[j];
            if (!std::isfinite(score)) {
                if (score == -kInfinity) continue;
                if (score == kInfinity) {
                    p.flags[user] |= kInfiniteScore;
                } else if (p.nan_rule == NanRule::kUndefined) {
                    p.flags[user] |= kNanScore;
                    continue;
                } else {
                    score = p.nan_rule == NanRule::kFirst ? kInfinity : -kInfinity;
                }
            }
            if (item_mark > base) {
                ++repeated;
                double& best = scores[index(item_mark - base - 1)];
                if (score <= best) continue;
                best = kNothing;
                ++replaced;
            }
            item_mark = ++last;
            items.push_back(item);
            scores.push_back(score);
        }
        p.given[user] = given;
        p.removed[user] = removed;
        p.listed[user] = last - base - replaced;
        p.repeated[user] = repeated;
        return last - base;
    }

    /// Rank a judged item by comparing its score with every score in the list.
    void compare(std::int64_t judged, std::size_t entry) {
        const double score = scores[entry];
        const std::size_t n = scores.size();
        std::int64_t higher = 0, equal = 0, before = 0;
        for (std::size_t i = 0; i < n; ++i) {
            higher += scores[i] > score;
            equal += scores[i] == score;
        }
        if (equal > 1 && p.input_order) {
            for (std::size_t i = 0; i < entry; ++i) before += scores[i] == score;
        } else if (equal > 1) {
            for (std::size_t i = 0; i < n; ++i) {
                before += static_cast<int>(scores[i] == score) &
                          static_cast<int>(items[i] < items[entry]);
            }
        }
        p.above[judged] = higher;
        p.tied[judged] = equal - 1;
        p.before[judged] = before;
    }

    /// Rank a judged item by searching for it among the sorted entries.
    void search(std::int64_t judged, std::size_t entry) {
        const double score = scores[entry];
        const auto first =
            std::partition_point(entries.begin(), entries.end(),
                                 [=](const auto& listed) { return listed.score > score; });
        const auto last = std::partition_point(
            first, entries.end(), [=](const auto& listed) { return listed.score == score; });
        const auto own = std::partition_point(
            first, last,
            [number = name(entry)](const auto& listed) { return listed.item < number; });
        p.above[judged] = first - entries.begin();
        p.tied[judged] = last - first - 1;
        p.before[judged] = own - first;
    }

    const RankLists& p;
    std::int32_t base{1};
    // Per item: a value below `base` means that the item is not listed, and `base` itself means
    // that it is a training item. A higher value is `base` plus the item's place.
    std::vector<std::int32_t> mark;
    std::vector<std::int32_t> items;
    std::vector<double> scores;
    std::vector<Entry<double>> entries;
};

}  // namespace

void rank_lists(const RankLists& problem) {
    Ranker ranker(problem);
    for (std::size_t user = 0; user < problem.n_users; ++user) ranker.rank(user);
}

bool count_rows(const std::int32_t* list, std::size_t n, std::size_t n_lists,
                std::int64_t* counts) {
    for (std::size_t row = 0; row < n; ++row) {
        const auto at = static_cast<std::size_t>(list[row]);
        if (at >= n_lists) return false;
        ++counts[at];
    }
    return true;
}

template <class Value>
void group_rows(const std::int32_t* list, std::size_t n, const Value* values, std::int64_t* next,
                Value* grouped) {
    for (std::size_t row = 0; row < n; ++row) {
        grouped[next[static_cast<std::size_t>(list[row])]++] = values[row];
    }
}

template void group_rows(const std::int32_t*, std::size_t, const std::int32_t*, std::int64_t*,
                         std::int32_t*);
template void group_rows(const std::int32_t*, std::size_t, const double*, std::int64_t*, double*);

bool place_rows(const std::int32_t* list, std::size_t n, const std::int32_t* items,
                const std::int32_t* places, std::int32_t first, const std::int64_t* indptr,
                std::int32_t* sorted_items) {
    for (std::size_t row = 0; row < n; ++row) {
        const auto at = static_cast<std::size_t>(list[row]);
        const std::int64_t to = indptr[at] + (std::int64_t{places[row]} - first);
        if (to < indptr[at] || to >= indptr[at + 1]) return false;
        __atomic_store_n(sorted_items + to, items[row], __ATOMIC_RELAXED);
    }
    return true;
}

template <class Item>
bool take_lists(const Item* items, std::size_t n, std::size_t k, std::int32_t n_items,
                const std::int64_t* users, std::size_t n_users, bool* came, std::int32_t* taken,
                std::int64_t* taken_users) {
    // An item below -1 or above the last item sets the sign bit of one of the two terms.
    // Comparisons would be slower, because some instruction sets cannot compare vectors of 64-bit
    // integers.
    std::uint64_t out_of_range = 0;
    const auto last = static_cast<std::uint64_t>(std::int64_t{n_items} - 1);
    for (std::size_t i = 0; i < n * k; ++i) {
        const auto item = static_cast<std::uint64_t>(std::int64_t{items[i]});
        out_of_range |= (item + 1) | (last - item);
        taken[i] = static_cast<std::int32_t>(items[i]);
    }
    if (out_of_range >> 63U) return false;
    for (std::size_t row = 0; row < n; ++row) {
        const auto user = static_cast<std::size_t>(users[row]);
        if (user >= n_users || came[user]) {
            for (std::size_t earlier = 0; earlier < row; ++earlier) {
                came[static_cast<std::size_t>(users[earlier])] = false;
            }
            return false;
        }
        came[user] = true;
        taken_users[row] = users[row];
    }
    return true;
}

template bool take_lists(const std::int32_t*, std::size_t, std::size_t, std::int32_t,
                         const std::int64_t*, std::size_t, bool*, std::int32_t*, std::int64_t*);
template bool take_lists(const std::int64_t*, std::size_t, std::size_t, std::int32_t,
                         const std::int64_t*, std::size_t, bool*, std::int32_t*, std::int64_t*);

}  // namespace recometer

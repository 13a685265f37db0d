#include "lists.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace recometer {
namespace {

constexpr std::int32_t kExcluded = -1;
constexpr std::int32_t kReplaced = -1;  // an entry whose item came again with a better score
constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// A judged item that is in the list.
struct Hit {
    double score;
    std::size_t entry;     // which of the kept entries it is
    std::int64_t judged;   // its row among the judged items
    std::size_t group{0};  // hits with the same score are one group
};

class Ranker {
 public:
    explicit Ranker(const RankLists& problem) : p(problem), mark(problem.n_items, 0) {}

    void rank(std::size_t user) {
        const Ragged& excluded = p.excluded;
        for (auto j = excluded.indptr[user]; j < excluded.indptr[user + 1]; ++j) {
            if (excluded.items[j] >= 0) mark[index(excluded.items[j])] = kExcluded;
        }
        read(user);
        if (p.lists.scores) {
            compare(user);
        } else {
            for (auto j = p.judged.indptr[user]; j < p.judged.indptr[user + 1]; ++j) {
                const std::int32_t place = place_of(p.judged.items[j]);
                p.above[j] = place > 0 ? place - 1 : -1;
                p.tied[j] = p.before[j] = 0;
            }
        }
        for (auto j = p.lists.begin[user]; j < p.lists.end[user]; ++j) {
            if (p.lists.items[j] >= 0) mark[index(p.lists.items[j])] = 0;
        }
        for (auto j = excluded.indptr[user]; j < excluded.indptr[user + 1]; ++j) {
            if (excluded.items[j] >= 0) mark[index(excluded.items[j])] = 0;
        }
    }

 private:
    static std::size_t index(std::int32_t item) { return static_cast<std::size_t>(item); }

    std::int32_t place_of(std::int32_t item) const { return item < 0 ? 0 : mark[index(item)]; }

    /// Keep what counts of a list; mark[item] becomes the number of its entry, from 1 on.
    void read(std::size_t user) {
        const Lists& lists = p.lists;
        std::int32_t place = 0;
        std::int64_t given = 0, removed = 0, repeated = 0;
        items.clear();
        scores.clear();
        for (auto j = lists.begin[user]; j < lists.end[user]; ++j) {
            const std::int32_t item = lists.items[j];
            if (item < 0) continue;
            ++given;
            std::int32_t& known = mark[index(item)];
            if (known == kExcluded) {
                ++removed;
                continue;
            }
            double score = 0;
            if (lists.scores) {
                score = lists.scores[j];
                if (score == -kInfinity) continue;
                if (score == kInfinity) p.flags[user] |= kInfiniteScore;
                if (std::isnan(score)) {
                    if (p.nan_rule == NanRule::kUndefined) {
                        p.flags[user] |= kNanScore;
                        continue;
                    }
                    score = p.nan_rule == NanRule::kFirst ? kInfinity : -kInfinity;
                }
            }
            if (known > 0) {
                ++repeated;
                if (!lists.scores || score <= scores[index(known - 1)]) continue;
                items[index(known - 1)] = kReplaced;
            }
            known = ++place;
            if (lists.scores) {
                items.push_back(item);
                scores.push_back(score);
            }
        }
        p.given[user] = given;
        p.removed[user] = removed;
        p.repeated[user] = repeated;
        p.listed[user] =
            lists.scores ? place - std::count(items.begin(), items.end(), kReplaced) : place;
    }

    void compare(std::size_t user) {
        hits.clear();
        for (auto j = p.judged.indptr[user]; j < p.judged.indptr[user + 1]; ++j) {
            const std::int32_t place = place_of(p.judged.items[j]);
            p.above[j] = -1;
            p.tied[j] = p.before[j] = 0;
            if (place > 0) hits.push_back({scores[index(place - 1)], index(place - 1), j});
        }
        if (hits.empty()) return;
        std::sort(hits.begin(), hits.end(), [](const Hit& a, const Hit& b) {
            return a.score > b.score || (a.score == b.score && a.entry < b.entry);
        });
        levels.clear();
        for (Hit& hit : hits) {
            if (levels.empty() || levels.back() != hit.score) levels.push_back(hit.score);
            hit.group = levels.size() - 1;
        }
        // How many entries lie between the level before and this one, and how many on it.
        higher.assign(levels.size() + 1, 0);
        equal.assign(levels.size(), 0);
        group_of.resize(items.size());
        for (std::size_t entry = 0; entry < items.size(); ++entry) {
            group_of[entry] = levels.size();
            if (items[entry] == kReplaced) continue;
            const auto level = std::lower_bound(levels.begin(), levels.end(), scores[entry],
                                                [](double a, double b) { return a > b; });
            const auto group = static_cast<std::size_t>(level - levels.begin());
            if (level != levels.end() && *level == scores[entry]) {
                group_of[entry] = group;
                ++equal[group];
            } else {
                ++higher[group];
            }
        }
        std::int64_t above = 0;
        bool any_tied = false;
        for (std::size_t group = 0; group < levels.size(); ++group) {
            above += higher[group];
            higher[group] = above;
            above += equal[group];
            any_tied = any_tied || equal[group] > 1;
        }
        for (const Hit& hit : hits) {
            p.above[hit.judged] = higher[hit.group];
            p.tied[hit.judged] = equal[hit.group] - 1;
        }
        if (any_tied) order_ties();
    }

    /// Count the tied entries that come before each hit.
    void order_ties() {
        begins.assign(levels.size() + 1, 0);
        for (std::size_t group = 0; group < levels.size(); ++group) {
            begins[group + 1] = begins[group] + equal[group];
        }
        keys.resize(static_cast<std::size_t>(begins.back()));
        for (std::size_t entry = 0; entry < items.size(); ++entry) {
            if (group_of[entry] == levels.size()) continue;
            keys[static_cast<std::size_t>(begins[group_of[entry]]++)] = key(entry);
        }
        for (std::size_t group = 0; group < levels.size(); ++group) {
            // `begins` has moved on to the end of each group.
            std::sort(keys.begin() + begins[group] - equal[group], keys.begin() + begins[group]);
        }
        for (const Hit& hit : hits) {
            const auto end = keys.begin() + begins[hit.group], begin = end - equal[hit.group];
            p.before[hit.judged] = std::lower_bound(begin, end, key(hit.entry)) - begin;
        }
    }

    std::int64_t key(std::size_t entry) const {
        return p.input_order ? static_cast<std::int64_t>(entry) : items[entry];
    }

    const RankLists& p;
    std::vector<std::int32_t> mark;  // per item: 0, kExcluded, or the number of its entry
    std::vector<std::int32_t> items;
    std::vector<double> scores;
    std::vector<Hit> hits;
    std::vector<double> levels;  // the distinct scores of the hits, best first
    std::vector<std::int64_t> higher, equal, begins, keys;
    std::vector<std::size_t> group_of;
};

}  // namespace

void rank_lists(const RankLists& problem) {
    Ranker ranker(problem);
    for (std::size_t user = 0; user < problem.n_users; ++user) ranker.rank(user);
}

bool group_lists(const std::int32_t* list, std::size_t n, std::size_t n_lists,
                 const std::int32_t* items, const double* scores, std::int64_t* indptr,
                 std::int32_t* sorted_items, double* sorted_scores) {
    std::vector<std::int64_t> next(n_lists + 1, 0);
    for (std::size_t row = 0; row < n; ++row) {
        const auto at = static_cast<std::size_t>(list[row]);
        if (at >= n_lists) return false;
        ++next[at + 1];
    }
    for (std::size_t at = 0; at < n_lists; ++at) next[at + 1] += next[at];
    std::copy(next.begin(), next.end(), indptr);
    for (std::size_t row = 0; row < n; ++row) {
        const auto to = static_cast<std::size_t>(next[static_cast<std::size_t>(list[row])]++);
        sorted_items[to] = items[row];
        if (scores) sorted_scores[to] = scores[row];
    }
    return true;
}

}  // namespace recometer

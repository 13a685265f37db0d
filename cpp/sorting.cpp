#include "sorting.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "hashing.hpp"

namespace recometer {
namespace {

void set_bit(std::vector<std::uint64_t>& words, std::size_t at) {
    words[at / 64] |= std::uint64_t{1} << (at % 64);
}

/// Call use(bit) for each set bit, from the lowest to the highest, and clear the word.
template <class Use>
void take_bits(std::uint64_t& word, Use use) {
    for (; word != 0; word &= word - 1) use(static_cast<std::size_t>(__builtin_ctzll(word)));
}

/// Call use(better), where better(a, b) returns whether entry a comes before entry b.
template <class Real, class Use>
void with_order(TieOrder order, std::uint64_t key, Use use) {
    using E = Entry<Real>;
    if (order == TieOrder::kItem) {
        use([](const E& a, const E& b) {
            return a.score != b.score ? a.score > b.score : a.item < b.item;
        });
    } else if (order == TieOrder::kItemDescending) {
        use([](const E& a, const E& b) {
            return a.score != b.score ? a.score > b.score : a.item > b.item;
        });
    } else {
        use([key](const E& a, const E& b) {
            if (a.score != b.score) return a.score > b.score;
            return mix(key ^ static_cast<std::uint64_t>(a.item)) <
                   mix(key ^ static_cast<std::uint64_t>(b.item));
        });
    }
}

}  // namespace

template <class Real>
std::int64_t keep_best(Entry<Real>* entries, std::int64_t n, std::int64_t k, TieOrder order,
                       std::uint64_t key) {
    with_order<Real>(order, key, [=](auto better) {
        std::nth_element(entries, entries + (k - 1), entries + n, better);
    });
    const Real last = entries[k - 1].score;
    return std::count_if(entries + k, entries + n,
                         [last](const Entry<Real>& e) { return e.score == last; });
}

template <class Real>
void sort_best(Entry<Real>* entries, std::int64_t n, TieOrder order, std::uint64_t key) {
    with_order<Real>(order, key, [=](auto better) { std::sort(entries, entries + n, better); });
}

template std::int64_t keep_best(Entry<float>*, std::int64_t, std::int64_t, TieOrder, std::uint64_t);
template std::int64_t keep_best(Entry<double>*, std::int64_t, std::int64_t, TieOrder,
                                std::uint64_t);
template void sort_best(Entry<float>*, std::int64_t, TieOrder, std::uint64_t);
template void sort_best(Entry<double>*, std::int64_t, TieOrder, std::uint64_t);

template <class Real>
void sort_judged(const Ragged& judged, std::size_t n_users, const Real* scores, std::int64_t* order,
                 std::int64_t* order_end) {
    for (std::size_t u = 0; u < n_users; ++u) {
        std::int64_t* const begin = order + (judged.indptr[u] - judged.indptr[0]);
        std::int64_t* end = begin;
        for (std::int64_t j = judged.indptr[u]; j < judged.indptr[u + 1]; ++j) {
            if (scores[j] == scores[j]) *end++ = j;
        }
        // A user's items are in ascending order, so their positions can be compared instead.
        std::sort(begin, end, [scores](std::int64_t a, std::int64_t b) {
            return scores[a] < scores[b] || (scores[a] == scores[b] && a < b);
        });
        order_end[u] = end - order;
    }
}

template void sort_judged(const Ragged&, std::size_t, const float*, std::int64_t*, std::int64_t*);
template void sort_judged(const Ragged&, std::size_t, const double*, std::int64_t*, std::int64_t*);

ExcludedPlaces::ExcludedPlaces(const Ragged& excluded, std::size_t n_users, const Falling& falling,
                               std::int64_t first, std::int64_t last, const std::uint8_t* finished)
    : indptr_(n_users + 1) {
    // Set a bit for the place of each excluded item, then read the bits in ascending order. This is
    // faster than sorting. A second bitmap marks the words that are not zero. All places outside
    // the range share the last bit, which avoids an unpredictable branch.
    const std::size_t outside = static_cast<std::size_t>(last - first);
    std::vector<std::uint64_t> marks(outside / 64 + 1), marked(marks.size() / 64 + 1);
    places_.resize(static_cast<std::size_t>(excluded.indptr[n_users] - excluded.indptr[0]));
    std::size_t n = 0;
    for (std::size_t u = 0; u < n_users; ++u) {
        if (finished[u] == 0) {
            for (std::int64_t e = excluded.indptr[u]; e < excluded.indptr[u + 1]; ++e) {
                const auto place =
                    static_cast<std::size_t>(falling.places[excluded.items[e]] - first);
                const std::size_t at = place < outside ? place : outside;
                set_bit(marks, at);
                set_bit(marked, at / 64);
            }
            marks[outside / 64] &= ~(std::uint64_t{1} << (outside % 64));
            for (std::size_t part = 0; part < marked.size(); ++part) {
                take_bits(marked[part], [&](std::size_t bit) {
                    const std::size_t word = 64 * part + bit;
                    take_bits(marks[word], [&](std::size_t lower) {
                        const auto at = static_cast<std::int64_t>(64 * word + lower);
                        places_[n++] = static_cast<std::int32_t>(first + at);
                    });
                });
            }
        }
        indptr_[u + 1] = static_cast<std::int64_t>(n);
    }
}

void best_first(const std::int64_t* indptr, std::size_t n_users, const std::int64_t* above,
                const std::int64_t* before, std::int64_t* order) {
    for (std::size_t u = 0; u < n_users; ++u) {
        for (std::int64_t j = indptr[u]; j < indptr[u + 1]; ++j) order[j] = j;
        std::sort(order + indptr[u], order + indptr[u + 1], [=](std::int64_t a, std::int64_t b) {
            // -1 becomes the largest unsigned number, so unranked items come last.
            const auto above_a = static_cast<std::uint64_t>(above[a]);
            const auto above_b = static_cast<std::uint64_t>(above[b]);
            if (above_a != above_b) return above_a < above_b;
            return before && before[a] != before[b] ? before[a] < before[b] : a < b;
        });
    }
}

void longest_first(const double* lengths, std::size_t n, std::int32_t* order, double* bounds) {
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    constexpr double kLevels = 65'535;
    constexpr std::size_t kDigit = 256;
    double largest = 0;
    for (std::size_t i = 0; i < n; ++i) {
        if (lengths[i] > largest && lengths[i] < kInfinity) largest = lengths[i];
    }
    // This is a radix sort of 16-bit levels by two digits, lower digit first.
    std::vector<std::uint16_t> levels(n);
    std::vector<std::size_t> low(kDigit + 1), high(kDigit + 1);
    for (std::size_t i = 0; i < n; ++i) {
        const double share = largest > 0 ? std::min(lengths[i], largest) / largest : 0;
        levels[i] = static_cast<std::uint16_t>(kLevels - std::floor(kLevels * share));
        ++low[levels[i] % kDigit + 1];
        ++high[levels[i] / kDigit + 1];
    }
    std::partial_sum(low.begin(), low.end(), low.begin());
    std::partial_sum(high.begin(), high.end(), high.begin());
    std::vector<std::uint32_t> by_low(n);
    for (std::size_t i = 0; i < n; ++i) {
        by_low[low[levels[i] % kDigit]++] = static_cast<std::uint32_t>(i);
    }
    for (const std::uint32_t i : by_low) {
        order[high[levels[i] / kDigit]++] = static_cast<std::int32_t>(i);
    }
    double bound = 0;
    for (std::size_t place = n; place-- > 0;) {
        bound = std::max(bound, lengths[order[place]]);
        bounds[place] = bound;
    }
}

}  // namespace recometer

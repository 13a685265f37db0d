// Sorting the best candidates of a user: nothing here depends on an instruction set.
#include <algorithm>

#include "ranking.hpp"

namespace recometer {
namespace {

/// Scramble 64 bits, as hashing.mix in Python does.
std::uint64_t mix(std::uint64_t bits) {
    bits += 0x9E3779B97F4A7C15u;
    bits = (bits ^ (bits >> 30)) * 0xBF58476D1CE4E5B9u;
    bits = (bits ^ (bits >> 27)) * 0x94D049BB133111EBu;
    return bits ^ (bits >> 31);
}

/// Call use(better), where better(a, b) says whether entry a comes before entry b.
template <class Real, class Use>
void with_order(Order order, std::uint64_t key, Use use) {
    using E = Entry<Real>;
    if (order == Order::kItem) {
        use([](const E& a, const E& b) {
            return a.score != b.score ? a.score > b.score : a.item < b.item;
        });
    } else if (order == Order::kItemDescending) {
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
std::int64_t keep_best(Entry<Real>* entries, std::int64_t n, std::int64_t k, Order order,
                       std::uint64_t key) {
    with_order<Real>(order, key, [=](auto better) {
        std::nth_element(entries, entries + (k - 1), entries + n, better);
    });
    const Real last = entries[k - 1].score;
    return std::count_if(entries + k, entries + n,
                         [last](const Entry<Real>& e) { return e.score == last; });
}

template <class Real>
void sort_best(Entry<Real>* entries, std::int64_t n, Order order, std::uint64_t key) {
    with_order<Real>(order, key, [=](auto better) { std::sort(entries, entries + n, better); });
}

template std::int64_t keep_best(Entry<float>*, std::int64_t, std::int64_t, Order, std::uint64_t);
template std::int64_t keep_best(Entry<double>*, std::int64_t, std::int64_t, Order, std::uint64_t);
template void sort_best(Entry<float>*, std::int64_t, Order, std::uint64_t);
template void sort_best(Entry<double>*, std::int64_t, Order, std::uint64_t);

}  // namespace recometer

#include "splits.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <vector>

#include "basics.hpp"
#include "hashing.hpp"

namespace recometer {
namespace {

constexpr std::uint64_t kSign = std::uint64_t{1} << 63;

/// Map a double to an integer, preserving the order of doubles. 0 and -0 map to the same integer.
inline std::uint64_t ascending_bits(double number) {
    std::uint64_t bits;
    std::memcpy(&bits, &number, sizeof bits);
    if (bits == kSign) bits = 0;
    return (bits & kSign) ? ~bits : bits | kSign;
}

struct Entry {
    std::uint64_t key;
    std::uint32_t row;
};

class Grouped {
 public:
    Grouped(const InteractionRows& rows, const UserRange& users, RowOrder order)
        : p(rows), order_(order), ends(users.n), entries(total(users)) {
        std::vector<std::int64_t> next(users.n);
        std::int64_t end = 0;
        for (std::size_t u = 0; u < users.n; ++u) {
            next[u] = end;
            ends[u] = end += users.counts[u];
        }
        for (std::size_t row = 0; row < p.n; ++row) {
            const std::uint32_t user = p.users[row] - users.first;
            if (user >= users.n) continue;
            if (next[user] == ends[user])
                throw std::invalid_argument("a user has more rows than `counts` says");
            if (p.items[row] >= p.n_items) throw std::invalid_argument("no such item");
            entries[next[user]++] = {key(row), static_cast<std::uint32_t>(row)};
        }
        for (std::size_t u = 0; u < users.n; ++u) {
            if (next[u] != ends[u])
                throw std::invalid_argument("a user has fewer rows than `counts` says");
        }
    }

    Entry* begin(std::size_t user) { return &entries[user == 0 ? 0 : ends[user - 1]]; }
    Entry* end(std::size_t user) { return &entries[ends[user]]; }

    bool operator()(const Entry& a, const Entry& b) {
        if (a.key != b.key) return a.key < b.key;
        return order_ == RowOrder::kOldPairs ? settle(b.row, a.row) : settle(a.row, b.row);
    }

    bool decided = true;

 private:
    static std::size_t total(const UserRange& users) {
        std::int64_t sum = 0;
        for (std::size_t u = 0; u < users.n; ++u) sum += users.counts[u];
        return static_cast<std::size_t>(sum);
    }

    std::uint64_t draw(std::size_t row) const {
        return mix(p.user_draws[p.users[row]] ^ p.item_draws[p.items[row]]);
    }

    /// Return a number that decreases as the row's time increases, or 0 if rows have no times.
    std::uint64_t lateness(std::size_t row) const {
        if (p.times == nullptr) return 0;
        if (!p.float_times) return ~(static_cast<std::uint64_t>(p.times[row]) ^ kSign);
        double time;
        std::memcpy(&time, &p.times[row], sizeof time);
        return ~ascending_bits(time);
    }

    std::uint64_t key(std::size_t row) const {
        switch (order_) {
            case RowOrder::kLatest:
                return lateness(row);
            case RowOrder::kDrawn:
                return draw(row);
            default:
                return p.item_draws[p.items[row]];
        }
    }

    /// Whether row a comes before row b if both have the same key. Among identical rows, the row
    /// that is later in the input comes first.
    bool settle(std::uint32_t a, std::uint32_t b) {
        if (a == b) return false;
        if (order_ == RowOrder::kLatest) {
            const std::uint64_t first = draw(a), second = draw(b);
            if (first != second) return first < second;
        }
        // This comparison is only a safeguard, because two rows of a user have the same draw only
        // if they have the same item.
        const std::uint64_t first_item = p.item_draws[p.items[a]];
        const std::uint64_t second_item = p.item_draws[p.items[b]];
        if (first_item != second_item) return first_item < second_item;
        const std::uint64_t first = lateness(a), second = lateness(b);
        if (first != second) return first < second;
        if (p.values == nullptr) {
            decided = false;
        } else {
            const std::uint64_t value_a = ascending_bits(p.values[a]);
            const std::uint64_t value_b = ascending_bits(p.values[b]);
            if (value_a != value_b) return value_a > value_b;
        }
        return a > b;
    }

    const InteractionRows& p;
    const RowOrder order_;
    std::vector<std::int64_t> ends;
    Buffer<Entry> entries;
};

}  // namespace

bool hold_first(const InteractionRows& rows, const UserRange& users, const std::int64_t* sizes,
                RowOrder order, std::uint8_t* held) {
    Grouped grouped(rows, users, order);
    const auto before = [&grouped](const Entry& a, const Entry& b) { return grouped(a, b); };
    for (std::size_t u = 0; u < users.n; ++u) {
        Entry* const begin = grouped.begin(u);
        Entry* const end = grouped.end(u);
        Entry* const last = begin + std::clamp<std::int64_t>(sizes[u], 0, end - begin);
        if (last == begin + 1) {
            std::iter_swap(begin, std::min_element(begin, end, before));
        } else if (last != begin && last != end) {
            std::nth_element(begin, last, end, before);
        }
        for (const Entry* entry = begin; entry != end; ++entry) held[entry->row] = entry < last;
    }
    return grouped.decided;
}

bool number_rows(const InteractionRows& rows, const UserRange& users, RowOrder order,
                 std::uint32_t* places) {
    Grouped grouped(rows, users, order);
    const auto before = [&grouped](const Entry& a, const Entry& b) { return grouped(a, b); };
    const bool by_pair = order == RowOrder::kPairs || order == RowOrder::kOldPairs;
    for (std::size_t u = 0; u < users.n; ++u) {
        Entry* const begin = grouped.begin(u);
        Entry* const end = grouped.end(u);
        std::sort(begin, end, before);
        std::uint32_t place = 0;
        for (const Entry* entry = begin; entry != end; ++entry) {
            if (by_pair && entry != begin && entry->key != (entry - 1)->key) place = 0;
            places[entry->row] = place++;
        }
    }
    return grouped.decided;
}

void hold_below(const InteractionRows& rows, std::uint64_t limit, std::uint8_t* held) {
    for (std::size_t row = 0; row < rows.n; ++row) {
        const std::uint64_t item = rows.item_draws[rows.items[row]];
        held[row] = mix(rows.user_draws[rows.users[row]] ^ item) < limit;
    }
}

void count_codes(const std::uint32_t* codes, std::size_t n, std::size_t n_codes,
                 std::int64_t* counts) {
    for (std::size_t row = 0; row < n; ++row) {
        if (codes[row] >= n_codes) throw std::invalid_argument("a code is too large");
        ++counts[codes[row]];
    }
}

std::int64_t trim_core(const std::uint32_t* users, const std::uint32_t* items, std::size_t n,
                       std::int64_t* user_counts, std::int64_t* item_counts,
                       std::int64_t least_user, std::int64_t least_item, bool backwards,
                       std::uint8_t* kept) {
    std::int64_t removed = 0;
    for (std::size_t step = 0; step < n; ++step) {
        const std::size_t row = backwards ? n - 1 - step : step;
        if (!kept[row]) continue;
        std::int64_t& of_user = user_counts[users[row]];
        std::int64_t& of_item = item_counts[items[row]];
        if (of_user >= least_user && of_item >= least_item) continue;
        kept[row] = 0;
        --of_user;
        --of_item;
        ++removed;
    }
    return removed;
}

}  // namespace recometer

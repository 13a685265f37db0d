#include "tables.hpp"

#include <algorithm>
#include <array>
#include <stdexcept>

namespace recometer {
namespace {

constexpr std::int64_t kRowsCounted = std::int64_t{1} << 30;  // this many rows can be counted in 32
                                                              // bits

/// Find the rows of several items in a range whose items are in ascending order. The searches are
/// interleaved, so that none has to wait for another, and branch-free, because processors could not
/// predict the branches.
template <std::size_t kItems>
void find_some(const std::int32_t* items, const std::int32_t* there, Range range,
               std::int64_t* found) {
    // Per item: the last row whose item is at most items[i], or the first row if there is none.
    std::array<std::int64_t, kItems> at{};
    at.fill(range.begin);
    for (std::int64_t n = range.end - range.begin; n > 1;) {
        const std::int64_t half = n / 2;
        for (std::size_t i = 0; i < kItems; ++i) {
            at[i] += there[at[i] + half] <= items[i] ? half : 0;
        }
        n -= half;
    }
    for (std::size_t i = 0; i < kItems; ++i) {
        const bool possible = items[i] >= 0 && range.begin < range.end;
        found[i] = possible && there[at[i]] == items[i] ? at[i] : -1;
    }
}

}  // namespace

void find_rows(const Ragged& rows, const TableUsers& users, const Ragged& other,
               std::int64_t* found) {
    for (std::size_t user = 0; user < users.n; ++user) {
        const Range there = rows_of(other, users, user);
        const std::int64_t end = rows.indptr[user + 1];
        std::int64_t row = rows.indptr[user];
        for (; row + 8 <= end; row += 8) {
            find_some<8>(rows.items + row, other.items, there, found + row);
        }
        for (; row < end; ++row) find_some<1>(rows.items + row, other.items, there, found + row);
    }
}

template <class Item>
bool rows_ascend(const std::int64_t* indptr, const Item* items, std::int64_t n_items,
                 std::size_t first, std::size_t last) {
    // `falls` counts all rows whose item is not above the previous row's item, even if that row
    // belongs to another user, so that the compiler can vectorise the loop. `allowed` counts
    // those that start a new user.
    std::int64_t falls = 0, allowed = 0;
    for (std::size_t user = first; user < last; ++user) {
        const std::int64_t begin = indptr[user], end = indptr[user + 1];
        if (begin == end) continue;
        if (items[begin] < 0 || items[end - 1] >= n_items) return false;
        if (begin > indptr[first]) allowed += items[begin] <= items[begin - 1] ? 1 : 0;
    }
    for (std::int64_t from = indptr[first] + 1; from < indptr[last]; from += kRowsCounted) {
        const std::int64_t to = std::min(from + kRowsCounted, indptr[last]);
        std::int32_t part = 0;
        for (std::int64_t row = from; row < to; ++row) part += items[row] <= items[row - 1] ? 1 : 0;
        falls += part;
    }
    return falls == allowed;
}

template bool rows_ascend(const std::int64_t*, const std::int32_t*, std::int64_t, std::size_t,
                          std::size_t);
template bool rows_ascend(const std::int64_t*, const std::int64_t*, std::int64_t, std::size_t,
                          std::size_t);

}  // namespace recometer

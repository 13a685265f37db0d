#include "popularity.hpp"

#include <algorithm>
#include <stdexcept>

#include "lists.hpp"

namespace recometer {

void count_items(const Ragged& rows, std::size_t n_rows, const TableUsers& users,
                 const Popularity& popularity) {
    std::fill(popularity.counts, popularity.counts + popularity.n_items, 0);
    if (!count_rows(rows.items, n_rows, popularity.n_items, popularity.counts)) {
        throw std::invalid_argument("no such item");
    }
    for (std::size_t user = 0; user < users.n; ++user) {
        const Range mine = rows_of(rows, users, user);
        std::int64_t sum = 0;
        for (std::int64_t row = mine.begin; row < mine.end; ++row) {
            sum += popularity.counts[static_cast<std::size_t>(rows.items[row])];
        }
        popularity.sums[user] = sum;
    }
}

}  // namespace recometer

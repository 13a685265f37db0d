#include "popularity.hpp"

#include <algorithm>
#include <stdexcept>
#include <vector>

#include "lists.hpp"

namespace recometer {
namespace {

/// Sum the item counts over the rows of each user.
void add_up(const Ragged& rows, const TableUsers& users, const Popularity& popularity) {
    for (std::size_t user = 0; user < users.n; ++user) {
        const Range mine = rows_of(rows, users, user);
        std::int64_t sum = 0;
        for (std::int64_t row = mine.begin; row < mine.end; ++row) {
            sum += popularity.counts[static_cast<std::size_t>(rows.items[row])];
        }
        popularity.sums[user] = sum;
    }
}

/// Assign items to bands. The band of an item depends on the share of rows that belong to more
/// popular items.
void find_bands(const Popularity& popularity) {
    const std::int64_t *const begin = popularity.counts, *const end = begin + popularity.n_items;
    const std::int64_t most = begin == end ? 0 : *std::max_element(begin, end);
    // items[c] is the number of items that have c rows.
    std::vector<std::int64_t> items(static_cast<std::size_t>(most) + 1);
    std::int64_t total = 0;
    for (const std::int64_t* count = begin; count < end; ++count) {
        ++items[static_cast<std::size_t>(*count)];
        total += *count;
    }
    const auto last = static_cast<std::int64_t>(popularity.n_bands) - 1;
    std::vector<std::int8_t> bands(items.size(), static_cast<std::int8_t>(last));
    std::fill(popularity.ranges, popularity.ranges + 2 * popularity.n_bands, 0);
    std::int64_t above = total;
    for (std::size_t number = 1; number < items.size(); ++number) {
        if (!items[number]) continue;
        const auto users = static_cast<std::int64_t>(number);
        above -= users * items[number];
        const std::int64_t band = std::min((last + 1) * above / total, last);
        bands[number] = static_cast<std::int8_t>(band);
        // This loop visits counts in ascending order. Only the last band can contain items with a
        // count of 0.
        std::int64_t* const range = popularity.ranges + 2 * band;
        if (band != last && range[1] == 0) range[0] = users;
        range[1] = users;
    }
    for (std::size_t item = 0; item < popularity.n_items; ++item) {
        popularity.band[item] = bands[static_cast<std::size_t>(popularity.counts[item])];
    }
}

/// Return the band of each item. Items without a band are put in the last band.
std::vector<std::uint8_t> band_of_items(const BandedRows& rows) {
    std::vector<std::uint8_t> bands(rows.n_items, static_cast<std::uint8_t>(rows.n_bands - 1));
    for (std::size_t at = 0; at < rows.n_banded; ++at) {
        const auto item = static_cast<std::size_t>(rows.banded[at]);
        if (item >= rows.n_items) throw std::invalid_argument("no such item");
        // A negative band becomes a large unsigned number, so the next check refuses it.
        bands[item] = static_cast<std::uint8_t>(rows.band[at]);
        if (bands[item] >= rows.n_bands) throw std::invalid_argument("no such band");
    }
    return bands;
}

}  // namespace

void count_items(const Ragged& rows, std::size_t n_rows, const TableUsers& users,
                 const Popularity& popularity) {
    std::fill(popularity.counts, popularity.counts + popularity.n_items, 0);
    if (!count_rows(rows.items, n_rows, popularity.n_items, popularity.counts)) {
        throw std::invalid_argument("no such item");
    }
    add_up(rows, users, popularity);
    find_bands(popularity);
}

void count_in_bands(const BandedRows& rows, std::int64_t cutoff, std::int32_t* counts,
                    float* within) {
    const std::vector<std::uint8_t> band_of = band_of_items(rows);
    std::vector<double> shares(rows.n_bands);
    for (std::size_t user = 0; user < rows.n_users; ++user, counts += rows.n_bands) {
        std::fill(counts, counts + rows.n_bands, 0);
        std::fill(shares.begin(), shares.end(), 0.0);
        for (std::int64_t row = rows.indptr[user]; row < rows.indptr[user + 1]; ++row) {
            if (!rows.counted[row]) continue;
            const std::int64_t item = rows.item[row];
            if (item < 0 || item >= static_cast<std::int64_t>(rows.n_items)) {
                throw std::invalid_argument("no such item");
            }
            const std::size_t band = band_of[static_cast<std::size_t>(item)];
            ++counts[band];
            const std::int64_t above = rows.above[row], places = rows.tied[row] + 1;
            if (above < 0 || above >= cutoff) continue;
            shares[band] +=
                static_cast<double>(std::min(cutoff - above, places)) / static_cast<double>(places);
        }
        for (const double share : shares) *within++ = static_cast<float>(share);
    }
}

}  // namespace recometer

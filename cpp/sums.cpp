#include "sums.hpp"

#include <algorithm>
#include <numeric>
#include <stdexcept>
#include <vector>

namespace recometer {
namespace {

double plain_sum(const double* terms, std::size_t n) {
    double sum = 0.0;
    for (std::size_t row = 0; row < n; ++row) sum += terms[row];
    return sum;
}

double parted_sum(const double* terms, std::size_t n) {
    if (n <= kRowsWithoutParts) return plain_sum(terms, n);
    std::vector<double> parts;
    parts.reserve(n / kRowsOfPart + 1);
    for (std::size_t begin = 0; begin < n; begin += kRowsOfPart) {
        parts.push_back(plain_sum(terms + begin, std::min(kRowsOfPart, n - begin)));
    }
    return parted_sum(parts.data(), parts.size());
}

/// Add up what `term` says of each row and of how many rows of the user come before it.
template <class Term>
void add(const PlacedRows& rows, const Term& term, const std::int64_t* cutoffs,
         std::size_t n_cutoffs, double* sums) {
    std::vector<std::size_t> rising(n_cutoffs);
    std::iota(rising.begin(), rising.end(), std::size_t{0});
    std::sort(rising.begin(), rising.end(), [cutoffs](std::size_t one, std::size_t other) {
        return cutoffs[one] < cutoffs[other];
    });
    std::vector<double> terms;
    for (std::size_t user = 0; user < rows.n_users; ++user) {
        const auto begin = static_cast<std::size_t>(rows.indptr[user]);
        const auto end = static_cast<std::size_t>(rows.indptr[user + 1]);
        std::size_t row = begin;
        double sum = 0.0;  // of the rows before `row`, while they are few
        for (const std::size_t column : rising) {
            for (; row < end && rows.place[row] < cutoffs[column]; ++row) {
                if (row > begin && rows.place[row] < rows.place[row - 1]) {
                    throw std::invalid_argument("the places of a user must ascend");
                }
                sum += term(row, row - begin);
            }
            if (row - begin > kRowsWithoutParts) {
                terms.clear();
                for (std::size_t other = begin; other < row; ++other) {
                    terms.push_back(term(other, other - begin));
                }
                sums[column * rows.n_users + user] = parted_sum(terms.data(), terms.size());
            } else {
                sums[column * rows.n_users + user] = sum;
            }
        }
    }
}

}  // namespace

void add_within(const PlacedRows& rows, const double* terms, const std::int64_t* cutoffs,
                std::size_t n_cutoffs, double* sums) {
    const auto term = [terms](std::size_t row, std::size_t) { return terms[row]; };
    add(rows, term, cutoffs, n_cutoffs, sums);
}

void add_hits(const PlacedRows& rows, HitTerm term, const std::int64_t* cutoffs,
              std::size_t n_cutoffs, double* sums) {
    const auto rank = [&rows](std::size_t row) { return static_cast<double>(rows.place[row] + 1); };
    const auto one = [](std::size_t, std::size_t) { return 1.0; };
    const auto first = [](std::size_t, std::size_t before) { return before == 0 ? 1.0 : 0.0; };
    const auto reciprocal = [&](std::size_t row, std::size_t before) {
        return first(row, before) / rank(row);
    };
    const auto precision = [&](std::size_t row, std::size_t before) {
        return static_cast<double>(before + 1) / rank(row);
    };
    switch (term) {
        case HitTerm::kOne:
            return add(rows, one, cutoffs, n_cutoffs, sums);
        case HitTerm::kFirst:
            return add(rows, first, cutoffs, n_cutoffs, sums);
        case HitTerm::kReciprocalOfFirst:
            return add(rows, reciprocal, cutoffs, n_cutoffs, sums);
        case HitTerm::kPrecision:
            return add(rows, precision, cutoffs, n_cutoffs, sums);
    }
    throw std::invalid_argument("no such term");
}

void add_discounted(const PlacedRows& rows, const Gains& gains, const double* logarithms,
                    std::size_t n_logarithms, const std::int64_t* cutoffs, std::size_t n_cutoffs,
                    double* sums) {
    const auto term = [&](std::size_t row, std::size_t) {
        const auto number = static_cast<std::size_t>(rows.place[row] + 2);
        if (number >= n_logarithms) throw std::invalid_argument("too few logarithms");
        return gains.first[static_cast<std::ptrdiff_t>(row) * gains.stride] / logarithms[number];
    };
    add(rows, term, cutoffs, n_cutoffs, sums);
}

void count_within(const PlacedRows& rows, const std::int64_t* limits, std::int64_t* counts) {
    for (std::size_t user = 0; user < rows.n_users; ++user) {
        const std::int64_t begin = rows.indptr[user], end = rows.indptr[user + 1];
        std::int64_t row = begin;  // places ascend: mostly few are looked at
        while (row < end && rows.place[row] < limits[user]) ++row;
        counts[user] = row - begin;
    }
}

void count_in_bands(const BandedRows& rows, std::int64_t cutoff, std::int32_t* counts,
                    double* within) {
    std::fill(counts, counts + rows.n_users * rows.n_bands, 0);
    std::fill(within, within + rows.n_users * rows.n_bands, 0.0);
    for (std::size_t user = 0; user < rows.n_users; ++user) {
        const std::size_t first = user * rows.n_bands;
        for (std::int64_t row = rows.indptr[user]; row < rows.indptr[user + 1]; ++row) {
            if (!rows.counted[row]) continue;
            const std::int64_t item = rows.item[row];
            if (item < -1 || item >= static_cast<std::int64_t>(rows.n_items)) {
                throw std::invalid_argument("no such item");
            }
            const std::size_t at = item == -1 ? rows.n_items : static_cast<std::size_t>(item);
            // A band below 0 becomes one that is too large.
            const std::size_t band = static_cast<std::uint8_t>(rows.band[at]);
            if (band >= rows.n_bands) throw std::invalid_argument("no such band");
            ++counts[first + band];
            const std::int64_t above = rows.above[row], places = rows.tied[row] + 1;
            if (above < 0 || above >= cutoff) continue;
            within[first + band] +=
                static_cast<double>(std::min(cutoff - above, places)) / static_cast<double>(places);
        }
    }
}

}  // namespace recometer

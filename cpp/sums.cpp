#include "sums.hpp"

#include <algorithm>
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

/// Sum the terms of a user's rows in parts. Used for users with many rows.
template <class Term>
double in_parts(const Term& term, std::size_t begin, std::size_t end) {
    std::vector<double> terms;
    terms.reserve(end - begin);
    for (std::size_t row = begin; row < end; ++row) terms.push_back(term(row, row - begin));
    return parted_sum(terms.data(), terms.size());
}

/// A cut-off and the output for its sums.
struct Column {
    std::int64_t cutoff;
    double* sums;
};

std::vector<Column> rising_columns(const std::int64_t* cutoffs, std::size_t n_cutoffs,
                                   std::size_t n_users, double* sums) {
    std::vector<Column> columns(n_cutoffs);
    for (std::size_t at = 0; at < n_cutoffs; ++at) columns[at] = {cutoffs[at], sums + at * n_users};
    std::sort(columns.begin(), columns.end(),
              [](const Column& a, const Column& b) { return a.cutoff < b.cutoff; });
    return columns;
}

/// For each cut-off, sum term(row, before) over each user's rows within the cut-off. `before` is
/// the number of the user's earlier rows.
template <class Term>
void add(const PlacedRows& rows, const Term term, const std::int64_t* cutoffs,
         std::size_t n_cutoffs, double* sums) {
    const std::size_t n_users = rows.n_users;
    const std::int64_t *const indptr = rows.indptr, *const place = rows.place;
    const auto columns = rising_columns(cutoffs, n_cutoffs, n_users, sums);
    for (std::size_t user = 0; user < n_users; ++user) {
        const auto begin = static_cast<std::size_t>(indptr[user]);
        const auto end = static_cast<std::size_t>(indptr[user + 1]);
        std::size_t row = begin;
        double sum = 0.0;  // the sum of the terms before `row`, computed in parts if there are many
        for (const Column& column : columns) {
            for (; row < end && place[row] < column.cutoff; ++row) {
                if (row > begin && place[row] < place[row - 1]) {
                    throw std::invalid_argument("each user's places must be in ascending order");
                }
                sum += term(row, row - begin);
            }
            // Assigning to `sum` rather than to a new variable lets the loop above keep `sum` in a
            // register.
            if (row - begin > kRowsWithoutParts) sum = in_parts(term, begin, row);
            column.sums[user] = sum;
        }
    }
}

}  // namespace

void add_within(const PlacedRows& rows, const double* terms, const std::int64_t* cutoffs,
                std::size_t n_cutoffs, double* sums) {
    const auto term = [terms](std::size_t row, std::size_t) { return terms[row]; };
    add(rows, term, cutoffs, n_cutoffs, sums);
}

void add_hits(const PlacedRows& rows, const std::int64_t* cutoffs, std::size_t n_cutoffs,
              double* sums) {
    const auto term = [](std::size_t, std::size_t) { return 1.0; };
    add(rows, term, cutoffs, n_cutoffs, sums);
}

void add_precisions(const PlacedRows& rows, const std::int64_t* cutoffs, std::size_t n_cutoffs,
                    double* sums) {
    const auto precision = [place = rows.place](std::size_t row, std::size_t before) {
        return static_cast<double>(before + 1) / static_cast<double>(place[row] + 1);
    };
    add(rows, precision, cutoffs, n_cutoffs, sums);
}

void add_discounted(const PlacedRows& rows, const Gains& gains, const double* logarithms,
                    std::size_t n_logarithms, const std::int64_t* cutoffs, std::size_t n_cutoffs,
                    double* sums) {
    const auto term = [=, place = rows.place](std::size_t row, std::size_t) {
        const auto number = static_cast<std::size_t>(place[row] + 2);
        if (number >= n_logarithms) throw std::invalid_argument("too few logarithms");
        return gains.first[static_cast<std::ptrdiff_t>(row) * gains.stride] / logarithms[number];
    };
    add(rows, term, cutoffs, n_cutoffs, sums);
}

void count_within(const PlacedRows& rows, const std::int64_t* limits, std::int64_t* counts) {
    for (std::size_t user = 0; user < rows.n_users; ++user) {
        const std::int64_t begin = rows.indptr[user], end = rows.indptr[user + 1];
        std::int64_t row = begin;  // places are in ascending order, so the loop usually ends early
        while (row < end && rows.place[row] < limits[user]) ++row;
        counts[user] = row - begin;
    }
}

}  // namespace recometer

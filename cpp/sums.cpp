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

}  // namespace

void add_within(const PlacedRows& rows, const double* terms, const std::int64_t* cutoffs,
                std::size_t n_cutoffs, double* sums) {
    std::vector<std::size_t> rising(n_cutoffs);
    std::iota(rising.begin(), rising.end(), std::size_t{0});
    std::sort(rising.begin(), rising.end(), [cutoffs](std::size_t one, std::size_t other) {
        return cutoffs[one] < cutoffs[other];
    });
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
                sum += terms[row];
            }
            const std::size_t n = row - begin;
            sums[column * rows.n_users + user] =
                n <= kRowsWithoutParts ? sum : parted_sum(terms + begin, n);
        }
    }
}

}  // namespace recometer

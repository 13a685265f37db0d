// Helpers for the bindings of popularity.hpp, whose functions run immediately or in the background.
#pragma once

#include "../popularity.hpp"
#include "arrays.hpp"

namespace recometer {

using Column = In1<std::int64_t>;

/// Check the shapes of the output arrays.
inline Popularity popularity(const Out1<std::int64_t>& counts, const Out1<std::int64_t>& sums,
                             const Out1<std::int8_t>& band, const Out2<std::int64_t>& ranges) {
    require(band.shape(0) == counts.shape(0), "one count and one band per item");
    require(ranges.shape(0) > 0 && ranges.shape(0) < 128, "1 to 127 bands");
    require(ranges.shape(1) == 2, "a range has two ends");
    return {counts.shape(0), ranges.shape(0), counts.data(),
            sums.data(),     band.data(),     ranges.data()};
}

/// Check the shapes of the rows, the bands and the output arrays.
inline BandedRows banded_rows(const Column& indptr, const Column& item, const In1<bool>& counted,
                              const Column& above, const Column& tied, std::size_t n_items,
                              const Column& banded, const In1<std::int8_t>& band,
                              const Out2<std::int32_t>& counts, const Out2<float>& within) {
    const std::size_t n_users = counts.shape(0), n_bands = counts.shape(1);
    require(indptr.shape(0) == n_users + 1, "one row of counts per user");
    require(within.shape(0) == n_users && within.shape(1) == n_bands,
            "counts and within have the same shape");
    require(n_bands > 0 && n_bands < 128, "1 to 127 bands");
    const auto n_rows = static_cast<std::size_t>(indptr.data()[n_users]);
    require(item.shape(0) == n_rows && counted.shape(0) == n_rows && above.shape(0) == n_rows &&
                tied.shape(0) == n_rows,
            "one entry per row");
    require_offsets(indptr.data(), n_users, n_rows);
    require(band.shape(0) == banded.shape(0), "one band per item");
    return {n_users,      n_items,     n_bands,       indptr.data(), item.data(), counted.data(),
            above.data(), tied.data(), band.shape(0), banded.data(), band.data()};
}

}  // namespace recometer

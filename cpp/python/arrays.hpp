// Helpers for the bindings: array arguments, and checks of their shapes and contents.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <stdexcept>

#include "../ranking.hpp"
#include "../tables.hpp"

namespace recometer {

namespace nb = nanobind;

template <class T>
using In1 = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using Strided1 = nb::ndarray<const T, nb::ndim<1>, nb::device::cpu>;
template <class T>
using Out1 = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using In2 = nb::ndarray<const T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
template <class T>
using Out2 = nb::ndarray<T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
template <class T>
using Strided2 = nb::ndarray<const T, nb::ndim<2>, nb::device::cpu>;

/// An argument that is never converted or copied: a different type, dtype or layout is an error.
inline auto exact(const char* name) { return nb::arg(name).noconvert(); }
/// An argument that is never converted or copied, and may be None.
inline auto exact_or_none(const char* name) { return nb::arg(name).noconvert().none(); }

template <class Array>
auto* data_or_null(const std::optional<Array>& array) {
    return array ? array->data() : nullptr;
}

inline void require(bool holds, const char* message) {
    if (!holds) throw std::invalid_argument(message);
}

// A caller may change an array after it has been checked, so each call rechecks all values that it
// uses as positions.

/// Check that the offsets of the users' rows never decrease and are between 0 and `n_rows`.
inline void require_offsets(const std::int64_t* indptr, std::size_t n_users, std::size_t n_rows) {
    bool falls = indptr[0] < 0;
    for (std::size_t user = 0; user < n_users; ++user) falls |= indptr[user + 1] < indptr[user];
    require(!falls, "indptr must not decrease");
    require(static_cast<std::size_t>(indptr[n_users]) <= n_rows, "indptr points beyond the items");
}

inline Ragged ragged(const In1<std::int64_t>& indptr, const In1<std::int32_t>& items,
                     std::size_t n_users) {
    require(indptr.shape(0) == n_users + 1, "indptr must have one more entry than there are users");
    require_offsets(indptr.data(), n_users, items.shape(0));
    return {indptr.data(), items.data()};
}

/// Check that the items of a table are between `lowest` and n_items - 1. `lowest` is 0, or -1 if
/// the table may contain -1 for "no item".
inline void require_items(const Ragged& table, std::size_t n_users, std::int64_t n_items,
                          std::int32_t lowest) {
    std::int32_t least = lowest, most = -1;
    for (std::int64_t row = table.indptr[0]; row < table.indptr[n_users]; ++row) {
        least = std::min(least, table.items[row]);
        most = std::max(most, table.items[row]);
    }
    require(least == lowest && most < n_items, "there is no such item");
}

/// Check that each user's items are in ascending order and between 0 and n_items - 1.
inline void require_ascending(const Ragged& table, std::size_t n_users, std::int64_t n_items) {
    require(rows_ascend(table.indptr, table.items, n_items, 0, n_users),
            "each user's items must be in ascending order, between 0 and n_items - 1");
}

/// Check a table's offsets, and return the whole table.
inline Ragged table(const In1<std::int64_t>& indptr, const In1<std::int32_t>& items) {
    require(indptr.shape(0) >= 1, "indptr must not be empty");
    return ragged(indptr, items, indptr.shape(0) - 1);
}

/// Check the positions of users in a table, and return them.
/// @param indptr the table's offsets
inline TableUsers table_users(std::size_t n, const std::optional<In1<std::int64_t>>& places,
                              const In1<std::int64_t>& indptr) {
    const auto n_there = static_cast<std::int64_t>(indptr.shape(0)) - 1;
    require(places ? places->shape(0) == n : static_cast<std::int64_t>(n) <= n_there,
            "places must have one entry per user");
    for (std::size_t user = 0; places && user < n; ++user) {
        require(-1 <= places->data()[user] && places->data()[user] < n_there, "no such users");
    }
    return {n, data_or_null(places)};
}

inline void require_hashes(const In1<std::uint8_t>& data, std::size_t piece,
                           const Out1<std::uint64_t>& hashes) {
    require(piece > 0, "pieces must not be empty");
    const std::size_t n = data.shape(0);
    require(hashes.shape(0) == n / piece + (n % piece > 0), "hashes must have one entry per piece");
}

// Each of these functions adds the bindings in one file to the module.
void bind_ranking(nb::module_& m);
void bind_rows(nb::module_& m);
void bind_background(nb::module_& m);

}  // namespace recometer

// What the bindings share: arrays as arguments, and the checks of their shapes.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <cstdint>
#include <optional>
#include <stdexcept>

#include "../ranking.hpp"

namespace recometer {

namespace nb = nanobind;

template <class T>
using In1 = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using Out1 = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using In2 = nb::ndarray<const T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
template <class T>
using Out2 = nb::ndarray<T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
template <class T>
using Strided2 = nb::ndarray<const T, nb::ndim<2>, nb::device::cpu>;

/// An argument that is taken as it is: another type, dtype or layout is an error, never a copy.
inline auto exact(const char* name) { return nb::arg(name).noconvert(); }
/// The same, or None.
inline auto exact_or_none(const char* name) { return nb::arg(name).noconvert().none(); }

template <class Array>
auto* data_or_null(const std::optional<Array>& array) {
    return array ? array->data() : nullptr;
}

inline void require(bool holds, const char* message) {
    if (!holds) throw std::invalid_argument(message);
}

inline Ragged ragged(const In1<std::int64_t>& indptr, const In1<std::int32_t>& items,
                     std::size_t n_users) {
    require(indptr.shape(0) == n_users + 1, "indptr must have one entry more than users");
    require(static_cast<std::size_t>(indptr.data()[n_users]) <= items.shape(0),
            "indptr points beyond the items");
    return {indptr.data(), items.data()};
}

// The three files of the module; each gives what it has to the module.
void bind_ranking(nb::module_& m);
void bind_rows(nb::module_& m);

}  // namespace recometer

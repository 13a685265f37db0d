"""Array types, conversion of scalars, and fast versions of NumPy functions for small arrays."""

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Bool = npt.NDArray[np.bool_]
Float64 = npt.NDArray[np.float64]
Float32 = npt.NDArray[np.float32]
Int8 = npt.NDArray[np.int8]
Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]
UInt32 = npt.NDArray[np.uint32]
UInt64 = npt.NDArray[np.uint64]
UInt8 = npt.NDArray[np.uint8]


def plain_number(value: Any) -> Any:
    """Convert a NumPy, torch or JAX scalar to a Python number; return anything else unchanged."""
    single = getattr(value, "shape", None) == () and hasattr(value, "item")
    # `item` returns NumPy's long doubles unchanged, because Python has no such type.
    number = value.item() if single else value
    return float(number) if isinstance(number, np.floating) else number


def any_of(values: Bool | UInt8 | Int64) -> bool:
    """Return whether any entry is True (or positive); faster than ``any()`` for small arrays."""
    return values.size > 0 and bool(values.item(values.argmax()) > 0)


def all_of(values: Bool) -> bool:
    """Return whether all entries are True; faster than ``all()`` for small arrays."""
    return values.size == 0 or bool(values.item(values.argmin()))


def all_equal(numbers: Array) -> bool:
    """Return whether all numbers are equal."""
    return numbers.strides == (0,) or all_of(numbers == numbers[:1])


def largest(numbers: Int64) -> int:
    """Return the largest number, but at least 0; faster than ``max()`` for small arrays."""
    return max(0, int(numbers.item(numbers.argmax()))) if numbers.size else 0


def steps(numbers: Int64) -> Int64:
    """Return the differences between consecutive numbers, like `numpy.diff`, but faster."""
    differences: Int64 = numbers[1:] - numbers[:-1]
    return differences


def begins(sorted_numbers: Array) -> Bool:
    """Return a mask of the numbers that begin a run of equal numbers."""
    mask = np.ones(len(sorted_numbers), np.bool_)
    np.not_equal(sorted_numbers[1:], sorted_numbers[:-1], out=mask[1:])
    return mask


def follow(places: Int64) -> bool:
    """Return whether places are consecutive integers of at least 0, in ascending order."""
    n = places.size
    if n == 0 or places.item(0) < 0 or places.item(n - 1) - places.item(0) != n - 1:
        return False
    return all_of(steps(places) == 1)


def slices(stop: int, size: int, start: int = 0) -> list[slice]:
    """Cut range(start, stop) into slices of `size` numbers; a `size` below 1 counts as 1."""
    step = max(1, size)
    return [slice(first, min(first + step, stop)) for first in range(start, stop, step)]


def laid_out(array: Array, dtype: npt.DTypeLike | None = None) -> Array:
    """Return an array in the kernel's layout (contiguous and aligned); copy only if needed."""
    fits = array.flags.c_contiguous and array.flags.aligned and array.dtype.isnative
    if fits and (dtype is None or dtype == array.dtype):
        return array
    return np.require(array, dtype, ("C", "A", "E"))


def read_only(array: Array) -> Array:
    """Return the array itself if it is read-only, otherwise a read-only view of it."""
    if not array.flags.writeable:
        return array
    view = array.view()
    view.flags.writeable = False
    return view


def mean_of(values: Float64, weights: Float64) -> float:
    """Return the weighted mean, or NaN if the weights sum to 0; finite values never overflow."""
    total = weights.sum()
    if not total > 0:
        return np.nan
    with np.errstate(over="ignore", invalid="ignore"):
        mean = (values * weights).sum() / total
        if not np.isfinite(mean) and np.isfinite(values).all():
            # The sum overflows float64, so scale the values down first.
            share = weights / weights.max()
            mean = (values * 2.0**-64 * share).sum() / share.sum() * 2.0**64
    return float(mean)

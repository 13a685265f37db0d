"""Names of the types of arrays, single numbers, and what NumPy does slowly with small arrays."""

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
    # NumPy's widest floats have no Python type, and are their own items.
    found = value.item() if single else value
    return float(found) if isinstance(found, np.floating) else found


def any_of(which: Bool | UInt8 | Int64) -> bool:
    """Return whether one is True, or above 0: for a few entries sooner than ``which.any()``."""
    return which.size > 0 and bool(which.item(which.argmax()) > 0)


def all_of(which: Bool) -> bool:
    """Return whether all are True: for a few entries sooner than ``which.all()``."""
    return which.size == 0 or bool(which.item(which.argmin()))


def all_equal(numbers: Array) -> bool:
    """Return whether there is no more than one number, as all are the same."""
    return numbers.strides == (0,) or all_of(numbers == numbers[:1])


def largest(numbers: Int64) -> int:
    """Return the largest number, at least 0: for a few entries sooner than ``numbers.max()``."""
    return max(0, int(numbers.item(numbers.argmax()))) if numbers.size else 0


def steps(numbers: Int64) -> Int64:
    """Return by how much each number is above the one before, as `numpy.diff` does, sooner."""
    found: Int64 = numbers[1:] - numbers[:-1]
    return found


def begins(sorted_numbers: Array) -> Bool:
    """Return where another number begins: which ones differ from the one before, or are first."""
    found = np.ones(len(sorted_numbers), np.bool_)
    np.not_equal(sorted_numbers[1:], sorted_numbers[:-1], out=found[1:])
    return found


def follow(places: Int64) -> bool:
    """Return whether places are consecutive ascending integers, the first at least 0."""
    n = places.size
    if n == 0 or places.item(0) < 0 or places.item(n - 1) - places.item(0) != n - 1:
        return False
    return all_of(steps(places) == 1)


def slices(stop: int, size: int, start: int = 0) -> list[slice]:
    """Cut the numbers from `start` on into slices of at most `size` numbers, or of one."""
    step = max(1, size)
    return [slice(first, min(first + step, stop)) for first in range(start, stop, step)]


def laid_out(array: Array, dtype: npt.DTypeLike | None = None) -> Array:
    """Return an array as the kernel reads it, contiguous and aligned: the same one if it is."""
    fits = array.flags.c_contiguous and array.flags.aligned and array.dtype.isnative
    if fits and (dtype is None or dtype == array.dtype):
        return array
    return np.require(array, dtype, ("C", "A", "E"))


def read_only(array: Array) -> Array:
    """Return an array if it is read-only, otherwise a read-only view of it."""
    if not array.flags.writeable:
        return array
    view = array.view()
    view.flags.writeable = False
    return view


def mean_of(values: Float64, weights: Float64) -> float:
    """Return a weighted mean; NaN without weight. Of finite values it is finite."""
    total = weights.sum()
    if not total > 0:
        return np.nan
    with np.errstate(over="ignore", invalid="ignore"):
        mean = (values * weights).sum() / total
        if not np.isfinite(mean) and np.isfinite(values).all():
            # Their sum is beyond float64; that of small parts of them is not.
            share = weights / weights.max()
            mean = (values * 2.0**-64 * share).sum() / share.sum() * 2.0**64
    return float(mean)

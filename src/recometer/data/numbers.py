"""Reads numbers and flags; errors show the first invalid value."""

from __future__ import annotations

import decimal
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from recometer.arrays import Array, Float64, Int64
from recometer.data.tensors import from_any_library, is_a, is_tensor, to_numpy
from recometer.errors import InputError, InputTypeError, argument_text, brief
from recometer.tasks import ROWS_LOOKED_AT, ROWS_PER_TASK, each_block

if TYPE_CHECKING:
    import polars as pl

LARGEST_WHOLE = int(np.finfo(np.float64).max)
EXACT_BITS = 53  # float64 can represent all whole numbers of up to this many bits


def as_array(values: object, noun: str) -> Array:
    """Convert an object to an array; `noun` names it in messages.

    Torch tensors and arrays of other libraries (JAX, CuPy, TensorFlow) share memory with the result
    if they are on the CPU, and are copied from other devices. Floats that NumPy lacks, such as
    bfloat16, become float32, which represents them exactly.
    """
    if type(values) is np.ndarray and values.dtype.kind != "V":
        return values
    if is_tensor(values):
        return to_numpy(values)
    try:
        return from_any_library(values)
    except Exception as error:  # a conversion to an array may raise any exception
        raise InputError(f"{noun}: {_reason(values, error)}") from error


def _reason(values: object, error: Exception) -> str:
    """Explain why an object cannot be converted to an array."""
    rows = list(values) if isinstance(values, list | tuple) else []
    lengths = [len(row) for row in rows if hasattr(row, "__len__")]
    odd = next((row for row, length in enumerate(lengths) if length != lengths[0]), None)
    if odd is None or len(lengths) < len(rows):
        return (
            f"{type(values).__name__} cannot be converted to an array ({type(error).__name__}: "
            f"{error}). Hint: pass a NumPy array of numbers."
        )
    return (
        f"row 0 has {lengths[0]:,} entries, but row {odd:,} has {lengths[odd]:,} (rows are counted "
        "from 0). Hint: all rows need the same number of entries."
    )


def without_mask(array: Array) -> Array:
    """Replace masked entries with NaN."""
    if np.ma.is_masked(array) and array.dtype.kind in "biuf":
        array = np.ma.filled(array.astype(np.float64), np.nan)
    return np.asarray(array)


def numbers(array: npt.ArrayLike, noun: str, hint: str = "or leave them out") -> Float64 | None:
    """Return numbers as float64, or None (which stands for all ones) if all entries are True."""
    array = without_mask(as_array(array, f"The {noun}"))
    if array.dtype.kind == "b" and array.all():
        return None
    if array.dtype.kind in "biuf" or not array.size:
        return array.astype(np.float64, copy=False)
    values = array.ravel().tolist()
    # None becomes NaN; `Interactions` refuses it and names its user and item.
    wrong = [v for v in values if v is not None and not _is_number(v)]
    if array.dtype != object or wrong:
        example = (wrong or values)[0]
        raise InputTypeError(
            f"The {noun} must be numbers, found {type(example).__name__} "
            f"(for instance {brief(example)}). Hint: convert them, {hint}."
        )
    try:
        return array.astype(np.float64)
    except OverflowError:
        large = next(v for v in values if isinstance(v, int) and abs(v) > LARGEST_WHOLE)
        raise InputError(
            f"The {noun} must be numbers that float64 can hold, up to 1.8e308, found a whole "
            f"number of {large.bit_length():,} bits. Hint: divide all by the same number, {hint}."
        ) from None
    except Exception as error:  # converting an object to a number may raise any exception
        raise InputTypeError(
            f"The {noun} must be numbers, but one of them raised {type(error).__name__}: {error}. "
            f"Hint: convert them, {hint}."
        ) from error


def extent(array: Array) -> tuple[float, float]:
    """Return the smallest and largest number; both are NaN if any is, and 1 if there are none."""

    def ends(rows: slice) -> tuple[float, float]:
        return float(array[rows].min()), float(array[rows].max())

    blocks = each_block(len(array), ends, ROWS_PER_TASK, ROWS_LOOKED_AT) or [(1.0, 1.0)]
    low, high = np.transpose(blocks)
    return float(low.min()), float(high.max())


def _is_number(value: Any) -> bool:
    """Return whether a value is a single number; arrays have ``__float__`` but also a length."""
    return isinstance(value, int | float) or (
        hasattr(value, "__float__") and not hasattr(value, "__len__")
    )


def check_whole(floats: Array, noun: str, dtype: np.dtype[Any] | None = None) -> None:
    """Refuse whole numbers that their float type cannot distinguish from adjacent ones.

    `dtype` is the original dtype of the numbers, if it differs from the dtype of `floats`. Numbers
    of 2**24 or more in float32, and 2**53 or more in float64, are refused.
    """
    kind = floats.dtype if dtype is None else dtype
    bits = np.finfo(kind).nmant + 1
    large = (np.abs(floats) >= 2.0**bits) & np.isfinite(floats)
    if large.any():
        row = int(large.argmax())
        raise InputError(
            f"The {noun} are {kind}, which holds whole numbers only up to 2**{bits}, and row {row} "
            f"(counted from 0) has {int(floats[row])}: several numbers may have been rounded to "
            "this one. Hint: read them again as integers (int64; in pandas, dtype='Int64' also "
            "allows missing values)."
        )


def in_float64(array: Array, noun: str) -> Float64:
    """Return scores or ranks as float64; refuse rows where this makes different integers equal."""
    floats = array.astype(np.float64, copy=False)
    if array.dtype.kind not in "iu" or array.dtype.itemsize < 8 or not array.size:
        return floats
    if int(array.min()) >= -(2**EXACT_BITS) and int(array.max()) <= 2**EXACT_BITS:
        return floats
    ordered = np.sort(array, axis=-1)
    rounded = ordered.astype(np.float64)
    equal = (ordered[..., 1:] != ordered[..., :-1]) & (rounded[..., 1:] == rounded[..., :-1])
    if equal.any():
        place = tuple(np.argwhere(equal)[0])
        low, high = ordered[..., :-1][place], ordered[..., 1:][place]
        raise _not_distinct(noun, int(low), int(high))
    return floats


def _not_distinct(noun: str, low: int, high: int) -> InputError:
    return InputError(
        f"The {noun} are ranked as float64, which cannot distinguish {low} and {high}: it holds "
        f"whole numbers only up to 2**{EXACT_BITS}. Hint: subtract the same number from all, or "
        "replace them by their ranks, for instance scipy.stats.rankdata(scores, method='dense')."
    )


def all_numbers(column: Any, noun: str) -> Float64:
    """Return a column of scores or ranks as float64; ones if all are True."""
    large = _large_integers(column)
    array = plain(column)
    floats = numbers(array, noun)
    if floats is None:
        return np.ones(array.shape)
    if array.dtype.kind in "iu":
        return in_float64(array, noun)
    check_distinct(large, noun)
    return floats


def check_distinct(integers: Iterable[int], noun: str) -> None:
    """Refuse integers that differ, but are equal in float64; see `in_float64` for arrays."""
    by_float: dict[float, int] = {}
    for number in integers:
        other = by_float.setdefault(float(number), number)
        if other != number:
            raise _not_distinct(noun, *sorted((number, other)))


def large_in_text(text: pl.Series, parsed: pl.Series) -> list[int]:
    """Return the integers of at least 2**53 among the numbers of a text file."""
    import polars as pl

    large = text.filter(parsed.is_finite() & (parsed.abs() >= 2**EXACT_BITS))
    return large.cast(pl.Int128, strict=False).drop_nulls().to_list()


def _large_integers(column: Any) -> list[int]:
    """Return the integers of at least 2**53 in a column that is not an array of integers.

    Such columns are lists with None or floats, columns with missing entries, 128-bit integers, and
    decimals.
    """
    if is_a(column, "polars", "Series"):
        kind = column.dtype
        wide = str(kind).endswith("128") or kind.is_decimal()
        if not (kind.is_integer() or kind.is_decimal()) or not (wide or column.null_count()):
            return []
        column = column.filter((column >= 2**EXACT_BITS) | (column <= -(2**EXACT_BITS))).to_list()
    elif isinstance(column, np.ndarray):
        column = column.tolist() if column.dtype == object and column.ndim == 1 else []
    if not isinstance(column, list | tuple):
        return []
    return [
        int(value)
        for value in column
        if isinstance(value, int | np.integer | decimal.Decimal) and abs(value) >= 2**EXACT_BITS
    ]


def flag(name: str, value: object) -> bool:
    """Check that an option is True or False, and return it as a bool."""
    if not isinstance(value, bool | np.bool_):
        raise InputTypeError(f"{name}={brief(value)} must be True or False.")
    return bool(value)


def seed_of(seed: int) -> int:
    """Check a seed and return it as an int."""
    is_integer = isinstance(seed, int | np.integer) and not isinstance(seed, bool)
    if not is_integer or not 0 <= seed < 2**63:
        raise InputError(
            f"{argument_text('seed', seed)} must be a whole number, at least 0 and below 2**63."
        )
    return int(seed)


def plain(column: Any) -> Array:
    """Convert a column to NumPy; nulls become NaN or None, and 128-bit integers become float64."""
    if not is_a(column, "polars", "Series"):
        return np.asarray(as_array(column, "A column"))
    import polars as pl

    wide = str(column.dtype).endswith("128")
    array: Array = (column.cast(pl.Float64) if wide else column).to_numpy()
    return array


def sizes_of(sizes: object, n_rows: int) -> Int64:
    """Check the numbers of rows per query and their sum, and return them as int64 [n_queries]."""
    hint = (
        "Hint: group= of LightGBM and sizes= of rm.Pairs.of take the number of rows of each query."
    )
    if sizes is None:
        raise InputError(
            f"The data have no groups, but ranking metrics are means over queries. {hint}"
        )
    counts = as_array(sizes, "The groups")
    are_counts = counts.ndim == 1 and (counts.dtype.kind in "iu" or not counts.size)
    if not are_counts or (counts < 0).any():
        raise InputError(
            "The groups must be whole numbers of rows, at least 0, in one dimension, found "
            f"{brief(sizes)}. {hint}"
        )
    largest = int(counts.max(initial=0))  # the sum of huge numbers would overflow
    total = largest if largest > n_rows else int(counts.sum())
    if total != n_rows:
        raise InputError(f"The groups have {total:,} rows, but there are {n_rows:,} labels.")
    return counts.astype(np.int64)


def size_in_words(n_bytes: float) -> str:
    """Format a number of bytes with a unit: ``"12 kB"``, ``"3.4 MB"``."""
    if n_bytes >= 10**9:
        return f"{n_bytes / 1e9:,.1f} GB"
    return f"{n_bytes / 1e6:,.1f} MB" if n_bytes >= 10**6 else f"{n_bytes / 1e3:,.1f} kB"

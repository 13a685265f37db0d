"""What must be numbers, as arrays of them, or True or False: an error says what was found."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from recometer.arrays import Array, Float64
from recometer.data.tensors import is_a
from recometer.errors import InputError, InputTypeError, brief
from recometer.tasks import ROWS_LOOKED_AT, ROWS_PER_TASK, each_block

LARGEST_WHOLE = int(np.finfo(np.float64).max)


def as_array(given: object, what: str) -> Array:
    """Return what was given as an array; `what` it is stands in the message if it is none.

    Raises
    ------
    InputError
        If rows have unequal lengths, or NumPy cannot read the object.
    """
    try:
        return np.asanyarray(given)
    except Exception as error:  # an object may raise anything when it is asked for its array
        raise InputError(f"{what}: {_why(given, error)}") from error


def _why(given: object, error: Exception) -> str:
    """Say why something is not an array."""
    rows = list(given) if isinstance(given, list | tuple) else []
    lengths = [len(row) for row in rows if hasattr(row, "__len__")]
    odd = next((row for row, length in enumerate(lengths) if length != lengths[0]), None)
    if odd is None or len(lengths) < len(rows):
        return (
            f"{type(given).__name__} makes no array ({type(error).__name__}: {error}). Hint: pass "
            "a NumPy array of numbers."
        )
    return (
        f"row 0 has {lengths[0]:,} entries, row {odd:,} has {lengths[odd]:,} (rows are counted "
        "from 0). Hint: every row needs as many numbers."
    )


def numbers(array: npt.ArrayLike, what: str, hint: str = "or leave them out") -> Float64 | None:
    """Return numbers as float64; None where all are True, which says nothing beyond the row.

    Raises
    ------
    InputTypeError
        If an entry is not a number.
    InputError
        If a whole number is too large for float64.
    """
    array = np.asarray(as_array(array, f"The {what}"))
    if array.dtype.kind == "b" and array.all():
        return None
    if array.dtype.kind in "biuf" or not array.size:
        return array.astype(np.float64, copy=False)
    values = array.ravel().tolist()
    # None is a missing value here: it becomes NaN, which `Interactions` names by its ids.
    wrong = [v for v in values if v is not None and not _is_number(v)]
    if array.dtype != object or wrong:
        example = (wrong or values)[0]
        raise InputTypeError(
            f"The {what} must be numbers, found {type(example).__name__} "
            f"(for instance {brief(example)}). Hint: convert them, {hint}."
        )
    try:
        return array.astype(np.float64)
    except OverflowError:
        large = next(v for v in values if isinstance(v, int) and abs(v) > LARGEST_WHOLE)
        raise InputError(
            f"The {what} must be numbers that float64 can hold, up to 1.8e308, found a whole "
            f"number of {large.bit_length():,} bits. Hint: divide all by the same number, {hint}."
        ) from None
    except Exception as error:  # an object may raise anything when it is asked for its number
        raise InputTypeError(
            f"The {what} must be numbers, but one of them raised {type(error).__name__}: {error}. "
            f"Hint: convert them, {hint}."
        ) from error


def extent(array: Array) -> tuple[float, float]:
    """Return the smallest and the largest number: NaN if one is, and 1 and 1 if there are none."""

    def ends(rows: slice) -> tuple[float, float]:
        return float(array[rows].min()), float(array[rows].max())

    found = each_block(len(array), ends, ROWS_PER_TASK, ROWS_LOOKED_AT) or [(1.0, 1.0)]
    low, high = np.transpose(found)
    return float(low.min()), float(high.max())


def _is_number(value: Any) -> bool:
    """Return whether a value is one number: lists are several, and arrays have ``__float__``."""
    return isinstance(value, int | float) or (
        hasattr(value, "__float__") and not hasattr(value, "__len__")
    )


def all_numbers(column: Any, what: str) -> Float64:
    """Return a column of numbers as float64; as `numbers` does, but 1 where all are True."""
    array = plain(column)
    found = numbers(array, what)
    return np.ones(array.shape) if found is None else found


def flag(name: str, given: object) -> bool:
    """Return an option that is either True or False.

    Raises
    ------
    InputTypeError
        If it is neither. `name` stands in the message.
    """
    if not isinstance(given, bool | np.bool_):
        raise InputTypeError(f"{name}={brief(given)} must be True or False.")
    return bool(given)


def plain(column: Any) -> Array:
    """Return a column as a NumPy array; nulls become NaN or None, integers of 128 bits float64."""
    if not is_a(column, "polars", "Series"):
        return np.asarray(column)
    import polars as pl

    wide = str(column.dtype).endswith("128")
    array: Array = (column.cast(pl.Float64) if wide else column).to_numpy()
    return array

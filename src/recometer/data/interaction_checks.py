"""What the fields of `Interactions` must be: also of those that are built by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from recometer.arrays import Array
from recometer.data.columns import Columns
from recometer.data.ids import as_ids
from recometer.data.rows import MAX_NUMBER, ascending
from recometer.errors import InputError, InputTypeError, brief
from recometer.tasks import any_in_blocks

if TYPE_CHECKING:
    from recometer.data.interactions import Interactions

DTYPES = {
    "indptr": ("int64",),
    "items": ("int32",),
    "values": ("float64",),
    "times": ("int64", "float64"),
    "copies": ("int64",),
    "largest": ("float64",),
    "user_ids": ("int64", "uint64", "object"),
    "item_ids": ("int64", "uint64", "object"),
}
OPTIONAL = ("values", "times", "copies", "largest", "user_ids", "item_ids")
# Positions of which nearly none is named are ids that were taken for positions. Fewer cost too
# little to refuse them: what is counted of each takes 2 GB.
MANY_POSITIONS = 2**28
POSITIONS_PER_ENTRY = 1000


def check_fields(data: Interactions) -> None:
    """Raise unless every field is of its type."""
    check_count(data.n_items, "items")
    if not isinstance(data.columns, Columns | None):
        raise InputTypeError(
            f"columns must be a Columns, or None, found {type(data.columns).__name__}. Hint: leave "
            "it out."
        )
    for name, dtypes in DTYPES.items():
        array = getattr(data, name)
        if array is None and name in OPTIONAL:
            continue
        if not isinstance(array, np.ndarray):
            raise InputTypeError(
                f"{name} must be a NumPy array of {' or '.join(dtypes)}, found "
                f"{type(array).__name__}. Hint: rm.Interactions.of(data) reads almost anything."
            )
        _check_array(name, array)


def check_order(data: Interactions) -> None:
    """Raise unless the users' rows follow one another, and their items ascend."""
    indptr, items = data.indptr, data.items
    if not len(indptr) or indptr[0] != 0 or indptr[-1] != len(items):
        raise InputError(f"indptr must begin with 0 and end with {len(items)}.")
    if (indptr[1:] < indptr[:-1]).any():
        raise InputError("indptr must not decrease.")
    if not ascending(indptr, items, data.n_items):
        if items.min() < 0 or items.max() >= data.n_items:
            raise InputError(f"items must lie between 0 and n_items - 1 = {data.n_items - 1}.")
        raise InputError("The items of a user must ascend, without duplicates.")


def check_rows(data: Interactions) -> None:
    """Raise unless the arrays fit together, and every time is a number."""
    n_rows = len(data.items)
    lengths = dict.fromkeys(("values", "times", "copies", "largest"), n_rows)
    lengths |= {"user_ids": data.n_users, "item_ids": data.n_items}
    for name, n in lengths.items():
        array = getattr(data, name)
        if array is not None:
            _check_array(name, array, n)
            if name.endswith("_ids"):
                _check_ids(name, array)
    times = data.times
    of_floats = times is not None and times.dtype.kind == "f"
    if times is not None and of_floats and any_in_blocks(n_rows, lambda one: np.isnan(times[one])):
        raise InputError("times must not be NaN.")


def check_count(n: object, what: str) -> None:
    """Raise unless this is how many users or items there can be."""
    if isinstance(n, bool) or not isinstance(n, int | np.integer):
        raise InputTypeError(f"The number of {what} must be a whole number, found {brief(n)}.")
    if not 0 <= n <= MAX_NUMBER:
        raise InputError(f"There are {n:,} {what}, but at most {MAX_NUMBER:,} are possible.")


def check_positions(n: int, n_entries: int, whose: str, named: str) -> None:
    """Refuse more positions than can be meant, before memory is taken for each.

    `whose` positions they are, and how many entries are `named`, stands in the message.
    """
    if n > MANY_POSITIONS and n > POSITIONS_PER_ENTRY * n_entries:
        raise InputError(
            f"{whose} are the positions 0 to {n - 1:,}, but only {n_entries:,} {named}. Hint: "
            "numbers that are ids need a form that has ids, such as a frame with the columns user "
            "and item, or a dict from user to items."
        )


def _check_array(name: str, array: Array, n: int | None = None) -> None:
    fits = array.dtype.name in DTYPES[name] and array.ndim == 1
    if not fits or (n is not None and len(array) != n):
        raise InputError(
            f"{name} must be {' or '.join(DTYPES[name])} [{'any' if n is None else n}], "
            f"found {array.dtype.name} {list(array.shape)}."
        )


def _check_ids(name: str, ids: Array) -> None:
    """Raise unless ids are sorted and distinct, none of them missing."""
    try:
        with np.errstate(invalid="ignore"):  # NaN, of which `as_ids` says where
            fit = bool((ids[1:] > ids[:-1]).all())
        hash(ids[0] if len(ids) and ids.dtype == object else None)
    except (TypeError, ValueError):
        fit = False
    if not fit or len(ids) == 1:
        as_ids(ids, name)  # says which are missing, or of several types
    if not fit:
        raise InputError(
            f"{name} must be sorted and distinct, of a type that can be compared and hashed."
        )

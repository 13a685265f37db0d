"""Columns of Arrow tables as arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from recometer.arrays import Array
from recometer.errors import InputError


def split(table: Any, n_tables: int) -> list[Any]:
    """Return the rows of each table, by their number."""
    import pyarrow.compute as pc

    return [
        table.filter(pc.equal(table["t"], number)).drop_columns(["t"]) for number in range(n_tables)
    ]


def ids(column: Any) -> Array:
    """Return a column of ids as an array."""
    return (
        column.to_numpy() if str(column.type) == "int64" else np.array(column.to_pylist(), object)
    )


def user_ids(table: Any, by: Sequence[str]) -> Array:
    """Return the ids of users, or with two columns pairs of users and sessions, as an array."""
    columns = [ids(table[name]) for name in by]
    if len(columns) == 1:
        return columns[0]
    pairs = zip(*(column.tolist() for column in columns), strict=True)
    return np.fromiter(pairs, object, table.num_rows)


def numbers(column: Any) -> Array:
    """Return a column of numbers as an array, NaN where one is missing."""
    found: Array = column.to_numpy(zero_copy_only=False).astype(np.float64, copy=False)
    return found


def vectors(column: Any, n_factors: int | None, what: str) -> Array:
    """Return a column of arrays as rows, which must be of one length and complete."""
    import pyarrow.compute as pc

    lengths = pc.list_value_length(column).to_numpy(zero_copy_only=False)
    wrong = lengths != (lengths[0] if n_factors is None and len(lengths) else n_factors)
    flat = pc.list_flatten(column).combine_chunks()
    if wrong.any() or flat.null_count:
        raise InputError(
            f"A row of {what} has {lengths[wrong][0] if wrong.any() else 'missing'} factors, "
            f"others have {n_factors if n_factors is not None else lengths[0]}. Hint: all rows "
            "need as many numbers."
        )
    width = n_factors if n_factors is not None else int(lengths[0]) if len(lengths) else 0
    return np.asarray(flat.to_numpy(zero_copy_only=False)).reshape(len(lengths), width)

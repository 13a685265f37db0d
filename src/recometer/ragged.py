"""Ragged tables, in which rows indptr[u]:indptr[u + 1] belong to user u, and records of columns.

A field's metadata says whether the field has an entry per row or per user:

    item: Int64 = field(metadata=PER_ROW)
    depth: Int64 = field(metadata=PER_USER)

Records use the metadata to check shapes, and to select users or rows. A record in a field has the
same users as the outer record. A field without metadata applies to all users.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final, TypeVar

import numpy as np
import numpy.typing as npt

from recometer.arrays import Array, Bool, Float64, Int64, all_of, follow, steps
from recometer.errors import InternalError

PER_ROW: Final = {"per": "row"}
PER_USER: Final = {"per": "user"}
PER_ITEM: Final = {"per": "item"}
OFFSETS: Final = {"per": "offset"}  # for `indptr`, the offsets of each user's rows

# `sums_of` splits values after this many leading bits of the largest value. If the largest value is
# below SMALLEST_CUT, it adds the values without splitting them.
BITS_OF_CUT, SMALLEST_CUT = 26, 1e-280

AnyRecord = TypeVar("AnyRecord", bound="Record")
AnyTable = TypeVar("AnyTable", bound="Table")


def per_row_of(field: str) -> dict[str, str]:
    """Return the metadata for a column with an entry per row of the `Table` in another field."""
    return {"per": "row", "of": field}


def per_user(absent: int) -> dict[str, Any]:
    """Return the metadata for a column with an entry per user; missing users get `absent`."""
    return {"per": "user", "absent": absent}


class Record:
    """A frozen dataclass whose fields declare whether they have an entry per row, user or item."""

    if TYPE_CHECKING:

        @property
        def n_users(self) -> int:
            """Number of users."""

        @property
        def n_items(self) -> int:
            """Number of items, for columns with an entry per item."""

    def __post_init__(self) -> None:
        """Check that every column has an entry per row, user or item.

        Raises
        ------
        InternalError
            If the shape of a column is wrong; the message names the column.
        """
        kind: Any = type(self)
        sizes = {None: self.n_users, "user": self.n_users}
        if isinstance(self, Table):
            sizes["row"] = int(self.indptr[-1])
        for field, per in _shaped(kind):
            value = getattr(self, field.name)
            if value is None or (per is None and not isinstance(value, Record)):
                continue
            expected = sizes[per] if per in sizes else self._size_of(field)
            n_entries = value.n_users if isinstance(value, Record) else value.shape[0]
            if n_entries != expected:
                name = f"{kind.__name__}.{field.name}"
                raise InternalError(
                    f"{name} must have one entry per {per or 'user'}: {n_entries} of {expected}."
                )

    def _size_of(self, field: dataclasses.Field[Any]) -> int:
        """Return the length of a column with an entry per item, or per row of another table."""
        per_item = field.metadata["per"] == "item"
        return self.n_items if per_item else int(self._table_of(field).indptr[-1])

    def users(self: AnyRecord, chosen: slice | Int64) -> AnyRecord:
        """Return the record with only the users in `chosen`.

        Parameters
        ----------
        chosen
            A slice of users, which copies nothing; or their positions, int64 [n_taken], with -1 for
            a missing user.
        """
        if isinstance(chosen, slice) and chosen == slice(0, self.n_users):
            return self
        changes: dict[str, Any] = {}
        rows_of_table: dict[int, tuple[Int64, Int64 | slice]] = {}  # the rows of each table
        for field, value in self._columns():
            per = field.metadata.get("per")
            if isinstance(value, Record):
                changes[field.name] = value.users(chosen)
            elif per == "user":
                changes[field.name] = _entries_of(value, chosen, field.metadata.get("absent", 0))
            elif per in ("row", "offset"):
                table_indptr = self._table_of(field).indptr
                if id(table_indptr) not in rows_of_table:
                    rows_of_table[id(table_indptr)] = _rows_of(table_indptr, chosen)
                indptr, rows = rows_of_table[id(table_indptr)]
                changes[field.name] = indptr if per == "offset" else value[rows]
        return dataclasses.replace(self, **changes)  # type: ignore[type-var]

    def _columns(self) -> Iterator[tuple[dataclasses.Field[Any], Any]]:
        """Yield the fields that are not None, with their values."""
        kind: Any = type(self)
        for field in _fields(kind):
            value = getattr(self, field.name)
            if value is not None:
                yield field, value

    def _table_of(self, field: dataclasses.Field[Any]) -> Table:
        """Return the table whose rows a field describes."""
        table = getattr(self, field.metadata["of"]) if "of" in field.metadata else self
        if not isinstance(table, Table):
            raise InternalError(f"{type(self).__name__}.{field.name} belongs to a missing table.")
        return table


class Table(Record):
    """A record with rows: those of user u are ``indptr[u]:indptr[u + 1]``."""

    if TYPE_CHECKING:

        @property
        def indptr(self) -> Int64:
            """The offsets at which the rows of each user begin: int64 [n_users + 1]."""

    @property
    def n_users(self) -> int:
        """Number of users."""
        return len(self.indptr) - 1

    @property
    def user(self) -> Int64:
        """The user of each row: int64 [n_rows]."""
        return users_of(self.indptr)

    def rows(self: AnyTable, chosen: Array) -> AnyTable:
        """Return the table with only the rows in `chosen`; columns per user stay unchanged.

        Parameters
        ----------
        chosen
            A mask of the rows to keep, bool [n_rows]; or their positions, int64 [n_taken], in
            ascending order of users. A row may occur several times.
        """
        changes: dict[str, Any] = {}
        for field, value in self._columns():
            per = field.metadata.get("per")
            if isinstance(value, Table):
                changes[field.name] = value.rows(chosen)
            elif per == "row" and "of" not in field.metadata:
                changes[field.name] = value[chosen]
            elif per == "offset" and chosen.dtype == bool:
                changes[field.name] = offsets(chosen, self.indptr)
            elif per == "offset":
                counts = np.bincount(self.user[chosen], minlength=self.n_users)
                changes[field.name] = indptr_of(counts)
        return dataclasses.replace(self, **changes)  # type: ignore[type-var]


@functools.cache
def _fields(record: Any) -> tuple[dataclasses.Field[Any], ...]:
    """Return the fields that the constructor of a record takes."""
    fields = dataclasses.fields(record)
    return tuple(field for field in fields if field.init)


@functools.cache
def _shaped(record: Any) -> tuple[tuple[dataclasses.Field[Any], str | None], ...]:
    """Return the fields to check, and whether they have an entry per "row", "user" or "item"."""
    described = ((field, field.metadata.get("per")) for field in _fields(record))
    return tuple((field, per) for field, per in described if per in ("row", "user", "item", None))


def _rows_of(indptr: Int64, chosen: slice | Int64) -> tuple[Int64, slice | Int64]:
    """Return the indptr of the users in `chosen`, and the positions of their rows."""
    if not isinstance(chosen, slice):
        return take(indptr, chosen)
    start, stop, _ = chosen.indices(len(indptr) - 1)
    bounds = indptr[start : stop + 1]
    first = int(bounds[0])
    return bounds - first if first else bounds, slice(first, int(bounds[-1]))


def _entries_of(column: Array, chosen: slice | Int64, absent: int) -> Array:
    """Return the entries of the users in `chosen`, and `absent` for user -1."""
    if isinstance(chosen, slice):
        return column[chosen]
    if not len(column):
        return np.full((len(chosen), *column.shape[1:]), absent, column.dtype)
    entries: Array = column[chosen]
    entries[chosen < 0] = absent
    return entries


def take(indptr: Int64, users: Int64) -> tuple[Int64, Int64]:
    """Return the rows of the given users.

    Parameters
    ----------
    indptr : int64 [n_users + 1]
    users : int64 [n_taken]
        -1 stands for a user without rows.

    Returns
    -------
    taken_indptr : int64 [n_taken + 1]
    rows : int64 [taken_indptr[-1]]
        The positions of these users' rows in the whole table.
    """
    counts = lengths(indptr, users)
    taken_indptr = indptr_of(counts)
    rows: Int64 = (indptr[users] - taken_indptr[:-1]).repeat(counts) + np.arange(taken_indptr[-1])
    return taken_indptr, rows


def take_or_cut(indptr: Int64, users: Int64) -> tuple[Int64, Int64 | slice]:
    """Return the rows of the given users like `take`, but as a slice if users are consecutive."""
    if follow(users):
        if len(users) == len(indptr) - 1:
            return indptr, slice(0, int(indptr[-1]))
        return _rows_of(indptr, slice(int(users[0]), int(users[0]) + len(users)))
    return take(indptr, users)


def lengths(indptr: Int64, users: Int64 | None) -> Int64:
    """Return the number of rows of each user, and 0 for user -1; None means all users."""
    if users is None:
        return steps(indptr)
    return np.where(users < 0, 0, indptr[users + 1] - indptr[users])


def sums_of(numbers: npt.NDArray[np.integer], values: Float64, n: int) -> Float64:
    """Return the sum of the values that belong to each number from 0 to n - 1: float64 [n].

    The order of the rows does not affect the sums. Plain addition would round at every step.
    Therefore, each value is split into a multiple of a power of two and a small remainder. Sums of
    up to 2^26 multiples are exact, and the rounding errors of the remainders are negligible
    relative to the largest value.
    """
    largest = max(values.max(initial=0.0), -values.min(initial=0.0))
    if not np.isfinite(largest) or largest < SMALLEST_CUT:
        return np.bincount(numbers, weights=values, minlength=n).astype(np.float64, copy=False)
    unit = np.ldexp(1.0, int(np.frexp(largest)[1]) - BITS_OF_CUT)
    parts = np.divide(values, unit)
    np.multiply(np.rint(parts, out=parts), unit, out=parts)
    sums = np.bincount(numbers, weights=parts, minlength=n)
    rests = np.bincount(numbers, weights=np.subtract(values, parts, out=parts), minlength=n)
    return (sums + rests).astype(np.float64, copy=False)


def column_sums(table: Array) -> Array:
    """Add up each column pairwise, which is more accurate than ``sum(axis=0)``."""
    return np.array([column.sum() for column in table.T], dtype=table[:0].sum(axis=0).dtype)


def indptr_of(counts: Int64 | Bool) -> Int64:
    """Return the indptr of a table from the number of rows of each user."""
    indptr = np.empty(len(counts) + 1, np.int64)
    indptr[0] = 0
    np.add.accumulate(counts, out=indptr[1:])
    return indptr


def blocks(indptr: Int64, n_rows: int, n_users: int) -> list[slice]:
    """Split users into blocks of up to `n_users` users and `n_rows` rows, but at least one user."""
    slices, start, end = [], 0, len(indptr) - 1
    while start < end:
        last = int(np.searchsorted(indptr, indptr[start] + n_rows, side="right")) - 1
        slices.append(slice(start, min(end, start + n_users, max(start + 1, last))))
        start = slices[-1].stop
    return slices


def users_of(indptr: Int64) -> Int64:
    """Return the user of each row."""
    return np.arange(len(indptr) - 1).repeat(steps(indptr))


def offsets(keep: Bool, indptr: Int64) -> Int64:
    """Return the indptr of a table reduced to the rows that the mask `keep` selects."""
    return indptr if all_of(keep) else indptr_of(keep)[indptr]


def pairs(users: Int64, items: npt.NDArray[np.integer], n_items: int) -> Int64:
    """Return a unique key for each (user, item) pair; keys sort like the pairs."""
    numbers: Int64 = users * np.int64(n_items) + items
    return numbers


def among(numbers: Int64, ascending: Int64) -> Bool:
    """Return a mask of the numbers that occur in another array, which must be sorted."""
    if not len(ascending):
        return np.zeros(numbers.shape, bool)
    position = np.minimum(np.searchsorted(ascending, numbers), len(ascending) - 1)
    is_member: Bool = ascending[position] == numbers
    return is_member


def numbered(indptr: Int64, items: npt.NDArray[np.integer], n_items: int) -> Int64:
    """Return the key of each row's (user, item) pair; see `pairs`."""
    return pairs(users_of(indptr), items, n_items)

"""The rows to split: their users, items, times and values, each of which is read on first use."""

from __future__ import annotations

import copy
import dataclasses
import datetime
import os
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from recometer import _kernel
from recometer.arrays import Array, Bool, Int64, UInt32, UInt64
from recometer.data.factor_files import read_ids
from recometer.data.ids import as_ids, encode, match, user_keys
from recometer.draws import mix, mixed_seed
from recometer.errors import InputError, python_or_command
from recometer.tasks import ROWS_PER_TASK, each_block

MAX_ROWS = 2**32 - 1
UTC = datetime.timezone.utc
OF_ITEMS, OF_PLACES = 0x6974656D73, 0x706C61636573  # salts for independent draws from one seed
SPARE = 2**20  # a range of ids counts as dense if it is shorter than 4 x rows + SPARE


@dataclasses.dataclass(frozen=True)
class Coded:
    """Users or items, numbered from 0 in the order of their ids; some of the codes may not occur.

    Attributes
    ----------
    codes : uint32 [n_rows]
    n : int
        The number of possible codes: every code is below it.
    low : int or None
        The id of code 0, if ids are integers and codes are their distances from it.
    ids : [n] or None
        The id of each code, if `low` is None. If both are None, codes are positions.
    before : Coded or None
        The codes of all rows, if only some of the rows were selected. They show which ids exist
        even if none of their rows was selected.
    """

    codes: UInt32
    n: int
    low: int | None = None
    ids: Array | None = None
    before: Coded | None = None

    @cached_property
    def keys(self) -> UInt64:
        """The key of each code, on which its random draws depend."""
        if self.low is None:
            return user_keys(self.ids, self.n)
        return np.arange(self.n, dtype=np.uint64) + np.uint64(self.low % 2**64)

    def draws(self, seed: int, salt: int = 0) -> UInt64:
        """Return a random number for each code; a different `salt` gives different numbers."""
        return mix(mix(self.keys ^ np.uint64(salt)) ^ mixed_seed(seed))

    @cached_property
    def counts(self) -> Int64:
        """The number of rows with each code."""
        counts = np.zeros(self.n, np.int64)
        _kernel.count_codes(self.codes, counts)
        return counts

    @property
    def n_known(self) -> int:
        """The number of users or items, including known ones without rows."""
        return self.n if self.low is None else int(np.count_nonzero(self.counts))

    def ids_of(self, codes: Array) -> Array:
        """Return the ids of codes, or their positions if there are no ids."""
        if self.low is not None:
            return codes.astype(np.int64) + self.low
        return codes.astype(np.int64) if self.ids is None else self.ids[codes]

    def find(self, ids: object, kind: str) -> Int64:
        """Return the codes of ids, or of the ids in a file, or raise an error if one is unknown."""
        all_ids = self.ids_of(np.arange(self.n))
        if isinstance(ids, str | os.PathLike):
            ids = read_ids(Path(ids), kind, None, all_ids)
        codes = match(ids, all_ids, f"given {kind}s", f"{kind}s of the data")
        if self.low is not None:
            counts = (self.before or self).counts
            codes[(codes >= 0) & (counts[codes] == 0)] = -1  # unused numbers are not ids
        if (codes < 0).any():
            first = as_ids(ids, f"given {kind}s").tolist()[int(np.argmax(codes < 0))]
            raise InputError(
                f"{int((codes < 0).sum())} of the given {kind}s are not in the data (the first: "
                f"{first!r}). Hint: are they written as in the data?"
            )
        return codes

    def select(self, rows: Bool) -> Coded:
        """Return only the rows in a mask, with the same codes."""
        return Coded(self.codes[rows], self.n, self.low, self.ids, self.before or self)

    @classmethod
    def of(cls, column: Any, label: str) -> Coded:
        """Encode the ids in a column."""
        dense = _dense(column)
        if dense is not None:
            return dense
        codes, distinct = encode(column, label)
        return cls(codes.astype(np.uint32), len(distinct), None, distinct)


def _dense(column: Any) -> Coded | None:
    """Return integer ids as distances from the lowest id, or None if their range is not dense."""
    if getattr(column, "null_count", int)():
        return None
    array = column.to_numpy() if hasattr(column, "null_count") else np.asarray(column)
    if array.dtype.kind not in "iu" or array.ndim != 1 or not len(array):
        return None
    bounds = each_block(
        len(array), lambda part: (array[part].min(), array[part].max()), ROWS_PER_TASK
    )
    low, high = int(min(low for low, _ in bounds)), int(max(high for _, high in bounds))
    if high - low >= 4 * len(array) + SPARE or high - low >= 2**32 or high >= 2**63:
        return None
    # Start at 0 if this costs little memory, because 32-bit ids can then serve as codes unchanged.
    low = 0 if low >= 0 and high < 4 * len(array) + SPARE and high < 2**32 else low
    if low == 0 and array.dtype.itemsize == 4:
        codes = np.ascontiguousarray(array).view(np.uint32)
    else:
        codes = np.empty(len(array), np.uint32)
        # Convert shorter integers to int64, because the differences may not fit into their dtype.
        wide = array if array.dtype.itemsize >= 4 else array.astype(np.int64)

        def shift(part: slice) -> None:
            np.subtract(wide[part], low, out=codes[part], casting="unsafe")

        each_block(len(array), shift, ROWS_PER_TASK)
    return Coded(codes, high - low + 1, low)


class Table:
    """Rows of interactions, with columns that are read when they are first needed.

    Parameters
    ----------
    n : int
        The number of rows.
    users, items : function
        Functions that return the users and the items as `Coded`.
    times : function or None
        A function that returns the times (int64 or float64 [n]), and whether they are dates, which
        are stored in microseconds since 1970. None if the data have no times.
    values : function or None
        A function that returns the values (float64 [n]). None if the data have no values.
    names : sequence of str
        The names of the data's columns, which messages list; empty if there are none.
    zone : function
        A function that returns the time zone of dates that do not state one.
    """

    def __init__(
        self,
        n: int,
        users: Callable[[], Coded],
        items: Callable[[], Coded],
        times: Callable[[], tuple[Array, bool]] | None,
        values: Callable[[], Array] | None,
        names: Sequence[str] = (),
        zone: Callable[[], datetime.tzinfo] = lambda: UTC,
    ) -> None:
        if n > MAX_ROWS:
            raise InputError(
                f"There are {n:,} interactions, but at most {MAX_ROWS:,} are possible."
            )
        self.n, self.names, self.zone = n, names, zone
        self._users, self._items, self._times, self._values = users, items, times, values

    @cached_property
    def users(self) -> Coded:
        """The user of each row."""
        return self._users()

    @cached_property
    def items(self) -> Coded:
        """The item of each row."""
        return self._items()

    @cached_property
    def values(self) -> Array | None:
        """The value of each row, or None if there are no values."""
        return None if self._values is None else self._values()

    @property
    def has_times(self) -> bool:
        """Whether the rows have times."""
        return self._times is not None

    @property
    def times(self) -> Array:
        """The time of each row; reading this attribute raises an error if there are no times."""
        return self._times_and_dates[0]

    @property
    def dates(self) -> bool:
        """Whether times are dates, which are stored in microseconds since 1970."""
        return self._times_and_dates[1]

    @cached_property
    def _times_and_dates(self) -> tuple[Array, bool]:
        if self._times is None:
            hint = python_or_command(
                "name their column with time=, or draw at random: Fraction(0.2), Number(1)",
                "--time names their column; --what fraction=0.2 and --what number=1 draw at random",
            )
            raise InputError(
                f"This split is by time, but the data have no times. Hint: {hint}."
                + (f" Columns: {', '.join(map(str, self.names))}." if self.names else "")
            )
        return self._times()

    def select(self, rows: Bool) -> Table:
        """Return a table that contains only the rows in a mask."""
        return Table(
            int(np.count_nonzero(rows)),
            lambda: self.users.select(rows),
            lambda: self.items.select(rows),
            None if self._times is None else lambda: (self.times[rows], self.dates),
            None if self._values is None else lambda: self.values[rows],  # type: ignore[index]
            self.names,
            self.zone,
        )

    def with_values(self, values: Array) -> Table:
        """Return a table of the same rows with other values."""
        changed = copy.copy(self)
        changed._values = lambda: values
        changed.__dict__.pop("values", None)  # forget the old values if they were read
        return changed


def size_of(ids: Sequence[Any] | Array | Path, noun: str) -> str:
    """Describe a sequence of ids by its length, and a file of ids by its name."""
    return str(ids) if isinstance(ids, str | os.PathLike) else f"{len(ids):,} {noun}"

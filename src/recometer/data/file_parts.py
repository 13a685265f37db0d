"""Tables in Parquet files that are larger than memory: read for some users, or rows, at a time."""

from __future__ import annotations

import copy
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from recometer.arrays import Array, Int64
from recometer.data import ids
from recometer.data.columns import ColumnPair
from recometer.data.files import FileColumn, collect, count_rows, is_parquet, scan
from recometer.data.paths import as_path
from recometer.data.sessions import selected
from recometer.data.sizes import size_in_words
from recometer.errors import InputError, InputTypeError

if TYPE_CHECKING:
    import polars as pl

PART = "its part"  # the name of a column
PROBE = 4096  # rows of which it is told how large one is
# The rows of a part exist several times while they become a table of lists: as they are
# read and decoded, by user, and as numbers.
COPIES = 6
MOST_PARTS = 1000  # each reads the files once, or a piece of them


class FileRows:
    """Rows of Parquet files, of which every one has a user and an item.

    Parameters
    ----------
    path
        A file, a folder or a pattern: what `parquet_path` returned.
    found
        The columns, by what they are: ``{"user": "user_id", "item": ...}``, None for none.

    Raises
    ------
    InputError
        If ids are missing.
    """

    def __init__(self, path: Path, found: Mapping[str, str | None]) -> None:
        self.path = path
        self._names = {option: name for option, name in found.items() if name is not None}
        self._table = scan(self.path)
        self.n_rows = count_rows(self._table, self.path, len(self._names))
        self._check_ids()
        self._as_numbers = self._has_false()
        some = collect(self._table.head(PROBE), list(self._names.values()), self.path)
        self.row_bytes = some.estimated_size() / max(1, len(some))

    def pieces(self, n_rows: int) -> Iterator[pl.DataFrame]:
        """Yield the rows in their order, `n_rows` at a time; without rows, yield an empty frame."""
        for begin in range(0, max(1, self.n_rows), n_rows):
            yield self._read(self._table.slice(begin, n_rows))

    def has_text(self, option: str) -> bool:
        """Return whether a column holds texts."""
        import polars as pl

        name = self._names.get(option)
        kind = None if name is None else self._table.collect_schema()[name]
        return kind in (pl.String, pl.Categorical, pl.Enum, pl.List(pl.String))

    def check_passes(self, n_bytes: float, memory: int, how: str) -> int:
        """Return how often so much memory goes into what takes `n_bytes`, at least once.

        `how` they are read stands in the message if that is too often.
        """
        n = max(1, -(-int(n_bytes) // memory))
        if n > MOST_PARTS:
            raise InputError(
                f"memory={memory:,} bytes are too few for {self.n_rows:,} rows of {self.path}, "
                f"which would be read {how.format(n)}: "
                f"{size_in_words(1.01 * n_bytes / MOST_PARTS)} are the least. Hint: a larger "
                "memory=."
            )
        return n

    def _read(self, some: pl.LazyFrame) -> pl.DataFrame:
        frame = collect(some, list(self._names.values()), self.path)
        return frame.cast({self._names["value"]: self._as_numbers}) if self._as_numbers else frame

    def users(self) -> Array:
        """Return the distinct ids of users."""
        distinct = FileColumn(self._table, self._names["user"], self.path, self.n_rows).distinct()
        return ids.as_ids(distinct, f"user ids (column {self._names['user']!r})")

    def columns(self) -> dict[str, Any]:
        """Return the columns for their fingerprints."""
        return {
            option: _Column(FileColumn(self._table, name, self.path, self.n_rows))
            for option, name in self._names.items()
        }

    def _is_pair(self, option: str) -> bool:
        name = self._names[option]
        return isinstance(name, ColumnPair) and name not in self._table.collect_schema()

    def _has_false(self) -> Any:
        """Return the type of numbers for values of True and False, of which some are False.

        None otherwise: where all are True they say nothing, which a part cannot tell of all.
        """
        import polars as pl

        name = self._names.get("value")
        kind = None if name is None else self._table.collect_schema()[name]
        if kind not in (pl.Boolean, pl.List(pl.Boolean)):
            return None
        values = pl.col(str(name))
        true = values.all() if kind == pl.Boolean else values.list.all().all()
        if collect(self._table.select(true=true), ["true"], self.path, reduced=True).item():
            return None
        return pl.Float64 if kind == pl.Boolean else pl.List(pl.Float64)

    def _check_ids(self) -> None:
        """Refuse rows without an id, which a part would name by a number of its own."""
        import polars as pl

        kinds = self._table.collect_schema()
        for option in ("user", "item"):
            name = self._names[option]
            parts = name.parts if self._is_pair(option) else (name,)  # type: ignore[attr-defined]
            for one in parts:
                lacks = pl.col(one).is_null()
                lacks = lacks | pl.col(one).is_nan() if kinds[one].is_float() else lacks
                row = self._table.select(row=lacks.arg_true().first())
                first = collect(row, ["row"], self.path, reduced=True).item()
                if first is not None:
                    ids.missing(f"{option} ids (column {one!r})", int(first))


class FileParts(FileRows):
    """Rows of Parquet files, all of some users at a time.

    A user belongs to a part by the hash of its id, so that no part needs to know of another.

    Parameters
    ----------
    path, found
        As for `FileRows`.
    memory
        The bytes that a part may take.

    Raises
    ------
    InputError
        If ids are missing, or the memory is too small.
    """

    def __init__(self, path: Path, found: Mapping[str, str | None], memory: int) -> None:
        super().__init__(path, found)
        whole = COPIES * self.row_bytes * self.n_rows
        self.n_parts = self.check_passes(whole, memory, "{:,} times")

    def divided(self, n_parts: int) -> FileParts:
        """Return the same rows in at least so many parts."""
        found = copy.copy(self)
        found.n_parts = max(self.n_parts, n_parts)
        return found

    def users_by_part(self) -> tuple[Array, Int64]:
        """Return the distinct ids of users, and the part in which each is."""
        name = self._names["user"]
        both = [selected(self._table, name), self._number().alias(PART)]
        some = self._table.select(both).unique()
        found = collect(some, [name, PART], self.path, reduced=True)
        part = found[PART].to_numpy().astype(np.int64)
        return ids.as_ids(found[name], f"user ids (column {name!r})"), part

    def part(self, number: int) -> pl.DataFrame:
        """Return the rows of some users, in their order; columns are called what they are."""
        import polars as pl

        frame = self._read(self._table.filter(self._number() == number))
        return pl.DataFrame([frame[name].alias(option) for option, name in self._names.items()])

    def _number(self) -> pl.Expr:
        import polars as pl

        user = self._names["user"]
        own = user.parts[0] if self._is_pair("user") else user  # type: ignore[attr-defined]
        return pl.col(own).hash(seed=0) % self.n_parts


class _Column:
    """The entries of a column, brought here piece by piece; see `fingerprints.Piecewise`."""

    def __init__(self, column: FileColumn) -> None:
        self._column = column
        self.shape = (len(column),)
        first = next(self.pieces(), np.zeros(0))
        self.dtype: np.dtype[Any] = first.dtype

    def pieces(self) -> Iterator[Array]:
        """Yield the entries in their order."""
        for piece in self._column.pieces():
            if not piece.dtype.is_nested():
                yield piece.to_numpy()
                continue
            # Lists and pairs as Python writes them: NumPy would leave the middle out.
            entries = np.empty(len(piece), object)
            for row, entry in enumerate(piece.to_list()):
                entries[row] = entry
            yield entries


def parquet_path(path: object, what: str) -> Path:
    """Return the path of Parquet files; refuse other files and data in memory.

    `what` the files hold stands in messages.
    """
    if not isinstance(path, str | os.PathLike):
        raise InputTypeError(
            f"memory= is about {what} in Parquet files, found {type(path).__name__}, which is in "
            "memory. Hint: leave it out."
        )
    found = as_path(path, "data")
    if not is_parquet(found):
        raise InputError(
            f"memory= is about {what} in Parquet files, which can be read for some users at a "
            f"time, and {found} is not one. Hint: write it as Parquet, or leave it out."
        )
    return found

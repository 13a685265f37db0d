"""Interactions with more rows than memory: numbered and sorted piece by piece, kept in files.

Rows are numbered as they come and written down (`Unsorted`). Once all ids are known, rows go into
the ranges of users that they belong to, each of which fits into memory; what becomes of these is
written one after the other (`Sorted`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from recometer import ragged
from recometer.arrays import Array, Int32, Int64
from recometer.data.column_files import ColumnFile
from recometer.data.columns import Columns
from recometer.data.ids import encode, number_strings
from recometer.data.rows import Rows

if TYPE_CHECKING:
    import polars as pl

    from recometer.data.interactions import Interactions

PER_ROW = ("items", "values", "times", "copies")
# Bytes of memory per row, while rows of some users are sorted and merged, and while rows are
# written into the files of their users.
TO_SORT, TO_DIVIDE = 128, 64
ONES = 2**20  # the number of ones that are written at a time


class Numbering:
    """Numbers ids as they come, and in the end says where each stands in their order."""

    def __init__(self, what: str) -> None:
        self._what = what
        # Integers: ascending, beside their numbers. All others are keys.
        self._integers: Array | None = None
        self._numbers = np.zeros(0, np.int64)
        self._others: dict[Any, int] = {}
        self._texts: pl.Series | None = None  # by their own numbers, which then stand for them

    def replaced(self, column: pl.Series) -> pl.Series:
        """Return a column of ids that are texts as the numbers of these; all others as they are.

        As objects of Python, they would take far more memory.
        """
        import polars as pl

        if column.dtype not in (pl.String, pl.Categorical, pl.Enum):
            return column
        column = column.cast(pl.String)
        n_known = 0 if self._texts is None else len(self._texts)
        both = column if self._texts is None else pl.concat([self._texts, column.alias("")])
        numbers = np.empty(len(both), np.uint32)
        # Those that are known come first, and keep their numbers.
        self._texts = number_strings(both, numbers).rechunk().alias("")
        return pl.Series(column.name, numbers[n_known:])

    def of(self, ids: Array) -> Int32:
        """Return the number of each of some distinct ids, as `ids.as_ids` returns them."""
        if not len(ids):
            return np.zeros(0, np.int32)
        known = self._integers
        if not self._others and ids.dtype != object and (known is None or known.dtype == ids.dtype):
            return self._of_integers(ids)
        if known is not None:  # ids of a later piece do not fit into the type of those before
            self._others = dict(zip(self._in_order(), range(len(known)), strict=True))
            self._integers = None
        number = self._others.setdefault
        found = (number(one, len(self._others)) for one in ids.tolist())
        return np.fromiter(found, np.int32, len(ids))

    def _of_integers(self, ids: Array) -> Int32:
        known = ids[:0] if self._integers is None else self._integers
        at = np.searchsorted(known, ids)
        new = np.ones(len(ids), bool)
        inside = at < len(known)
        new[inside] = known[at[inside]] != ids[inside]
        numbers = np.empty(len(ids), np.int64)
        numbers[~new] = self._numbers[at[~new]]
        numbers[new] = len(known) + np.arange(np.count_nonzero(new))
        both = np.concatenate([known, ids[new]])
        order = np.argsort(both, kind="stable")
        self._integers = both[order]
        self._numbers = np.concatenate([self._numbers, numbers[new]])[order]
        return numbers.astype(np.int32)

    def _in_order(self) -> list[Any]:
        """Return all ids by their numbers."""
        if self._integers is None:
            return list(self._others)
        found = np.empty_like(self._integers)
        found[self._numbers] = self._integers
        in_order: list[Any] = found.tolist()
        return in_order

    def sorted(self) -> tuple[Int32, Array]:
        """Return the place of each number among the sorted ids, and these; forget all else."""
        if self._texts is not None:
            texts, self._texts = self._texts, None
            places, ids = encode(texts, self._what, np.int32)
            return places[self._in_order()], ids
        if self._integers is not None:
            places = np.empty(len(self._integers), np.int32)
            places[self._numbers] = np.arange(len(places), dtype=np.int32)
            return places, self._integers
        names = self._in_order()
        self._others = {}
        return encode(names, self._what, np.int32)


class Unsorted:
    """Rows in temporary files, in the order in which they came."""

    def __init__(self) -> None:
        self._users, self._items = Numbering("user ids"), Numbering("item ids")
        self._files: dict[str, ColumnFile] = {}
        self._counts = np.zeros(0, np.int64)  # of rows, by the number of the user
        self.n_rows = 0

    def numbered(self, frame: pl.DataFrame, columns: Columns) -> pl.DataFrame:
        """Return a piece whose ids are numbers if they were texts."""
        sides = ((self._users, columns.user), (self._items, columns.item))
        return frame.with_columns(
            numbering.replaced(frame[name]).alias(name) for numbering, name in sides
        )

    def add(self, rows: Rows) -> None:
        """Write down the rows of a piece whose users and items have ids."""
        assert rows.users is not None
        assert rows.user_ids is not None
        assert rows.item_ids is not None
        users = self._users.of(rows.user_ids)[rows.users]
        items = self._items.of(rows.item_ids)[rows.items]
        columns: dict[str, Array | None] = {"users": users, "items": items}
        columns |= {"values": rows.values, "times": rows.times}
        for name, column in columns.items():
            if column is not None and len(column):
                _add(self._files, name, column)
        counts = np.bincount(users, minlength=len(self._counts))
        counts[: len(self._counts)] += self._counts
        self._counts = counts
        self.n_rows += len(users)

    def by_users(self, memory: int) -> Iterator[Rows]:
        """Yield the rows of a range of users after the other, by ascending ids."""
        user_places, user_ids = self._users.sorted()
        item_places, item_ids = self._items.sorted()
        counts = np.empty_like(self._counts)
        counts[user_places] = self._counts
        ranges = ragged.blocks(
            ragged.indptr_of(counts), max(1, memory // TO_SORT), max(1, len(counts))
        )
        ends = np.cumsum([counts[one].sum() for one in ranges])
        self._divide(ranges, ends, user_places, item_places, max(1, memory // TO_DIVIDE))
        for one, end in zip(ranges, ends.tolist(), strict=True):
            n = int(counts[one].sum())
            columns = {name: file.read(end - n, n) for name, file in self._files.items()}
            yield Rows(
                columns["users"] - np.int32(one.start),
                columns["items"],
                one.stop - one.start,
                len(item_ids),
                columns.get("values"),
                columns.get("times"),
                user_ids[one],
                item_ids,
            )

    def _divide(
        self, ranges: list[slice], ends: Int64, user_places: Int32, item_places: Int32, n_rows: int
    ) -> None:
        """Put the rows of each range of users side by side, and number them by their places."""
        divided = {name: ColumnFile(file.dtype) for name, file in self._files.items()}
        lasts = np.array([one.stop - 1 for one in ranges])
        cursor = np.concatenate([[0], ends[:-1]]).astype(np.int64)
        for first in range(0, self.n_rows, n_rows):
            columns = {name: file.read(first, n_rows) for name, file in self._files.items()}
            columns["users"] = user_places[columns["users"]]
            columns["items"] = item_places[columns["items"]]
            which = np.searchsorted(lasts, columns["users"])
            order = np.argsort(which, kind="stable")
            starts = np.searchsorted(which[order], np.arange(len(ranges) + 1))
            for name, column in columns.items():
                column = column[order]
                for number in np.flatnonzero(np.diff(starts)).tolist():
                    part = column[starts[number] : starts[number + 1]]
                    divided[name].write(int(cursor[number]), part)
            cursor += np.diff(starts)
        self.close()
        self._files = divided

    def close(self) -> None:
        """Remove the files."""
        for file in self._files.values():
            file.close()


class Sorted:
    """Interactions of ranges of users, one after the other, in temporary files."""

    def __init__(self, n_repeated: int) -> None:
        self._n_repeated = n_repeated
        self._files = {"items": ColumnFile(np.int32)}
        self._lengths: list[Int64] = []
        self._user_ids: list[Array] = []
        self._item_ids: Array | None = None
        self._n = self._duplicates = 0
        self._repeated: list[tuple[Any, Any]] = []

    def add(self, part: Interactions) -> None:
        """Add the users that follow."""
        assert part.user_ids is not None
        for name in PER_ROW:
            column = getattr(part, name)
            if column is not None and name not in self._files:
                self._files[name] = ColumnFile(column.dtype)
                self._fill(name)  # those before have one each
            if column is not None:
                self._files[name].add(column)
            elif name in self._files:
                self._files[name].add(np.ones(len(part), self._files[name].dtype))
        self._n += len(part)
        self._lengths.append(np.diff(part.indptr))
        self._user_ids.append(part.user_ids)
        self._item_ids = part.item_ids
        self._duplicates += part.duplicates
        self._repeated += part.repeated[: self._n_repeated - len(self._repeated)]

    def _fill(self, name: str) -> None:
        for first in range(0, self._n, ONES):
            n = min(ONES, self._n - first)
            self._files[name].add(np.ones(n, self._files[name].dtype))

    def fields(self) -> dict[str, Any]:
        """Return the fields of the whole, whose rows lie in the files."""
        assert self._item_ids is not None
        return {
            **{name: file.mapped() for name, file in self._files.items()},
            "indptr": ragged.indptr_of(np.concatenate(self._lengths)),
            "n_items": len(self._item_ids),
            "user_ids": np.concatenate(self._user_ids),
            "item_ids": self._item_ids,
            "duplicates": self._duplicates,
            "repeated": tuple(self._repeated),
        }


def _add(files: dict[str, ColumnFile], name: str, column: npt.NDArray[Any]) -> None:
    """Write numbers to the file of a column."""
    if name not in files:
        files[name] = ColumnFile(column.dtype)
    files[name].add(column)

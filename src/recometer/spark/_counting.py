"""Counting where the catalogue is in parts: a block of users beside a block of items.

Items of a block are neighbours in the order of their ids, so that of the items elsewhere it is
known which come before them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from recometer import _kernel, ragged
from recometer._kernel import NanRule
from recometer.arrays import Array, Float64, Int64, UInt32, slices
from recometer.data.matching import SourceIndex
from recometer.errors import InternalError
from recometer.ranks import Ranks, UserFlag
from recometer.sources.base import Request, Source
from recometer.spark._columns import ids, numbers, user_ids, vectors

# The rows of a block of users beside a block of items: users, their judged items with scores, their
# items of train in this block, and the items.
USER, JUDGED, EXCLUDED, ITEM = range(4)
ITEMS_AT_ONCE = 2**16
USERS_AT_ONCE = 2**11


@dataclasses.dataclass(frozen=True)
class Counting:
    """What travels to the executors.

    Attributes
    ----------
    user, item
        The Spark types of ids.
    dtype
        The dtype of the factors.
    n_factors
    nan_scores
        The rule.
    item_bias
        Whether items have one.
    """

    user: str
    item: str
    dtype: str
    n_factors: int
    nan_scores: str
    item_bias: bool

    def schema(self) -> str:
        """Return the schema of what both steps return."""
        return f"u {self.user}, i {self.item}, x double, y double, p double"

    def score(self, tables: Iterable[Any]) -> Iterator[Any]:
        """Return the scores of judged items: rows of u, i, x.

        Each table has the rows of whole users: their own with factors ``f``, and those of judged
        items with the items' factors and bias ``b``.
        """
        for table in tables:
            users, judged = of_kind(table, USER), of_kind(table, JUDGED)
            if not users.num_rows or not judged.num_rows:
                continue
            names, named = ids(users["u"]), ids(judged["u"])
            place, known = places(names, named)
            order = np.argsort(place[known], kind="stable")
            rows = np.flatnonzero(known)[order]
            indptr = ragged.indptr_of(np.bincount(place[rows], minlength=len(names)))
            bias = numbers(judged["b"])[rows].astype(self.dtype) if self.item_bias else None
            scores = np.empty(len(rows), self.dtype)
            _kernel.score_items(
                instruction_set=_kernel.instruction_set(),
                users=self._vectors(users),
                items=np.ascontiguousarray(self._vectors(judged)[rows]),
                bias=bias,
                rows=None,
                indptr=indptr,
                listed=np.arange(len(rows), dtype=np.int32),
                scores=scores,
            )
            taken = judged.take(rows)
            nothing = np.zeros(len(rows))
            yield self._batch(taken["u"], taken["i"], scores.astype(np.float64), nothing, nothing)

    def count(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Return, per judged item, how many items of a block lie above it, beside it and before it.

        Batches are sorted by block (``g`` of users and ``s`` of items), kind of row, user and item.
        A row without an item counts NaN and infinite scores of a user.
        """
        block: _Block | None = None
        for key, kind, table in _runs(batches):
            if block is None or block.key != key:
                if block is not None:
                    yield from block.rows()
                block = _Block(self, key)
            block.add(kind, table)
        if block is not None:
            yield from block.rows()

    def _vectors(self, table: Any) -> Array:
        found = vectors(table["f"], self.n_factors, "factors").astype(self.dtype, copy=False)
        return np.ascontiguousarray(found)

    def _batch(self, users: Any, items: Any, *counts: Float64) -> Any:
        import pyarrow as pa

        types = {"bigint": pa.int64(), "string": pa.string()}
        columns = [
            pa.array(users, types[self.user]) if isinstance(users, np.ndarray) else _one(users),
            pa.nulls(len(users), types[self.item]) if items is None else _one(items),
            *map(pa.array, counts),
        ]
        return pa.RecordBatch.from_arrays(columns, ["u", "i", "x", "y", "p"])


class _Block:
    """A block of users beside a block of items, whose rows come one after the other."""

    def __init__(self, how: Counting, key: tuple[int, int]) -> None:
        self.how, self.key = how, key
        self.waiting: dict[int, list[Any]] = {kind: [] for kind in range(4)}
        self.n_items = 0
        self.ready = False

    def add(self, kind: int, table: Any) -> None:
        """Take some rows; items are counted as soon as there are enough."""
        self.waiting[kind].append(table)
        if kind == ITEM:
            self.n_items += table.num_rows
            if self.n_items >= ITEMS_AT_ONCE:
                self._count()

    def rows(self) -> Iterator[Any]:
        """Return the counts, once all rows are there."""
        self._count()
        if not self.ready or not len(self.users):
            return
        above = np.where(np.isnan(self.scores), np.nan, self.above.astype(np.float64))
        if len(self.judged):
            owner = self.users[ragged.users_of(self.indptr)]
            counts = (above, self.tied.astype(np.float64), self.before.astype(np.float64))
            yield self.how._batch(owner, self.judged_column, *counts)
        flagged = [(self.flags & np.uint32(flag)) != 0 for flag in FLAGS]
        known = np.zeros(len(self.users))
        yield self.how._batch(self.users, None, *(one.astype(np.float64) for one in flagged), known)

    def _read(self) -> None:
        """Read the users, before the first items."""
        how = self.how
        users = _joined(self.waiting[USER])
        self.users = ids(users["u"]) if users is not None else np.zeros(0, np.int64)
        self.factors = how._vectors(users) if users is not None else np.zeros((0, 0), how.dtype)
        self.flags: UInt32 = np.zeros(len(self.users), np.uint32)
        if users is not None:
            bias = numbers(users["x"])
            there = users["x"].is_valid().to_numpy()
            self.flags[there & np.isnan(bias)] |= np.uint32(UserFlag.NAN_SCORE)
            self.flags[there & np.isinf(bias)] |= np.uint32(UserFlag.INFINITE_SCORE)
        judged = self._of_users(JUDGED)
        self.indptr, self.judged, table = judged
        self.judged_column = table["i"] if table is not None else None
        found = numbers(table["x"]) if table is not None else np.zeros(0)
        self.scores: Array = found.astype(how.dtype)
        self.nan_rule = NanRule[how.nan_scores.upper()]
        if self.nan_rule != NanRule.UNDEFINED:
            infinity = np.inf if self.nan_rule == NanRule.FIRST else -np.inf
            self.scores[np.isnan(self.scores)] = infinity
        self.excluded_indptr, self.excluded, _ = self._of_users(EXCLUDED)
        self.above, self.tied, self.before = (np.zeros(len(self.judged), np.int64) for _ in "atb")
        self.ready = True

    def _of_users(self, kind: int) -> tuple[Int64, Array, Any]:
        """Return the rows of the users: indptr, ids of items, and the table; sorted by both."""
        table = _joined(self.waiting[kind])
        if table is None or not len(self.users):
            return np.zeros(len(self.users) + 1, np.int64), np.zeros(0, self.users.dtype), None
        place, known = places(self.users, ids(table["u"]))
        table = table.filter(known)
        indptr = ragged.indptr_of(np.bincount(place[known], minlength=len(self.users)))
        return indptr, ids(table["i"]), table

    def _count(self) -> None:
        """Count the items that wait."""
        if not self.ready:
            self._read()
        items = _joined(self.waiting[ITEM])
        self.waiting[ITEM], self.n_items = [], 0
        if items is None or not len(self.users):
            return
        named = ids(items["i"])
        # All that are named, by ascending id; the waiting items are neighbours there.
        every = np.unique(np.concatenate([named, self.judged])) if len(self.judged) else named
        first = int(np.searchsorted(every, named[0]))
        last = first + len(named)
        if (every[first:last] != named).any():
            raise InternalError("A judged item lies between two items of a block.")
        rows = np.zeros(len(every), np.int64)
        rows[first:last] = np.arange(len(named))
        own = {
            "items": self.how._vectors(items),
            "bias": numbers(items["b"]).astype(self.how.dtype) if self.how.item_bias else None,
            "rows": rows,
            "first": first,
            "last": last,
        }
        judged = np.searchsorted(every, self.judged).astype(np.int32)
        excluded_indptr, excluded = self._excluded_among(every, named)
        for block in slices(len(self.users), USERS_AT_ONCE):
            self._call(block, own, judged, excluded_indptr, excluded)

    def _excluded_among(self, every: Array, named: Array) -> tuple[Int64, Array]:
        """Return the items of train that are among these, by the places of `every`."""
        if not len(self.excluded):
            return self.excluded_indptr, np.zeros(0, np.int32)
        at = np.minimum(np.searchsorted(named, self.excluded), len(named) - 1)
        there = named[at] == self.excluded
        places_of = np.searchsorted(every, self.excluded[there]).astype(np.int32)
        return ragged.offsets(there.astype(bool), self.excluded_indptr), places_of

    def _call(
        self,
        block: slice,
        own: Mapping[str, Any],
        judged: Array,
        excluded_indptr: Int64,
        excluded: Array,
    ) -> None:
        offsets = slice(block.start, block.stop + 1)
        lost = _kernel.rank_factors(
            instruction_set=_kernel.instruction_set(),
            users=self.factors[block],
            **own,
            by_place=None,
            places=None,
            item_bound=None,
            user_bound=None,
            excluded_indptr=np.ascontiguousarray(excluded_indptr[offsets]),
            excluded=excluded,
            judged_indptr=np.ascontiguousarray(self.indptr[offsets]),
            judged=judged,
            judged_scores=self.scores,
            above=self.above,
            tied=self.tied,
            before=self.before,
            limit=None,
            check=True,
            nan_rule=self.nan_rule,
            flags=self.flags[block],
            finished=np.zeros(block.stop - block.start, np.uint8),
        )
        if lost >= 0:
            raise InternalError("A judged item did not find its own score in its block.")


FLAGS = (UserFlag.NAN_SCORE, UserFlag.INFINITE_SCORE)


class Counted(Source):
    """Counts of some users, put together again: where each judged item landed.

    Parameters
    ----------
    table
        Rows of u, i, x (above), y (tied) and p (before), and one without an item per user.
    user
        The columns that name a user.
    item_ids
        The items that these users have in test or train, of those that have factors.
    n_items
        How many items have factors.
    """

    def __init__(self, table: Any, user: Sequence[str], item_ids: Array, n_items: int) -> None:
        of_users = np.asarray(table["i"].is_null())
        self._users = user_ids(table.filter(of_users), user)
        self._flags = [numbers(table[name].filter(of_users)) > 0 for name in ("x", "y")]
        rows = table.filter(~of_users)
        self._of, self._items = user_ids(rows, user), ids(rows["i"])
        self._counts = [numbers(rows[name]) for name in ("x", "y", "p")]
        self._index = SourceIndex("Factors", len(self._users), len(item_ids), self._users, item_ids)
        self._n_items = n_items

    def describe(self) -> str:
        """Return one line that describes what is evaluated."""
        return "Factors on Spark"

    def arrays(self) -> Mapping[str, object]:
        """Return nothing: the factors are elsewhere."""
        return {}

    def rank(self, request: Request) -> Ranks:
        """Put the counts into the order of test."""
        from recometer.sources import counted

        users, known = places(self._users, self._of)
        if not known.all():
            raise InternalError("Counts came without their user.")
        flags = np.zeros(len(self._users), np.uint32)
        for flag, raised in zip(FLAGS, self._flags, strict=True):
            flags[raised] |= np.uint32(flag)
        return counted.ranks(
            self._index, request, self._n_items, flags, users, self._items, self._counts
        )


def _runs(batches: Iterable[Any]) -> Iterator[tuple[tuple[int, int], int, Any]]:
    """Cut batches where the block or the kind of rows changes."""
    import pyarrow as pa

    for batch in batches:
        if not batch.num_rows:
            continue
        table = pa.Table.from_batches([batch])
        g, s, t = (table[name].to_numpy() for name in "gst")
        new = np.flatnonzero((np.diff(g) != 0) | (np.diff(s) != 0) | (np.diff(t) != 0)) + 1
        starts = [0, *new.tolist()]
        for start, end in zip(starts, [*starts[1:], table.num_rows], strict=True):
            key = int(g[start]), int(s[start])
            yield key, int(t[start]), table.slice(start, end - start)


def of_kind(table: Any, kind: int) -> Any:
    """Return the rows of a kind."""
    import pyarrow.compute as pc

    return table.filter(pc.equal(table["t"], kind))


def places(known: Array, wanted: Array) -> tuple[Int64, Array]:
    """Return where ids stand among others, and which of them do; `known` may be in any order."""
    if not len(known):
        return np.zeros(len(wanted), np.int64), np.zeros(len(wanted), bool)
    order = np.argsort(known, kind="stable")
    at = np.minimum(np.searchsorted(known[order], wanted), len(known) - 1)
    place = order[at]
    return place, np.asarray(known[place] == wanted, bool)


def _joined(tables: list[Any]) -> Any:
    import pyarrow as pa

    return pa.concat_tables(tables) if tables else None


def _one(column: Any) -> Any:
    return column.combine_chunks() if hasattr(column, "combine_chunks") else column

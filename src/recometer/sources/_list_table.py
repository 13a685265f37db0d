"""All lists of recommendations as one table."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from recometer import ragged
from recometer.arrays import Array, Bool, Float64, Int32, Int64, all_of
from recometer.data import ids
from recometer.data.matching import SourceIndex
from recometer.ranks import Ranks
from recometer.sources.base import Kind


@dataclasses.dataclass(frozen=True, eq=False)
class ListTable:
    """All lists in CSR layout."""

    indptr: Int64  # the entries indptr[l]:indptr[l + 1] are list l; some may be empty
    items: Int32  # positions among `item_ids`; -1 is padding
    n_items: int  # more than any item
    scores: Float64 | None  # of each entry; None if each list is given best first
    user_ids: Array | None  # distinct, in any order; None if list l is that of user l
    # Sorted and distinct, perhaps with items that are in no list; None for positions.
    item_ids: Array | None
    padded: bool = False  # whether `items` may contain -1
    # The scores, also where the order alone decides; None without scores, or with ranks only.
    given: Float64 | None = None
    by_rows: bool = False  # whether the lists come from a table without ranks and scores

    @property
    def n_lists(self) -> int:
        """Number of lists, empty ones included."""
        return len(self.indptr) - 1

    @property
    def index(self) -> SourceIndex:
        """Which users and items it has."""
        return SourceIndex("Lists", self.n_lists, self.n_items, self.user_ids, self.item_ids)

    @property
    def kind(self) -> tuple[object, ...]:
        """The properties in which tables must agree to be joined by `joined`."""
        named = [
            None if one is None else (one.dtype, ids.kind(one))
            for one in (self.user_ids, self.item_ids)
        ]
        return (*named, self.scores is None, self.given is None, self.by_rows)

    def with_items(self, others: Mapping[str, Array]) -> ListTable:
        """Return the same lists with more `item_ids`: `others`, by the data that they are from."""
        assert self.item_ids is not None
        known = self.item_ids
        for what, more in others.items():
            places = ids.match(more, known, f"item ids of {what}", "item ids of Lists")
            known = _union(known, more[places < 0])
        if known is self.item_ids:
            return self
        places = ids.match(self.item_ids, known, "item ids of Lists")
        items = self.items
        if not (places == np.arange(len(places))).all():
            items = np.append(places, -1).astype(np.int32)[items]  # -1 stays -1
        return dataclasses.replace(self, items=items, n_items=len(known), item_ids=known)

    def hold_items(self, lists: Int64 | None = None) -> Bool:
        """Return for each list, or each of `lists`, whether it holds more than padding."""
        if not self.padded:
            return ragged.lengths(self.indptr, lists) > 0
        indptr, items = self.indptr, self.items
        if lists is not None:
            indptr, entries = ragged.take(indptr, lists)
            items = items[entries]
        found = np.zeros(len(indptr) - 1, bool)
        found[ragged.users_of(indptr)[items >= 0]] = True
        return found

    def listed_users(self) -> Array:
        """Return the ids (or positions) of the users with a list."""
        has = self.hold_items()
        if self.user_ids is None:
            return has.nonzero()[0]
        return self.user_ids if all_of(has) else self.user_ids[has]

    def known_ids(self, kind: Kind) -> Array | None:
        """Return the ids of the users with a list, or of the items in any list; None without."""
        if kind == "user":
            return None if self.user_ids is None else self.listed_users()
        if self.item_ids is None:
            return None
        listed = np.zeros(len(self.item_ids) + 1, bool)
        listed[self.items] = True  # the last is padding
        return self.item_ids[listed[:-1]]


def joined(tables: Sequence[ListTable]) -> ListTable:
    """Concatenate tables of one kind and of different users."""
    first, n_items = tables[0], max(table.n_items for table in tables)
    items, item_ids = [table.items for table in tables], first.item_ids
    if item_ids is not None:
        every = [table.item_ids for table in tables if table.item_ids is not None]
        codes, item_ids = ids.encode(np.concatenate(every), "item ids of Lists", np.int32)
        n_items, begin = len(item_ids), 0
        for number, own in enumerate(every):
            # -1 stays -1: it reads the appended element.
            items[number] = np.append(codes[begin : begin + len(own)], np.int32(-1))[items[number]]
            begin += len(own)

    def column(name: str) -> Any:
        columns = [getattr(table, name) for table in tables]
        return None if columns[0] is None else np.concatenate(columns)

    lengths = np.concatenate([np.diff(table.indptr) for table in tables])
    return ListTable(
        ragged.indptr_of(lengths),
        np.concatenate(items),
        n_items,
        column("scores"),
        column("user_ids"),
        item_ids,
        any(table.padded for table in tables),
        column("given"),
        first.by_rows,
    )


def judged_scores(table: ListTable, lists: Int64, ranks: Ranks) -> Float64:
    """Return the score of each judged item in its list, NaN where it is in none.

    The table must have scores. For a repeated item, the highest score counts. `lists` holds the
    position of the list of each user of `ranks`, or -1 for a user without one.
    """
    assert table.given is not None
    key = ragged.numbered(table.indptr, table.items, table.n_items)
    order = np.lexsort((-table.given, key))
    user = ragged.users_of(ranks.indptr)
    wanted = ragged.pairs(lists[user], ranks.item, table.n_items)
    at = np.minimum(np.searchsorted(key[order], wanted), len(key) - 1)
    return np.where(ranks.above >= 0, table.given[order[at]], np.nan)


def _union(known: Array, more: Array) -> Array:
    """Return the sorted union of two disjoint arrays of ids of the same kind."""
    if not len(more):
        return known
    if not len(known):
        return more
    if known.dtype == more.dtype != object:
        return np.sort(np.concatenate([known, more]))
    return ids.encode([*known.tolist(), *more.tolist()], "item ids")[1]

"""Lists that repeat items, where the rule `duplicates` keeps their places.

A repetition becomes an item of its own, which holds its place; where test judges the item, it
judges the repetition, too. When the lists are ranked, its rows get the item back.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from recometer import ragged
from recometer.arrays import Array, Int32, Int64
from recometer.data import ids
from recometer.data.interactions import Interactions
from recometer.data.matching import both_have_ids
from recometer.errors import InputError
from recometer.ranks import Ranks
from recometer.sources._list_table import ListTable
from recometer.sources.base import Request
from recometer.sources.candidates import Items, SampledCandidates


@dataclasses.dataclass(frozen=True)
class Repeats:
    """The repetitions in some lists."""

    table: ListTable  # the lists, in which the n-th repetition of an item is another item
    user: Int64  # the list of each repetition
    item: Int64  # what it repeats
    own: Int64  # the item that it becomes
    first_own: int  # the first of the items that there are for repetitions only

    @classmethod
    def of(cls, table: ListTable, numbers: Int32 | None) -> Repeats | None:
        """Find those of items that may be recommended, or return None if there are none.

        `numbers` are those of `Aligned`: -1 for an item that nobody is recommended.
        """
        user = ragged.users_of(table.indptr)
        key = ragged.pairs(user, table.items, table.n_items)
        order = np.argsort(key, kind="stable")
        again = np.zeros(len(key), bool)
        again[order[1:]] = np.diff(key[order]) == 0
        again &= table.items >= 0
        if numbers is not None:
            again &= numbers[table.items] >= 0
        rows = np.flatnonzero(again)
        if not len(rows):
            return None
        number = np.arange(len(rows)) - np.searchsorted(user[rows], user[rows])
        items = table.items.copy()
        items[rows] = table.n_items + number
        more = int(number.max()) + 1
        changed = dataclasses.replace(
            table,
            items=items,
            n_items=table.n_items + more,
            item_ids=None if table.item_ids is None else _with_later(table.item_ids, more),
        )
        found = table.items[rows].astype(np.int64)
        return cls(changed, user[rows], found, table.n_items + number, table.n_items)

    def added_to(self, request: Request) -> Request:
        """Give test, train and candidates the repetitions of their items.

        Nobody is told again what the request without repetitions has said.

        Raises
        ------
        InputError
            If candidates are drawn.
        """
        train, candidates = request.train, request.candidates
        if isinstance(candidates, SampledCandidates):
            raise InputError(
                f"duplicates={request.protocol.duplicates!r} keeps the places of items that a list "
                f"repeats, but {candidates} does not say whether a repetition is drawn. Hint: "
                "lists without repetitions, or duplicates='removed'."
            )
        if isinstance(candidates, Interactions):
            candidates = self._added(candidates, "candidates")
        elif isinstance(candidates, Items):
            later = np.arange(self.first_own, self.table.n_items)
            own = later if self.table.item_ids is None else self.table.item_ids[later]
            candidates = dataclasses.replace(candidates, ids=np.concatenate([candidates.ids, own]))
        return dataclasses.replace(
            request,
            test=self._added(request.test, "test"),
            train=None if train is None else self._added(train, "train"),
            candidates=candidates,
            some_users=True,
        )

    def _added(self, data: Interactions, what: str) -> Interactions:
        table = self.table
        items: Int64 = data.items.astype(np.int64)
        if both_have_ids("item", "Lists", table.item_ids, what, data.item_ids):
            assert data.item_ids is not None
            items = ids.match(data.item_ids, table.item_ids, "item ids")[items]
        lists = np.arange(data.n_users)
        if both_have_ids("user", "Lists", table.user_ids, what, data.user_ids):
            assert data.user_ids is not None
            lists = ids.match(data.user_ids, table.user_ids, "user ids")
        user = ragged.users_of(data.indptr)
        # Pairs of list and item, each with its row of the data.
        key = ragged.pairs(lists[user], items, table.n_items)
        order = np.argsort(key, kind="stable")
        wanted = ragged.pairs(self.user, self.item, table.n_items)
        at = np.minimum(np.searchsorted(key[order], wanted), max(len(key) - 1, 0))
        has = key[order[at]] == wanted if len(key) else np.zeros(len(wanted), bool)
        row = order[at[has]]
        every_user = np.concatenate([user, user[row]])
        every_item = np.concatenate([items, self.own[has]])
        sorted_rows = np.lexsort((every_item, every_user))
        indptr = ragged.indptr_of(np.bincount(every_user, minlength=data.n_users))
        values = None
        if data.values is not None:
            values = np.concatenate([data.values, data.values[row]])[sorted_rows]
        return dataclasses.replace(
            data,
            indptr=indptr,
            items=every_item[sorted_rows].astype(np.int32),
            n_items=table.n_items,
            values=values,
            times=None,
            copies=None,
            largest=None,
            item_ids=table.item_ids,
        )

    def taken_back(self, ranks: Ranks, lists: Int64, ties: str) -> Ranks:
        """Give the rows of repetitions their items, and count relevant items once.

        All rows of an item repeat the one that comes first in the ranking, or in the list if the
        rule for ties knows no order. `lists` is that of each user, -1 for one without.
        """
        user, item = ranks.user, ranks.item.copy()
        own = np.flatnonzero(item >= self.first_own)
        n_items = self.table.n_items
        repeats = ragged.pairs(self.user, self.own, n_items)
        order = np.argsort(repeats)
        at = np.searchsorted(repeats[order], ragged.pairs(lists[user[own]], item[own], n_items))
        item[own] = self.item[order[at]]
        place = ranks.above + (ranks.tied - ranks.before if ties == "item_desc" else ranks.before)
        place[ranks.above < 0] = np.iinfo(np.int64).max
        order = np.lexsort((ranks.item, place, item, user))
        repeated = np.zeros(len(item), bool)
        repeated[order[1:]] = (np.diff(user[order]) == 0) & (np.diff(item[order]) == 0)
        repeated &= item >= 0  # of what the lists do not know, nothing is known to be the same
        again = np.bincount(user[repeated & ranks.relevant], minlength=ranks.n_users)
        counts = {**ranks.counts, "list_repeats": len(self.own)}
        counts.pop("list_duplicates", None)  # which is what they are where they lose their places
        return dataclasses.replace(
            ranks,
            item=item,
            repeated=repeated,
            n_relevant=ranks.n_relevant - again,
            counts=counts,
        )


def _with_later(item_ids: Array, more: int) -> Array:
    """Append ids that sort after all others."""
    last = item_ids[-1]
    if item_ids.dtype != object:
        later = last + np.arange(1, more + 1, dtype=item_ids.dtype)
        return np.concatenate([item_ids, later])
    if not isinstance(last, str):
        raise InputError(
            "duplicates= needs item ids that are numbers or texts if lists repeat items, found "
            f"{type(last).__name__}."
        )
    width = len(str(more))
    texts = np.array([f"{last}~{n:0{width}}" for n in range(more)], object)
    return np.concatenate([item_ids, texts])

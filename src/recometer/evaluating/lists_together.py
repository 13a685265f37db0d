"""Lists of some users after the others, put together: each part may number items its own way."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

import numpy as np

from recometer.arrays import Array, Int64
from recometer.ranks import Ranks, TopLists
from recometer.sources.base import Request, Source
from recometer.sources.kept import ItemCodes

ANY_ITEMS = 2**31 - 1


class ListsTogether:
    """Lists of the users of one block after the other."""

    def __init__(self) -> None:
        self._parts: list[TopLists] = []
        self._item_ids: Array | None = None  # of all parts, while they are the same
        self._codes: ItemCodes | None = None  # by which items are known once they are not

    def add(self, lists: TopLists) -> None:
        """Add the lists of more users."""
        if not self._parts:
            self._item_ids = lists.item_ids
        elif self._codes is None and not _same(self._item_ids, lists.item_ids):
            self._codes = ItemCodes()
            self._parts = [self._coded(part, self._codes) for part in self._parts]
        codes = self._codes
        self._parts.append(lists if codes is None else self._coded(lists, codes))

    def of(self, order: Int64) -> TopLists | None:
        """Return the lists of all users in an order, or None if there are none."""
        if not self._parts:
            return None
        width = max(part.depth for part in self._parts)
        found = TopLists.concat([_padded(part, width) for part in self._parts]).users(order)
        if self._codes is None:
            return found
        places, item_ids = self._codes.among(np.zeros(0, np.int64))
        items = np.append(places, -1)[found.items]
        return dataclasses.replace(found, items=items, n_items=len(item_ids), item_ids=item_ids)

    @staticmethod
    def _coded(lists: TopLists, codes: ItemCodes) -> TopLists:
        assert lists.item_ids is not None
        items = np.append(codes.add(lists.item_ids), -1)[lists.items]
        return dataclasses.replace(lists, items=items, n_items=ANY_ITEMS, item_ids=None)


class FoundLists(Source):
    """A source of lists that were asked for before."""

    def __init__(self, source: Source, lists: TopLists) -> None:
        self._source, self._lists = source, lists

    def top(self, request: Request, k: int) -> TopLists:
        """Return the lists."""
        return self._lists

    def rank(self, request: Request) -> Ranks:
        """Rank as the source does."""
        return self._source.rank(request)

    def describe(self) -> str:
        """Describe the source."""
        return self._source.describe()

    def arrays(self) -> Mapping[str, object]:
        """Return the arrays of the source."""
        return self._source.arrays()


def _same(one: Array | None, other: Array | None) -> bool:
    if one is None or other is None:
        return one is other
    return one is other or (one.dtype == other.dtype and np.array_equal(one, other))


def _padded(lists: TopLists, width: int) -> TopLists:
    if lists.depth == width:
        return lists
    items = np.full((lists.n_users, width), -1)
    items[:, : lists.depth] = lists.items
    return dataclasses.replace(lists, items=items)

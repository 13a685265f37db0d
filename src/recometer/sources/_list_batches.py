"""Batches of lists that wait until they are ranked together."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from recometer import _kernel
from recometer.arrays import Array, Bool, Int32, Int64, all_of, follow
from recometer.data import ids
from recometer.sources._list_table import ListTable
from recometer.sources.base import Request
from recometer.sources.lists import Lists


class NamedLists(NamedTuple):
    """Lists, the ids of those of their users who are taken, and where these stand in test."""

    lists: Lists
    users: Array
    places: Int64

    @classmethod
    def of(cls, batches: Sequence[NamedLists]) -> NamedLists:
        """Put batches together whose lists are of one kind."""
        lists, users, places = zip(*batches, strict=True)
        return cls(Lists.of_batches(lists), np.concatenate(users), np.concatenate(places))

    @property
    def kind(self) -> tuple[object, ...]:
        """What batches have in common that `of` puts together."""
        return self.lists.kind

    @property
    def n_entries(self) -> int:
        """The places of all lists, and one for each of them."""
        return self.lists.n_entries + len(self.users)

    @property
    def is_whole(self) -> bool:
        """Whether every list is taken, and is that of a user of test."""
        return len(self.users) == self.lists.n_lists and all_of(self.places >= 0)


class IndexedLists:
    """Lists of one length that hold the positions of items, each of another user of test.

    Parameters
    ----------
    most
        How many there may be.
    length
        The places of each, those of padding included.
    n_items
        The number of items that there are.
    came : bool [n_users]
        Of which users of test lists came; those are added whose lists are.
    """

    def __init__(self, most: int, length: int, n_items: int, came: Bool) -> None:
        self._items = np.empty((most, length), np.int32)
        self._places = np.empty(most, np.int64)
        self._n_items, self._came = n_items, came
        self._ends = [0]  # of batches

    def add(self, items: Array, places: Int64) -> bool:
        """Add a batch; return whether there is room for it, and nothing is wrong with it."""
        begin = self._ends[-1]
        try:
            fits: bool = _kernel.take_lists(
                items, self._n_items, places, self._came, begin, self._items, self._places
            )
        except TypeError:  # other types than the kernel takes, or other dimensions
            return False
        if fits:
            self._ends.append(begin + len(items))
        return fits

    def has_room(self, items: Array) -> bool:
        """Return whether lists of their length fit, and so many of them."""
        n, length = items.shape
        return bool(length == self._items.shape[1] and self._ends[-1] + n <= len(self._items))

    @property
    def n_lists(self) -> int:
        """Number of lists."""
        return self._ends[-1]

    def batches(self, request: Request) -> list[NamedLists]:
        """Return each batch with the ids of its users, which those of the request have."""
        return [self._named(request, *each) for each in itertools.pairwise(self._ends)]

    def together(self, request: Request) -> NamedLists:
        """Return all batches as one."""
        return self._named(request, 0, self.n_lists)

    def _named(self, request: Request, begin: int, end: int) -> NamedLists:
        user_ids, places = request.test.user_ids, self._places[begin:end]
        assert user_ids is not None
        users = user_ids[places]
        return NamedLists(_of(self._items[begin:end], request, users), users, places)

    def of_all(self, request: Request) -> Lists:
        """Return the lists in the order of test, of whose users each has one."""
        n = self.n_lists
        items, places = self._items[:n], self._places[:n]
        if not follow(places):  # as many as there are users, so that they begin with the first
            items = np.empty_like(items)
            items[places] = self._items[:n]
        return _of(items, request, request.test.user_ids)


def takes_indices(request: Request) -> bool:
    """Return whether all that can be wrong with lists of positions is wrong with single lists.

    Where ids have to be matched, or sets of items, the first batch has to show that they can be.
    """
    test, train = request.test, request.train
    if test.item_ids is not None or request.candidates is not None or request.exclude is not None:
        return False
    if not isinstance(request.catalogue, int | None):
        return False
    if train is None:
        return True
    own, theirs = test.user_ids, train.user_ids
    if own is None or theirs is None:
        alike = own is theirs and test.n_users == train.n_users
        return alike and train.item_ids is None
    return train.item_ids is None and ids.kind(own) == ids.kind(theirs)


def _of(items: Int32, request: Request, user_ids: Array | None) -> Lists:
    n, k = items.shape
    indptr = np.arange(0, n * k + 1, k, dtype=np.int64)
    flat, n_items = items.ravel(), request.test.n_items
    return Lists.of_table(ListTable(indptr, flat, n_items, None, user_ids, None, padded=True), None)

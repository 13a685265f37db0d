"""The answers of a source to the requests of the checks, each requested once."""

from __future__ import annotations

import dataclasses

import numpy as np

from recometer import ragged
from recometer.arrays import Array, Int64, UInt32
from recometer.data.interactions import Interactions
from recometer.data.matching import SourceIndex
from recometer.evaluating.case import Case, request_of
from recometer.ranks import Ranks, TopLists
from recometer.remembered import cached_property
from recometer.sources.base import Request, Source


@dataclasses.dataclass(frozen=True)
class Answers:
    """The arguments of `check`, and the answers of the source.

    `given` has the arguments as `evaluate` reads them, with only the users that are checked;
    `whole` is the test set with all users. `again` is the same source, or the lists from a second
    call of a model. `k` is the number of places of each list to check.
    """

    given: Case
    again: Source
    whole: Interactions
    k: int

    @property
    def source(self) -> Source:
        """The model's output."""
        return self.given.source

    @property
    def test(self) -> Interactions:
        """The test set with the users that are checked."""
        return self.given.sides.test

    @property
    def train(self) -> Interactions | None:
        """The training interactions, or None."""
        return self.given.sides.arguments.train

    @cached_property
    def request(self) -> Request:
        """The request to the source, with equal scores in the order of item ids."""
        protocol = self.given.protocol.replace(ties="item")
        return dataclasses.replace(request_of(self.given), protocol=protocol, depth=None)

    @cached_property
    def ranks(self) -> Ranks:
        """The ranks of the test items."""
        return self.source.rank(self.request)

    @cached_property
    def lists(self) -> TopLists:
        """The first k places of each list."""
        return self.source.top(self.request, self.k)

    @cached_property
    def listed(self) -> Interactions:
        """The listed items as interactions, in the form of a test set."""
        return as_interactions(self.lists, self.test)

    @cached_property
    def places(self) -> Ranks:
        """The ranks of the listed items by `rank`, or of all rows if the source has the truth."""
        if self.given.brings_truth:
            return self.ranks
        return self.source.rank(dataclasses.replace(self.request, test=self.listed))

    @cached_property
    def flags(self) -> UInt32:
        """The `UserFlag` bits of each user: uint32 [test.n_users]."""
        return self.ranks.flags | self.places.flags

    @cached_property
    def trained(self) -> Interactions | None:
        """The training interactions of the checked users, or None if there is no train."""
        if self.train is None:
            return None
        users = SourceIndex.of_data(self.train, "train").places_of_users(self.test)
        indptr, rows = ragged.take(self.train.indptr, users)
        return self.train.with_rows(
            indptr, rows, user_ids=self.test.user_ids, values=None, times=None
        )

    @property
    def user_ids(self) -> Array | None:
        """The ids of the users of `test`."""
        return self.test.user_ids


def as_interactions(lists: TopLists, test: Interactions) -> Interactions:
    """Return lists as interactions of the users of test."""
    there = lists.items >= 0
    items = np.sort(np.where(there, lists.items, lists.n_items), axis=1)
    return Interactions(
        indptr=ragged.indptr_of(lists.lengths),
        items=items[items < lists.n_items].astype(np.int32),
        n_items=lists.n_items,
        user_ids=test.user_ids,
        item_ids=lists.item_ids,
    )


def named(items: Int64, item_ids: Array | None) -> Array:
    """Return the ids at positions, with None for -1, or the positions if there are no ids."""
    if item_ids is None:
        return items
    return np.append(item_ids.astype(object), [None])[items]

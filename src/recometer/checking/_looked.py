"""What the checks read: everything that a source is asked for, once."""

from __future__ import annotations

import dataclasses

import numpy as np

from recometer import ragged
from recometer.arrays import Array, Int64, UInt32
from recometer.data import matching
from recometer.data.interactions import Interactions
from recometer.evaluating.case import Case
from recometer.evaluating.records import request_of
from recometer.ranks import Ranks, TopLists
from recometer.remembered import cached_property
from recometer.sources.base import Request, Source


@dataclasses.dataclass(frozen=True)
class Looked:
    """The arguments, and the answers of the source.

    Attributes
    ----------
    given
        As `evaluate` reads it; its test has the users that are looked at.
    again
        The source once more: the same, or, of a model with ``recommend(...)``, its second answer.
    whole
        Test with all of its users.
    k
        How many places of each list are looked at.
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
        """The users that are looked at."""
        return self.given.sides.test

    @property
    def train(self) -> Interactions | None:
        """What must not be recommended again."""
        return self.given.arguments.train

    @cached_property
    def request(self) -> Request:
        """What the source is asked for; equal scores stand in the order of the item ids."""
        protocol = self.given.protocol.replace(ties="item")
        return dataclasses.replace(request_of(self.given), protocol=protocol, depth=None)

    @cached_property
    def ranks(self) -> Ranks:
        """Where the items of test landed."""
        return self.source.rank(self.request)

    @cached_property
    def lists(self) -> TopLists:
        """The first k places."""
        return self.source.top(self.request, self.k)

    @cached_property
    def listed(self) -> Interactions:
        """The items of the lists, as if they were test."""
        return as_interactions(self.lists, self.test)

    @cached_property
    def places(self) -> Ranks:
        """Where the listed items landed, by the word of `rank`; all rows if these are the truth."""
        if self.given.brings_truth:
            return self.ranks
        return self.source.rank(dataclasses.replace(self.request, test=self.listed))

    @cached_property
    def flags(self) -> UInt32:
        """The `UserFlag` bits of each user: uint32 [test.n_users]."""
        return self.ranks.flags | self.places.flags

    @cached_property
    def trained(self) -> Interactions | None:
        """The training interactions of the examined users, or None without train."""
        if self.train is None:
            return None
        users = matching.users_in(self.train, self.test, "train")
        if users is None:
            users = np.arange(self.test.n_users)
        indptr, rows = ragged.take(self.train.indptr, users)
        return self.train.with_rows(
            indptr, rows, user_ids=self.test.user_ids, values=None, times=None
        )

    def examples(self, users: Int64) -> tuple[object, ...]:
        """Return the ids of the first few users, or their positions."""
        few, ids = users[:EXAMPLES], self.test.user_ids
        return tuple(few.tolist() if ids is None else ids[few].tolist())


EXAMPLES = 5


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
    """Return the ids of positions, None for -1; the positions where there are no ids."""
    if item_ids is None:
        return items
    return np.append(item_ids.astype(object), [None])[items]

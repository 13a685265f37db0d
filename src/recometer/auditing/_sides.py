"""Train and test side by side, with users and items matched."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from recometer import ragged
from recometer.arrays import Array, Bool, Int64
from recometer.data.interactions import Interactions
from recometer.data.matching import (
    SourceIndex,
    check_number_of_positions,
    relevant_rows,
    settled_repeats,
    twins,
)
from recometer.errors import InputError, argument_text
from recometer.protocol import Protocol
from recometer.remembered import cached_property

BLOCK = 2**22  # interactions counted at a time

UNIX_TIME = 631_152_000  # 1990; larger times count (milli)seconds since 1970
FACTOR = 100  # times since 1990 in the same unit have a smaller ratio


@dataclasses.dataclass(frozen=True)
class Sides:
    """Train and test, as the checks read them.

    Attributes
    ----------
    train, test
    users : int64 [test.n_users]
        For each user of test, the position of the same user in train, or -1.
    items : int64 [test.n_items]
        The same for items.
    rules
        The protocol; the checks read relevant_from, min_positives and min_candidates.
    """

    train: Interactions
    test: Interactions
    users: Int64
    items: Int64
    rules: Protocol

    @classmethod
    def of(cls, train: Interactions, test: Interactions, rules: Protocol) -> Sides:
        """Match users and items by id, or by position if neither side has ids."""
        if train.times is not None and test.times is not None and len(train) and len(test):
            check_times(*((one.min(), one.max()) for one in (train.times, test.times)))
        index = SourceIndex.of_data(train, "train")
        users = index.places_of_users(test)
        if train.item_ids is None and test.item_ids is None:
            for side, data in (("train", train), ("test", test)):
                check_number_of_positions(data.n_items, len(train) + len(test), side)
        items = index.items_of(test, "test")
        items = np.arange(test.n_items) if items is None else items
        return cls(train, test, users, items, rules)

    @cached_property
    def relevant(self) -> Bool:
        """Which rows of test are relevant."""
        test = settled_repeats(self.test, "summed")
        return relevant_rows(test, self.rules.relevant_from)

    @cached_property
    def user(self) -> Int64:
        """The user of test of each of its rows."""
        return ragged.users_of(self.test.indptr)

    @cached_property
    def tested(self) -> Bool:
        """Which users have interactions in test."""
        return np.diff(self.test.indptr) > 0

    @cached_property
    def trained(self) -> Int64:
        """How many interactions each user of test has in train."""
        return np.where(self.users >= 0, np.diff(self.train.indptr)[self.users], 0)

    @cached_property
    def twin(self) -> Int64:
        """For each row of test, the row of train with the same user and item, or -1."""
        return twins(self.test, self.train, self.users, self.items)

    @cached_property
    def seen(self) -> Bool:
        """Which rows of test have an item with interactions in train."""
        return self.item_seen[self.test.items]

    @cached_property
    def item_seen(self) -> Bool:
        """Which items of test have interactions in train."""
        return (self.items >= 0) & (self.item_counts[self.items] > 0)

    @cached_property
    def item_counts(self) -> Int64:
        """How many interactions each item has in train."""
        return _count_items(self.train)

    @cached_property
    def item_counts_of_test(self) -> Int64:
        """How many interactions each item has in test."""
        return _count_items(self.test)

    def count_users(self, rows: Bool) -> Int64:
        """Count the chosen rows of test of each user."""
        return np.diff(ragged.offsets(rows, self.test.indptr))

    @cached_property
    def left(self) -> Int64:
        """How many relevant interactions of test each user has that are not in train."""
        return self.count_users(self.relevant & (self.twin < 0))

    @cached_property
    def candidates(self) -> Int64:
        """How many items of train or test each user does not have in train."""
        return self.train.n_items + np.count_nonzero(self.items < 0) - self.trained


def newest(data: Interactions) -> tuple[Array, Bool]:
    """Return each user's newest time, and whether the user has one: bool [n_users]."""
    assert data.times is not None
    known = np.diff(data.indptr) > 0
    times = np.zeros(data.n_users, data.times.dtype)
    if known.any():
        times[known] = np.maximum.reduceat(data.times, data.indptr[:-1][known])
    return times, known


def _count_items(data: Interactions) -> Int64:
    """Return how many interactions each item has: int64 [n_items]."""
    counts = np.zeros(data.n_items, np.int64)
    # Count block by block, because bincount copies arrays that are not int64.
    for begin in range(0, len(data), BLOCK):
        counts += np.bincount(data.items[begin : begin + BLOCK], minlength=data.n_items)
    return counts


def check_times(train: tuple[Any, Any], test: tuple[Any, Any]) -> None:
    """Raise InputError if times have different units, such as seconds and milliseconds.

    Parameters
    ----------
    train, test
        The oldest and the newest time of each side.
    """
    for early, late in ((train, test), (test, train)):
        if late[0] > max(UNIX_TIME, FACTOR * max(abs(float(end)) for end in early)):
            raise InputError(
                f"The times of train ({train[0]} to {train[1]}) and of test ({test[0]} to "
                f"{test[1]}) are of different kinds: they differ by a factor of more than "
                f"{FACTOR}. Dates are microseconds since 1970. Hint: convert one side, or pass "
                f"{argument_text('time', False)} to leave times unchecked."
            )

"""Train and test side by side, their users and items matched."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from recometer import ragged
from recometer.arrays import Array, Bool, Int64
from recometer.auditing.findings import Finding, Level, counted
from recometer.data.interactions import Interactions
from recometer.data.matching import (
    SourceIndex,
    check_number_of_positions,
    places_of_users,
    relevant_rows,
    settled_repeats,
    twins,
)
from recometer.errors import InputError
from recometer.protocol import Protocol
from recometer.remembered import cached_property

EXAMPLES = 5
BLOCK = 2**22  # interactions that are counted at once

UNIX_TIME = 631_152_000  # 1990 in seconds: what is larger counts seconds, or less, since 1970
APART = 100  # no two times since 1990 differ by this factor, if they count the same


@dataclasses.dataclass(frozen=True)
class Sides:
    """What the checks read.

    Attributes
    ----------
    train, test
    users : int64 [test.n_users]
        The user of train that each user of test is, -1 where there is none.
    items : int64 [test.n_items]
        The same for items.
    rules
        Rules, of which relevant_from, min_positives and min_candidates are read.
    """

    train: Interactions
    test: Interactions
    users: Int64
    items: Int64
    rules: Protocol

    @classmethod
    def of(cls, train: Interactions, test: Interactions, rules: Protocol) -> Sides:
        """Match users and items by id, or by position where neither side has ids."""
        if train.times is not None and test.times is not None and len(train) and len(test):
            check_times(*((one.min(), one.max()) for one in (train.times, test.times)))
        return cls.of_some_users(train, test, rules)

    @classmethod
    def of_some_users(cls, train: Interactions, test: Interactions, rules: Protocol) -> Sides:
        """Match the sides of some users, one of which may be empty."""
        users = places_of_users(train, test, "train")
        if train.item_ids is None and test.item_ids is None:
            for side, data in (("train", train), ("test", test)):
                check_number_of_positions(data.n_items, len(train) + len(test), side)
        items = SourceIndex.of_data(train, "train").items_of(test, "test")
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
        """Which users of test have interactions there."""
        return np.diff(self.test.indptr) > 0

    @cached_property
    def trained(self) -> Int64:
        """How many interactions each user of test has in train."""
        return np.where(self.users >= 0, np.diff(self.train.indptr)[self.users], 0)

    @cached_property
    def twin(self) -> Int64:
        """The row of train with the user and item of each row of test, -1 where there is none."""
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
        """How many interactions each item of train has there."""
        return _count_items(self.train)

    @cached_property
    def item_counts_of_test(self) -> Int64:
        """How many interactions each item of test has there."""
        return _count_items(self.test)

    def count_users(self, rows: Bool) -> Int64:
        """Return how many of some rows of test each of its users has."""
        return np.diff(ragged.offsets(rows, self.test.indptr))

    @cached_property
    def left(self) -> Int64:
        """How many relevant interactions users have in test and not in train."""
        return self.count_users(self.relevant & (self.twin < 0))

    @cached_property
    def candidates(self) -> Int64:
        """How many items of train and test together each user does not have in train."""
        return self.train.n_items + np.count_nonzero(self.items < 0) - self.trained

    @staticmethod
    def examples(positions: npt.NDArray[np.integer], ids: Array | None) -> tuple[Any, ...]:
        """Return the ids at the first few positions."""
        few = positions[:EXAMPLES]
        return tuple(few.tolist() if ids is None else ids[few].tolist())


def newest(data: Interactions) -> tuple[Array, Bool]:
    """Return the newest time of each user, and whether the user has one: bool [n_users]."""
    assert data.times is not None
    known = np.diff(data.indptr) > 0
    times = np.zeros(data.n_users, data.times.dtype)
    if known.any():
        times[known] = np.maximum.reduceat(data.times, data.indptr[:-1][known])
    return times, known


def _count_items(data: Interactions) -> Int64:
    """Return how many interactions each item has: int64 [n_items]."""
    counts = np.zeros(data.n_items, np.int64)
    # A block at a time: bincount copies what is not int64.
    for begin in range(0, len(data), BLOCK):
        counts += np.bincount(data.items[begin : begin + BLOCK], minlength=data.n_items)
    return counts


def check_times(train: tuple[Any, Any], test: tuple[Any, Any]) -> None:
    """Refuse times that cannot count the same, such as seconds and milliseconds since 1970.

    Parameters
    ----------
    train, test
        The oldest and the newest time of each side.
    """
    for early, late in ((train, test), (test, train)):
        if late[0] > max(UNIX_TIME, APART * max(abs(float(end)) for end in early)):
            raise InputError(
                f"The times of train ({train[0]} to {train[1]}) and of test ({test[0]} to "
                f"{test[1]}) are of different kinds: they differ by a factor of more than {APART}. "
                "Dates are microseconds since 1970. Hint: convert one side, or pass time=False to "
                "leave times unchecked."
            )


def of_rows(
    sides: Sides,
    chosen: Bool,
    what: str,
    level: Level,
    found: str,
    clear: str,
    among: Bool | None = None,
    statistics: Mapping[str, float] | None = None,
) -> Finding:
    """Return what was found in some rows of test, bool [len(test)], of all or of those `among`.

    The sentence is `found` if there are such rows, and `clear` if there are none.
    """
    total = len(chosen) if among is None else int(np.count_nonzero(among))
    rows = np.flatnonzero(chosen)
    few = rows[:EXAMPLES]
    users = sides.examples(sides.user[few], sides.test.user_ids)
    examples = zip(users, sides.examples(sides.test.items[few], sides.test.item_ids), strict=True)
    return counted(len(rows), total, tuple(examples), what, level, found, clear, statistics)


def of_users(
    sides: Sides, chosen: Bool, what: str, level: Level, found: str, clear: str
) -> Finding:
    """Return what was found in some users of test, bool [test.n_users]."""
    users = np.flatnonzero(chosen)
    examples = sides.examples(users, sides.test.user_ids)
    total = int(np.count_nonzero(sides.tested))
    return counted(len(users), total, examples, what, level, found, clear)

"""The facts that an audit needs; they can be computed for blocks of users and then combined."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypedDict

import numpy as np

from recometer import ragged
from recometer.arrays import Array, Bool, Int64
from recometer.auditing.findings import EXAMPLES, examples_at
from recometer.data.ids import show
from recometer.data.interactions import Interactions, check_positions
from recometer.data.matching import (
    SourceIndex,
    find_rows,
    relevant_rows,
    resolve_repeats,
)
from recometer.errors import InputError, argument_text
from recometer.protocol import Protocol

BLOCK = 2**22  # `_count_items` counts this many interactions at a time

UNIX_TIME = 631_152_000  # the seconds from 1970 to 1990; larger numbers are read as Unix times
FACTOR = 100  # Unix times that differ by more than this factor are in different units


class Matches(NamedTuple):
    """The number of rows, users or items that a check found, and the first few of them."""

    n: int
    examples: tuple[Any, ...]

    def __add__(self, other: Any) -> Matches:
        """Return the total number, and the first few examples from both blocks of users."""
        first = sorted([*self.examples, *other.examples])[:EXAMPLES]
        return Matches(self.n + other.n, tuple(first))


class BlockFacts(TypedDict):
    """The facts about a block of users; to combine blocks, add up the values of each key."""

    matches: dict[str, Matches]  # as in `Facts`
    counts: dict[str, int]  # as in `Facts`


@dataclasses.dataclass(frozen=True, kw_only=True)
class Facts:
    """The facts about all users and items.

    Attributes
    ----------
    matches
        The rows, users or items that each check found, keyed by the name of the check.
    counts
        The numbers of rows (``"train"``, ``"test"``, ``"relevant"``), of users (``"tested"``,
        ``"users_trained"``) and of items (``"items_tested"``). If there are times, also the number
        of pairs whose training and test times are equal (``"same_time"``), and the number of
        training interactions that are newer than the oldest test interaction
        (``"training_newer"``).
    rules
        The rules that determine which users are evaluated.
    first
        A function that takes a side and a kind of id, as in ``first("test", "user")``, and returns
        the first id as a string, or None if there are no ids.
    untimed, valued
        The names of the sides (train, test) without times, and of those with values.
    """

    matches: Mapping[str, Matches]
    counts: Mapping[str, int]
    rules: Protocol
    first: Callable[[str, str], str | None]
    untimed: tuple[str, ...]
    valued: tuple[str, ...]


class SplitFacts(NamedTuple):
    """Facts about the whole split, on which the facts about each block of users depend.

    `ends` contains the newest training and the oldest test time, or is None if a side has no times.
    """

    rules: Protocol
    n_items: int
    ends: tuple[Any, Any] | None


def locate(train: Interactions, test: Interactions) -> tuple[Int64, Int64]:
    """Return the positions of all test users and items in the training data, or -1 if absent."""
    index = SourceIndex.of_data(train, "train")
    users = index.places_of_users(test)
    if train.item_ids is None and test.item_ids is None:
        for side, data in (("train", train), ("test", test)):
            check_positions(data.n_items, len(train) + len(test), f"The items of {side}")
    items = index.items_of(test, "test")
    return users, np.arange(test.n_items) if items is None else items


def facts_of_block(
    train: Interactions,
    test: Interactions,
    users: Int64,
    items: Int64,
    item_seen: Bool,
    split: SplitFacts,
) -> BlockFacts:
    """Return the facts about a block of users, based on all of their rows.

    `users` and `items` are the results of `locate`. `item_seen`, bool [test.n_items], marks the
    test items that are also training items.
    """
    rules = split.rules
    user = ragged.users_of(test.indptr)
    of_train, of_test = np.diff(train.indptr), np.diff(test.indptr)
    tested, trained = of_test > 0, np.append(of_train, 0)[users]  # -1 selects the appended 0
    train_row = find_rows(test.indptr, items[test.items], train.indptr, train.items, users)
    relevant = relevant_rows(resolve_repeats(test, "summed"), rules.relevant_from)
    untested = of_train > 0
    untested[users[tested & (users >= 0)]] = False

    def of_rows(chosen: Bool) -> Matches:
        rows = np.flatnonzero(chosen)
        first = rows[:EXAMPLES]
        users_of = examples_at(user[first], test.user_ids)
        items_of = examples_at(test.items[first], test.item_ids)
        return Matches(len(rows), tuple(zip(users_of, items_of, strict=True)))

    def count_users(rows: Bool) -> Int64:
        return np.diff(ragged.offsets(rows, test.indptr))

    n_relevant, n_left = count_users(relevant), count_users(relevant & (train_row < 0))
    enough = split.n_items - trained >= rules.min_candidates
    matches = {
        "overlap": of_rows(train_row >= 0),
        "unreachable": of_rows(relevant & ~item_seen[test.items]),
        "train_duplicates": Matches(train.duplicates, train.repeated),
        "test_duplicates": Matches(test.duplicates, test.repeated),
        "unseen_users": matches_of(tested & (trained == 0), test.user_ids),
        "users_without_relevant": matches_of(tested & (n_relevant == 0), test.user_ids),
        "users_emptied": matches_of((n_relevant > 0) & (n_left == 0), test.user_ids),
        "users_without_candidates": matches_of((n_left > 0) & ~enough, test.user_ids),
        "users_few_relevant": matches_of(
            (n_left > 0) & (n_left < rules.min_positives) & enough, test.user_ids
        ),
        "untested_users": matches_of(untested, train.user_ids),
    }
    counts = {
        "train": len(train),
        "test": len(test),
        "relevant": int(np.count_nonzero(relevant)),
        "tested": int(np.count_nonzero(tested)),
        "users_trained": int(np.count_nonzero(of_train)),
    }
    if split.ends is not None:
        assert train.times is not None
        assert test.times is not None
        newest, oldest = split.ends
        last, has_times = (entries[users][user] for entries in _newest(train))
        paired = train_row >= 0
        matches["older_than_own_training"] = of_rows(has_times & (test.times < last))
        matches["older_than_training"] = of_rows(test.times < newest)
        matches["same_time"] = of_rows(has_times & (test.times == last))
        same = train.times[train_row[paired]] == test.times[paired]
        counts["same_time"] = int(np.count_nonzero(same))
        counts["training_newer"] = int(np.count_nonzero(train.times > oldest))
    return {"matches": matches, "counts": counts}


def facts_of(train: Interactions, test: Interactions, rules: Protocol) -> Facts:
    """Return the facts about both sides, matched by id, or by position if there are no ids."""
    sides, ends = {"train": train, "test": test}, None
    untimed = tuple(name for name, data in sides.items() if data.times is None)
    if train.times is not None and test.times is not None:
        ends = ends_of(train.times, test.times)
    users, items = locate(train, test)
    of_train, of_test = _count_items(train), _count_items(test)
    item_seen = np.append(of_train, 0)[items] > 0
    n_items = train.n_items + int(np.count_nonzero(items < 0))
    split = SplitFacts(rules, n_items, ends)
    block = facts_of_block(train, test, users, items, item_seen, split)

    def first(side: str, kind: str) -> str | None:
        ids = getattr(sides[side], f"{kind}_ids")
        return None if ids is None else show(ids, 0)

    unseen = matches_of((of_test > 0) & ~item_seen, test.item_ids)
    return Facts(
        matches={**block["matches"], "unseen_items": unseen},
        counts={**block["counts"], "items_tested": int(np.count_nonzero(of_test))},
        rules=rules,
        first=first,
        untimed=untimed,
        valued=tuple(name for name, data in sides.items() if data.values is not None),
    )


def matches_of(chosen: Bool, ids: Array | None) -> Matches:
    """Return the number of users or items that `chosen` selects, and the first few of them."""
    places = np.flatnonzero(chosen)
    return Matches(len(places), examples_at(places, ids))


def _newest(data: Interactions) -> tuple[Array, Bool]:
    """Return two arrays [n_users + 1]: each user's newest time, and whether the user has any times.

    The last entry is for position -1, which stands for users who are not in the data.
    """
    assert data.times is not None
    has_times = np.append(np.diff(data.indptr) > 0, False)
    times = np.zeros(len(has_times), data.times.dtype)
    if has_times.any():
        times[has_times] = np.maximum.reduceat(data.times, data.indptr[:-1][has_times[:-1]])
    return times, has_times


def _count_items(data: Interactions) -> Int64:
    """Return the number of interactions with each item: int64 [n_items]."""
    counts = np.zeros(data.n_items, np.int64)
    # Count block by block, because bincount copies arrays that are not int64.
    for begin in range(0, len(data), BLOCK):
        counts += np.bincount(data.items[begin : begin + BLOCK], minlength=data.n_items)
    return counts


def ends_of(train: Array, test: Array) -> tuple[Any, Any]:
    """Return the newest training time and the oldest test time, which must have the same unit."""
    ends = [(times.min(), times.max()) for times in (train, test)]
    for early, late in (ends, ends[::-1]):
        if late[0] > max(UNIX_TIME, FACTOR * max(abs(float(end)) for end in early)):
            raise InputError(
                f"The times of train ({ends[0][0]} to {ends[0][1]}) and of test ({ends[1][0]} to "
                f"{ends[1][1]}) are of different kinds: they differ by a factor of more than "
                f"{FACTOR}. Dates are microseconds since 1970. Hint: convert one side, or pass "
                f"{argument_text('time', False)} to leave times unchecked."
            )
    return ends[0][1], ends[1][0]

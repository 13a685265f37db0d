"""Matches the users and items of two data sets ("sides") by id or by position."""

from __future__ import annotations

import dataclasses
import math
from typing import TypeGuard

import numpy as np

from recometer import _kernel, ragged
from recometer.arrays import Array, Bool, Float64, Int32, Int64
from recometer.data import ids
from recometer.data.interactions import Interactions
from recometer.errors import InputError, python_or_command, rule_text, warn
from recometer.protocol import RelevantFrom, RepeatedTest
from recometer.remembered import cached_property

DATA = ("test", "train", "candidates")
# Calls that give ids to a side, for hints.
GIVES_IDS = {
    **dict.fromkeys(DATA, "rm.Interactions.of({side}, {name}_ids=...)"),
    **dict.fromkeys(("Factors", "Scores"), "rm.{side}(..., {name}_ids=...)"),
    "Lists": "rm.Lists(array, user_ids=..., item_ids=...), or evaluator.stream(item_ids=...),",
    "Pairs": "rm.Pairs(frame, {name}=...)",
    "The stream": "evaluator.stream({name}_ids=...)",
    "the catalogue": "rm.Catalogue(frame, item=...)",
}


@dataclasses.dataclass(frozen=True)
class SourceIndex:
    """The users and items of a source."""

    name: str  # the source's name in messages: "Factors"
    n_users: int | None  # None if every user has the same ranking
    n_items: int
    user_ids: Array | None  # from `ids.as_ids`, in any order; None for positions
    item_ids: Array | None

    @classmethod
    def of(
        cls, name: str, n_users: int | None, n_items: int, user_ids: object, item_ids: object
    ) -> SourceIndex:
        """Make an index after checking the ids; for the arguments, see the fields."""
        arrays: list[Array | None] = []
        for kind, n, argument in (("user", n_users, user_ids), ("item", n_items, item_ids)):
            array = None
            if n is not None and argument is not None:
                codes, distinct = ids.encode_distinct(argument, n, kind, name)
                array = distinct[codes]
            arrays.append(array)
        return cls(name, n_users, n_items, *arrays)

    @property
    def ids(self) -> dict[str, Array | None]:
        """The user and item ids, keyed by their names in `Facts.arrays`."""
        return {"user_ids": self.user_ids, "item_ids": self.item_ids}

    @classmethod
    def of_data(cls, data: Interactions, name: str) -> SourceIndex:
        """Return the index of training or other data, for looking up test users and test items."""
        index = cls(name, data.n_users, data.n_items, data.user_ids, data.item_ids)
        vars(index)["sorted_items"] = None, data.item_ids  # these ids are already sorted
        return index

    def places_of_users(self, test: Interactions) -> Int64:
        """Return the row of each test user, or -1 for unknown users."""
        rows = self.users_of(test)
        return np.arange(test.n_users) if rows is None else rows

    def users_of(self, test: Interactions) -> Int64 | None:
        """Return the source's row for each test user, or -1 for unknown users.

        None means that the test data have the same rows.
        """
        if self.n_users is None:
            return np.zeros(test.n_users, np.int64)
        if both_have_ids("user", self.name, self.user_ids, "test", test.user_ids):
            assert self.user_ids is not None
            assert test.user_ids is not None
            if _equal(self.user_ids, test.user_ids):
                return None
            noun = f"user ids of {self.name}"
            # If the source has no sessions, it applies to all sessions of a user.
            named = ids.drop_sessions(test.user_ids, self.user_ids)
            return ids.match(named, self.user_ids, "user ids of test", noun)
        if self.n_users != test.n_users:
            swapped = (self.n_items, self.n_users) == (test.n_users, test.n_items)
            hint = "Is it transposed (rows are users, columns items)? " if swapped else ""
            raise InputError(
                f"{self.name} has {self.n_users:,} users, but test has {test.n_users:,}. "
                f"{hint}Hint: without ids, row u must be the same user in both; to evaluate only "
                "some of the users, pass user ids for both."
            )
        return None

    @cached_property
    def sorted_items(self) -> tuple[Int64 | None, Array | None]:
        """The order that sorts the items by id (None if they are sorted), and the sorted ids."""
        if self.item_ids is None:
            return None, None
        positions, distinct = ids.encode(self.item_ids, f"item ids of {self.name}")
        if (positions[1:] > positions[:-1]).all():
            return None, distinct
        rows = np.empty_like(positions)
        rows[positions] = np.arange(len(positions))
        return rows, distinct

    def items_of(self, data: Interactions, name: str, *, same_size: bool = True) -> Int64 | None:
        """Map the items of `data` to positions in the source (-1 if unknown).

        The result is None if the positions are the same in both. If items have no ids, `same_size`
        requires both sides to have the same number of items.
        """
        sorted_ids = self.sorted_items[1]
        if not both_have_ids("item", self.name, sorted_ids, name, data.item_ids):
            if same_size and self.n_items != data.n_items:
                raise InputError(
                    f"{self.name} has {self.n_items:,} items, but {name} has {data.n_items:,}. "
                    "Hint: without ids, column i must be the same item in both; a test with fewer "
                    "items still needs the shape of the whole catalogue."
                )
            return None
        assert sorted_ids is not None
        assert data.item_ids is not None
        if _equal(sorted_ids, data.item_ids):
            return None
        matched = ids.match(
            data.item_ids, sorted_ids, f"item ids of {name}", f"item ids of {self.name}"
        )
        same = len(matched) == self.n_items and bool((matched == np.arange(len(matched))).all())
        return None if same else matched

    def rows_of(
        self, test: Interactions, data: Interactions, name: str
    ) -> tuple[Int64, Int32, Int64 | None]:
        """Return the rows of `data` for each test user, and the positions of items in the source.

        The result consists of the indptr of the rows, their items (numbered as in `data`), and the
        source's position of each item of `data` as int64 [data.n_items]. These positions are -1 for
        items that the source does not know, and None if they are the same in both.
        """
        positions = self.items_of(data, name)
        users = SourceIndex.of_data(data, name).users_of(test)
        if users is None:
            return data.indptr, data.items, positions
        _warn_of_strangers(users, data, test, name)
        indptr, rows = ragged.take(data.indptr, users)
        return indptr, data.items[rows], positions

    def check_items(self, test: Interactions, items: Int32, unknown: Bool) -> None:
        """Refuse test data if the source knows none of the test items."""
        sorted_ids = self.sorted_items[1]
        if len(items) and unknown.all() and test.item_ids is not None and sorted_ids is not None:
            raise InputError(
                f"None of the {len(np.unique(items)):,} items of test, such as "
                f"{ids.show(test.item_ids, int(items[0]))}, is in {self.name}. Hint: its item ids "
                f"look like {ids.show(sorted_ids, 0)}."
            )


def both_have_ids(
    kind: str, name: str, ids: Array | None, other: str, other_ids: Array | None
) -> bool:
    """Return True if two sides are matched by ids, and False if neither has ids.

    If only one side has ids, raise InputError. `kind` is ``"user"`` or ``"item"``. `name` and
    `other` name the sides in messages, such as ``"Factors"`` and ``"test"``.
    """
    if (ids is None) == (other_ids is None):
        return ids is not None
    owner, peer = (name, other) if other_ids is None else (other, name)
    hints = []
    if peer in GIVES_IDS:
        hints.append(f"{GIVES_IDS[peer].format(side=peer, name=kind)} gives it ids")
    if owner in DATA:
        call = f"rm.Interactions.of({owner}, n_users=..., n_items=...)"
        hints.append(f"{call} reads the users and items of {owner} as positions")
    hint = python_or_command("; or ".join(hints), "") or "pass ids for both, or for neither"
    raise InputError(
        f"{owner} has {kind} ids, but {peer} has none: its {kind}s are positions, which cannot be "
        f"matched to ids. Hint: {hint}."
    )


def _equal(ids: Array, other_ids: Array) -> bool:
    return ids.dtype == other_ids.dtype and np.array_equal(ids, other_ids)


def _warn_of_strangers(users: Int64, data: Interactions, test: Interactions, name: str) -> None:
    """Warn if `data` contains none of the test users; `users` are their rows in `data`, or -1."""
    if len(data) and (users < 0).all() and data.user_ids is not None and test.user_ids is not None:
        warn(
            f"{name} has none of the {test.n_users:,} test users. Hint: are its user ids, "
            f"such as {ids.show(data.user_ids, 0)}, written like those of test, such as "
            f"{ids.show(test.user_ids, 0)}?"
        )


def warn_of_unknown_train(source: str) -> None:
    """Warn that a source knows none of the test users' training items."""
    warn(
        f"None of the test users' training items is in {source}, so no item is left out of a "
        f"ranking. Hint: are the item ids of train written like those of {source}?"
    )


def known_rows(indptr: Int64, items: Int32, positions: Int64 | None) -> tuple[Int64, Int32]:
    """Return the rows whose items the source knows, with the positions of these items."""
    if positions is None:
        return indptr, items
    places = positions[items].astype(np.int32)
    keep = places >= 0
    return (indptr, places) if keep.all() else (ragged.offsets(keep, indptr), places[keep])


def find_rows(
    indptr: Int64,
    items: Int32 | Int64,
    other_indptr: Int64,
    other_items: Int32,
    users: Int64 | None = None,
) -> Int64:
    """Return, for each row, the row of another table with the same user and item, or -1.

    Items that the other table does not have must be -1. The other table must list each user's items
    in ascending order. `users` holds the position of each user in the other table, or -1 if the
    user is not in it. None means that both tables have the same users in the same order.
    """
    rows = np.empty(len(items), np.int64)
    _kernel.find_rows(
        indptr=indptr,
        items=items.astype(np.int32, copy=False),
        users=users,
        other_indptr=other_indptr,
        other_items=other_items,
        found=rows,
    )
    return rows


def in_train(test: Interactions, train: Interactions) -> Bool:
    """Return a mask of the test rows whose user and item also occur in train: bool [len(test)]."""
    index = SourceIndex.of_data(train, "train")
    positions = index.items_of(test, "test", same_size=False)
    items = test.items if positions is None else positions[test.items]
    users = index.users_of(test)
    return find_rows(test.indptr, items, train.indptr, train.items, users) >= 0


def relevant_rows(test: Interactions, relevant_from: RelevantFrom) -> Bool:
    """Return a mask of the relevant test rows: bool [len(test)].

    A threshold is refused if the values of repeated pairs were added up.
    """
    if test.values is None:
        return np.full(len(test), is_relevant(np.ones(1), relevant_from)[0])
    if test.largest is not None and is_threshold(relevant_from):
        pair = "{!r} and {!r}".format(*test.repeated[0]) if test.repeated else ""
        rule = f"relevant_from={relevant_from:g}"
        raise threshold_error(test.duplicates, len(test), rule, pair)
    return is_relevant(test.values, relevant_from)


def is_threshold(relevant_from: RelevantFrom) -> TypeGuard[float]:
    """Return whether a rule compares values with a number."""
    return isinstance(relevant_from, int | float) and relevant_from > -math.inf


def threshold_error(n_repeated: int, n_pairs: int, threshold: str, pair: str = "") -> InputError:
    """Return the error for a threshold when no rule says how to combine repeated pairs."""
    rows = f"{n_repeated:,} of {n_repeated + n_pairs:,} rows" if n_repeated else "Rows"
    example = f" (the first: {pair})" if pair else ""
    return InputError(
        f"{rows} of test repeat a user-item pair{example}, and {threshold} does not define how to "
        "combine their values: two ratings of 2 would become one of 4. Hint: "
        f"{rule_text('repeated_test', 'summed')} adds such values up first (plays), "
        f"{rule_text('repeated_test', 'largest')} takes the largest (ratings); or keep only one "
        "row of each pair."
    )


def resolve_repeats(test: Interactions, repeated_test: RepeatedTest) -> Interactions:
    """Return test data with a single value per pair, according to `repeated_test`."""
    values, copies, largest = test.values, test.copies, test.largest
    if values is None or repeated_test == "once":
        return test
    if repeated_test == "largest" and largest is not None:
        values = largest
    elif repeated_test in ("counted", "joined") and copies is not None:
        values = values / copies
    elif largest is None:
        return test
    return dataclasses.replace(test, values=values, largest=None)


def is_relevant(values: Float64, relevant_from: RelevantFrom) -> Bool:
    """Return a mask of the values that make items relevant under the rule `relevant_from`."""
    if relevant_from is None:
        return values > 0
    return values != 0 if relevant_from == "not_zero" else values >= relevant_from

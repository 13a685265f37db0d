"""Match the users and items of data with those of a source: by id, or by position."""

from __future__ import annotations

import dataclasses

import numpy as np
import numpy.typing as npt

from recometer import ragged
from recometer.arrays import Array, Bool, Int32, Int64
from recometer.data import ids
from recometer.data.interactions import Interactions
from recometer.errors import InputError, warn


@dataclasses.dataclass(frozen=True)
class SourceIndex:
    """Which users and items a source has.

    Attributes
    ----------
    what
        The source's name for messages: ``"Factors"``.
    n_users
        None: the same ranking for every user, whoever it is.
    n_items
    user_ids, item_ids
        As `ids.as_ids` returns them, in any order; None: positions.
    """

    what: str
    n_users: int | None
    n_items: int
    user_ids: Array | None
    item_ids: Array | None

    @classmethod
    def of(
        cls, what: str, n_users: int | None, n_items: int, user_ids: object, item_ids: object
    ) -> SourceIndex:
        """Check ids and make the index; see the attributes."""
        return cls(
            what,
            n_users,
            n_items,
            None if n_users is None else _checked_ids(what, "user", n_users, user_ids),
            _checked_ids(what, "item", n_items, item_ids),
        )


def _checked_ids(what: str, name: str, n: int, given: object) -> Array | None:
    if given is None:
        return None
    array = ids.as_ids(given, f"{name} ids of {what}")
    if len(array) != n:
        raise InputError(
            f"{what} has {n:,} {name}s, but {len(array):,} {name}_ids. "
            f"Hint: {name}_ids names the {name} of each row, in the same order."
        )
    codes, distinct = ids.encode(array, f"{name} ids of {what}")
    if len(distinct) != n:
        twice = array.tolist()[int(np.flatnonzero(np.bincount(codes)[codes] > 1)[0])]
        raise InputError(f"{name}_ids of {what} must be distinct, {twice!r} is there twice.")
    return array


def check_items(
    index: SourceIndex,
    sorted_ids: Array | None,
    test: Interactions,
    items: Int32,
    unknown: Bool,
) -> None:
    """Refuse a test without an item that the source knows."""
    if len(items) and unknown.all() and test.item_ids is not None and sorted_ids is not None:
        raise InputError(
            f"{index.what} knows none of the {len(np.unique(items)):,} items of test, such as "
            f"{ids.show(test.item_ids, int(items[0]))}. Hint: its item ids are like "
            f"{ids.show(sorted_ids, 0)}."
        )


def _sides(name: str, left: str, left_has: bool, right: str, right_has: bool) -> InputError:
    has, lacks = (left, right) if left_has else (right, left)
    return InputError(
        f"{has} has {name} ids, but {lacks} has none: its {name}s are positions, and nothing says "
        f"which is which. Hint: {_give_ids(name, lacks)} gives it ids; or "
        f"{_take_ids(name, has)}."
    )


def _give_ids(name: str, side: str) -> str:
    if side in ("test", "train", "candidates"):
        return f"rm.Interactions.of({side}, {name}_ids=...)"
    return f"rm.{side}(..., {name}_ids=...)"


def _take_ids(name: str, side: str) -> str:
    if side in ("test", "train", "candidates"):
        return (
            f"rm.Interactions.of({side}, n_users=..., n_items=...) reads the users and items of "
            f"{side} as positions"
        )
    return f"leave {name}_ids= of {side} out, so that its {name}s are positions"


def match_users(index: SourceIndex, test: Interactions) -> Int64:
    """Return the row of each user of test in the source, -1 where there is none."""
    if index.n_users is None:
        return np.zeros(test.n_users, np.int64)
    if (index.user_ids is None) != (test.user_ids is None):
        raise _sides("user", index.what, index.user_ids is not None, "test", bool(test.n_users))
    if index.user_ids is None or test.user_ids is None:
        if index.n_users != test.n_users:
            raise InputError(
                f"{index.what} has {index.n_users:,} users, but test has {test.n_users:,}. "
                f"{_transposed(index, test)}Hint: without ids row u of both is the same user; "
                "give both sides user ids to evaluate some of the users."
            )
        return np.arange(test.n_users)
    return ids.match(test.user_ids, index.user_ids, "user ids of test", f"user ids of {index.what}")


def _transposed(index: SourceIndex, data: Interactions) -> str:
    swapped = (index.n_items, index.n_users) == (data.n_users, data.n_items)
    return "Is it transposed (rows are users, columns items)? " if swapped else ""


def sorted_items(index: SourceIndex) -> tuple[Int64 | None, Array | None]:
    """Return the rows of the items by ascending id (None: the same order), and these ids."""
    if index.item_ids is None:
        return None, None
    positions, distinct = ids.encode(index.item_ids, f"item ids of {index.what}")
    if (positions[1:] > positions[:-1]).all():
        return None, distinct
    rows = np.empty_like(positions)
    rows[positions] = np.arange(len(positions))
    return rows, distinct


def match_items(
    index: SourceIndex, sorted_ids: Array | None, data: Interactions, what: str
) -> Int64 | None:
    """Return the position of each item of `data`, -1 where there is none; None: the same."""
    if (sorted_ids is None) != (data.item_ids is None):
        raise _sides("item", index.what, sorted_ids is not None, what, data.item_ids is not None)
    if sorted_ids is None or data.item_ids is None:
        if index.n_items != data.n_items:
            raise InputError(
                f"{index.what} has {index.n_items:,} items, but {what} has {data.n_items:,}. "
                "Hint: without ids column i of both is the same item; a test that names fewer "
                "items still needs the shape of the whole catalogue."
            )
        return None
    matched = ids.match(
        data.item_ids, sorted_ids, f"item ids of {what}", f"item ids of {index.what}"
    )
    same = len(matched) == index.n_items and bool((matched == np.arange(len(matched))).all())
    return None if same else matched


def rows_of(
    index: SourceIndex,
    sorted_ids: Array | None,
    test: Interactions,
    data: Interactions,
    what: str,
) -> tuple[Int64, Int32, Int64 | None]:
    """Return the rows that `data` has of each user of test, and where its items lie.

    Returns
    -------
    indptr : int64 [n_users + 1]
    items : int32
        As `data` numbers them.
    positions : int64 [data.n_items] or None
        Their item positions, -1 for what the source does not know; None: the same.
    """
    positions = match_items(index, sorted_ids, data, what)
    if (data.user_ids is None) != (test.user_ids is None):
        raise _sides("user", what, data.user_ids is not None, "test", test.user_ids is not None)
    indptr, items = data.indptr, data.items
    if data.user_ids is None or test.user_ids is None:
        if data.n_users != test.n_users:
            raise InputError(
                f"{what} has {data.n_users:,} users, but test has {test.n_users:,}. Hint: without "
                "ids row u of both is the same user."
            )
    elif not np.array_equal(data.user_ids, test.user_ids):
        users = ids.match(test.user_ids, data.user_ids, "user ids of test", f"user ids of {what}")
        if len(data) and (users < 0).all():
            warn(
                f"{what} has none of the {test.n_users:,} users of test. Hint: are its user ids, "
                f"such as {ids.show(data.user_ids, 0)}, written like those of test, such as "
                f"{ids.show(test.user_ids, 0)}?"
            )
        indptr, rows = ragged.take(indptr, users)
        items = items[rows]
    return indptr, items, positions


def known_rows(indptr: Int64, items: Int32, positions: Int64 | None) -> tuple[Int64, Int32]:
    """Return the rows whose items the source knows, by their item positions."""
    if positions is None:
        return indptr, items
    found = positions[items].astype(np.int32)
    keep = found >= 0
    return (indptr, found) if keep.all() else (ragged.offsets(keep, indptr), found[keep])


def items_in(data: Interactions, test: Interactions) -> npt.NDArray[np.integer]:
    """Return the items of test as `data` numbers them, -1 for what is not there."""
    if data.item_ids is None or test.item_ids is None:
        return test.items
    if np.array_equal(data.item_ids, test.item_ids):
        return test.items
    codes = ids.match(test.item_ids, data.item_ids, "item ids of test", "item ids of train")
    return codes[test.items]


def relevant_rows(test: Interactions, relevant_from: float | None) -> Bool:
    """Return which rows of test are relevant: bool [len(test)]."""
    if test.values is None:
        return np.full(len(test), relevant_from is None or relevant_from <= 1)
    return test.values != 0 if relevant_from is None else test.values >= relevant_from

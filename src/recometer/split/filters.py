"""Filters that drop interactions from the data before a split, or from the test data after it."""

from __future__ import annotations

import dataclasses
import numbers
from typing import Literal, NamedTuple

import numpy as np

from recometer import _kernel
from recometer._kernel import RowOrder
from recometer.arrays import Bool, Float64
from recometer.data.numbers import flag
from recometer.errors import InputError, argument_text, python_or_command
from recometer.split.checks import check_whole
from recometer.split.grouping import number_rows
from recometer.split.table import Table


class Kept(NamedTuple):
    """A mask (bool [n]) of the rows that a filter keeps, and their values if it changes them."""

    rows: Bool
    values: Float64 | None = None


class Named:
    """The base class of filters, which messages show as Python calls or command-line options."""

    option: str | None = None  # the option and its value, if the filter is from the command line

    def __str__(self) -> str:
        return python_or_command(repr(self), self.option or repr(self))


class Filter(Named):
    """A filter that leaves out rows before the split."""

    def kept(self, table: Table, threads: int) -> Kept:
        """Return the rows that the filter keeps."""
        raise NotImplementedError


@dataclasses.dataclass(frozen=True)
class MinCounts(Filter):
    """Keep rows whose user has at least `user` rows, and whose item has at least `item` rows.

    This filter counts the rows only once; `KCore` recounts them until nothing changes.

    Parameters
    ----------
    user, item : int
        The minimum number of rows of each user, and of each item.
    """

    user: int = 1
    item: int = 1

    def __post_init__(self) -> None:
        check_whole("user", self.user, 1)
        check_whole("item", self.item, 1)

    def kept(self, table: Table, threads: int) -> Kept:
        """Return the rows of users and items that have enough rows."""
        rows = np.ones(table.n, dtype=bool)
        for coded, least in ((table.users, self.user), (table.items, self.item)):
            if least > 1:
                rows &= (coded.counts >= least)[coded.codes]
        return Kept(rows)


@dataclasses.dataclass(frozen=True, init=False)
class KCore(Filter):
    """Repeatedly remove users and items with too few rows, until no such user or item is left.

    The result does not depend on the order (Seidman 1983, Network structure and minimum degree).

    Parameters
    ----------
    k : int
        The minimum number of rows of each remaining user and item.
    user, item : int, optional
        The minimum numbers for users and for items, if they differ from `k`.
    """

    user: int
    item: int

    def __init__(self, k: int = 1, *, user: int | None = None, item: int | None = None) -> None:
        for name, number in (("user", user), ("item", item)):
            chosen = ("k", k) if number is None else (name, number)
            object.__setattr__(self, name, check_whole(*chosen, 1))

    def kept(self, table: Table, threads: int) -> Kept:
        """Return the rows of the remaining users and items."""
        rows = np.ones(table.n, dtype=bool)
        user_counts, item_counts = table.users.counts.copy(), table.items.counts.copy()
        backwards = False
        while _kernel.trim_core(
            users=table.users.codes,
            items=table.items.codes,
            user_counts=user_counts,
            item_counts=item_counts,
            least_user=self.user,
            least_item=self.item,
            backwards=backwards,
            kept=rows.view(np.uint8),
        ):
            backwards = not backwards
        return Kept(rows)


@dataclasses.dataclass(frozen=True)
class Duplicates(Filter):
    """Keep one row for each user-item pair.

    Parameters
    ----------
    keep : {"first", "last", "sum"}
        ``"first"`` keeps the earliest row (at equal times, the row with the smallest value).
        ``"last"`` keeps the latest row (at equal times, the row with the largest value). ``"sum"``
        also keeps the latest row, but its value becomes the sum of all values, which are added in
        ascending order.
    """

    keep: Literal["first", "last", "sum"] = "last"

    def __post_init__(self) -> None:
        if self.keep not in ("first", "last", "sum"):
            raise InputError(f"keep={self.keep!r} must be 'first', 'last' or 'sum'.")

    def kept(self, table: Table, threads: int) -> Kept:
        """Return one row for each user-item pair."""
        order = RowOrder.OLD_PAIRS if self.keep == "first" else RowOrder.PAIRS
        place = number_rows(table, order, seed=0, threads=threads)
        rows = place == 0
        if self.keep != "sum" or table.values is None or rows.all():
            return Kept(rows)
        # Only the rows of repeated pairs matter from here on.
        pairs = (table.users.codes.astype(np.uint64) << np.uint64(32)) | table.items.codes
        repeated = np.flatnonzero(np.isin(pairs, pairs[~rows]))
        if np.isnan(table.values[repeated]).any():
            row = repeated[np.isnan(table.values[repeated])][:1]
            user = table.users.ids_of(table.users.codes[row]).tolist()[0]
            item = table.items.ids_of(table.items.codes[row]).tolist()[0]
            raise InputError(
                f"{self} adds up the values of user {user!r} and item {item!r}, but one is "
                "missing or NaN. Hint: drop such rows, or keep the 'last'."
            )
        repeated = repeated[np.lexsort((table.values[repeated], pairs[repeated]))]
        starts = np.flatnonzero(
            np.concatenate([[True], pairs[repeated[1:]] != pairs[repeated[:-1]]])
        )
        values = table.values.copy()
        last = repeated[rows[repeated]]  # one row per pair, in the order of pairs
        values[last] = np.add.reduceat(table.values[repeated], starts)
        return Kept(rows, values)


@dataclasses.dataclass(frozen=True)
class ValuesFrom(Filter):
    """Keep the rows whose value is at least a threshold.

    Parameters
    ----------
    threshold : float
        The lowest value to keep.
    """

    threshold: float

    def __post_init__(self) -> None:
        number = isinstance(self.threshold, numbers.Real) and not isinstance(self.threshold, bool)
        if not number or self.threshold != self.threshold:
            name = python_or_command("threshold=", "--from-value ")
            example = python_or_command("ValuesFrom(4)", "--from-value 4")
            raise InputError(
                f"{name}{self.threshold!r} must be a number. Hint: {example} keeps values of 4 or "
                "more."
            )

    def kept(self, table: Table, threads: int) -> Kept:
        """Return the rows whose value is at least the threshold."""
        if table.values is None:
            raise InputError(
                f"{self} reads values, but the data have none. Hint: name their column with "
                f"{argument_text('value')}."
            )
        return Kept(table.values >= self.threshold)


@dataclasses.dataclass(frozen=True)
class SeenInTrain(Named):
    """Leave out test rows whose user or item is not in the training data.

    A user counts as seen if they occur in the training data, and an item counts as seen if it
    occurs in the training data or in the remainder.

    Parameters
    ----------
    users, items : bool
        Whether to leave out rows of unseen users, and rows of unseen items.
    """

    users: bool = True
    items: bool = True

    def __post_init__(self) -> None:
        flag("users", self.users)
        flag("items", self.items)

    def unseen(self, table: Table, test: Bool, train: Bool, remainder: Bool) -> Bool:
        """Return a mask of the test rows to leave out."""
        unseen = np.zeros(table.n, dtype=bool)
        rows = np.flatnonzero(test)
        for needed, coded, parts in (
            (self.users, table.users, (train,)),
            (self.items, table.items, (train, remainder)),
        ):
            if needed:
                seen = np.zeros(coded.n, dtype=bool)
                for part in parts:
                    seen[coded.codes[part]] = True
                unseen[rows] |= ~seen[coded.codes[rows]]
        return unseen

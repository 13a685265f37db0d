"""The classes `Split` and `Folds`, which `split` and `folds` return."""

from __future__ import annotations

import dataclasses
import numbers
import os
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic

import numpy as np

from recometer.arrays import Array
from recometer.data.columns import Columns
from recometer.data.frames import open_frame
from recometer.data.ids import column_expr, encode
from recometer.data.interactions import Interactions
from recometer.data.paths import as_path
from recometer.errors import InputTypeError
from recometer.rendering import Column, Printed, Shown, Table
from recometer.rendering.formats import width_of_lines, wrapped
from recometer.split import saving

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    Part = TypeVar("Part", default=Any)
else:
    from typing import TypeVar

    Part = TypeVar("Part")


def _counts(title: str) -> Column:
    return Column(title, (title.replace(" ", "_"),), "{:,}".format, number=True)


OF_SPLIT = (
    Column("part"),
    *map(_counts, ("users", "items", "interactions")),
    Column("share", show="{:.1%}".format, number=True),
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class SplitProtocol:
    """The settings that produced a split, with which it can be repeated on the same data.

    `untested`, `min_train`, `min_test` and `seed` are arguments of `split`.

    Attributes
    ----------
    who, what : str
        The arguments of `split` as Python code, such as ``"UsersFraction(fraction=0.1)"``.
    filters : tuple of str
        The filters as Python code.
    untested : {"train", "apart"}
    min_train, min_test : int
    seed : int
    fold : int or None
        The number of the fold, counted from 0, if this split is one of several folds.
    counts : mapping of str to int
        The numbers of rows in ``train``, ``test`` and ``remainder``, and of those ``left_out``.
    removed : mapping of str to int
        The number of rows that each filter left out.
    """

    who: str
    what: str
    filters: tuple[str, ...] = ()
    untested: str = "train"
    min_train: int = 0
    min_test: int = 1
    seed: int = 0
    fold: int | None = None
    counts: Mapping[str, int] = dataclasses.field(default_factory=dict)
    removed: Mapping[str, int] = dataclasses.field(default_factory=dict)

    def __str__(self) -> str:
        settings = {
            "who": self.who,
            "filters": f"[{', '.join(self.filters)}]" if self.filters else "",
            "untested": self.untested if self.untested != "train" else "",
            "min_train": self.min_train if self.min_train != 0 else "",
            "min_test": self.min_test if self.min_test != 1 else "",
            "seed": self.seed,
            "fold": "" if self.fold is None else self.fold,
        }
        return ", ".join(
            [self.what, *(f"{name}={text}" for name, text in settings.items() if text != "")]
        )


@dataclasses.dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Split(Printed, Generic[Part]):
    """Training and test data, and how they were made.

    In annotations, ``Split[polars.DataFrame]`` gives the type of the parts.

    Attributes
    ----------
    train, test
        Data of the same type as the data that were split: data frames, lazy frames (for a Parquet
        file), or `Interactions`.
    remainder
        The interactions of untested users if ``untested="apart"``; None if `train` contains them.
    users : int64, uint64 or object [n_tested]
        The ids of the tested users in ascending order, or their positions if there are no ids.
    protocol : SplitProtocol
        The settings of the split.
    columns : Columns or None
        The names of the user, item, value and time columns, if the data have columns.
    """

    train: Part
    test: Part
    remainder: Part | None
    protocol: SplitProtocol
    columns: Columns | None
    find_users: Callable[[], Array] = dataclasses.field(repr=False)

    @cached_property
    def users(self) -> Array:
        """The ids of the tested users in ascending order, or positions if there are no ids."""
        users = self.find_users()
        users.flags.writeable = False
        return users

    def __repr__(self) -> str:
        counts = self.protocol.counts
        parts = [f"{counts[name]:,} {name}" for name in ("train", "test")]
        parts += [
            f"{counts[name]:,} {text}"
            for name, text in (("remainder", "remainder"), ("left_out", "left out"))
            if counts[name]
        ]
        return f"Split({', '.join(parts)}; {self.protocol})"

    def __str__(self) -> str:
        return wrapped(repr(self), width_of_lines())

    def table(self) -> Table:
        """Return a table that counts the users, items and interactions of each part."""
        counts = self.protocol.counts
        total = sum(counts[part] for part in saving.PARTS)
        rows = []
        for name in saving.PARTS:
            part = getattr(self, name)
            if part is not None:
                users, items = _distinct(part, self.columns)
                row = {"part": name, "users": users, "items": items, "interactions": counts[name]}
                rows.append({**row, "share": counts[name] / total if total else 0.0})
        notes = _notes(self.protocol, self.protocol.removed)
        # `no_part` counts rows that no filter left out, such as later rows of untested users.
        no_part = counts["left_out"] - sum(self.protocol.removed.values())
        if no_part:
            notes.append(f"in no part: {no_part:,}")
        return Table(OF_SPLIT, rows, notes)

    def interactions(self) -> Split[Interactions]:
        """Return the same split with `Interactions` as parts.

        Parts of a data frame contain only the users and items that occur in them.
        """
        if self.columns is None:
            unchanged: Split = self
            return unchanged
        user, item, value, time = self.columns

        names: dict[str, Any] = {
            "user": user, "item": item, "value": value or False, "time": time or False,
        }  # fmt: skip
        parts: dict[str, Any] = {
            name: part if part is None else Interactions.of(part, **names)
            for name, part in self._parts().items()
        }
        split: Split = dataclasses.replace(self, **parts, columns=None)
        return split

    def _parts(self) -> dict[str, Any]:
        return {"train": self.train, "test": self.test, "remainder": self.remainder}

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write the split into a folder, which is created if it does not exist.

        ``train.parquet``, ``test.parquet`` and ``remainder.parquet`` contain the rows with all
        their columns, ``users.parquet`` contains the tested users, and ``split.json`` contains the
        protocol. The method replaces an earlier split in the folder, but no unrelated files.

        Raises
        ------
        FileError
            If the folder cannot be written to, or contains unrelated files with these names.
        InputTypeError
            If a column contains objects that Parquet cannot store, such as UUIDs in a data frame.
        """
        header = {
            "protocol": dataclasses.asdict(self.protocol),
            "columns": None if self.columns is None else self.columns.to_dict(),
        }
        saving.write(as_path(folder, "a split"), self._parts(), self.users, header)

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> Split:
        """Read a split that `save` wrote.

        The parts have the type that was saved, with two exceptions: frames of libraries other than
        pandas become Polars frames, and pandas frames get a new index.

        Raises
        ------
        FileError
            If the folder contains no split, a damaged split, or one that a newer version of
            recometer wrote.
        """
        path = as_path(folder, "a split")
        parts, users, header = saving.read(path)
        with saving.undamaged(path):
            protocol = header["protocol"]
            protocol["filters"] = tuple(protocol["filters"])
            names = header["columns"]
            split = cls(
                **parts,
                protocol=SplitProtocol(**protocol),
                columns=None if names is None else Columns.from_dict(names),
                find_users=lambda: users,
            )
            repr(split)  # raises an error if counts or names are missing or invalid
            return split


class Folds(Shown):
    """Several splits of the same data, each of which is made when you access it.

    Iterating makes a `Split` for each fold, ``len`` is the number of folds, and ``folds[0]`` makes
    the first fold. Functions that take folds also accept a list of `Split` objects.
    """

    def __init__(self, make: Callable[[], Iterator[Split]], n: int) -> None:
        self._make, self._n = make, n

    def __iter__(self) -> Iterator[Split]:
        return self._make()

    def __len__(self) -> int:
        return self._n

    def __getitem__(self, number: int) -> Split:
        if not isinstance(number, numbers.Integral):
            raise InputTypeError(
                f"A fold is selected by its number, found {number!r}. Hint: folds[0], or "
                "list(folds) for all."
            )
        if not -self._n <= number < self._n:
            raise IndexError(f"There is no fold {number}: there are {self._n}.")
        position = number % self._n
        return next(fold for place, fold in enumerate(self) if place == position)

    def __repr__(self) -> str:
        return f"Folds({self._n})"

    def table(self) -> Table:
        """Make all folds, and return a table of the numbers of users and interactions in each."""
        rows: list[dict[str, int]] = []
        protocols, has_remainder = [], False
        for number, split in enumerate(self):
            has_remainder = split.remainder is not None
            rows.append(
                {"fold": number, "users_of_test": len(split.users), **split.protocol.counts}
            )
            protocols.append(split.protocol)
        parts = (*(saving.PARTS if has_remainder else saving.PARTS[:2]), "left out")
        # Filters that apply before the split remove the same rows in every fold, so show them once.
        first = protocols[0]
        removed = {
            name: n
            for name, n in first.removed.items()
            if all(protocol.removed[name] == n for protocol in protocols)
        }
        columns = [Column("fold", number=True), *map(_counts, ("users of test", *parts))]
        return Table(columns, rows, _notes(dataclasses.replace(first, fold=None), removed))


def _distinct(part: Any, columns: Columns | None) -> tuple[int, int]:
    """Return the numbers of users and items that occur in a part of a split."""
    import polars as pl

    if isinstance(part, Interactions):
        return int(np.count_nonzero(np.diff(part.indptr))), len(np.unique(part.items))
    user, item, *_ = columns or Columns("user", "item", None, None)
    if isinstance(part, pl.LazyFrame):
        totals = part.select(column_expr(part, user).n_unique(), pl.col(item).n_unique())
        n_users, n_items = totals.collect(engine="streaming").row(0)
        return n_users, n_items
    _, fetch = open_frame(part)
    names = zip(("user", "item"), fetch([user, item]), strict=True)
    n_users, n_items = (len(encode(ids, side)[1]) for side, ids in names)
    return n_users, n_items


def _notes(protocol: SplitProtocol, removed: Mapping[str, int]) -> list[str]:
    """Return notes on the settings of the split, and on the rows that filters left out."""
    notes = [f"made by: {protocol}"]
    return notes + [f"left out by {name}: {n:,}" for name, n in removed.items()]

"""Facts from train about users of test: their activity and taste, and what was found."""

from __future__ import annotations

import dataclasses
from dataclasses import field
from typing import NamedTuple

import numpy as np

from recometer import _kernel, ragged
from recometer.arrays import Float32, Float64, Int8, Int32, Int64, UInt64
from recometer.data.interactions import Interactions
from recometer.data.matching import users_in
from recometer.measuring.side_data import of_judged_items
from recometer.protocol import TieRule
from recometer.ragged import PER_USER, Record
from recometer.ranks import Ranks
from recometer.ties import places_of

N_BANDS = 5  # of popularity
USUAL_CUTOFF = 10  # where no metric has one


class Bands(NamedTuple):
    """The band of each item of train, and the range of each band: see `FoundByPopularity`."""

    band: Int8
    ranges: tuple[tuple[int, int], ...]


@dataclasses.dataclass(frozen=True, eq=False)
class FoundByPopularity(Record):
    """The number of each user's relevant items that were found, by their popularity in train.

    The items of train are ordered by their number of training users. The first band contains the
    most popular items, which have a fifth of the rows of train, and so on. Items with equal numbers
    of users are in the same band, and items that train lacks are in the last one. See
    `recometer.report`.

    Attributes
    ----------
    cutoff
        The number of first places in which an item counts as found: the largest requested cut-off,
        or 10 if there is none.
    ranges
        For each band, the smallest and the largest number of training users of an item; (0, 0) for
        a band without items.
    relevant : int32 [n_users, n_bands]
        The number of relevant items, whether or not they could be ranked.
    found : float32 [n_users, n_bands]
        The number of those within the cut-off. Under the rule ``"expected"``, a tied item counts
        with the share of the orders in which it is within the cut-off.
    """

    cutoff: int
    ranges: tuple[tuple[int, int], ...]
    relevant: Int32 = field(metadata=PER_USER)
    found: Float32 = field(metadata=PER_USER)

    def __post_init__(self) -> None:
        self.check_shapes()

    @property
    def n_users(self) -> int:
        """Number of users."""
        return len(self.relevant)


class Counts(NamedTuple):
    """How often train has each item, and the items of each user of test."""

    users: Int64  # [n_items]: who have the item
    activity: Int64  # [n_users]: the training items of the user
    total: Int64  # [n_users]: those who have them, added up over these items

    @classmethod
    def of(
        cls, test: Interactions, train: Interactions, background: _kernel.Background | None = None
    ) -> Counts:
        """Count; with a background only once that has taken its steps."""
        users = users_in(train, test, "train")
        counts = cls(
            np.zeros(train.n_items, np.int64),
            ragged.lengths(train.indptr, users),
            np.empty(test.n_users, np.int64),
        )
        indptr, items = train.indptr, train.items
        if background is not None:
            background.count_items(
                indptr=indptr, items=items, users=users, counts=counts.users, sums=counts.total
            )
            return counts
        _kernel.count_rows(items, counts.users)
        _kernel.sum_rows(
            indptr=indptr, items=items, users=users, numbers=counts.users, sums=counts.total
        )
        return counts


def profiles(counts: Counts) -> tuple[Int64, Float64]:
    """Return the training items of each user of test, and the popularity of what they chose.

    That is the mean number of training users of these items; NaN for users without any.
    """
    activity, total = counts.activity, counts.total
    popularity = np.divide(total, activity, out=np.full(len(total), np.nan), where=activity > 0)
    return activity, popularity


def found_by_popularity(
    ranks: Ranks,
    test: Interactions,
    train: Interactions,
    of_train: Bands,
    cutoff: int,
    ties: TieRule,
    seed: int,
    user_keys: UInt64 | None,
) -> FoundByPopularity:
    """Count the relevant items of each user, and those within a cut-off, by their popularity.

    `ties`, `seed` and `user_keys` are those of `recometer.ties.resolve`.
    """
    counted = ranks.relevant if ranks.repeated is None else ranks.relevant & ~ranks.repeated
    item, band = of_judged_items(of_train.band, N_BANDS - 1, ranks, test, train)
    above, tied = places_of(ranks, counted, cutoff, ties, seed, user_keys)
    relevant, found = (np.empty((ranks.n_users, N_BANDS), kind) for kind in (np.int32, np.float64))
    # A source of one's own may have made them of columns of a table.
    columns = {"item": item, "counted": counted, "above": above, "tied": tied}
    _kernel.count_in_bands(
        indptr=np.ascontiguousarray(ranks.indptr),
        **{name: np.ascontiguousarray(column) for name, column in columns.items()},
        band=band,
        cutoff=cutoff,
        counts=relevant,
        within=found,
    )
    return FoundByPopularity(cutoff, of_train.ranges, relevant, found.astype(np.float32))


def bands(users_of_item: Int64) -> Bands:
    """Return the bands of the items of train.

    An item's band follows from the share of train's rows that more popular items have.
    """
    items = np.bincount(users_of_item, minlength=1)  # per number of training users
    numbers = np.arange(len(items))
    rows = items * numbers
    total = int(rows.sum())
    above = total - np.cumsum(rows)
    band = np.minimum(N_BANDS * above // max(total, 1), N_BANDS - 1).astype(np.int8)
    band[0] = N_BANDS - 1
    there = np.flatnonzero((items > 0) | (numbers == 0))
    # The more users an item has, the lower its band: each one's numbers follow one another.
    begins, ends = (
        np.searchsorted(-band[there], -np.arange(N_BANDS), side=side) for side in ("left", "right")
    )
    inside = [there[begin:end] for begin, end in zip(begins, ends, strict=True)]
    ranges = tuple((int(of[0]), int(of[-1])) if len(of) else (0, 0) for of in inside)
    return Bands(band[users_of_item], ranges)

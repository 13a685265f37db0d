"""Facts from train about users of test: activity, popularity, and items found by popularity."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import field
from typing import NamedTuple

import numpy as np

from recometer import ragged
from recometer._kernel import Counting
from recometer.arrays import Float32, Float64, Int8, Int32, Int64, UInt64
from recometer.data.interactions import Interactions
from recometer.data.matching import SourceIndex
from recometer.measuring.side_data import of_judged_items
from recometer.protocol import TieRule
from recometer.ragged import PER_USER, Record
from recometer.ranks import Ranks
from recometer.ties import places_of

N_BANDS = 5  # of popularity
USUAL_CUTOFF = 10  # if no metric has a cut-off


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
    """Counts from train: the items of each user of test, and the popularity of each item."""

    activity: Int64  # [n_users]: the training items of the user
    total: Int64  # [n_users]: the training users of these items, summed
    band: Int8  # [n_items]: see `FoundByPopularity`
    ranges: Int64  # [N_BANDS, 2]

    @classmethod
    def of(cls, test: Interactions, train: Interactions, counting: Counting) -> Counts:
        """Count. If counting runs in the background, the arrays are filled when it has finished."""
        users = SourceIndex.of_data(train, "train").users_of(test)
        counts = cls(
            ragged.lengths(train.indptr, users),
            np.empty(test.n_users, np.int64),
            np.empty(train.n_items, np.int8),
            np.empty((N_BANDS, 2), np.int64),
        )
        counting.count_items(
            indptr=train.indptr,
            items=train.items,
            users=users,
            counts=np.empty(train.n_items, np.int64),
            sums=counts.total,
            band=counts.band,
            ranges=counts.ranges,
        )
        return counts

    @property
    def profiles(self) -> tuple[Int64, Float64]:
        """Each user's number of training items, and the popularity of these items.

        That is the mean number of training users of these items; NaN for users without any.
        """
        activity, total = self.activity, self.total
        popularity = np.divide(total, activity, out=np.full(len(total), np.nan), where=activity > 0)
        return activity, popularity


def found_by_popularity(
    ranks: Ranks,
    test: Interactions,
    train: Interactions,
    of_train: Counts,
    cutoff: int,
    ties: TieRule,
    seed: int,
    user_keys: UInt64 | None,
    counting: Counting,
) -> Callable[[], FoundByPopularity]:
    """Count the relevant items of each user, and those within a cut-off, by their popularity.

    `ties`, `seed` and `user_keys` are as in `recometer.ties.resolve`. If counting runs in the
    background, call the returned function only when it has finished.
    """
    counted = ranks.relevant if ranks.repeated is None else ranks.relevant & ~ranks.repeated
    item, banded, n_items = of_judged_items(ranks, test, train)
    above, tied = places_of(ranks, counted, cutoff, ties, seed, user_keys)
    relevant: Int32 = np.empty((ranks.n_users, N_BANDS), np.int32)
    found: Float32 = np.empty(relevant.shape, np.float32)
    # The arrays of a user-defined source may be strided views of a table.
    columns = {"item": item, "counted": counted, "above": above, "tied": tied}
    counting.count_in_bands(
        indptr=np.ascontiguousarray(ranks.indptr),
        **{name: np.ascontiguousarray(column) for name, column in columns.items()},
        n_items=n_items,
        banded=banded,
        band=of_train.band,
        cutoff=cutoff,
        counts=relevant,
        within=found,
    )

    def result() -> FoundByPopularity:
        ranges = tuple((low, high) for low, high in of_train.ranges.tolist())
        return FoundByPopularity(cutoff, ranges, relevant, found)

    return result

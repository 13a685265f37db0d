"""Counts of each user's relevant and found items, by the popularity of the items in train."""

from __future__ import annotations

import dataclasses
from dataclasses import field

from recometer.arrays import Float32, Int32
from recometer.ragged import PER_USER, Record


@dataclasses.dataclass(frozen=True, eq=False)
class FoundByPopularity(Record):
    """The numbers of each user's relevant items and found items, by popularity in train.

    The training items are sorted by their number of training users. The first band has the most
    popular items, with a fifth of the training rows, and so on. Items with equal numbers of users
    are in the same band, and items that are not in train are in the last band. See
    `recometer.report`.

    Attributes
    ----------
    cutoff
        The number of first places in which an item counts as found: the largest requested cut-off,
        or 10 without cut-offs.
    ranges
        For each band, the smallest and the largest number of training users of an item, or (0, 0)
        for a band without items.
    relevant : int32 [n_users, n_bands]
        The number of relevant items, including items that could not be ranked.
    found : float32 [n_users, n_bands]
        The number of relevant items within the cut-off. Under the tie rule ``"expected"``, a tied
        item counts as the share of orders in which it is within the cut-off.
    """

    cutoff: int
    ranges: tuple[tuple[int, int], ...]
    relevant: Int32 = field(metadata=PER_USER)
    found: Float32 = field(metadata=PER_USER)

    @property
    def n_users(self) -> int:
        """Number of users."""
        return len(self.relevant)

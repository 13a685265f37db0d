"""Test and train in the order of a source: what `recometer.sources._align` makes.

Items are numbered by their place in the order of the sorted item ids ("item positions"), and
`Aligned.item_rows` says in which row of the source each lies.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from recometer import ragged
from recometer.arrays import Array, Bool, Float64, Int32, Int64, UInt32, all_equal, steps

Found = TypeVar("Found")


@dataclasses.dataclass(frozen=True)
class Aligned:
    """Test and train as the source sees them."""

    rows: Int64  # the source's row of each user of test, -1 where it has none
    n_items: int
    item_rows: Int64 | None  # the source's row of each item position; None if they are the same
    judged_indptr: Int64
    # Item positions, ascending within a user, -1 where the source has no such item or it is no
    # candidate. Items of train are gone.
    judged: Int32
    # Which of the judged rows can be ranked (known user, known item; None if all can); and those
    # rows as a table of their own.
    ranked: Int64 | None
    ranked_indptr: Int64
    ranked_items: Int32
    gain: Float64  # of each judged row
    relevant: Bool
    excluded_indptr: Int64
    excluded: Int32
    flags: UInt32
    counts: dict[str, int]
    item: Int32  # `judged` before candidates were chosen: positions in the whole catalogue
    # The item position of each position of the whole catalogue, which `n_items`, `item_rows`,
    # `judged` and all else here count by, -1 where it is nobody's candidate; None if all are.
    numbers: Int32 | None = None
    # The candidates of each user, ascending, without items of train; None for all items.
    candidate_indptr: Int64 | None = None
    candidates: Int32 | None = None
    # Where users have candidates of their own: the items of the catalogue that are neither in
    # train nor in test of each user.
    pool: Int64 | None = None
    item_ids: Array | None = None  # of the whole catalogue, sorted; None for positions
    n_offered: int | None = None  # items in the sets of candidates, where they were given
    # What was found of these, kept for the copies that `anew` makes.
    found: dict[str, Any] = dataclasses.field(default_factory=dict, init=False, repr=False)

    def anew(self) -> Aligned:
        """Return a copy, in which the arrays that sources change are copied, too."""
        found = object.__new__(type(self))  # as `dataclasses.replace`, in a fraction of its time
        pool = None if self.pool is None else self.pool.copy()
        vars(found).update(vars(self), flags=self.flags.copy(), pool=pool)
        return found

    @property
    def n_users(self) -> int:
        """Number of users of test."""
        return len(self.rows)

    @property
    def n_relevant(self) -> Int64:
        """Relevant items of each user: int64 [n_users], not to be changed."""
        return self._once(
            "relevant", lambda: steps(ragged.offsets(self.relevant, self.judged_indptr))
        )

    @property
    def n_excluded(self) -> Int64:
        """Excluded items of each user: int64 [n_users], not to be changed."""
        return self._once("excluded", lambda: steps(self.excluded_indptr))

    def in_order(self, order: Int64) -> tuple[Float64, Bool]:
        """Return gains and relevance in another order; not copied where all rows are alike."""
        alike = self._once("alike", lambda: (all_equal(self.gain), all_equal(self.relevant)))
        gain = self.gain if alike[0] else self.gain[order]
        return gain, self.relevant if alike[1] else self.relevant[order]

    def _once(self, what: str, find: Callable[[], Found]) -> Found:
        if what not in self.found:
            self.found[what] = find()
        known: Found = self.found[what]
        return known

    @property
    def offered(self) -> tuple[Int64, Int32] | None:
        """The candidates of each user: where they begin, and which; None for all items."""
        if self.candidate_indptr is None:
            return None
        assert self.candidates is not None
        return self.candidate_indptr, self.candidates

    @property
    def n_candidates(self) -> Int64:
        """How many candidates each user has, if the source scores them all: int64 [n_users]."""
        return self.n_items - self.n_excluded - self.outside

    @property
    def outside(self) -> Int64:
        """How many items are neither candidates of a user nor excluded: int64 [n_users]."""
        if self.candidate_indptr is None:
            return np.zeros(self.n_users, np.int64)
        listed = np.diff(self.candidate_indptr)
        return self.n_items - np.diff(self.excluded_indptr) - listed

    def locate(self, users: Int64, items: npt.NDArray[np.integer]) -> Int64:
        """Find candidates of users of test among items of the whole catalogue.

        `items` are positions in the order of the (sorted) item ids, -1 for none. Returns the
        positions in the numbering of `judged`, -1 for what is not a candidate of its user; items of
        the user's train count as if they were candidates.
        """
        found = items.astype(np.int64)
        if self.numbers is not None:
            found = np.where(found >= 0, self.numbers[found], -1)
        if self.offered is not None:
            inside = np.zeros(len(found), bool)
            for indptr, known in (self.offered, (self.excluded_indptr, self.excluded)):
                listed = ragged.numbered(indptr, known, self.n_items)
                inside |= ragged.among(ragged.pairs(users, found, self.n_items), listed)
            found = np.where(inside & (found >= 0), found, -1)
        return found

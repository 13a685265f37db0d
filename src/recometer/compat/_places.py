"""Lists in which every occurrence of an item counts, as it does in some libraries."""

from __future__ import annotations

import numpy as np

from recometer import ragged
from recometer.arrays import Array, Float64
from recometer.data.interactions import Interactions
from recometer.data.matching import find_rows
from recometer.ranks import Ranks, UserFlag
from recometer.sources.base import Facts, Request, Source


class CountedPlaces(Source):
    """Lists in which an item counts at each of its places, and -1 is padding.

    Parameters
    ----------
    lists : integers [n_users, k]
        Item numbers, best first.
    n_items : int
    filler : float64 [n_users], optional
        Each user's gain for the padding -1, as if it were a relevant item; 0 makes it a miss.
    truth
        The test data, if they come with the lists.
    """

    def __init__(
        self,
        lists: Array,
        n_items: int,
        filler: Float64 | None = None,
        truth: Interactions | None = None,
    ) -> None:
        self.lists, self.n_items, self.filler, self.truth = lists, n_items, filler, truth

    def rank(self, request: Request) -> Ranks:
        """Return where each judged item is ranked, with a row for each place of a repeated item."""
        test, (n_users, k) = request.test, self.lists.shape
        n_judged = len(test.items)
        indptr = np.arange(n_users + 1, dtype=np.int64) * k
        items = self.lists.astype(np.int32).reshape(-1)
        row_of_place = find_rows(indptr, items, test.indptr, test.items)
        at = np.flatnonzero(row_of_place >= 0)
        found, (user, place) = row_of_place[at], np.divmod(at, k)
        missed = np.flatnonzero(np.bincount(found, minlength=n_judged) == 0)
        rows = np.concatenate([found, missed])
        above = np.concatenate([place, np.full(len(missed), -1)])
        owner = np.concatenate([user, ragged.users_of(test.indptr)[missed]])
        gains = np.ones(n_judged) if test.values is None else test.values
        gain, item = gains[rows], test.items[rows].astype(np.int64)
        if self.filler is not None:
            user, place = np.nonzero((self.lists < 0) & (self.filler[:, np.newaxis] > 0))
            owner, above = np.append(owner, user), np.append(above, place)
            gain = np.append(gain, self.filler[user])
            item, rows = (np.append(one, np.full(len(user), -1)) for one in (item, rows))
            order = np.lexsort((above, above < 0, owner))
        else:
            # Found rows come first in each user's rows, because the sort is stable.
            order = np.argsort(owner, kind="stable")
        rows, repeated = rows[order], None
        if len(rows) > n_judged:  # some items are at several places
            repeated = np.ones(len(rows), dtype=bool)
            first = np.unique(rows, return_index=True)[1]
            repeated[first[rows[first] >= 0]] = False
        n_relevant = np.diff(test.indptr)
        return Ranks(
            indptr=ragged.indptr_of(np.bincount(owner, minlength=n_users)),
            item=item[order],
            above=above[order],
            tied=np.zeros(len(rows), np.int64),
            before=np.zeros(len(rows), np.int64),
            gain=gain[order],
            relevant=np.ones(len(rows), dtype=bool),
            n_relevant=n_relevant,
            n_candidates=np.full(n_users, self.n_items),
            n_excluded=np.zeros(n_users, np.int64),
            depth=np.full(n_users, k),
            flags=np.full(n_users, UserFlag.KNOWN, np.uint32),
            repeated=repeated,
            n_rankable=n_relevant,
            copies=None if test.copies is None else np.where(rows < 0, 1, test.copies[rows]),
        )

    def describe(self) -> str:
        """Return a one-line description of what is evaluated."""
        return f"Lists: {self.lists.shape[0]:,} users, {self.lists.shape[1]:,} places"

    @property
    def facts(self) -> Facts:
        """The lists, the gains of padding, and the test data if they come with the lists."""
        arrays = {"lists": self.lists, "filler": self.filler}
        return Facts(arrays, truth=self.truth, input_order=True)

"""Lists of which every place counts, as in libraries that only look at the places."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from recometer.arrays import Float64, Int64
from recometer.ragged import indptr_of
from recometer.ranks import Ranks, UserFlag
from recometer.sources.base import Request, Source


class CountedPlaces(Source):
    """Lists in which an item counts at each of its places, and -1 is not an item.

    Parameters
    ----------
    lists : int64 [n_users, k]
        Item numbers, best first.
    n_items : int
    filler : float64 [n_users], optional
        The gain of -1 for each user, as if it were a relevant item; 0 makes it a miss.
    """

    has_input_order = True

    def __init__(self, lists: Int64, n_items: int, filler: Float64 | None = None) -> None:
        self.lists, self.n_items, self.filler = lists, n_items, filler

    def rank(self, request: Request) -> Ranks:
        """Return where each judged item is ranked; a repeated one has a row for each place."""
        test, (n_users, k) = request.test, self.lists.shape
        owner = np.repeat(np.arange(n_users), np.diff(test.indptr))
        judged = owner * self.n_items + test.items
        keys = np.arange(n_users)[:, np.newaxis] * self.n_items + self.lists
        row = np.minimum(np.searchsorted(judged, keys), max(len(judged) - 1, 0))
        user, place = np.nonzero((judged[row] == keys) & (self.lists >= 0))
        found = row[user, place]
        times = np.bincount(found, minlength=len(judged))
        missed = np.flatnonzero(times == 0)
        rows = np.concatenate([found, missed])
        above = np.concatenate([place, np.full(len(missed), -1)])
        gains = np.ones(len(judged)) if test.values is None else test.values
        owner, gain, item = owner[rows], gains[rows], test.items[rows].astype(np.int64)
        if self.filler is not None:
            user, place = np.nonzero((self.lists < 0) & (self.filler[:, np.newaxis] > 0))
            owner, above = np.append(owner, user), np.append(above, place)
            gain = np.append(gain, self.filler[user])
            item, rows = (np.append(one, np.full(len(user), -1)) for one in (item, rows))
        order = np.lexsort((above, above < 0, owner))
        rows, repeated = rows[order], np.zeros(len(rows), dtype=bool)
        if len(rows) > len(judged):  # some stand at several places
            first = np.unique(rows, return_index=True)[1]
            repeated[:] = True
            repeated[first[rows[first] >= 0]] = False
        n_relevant = np.diff(test.indptr)
        return Ranks(
            indptr=indptr_of(np.bincount(owner, minlength=n_users)),
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
            repeated=repeated if repeated.any() else None,
            n_rankable=n_relevant,
            copies=None if test.copies is None else np.where(rows < 0, 1, test.copies[rows]),
        )

    def describe(self) -> str:
        """Return one line that describes what is evaluated."""
        return f"Lists: {self.lists.shape[0]:,} users, {self.lists.shape[1]:,} places"

    def arrays(self) -> Mapping[str, object]:
        """Return the arrays that the ranking depends on."""
        return {"lists": self.lists, "filler": self.filler}

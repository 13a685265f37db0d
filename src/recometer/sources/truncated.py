"""Cuts the lists of another source after the first places."""

from __future__ import annotations

import dataclasses

import numpy as np

from recometer.data.rows import MAX_NUMBER
from recometer.errors import InputError, argument_text
from recometer.ranks import Ranks, TopLists
from recometer.sources import _top_lists
from recometer.sources._top_lists import Rule
from recometer.sources.base import Facts, Request, Source
from recometer.sources.lists import Lists


class Cut(Source):
    """The first places of each user's list; later items count as not recommended.

    Training items are removed first, so they take no places. If the cut splits a group of equal
    scores, the items that the tie rule puts first stay. Under a rule that does not order them
    (``"expected"``, ``"optimistic"``, ``"pessimistic"``, ``"random"``), the items with lower ids
    stay, and users with a test item among these scores are counted as ``cut_in_ties``.

    Parameters
    ----------
    source
        The source whose lists are cut.
    depth
        The number of places to keep, at least 1.

    Raises
    ------
    InputError
        If the depth is below 1, or above 2^31 - 1.
    """

    def __init__(self, source: Source, depth: int) -> None:
        if not 1 <= depth <= MAX_NUMBER:
            raise InputError(
                f"{argument_text('depth', depth)} must be a whole number from 1 to {MAX_NUMBER:,}."
            )
        self._source = source
        self._depth = depth

    def describe(self) -> str:
        """Return one line that describes what is evaluated."""
        return f"{self._source.describe()}, cut at {self._depth}"

    @property
    def facts(self) -> Facts:
        """The facts of the source whose lists are cut."""
        return self._source.facts

    def rank(self, request: Request) -> Ranks:
        """Return the rank of each judged item within the kept places."""
        limit = self._depth if request.depth is None else min(self._depth, request.depth)
        ranks = self._source.rank(dataclasses.replace(request, depth=limit))
        return _cut(ranks, self._depth, request.protocol.ties)

    def top(self, request: Request, k: int) -> TopLists:
        """Return the first k of the kept places of each user's list."""
        if isinstance(self._source, Lists):  # a list is longer before its repeats are removed
            return self._source.cut_at(self._depth).top(request, k)
        if request.protocol.ties == "random":
            return _top_lists.cut_at_random(self, request, k, self._depth, self._by_item)
        return self._source.top(request, min(k, self._depth))

    def _by_item(self, request: Request, k: int, rule: Rule) -> TopLists:
        by_item = request.protocol.replace(ties="item")
        return self._source.top(dataclasses.replace(request, protocol=by_item), min(k, self._depth))


def _cut(ranks: Ranks, depth: int, ties: str) -> Ranks:
    user = ranks.user
    place = ranks.above + (ranks.tied - ranks.before if ties == "item_desc" else ranks.before)
    kept = (ranks.above >= 0) & (place < depth)
    room = depth - ranks.above
    split = kept & (ranks.tied >= room)
    tied = np.where(split, room - 1, ranks.tied)
    # Items with higher ids stay, so do not count the items with lower ids that were cut off.
    gone = ranks.tied - tied if ties == "item_desc" else 0
    counts = dict(ranks.counts)
    if ties not in ("item", "item_desc", "input", "as_ranked") and split.any():
        counts["cut_in_ties"] = len(np.unique(user[split]))
    cut = dataclasses.replace(
        ranks,
        above=np.where(kept, ranks.above, -1),
        tied=np.where(kept, tied, 0),
        before=np.where(kept, ranks.before - gone, 0),
        depth=np.minimum(ranks.depth, depth),
        counts=counts,
    )
    return cut.rows(np.lexsort((~kept, user)))

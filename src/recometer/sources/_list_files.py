"""Lists in files that are larger than memory: read and ranked for some users at a time."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from recometer.arrays import Array, Int64
from recometer.data import ids, matching, sessions
from recometer.data.file_parts import FileParts
from recometer.data.interactions import Interactions
from recometer.data.matching import SourceIndex
from recometer.errors import warn
from recometer.ranks import Ranks, TopLists
from recometer.sources._list_reading import columns_in_files
from recometer.sources._list_source import TableLists
from recometer.sources.base import Request
from recometer.sources.list_stream import StreamedLists
from recometer.tasks import Ticker, run_tasks


class ListFiles:
    """What `Lists` reads of Parquet files when it is asked, part by part.

    Parameters
    ----------
    path, columns, depth
        As `recometer.Lists` takes them.
    memory
        The bytes that a part may take.
    """

    _numbers: Sequence[int] | None = None  # of the parts that are read; None for all

    def __init__(
        self,
        path: Path,
        columns: Mapping[str, object],
        depth: int | None,
        memory: int,
    ) -> None:
        found = columns_in_files(path, columns)
        self._depth = depth
        if found["rank"] is not None:
            found["score"] = None  # lists are read by rank
        self._by_rows = found["rank"] is None and found["score"] is None
        # As parts have them; False says that there is none, and that this is meant.
        self._columns: dict[str, Any] = {
            option: option if name is not None else False for option, name in found.items()
        }
        self._parts = FileParts(path, found, memory)
        self.n_rows = self._parts.n_rows

    def describe(self) -> str:
        """Say in a line what is evaluated."""
        cut = "" if self._depth is None else f", cut at {self._depth:,}"
        order = ", in the order of the rows" if self._by_rows else ""
        return f"Lists: {self.n_rows:,} rows of {self._parts.path.name}{cut}{order}"

    def listed_users(self) -> Array:
        """Return the ids of the users with a list."""
        return np.sort(self._parts.users())

    def arrays(self) -> Mapping[str, object]:
        """Return what the ranking depends on, by name, for its fingerprint."""
        depth = None if self._depth is None else np.array(self._depth)
        return {**self._parts.columns(), "depth": depth}

    def apart(self, request: Request, n_blocks: int) -> Iterator[tuple[Int64, ListFiles]]:
        """Yield the users of test whose lists are in a part, and the files read for it alone.

        Users without a list are in any part.
        """
        parts = self._parts.divided(n_blocks)
        listed, part_of = parts.users_by_part()
        test = request.test
        assert test.user_ids is not None
        named = sessions.as_named_by(test.user_ids, listed)
        rows = ids.match(named, listed, "user ids of test", "user ids of Lists")
        part = np.where(rows >= 0, part_of[rows], np.arange(test.n_users) % parts.n_parts)
        n_users = np.bincount(part, minlength=parts.n_parts)
        # Parts with nobody of test are read once, too: what they hold is counted.
        others = np.flatnonzero(n_users == 0).tolist()
        for number in np.flatnonzero(n_users).tolist():
            files = copy.copy(self)
            files._parts, files._numbers = parts, [number, *others]
            others = []
            yield np.flatnonzero(part == number), files

    def rank(self, request: Request) -> Ranks:
        """Find where each judged item of each user of test landed; see `Ranks`."""
        ranks = self._counted(request, True, None).rank(request)
        warn_of_duplicates(ranks.counts)
        return ranks

    def top(self, request: Request, k: int) -> TopLists:
        """Return the first k places of each user's list; see `TopLists`."""
        lists = self._counted(request, False, k).top(request, k)
        warn_of_duplicates(lists.counts)
        return lists

    def _counted(self, request: Request, ranked: bool, k: int | None) -> StreamedLists:
        """Read all parts, and keep of each what is asked for."""
        counted = StreamedLists(dataclasses.replace(request, some_users=True), ranked, k)

        def add(number: int, ticker: Ticker) -> None:
            ticker.advance()
            part = TableLists.of_some_users(
                self._parts.part(number), depth=self._depth, **self._columns
            )
            users = part.listed_users()
            if len(users):
                counted.add(part, users, _places(users, part.index, request.test))

        # One after the other: a part is as large as may be.
        run_tasks(
            add,
            range(self._parts.n_parts) if self._numbers is None else self._numbers,
            label="Reading lists",
            threads=1,
            progress=request.progress,
        )
        return counted


def _places(users: Array, index: SourceIndex, test: Interactions) -> Int64:
    """Return where the users of lists stand in test, and -1 for each who is not in it."""
    listed = dataclasses.replace(index, n_users=len(users), user_ids=users)
    rows = matching.match_users(listed, test)
    if rows is None:  # they are the same
        return np.arange(len(users))
    # A list may be that of several sessions of its user.
    known = np.flatnonzero(rows >= 0)
    n_others = len(users) - len(np.unique(rows[known]))
    return np.concatenate([known, np.full(n_others, -1)])


def warn_of_duplicates(counts: Mapping[str, int]) -> None:
    """Warn of lists in files that repeat an item."""
    n = counts.get("list_duplicates")
    if n:
        warn(
            f"{n:,} entries of lists repeat an item; it counts once, at its first place, and the "
            "rest moves up."
        )

"""Ranking by factors on a device, whose scores no memory holds: where Triton is.

The counts are those over the whole catalogue, less those over the items that are no candidates,
which are scored apart, in the same arithmetic.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from typing import Any, NamedTuple

import numpy as np

from recometer import ragged
from recometer.arrays import Array, Bool, Int32, Int64
from recometer.data.tensors import CUDA, dtype_name, to_numpy
from recometer.errors import warn
from recometer.ranks import Ranks
from recometer.sources._align_result import Aligned
from recometer.sources._assemble import check_own_scores, of_ranked
from recometer.sources._factor_arrays import FactorArrays
from recometer.sources._torch import PAIRS, one_at_a_time
from recometer.sources.base import Request
from recometer.tasks import BRIEF, Ticker, run_tasks

Tensor = Any

# A task: so many users that a device is busy, and so few scores that Ctrl-C and the bar live.
USERS_PER_TASK = 2**14
SCORES_PER_TASK = 2**33


def tiles_of(factors: FactorArrays, *, allow_tf32: bool) -> Any:
    """Return the `Tiles` of factors on a device; None where Triton cannot score them.

    Warns
    -----
    DataWarning
        Triton is there, but does not run.
    """
    users, items = factors.users, factors.items
    on_cuda = items.device.type == CUDA or os.environ.get("TRITON_INTERPRET") == "1"
    if not (on_cuda and dtype_name(items) == "float32" and len(users)):
        return None
    if importlib.util.find_spec("triton") is None:
        return None
    try:
        from recometer.sources._triton import Tiles

        tiles = Tiles(users, items, factors.item_bias, allow_tf32)
        # A processor that it does not know, or a compiler that it misses, is found out here.
        first = items.new_zeros(1, dtype=sys.modules["torch"].int64)
        tiles.of_pairs(first, first)
    except Exception as error:
        warn(
            f"Triton does not run here ({type(error).__name__}: {error}). Factors are ranked by "
            "torch alone, which takes longer."
        )
        return None
    return tiles


def rank(factors: FactorArrays, tiles: Any, aligned: Aligned, request: Request) -> Ranks | None:
    """Rank the items for users; None where their scores themselves are looked at.

    They are where users have candidates of their own, where a rule reads scores, and where
    scores may be infinite or NaN.
    """
    by_score = request.protocol.score_above is not None
    if aligned.candidates is not None or by_score or not factors.finite_for_sure():
        return None
    work = Work(tiles, aligned)
    tasks = work.blocks()
    weights = [float(task.stop - task.start) for task in tasks]
    brief = len(work.users) * aligned.n_items <= BRIEF
    pace = one_at_a_time(request).pace
    run_tasks(work.run, tasks, weights=weights, label="Ranking", brief=brief, **pace)
    above, tied, before = work.above, work.tied, work.before
    if request.depth is not None:
        beyond = above >= request.depth
        above[beyond], tied[beyond], before[beyond] = -1, 0, 0
    return of_ranked(aligned, above, tied, before, request.depth, request.threads)


class Excluded(NamedTuple):
    """The items that are no candidates of the users of a task, ragged."""

    indptr: Int64
    places: Tensor  # int32, their positions
    scores: Tensor

    def counts(self, who: Int64, own: Tensor, places: Tensor) -> list[Tensor]:
        """Count those above judged items, tied with them, and tied before them.

        `who` are the users of the judged items, in the task; `own` are their scores, and `places`
        their positions.
        """
        torch = sys.modules["torch"]
        device, n_compared = own.device, np.diff(self.indptr)[who]
        compared = ragged.indptr_of(n_compared)
        counts = [torch.zeros(len(who), dtype=torch.int64, device=device) for _ in range(3)]
        for part in ragged.blocks(compared, PAIRS, len(who)):
            size, start = part.stop - part.start, compared[part]
            n_pairs = int(compared[part.stop] - start[0])
            lengths, first = (
                torch.as_tensor(numbers, device=device)
                for numbers in (n_compared[part], self.indptr[who[part]] - (start - start[0]))
            )
            judged = torch.repeat_interleave(lengths, output_size=n_pairs)
            other = first[judged] + torch.arange(n_pairs, device=device)
            theirs, mine = self.scores[other], own[part][judged]
            equal = theirs == mine
            earlier = equal & (self.places[other] < places[part][judged])
            for count, what in zip(counts, (theirs > mine, equal, earlier), strict=True):
                count[part] = torch.bincount(judged[what], minlength=size)
        return counts


class Work:
    """What the tasks of one call share; each writes the part of its users."""

    def __init__(self, tiles: Any, aligned: Aligned) -> None:
        self.tiles, self.aligned = tiles, aligned
        self.users = np.flatnonzero(np.diff(aligned.ranked_indptr))
        n = len(aligned.ranked_items)
        self.above, self.tied, self.before = (np.zeros(n, np.int64) for _ in range(3))
        rows = aligned.item_rows
        self.item_rows = None if rows is None else self._there(rows.astype(np.int32))

    def blocks(self) -> list[slice]:
        """Cut the users with judged items into tasks."""
        n_users = max(1, min(USERS_PER_TASK, SCORES_PER_TASK // self.aligned.n_items))
        n_pairs = ragged.lengths(self.aligned.ranked_indptr, self.users)
        n_pairs += ragged.lengths(self.aligned.excluded_indptr, self.users)
        return ragged.blocks(ragged.indptr_of(n_pairs), PAIRS, n_users)

    def run(self, block: slice, ticker: Ticker) -> None:
        """Rank the items for a block of users."""
        ticker.advance()
        aligned, users = self.aligned, self.users[block]
        indptr, at = ragged.take(aligned.ranked_indptr, users)
        judged, who = aligned.ranked_items[at], ragged.users_of(indptr)
        own = self._scores(users[who], judged)
        cut = self._cut(users, indptr)
        table = (self.item_rows, aligned.n_items, own)
        above, tied = self.tiles.count(self._rows(*cut), *table)
        lost = np.flatnonzero(to_numpy(tied) < 1)
        check_own_scores(int(lost[0]) if len(lost) else -1, judged)

        excluded, places = self._excluded(users), self._there(judged)
        higher, equal, earlier = excluded.counts(who, own, places)
        self.above[at] = to_numpy(above - higher)
        self.tied[at] = to_numpy(tied - 1 - equal)
        has_ties = self.tied[at] > 0
        if has_ties.any():
            rows = self._rows(*_with_any(has_ties, cut))
            before = self.tiles.count_before(rows, *table, places)
            self.before[at] = np.where(has_ties, to_numpy(before - earlier), 0)

    def _scores(self, users: Int64, items: Int32) -> Tensor:
        """Return the scores of pairs of users of test and item positions."""
        aligned = self.aligned
        columns = items if aligned.item_rows is None else aligned.item_rows[items]
        rows = self._there(aligned.rows[users])
        return self.tiles.of_pairs(rows, self._there(columns.astype(np.int64)))

    def _excluded(self, users: Int64) -> Excluded:
        indptr, at = ragged.take(self.aligned.excluded_indptr, users)
        items = self.aligned.excluded[at]
        scores = self._scores(users[ragged.users_of(indptr)], items)
        return Excluded(indptr, self._there(items), scores)

    def _cut(self, users: Int64, indptr: Int64) -> tuple[Int64, Int64, Int64]:
        """Cut the judged items of users into rows: each row's user, start and length.

        Long rows come first, so that those that are counted together are about as long.
        """
        most = self.tiles.judged_per_row
        n_judged = np.diff(indptr)
        n_rows = -(-n_judged // most)
        who = np.repeat(np.arange(len(users)), n_rows)
        skipped = most * (np.arange(len(who)) - ragged.indptr_of(n_rows)[who])
        lengths = np.minimum(most, n_judged[who] - skipped)
        order = np.argsort(-lengths, kind="stable")
        rows = (self.aligned.rows[users[who]], indptr[who] + skipped, lengths)
        users, starts, lengths = (column[order] for column in rows)
        return users, starts, lengths

    def _rows(self, users: Int64, starts: Int64, lengths: Int64) -> Any:
        columns = (users, starts, lengths.astype(np.int32))
        return self.tiles.rows(*(self._there(column) for column in columns))

    def _there(self, array: Array) -> Tensor:
        """Return an array on the device."""
        return sys.modules["torch"].as_tensor(array, device=self.tiles.device)


def _with_any(marked: Bool, cut: tuple[Int64, Int64, Int64]) -> tuple[Int64, Int64, Int64]:
    """Return the rows in which any judged item is marked."""
    users, starts, lengths = cut
    indptr = ragged.indptr_of(marked)
    any_there = indptr[starts + lengths] > indptr[starts]
    return users[any_there], starts[any_there], lengths[any_there]

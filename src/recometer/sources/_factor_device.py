"""Ranking by factors on a device, whose scores no memory holds: where Triton is.

The counts are those over the whole catalogue, less those over items that are not candidates,
which are scored apart, in the same arithmetic. Where only the first places matter, judged items are
no longer looked for when enough is counted above them.
"""

from __future__ import annotations

import dataclasses
import importlib.util
import os
import sys
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from recometer import ragged
from recometer.arrays import Array, Int32, Int64
from recometer.data.tensors import CUDA, dtype_name, to_numpy
from recometer.errors import warn
from recometer.ranks import Ranks
from recometer.sources import _torch
from recometer.sources._align_result import Aligned
from recometer.sources._assemble import check_own_scores, of_ranked
from recometer.sources._factor_arrays import FactorArrays
from recometer.sources._score_batches import Batches, rank_batches, top_batches
from recometer.sources._top import Best, Rule
from recometer.sources._torch import PAIRS, one_at_a_time, scorer, undirected
from recometer.sources.base import Request
from recometer.tasks import BRIEF, Ticker, run_tasks

Tensor = Any

# A task has enough users to keep a device busy, and few enough scores for Ctrl-C and the bar.
USERS_PER_TASK = 2**14
SCORES_PER_TASK = 2**33
# Where places beyond a depth do not matter: items that are counted before it is looked who is left.
FIRST_PORTION = 2**14


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


def rank(factors: FactorArrays, aligned: Aligned, request: Request, *, allow_tf32: bool) -> Ranks:
    """Rank the items for users."""
    tiles = tiles_of(factors, allow_tf32=allow_tf32)
    ranks = None if tiles is None else _rank_in_tiles(factors, tiles, aligned, request)
    if ranks is not None:
        return ranks
    batches = _batches(factors, tiles, aligned, request, allow_tf32=allow_tf32)
    return rank_batches(aligned, batches)


def best(
    factors: FactorArrays,
    aligned: Aligned,
    request: Request,
    k: int,
    rule: Rule,
    *,
    allow_tf32: bool,
) -> Best:
    """Find the best candidates of users."""
    tiles = tiles_of(factors, allow_tf32=allow_tf32)
    batches = _batches(factors, tiles, aligned, request, allow_tf32=allow_tf32)
    return top_batches(aligned, batches, k, rule)


def _batches(
    factors: FactorArrays, tiles: Any, aligned: Aligned, request: Request, *, allow_tf32: bool
) -> Batches:
    """Score where the factors live: all items for some users at a time."""
    protocol = request.protocol.replace(infinite_scores="undefined")
    request = dataclasses.replace(request, protocol=protocol)
    known = aligned.rows >= 0
    flags = aligned.flags[known]
    factors.flag_user_bias(aligned.rows[known], flags)
    aligned.flags[known] = flags
    score = None if tiles is None else tiles.scores
    if score is None:
        arrays = (factors.users, factors.items, factors.item_bias)
        score = scorer(*arrays, allow_tf32=allow_tf32)
    return Batches(
        lambda users: undirected(score(aligned.rows[users])),
        one_at_a_time(request),
        n_columns=len(factors.items),
        bytes_per_batch=_torch.BLOCK_BYTES,
        ahead=False,
    )


def _rank_in_tiles(
    factors: FactorArrays, tiles: Any, aligned: Aligned, request: Request
) -> Ranks | None:
    """Rank the items for users; None where their scores themselves are looked at.

    They are where users have candidates of their own, where a rule reads scores, and where
    scores may be infinite or NaN.
    """
    by_score = request.protocol.score_above is not None
    if aligned.candidates is not None or by_score or not factors.finite_for_sure():
        return None
    work = Work(tiles, aligned, request.depth)
    tasks = work.blocks()
    weights = [float(task.stop - task.start) for task in tasks]
    brief = len(work.users) * aligned.n_items <= BRIEF
    pace = one_at_a_time(request).pace
    run_tasks(work.run, tasks, weights=weights, label="Ranking", brief=brief, **pace)
    return of_ranked(aligned, work.above, work.tied, work.before, request.depth, request.threads)


class Scored(NamedTuple):
    """Items of the users of a task, and their scores."""

    who: Int64  # users, in the task, ascending
    places: Int32  # positions of the items
    scores: Tensor


class Work:
    """What the tasks of one call share; each writes the part of its users."""

    def __init__(self, tiles: Any, aligned: Aligned, limit: int | None) -> None:
        self.tiles, self.aligned, self.limit = tiles, aligned, limit
        self.users = np.flatnonzero(np.diff(aligned.ranked_indptr))
        n = len(aligned.ranked_items)
        self.above = np.full(n, -1, np.int64)
        self.tied, self.before = np.zeros(n, np.int64), np.zeros(n, np.int64)
        rows = aligned.item_rows
        self.item_rows = None if rows is None else self._there(rows.astype(np.int32))

    def blocks(self) -> list[slice]:
        """Cut the users with judged items into tasks."""
        n_users = max(1, min(USERS_PER_TASK, SCORES_PER_TASK // self.aligned.n_items))
        n_pairs = ragged.lengths(self.aligned.ranked_indptr, self.users)
        n_pairs += ragged.lengths(self.aligned.excluded_indptr, self.users)
        return ragged.blocks(ragged.indptr_of(n_pairs), PAIRS, n_users)

    def portions(self) -> Iterator[range]:
        """Yield the item positions that are counted before it is looked which items are left."""
        first, n_items = 0, self.aligned.n_items
        last = n_items if self.limit is None else FIRST_PORTION
        while first < n_items:
            yield range(first, min(last, n_items))
            first, last = last, 4 * last

    def run(self, block: slice, ticker: Ticker) -> None:
        """Rank the items for a block of users."""
        aligned, users = self.aligned, self.users[block]
        at, judged = self._scored(users, aligned.ranked_indptr, aligned.ranked_items)
        _, excluded = self._scored(users, aligned.excluded_indptr, aligned.excluded)
        # What is counted too much is known beforehand.
        higher, equal, earlier = self._compared(judged, excluded, len(users))
        above, tied, left = -higher, -equal, np.arange(len(at))
        for places in self.portions():
            ticker.advance()
            rows, own = self._rows(users, judged, left)
            more = self.tiles.count(rows, self.item_rows, places, own)
            for count, found in zip((above, tied), more, strict=True):
                count[left] += to_numpy(found)
            if self.limit is not None:
                left = left[above[left] < self.limit]
        lost = left[tied[left] < 1]  # itself
        check_own_scores(int(lost[0]) if len(lost) else -1, judged.places)
        self.above[at[left]], self.tied[at[left]] = above[left], tied[left] - 1
        left = left[tied[left] > 1]
        if len(left):
            rows, own = self._rows(users, judged, left)
            table = (self.item_rows, range(aligned.n_items), own)
            before = self.tiles.count_before(rows, *table, self._there(judged.places[left]))
            self.before[at[left]] = to_numpy(before) - earlier[left]

    def _scored(self, users: Int64, indptr: Int64, items: Int32) -> tuple[Int64, Scored]:
        """Score the items of users of test; return which rows of the table they are, too."""
        aligned = self.aligned
        indptr, at = ragged.take(indptr, users)
        who, places = ragged.users_of(indptr), items[at]
        columns = places if aligned.item_rows is None else aligned.item_rows[places]
        rows = self._there(aligned.rows[users[who]])
        scores = self.tiles.of_pairs(rows, self._there(columns.astype(np.int64)))
        return at, Scored(who, places, scores)

    def _compared(self, judged: Scored, others: Scored, n_users: int) -> list[Int64]:
        """Count the others that score above judged items, like them, and like them but before."""
        torch = sys.modules["torch"]
        n_others = np.bincount(others.who, minlength=n_users)
        begin, lengths = ragged.indptr_of(n_others)[judged.who], n_others[judged.who]
        places, theirs = (self._there(scored.places) for scored in (judged, others))
        counts = [np.zeros(len(judged.who), np.int64) for _ in range(3)]
        for part in ragged.blocks(ragged.indptr_of(lengths), PAIRS, max(1, len(lengths))):
            n_pairs, first = int(lengths[part].sum()), begin[part]
            first -= np.cumsum(lengths[part]) - lengths[part]
            mine = torch.repeat_interleave(self._there(lengths[part]), output_size=n_pairs)
            other = self._there(first)[mine] + torch.arange(n_pairs, device=self.tiles.device)
            left, right = others.scores[other], judged.scores[part][mine]
            equal = left == right
            before = equal & (theirs[other] < places[part][mine])
            for count, found in zip(counts, (left > right, equal, before), strict=True):
                count[part] = to_numpy(torch.bincount(mine[found], minlength=len(first)))
        return counts

    def _rows(self, users: Int64, judged: Scored, left: Int64) -> tuple[Any, Tensor]:
        """Cut the judged items that are left into rows of a few; return their scores, too.

        Long rows come first, so that those that are counted together are about as long.
        """
        most = self.tiles.judged_per_row
        n_judged = np.bincount(judged.who[left], minlength=len(users))
        n_rows = -(-n_judged // most)
        who = np.repeat(np.arange(len(users)), n_rows)
        skipped = most * (np.arange(len(who)) - ragged.indptr_of(n_rows)[who])
        lengths = np.minimum(most, n_judged[who] - skipped)
        starts = ragged.indptr_of(n_judged)[who] + skipped
        rows = (self.aligned.rows[users[who]], starts, lengths.astype(np.int32))
        order = np.argsort(-lengths, kind="stable")
        there = (self._there(column[order]) for column in rows)
        return self.tiles.rows(*there), judged.scores[self._there(left)]

    def _there(self, array: Array) -> Tensor:
        """Return an array on the device."""
        return sys.modules["torch"].as_tensor(array, device=self.tiles.device)

"""Ranking by factors: what the tasks of one call share."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

from recometer import _kernel, ragged
from recometer._kernel import NanRule
from recometer.arrays import Array, Float64, Int32, Int64, UInt8, follow, slices, steps
from recometer.errors import InternalError
from recometer.ranks import Ranks, UserFlag
from recometer.remembered import cached_property
from recometer.sources._align_result import Aligned
from recometer.sources._assemble import check_own_scores, of_ranked
from recometer.sources._constant import USERS_AT_ONCE, constant, to_look_at
from recometer.sources._factor_arrays import Converted, FactorArrays
from recometer.sources._factor_order import OWN_ORDER, LongestFirst, item_lengths, shared_scale
from recometer.sources.base import Request
from recometer.tasks import Ticker, run_tasks

# A task: enough users that packing the items costs little, so few that what is counted of them
# stays in a cache and no thread waits long for the last task; and bounded memory.
USERS_PER_TASK = 504
JUDGED_PER_TASK = 25_000
# Times as many where users leave early: few of them are left when the last items are packed.
TIMES_WITH_DEPTH = 2
FACTOR_BYTES_PER_TASK = 4 * 2**20
CANDIDATES_PER_TASK = 2**18
# Items of a file that are converted at once, where the kernel cannot read them in place.
CONVERTED_AT_ONCE = 2**14
# A call of the kernel: short, so that Ctrl-C and the progress bar live.
SECONDS_PER_CALL = 0.1
# Work that takes at most this many seconds is done before another thread could help.
BRIEF_SECONDS = 0.001


class FactorsWork:
    """What the tasks of one call share; each writes the part of its users."""

    def __init__(self, factors: FactorArrays, aligned: Aligned, request: Request) -> None:
        self.factors, self.aligned = factors, aligned
        self.nan_rule = NanRule[request.protocol.nan_scores.upper()]
        n = len(aligned.ranked_items)
        self.scores: Array = np.empty(n, factors.items.dtype)
        self.above, self.tied, self.before = (np.zeros(n, np.int64) for _ in range(3))
        # The judged items of each user, best first, where a task finds it for its users.
        self.best: Int64 | None = None
        self.times = 1 if request.depth is None else TIMES_WITH_DEPTH
        self.instruction_set = _kernel.instruction_set()
        # The row of each item among those of a file that are converted together.
        self.converted_rows: Int64 | None = None
        if isinstance(factors.items, Converted):
            self.converted_rows = np.arange(aligned.n_items) % CONVERTED_AT_ONCE
        one, lengths = None, None
        ordered = request.depth is not None and aligned.candidates is None
        if ordered and self.converted_rows is None:
            one = shared_scale(factors, aligned)
        if one is not None:
            lengths = item_lengths(factors.items, factors.item_bias, one)
        self.check = not self._finite_for_sure(lengths)
        # To know that all scores are finite, all must be looked at.
        whole = self.check or aligned.candidates is not None
        self.limit = None if whole else request.depth
        self.longest_first = None
        if self.limit is not None and lengths is not None:
            assert one is not None
            rows = aligned.item_rows
            self.longest_first = LongestFirst.of(lengths if rows is None else lengths[rows], one)

    def _finite_for_sure(self, lengths: Float64 | None) -> bool:
        """Return whether no score can be NaN or infinite.

        No factor is larger than the longest of the `lengths` of the items, if these are known.
        """
        factors = self.factors
        known = lengths is not None and factors.finite_up_to(float(lengths.max()))
        return known or factors.finite_for_sure()

    def blocks(self, threads: int) -> list[slice]:
        """Cut the users into tasks, alike for the threads and bounded in memory."""
        if self.brief:
            threads = 1
        n_users, indptr = self.aligned.n_users, self.aligned.ranked_indptr
        row_bytes = max(1, self.factors.items.shape[1]) * self.factors.items.itemsize
        size = max(1, min(self.times * USERS_PER_TASK, FACTOR_BYTES_PER_TASK // row_bytes))
        together = _kernel.users_at_once(self.instruction_set)
        step = together if size >= together else 1
        n_tasks = max(1, -(-n_users // (size // step * step)))
        n_tasks = -(-n_tasks // threads) * threads
        ends = -(-np.arange(n_tasks + 1) * n_users // (n_tasks * step)) * step
        return [
            slice(first + task.start, first + task.stop)
            for first, last in itertools.pairwise(np.minimum(ends, n_users).tolist())
            for task in ragged.blocks(indptr[first : last + 1], self.times * JUDGED_PER_TASK, size)
        ]

    def run_all(
        self, run: Callable[[slice, Ticker], None], tasks: list[slice], label: str, request: Request
    ) -> None:
        """Call a function that counts, or lists, the items for each block of users."""
        n_items = self.aligned.n_items
        weights = [float(block.stop - block.start) * n_items for block in tasks]
        run_tasks(run, tasks, weights=weights, label=label, brief=self.brief, **request.pace)

    def rank_all(self, request: Request) -> None:
        """Rank the items for all users."""
        if self.aligned.ranked is None:
            self.best = np.empty_like(self.above)
        self.run_all(self._rank, self.blocks(request.threads), "Ranking", request)

    def flag_constant(self, request: Request) -> None:
        """Flag the users with one score for all candidates whom no judged item shows."""
        aligned = self.aligned
        shown = (aligned.rows < 0) | (steps(aligned.ranked_indptr) > 0)
        users = to_look_at(aligned.judged_indptr, shown, request.protocol)

        def task(block: slice, ticker: Ticker) -> None:
            mine = users[block]
            factors = self.user_factors(aligned.rows[mine])
            if not self.check and self.factors.item_bias is None:
                # Where all factors are 0, so are all scores: a model that knows nothing of them.
                nothing = ~factors.any(axis=1)
                several = aligned.n_candidates[mine] > 1
                aligned.flags[mine[nothing & several]] |= np.uint32(UserFlag.CONSTANT_SCORES)
                mine, factors = mine[~nothing], factors[~nothing]

            def score(which: Int64, indptr: Int64, items: Int64) -> tuple[Array, None]:
                ticker.advance()
                scores = np.empty(len(items), self.scores.dtype)
                self.score(factors[which], indptr, items.astype(np.int32), scores)
                return scores, None

            found = constant(aligned, mine, self.nan_rule, score)
            aligned.flags[mine[found]] |= np.uint32(UserFlag.CONSTANT_SCORES)

        blocks = slices(len(users), USERS_AT_ONCE)
        run_tasks(task, blocks, label="Ranking", brief=self.brief, **request.pace)

    def _rank(self, block: slice, ticker: Ticker) -> None:
        """Rank the items for a block of users."""
        rows = np.maximum(self.aligned.rows[block], 0)
        users = self.user_factors(rows)
        indptr = self.aligned.ranked_indptr[block.start : block.stop + 1]
        self.score(users, indptr, self.aligned.ranked_items, self.scores)
        self.settle(block)
        self.count(block, users, ticker)
        self.finish(block)
        if self.best is not None:
            _kernel.best_first(indptr, self.above, self.before, self.best)

    def score(self, users: Array, indptr: Int64, listed: Int32, scores: Array) -> None:
        """Write the scores of listed items, for users with these factors."""
        items = self._items()
        if self.converted_rows is not None:
            mine = slice(int(indptr[0]), int(indptr[-1]))
            distinct, numbers = np.unique(listed[mine], return_inverse=True)
            indptr, listed, scores = indptr - mine.start, numbers.astype(np.int32), scores[mine]
            items = self._converted(distinct, None)
        _kernel.score_items(
            **self.native(users), **items, indptr=indptr, listed=listed, scores=scores
        )

    def _items(self) -> dict[str, Any]:
        """Return all items as the kernel reads them in place."""
        factors = self.factors
        return {"items": factors.items, "bias": factors.item_bias, "rows": self.aligned.item_rows}

    def _converted(self, items: slice | Int32, rows: Int64 | None) -> dict[str, Any]:
        """Return some items converted, and in which row the kernel finds each of all."""
        of_file, bias = self.aligned.item_rows, self.factors.item_bias
        chosen = items if of_file is None else of_file[items]
        return {
            "items": self.factors.items[chosen],
            "bias": None if bias is None else np.ascontiguousarray(bias[chosen]),
            "rows": rows,
        }

    def shown(
        self, first: int, finished: UInt8, judged_per_user: float = 0.0
    ) -> tuple[dict[str, Any], int]:
        """Return what the next call of the kernel is shown of the items, and where it ends."""
        n_items = self.aligned.n_items
        if self.converted_rows is not None:
            last = min(first + CONVERTED_AT_ONCE, n_items)
            return self._converted(slice(first, last), self.converted_rows), last
        step = self.items_per_call(finished, judged_per_user)
        return self._items(), min(first + step, n_items)

    def settle(self, block: slice) -> None:
        """Apply the rules for scores that are NaN or infinite, before anything is counted."""
        mine = self.judged_of(block)
        if self.check:
            rows = np.maximum(self.aligned.rows[block], 0)
            self.factors.flag_user_bias(rows, self.aligned.flags[block])
        if self.check and self.nan_rule != NanRule.UNDEFINED:
            scores = self.scores[mine]
            infinity = np.inf if self.nan_rule == NanRule.FIRST else -np.inf
            scores[np.isnan(scores)] = infinity
        if not self.check and not np.isfinite(self.scores[mine]).all():
            raise InternalError("A score is not finite though no factor is too large.")

    def finish(self, block: slice) -> None:
        """After counting, drop items that are beyond the depth or cannot be ranked."""
        mine, flags = self.judged_of(block), self.aligned.flags[block]
        if self.check:
            # Users without factors were given those of row 0.
            flags[self.aligned.rows[block] < 0] &= np.uint32(UserFlag.TRAINED)
            # By other rules than that for undefined scores none is NaN any more.
            self.above[mine][np.isnan(self.scores[mine])] = -1
        if self.limit is not None:
            beyond = self.above[mine] >= self.limit
            for counts, value in ((self.above, -1), (self.tied, 0), (self.before, 0)):
                counts[mine][beyond] = value

    def count(self, block: slice, users: Array, ticker: Ticker) -> None:
        """Count all items for a block of users, who have these factors."""
        aligned, offsets = self.aligned, slice(block.start, block.stop + 1)
        indptr, n_users = aligned.ranked_indptr[offsets], block.stop - block.start
        judged_per_user = (indptr[-1] - indptr[0]) / n_users
        order, last = self.order(users), 0
        finished = np.zeros(n_users, np.uint8)
        while last < aligned.n_items and not finished.all():
            first = last
            items, last = self.shown(first, finished, judged_per_user)
            lost = _kernel.rank_factors(
                **self.native(users),
                **items,
                **order,
                first=first,
                last=last,
                excluded_indptr=aligned.excluded_indptr[offsets],
                excluded=aligned.excluded,
                judged_indptr=indptr,
                judged=aligned.ranked_items,
                judged_scores=self.scores,
                above=self.above,
                tied=self.tied,
                before=self.before,
                limit=self.limit,
                check=self.check,
                nan_rule=self.nan_rule,
                flags=aligned.flags[block],
                finished=finished,
            )
            check_own_scores(lost, aligned.ranked_items)
            ticker.advance(float((last - first) * n_users))

    def judged_of(self, block: slice) -> slice:
        """Return where the judged items of a block of users stand."""
        indptr = self.aligned.ranked_indptr
        return slice(int(indptr[block.start]), int(indptr[block.stop]))

    def ranks(self, threads: int) -> Ranks:
        """Put the blocks together."""
        counts = self.above, self.tied, self.before
        return of_ranked(self.aligned, *counts, self.limit, threads, self.best)

    def native(self, users: Array) -> dict[str, Any]:
        """Return the factors of some users as the kernel's functions take them."""
        self.factors.files.check()  # right before each call of the kernel
        return {"instruction_set": self.instruction_set, "users": users}

    def user_factors(self, rows: Int64) -> Array:
        """Return the factors of some rows, contiguous."""
        factors = self.factors
        if not len(factors.users):
            return np.zeros((len(rows), factors.items.shape[1]), factors.items.dtype)
        if follow(rows):
            return np.ascontiguousarray(factors.users[rows[0] : rows[-1] + 1])
        return np.ascontiguousarray(factors.users[rows])

    @cached_property
    def brief(self) -> bool:
        """Whether all scores are made, and counted or listed, in BRIEF_SECONDS, roughly."""
        aligned, n_users = self.aligned, max(1, self.aligned.n_users)
        one = self._seconds_per_score(len(aligned.ranked_items) / n_users)
        n_scores = aligned.n_items * n_users
        if aligned.candidates is not None:
            n_scores = len(aligned.candidates)
        return n_scores * one <= BRIEF_SECONDS

    def order(self, users: Array) -> dict[str, Any]:
        """Return the order of the items for some users' factors, as the kernel takes it."""
        return OWN_ORDER if self.longest_first is None else self.longest_first.native(users)

    def items_per_call(self, finished: UInt8, judged_per_user: float = 0.0) -> int:
        """Estimate how many items the kernel ranks in SECONDS_PER_CALL for unfinished users."""
        n_users = len(finished) - int(np.count_nonzero(finished))
        seconds = self._seconds_per_score(judged_per_user)
        return max(2048, int(SECONDS_PER_CALL / (seconds * n_users)))

    def _seconds_per_score(self, judged_per_user: float) -> float:
        """Estimate how many seconds the kernel works on one item for one user."""
        n_factors: int = self.factors.items.shape[1]
        seconds = (n_factors + 25 * (1 + judged_per_user / 31)) / 40e9
        return 10 * seconds if self.instruction_set == "plain" else seconds

"""Ranks all items for batches of users: for `Scores`, and for factors on a device."""

from __future__ import annotations

import abc
import dataclasses
import threading
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

import numpy as np

from recometer import _kernel, ragged
from recometer._kernel import NanRule, TieOrder
from recometer.arrays import Array, Bool, Int32, Int64, all_of, slices
from recometer.data.matching import SourceIndex
from recometer.data.tensors import dtype_name, is_tensor, to_numpy
from recometer.ranks import Ranks, TopLists, UserFlag
from recometer.sources import _top_lists, _torch
from recometer.sources._top_lists import Best, Rule, Shelf
from recometer.sources._torch import Counts
from recometer.sources.alignment import (
    Aligned,
    align,
    assemble,
    best_first,
    check_own_scores,
    find_constant,
    n_rankable,
    spread,
    users_to_check,
)
from recometer.sources.base import Request, Source, comparable_scores
from recometer.tasks import POLL, Ticker, run_tasks

if TYPE_CHECKING:
    from concurrent.futures import Future

A = TypeVar("A")
R = TypeVar("R")


class Prefetch(Generic[A, R]):
    """Calls a function on each argument, staying one argument ahead of the caller.

    All calls come from the same thread, so the function need not be thread-safe, and may use
    thread-local state. At most one result is in memory in addition to the results in use. This is a
    context manager: its thread ends with the block.
    """

    def __init__(self, function: Callable[[A], R], arguments: Iterable[A]) -> None:
        from concurrent.futures import ThreadPoolExecutor  # imports logging; few sources need it

        self._function = function
        self._arguments = iter(arguments)
        self._lock = threading.Lock()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="recometer-function")
        self._has_thread = True
        self._next: tuple[A, Future[R]] | None = None

    def __enter__(self) -> Prefetch[A, R]:
        self._next = self._request_next()
        return self

    def __exit__(self, *_: object) -> None:
        self._thread.shutdown(wait=True, cancel_futures=True)

    def take(self, ticker: Ticker) -> tuple[A, R]:
        """Return the next argument and its result, and request the next result.

        Raises the function's own exception if the function failed, and Cancelled if the work was
        interrupted or another task failed meanwhile. At least one argument must be left.
        """
        from concurrent.futures import wait

        with self._lock:
            assert self._next is not None
            argument, future = self._next
            self._next = self._request_next()
        ticker.advance()
        while not wait([future], POLL).done:
            ticker.advance()
        return argument, future.result()

    def _request_next(self) -> tuple[A, Future[R]] | None:
        from concurrent.futures import Future

        for argument in self._arguments:
            if self._has_thread:
                try:
                    return argument, self._thread.submit(self._function, argument)
                except RuntimeError:  # "can't start new thread": call the function on this thread
                    self._has_thread = False
            future: Future[R] = Future()
            try:
                future.set_result(self._function(argument))
            except BaseException as error:
                future.set_exception(error)
            return argument, future
        return None


USERS_PER_BATCH = 1024


class Batches(NamedTuple):
    """Scores of all items, requested for one batch of users at a time."""

    # A function that takes test users whom the source knows, and returns their scores as float32 or
    # float64 [len(users), n_columns], in a contiguous array or in a tensor on a device.
    score: Callable[[Int64], Any]
    request: Request
    n_columns: int  # number of items in the source
    bytes_per_batch: int = 64 * 2**20  # memory for the scores of a batch
    ahead: bool = False  # whether a separate thread calls `score`, one batch ahead

    def for_each(self, users: Int64, use: Callable[[Int64, Any], None], label: str) -> None:
        """Call ``use(users, scores)`` for each batch of `users`, on several threads."""
        most_users = max(1, min(USERS_PER_BATCH, self.bytes_per_batch // (8 * self.n_columns)))
        batches = [users[part] for part in slices(len(users), most_users)]
        # The caller's function may take any amount of time, so a call to it never counts as brief.
        brief = not self.ahead and len(batches) == 1
        if brief and not self.request.progress:
            use(users, self.score(users))  # `run_tasks` would do the same
            return
        with Prefetch(self.score, batches) if self.ahead else nullcontext() as prefetch:

            def run(batch: Int64, ticker: Ticker) -> None:
                if prefetch is None:
                    use(batch, self.score(batch))
                else:
                    use(*prefetch.take(ticker))

            weights = [float(len(batch)) for batch in batches]
            run_tasks(run, batches, weights=weights, label=label, brief=brief, **self.request.pace)


def rank_batches(aligned: Aligned, batches: Batches) -> Ranks:
    """Rank the judged items among all items, for one batch of users at a time."""
    work = RankWork(aligned, batches.request)
    batches.for_each((aligned.rows >= 0).nonzero()[0], work.count, "Ranking")
    return work.ranks(batches.request.threads)


def top_batches(aligned: Aligned, batches: Batches, k: int, rule: Rule) -> Best:
    """Find each user's best candidates among all items, for one batch of users at a time."""
    work = TopWork(aligned, batches.request, k, rule)
    batches.for_each(np.flatnonzero(aligned.rows >= 0), work.count, "Listing")
    return work.best


class ScoredInBatches(Source):
    """A source that scores all items, for one batch of users at a time.

    A subclass defines `index`, `describe`, `facts` and `batches`.
    """

    index: SourceIndex
    """The users and items that the scores are for."""

    @abc.abstractmethod
    def batches(self, aligned: Aligned, request: Request) -> Batches:
        """Return scores for test users, in batches."""

    def rank(self, request: Request) -> Ranks:
        """Return the rank of each judged item of each test user; see `Ranks`."""
        aligned = align(self.index, request)
        return rank_batches(aligned, self.batches(aligned, request))

    def top(self, request: Request, k: int) -> TopLists:
        """Return the first k places of each user's ranking; see `TopLists`."""
        return _top_lists.lists(self, request, k, self._best)

    def _best(self, request: Request, k: int, rule: Rule) -> TopLists:
        aligned = rule.apply_to(align(self.index, request))
        best = top_batches(aligned, self.batches(aligned, request), k, rule)
        return _top_lists.make_lists(aligned, best, k, n_catalogue=aligned.n_items)


class Work:
    """The state shared by the tasks of a call; each task writes only its own users' entries."""

    def __init__(self, aligned: Aligned, request: Request) -> None:
        self.aligned = aligned
        self.protocol = request.protocol

    def _table(self, users: Int64, scores: Any) -> dict[str, Any]:
        """Return the scores of some test users as arguments for the kernel and for `_torch`."""
        aligned = self.aligned
        excluded_indptr, rows = ragged.take_or_cut(aligned.excluded_indptr, users)
        return {
            "scores": mask_scores(aligned, users, comparable_scores(scores, self.protocol)),
            "columns": aligned.item_rows,
            "excluded_indptr": excluded_indptr,
            "excluded": aligned.excluded[rows],
            "nan_rule": NanRule[self.protocol.nan_scores.upper()],
        }


class TopWork(Work):
    """The best candidates of all users."""

    def __init__(self, aligned: Aligned, request: Request, k: int, rule: Rule) -> None:
        super().__init__(aligned, request)
        self.rule = rule
        self.best = Best(
            np.full((aligned.n_users, min(k, aligned.n_items)), -1, np.int32),
            np.zeros(aligned.n_users, np.int64),
        )

    def count(self, users: Int64, scores: Any) -> None:
        """Find the best items for some test users, from their scores."""
        best, rule, table = self.best, self.rule, self._table(users, scores)
        scores = table["scores"]
        # Only the kernel can order equal scores at random.
        if is_tensor(scores) and rule.order == TieOrder.RANDOM:
            scores = table["scores"] = to_numpy(scores)
        shelf = Shelf.of(rule.keys[users], best.items.shape[1], dtype_name(scores))
        flags, n_absent = np.zeros(len(users), np.uint32), np.zeros(len(users), np.int64)
        table |= {"order": rule.order, "flags": flags, "no_candidates": n_absent}
        if is_tensor(scores):
            _torch.top_scores(**table, shelf=shelf)
        else:
            instruction_set = _kernel.instruction_set()
            _kernel.top_scores(**table, **shelf.native(), instruction_set=instruction_set)
        n_candidates = self.aligned.n_items - np.diff(table["excluded_indptr"]) - n_absent
        flags[shelf.find_constant(n_candidates)] |= np.uint32(UserFlag.CONSTANT_SCORES)
        best.items[users], best.n_cut[users] = shelf.items, shelf.n_cut
        self.aligned.flags[users] |= flags


class RankWork(Work):
    """The counts of all judged items."""

    def __init__(self, aligned: Aligned, request: Request) -> None:
        super().__init__(aligned, request)
        n = len(aligned.judged)
        self.limit = request.depth
        self.above, self.tied, self.before = np.zeros((3, n), np.int64)
        self.above.fill(-1)
        self.no_candidates = np.zeros(aligned.n_users, np.int64)
        # The scores of judged items, if a rule needs them.
        self.score = None if request.protocol.score_above is None else np.full(n, np.nan)

    def count(self, users: Int64, scores: Any) -> None:
        """Rank all items for some test users, from their scores."""
        aligned, table = self.aligned, self._table(users, scores)
        scores = table["scores"]
        # Make a table of these users' judged items, without items that the source lacks.
        judged_indptr, rows = ragged.take_or_cut(aligned.judged_indptr, users)
        user_rows, judged = ragged.users_of(judged_indptr), aligned.judged[rows]
        exists = judged >= 0
        indptr: Int64 | None = judged_indptr
        if not all_of(exists):
            indptr = None
            user_rows, judged = user_rows[exists], judged[exists]
            rows = rows.start + exists.nonzero()[0] if isinstance(rows, slice) else rows[exists]
        if is_tensor(scores):
            counts = _torch.rank_scores(**table, user_rows=user_rows, judged=judged)
        else:
            counts = rank_scores(table, user_rows, judged, self.limit, indptr)
        self.above[rows], self.tied[rows], self.before[rows] = counts[:3]
        aligned.flags[users] |= counts.flags
        self.no_candidates[users] = counts.no_candidates
        shown = np.zeros(len(users), bool)
        shown[user_rows[counts.above >= 0]] = True
        if not all_of(shown):
            unsure = users_to_check(judged_indptr, shown, self.protocol)
            constant = self._constant(users, table, unsure, counts)
            aligned.flags[users[unsure[constant]]] |= np.uint32(UserFlag.CONSTANT_SCORES)
        if self.score is not None:
            columns = judged if aligned.item_rows is None else aligned.item_rows[judged]
            own = scores[user_rows, columns]
            self.score[rows] = to_numpy(own) if is_tensor(own) else own

    def _constant(self, users: Int64, table: dict[str, Any], rows: Int64, counts: Counts) -> Bool:
        """Return a mask of the users in `rows` whose candidates all have the same score."""
        if counts.constant is not None:
            return counts.constant[rows]
        columns, scores = table["columns"], table["scores"]

        def score(numbers: Int64, indptr: Int64, items: Int64) -> tuple[Array, Bool]:
            own = rows[numbers].repeat(np.diff(indptr))
            values = scores[own, items if columns is None else columns[items]]
            return values, values != -np.inf

        return find_constant(self.aligned, users[rows], table["nan_rule"], score)

    def ranks(self, threads: int) -> Ranks:
        """Return the ranks of all users."""
        aligned = self.aligned
        above, tied, before = self.above, self.tied, self.before
        candidates = above >= 0
        if self.limit is not None:
            beyond = above >= self.limit
            above[beyond], tied[beyond], before[beyond] = -1, 0, 0
        order = best_first(aligned.judged_indptr, above, before, threads)
        n_candidates = aligned.n_items - aligned.n_excluded - self.no_candidates
        ranks = assemble(aligned, above, tied, before, order, n_candidates, self.limit)
        if self.score is not None:
            ranks = dataclasses.replace(ranks, score=self.score[order])
        if self.limit is None:
            return ranks
        # An item scored -inf is not a candidate, which `assemble` cannot know.
        return dataclasses.replace(ranks, n_rankable=n_rankable(aligned, candidates))


def rank_scores(
    table: dict[str, Any], user_rows: Int64, judged: Int32, limit: int | None, indptr: Int64 | None
) -> Counts:
    """Count with the kernel; the counterpart for tensors on a device is `_torch.rank_scores`.

    `indptr` holds the CSR row pointers of the judged items, if they are known.
    """
    scores, columns, nan_rule = table["scores"], table["columns"], table["nan_rule"]
    own = scores[user_rows, judged if columns is None else columns[judged]]
    if nan_rule == NanRule.UNDEFINED:
        candidate = own > -np.inf
    else:
        candidate = own != -np.inf
        own[np.isnan(own)] = np.inf if nan_rule == NanRule.FIRST else -np.inf
    all_candidates, n_judged = all_of(candidate), len(judged)
    if not all_candidates:
        user_rows, judged, own = user_rows[candidate], judged[candidate], own[candidate]
    if not all_candidates or indptr is None:
        indptr = user_rows.searchsorted(np.arange(len(scores) + 1))
    above, tied, before = np.zeros((3, len(judged)), np.int64)
    flags, no_candidates = np.zeros(len(scores), np.uint32), np.zeros(len(scores), np.int64)
    lost = _kernel.rank_scores(
        **table,
        instruction_set=_kernel.instruction_set(),
        judged_indptr=indptr,
        judged=judged,
        judged_scores=own,
        above=above,
        tied=tied,
        before=before,
        limit=limit,
        flags=flags,
        no_candidates=no_candidates,
    )
    check_own_scores(lost, judged)
    if not all_candidates:
        above, tied, before = spread(candidate, n_judged, above, tied, before)
    return Counts(above, tied, before, flags, no_candidates)


def mask_scores(aligned: Aligned, users: Int64, scores: Any) -> Any:
    """Return the scores of some users, with -inf for all items that are not the user's candidates.

    `scores` is an array or a tensor, with a column for each of the source's items.
    """
    if aligned.candidates is None:
        return scores
    indptr, rows = ragged.take(aligned.candidates[0], users)
    items = aligned.candidates[1][rows]
    columns = items if aligned.item_rows is None else aligned.item_rows[items]
    outside = np.ones(scores.shape, bool)
    outside[ragged.users_of(indptr), columns] = False
    if is_tensor(scores):
        return scores.masked_fill(scores.new_tensor(outside).bool(), -np.inf)
    return np.where(outside, scores.dtype.type(-np.inf), scores)

"""Ranking by factors that are brought into memory part by part.

    a part of the items, from the file ──> scores of the judged items in it        (first pass)
    a part of the items, from the file ──> above, tied, before: added to the counts (second pass)

Each pass reads the items once, in the order of the file, and the users once for each part. Items
that the kernel can read where they lie are not copied: the system brings their pages. Counts
of parts add up in the kernel, as those of its calls do.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

import numpy as np

from recometer.arrays import Array, Float64, Int32, Int64, slices
from recometer.data.sizes import size_in_words
from recometer.errors import InputError
from recometer.sources._align_result import Aligned
from recometer.sources._factor_arrays import FactorArrays, largest
from recometer.sources._factor_order import LongestFirst, item_lengths, shared_scale
from recometer.sources._factor_places import FilePlaces
from recometer.sources._factor_work import FactorsWork
from recometer.sources.base import Request
from recometer.tasks import Ticker, run_tasks

# What a task needs for a user beside two copies of its factors, for a judged item, and for a
# candidate beside its factors.
BYTES_PER_USER, BYTES_PER_JUDGED, BYTES_PER_CANDIDATE = 64, 64, 48
# Shares of the budget for what is known of each item, for the order of items by length, and for
# the tasks: the fewer there are, the less often items are read. The rest is for the factors of a
# part.
SHARE_OF_PLACES, SHARE_OF_ORDER, SHARE_OF_TASKS = 1 / 2, 1 / 8, 1 / 4
BYTES_PER_LENGTH = 24  # of an item, where items are put in order
PIECE = 2**23  # bytes that a thread reads at once


class StreamedWork(FactorsWork):
    """Ranking whose memory for factors, and for what follows from them, is bounded.

    Parameters
    ----------
    factors
        Those of users and items are `Rows`.
    aligned, request
    budget
        The bytes that it may take.
    """

    def __init__(
        self, factors: FactorArrays, aligned: Aligned, request: Request, budget: int
    ) -> None:
        self._budget, self._threads = budget, request.threads
        self._of_file = FilePlaces(aligned)
        self._row_bytes = max(1, factors.items.row_bytes)
        self._lock = threading.Lock()
        self._buffer: Array | None = None
        super().__init__(factors, aligned, request)

    def prepare(self, request: Request) -> None:
        """Read all factors: how large they are, how long, and the scores of the judged items."""
        self.longest_first, self._by_length = None, False
        if self.aligned.candidates is not None:  # they are read where they are scored
            self.find_limit(not self.factors.finite_for_sure(), request)
            return
        one, lengths = None, None
        if request.depth is not None and self._bytes_of_order():
            one = shared_scale(self.factors, self.aligned)
        if one is not None:
            lengths = np.empty(self.aligned.n_items)
        # Nothing needs to be copied, or to be told where it is, in the order of the file.
        self._in_place = one is None and self._of_file.all_in_order and self.factors.items.as_given
        self._part = self._part_size(one is not None)
        if not self._in_place:
            self.items["rows"] = self._of_file.rows(self._part)
        tasks, sizes = self.blocks(request.threads), [0.0]

        def look(ticker: Ticker) -> None:
            sizes.append(self._look(lengths, one))
            run_tasks(self._score_judged, tasks, threads=self._threads, progress=False)
            ticker.advance(float(self.places.stop - self.places.start))

        self._each_part(look, float(self.aligned.n_items), "Reading", request, once=lambda: True)
        finite = self.factors.finite_up_to(largest(self.factors.users), float(np.max(sizes)))
        self.find_limit(not finite, request)
        if self.limit is not None and lengths is not None:
            assert one is not None
            by_place, self._by_length = self._of_file.by_place, True
            self.longest_first = LongestFirst.in_parts(lengths, self._parts(), by_place, one)
        else:
            self.longest_first = self._of_file.order()

    def rank_all(self, request: Request) -> None:
        """Rank the items for all users."""
        everybody = slice(0, self.aligned.n_users)
        self.settle(everybody)

        def count(block: slice, ticker: Ticker) -> None:
            if not self.given_up[block].all():
                users = self.user_factors(np.maximum(self.aligned.rows[block], 0))
                self.count(block, users, ticker)
                self._give_up(block)

        self.run_all(count, self.blocks(request.threads), "Ranking", request)
        self.finish(everybody)

    def run_all(
        self, run: Callable[[slice, Ticker], None], tasks: list[slice], label: str, request: Request
    ) -> None:
        """Call a function for each block of users beside each part of the items."""

        def one_part(ticker: Ticker) -> None:
            n_items = self.places.stop - self.places.start

            def one(block: slice, own: Ticker) -> None:
                both = _Both(own, ticker, self._lock)
                run(block, both)
                both.advance((block.stop - block.start) * n_items - both.reported)

            run_tasks(one, tasks, threads=self._threads, progress=False, brief=self.brief)

        n_scores = float(self.aligned.n_items) * self.aligned.n_users
        self._each_part(one_part, n_scores, label, request, once=lambda: self._reads_once(tasks))

    def _reads_once(self, tasks: list[slice]) -> bool:
        """Return whether the items of a part are read about once, from the first to the last.

        Then to copy them would take longer than to read them where they lie.
        """
        if self._by_length:
            return False
        busy = sum(not self.given_up[block].all() for block in tasks)
        return busy <= self._threads

    def _give_up(self, block: slice) -> None:
        """Note which users have no judged item left that may be within the depth."""
        if self.limit is None:
            return
        mine, indptr = self.judged_of(block), self.aligned.ranked_indptr
        within = np.append(0, np.cumsum(self.above[mine] < self.limit))
        counts = np.diff(within[indptr[block.start : block.stop + 1] - indptr[block.start]])
        self.given_up[block] = counts == 0

    def score(self, users: Array, indptr: Int64, listed: Int32, scores: Array) -> None:
        """Write the scores of listed items, whose factors are read for that."""
        distinct, numbers = np.unique(listed, return_inverse=True)
        rows, bias = self._of_file.rows_of_items(distinct), self.factors.item_bias
        items = {
            "items": self.factors.items[rows],
            "bias": None if bias is None else bias[rows],
            "rows": None,
        }
        self.score_of(items, users, indptr, numbers.astype(np.int32), scores)

    def task_size(self) -> tuple[int, int]:
        """Return how many users, and how many judged items, a task has at most."""
        size, judged = super().task_size()
        size, judged = min(size, self.aligned.n_users), min(judged, len(self.aligned.ranked_items))
        room = SHARE_OF_TASKS * self._budget / self._threads
        share = min(1.0, room / max(1, self._bytes_of_task(size, judged)))
        return max(1, int(size * share)), max(1, int(judged * share))

    @property
    def candidates_per_task(self) -> int:
        """How many candidates a task scores at most, where users have candidates of their own."""
        room = self._budget / self._threads
        return max(
            1, min(super().candidates_per_task, int(room / (self._row_bytes + BYTES_PER_CANDIDATE)))
        )

    def _bytes_of_task(self, n_users: int, n_judged: int) -> int:
        of_user: int = 2 * self._row_bytes + BYTES_PER_USER
        return n_users * of_user + n_judged * BYTES_PER_JUDGED

    def _bytes_of_order(self) -> int:
        """Return what the items' order by length takes, 0 where that is too much."""
        needed = BYTES_PER_LENGTH * self.aligned.n_items
        return needed if needed <= SHARE_OF_ORDER * self._budget else 0

    def _part_size(self, ordered: bool) -> int:
        """Return how many items a part has.

        InputError: not even one fits beside what is known of all.
        """
        n_items, budget = self.aligned.n_items, self._budget
        of_places = 0 if self._in_place else self._of_file.bytes_per_item * n_items
        bias = self.factors.item_bias
        item = self._row_bytes + (0 if bias is None else bias.itemsize)
        smallest_tasks = self._threads * self._bytes_of_task(1, 1)
        # What is left for a part has room for an item then: a task takes more than two of them.
        least = max(of_places / SHARE_OF_PLACES, smallest_tasks / SHARE_OF_TASKS)
        if budget < least:
            raise InputError(
                f"memory={budget:,} bytes are too few to rank {n_items:,} items with "
                f"{self.factors.items.shape[1]:,} factors part by part: about "
                f"{size_in_words(1.01 * least)} are the least. Hint: a larger memory=."
            )
        rest = budget - of_places - (self._bytes_of_order() if ordered else 0)
        rest -= self._threads * self._bytes_of_task(*self.task_size())
        return int(min(n_items, rest // item))

    def _parts(self) -> list[slice]:
        """Return the places of each part."""
        return slices(self.aligned.n_items, self._part)

    def _each_part(
        self,
        use: Callable[[Ticker], None],
        weight: float,
        label: str,
        request: Request,
        *,
        once: Callable[[], bool],
    ) -> None:
        """Bring one part after the other into memory, and call a function for each.

        A part that is read `once`, which is asked before each, is read where it lies.
        """

        def whole(_: None, ticker: Ticker) -> None:
            for part in self._parts():
                if not self.given_up.all():
                    self._load(part, once())
                    use(ticker)

        run_tasks(
            whole,
            [None],
            weights=[weight],
            label=label,
            progress=request.progress,
            brief=self.brief,
        )

    def _load(self, part: slice, once: bool) -> None:
        """Bring the items at some places into memory, or show them where they lie."""
        items, n, self.places = self.factors.items, part.stop - part.start, part
        if self._in_place:
            whole = slice(0, self.aligned.n_items)
            self.items |= {"items": items[whole], "bias": self.factors.item_bias, "rows": None}
            return
        rows = self._of_file.rows_at(part)
        if isinstance(rows, slice) and (items.resident or (once and items.as_given)):
            self.items["items"] = items[rows]
        else:
            if self._buffer is None:
                self._buffer = np.empty((self._part, items.shape[1]), items.dtype)
            buffer = self.items["items"] = self._buffer[:n]

            def read(piece: slice, _: Ticker) -> None:
                some = slice(part.start + piece.start, part.start + piece.stop)
                buffer[piece] = items[self._of_file.rows_at(some)]

            run_tasks(
                read, self._pieces(n), threads=self._threads, progress=False, brief=self.brief
            )
        if self.factors.item_bias is not None:
            self.items["bias"] = np.ascontiguousarray(self.factors.item_bias[rows])

    def _pieces(self, n: int) -> list[slice]:
        """Cut the rows of a part."""
        return slices(n, PIECE // self._row_bytes)

    def _look(self, lengths: Float64 | None, one: float | None) -> float:
        """Return the largest factor of the part; write the lengths of its items."""
        items, bias, begin = self.items["items"], self.items["bias"], self.places.start
        if self._in_place:
            items = items[self.places]

        def look(piece: slice, _: Ticker) -> float:
            if lengths is not None:
                assert one is not None
                some = None if bias is None else bias[piece]
                found = item_lengths(items[piece], some, one)
                lengths[begin + piece.start : begin + piece.stop] = found
            return largest(items[piece])

        pieces = self._pieces(len(items))
        sizes = run_tasks(look, pieces, threads=self._threads, progress=False, brief=self.brief)
        return float(np.max(sizes))

    def _score_judged(self, block: slice, ticker: Ticker) -> None:
        """Write the scores of the judged items of some users that are in this part."""
        ticker.advance()
        indptr = self.aligned.ranked_indptr[block.start : block.stop + 1]
        mine = self.judged_of(block)
        places = self._of_file.places(self.aligned.ranked_items[mine])
        here = np.flatnonzero((places >= self.places.start) & (places < self.places.stop))
        listed = places[here] - (0 if self._in_place else self.places.start)
        scores = np.empty(len(here), self.scores.dtype)
        users = self.user_factors(np.maximum(self.aligned.rows[block], 0))
        items = {**self.items, "rows": None}
        of_users = np.searchsorted(here, indptr - indptr[0])
        self.score_of(items, users, of_users, listed.astype(np.int32), scores)
        self.scores[mine][here] = scores


class _Both(Ticker):
    """Reports to the task of a part, and to the work as a whole."""

    def __init__(self, own: Ticker, whole: Ticker, lock: threading.Lock) -> None:
        self.reported = 0.0
        self._own, self._whole, self._lock = own, whole, lock

    def advance(self, weight: float = 0.0) -> None:
        """Report that `weight` more is done, of which only the whole knows the unit."""
        self._own.advance()
        with self._lock:
            self._whole.advance(weight)
        self.reported += weight

"""Scores: a dense matrix of scores, or a function that returns them batch by batch."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from recometer import _kernel, ragged
from recometer._kernel.reference import NAN_FIRST, NAN_UNDEFINED
from recometer.errors import InputError, InputTypeError, InternalError
from recometer.ranks import Ranks
from recometer.sources import _narrow
from recometer.sources._align import Aligned, SourceIndex, align, assemble
from recometer.sources.base import Request, Source
from recometer.sources.factors import NAN_RULES, NO_LIMIT
from recometer.tasks import Ticker, run_tasks

__all__ = ["Scores"]

Array = npt.NDArray[Any]
Int64 = npt.NDArray[np.int64]

BATCH_BYTES = 8 * 2**20
USERS_PER_BATCH = 1024


class Scores(Source):
    """Scores of every item for a user, from a matrix or a function.

    Parameters
    ----------
    matrix_or_function
        A float array [n_users, n_items] (memory-mapped if need be), or a function that takes
        an int64 array of user rows and returns their scores, [len(rows), n_items]. The
        function is never called by two threads at once; the next batch is asked for while
        the last one is counted. -inf marks an item that is no candidate of a user.
    n_users, n_items
        Needed for a function, unless the ids tell.
    user_ids, item_ids : sequences of n_users and n_items ids, optional
        Whose row and column it is; without, row u is user u of test.

    Raises
    ------
    InputError
        Shapes that do not fit, ids that are not distinct.
    InputTypeError
        Neither a matrix of numbers nor a function.

    Examples
    --------
    >>> import numpy as np
    >>> import recometer as rm
    >>> rm.Scores(np.eye(3)).describe()
    'Scores: a matrix, 3 users x 3 items, float64'
    """

    def __init__(
        self,
        matrix_or_function: npt.ArrayLike | Callable[[Int64], Any],
        *,
        n_users: int | None = None,
        n_items: int | None = None,
        user_ids: object = None,
        item_ids: object = None,
    ) -> None:
        self._matrix: Array | None = None
        if callable(matrix_or_function):
            self._function: Callable[[Int64], Any] = matrix_or_function
            n_users = _size(n_users, user_ids, "user")
            n_items = _size(n_items, item_ids, "item")
        else:
            matrix = self._matrix = np.asarray(matrix_or_function)
            if matrix.dtype.kind not in "fiub":
                raise InputTypeError(
                    f"Scores takes a matrix of numbers or a function, found dtype {matrix.dtype} "
                    f"({type(matrix_or_function).__name__})."
                )
            if matrix.ndim != 2:
                raise InputError(
                    f"The matrix of Scores has shape {matrix.shape}, expected [n_users, n_items]."
                )
            if (n_users, n_items) != (None, None) and matrix.shape != (n_users, n_items):
                raise InputError(
                    f"The matrix of Scores has shape {matrix.shape}, but n_users={n_users} and "
                    f"n_items={n_items} were given. Hint: leave them out."
                )
            n_users, n_items = matrix.shape
            self._function = matrix.__getitem__
        if not n_items:
            raise InputError("Scores has no items to rank.")
        self._index = SourceIndex.of("Scores", n_users, n_items, user_ids, item_ids)

    def describe(self) -> str:
        """Say in a line what is evaluated."""
        shape = f"{self._index.n_users:,} users x {self._index.n_items:,} items"
        if self._matrix is not None:
            return f"Scores: a matrix, {shape}, {self._matrix.dtype.name}"
        return f"Scores: {getattr(self._function, '__qualname__', repr(self._function))}, {shape}"

    def arrays(self) -> Mapping[str, object]:
        """Return the arrays that the scores depend on, by name (none of a function's own)."""
        return {
            "matrix": self._matrix,
            "user_ids": self._index.user_ids,
            "item_ids": self._index.item_ids,
        }

    def batch(self, rows: Int64) -> Array:
        """Return the scores of some user rows, checked.

        Raises
        ------
        InputError
            The function returned another shape, or no numbers.
        """
        scores = np.asarray(self._function(rows))
        whom = f"the user rows {rows[0]} to {rows[-1]}"
        expected = (len(rows), self._index.n_items)
        if scores.shape != expected:
            raise InputError(
                f"The function of Scores returned shape {scores.shape} for {whom}, expected "
                f"{expected}: a row per user, a column per item."
            )
        if scores.dtype.kind not in "fiub":
            raise InputError(
                f"The function of Scores returned dtype {scores.dtype} for {whom}, "
                "expected numbers."
            )
        dtype = np.float32 if scores.dtype in (np.float32, np.float16) else np.float64
        return np.ascontiguousarray(scores, dtype=dtype)

    def rank(self, request: Request) -> Ranks:
        """Find where each judged item of each user of test landed; see `Ranks`."""
        aligned = align(self._index, request)
        work = _Work.of(self, aligned, request)
        size = max(1, min(USERS_PER_BATCH, BATCH_BYTES // (8 * aligned.n_items)))
        known = np.flatnonzero(aligned.rows >= 0)
        batches = [known[start : start + size] for start in range(0, len(known), size)]
        run_tasks(
            work.run,
            batches,
            weights=[float(len(batch)) for batch in batches],
            threads=request.threads,
            progress=request.progress,
            label="Ranking",
        )
        return work.ranks()


@dataclasses.dataclass
class _Work:
    """What the tasks of one call share; each writes the part of its users."""

    source: Scores
    aligned: Aligned
    nan_rule: int
    above: Int64
    tied: Int64
    before: Int64
    no_candidates: Int64
    instruction_set: str
    asking: threading.Lock

    @classmethod
    def of(cls, source: Scores, aligned: Aligned, request: Request) -> _Work:
        n = len(aligned.judged)
        return cls(
            source,
            aligned,
            NAN_RULES[request.protocol.nan_scores],
            np.full(n, -1, np.int64),
            np.zeros(n, np.int64),
            np.zeros(n, np.int64),
            np.zeros(aligned.n_users, np.int64),
            _kernel.instruction_set(),
            threading.Lock(),
        )

    def run(self, users: Int64, ticker: Ticker) -> None:
        """Rank all items for some users of test."""
        aligned = self.aligned
        with self.asking:
            ticker.advance()
            scores = self.source.batch(aligned.rows[users])
        scores = _narrow.mask_scores(aligned, users, scores)
        # The judged items of these users that have a score, as a table of their own.
        judged_indptr, at = ragged.take(aligned.judged_indptr, users)
        who = np.repeat(np.arange(len(users)), np.diff(judged_indptr))
        items = aligned.judged[at]
        columns = items if aligned.item_rows is None else aligned.item_rows[items]
        judged_scores = scores[who, columns]
        if self.nan_rule != NAN_UNDEFINED:
            infinity = np.inf if self.nan_rule == NAN_FIRST else -np.inf
            not_candidate = np.isneginf(judged_scores)
            judged_scores[np.isnan(judged_scores)] = infinity
        else:
            not_candidate = np.isneginf(judged_scores) | np.isnan(judged_scores)
        can = (items >= 0) & ~not_candidate
        who, at, items = who[can], at[can], items[can]
        judged_indptr = np.searchsorted(who, np.arange(len(users) + 1))
        excluded_indptr, excluded = ragged.take(aligned.excluded_indptr, users)
        above, tied, before = (np.zeros(len(at), np.int64) for _ in range(3))
        flags, no_candidates = np.zeros(len(users), np.uint32), np.zeros(len(users), np.int64)
        lost = _kernel.rank_scores(
            self.instruction_set,
            scores,
            aligned.item_rows,
            excluded_indptr,
            aligned.excluded[excluded],
            judged_indptr,
            items,
            judged_scores[can],
            above,
            tied,
            before,
            NO_LIMIT,
            self.nan_rule,
            flags,
            no_candidates,
        )
        if lost >= 0:
            raise InternalError(
                f"The item at position {items[lost]} did not find its own score among the "
                "candidates. Please report this, with the processor's name."
            )
        self.above[at], self.tied[at], self.before[at] = above, tied, before
        aligned.flags[users] |= flags
        self.no_candidates[users] = no_candidates

    def ranks(self) -> Ranks:
        """Put the batches together."""
        order = np.empty(len(self.above), np.int64)
        _kernel.best_first(self.aligned.judged_indptr, self.above, self.before, order)
        return assemble(
            self.aligned, self.above, self.tied, self.before, order, self.no_candidates, None
        )


def _size(n: int | None, ids: object, what: str) -> int:
    if n is None and ids is None:
        raise InputError(
            f"Scores of a function needs n_{what}s=... (or {what}_ids=...): it cannot tell."
        )
    if n is None:
        return len(ids)  # type: ignore[arg-type]
    if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 0:
        raise InputError(f"n_{what}s={n!r} must be a whole number, 0 or more.")
    return int(n)

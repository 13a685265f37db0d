"""Scores: a dense matrix of scores, or a function that returns them batch by batch."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from recometer import _kernel, ragged
from recometer._kernel import NanRule, TieOrder
from recometer.arrays import Array, Float64, Int32, Int64
from recometer.data.ids import show
from recometer.data.matching import SourceIndex
from recometer.data.tensors import dtype_and_device, dtype_name, elsewhere, is_tensor, to_numpy
from recometer.errors import InputError, InputTypeError, InternalError, ModelError
from recometer.ranks import Ranks, TopLists, UserFlag
from recometer.sources import _align_narrow, _top, _torch
from recometer.sources._align import align
from recometer.sources._align_result import Aligned
from recometer.sources._assemble import assemble, best_first
from recometer.sources._score_prefetch import Prefetch
from recometer.sources._top import Best, Rule, Shelf
from recometer.sources._torch import Counts, Pieces
from recometer.sources.base import Request, Source
from recometer.tasks import Ticker, run_tasks

# Memory of a batch's scores: of a matrix, little, so that Ctrl-C and the progress bar live; of
# a function, more, because models are faster on many users at once.
MATRIX_BYTES = 8 * 2**20
FUNCTION_BYTES = 64 * 2**20
USERS_PER_BATCH = 1024
NAMED = 3  # users that a message names


class Scores(Source):
    """Scores of every item for a user, from a matrix or a function.

    Parameters
    ----------
    matrix_or_function
        Scores [n_users, n_items], an array (memory-mapped if need be) or a torch tensor; or
        a function that takes an int64 array of user rows and returns their scores,
        [len(rows), n_items]. float32 and float64 are taken as they are, float16 as float32,
        integers as float64. -inf (and what a masked array masks) is no candidate of a user.

        The function is called by one thread, never twice at once, for as many users as fit
        into 64 MiB of scores (at most 1,024); the next batch is asked for while the last one
        is counted. It may use one buffer for all its results, which are copied.
    n_users, n_items
        Needed for a function, unless the ids tell.
    user_ids, item_ids : sequences of n_users and n_items ids, optional
        Whose row and column it is; without, row u is user u of test.

    Raises
    ------
    InputError
        Shapes that do not fit, ids that are not distinct; while ranking, a function that
        returns another shape, or no numbers, for some users, which are named.
    InputTypeError
        Neither a matrix of numbers nor a function.
    ModelError
        While ranking: the function raised an exception, which is its cause, for some users,
        which are named.

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
        self._matrix: Any = None  # an array, or a tensor on a device
        self._function: Callable[[Int64], Any] | None = None
        if callable(matrix_or_function):
            self._function = matrix_or_function
            n_users = _size(n_users, user_ids, "user")
            n_items = _size(n_items, item_ids, "item")
        else:
            matrix = self._matrix = _dense(matrix_or_function)
            if not _are_numbers(matrix):
                raise InputTypeError(
                    f"Scores takes a matrix of numbers or a function, found dtype {matrix.dtype} "
                    f"({type(matrix_or_function).__name__}).{_dense_hint(matrix_or_function)}"
                )
            shape = tuple(matrix.shape)
            if len(shape) != 2:
                raise InputError(
                    f"The matrix of Scores has shape {shape}, expected [n_users, n_items]."
                )
            if n_users not in (None, shape[0]) or n_items not in (None, shape[1]):
                raise InputError(
                    f"The matrix of Scores has shape {shape}, but n_users={n_users} and "
                    f"n_items={n_items} were given. Hint: leave them out."
                )
            n_users, n_items = shape
        if not n_items:
            raise InputError("Scores has no items to rank.")
        self._index = SourceIndex.of("Scores", n_users, n_items, user_ids, item_ids)

    def describe(self) -> str:
        """Say in a line what is evaluated."""
        shape = f"{self._index.n_users:,} users x {self._index.n_items:,} items"
        if self._matrix is not None:
            return f"Scores: a matrix, {shape}, {dtype_and_device(self._matrix)}"
        return f"Scores: {getattr(self._function, '__qualname__', repr(self._function))}, {shape}"

    def arrays(self) -> Mapping[str, object]:
        """Return the arrays that the scores depend on, by name (none of a function's own)."""
        return {
            "matrix": Pieces.of(self._matrix),
            "user_ids": self._index.user_ids,
            "item_ids": self._index.item_ids,
        }

    def held_bytes(self) -> int | None:
        """Return the memory that a matrix takes; None for a function."""
        return None if self._matrix is None else super().held_bytes()

    def batch(self, rows: Int64) -> Any:
        """Return the scores of some user rows, checked, as they are counted.

        Parameters
        ----------
        rows : int64 [n_rows]
            Ascending where the source has no ids.

        Returns
        -------
        float32 or float64 [n_rows, n_items]
            A contiguous array, or a tensor if the scores live on a device.

        Raises
        ------
        InputError
            The function returned another shape, or no numbers.
        ModelError
            The function raised an exception, which is the cause.
        """
        if self._matrix is not None:
            # Rows that lie together need no copy.
            together = bool((np.diff(rows) == 1).all())
            chosen = slice(rows[0], rows[-1] + 1) if together else rows
            if is_tensor(self._matrix):
                return _torch.as_numbers(self._matrix[chosen], "The matrix of Scores").clone()
            scores = self._matrix[chosen]
            return np.ascontiguousarray(scores, dtype=_precision(scores))
        assert self._function is not None
        try:
            returned = self._function(rows.copy())
        except Exception as error:
            raise ModelError(
                f"The function of Scores raised {type(error).__name__} for {self._whom(rows)}: "
                f"{error}"
            ) from error
        try:
            scores = _dense(returned)
        except (TypeError, ValueError) as error:
            raise InputError(
                f"The function of Scores returned a {type(returned).__name__} for "
                f"{self._whom(rows)} that is no array: {error}"
            ) from error
        if not _are_numbers(scores):
            raise InputError(
                f"The function of Scores returned dtype {scores.dtype} "
                f"({type(returned).__name__}) for {self._whom(rows)}, expected numbers."
                f"{_dense_hint(returned)}"
            )
        expected = (len(rows), self._index.n_items)
        if tuple(scores.shape) != expected:
            raise InputError(
                f"The function of Scores returned shape {tuple(scores.shape)} for "
                f"{self._whom(rows)}, expected {expected}: a row per user, a column per item."
            )
        # A copy: the function may write its next result into the same memory.
        if is_tensor(scores):
            return _torch.as_numbers(scores, "The result of the function of Scores").clone()
        return np.array(scores, dtype=_precision(scores), order="C")

    def rank(self, request: Request) -> Ranks:
        """Find where each judged item of each user of test landed; see `Ranks`."""
        aligned = align(self._index, request)
        return rank_batches(aligned, self._batches(aligned, request))

    def top(self, request: Request, k: int) -> TopLists:
        """Return the first k places of each user's ranking; see `TopLists`."""
        return _top.lists(self, request, k, self._best)

    def _best(self, request: Request, k: int, rule: Rule) -> TopLists:
        aligned = align(self._index, request)
        if rule.unjudged_only:
            aligned = _top.only_unjudged(aligned)
        best = top_batches(aligned, self._batches(aligned, request), k, rule)
        return _top.finished(aligned, best, k, n_catalogue=aligned.n_items)

    def _batches(self, aligned: Aligned, request: Request) -> Batches:
        bytes_per_batch = FUNCTION_BYTES if self._matrix is None else MATRIX_BYTES
        if is_tensor(self._matrix):
            bytes_per_batch, request = _torch.BLOCK_BYTES, _torch.one_at_a_time(request)
        return Batches(
            lambda users: self.batch(aligned.rows[users]),
            request,
            n_columns=self._index.n_items,
            bytes_per_batch=bytes_per_batch,
            ahead=self._matrix is None,
        )

    def _whom(self, rows: Int64) -> str:
        """Name users for a message: by their ids where they have some."""
        if (np.diff(rows) == 1).all():
            numbers = f"{rows[0]} to {rows[-1]}" if len(rows) > 1 else f"{rows[0]}"
        else:
            numbers = _some([str(row) for row in rows[:NAMED]], len(rows))
        where = f"user row{'s' if len(rows) > 1 else ''} {numbers}"
        user_ids = self._index.user_ids
        if user_ids is None:
            return f"the {where}"
        names = _some([show(user_ids, row) for row in rows[:NAMED]], len(rows))
        return f"the user{'s' if len(rows) > 1 else ''} {names} ({where})"


class Batches(NamedTuple):
    """How users' scores of all items are asked for, some users at a time.

    Attributes
    ----------
    ask
        Takes users of test (int64), of whom all are known, and returns their scores as
        float32 or float64 [len(users), n_columns]: a contiguous array, or a tensor on a
        device.
    request
    n_columns
        The items of the source.
    bytes_per_batch
        What the scores of a batch may take.
    ahead
        Ask on a thread of its own, one batch ahead.
    """

    ask: Callable[[Int64], Any]
    request: Request
    n_columns: int
    bytes_per_batch: int
    ahead: bool

    def each(self, known: Int64, use: Callable[[Int64, Any], None], label: str) -> None:
        """Call ``use(users, scores)`` for batches of the users `known`, on several threads."""
        size = max(1, min(USERS_PER_BATCH, self.bytes_per_batch // (8 * self.n_columns)))
        batches = [known[start : start + size] for start in range(0, len(known), size)]
        with Prefetch(self.ask, batches) if self.ahead else nullcontext() as prefetch:

            def run(users: Int64, ticker: Ticker) -> None:
                if prefetch is None:
                    use(users, self.ask(users))
                else:
                    use(*prefetch.take(ticker))

            run_tasks(
                run,
                batches,
                weights=[float(len(batch)) for batch in batches],
                threads=self.request.threads,
                progress=self.request.progress,
                label=label,
            )


def rank_batches(aligned: Aligned, batches: Batches) -> Ranks:
    """Rank users from their scores of all items, some users at a time."""
    work = _Work.of(aligned, batches.request)
    batches.each(np.flatnonzero(aligned.rows >= 0), work.count, "Ranking")
    return work.ranks(batches.request.threads)


def top_batches(aligned: Aligned, batches: Batches, k: int, rule: Rule) -> Best:
    """Find the best candidates of users from their scores of all items."""
    k = min(k, aligned.n_items)
    nan_rule = NanRule[batches.request.protocol.nan_scores.upper()]
    best = Best(np.full((aligned.n_users, k), -1, np.int32), np.zeros(aligned.n_users, np.int64))

    def use(users: Int64, scores: Any) -> None:
        scores = _align_narrow.mask_scores(aligned, users, scores)
        excluded_indptr, rows = ragged.take(aligned.excluded_indptr, users)
        excluded = aligned.excluded[rows]
        if is_tensor(scores) and rule.order == TieOrder.RANDOM:
            scores = to_numpy(scores)  # what is drawn is drawn here
        shelf = Shelf.of(rule.keys[users], k, dtype_name(scores))
        flags, gone = np.zeros(len(users), np.uint32), np.zeros(len(users), np.int64)
        if is_tensor(scores):
            _torch.top_scores(
                scores,
                aligned.item_rows,
                excluded_indptr,
                excluded,
                rule.order,
                shelf,
                nan_rule,
                flags,
                gone,
            )
        else:
            _kernel.top_scores(
                instruction_set=_kernel.instruction_set(),
                scores=scores,
                columns=aligned.item_rows,
                excluded_indptr=excluded_indptr,
                excluded=excluded,
                order=rule.order,
                **shelf.native(),
                nan_rule=nan_rule,
                flags=flags,
                no_candidates=gone,
            )
        n_candidates = aligned.n_items - np.diff(excluded_indptr) - gone
        flags[shelf.constant(n_candidates)] |= np.uint32(UserFlag.CONSTANT_SCORES)
        best.items[users], best.left[users] = shelf.items, shelf.left
        aligned.flags[users] |= flags

    batches.each(np.flatnonzero(aligned.rows >= 0), use, "Listing")
    return best


@dataclasses.dataclass
class _Work:
    """What the tasks of one call share; each writes the part of its users."""

    aligned: Aligned
    limit: int | None
    nan_rule: NanRule
    above: Int64
    tied: Int64
    before: Int64
    no_candidates: Int64
    score: Float64 | None  # of the judged items, where it is read

    @classmethod
    def of(cls, aligned: Aligned, request: Request) -> _Work:
        n = len(aligned.judged)
        return cls(
            aligned,
            None if aligned.candidates is not None else request.depth,
            NanRule[request.protocol.nan_scores.upper()],
            np.full(n, -1, np.int64),
            np.zeros(n, np.int64),
            np.zeros(n, np.int64),
            np.zeros(aligned.n_users, np.int64),
            None if request.protocol.score_above is None else np.full(n, np.nan),
        )

    def count(self, users: Int64, scores: Any) -> None:
        """Rank all items for some users of test, whose scores these are."""
        aligned = self.aligned
        scores = _align_narrow.mask_scores(aligned, users, scores)
        # The judged items of these users that the source has, as a table of their own.
        judged_indptr, at = ragged.take(aligned.judged_indptr, users)
        who = np.repeat(np.arange(len(users)), np.diff(judged_indptr))
        has = aligned.judged[at] >= 0
        who, at = who[has], at[has]
        excluded_indptr, rows = ragged.take(aligned.excluded_indptr, users)
        excluded = aligned.excluded[rows]
        table = (
            scores,
            aligned.item_rows,
            excluded_indptr,
            excluded,
            who,
            aligned.judged[at],
            self.nan_rule,
        )
        counts = (
            _torch.rank_scores(*table) if is_tensor(scores) else _rank_scores(*table, self.limit)
        )
        self.above[at], self.tied[at], self.before[at] = counts[:3]
        aligned.flags[users] |= counts.flags
        self.no_candidates[users] = counts.no_candidates
        if self.score is not None:
            positions = aligned.judged[at]
            columns = positions if aligned.item_rows is None else aligned.item_rows[positions]
            own = scores[who, columns]
            self.score[at] = to_numpy(own) if is_tensor(own) else own

    def ranks(self, threads: int) -> Ranks:
        """Put the batches together."""
        aligned = self.aligned
        above, tied, before = self.above, self.tied, self.before
        candidates = above >= 0
        if self.limit is not None:
            beyond = above >= self.limit
            above[beyond], tied[beyond], before[beyond] = -1, 0, 0
        order = best_first(aligned.judged_indptr, above, before, threads)
        ranks = assemble(aligned, above, tied, before, order, self.no_candidates, self.limit)
        if self.score is not None:
            ranks = dataclasses.replace(ranks, score=self.score[order])
        if self.limit is None:
            return ranks
        # A score of -inf is no candidate: `assemble` cannot tell.
        rankable = ragged.offsets(aligned.relevant & candidates, aligned.judged_indptr)
        return dataclasses.replace(ranks, n_rankable=np.diff(rankable))


def _rank_scores(
    scores: Array,
    columns: Int64 | None,
    excluded_indptr: Int64,
    excluded: Int32,
    who: Int64,
    judged: Int32,
    nan_rule: NanRule,
    limit: int | None,
) -> Counts:
    """Count with the kernel; see `_torch.rank_scores`, which counts on a device."""
    n_users = len(scores)
    own = scores[who, judged if columns is None else columns[judged]]
    candidate = ~np.isneginf(own)
    if nan_rule == NanRule.UNDEFINED:
        candidate &= ~np.isnan(own)
    else:
        own[np.isnan(own)] = np.inf if nan_rule == NanRule.FIRST else -np.inf
    above, tied, before = (np.zeros(np.count_nonzero(candidate), np.int64) for _ in range(3))
    flags, no_candidates = np.zeros(n_users, np.uint32), np.zeros(n_users, np.int64)
    lost = _kernel.rank_scores(
        instruction_set=_kernel.instruction_set(),
        scores=scores,
        columns=columns,
        excluded_indptr=excluded_indptr,
        excluded=excluded,
        judged_indptr=np.searchsorted(who[candidate], np.arange(n_users + 1)),
        judged=judged[candidate],
        judged_scores=own[candidate],
        above=above,
        tied=tied,
        before=before,
        limit=limit,
        nan_rule=nan_rule,
        flags=flags,
        no_candidates=no_candidates,
    )
    if lost >= 0:
        raise InternalError(
            f"The item at position {judged[candidate][lost]} did not find its own score among the "
            "candidates. Please report this, with the processor's name."
        )
    # Those that are no candidates lie nowhere.
    places = [np.full(len(judged), nowhere, np.int64) for nowhere in (-1, 0, 0)]
    for place, counts in zip(places, (above, tied, before), strict=True):
        place[candidate] = counts
    return Counts(places[0], places[1], places[2], flags, no_candidates)


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


def _dense(given: object) -> Any:
    """Return what was given as an array, or as a tensor where it lives on a device.

    What is masked in it is no candidate.
    """
    if is_tensor(given):
        return given if elsewhere(given) else to_numpy(given)
    if isinstance(given, np.ma.MaskedArray) and given.dtype.kind in "fiub":
        return np.ma.filled(given.astype(_precision(given)), -np.inf)
    return np.asarray(given)


def _are_numbers(scores: Any) -> bool:
    """Tell whether these are real numbers."""
    return not scores.is_complex() if is_tensor(scores) else scores.dtype.kind in "fiub"


def _dense_hint(given: object) -> str:
    return " Hint: .toarray() makes it dense." if hasattr(given, "toarray") else ""


def _precision(scores: Array) -> type[np.float32 | np.float64]:
    """Return the dtype that the kernel takes and that holds such scores."""
    return np.float32 if scores.dtype in (np.float32, np.float16) else np.float64


def _some(names: list[str], n: int) -> str:
    return ", ".join(names) + (f" and {n - len(names):,} more" if n > len(names) else "")

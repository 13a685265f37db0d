"""Factors: user factors x item factors, ranked exactly without a matrix of scores."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from recometer import _kernel, ragged
from recometer._kernel import NanRule
from recometer.arrays import Array, Int64, UInt32
from recometer.data.matching import SourceIndex
from recometer.data.tensors import dtype_and_device, dtype_name, elsewhere, is_tensor, to_numpy
from recometer.errors import InputError, InputTypeError, InternalError, warn
from recometer.ranks import Ranks, TopLists, UserFlag
from recometer.sources import _factor_candidates, _factor_lists, _top, _torch
from recometer.sources._align import align
from recometer.sources._align_result import Aligned
from recometer.sources._assemble import assemble, best_first
from recometer.sources._top import Best, Rule
from recometer.sources._torch import Pieces
from recometer.sources.base import Request, Source
from recometer.tasks import Ticker, run_tasks

if TYPE_CHECKING:
    from recometer.sources.scores import Batches


# A task: enough users that packing the items costs little, and bounded memory.
USERS_PER_TASK = 2048
JUDGED_PER_TASK = 100_000
FACTOR_BYTES_PER_TASK = 4 * 2**20
# A call of the kernel: short, so that Ctrl-C and the progress bar live.
SECONDS_PER_CALL = 0.03


class Factors(Source):
    """A model whose score of a user and an item is a dot product of factors.

    ``score(u, i) = user_bias[u] + item_bias[i] + sum over f of users[u, f] * items[i, f]``,
    computed in the precision of the factors with fused multiply-adds, factor by factor,
    beginning with the item's bias. A user's bias shifts all scores of the user and so does
    not change a rank: it is left out of the sum, and only checked.

    Parameters
    ----------
    users : float32 or float64 [n_users, n_factors]
        User factors, any strides, memory-mapped if need be. None together with `items`:
        one ranking by `item_bias` for everybody.
    items : float32 or float64 [n_items, n_factors]
        Item factors, of the same dtype (otherwise both are taken as float64, with a warning).

        Both may be torch tensors. Those on the CPU are read where they lie. Those on another
        device stay there: the candidates are scored and counted on the device, in the
        precision that torch is set to (its default is that of the factors).
    user_bias : [n_users], optional
    item_bias : [n_items], optional
    user_ids, item_ids : sequences of n_users and n_items ids, optional
        Whose row it is; without, row u is user u of test.

    Raises
    ------
    InputError
        Shapes that do not fit, ids that are not distinct.
    InputTypeError
        Factors that are not numbers.

    Warns
    -----
    DataWarning
        Factors of another dtype are converted (the whole array is copied).

    Examples
    --------
    >>> import recometer as rm
    >>> rm.Factors([[1.0, 0.0]], [[0.5, 1.0], [2.0, 0.0]], item_ids=["a", "b"]).describe()
    'Factors: 1 user x 2 items, 2 factors, float64'
    """

    def __init__(
        self,
        users: npt.ArrayLike | None,
        items: npt.ArrayLike | None,
        *,
        user_bias: npt.ArrayLike | None = None,
        item_bias: npt.ArrayLike | None = None,
        user_ids: object = None,
        item_ids: object = None,
    ) -> None:
        if (users is None) != (items is None):
            given, missing = ("items", "users") if users is None else ("users", "items")
            raise InputError(
                f"Factors has {given}, but {missing} is None. Hint: give both, or neither and "
                "item_bias=... for one ranking for everybody."
            )
        if users is None or items is None:
            if item_bias is None:
                raise InputError(
                    "Factors(None, None) has nothing to rank by. Hint: item_bias=... is the score "
                    "of each item in a ranking for everybody."
                )
            bias = _vector(item_bias, "item_bias")
            dtype = np.dtype(np.float32 if bias.dtype == np.float32 else np.float64)
            # Arrays, or tensors on a device.
            self._users: Any = np.zeros((0, 0), dtype)
            self._items: Any = np.zeros((len(bias), 0), dtype)
            n_users, self._converted = None, ""
        else:
            self._users, self._items, self._converted = _matrices(users, items)
            n_users = len(self._users)
            dtype = np.dtype(dtype_name(self._items))
        self._item_bias = _bias(item_bias, "item", len(self._items), dtype)
        self._user_bias = None if n_users is None else _bias(user_bias, "user", n_users, dtype)
        if not len(self._items):
            raise InputError("Factors has no items to rank.")
        self._index = SourceIndex.of("Factors", n_users, len(self._items), user_ids, item_ids)

    def describe(self) -> str:
        """Say in a line what is evaluated."""
        n_items, n_factors = self._items.shape
        if self._index.n_users is None:
            items = _count(n_items, "item")
            return f"Factors: item biases for everybody, {items}, {self._items.dtype.name}"
        users = _count(self._index.n_users, "user")
        return (
            f"Factors: {users} x {_count(n_items, 'item')}, {_count(n_factors, 'factor')}, "
            f"{dtype_and_device(self._items)}{self._converted}"
        )

    def arrays(self) -> Mapping[str, object]:
        """Return the arrays that the scores depend on, by name."""
        return {
            "users": Pieces.of(self._users),
            "items": Pieces.of(self._items),
            "user_bias": self._user_bias,
            "item_bias": self._item_bias,
            "user_ids": self._index.user_ids,
            "item_ids": self._index.item_ids,
        }

    def _finite_for_sure(self) -> bool:
        """Return whether no score can be NaN or infinite, judged by the largest numbers."""
        n_factors = self._items.shape[1]
        with np.errstate(over="ignore", invalid="ignore"):
            bound = n_factors * _largest(self._users) * _largest(self._items)
            bound += _largest(self._item_bias) + _largest(self._user_bias)
        return bool(bound < float(np.finfo(self._items.dtype).max) / 4)

    def rank(self, request: Request) -> Ranks:
        """Find where each judged item of each user of test landed; see `Ranks`."""
        aligned = align(self._index, request)
        if is_tensor(self._items):
            return self._rank_on_device(aligned, request)
        work = FactorsWork.of(self, aligned, request)
        settings: dict[str, Any] = {
            "threads": request.threads,
            "progress": request.progress,
            "label": "Ranking",
        }
        if aligned.candidates is not None:
            run_tasks(
                functools.partial(_factor_candidates.rank_block, work),
                _factor_candidates.blocks(aligned),
                **settings,
            )
            return work.ranks(request.threads)
        tasks = work.blocks(request.threads)
        weights = [float(block.stop - block.start) * aligned.n_items for block in tasks]
        run_tasks(work.run, tasks, weights=weights, **settings)
        return work.ranks(request.threads)

    def top(self, request: Request, k: int) -> TopLists:
        """Return the first k places of each user's ranking; see `TopLists`."""
        return _top.lists(self, request, k, self._best)

    def _best(self, request: Request, k: int, rule: Rule) -> TopLists:
        aligned = align(self._index, request)
        if rule.unjudged_only:
            aligned = _top.only_unjudged(aligned)
        if is_tensor(self._items):
            best = self._best_on_device(aligned, request, k, rule)
        else:
            work = FactorsWork.of(self, aligned, request)
            listed = aligned.candidates is not None
            best_of = _factor_lists.best_of_listed if listed else _factor_lists.best_of_all
            best = best_of(work, request, k, rule)
        return _top.finished(aligned, best, k, n_catalogue=aligned.n_items)

    def _rank_on_device(self, aligned: Aligned, request: Request) -> Ranks:
        """Rank where the factors live: all items for some users at a time."""
        from recometer.sources.scores import rank_batches

        return rank_batches(aligned, self._batches_on_device(aligned, request))

    def _best_on_device(self, aligned: Aligned, request: Request, k: int, rule: Rule) -> Best:
        from recometer.sources.scores import top_batches

        return top_batches(aligned, self._batches_on_device(aligned, request), k, rule)

    def _batches_on_device(self, aligned: Aligned, request: Request) -> Batches:
        from recometer.sources.scores import Batches

        _flag_user_bias(self._user_bias, np.maximum(aligned.rows, 0), aligned.flags)
        score = _torch.scorer(self._users, self._items, self._item_bias)
        return Batches(
            lambda users: score(aligned.rows[users]),
            _torch.one_at_a_time(request),
            n_columns=len(self._items),
            bytes_per_batch=_torch.BLOCK_BYTES,
            ahead=False,
        )


@dataclasses.dataclass
class FactorsWork:
    """What the tasks of one call share; each writes the part of its users."""

    source: Factors
    aligned: Aligned
    limit: int | None
    check: bool
    nan_rule: NanRule
    scores: Array
    above: Int64
    tied: Int64
    before: Int64
    instruction_set: str

    @classmethod
    def of(cls, source: Factors, aligned: Aligned, request: Request) -> FactorsWork:
        """Prepare what all tasks of a ranking read."""
        check = not source._finite_for_sure()
        n = len(aligned.ranked_items)
        return cls(
            source,
            aligned,
            # To know that all scores are finite, all must be looked at.
            None if check or aligned.candidates is not None else request.depth,
            check,
            NanRule[request.protocol.nan_scores.upper()],
            np.empty(n, source._items.dtype),
            np.zeros(n, np.int64),
            np.zeros(n, np.int64),
            np.zeros(n, np.int64),
            _kernel.instruction_set(),
        )

    def blocks(self, threads: int) -> list[slice]:
        """Cut the users into tasks, alike for the threads and bounded in memory."""
        n_users, indptr = self.aligned.n_users, self.aligned.ranked_indptr
        row_bytes = max(1, self.source._items.shape[1]) * self.source._items.itemsize
        size = max(1, min(USERS_PER_TASK, FACTOR_BYTES_PER_TASK // row_bytes))
        n_blocks = -(-n_users // size)
        n_blocks = max(1, min(n_users, -(-n_blocks // threads) * threads))
        size = max(1, -(-n_users // n_blocks))
        return ragged.blocks(indptr, JUDGED_PER_TASK, size)

    def run(self, block: slice, ticker: Ticker) -> None:
        """Rank the items for a block of users."""
        aligned = self.aligned
        indptr = aligned.ranked_indptr[block.start : block.stop + 1]
        excluded_indptr = aligned.excluded_indptr[block.start : block.stop + 1]
        rows = np.maximum(aligned.rows[block], 0)
        factors = self.native(rows)
        flags = aligned.flags[block]
        if self.check:
            self.flag_user_bias(rows, flags)

        mine = slice(int(indptr[0]), int(indptr[-1]))
        _kernel.score_items(
            **factors, indptr=indptr, listed=aligned.ranked_items, scores=self.scores
        )
        if self.check and self.nan_rule != NanRule.UNDEFINED:
            scores = self.scores[mine]
            infinity = np.inf if self.nan_rule == NanRule.FIRST else -np.inf
            scores[np.isnan(scores)] = infinity
        if not self.check and not np.isfinite(self.scores[mine]).all():
            raise InternalError("A score is not finite though no factor is too large.")
        step = self._items_per_call(len(rows), mine.stop - mine.start)
        for first in range(0, aligned.n_items, step):
            last = min(first + step, aligned.n_items)
            lost = _kernel.rank_factors(
                **factors,
                first=first,
                last=last,
                excluded_indptr=excluded_indptr,
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
                flags=flags,
            )
            if lost >= 0:
                raise InternalError(
                    f"The item at position {aligned.ranked_items[lost]} did not find its own "
                    "score among the candidates. Please report this, with the processor's name."
                )
            ticker.advance(float((last - first) * len(rows)))
        if self.check:
            # Users without factors were given those of row 0.
            flags[aligned.rows[block] < 0] &= np.uint32(UserFlag.TRAINED)
        if self.check and self.nan_rule == NanRule.UNDEFINED:
            unranked = np.isnan(self.scores[mine])
            self.above[mine][unranked] = -1
        if self.limit is not None:
            beyond = self.above[mine] >= self.limit
            for counts, value in ((self.above, -1), (self.tied, 0), (self.before, 0)):
                counts[mine][beyond] = value

    def ranks(self, threads: int) -> Ranks:
        """Put the blocks together."""
        aligned = self.aligned
        above, tied, before = self.above, self.tied, self.before
        if aligned.ranked is not None:
            above = np.full(len(aligned.judged), -1, np.int64)
            tied, before = np.zeros_like(above), np.zeros_like(above)
            above[aligned.ranked] = self.above
            tied[aligned.ranked] = self.tied
            before[aligned.ranked] = self.before
        order = best_first(aligned.judged_indptr, above, before, threads)
        return assemble(aligned, above, tied, before, order, aligned.outside, self.limit)

    def native(self, rows: Int64) -> dict[str, Any]:
        """Return the factors of some users and of all items as the kernel's functions take them."""
        return {
            "instruction_set": self.instruction_set,
            "users": self._user_factors(rows),
            "items": self.source._items,
            "bias": self.source._item_bias,
            "rows": self.aligned.item_rows,
        }

    def _user_factors(self, rows: Int64) -> Array:
        """Return the factors of some rows, contiguous."""
        source = self.source
        if not len(source._users):
            return np.zeros((len(rows), source._items.shape[1]), source._items.dtype)
        if len(rows) and rows[-1] - rows[0] == len(rows) - 1 and (np.diff(rows) == 1).all():
            return np.ascontiguousarray(source._users[rows[0] : rows[-1] + 1])
        return np.ascontiguousarray(source._users[rows])

    def flag_user_bias(self, rows: Int64, flags: UInt32) -> None:
        """Flag users whose bias is not finite."""
        _flag_user_bias(self.source._user_bias, rows, flags)

    def _items_per_call(self, n_users: int, n_judged: int) -> int:
        """How many items the kernel may do in SECONDS_PER_CALL, roughly."""
        groups = 1 + n_judged / (31 * n_users)
        nanoseconds = (self.source._items.shape[1] + 25 * groups) / 40
        if self.instruction_set == "plain":
            nanoseconds *= 10
        return max(2048, int(SECONDS_PER_CALL * 1e9 / (nanoseconds * n_users)))


def _flag_user_bias(user_bias: Array | None, rows: Int64, flags: UInt32) -> None:
    """Flag users whose bias is not finite; it is no part of the scores that are looked at."""
    if user_bias is None:
        return
    bias = user_bias[rows]
    known = (flags & np.uint32(UserFlag.KNOWN)) != 0
    # All scores of such a user are NaN: no rule can rank them.
    flags[known & np.isnan(bias)] |= np.uint32(UserFlag.NAN_SCORE)
    flags[known & np.isinf(bias)] |= np.uint32(UserFlag.INFINITE_SCORE)


def _matrices(users: Any, items: Any) -> tuple[Any, Any, str]:
    """Return both in one dtype, and what it took.

    Arrays come as the kernel reads them; if one of the two is a tensor on a device, both come
    as tensors there.
    """
    on_device = elsewhere(users) or elsewhere(items)
    if on_device:
        left, right = _torch.factors(users, items)
    else:
        left, right = _numbers(users, "users"), _numbers(items, "items")
    for name, matrix in (("users", left), ("items", right)):
        if matrix.ndim != 2:
            raise InputError(
                f"{name} of Factors have shape {tuple(matrix.shape)}, expected two dimensions: "
                f"[n_{name}, n_factors]."
            )
    if left.shape[1] != right.shape[1]:
        hint = ""
        if left.shape[0] == right.shape[0] or left.shape[1] == right.shape[0]:
            hint = " Hint: is one of them transposed? Rows are users and items."
        raise InputError(
            f"users have {_count(left.shape[1], 'factor')}, but items have {right.shape[1]:,} "
            f"(shapes {tuple(left.shape)} and {tuple(right.shape)}).{hint}"
        )
    if not on_device:
        small = all(m.dtype.kind == "f" and m.dtype.itemsize <= 4 for m in (left, right))
        dtype = np.float32 if small else np.float64
        left = left.astype(dtype, copy=False)
        right = _readable(right.astype(dtype, copy=False))
    converted = ""
    for name, given in (("users", users), ("items", items)):
        # A list has no dtype that its owner would miss.
        if isinstance(given, np.ndarray) or is_tensor(given):
            before, after = dtype_name(given), dtype_name(left)
            if before != after:
                warn(
                    f"{name} of Factors were converted from {before} to {after}: both factors are "
                    "taken as float32, or both as float64."
                )
                converted += f", {name} converted from {before}"
    return left, right, converted


def _numbers(given: Any, name: str) -> Array:
    if hasattr(given, "toarray"):
        raise InputTypeError(
            f"{name} of Factors are sparse ({type(given).__name__}). Hint: .toarray() makes a "
            "matrix of them."
        )
    array = to_numpy(given) if is_tensor(given) else np.asanyarray(given)
    if isinstance(array, np.ma.MaskedArray):
        raise InputTypeError(
            f"{name} of Factors are a masked array. Hint: .filled(value) says what masked "
            "entries are."
        )
    if array.dtype.kind not in "fiub":
        raise InputTypeError(
            f"{name} of Factors are of dtype {array.dtype}, expected float32 or float64."
        )
    return array


def _readable(array: Array) -> Array:
    """Copy what the kernel cannot read as it lies: strides that are not whole elements."""
    strides_fit = all(stride % array.itemsize == 0 for stride in array.strides)
    return array if strides_fit and array.flags.aligned else array.copy()


def _vector(values: npt.ArrayLike, name: str) -> Array:
    array = to_numpy(values) if is_tensor(values) else np.asarray(values)
    if array.dtype.kind not in "fiub":
        raise InputTypeError(f"{name} of Factors is of dtype {array.dtype}, expected numbers.")
    if array.ndim != 1:
        raise InputError(f"{name} of Factors has shape {array.shape}, expected one dimension.")
    return array


def _largest(array: Array | None) -> float:
    """Return the largest absolute value, NaN if there is one."""
    if array is None or not array.size:
        return 0.0
    return float(np.maximum(array.max(), -array.min(), dtype=np.float64))


def _bias(values: npt.ArrayLike | None, of: str, n: int, dtype: np.dtype[Any]) -> Array | None:
    if values is None:
        return None
    array = _vector(values, f"{of}_bias")
    if len(array) != n:
        raise InputError(
            f"{of}_bias of Factors has {len(array):,} entries, but there are {_count(n, of)}."
        )
    return np.ascontiguousarray(array, dtype=dtype)


def _count(n: int, what: str) -> str:
    return f"{n:,} {what}" if n == 1 else f"{n:,} {what}s"

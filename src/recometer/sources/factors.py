"""Ranks items exactly by products of user and item factors, without building a score matrix."""

from __future__ import annotations

import dataclasses
import itertools
import os
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from recometer import _kernel, ragged
from recometer._kernel import NanRule, TieOrder
from recometer.arrays import (
    Array,
    Bool,
    Float64,
    Int32,
    Int64,
    UInt32,
    all_of,
    follow,
    laid_out,
    slices,
    steps,
)
from recometer.data.array_files import MappedFiles, open_path
from recometer.data.interactions import Interactions
from recometer.data.matching import SourceIndex
from recometer.data.numbers import as_array, in_float64
from recometer.data.tensors import dtype_and_device, dtype_name, is_tensor
from recometer.errors import InputError, InputTypeError, InternalError, brief, quantity, warn
from recometer.ranks import Ranks, TopLists, UserFlag
from recometer.remembered import cached_property
from recometer.sources import _top_lists, _torch
from recometer.sources._score_batches import Batches, rank_batches, top_batches
from recometer.sources._top_lists import Best, Rule, Shelf
from recometer.sources._torch import Pieces
from recometer.sources.alignment import (
    USERS_AT_ONCE,
    Aligned,
    align,
    assemble,
    best_first,
    check_own_scores,
    find_constant,
    spread,
    users_to_check,
)
from recometer.sources.base import Facts, Request, Source
from recometer.tasks import Ticker, run_tasks

UNREAD = {
    "infinite_scores": "with factors, a score is infinite only if a product overflows",
    "single_precision": (
        "factors are multiplied in their own precision. Hint: convert them to float32"
    ),
}


class Factors(Source):
    """A model whose score for a user and an item is the dot product of their factors.

    ``score(u, i) = user_bias[u] + item_bias[i] + sum over f of
    user_factors[u, f] * item_factors[i, f]``, computed in the precision of the factors with
    fused multiply-adds, factor by factor, starting with the item's bias. A user's bias shifts all
    of the user's scores, so it does not change any rank. It is checked, but not added.

    Parameters
    ----------
    user_factors : float32 or float64 [n_users, n_factors]
        Factors of the users: an array with any strides, or the path of a .npy file. If both this
        and `item_factors` are None, all users get the same ranking, by `item_bias`.
    item_factors : float32 or float64 [n_items, n_factors]
        Factors of the items, of the same dtype (otherwise both are converted to float64, with a
        warning).

        Files are mapped into memory (as by ``numpy.load(..., mmap_mode="r")``) and ranked in place,
        so they may be larger than memory, unless they have to be converted.

        Both may be torch tensors. Tensors on the CPU are read without a copy. Tensors on another
        device stay there: torch multiplies and counts on the device, in the precision of the
        factors, whatever the settings of torch (see ``docs/gpu.md``).
    user_bias : [n_users], optional
    item_bias : [n_items], optional
    user_ids, item_ids : sequences of n_users and n_items ids, optional
        The id of each row. Without them, row u is user u of test.

    Raises
    ------
    InputError
        If the shapes do not match, or ids are not distinct.
    InputTypeError
        If the factors are not numbers.
    FileError
        If a path does not point to a .npy file with an array. Also while ranking, if a file that is
        mapped into memory has changed.

    Warns
    -----
    DataWarning
        If factors of another dtype are converted, which copies the whole array.

    Examples
    --------
    >>> import recometer as rm
    >>> rm.Factors([[1.0, 0.0]], [[0.5, 1.0], [2.0, 0.0]], item_ids=["a", "b"]).describe()
    'Factors: 1 user x 2 items, 2 factors, float64'
    """

    def __init__(
        self,
        user_factors: npt.ArrayLike | os.PathLike[str] | None,
        item_factors: npt.ArrayLike | os.PathLike[str] | None,
        *,
        user_bias: npt.ArrayLike | None = None,
        item_bias: npt.ArrayLike | None = None,
        user_ids: object = None,
        item_ids: object = None,
    ) -> None:
        self._factors = FactorArrays.of(user_factors, item_factors, user_bias, item_bias)
        if not len(self._factors.items):
            raise InputError("Factors has no items to rank.")
        n_items = len(self._factors.items)
        self._index = SourceIndex.of("Factors", self._factors.n_users, n_items, user_ids, item_ids)

    @classmethod
    def from_files(
        cls,
        *paths: str,
        test: object = None,
        user: str | None = None,
        item: str | None = None,
        note: Callable[[str], object] = lambda text: None,
    ) -> Factors:
        """Read factors, and the ids of their rows, from files.

        Parameters
        ----------
        *paths
            The files that contain the user factors, the item factors, the user ids and the item
            ids, in this order; the last two are optional. Factors are NumPy arrays (.npy), which
            are mapped into memory, or Parquet files with a column of ids and the factors in a
            column of lists or in columns of numbers. Ids are read from a text file with one id per
            line (.txt), a NumPy array, or a column of a table. The word ``"positions"`` instead of
            a file means that the ids are the row numbers, from 0. A single archive (.npz), whose
            arrays are named like the parameters of `Factors`, can replace the first two files.
        test
            The test data that the factors will be evaluated on; see `recometer.evaluate`. Ids in
            text files are read as strings or as numbers, whichever the test ids are.
        user, item
            The columns that contain the ids, for tables. By default, columns with common names are
            used.
        note
            A function that is called with notes about the files.

        Raises
        ------
        FileError
            If a file cannot be read.
        InputError
            If the files do not match each other, or test has ids but the rows do not.
        """
        from recometer.data.factor_files import read_factors  # most factors do not come from files

        data = test if test is None or isinstance(test, Interactions) else Interactions.of(test)
        arrays = read_factors(paths, data, {"user": user, "item": item}, note)
        return cls(arrays.pop("user_factors"), arrays.pop("item_factors"), **arrays)

    def describe(self) -> str:
        """Return one line that describes what is evaluated."""
        n_items, n_factors = self._factors.items.shape
        if self._index.n_users is None:
            items = quantity(n_items, "item")
            return f"Factors: only item biases, {items}, {self._factors.items.dtype.name}"
        users = quantity(self._index.n_users, "user")
        return (
            f"Factors: {users} x {quantity(n_items, 'item')}, {quantity(n_factors, 'factor')}, "
            f"{dtype_and_device(self._factors.items)}{self._factors.converted}"
        )

    @cached_property
    def facts(self) -> Facts:
        """The factors, biases and ids, and the rules that do not affect factors."""
        factors, users, items = self._factors, self._factors.users, self._factors.items
        if is_tensor(items):
            users, items = Pieces(users), Pieces(items)
        biases = {"user_bias": factors.user_bias, "item_bias": factors.item_bias}
        arrays = {"users": users, "items": items, **biases, **self._index.ids}
        return Facts(arrays, unread=UNREAD)

    def rank(self, request: Request) -> Ranks:
        """Return the rank of each judged item of each test user; see `Ranks`."""
        with self._factors.files:
            aligned = align(self._index, request)
            if is_tensor(self._factors.items):
                return rank_batches(aligned, self._batches(aligned, request))
            work = FactorsWork(self._factors, aligned, request)
            if aligned.candidates is None:
                if aligned.ranked is None:
                    work.best = np.empty_like(aligned.ranked_items, np.int64)
                work.run_all(work.rank, work.blocks(request.threads), "Ranking", request)
            else:
                keys = np.zeros(aligned.n_users, np.uint64)
                rank_sets(work, request, 0, Rule(TieOrder.ITEM, keys))
            work.flag_constant(request)
            return work.ranks(request.threads)

    def top(self, request: Request, k: int) -> TopLists:
        """Return the first k places of each user's ranking; see `TopLists`."""
        with self._factors.files:
            return _top_lists.lists(self, request, k, self._best)

    def _best(self, request: Request, k: int, rule: Rule) -> TopLists:
        aligned = rule.apply_to(align(self._index, request))
        if is_tensor(self._factors.items):
            best = top_batches(aligned, self._batches(aligned, request), k, rule)
        else:
            work = FactorsWork(self._factors, aligned, dataclasses.replace(request, depth=k))
            best_of = best_of_all if aligned.candidates is None else rank_sets
            best = best_of(work, request, k, rule)
        return _top_lists.make_lists(aligned, best, k, n_catalogue=aligned.n_items)

    def _batches(self, aligned: Aligned, request: Request) -> Batches:
        """Return the scores of all items, computed on the device for a batch of users at a time."""
        factors, known = self._factors, aligned.rows >= 0
        flags = aligned.flags[known]
        factors.flag_user_bias(aligned.rows[known], flags)
        aligned.flags[known] = flags
        score = _torch.scorer(factors.users, factors.items, factors.item_bias)
        # Scores that overflow cannot be ranked under any rule.
        protocol = request.protocol.replace(infinite_scores="undefined")
        return Batches(
            lambda users: score(aligned.rows[users]),
            dataclasses.replace(request, protocol=protocol, threads=1),
            n_columns=len(factors.items),
            bytes_per_batch=_torch.BLOCK_BYTES,
            ahead=False,
        )


@dataclasses.dataclass(frozen=True)
class FactorArrays:
    """The factors and biases of a model, all in one dtype: float32 or float64."""

    # [n_users, n_factors]: an array that the kernel reads, or a tensor on a device. It has no rows
    # if everybody gets the same ranking.
    users: Any
    items: Any  # [n_items, n_factors], on the same device as `users`
    user_bias: Array | None
    item_bias: Array | None
    n_users: int | None  # None if everybody gets the same ranking
    files: MappedFiles
    converted: str = ""  # what `describe` says about converted arrays

    @classmethod
    def of(cls, users: Any, items: Any, user_bias: Any, item_bias: Any) -> FactorArrays:
        """Read the arguments of `Factors`."""
        if (users is None) != (items is None):
            names = ("user_factors", "item_factors")
            present, missing = names[::-1] if users is None else names
            raise InputError(
                f"Factors has {present}, but {missing} is None. Hint: pass both; or pass neither, "
                "but item_bias=..., to rank items the same way for all users."
            )
        if users is None:
            return cls._from_item_bias(item_bias)
        users, items = open_path(users, "factors of users"), open_path(items, "factors of items")
        users, items, converted = _matrices(users, items)
        n_users, dtype = len(users), np.dtype(dtype_name(items))
        if user_bias is not None:
            user_bias = _bias(user_bias, "user", n_users, dtype)
        if item_bias is not None:
            item_bias = _bias(item_bias, "item", len(items), dtype)
        files = MappedFiles((users, items, user_bias, item_bias))
        return cls(users, items, user_bias, item_bias, n_users, files, converted)

    @classmethod
    def _from_item_bias(cls, item_bias: Any) -> FactorArrays:
        if item_bias is None:
            raise InputError(
                "Factors(None, None) has nothing to rank by. Hint: pass item_bias=..., the score "
                "of each item, to rank items the same way for all users."
            )
        bias = _vector(item_bias, "item_bias")
        dtype = np.dtype(np.float32 if bias.dtype == np.float32 else np.float64)
        in_float64(bias, "item biases")  # raises an error if integers are too large
        bias = laid_out(bias, dtype)
        without_factors = np.zeros((len(bias), 0), dtype)
        return cls(without_factors[:0], without_factors, None, bias, None, MappedFiles((bias,)))

    def flag_user_bias(self, rows: Int64, flags: UInt32) -> None:
        """Flag users whose bias is not finite, because the computed scores do not include it."""
        if self.user_bias is None:
            return
        bias = self.user_bias[rows]
        # If the bias is NaN, all scores of the user are NaN, which no rule can rank.
        flags[np.isnan(bias)] |= np.uint32(UserFlag.NAN_SCORE)
        flags[np.isinf(bias)] |= np.uint32(UserFlag.INFINITE_SCORE)

    def scores_are_finite(self, item: float | None = None) -> bool:
        """Return whether all scores are certain to be finite if no item factor exceeds `item`.

        By default, `item` is the largest factor of any item.
        """
        item = largest(self.items) if item is None else item
        n_factors = self.items.shape[1]
        with np.errstate(over="ignore", invalid="ignore"):
            bound = n_factors * largest(self.users) * item
            bound += largest(self.item_bias) + largest(self.user_bias)
        return bool(bound < float(np.finfo(dtype_name(self.items)).max) / 4)


def _matrices(users: Any, items: Any) -> tuple[Any, Any, str]:
    """Return both matrices in one dtype, and a note on the conversion.

    Arrays are in the form that the kernel reads. If one of the two is a tensor on a device, both
    become tensors there.
    """
    on_device = _torch.to_device(users, items) if is_tensor(users) or is_tensor(items) else None
    left, right = on_device or (_numbers(users, "users"), _numbers(items, "items"))
    for name, matrix in (("users", left), ("items", right)):
        if matrix.ndim != 2:
            raise InputError(
                f"{name} of Factors have shape {tuple(matrix.shape)}, expected two dimensions: "
                f"[n_{name}, n_factors]."
            )
    if left.shape[1] != right.shape[1]:
        hint = ""
        if {*left.shape} & {*right.shape}:
            hint = " Hint: is one of them transposed? Rows are users and items."
        raise InputError(
            f"users have {quantity(left.shape[1], 'factor')}, but items have {right.shape[1]:,} "
            f"(shapes {tuple(left.shape)} and {tuple(right.shape)}).{hint}"
        )
    if not on_device:
        kinds, size = {left.dtype.kind, right.dtype.kind}, max(left.itemsize, right.itemsize)
        dtype = np.float32 if kinds == {"f"} and size < 8 else np.float64
        left, right = _readable(left, dtype), _readable(right, dtype)
    converted = ""
    for name, original in (("users", users), ("items", items)):
        # Converting a list needs no warning, because it has no dtype.
        if hasattr(original, "dtype"):
            before, after = dtype_name(original), dtype_name(left)
            if before != after:
                warn(
                    f"{name} of Factors were converted from {before} to {after}: both matrices "
                    "must have the same dtype, float32 or float64."
                )
                converted += f", {name} converted from {before}"
    return left, right, converted


def _readable(array: Array, dtype: npt.DTypeLike) -> Array:
    """Return a matrix in a form that the kernel reads: unchanged, or else a converted copy.

    The kernel reads any strides that are multiples of the element size.
    """
    strides_fit = array.strides[0] % array.itemsize == array.strides[1] % array.itemsize == 0
    if array.dtype == dtype and strides_fit and array.flags.aligned:
        return array
    return np.array(array, dtype)


def _numbers(argument: Any, name: str) -> Array:
    if hasattr(argument, "toarray"):
        raise InputTypeError(
            f"{name} of Factors are sparse ({type(argument).__name__}). Hint: .toarray() converts "
            "them to a matrix."
        )
    array = as_array(argument, f"{name} of Factors")
    if isinstance(array, np.ma.MaskedArray):
        raise InputTypeError(
            f"{name} of Factors are a masked array. Hint: .filled(value) replaces the masked "
            "entries."
        )
    if array.dtype.kind not in "fiub":
        raise InputTypeError(
            f"{name} of Factors are of dtype {array.dtype}, expected float32 or float64. Hint: "
            f"numpy.asarray({name}, numpy.float32) converts anything that can be read as numbers."
        )
    return array


def _vector(values: npt.ArrayLike, name: str) -> Array:
    if isinstance(values, str | os.PathLike):
        raise InputTypeError(
            f"{name} of Factors is a path ({brief(values)}), but only the factors are read "
            f"from files. Hint: {name}=numpy.load(path)."
        )
    array = as_array(values, f"{name} of Factors")
    if array.dtype.kind not in "fiub":
        raise InputTypeError(f"{name} of Factors is of dtype {array.dtype}, expected numbers.")
    if array.ndim != 1:
        raise InputError(f"{name} of Factors has shape {array.shape}, expected one dimension.")
    return array


def largest(array: Any) -> float:
    """Return the largest absolute value of an array; NaN if it contains NaN."""
    if array is None or 0 in array.shape:
        return 0.0
    return float(np.maximum(float(array.max()), -float(array.min())))


def _bias(values: npt.ArrayLike, of: str, n: int, dtype: np.dtype[Any]) -> Array:
    array = _vector(values, f"{of}_bias")
    if len(array) != n:
        raise InputError(
            f"{of}_bias of Factors has {len(array):,} entries, but there are {quantity(n, of)}."
        )
    return laid_out(array, dtype)


# Limits of a task. It needs enough users to make packing the items comparatively cheap, but few
# enough that their counts fit into the cache and the last task ends soon after the others.
USERS_PER_TASK = 504
JUDGED_PER_TASK = 25_000
# With a depth, tasks get this many times as many users, because most users then finish early.
TIMES_WITH_DEPTH = 2
FACTOR_BYTES_PER_TASK = 4 * 2**20
CANDIDATES_PER_TASK = 2**18
# Calls to the kernel take about this long, so that Ctrl-C takes effect promptly and the progress
# bar moves smoothly.
SECONDS_PER_CALL = 0.1
# Shorter work runs on one thread, because it ends before another thread could help.
BRIEF_SECONDS = 0.001


class FactorsWork:
    """The state shared by the tasks of a call; each task writes only its own users' entries."""

    best: Int64 | None = None  # each user's judged items, best first, if tasks sort them
    longest_first: dict[str, Array] | None = None

    def __init__(self, factors: FactorArrays, aligned: Aligned, request: Request) -> None:
        self.factors, self.aligned = factors, aligned
        self.nan_rule = NanRule[request.protocol.nan_scores.upper()]
        n = len(aligned.ranked_items)
        self.scores: Array = np.empty(n, factors.items.dtype)
        columns = np.zeros((3, n), np.int64)
        self.counts: dict[str, Any] = dict(zip(("above", "tied", "before"), columns, strict=True))
        self.times = 1 if request.depth is None else TIMES_WITH_DEPTH
        self.instruction_set = _kernel.instruction_set()
        self.items = {"items": factors.items, "bias": factors.item_bias, "rows": aligned.item_rows}
        ordered = request.depth is not None and aligned.candidates is None
        self.scale, lengths = item_lengths(factors, aligned) if ordered else (0.0, None)
        # If the lengths are known, the largest of them is a bound on the item factors.
        is_bounded = lengths is not None and factors.scores_are_finite(float(lengths.max()))
        self.check = not (is_bounded or factors.scores_are_finite())
        # Checking whether all scores are finite requires computing all of them.
        all_scores = self.check or aligned.candidates is not None
        self.limit = None if all_scores else request.depth
        if self.limit is not None and lengths is not None:
            rows = aligned.item_rows
            self.longest_first = longest_first(lengths if rows is None else lengths[rows])

    def blocks(self, threads: int) -> list[slice]:
        """Divide the users into tasks of similar size and bounded memory."""
        n_users, indptr = self.aligned.n_users, self.aligned.ranked_indptr
        if self.brief and n_users:
            return [slice(0, n_users)]
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
        """Call a function for each block of users."""
        weights = None
        if not self.brief:
            weights = [float(task.stop - task.start) * self.aligned.n_items for task in tasks]
        run_tasks(run, tasks, weights=weights, label=label, brief=self.brief, **request.pace)

    def ranks(self, threads: int) -> Ranks:
        """Return the ranks of all users."""
        aligned, order = self.aligned, self.best
        above, tied, before = self.counts.values()
        if aligned.ranked is not None:
            above, tied, before = spread(aligned.ranked, len(aligned.judged), above, tied, before)
        if order is None:
            order = best_first(aligned.judged_indptr, above, before, threads)
        return assemble(aligned, above, tied, before, order, aligned.n_candidates, self.limit)

    def flag_constant(self, request: Request) -> None:
        """Flag users without ranked judged items if all their candidates have the same score."""
        aligned = self.aligned
        shown = (aligned.rows < 0) | (steps(aligned.ranked_indptr) > 0)
        if all_of(shown):
            return
        users = users_to_check(aligned.judged_indptr, shown, request.protocol)
        if not len(users):
            return

        def task(block: slice, ticker: Ticker) -> None:
            block_users = users[block]
            factors = self.user_factors(aligned.rows[block_users])

            def score(numbers: Int64, indptr: Int64, items: Int64) -> tuple[Array, None]:
                ticker.advance()
                scores = np.empty(len(items), self.scores.dtype)
                self.score(factors[numbers], indptr, items.astype(np.int32), scores)
                return scores, None

            is_constant = find_constant(aligned, block_users, self.nan_rule, score)
            aligned.flags[block_users[is_constant]] |= np.uint32(UserFlag.CONSTANT_SCORES)

        blocks = slices(len(users), USERS_AT_ONCE)
        run_tasks(task, blocks, label="Ranking", brief=self.brief, **request.pace)

    def rank(self, block: slice, ticker: Ticker) -> None:
        """Rank the items for a block of users."""
        aligned, offsets = self.aligned, slice(block.start, block.stop + 1)
        indptr, flags = aligned.ranked_indptr[offsets], aligned.flags[block]
        rows = np.maximum(aligned.rows[block], 0)
        users = self.user_factors(rows)
        self.score(users, indptr, aligned.ranked_items, self.scores)
        judged_rows = slice(int(indptr[0]), int(indptr[-1]))
        scores = self.scores[judged_rows]
        if self.check:
            self.factors.flag_user_bias(rows, flags)
            if self.nan_rule != NanRule.UNDEFINED:
                infinity = np.inf if self.nan_rule == NanRule.FIRST else -np.inf
                scores[np.isnan(scores)] = infinity
        elif not np.isfinite(scores).all():
            raise InternalError("A score is not finite though no factor is too large.")
        for call in self.calls(users, ticker, len(scores) / len(users)):
            lost = _kernel.rank_factors(
                **call,
                excluded_indptr=aligned.excluded_indptr[offsets],
                excluded=aligned.excluded,
                judged_indptr=indptr,
                judged=aligned.ranked_items,
                judged_scores=self.scores,
                **self.counts,
                limit=self.limit,
                flags=flags,
            )
            check_own_scores(lost, aligned.ranked_items)
        if self.check:
            # Users without factors were ranked with the factors of row 0, so drop their flags.
            flags[aligned.rows[block] < 0] &= np.uint32(UserFlag.TRAINED)
            # Scores can still be NaN only under the rule "undefined".
            self.counts["above"][judged_rows][np.isnan(scores)] = -1
        if self.limit is not None:
            beyond = self.counts["above"][judged_rows] >= self.limit
            for counts, value in zip(self.counts.values(), (-1, 0, 0), strict=True):
                counts[judged_rows][beyond] = value
        if self.best is not None:
            _kernel.best_first(indptr, self.counts["above"], self.counts["before"], self.best)

    def score(self, users: Array, indptr: Int64, listed: Int32, scores: Array) -> None:
        """Compute users' scores for the items in `listed`; `users` holds the users' factors."""
        _kernel.score_items(**self.native(users), indptr=indptr, listed=listed, scores=scores)

    def calls(
        self, users: Array, ticker: Ticker, judged_per_user: float = 0.0
    ) -> Iterator[dict[str, Any]]:
        """Yield the kernel's arguments, for one range of items at a time, until all users are done.

        `users` holds the factors of a block of users.
        """
        n_users, n_items, last = len(users), self.aligned.n_items, 0
        order: dict[str, Any] = OWN_ORDER
        if self.longest_first is not None:
            order = {**self.longest_first, "user_bound": length_bounds(users, self.scale)}
        finished = np.zeros(n_users, np.uint8)
        same = {**order, "check": self.check, "nan_rule": self.nan_rule, "finished": finished}
        while last < n_items and not finished.all():
            n_left = n_users - int(np.count_nonzero(finished))
            seconds = self._seconds_per_score(judged_per_user) * n_left
            first, last = last, min(last + max(2048, int(SECONDS_PER_CALL / seconds)), n_items)
            yield {**self.native(users), **same, "first": first, "last": last}
            ticker.advance(float((last - first) * n_users))

    def native(self, users: Array) -> dict[str, Any]:
        """Return the factors of the given users, and of all items, as arguments for the kernel."""
        self.factors.files.check()  # `native` runs right before each call to the kernel
        return {"instruction_set": self.instruction_set, "users": users, **self.items}

    def user_factors(self, rows: Int64) -> Array:
        """Return the factors of the given rows as a contiguous array."""
        users, items = self.factors.users, self.factors.items
        if not len(users):
            return np.zeros((len(rows), items.shape[1]), items.dtype)
        return np.ascontiguousarray(users[rows[0] : rows[-1] + 1] if follow(rows) else users[rows])

    @cached_property
    def brief(self) -> bool:
        """Whether all of the work takes about BRIEF_SECONDS or less."""
        aligned, n_users = self.aligned, max(1, self.aligned.n_users)
        seconds = self._seconds_per_score(len(aligned.ranked_items) / n_users)
        n_scores = aligned.n_items * n_users
        if aligned.candidates is not None:
            n_scores = len(aligned.candidates[1])
        return n_scores * seconds <= BRIEF_SECONDS

    def _seconds_per_score(self, judged_per_user: float) -> float:
        """Estimate the kernel's time for one item and one user, in seconds."""
        n_factors: int = self.factors.items.shape[1]
        seconds = (n_factors + 25 * (1 + judged_per_user / 31)) / 40e9
        return 10 * seconds if self.instruction_set == "plain" else seconds


# With fewer items (or users), ranking all items is faster than sorting them by length first.
MIN_ITEMS = 1024
MIN_USERS = 16

# If the median item length is more than this share of the largest, hardly any user finishes early.
MAX_MEDIAN = 0.6
SAMPLE = 256


def longest_first(lengths: Float64) -> dict[str, Array]:
    """Return the items in descending order of length, and bounds on scores, for the kernel.

    `lengths` come from `item_lengths`. The product of a place's bound and a user's bound is no less
    than the user's computed scores for the items at this place and at all later places.
    """
    by_place, bounds = np.empty(len(lengths), np.int32), np.empty(len(lengths))
    _kernel.longest_first(lengths, by_place, bounds)
    places = np.empty(len(lengths), np.int32)
    places[by_place] = np.arange(len(lengths), dtype=np.int32)
    return {"by_place": by_place, "places": places, "item_bound": bounds}


OWN_ORDER = dict.fromkeys(("by_place", "places", "item_bound", "user_bound"))


def item_lengths(factors: FactorArrays, aligned: Aligned) -> tuple[float, Float64 | None]:
    """Return bounds on the lengths of items, with the bias as an extra factor of each item.

    The first result is the users' extra factor, which is the same for all users, and 0 without
    biases. The second result is the bounds, or None if sorting the items by length is not
    worthwhile.
    """
    if aligned.n_items < MIN_ITEMS or aligned.n_users < MIN_USERS:
        return 0.0, None
    extra, typical = 0.0, _sample(factors.items)
    more: Float64 | float = 0.0
    sample_bias: Float64 | float = 0.0
    if factors.item_bias is not None:
        # Drop negative biases: they only lower scores, even rounded ones.
        bias = np.maximum(factors.item_bias, 0).astype(np.float64)
        extra = _balance(factors.users, typical, bias)
        more, sample_bias = bias / extra, _sample(bias) / extra
    sample_lengths = length_bounds(typical, sample_bias)
    if np.median(sample_lengths) > MAX_MEDIAN * sample_lengths.max():
        return 0.0, None
    return extra, length_bounds(factors.items, more)


def length_bounds(matrix: Array, more: Float64 | float = 0.0) -> Float64:
    """Return upper bounds on the Euclidean lengths of rows, with room for the rounding of scores.

    `more` is an extra factor of each row, for the biases. The product of the users' and the items'
    extra factors is at least 0.

    Let u and v be rows of n factors, b the bias, e the distance from 1 to the next larger number
    of their dtype, and t its smallest normal number.

    - A score is the sum of b and n products. With or without fused operations, each term is rounded
      at most n + 1 times, each time by a factor of at most 1 + e/2. The score is therefore at most
      (1 + (n + 1) e) (b + |u| |v|), for b >= 0 and (n + 1) e <= 1. If results are subnormal, or
      flushed to 0, add n t to this bound.
    - A computed sum of n squares, in any order, is at least (1 - (n + 1) e/2) |u|^2 - n t. Its
      computed root is at least (1 - (n + 2) e/2) |u| - sqrt(n t).

    Both lengths are multiplied by 1 + 2 (n + 4) e, and then 2 sqrt((n + 1) t) is added. Their
    product is then at least the score, with room for the few roundings here and in the kernel. If
    a square overflows, the bound is infinite.
    """
    n, limits = matrix.shape[1], np.finfo(matrix.dtype)
    with np.errstate(over="ignore", under="ignore"):
        lengths = np.sqrt(np.einsum("ij,ij->i", matrix, matrix)).astype(np.float64)
    room = (n + 4) * float(limits.eps)
    if room > 0.25:
        return np.full(len(matrix), np.inf)
    # Skip this in the usual case without biases: it takes longer than everything else here.
    bounds: Float64 = np.hypot(lengths, more) if np.any(more) else lengths
    bounds *= 1 + 2 * room
    bounds += 2 * np.sqrt((n + 1) * float(limits.tiny))
    return bounds


def _sample(rows: Array) -> Array:
    """Return an evenly spaced sample of the rows."""
    return rows[:: max(1, len(rows) // SAMPLE)]


def _balance(users: Array, items: Array, bias: Float64) -> float:
    """Return the users' extra factor that makes bounds tight for typical rows.

    With biases as an extra factor x, the bound is sqrt(|u|^2 + x^2) sqrt(|v|^2 + b^2 / x^2). It
    equals |u| |v| + b if x^2 = b |u| / |v|. Any positive number is valid; dividing by a power of 2
    needs no rounding.
    """
    user = np.mean(length_bounds(_sample(users))) if len(users) else np.float64(0)
    with np.errstate(all="ignore"):
        squared = np.mean(bias) * user / np.mean(length_bounds(items))
    if not (np.isfinite(squared) and squared > 0):
        return 1.0
    return float(2.0 ** np.clip(np.round(np.log2(squared) / 2), -30, 30))


PLACES_PER_TASK = 2**20
USERS_PER_BLOCK = 4096


def best_of_all(work: FactorsWork, request: Request, k: int, rule: Rule) -> Best:
    """Return the best candidates of each user, if all items are candidates."""
    aligned = work.aligned
    k = min(k, aligned.n_items)
    shelf = Shelf.of(rule.keys, k, work.factors.items.dtype)

    def run(users: slice, ticker: Ticker) -> None:
        rows = np.maximum(aligned.rows[users], 0)
        flags = aligned.flags[users]
        if work.check:
            work.factors.flag_user_bias(rows, flags)
        block_shelf = shelf.users(users)
        factors = work.user_factors(rows)
        for call in work.calls(factors, ticker):
            _kernel.top_factors(
                **call,
                excluded_indptr=aligned.excluded_indptr[users.start : users.stop + 1],
                excluded=aligned.excluded,
                order=rule.order,
                **block_shelf.native(),
                flags=flags,
            )

    tasks = [
        task
        for block in work.blocks(request.threads)
        for task in slices(block.stop, PLACES_PER_TASK // k, block.start)
    ]
    work.run_all(run, tasks, "Listing", request)
    n_candidates = aligned.n_items - aligned.n_excluded
    aligned.flags[shelf.find_constant(n_candidates)] |= np.uint32(UserFlag.CONSTANT_SCORES)
    return Best(shelf.items, shelf.n_cut)


def rank_sets(work: FactorsWork, request: Request, k: int, rule: Rule) -> Best:
    """Rank each user's set of candidates as a list with scores, and return its first k places."""
    aligned = work.aligned
    assert aligned.candidates is not None
    indptr, candidates = aligned.candidates
    nothing_excluded = np.zeros(len(indptr), np.int64)
    n_cut, spare = np.zeros((2, aligned.n_users), np.int64)  # the spare counts are never read
    top = np.full((aligned.n_users, min(k, aligned.n_items)), -1, np.int32)

    def run(users: slice, ticker: Ticker) -> None:
        ticker.advance()
        rows, flags = aligned.rows[users], aligned.flags[users]
        before, offsets = flags.copy(), slice(users.start, users.stop + 1)
        own = indptr[offsets] - indptr[users.start]
        listed = candidates[indptr[users.start] : indptr[users.stop]]
        scores: Array = np.empty(len(listed), work.factors.items.dtype)
        work.score(work.user_factors(np.maximum(rows, 0)), own, listed, scores)
        if work.check:
            work.factors.flag_user_bias(rows, flags)
            flags[ragged.users_of(own)[np.isinf(scores)]] |= np.uint32(UserFlag.INFINITE_SCORE)
        if k:
            several = np.flatnonzero(np.diff(own) > 1)
            flags[several[_all_equal(scores, own, several)]] |= np.uint32(UserFlag.CONSTANT_SCORES)
        _kernel.rank_lists(
            items=listed,
            scores=scores.astype(np.float64),
            begin=own[:-1],
            end=own[1:],
            n_items=aligned.n_items,
            excluded_indptr=nothing_excluded[offsets],
            excluded=np.zeros(0, np.int32),
            judged_indptr=aligned.ranked_indptr[offsets],
            judged=aligned.ranked_items,
            input_order=False,
            nan_rule=work.nan_rule,
            **work.counts,
            flags=flags,
            **dict.fromkeys(("given", "listed", "removed", "repeated"), spare[users]),
            order=rule.order,
            keys=rule.keys[users],
            top=top[users],
            left=n_cut[users],
        )
        absent = (rows < 0) | (np.diff(own) == 0)
        flags[absent] = before[absent]

    blocks = ragged.blocks(indptr, CANDIDATES_PER_TASK, USERS_PER_BLOCK)
    label = "Listing" if k else "Ranking"
    run_tasks(run, blocks, label=label, brief=work.brief, **request.pace)
    return Best(top, n_cut)


def _all_equal(scores: npt.NDArray[np.floating], indptr: Int64, users: Int64) -> Bool:
    """Return a mask of users with only one distinct score; every user must have scores."""
    if not len(users):
        return np.zeros(0, bool)
    differs = np.zeros(len(scores) + 1, np.int64)
    np.cumsum(scores[1:] != scores[:-1], out=differs[1:-1])
    equal: Bool = differs[indptr[users + 1] - 1] == differs[indptr[users]]
    return equal

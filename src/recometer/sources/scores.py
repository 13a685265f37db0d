"""Ranks items by scores, from a dense matrix or a function that returns them in batches."""

from __future__ import annotations

import dataclasses
import functools
import os
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from recometer.arrays import Array, Int64, follow, laid_out
from recometer.data.array_files import MappedFiles, open_path
from recometer.data.ids import show
from recometer.data.matching import SourceIndex
from recometer.data.numbers import as_array, in_float64
from recometer.data.rows import MAX_NUMBER
from recometer.data.tensors import dtype_and_device, is_tensor, off_cpu, to_numpy
from recometer.errors import InputError, InputTypeError, ModelError, brief
from recometer.ranks import Ranks, TopLists
from recometer.remembered import cached_property
from recometer.sources import _torch
from recometer.sources._score_batches import Batches, ScoredInBatches
from recometer.sources._torch import Pieces
from recometer.sources.alignment import Aligned
from recometer.sources.base import Facts, Request

# The memory for the scores of a batch. Batches of a matrix are small, so that Ctrl-C takes effect
# promptly and the progress bar moves smoothly. Batches of a function are larger, because models are
# faster if they score many users at once. Batches of a matrix are just as large if the scores of a
# user are not contiguous.
MATRIX_BYTES = 8 * 2**20
FUNCTION_BYTES = 64 * 2**20
NAMED = 3  # maximum number of users that a message names


class Scores(ScoredInBatches):
    """Scores of every item for every user, from a matrix or a function.

    Parameters
    ----------
    matrix_or_function
        Scores [n_users, n_items], as an array, a torch tensor or the path of a .npy file, which is
        mapped into memory (as by ``numpy.load(..., mmap_mode="r")``) and read in blocks of rows;
        or a function that takes an int64 array of user rows and returns their scores,
        [len(rows), n_items]. float32 and float64 are used unchanged, float16 becomes float32,
        and integers become float64. An item with a score of -inf (or a masked score, in a masked
        array) is not a candidate of the user.

        Only one thread at a time calls the function, for as many users as fit into 64 MiB of
        scores (at most 1,024). The next batch is requested while the current one is counted. The
        function may use the same buffer for all results, because they are copied.
    n_users, n_items
        The numbers of users and items, which are required for a function unless the ids imply them.
    user_ids, item_ids : sequences of n_users and n_items ids, optional
        The id of each row and column. Without them, row u is user u of test.

    Raises
    ------
    InputError
        If the shapes do not match, or ids are not distinct. Also while ranking, if the function
        returns the wrong shape, or something other than numbers. The message names the users.
    InputTypeError
        If the argument is neither a matrix of numbers nor a function.
    FileError
        If a path does not point to a .npy file with an array. Also while ranking, if a file that is
        mapped into memory has changed.
    ModelError
        While ranking, if the function raises an exception, which is kept as the cause. The message
        names the users.

    Examples
    --------
    >>> import numpy as np
    >>> import recometer as rm
    >>> rm.Scores(np.eye(3)).describe()
    'Scores: a matrix, 3 users x 3 items, float64'
    """

    def __init__(
        self,
        matrix_or_function: npt.ArrayLike | os.PathLike[str] | Callable[[Int64], Any],
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
            data = open_path(matrix_or_function, "scores")
            matrix = self._matrix = _dense(data, "The matrix of Scores")
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
        self.index = SourceIndex.of("Scores", n_users, n_items, user_ids, item_ids)
        self._files = MappedFiles([self._matrix, self.index.user_ids, self.index.item_ids])

    @property
    def on_device(self) -> bool:
        """Whether the scores are on a device other than the CPU."""
        return is_tensor(self._matrix)

    @property
    def kind(self) -> str:
        """The part of the description that concerns the matrix."""
        return "" if self._matrix is None else f", {dtype_and_device(self._matrix)}"

    def describe(self) -> str:
        """Return one line that describes what is evaluated."""
        shape = f"{self.index.n_users:,} users x {self.index.n_items:,} items"
        if self._matrix is not None:
            return f"Scores: a matrix, {shape}{self.kind}"
        return f"Scores: {_name_of(self._function)}, {shape}"

    @cached_property
    def facts(self) -> Facts:
        """The matrix, if there is one, and the ids."""
        arrays = {
            "matrix": Pieces(self._matrix) if is_tensor(self._matrix) else self._matrix,
            **self.index.ids,
        }
        return Facts(arrays, sized=self._matrix is not None)

    def batch(self, rows: Int64) -> Any:
        """Return the scores of some user rows, checked and ready for counting.

        They are returned as float32 or float64 [n_rows, n_items], in a contiguous array, or in a
        tensor if they are on a device. If the source has no ids, the rows are in ascending order.
        """
        if self._matrix is not None:
            self._files.check()
            # Adjacent rows need no copy.
            together = follow(rows)
            chosen = slice(rows[0], rows[-1] + 1) if together else rows
            if is_tensor(self._matrix):
                of_users = _exact(self._matrix[chosen])
                return _torch.as_numbers(of_users, "The matrix of Scores").clone()
            scores = self._matrix[chosen]
            return laid_out(_exact(scores), _precision(scores))
        assert self._function is not None
        try:
            returned = self._function(rows.copy())
        except Exception as error:
            raise ModelError(
                f"The function of Scores raised {type(error).__name__} for {self._name_users(rows)}"
                f": {error}. Hint: to find the error, call it with the rows numpy.arange({rows[0]}"
                f", {rows[-1] + 1})."
            ) from error
        scores = _dense(
            returned, f"What the function of Scores returned for {self._name_users(rows)}"
        )
        if not _are_numbers(scores):
            raise InputError(
                f"The function of Scores returned dtype {scores.dtype} "
                f"({type(returned).__name__}) for {self._name_users(rows)}, expected numbers."
                f"{_dense_hint(returned)}"
            )
        expected = (len(rows), self.index.n_items)
        if tuple(scores.shape) != expected:
            raise InputError(
                f"The function of Scores returned shape {tuple(scores.shape)} for "
                f"{self._name_users(rows)}, expected {expected}: a row per user, a column per item."
            )
        # Copy the scores, because the function may write its next result into the same memory.
        if is_tensor(scores):
            of_users = _exact(scores)
            return _torch.as_numbers(of_users, "The result of the function of Scores").clone()
        return np.array(_exact(scores), dtype=_precision(scores), order="C")

    def rank(self, request: Request) -> Ranks:
        """Return the rank of each judged item of each test user; see `Ranks`."""
        with self._files:
            return super().rank(request)

    def top(self, request: Request, k: int) -> TopLists:
        """Return the first k places of each user's ranking; see `TopLists`."""
        with self._files:
            return super().top(request, k)

    def batches(self, aligned: Aligned, request: Request) -> Batches:
        """Return the scores in batches; a function is called one batch ahead."""
        bytes_per_batch = FUNCTION_BYTES
        if self.on_device:
            # A device runs one operation at a time.
            bytes_per_batch, request = _torch.BLOCK_BYTES, dataclasses.replace(request, threads=1)
        elif self._matrix is not None and self._matrix.strides[1] == self._matrix.itemsize:
            bytes_per_batch = MATRIX_BYTES
        return Batches(
            lambda users: self.batch(aligned.rows[users]),
            request,
            n_columns=self.index.n_items,
            bytes_per_batch=bytes_per_batch,
            ahead=self._matrix is None,
        )

    def _name_users(self, rows: Int64) -> str:
        """Return the users' rows, and their ids if they have any, for a message."""
        if follow(rows):
            numbers = f"{rows[0]} to {rows[-1]}" if len(rows) > 1 else f"{rows[0]}"
        else:
            numbers = _shorten([str(row) for row in rows[:NAMED]], len(rows))
        rows_text = f"user row{'s' if len(rows) > 1 else ''} {numbers}"
        user_ids = self.index.user_ids
        if user_ids is None:
            return f"the {rows_text}"
        names = _shorten([show(user_ids, row) for row in rows[:NAMED]], len(rows))
        return f"the user{'s' if len(rows) > 1 else ''} {names} ({rows_text})"


def _size(n: int | None, ids: object, noun: str) -> int:
    if n is None and ids is None:
        raise InputError(
            f"Scores of a function needs n_{noun}s=... (or {noun}_ids=...), because a function has "
            "no shape."
        )
    if n is None:
        return len(ids)  # type: ignore[arg-type]
    is_integer = isinstance(n, int | np.integer) and not isinstance(n, bool)
    if not is_integer or not 0 <= n <= MAX_NUMBER:
        raise InputError(f"n_{noun}s={brief(n)} must be a whole number from 0 to {MAX_NUMBER:,}.")
    return int(n)


def _dense(data: object, noun: str) -> Any:
    """Return scores as an array, or as a tensor if they are on a device.

    Masked entries are not candidates. `noun` names the scores in messages.
    """
    if off_cpu(data):
        return data
    data = as_array(data, noun)
    if isinstance(data, np.ma.MaskedArray) and data.dtype.kind in "fiub":
        numbers = _exact(np.ma.filled(data, 0)).astype(_precision(data))
        return np.where(np.ma.getmaskarray(data), -np.inf, numbers).astype(numbers.dtype)
    return np.asarray(data)


def _are_numbers(scores: Any) -> bool:
    """Return whether scores are real numbers."""
    return not scores.is_complex() if is_tensor(scores) else scores.dtype.kind in "fiub"


def _dense_hint(data: object) -> str:
    return " Hint: .toarray() makes it dense." if hasattr(data, "toarray") else ""


def _precision(scores: Array) -> type[np.float32 | np.float64]:
    """Return the dtype that the kernel takes and that can represent these scores."""
    return np.float32 if scores.dtype in (np.float32, np.float16) else np.float64


def _exact(scores: Any) -> Any:
    """Convert 64-bit arrays to float64; refuse distinct integers that would become equal."""
    if is_tensor(scores):
        if scores.dtype.itemsize == 8 and not scores.is_floating_point():
            in_float64(to_numpy(scores), "scores of a user")
        return scores
    return in_float64(scores, "scores of a user") if scores.dtype.itemsize == 8 else scores


def _shorten(names: list[str], n: int) -> str:
    return ", ".join(names) + (f" and {n - len(names):,} more" if n > len(names) else "")


def _name_of(function: object) -> str:
    """Return the name of a function, or the class of an object with the default `repr`."""
    kind = type(function)
    # The default `repr` contains the memory address, which says nothing about the scores.
    has_text = kind.__repr__ is not object.__repr__ and kind is not functools.partial
    return getattr(function, "__qualname__", repr(function) if has_text else kind.__qualname__)

"""Factors: user factors x item factors, ranked exactly and without a matrix of scores."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable

import numpy.typing as npt

from recometer.data.interactions import Interactions
from recometer.data.matching import SourceIndex
from recometer.data.numbers import flag
from recometer.data.tensors import dtype_and_device, is_tensor
from recometer.errors import InputError
from recometer.ranks import Ranks, TopLists
from recometer.remembered import cached_property
from recometer.removed import without
from recometer.sources import _factor_ranking, _top_lists, _torch
from recometer.sources._factor_arrays import FactorArrays, counted
from recometer.sources._factor_ranking import FactorsWork
from recometer.sources._score_batches import Batches, rank_batches, top_batches
from recometer.sources._top_lists import Rule
from recometer.sources._torch import Pieces
from recometer.sources.alignment import Aligned, align
from recometer.sources.base import Facts, Request, Source

UNREAD = {
    "infinite_scores": "infinite scores of factors are products that are too large",
    "single_precision": "factors are multiplied in their own precision. Hint: make them float32",
}


class Factors(Source):
    """A model whose score of a user and an item is a dot product of factors.

    ``score(u, i) = user_bias[u] + item_bias[i] + sum over f of
    user_factors[u, f] * item_factors[i, f]``, computed in the precision of the factors with
    fused multiply-adds, factor by factor, beginning with the item's bias. The bias of a user
    shifts all scores of the user, and so does not change a rank. It is checked, but left out of
    the sum.

    Parameters
    ----------
    user_factors : float32 or float64 [n_users, n_factors]
        Factors of the users: an array of any strides, or the path of a .npy file. If both this and
        `item_factors` are None, all users get the same ranking, by `item_bias`.
    item_factors : float32 or float64 [n_items, n_factors]
        Factors of the items, of the same dtype (otherwise both are converted to float64, with a
        warning).

        Files are mapped into memory (as by ``numpy.load(..., mmap_mode="r")``) and ranked in place,
        so that they may be larger than memory. Where they have to be converted, this is done block
        by block.

        Both may be torch tensors. Tensors on the CPU are read without a copy. Tensors on another
        device stay there: torch multiplies and counts on the device, in the precision of the
        factors, whatever it is set to (see ``docs/gpu.md``).
    user_bias : [n_users], optional
    item_bias : [n_items], optional
    user_ids, item_ids : sequences of n_users and n_items ids, optional
        The id of each row. Without them, row u is user u of test.
    allow_tf32
        Whether float32 factors on a CUDA device may be rounded to TF32, which has 10 bits after the
        leading one, before they are multiplied. This is faster, but not exact: items with close
        scores change places.

    Raises
    ------
    InputError
        If shapes do not fit, ids are not distinct, or `allow_tf32` has no effect.
    InputTypeError
        If the factors are not numbers.
    FileError
        If a path does not name a .npy file with an array. While ranking, also if a file that is
        mapped into memory was changed.

    Warns
    -----
    DataWarning
        If factors of another dtype are converted, which copies the whole array unless it is in a
        file.

    Examples
    --------
    >>> import recometer as rm
    >>> rm.Factors([[1.0, 0.0]], [[0.5, 1.0], [2.0, 0.0]], item_ids=["a", "b"]).describe()
    'Factors: 1 user x 2 items, 2 factors, float64'
    """

    @without("memory")
    def __init__(
        self,
        user_factors: npt.ArrayLike | os.PathLike[str] | None,
        item_factors: npt.ArrayLike | os.PathLike[str] | None,
        *,
        user_bias: npt.ArrayLike | None = None,
        item_bias: npt.ArrayLike | None = None,
        user_ids: object = None,
        item_ids: object = None,
        allow_tf32: bool = False,
    ) -> None:
        self._factors = FactorArrays.of(user_factors, item_factors, user_bias, item_bias)
        if not len(self._factors.items):
            raise InputError("Factors has no items to rank.")
        self._allow_tf32 = flag("allow_tf32", allow_tf32)
        if self._allow_tf32:
            _torch.check_tf32(self._factors.items)
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
            The files of the users, of the items, of the users' ids and of the items' ids; the last
            two may be left out. Factors are NumPy arrays (.npy), which are mapped into memory, or
            Parquet files with a column of ids and the factors in a column of lists or in columns
            of numbers. Ids are a text file with one id per line (.txt), a NumPy array, or a column
            of a table; the word ``"positions"`` in place of a file says that the ids count the rows
            from 0. One archive of arrays (.npz), called as the parameters of `Factors` are, can
            stand in place of the first two files.
        test
            What the factors will be evaluated on, see `recometer.evaluate`. Ids in text files are
            read as strings or as numbers, whichever test has.
        user, item
            Columns of the ids in tables. By default they are found by their names.
        note
            Called with sentences about what was read.

        Raises
        ------
        FileError
            If a file cannot be read.
        InputError
            If files do not fit each other, or the rows have no ids and test has.
        """
        from recometer.data.factor_files import read_factors  # most factors are not in files

        data = test if test is None or isinstance(test, Interactions) else Interactions.of(test)
        arrays = read_factors(paths, data, {"user": user, "item": item}, note)
        return cls(arrays.pop("user_factors"), arrays.pop("item_factors"), **arrays)

    def describe(self) -> str:
        """Return one line that describes what is evaluated."""
        n_items, n_factors = self._factors.items.shape
        if self._index.n_users is None:
            items = counted(n_items, "item")
            return f"Factors: only item biases, {items}, {self._factors.items.dtype.name}"
        users = counted(self._index.n_users, "user")
        return (
            f"Factors: {users} x {counted(n_items, 'item')}, {counted(n_factors, 'factor')}, "
            f"{dtype_and_device(self._factors.items)}{', TF32' if self._allow_tf32 else ''}"
            f"{self._factors.converted}"
        )

    @cached_property
    def facts(self) -> Facts:
        """The factors, biases and ids, and the rules that factors do not read."""
        arrays = {
            "users": Pieces.of(self._factors.users),
            "items": Pieces.of(self._factors.items),
            "user_bias": self._factors.user_bias,
            "item_bias": self._factors.item_bias,
            **self._index.ids,
        }
        return Facts(arrays, unread=UNREAD)

    def rank(self, request: Request) -> Ranks:
        """Return where each judged item of each user of test is ranked; see `Ranks`."""
        with self._factors.files:
            aligned = align(self._index, request)
            if is_tensor(self._factors.items):
                return rank_batches(aligned, self._batches(aligned, request))
            work = FactorsWork(self._factors, aligned, request)
            if aligned.candidates is None:
                work.rank_all(request)
            else:
                _factor_ranking.rank_candidates(work, request)
            work.flag_constant(request)
            return work.ranks(request.threads)

    def top(self, request: Request, k: int) -> TopLists:
        """Return the first k places of each user's ranking; see `TopLists`."""
        with self._factors.files:
            return _top_lists.lists(self, request, k, self._best)

    def _best(self, request: Request, k: int, rule: Rule) -> TopLists:
        aligned = rule.applied(align(self._index, request))
        if is_tensor(self._factors.items):
            best = top_batches(aligned, self._batches(aligned, request), k, rule)
        else:
            work = FactorsWork(self._factors, aligned, dataclasses.replace(request, depth=k))
            listed = aligned.candidates is not None
            best_of = _factor_ranking.best_of_listed if listed else _factor_ranking.best_of_all
            best = best_of(work, request, k, rule)
        return _top_lists.finished(aligned, best, k, n_catalogue=aligned.n_items)

    def _batches(self, aligned: Aligned, request: Request) -> Batches:
        """Multiply on a device: some users with all items at a time."""
        factors, known = self._factors, aligned.rows >= 0
        flags = aligned.flags[known]
        factors.flag_user_bias(aligned.rows[known], flags)
        aligned.flags[known] = flags
        arrays = factors.users, factors.items, factors.item_bias
        score = _torch.scorer(*arrays, allow_tf32=self._allow_tf32)
        # No rule ranks what overflows.
        protocol = request.protocol.replace(infinite_scores="undefined")
        return Batches(
            lambda users: score(aligned.rows[users]),
            _torch.one_at_a_time(dataclasses.replace(request, protocol=protocol)),
            n_columns=len(factors.items),
            bytes_per_batch=_torch.BLOCK_BYTES,
            ahead=False,
        )

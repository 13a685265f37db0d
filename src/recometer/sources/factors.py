"""Factors: user factors x item factors, ranked exactly and without a matrix of scores."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from recometer.data.matching import SourceIndex
from recometer.data.tensors import dtype_and_device, is_tensor
from recometer.errors import InputError
from recometer.ranks import Ranks, TopLists
from recometer.sources import _factor_candidates, _factor_lists, _top, _torch
from recometer.sources._align import align
from recometer.sources._align_result import Aligned
from recometer.sources._factor_arrays import FactorArrays, counted
from recometer.sources._factor_work import FactorsWork
from recometer.sources._score_batches import Batches, rank_batches, top_batches
from recometer.sources._top import Rule
from recometer.sources._torch import Pieces
from recometer.sources.base import Request, Source
from recometer.tasks import run_tasks


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
        Factors of the users. The array may have any strides, and may be memory-mapped. If both
        this and `item_factors` are None, all users get the same ranking, by `item_bias`.
    item_factors : float32 or float64 [n_items, n_factors]
        Factors of the items, of the same dtype (otherwise both are converted to float64, with a
        warning).

        Both may be torch tensors. Tensors on the CPU are read without a copy. Tensors on another
        device stay there: the candidates are scored and counted on the device, in the
        precision that torch is set to (by default, that of the factors).
    user_bias : [n_users], optional
    item_bias : [n_items], optional
    user_ids, item_ids : sequences of n_users and n_items ids, optional
        The id of each row. Without them, row u is user u of test.

    Raises
    ------
    InputError
        If shapes do not fit, or ids are not distinct.
    InputTypeError
        If the factors are not numbers.

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
        user_factors: npt.ArrayLike | None,
        item_factors: npt.ArrayLike | None,
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

    def describe(self) -> str:
        """Return one line that describes what is evaluated."""
        n_items, n_factors = self._factors.items.shape
        if self._index.n_users is None:
            items = counted(n_items, "item")
            return f"Factors: only item biases,  {items}, {self._factors.items.dtype.name}"
        users = counted(self._index.n_users, "user")
        return (
            f"Factors: {users} x {counted(n_items, 'item')}, {counted(n_factors, 'factor')}, "
            f"{dtype_and_device(self._factors.items)}{self._factors.converted}"
        )

    def arrays(self) -> Mapping[str, object]:
        """Return the arrays that the scores depend on, by name."""
        return {
            "users": Pieces.of(self._factors.users),
            "items": Pieces.of(self._factors.items),
            "user_bias": self._factors.user_bias,
            "item_bias": self._factors.item_bias,
            "user_ids": self._index.user_ids,
            "item_ids": self._index.item_ids,
        }

    def rank(self, request: Request) -> Ranks:
        """Return where each judged item of each user of test is ranked; see `Ranks`."""
        aligned = align(self._index, request)
        if is_tensor(self._factors.items):
            return rank_batches(aligned, self._batches_on_device(aligned, request))
        work = FactorsWork(self._factors, aligned, request)
        run: Any = work.run
        tasks: list[Any] = work.blocks(request.threads)
        weights: Any = [float(block.stop - block.start) * aligned.n_items for block in tasks]
        if aligned.candidates is not None:
            run, weights = functools.partial(_factor_candidates.rank_block, work), None
            tasks = _factor_candidates.blocks(aligned)
        run_tasks(run, tasks, weights=weights, label="Ranking", brief=work.brief, **request.pace)
        return work.ranks(request.threads)

    def top(self, request: Request, k: int) -> TopLists:
        """Return the first k places of each user's ranking; see `TopLists`."""
        return _top.lists(self, request, k, self._best)

    def _best(self, request: Request, k: int, rule: Rule) -> TopLists:
        aligned = align(self._index, request)
        if rule.unjudged_only:
            aligned = _top.only_unjudged(aligned)
        if is_tensor(self._factors.items):
            best = top_batches(aligned, self._batches_on_device(aligned, request), k, rule)
        else:
            work = FactorsWork(self._factors, aligned, dataclasses.replace(request, depth=k))
            listed = aligned.candidates is not None
            best_of = _factor_lists.best_of_listed if listed else _factor_lists.best_of_all
            best = best_of(work, request, k, rule)
        return _top.finished(aligned, best, k, n_catalogue=aligned.n_items)

    def unread_rules(self, *, listed: bool) -> Mapping[str, str]:
        """Return the rules that have no effect on the rankings, or on the lists, and why."""
        overflow = "infinite scores of factors are products that are too large"
        return {**super().unread_rules(listed=listed), "infinite_scores": overflow}

    def _batches_on_device(self, aligned: Aligned, request: Request) -> Batches:
        """Score where the factors live: all items for some users at a time."""
        protocol = request.protocol.replace(infinite_scores="undefined")
        request = dataclasses.replace(request, protocol=protocol)
        self._factors.flag_user_bias(np.maximum(aligned.rows, 0), aligned.flags)
        score = _torch.scorer(self._factors.users, self._factors.items, self._factors.item_bias)
        return Batches(
            lambda users: score(aligned.rows[users]),
            _torch.one_at_a_time(request),
            n_columns=len(self._factors.items),
            bytes_per_batch=_torch.BLOCK_BYTES,
            ahead=False,
        )

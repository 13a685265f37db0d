"""Drop-in for implicit.evaluation, which computes metrics at k for a fitted model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from recometer.arrays import Array
from recometer.compat import _shared
from recometer.compat._shared import counted_ranks, row, values_of
from recometer.data.interactions import Interactions
from recometer.errors import InputError, InputTypeError, ModelError
from recometer.ranks import Ranks, UserFlag, raised
from recometer.sources.base import Request
from recometer.sources.models import from_model
from recometer.tasks import resolve_threads

__all__ = [
    "AUC_at_k",
    "mean_average_precision_at_k",
    "ndcg_at_k",
    "precision_at_k",
    "ranking_metrics_at_k",
]

METRICS = ("precision", "map", "ndcg", "auc")
USERS_PER_CALL = 1000  # the number of users per call to recommend, as in implicit


def ranking_metrics_at_k(
    model: Any,
    train_user_items: Any,
    test_user_items: Any,
    K: int = 10,
    show_progress: bool = True,
    num_threads: int = 1,
) -> dict[str, float]:
    """Calculate ranking metrics of a model, like ``implicit.evaluation.ranking_metrics_at_k``.

    For factor models with implicit's own ``recommend``, this function ranks all items by their
    scores. For other models, it calls ``recommend(userids, user_items, N)`` as implicit does. The
    training and test data are sparse matrices of shape (n_users, n_items). Every stored entry of
    `test_user_items` is relevant, whatever its value. `show_progress` has no effect, and
    ``num_threads=0`` uses all processors.

    Returns
    -------
    dict of str to float
        ``"precision"`` (the total number of hits, divided by the total of min(K, number of relevant
        items)), ``"map"``, ``"ndcg"`` and ``"auc"`` (means over the users with a relevant item).

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_matrix
    >>> from recometer.compat.implicit import ranking_metrics_at_k
    >>> class Popular:
    ...     def recommend(self, userid, user_items, N):
    ...         return np.tile(np.arange(N), (len(userid), 1)), np.ones((len(userid), N))
    >>> train = csr_matrix([[0, 0, 0, 1], [0, 0, 1, 0]])
    >>> test = csr_matrix([[1, 0, 0, 0], [0, 0, 0, 1]])
    >>> ranking_metrics_at_k(Popular(), train, test, K=2)["map"]
    0.5
    """
    if not callable(getattr(model, "recommend", None)):
        raise InputTypeError(
            f"model is of type {type(model).__name__}, which has no method recommend. "
            "Hint: pass a fitted model."
        )
    # implicit's own models accept csr_matrix, but not sparse arrays.
    test = _shared.sparse_rows("test_user_items", test_user_items, "csr_matrix")
    train = _shared.sparse_rows("train_user_items", train_user_items, "csr_matrix")
    for matrix in (test, train):
        matrix.sum_duplicates()
    if train.shape != test.shape:
        raise InputError(
            f"train_user_items is {train.shape}, and test_user_items {test.shape}. "
            "Hint: both need a row for every user and a column for every item."
        )
    if not test.nnz:
        raise InputError("test_user_items has no entries. Hint: no user has a relevant item.")
    _shared.whole_number("K", K)
    threads = _shared.whole_number("num_threads", num_threads, 0)
    ranks = None
    if _is_ranked_here(model) and _is_simple(train, test, K):
        ranks = _ranked_here(model, train, test, K, threads or None)
    if ranks is None:
        lists = _recommended(model, train, test, K)
        ranks = counted_ranks(Interactions.of(test), lists, test.shape[1])
    names = {name: f"{name}@{K}" for name in METRICS}
    values = values_of("implicit", ranks, names.values(), duplicates="counted")
    # With these weights, precision is the number of hits divided by the largest possible number.
    possible = np.minimum(ranks.n_relevant, K)
    precision = float(np.nansum(values[names["precision"]] * possible) / possible.sum())
    means = {metric: float(np.nanmean(values[name])) for metric, name in names.items()}
    return {**means, "precision": precision}


def _only(name: str, metric: str, value: str) -> Callable[..., float]:
    @row(name, f"Calculate only {value} at K; see `ranking_metrics_at_k`.")
    def function(
        model: Any,
        train_user_items: Any,
        test_user_items: Any,
        K: int = 10,
        show_progress: bool = True,
        num_threads: int = 1,
    ) -> float:
        arguments = (model, train_user_items, test_user_items, K, show_progress, num_threads)
        return ranking_metrics_at_k(*arguments)[metric]

    return function


precision_at_k = _only("precision_at_k", "precision", "precision")
mean_average_precision_at_k = _only(
    "mean_average_precision_at_k", "map", "the mean average precision"
)
ndcg_at_k = _only("ndcg_at_k", "ndcg", "NDCG")
AUC_at_k = _only("AUC_at_k", "auc", "the area under the ROC curve")


def _is_ranked_here(model: Any) -> bool:
    """Return whether a model has factors and implicit's own ``recommend`` method."""
    has_factors = all(hasattr(model, name) for name in ("user_factors", "item_factors"))
    recommend = getattr(type(model), "recommend", None)
    return has_factors and str(getattr(recommend, "__module__", "")).startswith("implicit.")


def _is_simple(train: Any, test: Any, k: int) -> bool:
    """Return whether training items are never recommended and never relevant.

    implicit ranks training items last, so it recommends them if fewer than k other items are left.
    """
    largest = int(np.diff(train.indptr).max(initial=0))
    return train.shape[1] - largest >= k and not train.astype(bool).multiply(test.astype(bool)).nnz


def _ranked_here(model: Any, train: Any, test: Any, k: int, threads: int | None) -> Ranks | None:
    """Rank all items by the model's factors, or return None if implicit itself must list them.

    This happens if a tie straddles place k (the order in which implicit reads the scores then
    decides which items it lists), or if any score is NaN or infinite.
    """
    request = Request(
        test=Interactions.of(test),
        train=Interactions.of(train),
        protocol=_shared.convention_of("implicit").protocol,
        depth=k,
        threads=resolve_threads(threads),
    )
    ranks = from_model(model).rank(request)
    above, tied = ranks.above, ranks.tied
    unusable = raised(ranks.flags, UserFlag.NAN_SCORE, UserFlag.INFINITE_SCORE)
    return None if unusable.any() or ((above < k) & (above + tied >= k)).any() else ranks


def _recommended(model: Any, train: Any, test: Any, k: int) -> Array:
    """Request lists for the test users from a model, in batches of the same size as in implicit."""
    # The lists grow as needed, because the model may return fewer than k items.
    lists = np.full((test.shape[0], 0), -1, dtype=np.int64)
    users = np.flatnonzero(np.diff(test.indptr)).astype(np.int32)
    for first in range(0, len(users), USERS_PER_CALL):
        batch = users[first : first + USERS_PER_CALL]
        try:
            items, _ = model.recommend(batch, train[batch], N=k)
            more = min(np.shape(items)[1], k) - lists.shape[1]
            if more > 0:
                lists = np.pad(lists, ((0, 0), (0, more)), constant_values=-1)
            lists[batch, : np.shape(items)[1]] = items
        except Exception as error:
            raise ModelError(
                f"{type(model).__name__}.recommend(users, user_items, N={k}) raised "
                f"{type(error).__name__}: {error}. Hint: it must return items and scores, a row "
                "for each user and a column for each of at most N items."
            ) from error
    return lists

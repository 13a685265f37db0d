"""Drop-in for the ranking metrics of scikit-learn's sklearn.metrics.

`y_true` and `y_score` are arrays (n_samples, n_labels) of finite numbers; the highest score is
best. The functions return the mean over rows, weighted by `sample_weight` (n_samples,), and raise
an InputError if shapes do not match or numbers are out of range.
"""

from __future__ import annotations

import math
import numbers
from typing import Any

import numpy as np
import numpy.typing as npt

from recometer.arrays import Float64
from recometer.compat import _shared
from recometer.compat._shared import evaluated
from recometer.data.numbers import flag
from recometer.errors import InputError
from recometer.sources.scores import Scores

__all__ = ["dcg_score", "label_ranking_average_precision_score", "ndcg_score"]


def ndcg_score(
    y_true: npt.ArrayLike,
    y_score: npt.ArrayLike,
    *,
    k: int | None = None,
    sample_weight: npt.ArrayLike | None = None,
    ignore_ties: bool = False,
) -> float:
    """Calculate the normalised discounted cumulative gain, as ``sklearn.metrics.ndcg_score`` does.

    The gains of equal scores are averaged; with ``ignore_ties=True``, an unstable sort orders them.
    Rows without a gain count as 0.

    Examples
    --------
    >>> from recometer.compat.sklearn import ndcg_score
    >>> round(ndcg_score([[10, 0, 0, 1, 5]], [[0.1, 0.2, 0.3, 4, 70]]), 4)
    0.6957
    """
    gains, scores = _matrices(y_true, y_score)
    if gains.shape[1] < 2:
        raise InputError(
            "NDCG of a single column says nothing: there is only one order. "
            f"y_true has the shape {gains.shape}."
        )
    if (gains < 0).any():
        raise InputError(f"y_true has gains below 0, such as {gains.min()}. Hint: shift them.")
    scores = _in_some_order(y_score) if flag("ignore_ties", ignore_ties) else scores
    return _mean(_values("ndcg_score", gains, scores, k), sample_weight)


def dcg_score(
    y_true: npt.ArrayLike,
    y_score: npt.ArrayLike,
    *,
    k: int | None = None,
    log_base: float = 2,
    sample_weight: npt.ArrayLike | None = None,
    ignore_ties: bool = False,
) -> float:
    """Calculate the discounted cumulative gain, as ``sklearn.metrics.dcg_score`` does.

    Ties are treated as by `ndcg_score`; gains may be below 0.
    """
    gains, scores = _matrices(y_true, y_score)
    if not isinstance(log_base, numbers.Real) or not log_base > 0 or log_base == 1:
        raise InputError(f"log_base={log_base!r} must be a number above 0, and not 1.")
    # If any gain is negative, shift all gains so that none is negative, and correct the sum.
    scores = _in_some_order(y_score) if flag("ignore_ties", ignore_ties) else scores
    k = None if k is None else _shared.whole("k", k)
    least = min(0.0, float(gains.min()))
    places = np.arange(min(gains.shape[1], k or gains.shape[1])) + 2
    values = _values("dcg_score", gains - least, scores, k)
    values = values + least * (1 / np.log2(places)).sum()
    return _mean(values * math.log2(log_base), sample_weight)


def label_ranking_average_precision_score(
    y_true: Any, y_score: npt.ArrayLike, *, sample_weight: npt.ArrayLike | None = None
) -> float:
    """Calculate the average precision of true labels, as scikit-learn's function of this name does.

    `y_true` is 1 for true labels and 0 for all others, and may be sparse. Labels with equal scores
    share the lowest of their places, and rows with only true or only false labels count as 1.
    """
    dense = y_true.toarray() if hasattr(y_true, "toarray") else y_true
    gains, scores = _matrices(dense, y_score)
    if not ((gains == 0) | (gains == 1)).all():
        raise InputError("y_true has other values than 0 and 1, and must be binary.")
    name = "label_ranking_average_precision_score"
    return _mean(_values(name, gains, scores, None), sample_weight)


def _matrices(y_true: npt.ArrayLike, y_score: npt.ArrayLike) -> tuple[Float64, Float64]:
    matrices = []
    for name, values in (("y_true", y_true), ("y_score", y_score)):
        matrix = _shared.array_of_numbers(name, values)
        if matrix.ndim != 2 or not matrix.size:
            raise InputError(
                f"{name} has the shape {matrix.shape}, but must be [n_samples, n_labels]. Hint: "
                f"[{name}] for a single sample."
            )
        if matrix.dtype != np.float32:
            matrix = matrix.astype(np.float64)
        if not np.isfinite(matrix).all():
            raise InputError(f"{name} has values that are NaN or infinite; all must be finite.")
        matrices.append(matrix)
    gains, scores = matrices
    if gains.shape != scores.shape:
        raise InputError(
            f"y_true is {gains.shape}, and y_score {scores.shape}. Hint: both need one shape."
        )
    return gains, scores


def _in_some_order(y_score: npt.ArrayLike) -> Float64:
    """Replace scores with distinct ones, ordering equal scores arbitrarily like NumPy's sort."""
    order = np.argsort(np.asarray(y_score))
    places = np.empty(order.shape)
    np.put_along_axis(places, order, np.arange(order.shape[1], dtype=np.float64)[None, :], axis=1)
    return places


def _values(name: str, gains: Float64, scores: Float64, k: int | None) -> Float64:
    if k is not None:
        name += f"@{_shared.whole('k', k)}"
    if not gains.any():  # the test data would be empty
        nothing = 1.0 if name.startswith("label") else 0.0
        return np.full(len(gains), nothing)
    return evaluated("sklearn", Scores(scores), gains, [name], threads=None)[name]


def _mean(values: Float64, sample_weight: npt.ArrayLike | None) -> float:
    if sample_weight is None:
        return float(np.mean(values))
    weights = _shared.array_of_numbers("sample_weight", sample_weight).astype(np.float64)
    if weights.shape != values.shape:
        raise InputError(
            f"sample_weight has the shape {weights.shape}, and must be [{len(values)}]."
        )
    if not weights.sum():
        raise InputError("sample_weight has the sum 0, so there is nothing to divide by.")
    return float(np.average(values, weights=weights))

"""Drop-in for scikit-learn's ``sklearn.metrics.ndcg_score``."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from recometer.arrays import Float64
from recometer.compat import _shared
from recometer.compat._shared import evaluated
from recometer.data.numbers import flag
from recometer.errors import InputError
from recometer.sources.scores import Scores

__all__ = ["ndcg_score"]


def ndcg_score(
    y_true: npt.ArrayLike,
    y_score: npt.ArrayLike,
    *,
    k: int | None = None,
    sample_weight: npt.ArrayLike | None = None,
    ignore_ties: bool = False,
) -> float:
    """Calculate the normalised discounted cumulative gain, like ``sklearn.metrics.ndcg_score``.

    Labels with equal scores all get their average gain; with ``ignore_ties=True``, an unstable sort
    orders them instead. Rows in which all gains are 0 have the value 0.

    Parameters
    ----------
    y_true, y_score : [n_samples, n_labels]
        Finite numbers; the highest score is best.
    k : int, optional
        Number of places that count. None means all.
    sample_weight : [n_samples], optional
        Weights for the mean over rows.
    ignore_ties : bool

    Raises
    ------
    InputError
        If shapes do not match, or numbers are out of range.
    InputTypeError
        If the arrays do not contain numbers.

    Examples
    --------
    >>> from recometer.compat.sklearn import ndcg_score
    >>> round(ndcg_score([[10, 0, 0, 1, 5]], [[0.1, 0.2, 0.3, 4, 70]]), 4)
    0.6957
    """
    gains, scores = _matrix("y_true", y_true), _matrix("y_score", y_score)
    if gains.shape != scores.shape:
        raise InputError(
            f"y_true has the shape {gains.shape}, but y_score has {scores.shape}. Hint: both need "
            "the same shape."
        )
    if gains.shape[1] < 2:
        raise InputError(
            "NDCG of a single column is meaningless: there is only one order. y_true has the shape "
            f"{gains.shape}."
        )
    if (gains < 0).any():
        raise InputError(f"y_true has gains below 0, such as {gains.min()}. Hint: shift them.")
    if flag("ignore_ties", ignore_ties):  # NumPy's sort decides the order of equal scores
        order = np.argsort(np.asarray(y_score))
        scores = np.empty(order.shape)
        places = np.arange(order.shape[1], dtype=np.float64)
        np.put_along_axis(scores, order, places[None, :], axis=1)
    name = "ndcg_score" if k is None else f"ndcg_score@{_shared.whole_number('k', k)}"
    values = np.zeros(len(gains))
    if gains.any():  # otherwise, the test data would be empty
        values = evaluated("sklearn", Scores(scores), gains, [name], threads=None)[name]
    if sample_weight is None:
        return float(np.mean(values))
    weights = _shared.array_of_numbers("sample_weight", sample_weight).astype(np.float64)
    if weights.shape != values.shape:
        raise InputError(
            f"sample_weight has the shape {weights.shape}, but must be [{len(values)}]."
        )
    if not weights.sum():
        raise InputError("sample_weight has the sum 0, so there is nothing to divide by.")
    return float(np.average(values, weights=weights))


def _matrix(name: str, values: npt.ArrayLike) -> Float64:
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
    return matrix

"""The definitions of the metrics of predicted ratings, written out for one order of the rows."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence

from recometer.metrics import Metric
from recometer.testing.rating_cases import RatingCase


def rating_by_definition(
    metric: Metric, predicted: Sequence[float], actual: Sequence[float], threshold: float
) -> float:
    """Compute a metric of predicted ratings as it is defined.

    Parameters
    ----------
    metric
        Which one.
    predicted, actual
        The ratings of one user's rows, best predicted first.
    threshold
        A row is relevant from this true rating on, and recommended from this predicted one on.

    Returns
    -------
    float
        NaN where it is undefined.
    """
    if len(actual) == 0:
        return math.nan
    if metric.name in OF_THE_FIRST:
        recommended = [p >= threshold for p in predicted]
        relevant = [a >= threshold for a in actual]
        return OF_THE_FIRST[metric.name](recommended, relevant, metric.cutoff or len(actual))
    return OF_ALL[metric.name](predicted, actual)


def rating_mean_over_orders(metric: Metric, case: RatingCase, user: int) -> float:
    """Average `rating_by_definition` over every order of the rows predicted the same."""
    values = [
        rating_by_definition(metric, *case.in_order(user, order), float(case.threshold[user]))
        for order in case.orders(user)
    ]
    return math.fsum(values) / len(values)


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


def _variance(values: Sequence[float]) -> float:
    middle = _mean(values)
    return _mean([(value - middle) ** 2 for value in values])


def _mse(predicted: Sequence[float], actual: Sequence[float]) -> float:
    return _mean([(p - a) ** 2 for p, a in zip(predicted, actual, strict=True)])


def _mae(predicted: Sequence[float], actual: Sequence[float]) -> float:
    return _mean([abs(p - a) for p, a in zip(predicted, actual, strict=True)])


def _r2(predicted: Sequence[float], actual: Sequence[float]) -> float:
    if len(set(actual)) == 1:
        return math.nan
    return 1 - _mse(predicted, actual) / _variance(actual)


def _explained_variance(predicted: Sequence[float], actual: Sequence[float]) -> float:
    if len(set(actual)) == 1:
        return math.nan
    left = [a - p for p, a in zip(predicted, actual, strict=True)]
    return 1 - _variance(left) / _variance(actual)


def _fcp(predicted: Sequence[float], actual: Sequence[float]) -> float:
    rows = list(zip(predicted, actual, strict=True))
    right = [p < q for (p, a), (q, b) in itertools.permutations(rows, 2) if a < b]
    return sum(right) / len(right) if right else math.nan


def _precision(recommended: Sequence[bool], relevant: Sequence[bool], k: int) -> float:
    both = sum(p and a for p, a in zip(recommended[:k], relevant[:k], strict=True))
    return both / sum(recommended[:k]) if any(recommended) else math.nan


def _recall(recommended: Sequence[bool], relevant: Sequence[bool], k: int) -> float:
    both = sum(p and a for p, a in zip(recommended[:k], relevant[:k], strict=True))
    return both / sum(relevant) if any(relevant) else math.nan


OF_ALL: dict[str, Callable[[Sequence[float], Sequence[float]], float]] = {
    "rmse": lambda predicted, actual: math.sqrt(_mse(predicted, actual)),
    "mae": _mae,
    "mse": _mse,
    "r2": _r2,
    "explained_variance": _explained_variance,
    "fcp": _fcp,
}
"""Of all rows, in whatever order."""

OF_THE_FIRST: dict[str, Callable[[Sequence[bool], Sequence[bool], int], float]] = {
    "rated_precision": _precision,
    "rated_recall": _recall,
}
"""Of the first k rows: whether each is recommended, whether each is relevant."""

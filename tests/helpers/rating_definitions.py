"""Direct implementations of all rating metrics, each for a single order of the rows."""

from __future__ import annotations

import itertools
import math
import sys
from collections.abc import Callable, Sequence
from typing import NamedTuple

from recometer.metrics import Metric
from recometer.testing import RatingCase


def rating_by_definition(
    metric: Metric, predicted: Sequence[float], actual: Sequence[float], threshold: float
) -> float:
    """Compute a rating metric from its definition.

    Parameters
    ----------
    metric
        The metric.
    predicted, actual
        The ratings in one user's rows, highest prediction first.
    threshold
        Rows with a true rating of at least this value are relevant, and rows with a predicted
        rating of at least this value are recommended.

    Returns
    -------
    float
        NaN if the metric is undefined.
    """
    if len(actual) == 0:
        return math.nan
    rows = [
        Row(p, a, p >= threshold, a >= threshold) for p, a in zip(predicted, actual, strict=True)
    ]
    first = rows if metric.cutoff is None else rows[: metric.cutoff]
    return float(RATING_DEFINITIONS[metric.name](rows, first))


def rating_mean_over_orders(metric: Metric, case: RatingCase, user: int) -> float:
    """Average `rating_by_definition` over all orders of rows with equal predictions."""
    values = [
        rating_by_definition(metric, *in_order(case, user, order), float(case.threshold[user]))
        for order in case.orders(user)
    ]
    return math.fsum(values) / len(values)


def in_order(case: RatingCase, user: int, order: Sequence[int]) -> tuple[list[float], list[float]]:
    """Return the predicted and the true ratings of a user's rows in the given order."""
    return case.predicted[user, order].tolist(), case.actual[user, order].tolist()


class Row(NamedTuple):
    """A predicted and a true rating, and whether each reaches the threshold."""

    predicted: float
    actual: float
    recommended: bool
    relevant: bool


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


def _variance(values: Sequence[float]) -> float:
    middle = _mean(values)
    return _mean([(value - middle) ** 2 for value in values])


def _mse(rows: Sequence[Row], first: Sequence[Row]) -> float:
    return _mean([(row.predicted - row.actual) ** 2 for row in rows])


def _rmse(rows: Sequence[Row], first: Sequence[Row]) -> float:
    return math.sqrt(_mse(rows, first))


def _mae(rows: Sequence[Row], first: Sequence[Row]) -> float:
    return _mean([abs(row.predicted - row.actual) for row in rows])


def _r2(rows: Sequence[Row], first: Sequence[Row]) -> float:
    actual = [row.actual for row in rows]
    return math.nan if len(set(actual)) == 1 else 1 - _mse(rows, first) / _variance(actual)


def _explained_variance(rows: Sequence[Row], first: Sequence[Row]) -> float:
    actual = [row.actual for row in rows]
    left = _variance([row.actual - row.predicted for row in rows])
    return math.nan if len(set(actual)) == 1 else 1 - left / _variance(actual)


def _fcp(rows: Sequence[Row], first: Sequence[Row]) -> float:
    pairs = [
        (lower, higher)
        for lower, higher in itertools.permutations(rows, 2)
        if lower.actual < higher.actual
    ]
    right = sum(lower.predicted < higher.predicted for lower, higher in pairs)
    return right / len(pairs) if pairs else math.nan


def _log_loss(rows: Sequence[Row], first: Sequence[Row]) -> float:
    if not all(0 <= row.predicted <= 1 for row in rows):
        return math.nan
    chances = [row.predicted if row.relevant else 1 - row.predicted for row in rows]
    return _mean([-math.log(max(chance, sys.float_info.epsilon)) for chance in chances])


def _rated_roc_auc(rows: Sequence[Row], first: Sequence[Row]) -> float:
    pairs = [
        (row.predicted, other.predicted) for row in rows if row.relevant for other in rows
        if not other.relevant
    ]  # fmt: skip
    return (
        _mean([(above > below) + (above == below) / 2 for above, below in pairs])
        if pairs
        else math.nan
    )


def _rated_precision(rows: Sequence[Row], first: Sequence[Row]) -> float:
    recommended = [row for row in first if row.recommended]
    return _mean([float(row.relevant) for row in recommended]) if recommended else math.nan


def _rated_recall(rows: Sequence[Row], first: Sequence[Row]) -> float:
    relevant = sum(row.relevant for row in rows)
    return (
        sum(row.relevant and row.recommended for row in first) / relevant if relevant else math.nan
    )


RATING_DEFINITIONS: dict[str, Callable[[Sequence[Row], Sequence[Row]], float]] = {
    "rmse": _rmse,
    "mae": _mae,
    "mse": _mse,
    "r2": _r2,
    "explained_variance": _explained_variance,
    "fcp": _fcp,
    "log_loss": _log_loss,
    "rated_roc_auc": _rated_roc_auc,
    "rated_precision": _rated_precision,
    "rated_recall": _rated_recall,
}
"""The functions that define the metrics; they take all rows, and the rows within the cut-off."""

"""Means that are not those of the users' values."""

from __future__ import annotations

import numpy as np

from recometer.arrays import Float64, Int64
from recometer.errors import InputError
from recometer.metrics.registry import METRICS, Metric


def mean_of_parts(
    metric: Metric, values: Float64, weight: Float64, n_relevant: Int64, depth: Int64
) -> float:
    """Return the F measure of the mean precision and the mean recall.

    Parameters
    ----------
    metric
        ``f``, with its parameters.
    values : float64 [n_users]
        ``(1 + b²) h / (b² R + L)`` of each user, from which the h hits follow; NaN without a
        hit, and for users who do not count.
    weight : float64 [n_users]
        How much each user counts.
    n_relevant, depth : int64 [n_users]
        R, and the places that are known.

    Returns
    -------
    float
        NaN where the means of both are 0.

    Raises
    ------
    InputError
        Another metric.
    """
    if metric.name != "f":
        raise InputError(f"average='parts' is known for f alone, found {str(metric)!r}.")
    parameters = {name: one.default for name, one in METRICS["f"].parameters.items()}
    parameters |= dict(metric.parameters)
    places = depth if metric.cutoff is None else np.full(len(depth), metric.cutoff)
    if parameters["denominator"] == "list":
        places = np.minimum(places, depth)
    beta = parameters["beta"]
    assert isinstance(beta, float)
    square = beta * beta
    hits = np.nan_to_num(values) * (square * n_relevant + places) / (1 + square)
    total = weight.sum()
    precision, recall = (
        (weight * np.divide(hits, size, out=np.zeros(len(hits)), where=size > 0)).sum() / total
        for size in (places, n_relevant)
    )
    below = square * precision + recall
    return float((1 + square) * precision * recall / below) if below > 0 else float("nan")

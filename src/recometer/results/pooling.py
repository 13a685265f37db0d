"""Pooled means, and the mean of parts: those that are not the mean of the users' values."""

from __future__ import annotations

import numpy as np

from recometer.arrays import Float64, Int64
from recometer.errors import InputError
from recometer.metrics.registry import METRICS, Metric


def denominators(metric: Metric, n_relevant: Int64, n_candidates: Int64) -> Float64:
    """Return what the users' values were divided by, float64 [n_users].

    A pooled mean, weighted by them, is the sum of the users' numerators divided by that of their
    denominators. `MetricDefinition.pooled` says of what a metric is a ratio; InputError, where it
    is none or its denominators are not known.
    """
    kind, cutoff = metric.definition.pooled, metric.cutoff
    if kind is None or (kind == "cutoff" and cutoff is None):
        ratios = ", ".join(name for name, each in METRICS.items() if each.pooled is not None)
        raise InputError(
            f"There is no pooled mean of {str(metric)!r}: it is not a ratio whose denominators are "
            f"kept. Hint: there is one of {ratios}, with a cut-off; or weights='relevant'."
        )
    if kind == "candidates":
        return np.maximum(n_candidates, 0).astype(np.float64)
    if kind == "cutoff":
        return np.full(len(n_relevant), cutoff, np.float64)
    most = cutoff if kind == "possible" else None
    return (n_relevant if most is None else np.minimum(n_relevant, most)).astype(np.float64)


def mean_of_parts(
    metric: Metric, values: Float64, weight: Float64, n_relevant: Int64, depth: Int64
) -> float:
    """Return the F measure of the mean precision and the mean recall; NaN where both are 0.

    `metric` is ``f`` (InputError for another), with its parameters. `values` are
    ``(1 + b²) h / (b² R + L)`` of each user, from which the h hits follow: NaN without a hit, and
    for users who do not count. R is `n_relevant`, and `depth` the places that are known.
    """
    if metric.name != "f":
        raise InputError(f"average='parts' is known only for f, found {str(metric)!r}.")
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

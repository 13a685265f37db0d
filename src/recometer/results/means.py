"""Compute means over users, weighted or not, and their intervals."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

import numpy as np
import numpy.typing as npt

from recometer.arrays import Float64, Int64, mean_of
from recometer.errors import InputError, rule_text
from recometer.measuring.compute import Together, computed_for_all
from recometer.metrics.registry import METRICS, Metric, rules_of
from recometer.protocol import Protocol
from recometer.stats import intervals
from recometer.stats.ends import Interval

Weights = Literal["users", "relevant", "pooled"] | npt.ArrayLike | None
Ends = tuple[float, float]

NO_WIDTH = "Every resample gives the same value, so the interval has zero width."
# The minimum and the maximum number of resamples for metrics with one value for all users, and the
# approximate total number of list places in the resamples.
RESAMPLES, PLACES_RESAMPLED = (50, 200), 10**8


def is_over_rows(metric: Metric, protocol: Protocol, weights: Weights) -> bool:
    """Return whether the mean of a metric is its value over the rows of all users."""
    if metric.definition.over_rows is None:
        return False
    rule = rules_of(metric, protocol).average if weights is None else weights
    return isinstance(rule, str) and rule in ("usual", "pooled")


def together_of(
    metrics: Iterable[Metric],
    protocol: Protocol,
    over_users: Mapping[str, float],
    over_rows: Mapping[str, float],
    weights: Weights,
) -> dict[str, float]:
    """Return the values of metrics with one value for all users; see `Evaluation.together`."""
    values = {} if weights is not None else dict(over_users)
    for metric in metrics if over_rows else ():
        name = str(metric)
        if name in over_rows and is_over_rows(metric, protocol, weights):
            values[name] = over_rows[name]
    return values


def intervals_over_users(
    data: Together,
    metrics: Sequence[Metric],
    values: Mapping[str, float],
    protocol: Protocol,
    seed: int,
    clusters: Int64 | None = None,
) -> dict[str, Interval]:
    """Return the intervals of metrics with one value for all users, using resampled users.

    `clusters` contains the user number of each session; all sessions of a user are drawn together.
    """
    ends = intervals.resampled(
        computed_for_all(data, metrics, protocol),
        values,
        data.n_users,
        protocol.confidence,
        seed,
        resamples_of(data.size),
        clusters,
    )
    n_drawn = data.n_users if clusters is None else len(np.unique(clusters))
    result = {}
    for metric in metrics:
        name, unit = str(metric), 100.0 if rules_of(metric, protocol).percent else 1.0
        if np.isnan(ends[name]).any():
            note = "Resampling needs two users with a value."
            result[name] = Interval.unknown(protocol.confidence, n_drawn, note)
            continue
        no_width = NO_WIDTH if ends[name][0] == ends[name][1] else ""
        own = Interval(*ends[name], "bootstrap", protocol.confidence, n_drawn, no_width)
        bounds = unit * metric.definition.lower, unit * metric.definition.upper
        result[name] = within_bounds(own, bounds, np.array([values[name]]))
    return result


def resamples_of(size: int) -> int:
    """Return how many times to resample users with `size` list places or rows in total."""
    return int(np.clip(PLACES_RESAMPLED // max(1, size), *RESAMPLES))


def weighted(values: Float64, weight: Float64) -> float:
    """Return the weighted mean of the values that are not NaN."""
    counted = ~np.isnan(values)
    return mean_of(values[counted], weight[counted])


def within_bounds(interval: Interval, bounds: Ends, values: Float64) -> Interval:
    """Clip an interval to those of the metric's bounds that all users' values respect.

    The true mean is within the bounds, so clipping does not change the coverage. (Values can be
    outside the bounds under rules that count an item more than once or replace undefined values
    with a number.)
    """
    lower, upper = bounds
    lowest = -np.inf if (values < lower).any() else lower
    highest = np.inf if (values > upper).any() else upper
    return interval.within((lowest, highest))


def denominators(metric: Metric, n_relevant: Int64, n_candidates: Int64) -> Float64:
    """Return the denominators of the users' values, as float64 [n_users].

    A pooled mean is weighted by the denominators: it is the sum of the users' numerators divided by
    the sum of their denominators. `MetricDefinition.pooled` names the denominator. Raises
    InputError if the metric is not a ratio, or its denominators are unknown.
    """
    kind, cutoff = metric.definition.pooled, metric.cutoff
    if kind is None or metric.group or (kind == "cutoff" and cutoff is None):
        ratios = ", ".join(name for name, entry in METRICS.items() if entry.pooled is not None)
        raise InputError(
            f"There is no pooled mean of {str(metric)!r}: it is not a ratio whose denominators are "
            f"kept. Hint: use one of {ratios}, with a cut-off and for all items; or "
            "weights='relevant'."
        )
    if kind == "candidates":
        return np.maximum(n_candidates, 0).astype(np.float64)
    if kind == "cutoff":
        return np.full(len(n_relevant), cutoff, np.float64)
    limit = cutoff if kind == "possible" else None
    return (n_relevant if limit is None else np.minimum(n_relevant, limit)).astype(np.float64)


def mean_of_parts(
    metric: Metric, values: Float64, weight: Float64, n_relevant: Int64, depth: Int64
) -> float:
    """Return the F measure of the mean precision and the mean recall; NaN if both are 0.

    Raises InputError if `metric` is not ``f`` (with any parameters). `values` are
    each user's ``(1 + b²) h / (b² R + L)``, from which the number of hits h follows. They are NaN
    for users without a hit and for users who do not count. R is `n_relevant`, L is the number of
    places that count, and `depth` is the number of known places.
    """
    if metric.name != "f" or metric.group:
        raise InputError(
            f"{rule_text('average', 'parts')} is defined only for f over all items, found "
            f"{str(metric)!r}."
        )
    parameters = {name: parameter.default for name, parameter in METRICS["f"].parameters.items()}
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

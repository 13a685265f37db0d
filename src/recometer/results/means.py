"""Computes means over users, weighted or not, and their intervals."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

import numpy as np
import numpy.typing as npt

from recometer.arrays import Float64, Int64, UInt8, mean_of
from recometer.data.numbers import numbers
from recometer.errors import InputError, rule_text
from recometer.measuring.compute import Together, computed_for_all
from recometer.measuring.reasons import Reason, entering
from recometer.metrics.registry import METRICS, Metric, rules_of
from recometer.protocol import Protocol
from recometer.stats import intervals
from recometer.stats.ends import Interval
from recometer.stats.grouping import LARGEST
from recometer.stats.means import interval

Weights = Literal["users", "relevant", "pooled"] | npt.ArrayLike | None
Ends = tuple[float, float]

NO_WIDTH = "The values are the same whichever users are drawn: the interval has no width."
# The minimum and the maximum number of resamples for metrics with one value for all users, and the
# approximate total number of list places in the resamples.
RESAMPLES, PLACES_RESAMPLED = (50, 200), 10**8


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class Averaging:
    """The users' values to average, and everything else that means depend on; see `Evaluation`."""

    metrics: Mapping[str, Metric]  # keyed by the names in `values` and `reasons`
    values: Mapping[str, Float64]
    reasons: Mapping[str, UInt8]
    n_relevant: Int64
    n_candidates: Int64
    depth: Int64
    protocol: Protocol
    negative_gains: bool
    binary_gains: bool
    clusters: Int64 | None  # an integer per session that identifies its user; None without sessions

    def entering(self, name: str) -> Float64:
        """Return the values that count in the mean of a metric, and NaN for other users."""
        return entering(self.values[name], self.reasons[name], self._rules(name))

    def mean(self, name: str, weights: Weights) -> float:
        """Return the mean of a metric; NaN if no user has a value."""
        weight, values = self.weights(name, weights), self.entering(name)
        if weights is None and self._rules(name).average == "parts":
            weight = weight * (self.reasons[name] != Reason.NOT_COUNTED)
            metric = self.metrics[name]
            return mean_of_parts(metric, values, weight, self.n_relevant, self.depth)
        return _weighted(values, weight)

    def mean_of(self, name: str, values: Float64 | None) -> float:
        """Return the mean of other values over the users who count in a metric's mean."""
        if values is None:
            return np.nan
        entering = np.where(np.isnan(self.entering(name)), np.nan, values)
        return _weighted(entering, self.weights(name, None))

    def intervals(self, names: Sequence[str]) -> list[Interval]:
        """Return the interval of each mean, within the metric's bounds; NaN if unknown."""
        averages = [self._rules(name).average for name in names]
        weighted = bool({*averages} - {"users", "usual"})
        found = []
        for name, average in zip(names, averages, strict=True):
            column, weights = self.entering(name), self.weights(name, None) if weighted else None
            interval_of_mean = self._interval(name, column, weights)
            if average == "parts":
                note = "The interval of a mean of parts is not known."
                n = interval_of_mean.n
                found.append(Interval.unknown(self.protocol.confidence, n, note))
            else:
                found.append(_within_bounds(interval_of_mean, self.bounds(name), column))
        return found

    def _interval(self, name: str, values: Float64, weights: Float64 | None) -> Interval:
        kind, confidence = self.protocol.interval, self.protocol.confidence
        if (np.abs(values) > LARGEST).any():
            n = int(np.count_nonzero(~np.isnan(values)))
            note = f"A value is infinite, or above {LARGEST:g}: the mean has no interval."
            return Interval.unknown(confidence, n, note)
        return interval(
            values,
            "auto" if kind == "gaffke" else kind,
            bounds=self.bounds(name),
            confidence=confidence,
            weights=weights,
            clusters=self.clusters,
        )

    def bounds(self, name: str) -> Ends:
        """Return the lowest and the highest possible value of a metric."""
        return self.metrics[name].bounds(negative=self.negative_gains, binary=self.binary_gains)

    def _rules(self, name: str) -> Protocol:
        return rules_of(self.metrics[name], self.protocol)

    def weights(self, name: str, weights: Weights) -> Float64:
        """Return the weights of the users in the mean of a metric."""
        n_users, by_rule = len(self.n_relevant), weights is None
        weights = self._rules(name).average if weights is None else weights
        if isinstance(weights, str):
            if weights == "users":
                return np.ones(n_users)
            if weights == "relevant":
                return self.n_relevant.astype(np.float64)
            if weights == "pooled":
                return denominators(self.metrics[name], self.n_relevant, self.n_candidates)
            if by_rule:  # by other values of the rule, users have equal weights
                return np.ones(n_users)
            raise InputError(
                f"weights={weights!r} does not exist. Hint: 'users', 'relevant', 'pooled', "
                "None, or a number for each user."
            )
        return self._given(weights)

    def _given(self, weights: npt.ArrayLike) -> Float64:
        n_users = len(self.n_relevant)
        given = numbers(weights, "weights")
        fits = given is not None and given.shape == (n_users,)
        if given is None or not fits or not ((given >= 0) & (given < np.inf)).all():
            raise InputError(
                f"weights must be {n_users:,} finite numbers that are at least 0, one for each "
                "user in the order of user_ids."
            )
        return given


def is_over_rows(metric: Metric, protocol: Protocol, weights: Weights) -> bool:
    """Return whether the mean of a metric is its value over the rows of all users."""
    if metric.definition.over_rows is None:
        return False
    how = rules_of(metric, protocol).average if weights is None else weights
    return isinstance(how, str) and how in ("usual", "pooled")


def together_of(
    metrics: Iterable[Metric],
    protocol: Protocol,
    over_users: Mapping[str, float],
    over_rows: Mapping[str, float],
    weights: Weights,
) -> dict[str, float]:
    """Return the values of metrics with one value for all users; see `Evaluation.together`."""
    found = {} if weights is not None else dict(over_users)
    for metric in metrics if over_rows else ():
        name = str(metric)
        if name in over_rows and is_over_rows(metric, protocol, weights):
            found[name] = over_rows[name]
    return found


def means_with(
    averaging: Averaging, together: Mapping[str, float], names: Iterable[str], weights: Weights
) -> dict[str, float]:
    """Return means, keyed by name; `together` holds the values of metrics over all users."""
    return {
        name: together[name] if name in together else averaging.mean(name, weights)
        for name in names
    }


def intervals_over_users(
    data: Together,
    metrics: Sequence[Metric],
    values: Mapping[str, float],
    protocol: Protocol,
    seed: int,
    clusters: Int64 | None = None,
) -> dict[str, Interval]:
    """Return the intervals of metrics with one value for all users, from resampled users.

    `clusters` has the user's number for each session; all sessions of a user are drawn together.
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
    found = {}
    for metric in metrics:
        name, unit = str(metric), 100.0 if rules_of(metric, protocol).percent else 1.0
        if np.isnan(ends[name]).any():
            note = "Resampling needs two users with a value."
            found[name] = Interval.unknown(protocol.confidence, n_drawn, note)
            continue
        no_width = NO_WIDTH if ends[name][0] == ends[name][1] else ""
        own = Interval(*ends[name], "bootstrap", protocol.confidence, n_drawn, no_width)
        bounds = unit * metric.definition.lower, unit * metric.definition.upper
        found[name] = _within_bounds(own, bounds, np.array([values[name]]))
    return found


def resamples_of(size: int) -> int:
    """Return the number of resamples of users; `size` is their total number of places or rows."""
    return int(np.clip(PLACES_RESAMPLED // max(1, size), *RESAMPLES))


def _weighted(values: Float64, weight: Float64) -> float:
    counted = ~np.isnan(values)
    return mean_of(values[counted], weight[counted])


def _within_bounds(interval: Interval, bounds: Ends, values: Float64) -> Interval:
    """Clip an interval to the metric's bounds, except for a bound that some user's value exceeds.

    The true mean is within the bounds, so clipping does not change the coverage. (Some rules allow
    values outside the bounds: counting an item more than once, or replacing undefined values with a
    number.)
    """
    lower, upper = bounds
    least = -np.inf if (values < lower).any() else lower
    most = np.inf if (values > upper).any() else upper
    return interval.within((least, most))


def denominators(metric: Metric, n_relevant: Int64, n_candidates: Int64) -> Float64:
    """Return the denominators of the users' values, float64 [n_users].

    A pooled mean is weighted by the denominators: it is the sum of the users' numerators divided by
    the sum of their denominators. `MetricDefinition.pooled` names the denominator. Raises
    InputError if the metric is not a ratio, or its denominators are unknown.
    """
    kind, cutoff = metric.definition.pooled, metric.cutoff
    if metric.group:
        raise _of_all_items(metric)
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


def _of_all_items(metric: Metric) -> InputError:
    return InputError(
        f"There is no pooled mean of {str(metric)!r}: how many relevant items of the group each "
        "user has is not kept. Hint: weights='users'."
    )


def mean_of_parts(
    metric: Metric, values: Float64, weight: Float64, n_relevant: Int64, depth: Int64
) -> float:
    """Return the F measure of the mean precision and the mean recall; NaN if both are 0.

    `metric` must be ``f`` (otherwise InputError), with its parameters. `values` are
    ``(1 + b²) h / (b² R + L)`` of each user, from which the number of hits h follows. They are NaN
    for users without a hit, and users who do not count. R is `n_relevant`, and `depth` is the
    number of known places.
    """
    if metric.name != "f":
        raise InputError(
            f"{rule_text('average', 'parts')} is known only for f, found {str(metric)!r}."
        )
    if metric.group:
        raise _of_all_items(metric)
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

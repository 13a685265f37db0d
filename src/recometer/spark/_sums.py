"""What users add up to: all that is known of a result but the users' own values.

A part (a block, a partition) has its `Sums`; those of all parts are put together in their order,
so that the same parts always give the same numbers.
"""

from __future__ import annotations

import collections
import dataclasses
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from recometer.arrays import Bool, Float64, Int64, UInt8
from recometer.errors import InputError
from recometer.evaluating.checks import KnownUsers
from recometer.measuring.rated import RatedTogether
from recometer.measuring.reasons import Reason, entering
from recometer.metrics.registry import METRICS, Metric, rules_of
from recometer.protocol import Protocol
from recometer.results.pooling import denominators
from recometer.spark import _rows
from recometer.spark._bytes import packed, unpacked
from recometer.spark._cells import Cells

N_REASONS = max(Reason) + 1
# The sums of `MetricSums` that are arrays of one size in all parts, except those of reasons.
TOTALS = ("weighted", "parts", "chance", "rows", "whole")
WEIGHTS = ("users", "relevant", "pooled")


@dataclasses.dataclass(frozen=True, eq=False)
class MetricSums:
    """What the users who count in a metric's mean add up to.

    Attributes
    ----------
    reasons : int64 [n_reasons]
        How many users have which `Reason`.
    cells
        Their values, where they are finite.
    n_infinite, n_missing
        How many values are infinite; how many of them are undefined.
    weighted : float64 [3, 2]
        By weight ("users", "relevant", "pooled"): the sums of weight times value, and of weights.
    parts : float64 [3]
        For the rule ``average="parts"``: the sums of precision, of recall, and of users.
    chance : float64 [2]
        The sums of weight times the value of a random order, and of weights.
    rows : float64 [_rows.SIZE]
        The sums of metrics over the rows of all users.
    whole : float64 [n_totals]
        The sums of metrics with one value for all users that belong to no item.
    """

    reasons: Int64
    cells: Cells
    n_infinite: int
    n_missing: int
    weighted: Float64
    parts: Float64
    chance: Float64
    rows: Float64
    whole: Float64

    @classmethod
    def together(cls, found: Sequence[MetricSums]) -> MetricSums:
        """Put the sums of several parts together."""
        return cls(
            np.sum([one.reasons for one in found], axis=0),
            Cells.together([one.cells for one in found]),
            sum(one.n_infinite for one in found),
            sum(one.n_missing for one in found),
            _total([one.weighted for one in found]),
            _total([one.parts for one in found]),
            _total([one.chance for one in found]),
            _rows.together([one.rows for one in found]),
            _total([one.whole for one in found]),
        )


@dataclasses.dataclass(frozen=True, eq=False)
class Sums:
    """What some users add up to.

    Attributes
    ----------
    n_users, n_rows
        Users, and rows of test.
    facts : mapping of str to int
        Sums over all blocks: counts of what rules settled, and of what is checked at the end.
    largest : mapping of str to float
        Maxima over all blocks: the longest list, the largest value of test, ...
    examples
        The ids of a few users.
    metrics : mapping of str to MetricSums
    """

    n_users: int
    n_rows: int
    facts: Mapping[str, int]
    counts: Mapping[str, int]
    largest: Mapping[str, float]
    examples: Sequence[Any]
    metrics: Mapping[str, MetricSums]

    @classmethod
    def together(cls, parts: Sequence[Sums]) -> Sums:
        """Put the sums of several parts together."""
        facts: collections.Counter[str] = collections.Counter()
        counts: collections.Counter[str] = collections.Counter()
        largest: dict[str, float] = {}
        for part in parts:
            facts.update(part.facts)
            counts.update(part.counts)
            for name, value in part.largest.items():
                largest[name] = max(value, largest.get(name, value))
        names = parts[0].metrics
        return cls(
            sum(part.n_users for part in parts),
            sum(part.n_rows for part in parts),
            dict(facts),
            dict(counts),
            largest,
            [one for part in parts for one in part.examples][:3],
            {name: MetricSums.together([part.metrics[name] for part in parts]) for name in names},
        )

    def known_users(self) -> KnownUsers:
        """Return what is checked of the users."""
        known, judged, unusable = (self.facts[name] for name in ("known", "judged", "unusable"))
        return KnownUsers(self.n_users, known, judged, unusable, self.examples)

    def to_bytes(self) -> bytes:
        """Return the sums as bytes, which `from_bytes` reads: arrays and JSON, and no code."""
        arrays: dict[str, Any] = {}
        plain = {**vars(self), "metrics": list(self.metrics)}
        own = []
        for number, one in enumerate(self.metrics.values()):
            for name in ("reasons", *TOTALS):
                arrays[f"{number} {name}"] = getattr(one, name)
            for name in ("low", "high", "total", "counts"):
                arrays[f"{number} cells {name}"] = getattr(one.cells, name)
            own.append([one.n_infinite, one.n_missing, one.cells.squares, one.cells.bits])
        return packed({**plain, "own": own}, arrays)

    @classmethod
    def from_bytes(cls, content: bytes) -> Sums:
        """Read what `to_bytes` returned."""
        plain, arrays = unpacked(content)
        own = plain.pop("own")
        metrics = {}
        for number, name in enumerate(plain.pop("metrics")):
            n_infinite, n_missing, *spread = own[number]
            cells = [arrays[f"{number} cells {n}"] for n in ("low", "high", "total", "counts")]
            sums = [arrays[f"{number} {n}"] for n in TOTALS]
            metrics[name] = MetricSums(
                arrays[f"{number} reasons"],
                Cells(cells[0], cells[1], cells[2], cells[3], *spread),
                n_infinite,
                n_missing,
                *sums,
            )
        return cls(**plain, metrics=metrics)

    @classmethod
    def of_bytes(cls, parts: Iterable[bytes]) -> Sums:
        """Put the sums of several parts together, each as bytes."""
        return cls.together([cls.from_bytes(bytes(one)) for one in parts])


def joined(parts: Iterable[bytes]) -> bytes:
    """Put the sums of several parts together, as bytes."""
    return Sums.of_bytes(parts).to_bytes()


def metric_sums(
    metric: Metric,
    protocol: Protocol,
    values: Float64 | None,
    reasons: UInt8,
    chance: Float64 | None,
    users: Mapping[str, Int64],
    rated: RatedTogether | None,
    whole: Float64,
) -> MetricSums:
    """Add up the values of a metric.

    `values` are None where all users have one value together; `users` are the columns of the
    same names in an `Evaluation`; `rated` are the rows of pairs, where there are ratings;
    `whole` what all users add up to.
    """
    rules = rules_of(metric, protocol)
    codes = np.bincount(reasons, minlength=N_REASONS)
    if values is None:
        values = np.full(len(reasons), np.nan)
    gone = reasons == Reason.NOT_COUNTED
    n_missing = int(np.count_nonzero(np.isnan(values) & ~gone)) if rules.missing == "nan" else 0
    skipping = rules.replace(missing="skip") if rules.missing == "nan" else rules
    own = entering(values, reasons, skipping)
    finite = np.where(np.isfinite(own), own, np.nan)
    weights = weights_of(metric, users)
    weighted = np.array([_weighted(own, one) for one in weights.values()])
    weight = weights[rules.average if rules.average in WEIGHTS else "users"]
    drawn = np.zeros(2)
    if chance is not None:
        drawn = np.array(_weighted(np.where(np.isnan(own), np.nan, chance), weight))
    return MetricSums(
        codes,
        Cells.of(finite),
        int(np.count_nonzero(np.isinf(own))),
        n_missing,
        weighted,
        _parts(metric, own, ~gone, users) if rules.average == "parts" else np.zeros(3),
        drawn,
        _rows.row_sums(metric, rated, reasons),
        whole,
    )


def weights_of(metric: Metric, users: Mapping[str, Int64]) -> dict[str, Float64]:
    """Return the users' weights by name; NaN if a metric does not have them."""
    n_relevant = users["n_relevant"]
    found = {"users": np.ones(len(n_relevant)), "relevant": n_relevant.astype(np.float64)}
    try:
        found["pooled"] = denominators(metric, n_relevant, users["n_candidates"])
    except InputError:
        found["pooled"] = np.full(len(n_relevant), np.nan)
    return found


def _weighted(values: Float64, weights: Float64) -> tuple[float, float]:
    counted = ~np.isnan(values)
    return float((values[counted] * weights[counted]).sum()), float(weights[counted].sum())


def _parts(metric: Metric, values: Float64, counted: Bool, users: Mapping[str, Int64]) -> Float64:
    """Return the sums of precision, recall and users, from which the mean of parts follows.

    See `recometer.results.pooling.mean_of_parts`.
    """
    square = beta_of(metric) ** 2
    n_relevant, depth = users["n_relevant"], users["depth"]
    places = depth if metric.cutoff is None else np.full(len(depth), metric.cutoff)
    if dict(metric.parameters).get("denominator") == "list":
        places = np.minimum(places, depth)
    hits = np.nan_to_num(values) * (square * n_relevant + places) / (1 + square)
    found = [
        (counted * np.divide(hits, size, out=np.zeros(len(hits)), where=size > 0)).sum()
        for size in (places, n_relevant)
    ]
    return np.array([*found, counted.sum()], np.float64)


def beta_of(metric: Metric) -> float:
    """Return the weight of recall in ``f``; InputError: another metric."""
    if metric.name != "f":
        raise InputError(f"average='parts' is known only for f, found {str(metric)!r}.")
    beta = dict(metric.parameters).get("beta", METRICS["f"].parameters["beta"].default)
    assert isinstance(beta, float)
    return beta


def _total(arrays: Sequence[Float64]) -> Float64:
    """Add arrays up, to the last bit whatever the order."""
    columns = np.stack(arrays).reshape(len(arrays), -1)
    exact = [math.fsum(column) if _adds_up(column) else column.sum() for column in columns.T]
    return np.array(exact).reshape(arrays[0].shape)


def _adds_up(numbers: Float64) -> bool:
    """Return whether the sum of numbers is finite, in whatever order they are added."""
    return math.isfinite(float(np.abs(numbers).max(initial=0)) * len(numbers))

"""A model by a metric, resolved once; each kind of values answers the same questions of a pair.

`Paired` has a value for each user, `Seeds` several of these, `Folds` those of several folds, and
`Whole` (`recometer.comparing.whole`) one value for all users.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

import numpy as np

from recometer import stats
from recometer.arrays import Array, Bool, Float64
from recometer.comparing.models import Model, Users
from recometer.comparing.rows import PairRow
from recometer.errors import InputError
from recometer.metrics.registry import MetricDefinition, rules_of
from recometer.results.folds import FoldedRecord
from recometer.stats import Difference, Equivalence, Interval, Runs
from recometer.stats.comparing import FEW_DIFFER, IntervalKind, Pairs, decisive_test
from recometer.stats.grouping import Column, group
from recometer.stats.relative import relative_over_runs
from recometer.stats.runs import run_moments
from recometer.stats.tests import TESTS, Test
from recometer.stats.two_one_sided import equivalence_over_runs

Bounds = tuple[float, float]


@dataclasses.dataclass(frozen=True, eq=False)
class Options:
    """How models are compared; see `recometer.compare`."""

    test: Test
    interval: IntervalKind
    confidence: float
    margin: float | Mapping[str, float] | None
    clusters: Array | None
    seed: int
    threads: int
    progress: bool | None = False

    def __post_init__(self) -> None:
        if self.margin is not None and not self.alpha < 0.5:
            raise InputError(
                f"confidence={self.confidence:g} beside margin= must be above 0.5: equivalence is "
                "tested at the level 1 - confidence. Hint: 0.95 is usual."
            )

    @property
    def alpha(self) -> float:
        """Return the level of significance."""
        return 1 - self.confidence

    def margin_of(self, metric: str) -> float | None:
        """Return the margin of equivalence of a metric."""
        return self.margin.get(metric) if isinstance(self.margin, Mapping) else self.margin

    @property
    def interval_of_mean(self) -> Any:
        """Return the kind of interval of a single mean."""
        return "auto" if self.interval == "randomisation" else self.interval


@dataclasses.dataclass(frozen=True, eq=False)
class Resolved:
    """A model by a metric.

    Attributes
    ----------
    model, metric
    users, options
        Those of the comparison.
    """

    model: Model
    metric: str
    users: Users
    options: Options

    @property
    def definition(self) -> MetricDefinition:
        """Return the statements about the metric."""
        return self.model.first.known_metric(self.metric).definition


@dataclasses.dataclass(frozen=True, eq=False)
class Paired(Resolved):
    """A model by a metric with a value for each user.

    Attributes
    ----------
    column
        The users' values, means over runs.
    bounds
        The lowest and the highest value that a user can have with any of the models.
    remark
        Why nothing is known of that range; empty where it is.
    """

    column: Column
    bounds: Bounds = (-np.inf, np.inf)
    remark: str = ""

    @property
    def table(self) -> Float64:
        """Return the users' values in each run: float64 [n_users, n_runs]."""
        return np.column_stack(self.users.runs(self.model, self.metric))

    def among(self, chosen: Bool | slice) -> Paired:
        """Return the same of some users alone."""
        if isinstance(chosen, slice):
            return self
        clusters, column = self.options.clusters, Column.of(self.column.values[chosen])
        if clusters is not None:
            clusters = clusters[chosen]
        return dataclasses.replace(
            self, column=column, options=dataclasses.replace(self.options, clusters=clusters)
        )

    def mean(self) -> float:
        """Return the mean of the values, which contain no NaN."""
        values = self.column.values
        return float(values.sum() / len(values)) if len(values) else np.nan

    def interval(self) -> Interval:
        """Return the interval of the mean."""
        options = self.options
        return stats.interval(
            self.column,
            options.interval_of_mean,
            bounds=self.bounds,
            confidence=options.confidence,
            clusters=options.clusters,
        )

    def pairs(self, other: Paired) -> Pairs:
        """Return the values of both."""
        return Pairs.of(self.column, other.column, self.options.clusters)

    def difference(self, other: Paired) -> Difference:
        """Return the difference of the means with interval, p and effects, over the users."""
        options = self.options
        return stats.compare(
            self.column,
            other.column,
            bounds=self.bounds,
            test=options.test,
            interval=options.interval,
            confidence=options.confidence,
            clusters=options.clusters,
        )

    def p(self, other: Paired, enough: float) -> float:
        """Return p, or a bound of it that is at most `enough`.

        That small, it is one of those that Holm's method rejects first, whatever the others are.
        """
        options = self.options
        if options.clusters is None and (options.test, options.interval) == (
            "randomisation",
            "auto",
        ):
            differences = self.column.values - other.column.values
            at_most = _bound_of_p(differences, self.bounds[1] - self.bounds[0])
            if at_most <= enough:
                return at_most
        both = self.pairs(other)
        return decisive_test(both, self.bounds, options.test, options.interval).p_value

    def equivalence(self, other: Paired, margin: float) -> Equivalence:
        """Return the two one-sided tests."""
        options = self.options
        return stats.equivalence(
            self.column.values - other.column.values,
            margin,
            alpha=options.alpha,
            test=TESTS[options.test].interval,
            bounds=self.bounds,
            clusters=options.clusters,
        )

    def runs(self, other: Paired) -> Runs | None:
        """Return the variance between runs and that between users; None without runs."""
        return None

    def over_runs(self, row: PairRow, other: Paired) -> PairRow:
        """Return a row with what the runs of both models say."""
        return dataclasses.replace(row, runs=self.runs(other))

    def row(self, other: Paired) -> PairRow:
        """Compare with another model."""
        first = self if isinstance(self, Seeds) or not isinstance(other, Seeds) else other
        found, options = self.difference(other), self.options
        row = pair_row(self.metric, (self, other), found)
        row = type(first).over_runs(self, row, other)
        margin = options.margin_of(self.metric)
        if margin is not None:
            equivalence = type(first).equivalence(self, other, margin)
            row = dataclasses.replace(row, equivalence=equivalence)
        average = {
            rules_of(one.model.first.known_metric(one.metric), one.model.first.protocol).average
            for one in (self, other)
        }
        return dataclasses.replace(row, notes=_notes(row, average, self.remark))


class Seeds(Paired):
    """A model of several seeds: users and seeds are both drawn."""

    def p(self, other: Paired, enough: float) -> float:
        """Return p over users and seeds."""
        found = stats.over_runs(self.table, other.table, confidence=self.options.confidence)
        return found.p_value

    def equivalence(self, other: Paired, margin: float) -> Equivalence:
        """Return the two one-sided tests over users and seeds."""
        return equivalence_over_runs(self.table, other.table, margin, alpha=self.options.alpha)

    def over_runs(self, row: PairRow, other: Paired) -> PairRow:
        """Return a row whose p and intervals are over users and seeds."""
        moments = run_moments(self.table, other.table)
        runs = stats.runs.over_runs_of(moments, confidence=self.options.confidence)
        known = bool(np.isfinite(runs.p_value))
        test = dataclasses.replace(
            row.test,
            p_value=runs.p_value,
            test="random effects",
            method="student" if known else "none",
            smallest_p=0.0,
            note="" if known else runs.note,
        )
        relative = row.relative_interval
        if np.isfinite(row.relative):
            ratios = group(self.column.values, other.column.values)
            relative = relative_over_runs(ratios, moments, runs.interval)
        return dataclasses.replace(
            row, interval=runs.interval, relative_interval=relative, test=test, unit=0.0, runs=runs
        )


class Folds(Paired):
    """A model that was evaluated in folds."""

    def runs(self, other: Paired) -> Runs | None:
        """Return how the differences of folds vary; None where the folds are not as many."""
        folds = [one.model.first for one in (self, other)]
        one, two = (fold.folds if isinstance(fold, FoldedRecord) else () for fold in folds)
        if len(one) != len(two):
            return None
        differences = []
        for first, second in zip(one, two, strict=True):
            alone = [Model(self.model.name, (first,)), Model(other.model.name, (second,))]
            users = Users.of(alone)
            values = [users.values(model, self.metric) for model in alone]
            differences.append(values[0] - values[1])
        if any(np.count_nonzero(~np.isnan(column)) < 2 for column in differences):
            return None
        return stats.over_folds(differences, confidence=self.options.confidence)


def kind_of(model: Model) -> type[Paired]:
    """Return the kind of a model's values per user."""
    if model.n_seeds > 1:
        return Seeds
    return Folds if isinstance(model.first, FoldedRecord) else Paired


def resolve(
    metric: str, models: Sequence[Model], users: Users, options: Options, *, code: bool = False
) -> list[Paired]:
    """Return the models by a metric with a value for each user.

    `code` says that each is compared with several others, for which columns are coded.
    """
    found = []
    for model in models:
        column = Column.of(users.values(model, metric))
        of = column.coded() if code else column
        found.append(kind_of(model)(model, metric, users, options, of))
    bounds, remark = bounds_of(metric, models, (one.column for one in found))
    if options.interval == "gaffke" and not np.isfinite(bounds).all():
        raise InputError(
            f"interval='gaffke' needs a range, and {metric} has none. {remark} "
            "Hint: interval='bca', or metrics= without it."
        )
    return [dataclasses.replace(one, bounds=bounds, remark=remark) for one in found]


def bounds_of(
    metric: str, models: Sequence[Model], columns: Iterable[Column]
) -> tuple[Bounds, str]:
    """Return the lowest and the highest value that a user can have with any of the models.

    Where a value lies outside, nothing is known of the range, which a note then says.
    """
    each = [run.bounds(metric) for model in models if model.has(metric) for run in model.runs]
    low, high = min(low for low, _ in each), max(high for _, high in each)
    rounding = 1e-9 * (high - low) if np.isfinite(high - low) else 0.0
    for column in columns:
        for value in (min(column.least, low), max(column.most, high)):
            if value < low - rounding or value > high + rounding:
                note = f"The value {value:g} lies outside the range from {low:g} to {high:g}"
                return (-np.inf, np.inf), f"{note}, so that no interval rests on that range."
    return (low, high), ""


def pair_row(metric: str, pair: tuple[Paired, Paired], found: Difference) -> PairRow:
    """Return the row of two models, without notes."""
    effects, higher = found.effects, pair[0].definition.higher_is_better
    better, chance = (effects.n_better, effects.n_worse), effects.probability_better
    chances, bounds = effects.probability_interval, pair[0].bounds
    if not higher:
        better, chance = better[::-1], 1 - chance
        chances = dataclasses.replace(chances, low=1 - chances.high, high=1 - chances.low)
    return PairRow(
        metric=metric,
        model=pair[0].model.name,
        other=pair[1].model.name,
        higher_is_better=higher,
        n=found.n,
        n_only_model=found.n_only_first,
        n_only_other=found.n_only_second,
        mean=found.mean_first,
        mean_other=found.mean_second,
        difference=found.difference,
        interval=found.interval,
        relative=found.relative,
        relative_interval=found.relative_interval,
        test=found.test,
        n_better=better[0],
        n_equal=effects.n_equal,
        n_worse=better[1],
        standardised=effects.standardised,
        probability_better=chance,
        probability_interval=chances,
        deviation=found.deviation,
        largest_difference=float(bounds[1] - bounds[0]),
        unit=found.unit,
        error=found.error,
        few=found.few,
    )


def _notes(row: PairRow, average: AbstractSet[str], remark: str) -> tuple[str, ...]:
    """Return the notes on a row; `average` are the rules of its two models."""
    notes = [remark, row.interval.note, row.test.note, row.relative_interval.note]
    unequal = average - {"users", "usual"}
    if unequal:
        notes.append(
            f"By the rule average={min(unequal)!r} users weigh differently in the "
            "mean; a comparison counts every user once."
        )
    if row.runs is not None:
        notes.append(row.runs.note)
    return tuple(dict.fromkeys(note for note in notes if note))


def _bound_of_p(differences: Float64, largest: float) -> float:
    """Return what p is at most, from Hoeffding's inequality for sums with random signs.

    P(|Σ ±d| ≥ |Σ d|) ≤ 2 exp(-(Σ d)² / 2 Σ d²). It is a hundred times as fast as the test. 1 unless
    Σ d² tells that enough users differ for the test to decide; `largest` is the largest difference.
    """
    squares = float(differences @ differences)
    if not 0 < FEW_DIFFER * largest**2 <= squares:
        return 1.0
    return 2 * float(np.exp(-(float(differences.sum()) ** 2) / (2 * squares)))


__all__ = ["Folds", "Options", "Paired", "Seeds", "bounds_of", "kind_of", "pair_row", "resolve"]

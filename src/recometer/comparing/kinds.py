"""Models on a single metric, and pairs of such models, which compute all parts of a comparison.

If a metric has a value for each user, a model is a `Paired`, and a pair of models is a `UserPair`,
`SeedPair` or `FoldPair`. If it has one value for all users, a model is a
`recometer.comparing.whole.Whole`.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np

from recometer import stats
from recometer.arrays import Array, Bool, Float64
from recometer.comparing.models import Model, Users
from recometer.comparing.rows import PairRow, Standing
from recometer.errors import InputError, argument_text, rule_text
from recometer.metrics.registry import MetricDefinition, rules_of
from recometer.remembered import cached_property
from recometer.results.evaluation import EvaluationRecord
from recometer.results.folds import FoldedRecord
from recometer.stats import Difference, Equivalence, Interval, Power
from recometer.stats.comparing import (
    FEW_DIFFER,
    Pairs,
    decisive_test,
    equivalence_over_runs,
)
from recometer.stats.grouping import Column, Grouped, group
from recometer.stats.means import in_units, relative_over_runs
from recometer.stats.runs import over_runs_of, run_moments
from recometer.stats.tests import TESTS, Test
from recometer.stats.two_groups import equivalence_of_groups, power_of_groups
from recometer.tasks import Ticker, run_tasks

Bounds = tuple[float, float]


@dataclasses.dataclass(frozen=True, eq=False)
class Options:
    """The options of a comparison; see `recometer.compare`."""

    test: Test
    confidence: float
    margin: float | Mapping[str, float] | None
    clusters: Array | None
    seed: int
    threads: int
    progress: bool | None = False
    paired: bool = True

    def __post_init__(self) -> None:
        if self.margin is not None and not self.alpha < 0.5:
            raise InputError(
                f"{argument_text('confidence', self.confidence)} with {argument_text('margin')} "
                "must be above 0.5: equivalence is tested at the level 1 - confidence. Hint: 0.95 "
                "is usual."
            )

    @property
    def alpha(self) -> float:
        """Return the significance level."""
        return 1 - self.confidence

    def margin_of(self, metric: str) -> float | None:
        """Return the margin of equivalence of a metric."""
        return self.margin.get(metric) if isinstance(self.margin, Mapping) else self.margin


class Board(NamedTuple):
    """The numbers behind the leaderboard of a metric, over the users with a value from all models.

    `means` and `n` (the number of these users, for each model) include random orders, after the
    ranked models. `intervals` and `p_values` do not. The p-values are unadjusted, with the shape
    [n_ranked, n_ranked] and 1 on the diagonal.
    """

    means: Float64
    p_values: Float64
    intervals: Sequence[Interval]
    n: Sequence[int]

    def standings(
        self,
        metric: str,
        names: Sequence[str],
        *,
        higher_is_better: bool,
        confidence: float,
        adjusted: Float64 | None = None,
    ) -> list[Standing]:
        """Rank the models with these names on a metric, best first.

        Adjusted p-values of all pairs determine the ranks (`recometer.stats.rank_intervals`).
        Unless they are passed as `adjusted`, they are adjusted by Holm's method. A random order has
        a mean but no rank, because other models do not compete with it.
        """
        n_ranked, higher = len(self.p_values), higher_is_better
        if adjusted is None:
            # Each pair counts once, so only the p-values above the diagonal are adjusted.
            adjusted = np.where(np.tri(n_ranked, dtype=bool), np.nan, self.p_values)
            adjusted = stats.adjust(adjusted, "holm")
            adjusted = np.fmax(adjusted, adjusted.T)
        means, alpha = self.means[:n_ranked], 1 - confidence
        ranking = stats.rank_intervals(means, adjusted, alpha=alpha, higher_is_better=higher)
        lead = (np.fmax if higher else np.fmin).reduce(means)  # NaN only if all means are NaN
        unknown = Interval.unknown(confidence, self.n[0], "A random order is not ranked.")
        found = []
        for at, name in enumerate(names):
            counts, mean = at < n_ranked, float(self.means[at])
            found.append(
                Standing(
                    metric=metric,
                    model=name,
                    mean=mean,
                    interval=self.intervals[at] if counts else unknown,
                    n=self.n[at],
                    leads=counts and mean == lead,
                    best=counts and bool(ranking.best[at]) and not np.isnan(mean),
                    rank_low=int(ranking.low[at]) if counts else 0,
                    rank_high=int(ranking.high[at]) if counts else 0,
                )
            )
        sign = -1 if higher else 1
        return sorted(found, key=lambda one: np.inf if np.isnan(one.mean) else sign * one.mean)


@dataclasses.dataclass(frozen=True, eq=False)
class Resolved:
    """A model on a metric, with the users and options of the comparison."""

    model: Model
    metric: str
    users: Users
    options: Options

    @property
    def definition(self) -> MetricDefinition:
        """Return the definition of the metric."""
        return self.model.first.known_metric(self.metric).definition


def p_of_pairs(models: Sequence[Any], rows: Sequence[PairRow], enough: float = 0.0) -> Float64:
    """Return the p of each pair, from `rows` or else from a new test: float64 [n_models, n_models].

    See `UserPair.p` for `enough`.
    """
    tested = {frozenset((row.model, row.other)): row.p_value for row in rows}
    p_values = np.ones((len(models), len(models)))
    for at, other in itertools.combinations(range(len(models)), 2):
        first, second = models[at], models[other]
        p = tested.get(frozenset((first.model.name, second.model.name)))
        if p is None:
            p = first.against(second).p(enough)
        p_values[at, other] = p_values[other, at] = p
    return p_values


@dataclasses.dataclass(frozen=True, eq=False)
class Paired(Resolved):
    """A model on a metric with a value for each user, which is the user's mean over runs.

    Attributes
    ----------
    bounds, remark
        The lowest and the highest value that a user can have with any of the models. If they are
        unknown, `remark` may say why.
    weights : float64 [n_users] or None
        The users' weights in the mean; None if all are equal, or if users are paired.
    """

    column: Column
    bounds: Bounds = (-np.inf, np.inf)
    remark: str = ""
    weights: Float64 | None = None

    @property
    def table(self) -> Float64:
        """Return the users' values in each run: float64 [n_users, n_runs]."""
        return np.column_stack(self.users.runs(self.model, self.metric))

    def among(self, chosen: Bool) -> Paired:
        """Return the model on the metric for only the given users."""
        clusters, column = self.options.clusters, Column.of(self.column.values[chosen])
        weights = None if self.weights is None else self.weights[chosen]
        if clusters is not None:
            clusters = clusters[chosen]
        return dataclasses.replace(
            self,
            column=column,
            weights=weights,
            options=dataclasses.replace(self.options, clusters=clusters),
        )

    @cached_property
    def units(self) -> Grouped:
        """Return the weighted values of users, or their sums over clusters."""
        return in_units(self.column, self.weights, self.options.clusters)

    def mean(self) -> float:
        """Return the mean of the values; if users are paired, no value may be NaN."""
        if not self.options.paired:
            return self.units.estimate
        values = self.column.values
        return float(values.sum() / len(values)) if len(values) else np.nan

    def mean_interval(self) -> Interval:
        """Return the interval of the mean."""
        options = self.options
        return stats.interval(
            self.column,
            bounds=self.bounds,
            confidence=options.confidence,
            weights=self.weights,
            clusters=options.clusters,
        )

    def against(self, other: Paired) -> UserPair:
        """Return the pair of this model and another model."""
        if not self.options.paired:
            return GroupPair(self, other)
        models = self.model, other.model
        if max(model.n_seeds for model in models) > 1:
            return SeedPair(self, other)
        folded = all(isinstance(model.first, FoldedRecord) for model in models)
        return (FoldPair if folded else UserPair)(self, other)

    @staticmethod
    def board(ranked: Sequence[Paired], chance: Sequence[Paired], rows: Sequence[PairRow]) -> Board:
        """Return means, intervals and p, over the users with a value from all ranked models.

        If users are not paired, each mean is over the users of its own model. `rows` has the pairs
        compared so far; a pair is not tested again if it was compared on the same users.
        """
        options, common = ranked[0].options, None
        if options.paired and not all(one.column.complete for one in ranked):
            common = ~np.logical_or.reduce([np.isnan(one.column.values) for one in ranked])
        chosen, others = (
            [one if common is None else one.among(common) for one in models]
            for models in (ranked, chance)
        )
        n = [one.column.n for one in chosen]
        enough = options.alpha / max(1, math.comb(len(ranked), 2))
        tested = [row for row in rows if row.n == n[0] or not options.paired]
        p_values = p_of_pairs(chosen, tested, enough)
        intervals = run_tasks(
            lambda one, _: one.mean_interval(), chosen, threads=options.threads, progress=False
        )
        means = np.array([one.mean() for one in (*chosen, *others)])
        return Board(means, p_values, intervals, n + n[:1] * len(chance))


@dataclasses.dataclass(frozen=True, eq=False)
class UserPair:
    """Two models on a metric with a value for each user; differences are first minus second."""

    one: Paired
    two: Paired
    averages: ClassVar[set[str]] = {"users", "usual"}  # supported values of the rule `average`
    on_power: ClassVar[str] = ""

    @property
    def options(self) -> Options:
        """Return how the models are compared."""
        return self.one.options

    @cached_property
    def values(self) -> Float64:
        """Return the differences of the users, with NaN for users without both values."""
        return self.one.column.values - self.two.column.values

    def difference(self) -> Difference:
        """Return the difference of the means over users, with its interval, p and effects."""
        options = self.options
        return stats.compare(
            self.one.column,
            self.two.column,
            bounds=self.one.bounds,
            test=options.test,
            confidence=options.confidence,
            clusters=options.clusters,
        )

    def p(self, enough: float) -> float:
        """Return p, or an upper bound of p if that is at most `enough`.

        Holm's method rejects such a small p first, whatever the other p-values are.
        """
        options, bounds = self.options, self.one.bounds
        if options.clusters is None and options.test == "randomisation":
            at_most = _bound_of_p(self.values, bounds[1] - bounds[0])
            if at_most <= enough:
                return at_most
        pairs = Pairs.of(self.one.column, self.two.column, options.clusters)
        return decisive_test(pairs, bounds, options.test).p_value

    def equivalence(self, margin: float) -> Equivalence:
        """Return the result of the two one-sided tests."""
        options = self.options
        return stats.equivalence(
            self.values,
            margin,
            alpha=options.alpha,
            test=TESTS[options.test].interval,
            bounds=self.one.bounds,
            clusters=options.clusters,
        )

    def over_runs(self, row: PairRow) -> PairRow:
        """Return the row with the variance between runs added; unchanged if there are no runs."""
        return row

    def power(self, difference: float | None, wanted: float, alpha: float | None) -> Power:
        """Return the power of a comparison on these users; see `Comparison.power`."""
        options = self.options
        planned = self.planned(difference, wanted, options.alpha if alpha is None else alpha)
        clusters = "" if options.clusters is None else "Numbers of users are numbers of clusters."
        notes = planned.note, self.on_power, clusters
        return dataclasses.replace(planned, note=" ".join(filter(None, notes)))

    def planned(self, difference: float | None, wanted: float, alpha: float) -> Power:
        """Return the power, without notes on the kind of pair."""
        seeds = isinstance(self, SeedPair)
        return stats.power(
            Pairs.of(self.one.column, self.two.column, self.options.clusters).units,
            difference,
            wanted=wanted,
            alpha=alpha,
            unit=None if self.options.test == "randomisation" and not seeds else 0.0,
        )

    def row(self) -> PairRow:
        """Return the row of the comparison."""
        one, two = self.one, self.two
        difference, higher = self.difference(), one.definition.higher_is_better
        if not higher:
            difference = difference.for_lower_values()
        row = PairRow(
            **vars(difference),
            metric=one.metric,
            model=one.model.name,
            other=two.model.name,
            higher_is_better=higher,
            largest_difference=float(one.bounds[1] - one.bounds[0]),
        )
        row = self.over_runs(row)
        margin = self.options.margin_of(one.metric)
        if margin is not None:
            row = dataclasses.replace(row, equivalence=self.equivalence(margin))
        return dataclasses.replace(row, notes=self._notes(row))

    def _notes(self, row: PairRow) -> tuple[str, ...]:
        notes = [self.one.remark, row.interval.note, row.test.note, row.relative_interval.note]
        averages = {
            rules_of(each.model.first.known_metric(each.metric), each.model.first.protocol).average
            for each in (self.one, self.two)
        }
        if unequal := averages - self.averages:
            notes.append(
                f"By the rule {rule_text('average', min(unequal))} users weigh differently in the "
                "mean; a comparison counts every user once."
            )
        if row.runs is not None:
            notes.append(row.runs.note)
        return tuple(dict.fromkeys(filter(None, notes)))


class SeedPair(UserPair):
    """Two models, at least one of them with several seeds; users and seeds are both samples."""

    on_power = "The variance between seeds is left out: more users do not change it."

    def p(self, enough: float) -> float:
        """Return p over users and seeds."""
        confidence = self.options.confidence
        return stats.over_runs(self.one.table, self.two.table, confidence=confidence).p_value

    def equivalence(self, margin: float) -> Equivalence:
        """Return the result of the two one-sided tests over users and seeds."""
        tables = self.one.table, self.two.table
        return equivalence_over_runs(*tables, margin, alpha=self.options.alpha)

    def over_runs(self, row: PairRow) -> PairRow:
        """Return the row with p and intervals over users and seeds."""
        moments = run_moments(self.one.table, self.two.table)
        runs = over_runs_of(moments, confidence=self.options.confidence)
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
            ratios = group(self.one.column.values, self.two.column.values)
            relative = relative_over_runs(ratios, moments, runs.interval)
        return dataclasses.replace(
            row, interval=runs.interval, relative_interval=relative, test=test, unit=0.0, runs=runs
        )


class GroupPair(UserPair):
    """Two models with different users, such as the groups of an A/B test."""

    averages: ClassVar[set[str]] = {"users", "usual", "relevant", "pooled"}
    on_power = "Numbers are those of both groups together, in their present ratio."

    def difference(self) -> Difference:
        """Return the difference of the means by Welch's test."""
        units = self.one.units, self.two.units
        difference = stats.compare_groups(
            *units, bounds=self.one.bounds, confidence=self.options.confidence
        )
        return dataclasses.replace(difference, n=self.one.column.n + self.two.column.n)

    def p(self, enough: float) -> float:
        """Return p of Welch's test."""
        return self.difference().test.p_value

    def equivalence(self, margin: float) -> Equivalence:
        """Return the two one-sided tests by Welch's statistic."""
        return equivalence_of_groups(self.one.units, self.two.units, margin, self.options.alpha)

    def planned(self, difference: float | None, wanted: float, alpha: float) -> Power:
        """Return the power of both groups together."""
        return power_of_groups(self.one.units, self.two.units, difference, wanted, alpha)


class FoldPair(UserPair):
    """Two models that were evaluated in folds."""

    def over_runs(self, row: PairRow) -> PairRow:
        """Return the row with the variance between folds, if the models have equally many folds."""
        folds = [each.model.first.folds for each in (self.one, self.two)]  # type: ignore[attr-defined]
        if len(folds[0]) != len(folds[1]):
            return row
        differences = []
        for first, second in zip(*folds, strict=True):
            models = [
                Model(self.one.model.name, (first,)),
                Model(self.two.model.name, (second,)),
            ]
            users = Users.of(models)
            first_values, second_values = (users.values(each, row.metric) for each in models)
            differences.append(first_values - second_values)
        if any(np.count_nonzero(~np.isnan(column)) < 2 for column in differences):
            return row
        runs = stats.over_folds(differences, confidence=self.options.confidence)
        return dataclasses.replace(row, runs=runs)


def resolve(
    metric: str, models: Sequence[Model], users: Users, options: Options, *, code: bool = False
) -> list[Paired]:
    """Return the models on a metric with a value for each user.

    `code` encodes the columns by their levels, which saves time if a column is compared several
    times.
    """

    def read(model: Model, ticker: Ticker) -> Paired:
        column = Column.of(users.values(model, metric))
        if options.paired:
            return Paired(model, metric, users, options, column.coded() if code else column)
        (weights,) = users.runs(model, metric, EvaluationRecord.counted_weights)
        distinct = np.unique(weights[~np.isnan(weights)])
        return Paired(
            model, metric, users, options, column, weights=weights if len(distinct) > 1 else None
        )

    resolved = run_tasks(read, models, threads=options.threads, progress=False)
    bounds, remark = _bounds_of(metric, models, (each.column for each in resolved))
    return [dataclasses.replace(each, bounds=bounds, remark=remark) for each in resolved]


def _bounds_of(
    metric: str, models: Sequence[Model], columns: Iterable[Column]
) -> tuple[Bounds, str]:
    """Return the lowest and the highest value that a user can have with any of the models.

    If a value is outside the range, the range counts as unknown, and the remark says so.
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


def _bound_of_p(differences: Float64, largest: float) -> float:
    """Return an upper bound of p, from Hoeffding's inequality for sums with random signs.

    P(|Σ ±d| ≥ |Σ d|) ≤ 2 exp(-(Σ d)² / (2 Σ d²)) takes a hundredth of the time of the test. The
    bound is 1 unless Σ d² shows that enough users differ for the test to decide. `largest` is the
    largest possible difference.
    """
    squares = float(differences @ differences)
    if not 0 < FEW_DIFFER * largest**2 <= squares:
        return 1.0
    return 2 * float(np.exp(-(float(differences.sum()) ** 2) / (2 * squares)))

"""Classes that compare models, and pairs of models, on a single metric.

If a metric has a value for each user, the models form a `Paired`, and a pair of models is a
`UserPair`, `SeedPair`, `FoldPair` or `GroupPair`. If it has one value for all users, the models
form a `Whole`.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from recometer import stats
from recometer.arrays import Array, Bool, Float64, Int64
from recometer.comparing.models import Model, Users
from recometer.comparing.rows import PairRow
from recometer.errors import InputError, argument_text, rule_text
from recometer.measuring.compute import Together, computed_for_all
from recometer.metrics.registry import MetricDefinition, rules_of
from recometer.remembered import cached_property
from recometer.results.evaluation import EvaluationRecord
from recometer.results.folds import FoldedRecord
from recometer.results.means import NO_WIDTH, resamples_of
from recometer.stats import Difference, Equivalence, Interval, Power, Runs, TestResult, Tukey
from recometer.stats.comparing import Pairs, decisive_test, equivalence_over_runs
from recometer.stats.grouping import Column, Grouped, group
from recometer.stats.intervals import resampled
from recometer.stats.means import in_units, on_side_of, relative_over_runs
from recometer.stats.runs import over_runs_of, over_values, run_moments
from recometer.stats.tests import TESTS, Test
from recometer.stats.two_groups import equivalence_of_groups, power_of_groups
from recometer.tasks import Ticker, run_tasks

Bounds = tuple[float, float]
Board = tuple[Sequence[float], Sequence[float], Sequence[Interval], Sequence[int]]
"""Means, p-values of the pairs, intervals and numbers of users, in the form that
`recometer.comparing.rows.rank_models` takes."""


@dataclasses.dataclass(frozen=True, eq=False)
class Options:
    """The options of a comparison; see `recometer.compare`."""

    test: Test
    confidence: float
    margin: float | Mapping[str, float] | None
    clusters: Array | None
    seed: int
    threads: int
    paired: bool = True

    def __post_init__(self) -> None:
        if self.margin is not None and not self.alpha < 0.5:
            raise InputError(
                f"{argument_text('confidence', self.confidence)} with {argument_text('margin')} "
                "must be above 0.5: equivalence is tested at the level 1 - confidence. Hint: the "
                "usual value is 0.95."
            )

    @property
    def alpha(self) -> float:
        """Return the significance level."""
        return 1 - self.confidence

    def margin_of(self, metric: str) -> float | None:
        """Return the equivalence margin of a metric."""
        return self.margin.get(metric) if isinstance(self.margin, Mapping) else self.margin


@dataclasses.dataclass(frozen=True, eq=False)
class OnMetric:
    """The models compared on a metric, keyed by name; random orders come last."""

    metric: str
    models: Mapping[str, Model]
    users: Users
    options: Options

    @property
    def definition(self) -> MetricDefinition:
        """Return the definition of the metric."""
        return next(iter(self.models.values())).first.known_metric(self.metric).definition

    @property
    def ranked(self) -> list[str]:
        """Return the names of the models, except random orders."""
        return [name for name, model in self.models.items() if not model.by_chance]


@dataclasses.dataclass(frozen=True, eq=False)
class Paired(OnMetric):
    """The models compared on a metric with a value for each user, namely the mean over runs."""

    columns: Mapping[str, Column]  # the users' values, keyed by model
    bounds: Bounds  # the lowest and the highest value that a user can have with any of the models
    remark: str  # why the bounds are unknown; empty if they are known
    # float64 [n_users], keyed by model; only for unpaired models whose users' weights differ
    weights: Mapping[str, Float64]

    def among(self, chosen: Bool) -> Paired:
        """Return the same models, but with values for only the chosen users."""
        columns = {
            name: Column.of(np.where(chosen, column.values, np.nan))
            for name, column in self.columns.items()
        }
        return dataclasses.replace(self, columns=columns)

    def units(self, name: str) -> Grouped:
        """Return the weighted values of a model's users, or their sums over clusters of users."""
        return in_units(self.columns[name], self.weights.get(name), self.options.clusters)

    def mean(self, name: str) -> tuple[float, Interval]:
        """Return a model's mean and its interval."""
        units, weights = self.units(name), self.weights.get(name)
        confidence = self.options.confidence
        interval = stats.interval(units, bounds=self.bounds, confidence=confidence, weights=weights)
        return units.estimate, interval

    def pair(self, model: str, other: str) -> UserPair:
        """Return two of the models as a pair."""
        models = self.models[model], self.models[other]
        kind = UserPair
        if not self.options.paired:
            kind = GroupPair
        elif max(len(m.runs) for m in models) > 1:
            kind = SeedPair
        elif all(isinstance(m.first, FoldedRecord) for m in models):
            kind = FoldPair
        return kind(self, models, (self.columns[model], self.columns[other]))

    def tukey(self, names: Sequence[str]) -> Tukey:
        """Return the result of Tukey's test on the users with a value from all these models."""
        return stats.tukey(
            np.column_stack([self.columns[name].values for name in names]),
            alpha=self.options.alpha,
            seed=self.options.seed,
            clusters=self.options.clusters,
        )

    def compare(self, pairs: Sequence[tuple[str, str]]) -> tuple[list[PairRow], Board]:
        """Compare pairs of models, then all models on the users with a value from every model.

        If users are not paired, each model's mean is over its own users.
        """
        options, ranked, everyone = self.options, self.ranked, self
        if options.paired and not all(self.columns[name].complete for name in ranked):
            unknown = [np.isnan(self.columns[name].values) for name in ranked]
            everyone = self.among(~np.logical_or.reduce(unknown))
        jobs: list[Callable[[], Any]] = [self.pair(*pair).row for pair in pairs]
        jobs += [functools.partial(everyone.mean, name) for name in self.models]
        results = run_tasks(lambda job, _: job(), jobs, threads=options.threads, label="Comparing")
        rows, (means, intervals) = results[: len(pairs)], zip(*results[len(pairs) :], strict=True)
        n = [everyone.columns[name].n for name in ranked]
        # A pair is not tested again if it was compared on the same users.
        tested = {
            frozenset((row.model, row.other)): row.p_value
            for row in rows
            if row.n == n[0] or not options.paired
        }
        every_pair = list(itertools.combinations(ranked, 2))
        untested = [pair for pair in every_pair if frozenset(pair) not in tested]
        untested_p = run_tasks(
            lambda pair, _: everyone.pair(*pair).p(),
            untested,
            threads=options.threads,
            label="Comparing",
        )
        tested |= zip(map(frozenset, untested), untested_p, strict=True)
        p_values = [tested[frozenset(pair)] for pair in every_pair]
        n += n[:1] * (len(means) - len(n))
        return rows, (means, p_values, intervals[: len(ranked)], n)


@dataclasses.dataclass(frozen=True, eq=False)
class UserPair:
    """Two models compared on a metric with a value per user; differences are first minus second."""

    of: Paired
    models: tuple[Model, Model]
    columns: tuple[Column, Column]
    averages: ClassVar[set[str]] = {"users", "usual"}  # supported values of the rule `average`
    on_power: ClassVar[str] = ""
    in_steps: ClassVar[bool] = True  # whether p of the randomisation test may change in steps

    @property
    def options(self) -> Options:
        """Return the options of the comparison."""
        return self.of.options

    @cached_property
    def values(self) -> Float64:
        """Return the users' differences, with NaN for users who lack either value."""
        return self.columns[0].values - self.columns[1].values

    def difference(self) -> Difference:
        """Return the difference of the means over users, with its interval, p and effects."""
        return stats.compare(
            *self.columns,
            bounds=self.of.bounds,
            test=self.options.test,
            confidence=self.options.confidence,
            clusters=self.options.clusters,
        )

    def p(self) -> float:
        """Return p without computing the rest of the comparison."""
        pairs = Pairs.of(*self.columns, self.options.clusters)
        return decisive_test(pairs, self.of.bounds, self.options.test).p_value

    def equivalence(self, margin: float) -> Equivalence:
        """Return the result of the two one-sided tests."""
        return stats.equivalence(
            self.values,
            margin,
            alpha=self.options.alpha,
            test=TESTS[self.options.test].interval,
            bounds=self.of.bounds,
            clusters=self.options.clusters,
        )

    def over_runs(self, row: PairRow) -> PairRow:
        """Return the row with the variance between runs added, or unchanged for single runs."""
        return row

    def power(self, difference: float | None, wanted: float, alpha: float | None) -> Power:
        """Return the power of a comparison on these users; see `Comparison.power`."""
        options = self.options
        planned = self.planned(difference, wanted, options.alpha if alpha is None else alpha)
        clusters = "" if options.clusters is None else "These numbers count clusters, not users."
        notes = planned.note, self.on_power, clusters
        return dataclasses.replace(planned, note=" ".join(filter(None, notes)))

    def planned(self, difference: float | None, wanted: float, alpha: float) -> Power:
        """Return the power, without notes on the kind of pair."""
        return stats.power(
            Pairs.of(*self.columns, self.options.clusters).units,
            difference,
            wanted=wanted,
            alpha=alpha,
            unit=None if self.options.test == "randomisation" and self.in_steps else 0.0,
        )

    def row(self) -> PairRow:
        """Return the pair's row in the comparison."""
        difference, metric = self.difference(), self.of.metric
        higher, (low, high) = self.of.definition.higher_is_better, self.of.bounds
        if not higher:
            difference = difference.for_lower_values()
        row = PairRow(
            **vars(difference),
            metric=metric,
            model=self.models[0].name,
            other=self.models[1].name,
            higher_is_better=higher,
            largest_difference=float(high - low),
        )
        row, margin = self.over_runs(row), self.options.margin_of(metric)
        if margin is not None:
            row = dataclasses.replace(row, equivalence=self.equivalence(margin))
        return dataclasses.replace(row, notes=self._notes(row))

    def _notes(self, row: PairRow) -> tuple[str, ...]:
        notes = [self.of.remark, row.interval.note, row.test.note, row.relative_interval.note]
        averages = {
            rules_of(model.first.known_metric(row.metric), model.first.protocol).average
            for model in self.models
        }
        if unequal := averages - self.averages:
            notes.append(
                f"Under the rule {rule_text('average', min(unequal))}, users have different "
                "weights in the mean; a comparison counts every user once."
            )
        if row.runs is not None:
            notes.append(row.runs.note)
        return tuple(dict.fromkeys(filter(None, notes)))


class SeedPair(UserPair):
    """Two models, at least one with several seeds; both users and seeds are treated as samples."""

    on_power = "The variance between seeds is left out, because more users do not reduce it."
    in_steps = False

    @property
    def tables(self) -> list[Float64]:
        """Return the users' values in each run of both models: float64 [n_users, n_runs]."""
        return [np.column_stack(self.of.users.runs(model, self.of.metric)) for model in self.models]

    def p(self) -> float:
        """Return p, with both users and seeds treated as samples."""
        return stats.over_runs(*self.tables, confidence=self.options.confidence).p_value

    def equivalence(self, margin: float) -> Equivalence:
        """Return the two one-sided tests, with both users and seeds treated as samples."""
        first, second = self.tables
        return equivalence_over_runs(first, second, margin, alpha=self.options.alpha)

    def over_runs(self, row: PairRow) -> PairRow:
        """Return the row with p and intervals that treat both users and seeds as samples."""
        moments = run_moments(*self.tables)
        runs = over_runs_of(moments, confidence=self.options.confidence)
        finite = bool(np.isfinite(runs.p_value))
        test = dataclasses.replace(
            row.test,
            p_value=runs.p_value,
            test="random effects",
            method="student" if finite else "none",
            smallest_p=0.0,
            note="" if finite else runs.note,
        )
        relative = row.relative_interval
        if np.isfinite(row.relative):
            ratios = group(*(column.values for column in self.columns))
            relative = relative_over_runs(ratios, moments, runs.interval)
        return dataclasses.replace(
            row, interval=runs.interval, relative_interval=relative, test=test, unit=0.0, runs=runs
        )


class GroupPair(UserPair):
    """Two models with different users, such as the groups of an A/B test."""

    averages: ClassVar[set[str]] = {"users", "usual", "relevant", "pooled"}
    on_power = "The numbers of users are totals for both groups in their present ratio."

    @cached_property
    def units(self) -> list[Grouped]:
        """Return the weighted values of both groups; see `Paired.units`."""
        return [self.of.units(model.name) for model in self.models]

    def difference(self) -> Difference:
        """Return the difference of the means, with the result of Welch's test."""
        first, second = self.units
        difference = stats.compare_groups(
            first, second, bounds=self.of.bounds, confidence=self.options.confidence
        )
        return dataclasses.replace(difference, n=sum(column.n for column in self.columns))

    def p(self) -> float:
        """Return p of Welch's test."""
        return self.difference().test.p_value

    def equivalence(self, margin: float) -> Equivalence:
        """Return the two one-sided tests, based on Welch's statistic."""
        first, second = self.units
        return equivalence_of_groups(first, second, margin, self.options.alpha)

    def planned(self, difference: float | None, wanted: float, alpha: float) -> Power:
        """Return the power; its numbers of users are totals over both groups."""
        first, second = self.units
        return power_of_groups(first, second, difference, wanted, alpha)


class FoldPair(UserPair):
    """Two models that were evaluated in folds."""

    def over_runs(self, row: PairRow) -> PairRow:
        """Add the variance between folds to the row, if both models have equally many folds."""
        folds = [model.first.folds for model in self.models]  # type: ignore[attr-defined]
        if len(folds[0]) != len(folds[1]):
            return row
        differences = []
        for evaluations in zip(*folds, strict=True):
            models = [
                dataclasses.replace(model, runs=(fold,))
                for model, fold in zip(self.models, evaluations, strict=True)
            ]
            users = Users.of(models)
            first, second = (users.values(model, row.metric) for model in models)
            differences.append(first - second)
        if any(np.count_nonzero(~np.isnan(column)) < 2 for column in differences):
            return row
        runs = stats.over_folds(differences, confidence=self.options.confidence)
        return dataclasses.replace(row, runs=runs)


def resolve(
    metric: str, models: Sequence[Model], users: Users, options: Options, *, code: bool = False
) -> Paired:
    """Return the models, ready to be compared on a metric with a value for each user.

    With `code`, a column with few distinct values is stored as codes, which saves time if it is
    compared several times.
    """

    def read(model: Model, ticker: Ticker) -> Column:
        column = Column.of(users.values(model, metric))
        return column.coded() if code and options.paired else column

    by_name = {model.name: model for model in models}
    columns = run_tasks(read, models, threads=options.threads, progress=False)
    weights = {}
    for model in [] if options.paired else models:
        (column,) = users.spread(model, [model.first.counted_weights(metric)], np.nan)
        if len(np.unique(column[~np.isnan(column)])) > 1:
            weights[model.name] = column
    bounds, remark = _bounds_of(metric, models, columns)
    by_model = dict(zip(by_name, columns, strict=True))
    return Paired(metric, by_name, users, options, by_model, bounds, remark, weights)


def _bounds_of(
    metric: str, models: Sequence[Model], columns: Sequence[Column]
) -> tuple[Bounds, str]:
    """Return the lowest and the highest value that a user can have with any of the models.

    If a value is outside the range, the range is treated as unknown, and the remark says so.
    """
    ends = [run.bounds(metric) for m in models if m.has_metric(metric) for run in m.runs]
    low, high = min(low for low, _ in ends), max(high for _, high in ends)
    rounding = 1e-9 * (high - low) if np.isfinite(high - low) else 0.0
    for column in columns:
        for value in (min(column.lowest, low), max(column.highest, high)):
            if value < low - rounding or value > high + rounding:
                note = f"The value {value:g} lies outside the range from {low:g} to {high:g}"
                return (-np.inf, np.inf), f"{note}, so no interval uses that range."
    return (low, high), ""


Pair = tuple[Model, Model]

OTHER_FOLDS = (
    "There is one value per fold, but the models have different numbers of folds, so nothing is "
    "tested."
)
FOLDS = (
    "Computed from the differences in {} folds, by Student's t. Models from different folds are "
    "trained on overlapping data, so no interval over the folds includes the error that they share."
)
NO_CLUSTERS = "Clusters are not accounted for: these intervals treat every user as independent."
SAVED = (
    "The lists or rows are not in the saved file, so the correlation of the two values is "
    "unknown: the interval is the widest that their own intervals allow."
)


@dataclasses.dataclass(frozen=True, eq=False)
class WholeValues:
    """The values of two models on one metric, with one value per run, computed from n users."""

    first: Float64
    second: Float64
    n: int
    error: float  # the standard error over users of the difference between the mean values
    ratio_error: float  # the standard error over users of the ratio of the mean values
    # For each model, the part of the variance between its runs that comes from the sample of users:
    # other users would change the values of the runs by different amounts.
    interactions: tuple[float, float] = (0.0, 0.0)
    note: str = ""


@dataclasses.dataclass(frozen=True, eq=False)
class Whole(OnMetric):
    """The models compared on a metric with one value for all users."""

    names: tuple[str, ...]  # all metrics that are resampled together
    # Their values for each pair of models that was compared.
    values_by_pair: dict[tuple[str, str], Mapping[str, WholeValues]]

    def compare(self, pairs: Sequence[tuple[str, str]]) -> tuple[list[PairRow], Board]:
        """Compare the given pairs of models, and then all others, which the leaderboard needs.

        The mean of a random order is NaN.
        """
        options, ranked = self.options, self.ranked
        more_pairs = [
            pair for pair in itertools.combinations(ranked, 2) if not {pair, pair[::-1]} & {*pairs}
        ]
        every = run_tasks(lambda pair, _: self.row(*pair), [*pairs, *more_pairs], label="Comparing")
        p_values, means = {}, dict.fromkeys(self.models, np.nan)
        for row in every:
            p_values[frozenset((row.model, row.other))] = row.p_value
            means |= {row.model: row.mean, row.other: row.mean_other}
        of_pairs = [p_values[frozenset(pair)] for pair in itertools.combinations(ranked, 2)]
        n = max(row.n for row in every)
        unknown = Interval.unknown(options.confidence, n, "See the differences.")
        board = [*means.values()], of_pairs, [unknown] * len(ranked), [n] * len(means)
        return every[: len(pairs)], board

    def row(self, model: str, other: str) -> PairRow:
        """Return the pair's row in the comparison.

        If all evaluations still have their lists, the same users are drawn with replacement for
        both models and all of their seeds. The variance between seeds is added to the variance
        between users. For folds, the test and the interval use the difference in each fold.
        """
        pair, confidence = (self.models[model], self.models[other]), self.options.confidence
        runs = [run for m in pair for run in m.runs]
        folds = [run.folds for run in runs if isinstance(run, FoldedRecord)]
        if folds and (len(runs) > 2 or len(folds) < 2 or len(folds[0]) != len(folds[1])):
            means = [float(np.mean([run.together[self.metric] for run in m.runs])) for m in pair]
            unknown = Interval.unknown(confidence, 0, OTHER_FOLDS)
            test = TestResult(np.nan, "bootstrap", "none", 0, 0, 0.0, OTHER_FOLDS)
            return self._row(pair, means, (unknown, unknown), test)
        if folds:
            return self._of_folds(pair, folds)
        if (model, other) not in self.values_by_pair:
            self.values_by_pair[model, other] = self._values(pair, runs)
        return self._of_values(pair, self.values_by_pair[model, other][self.metric])

    def _values(self, pair: Pair, runs: Sequence[EvaluationRecord]) -> Mapping[str, WholeValues]:
        """Return the values and their standard errors, using whatever data the runs still have."""
        options = self.options
        if options.paired and all(run.read_together(self.metric) is not None for run in runs):
            return _resampled_values(self.names, pair, self.users, options)
        by_metric = {name: _saved_values(name, pair, options) for name in self.names}
        if options.clusters is None or all(run.clusters is not None for run in runs):
            return by_metric
        return {
            name: dataclasses.replace(values, note=f"{values.note} {NO_CLUSTERS}")
            for name, values in by_metric.items()
        }

    def _of_folds(self, pair: Pair, folds: Sequence[Sequence[Any]]) -> PairRow:
        """Compare models fold by fold; `folds` contains the evaluations of both models."""
        first, second = (np.array([fold.together[self.metric] for fold in each]) for each in folds)
        note = FOLDS.format(len(first))
        difference = stats.compare(first, second, test="t", confidence=self.options.confidence)
        test = dataclasses.replace(difference.test, test="folds", note=note)
        ends = dataclasses.replace(difference.interval, note=note), difference.relative_interval
        return self._row(pair, (difference.mean, difference.mean_other), ends, test)

    def _of_values(self, pair: Pair, values: WholeValues) -> PairRow:
        """Compare two models, given their values and the standard error over users.

        If a model has several seeds, both users and seeds are treated as samples.
        """
        single = len(values.first) == len(values.second) == 1
        difference, ratio = (
            over_values(
                values.first,
                values.second,
                error,
                values.n,
                interactions=values.interactions,
                relative=relative,
                confidence=self.options.confidence,
            )
            for error, relative in ((values.error, False), (values.ratio_error, True))
        )
        ends, p, n = [difference.interval, ratio.interval], difference.p_value, values.n
        if single:
            test, method = "bootstrap", "normal"
            note = NO_WIDTH if values.error == 0 else values.note
            ends = [
                dataclasses.replace(
                    end, note=note, method=end.method.replace("random effects", test)
                )
                for end in ends
            ]
        else:
            test, method = "random effects", "student"
            note = " ".join(dict.fromkeys(filter(None, (values.note, difference.note))))
        result = TestResult(p, test, method if np.isfinite(p) else "none", n, n, 0.0, note)
        means = float(values.first.mean()), float(values.second.mean())
        return self._row(pair, means, ends, result, None if single else difference)

    def _row(
        self,
        pair: Pair,
        means: Sequence[float],
        intervals: Sequence[Interval],
        test: TestResult,
        runs: Runs | None = None,
    ) -> PairRow:
        return PairRow(
            metric=self.metric,
            model=pair[0].name,
            other=pair[1].name,
            higher_is_better=self.definition.higher_is_better,
            for_all_users=True,
            n=test.n,
            mean=means[0],
            mean_other=means[1],
            difference=means[0] - means[1],
            interval=intervals[0],
            relative=means[0] / means[1] - 1 if means[1] > 0 else np.nan,
            relative_interval=on_side_of(intervals[1], intervals[0]),
            test=test,
            runs=runs,
            notes=(test.note,) if test.note else (),
        )


def resolve_whole(
    metrics: Sequence[str], models: Sequence[Model], users: Users, options: Options
) -> dict[str, Whole]:
    """Return the models, ready to be compared on metrics with one value for all users."""
    by_name, by_metric = {model.name: model for model in models}, {}
    for of_lists in (True, False):  # the metrics of each group are resampled together
        names = tuple(name for name in metrics if (name in models[0].first.over_users) == of_lists)
        values_by_pair: dict[tuple[str, str], Mapping[str, WholeValues]] = {}
        for name in names:
            by_metric[name] = Whole(name, by_name, users, options, names, values_by_pair)
    return by_metric


def _resampled_values(
    metrics: Sequence[str], pair: Pair, users: Users, options: Options
) -> dict[str, WholeValues]:
    """Return the values of runs that still have their lists; all runs use the same resamples."""
    runs = [run for model in pair for run in model.runs]
    data, both = _common(metrics[0], pair, users)
    n, confidence, clusters = len(both), options.confidence, None
    if options.clusters is not None:
        clusters = np.unique(options.clusters[both], return_inverse=True)[1]
    parsed, split = [runs[0].known_metric(name) for name in metrics], len(pair[0].runs)

    computed = [
        computed_for_all(own, parsed, run.protocol) for own, run in zip(data, runs, strict=True)
    ]

    def numbers(weights: Int64 | None) -> dict[str, float]:
        """Return each run's value, both means, their difference and their ratio, keyed by name."""
        of_runs = [of_run(weights) for of_run in computed]
        by_metric: dict[str, float] = {}
        for name in metrics:
            run_values = [values[name] for values in of_runs]
            means = [float(np.mean(part)) for part in (run_values[:split], run_values[split:])]
            numbers = (*run_values, *means, means[0] - means[1])
            ratio = means[0] / means[1] if means[1] > 0 else np.nan
            by_metric |= {f"{name} {number}": own for number, own in enumerate((*numbers, ratio))}
        return by_metric

    centre = numbers(None)
    settings = confidence, options.seed, resamples_of(data[0].size), clusters
    ends = resampled(numbers, centre, n, *settings)
    n_units, unit = (n, "users") if clusters is None else (len(np.unique(clusters)), "clusters")
    note = "" if n_units > 1 else f"Fewer than two {unit}: there is nothing to resample."
    by_metric = {}
    for name in metrics:
        keys = [f"{name} {number}" for number in range(len(runs) + 4)]
        values = np.array([centre[key] for key in keys[: len(runs)]])
        errors = [_error((high - low) / 2, confidence) for low, high in map(ends.__getitem__, keys)]
        own, (first, second, difference, ratio) = errors[: len(runs)], errors[len(runs) :]
        of_each = _interaction(own[:split], first), _interaction(own[split:], second)
        by_metric[name] = WholeValues(
            values[:split], values[split:], n, difference, ratio, of_each, note
        )
    return by_metric


def _saved_values(metric: str, pair: Pair, options: Options) -> WholeValues:
    """Return the values of runs, with standard errors derived from their intervals.

    The standard error of a sum is at most the sum of the standard errors. If the users are
    different, the variances add up instead.
    """
    values, errors, confidence = [], [], options.confidence
    for model in pair:
        own = [run.together[metric] for run in model.runs]
        ends = [run.interval(metric) for run in model.runs]
        # Take the longer arm of an interval, since the shorter one may be cut off.
        arms = [max(end[1] - value, value - end[0]) for value, end in zip(own, ends, strict=True)]
        values.append(np.array(own))
        errors.append(_error(float(np.mean(arms)), confidence))
    first, second = (float(column.mean()) for column in values)

    def add(parts: Sequence[float]) -> float:
        return sum(parts) if options.paired else math.hypot(*parts)

    error = add(errors)
    ratio = add([errors[0], errors[1] * first / second]) / second if second > 0 else np.nan
    note = SAVED if options.paired else ""
    note = note if math.isfinite(error) else "An evaluation has no interval for this metric."
    sizes = [run.n_users for model in pair for run in model.runs]
    n = min(sizes) if options.paired else sum(sizes)
    return WholeValues(values[0], values[1], n, error, ratio, note=note)


def _error(half: float, confidence: float) -> float:
    """Return the standard error from which a normal interval, value ± half, was computed."""
    from scipy.special import ndtri

    return half / float(ndtri((1 + confidence) / 2))


def _interaction(errors: Sequence[float], of_mean: float) -> float:
    """Return the part of the variance between runs that comes from the sample of users.

    `errors` are the standard errors of the runs, and `of_mean` is the standard error of their mean.
    A single run has the variance u + v, and the mean of R runs has u + v / R. This function returns
    v.
    """
    r = len(errors)
    if r < 2:
        return 0.0
    return max(0.0, (float(np.mean(np.square(errors))) - of_mean**2) * r / (r - 1))


def _common(metric: str, pair: Pair, users: Users) -> tuple[list[Together], Int64]:
    """Return each run's data on the users that all runs share, in one order, and these users."""
    own: list[tuple[EvaluationRecord, Int64]] = []
    for model in pair:
        for run, place in zip(model.runs, users.places[model.name], strict=True):
            own.append((run, np.arange(users.n) if place is None else place))
    counts = np.zeros(users.n, np.int64)
    for _, place in own:
        counts[place] += 1
    common = np.flatnonzero(counts == len(own))
    data = []
    for run, place in own:
        read = run.read_together(metric)
        assert read is not None
        positions = np.full(users.n, -1)
        positions[place] = np.arange(len(place))
        data.append(read.users(positions[common]))
    return data, common

"""Compare models on metrics with one value for all users, such as coverage."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from recometer import stats
from recometer.arrays import Float64, Int64
from recometer.comparing.kinds import Board, OnMetric, Options
from recometer.comparing.models import Model, Users
from recometer.comparing.rows import PairRow
from recometer.measuring.compute import Together, computed_for_all
from recometer.results.evaluation import EvaluationRecord
from recometer.results.folds import FoldedRecord
from recometer.results.means import NO_WIDTH, resamples_of
from recometer.stats import Interval, Runs, TestResult
from recometer.stats.intervals import resampled
from recometer.stats.means import on_side_of
from recometer.stats.runs import over_values
from recometer.tasks import run_tasks

Pair = tuple[Model, Model]

OTHER_FOLDS = "One value per fold, but the models have not as many folds: nothing is tested."
FOLDS = (
    "From the differences of {} folds, by Student's t. Models of different folds are trained on "
    "overlapping data; no interval over the folds shows the error that they share."
)
NO_CLUSTERS = "Clusters are not accounted for: these intervals are over single users."
SAVED = (
    "The lists or rows were not saved, so how the two values go together is not known: the "
    "interval is the widest that their own intervals allow."
)


@dataclasses.dataclass(frozen=True, eq=False)
class WholeValues:
    """The values of two models on one metric: float64 [n_runs] each, for n users.

    Attributes
    ----------
    error, ratio_error
        The standard errors over users: of the difference between the mean values, and of their
        ratio.
    interactions
        For each model, the variance between its runs that comes from the users, because other users
        would change the values of the runs by different amounts.
    """

    first: Float64
    second: Float64
    n: int
    error: float
    ratio_error: float
    interactions: tuple[float, float] = (0.0, 0.0)
    note: str = ""


@dataclasses.dataclass(frozen=True, eq=False)
class Whole(OnMetric):
    """The models on a metric with one value for all users.

    `names` are all metrics that are resampled together, and `known` caches their values for each
    pair of models.
    """

    names: tuple[str, ...]
    known: dict[tuple[str, str], Mapping[str, WholeValues]]

    def compare(self, pairs: Sequence[tuple[str, str]]) -> tuple[list[PairRow], Board]:
        """Compare pairs of models, and then all pairs that are not among them.

        The pairs are compared one after the other, because the first one caches the values of all
        metrics. Random orders have no value for such a metric.
        """
        options, ranked = self.options, self.ranked
        others = [
            pair for pair in itertools.combinations(ranked, 2) if not {pair, pair[::-1]} & {*pairs}
        ]
        every = run_tasks(
            lambda pair, _: self.row(*pair),
            [*pairs, *others],
            progress=options.progress,
            label="Comparing",
        )
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
        """Return the row of the comparison.

        If all evaluations still have their lists, the same users are drawn with replacement for
        both models and all of their seeds. The interval and the test use the standard deviation of
        the resampled differences (`recometer.stats.intervals.resampled`). For saved evaluations,
        only the interval of each value is known; the standard error of the difference is at most
        the sum of both standard errors, and this sum is used. The variance between seeds is added
        to the variance between users (`recometer.stats.runs.over_values`). For folds, the test and
        the interval use the difference in each fold.
        """
        pair, confidence = (self.models[model], self.models[other]), self.options.confidence
        runs = [run for each in pair for run in each.runs]
        folds = [run.folds for run in runs if isinstance(run, FoldedRecord)]
        if folds and (len(runs) > 2 or len(folds) < 2 or len(folds[0]) != len(folds[1])):
            means = [float(np.mean([run.together[self.metric] for run in m.runs])) for m in pair]
            unknown = Interval.unknown(confidence, 0, OTHER_FOLDS)
            test = TestResult(np.nan, "bootstrap", "none", 0, 0, 0.0, OTHER_FOLDS)
            return self._row(pair, means, (unknown, unknown), test)
        if folds:
            return self._of_folds(pair, folds)
        if (model, other) not in self.known:
            self.known[model, other] = self._values(pair, runs)
        values = self.known[model, other][self.metric]
        return self._of_seeds(pair, values) if len(runs) > 2 else self._of_users(pair, values)

    def _values(self, pair: Pair, runs: Sequence[EvaluationRecord]) -> Mapping[str, WholeValues]:
        """Return the values and their standard errors, from the data that the runs still have."""
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
        """Compare models fold by fold; `folds` has the evaluations of both models."""
        first, second = (np.array([fold.together[self.metric] for fold in one]) for one in folds)
        note = FOLDS.format(len(first))
        difference = stats.compare(first, second, test="t", confidence=self.options.confidence)
        test = dataclasses.replace(difference.test, test="folds", note=note)
        ends = dataclasses.replace(difference.interval, note=note), difference.relative_interval
        return self._row(pair, (difference.mean, difference.mean_other), ends, test)

    def _of_users(self, pair: Pair, values: WholeValues) -> PairRow:
        """Compare two models by their values and the standard error over users."""
        from scipy.special import ndtr, ndtri

        confidence, error, n = self.options.confidence, values.error, values.n
        means = float(values.first[0]), float(values.second[0])
        note = NO_WIDTH if error == 0 else values.note
        half = float(ndtri((1 + confidence) / 2))
        ends = []
        for centre, of in zip(_differences(*means), (error, values.ratio_error), strict=True):
            low, high = centre - half * of, centre + half * of
            known = np.isfinite([low, high]).all()
            unknown = Interval.unknown(confidence, n, note)
            ends.append(Interval(low, high, "bootstrap", confidence, n, note) if known else unknown)
        p, away = np.nan, means[0] - means[1]
        if np.isfinite(error):
            p = 2 * float(ndtr(-abs(away) / error)) if error > 0 else float(away == 0)
        test = TestResult(p, "bootstrap", "normal" if np.isfinite(p) else "none", n, n, 0.0, note)
        return self._row(pair, means, (ends[0], ends[1]), test)

    def _of_seeds(self, pair: Pair, values: WholeValues) -> PairRow:
        """Compare models with several seeds, treating both users and seeds as samples."""
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
        p, n = difference.p_value, values.n
        note = " ".join(dict.fromkeys(filter(None, (values.note, difference.note))))
        method = "student" if np.isfinite(p) else "none"
        test = TestResult(p, "random effects", method, n, n, 0.0, note)
        means = float(values.first.mean()), float(values.second.mean())
        return self._row(pair, means, (difference.interval, ratio.interval), test, difference)

    def _row(
        self,
        pair: Pair,
        means: Sequence[float],
        intervals: tuple[Interval, Interval],
        test: TestResult,
        runs: Runs | None = None,
    ) -> PairRow:
        difference, relative = _differences(*means)
        return PairRow(
            metric=self.metric,
            model=pair[0].name,
            other=pair[1].name,
            higher_is_better=self.definition.higher_is_better,
            for_all_users=True,
            n=test.n,
            mean=means[0],
            mean_other=means[1],
            difference=difference,
            interval=intervals[0],
            relative=relative,
            relative_interval=on_side_of(intervals[1], intervals[0]),
            test=test,
            runs=runs,
            notes=(test.note,) if test.note else (),
        )


def resolve_whole(
    metrics: Sequence[str], models: Sequence[Model], users: Users, options: Options
) -> dict[str, Whole]:
    """Return the models on metrics with one value for all users."""
    by_name, by_metric = {model.name: model for model in models}, {}
    for of_lists in (True, False):  # the metrics of each group are resampled together
        names = tuple(name for name in metrics if (name in models[0].first.over_users) == of_lists)
        known: dict[tuple[str, str], Mapping[str, WholeValues]] = {}
        for name in names:
            by_metric[name] = Whole(name, by_name, users, options, names, known)
    return by_metric


def _resampled_values(
    metrics: Sequence[str], pair: Pair, users: Users, options: Options
) -> dict[str, WholeValues]:
    """Return the values of runs that still have their lists, with the same resamples for all."""
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
            each = [values[name] for values in of_runs]
            means = [float(np.mean(part)) for part in (each[:split], each[split:])]
            numbers = (*each, *means, means[0] - means[1])
            ratio = means[0] / means[1] if means[1] > 0 else np.nan
            by_metric |= {f"{name} {at}": own for at, own in enumerate((*numbers, ratio))}
        return by_metric

    centre = numbers(None)
    how = confidence, options.seed, resamples_of(data[0].size), clusters
    ends = resampled(numbers, centre, n, *how)
    n_units, what = (n, "users") if clusters is None else (len(np.unique(clusters)), "clusters")
    note = "" if n_units > 1 else f"Fewer than two {what}: there is nothing to resample."
    by_metric = {}
    for name in metrics:
        keys = [f"{name} {at}" for at in range(len(runs) + 4)]
        values = np.array([centre[key] for key in keys[: len(runs)]])
        errors = [_error((high - low) / 2, confidence) for low, high in map(ends.__getitem__, keys)]
        own, (first, second, difference, ratio) = errors[: len(runs)], errors[len(runs) :]
        of_each = _interaction(own[:split], first), _interaction(own[split:], second)
        by_metric[name] = WholeValues(
            values[:split], values[split:], n, difference, ratio, of_each, note
        )
    return by_metric


def _saved_values(metric: str, pair: Pair, options: Options) -> WholeValues:
    """Return the values of runs for which only the intervals are known.

    The standard error of a sum is at most the sum of the standard errors. If the users are
    different, the variances add up instead.
    """
    values, errors, confidence = [], [], options.confidence
    for model in pair:
        ends = [_known(run, metric) for run in model.runs]
        values.append(np.array([value for value, _ in ends]))
        errors.append(_error(float(np.mean([half for _, half in ends])), confidence))
    first, second = (float(one.mean()) for one in values)

    def add(one: Sequence[float]) -> float:
        return sum(one) if options.paired else math.hypot(*one)

    error = add(errors)
    ratio = add([errors[0], errors[1] * first / second]) / second if second > 0 else np.nan
    note = SAVED if options.paired else ""
    note = note if math.isfinite(error) else "An evaluation has no interval of this metric."
    sizes = [run.n_users for model in pair for run in model.runs]
    n = min(sizes) if options.paired else sum(sizes)
    return WholeValues(values[0], values[1], n, error, ratio, note=note)


def _known(run: EvaluationRecord, metric: str) -> tuple[float, float]:
    """Return a value and the longer arm of its interval, since the shorter arm may be cut off."""
    value, (low, high) = run.together[metric], run.interval(metric)
    return value, max(high - value, value - low)


def _error(half: float, confidence: float) -> float:
    """Return the standard error behind an interval value ± half."""
    from scipy.special import ndtri

    return half / float(ndtri((1 + confidence) / 2))


def _interaction(errors: Sequence[float], of_mean: float) -> float:
    """Return the variance between runs that is due to the drawn users.

    `errors` are the standard errors of the runs, and `of_mean` is that of their mean. A single run
    has the variance u + v, and the mean of R runs has u + v / R. This function returns v.
    """
    r = len(errors)
    if r < 2:
        return 0.0
    return max(0.0, (float(np.mean(np.square(errors))) - of_mean**2) * r / (r - 1))


def _common(metric: str, pair: Pair, users: Users) -> tuple[list[Together], Int64]:
    """Return each run's data for the users in all runs, in the same order, and these users."""
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
        at = np.full(users.n, -1)
        at[place] = np.arange(len(place))
        data.append(read.users(at[common]))
    return data, common


def _differences(first: float, second: float) -> tuple[float, float]:
    """Return the difference and the relative difference."""
    return first - second, first / second - 1 if second > 0 else np.nan

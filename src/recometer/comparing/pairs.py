"""Two models by one metric that every user has a value for."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet

import numpy as np

from recometer import stats
from recometer.arrays import Array, Float64
from recometer.comparing.models import Model, Users
from recometer.comparing.rows import PairRow
from recometer.errors import InputError
from recometer.metrics.registry import rules_of
from recometer.results.folds import FoldedRecord
from recometer.stats import Difference, Equivalence, Interval, Runs, TestResult
from recometer.stats.comparing import IntervalKind
from recometer.stats.grouping import Column, group
from recometer.stats.relative import relative_over_runs
from recometer.stats.runs import run_moments
from recometer.stats.tests import TESTS, Test
from recometer.stats.two_one_sided import equivalence_over_runs

Pair = tuple[Model, Model]


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


def compare_by(metric: str, pairs: Sequence[Pair], users: Users, options: Options) -> list[PairRow]:
    """Compare pairs of models by a metric with a value for each user."""
    models = {model.name: model for pair in pairs for model in pair}
    values = {name: users.values(model, metric) for name, model in models.items()}
    bounds, note = bounds_of(metric, list(models.values()), values.values())
    if options.interval == "gaffke" and not np.isfinite(bounds).all():
        raise InputError(
            f"interval='gaffke' needs a range, and {metric} has none. {note} "
            "Hint: interval='bca', or metrics= without it."
        )
    columns = {name: Column.of(one) for name, one in values.items()}
    if len(pairs) > 1:
        columns = {name: one.coded() for name, one in columns.items()}
    found = compare_columns(
        [(columns[one.name], columns[other.name]) for one, other in pairs], bounds, options
    )
    rows = [
        _row(metric, pair, difference, values, bounds, users, options)
        for pair, difference in zip(pairs, found, strict=True)
    ]
    if note:
        rows = [dataclasses.replace(row, notes=(note, *row.notes)) for row in rows]
    return rows


def compare_columns(
    pairs: Sequence[tuple[Float64 | Column, Float64 | Column]],
    bounds: tuple[float, float],
    options: Options,
) -> list[Difference]:
    """Compare pairs of columns of users' values."""
    if options.clusters is None:
        return stats.compare_all(
            pairs,
            bounds=[bounds] * len(pairs),
            test=options.test,
            interval=options.interval,
            confidence=options.confidence,
            threads=options.threads,
            progress=options.progress,
        )
    return [
        stats.compare(
            one,
            other,
            bounds=bounds,
            test=options.test,
            interval=options.interval,
            confidence=options.confidence,
            clusters=options.clusters,
        )
        for one, other in pairs
    ]


def bounds_of(
    metric: str, models: Sequence[Model], columns: Iterable[Float64]
) -> tuple[tuple[float, float], str]:
    """Return the lowest and the highest value that a user can have with any of the models.

    Where a value lies outside, nothing is known of the range, which a note then says.
    """
    each = [run.bounds(metric) for model in models if model.has(metric) for run in model.runs]
    low, high = min(low for low, _ in each), max(high for _, high in each)
    ends = (
        value
        for column in columns
        for value in (np.fmin.reduce(column, initial=low), np.fmax.reduce(column, initial=high))
    )
    return bounds_for((low, high), ends)


def bounds_for(
    bounds: tuple[float, float], values: Iterable[float]
) -> tuple[tuple[float, float], str]:
    """Return bounds; infinite ones and a note if one of the values lies outside."""
    low, high = bounds
    rounding = 1e-9 * (high - low) if np.isfinite(high - low) else 0.0
    for value in values:
        if value < low - rounding or value > high + rounding:
            note = f"The value {value:g} lies outside the range from {low:g} to {high:g}"
            return (-np.inf, np.inf), f"{note}, so that no interval rests on that range."
    return bounds, ""


def _row(
    metric: str,
    pair: Pair,
    found: Difference,
    values: Mapping[str, Float64],
    bounds: tuple[float, float],
    users: Users,
    options: Options,
) -> PairRow:
    model, other = pair
    differences = values[model.name] - values[other.name]
    runs = _runs(metric, pair, users, options)
    test, interval, relative_interval = found.test, found.interval, found.relative_interval
    if runs is not None and max(model.n_seeds, other.n_seeds) > 1:
        test, interval = of_runs(runs, test)
        if np.isfinite(found.relative):
            tables = [np.column_stack(users.runs(one, metric)) for one in pair]
            ratios = group(values[model.name], values[other.name])
            relative_interval = relative_over_runs(ratios, run_moments(*tables), interval)
    row = pair_row(
        metric,
        (model.name, other.name),
        model.first.known_metric(metric).definition.higher_is_better,
        found,
        bounds,
    )
    return dataclasses.replace(
        row,
        interval=interval,
        relative_interval=relative_interval,
        test=test,
        unit=found.unit if test.test == "randomisation" else 0.0,
        equivalence=_equivalence(metric, pair, differences, bounds, users, options),
        runs=runs,
        notes=_notes(metric, pair, (interval, relative_interval), test, runs),
    )


def pair_row(
    metric: str,
    names: tuple[str, str],
    higher_is_better: bool,
    found: Difference,
    bounds: tuple[float, float],
) -> PairRow:
    """Return the row of two models, which has no notes yet.

    `bounds` are those of a single value.
    """
    effects = found.effects
    better, chance = (effects.n_better, effects.n_worse), effects.probability_better
    chances = effects.probability_interval
    if not higher_is_better:
        better, chance = better[::-1], 1 - chance
        chances = dataclasses.replace(chances, low=1 - chances.high, high=1 - chances.low)
    return PairRow(
        metric=metric,
        model=names[0],
        other=names[1],
        higher_is_better=higher_is_better,
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


def _equivalence(
    metric: str,
    pair: Pair,
    differences: Float64,
    bounds: tuple[float, float],
    users: Users,
    options: Options,
) -> Equivalence | None:
    """Return the two one-sided tests, where a margin was given."""
    margin = options.margin_of(metric)
    if margin is None:
        return None
    if max(model.n_seeds for model in pair) > 1:
        one, two = (np.column_stack(users.runs(each, metric)) for each in pair)
        return equivalence_over_runs(one, two, margin, alpha=options.alpha)
    return stats.equivalence(
        differences,
        margin,
        alpha=options.alpha,
        test=TESTS[options.test].interval,
        bounds=bounds,
        clusters=options.clusters,
    )


def _runs(metric: str, pair: Pair, users: Users, options: Options) -> Runs | None:
    """Return the variance between seeds or folds; None where there is one of each."""
    model, other = pair
    if max(model.n_seeds, other.n_seeds) > 1:
        tables = [np.column_stack(users.runs(one, metric)) for one in pair]
        return stats.over_runs(*tables, confidence=options.confidence)
    folds = [one.first for one in pair if isinstance(one.first, FoldedRecord)]
    if len(folds) < 2 or len(folds[0].folds) != len(folds[1].folds):
        return None
    differences = []
    for one, two in zip(folds[0].folds, folds[1].folds, strict=True):
        alone = [Model(model.name, (one,)), Model(other.name, (two,))]
        of_fold = Users.of(alone)
        differences.append(of_fold.values(alone[0], metric) - of_fold.values(alone[1], metric))
    if any(np.count_nonzero(~np.isnan(column)) < 2 for column in differences):
        return None
    return stats.over_folds(differences, confidence=options.confidence)


def of_runs(runs: Runs, test: TestResult) -> tuple[TestResult, Interval]:
    """Return the test and the interval for users and seeds that are both drawn.

    `test` is the one over users alone.
    """
    note = "" if np.isfinite(runs.p_value) else runs.note
    changed = dataclasses.replace(
        test,
        p_value=runs.p_value,
        test="random effects",
        method="student" if np.isfinite(runs.p_value) else "none",
        smallest_p=0.0,
        note=note,
    )
    return changed, runs.interval


def _notes(
    metric: str,
    pair: Pair,
    intervals: tuple[Interval, Interval],
    test: TestResult,
    runs: Runs | None,
) -> tuple[str, ...]:
    average = {rules_of(one.first.known_metric(metric), one.first.protocol).average for one in pair}
    return pair_notes(average, intervals, test, runs)


def pair_notes(
    average: AbstractSet[str],
    intervals: tuple[Interval, Interval],
    test: TestResult,
    runs: Runs | None = None,
) -> tuple[str, ...]:
    """Return what has to be known of a row; `average` are the rules of its two models."""
    notes = [intervals[0].note, test.note, intervals[1].note]
    unequal = average - {"users", "usual"}
    if unequal:
        notes.append(
            f"By the rule average={min(unequal)!r} users weigh differently in the "
            "mean; a comparison counts every user once."
        )
    if runs is not None:
        notes.append(runs.note)
    return tuple(dict.fromkeys(note for note in notes if note))


def check_users(rows: Sequence[PairRow]) -> None:
    """Refuse pairs of models without a user in common by any metric.

    Raises
    ------
    InputError
        If there is such a pair.
    """
    for pair in dict.fromkeys((row.model, row.other) for row in rows):
        own = [row for row in rows if (row.model, row.other) == pair]
        per_user = [row for row in own if not row.for_all_users]
        if per_user and not max(row.n for row in per_user):
            raise InputError(
                f"{pair[0]} and {pair[1]} have no user in common with a value from both. Hint: "
                "were they evaluated on the same users, and do summary() and skipped() say why "
                "values are undefined?"
            )

"""Two models by metrics that have one value for all users, such as coverage."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from recometer import stats
from recometer.comparing.models import Users
from recometer.comparing.pairs import Options
from recometer.comparing.rows import PairRow
from recometer.comparing.whole_values import Pair, WholeValues, resampled_values, saved_values
from recometer.results.folds import FoldedRecord
from recometer.results.means import NO_WIDTH
from recometer.stats import Interval, Runs, TestResult
from recometer.stats.relative import on_side_of
from recometer.stats.runs import over_values

BATCHES = (
    "One value per batch of users: that of all of them does not follow from these, so that nothing "
    "is tested. Hint: evaluate all users at once."
)
OTHER_FOLDS = "One value per fold, but the models have not as many folds: nothing is tested."
FOLDS = (
    "From the differences of {} folds, by Student's t. Models of folds are trained on data that "
    "overlap; no interval over the folds shows what they have in common."
)
NO_CLUSTERS = "Clusters are not accounted for: these intervals are over single users."


def compare_whole(
    metrics: Sequence[str], pairs: Sequence[Pair], users: Users, options: Options
) -> list[PairRow]:
    """Compare pairs of models by metrics that have one value for all users.

    Where all evaluations still have their lists, users are drawn with replacement, the same for
    both models and all of their seeds, and the differences of the resamples have the standard error
    that interval and test rest on (`recometer.stats.intervals.resampled`). For saved
    evaluations, only the interval of each value is known; the standard error of the difference is
    at most the sum of the two. The variance between seeds is added to that between users
    (`recometer.stats.runs.over_values`). For folds, only their differences are known.
    """
    found, confidence = [], options.confidence
    for pair in pairs:
        runs = [run for model in pair for run in model.runs]
        if any(model.batches for model in pair):
            found += [untested(name, pair, BATCHES, confidence) for name in metrics]
        elif any(isinstance(run, FoldedRecord) for run in runs):
            folds = [run.folds for run in runs if isinstance(run, FoldedRecord)]
            found += [of_folds(name, pair, folds, confidence) for name in metrics]
        else:
            found += _by_values(metrics, pair, users, options)
    return found


def _by_values(metrics: Sequence[str], pair: Pair, users: Users, options: Options) -> list[PairRow]:
    """Compare by what the values are computed from, where all runs still have it."""
    confidence = options.confidence
    runs = [run for model in pair for run in model.runs]
    of_lists = [name for name in metrics if name in runs[0].over_users]
    found = []
    for names in (of_lists, [name for name in metrics if name not in of_lists]):
        if names and all(run.read_together(names[0]) is not None for run in runs):
            values = resampled_values(names, pair, users, options)
        else:
            values = {name: saved_values(name, pair, confidence) for name in names}
            if options.clusters is not None and any(run.clusters is None for run in runs):
                values = {name: _without_clusters(one) for name, one in values.items()}
        found += [compare_values(name, pair, values[name], confidence) for name in names]
    return found


def _without_clusters(values: WholeValues) -> WholeValues:
    return dataclasses.replace(values, note=f"{values.note} {NO_CLUSTERS}")


def untested(metric: str, pair: Pair, note: str, confidence: float) -> PairRow:
    """Return the means of two models, and why nothing is tested."""
    means = [float(np.mean([run.together[metric] for run in one.runs])) for one in pair]
    unknown = Interval.unknown(confidence, 0, note)
    test = TestResult(np.nan, "bootstrap", "none", 0, 0, 0.0, note)
    return _row(metric, pair, means, (unknown, unknown), test)


def of_folds(metric: str, pair: Pair, folds: Sequence[Sequence[Any]], confidence: float) -> PairRow:
    """Compare models fold by fold; `folds` are the evaluations of each run that has some."""
    alone = max(len(model.runs) for model in pair) == 1
    if not alone or len(folds) < 2 or len(folds[0]) != len(folds[1]):
        return untested(metric, pair, OTHER_FOLDS, confidence)
    first, second = (np.array([fold.together[metric] for fold in each]) for each in folds)
    note = FOLDS.format(len(first))
    found = stats.compare(first, second, test="t", interval="t", confidence=confidence)
    test = dataclasses.replace(found.test, test="folds", note=note)
    ends = dataclasses.replace(found.interval, note=note), found.relative_interval
    return _row(metric, pair, (found.mean_first, found.mean_second), ends, test)


def compare_values(metric: str, pair: Pair, values: WholeValues, confidence: float) -> PairRow:
    """Compare two models by their values and how far these vary between users."""
    from scipy.special import ndtr, ndtri

    if max(len(model.runs) for model in pair) > 1:
        return _of_seeds(metric, pair, values, confidence)
    means, n = (float(values.first[0]), float(values.second[0])), values.n
    note = NO_WIDTH if values.error == 0 else values.note
    half = float(ndtri((1 + confidence) / 2))
    ends = []
    for centre, error in zip(_differences(*means), (values.error, values.ratio_error), strict=True):
        low, high = centre - half * error, centre + half * error
        unknown = Interval.unknown(confidence, n, note)
        known = np.isfinite([low, high]).all()
        ends.append(Interval(low, high, "bootstrap", confidence, n, note) if known else unknown)
    p, away = np.nan, means[0] - means[1]
    if np.isfinite(values.error):
        p = 2 * float(ndtr(-abs(away) / values.error)) if values.error > 0 else float(away == 0)
    test = TestResult(p, "bootstrap", "normal" if np.isfinite(p) else "none", n, n, 0.0, note)
    return _row(metric, pair, means, (ends[0], ends[1]), test)


def _of_seeds(metric: str, pair: Pair, values: WholeValues, confidence: float) -> PairRow:
    """Compare models of several seeds: users and seeds are both drawn."""
    found, ratio = (
        over_values(
            values.first,
            values.second,
            error,
            values.n,
            interactions=values.interactions,
            relative=relative,
            confidence=confidence,
        )
        for error, relative in ((values.error, False), (values.ratio_error, True))
    )
    p, n = found.p_value, values.n
    note = " ".join(dict.fromkeys(part for part in (values.note, found.note) if part))
    method = "student" if np.isfinite(p) else "none"
    test = TestResult(p, "random effects", method, n, n, 0.0, note)
    means = float(values.first.mean()), float(values.second.mean())
    return _row(metric, pair, means, (found.interval, ratio.interval), test, found)


def _differences(first: float, second: float) -> tuple[float, float]:
    """Return the difference and the relative one."""
    return first - second, first / second - 1 if second > 0 else np.nan


def _row(
    metric: str,
    pair: Pair,
    means: Sequence[float],
    intervals: tuple[Interval, Interval],
    test: TestResult,
    runs: Runs | None = None,
) -> PairRow:
    model, other = pair
    difference, relative = _differences(*means)
    return PairRow(
        metric=metric,
        model=model.name,
        other=other.name,
        higher_is_better=model.first.known_metric(metric).definition.higher_is_better,
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

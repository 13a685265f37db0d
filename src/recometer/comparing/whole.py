"""Two models by metrics that have one value for all users, such as coverage."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from recometer.arrays import Int64
from recometer.comparing.models import Model, Users
from recometer.comparing.pairs import Options
from recometer.comparing.rows import PairRow
from recometer.measuring.compute import compute_for_all
from recometer.measuring.listed import ListedUsers
from recometer.metrics import ListData
from recometer.results.folds import FoldedEvaluation
from recometer.results.means import resamples_of
from recometer.stats import Interval, TestResult
from recometer.stats.intervals import resampled

SAVED = (
    "The lists were not saved, so how the two values go together is not known: the interval is the "
    "widest that their own intervals allow."
)
MANY = "One value per {}: how far it varies between users is not known, so that it is not tested."


def compare_whole(
    metrics: Sequence[str],
    pairs: Sequence[tuple[Model, Model]],
    users: Users,
    options: Options,
) -> list[PairRow]:
    """Compare pairs of models by metrics that have one value for all users.

    Where both evaluations still have their lists, users are drawn with replacement, the same for
    both models, and the differences of the resamples have the standard error that interval and
    test rest on (`recometer.stats.intervals.resampled`). Of saved evaluations only the interval of
    each value is known; the standard error of the difference is at most the sum of the two.
    """
    found, confidence = [], options.confidence
    for model, other in pairs:
        if len(model.runs) + len(other.runs) > 2:
            what = "batch of users" if model.batches else "seed"
            found += [
                _untested(name, model, other, MANY.format(what), confidence) for name in metrics
            ]
        elif any(isinstance(one.first, FoldedEvaluation) for one in (model, other)):
            note = MANY.format("fold")
            found += [_untested(name, model, other, note, confidence) for name in metrics]
        elif model.first.list_data is not None and other.first.list_data is not None:
            found += _resampled(metrics, model, other, users, options)
        else:
            found += [_of_saved(name, model, other, confidence) for name in metrics]
    return found


def _untested(metric: str, model: Model, other: Model, note: str, confidence: float) -> PairRow:
    values = [
        float(np.mean([run.over_users[metric] for run in one.runs])) for one in (model, other)
    ]
    return _row(metric, model, other, values, 0, [np.nan, np.nan], "none", note, confidence)


def _resampled(
    metrics: Sequence[str],
    model: Model,
    other: Model,
    users: Users,
    options: Options,
) -> list[PairRow]:
    data, both = _common(model, other, users)
    n = len(both)
    confidence, clusters = options.confidence, None
    if options.clusters is not None:
        clusters = np.unique(options.clusters[both], return_inverse=True)[1]
    asked = [model.first.known_metric(name) for name in metrics]
    rules = [model.first.protocol, other.first.protocol]

    def values(weights: Int64 | None) -> list[dict[str, float]]:
        return [
            compute_for_all(ListedUsers(one), asked, protocol, weights)
            for one, protocol in zip(data, rules, strict=True)
        ]

    def differences(weights: Int64) -> dict[str, float]:
        one, two = values(weights)
        found = {name: one[name] - two[name] for name in metrics}
        ratios = {name: one[name] / two[name] - 1 if two[name] > 0 else np.nan for name in metrics}
        return found | {f"{name}: ratio": ratio for name, ratio in ratios.items()}

    own = values(None)
    centre = {name: own[0][name] - own[1][name] for name in metrics}
    centre |= {
        f"{name}: ratio": own[0][name] / own[1][name] - 1 if own[1][name] > 0 else np.nan
        for name in metrics
    }
    ends = resampled(
        differences, centre, n, confidence, options.seed, resamples_of(data[0]), clusters
    )
    rows = []
    for name in metrics:
        halves = [
            (ends[key][1] - ends[key][0]) / 2 if n > 1 else np.nan
            for key in (name, f"{name}: ratio")
        ]
        pair = [own[0][name], own[1][name]]
        note = "" if n > 1 else "Fewer than two users: there is nothing to resample."
        rows.append(_row(name, model, other, pair, n, halves, "bootstrap", note, confidence))
    return rows


def _common(model: Model, other: Model, users: Users) -> tuple[list[ListData], Int64]:
    """Return the lists of the users that both have, in one order, and who these are."""
    places = [users.places[one.name][0] for one in (model, other)]
    own = [np.arange(users.n) if place is None else place for place in places]
    both = np.intersect1d(own[0], own[1])
    found = []
    for one, of_model in zip((model, other), own, strict=True):
        assert one.first.list_data is not None
        at = np.full(users.n, -1)
        at[of_model] = np.arange(len(of_model))
        found.append(one.first.list_data.users(at[both]))
    return found, both


def _of_saved(metric: str, model: Model, other: Model, confidence: float) -> PairRow:
    values, halves = [], []
    for one in (model, other):
        value, (low, high) = one.first.over_users[metric], one.first.interval(metric)
        values.append(value)
        # An end that is cut off at a bound of the metric is the nearer one.
        halves.append(max(high - value, value - low))
    half = sum(halves)
    # (x / y - 1) is beyond b where x - (1 + b) y is beyond 0.
    ratio = (halves[0] + halves[1] * values[0] / values[1]) / values[1] if values[1] > 0 else np.nan
    n = min(model.first.n_users, other.first.n_users)
    note = SAVED if math.isfinite(half) else "An evaluation has no interval of this metric."
    widths = [half, ratio]
    return _row(metric, model, other, values, n, widths, "bootstrap", note, confidence)


def _row(
    metric: str,
    model: Model,
    other: Model,
    values: Sequence[float],
    n: int,
    halves: Sequence[float],
    method: str,
    note: str,
    confidence: float,
) -> PairRow:
    from scipy.special import ndtr, ndtri

    difference = values[0] - values[1]
    relative = values[0] / values[1] - 1 if values[1] > 0 else np.nan

    def interval(centre: float, half: float) -> Interval:
        if not math.isfinite(half) or not math.isfinite(centre):
            return Interval.unknown(confidence, n, note)
        return Interval(centre - half, centre + half, method, confidence, n, note)

    if halves[0] == 0:
        note = "The values are the same whichever users are drawn: the interval has no width."
    p = np.nan
    if math.isfinite(halves[0]):
        error = halves[0] / float(ndtri((1 + confidence) / 2))
        p = 2 * float(ndtr(-abs(difference) / error)) if error > 0 else float(difference == 0)
    known = math.isfinite(p)
    return PairRow(
        metric=metric,
        model=model.name,
        other=other.name,
        higher_is_better=model.first.known_metric(metric).definition.higher_is_better,
        n=n,
        mean=values[0],
        mean_other=values[1],
        difference=difference,
        interval=interval(difference, halves[0]),
        relative=relative,
        relative_interval=interval(relative, halves[1]),
        test=TestResult(p, "bootstrap", "normal" if known else "none", n, n, 0.0, note),
        notes=(note,) if note else (),
    )

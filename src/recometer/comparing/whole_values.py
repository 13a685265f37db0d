"""Values of metrics with one value for all users, and how far they vary between users."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence

import numpy as np

from recometer.arrays import Float64, Int64
from recometer.comparing.models import Model, Users
from recometer.comparing.pairs import Options
from recometer.measuring.compute import computed_for_all
from recometer.measuring.measured import Together
from recometer.results.evaluation import EvaluationRecord
from recometer.results.means import resamples_of
from recometer.stats.intervals import resampled

Pair = tuple[Model, Model]

SAVED = (
    "The lists or rows were not saved, so how the two values go together is not known: the "
    "interval is the widest that their own intervals allow."
)


@dataclasses.dataclass(frozen=True, eq=False)
class WholeValues:
    """The values of two models by one metric.

    Attributes
    ----------
    first, second : float64 [n_runs]
        A value per run of each model.
    n
        Users that they are of.
    error, ratio_error
        Standard errors between users: of the difference of the mean values, and of their ratio.
    interactions
        For each model, the variance between its runs that comes from the users: who is drawn
        changes one run differently from another.
    note
        A remark that readers should know, or an empty text.
    """

    first: Float64
    second: Float64
    n: int
    error: float
    ratio_error: float
    interactions: tuple[float, float] = (0.0, 0.0)
    note: str = ""


def resampled_values(
    metrics: Sequence[str], pair: Pair, users: Users, options: Options
) -> dict[str, WholeValues]:
    """Return the values of runs that still have their lists, over users drawn for all alike."""
    runs = [run for model in pair for run in model.runs]
    data, both = _common(metrics[0], pair, users)
    n, confidence, clusters = len(both), options.confidence, None
    if options.clusters is not None:
        clusters = np.unique(options.clusters[both], return_inverse=True)[1]
    asked, split = [runs[0].known_metric(name) for name in metrics], len(pair[0].runs)

    computed = [
        computed_for_all(one, asked, run.protocol) for one, run in zip(data, runs, strict=True)
    ]

    def numbers(weights: Int64 | None) -> dict[str, float]:
        return numbers_of(metrics, [of_run(weights) for of_run in computed], split)

    centre = numbers(None)
    how = confidence, options.seed, resamples_of(data[0].size), clusters
    ends = resampled(numbers, centre, n, *how)
    n_units, what = (n, "users") if clusters is None else (len(np.unique(clusters)), "clusters")
    note = "" if n_units > 1 else f"Fewer than two {what}: there is nothing to resample."
    return whole_values(metrics, centre, ends, (split, len(runs)), n, confidence, note)


def numbers_of(
    metrics: Sequence[str], runs: Sequence[Mapping[str, float]], split: int
) -> dict[str, float]:
    """Return the numbers whose errors are asked for, from the values of each run.

    The first `split` runs are those of the first model, the others those of the second.
    """
    found: dict[str, float] = {}
    for name in metrics:
        values = np.array([one[name] for one in runs])
        means = float(values[:split].mean()), float(values[split:].mean())
        found |= {_key(name, run): one for run, one in enumerate(values.tolist())}
        found[_key(name, "first")], found[_key(name, "second")] = means
        found[_key(name, "difference")] = means[0] - means[1]
        found[_key(name, "ratio")] = means[0] / means[1] if means[1] > 0 else np.nan
    return found


def whole_values(
    metrics: Sequence[str],
    centre: Mapping[str, float],
    ends: Mapping[str, tuple[float, float]],
    runs: tuple[int, int],
    n: int,
    confidence: float,
    note: str,
) -> dict[str, WholeValues]:
    """Return the values of both models, from the `numbers_of` all users and their intervals.

    `runs` are the number of the first model's runs and that of all, `n` that of the users.
    """
    errors = {key: _error((high - low) / 2, confidence) for key, (low, high) in ends.items()}
    split, n_runs = runs
    found = {}
    for name in metrics:
        values = np.array([centre[_key(name, run)] for run in range(n_runs)])
        own = [errors[_key(name, run)] for run in range(n_runs)]
        found[name] = WholeValues(
            values[:split],
            values[split:],
            n,
            errors[_key(name, "difference")],
            errors[_key(name, "ratio")],
            (
                _interaction(own[:split], errors[_key(name, "first")]),
                _interaction(own[split:], errors[_key(name, "second")]),
            ),
            note,
        )
    return found


def saved_values(metric: str, pair: Pair, confidence: float) -> WholeValues:
    """Return the values of runs of which only their own intervals are known.

    The standard error of a sum is at most the sum of the standard errors.
    """
    values, errors = [], []
    for model in pair:
        known = [_known(run, metric) for run in model.runs]
        values.append(np.array([value for value, _ in known]))
        errors.append(_error(float(np.mean([half for _, half in known])), confidence))
    first, second = (float(one.mean()) for one in values)
    error = sum(errors)
    ratio = (errors[0] + errors[1] * first / second) / second if second > 0 else np.nan
    note = SAVED if math.isfinite(error) else "An evaluation has no interval of this metric."
    n = min(run.n_users for model in pair for run in model.runs)
    return WholeValues(values[0], values[1], n, error, ratio, note=note)


def _known(run: EvaluationRecord, metric: str) -> tuple[float, float]:
    """Return a value, and the distance to the end of its interval that is not cut off."""
    value, (low, high) = run.together[metric], run.interval(metric)
    return value, max(high - value, value - low)


def _key(metric: str, what: object) -> str:
    return f"{metric}: {what}"


def _error(half: float, confidence: float) -> float:
    """Return the standard error behind an interval value ± half."""
    from scipy.special import ndtri

    return half / float(ndtri((1 + confidence) / 2))


def _interaction(errors: Sequence[float], of_mean: float) -> float:
    """Return how far runs vary differently with the users who are drawn.

    The variance of one run is u + v, that of the mean of R runs u + v / R; v is returned.
    """
    r = len(errors)
    if r < 2:
        return 0.0
    return max(0.0, (float(np.mean(np.square(errors))) - of_mean**2) * r / (r - 1))


def _common(metric: str, pair: Pair, users: Users) -> tuple[list[Together], Int64]:
    """Return the data of the users whom all runs have, in one order, and these users."""
    own: list[tuple[EvaluationRecord, Int64]] = []
    for model in pair:
        for run, place in zip(model.runs, users.places[model.name], strict=True):
            own.append((run, np.arange(users.n) if place is None else place))
    counts = np.zeros(users.n, np.int64)
    for _, place in own:
        counts[place] += 1
    common = np.flatnonzero(counts == len(own))
    found = []
    for run, place in own:
        read = run.read_together(metric)
        assert read is not None
        at = np.full(users.n, -1)
        at[place] = np.arange(len(place))
        found.append(read.users(at[common]))
    return found, common

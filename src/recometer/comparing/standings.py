"""All models by a metric: means, possible ranks, and who is as good as the best."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from recometer import ragged, stats
from recometer.arrays import Float64
from recometer.comparing.corrections import Correction, tukey_by
from recometer.comparing.models import Model, Users
from recometer.comparing.pairs import Options, bounds_of
from recometer.comparing.rows import PairRow, Standing
from recometer.stats import Interval, Ranking
from recometer.stats.comparing import FEW_DIFFER, Pairs, decisive_test


def standings_by(
    metric: str,
    models: Sequence[Model],
    users: Users,
    options: Options,
    rows: Sequence[PairRow],
    correction: Correction = "holm",
) -> list[Standing]:
    """Return the models by a metric that every user has a value for, best first.

    All pairs are tested on the users that all models have a value for, and their p-values adjusted
    by Holm's method, unless Tukey's test was asked for; ranks follow from these
    (`recometer.stats.rank_intervals`). `rows` are the pairs that were compared already; those on
    the same users are not tested again. A random order has its mean, but no rank: it is not a model
    that others compete with.
    """
    given, models = models, [model for model in models if not model.by_chance]
    columns = np.column_stack([users.values(model, metric) for model in models])
    known = ~np.isnan(columns).any(axis=1)
    columns = columns[known]
    clusters = None if options.clusters is None else options.clusters[known]
    means = (
        ragged.column_sums(columns) / len(columns) if len(columns) else np.full(len(models), np.nan)
    )
    bounds, _ = bounds_of(metric, models, columns.T)
    tested = {
        frozenset((row.model, row.other)): row.p_value
        for row in rows
        if row.metric == metric and row.n == len(columns)  # so that they are the same users
    }
    p_values = np.ones((len(models), len(models)))
    enough = options.alpha / max(1, math.comb(len(models), 2))
    for one, two in itertools.combinations(range(len(models)), 2):
        pair = models[one], models[two]
        p = tested.get(frozenset(model.name for model in pair))
        if p is None:
            p = _p(metric, pair, columns[:, [one, two]], bounds, clusters, users, options, enough)
        p_values[one, two] = p_values[two, one] = p
    tukey = tukey_by(metric, models, users, options).p_values if correction == "tukey" else None
    intervals = [_interval(one, bounds, clusters, options) for one in columns.T]
    chance = {
        model.name: float(np.mean(users.values(model, metric)[known])) if len(columns) else np.nan
        for model in given
        if model.by_chance
    }
    return ordered(
        metric,
        [model.name for model in models],
        Means(means, intervals, len(columns), chance),
        p_values,
        tukey,
        higher=models[0].first.known_metric(metric).definition.higher_is_better,
        options=options,
    )


class Means(NamedTuple):
    """The means of models over the users that all of them have a value for.

    Attributes
    ----------
    values : float64 [n_models]
    intervals
    n
        The number of these users.
    chance
        The means of random orders, by name.
    """

    values: Float64
    intervals: Sequence[Interval]
    n: int
    chance: Mapping[str, float]


def ordered(
    metric: str,
    names: Sequence[str],
    means: Means,
    p_values: Float64,
    tukey: Float64 | None,
    *,
    higher: bool,
    options: Options,
) -> list[Standing]:
    """Return models by a metric, best first, from their means and p of all pairs.

    Parameters
    ----------
    metric
    names
        The models that are ranked.
    means
    p_values : float64 [n_models, n_models]
        Not adjusted; 1 on the diagonal.
    tukey : float64 [n_models, n_models] or None
        p of Tukey's test, instead of the adjustment by Holm's method.
    higher
        Whether higher values are better.
    options
    """
    adjusted = _by_holm(p_values) if tukey is None else np.maximum(p_values, tukey)
    found = _standings(
        metric, names, means.values, means.intervals, adjusted, means.n, higher, options
    )
    found += [_unranked(metric, *one, means.n, options) for one in means.chance.items()]

    def score(one: Standing) -> float:
        return np.inf if np.isnan(one.mean) else -one.mean if higher else one.mean

    return sorted(found, key=score)


def _interval(
    values: Float64, bounds: tuple[float, float], clusters: Float64 | None, options: Options
) -> Interval:
    """Return the interval of a mean."""
    return stats.interval(
        values,
        options.interval if options.interval != "randomisation" else "auto",
        bounds=bounds,
        confidence=options.confidence,
        clusters=clusters,
    )


def _unranked(metric: str, model: str, mean: float, n: int, options: Options) -> Standing:
    """Return the mean of a random order."""
    return Standing(
        metric=metric,
        model=model,
        mean=mean,
        interval=Interval.unknown(options.confidence, n, "A random order is not ranked."),
        n=n,
        leads=False,
        best=False,
        rank_low=0,
        rank_high=0,
    )


def standings_of_whole(
    metric: str, models: Sequence[Model], rows: Sequence[PairRow], options: Options
) -> list[Standing]:
    """Return the models by a metric with one value for all users; `rows` have all pairs of them.

    A random order has no such value.
    """
    given, models = models, [model for model in models if not model.by_chance]
    names = [model.name for model in models]
    p_values = np.ones((len(names), len(names)))
    means = np.full(len(names), np.nan)
    rows = [row for row in rows if row.metric == metric]
    for row in rows:
        one, two = names.index(row.model), names.index(row.other)
        p_values[one, two] = p_values[two, one] = row.p_value
        means[one], means[two] = row.mean, row.mean_other
    n = max(row.n for row in rows)
    unknown = Interval.unknown(options.confidence, n, "See the differences.")
    higher = rows[0].higher_is_better
    adjusted = _by_holm(p_values)
    unknowns = [unknown] * len(names)
    found = _standings(metric, names, means, unknowns, adjusted, n, higher, options)
    chance = [model.name for model in given if model.by_chance]
    return [*found, *(_unranked(metric, model, np.nan, n, options) for model in chance)]


def _by_holm(p_values: Float64) -> Float64:
    """Adjust p over all pairs."""
    upper = np.triu_indices(len(p_values), 1)
    adjusted = np.ones_like(p_values)
    adjusted[upper] = stats.adjust(p_values[upper], "holm")
    adjusted.T[upper] = adjusted[upper]
    return adjusted


def _p(
    metric: str,
    pair: tuple[Model, Model],
    columns: Float64,
    bounds: tuple[float, float],
    clusters: Float64 | None,
    users: Users,
    options: Options,
    enough: float,
) -> float:
    """Return p of a pair, before it is adjusted, or a bound of it that is at most `enough`.

    That small, it is one of those that Holm's method rejects first, whatever the others are.
    """
    if max(model.n_seeds for model in pair) > 1:
        tables = [np.column_stack(users.runs(model, metric)) for model in pair]
        return stats.over_runs(*tables, confidence=options.confidence).p_value
    if clusters is None and (options.test, options.interval) == ("randomisation", "auto"):
        at_most = _bound_of_p(columns[:, 0] - columns[:, 1], bounds[1] - bounds[0])
        if at_most <= enough:
            return at_most
    both = Pairs.of(columns[:, 0], columns[:, 1], clusters)
    return decisive_test(both, bounds, options.test, options.interval).p_value


def _bound_of_p(differences: Float64, largest: float) -> float:
    """Return what p is at most, from Hoeffding's inequality for sums with random signs.

    P(|Σ ±d| ≥ |Σ d|) ≤ 2 exp(-(Σ d)² / 2 Σ d²). It is a hundred times as fast as the test. 1 unless
    Σ d² tells that enough users differ for the test to decide; `largest` is the largest difference.
    """
    squares = float(differences @ differences)
    if not 0 < FEW_DIFFER * largest**2 <= squares:
        return 1.0
    return 2 * math.exp(-(float(differences.sum()) ** 2) / (2 * squares))


def _standings(
    metric: str,
    names: Sequence[str],
    means: Float64,
    intervals: Sequence[Interval],
    adjusted: Float64,
    n: int,
    higher: bool,
    options: Options,
) -> list[Standing]:
    ranking: Ranking = stats.rank_intervals(
        means, adjusted, alpha=options.alpha, higher_is_better=higher
    )
    score = np.where(np.isnan(means), np.inf, -means if higher else means)
    order = np.argsort(score, kind="stable").tolist()
    return [
        Standing(
            metric=metric,
            model=names[at],
            mean=float(means[at]),
            interval=intervals[at],
            n=n,
            leads=bool(means[at] == means[order[0]]),
            best=bool(ranking.best[at]) and not np.isnan(means[at]),
            rank_low=int(ranking.low[at]),
            rank_high=int(ranking.high[at]),
        )
        for at in order
    ]

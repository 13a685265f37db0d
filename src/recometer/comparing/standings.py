"""All models by a metric: means, possible ranks, and who is as good as the best."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np

from recometer import stats
from recometer.arrays import Float64
from recometer.comparing.corrections import Correction, tukey_by
from recometer.comparing.kinds import Options, Paired
from recometer.comparing.rows import PairRow, Standing
from recometer.comparing.whole import Whole
from recometer.stats import Interval
from recometer.tasks import run_tasks


def standings_by(
    given: Sequence[Paired], rows: Sequence[PairRow], correction: Correction
) -> list[Standing]:
    """Return the models by a metric that every user has a value for, best first.

    All pairs are tested on the users that all models have a value for, and their p-values adjusted
    by Holm's method, unless Tukey's test was asked for; ranks follow from these
    (`recometer.stats.rank_intervals`). `rows` are the pairs that were compared already by this
    metric; those on the same users are not tested again. A random order has its mean, but no rank:
    it is not a model that others compete with.
    """
    ranked = [one for one in given if not one.model.by_chance]
    metric, options, n_users = ranked[0].metric, ranked[0].options, ranked[0].users.n
    columns = [one.column for one in ranked]
    known: slice | np.ndarray = slice(None)
    if not all(column.complete for column in columns):
        known = ~np.logical_or.reduce([np.isnan(column.values) for column in columns])
    n = n_users if isinstance(known, slice) else int(np.count_nonzero(known))
    there = [one.among(known) for one in ranked]
    enough = options.alpha / max(1, math.comb(len(ranked), 2))
    tested = {frozenset((row.model, row.other)): row.p_value for row in rows if row.n == n}
    p_values = np.ones((len(ranked), len(ranked)))
    for one, two in itertools.combinations(range(len(ranked)), 2):
        pair = ranked[one].model, ranked[two].model
        p = tested.get(frozenset(model.name for model in pair))
        if p is None:
            first = max(ranked[one], ranked[two], key=lambda each: each.model.n_seeds > 1)
            whom = ranked if first.model.n_seeds > 1 else there
            p = type(first).p(whom[one], whom[two], enough)
        p_values[one, two] = p_values[two, one] = p
    adjusted = _by_holm(p_values)
    if correction == "tukey":
        models = [one.model for one in ranked]
        shuffled = tukey_by(metric, models, ranked[0].users, options)
        adjusted = np.maximum(p_values, shuffled.p_values)
    intervals = run_tasks(
        lambda one, _: one.interval(), there, threads=options.threads, progress=False
    )
    means = np.array([one.mean() for one in there])
    found = _ranked(ranked, means, intervals, adjusted, n)
    found += [
        _unranked(metric, one.model.name, one.among(known).mean(), n, options)
        for one in given
        if one.model.by_chance
    ]
    sign = -1 if ranked[0].definition.higher_is_better else 1
    return sorted(found, key=lambda one: np.inf if np.isnan(one.mean) else sign * one.mean)


def standings_of_whole(
    given: Sequence[Whole], chance: Sequence[str], rows: Sequence[PairRow]
) -> list[Standing]:
    """Return the models by a metric with one value for all users; `rows` have all pairs of them.

    Random orders, which `chance` names, have no such value.
    """
    names = [one.model.name for one in given]
    p_values, means = np.ones((len(names), len(names))), np.full(len(names), np.nan)
    for row in rows:
        one, two = names.index(row.model), names.index(row.other)
        p_values[one, two] = p_values[two, one] = row.p_value
        means[one], means[two] = row.mean, row.mean_other
    n, options = max(row.n for row in rows), given[0].options
    unknown = Interval.unknown(options.confidence, n, "See the differences.")
    found = _ranked(given, means, [unknown] * len(names), _by_holm(p_values), n)
    return [*found, *(_unranked(given[0].metric, name, np.nan, n, options) for name in chance)]


def _ranked(
    given: Sequence[Paired | Whole],
    means: Float64,
    intervals: Sequence[Interval],
    adjusted: Float64,
    n: int,
) -> list[Standing]:
    """Return models, best first, from their means and adjusted p of all pairs."""
    metric, alpha = given[0].metric, given[0].options.alpha
    higher = given[0].definition.higher_is_better
    ranking = stats.rank_intervals(means, adjusted, alpha=alpha, higher_is_better=higher)
    order = np.argsort(-means if higher else means, kind="stable").tolist()
    return [
        Standing(
            metric=metric,
            model=given[at].model.name,
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


def _by_holm(p_values: Float64) -> Float64:
    """Adjust p over all pairs."""
    upper = np.triu_indices(len(p_values), 1)
    adjusted = np.ones_like(p_values)
    adjusted[upper] = stats.adjust(p_values[upper], "holm")
    adjusted.T[upper] = adjusted[upper]
    return adjusted

"""The leaderboard of a metric: means, possible ranks, and models that may be the best."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from recometer import stats
from recometer.arrays import Float64
from recometer.comparing.corrections import Correction, tukey_by
from recometer.comparing.kinds import Paired
from recometer.comparing.rows import PairRow, Standing
from recometer.comparing.whole import Whole
from recometer.stats import Interval

__all__ = ["standings_by"]


def standings_by(
    models: Sequence[Paired] | Sequence[Whole], rows: Sequence[PairRow], correction: Correction
) -> list[Standing]:
    """Return the models by a metric, best first.

    All pairs are tested on the users with a value from all models. Their p-values are adjusted by
    Holm's method, unless Tukey's test is used, and determine the ranks
    (`recometer.stats.rank_intervals`). `rows` has the pairs compared so far by this metric. A
    random order has a mean but no rank, because other models do not compete with it.
    """
    ranked: list[Paired | Whole] = [one for one in models if not one.model.by_chance]
    chance = [one for one in models if one.model.by_chance]
    first, options = ranked[0], ranked[0].options
    board = type(first).board(ranked, chance, rows)  # type: ignore[arg-type]
    adjusted = _by_holm(board.p_values)
    if correction == "tukey" and isinstance(first, Paired):
        tukey = tukey_by(first.metric, [one.model for one in ranked], first.users, options)
        adjusted = np.maximum(board.p_values, tukey.p_values)
    higher, means = first.definition.higher_is_better, board.means[: len(ranked)]
    ranking = stats.rank_intervals(means, adjusted, alpha=options.alpha, higher_is_better=higher)
    lead = (np.fmax if higher else np.fmin).reduce(means)  # NaN only if all means are NaN
    unknown = Interval.unknown(options.confidence, board.n, "A random order is not ranked.")
    found = []
    for at, one in enumerate((*ranked, *chance)):
        counts, mean = at < len(ranked), float(board.means[at])
        found.append(
            Standing(
                metric=first.metric,
                model=one.model.name,
                mean=mean,
                interval=board.intervals[at] if counts else unknown,
                n=board.n,
                leads=counts and mean == lead,
                best=counts and bool(ranking.best[at]) and not np.isnan(mean),
                rank_low=int(ranking.low[at]) if counts else 0,
                rank_high=int(ranking.high[at]) if counts else 0,
            )
        )
    sign = -1 if higher else 1
    return sorted(found, key=lambda one: np.inf if np.isnan(one.mean) else sign * one.mean)


def _by_holm(p_values: Float64) -> Float64:
    """Adjust p over all pairs."""
    upper = np.triu_indices(len(p_values), 1)
    adjusted = np.ones_like(p_values)
    adjusted[upper] = stats.adjust(p_values[upper], "holm")
    adjusted.T[upper] = adjusted[upper]
    return adjusted

"""Intervals of values that all users have together, over resampled users."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from recometer.results.means import intervals_of_ends, resamples_of
from recometer.spark._draws import Resamples
from recometer.spark._resampling import MOST_UNITS, TOO_MANY, placed
from recometer.stats import Interval
from recometer.stats.intervals import UNKNOWN, ends_of

if TYPE_CHECKING:
    from recometer.spark.result import SparkEvaluation

SAMPLE = f"{TOO_MANY} Hint: the interval of a sample of the users."


def intervals_together(result: SparkEvaluation) -> dict[str, Interval]:
    """Return the intervals of all values that users have together, as those of one machine."""
    values = {**result.over_users, **result.over_rows}
    metrics = [metric for metric in result.metrics if str(metric) in values]
    protocol, names = result.protocol, list(values)
    n = result.n_users if result.session is None else result.sums.facts["people"]
    if n > MOST_UNITS:
        unknown = Interval.unknown(protocol.confidence, n, SAMPLE)
        return dict.fromkeys(names, unknown)
    ends = dict.fromkeys(names, UNKNOWN)
    if n > 1:
        sizes = {name: resamples_for(result, name) for name in names}
        resamples = Resamples(n, max(sizes.values()), result.seed)
        places = placed(result.values().select("u").distinct(), ["u"], n)
        drawn = result.again.values(names, places, resamples)
        for name, size in sizes.items():
            each = [{name: value} for value in drawn[name][1 : 1 + size]]
            ends |= ends_of({name: values[name]}, each, protocol.confidence)
    return intervals_of_ends(ends, metrics, values, protocol, n)


def resamples_for(result: SparkEvaluation, name: str, n_users: int | None = None) -> int:
    """Return how often users are drawn, for as many places in lists, or rows, as there are."""
    share = 1.0 if n_users is None else n_users / max(result.n_users, 1)
    if name in result.over_users:
        return resamples_of(round(share * result.n_users * result.sums.largest["places"]))
    return resamples_of(int(np.ceil(share * result.sums.facts["rated"])))

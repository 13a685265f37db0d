"""Intervals of statistics other than means, from resampled users."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from recometer.arrays import Int64

Interval = tuple[float, float]

N_FOR_DEVIATION = 200  # resamples: enough for a standard deviation
UNKNOWN = (float("nan"), float("nan"))


def resampled(
    statistic: Callable[[Int64], Mapping[str, float]],
    values: Mapping[str, float],
    n_users: int,
    confidence: float = 0.95,
    seed: int = 0,
    n_resamples: int = N_FOR_DEVIATION,
    clusters: Int64 | None = None,
) -> dict[str, Interval]:
    """Return intervals of statistics, from their values in resamples of users.

    The interval is value ± z((1 + confidence) / 2) · s, with s the standard deviation of the
    statistic over resamples of the users. (Quantiles of the resamples would be biased: a resample
    has fewer different users, and thus fewer different items in lists.) Efron & Tibshirani, "An
    Introduction to the Bootstrap", 1993, chapters 6 and 12.

    `statistic` takes how often each user counts, int64 [n_users], and returns the statistics by
    name; `values` are those of the users themselves. Users with equal `clusters`, numbered from 0,
    are drawn together. Ends are NaN for fewer than two users; resamples without a value do not
    count.
    """
    from scipy.special import ndtri

    each = np.arange(n_users) if clusters is None else clusters
    n_units = int(each.max(initial=0)) + 1
    if n_units < 2:
        return dict.fromkeys(values, UNKNOWN)
    generator = np.random.Generator(np.random.PCG64(seed))
    rows = []
    for _ in range(n_resamples):
        counts = np.bincount(generator.integers(n_units, size=n_units), minlength=n_units)
        numbers = statistic(counts[each])
        rows.append([numbers[name] for name in values])
    # Leave out resamples without a value; infinite values have no deviation.
    drawn = np.array(rows)
    missing = np.isnan(drawn)
    n = np.count_nonzero(~missing, axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        means = np.where(missing, 0.0, drawn).sum(axis=0) / n
        squares = np.where(missing, 0.0, drawn - means) ** 2
        half = ndtri((1 + confidence) / 2) * np.sqrt(squares.sum(axis=0) / (n - 1))
    ends = zip(values.items(), half, strict=True)
    return {name: (float(value - h), float(value + h)) for (name, value), h in ends}

"""Compute intervals of statistics other than means by resampling users."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from recometer.arrays import Int64

Interval = tuple[float, float]

N_FOR_DEVIATION = 200  # enough resamples to estimate a standard deviation
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
    """Return confidence intervals of statistics, computed by resampling users.

    An interval is value ± z((1 + confidence) / 2) · s, where z is the normal quantile and s the
    standard deviation of the statistic over resamples of the users. (Quantiles of the resamples
    would be biased: a resample has fewer distinct users, and thus fewer distinct items in their
    lists.) Efron & Tibshirani, "An Introduction to the Bootstrap", 1993, chapters 6 and 12.

    The function `statistic` takes the number of times that each user is drawn (int64 [n_users]) and
    returns the statistics by name; `values` contains the statistics of the original users. Users
    with equal `clusters`, numbered from 0, are drawn together. The ends are NaN for fewer than two
    users or clusters. Resamples in which a statistic is NaN are ignored for that statistic.
    """
    from scipy.special import ndtri

    units = np.arange(n_users) if clusters is None else clusters
    n_units = int(units.max(initial=0)) + 1
    if n_units < 2:
        return dict.fromkeys(values, UNKNOWN)
    generator = np.random.Generator(np.random.PCG64(seed))
    rows = []
    for _ in range(n_resamples):
        counts = np.bincount(generator.integers(n_units, size=n_units), minlength=n_units)
        numbers = statistic(counts[units])
        rows.append([numbers[name] for name in values])
    # A statistic that is infinite in a resample has no standard deviation.
    drawn = np.array(rows)
    missing = np.isnan(drawn)
    n = np.count_nonzero(~missing, axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        means = np.where(missing, 0.0, drawn).sum(axis=0) / n
        squares = np.where(missing, 0.0, drawn - means) ** 2
        half = ndtri((1 + confidence) / 2) * np.sqrt(squares.sum(axis=0) / (n - 1))
    ends = zip(values.items(), half, strict=True)
    return {name: (float(value - h), float(value + h)) for (name, value), h in ends}

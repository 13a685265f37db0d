"""Intervals of statistics other than means, from resampled users."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

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
    each = np.arange(n_users) if clusters is None else clusters
    n_drawn = int(each.max(initial=0)) + 1
    if n_drawn < 2:
        return dict.fromkeys(values, UNKNOWN)
    drawn = [statistic(counts[each]) for counts in draws(n_drawn, n_resamples, seed)]
    return ends_of(values, drawn, confidence)


def draws(n: int, n_resamples: int, seed: int) -> Iterator[Int64]:
    """Yield how often each of n users is drawn with replacement, int64 [n], per resample."""
    generator = np.random.Generator(np.random.PCG64(seed))
    for _ in range(n_resamples):
        yield np.bincount(generator.integers(n, size=n), minlength=n)


def ends_of(
    values: Mapping[str, float], drawn: Sequence[Mapping[str, float]], confidence: float
) -> dict[str, Interval]:
    """Return the intervals of `resampled`, from the statistics of each resample."""
    from scipy.special import ndtri

    # Leave out resamples without a value; infinite values have no deviation.
    drawn_values = np.array([[numbers[name] for name in values] for numbers in drawn])
    missing = np.isnan(drawn_values)
    n = np.count_nonzero(~missing, axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        means = np.where(missing, 0.0, drawn_values).sum(axis=0) / n
        squares = np.where(missing, 0.0, drawn_values - means) ** 2
        half = ndtri((1 + confidence) / 2) * np.sqrt(squares.sum(axis=0) / (n - 1))
    ends = zip(values.items(), half, strict=True)
    return {name: (float(value - h), float(value + h)) for (name, value), h in ends}

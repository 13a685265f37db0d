"""Confidence intervals of a mean over users."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

__all__ = ["bootstrap", "student"]

Float64 = npt.NDArray[np.float64]
Interval = tuple[float, float]

N_RESAMPLES = 2_000
DRAWS_AT_ONCE = 2**20  # bounds the memory of the bootstrap
UNKNOWN = (float("nan"), float("nan"))


def student(values: Float64, confidence: float = 0.95) -> Interval:
    """Return Student's t interval of a mean.

    mean ± t(n - 1, (1 + confidence) / 2) · s / √n, with s the standard deviation of the n
    values that are not NaN (n - 1 in its denominator). Student, "The probable error of a
    mean", Biometrika 6, 1908.

    Parameters
    ----------
    values : float64 [n_users]
        NaN is left out.
    confidence
        Coverage, in (0, 1).

    Returns
    -------
    tuple of float
        The lower and the upper end; NaN for fewer than two values.
    """
    defined = values[~np.isnan(values)]
    if len(defined) < 2:
        return UNKNOWN
    from scipy.special import stdtrit

    # Infinite values have an infinite mean, and no deviation from it.
    with np.errstate(invalid="ignore", over="ignore"):
        mean = defined.mean()
        error = defined.std(ddof=1) / np.sqrt(len(defined))
        half = stdtrit(len(defined) - 1, (1 + confidence) / 2) * error
        return float(mean - half), float(mean + half)


def bootstrap(
    columns: Sequence[Float64],
    confidence: float = 0.95,
    seed: int = 0,
    n_resamples: int = N_RESAMPLES,
) -> list[Interval]:
    """Return percentile bootstrap intervals of the means of several metrics.

    Users are drawn with replacement, as many as there are; the interval holds the middle
    `confidence` of the means of the resamples. All columns see the same resamples, which
    depend on nothing but the seed and the number of users. Efron & Tibshirani, "An
    Introduction to the Bootstrap", 1993, chapter 13.

    Parameters
    ----------
    columns : float64 [n_users] each
        NaN is left out of a resample's mean.
    confidence
        Coverage, in (0, 1).
    seed
        Of the resamples.
    n_resamples
        Number of resamples, at least 1.

    Returns
    -------
    list of tuple of float
        For each column the lower and the upper end; NaN for fewer than two values.
    """
    if not columns:
        return []
    n_users = len(columns[0])
    generator = np.random.Generator(np.random.PCG64(seed))
    defined = [~np.isnan(column) for column in columns]
    filled = [np.where(known, column, 0.0) for known, column in zip(defined, columns, strict=True)]
    means = np.empty((len(columns), n_resamples))
    at_once = max(1, DRAWS_AT_ONCE // max(1, n_users))
    for begin in range(0, n_resamples, at_once):
        batch = slice(begin, min(begin + at_once, n_resamples))
        drawn = generator.integers(n_users, size=(batch.stop - batch.start, n_users))
        for position, (known, column) in enumerate(zip(defined, filled, strict=True)):
            # 0 / 0 where a resample drew no user with a value: NaN, left out below.
            with np.errstate(invalid="ignore"):
                counted = n_users if known.all() else known[drawn].sum(axis=1)
                means[position, batch] = column[drawn].sum(axis=1) / counted
    tails = [(1 - confidence) / 2, (1 + confidence) / 2]
    found = []
    for known, row in zip(defined, means, strict=True):
        row = row[~np.isnan(row)]
        if np.count_nonzero(known) < 2 or len(row) == 0:
            found.append(UNKNOWN)
        else:
            low, high = np.quantile(row, tails)
            found.append((float(low), float(high)))
    return found

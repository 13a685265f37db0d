"""Confidence intervals of a mean over users."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

__all__ = ["bootstrap", "of_means", "student"]

Float64 = npt.NDArray[np.float64]
Interval = tuple[float, float]

N_RESAMPLES = 2_000
DRAWS_AT_ONCE = 2**20  # bounds the memory of the bootstrap
UNKNOWN = (float("nan"), float("nan"))


def of_means(
    kind: str,
    columns: Sequence[Float64],
    confidence: float = 0.95,
    seed: int = 0,
    weights: Sequence[Float64] | None = None,
) -> list[Interval]:
    """Return intervals of a kind: ``"t"`` (`student`) or ``"bootstrap"``."""
    if kind == "bootstrap":
        return bootstrap(columns, confidence, seed, weights=weights)
    each: Sequence[Float64 | None] = [None] * len(columns) if weights is None else weights
    return [student(values, confidence, w) for values, w in zip(columns, each, strict=True)]


def student(values: Float64, confidence: float = 0.95, weights: Float64 | None = None) -> Interval:
    """Return Student's t interval of a mean.

    mean ± t(n - 1, (1 + confidence) / 2) · s / √n, with s the standard deviation of the n
    values that are not NaN (n - 1 in its denominator). Student, "The probable error of a
    mean", Biometrika 6, 1908. A weighted mean m is a ratio, Σ w·x / Σ w, and s / √n becomes
    √(n / (n - 1) · Σ (w·(x - m))²) / Σ w: Cochran, Sampling Techniques, 1977, section 6.3.

    Parameters
    ----------
    values : float64 [n_users]
        NaN is left out.
    confidence
        Coverage, in (0, 1).
    weights : float64 [n_users] or None
        At least 0; None: all the same. Users with the weight 0 are left out.

    Returns
    -------
    tuple of float
        The lower and the upper end; NaN for fewer than two values.
    """
    chosen = ~np.isnan(values) if weights is None else ~np.isnan(values) & (weights > 0)
    defined, n = values[chosen], int(np.count_nonzero(chosen))
    if n < 2:
        return UNKNOWN
    from scipy.special import stdtrit

    # Infinite values have an infinite mean, and no deviation from it.
    with np.errstate(invalid="ignore", over="ignore"):
        if weights is None:
            mean = defined.mean()
            error = defined.std(ddof=1) / np.sqrt(n)
        else:
            weight = weights[chosen] / weights[chosen].sum()
            mean = (weight * defined).sum()
            error = np.sqrt(n / (n - 1) * ((weight * (defined - mean)) ** 2).sum())
        half = stdtrit(n - 1, (1 + confidence) / 2) * error
        return float(mean - half), float(mean + half)


def bootstrap(
    columns: Sequence[Float64],
    confidence: float = 0.95,
    seed: int = 0,
    n_resamples: int = N_RESAMPLES,
    weights: Sequence[Float64] | None = None,
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
    weights : float64 [n_users] for each column, or None
        At least 0; None: all the same.

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
    if weights is not None:
        defined = [known & (w > 0) for known, w in zip(defined, weights, strict=True)]
        columns = [column * w for column, w in zip(columns, weights, strict=True)]
    filled = [np.where(known, column, 0.0) for known, column in zip(defined, columns, strict=True)]
    means = np.empty((len(columns), n_resamples))
    at_once = max(1, DRAWS_AT_ONCE // max(1, n_users))
    for begin in range(0, n_resamples, at_once):
        batch = slice(begin, min(begin + at_once, n_resamples))
        drawn = generator.integers(n_users, size=(batch.stop - batch.start, n_users))
        for position, (known, column) in enumerate(zip(defined, filled, strict=True)):
            # 0 / 0 where a resample drew no user with a value: NaN, left out below.
            with np.errstate(invalid="ignore"):
                if weights is not None:
                    counted = np.where(known, weights[position], 0)[drawn].sum(axis=1)
                else:
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

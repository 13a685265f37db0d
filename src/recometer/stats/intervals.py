"""Confidence intervals from resampled users."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

from recometer.arrays import Float64, Int64

Interval = tuple[float, float]

N_RESAMPLES = 2_000
N_FOR_DEVIATION = 200  # resamples: enough for a standard deviation
DRAWS_AT_ONCE = 2**20  # limits the memory of the bootstrap
UNKNOWN = (float("nan"), float("nan"))


def bootstrap(
    columns: Sequence[Float64],
    confidence: float = 0.95,
    seed: int = 0,
    n_resamples: int = N_RESAMPLES,
    weights: Sequence[Float64] | None = None,
) -> list[Interval]:
    """Return percentile bootstrap intervals of the means of several metrics.

    Each resample draws n of the n users with replacement, and leaves out NaN. The interval contains
    the middle `confidence` of the means of the resamples. It does not depend on the order of users,
    because positions among the sorted values are drawn. Efron & Tibshirani, "An Introduction to the
    Bootstrap", 1993, chapter 13. Ends are NaN if a column has an infinite value, or fewer than two
    values. `weights`, if any, has a column of weights for each column.
    """
    if not any(map(len, columns)):
        return [UNKNOWN for _ in columns]
    columns, weights = _ordered(columns, weights)
    known = [~np.isnan(column) for column in columns]
    counted = known
    if weights is not None:
        known = [mask & (w > 0) for mask, w in zip(known, weights, strict=True)]
        counted = [np.where(mask, w, 0) for mask, w in zip(known, weights, strict=True)]
        columns = [column * w for column, w in zip(columns, weights, strict=True)]
    # Most metrics have the same mask as others.
    first: dict[bytes, int] = {}
    digests = [hashlib.sha256(one.tobytes()).digest() for one in counted]
    which = [first.setdefault(digest, len(first)) for digest in digests]
    divisors = [counted[which.index(number)] for number in range(len(first))]
    sums = _resampled_sums([*columns, *divisors], seed, n_resamples)
    found = []
    for mask, total, number in zip(known, sums, which, strict=False):
        divisor = sums[len(columns) + number]
        drawn = divisor > 0  # a resample may contain no user with a value
        if np.count_nonzero(mask) < 2 or not drawn.any():
            found.append(UNKNOWN)
        else:
            tails = [(1 - confidence) / 2, (1 + confidence) / 2]
            low, high = np.quantile(total[drawn] / divisor[drawn], tails)
            found.append((float(low), float(high)))
    return found


def _ordered(
    columns: Sequence[Float64], weights: Sequence[Float64] | None
) -> tuple[list[Float64], list[Float64] | None]:
    """Return columns in ascending order of weights, then of values, with NaN last."""
    if weights is None:
        return [np.sort(column) for column in columns], None
    orders = [
        np.lexsort((column * weight, weight, np.isnan(column)))
        for column, weight in zip(columns, weights, strict=True)
    ]
    sorted_columns = [column[order] for column, order in zip(columns, orders, strict=True)]
    return sorted_columns, [weight[order] for weight, order in zip(weights, orders, strict=True)]


def _resampled_sums(columns: Sequence[Float64], seed: int, n_resamples: int) -> Float64:
    """Return the sums of columns over the drawn users: float64 [n_columns, n_resamples].

    NaN counts as 0; a column with an infinite value has NaN throughout.
    """
    n_users = len(columns[0])
    # Values are rounded to multiples of a small power of two, so that every sum is exact and does
    # not depend on the order of summation, which is undefined in a matrix product.
    largest = [np.abs(column[np.isfinite(column)]).max(initial=0) for column in columns]
    scales = [int(np.frexp(one)[1]) - 53 + n_users.bit_length() for one in largest]
    generator = np.random.Generator(np.random.PCG64(seed))
    width = max(1, DRAWS_AT_ONCE // n_resamples)
    starts = np.arange(0, n_users, width)
    sizes = np.diff(starts, append=n_users)
    # First draw the number of users of each block, and then the users.
    drawn_of_block = generator.multinomial(n_users, sizes / n_users, n_resamples)
    sums = np.zeros((len(columns), n_resamples))
    for start, size, n_drawn in zip(starts, sizes, drawn_of_block.T, strict=True):
        drawn = generator.integers(size, size=n_drawn.sum())
        drawn += np.repeat(np.arange(n_resamples) * size, n_drawn)
        times = np.bincount(drawn, minlength=n_resamples * size).reshape(n_resamples, size)
        values = np.stack([column[start : start + size] for column in columns])
        values = np.rint(np.ldexp(values, -np.array(scales)[:, np.newaxis]))
        sums += np.where(np.isfinite(values), values, 0) @ times.T.astype(np.float64)
    totals: Float64 = np.ldexp(sums, np.array(scales)[:, np.newaxis])
    totals[[bool(np.isinf(column).any()) for column in columns]] = np.nan
    return totals


def resampled(
    statistic: Callable[[Int64], Mapping[str, float]],
    values: Mapping[str, float],
    n_users: int,
    confidence: float = 0.95,
    seed: int = 0,
    n_resamples: int = N_FOR_DEVIATION,
    clusters: Int64 | None = None,
) -> dict[str, Interval]:
    """Return intervals of statistics other than means, from their values in resamples of users.

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

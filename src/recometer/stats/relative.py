"""Intervals of relative differences of means: all ratios that a test does not reject."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np

from recometer.arrays import Float64
from recometer.stats.ends import Interval
from recometer.stats.grouping import Grouped
from recometer.stats.means import ratio_ends
from recometer.stats.runs import Moments, RunMoments, over_runs_of
from recometer.stats.saddlepoint import increasing_root, quantile_of

NOBODY = "No user has both values."
NOT_ABOVE_0 = "The mean that the difference is relative to is not above 0."
NEGATIVE = "The metric can be below 0, so that a difference is not relative to anything."


def relative_interval(
    ratios: Grouped,
    difference: Interval,
    bounds: tuple[float, float] | None = None,
    largest: float = 1.0,
) -> Interval:
    """Return all θ from -1 on for which a mean of 0 is not excluded for x - (1 + θ)·y.

    The method is that of `difference`, the interval of the mean of x - y: the inversion of the
    randomisation test, Gaffke's bound, or Student's t (Fieller, "Some problems in interval
    estimation", Journal of the Royal Statistical Society B 16, 1954). If the mean of y may be 0,
    there is no upper end. If the set has gaps, its hull is returned. Each end has the same sign as
    the corresponding end of the difference, because x - y is positive exactly if θ is. `ratios` has
    x (at least 0) as values and y as sizes; for clusters, the sums of both, and `largest` is the
    number of users of the largest cluster.
    """
    method, confidence = difference.method, difference.confidence
    if method == "none":
        return Interval.unknown(confidence, ratios.n, difference.note)
    if method in ("gaffke", "clopper-pearson"):
        assert bounds is not None
        least, most = (largest * end for end in bounds)
        low, high = ratio_ends(ratios, (least, most), (most, least), confidence)
        method = "gaffke"
    elif method == "t":
        low, high = _fieller(ratios, confidence)
    else:
        low, high = _by_flips(ratios, confidence)
    return less_1(low, high, method, ratios.n, difference)


def relative_over_runs(ratios: Grouped, runs: RunMoments, difference: Interval) -> Interval:
    """Return all θ from -1 on for which `over_runs` of x - (1 + θ)·y does not exclude 0.

    `ratios` has each user's means over runs, as in `relative_interval`.
    """
    confidence, n, estimate = difference.confidence, ratios.n, ratios.estimate
    if difference.method == "none":
        return Interval.unknown(confidence, n, difference.note)
    counts, y, residuals = ratios.counts, np.asarray(ratios.sizes), ratios.residuals
    mean = float(np.sum(counts * y)) / n
    of_y, both, of_residuals = (
        float(squares) / max(1, n - 1)
        for squares in (
            np.sum(counts * (y - mean) ** 2),
            np.sum(counts * residuals * (y - mean)),
            ratios.sum_of_squares,
        )
    )

    def found_at(share: float, ratio: float) -> float:
        """Return the mean of share · x - ratio · y divided by half the width of its interval."""
        rest = share * estimate - ratio  # share · x - ratio · y is share · residual + rest · y
        variance = share**2 * of_residuals + 2 * share * rest * both + rest**2 * of_y
        squares = tuple(
            (scale**2 * between, scale**2 * within)
            for scale, (between, within) in zip((share, ratio), runs.squares, strict=True)
        )
        users = Moments(n, rest * mean, max(0.0, variance))
        of = over_runs_of(RunMoments(users, runs.n_runs, squares), confidence=confidence)
        arm = of.interval.width / 2
        return of.mean / arm if arm > 0 else float(np.copysign(np.inf, of.mean))

    ends = hull(
        lambda ratio: found_at(1.0, ratio),
        estimate,
        1.0,
        difference.width / 2 / mean,
        (found_at(1.0, 0.0), -found_at(0.0, 1.0)),
    )
    return less_1(*ends, difference.method, n, difference)


def less_1(low: float, high: float, method: str, n: int, difference: Interval) -> Interval:
    """Return the interval of a ratio minus 1, from the ends of the ratio."""
    low, note = max(low, 0.0), ""
    if high == np.inf:
        note = "The relative difference has no upper end: the baseline cannot be told from 0."
    elif low == high:
        note = f"All {n:,} users have the same ratio: the interval has no width."
    found = Interval(low - 1, high - 1, method, difference.confidence, n, note)
    return on_side_of(found, difference)


def hull(
    quantile_at: Callable[[float], float],
    estimate: float,
    target: float,
    start: float,
    alone: tuple[float, float],
) -> tuple[float, float]:
    """Return the least and the largest ratio whose quantile is between -target and target.

    `quantile_at` is about 0 at the estimate, and above 0 below it. `start` guesses the distance
    from the estimate to the ends; 0 if they equal the estimate. `alone` has the quantiles of x
    alone and of y alone: if that of x is below the target, the lower end is 0; if that of y is,
    there is no upper end.
    """
    ends = []
    for sign, own in zip((-1.0, 1.0), alone, strict=True):
        if own < target:
            ends.append(0.0 if sign < 0 else np.inf)
            continue
        distance: float | None = 0.0
        if start > 0:
            distance = increasing_root(
                lambda x, sign=sign: -sign * quantile_at(estimate + sign * x),  # type: ignore[misc]
                target,
                start,
            )
        ends.append(sign * np.inf if distance is None else estimate + sign * distance)
    return ends[0], ends[1]


def on_side_of(relative: Interval, difference: Interval) -> Interval:
    """Return a relative interval, with the same signs of its ends as those of the difference."""
    ends = []
    for end, like in zip(relative, difference, strict=True):
        nearest = float(np.nextafter(0.0, like))
        of_sign = max(end, nearest) if like > 0 else min(end, nearest) if like < 0 else 0.0
        ends.append(end if np.isnan([end, like]).any() else of_sign)
    return dataclasses.replace(relative, low=ends[0], high=ends[1])


def _by_flips(ratios: Grouped, confidence: float) -> tuple[float, float]:
    """Return the ends of the interval of a ratio, by inverting the randomisation test.

    The interval has all ratios for which the test does not reject a mean of 0 of x - ratio · y.
    """
    from scipy.special import ndtri

    target = -float(ndtri((1 - confidence) / 2))
    x, y, counts = ratios.values, np.asarray(ratios.sizes), ratios.counts

    def quantile(z: Float64) -> float:
        return quantile_of(np.abs(z), counts, float(z @ counts)) if z.any() else 0.0

    start = 0.0 if ratios.constant else target * ratios.standard_error
    alone = quantile(x), quantile(y)
    return hull(lambda ratio: quantile(x - ratio * y), ratios.estimate, target, start, alone)


def _fieller(ratios: Grouped, confidence: float) -> tuple[float, float]:
    """Return the ends of the interval of a ratio, by inverting Student's t test of x - ratio · y.

    Let e be the residuals x - estimate · y, which add up to 0. A ratio at the distance d from the
    estimate is kept if d² ȳ² ≤ t² / n · (s²(e) - 2 d s(e, y) + d² s²(y)).
    """
    from scipy.special import stdtrit

    n, y, counts = ratios.n, np.asarray(ratios.sizes), ratios.counts
    if n < 2:
        return 0.0, np.inf
    mean = float(np.sum(counts * y)) / n
    share = float(stdtrit(n - 1, (1 + confidence) / 2)) ** 2 / (n * (n - 1))
    of_e = share * ratios.sum_of_squares
    both = share * float(np.sum(counts * ratios.residuals * (y - mean)))
    a = mean**2 - share * float(np.sum(counts * (y - mean) ** 2))
    # A distance d is kept if a d² + 2 both d - of_e is at most 0.
    root = float(np.sqrt(max(0.0, both**2 + a * of_e)))
    first = -ratios.estimate
    nothing_excluded = a * first**2 + 2 * both * first <= of_e
    if a <= 0:
        low = 0.0 if nothing_excluded or a == 0 else ratios.estimate + (-both + root) / a
        return low, np.inf
    low, high = ((-both + side * root) / a for side in (-1, 1))
    return 0.0 if nothing_excluded else ratios.estimate + low, ratios.estimate + high

"""Bootstrap intervals of means and ratios of means, without resampling."""

from __future__ import annotations

import numpy as np

from recometer.stats.ends import Interval
from recometer.stats.grouping import Grouped
from recometer.stats.saddlepoint import (
    increasing_root,
    normal_quantile_at_mean,
    normal_quantile_of,
)

PRECISION, STEPS = 1e-10, 200  # of the search for a saddlepoint
SMALLEST = 1e-300


def percentile(values: Grouped, confidence: float) -> Interval:
    """Return the percentile bootstrap's interval of a mean or a ratio of means.

    If users are drawn with replacement, the statistic of a resample is at most θ exactly when the
    mean of z = x - θ·y is at most 0. The saddlepoint approximation, with K(t) = n log(mean of
    exp(t·z)) and K'(t) = 0, gives the probability of this without resampling. (It is assumed that
    the sum of a resample's sizes is positive.) Efron & Tibshirani, "An Introduction to the
    Bootstrap", 1993, chapter 13; Davison & Hinkley, "Saddlepoint approximations in resampling
    methods", Biometrika 75, 1988.
    """
    from scipy.special import ndtri

    half = float(ndtri((1 + confidence) / 2))
    return _interval(values, -half, half, "percentile", confidence)


def bca(values: Grouped, confidence: float) -> Interval:
    """Return the bias-corrected and accelerated bootstrap interval (BCa); see `percentile`.

    z0 = Φ⁻¹(P(statistic of a resample ≤ statistic)) and a = Σ e³ / (6 (Σ e²)^1.5), with e the
    residuals x - estimate · y, move the levels to Φ(z0 + (z0 ± z) / (1 - a (z0 ± z))). Efron,
    "Better bootstrap confidence intervals", Journal of the American Statistical Association 82,
    1987.
    """
    from scipy.special import ndtri

    half = float(ndtri((1 + confidence) / 2))
    correction = normal_quantile_at_mean(values.skewness)  # both z0 and the acceleration a
    ends = []
    for end in (correction - half, correction + half):
        divisor = 1 - correction * end
        if divisor <= 0:
            return Interval.unknown(
                confidence,
                values.n,
                f"The {values.n:,} values are too skewed for a BCa interval.",
            )
        ends.append(correction + end / divisor)
    return _interval(values, ends[0], ends[1], "bca", confidence)


def _interval(values: Grouped, low: float, high: float, method: str, confidence: float) -> Interval:
    """Return the quantiles of the statistic of a resample at two normal quantiles."""
    n = values.n
    if n < 2:
        found = "One user has a value" if n else "No user has a value"
        return Interval.unknown(confidence, n, f"{found}; a bootstrap interval needs two.")
    if values.constant:
        note = (
            f"All {n:,} values are {values.estimate:g}: a bootstrap interval has no width then. "
            "Where the range of the values is known, Gaffke's interval has one."
        )
        return Interval(values.estimate, values.estimate, method, confidence, n, note)
    ends = [_quantile(values, quantile) for quantile in (low, high)]
    note = ""
    if not np.isfinite(ends).all():
        note = "The divisor is 0 in too many resamples: an end is not finite."
    return Interval(ends[0], ends[1], method, confidence, n, note)


def _quantile(values: Grouped, quantile: float) -> float:
    """Return the value that a resample does not exceed with probability Φ(quantile)."""
    estimate = values.estimate
    middle = normal_quantile_at_mean(values.skewness)
    sign = float(np.sign(quantile - middle))
    if not sign:
        return estimate
    scale = float(np.sqrt(values.sum_of_squares) / np.sum(values.counts * values.sizes))
    t = 0.0  # the result of the last search

    def quantile_at(distance: float) -> float:
        nonlocal t
        t, found = _chance_at(values, sign * distance, t)
        return sign * (found - middle)

    start = max(abs(quantile - middle), 1e-3) * scale
    distance = increasing_root(quantile_at, abs(quantile - middle), start)
    # Users of size 0 can move the ratio arbitrarily far in the direction of their x.
    if distance is None:
        return sign * np.inf
    return estimate + sign * distance


def _chance_at(values: Grouped, distance: float, start: float) -> tuple[float, float]:
    """Return the saddlepoint, and r, where Φ(r) is the probability of at most estimate + distance.

    At the saddlepoint t, the positive and the negative terms count · z · exp(t·z) add up to equal
    totals. Newton's method is applied to the logarithm of their ratio, which is nearly
    linear in t: it is the sum of a convex and a concave function, which both increase. If a step
    overshoots the root, the next step is therefore shorter, so the method always converges.
    """
    z, n = values.residuals - distance * values.sizes, values.n
    least, most = float(z.min()), float(z.max())
    if not least < 0 < most:
        return start, float(np.copysign(np.inf, distance))
    above, below = np.maximum(z, 0.0), np.maximum(-z, 0.0)
    terms = values.counts * np.stack([np.ones(len(z)), above, below, above**2, below**2])
    t = start
    for _ in range(STEPS):
        exponents = t * z
        largest = exponents.max()
        total, up, down, *squares = terms @ np.exp(exponents - largest)
        up, down = max(up, SMALLEST), max(down, SMALLEST)
        missing = np.log(down / up)
        if abs(missing) <= PRECISION:
            break
        t += missing / (squares[0] / up + squares[1] / down)
    exponent = -n * (largest + np.log(total / n))
    w = np.sign(t) * np.sqrt(max(0.0, 2 * exponent))
    u = t * np.sqrt(n * sum(squares) / total)
    return float(t), normal_quantile_of(float(w), float(u), values.skewness)

"""Gaffke's interval of the mean of values whose range is known."""

from __future__ import annotations

import math

import numpy as np

from recometer.arrays import Float64
from recometer.errors import InputError
from recometer.stats.ends import Interval
from recometer.stats.grouping import Grouped
from recometer.stats.saddlepoint import (
    increasing_root,
    normal_quantile_at_mean,
    normal_quantile_of,
)

Point = tuple[float, float]
ROUNDING = 1e-9  # of the range: values this far beyond an end count as the end
PRECISION, STEPS = 1e-13, 100  # of the search for a saddlepoint
LEAST = -10.0  # quantiles below it count as -∞


def beyond(values: Grouped, bounds: tuple[float, float]) -> float | None:
    """Return a value outside the bounds, or None if there is none."""
    low, high = bounds
    width = high - low
    allowed = ROUNDING * width if np.isfinite(width) else 0.0
    outside = values.values[(values.values < low - allowed) | (values.values > high + allowed)]
    return float(outside[0]) if len(outside) else None


def gaffke(values: Grouped, bounds: tuple[float, float], confidence: float) -> Interval:
    """Return Gaffke's interval of a mean; the values have no sizes, and the bounds are finite.

    Let y be the n values and the upper bound of the range, and W a draw from the Dirichlet
    distribution with n + 1 ones. The upper end is the (1 + confidence) / 2 quantile of Σ W·y; the
    lower end follows by reflection. If there are two different values and one of them is the bound,
    Σ W·y has a beta distribution: for 0 and 1 this gives the interval of Clopper & Pearson, and for
    constant values the exact bound behind the rule of three. Otherwise the saddlepoint
    approximation is used, since Σ W·y ≤ c is equivalent to Σ E·(y - c) ≤ 0 with E exponential.

    That it covers the mean often enough is a conjecture without proof or counterexample.
    Gaffke, "Three test statistics for a nonparametric one-sided hypothesis on the mean of a
    nonnegative variable", Mathematical Methods of Statistics 14, 2005; Learned-Miller & Thomas, "A
    new confidence interval for the mean of a bounded random variable", 2019.
    """
    low, high = bounds
    if not -np.inf < low < high < np.inf:
        raise InputError(
            f"bounds={bounds!r} are not a range: Gaffke's interval needs a finite lowest and "
            "highest value. Hint: take method='bca' for a metric without a range."
        )
    outside = beyond(values, bounds)
    if outside is not None:
        raise InputError(
            f"The value {outside:g} lies outside the range from {low:g} to {high:g}. "
            "Hint: give bounds= that hold for every user, or take method='bca'."
        )
    if not values.n:
        return Interval.unknown(confidence, values.n, "No user has a value.")
    level = (1 + confidence) / 2
    y, counts = _kinds(values, low, high)
    upper = _upper_end(y, counts, high, level)
    lower = -_upper_end(-y[::-1], counts[::-1], -low, level)
    two_kinds = bool(((y == low) | (y == high)).all())
    note = ""
    if len(y) == 1:
        found = f"All {values.n:,} values are" if values.n > 1 else "The only value is"
        note = (
            f"{found} {y[0]:g}; the interval is the exact bound for values "
            f"that may lie between {low:g} and {high:g}."
        )
    method = "clopper-pearson" if two_kinds else "gaffke"
    return Interval(lower, upper, method, confidence, values.n, note)


def ratio_ends(values: Grouped, low: Point, high: Point, confidence: float) -> tuple[float, float]:
    """Return the ends of Gaffke's interval of a ratio of means, Σ x / Σ y.

    One more user (x, y) is added: `low` for the lower end and `high` for the upper end, the least
    and the most favourable values that a user can have. With E exponential, a ratio r is excluded
    from below if P(Σ E·(x - r·y) ≤ 0), which increases with r, is at most (1 - confidence) / 2. If
    y is 1 for all users, this is the interval of `gaffke`.
    """
    from scipy.special import ndtri

    target, estimate = -float(ndtri((1 - confidence) / 2)), values.estimate
    ends = []
    for sign, point in ((-1.0, low), (1.0, high)):

        def quantile(distance: float, sign: float = sign, point: Point = point) -> float:
            return max(sign * quantile_at(values, point, estimate + sign * distance), LEAST)

        nearest = quantile(0.0)
        if nearest >= target:  # the estimate itself: all users are at the end of the range
            ends.append(estimate)
            continue
        start = values.standard_error if values.n > 1 else 0.0
        found = increasing_root(
            lambda x, of=quantile, less=nearest: of(x) - less,  # type: ignore[misc]
            target - nearest,
            target * start or abs(estimate) or 1.0,
        )
        ends.append(sign * np.inf if found is None else estimate + sign * found)
    return ends[0], ends[1]


def quantile_at(values: Grouped, point: Point, ratio: float) -> float:
    """Return r with Φ(r) = P(Σ E·(x - ratio·y) ≤ 0) for the users and one more; see `ratio_ends`.

    It is far below 0 if the ratio is excluded from below, and far above 0 if excluded from above.
    """
    z = np.append(values.values - ratio * values.sizes, point[0] - ratio * point[1])
    return _chance(z, np.append(values.counts, 1.0))


def _chance(z: Float64, counts: Float64) -> float:
    """Return r with Φ(r) = P(Σ E·z ≤ 0), E exponential. It is exact for two sizes other than 0.

    The approximation uses K(t) = -Σ log(1 - t·z), K'(t) = 0, w = ±√(-2 K) and u = t √K''(t).
    """
    from scipy.special import betainc, ndtri

    most = float(np.abs(z).max())
    some = np.abs(z) > ROUNDING**1.5 * most
    z, counts = z[some] / (most or 1.0), counts[some]
    if not len(z) or z.max() <= 0:
        return np.inf
    least, most = float(z.min()), float(z.max())
    if least >= 0:
        return -np.inf
    below, above = counts[z < 0], counts[z > 0]
    same = 1 - ROUNDING
    if (z[z < 0] <= same * least).all() and (z[z > 0] >= same * most).all():
        m, k, share = below.sum(), above.sum(), -least / (most - least)
        up_to, beyond_it = float(betainc(k, m, share)), float(betainc(m, k, 1 - share))
        return float(ndtri(up_to)) if up_to <= beyond_it else -float(ndtri(beyond_it))
    t, first, last = 0.0, 1 / least, 1 / most
    for _ in range(STEPS):
        terms = z / (1 - t * z)
        slope, second = float(counts @ terms), float(counts @ terms**2)
        if abs(slope) <= PRECISION * float(counts @ np.abs(terms)):
            break
        first, last = (t, last) if slope < 0 else (first, t)
        t -= slope / second
        if not first < t < last:
            t = (first + last) / 2
    exponent = float(counts @ np.log1p(-t * z))  # -K(t)
    w = math.copysign(math.sqrt(max(0.0, 2 * exponent)), t)
    skewness = 2 * float(counts @ z**3) / float(counts @ z**2) ** 1.5
    return normal_quantile_of(w, t * math.sqrt(second), skewness)


def _kinds(values: Grouped, low: float, high: float) -> tuple[Float64, Float64]:
    """Return the distinct values in ascending order with their counts, merging rounding errors."""
    y, same = np.clip(values.values, low, high), ROUNDING * (high - low)
    y = np.where(y - low <= same, low, np.where(high - y <= same, high, y))
    starts = np.flatnonzero(np.diff(y, prepend=-np.inf) > same)
    return y[starts], np.add.reduceat(values.counts, starts)


def _upper_end(y: Float64, counts: Float64, bound: float, level: float) -> float:
    """Return the quantile of Σ W·y, where y is ascending."""
    if y[-1] != bound:
        y, counts = np.append(y, bound), np.append(counts, 1.0)
    else:
        counts = np.append(counts[:-1], counts[-1] + 1.0)
    if len(y) == 1 or level == 1:  # the confidence is very close to 1
        return bound
    if len(y) == 2:
        from scipy.special import betaincinv

        share = float(betaincinv(counts[1], counts[0], level))
        return float(y[0] + (bound - y[0]) * share)
    return _quantile(y, counts, level)


def _quantile(y: Float64, counts: Float64, level: float) -> float:
    """Return a quantile of Σ W·y, by saddlepoint approximation.

    Let z = y - c and K(t) = -Σ log(1 - t·z). Given s = t / (1 + t·c), K'(t) = 0 has the solution
    c = Σ y / (1 - s·y) ÷ Σ 1 / (1 - s·y), so that one search for s, from 0 to 1 / max(y), finds
    the quantile. With max(y) = 1 and r = s / (1 - s), 1 - s·y equals (1 - s) (1 + r·(1 - y)), which
    avoids differences of nearly equal numbers. The search is for v = log(1 + r).
    """
    from scipy.special import ndtri

    middle = float(counts @ y / counts.sum())
    y = y - middle
    squares = float(counts @ y**2)
    # The skewness of Σ E·y, whose second and third cumulants are Σ y² and 2 Σ y³.
    skewness = 2 * float(counts @ y**3) / squares**1.5
    target, at_middle = float(ndtri(level)), normal_quantile_at_mean(skewness)
    if target == at_middle:
        return middle
    most = float(y.max() if target > at_middle else y.min())  # reflect everything below the middle
    sign, distance = math.copysign(1.0, most), abs(target - at_middle)
    below = 1 - y / most

    def centre(v: float) -> tuple[float, Float64, float]:
        r = float(np.expm1(v))
        inverse = 1 / (1 + r * below)
        weight = counts * inverse
        return float(weight @ below / weight.sum()), inverse, r

    def quantile_of(v: float) -> float:
        c_below, inverse, r = centre(v)
        # 1 - t·z = (1 - s·y) / (1 - s·c), and t·√K'' = s √Σ((y - c) / (1 - s·y))².
        exponent = -float(counts @ np.log((1 + r * c_below) * inverse))
        second = float(counts @ ((c_below - below) * inverse) ** 2)
        w = float(np.sqrt(max(0.0, 2 * exponent)))
        return normal_quantile_of(w, r * float(np.sqrt(second)), sign * skewness) - sign * at_middle

    v = increasing_root(quantile_of, distance, distance * abs(most) / float(np.sqrt(squares)))
    return middle + (most if v is None else most * (1 - centre(v)[0]))

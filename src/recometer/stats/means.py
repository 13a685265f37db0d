"""Intervals of means and of relative differences: Gaffke's, Student's t and bootstrap intervals."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from recometer.arrays import Float64
from recometer.errors import InputError, UnknownNameError, did_you_mean
from recometer.stats.checks import Bounds, check_bounds
from recometer.stats.ends import Interval, check_confidence
from recometer.stats.grouping import (
    LARGEST,
    Column,
    Grouped,
    by_cluster,
    column,
    group,
    group_checked,
)
from recometer.stats.runs import RunMoments, over_runs_of
from recometer.stats.saddlepoint import (
    increasing_root,
    normal_quantile_of,
    quantile_of,
)

# If the effective number of clusters is below 50, the bootstrap interval covers the mean too rarely
# (docs/statistics.md).
FEW_CLUSTERS = 50
ROUNDING = 1e-9  # the tolerance at each end of a range, as a share of its width
LEAST = -10.0  # `ratio_ends` raises lower normal quantiles, such as -∞, to this value
SMALLEST = 1e-300  # replaces sums that underflow to 0, so that they have a logarithm
# `_chance` searches for a saddlepoint to this precision, in at most this many steps;
# `_resample_chance` uses the constants that begin with TILT.
PRECISION, STEPS = 1e-13, 100
TILT_PRECISION, TILT_STEPS = 1e-10, 200

NOBODY = "No user has both values."
NOT_ABOVE_0 = "The mean that the difference is relative to is not above 0."
NEGATIVE = "The metric can be negative, so a relative difference has no meaning."

Kind = Literal["auto", "gaffke", "t", "percentile", "bca"]


def interval(
    values: npt.ArrayLike | Column | Grouped,
    kind: Kind = "auto",
    *,
    bounds: Bounds | None = None,
    confidence: float = 0.95,
    weights: npt.ArrayLike | None = None,
    clusters: npt.ArrayLike | None = None,
) -> Interval:
    """Return the confidence interval of a mean over users.

    Parameters
    ----------
    values : [n_users], or from `group`
        The value for each user; users with NaN are left out.
    kind
        ``"gaffke"``, ``"t"``, ``"percentile"`` or ``"bca"``. ``"auto"`` chooses ``"gaffke"`` if
        the range is known and all values are within it, and otherwise ``"bca"``; the interval's
        note says why.
        With clusters of different sizes, ``"auto"`` chooses Gaffke's bound over the cluster sums if
        the effective number of clusters, (Σ size)² / Σ size², is below 50, and otherwise
        ``"bca"``.
    bounds
        The lowest and the highest value that a user can have; infinite or None if unknown.
        Student's interval may extend beyond them.
    confidence
        The confidence level, in (0, 1).
    weights : [n_users] or None
        The users' weights in a weighted mean, at least 0. A weighted mean is a ratio of means, for
        which there is no Gaffke interval.
    clusters : [n_users] or None
        The cluster of each row, such as a user with several sessions, or a fold. The interval
        treats whole clusters as independent; the mean is still over rows.

    Returns
    -------
    Interval
        The interval, with the method that computed it and a note.

    Raises
    ------
    InputError
        If any value is infinite or not numeric, if the lengths differ, or if `kind` is
        ``"gaffke"`` and there is no range or a value is outside it.
    UnknownNameError
        If there is no such kind of interval.

    Examples
    --------
    >>> from recometer.stats import interval
    >>> found = interval([0, 0, 1, 0, 0, 0, 0, 0, 0, 0], bounds=(0, 1))
    >>> f"{found.low:.4f} {found.high:.4f} {found.method}"
    '0.0025 0.4450 clopper-pearson'
    """
    check_confidence(confidence)
    bounds = None if bounds is None else check_bounds(bounds)
    if kind not in get_args(Kind):
        hint = did_you_mean(str(kind), get_args(Kind))
        raise UnknownNameError(f"There is no interval {kind!r}. {hint}")
    units = in_units(values, weights, clusters)
    if kind == "t":
        return student(units, confidence)
    plain, note = isinstance(units.sizes, float), ""
    if kind == "gaffke" and plain:
        return gaffke(units, bounds or (-np.inf, np.inf), confidence)
    if kind in ("auto", "gaffke"):
        if weights is None and not plain and units.n and bounds is not None:
            # the effective number of clusters: (Σ size)² / Σ size²
            sizes, counts = np.asarray(units.sizes), units.counts
            n_equal = float(np.sum(counts * sizes) ** 2 / np.sum(counts * sizes**2))
            if n_equal < FEW_CLUSTERS and within(units, bounds):
                return _of_few_clusters(units, bounds, confidence, n_equal)
        note = _why_not_gaffke(units, bounds, weighted=weights is not None)
        if not note and bounds is not None:
            return gaffke(units, bounds, confidence)
    drawn = bootstrap(units, confidence, "percentile" if kind == "percentile" else "bca")
    note = " ".join(part for part in (note, drawn.note) if part)
    outside = beyond(units, bounds) if plain and bounds is not None else None
    return dataclasses.replace(drawn.within(bounds) if outside is None else drawn, note=note)


def in_units(
    values: npt.ArrayLike | Column | Grouped,
    weights: npt.ArrayLike | None,
    clusters: npt.ArrayLike | None,
) -> Grouped:
    """Group the weighted values, or their sums over clusters; see `interval`.

    The weights, or their sums over clusters, become the sizes. If all of them are equal, the sizes
    are 1, and the mean is a plain mean.
    """
    if isinstance(values, Grouped):
        return values
    if weights is None and clusters is None:
        if not isinstance(values, Column) or values.levels is None or not values.complete:
            return group(values.values if isinstance(values, Column) else values)
        assert values.codes is not None
        times = np.bincount(values.codes, minlength=len(values.levels)).astype(np.float64)
        return group_checked(values.levels, None, times)
    x = values.values if isinstance(values, Column) else column(values)
    y = np.ones(len(x)) if weights is None else column(weights, "weights")
    if len(x) != len(y):
        raise InputError(
            f"There are {len(x):,} values, but {len(y):,} weights. Hint: pass one weight per value."
        )
    if (y < 0).any():
        raise InputError(f"A weight is {y[y < 0][0]:g}, but weights must be at least 0.")
    left_out = np.isnan(x * y)
    x, y = np.where(left_out, 0.0, x * y), np.where(left_out, 0.0, y)
    if clusters is not None:
        x, y = by_cluster(clusters, x, y)
    x, y = x[y > 0], y[y > 0]
    if not len(x) or (y == y[0]).all():
        return group(x / y)
    return group(x, y)


def student(values: Grouped, confidence: float) -> Interval:
    """Return Student's t interval of a mean, or of a linearised ratio of means.

    The ends are estimate ± t(n - 1, (1 + confidence) / 2) · `values.standard_error`.
    Student, "The probable error of a mean", Biometrika 6, 1908.
    """
    without_width = _without_width(values, "t", "Student's t interval", confidence)
    if without_width is not None:
        return without_width
    from scipy.special import stdtrit

    half = float(stdtrit(values.n - 1, (1 + confidence) / 2)) * values.standard_error
    return Interval(values.estimate - half, values.estimate + half, "t", confidence, values.n)


def _without_width(values: Grouped, method: str, name: str, confidence: float) -> Interval | None:
    """Return the interval if there are fewer than two values, or all are equal; otherwise None."""
    n = values.n
    if n < 2:
        users = "One user has a value" if n else "No user has a value"
        return Interval.unknown(confidence, n, f"{users}; {name} needs two.")
    if not values.constant:
        return None
    note = (
        f"All {n:,} values are {values.estimate:g}, so {name} has no width. If the range of the "
        "values is known, Gaffke's interval has one."
    )
    return Interval(values.estimate, values.estimate, method, confidence, n, note)


def within(values: Grouped, bounds: Bounds | None) -> bool:
    """Return whether the range is finite and contains all values or cluster sums."""
    if bounds is None or not -LARGEST < bounds[0] < bounds[1] < LARGEST:
        return False
    return beyond(values, bounds) is None


def _of_few_clusters(
    values: Grouped, bounds: Bounds, confidence: float, n_equal: float
) -> Interval:
    """Return Gaffke's interval over the cluster sums, assuming that no larger clusters exist."""
    interval = gaffke_of_units(values, bounds, confidence, float(np.max(values.sizes)))
    note = (
        f"The {values.n:,} clusters differ in size and count as {n_equal:.0f} clusters of equal "
        "size: the interval is Gaffke's bound over their sums, which assumes that no cluster is "
        "larger."
    )
    return dataclasses.replace(interval, note=note).within(bounds)


def _why_not_gaffke(values: Grouped, bounds: Bounds | None, *, weighted: bool) -> str:
    """Return the reason why Gaffke's interval cannot be used, or an empty string if it can."""
    instead = "so the interval is the bootstrap's (BCa), not Gaffke's."
    if not isinstance(values.sizes, float):
        why = "mean is weighted" if weighted else "clusters differ in size"
        return f"The {why}, {instead}"
    if bounds is None or not -LARGEST < bounds[0] < bounds[1] < LARGEST:
        return f"The metric has no known range, {instead}"
    outside = beyond(values, bounds)
    if outside is not None:
        low, high = bounds
        return f"The value {outside:g} lies outside the range from {low:g} to {high:g}, {instead}"
    return ""


def bootstrap(values: Grouped, confidence: float, kind: Literal["percentile", "bca"]) -> Interval:
    """Return a bootstrap interval of a mean or a ratio of means, without resampling.

    A resample draws users with replacement. Its statistic is at most θ exactly when its mean of
    z = x - θ·y is at most 0 (and its sum of sizes is positive). The probability of this is found by
    saddlepoint approximation, with K(t) = n log(mean of exp(t·z) over all n users) and the t for
    which K'(t) = 0. Efron & Tibshirani, "An Introduction to the Bootstrap", 1993, chapter 13;
    Davison & Hinkley, "Saddlepoint approximations in resampling methods", Biometrika 75, 1988.

    Let z = Φ⁻¹((1 + confidence) / 2). The ends of the percentile interval are the quantiles of the
    resampled statistic at the levels Φ(±z). Those of the bias-corrected and accelerated interval
    (BCa) are at the levels Φ(z0 + (z0 ± z) / (1 - a (z0 ± z))), with
    z0 = Φ⁻¹(P(statistic of a resample ≤ statistic)), a = Σ e³ / (6 (Σ e²)^1.5), and the residuals
    e = x - estimate · y. Efron, "Better bootstrap confidence intervals", Journal of the American
    Statistical Association 82, 1987.
    """
    from scipy.special import ndtri

    half = float(ndtri((1 + confidence) / 2))
    quantiles = [-half, half]
    if kind == "bca":
        correction = normal_quantile_of(0.0, 0.0, values.skewness)  # both z0 and a
        quantiles = [correction + quantile for quantile in quantiles]
        divisors = [1 - correction * quantile for quantile in quantiles]
        if min(divisors) <= 0:
            return Interval.unknown(
                confidence, values.n, f"The {values.n:,} values are too skewed for a BCa interval."
            )
        pairs = zip(quantiles, divisors, strict=True)
        quantiles = [correction + quantile / divisor for quantile, divisor in pairs]
    without_width = _without_width(values, kind, "a bootstrap interval", confidence)
    if without_width is not None:
        return without_width
    low, high = (_resample_quantile(values, quantile) for quantile in quantiles)
    note = ""
    if not np.isfinite([low, high]).all():
        note = "The divisor is 0 in too many resamples, so one end of the interval is infinite."
    return Interval(low, high, kind, confidence, values.n, note)


def _resample_quantile(values: Grouped, quantile: float) -> float:
    """Return the quantile of a resample's statistic at the level Φ(quantile)."""
    estimate = values.estimate
    middle = normal_quantile_of(0.0, 0.0, values.skewness)
    sign = float(np.sign(quantile - middle))
    if not sign:
        return estimate
    scale = float(np.sqrt(values.sum_of_squares) / np.sum(values.counts * values.sizes))
    t = 0.0  # the saddlepoint of the last call, at which the next search starts

    def quantile_at(distance: float) -> float:
        nonlocal t
        t, normal = _resample_chance(values, sign * distance, t)
        return sign * (normal - middle)

    start = max(abs(quantile - middle), 1e-3) * scale
    distance = increasing_root(quantile_at, abs(quantile - middle), start)
    # Users of size 0 can move the ratio arbitrarily far in the direction of their x.
    if distance is None:
        return sign * np.inf
    return estimate + sign * distance


def _resample_chance(values: Grouped, distance: float, start: float) -> tuple[float, float]:
    """Return the saddlepoint t, and r with Φ(r) = P(statistic ≤ estimate + distance).

    The statistic is that of a resample. At the saddlepoint, the positive and negative terms
    count · z · exp(t·z) add up to 0. Newton's method is applied to the logarithm of the ratio of
    their totals, which is nearly linear in t: it is the sum of a convex and a concave function,
    both increasing. If a step overshoots the root, the next step is therefore shorter, so the
    method always converges.
    """
    z, n = values.residuals - distance * values.sizes, values.n
    low, high = float(z.min()), float(z.max())
    if not low < 0 < high:
        return start, float(np.copysign(np.inf, distance))
    above, below = np.maximum(z, 0.0), np.maximum(-z, 0.0)
    terms = values.counts * np.stack([np.ones(len(z)), above, below, above**2, below**2])
    t = start
    for _ in range(TILT_STEPS):
        exponents = t * z
        largest = exponents.max()
        total, up, down, *squares = terms @ np.exp(exponents - largest)
        up, down = max(up, SMALLEST), max(down, SMALLEST)
        missing = np.log(down / up)
        if abs(missing) <= TILT_PRECISION:
            break
        t += missing / (squares[0] / up + squares[1] / down)
    exponent = -n * (largest + np.log(total / n))
    w = np.sign(t) * np.sqrt(max(0.0, 2 * exponent))
    u = t * np.sqrt(n * sum(squares) / total)
    return float(t), normal_quantile_of(float(w), float(u), values.skewness)


Point = tuple[float, float]


def beyond(values: Grouped, bounds: Bounds) -> float | None:
    """Return a value or a cluster sum that lies outside the bounds, or None if there is none."""
    (low, high), x, sizes = bounds, values.values, values.sizes
    allowed = ROUNDING * (high - low) if np.isfinite(high - low) else 0.0
    outside = x[(x < (low - allowed) * sizes) | (x > (high + allowed) * sizes)]
    return float(outside[0]) if len(outside) else None


def gaffke(values: Grouped, bounds: tuple[float, float], confidence: float) -> Interval:
    """Return Gaffke's interval of a plain mean (without sizes), given finite bounds.

    Let y be the n values and the upper bound of the range, and W a draw from the Dirichlet
    distribution whose n + 1 parameters are all 1. The upper end is the (1 + confidence) / 2
    quantile of Σ W·y; the lower end follows by reflection. If y has two distinct values, Σ W·y has
    a scaled beta distribution: for 0 and 1 this gives the interval of Clopper & Pearson, and for
    constant values the exact bound behind the rule of three. Otherwise, the quantile is found by
    saddlepoint approximation, using P(Σ W·y ≤ c) = P(Σ E·(y - c) ≤ 0) for independent exponential
    variables E.

    That the interval covers the mean often enough is a conjecture without a known counterexample.
    Gaffke, "Three test statistics for a nonparametric one-sided hypothesis on the mean of a
    nonnegative variable", Mathematical Methods of Statistics 14, 2005; Learned-Miller & Thomas, "A
    new confidence interval for the mean of a bounded random variable", 2019.
    """
    low, high = bounds
    if not -np.inf < low < high < np.inf:
        raise InputError(
            f"bounds={bounds!r} are not a range: Gaffke's interval needs a finite lowest and "
            "highest value. Hint: use method='bca' for a metric without a range."
        )
    outside = beyond(values, bounds)
    if outside is not None:
        raise InputError(
            f"The value {outside:g} lies outside the range from {low:g} to {high:g}. "
            "Hint: pass bounds= that hold for every user, or use method='bca'."
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
        subject = f"All {values.n:,} values are" if values.n > 1 else "The only value is"
        note = (
            f"{subject} {y[0]:g}; the interval is the exact bound for values "
            f"that may lie between {low:g} and {high:g}."
        )
    method = "clopper-pearson" if two_kinds else "gaffke"
    return Interval(lower, upper, method, confidence, values.n, note)


def gaffke_of_units(values: Grouped, bounds: Bounds, confidence: float, largest: float) -> Interval:
    """Return Gaffke's interval over users, or over clusters of at most `largest` rows."""
    if isinstance(values.sizes, float):
        return gaffke(values, bounds, confidence)
    ends = ratio_ends(values, *extremes(bounds, largest), confidence)
    return Interval(*ends, "gaffke", confidence, values.n)


def extremes(bounds: Bounds, largest: float) -> tuple[Point, Point]:
    """Return the sums and sizes of the two most extreme possible clusters, for `ratio_ends`."""
    return (largest * bounds[0], largest), (largest * bounds[1], largest)


def ratio_ends(values: Grouped, low: Point, high: Point, confidence: float) -> tuple[float, float]:
    """Return the ends of Gaffke's interval of a ratio of means, Σ x / Σ y.

    One more user (x, y) is added: for the lower end, `low`, which has the least favourable values
    possible, and for the upper end, `high`, which has the most favourable ones. Let the E be
    independent exponential variables. A ratio r is too low if P(Σ E·(x - r·y) ≤ 0), which increases
    with r, is at most (1 - confidence) / 2, and too high if it is at least (1 + confidence) / 2. If
    y is 1 for all users, this is the interval of `gaffke`.
    """
    from scipy.special import ndtri

    target, estimate = -float(ndtri((1 - confidence) / 2)), values.estimate
    ends = []
    for sign, point in ((-1.0, low), (1.0, high)):

        def quantile(distance: float, sign: float = sign, point: Point = point) -> float:
            return max(sign * quantile_at(values, point, estimate + sign * distance), LEAST)

        nearest = quantile(0.0)
        if nearest >= target:  # all users are at the end of the range, so the estimate is the end
            ends.append(estimate)
            continue
        start = values.standard_error if values.n > 1 else 0.0
        distance = increasing_root(
            lambda x, of=quantile, less=nearest: of(x) - less,  # type: ignore[misc]
            target - nearest,
            target * start or abs(estimate) or 1.0,
        )
        ends.append(sign * np.inf if distance is None else estimate + sign * distance)
    return ends[0], ends[1]


def quantile_at(values: Grouped, point: Point, ratio: float) -> float:
    """Return r with Φ(r) = P(Σ E·(x - ratio·y) ≤ 0) for the users and `point`; see `ratio_ends`.

    r is far below 0 if the ratio is too low, and far above 0 if the ratio is too high.
    """
    z = np.append(values.values - ratio * values.sizes, point[0] - ratio * point[1])
    return _chance(z, np.append(values.counts, 1.0))


def _chance(z: Float64, counts: Float64) -> float:
    """Return r with Φ(r) = P(Σ E·z ≤ 0), where the E are independent exponential variables.

    r is exact if all negative z are equal and all positive z are equal. Otherwise, it is a
    saddlepoint approximation with K(t) = -Σ log(1 - t·z), K'(t) = 0, w = ±√(-2 K(t)) and
    u = t √K''(t); see `normal_quantile_of`.
    """
    from scipy.special import betainc, ndtri

    largest = float(np.abs(z).max())
    nonzero = np.abs(z) > ROUNDING**1.5 * largest
    z, counts = z[nonzero] / (largest or 1.0), counts[nonzero]
    if not len(z) or z.max() <= 0:
        return np.inf
    least, largest = float(z.min()), float(z.max())
    if least >= 0:
        return -np.inf
    below, above = counts[z < 0], counts[z > 0]
    same = 1 - ROUNDING
    if (z[z < 0] <= same * least).all() and (z[z > 0] >= same * largest).all():
        m, k, share = below.sum(), above.sum(), -least / (largest - least)
        up_to, beyond_it = float(betainc(k, m, share)), float(betainc(m, k, 1 - share))
        return float(ndtri(up_to)) if up_to <= beyond_it else -float(ndtri(beyond_it))
    t, first, last = 0.0, 1 / least, 1 / largest
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
    """Merge values that differ only by rounding; return them in ascending order with counts."""
    y, same = np.clip(values.values, low, high), ROUNDING * (high - low)
    y = np.where(y - low <= same, low, np.where(high - y <= same, high, y))
    starts = np.flatnonzero(np.diff(y, prepend=-np.inf) > same)
    return y[starts], np.add.reduceat(values.counts, starts)


def _upper_end(y: Float64, counts: Float64, bound: float, level: float) -> float:
    """Return the `level` quantile of Σ W·y for ascending values y and the bound; see `gaffke`."""
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
    """Return the `level` quantile c of Σ W·y by saddlepoint approximation; see `gaffke`.

    Let z = y - c and K(t) = -Σ log(1 - t·z). With s = t / (1 + t·c), K'(t) = 0 has the solution
    c = Σ y / (1 - s·y) ÷ Σ 1 / (1 - s·y), so a single search for s, from 0 to 1 / max(y), finds
    the quantile. With max(y) = 1 and r = s / (1 - s), 1 - s·y equals (1 - s) (1 + r·(1 - y)), which
    avoids differences of nearly equal numbers. The search variable is v = log(1 + r).
    """
    from scipy.special import ndtri

    middle = float(counts @ y / counts.sum())
    y = y - middle
    squares = float(counts @ y**2)
    # The second and the third cumulant of Σ E·y are Σ y² and 2 Σ y³.
    skewness = 2 * float(counts @ y**3) / squares**1.5
    target, at_middle = float(ndtri(level)), normal_quantile_of(0.0, 0.0, skewness)
    if target == at_middle:
        return middle
    end = float(y.max() if target > at_middle else y.min())  # the end on the quantile's side
    sign, distance = math.copysign(1.0, end), abs(target - at_middle)
    below = 1 - y / end

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

    v = increasing_root(quantile_of, distance, distance * abs(end) / float(np.sqrt(squares)))
    return middle + (end if v is None else end * (1 - centre(v)[0]))


def relative_interval(
    ratios: Grouped,
    difference: Interval,
    bounds: tuple[float, float] | None = None,
    largest: float = 1.0,
) -> Interval:
    """Return the interval of all θ ≥ -1 for which the mean of x - (1 + θ)·y may be 0.

    The method is the same as for `difference` (the interval of the mean of x - y): inversion of
    the randomisation test, Gaffke's bound, or Student's t (Fieller, "Some problems in interval
    estimation", Journal of the Royal Statistical Society B 16, 1954). If the mean of y may be 0,
    there is no upper end. If the set of all θ has gaps, the interval includes them. Each end has
    the same sign as the corresponding end of `difference`, because the mean of x - y has the sign
    of θ. `ratios` has x (at least 0) as values and y as sizes, or their sums over clusters.
    `largest` is the number of rows in the largest cluster.
    """
    method, confidence = difference.method, difference.confidence
    if method == "none":
        return Interval.unknown(confidence, ratios.n, difference.note)
    if method in ("gaffke", "clopper-pearson"):
        assert bounds is not None
        lowest, highest = (largest * end for end in bounds)
        low, high = ratio_ends(ratios, (lowest, highest), (highest, lowest), confidence)
        method = "gaffke"
    elif method == "t":
        low, high = _fieller(ratios, confidence)
    else:
        low, high = flip_ends(ratios, confidence, ratios.values, np.asarray(ratios.sizes))
    return minus_1(low, high, method, ratios.n, difference)


def relative_over_runs(ratios: Grouped, runs: RunMoments, difference: Interval) -> Interval:
    """Return the interval of all θ ≥ -1 that `over_runs` does not rule out.

    These are the θ for which the interval of `over_runs` for x - (1 + θ)·y contains 0. `ratios` is
    as in `relative_interval`, with each user's means over runs as x and y.
    """
    confidence, n, estimate = difference.confidence, ratios.n, ratios.estimate
    if difference.method == "none":
        return Interval.unknown(confidence, n, difference.note)
    mean, *squares = _of_sizes(ratios)
    of_y, both, of_residuals = (part / max(1, n - 1) for part in (*squares, ratios.sum_of_squares))

    def t_test(share: float, ratio: float) -> tuple[float, float]:
        slope = share * estimate - ratio  # share · x - ratio · y is share · residual + slope · y
        variance = share**2 * of_residuals + 2 * share * slope * both + slope**2 * of_y
        squares = tuple(
            (scale**2 * between, scale**2 * within)
            for scale, (between, within) in zip((share, ratio), runs.squares, strict=True)
        )
        moments = RunMoments(n, slope * mean, max(0.0, variance), runs.n_runs, squares)
        result = over_runs_of(moments, confidence=confidence)
        return result.mean, result.interval.width / 2

    return relative_by_t(t_test, estimate, mean, difference)


def relative_by_t(
    t_test: Callable[[float, float], tuple[float, float]],
    estimate: float,
    mean: float,
    difference: Interval,
) -> Interval:
    """Return the interval of all θ ≥ -1 for which a t interval of x - (1 + θ)·y contains 0.

    `t_test` takes a share and a ratio, and returns the mean of share · x - ratio · y and half the
    width of its interval. `mean` is the mean of y, and `estimate` is the ratio of the two means.
    """

    def distance_at(share: float, ratio: float) -> float:
        centre, half = t_test(share, ratio)
        return centre / half if half > 0 else float(np.copysign(np.inf, centre))

    ends = hull(
        lambda shift: distance_at(1.0, estimate + shift),
        estimate,
        1.0,
        difference.width / 2 / mean,
        (distance_at(1.0, 0.0), -distance_at(0.0, 1.0)),
    )
    return minus_1(*ends, difference.method, difference.n, difference)


def minus_1(low: float, high: float, method: str, n: int, difference: Interval) -> Interval:
    """Return the interval of a ratio minus 1, given the ends of the ratio's interval."""
    low, note = max(low, 0.0), ""
    if high == np.inf:
        note = (
            "The relative difference has no upper end: the baseline cannot be distinguished from 0."
        )
    elif low == high:
        note = f"All {n:,} users have the same ratio, so the interval has zero width."
    relative = Interval(low - 1, high - 1, method, difference.confidence, n, note)
    return on_side_of(relative, difference)


def hull(
    quantile_at: Callable[[float], float],
    estimate: float,
    target: float,
    start: float,
    alone: Sequence[float],
) -> tuple[float, float]:
    """Return the lowest and the highest ratio whose quantile is between -target and target.

    `quantile_at` is a decreasing function of the ratio minus the estimate, and is about 0 at 0.
    `start` is a first guess at the distance from the estimate to the ends, or 0 if both ends equal
    the estimate. `alone` contains the quantiles for x alone and for y alone. If the first is below
    the target, the lower end is 0; if the second is below it, there is no upper end.
    """
    ends = []
    for sign, own in zip((-1.0, 1.0), alone, strict=True):
        if own < target:
            ends.append(0.0 if sign < 0 else np.inf)
            continue
        distance: float | None = 0.0
        if start > 0:
            distance = increasing_root(
                lambda x, sign=sign: -sign * quantile_at(sign * x),  # type: ignore[misc]
                target,
                start,
            )
        ends.append(sign * np.inf if distance is None else estimate + sign * distance)
    return ends[0], ends[1]


def on_side_of(relative: Interval, difference: Interval) -> Interval:
    """Move each end of a relative interval to the same side of 0 as the difference's end."""
    ends = []
    for end, like in zip(relative, difference, strict=True):
        nearest = float(np.nextafter(0.0, like))
        of_sign = max(end, nearest) if like > 0 else min(end, nearest) if like < 0 else 0.0
        ends.append(end if np.isnan([end, like]).any() else of_sign)
    return dataclasses.replace(relative, low=ends[0], high=ends[1])


def flip_ends(units: Grouped, confidence: float, *alone: Float64) -> tuple[float, float]:
    """Return the ends of the interval of a ratio, found by inverting the randomisation test.

    The interval contains all ratios for which the test does not reject that x - ratio · y has a
    mean of 0. If `alone` is x and y (both at least 0), the interval includes 0 if the test does not
    reject that x has a mean of 0, and has no upper end if it does not reject the same for y.
    """
    from scipy.special import ndtri

    target = -float(ndtri((1 - confidence) / 2))
    counts, total_size = units.counts, float(np.sum(units.counts * units.sizes))

    def quantile_at(shift: float) -> float:
        shifted = units.residuals - shift * units.sizes
        return quantile_of(np.abs(shifted), counts, -shift * total_size)

    start = 0.0 if units.constant else target * units.standard_error
    own = [quantile_of(z, counts, float(z @ counts)) if z.any() else 0.0 for z in alone]
    return hull(quantile_at, units.estimate, target, start, own or (np.inf, np.inf))


def _fieller(ratios: Grouped, confidence: float) -> tuple[float, float]:
    """Return the ends of the interval of a ratio, found by inverting the t test of x - ratio · y.

    Let e be the residuals x - estimate · y, which add up to 0, and t the critical value of the
    test. The interval contains estimate + d if d² ȳ² ≤ t² / n · (s²(e) - 2 d s(e, y) + d² s²(y)),
    where ȳ is the mean of y, s² is a variance and s(e, y) is a covariance.
    """
    from scipy.special import stdtrit

    n = ratios.n
    if n < 2:
        return 0.0, np.inf
    mean, squares, products = _of_sizes(ratios)
    share = float(stdtrit(n - 1, (1 + confidence) / 2)) ** 2 / (n * (n - 1))
    of_e = share * ratios.sum_of_squares
    both = share * products
    a = mean**2 - share * squares
    # In these terms, the interval contains estimate + d if a d² + 2 both d - of_e is at most 0.
    root = float(np.sqrt(max(0.0, both**2 + a * of_e)))
    first = -ratios.estimate
    nothing_excluded = a * first**2 + 2 * both * first <= of_e
    if a <= 0:
        low = 0.0 if nothing_excluded or a == 0 else ratios.estimate + (-both + root) / a
        return low, np.inf
    low, high = ((-both + side * root) / a for side in (-1, 1))
    return 0.0 if nothing_excluded else ratios.estimate + low, ratios.estimate + high


def _of_sizes(ratios: Grouped) -> tuple[float, float, float]:
    """Return the mean of y, Σ (y - mean)², and Σ (y - mean) · residual."""
    y, counts = np.asarray(ratios.sizes), ratios.counts
    mean = float(np.sum(counts * y)) / ratios.n
    products = np.sum(counts * ratios.residuals * (y - mean))
    return mean, float(np.sum(counts * (y - mean) ** 2)), float(products)

"""The interval that belongs to the paired randomisation test."""

from __future__ import annotations

import dataclasses

import numpy as np

from recometer.stats.ends import Interval
from recometer.stats.grouping import Grouped
from recometer.stats.saddlepoint import increasing_root
from recometer.stats.sign_flips import quantile_of, smallest_p

__all__ = ["consistent", "inverted"]


def inverted(differences: Grouped, confidence: float) -> Interval:
    """Return all δ for which the randomisation test of the differences minus δ does not reject.

    The test is taken by saddlepoint approximation, also where `randomisation` is exact: that of
    differences minus δ is hardly ever one of few sizes. See `consistent`.

    Parameters
    ----------
    differences
        From `group`; with sizes, for clusters of rows, minus δ times the size.
    confidence
        Coverage, in (0, 1). A test of few users cannot reject any δ at 1 - confidence; then the
        ends are infinite.
    """
    n = differences.n
    if not n:
        return Interval.unknown(confidence, n, "No user has both values.")
    level = 1 - confidence
    if smallest_p(n) > level:
        note = (
            f"With {n:,} users p cannot fall below {smallest_p(n):.3g}: the randomisation test "
            "excludes no difference."
        )
        return Interval(-np.inf, np.inf, "randomisation", confidence, n, note)
    if differences.constant:
        note = f"All {n:,} differences are {differences.estimate:g}: the interval has no width."
        ends = differences.estimate, differences.estimate
        return Interval(*ends, "randomisation", confidence, n, note)
    low, high = (
        differences.estimate + sign * _distance(differences, level, sign) for sign in (-1.0, 1.0)
    )
    return Interval(low, high, "randomisation", confidence, n)


def consistent(interval: Interval, p_value: float) -> Interval:
    """Return the interval such that it contains 0 exactly when p is above 1 - confidence.

    An exact p jumps from one value to the next where the approximated interval moves smoothly, so
    that one of its ends may lie on the wrong side of 0; that end then is at 0.
    """
    contains, should = 0.0 in interval, p_value > 1 - interval.confidence
    if contains == should:
        return interval
    low, high = interval
    if should:
        return dataclasses.replace(interval, low=min(low, 0.0), high=max(high, 0.0))
    # The smallest number beside 0, since the ends belong to the interval.
    if low + high > 0:
        return dataclasses.replace(interval, low=float(np.nextafter(0.0, 1.0)))
    return dataclasses.replace(interval, high=float(np.nextafter(0.0, -1.0)))


def _distance(differences: Grouped, level: float, sign: float) -> float:
    """Return how far from the estimate the test begins to reject, below (-1) or above (+1)."""
    from scipy.special import ndtri

    counts, sizes = differences.counts, differences.sizes
    total_size = float(np.sum(counts * sizes))

    def quantile_at(distance: float) -> float:
        shifted = differences.residuals - sign * distance * sizes
        return quantile_of(np.abs(shifted), counts, distance * total_size)

    target = -float(ndtri(level / 2))
    distance = increasing_root(quantile_at, target, target * differences.standard_error)
    return np.inf if distance is None else distance

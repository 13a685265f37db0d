"""Tails of sums of independent terms, and the roots that they take."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from recometer.tasks import check_wanted

__all__ = ["increasing_root", "normal_quantile_of", "root_of_increasing"]

NEAR_THE_MEAN = 1e-4
PRECISION = 1e-9
STEPS = 200


def normal_quantile_of(w: float, u: float, skewness: float = 0.0) -> float:
    """Return r, for which the tail is Φ(r): Barndorff-Nielsen's form of the saddlepoint tail.

    r = w + log(u / w) / w. Close to the mean, where both are 0, it is the Edgeworth value:
    Φ(r) = 1/2 + κ3 / (6 √(2π)), and so r = κ3 / 6. Barndorff-Nielsen, "Approximate interval
    probabilities", Journal of the Royal Statistical Society B 52, 1990; Reid, "Saddlepoint methods
    and statistical inference", Statistical Science 3, 1988.

    Parameters
    ----------
    w
        Signed root of twice the exponent at the saddlepoint t.
    u
        t · √K''(t), of the same sign.
    skewness
        κ3, the standardised third cumulant of the sum.
    """
    if abs(w) < NEAR_THE_MEAN or u / w <= 0:
        return w + skewness / 6
    return w + float(np.log(u / w)) / w


def root_of_increasing(
    function: Callable[[float], tuple[float, float]],
    target: float,
    start: float,
    precision: float,
    least: float = -np.inf,
) -> float:
    """Return t at which an increasing function reaches a value: Newton's method in a bracket.

    Parameters
    ----------
    function
        Returns its value and its derivative.
    target, start
        The value, and where to begin.
    precision
        Tolerance of the value. Where it is out of reach, the last t is returned.
    least
        No t below has the value.
    """
    t, below, above = start, least, np.inf
    for _ in range(STEPS):
        check_wanted()
        value, slope = function(t)
        missing = target - value
        if abs(missing) <= precision:
            return t
        below, above = (t, above) if missing > 0 else (below, t)
        nearer = t + missing / slope if slope > 0 else np.nan
        inside = below < nearer < above
        if not inside:
            nearer = _between(below, above)
        if nearer == t:
            return t
        t = nearer
    return t


def increasing_root(
    function: Callable[[float], float], target: float, start: float, precision: float = PRECISION
) -> float | None:
    """Return x > 0 at which an increasing function, about 0 at 0, reaches a value above 0.

    Secants in a bracket.

    Parameters
    ----------
    function
        Nearly proportional to x; nothing is asked of it at 0.
    target
        Above 0.
    start
        Above 0: a guess of x.
    precision
        Tolerance of the function's value.

    Returns
    -------
    float or None
        None if the value is not reached however large x is.
    """
    x, below, above = start, 0.0, np.inf
    last: tuple[float, float] | None = None
    for _ in range(STEPS):
        check_wanted()
        value = function(x)
        if not np.isfinite(value):
            value = np.inf
        missing = target - value
        if abs(missing) <= precision:
            return x
        below, above = (x, above) if missing > 0 else (below, x)
        slope = value / x
        if last is not None and last[0] != x:
            slope = (value - last[1]) / (x - last[0])
        last = x, value
        nearer = x + missing / slope if np.isfinite(slope) and slope > 0 else np.nan
        if not below < nearer < above or nearer > 8 * x:
            nearer = _between(below, above)
        if nearer > 1e300 * start or (np.isinf(above) and nearer > 1e18 * start):
            return None
        if nearer in (below, above):
            return nearer
        x = nearer
    return x


def _between(below: float, above: float) -> float:
    """Return a number between two, one of which may be infinite."""
    if np.isinf(above):
        return 4 * below if below > 0 else 1.0 + below / 4
    if np.isinf(below):
        return 4 * above if above < 0 else above / 4 - 1.0
    if below > 0 and above / below > 16:
        return float(np.sqrt(below * above))
    return (below + above) / 2

"""Saddlepoint approximations for tails of sums of independent terms, and a root search."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from recometer.tasks import check_wanted

NEAR_THE_MEAN = 1e-4
PRECISION = 1e-9  # allowed error of the function's value
STEPS = 200
FAR = 1e18  # the search ends at this multiple of the guess


def normal_quantile_of(w: float, u: float, skewness: float = 0.0) -> float:
    """Return r for which the tail is Φ(r), by Barndorff-Nielsen's saddlepoint formula.

    It is r = w + log(u / w) / w, with w the signed root of twice the exponent at the saddlepoint t,
    and u = t · √K''(t); close to the mean, see `normal_quantile_at_mean`. Barndorff-Nielsen,
    "Approximate interval probabilities", Journal of the Royal Statistical Society B 52, 1990; Reid,
    "Saddlepoint methods and statistical inference", Statistical Science 3, 1988.
    """
    ratio = u / w if abs(w) > NEAR_THE_MEAN else 0.0
    return w + (float(np.log(ratio)) / w if ratio > 0 else normal_quantile_at_mean(skewness))


def normal_quantile_at_mean(skewness: float) -> float:
    """Return `normal_quantile_of` at the mean, where w and u are 0, from the Edgeworth expansion.

    There, Φ(r) = 1/2 + κ3 / (6 √(2π)), and hence r = κ3 / 6.
    """
    return skewness / 6


def increasing_root(
    function: Callable[[float], float], target: float, start: float
) -> float | None:
    """Return x > 0 at which an increasing function reaches `target` > 0; None if no x does.

    The function is close to 0 at 0 and nearly proportional to x; it may jump, and be infinite or
    NaN for large x. `start` is a guess of x. The search uses secants in a bracket. (SciPy's root
    finders are as good if the root lies in a known range, but importing them takes longer than all
    intervals of an evaluation.)
    """
    x, below, above = start, 0.0, np.inf
    last_x = last_value = 0.0
    for _ in range(STEPS):
        check_wanted()
        value = function(x)
        if not np.isfinite(value):
            value = np.inf
        missing = target - value
        if abs(missing) <= PRECISION:
            return x
        below, above = (x, above) if missing > 0 else (below, x)
        slope = (value - last_value) / (x - last_x)
        nearer = min(x + missing / slope, 8 * x) if slope else np.nan
        if not below < nearer < above:  # also if the slope is negative or infinite
            nearer = min((below + above) / 2, 4 * x)
        if nearer in (below, above):
            return nearer
        if nearer > FAR * start:
            return None
        last_x, last_value, x = x, value, nearer
    return x

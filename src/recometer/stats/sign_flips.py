"""The paired randomisation test (sign flips) without resampling."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from recometer.stats.grouping import Grouped, grouped
from recometer.stats.saddlepoint import normal_quantile_of
from recometer.stats.sign_sums import Tilted, all_sums, enumerated, multiples_of_unit, of_multiples
from recometer.stats.test_result import TestResult, on_nothing

__all__ = ["of_each_size", "quantile_of", "randomisation", "smallest_p"]

Float64 = npt.NDArray[np.float64]

ENUMERATED_UP_TO = 30  # users who differ: 2 · 2^15 sums, which meet in the middle
DOMINATING, MOST_DOMINATING = 0.04, 6  # share of the sum of squares; how many are enumerated
ROUNDING = 1e-12  # of the sum of the sizes: sums this close are the same


def randomisation(differences: npt.ArrayLike | Grouped) -> TestResult:
    """Return the two-sided paired randomisation test of a mean difference of 0.

    Under the null hypothesis the two models are exchangeable for each user, so each difference
    may have had the other sign; p is the share of all assignments of signs whose sum is as far
    from 0 as the one found. Users without a difference have no effect. Fisher, "The Design of
    Experiments", 1935; Smucker, Allan & Carterette, CIKM 2007.

    Nothing is drawn. If the values allow it, p is computed exactly: from the binomial distribution
    if all differences have one size, by convolution if they are multiples of a unit, and by
    enumeration for up to 30 differences other than 0. Otherwise it is computed by saddlepoint
    approximation, which is within 3 % of enumeration for most differences. If 5 to 10 large ones
    outweigh the others, p can be off by a factor of 0.5 to 3.2: its distribution then has several
    peaks, and only those of up to 6 large differences are enumerated.

    Parameters
    ----------
    differences : [n_users], or from `group`
        A difference for each user, or for each cluster of rows its sum; NaN leaves a user out.

    Examples
    --------
    >>> from recometer.stats import randomisation
    >>> found = randomisation([0.2, 0.1, 0.4, 0.3, 0.15, 0.2, 0.0])
    >>> found.p_value, found.method, found.n_differ
    (0.03125, 'convolution', 6)
    """
    differences = grouped(differences)
    n, n_differ = differences.n, differences.n_above + differences.n_below
    if n == 0:
        return TestResult(np.nan, "randomisation", "none", 0, 0, np.nan, "No user has both values.")
    if n_differ == 0:
        note = on_nothing(n)
        return TestResult(1.0, "randomisation", "enumeration", n, 0, 1.0, note)
    smallest, values, counts = smallest_p(n_differ), differences.values, differences.counts
    sizes = np.abs(values)
    some = sizes > ROUNDING * sizes.max()
    total = abs(float(values[some] @ counts[some]))
    if total <= ROUNDING * float(sizes @ counts):
        return TestResult(1.0, "randomisation", "enumeration", n, n_differ, smallest)
    sizes, counts = of_each_size(sizes[some], counts[some])
    p, method = _one_sided(sizes, counts, total, exact=differences.exact)
    p = min(1.0, max(2 * p, smallest))
    return TestResult(p, "randomisation", method, n, n_differ, smallest)


def smallest_p(n_differ: int) -> float:
    """Return the least two-sided p of n users who differ, one at least: all in one direction."""
    return float(2.0 ** (1 - n_differ))


def quantile_of(sizes: Float64, counts: Float64, total: float) -> float:
    """Return r, with P(Σ ±size ≥ total) = 1 - Φ(r) by saddlepoint approximation.

    With K(t) = Σ log cosh(t·size) and K'(t) = total: w = √(2 (t·total - K)) and u = t √K''(t).

    Parameters
    ----------
    sizes, counts
        At least 0, and how many there are of each.
    total
        Σ ±size with the signs found.
    """
    sign, total = float(np.sign(total)), abs(total)
    if total >= float(counts @ sizes) * (1 - ROUNDING):
        # All in one direction: the chance is that of this one assignment, 2^-n.
        from scipy.special import ndtri_exp

        return -sign * float(ndtri_exp(-float(counts[sizes > 0].sum()) * np.log(2)))
    tilted = Tilted.to(total, sizes, counts)
    w = float(np.sqrt(max(0.0, 2 * tilted.exponent)))
    return sign * normal_quantile_of(w, tilted.t * float(np.sqrt(tilted.variance)))


def of_each_size(sizes: Float64, times: Float64) -> tuple[Float64, Float64]:
    """Add the counts of sizes up that are the same except for rounding, increasing."""
    order = np.argsort(sizes, kind="stable")
    sizes, times = sizes[order], times[order]
    starts = np.flatnonzero(np.diff(sizes, prepend=-np.inf) > ROUNDING * sizes[-1])
    return sizes[starts], np.add.reduceat(times, starts)


def _one_sided(sizes: Float64, times: Float64, total: float, *, exact: bool) -> tuple[float, str]:
    """Return the chance that Σ ±size is at least `total`, above 0, and how it was found."""
    from scipy.special import bdtrc

    n = int(times.sum())
    if exact:
        if len(sizes) == 1:
            n_plus = round((total / float(sizes[0]) + n) / 2)
            return float(bdtrc(n_plus - 1, n, 0.5)), "binomial"
        multiples = multiples_of_unit(sizes)
        if multiples is not None:
            p = of_multiples(multiples, times, total / float(sizes[-1]) * float(multiples[-1]))
            if p is not None:
                return p, "convolution"
        if n <= ENUMERATED_UP_TO:
            each = np.repeat(sizes, times.astype(np.int64))
            return enumerated(each, total - ROUNDING * float(each.sum())), "enumeration"
    return _by_saddlepoint(sizes, times, total), "saddlepoint"


def _by_saddlepoint(sizes: Float64, times: Float64, total: float) -> float:
    """Return the chance that Σ ±size is at least `total`.

    The signs of a few sizes that dominate the sum are enumerated: with them its distribution has
    several peaks, which no saddlepoint approximation follows.
    """
    from scipy.special import ndtr

    far = sizes**2 > DOMINATING * float(times @ sizes**2)
    chosen = np.repeat(sizes[far], times[far].astype(np.int64))
    sums = all_sums(chosen) if len(chosen) <= MOST_DOMINATING else np.zeros(1)
    if len(sums) > 1:
        sizes, times = sizes[~far], times[~far]
    tails, most = [], float(times @ sizes)
    for left in (total - sums).tolist():
        if abs(left) > most:
            tails.append(float(left < 0))
        else:
            tails.append(float(ndtr(-quantile_of(sizes, times, left))))
    return float(np.mean(tails))

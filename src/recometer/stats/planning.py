"""Compute how many users a comparison needs, and which differences a test set can detect."""

from __future__ import annotations

import bisect
import dataclasses
import math
import numbers

import numpy as np
import numpy.typing as npt

from recometer.errors import InputError, brief
from recometer.rendering.formats import width_of_lines, wrapped
from recometer.stats.checks import check_alpha, check_number
from recometer.stats.grouping import Grouped, group
from recometer.stats.saddlepoint import ROUNDING, increasing_root, multiples_of_unit, of_each_size

MOSTLY = 0.9  # a size is the unit if at least this share of the nonzero differences have it
MANY_USERS = 2_000  # above this number of users, Student's t is approximated by a normal variable
MOST_USERS = 10**12  # `users_needed` does not search beyond this number
NORMAL_975 = 1.959964  # the 97.5 % quantile of the standard normal distribution


@dataclasses.dataclass(frozen=True)
class Power:
    """The differences that a test set is large enough to detect.

    Attributes
    ----------
    n
        The number of users compared.
    deviation
        The standard deviation of the users' differences.
    difference
        The mean difference to detect.
    power
        The probability that the comparison is significant if `difference` is the true difference.
    users_needed
        The number of users needed for the wanted power, if they vary as much as the users compared.
        None if it is unknown or above a trillion.
    fewest_users, most_users
        The numbers of users needed for the wanted power if the deviation is at the lower or the
        upper end of its 95 % interval. This interval is only a rough estimate if few users differ.
    smallest_difference
        The smallest true difference that can be detected with `n` users and the wanted power.
    wanted, alpha
        The wanted power, and the two-sided significance level.
    note
        A remark for the reader, or an empty string.
    """

    n: int
    deviation: float
    difference: float
    power: float
    users_needed: int | None
    smallest_difference: float
    wanted: float
    alpha: float
    note: str = ""
    fewest_users: int | None = None
    most_users: int | None = None

    def __str__(self) -> str:
        if math.isnan(self.smallest_difference):
            return self.note
        fewest, needed, most = (
            f"{number:,}" if number is not None else "more than a trillion"
            for number in (self.fewest_users, self.users_needed, self.most_users)
        )
        users = needed if fewest == most else f"{fewest} to {most}"
        middle = "" if fewest == most else f" ({needed} if users vary as they do here)"
        text = (
            f"With the {self.n:,} users here, the chance that a true difference of "
            f"{self.difference:g} is significant (p <= {self.alpha:g}) is {self.power:.0%}. For a "
            f"chance of {self.wanted:.0%}, {users} users{middle} are needed. With {self.n:,} "
            f"users, a difference of {self.smallest_difference:.2g} has a chance of "
            f"{self.wanted:.0%}."
        )
        return wrapped(f"{text} {self.note}".strip(), width_of_lines())


def power(
    differences: npt.ArrayLike | Grouped,
    difference: float | None = None,
    *,
    wanted: float = 0.8,
    alpha: float = 0.05,
    unit: float | None = None,
) -> Power:
    """Return the power of a paired comparison, given the variation of the observed differences.

    The power is computed for the paired t test. With at least 50 users, the randomisation test has
    almost the same power: within 5 percentage points if at least 30 users have a nonzero difference
    (even for skewed differences), and within 7 if about a dozen do (`benchmarks/stats.py`). If all
    differences are multiples of a unit, as they are for the metric hit, their sums change in steps,
    and the exact test has less power: up to 20 percentage points less if few users have a nonzero
    difference. The computed power allows for this.

    The number of users needed grows with the variance of the differences, but a variance s² that
    is estimated from only a few users is imprecise. The range from `fewest_users` to `most_users`
    follows from the 95 % interval of the variance, s² exp(±1.96 √((k - (n - 3) / n) / (n - 1))),
    where k is the kurtosis of the differences. Bonett, "Approximate confidence interval for
    standard deviation of nonnormal distributions", Computational Statistics & Data Analysis 50,
    2006.

    Parameters
    ----------
    differences : [n_users], or from `group`
        The difference for each user; users with NaN are left out. If there is a difference for each
        cluster instead, all results count clusters rather than users.
    difference
        The mean difference to detect. None means the observed one, whose power merely restates the
        p-value.
    wanted
        The power to achieve, in (alpha, 1).
    alpha
        The two-sided significance level. For m comparisons by Bonferroni's method, pass alpha / m.
    unit
        The common unit of all differences for the randomisation test, or 0 for other tests. None
        means the result of `unit_of`.

    Raises
    ------
    InputError
        If `alpha` or `wanted` is out of range, or `difference` is not a finite number.
    """
    check_alpha(alpha)
    if not isinstance(wanted, numbers.Real) or not alpha < wanted < 1:
        raise InputError(
            f"The desired power, {brief(wanted)}, must be above alpha={alpha:g} and below 1. "
            "Hint: the usual value is 0.8."
        )
    if difference is not None:
        check_number("difference", difference)
    values = group(differences)
    target = values.estimate if difference is None else abs(float(difference))
    deviation = values.standard_error * math.sqrt(values.n)
    if values.n < 2 or values.constant:
        users = "Fewer than two users have both values"
        if values.n > 1:
            deviation, users = 0.0, f"All {values.n:,} users differ by {values.estimate:g}"
        note = f"{users}, so the spread of the differences is unknown."
        return Power(values.n, deviation, target, np.nan, None, np.nan, wanted, alpha, note)
    unit = unit_of(values) if unit is None else unit
    fewest, most = (
        users_needed(target, end, wanted=wanted, alpha=alpha, unit=unit)
        for end in _deviation_interval(values, deviation)
    )
    return Power(
        values.n,
        deviation,
        target,
        power_of(target, deviation, values.n, alpha=alpha, unit=unit),
        users_needed(target, deviation, wanted=wanted, alpha=alpha, unit=unit),
        smallest_difference(deviation, values.n, wanted=wanted, alpha=alpha, unit=unit),
        wanted,
        alpha,
        fewest_users=fewest,
        most_users=most,
    )


def _deviation_interval(values: Grouped, deviation: float) -> tuple[float, float]:
    """Return the 95 % interval of a standard deviation, from the kurtosis of the values."""
    n, residuals = values.n, values.residuals / np.abs(values.residuals).max()
    squares = float(values.counts @ residuals**2)
    kurtosis = n * float(values.counts @ residuals**4) / squares**2
    error = math.sqrt(max(0.0, kurtosis - (n - 3) / n) / (n - 1))
    factor = math.exp(NORMAL_975 * error / 2)
    return deviation / factor, deviation * factor


def unit_of(differences: npt.ArrayLike | Grouped) -> float:
    """Return the size that nearly all differences share, else their common unit, else 0.

    Differences of 0 and NaN are ignored.
    """
    values = group(differences)
    if not values.exact or not isinstance(values.sizes, float):
        return 0.0
    magnitudes = np.abs(values.values)
    nonzero = magnitudes > ROUNDING * magnitudes.max(initial=0.0)
    if not nonzero.any():
        return 0.0
    sizes, counts = of_each_size(magnitudes[nonzero], values.counts[nonzero])
    if counts.max() >= MOSTLY * counts.sum():
        return float(sizes[counts.argmax()])
    multiples = multiples_of_unit(sizes)
    return 0.0 if multiples is None else float(sizes[-1]) / float(multiples[-1])


def power_of(
    difference: float, deviation: float, n: int, *, alpha: float = 0.05, unit: float = 0.0
) -> float:
    """Return the probability that a two-sided paired t test of n users is significant.

    The probability is 1 - F(t) + F(-t). Here, t is the critical value, and F is the distribution
    function of the noncentral t distribution with n - 1 degrees of freedom and noncentrality
    √n · difference / deviation. Cohen, "Statistical Power Analysis for the Behavioral Sciences",
    1988, chapter 2. `deviation` is the standard deviation of the users' differences, above 0.

    If all differences are multiples of `unit`, the exact randomisation test rejects less often:
    sums with random signs move in steps of two units, and p includes the whole observed step. The
    usual continuity correction therefore subtracts half a step, unit / n, from the mean difference.
    """
    if n < 2:
        return 0.0
    from scipy.special import nctdtr, ndtr, stdtrit

    centre = max(0.0, abs(difference) - unit / n) / deviation * math.sqrt(n)
    critical = float(stdtrit(n - 1, 1 - alpha / 2))
    if n > MANY_USERS or centre > 30:
        # This normal approximation includes the variance of the denominator of t.
        spread = math.sqrt(1 + critical**2 / (2 * (n - 1)))
        return float(ndtr((centre - critical) / spread) + ndtr((-centre - critical) / spread))
    if centre == 0:
        return alpha
    upper, lower = 1 - nctdtr(n - 1, centre, critical), nctdtr(n - 1, centre, -critical)
    # SciPy sometimes returns NaN for probabilities below 1e-14, which are negligible.
    return float(upper if np.isnan(lower) else upper + lower)


def users_needed(
    difference: float,
    deviation: float,
    *,
    wanted: float = 0.8,
    alpha: float = 0.05,
    unit: float = 0.0,
) -> int | None:
    """Return how many users are needed for the wanted power, or None if more than a trillion."""

    def power_with(n: int) -> float:
        return power_of(difference, deviation, n, alpha=alpha, unit=unit)

    n = bisect.bisect_left(range(MOST_USERS), wanted, key=power_with)
    return n if n < MOST_USERS else None


def smallest_difference(
    deviation: float, n: int, *, wanted: float = 0.8, alpha: float = 0.05, unit: float = 0.0
) -> float:
    """Return the smallest true difference that can be detected with n users and the wanted power.

    The result is NaN for fewer than two users.
    """
    if n < 2:
        return np.nan
    from scipy.special import ndtri

    # The normal quantile of the power is nearly linear in the difference.
    none = float(ndtri(alpha))

    def quantile_at(difference: float) -> float:
        return float(ndtri(power_of(difference, deviation, n, alpha=alpha, unit=unit))) - none

    difference = increasing_root(quantile_at, float(ndtri(wanted)) - none, deviation / math.sqrt(n))
    return np.nan if difference is None else difference

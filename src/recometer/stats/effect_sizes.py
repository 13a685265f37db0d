"""How large a difference between two models is, besides its mean."""

from __future__ import annotations

import dataclasses

import numpy as np
import numpy.typing as npt

from recometer.errors import InputError
from recometer.stats.bootstrap import bca
from recometer.stats.checks import check_whole
from recometer.stats.ends import Interval, check_confidence
from recometer.stats.gaffke import gaffke
from recometer.stats.grouping import Grouped, column, group_checked, grouped, of_counts

__all__ = [
    "Effects",
    "effects",
    "most_changed",
    "ratio_less_1",
    "ratio_of_grouped",
    "relative_difference",
]

Float64 = npt.NDArray[np.float64]


@dataclasses.dataclass(frozen=True)
class Effects:
    """How users differ between two models.

    Attributes
    ----------
    n_better, n_equal, n_worse
        The numbers of users whose difference is above, at and below 0.
    standardised
        Mean of the differences divided by their standard deviation (Cohen's d of paired values);
        0 if no user differs, and infinite if all differ by the same amount.
    probability_better
        The probability that a random user's difference is above 0; a tie counts half.
    probability_interval
        Gaffke's interval of this probability.
    """

    n_better: int
    n_equal: int
    n_worse: int
    standardised: float
    probability_better: float
    probability_interval: Interval


def effects(differences: npt.ArrayLike | Grouped, confidence: float = 0.95) -> Effects:
    """Return effect sizes of paired differences.

    The standardised mean: Cohen, "Statistical Power Analysis for the Behavioral Sciences", 1988,
    section 2.3.5 (d_z). The probability of being better off: Grissom & Kim, "Effect Sizes for
    Research", 2005, chapter 5.

    Parameters
    ----------
    differences : [n_users], or from `group`
        NaN leaves a user out.
    confidence
        Coverage of the interval, in (0, 1).
    """
    check_confidence(confidence)
    differences = grouped(differences)
    n, better, worse = differences.n, differences.n_above, differences.n_below
    equal = n - better - worse
    note = "No user has both values."
    if n == 0:
        return Effects(0, 0, 0, np.nan, np.nan, Interval.unknown(confidence, 0, note))
    counts = np.array([worse, equal, better], np.float64)
    places = np.flatnonzero(counts)
    users = of_counts(np.array([0.0, 0.5, 1.0])[places], counts[places])
    likely = gaffke(users, (0, 1), confidence)
    return Effects(better, equal, worse, _standardised(differences), users.estimate, likely)


def relative_difference(
    first: npt.ArrayLike, second: npt.ArrayLike, confidence: float = 0.95
) -> tuple[float, Interval]:
    """Return the relative difference of two means, (mean of first) / (mean of second) - 1.

    It is a ratio of means over the users that have both values, not a mean of ratios; its interval
    is the bootstrap's (BCa) of that ratio, without resampling.

    Parameters
    ----------
    first, second : [n_users]
        NaN in either leaves a user out. The second is what the difference is relative to.
    confidence
        Coverage, in (0, 1).

    Returns
    -------
    float, Interval
        NaN, with a note, if the mean of the second is not above 0.
    """
    x, y = column(first, "first"), column(second, "second")
    if len(x) != len(y):
        raise InputError(f"Both need a value for each user, but have {len(x):,} and {len(y):,}.")
    both = ~(np.isnan(x) | np.isnan(y))
    if not both.all():
        x, y = x[both], y[both]
    return ratio_less_1(x, y, confidence)


def ratio_less_1(x: Float64, y: Float64, confidence: float) -> tuple[float, Interval]:
    """Return the relative difference of columns of one length, finite and without NaN."""
    n = len(x)
    if not y.sum() > 0:
        note = "The mean that the difference is relative to is not above 0."
        return np.nan, Interval.unknown(confidence, n, note if n else "No user has both values.")
    return ratio_of_grouped(group_checked(x, y), confidence)


def ratio_of_grouped(ratios: Grouped, confidence: float) -> tuple[float, Interval]:
    """Return the relative difference of values that are grouped with their sizes."""
    n = ratios.n
    if ratios.constant:
        note = f"All {n:,} users have the same ratio: the interval has no width."
        return ratios.estimate - 1, Interval(
            ratios.estimate - 1, ratios.estimate - 1, "bca", confidence, n, note
        )
    found = bca(ratios, confidence)
    moved = dataclasses.replace(found, low=found.low - 1, high=found.high - 1)
    return ratios.estimate - 1, moved


def most_changed(
    differences: npt.ArrayLike, n: int = 5
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return which users lose most and which gain most.

    Parameters
    ----------
    differences : [n_users]
        NaN leaves a user out.
    n
        Maximum number of either.

    Returns
    -------
    int64 [at most n] of each
        Positions of users below 0, the lowest first, and above 0, the highest first; equal ones
        in the order given.
    """
    check_whole("n", n, 0)
    given = column(differences, "differences")
    found = []
    for values in (given, -given):
        below = np.flatnonzero(values < 0)
        if len(below) > n:
            last = n - 1
            below = below[values[below] <= np.partition(values[below], last)[last]]
        found.append(below[np.argsort(values[below], kind="stable")][:n].astype(np.int64))
    return found[0], found[1]


def _standardised(differences: Grouped) -> float:
    if differences.n_above + differences.n_below == 0:
        return 0.0
    if differences.constant or differences.n < 2:
        return float(np.copysign(np.inf, differences.estimate))
    deviation = np.sqrt(differences.sum_of_squares / (differences.n - 1))
    return float(differences.estimate / deviation)

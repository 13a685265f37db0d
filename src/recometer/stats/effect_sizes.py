"""Effect sizes of the difference between two models, and the users who change most."""

from __future__ import annotations

import dataclasses

import numpy as np
import numpy.typing as npt

from recometer.stats.checks import check_whole
from recometer.stats.ends import Interval, check_confidence
from recometer.stats.gaffke import gaffke
from recometer.stats.grouping import Grouped, column, grouped, of_counts


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

    For the standardised mean (d_z), see Cohen, "Statistical Power Analysis for the Behavioral
    Sciences", 1988, section 2.3.5. For the probability of being better off, see Grissom & Kim,
    "Effect Sizes for Research", 2005, chapter 5.

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


def most_changed(
    differences: npt.ArrayLike, n: int = 5
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return which users lose most and which gain most.

    Parameters
    ----------
    differences : [n_users]
        NaN leaves a user out.
    n
        Maximum number of users who lose, and of users who gain.

    Returns
    -------
    int64 [at most n] of each
        Positions of the users below 0, lowest first, and of those above 0, highest first. Users
        with equal differences keep their order.
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
    return float(differences.estimate / differences.deviation)

"""Two one-sided tests of whether two models are equivalent."""

from __future__ import annotations

import dataclasses
import numbers
from collections.abc import Callable
from typing import Literal

import numpy as np
import numpy.typing as npt

from recometer.errors import InputError, UnknownNameError, argument_text, did_you_mean
from recometer.stats.comparing import Pairs, difference_interval, paired_test
from recometer.stats.ends import Interval
from recometer.stats.grouping import column
from recometer.stats.runs import over_runs_of, run_moments
from recometer.stats.saddlepoint import increasing_root
from recometer.stats.tests import TestResult

LEAST_LEVEL = 1e-12  # below this level, intervals cannot be computed


@dataclasses.dataclass(frozen=True)
class Equivalence:
    """Whether a mean difference lies within margins.

    Attributes
    ----------
    p_value
        p-value of the null hypothesis that the models are not equivalent. NaN if it is undefined,
        and `note` says why.
    equivalent
        Whether this hypothesis is rejected.
    margin
        The smallest difference that would matter.
    interval
        Interval of the mean difference, with the confidence 1 - 2 · alpha. It is within the margins
        if the models are equivalent.
    method
        ``"randomisation"``, ``"t"``, ``"gaffke"`` if few users differ, or ``"random effects"``
        for several runs.
    note
        A remark that readers should know, or an empty text.
    """

    p_value: float
    equivalent: bool
    margin: float
    interval: Interval
    method: str
    note: str = ""


def equivalence(
    differences: npt.ArrayLike,
    margin: float,
    *,
    alpha: float = 0.05,
    test: Literal["randomisation", "t"] = "randomisation",
    bounds: tuple[float, float] | None = None,
    clusters: npt.ArrayLike | None = None,
) -> Equivalence:
    """Test whether a mean difference lies between -margin and +margin.

    The two one-sided tests have the null hypotheses that the mean is at most -margin, and that it
    is at least margin; the larger p counts. Schuirmann, Journal of Pharmacokinetics and
    Biopharmaceutics 15, 1987. If fewer than 30 users differ and the range is known, p is the
    smallest level at which Gaffke's interval is within the margins.

    Parameters
    ----------
    differences : [n_users]
        NaN leaves a user out.
    margin
        A number above 0. Smaller differences do not matter.
    alpha
        The accepted probability that models are wrongly called equivalent, in (0, 0.5).
    test
        ``"randomisation"`` or ``"t"``.
    bounds
        The lowest and the highest possible value of a user of a single model.
    clusters : [n_users] or None
        Users with equal entries belong together, so whole clusters change sign.

    Raises
    ------
    InputError
        If the margin is not above 0, alpha is out of range, or clusters have another length.
    """
    check_margin(margin, alpha)
    if test not in ("randomisation", "t"):
        hint = did_you_mean(str(test), ("randomisation", "t"))
        raise UnknownNameError(f"There is no test of equivalence {test!r}. {hint}")
    given = column(differences, "differences")
    zeros = np.zeros(len(given))

    def tested(sign: float, by: float) -> TestResult:
        return paired_test(test, Pairs.of(sign * given + by, zeros, clusters))

    whole = Pairs.of(given, zeros, clusters)
    result, values = paired_test(test, whole), whole.units

    def interval(level: float) -> Interval:
        return difference_interval(values, result, bounds, "auto", 1 - 2 * level)

    found = interval(alpha)
    if values.n == 0:
        return Equivalence(np.nan, False, margin, found, test, "No user has both values.")
    if found.method in ("gaffke", "clopper-pearson"):
        p = _least_level(interval, margin)
        return Equivalence(p, p <= alpha, margin, found, "gaffke")
    p = max(
        _one_sided(tested(sign, margin).p_value, sign * values.estimate + margin)
        for sign in (1.0, -1.0)
    )
    if np.isnan(p):
        constant = abs(values.estimate) < margin
        note = f"All {values.n:,} differences are {values.estimate:g}; Student's t has no value."
        return Equivalence(np.nan, constant and values.n > 1, margin, found, test, note)
    return Equivalence(p, p <= alpha, margin, found, test)


def equivalence_over_runs(
    first: npt.ArrayLike, second: npt.ArrayLike, margin: float, *, alpha: float = 0.05
) -> Equivalence:
    """Test equivalence if both users and runs are samples; see `over_runs` and `equivalence`."""
    check_margin(margin, alpha)
    given = run_moments(first, second)
    whole = over_runs_of(given, confidence=1 - 2 * alpha)
    sides = []
    for sign in (1.0, -1.0):
        users = given.users._replace(mean=given.users.mean + sign * margin)
        side = over_runs_of(dataclasses.replace(given, users=users))
        sides.append(_one_sided(side.p_value, sign * side.mean))
    p = max(sides)
    return Equivalence(p, p <= alpha, margin, whole.interval, "random effects", whole.note)


def check_margin(margin: float, alpha: float) -> None:
    """Refuse a margin that is not above 0, or a level outside (0, 0.5)."""
    if not isinstance(margin, numbers.Real) or not 0 < margin < np.inf:
        raise InputError(
            f"{argument_text('margin', margin)} must be above 0: the difference that would matter."
        )
    if not isinstance(alpha, numbers.Real) or not 0 < alpha < 0.5:
        raise InputError(f"alpha={alpha!r} must be above 0 and below 0.5. Hint: 0.05 is usual.")


def _one_sided(p: float, mean: float) -> float:
    """Return the one-sided p of a mean of at most 0 from the two-sided p."""
    return p / 2 if mean > 0 else 1 - p / 2


def _least_level(interval: Callable[[float], Interval], margin: float) -> float:
    """Return the least alpha, up to 1/2, at which the interval is within the margins."""
    from scipy.special import ndtr

    def farthest(quantile: float) -> float:
        ends = interval(max(float(ndtr(-quantile)), LEAST_LEVEL))
        return max(ends.high, -ends.low)

    nearest = farthest(0.0)
    if nearest >= margin:
        return 0.5
    found = increasing_root(
        lambda x: (farthest(x) - nearest) / (margin - nearest),
        target=1.0,
        start=1.0,
    )
    return LEAST_LEVEL if found is None else float(ndtr(-found))

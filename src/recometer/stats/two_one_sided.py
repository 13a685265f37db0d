"""Whether two models are equivalent: two one-sided tests."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Literal

import numpy as np
import numpy.typing as npt

from recometer.errors import InputError, UnknownNameError, did_you_mean
from recometer.stats.comparing import difference_interval
from recometer.stats.ends import Interval
from recometer.stats.grouping import column, group
from recometer.stats.paired import paired_t
from recometer.stats.sign_flips import randomisation
from recometer.stats.test_result import TestResult

__all__ = ["Equivalence", "equivalence"]

STEPS = 40


@dataclasses.dataclass(frozen=True)
class Equivalence:
    """Whether a mean difference lies within margins.

    Attributes
    ----------
    p_value
        Of the null hypothesis that it does not; NaN with a note where there is none.
    equivalent
        Whether that is rejected.
    margin
        The difference that would matter.
    interval
        Of the mean difference, with the confidence 1 - 2 · alpha: it lies within the margins where
        the models are equivalent.
    method
        ``"randomisation"``, ``"t"``, or ``"gaffke"`` where few users differ.
    note
        What a reader has to know.
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
) -> Equivalence:
    """Test whether a mean difference lies between -margin and +margin.

    Two one-sided tests, of a mean of at most -margin and of at least margin; the larger p counts.
    Schuirmann, Journal of Pharmacokinetics and Biopharmaceutics 15, 1987. Where fewer than 30
    users differ and the range is known, p is the least level at which Gaffke's interval lies within
    the margins.

    Parameters
    ----------
    differences : [n_users]
        NaN leaves a user out.
    margin
        Above 0: differences smaller than this do not matter.
    alpha
        Chance of calling models equivalent that are not, in (0, 0.5).
    test
        ``"randomisation"`` or ``"t"``.
    bounds
        The lowest and the highest value that a user can have, of a single model.

    Raises
    ------
    InputError
        A margin that is not above 0, or an alpha outside.
    """
    if not 0 < margin < np.inf:
        raise InputError(f"margin={margin!r} must be above 0: the difference that would matter.")
    if not 0 < alpha < 0.5:
        raise InputError(f"alpha={alpha!r} must be above 0 and below 0.5. Hint: 0.05 is usual.")
    if test not in ("randomisation", "t"):
        hint = did_you_mean(str(test), ("randomisation", "t"))
        raise UnknownNameError(f"There is no test of equivalence {test!r}. {hint}")
    given = column(differences, "differences")
    values = group(given)
    whole = randomisation(values) if test == "randomisation" else paired_t(values)

    def interval(level: float) -> Interval:
        return difference_interval(values, whole, bounds, "auto", 1 - 2 * level)

    found = interval(alpha)
    if values.n == 0:
        return Equivalence(np.nan, False, margin, found, test, "No user has both values.")
    if found.method == "gaffke":
        p = _least_level(interval, margin)
        return Equivalence(p, p <= alpha, margin, found, "gaffke")
    take = randomisation if test == "randomisation" else paired_t
    sides = [take(given + margin), take(margin - given)]
    p = max(
        _one_sided(side, mean > 0)
        for side, mean in zip(
            sides, (values.estimate + margin, margin - values.estimate), strict=True
        )
    )
    if np.isnan(p):
        constant = abs(values.estimate) < margin
        note = f"All {values.n:,} differences are {values.estimate:g}; Student's t has no value."
        return Equivalence(np.nan, constant and values.n > 1, margin, found, test, note)
    return Equivalence(p, p <= alpha, margin, found, test)


def _one_sided(result: TestResult, above: bool) -> float:
    return result.p_value / 2 if above else 1 - result.p_value / 2


def _least_level(interval: Callable[[float], Interval], margin: float) -> float:
    """Return the least alpha at which the interval lies within the margins, at most 1/2."""
    low, high = 1e-12, 0.5 - 1e-12
    for _ in range(STEPS):
        middle = float(np.sqrt(low * high))
        ends = interval(middle)
        inside = -margin < ends.low and ends.high < margin
        low, high = (low, middle) if inside else (middle, high)
    return high

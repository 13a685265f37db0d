"""What can be concluded from a published table: two means and the number of users."""

from __future__ import annotations

import dataclasses
import math

from recometer.data.numbers import flag
from recometer.errors import InputError
from recometer.stats.checks import check_alpha, check_bounds, check_number, check_whole

__all__ = ["Published", "published"]


@dataclasses.dataclass(frozen=True)
class Published:
    """What is known about a difference if only the two means and n were published.

    Attributes
    ----------
    difference
        First minus second.
    smallest_p, largest_p
        p lies between these, whatever the users' values were.
    p_if_independent
        The largest p if the values of the two models were independent of each other; values of the
        same users hardly ever are.
    verdict
        ``"significant"`` whatever the values were, ``"not significant"`` whatever they were, or
        ``"cannot be told"``.
    certain_difference
        The smallest difference that would be significant whatever the values were, around the same
        mean; NaN if there is none.
    """

    difference: float
    smallest_p: float
    largest_p: float
    p_if_independent: float
    verdict: str
    certain_difference: float


def published(
    first: float,
    second: float,
    n: int,
    *,
    bounds: tuple[float, float] = (0.0, 1.0),
    binary: bool = False,
    alpha: float = 0.05,
) -> Published:
    """Return what can be concluded about a difference between two published means.

    The largest p has the largest variance that differences of values within the range can have:
    all values at its ends, high for one model where they are low for the other. With u and v the
    means' places in the range of width R: R² (min(u + v, 2 - u - v) - (u - v)²). It is that of
    Student's paired t test. The smallest p is that of the randomisation test when all users differ
    in one direction; for values of 0 and 1 as many as the means require.

    Parameters
    ----------
    first, second
        Means of one metric over the same users.
    n
        Number of users.
    bounds
        The lowest and the highest possible value of a user.
    binary
        Whether a user's value is always one of the two, as for hit.
    alpha
        Level of significance.

    Raises
    ------
    InputError
        If means are out of range, there are fewer than two users, or there is no range.
    """
    check_number("first", first)
    check_number("second", second)
    check_whole("n", n, 2)
    check_alpha(alpha)
    flag("binary", binary)
    low, high = check_bounds(bounds)
    if not -math.inf < low < high < math.inf:
        raise InputError(f"bounds={bounds!r} are not a range of finite numbers.")
    for mean in (first, second):
        if not low <= mean <= high:
            raise InputError(
                f"The mean {mean:g} lies outside the range from {low:g} to {high:g}. Hint: means "
                "in percent are divided by 100."
            )
    u, v = ((mean - low) / (high - low) for mean in (first, second))
    most = min(u + v, 2 - u - v) - (u - v) ** 2
    largest = _p(u - v, most, n)
    independent = _p(u - v, u * (1 - u) + v * (1 - v), n)
    # With equal means no user need differ; if some do, their differences add up to 0.
    n_differ = round(n * abs(u - v)) if binary or u == v else n
    smallest = 2.0 ** (1 - max(1, n_differ))
    verdict = "cannot be told"
    if largest <= alpha:
        verdict = "significant"
    elif smallest > alpha:
        verdict = "not significant"
    return Published(
        first - second,
        min(smallest, largest),
        largest,
        independent,
        verdict,
        (high - low) * _certain((u + v) / 2, n, alpha),
    )


def _p(difference: float, variance: float, n: int) -> float:
    """Return the p of a paired t test with the variance of the n users themselves."""
    from scipy.special import stdtr

    if difference == 0:
        return 1.0
    if variance <= 0:
        return float(2.0 ** (1 - n))
    return 2 * float(stdtr(n - 1, -abs(difference) / math.sqrt(variance / (n - 1))))


def _certain(middle: float, n: int, alpha: float) -> float:
    """Return the least difference, around a mean, that is significant whatever the values."""
    from scipy.special import stdtrit

    most = 2 * min(middle, 1 - middle)
    if _p(most, most - most**2, n) > alpha:
        return math.nan
    # With d the difference and most - d² the variance, √(n - 1) · d / √(most - d²) is critical.
    critical = float(stdtrit(n - 1, 1 - alpha / 2))
    return critical * math.sqrt(most / (n - 1 + critical**2))

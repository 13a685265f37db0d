"""Compare two groups of different users, as in an A/B test, and check the ratio of their sizes."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from recometer.errors import InputError, argument_text
from recometer.stats.checks import Bounds, check_bounds
from recometer.stats.comparing import (
    FEW_DIFFER,
    SPARSE,
    Difference,
    Equivalence,
    check_margin,
    consistent,
    one_sided,
)
from recometer.stats.ends import Interval, check_confidence
from recometer.stats.grouping import Column, Grouped, group_checked
from recometer.stats.means import NEGATIVE, NOT_ABOVE_0, in_units, relative_by_t
from recometer.stats.planning import Power, power
from recometer.stats.runs import t_of_parts
from recometer.stats.tests import TestResult

Two = tuple[npt.ArrayLike | None, npt.ArrayLike | None]

MISMATCH = 0.001  # the usual level for tests of sample ratios
TOO_FEW = "Welch's test needs two users with a value in each group."
NO_VARIANCE = "All users of both groups have the same value: Welch's test has no variance to use."


def compare_groups(
    first: npt.ArrayLike | Column | Grouped,
    second: npt.ArrayLike | Column | Grouped,
    *,
    weights: Two = (None, None),
    clusters: Two = (None, None),
    bounds: Bounds | None = None,
    confidence: float = 0.95,
) -> Difference:
    """Compare the means of two groups of different users by Welch's t test.

    The squared standard error of the difference is v₁ + v₂, with vᵢ = sᵢ² / nᵢ for a group of nᵢ
    users whose values have the variance sᵢ². It has (v₁ + v₂)² / (v₁² / (n₁ - 1) + v₂² / (n₂ - 1))
    degrees of freedom. Without weights and clusters, p is that of `scipy.stats.ttest_ind` with
    ``equal_var=False``. With weights w, a mean is the ratio of sums Σ w·x / Σ w. By the delta
    method, vᵢ is then nᵢ / (nᵢ - 1) · Σ e² / (Σ w)², with the residuals e = w·(x - mean). With
    clusters, w·x, w and e are summed over each cluster, and nᵢ is the number of clusters. The
    interval of the relative difference contains all θ for which the same test does not reject that
    the first mean is 1 + θ times the second. Welch, "The generalization of Student's problem when
    several different population variances are involved", Biometrika 34, 1947; Deng, Knoblich & Lu,
    "Applying the delta method in metric analytics", KDD 2018; Fieller, "Some problems in interval
    estimation", Journal of the Royal Statistical Society B 16, 1954.

    Parameters
    ----------
    first, second : [n_first], [n_second], or from `group`
        The values of each group's users; users with NaN are left out.
    weights : pair of [n_first] and [n_second] or None
        The weights of the values, at least 0. None means equal weights.
    clusters : pair of [n_first] and [n_second] or None
        The cluster of each row, such as the user of a session.
    bounds
        The lowest and the highest value that a user can have. None if unknown.
    confidence
        The confidence level, in (0, 1).

    Raises
    ------
    InputError
        If any value is infinite or not numeric, or if the lengths differ.

    Examples
    --------
    >>> from recometer.stats import compare_groups
    >>> found = compare_groups([0.5, 0.7, 0.6, 0.9], [0.2, 0.4, 0.3])
    >>> round(found.difference, 3), round(found.test.p_value, 4), found.interval.method
    (0.375, 0.0158, 'welch')
    """
    check_confidence(confidence)
    bounds = None if bounds is None else check_bounds(bounds)
    x, y = (in_units(x, w, c) for x, w, c in zip((first, second), weights, clusters, strict=True))
    n, few = x.n + y.n, min(_n_differing(x), _n_differing(y))
    difference, error, half, p = _welch(x, y, confidence)
    note = ""
    if not error > 0:
        p, note = np.nan, TOO_FEW if np.isnan(error) else NO_VARIANCE
        interval = Interval.unknown(confidence, n, note)
    else:
        if few < FEW_DIFFER:
            note = (
                f"In a group, {few:,} {'user differs' if few == 1 else 'users differ'} from "
                "most: too few to rule out a rare large loss. The interval may be too short, "
                "so it cannot be used to decide a gate."
            )
        ends = difference - half, difference + half
        interval = consistent(Interval(*ends, "welch", confidence, n, note), p)
        if bounds is not None:
            interval = interval.within((bounds[0] - bounds[1], bounds[1] - bounds[0]))
    lowest = -np.inf if bounds is None else bounds[0]
    if n and not np.isfinite(lowest):
        lowest = min(float(values.values.min(initial=np.inf)) for values in (x, y))
    relative, why = np.nan, NEGATIVE if lowest < 0 else NOT_ABOVE_0
    if lowest >= 0 and y.estimate > 0:
        relative, why = x.estimate / y.estimate - 1, note
    relative_interval = Interval.unknown(confidence, n, why)
    if np.isfinite(relative) and error > 0:
        relative_interval = relative_by_t(
            lambda *shares: _welch(x, y, confidence, shares)[::2],
            relative + 1,
            y.estimate,
            interval,
        )
    deviation = math.sqrt((x.deviation**2 + y.deviation**2) / 2)
    return Difference(
        n=n,
        mean=x.estimate,
        mean_other=y.estimate,
        difference=difference,
        interval=interval,
        relative=relative,
        relative_interval=relative_interval,
        test=TestResult(p, "welch", "student" if error > 0 else "none", n, n, 0.0, note),
        standardised=difference / deviation if deviation > 0 else np.nan,
        deviation=deviation,
        error=error,
        few=few < FEW_DIFFER,
    )


def _welch(
    first: Grouped,
    second: Grouped,
    confidence: float,
    shares: tuple[float, float] = (1.0, 1.0),
    shift: float = 0.0,
) -> tuple[float, float, float, float]:
    """Return the mean shares[0] · first - shares[1] · second + shift, and Welch's results for it.

    The results are its standard error, half the width of its interval, and p.
    """
    mean = shares[0] * first.estimate - shares[1] * second.estimate + shift
    if min(first.n, second.n) < 2:
        return mean, np.nan, np.nan, np.nan
    parts = [
        (0.0 if group.constant else (share * group.standard_error) ** 2, group.n - 1)
        for group, share in zip((first, second), shares, strict=True)
    ]
    return mean, *t_of_parts(mean, parts, confidence)


def equivalence_of_groups(
    first: Grouped, second: Grouped, margin: float, alpha: float
) -> Equivalence:
    """Test the equivalence of two groups by two one-sided Welch tests."""
    check_margin(margin, alpha)
    result, p, note = compare_groups(first, second, confidence=1 - 2 * alpha), np.nan, ""
    if not result.error > 0:
        note = result.test.note
    else:
        p = one_sided(
            lambda sign: _welch(first, second, 0.5, shift=sign * margin)[3],
            result.difference,
            margin,
        )
    return Equivalence(p, p <= alpha, margin, result.interval, "welch", note)


def power_of_groups(
    first: Grouped, second: Grouped, difference: float | None, wanted: float, alpha: float
) -> Power:
    """Return the power of Welch's test; numbers of users are totals over both groups.

    The ratio of the group sizes is assumed to stay the same. Let d be the difference between the
    means. A single sample, in which each user of a group with nᵢ of the n users has the value
    d ± n / nᵢ · residual, has the mean d, and its variance is n times that of d. The function
    returns the power for this sample, which is too high if a group has only a few users.
    """
    n, gap = first.n + second.n, first.estimate - second.estimate
    values = [
        gap + sign * n * group.residuals / float(np.sum(group.counts * group.sizes))
        for group, sign in ((first, 1.0), (second, -1.0))
    ]
    counts = np.concatenate([first.counts, second.counts])
    influences = group_checked(np.concatenate(values), None, counts)
    return power(influences, difference, wanted=wanted, alpha=alpha, unit=0.0)


def _n_differing(values: Grouped) -> float:
    """Return how many users do not have the most common value, or infinity if it is too rare."""
    means = values.values / values.sizes
    counts = np.bincount(np.unique(means, return_inverse=True)[1], values.counts)
    commonest = counts.max(initial=0.0)
    return int(values.n - commonest) if commonest >= SPARSE * values.n else np.inf


@dataclasses.dataclass(frozen=True)
class SampleRatio:
    """The result of a test of whether groups have the planned sizes.

    Attributes
    ----------
    counts, expected : mapping of str to float
        The size of each group, and its expected size.
    p_value
        The p-value of the chi-square test; the null hypothesis is that users were assigned as
        planned.
    """

    counts: Mapping[str, int]
    expected: Mapping[str, float]
    p_value: float

    @property
    def mismatch(self) -> bool:
        """Whether p is below 0.001, which casts doubt on all other results."""
        return self.p_value < MISMATCH

    def __str__(self) -> str:
        sizes = ", ".join(
            f"{name} {n:,} (expected {self.expected[name]:,.0f})" for name, n in self.counts.items()
        )
        text = f"Sample ratio: {sizes}; chi-square test: p {self.p_value:.2g}."
        if not self.mismatch:
            return text
        return (
            f"{text} The groups do not have the planned sizes: users of one group may be missing "
            "for a reason, and no difference can be trusted. Hint: find that reason, or use "
            f"{argument_text('ratio', '9:1')} to state another ratio."
        )


def sample_ratio(counts: Mapping[str, int], ratio: str | None = None) -> SampleRatio:
    """Test the sizes of groups against a planned ratio by Pearson's chi-square test.

    χ² is Σ (size - expected)² / expected, with n_groups - 1 degrees of freedom.
    Fabijan et al., "Diagnosing sample ratio mismatch in online controlled experiments", KDD 2019.

    Parameters
    ----------
    counts
        The size of each group.
    ratio
        The planned shares, one number for each group in the order of `counts`, such as ``"9:1"``.
        None means equal sizes.

    Raises
    ------
    InputError
        If `ratio` does not consist of one number above 0 for each group.

    Examples
    --------
    >>> from recometer.stats import sample_ratio
    >>> sample_ratio({"a": 5_100, "b": 4_900}).p_value < 0.05
    True
    """
    from scipy.special import chdtrc

    parts = ["1"] * len(counts) if ratio is None else str(ratio).split(":")
    try:
        planned = [float(part) for part in parts]
    except ValueError:
        planned = []
    if len(planned) != len(counts) or not all(0 < share < np.inf for share in planned):
        raise InputError(
            f"{argument_text('ratio', ratio)} must have a number above 0 for each of "
            f"{', '.join(counts)}. Hint: {argument_text('ratio', ':'.join('1' * len(counts)))}."
        )
    n = sum(counts.values())
    expected = {name: n * share / sum(planned) for name, share in zip(counts, planned, strict=True)}
    squares = sum((counts[name] - size) ** 2 / size for name, size in expected.items() if n)
    return SampleRatio(dict(counts), expected, float(chdtrc(len(counts) - 1, squares)))

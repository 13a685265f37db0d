"""Two groups of different users, as in an A/B test: Welch's test, and the ratio of their sizes."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from recometer.errors import InputError, InputTypeError, argument_text, brief
from recometer.stats.checks import Bounds, check_bounds
from recometer.stats.comparing import (
    FEW_DIFFER,
    SPARSE,
    Difference,
    Equivalence,
    check_margin,
    consistent,
)
from recometer.stats.ends import Interval, check_confidence
from recometer.stats.grouping import Column, Grouped
from recometer.stats.means import NEGATIVE, NOT_ABOVE_0, hull, in_units, less_1
from recometer.stats.planning import Power, power
from recometer.stats.tests import TestResult

Two = tuple[npt.ArrayLike | None, npt.ArrayLike | None]

MISMATCH = 0.001  # the usual level for sample ratios: a mismatch casts doubt on all other results
TOO_FEW = "Welch's test needs two users with a value in each group."
NO_VARIANCE = "All users of both groups have the same value: Welch's test has no variance to use."


class Welch(NamedTuple):
    """A difference of means, its standard error, and the degrees of freedom of that error."""

    difference: float
    error: float
    freedom: float

    @property
    def known(self) -> bool:
        """Whether there is a standard error above 0."""
        return self.error > 0

    def half(self, confidence: float) -> float:
        """Return half the width of the interval."""
        from scipy.special import stdtrit

        return float(stdtrit(self.freedom, (1 + confidence) / 2)) * self.error

    def interval(self, confidence: float, n: int) -> Interval:
        """Return the interval over n users."""
        half = self.half(confidence)
        ends = self.difference - half, self.difference + half
        return Interval(*ends, "welch", confidence, n)

    def tail(self, bound: float) -> float:
        """Return the probability of a t statistic below (bound - difference) / error."""
        from scipy.special import stdtr

        return float(stdtr(self.freedom, (bound - self.difference) / self.error))


@dataclasses.dataclass(frozen=True, eq=False)
class TwoGroups:
    """The values of two groups of users; see `compare_groups`."""

    first: Grouped
    second: Grouped

    @classmethod
    def of(
        cls,
        first: npt.ArrayLike | Column,
        second: npt.ArrayLike | Column,
        weights: Two = (None, None),
        clusters: Two = (None, None),
    ) -> TwoGroups:
        """Read the values of both groups."""
        one, two = (
            in_units(x, w, c) for x, w, c in zip((first, second), weights, clusters, strict=True)
        )
        return cls(one, two)

    def welch(self, ratio: float = 1.0) -> Welch:
        """Return the mean of first - ratio · second, with its error."""
        one, two = self.first, self.second
        difference = one.estimate - ratio * two.estimate
        if min(one.n, two.n) < 2:
            return Welch(difference, np.nan, np.nan)
        squares = [
            0.0 if each.constant else (scale * each.standard_error) ** 2
            for each, scale in ((one, 1.0), (two, ratio))
        ]
        total = sum(squares)
        parts = squares[0] ** 2 / (one.n - 1) + squares[1] ** 2 / (two.n - 1)
        return Welch(difference, math.sqrt(total), total**2 / parts if parts > 0 else np.nan)

    def compare(self, bounds: Bounds | None, confidence: float) -> Difference:
        """Return the difference of the means, and all that follows from it."""
        one, two, found = self.first, self.second, self.welch()
        n, p, note = one.n + two.n, np.nan, ""
        if found.known:
            p = 2 * found._replace(difference=abs(found.difference)).tail(0.0)
            interval = consistent(found.interval(confidence, n), p)
            if bounds is not None:
                interval = interval.within((bounds[0] - bounds[1], bounds[1] - bounds[0]))
        else:
            note = TOO_FEW if min(one.n, two.n) < 2 else NO_VARIANCE
            interval = Interval.unknown(confidence, n, note)
        few = min(_away(one), _away(two))
        if few < FEW_DIFFER and found.known:
            note = (
                f"In a group, {few:,} {'user differs' if few == 1 else 'users differ'} from "
                "most: too few to exclude a rare large loss. The interval may be too short: "
                "it cannot decide a gate."
            )
            interval = dataclasses.replace(interval, note=note)
        deviation = math.sqrt((one.deviation**2 + two.deviation**2) / 2)
        relative = self._relative(interval, bounds)
        return Difference(
            n=n,
            mean=one.estimate,
            mean_other=two.estimate,
            difference=found.difference,
            interval=interval,
            relative=np.nan
            if relative.note in (NEGATIVE, NOT_ABOVE_0)
            else one.estimate / two.estimate - 1,
            relative_interval=relative,
            test=TestResult(p, "welch", "student" if found.known else "none", n, n, 0.0, note),
            standardised=found.difference / deviation if deviation > 0 else np.nan,
            deviation=deviation,
            error=found.error,
            few=few < FEW_DIFFER,
        )

    def _relative(self, difference: Interval, bounds: Bounds | None) -> Interval:
        """Return all θ for which Welch's test does not reject 0 as first - (1 + θ) second."""
        one, two, confidence = self.first, self.second, difference.confidence
        n = one.n + two.n
        lowest = -np.inf if bounds is None else bounds[0]
        if n and not np.isfinite(lowest):
            lowest = min(float(each.values.min(initial=np.inf)) for each in (one, two))
        if not two.estimate > 0 or lowest < 0:
            return Interval.unknown(confidence, n, NEGATIVE if lowest < 0 else NOT_ABOVE_0)
        if difference.method == "none":
            return Interval.unknown(confidence, n, difference.note)

        def found_at(ratio: float) -> float:
            """Return the difference divided by half the width of its interval."""
            found = self.welch(ratio)
            return found.difference / found.half(confidence) if found.known else np.inf

        alone = [
            each.estimate / Welch(0.0, each.standard_error, each.n - 1.0).half(confidence)
            if each.sum_of_squares > 0
            else np.inf
            for each in (one, two)
        ]
        start = difference.width / 2 / two.estimate
        ends = hull(found_at, one.estimate / two.estimate, 1.0, start, (alone[0], alone[1]))
        return less_1(*ends, difference.method, n, difference)

    def equivalence(self, margin: float, alpha: float) -> Equivalence:
        """Return the two one-sided tests by Welch's statistic."""
        check_margin(margin, alpha)
        found, n = self.welch(), self.first.n + self.second.n
        if not found.known:
            note = TOO_FEW if np.isnan(found.error) else NO_VARIANCE
            unknown = Interval.unknown(1 - 2 * alpha, n, note)
            return Equivalence(np.nan, False, margin, unknown, "welch", note)
        p = max(found.tail(-margin), 1 - found.tail(margin))
        return Equivalence(p, p <= alpha, margin, found.interval(1 - 2 * alpha, n), "welch")

    def power(self, difference: float | None, wanted: float, alpha: float) -> Power:
        """Return the power; numbers of users are those of both groups, in their present ratio.

        Each user has the influence d ± n / nᵢ · residual, with the difference d as their mean and n
        times its variance as theirs. For groups of a few users, the power is somewhat lower.
        """
        n, away = self.first.n + self.second.n, self.welch().difference
        columns = [
            np.repeat(
                away + sign * n * each.residuals / float(np.sum(each.counts * each.sizes)),
                each.counts.astype(np.int64),
            )
            for each, sign in ((self.first, 1.0), (self.second, -1.0))
        ]
        return power(np.concatenate(columns), difference, wanted=wanted, alpha=alpha, unit=0.0)


def compare_groups(
    first: npt.ArrayLike,
    second: npt.ArrayLike,
    *,
    weights: Two = (None, None),
    clusters: Two = (None, None),
    bounds: Bounds | None = None,
    confidence: float = 0.95,
) -> Difference:
    """Compare the means of two groups of different users, by Welch's t test.

    The squared error of the difference is v₁ + v₂, with vᵢ = sᵢ² / nᵢ. It has
    (v₁ + v₂)² / (v₁² / (n₁ - 1) + v₂² / (n₂ - 1)) degrees of freedom. Without weights and clusters,
    p is that of `scipy.stats.ttest_ind` with ``equal_var=False``. With weights w, a mean is
    Σ w·x / Σ w, a ratio of sums; by the delta method its vᵢ is n / (n - 1) · Σ e² / (Σ w)², with
    the residuals e = w·(x - mean). With clusters, both sums and residuals are those of clusters.
    The interval of the relative difference has all θ for which the same test of
    first - (1 + θ)·second does not exclude 0. Welch, "The generalization of Student's problem when
    several different population variances are involved", Biometrika 34, 1947; Deng, Knoblich & Lu,
    "Applying the delta method in metric analytics", KDD 2018; Fieller, "Some problems in interval
    estimation", Journal of the Royal Statistical Society B 16, 1954.

    Parameters
    ----------
    first, second : [n_first], [n_second]
        The users' values in each group; NaN leaves a user out.
    weights : pair of [n_first] and [n_second] or None
        Weights of the values, at least 0. None weights users equally.
    clusters : pair of [n_first] and [n_second] or None
        Rows with equal entries belong together, such as the sessions of a user.
    bounds
        The lowest and the highest possible value of a user. None if unknown.
    confidence
        Coverage, in (0, 1).

    Raises
    ------
    InputError
        If values are not numbers or are infinite, or lengths differ.

    Examples
    --------
    >>> from recometer.stats import compare_groups
    >>> found = compare_groups([0.5, 0.7, 0.6, 0.9], [0.2, 0.4, 0.3])
    >>> round(found.difference, 3), round(found.test.p_value, 4), found.interval.method
    (0.375, 0.0158, 'welch')
    """
    check_confidence(confidence)
    bounds = None if bounds is None else check_bounds(bounds)
    return TwoGroups.of(first, second, weights, clusters).compare(bounds, confidence)


@dataclasses.dataclass(frozen=True)
class SampleRatio:
    """Whether groups have the sizes that were planned.

    Attributes
    ----------
    counts, expected : mapping of str to float
        The size of each group, and the expected one.
    p_value
        p of the chi-square test that users were assigned with the planned probabilities.
    """

    counts: Mapping[str, int]
    expected: Mapping[str, float]
    p_value: float

    @property
    def mismatch(self) -> bool:
        """Whether p is below 0.001."""
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
            "for a reason, and no difference can be trusted. Hint: find that reason; or "
            f"{argument_text('ratio', '9:1')} states another ratio."
        )


def sample_ratio(counts: Mapping[str, int], ratio: object = None) -> SampleRatio:
    """Test the sizes of groups against a planned ratio, by Pearson's chi-square test.

    χ² = Σ (size - expected)² / expected, with one degree of freedom less than groups. Fabijan et
    al., "Diagnosing sample ratio mismatch in online controlled experiments", KDD 2019.

    Parameters
    ----------
    counts
        The size of each group.
    ratio
        The planned shares: a mapping from each group to a number, or a text with a number for each
        group in order, such as ``"9:1"``. None expects equal sizes.

    Raises
    ------
    InputError, InputTypeError
        If there is not one number above 0 for each group.

    Examples
    --------
    >>> from recometer.stats import sample_ratio
    >>> sample_ratio({"a": 5_100, "b": 4_900}).p_value < 0.05
    True
    """
    from scipy.special import chdtrc

    hint = f"Hint: {argument_text('ratio', ':'.join('1' * len(counts)))}."
    shares: object = ratio
    if ratio is None:
        shares = dict.fromkeys(counts, 1.0)
    elif isinstance(ratio, str):
        parts = ratio.split(":")
        shares = dict(zip(counts, parts, strict=True)) if len(parts) == len(counts) else None
    elif not isinstance(ratio, Mapping):
        raise InputTypeError(f"ratio has a number for each group, found {brief(ratio)}. {hint}")
    try:
        planned = {str(name): float(share) for name, share in shares.items()}  # type: ignore[attr-defined]
    except (AttributeError, TypeError, ValueError):
        planned = {}
    if set(planned) != set(counts) or not all(0 < share < np.inf for share in planned.values()):
        raise InputError(
            f"{argument_text('ratio', ratio)} must have a number above 0 for each of "
            f"{', '.join(counts)}. {hint}"
        )
    n, total = sum(counts.values()), sum(planned.values())
    expected = {name: n * planned[name] / total for name in counts}
    squares = sum((counts[name] - each) ** 2 / each for name, each in expected.items() if n)
    return SampleRatio(dict(counts), expected, float(chdtrc(len(counts) - 1, squares)))


def _away(values: Grouped) -> float:
    """Return how many users differ from the most common value; infinity if none is common."""
    each = values.values / values.sizes
    counts = np.bincount(np.unique(each, return_inverse=True)[1], values.counts)
    most = counts.max(initial=0.0)
    return int(values.n - most) if most >= SPARSE * values.n else np.inf

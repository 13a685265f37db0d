"""Compare two models on the same users: difference, interval, test, effect size, equivalence."""

from __future__ import annotations

import dataclasses
import numbers
from collections.abc import Callable
from typing import Literal

import numpy as np
import numpy.typing as npt

from recometer.arrays import Float64
from recometer.errors import InputError, UnknownNameError, argument_text, did_you_mean
from recometer.remembered import cached_property
from recometer.stats.checks import Bounds, check_bounds, check_whole
from recometer.stats.ends import Interval, check_confidence
from recometer.stats.grouping import (
    Column,
    Grouped,
    by_cluster,
    column,
    crossed,
    group_checked,
    labels_of,
    total,
)
from recometer.stats.means import (
    NEGATIVE,
    NOBODY,
    NOT_ABOVE_0,
    extremes,
    flip_ends,
    gaffke_of_units,
    quantile_at,
    relative_interval,
    student,
    within,
)
from recometer.stats.planning import unit_of
from recometer.stats.runs import over_runs_of, run_moments
from recometer.stats.saddlepoint import increasing_root
from recometer.stats.tests import TESTS, Test, TestResult, check_test, documented, smallest_p


def most_changed(
    differences: npt.ArrayLike, n: int = 5
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the positions of the users who lose the most and of those who gain the most.

    Parameters
    ----------
    differences : [n_users]
        The difference for each user; users with NaN are left out.
    n
        The maximum number of users in each of the two arrays.

    Returns
    -------
    two arrays of int64 [at most n]
        The positions of users whose difference is below 0, lowest first, and of users whose
        difference is above 0, highest first. Users with equal differences keep their order.
    """
    check_whole("n", n, 0)
    checked = column(differences, "differences")
    positions = []
    for values in (checked, -checked):
        below = np.flatnonzero(values < 0)
        if len(below) > n:
            last = n - 1
            below = below[values[below] <= np.partition(values[below], last)[last]]
        positions.append(below[np.argsort(values[below], kind="stable")][:n].astype(np.int64))
    return positions[0], positions[1]


# Users differ if their values with the two models are not equal. If fewer than FEW_DIFFER users
# differ, and they make up at most the share SPARSE of all users, the inverted test gives an
# interval that covers the true difference too rarely: the sample may lack the few users who lose a
# lot (docs/statistics.md).
FEW_DIFFER, SPARSE = 30, 0.5
LEAST_LEVEL = 1e-12  # the lowest significance level that `_least_level` tries
FEW_USERS = 50  # with up to this many users, it is unclear whether differences are symmetric


@dataclasses.dataclass(frozen=True, kw_only=True)
class Difference:
    """The difference between two models, over the users who have a value with both.

    `standardised` is d_z in Cohen, "Statistical Power Analysis for the Behavioral Sciences", 1988,
    2.3.5. For `probability_better`, see Grissom & Kim, "Effect Sizes for Research", 2005, ch. 5.

    Attributes
    ----------
    n
        The number of users compared.
    n_only_model, n_only_other
        The number of users who have a value only with the first model, and of those who have one
        only with the second. These users are left out.
    mean, mean_other
        The means of the first and of the second model over the users compared.
    difference, interval
        The first model's mean minus the second model's mean, with its interval.
    relative, relative_interval
        The ratio of the means minus 1, with its interval. The interval contains all θ for which the
        method of `interval` cannot rule out that the mean of first - (1 + θ) · second is 0
        (`recometer.stats.means`). The relative difference and both ends are NaN if the second
        model's mean is not above 0, or if values can be negative.
    test
        The test of the null hypothesis that the models do not differ. If `interval` is Gaffke's, p
        is the smallest level at which the interval excludes 0, and the test is called ``"gaffke"``.
    n_better, n_equal, n_worse
        The numbers of users whose difference is above 0, equal to 0 and below 0.
    standardised
        The mean of the differences divided by their standard deviation (Cohen's d of paired
        values); 0 if no user differs, and infinite if all differ by the same amount.
    probability_better
        The probability that a random user's difference is above 0; a tie counts half.
    unit
        The common unit of the users' (or clusters') differences, which makes the p of the
        randomisation test change in steps; 0 if there is no such unit, and for other tests.
    deviation
        The standard deviation of the users' differences.
    error
        The standard error of the difference, over users or clusters.
    few
        Whether fewer than 30 users (or clusters) differ and at least half do not. With so few, some
        users may lose a lot unnoticed, which only Gaffke's interval takes into account.
    """

    n: int
    n_only_model: int = 0
    n_only_other: int = 0
    mean: float
    mean_other: float
    difference: float
    interval: Interval
    relative: float
    relative_interval: Interval
    test: TestResult
    n_better: int = 0
    n_equal: int = 0
    n_worse: int = 0
    standardised: float = np.nan
    probability_better: float = np.nan
    unit: float = 0.0
    deviation: float = np.nan
    error: float = np.nan
    few: bool = False

    @property
    def low(self) -> float:
        """Return the lower end of the difference's interval."""
        return self.interval.low

    @property
    def high(self) -> float:
        """Return the upper end of the difference's interval."""
        return self.interval.high

    def for_lower_values(self) -> Difference:
        """Return a copy with better and worse swapped, for metrics where lower is better."""
        return dataclasses.replace(
            self,
            n_better=self.n_worse,
            n_worse=self.n_better,
            probability_better=1 - self.probability_better,
        )


@dataclasses.dataclass(frozen=True, eq=False)
class Pairs:
    """The users' values with both models, and their clusters if there are any."""

    first: Column
    second: Column
    clusters: npt.NDArray[np.generic] | None = None

    @classmethod
    def of(
        cls,
        first: npt.ArrayLike | Column,
        second: npt.ArrayLike | Column,
        clusters: npt.ArrayLike | None = None,
    ) -> Pairs:
        """Check the users' values and clusters; the arguments are the same as for `compare`."""
        x, y = Column.of(first, "first"), Column.of(second, "second")
        if len(x.values) != len(y.values):
            raise InputError(
                "Both models need one value per user (NaN if there is none), but have "
                f"{len(x.values):,} and {len(y.values):,} values."
            )
        return cls(x, y, None if clusters is None else labels_of(clusters, len(x.values)))

    @cached_property
    def rows(self) -> tuple[Float64, Float64, Float64 | None]:
        """Return the models' values for the users who have both, and None in place of counts.

        If there are no clusters and both columns have levels, return the distinct pairs of values
        and their counts instead.
        """
        pairs = None if self.clusters is not None else crossed(self.first, self.second)
        x, y, times = pairs or (self.first.values, self.second.values, None)
        if self.first.complete and self.second.complete:
            return x, y, times
        known = ~np.isnan(x + y)
        return x[known], y[known], None if times is None else times[known]

    @cached_property
    def clustered(self) -> tuple[Float64, Float64, Float64]:
        """Return each model's sum of values in each cluster, and each cluster's number of rows."""
        x, y = self.first.values, self.second.values
        known = ~np.isnan(x + y)
        assert self.clusters is not None
        x, y, sizes = by_cluster(self.clusters[known], x[known], y[known], np.ones(known.sum()))
        return x, y, sizes

    @property
    def largest(self) -> float:
        """Return the number of rows in the largest cluster; 1 without clusters."""
        return 1.0 if self.clusters is None else float(self.clustered[2].max(initial=1.0))

    @cached_property
    def differences(self) -> Grouped:
        """Return the differences of individual rows, with equal values grouped."""
        x, y, times = self.rows
        return group_checked(x - y, None, times)

    @cached_property
    def values(self) -> Float64:
        """Return the users' differences, or their sums over clusters."""
        if self.clusters is not None:
            return self.clustered[0] - self.clustered[1]
        x, y, times = self.rows
        return x - y if times is None else np.repeat(x - y, times.astype(np.int64))

    @cached_property
    def sums(self) -> Grouped:
        """Return `values` with equal values grouped."""
        return self.differences if self.clusters is None else group_checked(self.values)

    @cached_property
    def units(self) -> Grouped:
        """Return the differences of the independent units: users, or clusters with their sizes."""
        if self.clusters is None or not len(self.values):
            return self.differences
        sizes = self.clustered[2]
        # With clusters of equal size, the mean is a plain mean, which has a Gaffke interval.
        if (sizes == sizes[0]).all():
            return group_checked(self.values / sizes)
        sums, units = self.sums, group_checked(self.values, sizes)
        return dataclasses.replace(units, n_above=sums.n_above, n_below=sums.n_below)

    @cached_property
    def ratios(self) -> Grouped | None:
        """Return the first model's values, with the second model's values as sizes.

        The result is None if the mean of the second model is not above 0.
        """
        x, y, times = self.rows if self.clusters is None else (*self.clustered[:2], None)
        return group_checked(x, y, times) if total(y, times) > 0 else None


def compare(
    first: npt.ArrayLike | Column,
    second: npt.ArrayLike | Column,
    *,
    bounds: Bounds | None = None,
    test: Test = "randomisation",
    confidence: float = 0.95,
    clusters: npt.ArrayLike | None = None,
) -> Difference:
    """Compare two models on the same users.

    The interval corresponds to the test; for the randomisation test, it is found by inversion.
    However, both the interval and p are computed by Gaffke's method if the range is known and
    either all users differ by the same amount, or fewer than 30 users differ and at least half do
    not.

    Parameters
    ----------
    first, second : [n_users]
        Each model's metric values, one for each user; the users are in the same order in both
        arrays. NaN means no value.
    bounds
        The lowest and the highest value that a user can have with a single model. None if unknown.
    test
        {tests}
    confidence
        The confidence level, in (0, 1).
    clusters : [n_users] or None
        The cluster of each row, such as a user with several rows, a session or a fold. The test
        flips the signs of whole clusters, and the interval treats clusters as independent.

    Raises
    ------
    InputError
        If any value is infinite or not numeric, or if the lengths differ.
    UnknownNameError
        If there is no test of that name.

    Examples
    --------
    >>> from recometer.stats import compare
    >>> found = compare([1, 1, 1, 0, 1, 1, 1], [0, 0, 0, 0, 0, 0, 1], bounds=(0, 1))
    >>> round(found.difference, 3), found.test.p_value, found.test.method
    (0.714, 0.0625, 'binomial')
    """
    check_confidence(confidence)
    check_test(test)
    bounds = None if bounds is None else check_bounds(bounds)
    pairs = Pairs.of(first, second, clusters)
    result = decisive_test(pairs, bounds, test)
    units, ratios = pairs.units, pairs.ratios
    ends = difference_interval(units, result, bounds, confidence, pairs.largest)
    why = NOBODY if not units.n else NOT_ABOVE_0
    lowest = -np.inf if bounds is None else bounds[0]
    if ratios is not None and not np.isfinite(lowest):  # negative values are possible
        lowest = min(float(np.min(ratios.values)), float(np.min(ratios.sizes)))
    if ratios is None or lowest < 0:
        why = NEGATIVE if ratios is not None else why
        relative, relative_ends = np.nan, Interval.unknown(confidence, units.n, why)
    else:
        relative = ratios.estimate - 1
        relative_ends = relative_interval(ratios, ends, bounds, pairs.largest)
    differences = pairs.differences
    n, n_better, n_worse = differences.n, differences.n_above, differences.n_below
    n_equal = n - n_better - n_worse
    standardised = 0.0 if n else np.nan
    if differences.constant and n_equal < n:
        standardised = float(np.copysign(np.inf, differences.estimate))
    elif n_equal < n:
        standardised = float(differences.estimate / differences.deviation)
    *columns, times = pairs.rows
    mean, mean_other = (total(values, times) / n if n else np.nan for values in columns)
    return Difference(
        n=n,
        n_only_model=pairs.first.n - n,
        n_only_other=pairs.second.n - n,
        mean=mean,
        mean_other=mean_other,
        difference=differences.estimate,
        interval=ends,
        relative=relative,
        relative_interval=relative_ends,
        test=result,
        n_better=n_better,
        n_equal=n_equal,
        n_worse=n_worse,
        standardised=standardised,
        probability_better=(n_better + 0.5 * n_equal) / n if n else np.nan,
        unit=unit_of(units) if result.test == "randomisation" else 0.0,
        deviation=differences.deviation,
        error=units.standard_error,
        few=_few(result),
    )


documented(compare)


def paired_test(test: Test, pairs: Pairs) -> TestResult:
    """Return the result of one of the `TESTS` on the pairs."""
    return TESTS[test].result(getattr(pairs, TESTS[test].reads))


def decisive_test(pairs: Pairs, bounds: Bounds | None, test: Test) -> TestResult:
    """Return the result of `paired_test`, or of Gaffke's method if `_uses_gaffke` is true."""
    if not TESTS[test].of_mean:
        return paired_test(test, pairs)
    units, sums = pairs.units, pairs.sums
    n, n_differ, spread = units.n, sums.n_above + sums.n_below, _spread(bounds)
    undecided = TestResult(np.nan, test, "none", n, n_differ, 0.0)
    if not n_differ or not _uses_gaffke(units, undecided, spread):
        return paired_test(test, pairs)
    from scipy.special import ndtr

    size = 1.0 if isinstance(units.sizes, float) else pairs.largest
    assert spread is not None
    below, above = (quantile_at(units, point, 0.0) for point in extremes(spread, size))
    smallest = smallest_p(n_differ)
    p = min(1.0, max(2 * float(ndtr(min(below, -above))), smallest))
    return TestResult(p, "gaffke", "gaffke", n, n_differ, smallest)


def inverted(differences: Grouped, confidence: float) -> Interval:
    """Return the interval of all δ that the randomisation test does not reject.

    The test of a value δ uses the differences minus δ (for clusters with sizes, minus δ times the
    size). Its p always comes from the saddlepoint approximation, even where `randomisation` is
    exact, because differences minus δ rarely have only a few distinct sizes. `consistent` resolves
    contradictions with an exact p. If there are so few users that the test cannot reject any δ, the
    ends are infinite.
    """
    n = differences.n
    if not n:
        return Interval.unknown(confidence, n, "No user has both values.")
    level = 1 - confidence
    if smallest_p(n) > level:
        note = (
            f"With {n:,} {'user' if n == 1 else 'users'}, p cannot fall below {smallest_p(n):.3g}, "
            "so the randomisation test cannot rule out any difference."
        )
        return Interval(-np.inf, np.inf, "randomisation", confidence, n, note)
    if differences.constant:
        note = (
            f"All {n:,} differences are {differences.estimate:g}, so the interval has zero width."
        )
        ends = differences.estimate, differences.estimate
        return Interval(*ends, "randomisation", confidence, n, note)
    low, high = flip_ends(differences, confidence)
    return Interval(low, high, "randomisation", confidence, n)


def consistent(interval: Interval, p_value: float) -> Interval:
    """Adjust an interval so that it contains 0 exactly when p is above 1 - confidence.

    An exact p jumps from one value to the next, while the approximated interval moves smoothly.
    One of its ends may therefore be on the wrong side of 0, and is then moved to 0 or next to it.
    """
    contains, expected = 0.0 in interval, p_value > 1 - interval.confidence
    if contains == expected:
        return interval
    low, high = interval
    if expected:
        return dataclasses.replace(interval, low=min(low, 0.0), high=max(high, 0.0))
    # Move the end to the number next to 0, because an interval includes its ends.
    if low + high > 0:
        return dataclasses.replace(interval, low=float(np.nextafter(0.0, 1.0)))
    return dataclasses.replace(interval, high=float(np.nextafter(0.0, -1.0)))


def difference_interval(
    differences: Grouped,
    test: TestResult,
    bounds: Bounds | None,
    confidence: float,
    largest: float = 1.0,
) -> Interval:
    """Return the interval of a mean difference; see `compare`.

    If the interval corresponds to `test`, it excludes 0 exactly when the test rejects. `bounds` is
    the range of a single model's values, and `largest` is the number of rows in the largest
    cluster.
    """
    spread = _spread(bounds)
    if _uses_gaffke(differences, test, spread):
        assert spread is not None
        interval = gaffke_of_units(differences, spread, confidence, largest)
    elif _by_t(test):
        interval = student(differences, confidence).within(spread)
    else:
        interval = inverted(differences, confidence).within(spread)
    own = "gaffke" if interval.method == "clopper-pearson" else interval.method
    if test.test == own and own != "t" and np.isfinite(test.p_value):
        interval = consistent(interval, test.p_value)
    notes = [interval.note, _on_few(test, own, differences, spread)]
    if test.test in TESTS and not TESTS[test.test].of_mean:
        notes.append(
            "The interval is about the mean, but p is not: it tests a different hypothesis."
        )
    return dataclasses.replace(interval, note=" ".join(filter(None, notes)))


def _spread(bounds: Bounds | None) -> Bounds | None:
    """Return the range of the differences between two values within these bounds."""
    return None if bounds is None else (bounds[0] - bounds[1], bounds[1] - bounds[0])


def _few(test: TestResult) -> bool:
    """Return whether so few users differ that the sample may lack rare large losses."""
    return test.n_differ < FEW_DIFFER and test.n_differ <= SPARSE * test.n


def _by_t(test: TestResult) -> bool:
    """Return whether the interval that corresponds to a test is Student's t interval."""
    return test.test in TESTS and TESTS[test.test].interval == "t"


def _uses_gaffke(differences: Grouped, test: TestResult, spread: Bounds | None) -> bool:
    """Return whether Gaffke's method computes the interval and p.

    It does if the range is known, and either few users differ or all differ by the same amount.
    """
    few = _few(test) and not _by_t(test)
    return (few or differences.constant) and within(differences, spread)


def _on_few(test: TestResult, method: str, differences: Grouped, spread: Bounds | None) -> str:
    """Return a note if there are few users or few of them differ, otherwise an empty string."""
    one_size = isinstance(differences.sizes, float)
    n, unit = test.n_differ, "cluster" if not one_size else "user"
    if not n:
        return ""
    if _few(test):
        counted = f"{n:,} {unit} differs" if n == 1 else f"{n:,} {unit}s differ"
        note = f"{counted}: too few to rule out a rare large loss."
        if method == "gaffke":
            return note
        why = "The metric has no known range, and the" if not within(differences, spread) else "The"
        return f"{note} {why} interval may be too short, so it cannot be used to decide a gate."
    if method == "randomisation" and test.n <= FEW_USERS:
        sizes = "" if one_size else "clusters are of similar size and "
        return (
            f"With few {unit}s ({test.n:,}), p and the interval only hold if {sizes}differences "
            "are roughly symmetric."
        )
    return ""


@dataclasses.dataclass(frozen=True)
class Equivalence:
    """The result of a test of whether a mean difference lies within the margins.

    Attributes
    ----------
    p_value
        The p-value of the null hypothesis that the models are not equivalent. It is NaN if it is
        undefined, in which case `note` says why.
    equivalent
        Whether this null hypothesis is rejected.
    margin
        The smallest difference that would matter.
    interval
        The interval of the mean difference, with confidence 1 - 2 · alpha. It is within the margins
        if the models are equivalent.
    method
        The method that computed p: ``"randomisation"``, ``"t"``, ``"gaffke"`` if few users differ,
        ``"random effects"`` for several runs, or ``"welch"`` for groups of different users.
    note
        A remark for the reader, or an empty string.
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

    There are two one-sided tests, with the null hypotheses that the mean is at most -margin and
    that it is at least margin; p is the larger of their p-values. However, if the range is known,
    fewer than 30 users differ and at least half do not, p is the smallest level at which Gaffke's
    interval is within the margins. Schuirmann, Journal of Pharmacokinetics and Biopharmaceutics 15,
    1987.

    Parameters
    ----------
    differences : [n_users]
        The difference for each user; users with NaN are left out.
    margin
        The smallest difference that would matter, a number above 0.
    alpha
        The accepted probability of wrongly calling models equivalent, in (0, 0.5).
    test
        ``"randomisation"`` or ``"t"``.
    bounds
        The lowest and the highest value that a user can have with a single model.
    clusters : [n_users] or None
        The cluster of each row. The test flips the signs of whole clusters.

    Raises
    ------
    InputError
        If the margin is not above 0, alpha is out of range, or `clusters` has the wrong length.
    """
    check_margin(margin, alpha)
    if test not in ("randomisation", "t"):
        hint = did_you_mean(str(test), ("randomisation", "t"))
        raise UnknownNameError(f"There is no test of equivalence {test!r}. {hint}")
    of_users = column(differences, "differences")
    zeros = np.zeros(len(of_users))

    def side(sign: float) -> float:
        return paired_test(test, Pairs.of(sign * of_users + margin, zeros, clusters)).p_value

    pairs = Pairs.of(of_users, zeros, clusters)
    result, values = paired_test(test, pairs), pairs.units

    def interval(level: float) -> Interval:
        return difference_interval(values, result, bounds, 1 - 2 * level)

    ends = interval(alpha)
    if values.n == 0:
        return Equivalence(np.nan, False, margin, ends, test, "No user has both values.")
    if ends.method in ("gaffke", "clopper-pearson"):
        p = _least_level(interval, margin)
        return Equivalence(p, p <= alpha, margin, ends, "gaffke")
    p = one_sided(side, values.estimate, margin)
    if np.isnan(p):
        constant = abs(values.estimate) < margin
        note = f"All {values.n:,} differences are {values.estimate:g}; Student's t is undefined."
        return Equivalence(np.nan, constant and values.n > 1, margin, ends, test, note)
    return Equivalence(p, p <= alpha, margin, ends, test)


def equivalence_over_runs(
    first: npt.ArrayLike, second: npt.ArrayLike, margin: float, *, alpha: float = 0.05
) -> Equivalence:
    """Test equivalence over several runs of each model; see `over_runs` and `equivalence`."""
    check_margin(margin, alpha)
    moments = run_moments(first, second)
    runs = over_runs_of(moments, confidence=1 - 2 * alpha)
    p = one_sided(
        lambda sign: over_runs_of(moments._replace(mean=moments.mean + sign * margin)).p_value,
        moments.mean,
        margin,
    )
    return Equivalence(p, p <= alpha, margin, runs.interval, "random effects", runs.note)


def check_margin(margin: float, alpha: float) -> None:
    """Raise an error if the margin is not above 0, or the level is outside (0, 0.5)."""
    if not isinstance(margin, numbers.Real) or not 0 < margin < np.inf:
        raise InputError(
            f"{argument_text('margin', margin)} must be above 0: the difference that would matter."
        )
    if not isinstance(alpha, numbers.Real) or not 0 < alpha < 0.5:
        raise InputError(
            f"alpha={alpha!r} must be above 0 and below 0.5. Hint: the usual value is 0.05."
        )


def one_sided(p_of: Callable[[float], float], mean: float, margin: float) -> float:
    """Return the larger p of the two one-sided tests for a mean between -margin and +margin.

    `p_of` takes a sign and returns the two-sided p of the hypothesis that sign · value + margin has
    a mean of 0.
    """
    sides = [(p_of(sign), sign * mean + margin) for sign in (1.0, -1.0)]
    return max(p / 2 if distance > 0 else 1 - p / 2 for p, distance in sides)


def _least_level(interval: Callable[[float], Interval], margin: float) -> float:
    """Return the smallest alpha, up to 1/2, at which the interval is within the margins."""
    from scipy.special import ndtr

    def farthest(quantile: float) -> float:
        ends = interval(max(float(ndtr(-quantile)), LEAST_LEVEL))
        return max(ends.high, -ends.low)

    nearest = farthest(0.0)
    if nearest >= margin:
        return 0.5
    root = increasing_root(
        lambda x: (farthest(x) - nearest) / (margin - nearest), target=1.0, start=1.0
    )
    return LEAST_LEVEL if root is None else float(ndtr(-root))

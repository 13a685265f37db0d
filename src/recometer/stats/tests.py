"""The paired tests, and a table of their declarations.

A test is a function with the decorator `paired`, which declares everything else about the test. The
names that ``test=`` and the command line accept, the printed sentences and the documentation follow
from these declarations.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from recometer.arrays import Float64
from recometer.errors import UnknownNameError, did_you_mean
from recometer.stats.grouping import Grouped, column, group
from recometer.stats.saddlepoint import (
    ROUNDING,
    all_sums,
    enumerated,
    multiples_of_unit,
    of_each_size,
    of_multiples,
    quantile_of,
)

Test = str
"""The name of a test in `TESTS`."""

MANY_USERS = 3_000  # above this number of users, `wilcoxon` and `sign` add a note
EXACT_WILCOXON_UP_TO = 50  # if more users differ, `wilcoxon` uses the normal approximation
ENUMERATED_UP_TO = 30  # if more users differ, the signs are not enumerated (2 · 2^15 sums)
# A size dominates if its square is above 4 % of the sum of squares. The signs of dominating sizes
# are enumerated if there are at most 6 of them.
DOMINATING, MOST_DOMINATING = 0.04, 6

MEAN = "the mean difference is 0"
OTHERS = {
    "gaffke": "the smallest level at which the interval excludes 0",
    "random effects": "Student's t with the variance between users and between seeds",
    "folds": "Student's paired t test of folds",
    "bootstrap": "users drawn with replacement",
    "welch": "Welch's t test of groups of different users",
}
"""The methods that compute p from an interval rather than by a test of `TESTS`."""


@dataclasses.dataclass(frozen=True)
class TestResult:
    """The result of a paired test.

    Attributes
    ----------
    p_value
        The two-sided p-value. It is NaN if there is none, in which case `note` says why, and 0 if
        it is below the smallest floating-point number, about 1e-308.
    test
        A name in `TESTS`, or in `OTHERS` if p comes from the interval.
    method
        The method that computed p: ``"binomial"``, ``"convolution"``, ``"enumeration"`` (all three
        are exact), ``"saddlepoint"``, ``"student"``, ``"normal"``, ``"gaffke"``, or ``"none"``.
    n
        The number of users (or clusters of rows) compared.
    n_differ
        The number of users (or clusters) with a nonzero difference.
    smallest_p
        The smallest possible p if `n_differ` users have a nonzero difference, whatever the
        differences are; 0 if there is no lower bound.
    note
        A remark for the reader, or an empty string.
    """

    __test__ = False  # pytest must not collect this class, despite its name

    p_value: float
    test: str
    method: str
    n: int
    n_differ: int
    smallest_p: float
    note: str = ""

    @property
    def exact(self) -> bool:
        """Return whether p is exact, except for rounding."""
        return self.method in ("binomial", "convolution", "enumeration")


class Outcome(NamedTuple):
    """The result of a test function: the two-sided p, its method, and a remark.

    If there is no p, it is NaN, and `note` says why. `TestResult` lists the methods.
    """

    p: float
    method: str
    note: str = ""


@dataclasses.dataclass(frozen=True)
class PairedTest:
    """A paired test, as declared with `paired`.

    Attributes
    ----------
    name
        The name that ``test=`` accepts.
    sentence
        The printed name, such as "Student's paired t test".
    function
        A function that takes the users' differences, not all of which are 0, and returns `Outcome`.
    hypothesis
        The null hypothesis.
    smallest_p
        A function that takes the number of users who differ, and returns a lower bound on p. A
        computed p below this bound is raised to it.
    reads
        The argument of `function`: ``"values"`` are the users' differences, or their sums over
        clusters, as float64 [n]; ``"sums"`` are the same numbers as `Grouped`; ``"units"`` are the
        differences of users, or of clusters with their sizes, as `Grouped`.
    needs
        The smallest number of users that the test needs, 1 or 2.
    interval
        The interval that corresponds to the test.
    alike
        The `TestResult.method` to report if no user differs.
    """

    name: str
    sentence: str
    function: Callable[..., Outcome]
    hypothesis: str
    smallest_p: Callable[[int], float] = lambda n_differ: 0.0
    reads: Literal["values", "sums", "units"] = "values"
    needs: int = 1
    interval: Literal["randomisation", "t"] = "randomisation"
    alike: str = "enumeration"

    @property
    def of_mean(self) -> bool:
        """Whether p is about the mean, like the interval."""
        return self.hypothesis == MEAN

    def result(self, differences: npt.ArrayLike | Grouped) -> TestResult:
        """Return the result for the users' differences; users with NaN are left out."""
        values: Any
        if self.reads == "values":
            values = column(differences, "differences")  # type: ignore[arg-type]
            values = values[~np.isnan(values)]
            sizes = np.abs(values)
            n, n_differ = len(values), int(np.sum(sizes > ROUNDING * sizes.max(initial=0.0)))
        else:
            values = group(differences)
            n, n_differ = values.n, values.n_above + values.n_below
        smallest = min(1.0, self.smallest_p(n_differ))
        if n < self.needs:
            text = f"{'One' if n else 'No'} user has both values"
            needs = f"; {self.sentence.replace('paired ', '')} needs two" if self.needs > 1 else ""
            outcome = Outcome(np.nan, "none", f"{text}{needs}.")
        elif n_differ:
            outcome = self.function(values)
        else:
            text = f"None of the {n:,} users differs" if n > 1 else "The only user does not differ"
            outcome = Outcome(1.0, self.alike, f"{text}, so there is no difference to detect.")
        if np.isnan(outcome.p):
            return TestResult(np.nan, self.name, outcome.method, n, n_differ, np.nan, outcome.note)
        p = min(1.0, max(outcome.p, smallest))
        return TestResult(p, self.name, outcome.method, n, n_differ, smallest, outcome.note)


TESTS: dict[Test, PairedTest] = {}
"""All tests, keyed by name."""


def paired(
    name: str, sentence: str, hypothesis: str, **more: Any
) -> Callable[[Callable[..., Outcome]], Callable[[npt.ArrayLike | Grouped], TestResult]]:
    """Return a decorator that registers a function as the `PairedTest` with these attributes."""

    def add(function: Callable[..., Outcome]) -> Callable[[npt.ArrayLike | Grouped], TestResult]:
        TESTS[name] = PairedTest(name, sentence, function, hypothesis, **more)

        @functools.wraps(function)
        def result(differences: npt.ArrayLike | Grouped) -> TestResult:
            return TESTS[name].result(differences)

        result.__annotations__["return"] = "TestResult"
        return result

    return add


def check_test(test: str) -> None:
    """Raise an error if there is no test of this name."""
    if not isinstance(test, str) or test not in TESTS:
        raise UnknownNameError(f"There is no test {test!r}. {did_you_mean(str(test), TESTS)}")


def documented(function: Callable[..., Any]) -> None:
    """Replace ``{tests}`` in a function's docstring with the names and sentences of all tests."""
    listed = ";\n        ".join(f'``"{name}"``, {test.sentence}' for name, test in TESTS.items())
    function.__doc__ = (function.__doc__ or "").replace("{tests}", f"{listed}.")


def smallest_p(n_differ: int) -> float:
    """Return the smallest possible two-sided p if `n_differ` users (at least 1) differ.

    p is smallest if all of them differ in the same direction.
    """
    return float(2.0 ** (1 - n_differ))


@paired(
    "randomisation",
    "the paired randomisation test, without resampling",
    MEAN,
    smallest_p=smallest_p,
    reads="sums",
)
def randomisation(differences: Grouped) -> Outcome:
    """Perform the two-sided paired randomisation test for a mean difference of 0.

    Under the null hypothesis, the two models are exchangeable for each user, so each difference
    could just as well have the opposite sign. p is the share of all assignments of signs whose sum
    is at least as far from 0 as the observed sum. Users without a difference have no effect.
    Fisher, "The Design of Experiments", 1935; Smucker, Allan & Carterette, CIKM 2007.

    No random signs are drawn. If the values allow it, p is exact: it comes from the binomial
    distribution if all differences have the same size, from a convolution if they are multiples of
    a unit, and from enumeration if at most 30 differ from 0. Otherwise, p is a saddlepoint
    approximation, which is within 3 % of the exact value for most differences. If 5 to 10 large
    differences outweigh the others, the distribution of the sum has several peaks. As signs are
    enumerated for at most 6 large differences, p may then be 0.5 to 3.2 times its exact value.

    Parameters
    ----------
    differences : [n_users], or from `group`
        The difference for each user, or the sum of the differences in each cluster; NaN is ignored.

    Examples
    --------
    >>> from recometer.stats import randomisation
    >>> result = randomisation([0.2, 0.1, 0.4, 0.3, 0.15, 0.2, 0.0])
    >>> result.p_value, result.method, result.n_differ
    (0.03125, 'convolution', 6)
    """
    sizes, counts = np.abs(differences.values), differences.counts
    nonzero = sizes > ROUNDING * sizes.max()
    total = abs(float(differences.values[nonzero] @ counts[nonzero]))
    if total <= ROUNDING * float(sizes @ counts):
        return Outcome(1.0, "enumeration")
    sizes, counts = of_each_size(sizes[nonzero], counts[nonzero])
    p, method = _one_sided(sizes, counts, total, exact=differences.exact)
    return Outcome(2 * p, method)


@paired("t", "Student's paired t test", MEAN, reads="units", needs=2, interval="t", alike="student")
def paired_t(differences: Grouped) -> Outcome:
    """Perform Student's two-sided paired t test for a mean difference of 0.

    The statistic is the same as in `scipy.stats.ttest_rel`, which accepts neither counts of equal
    values nor clusters with sizes.

    Parameters
    ----------
    differences : [n_users], or from `group`
        The difference for each user; users with NaN are left out.
    """
    n = differences.n
    if differences.constant:
        note = (
            f"All {n:,} differences are {differences.estimate:g}: without variance, Student's "
            "t is undefined. The randomisation test still gives a p."
        )
        return Outcome(np.nan, "none", note)
    from scipy.special import stdtr

    statistic = differences.estimate / differences.standard_error
    return Outcome(2 * float(stdtr(n - 1, -abs(statistic))), "student")


@paired(
    "wilcoxon",
    "Wilcoxon's signed-rank test",
    "the differences are symmetric about 0",
    smallest_p=smallest_p,
)
def wilcoxon(differences: Float64) -> Outcome:
    """Perform Wilcoxon's two-sided signed-rank test.

    Users who do not differ are left out. The result agrees with `scipy.stats.wilcoxon`. p is exact
    if up to 50 users differ and no two differences have the same size; otherwise it is the normal
    approximation corrected for ties. Wilcoxon, "Individual comparisons by ranking methods",
    Biometrics Bulletin 1, 1945. For the correction, see Pratt & Gibbons, "Concepts of Nonparametric
    Theory", 1981, chapter 3.

    Parameters
    ----------
    differences : [n_users]
        The difference for each user; users with NaN are left out.
    """
    values, times = np.unique(differences, return_counts=True)
    better, worse = _by_size(values, times.astype(np.float64))
    both = better + worse
    n_differ = int(both.sum())
    ranks = np.cumsum(both) - (both - 1) / 2
    total, note = float(better @ ranks), _on_many_users(len(differences), "Wilcoxon")
    if n_differ <= EXACT_WILCOXON_UP_TO and bool((both == 1).all()):
        from scipy import stats

        signed = np.where(better > 0, ranks, -ranks)
        return Outcome(float(stats.wilcoxon(signed, method="exact").pvalue), "enumeration", note)
    from scipy.special import ndtr

    square = n_differ * (n_differ + 1) * (2 * n_differ + 1) - float(both @ (both**2 - 1)) / 2
    z = -abs(total - n_differ * (n_differ + 1) / 4) / np.sqrt(square / 24)
    return Outcome(2 * float(ndtr(z)), "normal", note)


@paired(
    "sign",
    "the sign test",
    "as many users are better off as worse off",
    smallest_p=smallest_p,
    reads="sums",
)
def sign(differences: Grouped) -> Outcome:
    """Perform the two-sided sign test.

    The null hypothesis is that as many users are better off as worse off. Users who do not differ
    are left out. The test is exact.

    Parameters
    ----------
    differences : [n_users], or from `group`
        The difference for each user; users with NaN are left out.
    """
    from scipy.special import bdtr

    better, worse = differences.n_above, differences.n_below
    p = 2 * float(bdtr(min(better, worse), better + worse, 0.5))
    return Outcome(p, "binomial", _on_many_users(differences.n, "sign"))


def _one_sided(sizes: Float64, times: Float64, total: float, *, exact: bool) -> tuple[float, str]:
    """Return the probability that Σ ±size is at least `total` (above 0), and the method."""
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
            by_user = np.repeat(sizes, times.astype(np.int64))
            return enumerated(by_user, total - ROUNDING * float(by_user.sum())), "enumeration"
    return _by_saddlepoint(sizes, times, total), "saddlepoint"


def _by_saddlepoint(sizes: Float64, times: Float64, total: float) -> float:
    """Return the probability that Σ ±size is at least `total`.

    If a few sizes dominate the sum, its distribution has several peaks, which a saddlepoint
    approximation would miss. The signs of these sizes are therefore enumerated.
    """
    from scipy.special import ndtr

    far = sizes**2 > DOMINATING * float(times @ sizes**2)
    chosen = np.repeat(sizes[far], times[far].astype(np.int64))
    sums = all_sums(chosen) if len(chosen) <= MOST_DOMINATING else np.zeros(1)
    if len(sums) > 1:
        sizes, times = sizes[~far], times[~far]
    tails, largest = [], float(times @ sizes)
    for remainder in (total - sums).tolist():
        if abs(remainder) > largest:
            tails.append(float(remainder < 0))
        else:
            tails.append(float(ndtr(-quantile_of(sizes, times, remainder))))
    return float(np.mean(tails))


def _by_size(values: Float64, counts: Float64) -> tuple[Float64, Float64]:
    """Return how many differences of each size are above 0 and below 0, by ascending size.

    Sizes that differ only by rounding count as one size.
    """
    sizes = np.abs(values)
    rounding = ROUNDING * sizes.max(initial=0.0)
    order = np.argsort(sizes, kind="stable")
    order = order[sizes[order] > rounding]
    sizes, above, times = sizes[order], values[order] > 0, counts[order]
    starts = np.flatnonzero(np.diff(sizes, prepend=-np.inf) > rounding)
    better, worse = (np.add.reduceat(times * side, starts) for side in (above, ~above))
    return better, worse


def _on_many_users(n: int, name: str) -> str:
    """Return a note if there are more than `MANY_USERS` users, and otherwise an empty string."""
    if n <= MANY_USERS:
        return ""
    return (
        f"The {name} test does not test the mean. On test sets as large as this one ({n:,} "
        "users), it errs more often than its p-values suggest (Ihemelandu & Ekstrand 2023)."
    )

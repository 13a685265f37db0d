"""Paired tests besides randomisation: Student's t, Wilcoxon's signed ranks, the sign test."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from recometer.stats.grouping import Grouped, column, grouped
from recometer.stats.sign_flips import smallest_p
from recometer.stats.test_result import TestResult, on_nothing

__all__ = ["MANY_USERS", "paired_t", "sign", "wilcoxon"]

Float64 = npt.NDArray[np.float64]

MANY_USERS = 3_000
EXACT_WILCOXON_UP_TO = 50
SAME = 1e-12  # of the largest size: sizes that differ less are the same except for rounding


def paired_t(differences: npt.ArrayLike | Grouped) -> TestResult:
    """Return Student's paired t test of a mean difference of 0, two-sided.

    Parameters
    ----------
    differences : [n_users], or from `group`
        NaN leaves a user out.
    """
    differences = grouped(differences)
    n, n_differ = differences.n, differences.n_above + differences.n_below
    if n < 2:
        found = "One user has" if n else "No user has"
        note = f"{found} both values; Student's t test needs two."
        return TestResult(np.nan, "t", "none", n, n_differ, np.nan, note)
    if n_differ == 0:
        note = on_nothing(n)
        return TestResult(1.0, "t", "student", n, 0, 0.0, note)
    if differences.constant:
        note = (
            f"All {n:,} differences are {differences.estimate:g}: without variance Student's t "
            "has no value. The randomisation test has one."
        )
        return TestResult(np.nan, "t", "none", n, n_differ, np.nan, note)
    from scipy.special import stdtr

    statistic = differences.estimate / differences.standard_error
    return TestResult(2 * float(stdtr(n - 1, -abs(statistic))), "t", "student", n, n_differ, 0.0)


def sign(differences: npt.ArrayLike | Grouped) -> TestResult:
    """Return the two-sided sign test: whether as many users are better off as worse off.

    Users who do not differ are left out. It is exact.

    Parameters
    ----------
    differences : [n_users], or from `group`
        NaN leaves a user out.
    """
    differences = grouped(differences)
    n, better, worse = differences.n, differences.n_above, differences.n_below
    n_differ = better + worse
    if n_differ == 0:
        return _nothing_differs("sign", n)
    from scipy.special import bdtr

    p = min(1.0, 2 * float(bdtr(min(better, worse), n_differ, 0.5)))
    return TestResult(p, "sign", "binomial", n, n_differ, smallest_p(n_differ), _many(n, "sign"))


def wilcoxon(differences: npt.ArrayLike | Grouped) -> TestResult:
    """Return Wilcoxon's signed-rank test, two-sided; users who do not differ are left out.

    It agrees with `scipy.stats.wilcoxon`: exact for up to 50 users who differ without ties among
    the sizes, otherwise the normal approximation with the correction of ties. Wilcoxon, "Individual
    comparisons by ranking methods", Biometrics Bulletin 1, 1945. The correction: Pratt & Gibbons,
    "Concepts of Nonparametric Theory", 1981, chapter 3.

    Parameters
    ----------
    differences : [n_users], or grouped
        NaN leaves a user out.
    """
    if isinstance(differences, Grouped):
        values, counts = differences.values, differences.counts
    else:
        given = column(differences, "differences")
        values, times = np.unique(given[~np.isnan(given)], return_counts=True)
        counts = times.astype(np.float64)
    n, better, worse = int(counts.sum()), *_by_size(values, counts)
    both = better + worse
    n_differ = int(both.sum())
    if n_differ == 0:
        return _nothing_differs("wilcoxon", n)
    exact = n_differ <= EXACT_WILCOXON_UP_TO and bool((both == 1).all())
    ranks = np.cumsum(both) - (both - 1) / 2
    total = float(better @ ranks)
    if exact:
        from scipy import stats

        p = float(stats.wilcoxon(np.where(better > 0, ranks, -ranks), method="exact").pvalue)
    else:
        from scipy.special import ndtr

        square = n_differ * (n_differ + 1) * (2 * n_differ + 1) - float(both @ (both**2 - 1)) / 2
        p = 2 * float(ndtr(-abs(total - n_differ * (n_differ + 1) / 4) / np.sqrt(square / 24)))
    smallest, note = smallest_p(n_differ), _many(n, "Wilcoxon")
    method = "enumeration" if exact else "normal"
    return TestResult(max(p, smallest), "wilcoxon", method, n, n_differ, smallest, note)


def _by_size(values: Float64, counts: Float64) -> tuple[Float64, Float64]:
    """Return how many differences of each size are above 0, and below; by increasing size.

    Sizes that are the same except for rounding are one.
    """
    sizes = np.abs(values)
    rounding = SAME * sizes.max(initial=0.0)
    order = np.argsort(sizes, kind="stable")
    order = order[sizes[order] > rounding]
    sizes, above, times = sizes[order], values[order] > 0, counts[order]
    starts = np.flatnonzero(np.diff(sizes, prepend=-np.inf) > rounding)
    better, worse = (np.add.reduceat(times * side, starts) for side in (above, ~above))
    return better, worse


def _nothing_differs(test: str, n: int) -> TestResult:
    if n == 0:
        return TestResult(np.nan, test, "none", 0, 0, np.nan, "No user has both values.")
    note = on_nothing(n)
    return TestResult(1.0, test, "enumeration", n, 0, 1.0, note)


def _many(n: int, name: str) -> str:
    """Return the warning that large test sets call for."""
    if n <= MANY_USERS:
        return ""
    return (
        f"The {name} test is not one of the mean: on test sets as large as this one, of {n:,} "
        "users, it errs more often than it claims (Ihemelandu & Ekstrand 2023)."
    )

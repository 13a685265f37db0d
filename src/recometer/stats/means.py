"""Intervals of means by all methods."""

from __future__ import annotations

import dataclasses
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from recometer.errors import InputError, UnknownNameError, did_you_mean
from recometer.stats.bootstrap import bca, percentile
from recometer.stats.checks import Bounds, check_bounds
from recometer.stats.ends import Interval, check_confidence
from recometer.stats.gaffke import ROUNDING, beyond, gaffke, ratio_ends
from recometer.stats.grouping import (
    LARGEST,
    Column,
    Grouped,
    by_cluster,
    column,
    group,
    group_checked,
)

# The bootstrap interval covers too rarely with fewer clusters of different sizes, counted as the
# equivalent number of clusters of one size (docs/statistics.md).
FEW_CLUSTERS = 50

Kind = Literal["auto", "gaffke", "t", "percentile", "bca"]


def interval(
    values: npt.ArrayLike | Column,
    kind: Kind = "auto",
    *,
    bounds: Bounds | None = None,
    confidence: float = 0.95,
    weights: npt.ArrayLike | None = None,
    clusters: npt.ArrayLike | None = None,
) -> Interval:
    """Return the confidence interval of a mean over users.

    Parameters
    ----------
    values : [n_users]
        NaN leaves a user out.
    kind
        ``"gaffke"`` (`gaffke.gaffke`), ``"t"`` (`student.student`), ``"percentile"`` or ``"bca"``
        (`bootstrap.percentile`, `bootstrap.bca`). ``"auto"`` takes Gaffke's if the range is known
        and all values are within it, and otherwise ``"bca"``; the note of the interval says why.
        For clusters of different sizes, it takes Gaffke's bound over their sums if they are
        equivalent to fewer than 50 clusters of one size, (Σ size)² / Σ size², otherwise ``"bca"``.
    bounds
        The lowest and the highest possible value of a user; infinite or None if unknown. Only
        Student's interval may exceed them.
    confidence
        Coverage, in (0, 1).
    weights : [n_users] or None
        Weights of a weighted mean, at least 0. A weighted mean is a ratio of means, for which there
        is no Gaffke interval.
    clusters : [n_users] or None
        Rows with equal numbers are not independent, for example sessions of a user, or folds. The
        interval is over whole clusters; the mean is still over rows.

    Returns
    -------
    Interval
        It names the method that was used, and has a `note`.

    Raises
    ------
    InputError
        If values are not numbers or are infinite, lengths differ, or ``"gaffke"`` has no range or a
        value outside of it.
    UnknownNameError
        If there is no such kind.

    Examples
    --------
    >>> from recometer.stats import interval
    >>> found = interval([0, 0, 1, 0, 0, 0, 0, 0, 0, 0], bounds=(0, 1))
    >>> f"{found.low:.4f} {found.high:.4f} {found.method}"
    '0.0025 0.4450 clopper-pearson'
    """
    check_confidence(confidence)
    bounds = None if bounds is None else check_bounds(bounds)
    found = in_units(values, weights, clusters)
    if isinstance(found.sizes, float):
        return interval_of(found, kind, bounds=bounds, confidence=confidence)
    what = "clusters differ in size" if weights is None else "mean is weighted"
    return interval_of(
        found,
        kind,
        bounds=bounds,
        confidence=confidence,
        why=what,
        of_clusters=weights is None,
    )


def in_units(
    values: npt.ArrayLike | Column,
    weights: npt.ArrayLike | None,
    clusters: npt.ArrayLike | None,
) -> Grouped:
    """Return weighted values, or their sums over clusters; see `interval`.

    Sizes are 1 if all weights, or all clusters, are equal: the mean is then a plain one.
    """
    if weights is None and clusters is None:
        return _grouped(values)
    x = values.values if isinstance(values, Column) else column(values)
    y = np.ones(len(x)) if weights is None else column(weights, "weights")
    if len(x) != len(y):
        raise InputError(f"There are {len(x):,} values, but {len(y):,} weights. Hint: one each.")
    if (y < 0).any():
        raise InputError(f"A weight is {y[y < 0][0]:g}, but weights must be at least 0.")
    left_out = np.isnan(x * y)
    x, y = np.where(left_out, 0.0, x * y), np.where(left_out, 0.0, y)
    if clusters is not None:
        x, y = by_cluster(x, clusters), by_cluster(y, clusters)
    x, y = x[y > 0], y[y > 0]
    if not len(x) or (y == y[0]).all():
        return group(x / y)
    return group(x, y)


def _grouped(values: npt.ArrayLike | Column) -> Grouped:
    if not isinstance(values, Column):
        return group(values)
    if values.levels is None or values.codes is None or not values.complete:
        return group(values.values)
    times = np.bincount(values.codes, minlength=len(values.levels)).astype(np.float64)
    return group_checked(values.levels, None, times)


def interval_of(
    values: Grouped,
    kind: Kind = "auto",
    *,
    bounds: Bounds | None = None,
    confidence: float = 0.95,
    why: str = "",
    of_clusters: bool = False,
) -> Interval:
    """Return the interval of grouped values; see `interval`.

    `why` says in the note why this is a ratio of means. If `of_clusters`, values are sums of
    clusters, and sizes are their numbers of rows.
    """
    if kind not in get_args(Kind):
        hint = did_you_mean(str(kind), get_args(Kind))
        raise UnknownNameError(f"There is no interval {kind!r}. {hint}")
    if kind == "t":
        return student(values, confidence)
    if kind == "gaffke" and isinstance(values.sizes, float):
        return gaffke(values, bounds or (-np.inf, np.inf), confidence)
    note = ""
    if kind in ("auto", "gaffke") and of_clusters and values.n and bounds is not None:
        alike = of_one_size(values)
        if alike < FEW_CLUSTERS and sums_within(values, bounds):
            return _of_few_clusters(values, bounds, confidence, alike)
    if kind in ("auto", "gaffke"):
        note = _why_not_gaffke(values, bounds, why)
        if not note and bounds is not None:
            return gaffke(values, bounds, confidence)
    found = percentile(values, confidence) if kind == "percentile" else bca(values, confidence)
    note = " ".join(part for part in (note, found.note) if part)
    plain = isinstance(values.sizes, float)
    outside = beyond(values, bounds) if plain and bounds is not None else None
    within = found.within(bounds) if outside is None else found
    return dataclasses.replace(within, note=note)


def student(values: Grouped, confidence: float) -> Interval:
    """Return Student's t interval of a mean, or of a linearised ratio of means.

    It is estimate ± t(n - 1, (1 + confidence) / 2) · standard error (`Grouped.standard_error`).
    Student, "The probable error of a mean", Biometrika 6, 1908.
    """
    n = values.n
    if n < 2:
        found = "One user has a value" if n else "No user has a value"
        return Interval.unknown(confidence, n, f"{found}; Student's t interval needs two.")
    from scipy.special import stdtrit

    half = float(stdtrit(n - 1, (1 + confidence) / 2)) * values.standard_error
    note = ""
    if values.constant:
        half = 0.0
        note = (
            f"All {n:,} values are {values.estimate:g}: Student's t interval has no width then. "
            "Where the range of the values is known, Gaffke's interval has one."
        )
    return Interval(values.estimate - half, values.estimate + half, "t", confidence, n, note)


def of_one_size(clusters: Grouped) -> float:
    """Return the equivalent number of clusters of one size: (Σ y)² / Σ y²."""
    sizes, counts = np.asarray(clusters.sizes), clusters.counts
    return float(np.sum(counts * sizes) ** 2 / np.sum(counts * sizes**2))


def sums_within(clusters: Grouped, bounds: Bounds) -> bool:
    """Return whether the range is finite and the sums of clusters are possible within it."""
    low, high = bounds
    if not -LARGEST < low < high < LARGEST:
        return False
    slack = ROUNDING * (high - low)
    x, sizes = clusters.values, clusters.sizes
    return bool(((x >= (low - slack) * sizes) & (x <= (high + slack) * sizes)).all())


def _of_few_clusters(values: Grouped, bounds: Bounds, confidence: float, alike: float) -> Interval:
    """Return Gaffke's bound over the sums of clusters, plus a cluster of the largest size."""
    low, high = bounds
    largest = float(np.max(values.sizes))
    ends = ratio_ends(values, (largest * low, largest), (largest * high, largest), confidence)
    note = (
        f"The {values.n:,} clusters differ in size and weigh as {alike:.0f} of one size: the "
        "interval is Gaffke's bound over their sums, which takes no cluster to be larger."
    )
    return Interval(*ends, "gaffke", confidence, values.n, note).within(bounds)


def _why_not_gaffke(values: Grouped, bounds: Bounds | None, why: str) -> str:
    """Return why Gaffke's interval cannot be used, or an empty text."""
    instead = "so the interval is the bootstrap's (BCa), not Gaffke's."
    if not isinstance(values.sizes, float):
        return f"The {why or 'statistic is a ratio of means'}, {instead}"
    if bounds is None or not -LARGEST < bounds[0] < bounds[1] < LARGEST:
        return f"The metric has no known range, {instead}"
    outside = beyond(values, bounds)
    if outside is not None:
        low, high = bounds
        return f"The value {outside:g} lies outside the range from {low:g} to {high:g}, {instead}"
    return ""

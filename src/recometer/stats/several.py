"""Compare several models at once: adjusted p-values, Tukey's test, and possible ranks."""

from __future__ import annotations

import dataclasses
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from recometer import ragged
from recometer.arrays import Float64
from recometer.data.numbers import flag
from recometer.errors import InputError, UnknownNameError, did_you_mean
from recometer.stats.checks import check_alpha, check_whole
from recometer.stats.grouping import by_cluster, column, labels_of, matrix
from recometer.stats.saddlepoint import increasing_root

Correction = Literal["holm", "benjamini-hochberg", "bonferroni", "none"]

RESAMPLED_UP_TO = 100  # `tukey` draws random orders if at most this many users differ
N_RESAMPLES = 10_000  # the default number of random orders that `tukey` draws
AT_ONCE = 2**21  # the number of values that `_ranges` shuffles at a time


def adjust(p_values: npt.ArrayLike, correction: Correction = "holm") -> Float64:
    """Return p-values adjusted for the number of comparisons.

    Let p(1) ≤ ... ≤ p(m). By Holm's method, p(i) becomes the maximum of (m - j + 1) p(j) over all
    j ≤ i, and by Bonferroni's, m p(i). Both limit the probability of at least one wrong rejection
    among all comparisons. Benjamini and Hochberg's method adjusts p(i) to the minimum of m p(j) / j
    over all j ≥ i, and limits the expected share of wrong rejections among all rejections. Holm, "A
    simple sequentially rejective multiple test procedure", Scandinavian Journal of Statistics 6,
    1979; Benjamini & Hochberg, Journal of the Royal Statistical Society B 57, 1995.

    Adjusting the smallest possible p-values of tests (`TestResult.smallest_p`) gives lower bounds
    on the adjusted p-values.

    Parameters
    ----------
    p_values : [...]
        The p-values, in an array of any shape. NaN stays NaN and does not count as a comparison.
    correction
        ``"holm"``, ``"benjamini-hochberg"``, ``"bonferroni"`` or ``"none"``.

    Returns
    -------
    float64 [...]
        The adjusted p-values, at most 1.

    Raises
    ------
    InputError
        If a p-value is below 0 or above 1.
    UnknownNameError
        If there is no such correction.

    Examples
    --------
    >>> from recometer.stats import adjust
    >>> adjust([0.01, 0.04, 0.03]).tolist()
    [0.03, 0.06, 0.06]
    """
    if correction not in get_args(Correction):
        hint = did_you_mean(str(correction), get_args(Correction))
        raise UnknownNameError(f"There is no correction {correction!r}. {hint}")
    try:
        result = np.array(p_values, np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(f"p_values must be numbers: {error}.") from None
    known = ~np.isnan(result)
    p = result[known]
    wrong = p[(p < 0) | (p > 1)]
    if len(wrong):
        raise InputError(f"A p-value must lie between 0 and 1, found {wrong[0]:g}.")
    m = len(p)
    order = np.argsort(p, kind="stable")
    adjusted = p[order]
    if correction == "bonferroni":
        adjusted = adjusted * m
    elif correction == "holm":
        adjusted = np.maximum.accumulate(adjusted * np.arange(m, 0, -1))
    elif correction == "benjamini-hochberg":
        # Equivalent to scipy.stats.false_discovery_control, but importing scipy.stats would take
        # longer than most comparisons.
        steps = adjusted * (m / np.arange(1, m + 1))
        adjusted = np.minimum.accumulate(steps[::-1])[::-1]
    result[known] = np.minimum(adjusted, 1.0)[np.argsort(order)]
    return result


@dataclasses.dataclass(frozen=True, eq=False)
class Tukey:
    """The result of Tukey's honestly significant difference test.

    Attributes
    ----------
    p_values : float64 [n_models, n_models]
        The p-value of each pair, adjusted for all pairs; 1 on the diagonal.
    critical_difference
        The smallest difference between two means that is significant at level alpha.
    method
        The method that computed p: ``"resampled"`` or ``"studentised range"``.
    n
        The number of users with a value for every model.
    """

    p_values: Float64
    critical_difference: float
    method: str
    n: int


def tukey(
    values: npt.ArrayLike,
    *,
    alpha: float = 0.05,
    clusters: npt.ArrayLike | None = None,
    seed: int = 0,
    n_resamples: int = N_RESAMPLES,
) -> Tukey:
    """Compare all pairs of models with one critical difference.

    Under the null hypothesis that all models are equal, each user's values could belong to the
    models in any order. The p of a pair is the share of random orders in which the range of the
    means is at least as large as the pair's difference. Carterette, "Multiple testing in
    statistical analysis of systems-based information retrieval experiments", ACM Transactions on
    Information Systems 30, 2012. If more than 100 users differ, no orders are drawn, because the
    means are then nearly normal with equal covariances: their range is √(Σ s²) / n times the
    studentised range with infinitely many degrees of freedom, where n is the number of users, and
    s² is the variance of a user's values, with the divisor n_models - 1.

    Parameters
    ----------
    values : [n_users, n_models]
        A row for each user and a column for each model. Users with any NaN are left out.
    alpha
        The significance level of the critical difference.
    clusters : [n_users] or None
        The cluster of each user. All values of a cluster are reordered in the same way.
    seed, n_resamples
        The seed and the number of the random orders, if any are drawn.

    Raises
    ------
    InputError
        If there are fewer than two models, or fewer than two users with a value for every model.
    """
    check_alpha(alpha)
    check_whole("seed", seed, 0)
    check_whole("n_resamples", n_resamples, 1)
    table = matrix(values, "values")
    if table.shape[1] < 2:
        raise InputError(
            "values must have a column for each of at least two models, but its shape is "
            f"{table.shape}."
        )
    known = ~np.any(np.isnan(table), axis=1)
    table = table[known]
    n = len(table)
    if n < 2:
        users = f"{n} user{' has' if n == 1 else 's have'} a value for every model"
        raise InputError(f"{users}; at least two are needed. Hint: use another correction.")
    means = ragged.column_sums(table) / n
    if clusters is not None:
        labels = labels_of(clusters, len(known))
        table = np.column_stack(by_cluster(labels[known], *table.T))
    differing = table - table.mean(axis=1, keepdims=True)
    differing = differing[np.abs(differing).max(axis=1) > 1e-12 * np.abs(table).max()]
    n_models, gaps = len(means), np.abs(means[:, np.newaxis] - means)
    if len(differing) <= RESAMPLED_UP_TO:
        ranges = _ranges(differing, seed, n_resamples) / n
        # The observed order counts as one of the orders, so p is never 0.
        at_least = n_resamples - np.searchsorted(ranges, gaps - 1e-12 * gaps.max(), side="left")
        p_values, method = (at_least + 1) / (n_resamples + 1), "resampled"
        critical = float(np.quantile(ranges, 1 - alpha, method="higher"))
    else:
        error = np.sqrt((differing**2).sum() / (n_models - 1)) / n
        p_values, method = normal_range_tail(gaps / error, n_models), "studentised range"
        critical = error * normal_range_quantile(alpha, n_models)
    return Tukey(p_values, critical, method, n)


def _ranges(values: Float64, seed: int, n_resamples: int) -> Float64:
    """Return the ranges of the models' sums after each shuffle, in ascending order."""
    generator = np.random.Generator(np.random.PCG64(seed))
    at_once = max(1, AT_ONCE // max(1, values.size))
    ranges = []
    for first in range(0, n_resamples, at_once):
        size = min(at_once, n_resamples - first)
        shuffled = generator.permuted(np.broadcast_to(values, (size, *values.shape)), axis=2)
        ranges.append(np.ptp(shuffled.sum(axis=1), axis=1))
    return np.sort(np.concatenate(ranges))


def normal_range_tail(distances: npt.ArrayLike, n: int) -> Float64:
    """Return the tail probability of the range of n standard normal numbers at each distance.

    This is the tail of the studentised range with infinitely many degrees of freedom. For a
    distance q, it is n ∫ φ(x) (Φ(x)^(n-1) - (Φ(x) - Φ(x - q))^(n-1)) dx. The relative error of the
    result is small even far into the tail.
    """
    from scipy.special import ndtr

    q = np.asarray(distances, np.float64)[..., np.newaxis]
    step = 0.02
    x = np.arange(-9.0, float(q.max()) + 9.0, step)
    below = ndtr(x)
    share = np.minimum(ndtr(x - q) / below, 1.0)
    with np.errstate(divide="ignore"):
        within = -np.expm1((n - 1) * np.log1p(-share))
    density = np.exp(-(x**2) / 2) / np.sqrt(2 * np.pi)
    tail: Float64 = n * step * (density * below ** (n - 1) * within).sum(axis=-1)
    return np.minimum(tail, 1.0)


def normal_range_quantile(alpha: float, n: int) -> float:
    """Return the distance at which `normal_range_tail` is alpha."""

    def rarity(distance: float) -> float:
        return -float(np.log(normal_range_tail(distance, n)))

    distance = increasing_root(rarity, -float(np.log(alpha)), 3.0)
    assert distance is not None  # the tail takes every value between 0 and 1
    return distance


@dataclasses.dataclass(frozen=True, eq=False)
class Ranking:
    """The possible ranks of the models.

    Attributes
    ----------
    low, high : int64 [n_models]
        The interval of each model's rank, counted from 1. All intervals hold simultaneously.
    best : bool [n_models]
        Whether no other model is significantly better.
    """

    low: npt.NDArray[np.int64]
    high: npt.NDArray[np.int64]
    best: npt.NDArray[np.bool_]


def rank_intervals(
    means: npt.ArrayLike,
    p_values: npt.ArrayLike,
    *,
    alpha: float = 0.05,
    higher_is_better: bool = True,
) -> Ranking:
    """Return an interval for each model's rank, and which models may be the best.

    A model ranks below every model that is significantly better, and above every model that is
    significantly worse. If p-values are adjusted over all pairs (by Holm or Tukey), all intervals
    hold simultaneously with confidence 1 - alpha. This is the construction of Mogstad, Romano,
    Shaikh & Wilhelm, "Inference for ranks with applications to mobility across neighbourhoods and
    academic achievement across countries", Review of Economic Studies 91, 2024, with adjusted
    pairwise tests instead of their bootstrap test.

    Parameters
    ----------
    means : [n_models]
    p_values : [n_models, n_models]
        The adjusted p-values of all pairs, in a symmetric table. NaN counts as not significant.
    alpha
        The significance level for all pairs together.
    higher_is_better
        Whether higher values of the metric are better.

    Raises
    ------
    InputError
        If the shapes do not match.
    """
    flag("higher_is_better", higher_is_better)
    values = column(means, "means")
    m, p = len(values), matrix(p_values, "p_values")
    if p.shape != (m, m):
        raise InputError(f"p_values of {m} models must have the shape ({m}, {m}), not {p.shape}.")
    score = values if higher_is_better else -values
    better = (score[np.newaxis, :] > score[:, np.newaxis]) & (p <= alpha)
    n_better, n_worse = better.sum(axis=1), better.sum(axis=0)
    return Ranking(1 + n_better, m - n_worse, n_better == 0)

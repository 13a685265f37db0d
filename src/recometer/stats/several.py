"""Several models at once: Tukey's test by randomisation, and the possible ranks."""

from __future__ import annotations

import dataclasses

import numpy as np
import numpy.typing as npt

from recometer import ragged
from recometer.data.numbers import flag
from recometer.errors import InputError
from recometer.stats.checks import check_alpha, check_whole
from recometer.stats.clusters import by_cluster, labels_of
from recometer.stats.grouping import column, matrix
from recometer.stats.saddlepoint import increasing_root

__all__ = [
    "Ranking",
    "Tukey",
    "normal_range_quantile",
    "normal_range_tail",
    "rank_intervals",
    "tukey",
]

Float64 = npt.NDArray[np.float64]

RESAMPLED_UP_TO = 100  # users who differ
N_RESAMPLES = 10_000
AT_ONCE = 2**21  # values that are shuffled at a time


@dataclasses.dataclass(frozen=True, eq=False)
class Tukey:
    """Tukey's honestly significant difference, by randomisation.

    Attributes
    ----------
    p_values : float64 [n_models, n_models]
        p-value of each pair, adjusted for all pairs; 1 on the diagonal.
    critical_difference
        Means this far apart differ at the level alpha.
    method
        ``"resampled"`` or ``"studentised range"``.
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

    Under the null hypothesis that all models are alike, each user's values may belong to them in
    any order; a pair's p is the share of such orders for which the largest and the smallest mean
    are as far apart as this pair. Carterette, "Multiple testing in statistical analysis of
    systems-based information retrieval experiments", ACM Transactions on Information Systems 30,
    2012. For more than 100 users who differ nothing is drawn: the means then are normal with equal
    covariances, and their range is the studentised range of infinitely many degrees of freedom
    times √(Σ s²) / n, with s² the variance (n_models - 1 in its denominator) of a user's values.

    Parameters
    ----------
    values : [n_users, n_models]
        Users with a NaN are left out.
    alpha
        Level of significance of the critical difference.
    clusters : [n_users] or None
        Rows with equal entries belong together: the values of whole clusters change places.
    seed, n_resamples
        Seed and number of the random orders, if they are drawn.

    Raises
    ------
    InputError
        If there are fewer than two models, or fewer than two users with all values.
    """
    check_alpha(alpha)
    check_whole("seed", seed, 0)
    check_whole("n_resamples", n_resamples, 1)
    given = matrix(values, "values")
    if given.shape[1] < 2:
        raise InputError(
            f"values must be a column for each of at least two models, but have {given.shape}."
        )
    known = ~np.any(np.isnan(given), axis=1)
    given = given[known]
    n = len(given)
    if n < 2:
        found = f"{n} user{' has' if n == 1 else 's have'} a value for every model"
        raise InputError(f"{found}; at least two are needed. Hint: another correction.")
    means = ragged.column_sums(given) / n
    if clusters is not None:
        labels = labels_of(clusters)
        if len(labels) != len(known):
            raise InputError(
                f"clusters must have one entry for each of the {len(known):,} rows, but has "
                f"{len(labels):,}."
            )
        given = np.column_stack([by_cluster(column, labels[known]) for column in given.T])
    differing = given - given.mean(axis=1, keepdims=True)
    differing = differing[np.abs(differing).max(axis=1) > 1e-12 * np.abs(given).max()]
    n_models, apart = len(means), np.abs(means[:, np.newaxis] - means)
    if len(differing) <= RESAMPLED_UP_TO:
        ranges = _ranges(differing, seed, n_resamples) / n
        # The order found is one of those that may be drawn.
        at_least = n_resamples - np.searchsorted(ranges, apart - 1e-12 * apart.max(), side="left")
        p_values, method = (at_least + 1) / (n_resamples + 1), "resampled"
        critical = float(np.quantile(ranges, 1 - alpha, method="higher"))
    else:
        error = np.sqrt((differing**2).sum() / (n_models - 1)) / n
        p_values, method = normal_range_tail(apart / error, n_models), "studentised range"
        critical = error * normal_range_quantile(alpha, n_models)
    return Tukey(p_values, critical, method, n)


def _ranges(values: Float64, seed: int, n_resamples: int) -> Float64:
    """Return the ranges of the models' sums over shuffled users, increasing."""
    generator = np.random.Generator(np.random.PCG64(seed))
    at_once = max(1, AT_ONCE // max(1, values.size))
    found = []
    for first in range(0, n_resamples, at_once):
        size = min(at_once, n_resamples - first)
        shuffled = generator.permuted(np.broadcast_to(values, (size, *values.shape)), axis=2)
        found.append(np.ptp(shuffled.sum(axis=1), axis=1))
    return np.sort(np.concatenate(found))


def normal_range_tail(distances: npt.ArrayLike, n: int) -> Float64:
    """Return the chance that n standard normal numbers have a range of at least each distance.

    That of the studentised range with infinitely many degrees of freedom:
    n ∫ φ(x) (Φ(x)^(n-1) - (Φ(x) - Φ(x - q))^(n-1)) dx. Relatively precise far into the tail.
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
    """Return the distance of which `normal_range_tail` is alpha."""

    def rarity(distance: float) -> float:
        return -float(np.log(normal_range_tail(distance, n)))

    found = increasing_root(rarity, -float(np.log(alpha)), 3.0)
    assert found is not None  # every chance is reached
    return found


@dataclasses.dataclass(frozen=True, eq=False)
class Ranking:
    """The possible ranks of the models.

    Attributes
    ----------
    low, high : int64 [n_models]
        Interval of each model's rank, counted from 1; all of them hold at once.
    best : bool [n_models]
        Models for which no difference from the best is shown.
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
    """Return intervals of the models' ranks, and the set without a shown difference from the best.

    A model ranks below every model that is significantly better and above every one that is
    significantly worse. With p-values adjusted over all pairs (Holm's, or Tukey's), all intervals
    hold at once with the confidence 1 - alpha: the construction of Mogstad, Romano, Shaikh &
    Wilhelm, "Inference for ranks with applications to mobility across neighbourhoods and academic
    achievement across countries", Review of Economic Studies 91, 2024, with tests by adjusted pairs
    instead of their bootstrapped one.

    Parameters
    ----------
    means : [n_models]
    p_values : [n_models, n_models]
        Adjusted p-values, symmetric. NaN counts as not significant.
    alpha
        Level of significance of all pairs together.
    higher_is_better
        Direction of the metric.

    Raises
    ------
    InputError
        If the shapes do not fit.
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

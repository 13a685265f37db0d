"""Several models on several data sets: Friedman's test and Nemenyi's critical difference."""

from __future__ import annotations

import dataclasses

import numpy as np
import numpy.typing as npt

from recometer.data.numbers import flag
from recometer.errors import InputError
from recometer.stats.checks import check_alpha
from recometer.stats.grouping import matrix
from recometer.stats.several import normal_range_quantile, normal_range_tail

__all__ = ["Friedman", "friedman"]

Float64 = npt.NDArray[np.float64]


@dataclasses.dataclass(frozen=True, eq=False)
class Friedman:
    """Ranks of models over data sets.

    Attributes
    ----------
    mean_ranks : float64 [n_models]
        The mean rank of each model. Rank 1 is the best; ties share the mean of their ranks.
    p_value
        p-value of Friedman's test that all models have the same mean rank.
    p_iman_davenport
        p-value of the less conservative F test of Iman and Davenport.
    p_values : float64 [n_models, n_models]
        Nemenyi's p-values of each pair, adjusted for all pairs.
    critical_difference
        Mean ranks this far apart differ at the level alpha.
    n
        Number of data sets.
    note
        A remark that readers should know, or an empty text.
    """

    mean_ranks: Float64
    p_value: float
    p_iman_davenport: float
    p_values: Float64
    critical_difference: float
    n: int
    note: str = ""


def friedman(
    means: npt.ArrayLike, *, alpha: float = 0.05, higher_is_better: bool = True
) -> Friedman:
    """Compare models over data sets by their ranks.

    The blocks must be data sets, not users. Users of one data set share its items and its split,
    but blocks must be independent. There are thousands of users, so that any difference becomes
    significant. And ranks lose the sizes of differences, which are meaningful for users, but not
    for data sets of different difficulty. Friedman, Journal of the American Statistical Association
    32, 1937;
    Iman & Davenport, Communications in Statistics 9, 1980; Nemenyi, 1963; Demšar, "Statistical
    comparisons of classifiers over multiple data sets", Journal of Machine Learning Research 7,
    2006.

    Parameters
    ----------
    means : [n_data_sets, n_models]
        The mean of one metric.
    alpha
        Level of significance of the critical difference.
    higher_is_better
        Direction of the metric.

    Raises
    ------
    InputError
        If there are fewer than three models or two data sets, or a NaN.
    """
    check_alpha(alpha)
    flag("higher_is_better", higher_is_better)
    given = matrix(means, "means")
    if given.shape[0] < 2 or given.shape[1] < 3:
        raise InputError(
            "Friedman's test needs a row for each of at least two data sets and a column for each "
            f"of at least three models, but has {given.shape}. Hint: compare two models with "
            "compare()."
        )
    if np.isnan(given).any():
        row, model = np.argwhere(np.isnan(given))[0]
        raise InputError(f"Model {model} has no mean on data set {row}; every model needs each.")
    from scipy.special import chdtrc, fdtrc
    from scipy.stats import rankdata

    n, k = given.shape
    ranks = rankdata(-given if higher_is_better else given, axis=1)
    mean_ranks = ranks.mean(axis=0)
    # With ties the variance of the ranks is less than (k³ - k) / 12.
    between = n * float(((mean_ranks - (k + 1) / 2) ** 2).sum())
    within = float(((ranks - (k + 1) / 2) ** 2).sum()) / (n * (k - 1))
    error = float(np.sqrt(k * (k + 1) / (12 * n)))
    distances = np.abs(mean_ranks[:, np.newaxis] - mean_ranks) / error
    p_values = normal_range_tail(distances, k)
    critical = error * normal_range_quantile(alpha, k)
    if within == 0:
        note = "All models are tied on every data set."
        return Friedman(mean_ranks, 1.0, 1.0, p_values, critical, n, note)
    statistic = between / within
    p = float(chdtrc(k - 1, statistic))
    left = n * (k - 1) - statistic
    f_statistic = (n - 1) * statistic / left if left > 1e-9 else np.inf
    p_f = float(fdtrc(k - 1, (k - 1) * (n - 1), f_statistic)) if np.isfinite(f_statistic) else 0.0
    note = ""
    if n < 10:
        note = f"With {n} data sets the distributions of the tests are rough approximations."
    return Friedman(mean_ranks, p, p_f, p_values, critical, n, note)

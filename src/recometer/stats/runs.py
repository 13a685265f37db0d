"""Statistics over several runs, with separate variances for seeds and users."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from recometer import ragged
from recometer.arrays import Float64
from recometer.errors import InputError, InputTypeError
from recometer.stats.ends import Interval, check_confidence
from recometer.stats.grouping import column, matrix

ONE_SEED = (
    "There is only one seed: the variance between runs is unknown, so the interval does "
    "not include it. Hint: train with several seeds."
)


@dataclasses.dataclass(frozen=True)
class Runs:
    """A mean over users and runs, or the difference between two such means.

    Attributes
    ----------
    mean
        The mean over all users and runs; for a comparison, the first mean minus the second.
    interval
        The confidence interval of the mean, which treats both users and runs as random samples.
    p_value
        The p-value, from the same t distribution, of the null hypothesis that the mean is 0.
    n_users, n_runs
        The number of users with a value in every run, and the number of runs (for a comparison, one
        number per model).
    deviation_users
        The standard deviation of the users' means over runs.
    deviation_runs
        The standard deviation between each model's runs, without the part due to users; NaN for a
        single run.
    share_of_runs
        The share of the mean's variance that is due to runs. If it is large, only more seeds can
        make the interval much narrower.
    note
        A remark for the reader, or an empty string.
    """

    mean: float
    interval: Interval
    p_value: float
    n_users: int
    n_runs: tuple[int, ...]
    deviation_users: float
    deviation_runs: tuple[float, ...]
    share_of_runs: float
    note: str = ""


class RunMoments(NamedTuple):
    """The sums over users that `over_runs` needs.

    `mean` and `variance` are those of the n users' means over runs, or of their differences between
    two models. `squares` contains MS(runs) and MS(rest) for each model (see `over_runs`), which are
    0 for a single run.
    """

    n: int
    mean: float
    variance: float
    n_runs: tuple[int, ...]
    squares: tuple[tuple[float, float], ...]


def over_runs(
    first: npt.ArrayLike, second: npt.ArrayLike | None = None, *, confidence: float = 0.95
) -> Runs:
    """Return the mean of a model over users and runs, or the difference between two models.

    The interval accounts for the variance between users and the variance between runs. With
    crossed random effects, a value is mean + user + run + rest. Let s² be the variance of the
    users' means over runs, and MS the mean squares from the analysis of variance. The variance of
    the mean over n users and R runs is s² / n + (MS(runs) - MS(rest)) / (n R), where a negative
    second term counts as 0. For a difference, s² is the variance of the users' differences, and
    each model adds a second term of its own, because the seeds of the models are independent. The
    degrees of freedom follow Satterthwaite's approximation. Searle, Casella & McCulloch, "Variance
    Components", 1992, chapter 4; Satterthwaite, Biometrics Bulletin 2, 1946.

    Parameters
    ----------
    first, second : [n_users, n_runs]
        A table with a row per user and a column per run; both tables have the same users in the
        same order. Users with any NaN are left out.
    confidence
        The confidence level, in (0, 1).

    Raises
    ------
    InputError
        If an argument is not a table, or if the tables have different numbers of users.
    """
    return over_runs_of(run_moments(first, second), confidence=confidence)


def run_moments(first: npt.ArrayLike, second: npt.ArrayLike | None = None) -> RunMoments:
    """Return the sums over users that `over_runs` needs; the parameters are the same."""
    tables = [_table(values) for values in ((first,) if second is None else (first, second))]
    if len({len(table) for table in tables}) > 1:
        raise InputError(
            f"Both models need one row per user, but have {len(tables[0]):,} and "
            f"{len(tables[1]):,} rows."
        )
    known = ~np.any([np.isnan(table).any(axis=1) for table in tables], axis=0)
    tables = [table[known] for table in tables]
    n, n_runs = int(known.sum()), tuple(table.shape[1] for table in tables)
    if n < 2:
        return RunMoments(n, np.nan, np.nan, n_runs, ((np.nan, np.nan),) * len(tables))
    values, *other = (mean_of_runs(table.T) for table in tables)
    of_users = values - sum(other)
    mean, variance = float(of_users.mean()), float(of_users.var(ddof=1))
    return RunMoments(n, mean, variance, n_runs, tuple(map(_mean_squares, tables)))


def mean_of_runs(columns: npt.ArrayLike) -> Float64:
    """Return each user's mean over runs as float64 [n_users], given float64 [n_runs, n_users].

    The mean of equal values is exactly that value, so the mean of identical runs equals each run.
    """
    runs = np.asarray(columns, np.float64)
    mean: Float64 = runs[0] if len(runs) == 1 else runs[0] + np.mean(runs - runs[0], axis=0)
    return mean


def over_runs_of(moments: RunMoments, *, confidence: float = 0.95) -> Runs:
    """Return the result of `over_runs` from the sums over users."""
    check_confidence(confidence)
    n, mean, variance, n_runs, squares = moments
    if n < 2:
        note = "Fewer than two users have a value in every run."
        unknown = Interval.unknown(confidence, n, note)
        none = (np.nan,) * len(n_runs)
        return Runs(np.nan, unknown, np.nan, n, n_runs, np.nan, none, np.nan, note)
    parts: list[tuple[float, float]] = [(variance / n, n - 1)]
    deviations = []
    for (between, residual), r in zip(squares, n_runs, strict=True):
        size = n * r
        deviations.append(np.sqrt(max(0.0, between - residual) / n) if r > 1 else np.nan)
        if between > residual:
            parts += [(between / size, r - 1), (-residual / size, (n - 1) * (r - 1))]
    spread = float(np.sqrt(variance))
    return _summed((mean, spread, n), parts, n_runs, tuple(deviations), confidence)


def over_values(
    first: npt.ArrayLike,
    second: npt.ArrayLike,
    error: float,
    n: int,
    *,
    interactions: tuple[float, float] = (0.0, 0.0),
    relative: bool = False,
    confidence: float = 0.95,
) -> Runs:
    """Return the difference between two models, given one value per run for all users together.

    The variance of the difference is the variance due to the n users (`error` squared) plus
    (s² - i) / R for each model with R runs. Here s² is the variance of the runs' values, and i the
    part of it that comes from the users (`interactions`); negative terms count as 0. The degrees of
    freedom are found as in `over_runs`, but if both models have a single run, the distribution is
    normal. With `relative`, the result is the ratio of the means minus 1, with a linearised
    variance, and `error` is the error of that ratio; the result is NaN if the second mean is not
    above 0.
    """
    check_confidence(confidence)
    tables = column(first, "first"), column(second, "second")
    x, y = (float(table.mean()) for table in tables)
    slopes, estimate = (1.0, 1.0), x - y
    if relative:
        slopes = (1 / y, x / y**2) if y > 0 else (np.nan, np.nan)
        estimate = x / y - 1 if y > 0 else np.nan
    n_runs, deviations = tuple(map(len, tables)), []
    parts: list[tuple[float, float]] = [(error**2, np.inf if n_runs == (1, 1) else max(1, n - 1))]
    for table, slope, interaction in zip(tables, slopes, interactions, strict=True):
        r = len(table)
        between = max(0.0, float(table.var(ddof=1)) - interaction) if r > 1 else np.nan
        deviations.append(float(np.sqrt(between)))
        if between > 0:
            parts.append((slope**2 * between / r, r - 1))
    if not np.isfinite([estimate, error]).all():
        note = "The variation between users is unknown."
        unknown = Interval.unknown(confidence, n, note)
        return Runs(estimate, unknown, np.nan, n, n_runs, np.nan, tuple(deviations), np.nan, note)
    return _summed(
        (estimate, error * float(np.sqrt(n)), n), parts, n_runs, tuple(deviations), confidence
    )


def over_folds(folds: Sequence[npt.ArrayLike], *, confidence: float = 0.95) -> Runs:
    """Return the mean over folds of different users, allowing for the variance between folds.

    With nested random effects, the mean of a fold with n users has the variance v = s² / n, where
    s² is the variance of their values; in addition, there is a variance τ² between folds, estimated
    by the method of DerSimonian & Laird. The overall mean weights each fold by 1 / (v + τ²). Its
    standard error is that of Hartung & Knapp, but at least the one implied by the weights, with
    n_folds - 1 degrees of freedom. DerSimonian & Laird, Controlled Clinical Trials 7, 1986; Hartung
    & Knapp, Statistics in Medicine 20, 2001. The models of different folds are trained on
    overlapping data, so they share an error that no interval over the folds can show.

    Parameters
    ----------
    folds
        The values of each fold's users, or their differences between two models; users with NaN are
        left out.
    confidence
        The confidence level, in (0, 1).

    Raises
    ------
    InputError
        If there are fewer than two folds, or a fold has fewer than two values.
    """
    check_confidence(confidence)
    if not isinstance(folds, Iterable):
        raise InputTypeError(f"folds must be a list of columns, found {type(folds).__name__}.")
    values = [column(fold, f"folds[{number}]") for number, fold in enumerate(folds)]
    values = [fold[~np.isnan(fold)] for fold in values]
    if len(values) < 2 or min(map(len, values)) < 2:
        counts = ", ".join(str(len(fold)) for fold in values) or "none"
        raise InputError(
            f"An interval needs at least two folds of at least two values each, found: {counts}."
        )
    from scipy.special import stdtr, stdtrit

    means = np.array([fold.mean() for fold in values])
    of_folds = np.array([fold.var(ddof=1) for fold in values])
    sizes = np.array([len(fold) for fold in values])
    squares, k, n = of_folds / sizes, len(values), int(sizes.sum())
    between = _between_folds(means, squares)
    variances = squares + between
    weights = np.reciprocal(variances) if (variances > 0).all() else np.ones(k)
    weights /= weights.sum()
    mean = float(weights @ means)
    variance, least = weights @ (means - mean) ** 2 / (k - 1), weights**2 @ variances
    error = float(np.sqrt(max(variance, least)))
    half = float(stdtrit(k - 1, (1 + confidence) / 2)) * error
    interval = Interval(mean - half, mean + half, "random effects", confidence, k)
    p = 2 * float(stdtr(k - 1, -abs(mean) / error)) if error > 0 else float(mean == 0)
    within = float(np.sqrt(of_folds.mean()))
    share = float(between / (between + squares.mean())) if between > 0 else 0.0
    deviation = (float(np.sqrt(between)),)
    return Runs(mean, interval, p, n, (k,), within, deviation, share)


def _table(values: npt.ArrayLike) -> Float64:
    table = matrix(values, "The table of runs (a row for each user, a column for each run)")
    if table.shape[1] < 1:
        raise InputError("Runs must have a column for each run, but there is none.")
    if np.isinf(table).any():
        user, run = np.argwhere(np.isinf(table))[0]
        raise InputError(f"The value of user {user} in run {run} is infinite.")
    return table


def _mean_squares(table: Float64) -> tuple[float, float]:
    """Return the mean squares of the runs and of the rest, which are both 0 for a single run."""
    n, r = table.shape
    if r < 2:
        return 0.0, 0.0
    runs, mean = ragged.column_sums(table) / n, table.mean()
    residuals = table - table.mean(axis=1, keepdims=True) - runs + mean
    between = n * float(((runs - mean) ** 2).sum()) / (r - 1)
    return between, float((residuals**2).sum()) / ((n - 1) * (r - 1))


def _summed(
    of_users: tuple[float, float, int],
    parts: list[tuple[float, float]],
    n_runs: tuple[int, ...],
    deviations: tuple[float, ...],
    confidence: float,
) -> Runs:
    """Return a mean with its interval, given the parts of its variance.

    Each part has its own degrees of freedom; the first part is the variance due to users.
    `of_users` contains the mean, the standard deviation between users, and the number of users.
    """
    (mean, spread, n), note = of_users, ONE_SEED if 1 in n_runs else ""
    error, half, p = t_of_parts(mean, parts, confidence)
    variance = sum(part for part, _ in parts)
    share = (variance - parts[0][0]) / variance if error else 0.0
    width = f"Every user and every run has the mean {mean:g}, so the interval has zero width."
    ends = mean - half, mean + half
    interval = Interval(*ends, "random effects", confidence, n, note if error else width)
    return Runs(mean, interval, p, n, n_runs, spread, deviations, share, note)


def t_of_parts(
    mean: float, parts: Sequence[tuple[float, float]], confidence: float
) -> tuple[float, float, float]:
    """Return a mean's standard error, half the width of its interval, and its two-sided p.

    The variance of the mean is the sum of the parts, each with its own degrees of freedom. Those of
    the sum follow Satterthwaite's approximation.
    """
    from scipy.special import stdtr, stdtrit

    variance = sum(part for part, _ in parts)
    squares = sum(part**2 / freedom for part, freedom in parts)
    # `squares` is 0 if the squares of tiny variances underflow, but also if the degrees of freedom
    # are infinite.
    if variance == 0 or (squares == 0 and np.isfinite(parts[0][1])):
        return 0.0, 0.0, float(mean == 0)
    freedom = variance**2 / squares if squares else np.inf
    error = float(np.sqrt(variance))
    half = float(stdtrit(freedom, (1 + confidence) / 2)) * error
    return error, half, 2 * float(stdtr(freedom, -abs(mean) / error))


def _between_folds(means: Float64, squares: Float64) -> float:
    """Return the variance between folds by the method of DerSimonian and Laird."""
    if not (squares > 0).all():
        return max(0.0, float(means.var(ddof=1) - squares.mean()))
    weights = 1 / squares
    centre = weights @ means / weights.sum()
    excess = float(weights @ (means - centre) ** 2) - (len(means) - 1)
    return max(0.0, excess / float(weights.sum() - (weights**2).sum() / weights.sum()))

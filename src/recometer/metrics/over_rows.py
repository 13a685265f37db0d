"""Metrics of predicted ratings over the rows of all users: what most tables show.

Each function takes the predictions and, as float64 [n_users], how often each user counts; NaN is
returned where there is nothing to divide by. Sums of users are added up, so that other weights (of
a resampling) cost no more than a pass over the users.
"""

from __future__ import annotations

import math
from typing import SupportsFloat

import numpy as np

from recometer.arrays import Array, Bool, Float64, Int64
from recometer.metrics.predictions import Predictions
from recometer.ties import sum_by_user


def mse(predictions: Predictions, weights: Float64) -> float:
    """Return the mean of ``(p - a)^2``."""
    return _share(dot(weights, predictions.squared_error), dot(weights, predictions.n_rows))


def rmse(predictions: Predictions, weights: Float64) -> float:
    """Return the root of the mean of ``(p - a)^2``."""
    return math.sqrt(mse(predictions, weights))


def mae(predictions: Predictions, weights: Float64) -> float:
    """Return the mean of ``|p - a|``."""
    return _share(dot(weights, predictions.absolute_error), dot(weights, predictions.n_rows))


def r2(predictions: Predictions, weights: Float64) -> float:
    """Return 1 less the squared error divided by the squared deviations from the mean of all."""
    return 1 - _share(dot(weights, predictions.squared_error), _deviation(predictions, weights))


def explained_variance(predictions: Predictions, weights: Float64) -> float:
    """Return the share of the variance of all true ratings that is explained."""
    left = _together(*predictions.unexplained, weights * predictions.n_rows, weights)
    return 1 - _share(left, _deviation(predictions, weights))


def fcp(predictions: Predictions, weights: Float64, *, averaged: bool = False) -> float:
    """Return the fraction of concordant pairs, each pair of one user's rows."""
    pairs, concordant = predictions.pairs
    right, wrong = concordant, pairs - concordant
    if averaged:
        means = [_share(dot(weights, one), dot(weights, one > 0)) for one in (right, wrong)]
        first, second = np.nan_to_num(means).tolist()
        return _share(first, first + second)
    return _share(dot(weights, right), dot(weights, pairs))


def log_loss(predictions: Predictions, weights: Float64) -> float:
    """Return the mean negative logarithm of the probability of what is true."""
    return _share(dot(weights, predictions.surprisal), dot(weights, predictions.n_rows))


def rated_roc_auc(predictions: Predictions, weights: Float64) -> float:
    """Return the share of all pairs of a relevant and another row, of whatever users, in order."""
    order = predictions.by_prediction
    predicted = predictions.predicted[order]
    begins = np.diff(predicted, prepend=np.nan) != 0
    weight, relevant = weights[predictions.user[order]], predictions.kinds[order]
    one = np.zeros(len(order), np.int64)
    found, pairs = ordered(one, begins, relevant * weight, ~relevant * weight, 1)
    return _share(found[0], pairs[0])


def ordered(
    owner: Int64, begins: Bool, relevant: Float64, others: Float64, n_owners: int
) -> tuple[Float64, Float64]:
    """Weigh the pairs of a relevant row and another, and those in order; equal ones are half so.

    Parameters
    ----------
    owner : int64 [n_rows]
        Whose rows these are, ascending; pairs are made within.
    begins : bool [n_rows]
        Where another prediction begins, the best ones standing first.
    relevant, others : float64 [n_rows]
        How often the row counts as relevant, and as another.

    Returns
    -------
    found, pairs : float64 [n_owners]
    """
    group = np.cumsum(begins) - 1
    n_groups = int(group[-1]) + 1 if len(group) else 0
    whose = owner[np.flatnonzero(begins)]
    hits, misses = (sum_by_user(group, one, n_groups) for one in (relevant, others))
    n_hits, n_misses = (sum_by_user(whose, one, n_owners) for one in (hits, misses))
    # Misses of the same owner in later groups.
    until = np.cumsum(misses)
    before = np.concatenate([[0.0], np.cumsum(n_misses)[:-1]])
    later = n_misses[whose] - (until - before[whose])
    return sum_by_user(whose, hits * (later + misses / 2), n_owners), n_hits * n_misses


def _deviation(predictions: Predictions, weights: Float64) -> float:
    """Return the squared deviations of all true ratings from their mean."""
    parts = predictions.mean_actual, predictions.squared_deviation
    return _together(*parts, weights * predictions.n_rows, weights)


def _together(means: Float64, deviations: Float64, counts: Float64, weights: Float64) -> float:
    """Return the squared deviations from the mean of all, of the users' means and deviations."""
    some = np.flatnonzero(counts)
    if not len(some):
        return 0.0
    shifted = means - means[some[0]]  # so that equal ones leave nothing, not even rounding
    shifted = shifted - (dot(counts, shifted)) / counts.sum()
    return float(dot(weights, deviations) + dot(counts, shifted**2))


def dot(weights: Float64, values: Array) -> float:
    """Add weighted values of users up: pairwise, unlike ``@``, whose order is the library's."""
    return float(np.sum(weights * values))


def _share(part: SupportsFloat, whole: SupportsFloat) -> float:
    return float(part) / float(whole) if float(whole) > 0 else math.nan

"""Metrics of predicted ratings over the rows of all users: the values that most papers report.

In the formulas, p is the predicted and a the true rating of a row. Each function takes the
predictions and, as float64 [n_users], how often each user counts. It returns NaN if the denominator
is 0. Sums per user are cached, so that resampling with other weights costs only a pass over the
users.
"""

from __future__ import annotations

import math
from typing import SupportsFloat

import numpy as np

from recometer.arrays import Array, Float64
from recometer.metrics.predictions import Predictions


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
    """Return 1 - (the squared error / the squared deviations from the mean of all rows)."""
    return 1 - _share(dot(weights, predictions.squared_error), _deviation(predictions, weights))


def explained_variance(predictions: Predictions, weights: Float64) -> float:
    """Return the share of the variance of all true ratings that the predictions explain."""
    unexplained = _combine(*predictions.unexplained, weights * predictions.n_rows, weights)
    return 1 - _share(unexplained, _deviation(predictions, weights))


def fcp(predictions: Predictions, weights: Float64, *, averaged: bool = False) -> float:
    """Return the fraction of concordant pairs; both rows of a pair belong to the same user."""
    pairs, concordant = predictions.pairs
    right, wrong = concordant, pairs - concordant
    if averaged:
        counts_and_masks = zip((right, wrong), predictions.having_pairs, strict=True)
        means = [
            _share(dot(weights, counts), dot(weights, has)) for counts, has in counts_and_masks
        ]
        first, second = np.nan_to_num(means).tolist()
        return _share(first, first + second)
    return _share(dot(weights, right), dot(weights, pairs))


def log_loss(predictions: Predictions, weights: Float64) -> float:
    """Return the mean negative logarithm of the probability of the true outcome."""
    return _share(dot(weights, predictions.surprisal), dot(weights, predictions.n_rows))


def rated_roc_auc(predictions: Predictions, weights: Float64) -> float:
    """Return the share of (relevant, non-relevant) pairs, across users, in the right order."""
    return _share(*predictions.across(weights))


def _deviation(predictions: Predictions, weights: Float64) -> float:
    """Return the sum of the squared deviations of all true ratings from their mean."""
    parts = predictions.mean_actual, predictions.squared_deviation
    return _combine(*parts, weights * predictions.n_rows, weights)


def _combine(means: Float64, deviations: Float64, counts: Float64, weights: Float64) -> float:
    """Combine users' means and squared deviations into squared deviations from the overall mean."""
    with_rows = np.flatnonzero(counts)
    if not len(with_rows):
        return 0.0
    shifted = means - means[with_rows[0]]  # makes equal means exactly 0
    shifted = shifted - (dot(counts, shifted)) / counts.sum()
    return float(dot(weights, deviations) + dot(counts, shifted**2))


def dot(weights: Float64, values: Array) -> float:
    """Add up weighted values pairwise, unlike ``@``, whose order depends on the BLAS library."""
    return float(np.sum(weights * values))


def _share(part: SupportsFloat, whole: SupportsFloat) -> float:
    return float(part) / float(whole) if float(whole) > 0 else math.nan

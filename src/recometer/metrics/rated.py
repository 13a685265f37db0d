"""Metrics of predicted ratings: their errors, and how well they order rows.

For one user, `p` denotes the predicted ratings and `a` the true ratings of the n rows. With a
threshold t, a row is relevant if ``a >= t``, and recommended if ``p >= t``.

The functions whose names end with `_over_rows` return the value over the rows of all users, which
most papers report; ``weights`` (float64 [n_users]) determine how often each user counts. They
return NaN if the denominator is 0. Sums per user are cached, so resampling with other weights takes
only one pass over the users.
"""

from __future__ import annotations

import functools
import math
from typing import SupportsFloat

import numpy as np

from recometer.arrays import Array, Float64, Int64, begins
from recometer.metrics.parameters import Parameter
from recometer.metrics.predictions import Predictions, ordered
from recometer.metrics.registry import metric
from recometer.metrics.sums import ratio, repeated


def _mean_over_rows(predictions: Predictions, weights: Float64, *, sums: str) -> float:
    """Return the mean over all rows; `sums` is the attribute that holds the users' sums."""
    return _share(dot(weights, getattr(predictions, sums)), dot(weights, predictions.n_rows))


def rmse_over_rows(predictions: Predictions, weights: Float64) -> float:
    """Return the root of the mean of ``(p - a)^2``."""
    return math.sqrt(_mean_over_rows(predictions, weights, sums="squared_error"))


def r2_over_rows(predictions: Predictions, weights: Float64) -> float:
    """Return 1 - sum of squared errors / sum of squared deviations from the overall mean."""
    return 1 - _share(dot(weights, predictions.squared_error), _deviation(predictions, weights))


def explained_variance_over_rows(predictions: Predictions, weights: Float64) -> float:
    """Return the share of the true ratings' overall variance that the predictions explain."""
    unexplained = _combine(*predictions.unexplained, weights * predictions.n_rows, weights)
    return 1 - _share(unexplained, _deviation(predictions, weights))


def fcp_over_rows(predictions: Predictions, weights: Float64, *, averaged: bool = False) -> float:
    """Return the fraction of concordant pairs; both rows of a pair belong to the same user."""
    pairs, concordant = predictions.pairs
    right, wrong = concordant, pairs - concordant
    if averaged:
        means = [
            _share(dot(weights, counts), dot(weights, counts > 0)) for counts in (right, wrong)
        ]
        first, second = np.nan_to_num(means).tolist()
        return _share(first, first + second)
    return _share(dot(weights, right), dot(weights, pairs))


def rated_roc_auc_over_rows(predictions: Predictions, weights: Float64) -> float:
    """Return the share of all users' (relevant, non-relevant) pairs that are in the right order."""
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
    """Add up weighted values by pairwise summation; with ``@``, the order depends on the BLAS."""
    return float(np.sum(weights * values))


def _share(part: SupportsFloat, total: SupportsFloat) -> float:
    return float(part) / float(total) if float(total) > 0 else math.nan


rating_metric = functools.partial(metric, record="ratings", monotone=False)
error_metric = functools.partial(rating_metric, cutoff="none", reads="gain")


@error_metric(
    title="Root mean squared error",
    formula="sqrt(mean of (predicted - true)^2)",
    source="Herlocker et al. 2004",
    upper=np.inf,
    higher_is_better=False,
    over_rows=rmse_over_rows,
)
def rmse(predictions: Predictions, cutoffs: Int64) -> Float64:
    """Root of the mean squared error: ``sqrt(mean of (p - a)^2)``, 0 or more.

    References
    ----------
    Herlocker, Konstan, Terveen & Riedl 2004, Evaluating collaborative filtering recommender
    systems.
    """
    return np.sqrt(mse(predictions, cutoffs))


@error_metric(
    title="Mean absolute error",
    formula="mean of abs(predicted - true)",
    source="Herlocker et al. 2004",
    upper=np.inf,
    higher_is_better=False,
    over_rows=functools.partial(_mean_over_rows, sums="absolute_error"),
)
def mae(predictions: Predictions, cutoffs: Int64) -> Float64:
    """Mean absolute error: ``mean of |p - a|``, 0 or more.

    References
    ----------
    Herlocker, Konstan, Terveen & Riedl 2004.
    """
    return repeated(ratio(predictions.absolute_error, predictions.n_rows), cutoffs)


@error_metric(
    title="Mean squared error",
    formula="mean of (predicted - true)^2",
    source="Herlocker et al. 2004",
    upper=np.inf,
    higher_is_better=False,
    over_rows=functools.partial(_mean_over_rows, sums="squared_error"),
)
def mse(predictions: Predictions, cutoffs: Int64) -> Float64:
    """Mean squared error: ``mean of (p - a)^2``, 0 or more.

    References
    ----------
    Herlocker, Konstan, Terveen & Riedl 2004.
    """
    return repeated(ratio(predictions.squared_error, predictions.n_rows), cutoffs)


@error_metric(
    title="Coefficient of determination",
    formula="1 - sum of (predicted - true)^2 / sum of (true - mean of true)^2",
    source="Kvålseth 1985, his first definition",
    lower=-np.inf,
    needs="variance",
    over_rows=r2_over_rows,
)
def r2(predictions: Predictions, cutoffs: Int64) -> Float64:
    """Improvement in squared error over the mean: ``1 - sum (p - a)^2 / sum (a - mean a)^2``.

    The value is at most 1. It is 0 for predictions that are as good as the mean of the true
    ratings.

    References
    ----------
    Kvålseth 1985, Cautionary note about R².
    """
    return repeated(1 - ratio(predictions.squared_error, predictions.squared_deviation), cutoffs)


@error_metric(
    title="Explained variance",
    formula="1 - variance of (true - predicted) / variance of true",
    source="Pedregosa et al. 2011, scikit-learn",
    lower=-np.inf,
    needs="variance",
    over_rows=explained_variance_over_rows,
)
def explained_variance(predictions: Predictions, cutoffs: Int64) -> Float64:
    """Share of the true ratings' variance that is explained: ``1 - var(a - p) / var(a)``.

    The value is at most 1. Unlike `r2`, it ignores a constant error.

    References
    ----------
    Pedregosa et al. 2011, Scikit-learn: machine learning in Python.
    """
    _, unexplained = predictions.unexplained
    return repeated(1 - ratio(unexplained, predictions.squared_deviation), cutoffs)


@error_metric(
    title="Fraction of concordant pairs",
    formula="pairs of rows predicted in the order of their true ratings / pairs with different "
    "true ratings",
    source="Koren & Sill 2013",
    needs="pairs",
    parameters={
        "averaged": Parameter(
            "For the value over all users, the number of pairs in order and the number of other "
            "pairs are each averaged over the users who have such pairs, before they are "
            "combined.",
            for_conventions=True,
        )
    },
    over_rows=fcp_over_rows,
)
def fcp(predictions: Predictions, cutoffs: Int64, *, averaged: bool = False) -> Float64:
    """Fraction of a user's pairs of rows that the predictions put in the right order.

    Only pairs with different true ratings count. A pair with equal predictions is not in the right
    order, regardless of the tie rule. The value is in [0, 1].

    References
    ----------
    Koren & Sill 2013, Collaborative filtering on ordinal user feedback.
    """
    pairs, concordant = predictions.pairs
    return repeated(ratio(concordant.astype(np.float64), pairs), cutoffs)


@error_metric(
    title="Logarithmic loss",
    formula="mean of -ln(predicted), or of -ln(1 - predicted) for rows that are not relevant",
    source="Good 1952, Rational decisions",
    other_names=("logloss",),
    upper=np.inf,
    higher_is_better=False,
    needs="probabilities",
    over_rows=functools.partial(_mean_over_rows, sums="surprisal"),
)
def log_loss(predictions: Predictions, cutoffs: Int64) -> Float64:
    """Mean negative logarithm of the probability predicted for the true outcome; 0 or more.

    A prediction is the probability that the row is relevant, that is, that its true rating reaches
    the threshold (1 by default). Probabilities are kept at least 2.2e-16 away from 0 and 1, as in
    scikit-learn.

    References
    ----------
    Good 1952, Rational decisions.
    """
    return repeated(ratio(predictions.surprisal, predictions.n_rows), cutoffs)


@error_metric(
    title="Area under the ROC curve of predicted ratings",
    formula="share of (relevant, non-relevant) pairs of rows predicted in the right order; "
    "pairs with equal predictions count half",
    source="Fawcett 2006",
    needs="kinds",
    over_rows=rated_roc_auc_over_rows,
)
def rated_roc_auc(predictions: Predictions, cutoffs: Int64) -> Float64:
    """Fraction of (relevant, non-relevant) pairs of rows predicted in the right order; in [0, 1].

    A pair with equal predictions counts half, regardless of the tie rule. In the value over all
    rows, the two rows of a pair may belong to different users, as in the pooled ROC-AUC of
    classification. For the mean over users, use ``weights="users"``, or ``roc_auc``.

    References
    ----------
    Fawcett 2006, An introduction to ROC analysis.
    """
    user, predicted = predictions.user, predictions.predicted
    new = begins(user) | begins(predicted)
    relevant = predictions.kinds.astype(np.float64)
    concordant, pairs = ordered(user, new, relevant, 1 - relevant, predictions.n_users)
    return repeated(ratio(concordant, pairs), cutoffs)


@rating_metric(
    title="Precision of predicted ratings",
    formula="relevant and recommended rows in the first k / recommended rows in the first k",
    source="Herlocker et al. 2004",
    needs="recommended",
)
def rated_precision(predictions: Predictions, cutoffs: Int64) -> Float64:
    """Share of the recommended rows in the first k that are relevant; in [0, 1].

    The first k rows are those with the highest predicted ratings. The value is averaged over all
    orders of tied rows.

    References
    ----------
    Herlocker, Konstan, Terveen & Riedl 2004.
    """
    assert predictions.n_recommended is not None
    recommended = np.minimum(predictions.n_recommended[:, np.newaxis], cutoffs)
    return ratio(predictions.hits(cutoffs), recommended)


@rating_metric(
    title="Recall of predicted ratings",
    formula="relevant and recommended rows in the first k / relevant rows",
    source="Herlocker et al. 2004",
    needs="relevant",
)
def rated_recall(predictions: Predictions, cutoffs: Int64) -> Float64:
    """Share of the relevant rows that are recommended and in the first k; in [0, 1].

    The first k rows are those with the highest predicted ratings. The value is averaged over all
    orders of tied rows.

    References
    ----------
    Herlocker, Konstan, Terveen & Riedl 2004.
    """
    assert predictions.n_relevant is not None
    return ratio(predictions.hits(cutoffs), predictions.n_relevant[:, np.newaxis])

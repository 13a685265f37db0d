"""Metrics of predicted ratings: how far they are from the true ones, and which they put first.

For one user, `p` are the predicted and `a` the true ratings of its n rows. With a threshold t
a row is relevant if ``a >= t``, and recommended if ``p >= t``.
"""

from __future__ import annotations

import dataclasses
import functools

import numpy as np

from recometer.arrays import Bool, Float64, Int64
from recometer.errors import InternalError
from recometer.metrics.registry import METRICS, metric
from recometer.metrics.sums import ratio
from recometer.ranks import Ratings
from recometer.ties import WHOLE, Groups, sum_by_user

rating_metric = functools.partial(metric, record="ratings", monotone=False)
error_metric = functools.partial(rating_metric, cutoff="none", reads="gain", over_rows=True)


@dataclasses.dataclass(frozen=True, eq=False)
class Predictions:
    """What metrics of ratings read.

    Attributes
    ----------
    user : int64 [n_rows]
        Ascending.
    predicted, actual : float64 [n_rows]
        Best predicted first within a user.
    n_users : int
    n_recommended, n_relevant : int64 [n_users] or None
        Rows of each user; None: there is no threshold.
    ranked
        The tie groups of the relevant rows, under the rule for ties; None: not needed.
    """

    user: Int64
    predicted: Float64
    actual: Float64
    n_users: int
    n_recommended: Int64 | None = None
    n_relevant: Int64 | None = None
    ranked: Groups | None = None

    @classmethod
    def of(cls, ratings: Ratings, *, nan_first: bool) -> Predictions:
        """Count what is relevant and recommended; NaN is recommended where it ranks first."""
        ranks, predicted, threshold = ratings.ranks, ratings.predicted, ratings.threshold
        user, actual = np.repeat(np.arange(ranks.n_users), np.diff(ranks.indptr)), ranks.gain
        ranked = ranks.above >= 0
        if not ranked.all():  # the others are no candidates
            user, predicted, actual = user[ranked], predicted[ranked], actual[ranked]
        if threshold is None:
            return cls(user, predicted, actual, ranks.n_users)
        recommended = predicted >= threshold[user]
        if nan_first:
            recommended |= np.isnan(predicted)
        n_recommended = np.bincount(user[recommended], minlength=ranks.n_users)
        return cls(user, predicted, actual, ranks.n_users, n_recommended, ranks.n_relevant)

    def together(self) -> Predictions:
        """Return the same rows as those of one user, in no order and without a threshold."""
        return Predictions(np.zeros_like(self.user), self.predicted, self.actual, 1)

    def of_users(self, chosen: Bool) -> Predictions:
        """Return the rows of some users, without a threshold; the others have none."""
        rows = chosen[self.user]
        return Predictions(self.user[rows], self.predicted[rows], self.actual[rows], self.n_users)

    @functools.cached_property
    def n_rows(self) -> Int64:
        """Number of rows of each user."""
        return np.bincount(self.user, minlength=self.n_users)

    @functools.cached_property
    def squared_error(self) -> Float64:
        """Sum of ``(p - a)^2`` of each user."""
        return self.total((self.predicted - self.actual) ** 2)

    @functools.cached_property
    def squared_deviation(self) -> Float64:
        """Sum of ``(a - mean of a)^2`` of each user; exactly 0 where all are the same."""
        return self.deviation(self.actual)

    @functools.cached_property
    def pairs(self) -> tuple[Int64, Int64]:
        """Number of pairs of rows that differ in `a`, and of those in the same order by `p`."""
        return _ordered_pairs(self)

    def total(self, values: Float64) -> Float64:
        """Add values of the rows up, user by user: float64 [n_users]."""
        return sum_by_user(self.user, values, self.n_users)

    def deviation(self, values: Float64) -> Float64:
        """Return the sum of squared deviations from the user's mean."""
        # Less the user's first, so that equal values leave nothing, not even rounding.
        shifted = values - values[np.searchsorted(self.user, self.user)]
        mean = ratio(self.total(shifted), self.n_rows)
        return self.total((shifted - mean[self.user]) ** 2)

    def has(self, needed: str) -> Bool:
        """Tell for every user whether there is what a metric needs (`MetricDefinition.needs`)."""
        if needed == "relevant":
            return self._counted(self.n_relevant) > 0
        if needed == "recommended":
            return self._counted(self.n_recommended) > 0
        if needed == "variance":
            return self.squared_deviation > 0
        if needed == "pairs":
            return self.pairs[0] > 0
        return self.n_rows > 0

    def hits(self, cutoffs: Int64) -> Float64:
        """Count the relevant and recommended rows among the first: [n_users, n_cutoffs]."""
        groups = self.ranked
        if groups is None:
            raise InternalError("These predictions have not been ranked.")
        found = np.empty((self.n_users, len(cutoffs)))
        for column, cutoff in enumerate(cutoffs.tolist()):
            # The recommended rows are the first ones.
            rows, places = groups.within(np.minimum(self._counted(self.n_recommended), cutoff))
            share = places * groups.relevant[rows] / groups.size[rows]
            found[:, column] = groups.total(rows, share)
        return found

    def _counted(self, count: Int64 | None) -> Int64:
        if count is None:
            raise InternalError("These predictions have no threshold.")
        return count


@error_metric(
    title="Root mean squared error",
    formula="sqrt(mean of (predicted - true)^2)",
    source="Herlocker et al. 2004",
    upper=np.inf,
    higher_is_better=False,
)
def rmse(predictions: Predictions, cutoffs: Int64) -> Float64:
    """Root of the mean squared error: ``sqrt(mean of (p - a)^2)``, from 0 on.

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
)
def mae(predictions: Predictions, cutoffs: Int64) -> Float64:
    """Mean absolute error: ``mean of |p - a|``, from 0 on.

    References
    ----------
    Herlocker, Konstan, Terveen & Riedl 2004.
    """
    error = predictions.total(np.abs(predictions.predicted - predictions.actual))
    return _repeat(ratio(error, predictions.n_rows), cutoffs)


@error_metric(
    title="Mean squared error",
    formula="mean of (predicted - true)^2",
    source="Herlocker et al. 2004",
    upper=np.inf,
    higher_is_better=False,
)
def mse(predictions: Predictions, cutoffs: Int64) -> Float64:
    """Mean squared error: ``mean of (p - a)^2``, from 0 on.

    References
    ----------
    Herlocker, Konstan, Terveen & Riedl 2004.
    """
    return _repeat(ratio(predictions.squared_error, predictions.n_rows), cutoffs)


@error_metric(
    title="Coefficient of determination",
    formula="1 - sum of (predicted - true)^2 / sum of (true - mean of true)^2",
    source="Kvålseth 1985, his first",
    lower=-np.inf,
    needs="variance",
)
def r2(predictions: Predictions, cutoffs: Int64) -> Float64:
    """Squared error against that of the mean: ``1 - sum (p - a)^2 / sum (a - mean a)^2``.

    At most 1; 0 for a prediction as good as the mean of the true ratings.

    References
    ----------
    Kvålseth 1985, Cautionary note about R².
    """
    return _repeat(1 - ratio(predictions.squared_error, predictions.squared_deviation), cutoffs)


@error_metric(
    title="Explained variance",
    formula="1 - variance of (true - predicted) / variance of true",
    source="Pedregosa et al. 2011, scikit-learn",
    lower=-np.inf,
    needs="variance",
)
def explained_variance(predictions: Predictions, cutoffs: Int64) -> Float64:
    """Share of the true ratings' variance that is explained: ``1 - var(a - p) / var(a)``.

    At most 1. Unlike `r2` it does not mind a constant error.

    References
    ----------
    Pedregosa et al. 2011, Scikit-learn: machine learning in Python.
    """
    left = predictions.deviation(predictions.actual - predictions.predicted)
    return _repeat(1 - ratio(left, predictions.squared_deviation), cutoffs)


@error_metric(
    title="Fraction of concordant pairs",
    formula="pairs predicted in the order of their true ratings / pairs that differ in these",
    source="Koren & Sill 2013",
    needs="pairs",
)
def fcp(predictions: Predictions, cutoffs: Int64) -> Float64:
    """Fraction of a user's pairs of rows that the predictions put in the right order.

    Of the pairs with different true ratings; one that is predicted the same is not in order,
    whatever the rule for ties. In [0, 1].

    References
    ----------
    Koren & Sill 2013, Collaborative filtering on ordinal user feedback.
    """
    pairs, concordant = predictions.pairs
    return _repeat(ratio(concordant.astype(np.float64), pairs), cutoffs)


@rating_metric(
    title="Precision of predicted ratings",
    formula="relevant and recommended rows in the first k / recommended rows in the first k",
    source="Herlocker et al. 2004",
    needs="recommended",
)
def rated_precision(predictions: Predictions, cutoffs: Int64) -> Float64:
    """Share of relevant rows among the recommended ones in the first k; in [0, 1].

    The first k by predicted rating. Tied rows count with their mean.

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
    """Share of the relevant rows that are recommended, and in the first k; in [0, 1].

    The first k by predicted rating. Tied rows count with their mean.

    References
    ----------
    Herlocker, Konstan, Terveen & Riedl 2004.
    """
    assert predictions.n_relevant is not None
    return ratio(predictions.hits(cutoffs), predictions.n_relevant[:, np.newaxis])


def over_rows(name: str, predictions: Predictions) -> float:
    """Compute a metric over the rows (of `fcp`, the pairs) of all users; NaN: it is undefined."""
    definition = METRICS[name]
    if definition.needs == "pairs":
        pairs, concordant = (int(counts.sum()) for counts in predictions.pairs)
        return concordant / pairs if pairs else float("nan")
    together = predictions.together()
    if not together.has(definition.needs)[0]:
        return float("nan")
    return float(definition.function(together, np.array([WHOLE]))[0, 0])


def _repeat(values: Float64, cutoffs: Int64) -> Float64:
    return np.repeat(values[:, np.newaxis], len(cutoffs), axis=1)


def _ordered_pairs(predictions: Predictions) -> tuple[Int64, Int64]:
    """Count pairs of rows that differ in `actual`, and those that `predicted` orders alike.

    The rows stand best predicted first, each with the number of its true rating among the
    distinct ones: to be counted are the pairs in which a higher number comes first. They are
    told apart by the highest bit in which their numbers differ, so for every bit, from the
    highest on, rows that agree in the higher ones are brought together.
    """
    user, n_users = predictions.user, predictions.n_users
    distinct, number = np.unique(predictions.actual, return_inverse=True)
    key = user * len(distinct) + number
    by_actual = np.argsort(key, kind="stable")
    first = np.flatnonzero(np.diff(key[by_actual], prepend=-1))
    same = np.diff(first, append=len(user))
    n_rows = predictions.n_rows
    equal = np.zeros(n_users, np.int64)
    np.add.at(equal, user[by_actual[first]], same * (same - 1) // 2)
    pairs = n_rows * (n_rows - 1) // 2 - equal

    # Of rows predicted the same the worse one first: such a pair is not in order.
    new = np.diff(user, prepend=-1) != 0
    new[1:] |= predictions.predicted[1:] != predictions.predicted[:-1]
    order = np.argsort(np.cumsum(new) * len(distinct) + number, kind="stable")
    number, owner = number[order], user
    group = owner
    concordant = np.zeros(n_users, np.int64)
    for bit in reversed(range(max(len(distinct) - 1, 0).bit_length())):
        one = (number >> bit) & 1
        ones = np.cumsum(one) - one
        ones -= ones[np.searchsorted(group, group)]
        np.add.at(concordant, owner, (1 - one) * ones)
        group = 2 * group + one
        order = np.argsort(group, kind="stable")
        group, number, owner = group[order], number[order], owner[order]
    return pairs, concordant

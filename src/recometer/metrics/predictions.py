"""Predicted and true ratings, the input of rating metrics.

For each row, `p` denotes the predicted rating and `a` the true rating.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from recometer import ragged
from recometer.arrays import Array, Bool, Float64, Int64, begins, largest
from recometer.errors import InternalError
from recometer.metrics.sums import ratio
from recometer.ranks import Ratings
from recometer.remembered import cached_property
from recometer.ties import Groups, sum_by_user

DEFAULT = 1.0  # by default, rows with at least this true rating are relevant


@dataclasses.dataclass(frozen=True, eq=False)
class Predictions:
    """The input of rating metrics."""

    user: Int64  # the user of each row, in ascending order
    predicted: Float64  # the predicted rating of each row, best first for each user
    actual: Float64  # the true rating of each row
    n_users: int
    # Whether each row's true rating reaches the threshold, or reaches 1 if there is no threshold or
    # the threshold is -inf.
    relevant: Bool | None = None
    n_recommended: Int64 | None = None  # row counts, [n_users]; None without a threshold
    n_relevant: Int64 | None = None  # row counts, [n_users]; None without a threshold
    ranked: Groups | None = None  # the relevant rows in tie groups; None if not needed

    @classmethod
    def of(cls, ratings: Ratings, *, nan_first: bool) -> Predictions:
        """Count relevant and recommended rows; with `nan_first`, NaN counts as recommended."""
        ranks, predicted, threshold = ratings.ranks, ratings.predicted, ratings.threshold
        user, actual = ranks.user, ranks.gain
        ranked = ranks.above >= 0
        if not ranked.all():  # only ranked rows are candidates
            user, predicted, actual = user[ranked], predicted[ranked], actual[ranked]
        if threshold is None:
            return cls(user, predicted, actual, ranks.n_users, actual >= DEFAULT)
        # A threshold of -inf would make every row relevant, so use the default.
        least = np.where(np.isneginf(threshold), DEFAULT, threshold)
        relevant = actual >= least[user]
        recommended = predicted >= threshold[user]
        if nan_first:
            recommended |= np.isnan(predicted)
        n_recommended = np.bincount(user[recommended], minlength=ranks.n_users)
        return cls(
            user, predicted, actual, ranks.n_users, relevant, n_recommended, ranks.n_relevant
        )

    def of_users(self, chosen: Bool) -> Predictions:
        """Return the rows of the chosen users, who keep their numbers, and drop the threshold.

        If all users are chosen, return `self`.
        """
        if chosen.all():
            return self
        rows = chosen[self.user]
        return self._rows(rows, self.user[rows], self.n_users)

    def take_users(self, users: Int64) -> Predictions:
        """Return the rows of `users`, renumbered from 0 in this order, and drop the threshold."""
        indptr, rows = ragged.take(ragged.indptr_of(self.n_rows), users)
        return self._rows(rows, ragged.users_of(indptr), len(users))

    def _rows(self, rows: Array, user: Int64, n_users: int) -> Predictions:
        relevant = None if self.relevant is None else self.relevant[rows]
        return Predictions(user, self.predicted[rows], self.actual[rows], n_users, relevant)

    @cached_property
    def finite(self) -> Predictions:
        """The rows of users whose ratings and predictions are all finite."""
        return self.of_users(~np.any(self.not_finite, axis=0))

    @cached_property
    def not_finite(self) -> tuple[Bool, Bool, Bool]:
        """Masks of users with NaN predictions, infinite predictions, or overflowing squares."""
        nan, infinite = np.isnan(self.predicted), np.isinf(self.predicted)
        with np.errstate(over="ignore"):
            size = self.total(4 * (np.where(nan, 0, self.predicted) ** 2 + self.actual**2))
        return (
            self.total(nan.astype(np.float64)) > 0,
            self.total(infinite.astype(np.float64)) > 0,
            ~np.isfinite(size),
        )

    @cached_property
    def n_rows(self) -> Int64:
        """Each user's number of rows."""
        return np.bincount(self.user, minlength=self.n_users)

    @cached_property
    def squared_error(self) -> Float64:
        """Each user's sum of ``(p - a)^2``."""
        return self.total((self.predicted - self.actual) ** 2)

    @cached_property
    def squared_deviation(self) -> Float64:
        """Each user's sum of ``(a - mean of a)^2``; exactly 0 if all `a` of the user are equal."""
        return self.deviation(self.actual)

    @cached_property
    def mean_actual(self) -> Float64:
        """Each user's mean of `a`; exactly `a` if all `a` of the user are equal."""
        return self.mean(self.actual)

    @cached_property
    def unexplained(self) -> tuple[Float64, Float64]:
        """Each user's mean of ``a - p``, and the sum of squared deviations from this mean."""
        error = self.actual - self.predicted
        return self.mean(error), self.deviation(error)

    @cached_property
    def absolute_error(self) -> Float64:
        """Each user's sum of ``|p - a|``."""
        return self.total(np.abs(self.predicted - self.actual))

    @cached_property
    def surprisal(self) -> Float64:
        """Each user's sum of the true outcomes' negative log probabilities."""
        least = np.finfo(np.float64).eps
        likely = np.clip(np.where(self.kinds, self.predicted, 1 - self.predicted), least, 1 - least)
        return self.total(-np.log(likely))

    @property
    def kinds(self) -> Bool:
        """Whether each row is relevant."""
        if self.relevant is None:
            raise InternalError("It is unknown which of these predictions are relevant.")
        return self.relevant

    @cached_property
    def by_prediction(self) -> Int64:
        """The indices of all users' rows, best prediction first."""
        return np.argsort(-self.predicted, kind="stable")

    @cached_property
    def pairs(self) -> tuple[Int64, Int64]:
        """Each user's number of row pairs that differ in `a`, and of those in the right order."""
        return _ordered_pairs(self)

    def across(self, weights: Float64) -> tuple[float, float]:
        """Count the pairs of a relevant and a non-relevant row across all users; see `ordered`.

        `weights` (float64 [n_users]) determine how often each user counts. Returns the weighted
        number of correctly ordered pairs, and of all pairs.
        """
        order = self.by_prediction
        new = begins(self.predicted[order])
        weight, relevant = weights[self.user[order]], self.kinds[order]
        owner = np.zeros(len(order), np.int64)
        concordant, pairs = ordered(owner, new, relevant * weight, ~relevant * weight, 1)
        return float(concordant[0]), float(pairs[0])

    def total(self, values: Float64) -> Float64:
        """Add up the rows' values for each user: float64 [n_users]."""
        return sum_by_user(self.user, values, self.n_users)

    def deviation(self, values: Float64) -> Float64:
        """Return each user's sum of squared deviations from the user's mean."""
        first = self.first(values)
        shifted = values - first[self.user]
        mean = ratio(self.total(shifted), self.n_rows)
        return self.total((shifted - mean[self.user]) ** 2)

    def mean(self, values: Float64) -> Float64:
        """Return the mean of each user's values, or 0 for users without rows."""
        first = self.first(values)
        return first + ratio(self.total(values - first[self.user]), self.n_rows)

    def first(self, values: Float64) -> Float64:
        """Return each user's first value; subtracting it makes equal values exactly 0."""
        first = np.zeros(self.n_users)
        first_row = np.searchsorted(self.user, np.arange(self.n_users))
        has_rows = self.n_rows > 0
        first[has_rows] = values[first_row[has_rows]]
        return first

    def meets(self, requirement: str) -> Bool:
        """Return whether each user with rows meets a requirement of a metric.

        See `MetricDefinition.needs`.
        """
        if requirement == "relevant":
            return self._counted(self.n_relevant) > 0
        if requirement == "recommended":
            return self._counted(self.n_recommended) > 0
        if requirement == "variance":
            return self.squared_deviation > 0
        if requirement == "pairs":
            return self.pairs[0] > 0
        if requirement == "kinds":
            n_relevant = np.bincount(self.user[self.kinds], minlength=self.n_users)
            has_both: Bool = (n_relevant > 0) & (n_relevant < self.n_rows)
            return has_both
        if requirement == "probabilities":
            outside = ~((self.predicted >= 0) & (self.predicted <= 1))
            likely: Bool = self.total(outside.astype(np.float64)) == 0
            return likely
        return np.ones(self.n_users, np.bool_)

    def hits(self, cutoffs: Int64) -> Float64:
        """Count the relevant rows among the first k recommended rows: [n_users, n_cutoffs]."""
        groups = self.ranked
        if groups is None:
            raise InternalError("These predictions have not been ranked.")
        counts = np.empty((self.n_users, len(cutoffs)))
        for column, cutoff in enumerate(cutoffs.tolist()):
            # Recommended rows come before all others.
            rows, places = groups.within(np.minimum(self._counted(self.n_recommended), cutoff))
            share = places * groups.relevant[rows] / groups.size[rows]
            counts[:, column] = groups.total(rows, share)
        return counts

    def _counted(self, count: Int64 | None) -> Int64:
        if count is None:
            raise InternalError("These predictions have no threshold.")
        return count


def ordered(
    owner: Int64, new: Bool, relevant: Float64, nonrelevant: Float64, n_owners: int
) -> tuple[Float64, Float64]:
    """Count the pairs of a relevant and a non-relevant row: those in the right order, and all.

    Ties count half.

    Parameters
    ----------
    owner : int64 [n_rows]
        The owner of each row, such as its user, in ascending order. Both rows of a pair have the
        same owner.
    new : bool [n_rows]
        Whether the prediction differs from that of the previous row; the best predictions come
        first.
    relevant, nonrelevant : float64 [n_rows]
        How often each row counts as relevant, and as not relevant.

    Returns
    -------
    concordant, pairs : float64 [n_owners]
    """
    group = np.cumsum(new) - 1
    group_owner = owner[new]
    hits, misses = (
        sum_by_user(group, counts, len(group_owner)) for counts in (relevant, nonrelevant)
    )
    n_hits, n_misses = (sum_by_user(group_owner, counts, n_owners) for counts in (hits, misses))
    # Count the same owner's non-relevant rows in later groups.
    until = np.cumsum(misses)
    before = np.concatenate([[0.0], np.cumsum(n_misses)[:-1]])
    later = n_misses[group_owner] - (until - before[group_owner])
    return sum_by_user(group_owner, hits * (later + misses / 2), n_owners), n_hits * n_misses


def _ordered_pairs(predictions: Predictions) -> tuple[Int64, Int64]:
    """Count the pairs of rows that differ in `actual`, and those that `predicted` orders correctly.

    The rows are sorted by prediction, best first, and true ratings are numbered in ascending order.
    A pair is in order if the higher number comes first. Whether it does depends on the highest bit
    in which the two numbers differ. So, for each bit, from the highest to the lowest, the rows that
    agree in all higher bits form a group, and the pairs within each group are counted.
    """
    user, n_users = predictions.user, predictions.n_users
    distinct, number = np.unique(predictions.actual, return_inverse=True)
    key = user * len(distinct) + number
    by_actual = np.argsort(key, kind="stable")
    first = np.flatnonzero(begins(key[by_actual]))
    same = np.diff(first, append=len(user))
    n_rows = predictions.n_rows
    equal = np.zeros(n_users, np.int64)
    np.add.at(equal, user[by_actual[first]], same * (same - 1) // 2)
    pairs = n_rows * (n_rows - 1) // 2 - equal

    # Sort rows with the same prediction by ascending rating, so that no pair of them counts as in
    # order.
    new = begins(user) | begins(predictions.predicted)
    order = np.argsort(np.cumsum(new) * len(distinct) + number, kind="stable")
    number, owner = number[order], user
    group = owner
    concordant = np.zeros(n_users, np.int64)
    for bit in reversed(range(largest(number).bit_length())):
        bit_set = (number >> bit) & 1
        ones = np.cumsum(bit_set) - bit_set
        ones -= ones[np.searchsorted(group, group)]
        np.add.at(concordant, owner, (1 - bit_set) * ones)
        group = 2 * group + bit_set
        order = np.argsort(group, kind="stable")
        group, number, owner = group[order], number[order], owner[order]
    return pairs, concordant

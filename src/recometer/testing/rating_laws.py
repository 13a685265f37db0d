"""Laws for metrics of predicted ratings, some of which depend on what the registry says.

They are checked on small tables of predicted and true ratings.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence

import numpy as np
from hypothesis import strategies as st

from recometer.arrays import Float64, UInt64
from recometer.measuring.rated import RatedUsers
from recometer.metrics import Metric
from recometer.metrics.predictions import Predictions
from recometer.protocol import Protocol
from recometer.ranks import Ratings
from recometer.testing._checks import (
    MOST_USERS,
    Kind,
    Law,
    direction,
    holds,
    law,
    name_law,
    near_range,
    shared_laws,
    tie_laws,
    values_of,
)
from recometer.testing.rankings import orders, rank
from recometer.ties import WHOLE, resolve

STARS = st.sampled_from([1.0, 2.0, 3.0, 4.0, 5.0])


@dataclasses.dataclass(frozen=True, eq=False)
class RatingCase:
    """Predicted and true ratings of a few users.

    Attributes
    ----------
    predicted, actual : float64 [n_users, n_items]
        NaN in `actual` where a user has no row of an item.
    threshold : float64 [n_users]
        Rows are relevant from this true rating on, and recommended from this predicted rating on.
    """

    predicted: Float64
    actual: Float64
    threshold: Float64

    @property
    def n_users(self) -> int:
        """Number of users."""
        return len(self.predicted)

    @property
    def n_items(self) -> int:
        """Number of items."""
        return self.predicted.shape[1]

    def users(self, which: Sequence[int]) -> RatingCase:
        """Return the case of some users, in this order."""
        rows = list(which)
        return RatingCase(self.predicted[rows], self.actual[rows], self.threshold[rows])

    def relabelled(self, name: Sequence[int]) -> RatingCase:
        """Return the case with item i renamed to ``name[i]``."""
        old = np.argsort(name)
        return RatingCase(self.predicted[:, old], self.actual[:, old], self.threshold)

    def rows(self, user: int) -> list[int]:
        """Return the items of a user's rows."""
        return [int(item) for item in np.flatnonzero(~np.isnan(self.actual[user]))]

    def orders(self, user: int) -> Iterator[list[int]]:
        """Return every order of a user's rows that agrees with the predicted ratings."""
        return orders({item: float(self.predicted[user, item]) for item in self.rows(user)})

    def ratings(self, scores: Float64 | None = None) -> Ratings:
        """Return the input of metrics, ranked by other scores if these are given."""
        missing = np.isnan(self.actual)
        relevant = np.where(missing, np.nan, self.actual >= self.threshold[:, np.newaxis])
        ranks = rank(self.predicted if scores is None else scores, relevant, unranked=missing)
        user = np.repeat(np.arange(self.n_users), np.diff(ranks.indptr))
        ranks = dataclasses.replace(ranks, gain=self.actual[user, ranks.item])
        return Ratings(ranks, self.predicted[user, ranks.item], self.threshold)


@st.composite
def rating_cases(
    draw: st.DrawFn,
    *,
    min_users: int = 1,
    max_users: int = 3,
    max_items: int = 5,
    predicted: st.SearchStrategy[float] | None = None,
) -> RatingCase:
    """Draw a `RatingCase` with ties, equal true ratings, and users with one row or none.

    Parameters
    ----------
    min_users, max_users, max_items
        The size of the case. Five items have at most 120 orders.
    predicted
        Predicted ratings. By default, these are possible true ratings, and values between and
        beyond them.
    """
    n_users, n_items = draw(st.integers(min_users, max_users)), draw(st.integers(1, max_items))
    if predicted is None:
        predicted = st.sampled_from([1.0, 3.0, 5.0, 3.7, 3.5, -0.3])
    true = st.sampled_from([float("nan"), 1.0, 2.0, 3.0, 4.0, 5.0])

    def table(elements: st.SearchStrategy[float]) -> Float64:
        row = st.lists(elements, min_size=n_items, max_size=n_items)
        rows = st.lists(row, min_size=n_users, max_size=n_users)
        return np.array(draw(rows), np.float64)

    thresholds = st.lists(st.sampled_from([3.5, 3.0, 0.0, 9.0]), min_size=n_users, max_size=n_users)
    return RatingCase(table(predicted), table(true), np.array(draw(thresholds), np.float64))


@law(rating_cases(max_users=MOST_USERS))
def formulas_leave_the_range_by_rounding_only(metrics: Sequence[Metric], case: RatingCase) -> None:
    """Check that formulas, before clipping, only exceed the bounds by rounding."""
    ratings = case.ratings()
    for metric in metrics:
        definition = metric.definition
        predictions = Predictions.of(ratings, nan_first=False)
        if definition.reads == "relevance":
            predictions = dataclasses.replace(predictions, ranked=resolve(ratings.ranks))
        cutoffs = [WHOLE] if metric.cutoff is None else [1, 2, 3, 9]
        raw = metric.at(np.array(cutoffs))(predictions)
        near_range(metric, raw[predictions.has(definition.needs) & (predictions.n_rows > 0)])


@law(rating_cases(max_users=MOST_USERS, predicted=STARS))
def true_ratings_are_the_best_predictions(metrics: Sequence[Metric], case: RatingCase) -> None:
    """Check that true ratings are the best predictions, except for probabilities."""
    metrics = [metric for metric in metrics if metric.definition.needs != "probabilities"]
    true = np.nan_to_num(case.actual)
    best = _values(dataclasses.replace(case, predicted=true).ratings(), metrics)
    values = _values(case.ratings(), metrics)
    undefined = np.isnan(best) | np.isnan(values)
    holds(metrics, undefined | (direction(metrics) * (best - values) >= -1e-14))


def _values(
    ratings: Ratings,
    metrics: Sequence[Metric],
    ties: str = "expected",
    user_keys: UInt64 | None = None,
) -> Float64:
    return values_of(RatedUsers(ratings, 0, user_keys), metrics, Protocol().replace(ties=ties))


RATINGS = Kind(rating_cases, RatingCase.ratings, _values, 1e-12, lambda case: case.predicted)
RATING_LAWS: tuple[Law, ...] = (
    formulas_leave_the_range_by_rounding_only,
    true_ratings_are_the_best_predictions,
    *shared_laws(RATINGS),
    name_law(RATINGS),
    *tie_laws(RATINGS),
)
"""Every law of metrics of predicted ratings."""

"""Small tables of predicted and true ratings, and a strategy that draws them."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence

import numpy as np
from hypothesis import strategies as st

from recometer.arrays import Float64
from recometer.ranks import Ratings
from recometer.testing.rankings import orders, rank


@dataclasses.dataclass(frozen=True, eq=False)
class RatingCase:
    """Predicted and true ratings of a few users.

    Attributes
    ----------
    predicted, actual : float64 [n_users, n_items]
        `actual` is NaN where a user has no row for an item.
    threshold : float64 [n_users]
        Rows are relevant if their true rating is at least this value, and recommended if their
        predicted rating is.
    """

    predicted: Float64
    actual: Float64
    threshold: Float64

    @property
    def n_users(self) -> int:
        """The number of users."""
        return len(self.predicted)

    @property
    def n_items(self) -> int:
        """The number of items."""
        return int(self.predicted.shape[1])

    def users(self, which: Sequence[int]) -> RatingCase:
        """Return a case with only some of the users, in this order."""
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
        """Return the input of metrics, ranked by `scores` or by the predicted ratings."""
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
        A strategy for predicted ratings. By default, it draws possible true ratings, and values
        between and beyond them.
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

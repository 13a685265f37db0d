"""Computes users' values from their predicted and true ratings."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np

from recometer.arrays import Bool, Float64, Int64, UInt8, UInt64, any_of
from recometer.measuring.compute import Measured, Variant
from recometer.measuring.ranked import RankedUsers
from recometer.measuring.reasons import OF_ONE_USER, Reason, mark, mark_scores
from recometer.metrics.predictions import Predictions
from recometer.metrics.registry import Metric, MetricDefinition
from recometer.protocol import Protocol
from recometer.ranks import Ratings, UserFlag, raised

WITHOUT = {
    "rows": Reason.NO_RATINGS,
    "relevant": Reason.NO_RELEVANT,
    "recommended": Reason.NOTHING_RECOMMENDED,
    "variance": Reason.NO_VARIANCE,
    "pairs": Reason.NO_PAIRS,
    "kinds": Reason.ONE_KIND,
    "probabilities": Reason.NOT_PROBABILITY,
}


class RatedUsers(Measured):
    """Users whose values are computed from their predicted and true ratings.

    The rules for rankings do not apply, so a user with a single row counts as well. For
    `seed` and `user_keys`, see `recometer.ties.resolve`.
    """

    record = "ratings"
    variant = RankedUsers.variant
    bounded = RankedUsers.bounded

    def __init__(self, ratings: Ratings, seed: int = 0, user_keys: UInt64 | None = None) -> None:
        self.ratings, self.n_users = ratings, ratings.n_users
        self.ranked = RankedUsers(ratings.ranks, seed, user_keys)
        self._rows: dict[bool, Predictions] = {}

    def blocks(self) -> list[slice]:
        """Cut the users into blocks, as for rankings."""
        return self.ranked.blocks()

    def users(self, block: slice) -> RatedUsers:
        """Return a block of users as views, without copying."""
        ranked = self.ranked.users(block)
        return RatedUsers(self.ratings.users(block), ranked.seed, ranked.user_keys)

    def reasons(self, variant: Variant, number: int) -> tuple[UInt8, bool]:
        """Return each user's first `Reason` (or 0), and whether any user has a reason."""
        rules, definition = variant.rules, variant.metrics[number].definition
        ranks, rows = self.ratings.ranks, self._rows_by(rules)
        result = np.zeros(self.n_users, np.uint8)
        mark(result, rows.n_rows == 0, Reason.NO_RATINGS)
        if not rules.cold_start:
            mark(result, ~raised(ranks.flags, UserFlag.TRAINED), Reason.COLD_START)
        if definition.reads == "gain":
            nan, infinite, too_large = rows.not_finite
            mark(result, nan, Reason.NAN_SCORE)
            mark(result, infinite, Reason.INFINITE_SCORE)
            mark(result, too_large, Reason.GAIN_NOT_FINITE)
        mark_scores(result, ranks.flags, None)
        if definition.needs != "relevant" or rules.no_relevant != "computed":
            meets = _read_by(definition, rows).meets(definition.needs)
            mark(result, ~meets, WITHOUT[definition.needs])
        return result, any_of(result)

    def outside(self, variant: Variant) -> Bool | None:
        """Return a mask of users who do not count towards a mean."""
        return self.ranked.outside(variant)

    def compute(self, variant: Variant) -> Float64:
        """Return the values of the metrics, as float64 [n_users, n_metrics]."""
        definition = variant.metrics[0].definition
        predictions = _read_by(definition, self._rows_by(variant.rules))
        if definition.reads == "relevance":
            predictions = dataclasses.replace(predictions, ranked=self.ranked.groups(variant))
        return variant.values(predictions)

    def together(self, reasons: Mapping[str, UInt8]) -> RatedTogether:
        """Return the rows of all users together, with the reasons for undefined values."""
        return RatedTogether(self._rows_by(Protocol()).finite, reasons)

    def _rows_by(self, rules: Protocol) -> Predictions:
        nan_first = rules.nan_scores == "first"
        if nan_first not in self._rows:
            self._rows[nan_first] = Predictions.of(self.ratings, nan_first=nan_first)
        return self._rows[nan_first]


@dataclasses.dataclass(frozen=True, eq=False)
class RatedTogether:
    """The rows of all users, for metrics with one value over all rows.

    Attributes
    ----------
    predictions
        The rows of users whose ratings and predictions are all finite.
    reasons : mapping of str to uint8 [n_users]
        Reasons from `recometer.measuring.compute.compute`. Users count if their reason is one of
        `reasons.OF_ONE_USER`.
    """

    predictions: Predictions
    reasons: Mapping[str, UInt8]

    @property
    def n_users(self) -> int:
        """Number of users."""
        return self.predictions.n_users

    @property
    def size(self) -> int:
        """The amount of work for one value: the number of rows."""
        return len(self.predictions.user)

    def users(self, chosen: Int64) -> RatedTogether:
        """Return the data of only the given users."""
        reasons = {name: codes[chosen] for name, codes in self.reasons.items()}
        return RatedTogether(self.predictions.take_users(chosen), reasons)

    def for_all(self, metrics: Sequence[Metric], rules: Protocol, weights: Int64 | None) -> Float64:
        """Return each metric's value over all rows; `weights` say how often a user counts."""
        values = np.empty(len(metrics))
        for column, metric in enumerate(metrics):
            counted = np.isin(self.reasons[str(metric)], OF_ONE_USER).astype(np.float64)
            weight = counted if weights is None else counted * weights
            values[column] = metric.compute_over_rows(self.predictions, weight)
        return values


def _read_by(definition: MetricDefinition, rows: Predictions) -> Predictions:
    return rows.finite if definition.reads == "gain" else rows

"""Laws that hold for every metric of predicted ratings, driven by what the registry states."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

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
    RULES,
    Law,
    direction,
    holds,
    law,
    near,
    near_range,
    same_bits,
    values_of,
)
from recometer.testing.rating_cases import RatingCase, rating_cases
from recometer.testing.tie_laws import Kind, random_averages, tie_laws
from recometer.ties import WHOLE, resolve

SLACK = 1e-12
STARS = st.sampled_from([1.0, 2.0, 3.0, 4.0, 5.0])


@law(rating_cases(max_users=MOST_USERS))
def formulas_leave_the_range_by_rounding_only(metrics: Sequence[Metric], case: RatingCase) -> None:
    """Check that a value lies between the bounds that the registry states, before it is cut off."""
    ratings = case.ratings()
    for metric in metrics:
        definition = metric.definition
        predictions = Predictions.of(ratings, nan_first=False)
        if definition.reads == "relevance":
            predictions = dataclasses.replace(predictions, ranked=resolve(ratings.ranks))
        cutoffs = [WHOLE] if metric.cutoff is None else [1, 2, 3, 9]
        raw = metric.at(np.array(cutoffs))(predictions)
        near_range(metric, raw[predictions.has(definition.needs) & (predictions.n_rows > 0)])


@law(rating_cases(max_users=MOST_USERS), st.data())
def items_have_no_names(metrics: Sequence[Metric], case: RatingCase, data: st.DataObject) -> None:
    """Check that other ids for the items change nothing but rounding."""
    name = data.draw(st.permutations(range(case.actual.shape[1])))
    values = _values(case.relabelled(name).ratings(), metrics)
    holds(metrics, near(values, _values(case.ratings(), metrics), SLACK))


@law(rating_cases(max_users=MOST_USERS, predicted=STARS))
def true_ratings_are_the_best_predictions(metrics: Sequence[Metric], case: RatingCase) -> None:
    """Check that nothing beats predicting the true ratings, which are not probabilities."""
    metrics = [metric for metric in metrics if metric.definition.needs != "probabilities"]
    true = np.nan_to_num(case.actual)
    best = _values(dataclasses.replace(case, predicted=true).ratings(), metrics)
    values = _values(case.ratings(), metrics)
    undefined = np.isnan(best) | np.isnan(values)
    holds(metrics, undefined | (direction(metrics) * (best - values) >= -1e-14))


@law(rating_cases(max_users=MOST_USERS))
def without_ties_every_rule_gives_the_same_bits(
    metrics: Sequence[Metric], case: RatingCase
) -> None:
    """Check that rules for ties change nothing where there are none."""
    steps = np.arange(case.actual.shape[1]) / 64
    ratings = dataclasses.replace(case, predicted=case.predicted + steps).ratings()
    expected = _values(ratings, metrics)
    for ties in RULES[1:]:
        holds(metrics, same_bits(_values(ratings, metrics, ties), expected))


def random_averages_to_expected(metrics: Sequence[Metric]) -> None:
    """Check the mean of n draws, which has the standard error s / sqrt(n)."""
    case = RatingCase(
        np.array([[4.0, 4.0, 4.0, 4.0, 2.0, 5.0, 5.0, 1.0]]),
        np.array([[5.0, 1.0, 4.0, 2.0, 4.0, 3.0, 4.0, 1.0]]),
        np.array([3.5]),
    )
    random_averages(RATINGS, metrics, case.ratings())


def _values(
    ratings: Ratings,
    metrics: Sequence[Metric],
    ties: str = "expected",
    user_keys: UInt64 | None = None,
    seed: int = 0,
) -> Float64:
    return values_of(RatedUsers(ratings, seed, user_keys), metrics, Protocol().replace(ties=ties))


RATINGS = Kind(rating_cases, RatingCase.ratings, _values, lambda case: case.predicted, SLACK)
RATING_LAWS: tuple[Law, ...] = (
    formulas_leave_the_range_by_rounding_only,
    items_have_no_names,
    true_ratings_are_the_best_predictions,
    *tie_laws(RATINGS),
    without_ties_every_rule_gives_the_same_bits,
    random_averages_to_expected,
)
"""Every law of metrics of predicted ratings."""

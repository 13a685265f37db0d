"""Laws that hold for every metric of predicted ratings, driven by what the registry states."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from recometer.arrays import Float64, UInt64
from recometer.measuring.compute import compute
from recometer.measuring.rated import RatedUsers
from recometer.metrics import Metric
from recometer.metrics.rated import Predictions
from recometer.protocol import Protocol
from recometer.ranks import Ratings
from recometer.testing._checks import holds, near, same_bits, some_cases
from recometer.testing.rating_cases import RatingCase, rating_cases
from recometer.ties import WHOLE, resolve

Law = Callable[[Sequence[Metric]], None]

SLACK = 1e-12
RULES = ("expected", "optimistic", "pessimistic", "random", "item", "item_desc")
STARS = st.sampled_from([1.0, 2.0, 3.0, 4.0, 5.0])


def formulas_leave_the_range_by_rounding_only(metrics: Sequence[Metric]) -> None:
    """Check that a value lies between the bounds that the registry states, before it is cut off."""

    @some_cases()
    @given(rating_cases())
    def check(case: RatingCase) -> None:
        ratings = case.ratings()
        for metric in metrics:
            definition = metric.definition
            predictions = Predictions.of(ratings, nan_first=False)
            if definition.reads == "relevance":
                predictions = dataclasses.replace(predictions, ranked=resolve(ratings.ranks))
            cutoffs = [WHOLE] if metric.cutoff is None else [1, 2, 3, 9]
            raw = metric.compute(predictions, np.array(cutoffs))
            raw = raw[predictions.has(definition.needs) & (predictions.n_rows > 0)]
            assert (raw >= definition.lower - 1e-14).all(), str(metric)
            assert (raw <= definition.upper + 1e-14).all(), str(metric)

    check()


def items_have_no_names(metrics: Sequence[Metric]) -> None:
    """Check that other ids for the items change nothing but rounding."""

    @some_cases()
    @given(rating_cases(), st.data())
    def check(case: RatingCase, data: st.DataObject) -> None:
        name = data.draw(st.permutations(range(case.actual.shape[1])))
        values = _values(case.relabelled(name).ratings(), metrics)
        holds(metrics, near(values, _values(case.ratings(), metrics), SLACK))

    check()


def a_user_does_not_depend_on_the_others(metrics: Sequence[Metric]) -> None:
    """Check that adding, leaving out and permuting users changes not one bit."""

    @some_cases()
    @given(rating_cases(max_users=4), st.data())
    def check(case: RatingCase, data: st.DataObject) -> None:
        every = list(range(case.n_users))
        chosen = data.draw(st.permutations(every))[: data.draw(st.integers(1, case.n_users))]
        keys = np.arange(case.n_users, dtype=np.uint64)
        for ties in RULES:
            together = _values(case.ratings(), metrics, ties, keys)[chosen]
            alone = _values(case.users(chosen).ratings(), metrics, ties, keys[chosen])
            holds(metrics, same_bits(alone, together))

    check()


def cumulative_equals_separate(metrics: Sequence[Metric]) -> None:
    """Check that what else is computed changes not one bit."""

    @some_cases()
    @given(rating_cases(), st.sampled_from(["expected", "item"]))
    def check(case: RatingCase, ties: str) -> None:
        ratings = case.ratings()
        together = _values(ratings, metrics, ties)
        alone = [_values(ratings, [metric], ties) for metric in metrics]
        holds(metrics, same_bits(np.column_stack(alone), together))

    check()


def true_ratings_are_the_best_predictions(metrics: Sequence[Metric]) -> None:
    """Check that nothing is better than to predict the true ratings."""
    sign = np.array([1.0 if metric.definition.higher_is_better else -1.0 for metric in metrics])

    @some_cases()
    @given(rating_cases(predicted=STARS))
    def check(case: RatingCase) -> None:
        true = np.nan_to_num(case.actual)
        best = _values(dataclasses.replace(case, predicted=true).ratings(), metrics)
        values = _values(case.ratings(), metrics)
        undefined = np.isnan(best) | np.isnan(values)
        holds(metrics, undefined | (sign * (best - values) >= -1e-14))

    check()


def expected_is_the_mean_over_all_orders(metrics: Sequence[Metric]) -> None:
    """Check the expected value against every order of the tied rows, each ranked by itself."""
    metrics = [metric for metric in metrics if metric.definition.averages_ties]

    @some_cases()
    @given(rating_cases(max_users=1))
    def check(case: RatingCase) -> None:
        orders = list(case.orders(0))
        each = case.users([0] * len(orders))
        scores = each.predicted.copy()
        for row, order in enumerate(orders):
            scores[row, order] = -np.arange(len(order), dtype=np.float64)
        mean = _values(each.ratings(scores), metrics).mean(axis=0, keepdims=True)
        holds(metrics, near(_values(case.ratings(), metrics), mean, SLACK))

    check()


def without_ties_every_rule_gives_the_same_bits(metrics: Sequence[Metric]) -> None:
    """Check that rules for ties change nothing where there are none."""

    @some_cases()
    @given(rating_cases())
    def check(case: RatingCase) -> None:
        steps = np.arange(case.actual.shape[1]) / 64
        ratings = dataclasses.replace(case, predicted=case.predicted + steps).ratings()
        expected = _values(ratings, metrics)
        for ties in RULES[1:]:
            holds(metrics, same_bits(_values(ratings, metrics, ties), expected))

    check()


def random_averages_to_expected(metrics: Sequence[Metric]) -> None:
    """Check the mean of n draws, which has the standard error s / sqrt(n)."""
    metrics = [metric for metric in metrics if metric.definition.averages_ties]
    case = RatingCase(
        np.array([[4.0, 4.0, 4.0, 4.0, 2.0, 5.0, 5.0, 1.0]]),
        np.array([[5.0, 1.0, 4.0, 2.0, 4.0, 3.0, 4.0, 1.0]]),
        np.array([3.5]),
    )
    one, n = case.ratings(), 10_000
    many = Ratings.concat([one] * n)
    draws = _values(many, metrics, "random", seed=1)
    error = draws.std(axis=0) / np.sqrt(n)
    # Five standard errors: one in two million by chance, and the seed is fixed.
    expected = _values(one, metrics)
    near = np.abs(draws.mean(axis=0) - expected) <= 5 * error + 1e-12 * (1 + np.abs(expected))
    holds(metrics, near | np.isnan(expected))


RATING_LAWS: tuple[Law, ...] = (
    formulas_leave_the_range_by_rounding_only,
    items_have_no_names,
    a_user_does_not_depend_on_the_others,
    cumulative_equals_separate,
    true_ratings_are_the_best_predictions,
    expected_is_the_mean_over_all_orders,
    without_ties_every_rule_gives_the_same_bits,
    random_averages_to_expected,
)
"""Every law of metrics of predicted ratings."""


def _values(
    ratings: Ratings,
    metrics: Sequence[Metric],
    ties: str = "expected",
    user_keys: UInt64 | None = None,
    seed: int = 0,
) -> Float64:
    """Compute the values of all users, float64 [n_users, n_metrics]."""
    protocol = Protocol().replace(ties=ties)
    values, _ = compute(RatedUsers(ratings, seed, user_keys), metrics, protocol)
    columns = [values[str(metric)] for metric in metrics]
    return np.column_stack(columns) if columns else np.empty((ratings.ranks.n_users, 0))

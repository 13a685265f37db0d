"""Laws of rankings and of predicted ratings alike, under every rule for ties."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from hypothesis import strategies as st

from recometer.arrays import Float64
from recometer.metrics import Metric
from recometer.protocol import TieRule
from recometer.testing._checks import MOST_USERS, RULES, Law, holds, law, near, same_bits


@dataclasses.dataclass(frozen=True)
class Kind:
    """What metrics read in these laws."""

    cases: Callable[..., st.SearchStrategy[Any]]  # takes max_users
    record: Callable[..., Any]  # of a case: what sources hand over; also ranked by other scores
    values: Callable[..., Float64]  # of a record, metrics, ties, user_keys and seed
    scores: Callable[[Any], Float64]  # that a case is ranked by
    slack: float  # of what is equal except for rounding


def tie_laws(kind: Kind) -> tuple[Law, ...]:
    """Return the laws for what metrics of a kind read."""

    @law(kind.cases(min_users=4, max_users=MOST_USERS), st.data())
    def a_user_does_not_depend_on_the_others(
        metrics: Sequence[Metric], case: Any, data: st.DataObject
    ) -> None:
        """Check that adding, leaving out and permuting users changes not one bit."""
        every = data.draw(st.permutations(range(case.n_users)))
        at = data.draw(st.integers(1, case.n_users - 1))
        keys = np.arange(case.n_users, dtype=np.uint64)
        other: TieRule = data.draw(st.sampled_from(RULES))
        rules: tuple[TieRule, ...] = ("expected", "random", other)
        for ties in dict.fromkeys(rules):
            together = kind.values(kind.record(case), metrics, ties, keys)
            for part in (every[:at], every[at:]):
                alone = kind.values(kind.record(case.users(part)), metrics, ties, keys[part])
                holds(metrics, same_bits(alone, together[part]))

    @law(kind.cases(max_users=MOST_USERS), st.sampled_from(["expected", "item"]))
    def cumulative_equals_separate(metrics: Sequence[Metric], case: Any, ties: str) -> None:
        """Check that what else is computed changes not one bit."""
        record = kind.record(case)
        alone = [kind.values(record, [metric], ties) for metric in metrics]
        holds(metrics, same_bits(np.column_stack(alone), kind.values(record, metrics, ties)))

    @law(kind.cases(max_users=1), share=1)
    def expected_is_the_mean_over_all_orders(metrics: Sequence[Metric], case: Any) -> None:
        """Check the expected value against every order of the tied, each ranked by itself."""
        metrics = averaged(metrics)
        orders = list(case.orders(0))
        each = case.users([0] * len(orders))
        scores = kind.scores(each).copy()
        for row, order in enumerate(orders):
            scores[row, order] = -np.arange(len(order), dtype=np.float64)
        mean = kind.values(kind.record(each, scores), metrics).mean(axis=0, keepdims=True)
        holds(metrics, near(kind.values(kind.record(case), metrics), mean, kind.slack))

    return (
        a_user_does_not_depend_on_the_others,
        cumulative_equals_separate,
        expected_is_the_mean_over_all_orders,
    )


def random_averages(kind: Kind, metrics: Sequence[Metric], one: Any) -> None:
    """Check the mean of n draws for a user, which has the standard error s / sqrt(n)."""
    metrics, n = averaged(metrics), 10_000
    draws = kind.values(one.users(np.zeros(n, np.int64)), metrics, "random", seed=1)
    error = draws.std(axis=0) / np.sqrt(n)
    # Five standard errors: one in two million by chance, and the seed is fixed.
    expected = kind.values(one, metrics)
    near = np.abs(draws.mean(axis=0) - expected) <= 5 * error + 1e-12 * (1 + np.abs(expected))
    holds(metrics, near | np.isnan(expected))


def averaged(metrics: Sequence[Metric]) -> list[Metric]:
    """Return the metrics whose value is the mean over the orders of what is tied."""
    return [metric for metric in metrics if metric.definition.averages_ties]

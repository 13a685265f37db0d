"""Shared by laws: the number of cases, comparisons of metric values, and laws about ties.

Values are float64 [n_users, n_metrics].
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from recometer.arrays import Bool, Float64
from recometer.measuring.compute import Measured, compute
from recometer.metrics import Metric
from recometer.protocol import Protocol, TieRule

Law = Callable[[Sequence[Metric]], None]

RULES: tuple[TieRule, ...] = (
    "expected", "optimistic", "pessimistic", "random", "item", "item_desc",
)  # fmt: skip


MOST_USERS = 8
"""Maximum number of users per case in most laws: few large cases cost less than many small ones."""


def law(*drawn: st.SearchStrategy[Any], share: float = 0.5) -> Callable[[Callable[..., None]], Law]:
    """Turn a check that takes metrics and a drawn case into a law that tests many cases.

    `share` scales the number of cases of `some_cases`. The default suits cases of up to
    `MOST_USERS` users.
    """

    def law_of(check: Callable[..., None]) -> Law:
        @functools.wraps(check)
        def holds_always(metrics: Sequence[Metric]) -> None:
            def of_case(case: tuple[Any, ...]) -> None:
                check(metrics, *case)

            of_case.__name__ = check.__name__  # Hypothesis identifies laws by this name
            some_cases(share)(given(st.tuples(*drawn))(of_case))()

        return holds_always

    return law_of


def values_of(measured: Measured, metrics: Sequence[Metric], protocol: Protocol) -> Float64:
    """Compute the values of all users, float64 [n_users, n_metrics]."""
    values, _ = compute(measured, metrics, protocol)
    columns = [values[str(metric)] for metric in metrics]
    return np.column_stack(columns) if columns else np.empty((measured.n_users, 0))


def direction(metrics: Sequence[Metric]) -> Float64:
    """Return 1 for metrics where higher values are better, and -1 for others."""
    return np.array([1.0 if metric.definition.higher_is_better else -1.0 for metric in metrics])


def within_range(metrics: Sequence[Metric], values: Float64) -> None:
    """Check that values are within the bounds that the registry states."""
    lower = [metric.definition.lower for metric in metrics]
    upper = [metric.definition.upper for metric in metrics]
    holds(metrics, np.isnan(values) | ((values >= lower) & (values <= upper)))


def near_range(metric: Metric, raw: Float64) -> None:
    """Check that a formula only exceeds these bounds by rounding."""
    definition = metric.definition
    assert (raw >= definition.lower - 1e-14).all(), str(metric)
    assert (raw <= definition.upper + 1e-14).all(), str(metric)


def holds(metrics: Sequence[Metric], what: Bool) -> None:
    """Assert that a condition holds for all users, or name the metrics that violate it."""
    columns = zip(metrics, what.T, strict=True)
    broken = [str(metric) for metric, column in columns if not column.all()]
    assert not broken, f"The law does not hold for {', '.join(broken)}."


def near(left: Float64, right: Float64, slack: float) -> Bool:
    """Return where two values are equal up to rounding, or both undefined."""
    both_undefined = np.isnan(left) & np.isnan(right)
    return both_undefined | (np.abs(left - right) <= slack * (1 + np.abs(right)))


def same_bits(left: Float64, right: Float64) -> Bool:
    """Return where two values have the same bits."""
    return np.asarray(left.view(np.uint64) == right.view(np.uint64))


def some_cases(share: float = 1) -> settings:
    """Return settings for a law, with a fifth of the cases of the current profile, but at least 6.

    The default of 20 cases suffices, because each case is checked for all metrics and mostly all
    rules for ties. `share` scales the number.
    """
    most = settings.default.max_examples if settings.default else 100
    return settings(deadline=None, max_examples=round(share * max(most // 5, 6)))


@dataclasses.dataclass(frozen=True)
class Kind:
    """A kind of input of metrics, for laws that apply to several kinds."""

    cases: Callable[..., st.SearchStrategy[Any]]  # draws cases; takes max_users
    record: Callable[..., Any]  # makes the input of metrics, optionally ranked by other scores
    values: Callable[..., Float64]  # takes a record, metrics, ties and user_keys
    slack: float  # tolerance for rounding
    scores: Callable[[Any], Float64] | None = None  # the scores that rank a case; None for lists
    same: Callable[[Float64, Float64], Bool] = same_bits


def shared_laws(kind: Kind) -> tuple[Law, ...]:
    """Return the laws that hold for metrics of any kind of input."""

    @law(kind.cases(min_users=4, max_users=MOST_USERS), st.data())
    def a_user_does_not_depend_on_the_others(
        metrics: Sequence[Metric], case: Any, data: st.DataObject
    ) -> None:
        """Check that omitting and permuting users does not change any bit of a value."""
        metrics = [metric for metric in metrics if not metric.definition.over_users]
        every = data.draw(st.permutations(range(case.n_users)))
        at = data.draw(st.integers(1, case.n_users - 1))
        keys = np.arange(case.n_users, dtype=np.uint64)
        rules: tuple[TieRule, ...] = ("expected",)
        if kind.scores is not None:
            rules = ("expected", "random", data.draw(st.sampled_from(RULES)))
        for ties in dict.fromkeys(rules):
            together = kind.values(kind.record(case), metrics, ties, keys)
            for part in (every[:at], every[at:]):
                alone = kind.values(kind.record(case.users(part)), metrics, ties, keys[part])
                holds(metrics, kind.same(alone, together[part]))

    @law(kind.cases(max_users=MOST_USERS), st.sampled_from(["expected", "item"]))
    def cumulative_equals_separate(metrics: Sequence[Metric], case: Any, ties: str) -> None:
        """Check that computing several metrics together does not change any bit of a value."""
        record = kind.record(case)
        alone = [kind.values(record, [metric], ties) for metric in metrics]
        holds(metrics, kind.same(np.column_stack(alone), kind.values(record, metrics, ties)))

    return a_user_does_not_depend_on_the_others, cumulative_equals_separate


def name_law(kind: Kind, without: Sequence[str] = ()) -> Law:
    """Return the law that items have no names, except for some metrics."""

    @law(kind.cases(max_users=MOST_USERS), st.data())
    def items_have_no_names(metrics: Sequence[Metric], case: Any, data: st.DataObject) -> None:
        """Check that renaming items changes nothing except rounding."""
        metrics = [metric for metric in metrics if metric.name not in without]
        renamed = case.relabelled(data.draw(st.permutations(range(case.n_items))))
        values, expected = (kind.values(kind.record(one), metrics) for one in (renamed, case))
        holds(metrics, near(values, expected, kind.slack))

    return items_have_no_names


def tie_laws(kind: Kind) -> tuple[Law, ...]:
    """Return the laws about equal scores."""
    assert kind.scores is not None
    scores_of = kind.scores

    @law(kind.cases(max_users=1), share=1)
    def expected_is_the_mean_over_all_orders(metrics: Sequence[Metric], case: Any) -> None:
        """Check that the expected value is the mean over all orders of tied items."""
        metrics = averaged(metrics)
        orders = list(case.orders(0))
        each = case.users([0] * len(orders))
        scores = scores_of(each).copy()
        for row, order in enumerate(orders):
            scores[row, order] = -np.arange(len(order), dtype=np.float64)
        mean = kind.values(kind.record(each, scores), metrics).mean(axis=0, keepdims=True)
        holds(metrics, near(kind.values(kind.record(case), metrics), mean, kind.slack))

    @law(kind.cases(max_users=MOST_USERS))
    def without_ties_every_rule_gives_the_same_bits(metrics: Sequence[Metric], case: Any) -> None:
        """Check that without ties, all rules for ties give the same bits."""
        order = np.argsort(np.argsort(scores_of(case), axis=1, kind="stable"), axis=1)
        record = kind.record(case, order.astype(np.float64))
        expected = kind.values(record, metrics)
        for ties in RULES[1:]:
            holds(metrics, same_bits(kind.values(record, metrics, ties), expected))

    return expected_is_the_mean_over_all_orders, without_ties_every_rule_gives_the_same_bits


def averaged(metrics: Sequence[Metric]) -> list[Metric]:
    """Return the metrics with values that are means over the orders of tied items."""
    return [metric for metric in metrics if metric.definition.averages_ties]

"""What laws share: how many cases they draw, and how they compare the values of metrics.

Values are float64 [n_users, n_metrics].
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from recometer.arrays import Bool, Float64
from recometer.measuring.compute import compute
from recometer.measuring.measured import Measured
from recometer.metrics import Metric
from recometer.protocol import Protocol, TieRule

Law = Callable[[Sequence[Metric]], None]

RULES: tuple[TieRule, ...] = (
    "expected", "optimistic", "pessimistic", "random", "item", "item_desc",
)  # fmt: skip


MOST_USERS = 8
"""The most users in the cases of most laws: few large cases cost less than many small ones."""


def law(*drawn: st.SearchStrategy[Any], share: float = 0.5) -> Callable[[Callable[..., None]], Law]:
    """Make a law of a check that takes metrics and what is drawn: every case must pass it.

    `share` is of the cases of `some_cases`: half of them where a case has up to `MOST_USERS`.
    """

    def law_of(check: Callable[..., None]) -> Law:
        @functools.wraps(check)
        def holds_always(metrics: Sequence[Metric]) -> None:
            def of_case(case: tuple[Any, ...]) -> None:
                check(metrics, *case)

            of_case.__name__ = check.__name__  # Hypothesis tells laws apart by it
            some_cases(share)(given(st.tuples(*drawn))(of_case))()

        return holds_always

    return law_of


def values_of(measured: Measured, metrics: Sequence[Metric], protocol: Protocol) -> Float64:
    """Compute the values of all users, float64 [n_users, n_metrics]."""
    values, _ = compute(measured, metrics, protocol)
    columns = [values[str(metric)] for metric in metrics]
    return np.column_stack(columns) if columns else np.empty((measured.n_users, 0))


def direction(metrics: Sequence[Metric]) -> Float64:
    """Return 1 for each metric of which more is better, and -1 for the others."""
    return np.array([1.0 if metric.definition.higher_is_better else -1.0 for metric in metrics])


def within_range(metrics: Sequence[Metric], values: Float64) -> None:
    """Check that values lie between the bounds that the registry states."""
    lower = [metric.definition.lower for metric in metrics]
    upper = [metric.definition.upper for metric in metrics]
    holds(metrics, np.isnan(values) | ((values >= lower) & (values <= upper)))


def near_range(metric: Metric, raw: Float64) -> None:
    """Check that what a formula gives leaves these bounds by rounding only."""
    definition = metric.definition
    assert (raw >= definition.lower - 1e-14).all(), str(metric)
    assert (raw <= definition.upper + 1e-14).all(), str(metric)


def holds(metrics: Sequence[Metric], what: Bool) -> None:
    """Check what holds, and name the metrics that break it."""
    columns = zip(metrics, what.T, strict=True)
    broken = [str(metric) for metric, column in columns if not column.all()]
    assert not broken, f"The law does not hold for {', '.join(broken)}."


def near(left: Float64, right: Float64, slack: float) -> Bool:
    """Tell where two values are the same except for rounding, or both undefined."""
    both_undefined = np.isnan(left) & np.isnan(right)
    return both_undefined | (np.abs(left - right) <= slack * (1 + np.abs(right)))


def same_bits(left: Float64, right: Float64) -> Bool:
    """Tell where two values have the same bits; undefined is undefined, whatever the NaN's sign."""
    return np.asarray(left.view(np.uint64) == right.view(np.uint64))


def some_cases(share: float = 1) -> settings:
    """Return settings for a law: a fifth of the cases of the profile in force, and 6 at least.

    A case is checked for all metrics and, mostly, all rules for ties. Without a profile it is 20.
    `share` is of these.
    """
    most = settings.default.max_examples if settings.default else 100
    return settings(deadline=None, max_examples=round(share * max(most // 5, 6)))

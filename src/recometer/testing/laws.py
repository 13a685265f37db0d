"""Laws for metrics of rankings, some of which depend on what the registry says about a metric.

A law takes metrics and raises AssertionError with the names of the metrics that break it.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
from collections.abc import Sequence

import numpy as np

from recometer.arrays import Float64, UInt64
from recometer.errors import UnknownNameError, brief, did_you_mean
from recometer.measuring.ranked import RankedUsers
from recometer.metrics import METRICS, Metric
from recometer.protocol import Protocol
from recometer.ranks import Ranks
from recometer.testing._checks import (
    MOST_USERS,
    RULES,
    Kind,
    Law,
    averaged,
    direction,
    holds,
    law,
    near_range,
    shared_laws,
    tie_laws,
    values_of,
    within_range,
)
from recometer.testing.list_laws import LIST_LAWS
from recometer.testing.rankings import RankingCase, cases, observed, rank, variants
from recometer.testing.rating_laws import RATING_LAWS
from recometer.ties import WHOLE, resolve

# Treat constant scores as ties, since undefined values would hide errors in the formulas.
AS_TIES = Protocol(constant_scores="ties")

SMALL_SETS = (
    (1, math.nan, math.nan, math.nan, math.nan),
    (1, 1, math.nan, math.nan, math.nan),
    (1, 1, 1, 1, math.nan),
    (3, 2, 1, math.nan, 0),
    (2, 2, 0.5, math.nan, math.nan, math.nan),
)


def check_laws(metric: str) -> None:
    """Check all laws for a metric, with each value of its parameters.

    A law draws a tenth of the number of cases in the current Hypothesis profile
    (`hypothesis.settings.load_profile`), 10 by default, each with several users.

    Parameters
    ----------
    metric
        The name of a metric in the registry, which may be your own.

    Raises
    ------
    AssertionError
        If a law is broken. The traceback shows which one, and the case that breaks it.
    """
    if not isinstance(metric, str) or metric not in METRICS:
        hint = "without cut-off and parameters, which are drawn" if "@" in str(metric) else ""
        raise UnknownNameError(
            f"check_laws takes the name of a metric, found {brief(metric)}. "
            f"{f'Hint: {hint}.' if hint else did_you_mean(str(metric), METRICS)}"
        )
    metrics = at_cutoffs(metric, 1, 3, 9)
    of_record = {"ranks": LAWS, "lists": LIST_LAWS, "ratings": RATING_LAWS}
    for each in of_record[METRICS[metric].record]:
        each(metrics)


def at_cutoffs(name: str, *cutoffs: int) -> list[Metric]:
    """Return the metric with each set of parameters, at some cut-offs and perhaps without one."""
    found = []
    for parameters in variants(name):
        definition = METRICS[name].with_parameters(parameters.items())
        some: list[int | None] = [] if definition.cutoff == "none" else [*cutoffs]
        # Metrics that only depend on the set of the first places say nothing without a cut-off.
        if definition.cutoff != "required" and not definition.order_free:
            some.append(None)
        found += [Metric(name, cutoff, tuple(parameters.items())) for cutoff in some]
    return list(dict.fromkeys(found))


@law(cases(max_users=MOST_USERS))
def values_are_within_the_stated_range(metrics: Sequence[Metric], case: RankingCase) -> None:
    """Check that values are within the bounds that the registry states."""
    ranks = case.ranks()
    for ties in RULES:
        within_range(metrics, _values(ranks, metrics, ties))


@law(cases(max_users=MOST_USERS))
def formulas_leave_the_range_by_rounding_only(metrics: Sequence[Metric], case: RankingCase) -> None:
    """Check that formulas, before clipping, only exceed these bounds by rounding."""
    ranks = case.ranks()
    for metric in metrics:
        definition = metric.definition
        if definition.needs_candidates:
            continue  # the formula is meaningless for users without candidates
        cutoffs = [WHOLE] if metric.cutoff is None else [1, 2, 3, 9]
        raw = metric.at(np.array(cutoffs))(resolve(ranks, by=definition.reads))
        near_range(metric, raw[~np.isnan(raw)] if definition.may_be_nan else raw)


def monotone_where_so_declared(metrics: Sequence[Metric]) -> None:
    """Check that no value falls if an item changes places with a worse item above it.

    Best first is therefore the best order, and best last the worst.
    """
    metrics = [metric for metric in metrics if metric.definition.monotone]
    sign = direction(metrics)
    for gains in SMALL_SETS:
        ranks, in_order = _all_orders(gains)
        values = _values(ranks, metrics)
        number = {tuple(order): row for row, order in enumerate(in_order.tolist())}
        pairs = []
        for order, row in number.items():
            for above, below in itertools.combinations(range(len(order)), 2):
                if order[above] < order[below]:
                    better = list(order)
                    better[above], better[below] = better[below], better[above]
                    pairs.append((row, number[tuple(better)]))
        before, after = np.array(pairs).T
        change = sign * (values[after] - values[before])
        holds(metrics, np.isnan(change) | (change >= -1e-15 * (1 + np.abs(values[after]))))


def order_within_the_cutoff_does_not_matter_where_so_declared(metrics: Sequence[Metric]) -> None:
    """Check that values only depend on which items are in the first places."""
    metrics = [metric for metric in metrics if metric.definition.order_free]
    for gains in SMALL_SETS:
        ranks, in_order = _all_orders(gains)
        values = _values(ranks, metrics)
        for column, metric in enumerate(metrics):
            found: dict[tuple[float, ...], float] = {}
            for order, value in zip(in_order.tolist(), values[:, column].tolist(), strict=True):
                first = found.setdefault(tuple(sorted(order[: metric.cutoff])), value)
                assert math.isnan(value) or math.isclose(value, first, abs_tol=1e-15), str(metric)


@law(cases(max_users=MOST_USERS))
def expected_lies_between_pessimistic_and_optimistic(
    metrics: Sequence[Metric], case: RankingCase
) -> None:
    """Check that the mean over the orders of tied items is between the extreme values."""
    metrics = [metric for metric in averaged(metrics) if metric.definition.monotone]
    ranks = case.ranks()
    worst, value, best = (
        direction(metrics) * _values(ranks, metrics, ties)
        for ties in ("pessimistic", "expected", "optimistic")
    )
    slack = 1e-14 * (1 + np.abs(value))
    between = (worst <= value + slack) & (value <= best + slack) & (worst <= best)
    holds(metrics, np.isnan(value) | between)


def _values(
    ranks: Ranks,
    metrics: Sequence[Metric],
    ties: str = "expected",
    user_keys: UInt64 | None = None,
) -> Float64:
    return values_of(RankedUsers(ranks, 0, user_keys), metrics, AS_TIES.replace(ties=ties))


def _ranks(case: RankingCase, scores: Float64 | None = None) -> Ranks:
    return (case if scores is None else dataclasses.replace(case, scores=scores)).ranks()


RANKINGS = Kind(cases, _ranks, _values, 1e-13, lambda case: case.scores)
LAWS: tuple[Law, ...] = (
    values_are_within_the_stated_range,
    formulas_leave_the_range_by_rounding_only,
    monotone_where_so_declared,
    order_within_the_cutoff_does_not_matter_where_so_declared,
    *shared_laws(RANKINGS),
    *tie_laws(RANKINGS),
    expected_lies_between_pessimistic_and_optimistic,
)
"""Every law."""


@functools.cache
def _all_orders(gains: tuple[float, ...]) -> tuple[Ranks, Float64]:
    """Rank these items in every possible order, with a user for each order.

    Return the ranks, and the gains in ranked order, [n_users, n_items].
    """
    orders = np.array(list(itertools.permutations(range(len(gains)))))
    scores = np.empty(orders.shape)
    np.put_along_axis(scores, orders, -np.arange(len(gains), dtype=np.float64)[None, :], axis=1)
    gains_of_users = np.tile(gains, (len(orders), 1))
    return observed(rank(scores, gains_of_users)), np.nan_to_num(np.array(gains)[orders])

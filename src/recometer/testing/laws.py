"""Laws that hold for every metric, driven by what the registry states of each.

A law takes metrics and raises AssertionError with the names of those that break it.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
from collections.abc import Callable, Iterable, Sequence

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from recometer.arrays import Float64, UInt64
from recometer.measuring.compute import compute
from recometer.measuring.ranked import RankedUsers
from recometer.metrics import METRICS, Metric
from recometer.protocol import Protocol, TieRule
from recometer.ranks import Ranks
from recometer.testing._checks import holds, same_bits, some_cases
from recometer.testing.list_laws import LIST_LAWS
from recometer.testing.rankings import Case, cases, copies, observed, rank, variants
from recometer.testing.rating_laws import RATING_LAWS
from recometer.ties import WHOLE, resolve

RULES: tuple[TieRule, ...] = (
    "expected", "optimistic", "pessimistic", "random", "item", "item_desc",
)  # fmt: skip
# What is undefined would hide what the formulas do.
AS_TIES = Protocol(constant_scores="ties")

SMALL_SETS = (
    (1, math.nan, math.nan, math.nan, math.nan),
    (1, 1, math.nan, math.nan, math.nan),
    (1, 1, 1, 1, math.nan),
    (3, 2, 1, math.nan, 0),
    (2, 2, 0.5, math.nan, math.nan, math.nan),
)


def check_laws(metric: str) -> None:
    """Check all laws for a metric, with every single value of its parameters.

    A law draws a fifth of as many cases as the Hypothesis profile in force says
    (`hypothesis.settings.load_profile`), 20 by default.

    Parameters
    ----------
    metric
        The name of a metric in the registry: one of your own, for instance.

    Raises
    ------
    AssertionError
        A law is broken; the traceback shows which, and by what.
    """
    metrics = at_cutoffs(metric, 1, 3, 9)
    of_record = {"ranks": LAWS, "lists": LIST_LAWS, "ratings": RATING_LAWS}
    for law in of_record[METRICS[metric].record]:
        law(metrics)


def at_cutoffs(name: str, *cutoffs: int) -> list[Metric]:
    """Return the metric with its parameters, at some cut-offs and without one, as it takes them."""
    found = []
    for parameters in variants(name):
        definition = METRICS[name].given(parameters.items())
        some: list[int | None] = [] if definition.cutoff == "none" else [*cutoffs]
        # Where only the set of the first places matters, the whole ranking says nothing.
        if definition.cutoff != "required" and not definition.order_free:
            some.append(None)
        found += [Metric(name, cutoff, tuple(parameters.items())) for cutoff in some]
    return list(dict.fromkeys(found))


def values_are_within_the_stated_range(metrics: Sequence[Metric]) -> None:
    """Check that a value lies between the bounds that the registry states."""
    lower = [metric.definition.lower for metric in metrics]
    upper = [metric.definition.upper for metric in metrics]

    @some_cases()
    @given(cases())
    def check(case: Case) -> None:
        ranks = case.ranks()
        for ties in RULES:
            values = _values(ranks, metrics, ties)
            holds(metrics, np.isnan(values) | ((values >= lower) & (values <= upper)))

    check()


def formulas_leave_the_range_by_rounding_only(metrics: Sequence[Metric]) -> None:
    """Check the same before values are cut off at their bounds."""

    @some_cases()
    @given(cases())
    def check(case: Case) -> None:
        ranks = case.ranks()
        for metric in metrics:
            definition = metric.definition
            if definition.needs_candidates:
                continue  # the formula alone says nothing of users without candidates
            cutoffs = [WHOLE] if metric.cutoff is None else [1, 2, 3, 9]
            groups = resolve(ranks, by=definition.reads)
            raw = metric.compute(groups, np.array(cutoffs))
            if definition.may_be_nan:
                raw = raw[~np.isnan(raw)]
            assert (raw >= definition.lower - 1e-14).all(), str(metric)
            assert (raw <= definition.upper + 1e-14).all(), str(metric)

    check()


def perfect_order_is_unbeaten_and_worst_order_beats_none(metrics: Sequence[Metric]) -> None:
    """Check that no order is better than best first, and none worse than best last."""
    metrics = [metric for metric in metrics if metric.definition.monotone]
    sign = _direction(metrics)
    for gains in SMALL_SETS:
        ranks, in_order = _all_orders(gains)
        values = sign * _values(ranks, metrics)
        perfect = (np.diff(in_order, axis=1) <= 0).all(axis=1)
        worst = (np.diff(in_order, axis=1) >= 0).all(axis=1)
        for rows, extreme in ((perfect, values.max(axis=0)), (worst, values.min(axis=0))):
            same = np.isnan(values[rows]) | (np.abs(values[rows] - extreme) <= 1e-15)
            holds(metrics, same)


def monotone_where_so_declared(metrics: Sequence[Metric]) -> None:
    """Check that no value gets worse when an item trades places with a worse one above it."""
    metrics = [metric for metric in metrics if metric.definition.monotone]
    sign = _direction(metrics)
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
    """Check that only which items are in the first places counts."""
    metrics = [metric for metric in metrics if metric.definition.order_free]
    for gains in SMALL_SETS:
        ranks, in_order = _all_orders(gains)
        values = _values(ranks, metrics)
        for column, metric in enumerate(metrics):
            found: dict[tuple[float, ...], float] = {}
            for order, value in zip(in_order.tolist(), values[:, column].tolist(), strict=True):
                first = found.setdefault(tuple(sorted(order[: metric.cutoff])), value)
                assert math.isnan(value) or math.isclose(value, first, abs_tol=1e-15), str(metric)


def a_user_does_not_depend_on_the_others(metrics: Sequence[Metric]) -> None:
    """Check that adding, leaving out and permuting users changes not one bit."""

    @some_cases()
    @given(cases(max_users=4), st.data())
    def check(case: Case, data: st.DataObject) -> None:
        every = list(range(case.n_users))
        chosen = data.draw(st.permutations(every))[: data.draw(st.integers(1, case.n_users))]
        keys = np.arange(case.n_users, dtype=np.uint64)
        for ties in RULES:
            together = _values(case.ranks(), metrics, ties, keys)[chosen]
            alone = _values(case.users(chosen).ranks(), metrics, ties, keys[chosen])
            holds(metrics, same_bits(alone, together))

    check()


def cumulative_equals_separate(metrics: Sequence[Metric]) -> None:
    """Check that what else is computed changes not one bit."""

    @some_cases()
    @given(cases(), st.sampled_from(["expected", "item"]))
    def check(case: Case, ties: str) -> None:
        ranks = case.ranks()
        together = _values(ranks, metrics, ties)
        alone = [_values(ranks, [metric], ties) for metric in metrics]
        holds(metrics, same_bits(np.column_stack(alone), together))

    check()


def expected_lies_between_pessimistic_and_optimistic(metrics: Sequence[Metric]) -> None:
    """Check that the mean over the orders of tied items lies between the extreme ones."""
    metrics = [
        metric
        for metric in metrics
        if metric.definition.monotone and metric.definition.averages_ties
    ]
    sign = _direction(metrics)

    @some_cases()
    @given(cases())
    def check(case: Case) -> None:
        ranks = case.ranks()
        worst, value, best = (
            sign * _values(ranks, metrics, ties)
            for ties in ("pessimistic", "expected", "optimistic")
        )
        slack = 1e-14 * (1 + np.abs(value))
        between = (worst <= value + slack) & (value <= best + slack) & (worst <= best)
        holds(metrics, np.isnan(value) | between)

    check()


def expected_is_the_mean_over_all_orders(metrics: Sequence[Metric]) -> None:
    """Check the expected value against every order of the tied items, each ranked by itself."""
    metrics = [metric for metric in metrics if metric.definition.averages_ties]

    @some_cases()
    @given(cases(max_users=1))
    def check(case: Case) -> None:
        orders = list(case.orders(0))
        each = case.users([0] * len(orders))
        scores = each.scores.copy()
        for row, order in enumerate(orders):
            scores[row, order] = -np.arange(len(order), dtype=np.float64)
        each = dataclasses.replace(each, scores=scores)
        mean = _values(each.ranks(), metrics).mean(axis=0)
        expected = _values(case.ranks(), metrics)[0]
        near = np.abs(expected - mean) <= 1e-13 * (1 + np.abs(mean))
        holds(metrics, (near | (np.isnan(expected) & np.isnan(mean)))[np.newaxis])

    check()


def without_ties_every_rule_gives_the_same_bits(metrics: Sequence[Metric]) -> None:
    """Check that rules for ties change nothing where there are none."""

    @some_cases()
    @given(cases())
    def check(case: Case) -> None:
        order = np.argsort(np.argsort(case.scores, axis=1, kind="stable"), axis=1)
        ranks = dataclasses.replace(case, scores=order.astype(np.float64)).ranks()
        expected = _values(ranks, metrics)
        for ties in RULES[1:]:
            holds(metrics, same_bits(_values(ranks, metrics, ties), expected))

    check()


def random_averages_to_expected(metrics: Sequence[Metric]) -> None:
    """Check the mean of n draws, which has the standard error s / sqrt(n)."""
    metrics = [metric for metric in metrics if metric.definition.averages_ties]
    nan = math.nan
    scores, gains = [5, 5, 5, 5, 2, 1, 1, 1, 1, 1], [nan, 2, nan, 1, 1, nan, -1, 3, nan, 0]
    ranks = observed(rank(scores, gains))
    draws = _values(copies(ranks, 10_000), metrics, "random", seed=1)
    error = draws.std(axis=0) / np.sqrt(len(draws))
    # Five standard errors: one in two million by chance, and the seed is fixed.
    expected = _values(ranks, metrics)
    near = np.abs(draws.mean(axis=0) - expected) <= 5 * error + 1e-12 * (1 + np.abs(expected))
    holds(metrics, near | np.isnan(expected))


Law = Callable[[Sequence[Metric]], None]
LAWS: tuple[Law, ...] = (
    values_are_within_the_stated_range,
    formulas_leave_the_range_by_rounding_only,
    perfect_order_is_unbeaten_and_worst_order_beats_none,
    monotone_where_so_declared,
    order_within_the_cutoff_does_not_matter_where_so_declared,
    a_user_does_not_depend_on_the_others,
    cumulative_equals_separate,
    expected_lies_between_pessimistic_and_optimistic,
    expected_is_the_mean_over_all_orders,
    without_ties_every_rule_gives_the_same_bits,
    random_averages_to_expected,
)
"""Every law."""


def _values(
    ranks: Ranks,
    metrics: Sequence[Metric],
    ties: str = "expected",
    user_keys: UInt64 | None = None,
    seed: int = 0,
) -> Float64:
    """Compute the values of all users, float64 [n_users, n_metrics]."""
    ranked = RankedUsers(ranks, seed, user_keys)
    values, _ = compute(ranked, metrics, AS_TIES.replace(ties=ties))
    columns = [values[str(metric)] for metric in metrics]
    return np.column_stack(columns) if columns else np.empty((ranks.n_users, 0))


def _direction(metrics: Iterable[Metric]) -> Float64:
    return np.array([1.0 if metric.definition.higher_is_better else -1.0 for metric in metrics])


@functools.cache
def _all_orders(gains: tuple[float, ...]) -> tuple[Ranks, Float64]:
    """Return a user for each order in which these items can be ranked.

    Returns the ranks, and the gains in ranked order, [n_users, n_items].
    """
    orders = np.array(list(itertools.permutations(range(len(gains)))))
    scores = np.empty(orders.shape)
    np.put_along_axis(scores, orders, -np.arange(len(gains), dtype=np.float64)[None, :], axis=1)
    gains_of_users = np.tile(gains, (len(orders), 1))
    return observed(rank(scores, gains_of_users)), np.nan_to_num(np.array(gains)[orders])

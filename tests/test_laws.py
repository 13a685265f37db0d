"""Laws that hold for every metric, driven by what the registry states of each."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recometer.metrics import Metric, parse, reading
from recometer.metrics.undefined import compute
from recometer.protocol import Protocol
from recometer.ranks import Ranks
from recometer.testing import cases, copies, rank
from recometer.ties import WHOLE, resolve

METRICS = reading("ranks")

RULES = ("expected", "optimistic", "pessimistic", "random", "item", "item_desc")
# What is undefined would hide what the formulas do.
AS_TIES = Protocol(constant_scores="ties")


def at_cutoffs(name: str, *cutoffs: int) -> list[Metric]:
    """The metric at some cut-offs and without one, as far as it takes them."""
    definition = METRICS[name]
    found = [] if definition.cutoff == "none" else [Metric(name, cutoff) for cutoff in cutoffs]
    # Where only the set of the first places matters, the whole ranking says nothing.
    if definition.cutoff != "required" and not definition.order_free:
        found.append(Metric(name))
    return found


every_metric = pytest.mark.parametrize("name", METRICS)
EVERY = [metric for name in METRICS for metric in at_cutoffs(name, 1, 2, 3, 9)]


def values_of(ranks: Ranks, metrics: list[Metric], ties: str = "expected", **more):
    """Values of all users, float64 [n_users, n_metrics]."""
    values, _ = compute(ranks, metrics, AS_TIES.replace(ties=ties), **more)
    return np.column_stack([values[str(metric)] for metric in metrics])


def holds(what: np.ndarray) -> None:
    """Check a law, [n_users, n_metrics], and name the metrics that break it."""
    broken = [str(metric) for metric, column in zip(EVERY, what.T, strict=True) if not column.all()]
    assert not broken


@functools.cache
def all_orders(gains: tuple[float, ...]) -> tuple[Ranks, np.ndarray]:
    """A user for each order in which these items can be ranked.

    Returns the ranks, and the gains in ranked order, [n_users, n_items].
    """
    orders = np.array(list(itertools.permutations(range(len(gains)))))
    scores = np.empty(orders.shape)
    np.put_along_axis(scores, orders, -np.arange(len(gains), dtype=np.float64)[None, :], axis=1)
    gains_of_users = np.tile(gains, (len(orders), 1))
    return rank(scores, gains_of_users), np.nan_to_num(np.array(gains)[orders])


SMALL_SETS = [
    (1, math.nan, math.nan, math.nan, math.nan),
    (1, 1, math.nan, math.nan, math.nan),
    (1, 1, 1, 1, math.nan),
    (3, 2, 1, math.nan, 0),
    (2, 2, 0.5, math.nan, math.nan, math.nan),
]


@settings(deadline=None)
@given(cases())
def test_values_are_within_the_stated_range(case):
    ranks = case.ranks()
    lower = [metric.definition.lower for metric in EVERY]
    upper = [metric.definition.upper for metric in EVERY]
    for ties in RULES:
        values = values_of(ranks, EVERY, ties)
        holds(np.isnan(values) | ((values >= lower) & (values <= upper)))


@settings(deadline=None)
@given(cases())
def test_formulas_leave_the_range_by_rounding_only(case):
    """Before values are cut off at their bounds, that is."""
    ranks = case.ranks()
    groups = {by: resolve(ranks, by=by) for by in ("relevance", "gain")}
    for name, definition in METRICS.items():
        raw = definition.function(groups[definition.reads], np.array([1, 2, 3, 9, WHOLE]))
        assert (raw >= definition.lower - 1e-14).all(), name
        assert (raw <= definition.upper + 1e-14).all(), name


@every_metric
@pytest.mark.parametrize("gains", SMALL_SETS)
def test_perfect_order_is_unbeaten_and_worst_order_beats_none(name, gains):
    ranks, in_order = all_orders(gains)
    values = values_of(ranks, at_cutoffs(name, 1, 2, 3, 4))
    perfect = (np.diff(in_order, axis=1) <= 0).all(axis=1)
    worst = (np.diff(in_order, axis=1) >= 0).all(axis=1)
    best_value, worst_value = values.max(axis=0), values.min(axis=0)
    if not METRICS[name].higher_is_better:
        best_value, worst_value = worst_value, best_value
    np.testing.assert_array_equal(values[perfect], np.tile(best_value, (perfect.sum(), 1)))
    np.testing.assert_array_equal(values[worst], np.tile(worst_value, (worst.sum(), 1)))


@pytest.mark.parametrize("name", [name for name in METRICS if METRICS[name].monotone])
@pytest.mark.parametrize("gains", SMALL_SETS)
def test_monotone_where_so_declared(name, gains):
    """Whenever an item trades places with a worse one above it, the value does not fall."""
    ranks, in_order = all_orders(gains)
    values = values_of(ranks, at_cutoffs(name, 1, 2, 3, 4))
    sign = 1 if METRICS[name].higher_is_better else -1
    by_order = {tuple(order): value for order, value in zip(in_order, values, strict=True)}
    for order, value in by_order.items():
        for above, below in itertools.combinations(range(len(order)), 2):
            if order[above] < order[below]:
                better = list(order)
                better[above], better[below] = better[below], better[above]
                assert (sign * (by_order[tuple(better)] - value) >= -1e-15).all()


@pytest.mark.parametrize("name", [name for name in METRICS if METRICS[name].cutoff != "none"])
@pytest.mark.parametrize("gains", SMALL_SETS)
def test_order_within_the_cutoff_matters_unless_so_declared(name, gains):
    ranks, in_order = all_orders(gains)
    values = values_of(ranks, [Metric(name, 3)])[:, 0]
    found: dict[tuple[float, ...], set[float]] = {}
    for order, value in zip(in_order, values, strict=True):
        found.setdefault(tuple(sorted(order[:3])), set()).add(value)
    same = all(len(seen) == 1 for seen in found.values())
    if METRICS[name].order_free:
        assert same
    elif sum(gain > 0 for gain in gains) in (1, 2):
        assert not same


@pytest.mark.parametrize("ties", RULES)
@settings(deadline=None)
@given(case=cases(max_users=4), data=st.data())
def test_a_user_does_not_depend_on_the_others(ties, case, data):
    """Adding, leaving out and permuting users changes not one bit."""
    chosen = data.draw(st.permutations(range(case.n_users)))
    chosen = chosen[: data.draw(st.integers(1, case.n_users))]
    keys = np.arange(case.n_users, dtype=np.uint64)
    together = values_of(case.ranks(), EVERY, ties, user_keys=keys)[chosen]
    alone = values_of(case.users(chosen).ranks(), EVERY, ties, user_keys=keys[chosen])
    holds(same_bits(alone, together))


@pytest.mark.parametrize("ties", ["expected", "item"])
@settings(deadline=None)
@given(case=cases())
def test_cumulative_equals_separate(ties, case):
    ranks = case.ranks()
    names = " ".join(f"{name}@1..7" for name in METRICS if METRICS[name].cutoff != "none")
    together, _ = compute(ranks, parse(names), AS_TIES.replace(ties=ties))
    for name, values in together.items():
        alone, _ = compute(ranks, parse(name), AS_TIES.replace(ties=ties))
        assert alone[name].tobytes() == values.tobytes(), name


@settings(deadline=None)
@given(cases())
def test_expected_lies_between_pessimistic_and_optimistic(case):
    ranks = case.ranks()
    worst, value, best = (
        values_of(ranks, EVERY, ties) for ties in ("pessimistic", "expected", "optimistic")
    )
    low, high = np.fmin(worst, best), np.fmax(worst, best)
    holds(np.isnan(value) | ((low <= value + 1e-14) & (value <= high + 1e-14)))
    sign = np.array([1 if metric.definition.higher_is_better else -1 for metric in EVERY])
    holds(np.isnan(value) | (sign * (best - worst) >= 0))


@settings(deadline=None)
@given(cases())
def test_without_ties_every_rule_gives_the_same_bits(case):
    order = np.argsort(np.argsort(case.scores, axis=1, kind="stable"), axis=1)
    ranks = dataclasses.replace(case, scores=order.astype(np.float64)).ranks()
    expected = values_of(ranks, EVERY)
    for ties in RULES:
        holds(same_bits(values_of(ranks, EVERY, ties), expected))


def same_bits(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    return left.view(np.uint64) == right.view(np.uint64)


def test_random_averages_to_expected():
    """The mean of n draws has the standard error s / sqrt(n)."""
    nan = math.nan
    ranks = rank([5, 5, 5, 5, 2, 1, 1, 1, 1, 1], [nan, 2, nan, 1, 1, nan, -1, 3, nan, nan])
    draws = values_of(copies(ranks, 20_000), EVERY, "random", seed=1)
    error = draws.std(axis=0) / np.sqrt(len(draws))
    # Five standard errors: one in two million by chance, and the seed is fixed.
    holds(np.abs(draws.mean(axis=0) - values_of(ranks, EVERY)) <= 5 * error + 1e-12)

"""Every ranking metric agrees with its definition on random rankings, for every order of ties."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence

import numpy as np
import pytest
from definitions import by_definition, judged_gains, mean_over_orders
from drawn_metrics import metrics
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from measured import compute, record_users

import recometer as rm
from recometer.metrics import Metric, reading
from recometer.testing import RankingCase, cases, observed, rank, variants
from recometer.ties import WHOLE, resolve

METRICS = reading("ranks")

# Under this protocol, values are means over the orders of ties, even if all candidates are tied.
AS_TIES = rm.Protocol(constant_scores="ties")

RELEVANT_FROM = st.sampled_from([None, "not_zero", 0.0, 1.0])
NEGATIVE_GAINS = st.sampled_from(["zero", "counted"])

EVERY_METRIC = [
    Metric(name, cutoff, tuple(parameters.items()))
    for name in METRICS
    for parameters in variants(name)
    for cutoff in (None, 1, 2, 4, 7)
    if METRICS[name].with_parameters(parameters.items()).cutoff
    in (("none", "optional") if cutoff is None else ("required", "optional"))
]
AVERAGED = [metric for metric in EVERY_METRIC if metric.definition.averages_ties]


def one_order(case: RankingCase) -> RankingCase:
    """Break all ties by item."""
    order = np.argsort(np.argsort(-case.scores, axis=1, kind="stable"), axis=1)
    return RankingCase(-order.astype(np.float64), case.gains, case.excluded, case.unranked)


def enough(case: RankingCase, user: int) -> bool:
    """Return whether the user has at least two candidates, the minimum for a ranking."""
    return len(next(iter(case.orders(user)))) >= 2


def nearly_equal(value: float, expected: float, rel: float, least: float) -> bool:
    """Compare numbers as pytest.approx would, without taking half of the test's running time."""
    if math.isnan(expected):
        return math.isnan(value)
    return abs(value - expected) <= max(rel * abs(expected), least) or value == expected


@given(cases(max_items=8), RELEVANT_FROM, NEGATIVE_GAINS)
def test_values_without_ties_match_definitions(case, relevant_from, negative_gains):
    case = one_order(case)
    rules = {"relevant_from": relevant_from, "negative_gains": negative_gains}
    ranks = case.ranks(relevant_from=relevant_from)
    values, _ = compute(record_users(ranks), EVERY_METRIC, AS_TIES.replace(**rules))
    for user in range(case.n_users):
        (order,) = case.orders(user)
        ranked, judged = enough(case, user), judged_gains(case, user)
        n_excluded = int(case.excluded[user].sum())
        for metric in EVERY_METRIC:
            expected = math.nan
            if ranked:
                expected = by_definition(metric, order, judged, n_excluded=n_excluded, **rules)
            actual = values[str(metric)][user]
            assert nearly_equal(actual, expected, 1e-14, 1e-14), (
                f"{metric}: {actual}, not {expected}"
            )


@given(cases(max_users=2), RELEVANT_FROM, NEGATIVE_GAINS)
def test_expected_value_is_the_mean_over_all_orders(case, relevant_from, negative_gains):
    rules = {"relevant_from": relevant_from, "negative_gains": negative_gains}
    ranks = case.ranks(relevant_from=relevant_from)
    values, _ = compute(record_users(ranks), AVERAGED, AS_TIES.replace(**rules))
    for user in range(case.n_users):
        ranked = enough(case, user)
        for metric in AVERAGED:
            expected = math.nan
            if ranked:
                expected = mean_over_orders(metric, case, user, **rules)
            actual = values[str(metric)][user]
            assert nearly_equal(actual, expected, 1e-12, 1e-12), (
                f"{metric}: {actual}, not {expected}"
            )


@pytest.mark.parametrize("relevant", [1, 3, 6])
def test_expected_value_of_six_tied_items_is_the_mean_over_orders(relevant):
    gains = np.full((1, 8), np.nan)
    gains[0, 1 : 1 + relevant] = np.arange(relevant) // 2 + 1.0
    gains[0, 7] = 2.0
    no_items = np.zeros((1, 8), bool)
    case = RankingCase(np.array([[2.0, 1, 1, 1, 1, 1, 1, 0]]), gains, no_items, no_items)
    metrics = [metric for metric in AVERAGED if metric.cutoff in (None, 2, 4)]
    values, _ = compute(record_users(case.ranks()), metrics, rm.Protocol())
    for metric in metrics:
        expected = mean_over_orders(metric, case, 0)
        assert values[str(metric)][0] == pytest.approx(
            expected, rel=1e-13, abs=1e-15, nan_ok=True
        ), str(metric)


Ranking = tuple[tuple[float | None, ...], ...]
"""The gains of the items in each group of ties, best group first; None for unjudged items."""


def every_ranking(n: int, gains: Sequence[float | None]) -> Iterator[Ranking]:
    if n == 0:
        yield ()
    for size in range(1, n + 1):
        for group in itertools.combinations_with_replacement(gains, size):
            yield from ((group, *rest) for rest in every_ranking(n - size, gains))


def one_item_first(ranking: Ranking) -> list[Ranking]:
    """For each item in the first tie group, return the ranking in which it precedes the others."""
    number = next(number for number, group in enumerate(ranking) if len(group) > 1)
    before, group, after = ranking[:number], ranking[number], ranking[number + 1 :]
    return [(*before, (item,), group[:i] + group[i + 1 :], *after) for i, item in enumerate(group)]


@pytest.mark.parametrize(("n", "gains"), [(6, (None, 1.0)), (4, (None, 1.0, 3.0, -1.0))])
def test_value_of_a_tie_group_averages_over_its_first_item(n, gains):
    """In all small rankings, the value is the mean over all choices of a tie group's first item."""
    rankings = list(every_ranking(n, gains))
    number = {ranking: row for row, ranking in enumerate(rankings)}
    scores = [
        [-place for place, group in enumerate(ranking) for _ in group] for ranking in rankings
    ]
    ranks = observed(
        rank(scores, [[gain for group in ranking for gain in group] for ranking in rankings])
    )
    tied = [row for row, ranking in enumerate(rankings) if max(map(len, ranking)) > 1]
    parts = [[number[part] for part in one_item_first(rankings[row])] for row in tied]
    count = np.array([len(part) for part in parts])
    for metric in AVERAGED:
        if metric.cutoff not in (None, 2):
            continue
        cutoffs = np.array([WHOLE] if metric.cutoff is None else range(1, n + 2))
        values = metric.definition.function(
            resolve(ranks, by=metric.definition.reads), cutoffs, **dict(metric.parameters)
        )
        actual = values[np.concatenate(parts)]
        mean = np.add.reduceat(actual, np.cumsum(count) - count) / count[:, np.newaxis]
        np.testing.assert_allclose(values[tied], mean, rtol=1e-12, atol=1e-13, err_msg=str(metric))


@examples(2)
@given(cases(max_users=2, max_items=4), metrics())
def test_value_under_each_other_tie_rule_occurs_in_some_order(case, metric):
    values = {
        rule: compute(record_users(case.ranks(), 4), [metric], AS_TIES.replace(ties=rule))[0][
            str(metric)
        ]
        for rule in ("expected", "optimistic", "pessimistic", "random", "item", "item_desc")
    }
    for user in range(case.n_users):
        all_values = [
            by_definition(
                metric, order, judged_gains(case, user), n_excluded=int(case.excluded[user].sum())
            )
            for order in case.orders(user)
        ]
        if not enough(case, user) or math.isnan(all_values[0]):
            assert all(math.isnan(column[user]) for column in values.values())
            continue
        if metric.definition.monotone:
            ends = min(all_values), max(all_values)
            worst, best = ends if metric.definition.higher_is_better else ends[::-1]
            assert values["optimistic"][user] == pytest.approx(best, rel=1e-14, abs=1e-15)
            assert values["pessimistic"][user] == pytest.approx(worst, rel=1e-14, abs=1e-15)
        for rule in ("optimistic", "pessimistic", "random", "item", "item_desc"):
            assert min(abs(values[rule][user] - value) for value in all_values) < 1e-14

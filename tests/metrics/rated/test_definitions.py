"""Every rating metric agrees with its definition on random rows, for every order of ties."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from measured import compute, record_users
from rating_definitions import in_order, rating_by_definition, rating_mean_over_orders

import recometer as rm
from recometer.metrics import Metric, reading
from recometer.testing import at_cutoffs, rating_cases

EVERY = [variant for name in reading("ratings") for variant in at_cutoffs(name, 1, 2, 4, 9)]


def computed(case, ties):
    values, _ = compute(record_users(case.ratings()), EVERY, rm.Protocol(ties=ties))
    return values


@given(rating_cases())
def test_expected_value_is_the_mean_over_all_orders(case):
    values = computed(case, "expected")
    for user in range(case.n_users):
        for metric in EVERY:
            expected = rating_mean_over_orders(metric, case, user)
            assert values[str(metric)][user] == pytest.approx(
                expected, rel=1e-12, abs=1e-12, nan_ok=True
            ), str(metric)


@given(rating_cases(max_users=2, max_items=4))
def test_value_under_each_other_tie_rule_occurs_in_some_order(case):
    rules = ("optimistic", "pessimistic", "random", "item", "item_desc")
    computed_values = {ties: computed(case, ties) for ties in rules}
    for user in range(case.n_users):
        threshold = float(case.threshold[user])
        rows = [in_order(case, user, order) for order in case.orders(user)]
        for metric in EVERY:
            name = str(metric)
            possible = [rating_by_definition(metric, *ratings, threshold) for ratings in rows]
            values = {ties: computed_values[ties][name][user] for ties in rules}
            if math.isnan(possible[0]):
                assert all(map(math.isnan, values.values())), name
                continue
            for ties, value in values.items():
                assert min(abs(value - possible_value) for possible_value in possible) < 1e-12, (
                    f"{name} {ties}"
                )
            if metric.definition.higher_is_better:
                assert values["optimistic"] == pytest.approx(max(possible), abs=1e-12), name
                assert values["pessimistic"] == pytest.approx(min(possible), abs=1e-12), name


OVER_ROWS = [
    Metric(name) for name, definition in reading("ratings").items() if definition.over_rows
]
PROBABILITIES = st.sampled_from([0.0, 0.25, 0.5, 1.0])


@given(rating_cases(predicted=PROBABILITIES), st.lists(st.integers(0, 3), min_size=3, max_size=3))
def test_rows_of_resampled_users_count_repeatedly(case, times):
    users, weights = record_users(case.ratings()), np.array(times[: case.n_users])
    together = users.together(compute(users, OVER_ROWS, rm.Protocol())[1])
    resampled = together.users(np.repeat(np.arange(case.n_users), weights))
    np.testing.assert_allclose(
        together.for_all(OVER_ROWS, rm.Protocol(), weights),
        resampled.for_all(OVER_ROWS, rm.Protocol(), None),
        rtol=1e-12,
        atol=1e-12,
    )

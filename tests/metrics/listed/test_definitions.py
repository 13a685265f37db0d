"""Every list metric agrees with its definition on random cases."""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np
import pytest
from hypothesis import given
from list_definitions import list_by_definition
from measured import compute, compute_for_all, record_users

import recometer as rm
from recometer.metrics import Metric, reading
from recometer.testing import ListCase, list_cases, variants

EVERY = [
    Metric(name, cutoff, tuple(parameters.items()))
    for name in reading("lists")
    for parameters in variants(name)
    for cutoff in (1, 3, 7)
]
# Also test every combination of two parameters, at one cut-off.
EVERY += [
    Metric(name, 3, tuple({**first, **second}.items()))
    for name in reading("lists")
    for first, second in itertools.combinations(variants(name), 2)
    if not first.keys() & second.keys()
]
EVERY = list(dict.fromkeys(EVERY))
OVER_USERS = [metric for metric in EVERY if metric.definition.over_users]
PER_USER = [metric for metric in EVERY if not metric.definition.over_users]


@given(list_cases())
def test_values_per_user_match_definitions(case):
    values, reasons = compute(record_users(case.data()), PER_USER, rm.Protocol())
    for user in range(case.n_users):
        for metric in PER_USER:
            value, name = values[str(metric)][user], str(metric)
            assert value == pytest.approx(
                list_by_definition(metric, case, user), rel=1e-9, abs=1e-9, nan_ok=True
            ), name
            assert np.isnan(value) == (reasons[name][user] != 0), name


@given(list_cases())
def test_values_over_all_users_match_definitions(case):
    values = compute_for_all(record_users(case.data()), OVER_USERS, rm.Protocol())
    for metric in OVER_USERS:
        assert values[str(metric)] == pytest.approx(
            list_by_definition(metric, case), rel=1e-9, abs=1e-9, nan_ok=True
        ), str(metric)


# For each kind of side data, the fields of `ListData` that it fills.
FIELDS = {
    "catalogue": ("n_catalogue",),
    "catalogue_items": ("in_catalogue",),
    "train": ("train", "n_train_users", "n_train_interactions", "item_users"),
    "test": ("test", "relevant"),
    "baseline": ("baseline",),
    "categories": ("categories",),
    "features": ("features",),
}


def test_metrics_declare_the_side_data_they_read():
    case = ListCase(
        n_items=2, lists=[[0, 1]], baseline=[[1]], train=[{0: 1.0}], test=[{0: 1.0}], unlisted=[],
        categories=[frozenset({0})] * 2, n_categories=1, features=[[1.0]] * 2, n_catalogue=2,
    )  # fmt: skip
    data = case.data()
    for metric in EVERY:
        other_kinds = FIELDS.keys() - set(metric.definition.side)
        without_other_data = dict.fromkeys(name for word in other_kinds for name in FIELDS[word])
        users = record_users(dataclasses.replace(data, **without_other_data, kept={}))
        evaluate = compute_for_all if metric.definition.over_users else compute
        evaluate(users, [metric], rm.Protocol())

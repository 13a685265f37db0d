"""Every metric of lists against its definition, list by list, on generated cases."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given

from recometer.measuring.compute import compute, compute_for_all
from recometer.measuring.listed import ListedUsers
from recometer.metrics import Metric, reading
from recometer.protocol import Protocol
from recometer.testing import list_by_definition, list_cases, variants

EVERY = [
    Metric(name, cutoff, tuple(parameters.items()))
    for name in reading("lists")
    for parameters in variants(name)
    for cutoff in (1, 3, 7)
]
EVERY = list(dict.fromkeys(EVERY))
OVER_USERS = [metric for metric in EVERY if metric.definition.over_users]
PER_USER = [metric for metric in EVERY if not metric.definition.over_users]


@given(list_cases())
def test_per_user(case):
    values, reasons = compute(ListedUsers(case.data()), PER_USER, Protocol())
    for user in range(case.n_users):
        for metric in PER_USER:
            found, name = values[str(metric)][user], str(metric)
            assert found == pytest.approx(
                list_by_definition(metric, case, user), rel=1e-9, abs=1e-9, nan_ok=True
            ), name
            assert np.isnan(found) == (reasons[name][user] != 0), name


@given(list_cases())
def test_over_all_users(case):
    values = compute_for_all(ListedUsers(case.data()), OVER_USERS, Protocol())
    for metric in OVER_USERS:
        assert values[str(metric)] == pytest.approx(
            list_by_definition(metric, case), rel=1e-9, abs=1e-9, nan_ok=True
        ), str(metric)

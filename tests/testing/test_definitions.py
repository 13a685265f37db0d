"""Every metric is written down twice: as it is computed, and as it is defined."""

from __future__ import annotations

import numpy as np
import pytest

from recometer.errors import UnknownNameError
from recometer.metrics import METRICS, Metric, metric, reading
from recometer.testing import (
    ListCase,
    by_definition,
    list_by_definition,
    rating_by_definition,
)
from recometer.testing.definitions import DEFINITIONS
from recometer.testing.list_definitions import OVER_USERS, PER_USER
from recometer.testing.rating_definitions import RATING_DEFINITIONS


def test_no_metric_lacks_a_definition() -> None:
    of_lists = reading("lists")
    over_users = {name for name, each in of_lists.items() if each.over_users}
    assert set(reading("ranks")) - set(DEFINITIONS) == set()
    assert set(reading("ratings")) - set(RATING_DEFINITIONS) == set()
    assert over_users - set(OVER_USERS) == set()
    assert set(of_lists) - over_users - set(PER_USER) == set()


def test_a_metric_without_a_definition_is_said() -> None:
    @metric(formula="1")
    def ours(groups, cutoffs):
        return np.ones((groups.n_users, len(cutoffs)))

    says = r"'ours' has no independent definition.*Hint: add a function to {} of recometer"
    try:
        with pytest.raises(UnknownNameError, match=says.format("DEFINITIONS")):
            by_definition(Metric("ours", 1), [0, 1], {0: 1.0})
        with pytest.raises(UnknownNameError, match=says.format("RATING_DEFINITIONS")):
            rating_by_definition(Metric("ours", 1), [3.0], [4.0], 3.5)
        with pytest.raises(UnknownNameError, match=says.format("PER_USER")):
            list_by_definition(Metric("ours", 1), ListCase.__new__(ListCase), 0)
    finally:
        del METRICS["ours"]

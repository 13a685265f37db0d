"""Every metric is implemented twice: as fast code, and as a plain definition."""

from __future__ import annotations

import pytest
from definitions import DEFINITIONS
from list_definitions import OVER_USERS, PER_USER
from rating_definitions import RATING_DEFINITIONS

import recometer as rm
import recometer.testing
from recometer.metrics import reading


def test_every_metric_has_a_definition() -> None:
    of_lists = reading("lists")
    over_users = {name for name, definition in of_lists.items() if definition.over_users}
    assert set(reading("ranks")) - set(DEFINITIONS) == set()
    assert set(reading("ratings")) - set(RATING_DEFINITIONS) == set()
    assert over_users - set(OVER_USERS) == set()
    assert set(of_lists) - over_users - set(PER_USER) == set()


@pytest.mark.parametrize("metric", ["ndcg@5", None, ["ndcg"], "ndgc"])
def test_check_laws_rejects_anything_but_a_metric_name(metric: object) -> None:
    with pytest.raises(rm.UnknownNameError, match="check_laws takes the name of a metric"):
        recometer.testing.check_laws(metric)  # type: ignore[arg-type]


def test_check_source_rejects_functions_that_return_no_source() -> None:
    with pytest.raises(rm.InputTypeError, match="must return a source, but returned None"):
        recometer.testing.check_source(lambda *_: None)  # type: ignore[arg-type,return-value]

"""Every metric is implemented twice: efficiently, and as a plain definition."""

from __future__ import annotations

import pytest
from definitions import DEFINITIONS
from list_definitions import OVER_USERS, PER_USER
from rating_definitions import RATING_DEFINITIONS

import recometer as rm
import recometer.testing
from recometer.metrics import reading
from recometer.removed import NAMES


def test_every_metric_has_a_definition() -> None:
    of_lists = reading("lists")
    over_users = {name for name, each in of_lists.items() if each.over_users}
    assert set(reading("ranks")) - set(DEFINITIONS) == set()
    assert set(reading("ratings")) - set(RATING_DEFINITIONS) == set()
    assert over_users - set(OVER_USERS) == set()
    assert set(of_lists) - over_users - set(PER_USER) == set()


def test_removed_names_give_hints() -> None:
    gone = [name.removeprefix("testing.") for name in NAMES if name.startswith("testing.")]
    for name in gone:
        assert not hasattr(recometer.testing, name)
        with pytest.raises(AttributeError, match=f"no attribute '{name}'. Hint: "):
            getattr(recometer.testing, name)
    with pytest.raises(ImportError, match="it is called RankingCase"):
        from recometer.testing import Case  # noqa: F401
    with pytest.raises(ImportError, match="evaluate all users"):
        from recometer import Until  # noqa: F401
    with pytest.raises(ImportError, match="friedmanchisquare"):
        from recometer.stats import friedman  # noqa: F401
    assert not hasattr(recometer.testing, "else")


@pytest.mark.parametrize("metric", ["ndcg@5", None, ["ndcg"], "ndgc"])
def test_check_laws_rejects_anything_but_a_metric_name(metric: object) -> None:
    with pytest.raises(rm.UnknownNameError, match="check_laws takes the name of a metric"):
        recometer.testing.check_laws(metric)  # type: ignore[arg-type]


def test_check_source_rejects_functions_that_return_no_source() -> None:
    with pytest.raises(rm.InputTypeError, match="must return a source, but returned None"):
        recometer.testing.check_source(lambda *_: None)  # type: ignore[arg-type,return-value]

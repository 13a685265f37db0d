"""What a result says of how the values of test were read."""

import numpy as np
import pytest

import recometer as rm

SCORES = np.array([[3.0, 2.0, 1.0], [1.0, 2.0, 3.0]])
STARS = np.array([[4.5, 2.0, 0.0], [0.0, 1.0, 5.0]])
METRICS = "ndcg@2 recall@2"


def printed(test, metrics=METRICS, **rules):
    return " ".join(str(rm.evaluate(rm.Scores(SCORES), test, metrics=metrics, **rules)).split())


def test_stars_that_nobody_explained_are_said_to_be_gains(tmp_path):
    told = "values of test are 1 to 5: an item with any but 0 is relevant (the rule relevant_from"
    assert f"{told} says from which value on), and its value is the gain of ndcg@2" in printed(
        STARS
    )
    assert printed(STARS, "recall@2").endswith("says from which value on)")
    assert "gain of ndcg@1, ndcg@2, dcg@1, ..." in printed(STARS, "ndcg@1,2 dcg@1,2")
    result = rm.evaluate(rm.Scores(SCORES), STARS, metrics=METRICS)
    result.save(tmp_path / "result.parquet")
    assert told in " ".join(str(rm.load(tmp_path / "result.parquet")).split())


@pytest.mark.parametrize(
    ("test", "rules"), [(STARS > 0, {}), (STARS / 5, {}), (STARS, {"relevant_from": 4})]
)
def test_nothing_is_said_where_nothing_is_unclear(test, rules):
    assert "values of test are" not in printed(test, **rules)

"""Which rows of test are relevant."""

import numpy as np
import polars as pl
import pytest

import recometer as rm
from recometer.data.matching import relevant_rows

PLAIN = pl.DataFrame({"user": [1, 1, 2, 2, 3], "item": [1, 2, 1, 3, 1]})
VALUED = PLAIN.with_columns(rating=pl.Series([2.0, 0.0, 1.0, -1.0, 3.0]))


@pytest.mark.parametrize(
    ("relevant_from", "everything"), [(None, True), (0.5, True), (1, True), (1.5, False)]
)
def test_a_row_without_a_value_is_worth_1(relevant_from, everything):
    found = relevant_rows(rm.Interactions.of(PLAIN), relevant_from)
    assert found.tolist() == [everything] * len(PLAIN)


@pytest.mark.parametrize(
    ("relevant_from", "relevant"),
    [(None, [2, 1, -1, 3]), (1, [2, 1, 3]), (1.5, [2, 3]), (2, [2, 3]), (0, [2, 0, 1, 3])],
)
def test_values_other_than_0_or_from_a_threshold_on(relevant_from, relevant):
    test = rm.Interactions.of(VALUED)
    assert test.values[relevant_rows(test, relevant_from)].tolist() == relevant


def test_what_is_relevant_is_what_evaluate_counts():
    scores = rm.Scores(
        np.arange(9.0).reshape(3, 3), user_ids=np.arange(1, 4), item_ids=np.arange(1, 4)
    )
    for relevant_from, plain, valued in ((None, [2, 2, 1], [1, 2, 1]), (2, [0, 0, 0], [1, 0, 1])):
        for frame, expected in ((PLAIN, plain), (VALUED, valued)):
            options = {"metrics": "rr", "relevant_from": relevant_from, "undefined": 0}
            assert rm.evaluate(scores, frame, **options).n_relevant.tolist() == expected

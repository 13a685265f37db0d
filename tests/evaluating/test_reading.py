"""A printed result shows how `evaluate` interpreted the test values."""

import numpy as np
import polars as pl
import pytest

import recometer as rm

SCORES = np.array([[3.0, 2.0, 1.0], [1.0, 2.0, 3.0]])
STARS = np.array([[4.5, 2.0, 0.0], [0.0, 1.0, 5.0]])
METRICS = "ndcg@2 recall@2"


def print_evaluation(test, metrics=METRICS, **rules):
    return " ".join(str(rm.evaluate(rm.Scores(SCORES), test, metrics=metrics, **rules)).split())


def test_ratings_without_a_threshold_are_reported_as_gains(tmp_path):
    message = (
        "test values range from 1 to 5: an item with a value above 0 is relevant (the rule "
        "relevant_from"
    )
    assert (
        f"{message} sets the threshold), and its value is the gain of ndcg@2"
        in print_evaluation(STARS)
    )
    assert print_evaluation(STARS, "recall@2").endswith("sets the threshold)")
    assert "gain of ndcg@1, ndcg@2, dcg@1, ..." in print_evaluation(STARS, "ndcg@1,2 dcg@1,2")
    result = rm.evaluate(rm.Scores(SCORES), STARS, metrics=METRICS)
    result.save(tmp_path / "result.parquet")
    assert message in " ".join(str(rm.load(tmp_path / "result.parquet")).split())


@pytest.mark.parametrize(
    ("test", "rules"), [(STARS > 0, {}), (STARS / 5, {}), (STARS, {"relevant_from": 4})]
)
def test_unambiguous_values_need_no_explanation(test, rules):
    assert "test values range" not in print_evaluation(test, **rules)


def test_reading_line_states_the_relevance_rule():
    message = "test values range from 1 to 5: an item with a value other than 0 is relevant"
    assert message in print_evaluation(STARS, relevant_from="not_zero")
    assert message in print_evaluation(STARS, protocol="rectools")


RATINGS = pl.DataFrame(
    {"user": [1, 1, 1], "item": [1, 2, 3], "rating": [0.5, 3.0, -1.0], "score": [4.5, 3.5, 2.0]}
)


BY_RULE, BY_NUMBER = "is relevant (the rule", "relevant if at least 3"


@pytest.mark.parametrize(
    ("options", "rules", "expected_source", "relevant"),
    [
        ({}, {}, BY_RULE, 2),
        ({}, {"relevant_from": 3}, None, 1),
        ({"threshold": 3}, {}, BY_NUMBER, 1),
    ],
)
def test_reading_line_agrees_with_the_threshold_of_pairs(options, rules, expected_source, relevant):
    pairs = rm.Pairs(RATINGS, **options)
    stream = rm.Evaluator(metrics="rr", **rules).stream()
    stream.update(pairs)
    for result in (rm.evaluate(pairs, metrics="rr", **rules), stream.compute()):
        assert result.n_relevant.tolist() == [relevant]
        printed = " ".join(str(result).split())
        assert [text for text in (BY_RULE, BY_NUMBER) if text in printed] == [expected_source][
            : bool(expected_source)
        ]


def test_reading_line_counts_negative_values():
    test = np.array([[1.0, -1.0, 0.0], [-2.0, 1.0, 0.0]])
    message = "test values below 0 (judged; by default not relevant, with a gain of 0): 2"
    assert message in print_evaluation(test)
    assert "below 0" not in print_evaluation(np.abs(test))

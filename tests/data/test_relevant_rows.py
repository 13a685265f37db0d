"""Tests that sources and conventions agree on which test rows are relevant."""

import sys

import numpy as np
import polars as pl
import pytest

import recometer as rm
from recometer.data.matching import relevant_rows
from recometer.metrics.conventions import TABLE

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

PLAIN = pl.DataFrame({"user": [1, 1, 2, 2, 3], "item": [1, 2, 1, 3, 1]})
VALUED = PLAIN.with_columns(rating=pl.Series([2.0, 0.0, 1.0, -1.0, 3.0]))


@pytest.mark.parametrize(
    ("relevant_from", "all_relevant"),
    [(None, True), ("not_zero", True), (0.5, True), (1, True), (1.5, False)],
)
def test_rows_without_values_count_as_one(relevant_from, all_relevant):
    relevant = relevant_rows(rm.Interactions.of(PLAIN), relevant_from)
    assert relevant.tolist() == [all_relevant] * len(PLAIN)


@pytest.mark.parametrize(
    ("relevant_from", "relevant"),
    [
        (None, [2, 1, 3]),
        ("not_zero", [2, 1, -1, 3]),
        (1, [2, 1, 3]),
        (1.5, [2, 3]),
        (2, [2, 3]),
        (0, [2, 0, 1, 3]),
    ],
)
def test_relevance_rule_selects_rows_by_value(relevant_from, relevant):
    test = rm.Interactions.of(VALUED)
    assert test.values[relevant_rows(test, relevant_from)].tolist() == relevant


def test_evaluate_counts_the_relevant_rows():
    scores = rm.Scores(
        np.arange(9.0).reshape(3, 3), user_ids=np.arange(1, 4), item_ids=np.arange(1, 4)
    )
    for relevant_from, plain, valued in ((None, [2, 2, 1], [1, 1, 1]), (2, [0, 0, 0], [1, 0, 1])):
        for frame, expected in ((PLAIN, plain), (VALUED, valued)):
            options = {"metrics": "rr", "relevant_from": relevant_from, "undefined": 0}
            assert rm.evaluate(scores, frame, **options).n_relevant.tolist() == expected


@pytest.mark.parametrize(
    ("frame", "relevant_from", "cause"),
    [
        (
            PLAIN,
            2,
            "Test has no values, so each of its rows counts as 1, but relevant_from is 2",
        ),
        (VALUED, 3.5, "The largest test value is 3, but relevant_from is 3.5"),
    ],
)
def test_warning_names_a_threshold_that_no_value_reaches(frame, relevant_from, cause):
    ids = {"user_ids": [1, 2, 3], "item_ids": [1, 2, 3]}
    scores = rm.Scores(np.arange(9.0).reshape(3, 3), **ids)
    evaluator = rm.Evaluator(frame, metrics="rr", relevant_from=relevant_from)
    for evaluate in (evaluator, evaluator.mean):
        with pytest.warns(rm.DataWarning, match=rf"rr: undefined .* no relevant item .* {cause}"):
            evaluate(scores)


FEEDBACK = pl.DataFrame(
    {"user": [1, 1, 1, 2, 2], "item": [1, 2, 3, 1, 4], "label": [1.0, -1.0, 0.3, -1.0, 0.5]}
)
SCORED = FEEDBACK.with_columns(score=pl.Series([1.0, 3.0, 2.0, 2.0, 1.0]))


def sources():
    """Yield each kind of source with a test set; all have the same rankings and relevant items."""
    lists = rm.Lists(SCORED.select("user", "item", "score"))
    matrix = np.full((2, 5), -np.inf)
    matrix[SCORED["user"].to_numpy() - 1, SCORED["item"].to_numpy()] = SCORED["score"].to_numpy()
    scores = rm.Scores(matrix, user_ids=[1, 2], item_ids=range(5))
    yield lists, FEEDBACK
    yield scores, FEEDBACK
    yield rm.Pairs(SCORED), None
    yield rm.Pairs(SCORED.select("user", "item", "score"), relevance=False), FEEDBACK


def results_of_all_sources(**options):
    """Yield the results of evaluating each source by a single call and by a stream."""
    for source, test in sources():
        yield rm.evaluate(source, test, **options)
    lists, scores, pairs, _ = sources()
    for (source, test), batch in (
        (lists, {"scores": SCORED.select("user", "item", "score")}),
        (scores, {"scores": np.array(scores[0].facts.arrays["matrix"]), "users": [1, 2]}),
        (pairs, {"scores": SCORED}),
    ):
        ids = {"item_ids": range(5)} if source is scores[0] else {}
        stream = rm.Evaluator(test, **options).stream(**ids)
        stream.update(**batch)
        yield stream.compute()


METRICS = "rr ap ndcg ndcg@1 dcg@3(gain=exponential) hit@1"


def test_every_source_treats_dislikes_and_fractions_in_the_same_way():
    best = 1 + 0.3 / np.log2(3)
    expected = {
        "rr": (1 / 2 + 1 / 2) / 2,
        "ap": ((1 / 2 + 2 / 3) / 2 + 1 / 2) / 2,
        "ndcg": ((0.3 / np.log2(3) + 1 / 2) / best + 1 / np.log2(3)) / 2,
        "ndcg@1": 0.0,
        "dcg@3(gain=exponential)": ((2**0.3 - 1) / np.log2(3) + 1 / 2 + (2**0.5 - 1) / np.log2(3))
        / 2,
        "hit@1": 0.0,
    }
    for result in results_of_all_sources(metrics=METRICS):
        assert result.mean() == pytest.approx(expected, rel=1e-14)
        assert result.n_relevant.tolist() == [2, 1]
        assert result.counts["negative_values"] == 2
        assert result.bounds("ndcg") == (0, 1)


def test_every_source_follows_the_relevance_rules():
    for rule, n_relevant in (("not_zero", [3, 2]), (0.5, [1, 1]), (-np.inf, [3, 2])):
        for result in results_of_all_sources(metrics="rr", relevant_from=rule):
            assert result.n_relevant.tolist() == n_relevant
    for result in results_of_all_sources(metrics="ndcg@1", negative_gains="counted"):
        assert result["ndcg@1"].tolist() == pytest.approx([-1, -1 / 0.5])
        assert result.bounds("ndcg@1") == (-np.inf, 1)


def test_conventions_keep_the_relevance_rules_of_their_libraries():
    table = tomllib.loads(TABLE.read_text(encoding="utf-8"))
    for convention in rm.conventions():
        part = table[convention.name]
        stated_rules = {
            **table.get(part.get("like"), part).get("rules", {}),
            **part.get("rules", {}),
        }
        # Only the scikit-learn convention may omit relevant_from, because its areas under curves
        # treat a label of -1 like 0, as recometer does by default.
        assert ("relevant_from" in stated_rules) == (convention.name != "sklearn"), convention.name
        assert convention.protocol.negative_gains == "counted"
    for name in ("rectools", "replay", "pyspark", "surprise", "pyg", "torchmetrics"):
        for result in results_of_all_sources(metrics="rr", protocol=name):
            assert result.n_relevant.tolist() == [3, 2]
    for result in results_of_all_sources(metrics="dcg_score@1", protocol="sklearn"):
        assert result["dcg_score@1"].tolist() == pytest.approx([-1, -1])

"""Each rule has the same meaning for all metrics of an evaluation."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import polars as pl
import pytest
from measured import record_users

import recometer as rm
from recometer.metrics import parse
from recometer.testing import rank

LISTS = {"ann": ["film", "song"], "bob": ["book", "film"], "eve": ["game", "song"]}
TEST = {"ann": ["film"], "bob": ["song"], "eve": ["song"], "zoe": ["book"]}
TRAIN = {"ann": ["tale"], "bob": ["tale"], "eve": ["film"], "zoe": ["tale"]}


def make_evaluation(metrics: str, **rules: object) -> rm.Evaluation:
    return rm.evaluate(rm.Lists(LISTS), TEST, train=TRAIN, metrics=metrics, **rules)


@pytest.mark.parametrize("users", ["test", "known", "relevant", "known_relevant", "positive"])
def test_same_users_count_in_means_of_ranking_and_list_metrics(users: str) -> None:
    result = make_evaluation("recall@1 epc@1", users=users, undefined=0.0)
    recall, epc = (~np.isnan(result.counted_values(name)) for name in ("recall@1", "epc@1"))
    assert recall.tolist() == epc.tolist()


@pytest.mark.parametrize("users", ["relevant", "known_relevant"])
def test_users_without_relevant_items_do_not_count(users: str) -> None:
    test = {"ann": {"film": 1.0}, "bob": {"book": 0.0}}
    means = {
        rule: rm.evaluate(
            rm.Lists(LISTS), test, metrics="recall@1", users=rule, no_relevant=0.0
        ).mean()["recall@1"]
        for rule in ("test", users)
    }
    assert means == {"test": 0.5, users: 1.0}


def test_users_without_test_rows_are_left_out_despite_a_replacement() -> None:
    test, train = np.array([[1.0, 0.0], [0.0, 0.0]]), np.array([[0.0, 0.0], [0.0, 1.0]])
    result = rm.evaluate(
        rm.Scores(np.eye(2)), test, train=train, metrics="recall@1 epc@1", no_relevant=0.0,
        min_candidates=1,
    )  # fmt: skip
    assert result.mean() == {"recall@1": 1.0, "epc@1": 1.0}


def test_rule_users_positive_counts_only_values_above_0() -> None:
    result = make_evaluation("recall@1 epc@1", users="positive")
    assert [row.counted for row in result.summary()] == [1, 1]
    assert result.mean()["recall@1"] == 1.0
    assert result.mean()["epc@1"] == result["epc@1"][0] > 0
    assert result.skipped("epc@1") == {
        "the rule users= leaves the user out of the mean": 2,
        "the user's list is empty": 1,
    }


def test_rule_users_positive_leaves_out_lists_with_value_0() -> None:
    lists = {"ann": ["film"], "bob": ["new"]}
    result = rm.evaluate(
        rm.Lists(lists), lists, train=TRAIN, metrics="popularity@1", users="positive"
    )
    assert result["popularity@1"].tolist() == [1.0, 0.0]
    assert result.mean() == {"popularity@1": 1.0}


@pytest.mark.parametrize("rule", ["unranked", "unknown_items"])
@pytest.mark.parametrize("protocol", ["recometer", "torchmetrics", "cornac", "evidently"])
def test_nan_scores_are_undefined_even_if_items_are_left_out(rule: str, protocol: str) -> None:
    scores = pl.DataFrame(
        {"user": [0, 0, 1, 1], "item": [0, 1, 0, 1], "score": [np.nan, 1.0, 2.0, 1.0]}
    )
    test = {0: [0], 1: [0]}
    for source in (
        rm.Lists(scores),
        rm.Scores([[np.nan, 1.0], [2.0, 1.0]], user_ids=[0, 1], item_ids=[0, 1]),
    ):
        result = rm.evaluate(
            source, test, metrics="rr", protocol=protocol, catalogue=2,
            **{rule: "left_out", "no_relevant": 0.0, "nan_scores": "undefined"},
        )  # fmt: skip
        np.testing.assert_array_equal(result["rr"], [np.nan, 1.0])
        assert result.skipped("rr") == {"a candidate's score is NaN": 1}


def test_ties_are_ordered_within_each_cutoff() -> None:
    """Only the tied items that rank within a cut-off are reordered, by descending id."""
    scores, test = rm.Scores([[1.0, 1.0, 1.0]]), np.array([[1, 0, 0]])
    result = rm.evaluate(
        scores, test, metrics="rr@1,2,3", ties="item_desc_within", constant_scores="ties",
        deep_cutoffs="computed",
    )  # fmt: skip
    assert result.mean() == {"rr@1": 1, "rr@2": 1 / 2, "rr@3": 1 / 3}


def test_values_of_users_are_rounded() -> None:
    assert make_evaluation("ndcg@2", decimals=1)["ndcg@2"].tolist() == [1.0, 0.0, 0.6, 0.0]


def test_rating_metrics_are_rounded() -> None:
    frame = pl.DataFrame(
        {
            "user": [0, 0, 1, 1],
            "item": [0, 1, 0, 1],
            "score": [4.0, 2, 4, 5],
            "rating": [5, 1, 4, 5],
        }
    )
    pairs = rm.Pairs(frame, threshold=4)
    rounded = rm.evaluate(pairs, metrics="rmse", decimals=1)
    assert rounded.over_rows == {"rmse": 0.7}


def test_undefined_metric_over_all_users_gets_the_replacement() -> None:
    lists = rm.Lists({"ann": ["film"], "bob": ["song"]})
    arguments = {"catalogue": 9, "metrics": "personalization@1", "users": "known"}
    single_user = rm.evaluate(
        rm.Lists({"ann": ["film"]}), {"ann": ["film"]}, undefined=0.5, **arguments
    )
    assert single_user.mean() == {"personalization@1": 0.5}
    two_users = rm.evaluate(lists, {"ann": ["film"], "bob": ["song"]}, undefined=0.5, **arguments)
    assert two_users.mean() == {"personalization@1": 1.0}


def test_memory_is_freed_after_the_values_are_computed() -> None:
    """Circular references in the ranks would delay the release of their memory."""
    users = record_users(rank([[3, 2, 2, 1], [1, 2, 3, 3]], [[1, 0, 1, 0], [2, 1, 0, 0]]))
    metrics = parse("ndcg@1..3 recall@2 roc_auc ap@2 pr_auc bpref ndcg(ideal=list)")
    gc.collect()
    gc.disable()
    try:
        block = users.users(slice(0, 1))
        parts = [weakref.ref(block), weakref.ref(block.ranks)]
        for rules in (rm.Protocol(), rm.Protocol(ties="item"), rm.Protocol(no_relevant="computed")):
            for metric in metrics:
                variant = block.variant([metric], rules)
                block.compute(variant)
                block.reasons(variant, 0)
                groups = block.groups(variant)
                parts += [weakref.ref(groups), weakref.ref(groups.ranks)]
        del block, groups
        assert [part() for part in parts] == [None] * len(parts)
    finally:
        gc.enable()


def test_evaluation_leaves_no_arrays_to_the_garbage_collector() -> None:
    scores = np.random.default_rng(0).random((20, 30))
    test = scores > 0.9
    rm.evaluate(rm.Scores(scores), test, metrics="ndcg@5")
    gc.collect()
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        rm.evaluate(rm.Scores(scores), test, metrics="ndcg@1..5 recall@5 roc_auc")
        gc.collect()
        left = [array for array in gc.garbage if isinstance(array, np.ndarray) and array.size >= 20]
        assert left == []
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()


def test_value_of_users_without_a_relevant_item_can_be_computed():
    result = rm.evaluate(
        rm.Scores(np.eye(2)), np.eye(2) * [[1], [0]], metrics="precision@1 coverage@1",
        no_relevant="computed", catalogue=2,
    )  # fmt: skip
    np.testing.assert_array_equal(result["precision@1"], [1, 0])

"""The rule `repeated_test` decides how to count several test rows with the same user and item."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

import recometer as rm

LIST = [4, 0, 2, 1]
ROWS = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 6)), min_size=1, max_size=12)


def frame(rows: list[tuple[int, int]], **columns: Any) -> pl.DataFrame:
    return pl.DataFrame(rows, ["user", "item"], orient="row").with_columns(**columns)


def values(test: pl.DataFrame, metric: str, rule: str, **options: Any) -> list[float]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rm.DataWarning)
        source = options.pop("source", rm.Lists(dict.fromkeys(range(3), LIST)))
        result = rm.evaluate(
            source, test, metrics=metric, repeated_test=rule, no_relevant=0.0, **options
        )
        column: list[float] = result[metric].tolist()
        return column


@pytest.mark.parametrize(
    ("rule", "precision", "recall", "ndcg"),
    [
        # The ranking is 4, 0, 2, 1. The test data contain item 4 three times and item 6 once, so
        # the rule decides whether there are 2 or 4 relevant items.
        ("once", 0.5, 1 / 2, 1 / (1 + 1 / np.log2(3))),
        ("counted", 0.5, 1 / 4, 1 / (1 + 1 / np.log2(3))),
        ("joined", 1.5, 3 / 4, 3 / (1 + 1 / np.log2(3))),
    ],
)
def test_repeated_rows_count_as_the_rule_says(
    rule: str, precision: float, recall: float, ndcg: float
) -> None:
    test = frame([(0, 4), (0, 4), (0, 4), (0, 6)])
    for metric, expected in (("precision@2", precision), ("recall@2", recall), ("ndcg@2", ndcg)):
        assert values(test, metric, rule) == pytest.approx([expected])


@given(ROWS, st.sampled_from(["counted", "joined"]))
def test_rules_agree_without_repeated_rows(rows: list[tuple[int, int]], rule: str) -> None:
    test = frame(sorted(set(rows)))
    for metric in ("ap@3", "ndcg@3", "recall@3"):
        assert values(test, metric, rule) == values(test, metric, "once")


@given(ROWS, st.sampled_from(["Lists", "Scores", "Factors"]))
def test_recall_matches_its_formula(rows: list[tuple[int, int]], kind: str) -> None:
    """The formula also covers unknown test items, and leaves out training items."""
    rows = [*rows, (2, 4)]  # a source must know at least one test item
    test, train = frame(rows), {0: [0], 1: [5]}
    matrix = np.tile([3.0, 1.0, 2.0, 0.0, 4.0], (3, 1))
    source = {
        "Lists": rm.Lists(dict.fromkeys(range(3), LIST)),
        "Scores": rm.Scores(matrix, user_ids=range(3), item_ids=range(5)),
        "Factors": rm.Factors(matrix, np.eye(5), user_ids=range(3), item_ids=range(5)),
    }[kind]
    by_rule = {
        rule: values(test, "recall@2", rule, source=source, train=train, all_relevant="computed",
                     deep_cutoffs="computed")
        for rule in ("counted", "joined")
    }  # fmt: skip
    for place, user in enumerate(sorted({user for user, _ in rows})):
        items = [
            item for row_user, item in rows if row_user == user and item not in train.get(user, [])
        ]
        top = [item for item in LIST if item not in train.get(user, [])][:2]
        hits = [item for item in items if item in top]
        if items:
            assert by_rule["joined"][place] == pytest.approx(len(hits) / len(items))
            assert by_rule["counted"][place] == pytest.approx(len(set(hits)) / len(items))


def test_number_of_relevant_items_can_count_repeated_rows() -> None:
    test = frame([(0, 4), (0, 4), (0, 6), (1, 2)])
    with pytest.warns(rm.DataWarning, match="repeat a user-item pair"):
        test_data = rm.Interactions.of(test)
    lists = rm.Lists({0: LIST, 1: LIST})
    assert test_data.copies is not None
    joined, counted_rows = (
        rm.evaluate(lists, test_data, metrics="recall@2", repeated_test=rule)
        for rule in ("once", "counted")
    )
    assert joined.n_relevant.tolist() == [2, 1]
    assert counted_rows.n_relevant.tolist() == [3, 1]
    assert counted_rows.mean("pooled")["recall@2"] == pytest.approx(1 / 4)


def test_repeated_rows_have_their_mean_gain_unless_they_count_once() -> None:
    test = frame([(0, 4), (0, 4), (0, 0)], rating=pl.Series([1.0, 3.0, 2.0]))
    for rule, expected in (("once", 4.0), ("counted", 2.0), ("joined", 4.0)):
        assert values(test, "dcg@1", rule) == [expected]


def test_ideal_order_of_a_list_contains_repeated_items_once() -> None:
    """The list a, a, b has a DCG of 3 + 3/log2(3) + 1/2, and a, b has a DCG of 3 + 1/log2(3)."""
    result = rm.evaluate(
        rm.Lists({"ann": ["a", "a", "b"]}), {"ann": {"a": 3.0, "b": 1.0, "c": 2.0}},
        metrics="ndcg@3(ideal=list)", duplicates="counted",
    )  # fmt: skip
    expected = (3.5 + 3 / np.log2(3)) / (3 + 1 / np.log2(3))
    assert result["ndcg@3(ideal=list)"] == pytest.approx([expected])


def test_repeated_rows_of_unknown_items_count_and_training_items_do_not() -> None:
    """Item 4 is a hit, item 9 is unknown and repeated, and item 0 is omitted as a training item."""
    test = frame([(0, 4), (0, 9), (0, 9), (0, 0)])
    scores = rm.Scores([[3.0, 1.0, 2.0, 0.0, 4.0]], user_ids=[0], item_ids=range(5))
    actual = values(test, "recall@2", "counted", source=scores, train={0: [0]})
    assert actual == pytest.approx([1 / 3])
    # If training items are kept, item 0 is a hit, and item 9 counts twice although it is a training
    # item.
    result = values(test, "recall@2", "counted", source=scores, train={0: [9]}, seen="kept")
    assert result == pytest.approx([2 / 4])


def scores_of_one_user(scores: list[float]) -> rm.Scores:
    return rm.Scores(np.array([scores]), user_ids=[0], item_ids=range(len(scores)))


def test_repeated_rows_of_tied_items_are_rejected() -> None:
    """Repeated rows of item 1 are rejected, since item 1 is tied; item 3 may be repeated."""
    source = scores_of_one_user([1.0, 1.0, 1.0, 0.5, 0.0, -1.0])
    for ties in ("expected", "optimistic", "pessimistic", "random"):
        with pytest.raises(rm.InputError, match=r"rows of a pair .* ties='item' does"):
            values(frame([(0, 1), (0, 1)]), "rr", "joined", source=source, ties=ties)
        assert values(frame([(0, 3), (0, 3)]), "rr", "joined", source=source, ties=ties) == [1 / 4]
        joined = values(frame([(0, 1), (0, 2)]), "rr", "once", source=source, ties=ties)
        assert values(frame([(0, 1), (0, 2)]), "rr", "joined", source=source, ties=ties) == joined
    for ties, place in (("item", 2), ("item_desc", 2), ("shared", 2)):
        actual = values(frame([(0, 1), (0, 1)]), "rr", "joined", source=source, ties=ties)
        assert actual == [1 / place]


def test_error_counts_repeated_rows_of_tied_items() -> None:
    source = scores_of_one_user([1.0, 1.0, 1.0, 0.5, 0.5, 0.0])
    test = frame([(0, 1), (0, 1), (0, 1), (0, 3), (0, 3), (0, 5), (0, 5)])
    with pytest.raises(rm.InputError, match="but 3 of these rows are for items with tied scores"):
        values(test, "rr", "joined", source=source)


RATINGS = pl.DataFrame(
    {
        "user": [1, 1, 1, 2],
        "item": [7, 7, 8, 8],
        "rating": [2.0, 2.0, 4.0, 5.0],
        "time": [1, 2, 3, 4],
    }
)


def as_files(tmp_path: Path) -> Iterator[Any]:
    """Yield the rows in every form of data that can repeat a user-item pair."""
    yield RATINGS
    yield RATINGS.to_pandas()
    yield RATINGS.to_arrow()
    yield RATINGS.lazy()
    RATINGS.write_csv(tmp_path / "test.csv")
    RATINGS.write_parquet(tmp_path / "test.parquet")
    yield tmp_path / "test.csv"
    yield str(tmp_path / "test.parquet")


@pytest.mark.filterwarnings("ignore:.*repeat a user-item pair")
def test_repeated_ratings_with_a_threshold_need_a_rule(tmp_path: Path) -> None:
    lists = rm.Lists({1: [7, 8, 9], 2: [8, 9]})
    message = (
        r"1 of 4 rows of test repeat a user-item pair .* relevant_from=4 "
        r".*'summed'.*'largest'.*one row"
    )
    for test in as_files(tmp_path):
        for metric in ("rr", "serendipity@2"):
            with pytest.raises(rm.InputError, match=message):
                rm.evaluate(
                    lists, test, metrics=metric, relevant_from=4, train={1: [9]}, baseline=lists
                )
        for rule, n_relevant in (("summed", [2, 1]), ("largest", [1, 1])):
            options: dict[str, Any] = {"relevant_from": 4, "repeated_test": rule}
            result = rm.evaluate(lists, test, metrics="rr ndcg", **options)
            assert result.n_relevant.tolist() == n_relevant
            stream = rm.Evaluator(test, metrics="rr", **options).stream()
            stream.update(lists)
            assert stream.compute().n_relevant.tolist() == n_relevant
        assert rm.evaluate(lists, test, metrics="rr").n_relevant.tolist() == [2, 1]


def test_rejected_threshold_causes_no_warning_about_sums() -> None:
    lists = rm.Lists({1: [7, 8, 9], 2: [8, 9]})
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with pytest.raises(rm.InputError, match=r"\(the first: 1 and 7\), and relevant_from=4"):
            rm.evaluate(lists, RATINGS, metrics="rr", relevant_from=4)
    assert not caught
    with pytest.warns(rm.DataWarning, match="their values were summed"):
        rm.evaluate(lists, RATINGS, metrics="rr")


@pytest.mark.filterwarnings("ignore:.*repeat a user-item pair")
def test_repeated_positions_with_a_threshold_need_a_rule() -> None:
    scores = rm.Scores(np.array([[3.0, 2.0, 1.0], [1.0, 2.0, 3.0]]))
    rows, columns, ratings = [0, 0, 0, 1], [1, 1, 2, 2], [2.0, 2.0, 4.0, 5.0]
    sparse = scipy.sparse.coo_array((ratings, (rows, columns)), shape=(2, 3))
    edges = rm.Interactions.of(np.array([rows, columns]), n_users=2, n_items=3, value=ratings)
    frame = pl.DataFrame({"user": rows, "item": columns, "value": ratings})
    positions = rm.Interactions.of(frame, n_users=2, n_items=3)
    for test in (sparse, edges, positions, edges.select_users([0, 1])):
        with pytest.raises(rm.InputError, match="1 of 4 rows of test repeat a user-item pair"):
            rm.evaluate(scores, test, metrics="rr", relevant_from=4)
        with pytest.raises(rm.InputError, match="rows of test repeat a user-item pair"):
            rm.evaluate(scores, test, metrics="rr", protocol=rm.Protocol(relevant_from=4.0))
        result = rm.evaluate(scores, test, metrics="rr", relevant_from=4, repeated_test="largest")
        assert result["rr"].tolist() == [1 / 3, 1]
        # By default and under some conventions, the values of repeated rows are summed.
        for rules in ({}, {"protocol": "trec_eval"}, {"relevant_from": -np.inf}):
            options: dict[str, Any] = {"metrics": "rr", **rules}
            assert rm.evaluate(scores, test, **options)["rr"].tolist() == [1 / 2, 1]
    groups = rm.fairness(
        rm.Lists(np.array([[0, 1], [2, 1]])), ["a", "b", "b"], edges, k=2,
        relevant_from=4, repeated_test="largest",
    )  # fmt: skip
    assert groups is not None

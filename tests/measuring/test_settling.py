"""Rules about ranked items agree with literal implementations of their descriptions."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Mapping

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import recometer as rm

Items = Mapping[int, list[int]]
LISTS = st.dictionaries(
    st.integers(0, 5), st.lists(st.integers(0, 4), min_size=1, max_size=4), min_size=1
)
LONGER = st.dictionaries(st.integers(0, 5), st.lists(st.integers(0, 4), min_size=1, max_size=8))
# No list contains items 5 and 6.
TESTS = st.dictionaries(
    st.integers(0, 5), st.lists(st.integers(0, 6), min_size=1, max_size=4), min_size=1
)
K = 3


def make_evaluation(
    lists: Items, test: Items, metrics: str | list[str], **rules: object
) -> rm.Evaluation:
    rows = [(user, item) for user, items in test.items() for item in items]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rm.DataWarning)
        return rm.evaluate(
            rm.Lists(lists),
            pl.DataFrame(rows, ["user", "item"], orient="row"),
            metrics=metrics,
            deep_cutoffs="computed",
            all_relevant="computed",
            shifted_ids="kept",
            **rules,
        )


@given(
    st.lists(st.lists(st.integers(0, 2), min_size=1, max_size=5), min_size=1, max_size=5),
    st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=5), min_size=5, max_size=5),
    st.sampled_from(["removed", "first", "counted", "joined"]),
    st.sampled_from(["once", "counted", "joined"]),
)
def test_rules_duplicates_and_repeated_test_can_be_combined(
    lists_of_users: list[list[int]], test_of_users: list[list[int]], duplicates: str, rule: str
) -> None:
    """Every value of `duplicates` works with every value of `repeated_test`."""
    lists = dict(enumerate(lists_of_users))
    test = {user: test_of_users[user] for user in lists}
    names = f"precision@{K} recall@{K}"
    result = make_evaluation(lists, test, names, duplicates=duplicates, repeated_test=rule)
    for place, user in enumerate(sorted(test)):
        times = Counter(
            {item: 1 if rule == "once" else n for item, n in Counter(test[user]).items()}
        )
        distinct = list(dict.fromkeys(lists[user]))
        top = (distinct if duplicates == "removed" else lists[user])[:K]
        top = list(dict.fromkeys(top)) if duplicates == "first" else top
        n_hits = sum(times[item] if rule == "joined" else 1 for item in top if item in times)
        entries = Counter(lists[user] if duplicates == "joined" else distinct)
        relevant = sum(n * max(entries[item], 1) for item, n in times.items())
        values = [result[f"{name}@{K}"][place] for name in ("precision", "recall")]
        assert values == pytest.approx([n_hits / K, n_hits / relevant])


def test_repeated_list_items_do_not_change_the_ideal_order() -> None:
    result = rm.evaluate(
        rm.Lists({0: [0, 0, 1]}), {0: {0: 3.0, 1: 1.0}}, metrics="ndcg@4", catalogue=3,
        duplicates="counted", deep_cutoffs="computed",
    )  # fmt: skip
    discounts = 1 / np.log2(np.arange(2, 6))
    expected = (discounts @ [3, 3, 1, 0]) / (discounts @ [3, 1, 0, 0])
    assert result["ndcg@4"].tolist() == pytest.approx([expected])


def test_unknown_items_are_left_out_even_without_candidates() -> None:
    source = rm.Scores([[2.0, 1.0], [1.0, 2.0]], user_ids=[0, 1], item_ids=[0, 1])
    test, train = {0: [9], 1: [0]}, {0: [0, 1]}
    result = rm.evaluate(source, test, train=train, metrics="rr", unknown_items="left_out")
    assert result.skipped("rr") == {"no relevant item to find": 1}


def test_left_out_items_are_not_in_the_ideal_order() -> None:
    result = rm.evaluate(
        rm.Scores([[2.0, 1.0, 0.0]]), np.array([[3.0, 1.0, 0.0]]),
        candidates=np.array([[0, 1, 1]]), metrics="ndcg@2", unranked="left_out",
        deep_cutoffs="computed",
    )  # fmt: skip
    assert result["ndcg@2"].tolist() == [1.0]


@pytest.mark.parametrize("duplicates", ["counted", "first", "joined"])
def test_repeated_item_that_is_not_a_candidate_is_left_out_once(duplicates: str) -> None:
    options = {"candidates": {1: [5, 6, 7]}, "unranked": "left_out", "duplicates": duplicates}
    result = make_evaluation({1: [4, 4, 4, 5, 6]}, {1: [4, 5]}, "recall@3 rr", **options)
    assert result.n_relevant.tolist() == [1]
    # An item that is not a candidate does not occupy a place, so item 5 comes first.
    assert [result["recall@3"].item(), result["rr"].item()] == [1.0, 1.0]


def test_unknown_items_are_left_out_of_complete_rankings() -> None:
    lists, test = {0: [0, 1], 1: [0, 1, 2, 3, 4]}, {0: [0, 9], 1: [0, 9]}
    result = make_evaluation(lists, test, "recall@2", unknown_items="left_out", catalogue=5)
    assert result["recall@2"].tolist() == [0.5, 1.0]

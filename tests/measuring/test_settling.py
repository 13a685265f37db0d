"""Rules that settle what is ranked, beside their sentences read literally."""

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
# Items from 5 on are in no list.
TESTS = st.dictionaries(
    st.integers(0, 5), st.lists(st.integers(0, 6), min_size=1, max_size=4), min_size=1
)
K = 3


def evaluated(
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
            **rules,
        )


@given(LONGER, TESTS)
def test_rows_of_test_multiply_those_of_lists(lists: Items, test: Items) -> None:
    """The rule repeated_test='multiplied'."""
    lists = {user: lists.get(user, [0]) for user in test}
    result = evaluated(
        lists, test, f"precision@{K} recall@{K}", repeated_test="multiplied", duplicates="counted"
    )
    for place, user in enumerate(sorted(test)):
        listed, seen = Counter(lists[user]), Counter(lists[user][:K])
        rows = Counter(test[user])
        found = sum(seen[item] * rows[item] ** 2 * listed[item] for item in rows)
        missed = sum(n for item, n in rows.items() if not seen[item])
        assert result[f"precision@{K}"][place] == pytest.approx(found / K)
        assert result[f"recall@{K}"][place] == pytest.approx(found / (found + missed))


@given(
    st.lists(st.lists(st.integers(0, 2), min_size=1, max_size=5), min_size=1, max_size=5),
    st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=5), min_size=5, max_size=5),
    st.sampled_from(["removed", "first", "counted", "joined"]),
    st.sampled_from(["once", "counted", "joined"]),
)
def test_what_lists_and_test_repeat(
    listed: list[list[int]], tested: list[list[int]], duplicates: str, rule: str
) -> None:
    """Each of the rules duplicates with each of repeated_test."""
    lists = dict(enumerate(listed))
    test = {user: tested[user] for user in lists}
    names = f"precision@{K} recall@{K}"
    result = evaluated(lists, test, names, duplicates=duplicates, repeated_test=rule)
    for place, user in enumerate(sorted(test)):
        times = Counter(
            {item: 1 if rule == "once" else n for item, n in Counter(test[user]).items()}
        )
        once = list(dict.fromkeys(lists[user]))
        top = (once if duplicates == "removed" else lists[user])[:K]
        top = list(dict.fromkeys(top)) if duplicates == "first" else top
        found = sum(times[item] if rule == "joined" else 1 for item in top if item in times)
        entries = Counter(lists[user] if duplicates == "joined" else once)
        relevant = sum(n * max(entries[item], 1) for item, n in times.items())
        values = [result[f"{name}@{K}"][place] for name in ("precision", "recall")]
        assert values == pytest.approx([found / K, found / relevant])


@given(LISTS, TESTS)
def test_the_user_before_fills_places(lists: Items, test: Items) -> None:
    """The rule short_lists='previous_user'."""
    lists = {user: list(dict.fromkeys(lists.get(user, [0]))) for user in test}
    test = {user: list(dict.fromkeys(items)) for user, items in test.items()}
    metrics = [f"precision@{K}", f"recall@{K}", f"rr@{K}", f"ndcg@{K}"]
    of_list = f"precision@{K}(denominator=list)"
    result = evaluated(lists, test, [*metrics, of_list], short_lists="previous_user")
    last = max(max(items) for each in (lists, test) for items in each.values())
    for place, user in enumerate(sorted(test)):
        hits = [item in test[user] for item in lists[user][:K]]
        hits += [last in test.get(user - 1, [])] * (K - len(hits))
        found = [result[name][place] for name in metrics]
        first = 1 / (hits.index(True) + 1) if any(hits) else 0
        discounts = 1 / np.log2(np.arange(2, K + 2))
        ndcg = discounts @ hits / discounts[: len(test[user])].sum()
        assert found == pytest.approx([sum(hits) / K, sum(hits) / len(test[user]), first, ndcg])
        if last in test.get(user - 1, []):  # the places that are filled are of the list
            assert result[of_list][place] == pytest.approx(sum(hits) / K)


@pytest.mark.filterwarnings("ignore:.*the cut-off lies beyond every list")
@pytest.mark.parametrize(
    ("users", "item", "expected"),
    [((0, 1), 0, [1 / 2, 1]), ((0, 2), 0, [1 / 2, 1 / 2]), (("a", "c"), "x", [1 / 2, 1])],
)
def test_the_only_item_fills_the_places_of_the_next_user(users, item, expected) -> None:
    """Of the user with the next number, where users have numbers."""
    lists = {user: [item] for user in users}
    result = rm.evaluate(rm.Lists(lists), lists, metrics="precision@2", short_lists="previous_user")
    assert result["precision@2"].tolist() == expected


@given(LISTS, TESTS)
def test_the_first_item_fills_places(lists: Items, test: Items) -> None:
    """The rule short_lists='first_item', for users whose list has all items."""
    lists = {user: list(range(2)) for user in test}
    test = {user: list(dict.fromkeys(item % 2 for item in items)) for user, items in test.items()}
    metrics = [f"precision@{K}", f"precision@{K}(denominator=list)", f"recall@{K}", "rr"]
    result = evaluated(lists, test, metrics, short_lists="first_item", catalogue=2)
    for place, user in enumerate(sorted(test)):
        hits = sum(item in test[user] for item in [0, 1, 0])
        found = [result[name][place] for name in metrics]
        first = 1 if 0 in test[user] else 1 / 2
        assert found == pytest.approx([hits / K, hits / K, hits / len(test[user]), first])


def test_the_first_item_fills_a_place_once_though_the_list_repeats_it() -> None:
    result = evaluated(
        {0: [0, 0, 0]}, {0: [0]}, "precision@4", duplicates="counted", short_lists="first_item",
        catalogue=3,
    )  # fmt: skip
    assert result["precision@4"].tolist() == [4 / 4]


def test_what_lists_repeat_and_what_fills_places_adds_nothing_to_the_best_order() -> None:
    result = rm.evaluate(
        rm.Lists({0: [0, 0, 1]}), {0: {0: 3.0, 1: 1.0}}, metrics="ndcg@4", catalogue=3,
        duplicates="counted", short_lists="first_item", deep_cutoffs="computed",
    )  # fmt: skip
    discounts = 1 / np.log2(np.arange(2, 6))
    expected = (discounts @ [3, 3, 1, 3]) / (discounts @ [3, 1, 0, 0])
    assert result["ndcg@4"].tolist() == pytest.approx([expected])


def test_what_the_source_does_not_know_is_none_of_its_items() -> None:
    source = rm.Scores([[3.0, 2.0, 1.0]], user_ids=[0], item_ids=[0, 1, 2])
    result = rm.evaluate(source, {0: [0, 9]}, metrics="recall@2", repeated_test="multiplied")
    assert result["recall@2"].tolist() == [0.5]


@pytest.mark.parametrize(("scores", "gains"), [([2.0, 1.0], (1, 3)), ([1.0, 1.0], (2, 2))])
def test_the_first_item_that_fills_places_has_its_gain_though_it_is_not_relevant(
    scores: list[float], gains: tuple[float, float]
) -> None:
    """It has one place after the other, also if it is tied at its own."""
    result = rm.evaluate(
        rm.Scores([scores]),
        np.array([[1.0, 3.0]]),
        metrics="dcg@4",
        relevant_from=2,
        short_lists="first_item",
        deep_cutoffs="computed",
        all_relevant="computed",
        constant_scores="ties",
    )
    discounts = 1 / np.log2(np.arange(2, 6))
    assert result["dcg@4"].tolist() == pytest.approx([discounts @ [*gains, 1, 1]])


def test_what_fills_places_adds_nothing_to_the_best_order() -> None:
    """Item 2, of the user before, fills the second and the third place of user 1."""
    lists, test = {0: [2, 0, 1], 1: [1]}, {0: {2: 1.0}, 1: {1: 3.0, 2: 1.0}}
    result = rm.evaluate(rm.Lists(lists), test, metrics="ndcg@3", short_lists="previous_user")
    discounts = 1 / np.log2(np.arange(2, 5))
    assert result["ndcg@3"][1] == pytest.approx((discounts @ [3, 1, 1]) / (discounts @ [3, 1, 0]))


def test_unknown_items_are_left_out_for_users_without_candidates_too() -> None:
    source = rm.Scores([[2.0, 1.0], [1.0, 2.0]], user_ids=[0, 1], item_ids=[0, 1])
    test, train = {0: [9], 1: [0]}, {0: [0, 1]}
    result = rm.evaluate(source, test, train=train, metrics="rr", unknown_items="left_out")
    assert result.skipped("rr") == {"no relevant item to find": 1}


def test_what_is_left_out_is_not_in_the_best_order() -> None:
    result = rm.evaluate(
        rm.Scores([[2.0, 1.0, 0.0]]), np.array([[3.0, 1.0, 0.0]]),
        candidates=np.array([[0, 1, 1]]), metrics="ndcg@2", unranked="left_out",
        deep_cutoffs="computed",
    )  # fmt: skip
    assert result["ndcg@2"].tolist() == [1.0]


@pytest.mark.parametrize("duplicates", ["counted", "first", "joined"])
def test_an_item_that_is_listed_twice_and_is_no_candidate_is_left_out_once(duplicates: str) -> None:
    options = {"candidates": {1: [5, 6, 7]}, "unranked": "left_out", "duplicates": duplicates}
    result = evaluated({1: [4, 4, 4, 5, 6]}, {1: [4, 5]}, "recall@3 rr", **options)
    assert result.n_relevant.tolist() == [1]
    # Items that are no candidates hold no places: item 5 is the first.
    assert [result["recall@3"].item(), result["rr"].item()] == [1.0, 1.0]


def test_unknown_items_are_left_out_where_the_ranking_is_known_to_its_end() -> None:
    lists, test = {0: [0, 1], 1: [0, 1, 2, 3, 4]}, {0: [0, 9], 1: [0, 9]}
    result = evaluated(lists, test, "recall@2", unknown_items="left_out", catalogue=5)
    assert result["recall@2"].tolist() == [0.5, 1.0]

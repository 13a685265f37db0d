"""Tests that lists cut at a depth behave as if they had never been longer."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import recometer as rm
from recometer.sources.base import Request

METRICS = "precision@2 precision recall@2 recall hit@3 rr ap ap@3 ndcg ndcg@2 rprecision"
ORDERED = ("item", "item_desc", "input")


@st.composite
def lists(draw: st.DrawFn) -> pl.DataFrame:
    """Draw three users' lists as shuffled rows, some of which have equal scores."""
    rows = [
        (user, item, float(score))
        for user in range(3)
        for item, score in draw(
            st.lists(
                st.tuples(st.integers(0, 9), st.integers(0, 3)),
                min_size=1,
                max_size=8,
                unique_by=lambda entry: entry[0],
            )
        )
    ]
    return pl.DataFrame(draw(st.permutations(rows)), ("user", "item", "score"), orient="row")


def shortened(frame: pl.DataFrame, depth: int, ties: str) -> pl.DataFrame:
    """Sort the whole frame, and return the first `depth` rows of each user."""
    order = {"item_desc": ("item", True), "input": ("row", False)}.get(ties, ("item", False))
    ranked = frame.with_row_index("row").sort(
        ["score", order[0]], descending=[True, order[1]], maintain_order=True
    )
    first_rows = ranked.group_by("user", maintain_order=True).head(depth)
    return first_rows.sort("row").select("user", "item", "score")


@pytest.mark.filterwarnings("ignore:.*the cut-off is larger than every list")
@pytest.mark.filterwarnings("ignore:.*shifted_ids")
@pytest.mark.filterwarnings("ignore:rprecision reads the first R places")
@given(
    frame=lists(),
    judged=st.sets(st.tuples(st.integers(0, 2), st.integers(0, 11)), min_size=1),
    depth=st.integers(1, 9),
    ties=st.sampled_from((*ORDERED, "expected", "optimistic", "pessimistic")),
)
def test_cut_lists_behave_like_short_lists(frame, judged, depth, ties) -> None:
    users, items = zip(*sorted(judged), strict=True)
    values = [1 + (user + item) % 3 for user, item in judged]
    test = rm.Interactions.of(pl.DataFrame({"user": users, "item": items, "value": sorted(values)}))
    short = rm.Lists(shortened(frame, depth, ties))
    cut, short = (
        rm.evaluate(source, test, metrics=METRICS, ties=ties, shifted_ids="kept")
        for source in (rm.Lists(frame, depth=depth), short)
    )
    for name in cut.values:
        np.testing.assert_array_equal(cut[name], short[name], err_msg=name)


@pytest.mark.filterwarnings("ignore:.*repeat an item")
@pytest.mark.parametrize("ties", ["item", "item_desc", "input"])
def test_repeated_item_counts_at_its_first_place(ties: str) -> None:
    tied = pl.DataFrame({"user": [0, 0], "item": [0, 0], "score": [1.0, 1.0]})
    for source in (rm.Lists(tied), rm.Lists(tied, depth=1)):
        for duplicates in ("removed", "first", "counted"):
            result = rm.evaluate(
                source, {0: [0]}, metrics="recall@1 ndcg@1", ties=ties, duplicates=duplicates
            )
            assert result.mean() == {"recall@1": 1.0, "ndcg@1": 1.0}
    # The row with an item's best score determines the item's first place, wherever that row is in
    # the frame.
    later = pl.DataFrame({"user": [0] * 3, "item": [0, 1, 0], "score": [1.0, 2.0, 3.0]})
    result = rm.evaluate(rm.Lists(later), {0: [0]}, metrics="rr", ties=ties, duplicates="first")
    assert result.mean() == {"rr": 1.0}


@pytest.mark.filterwarnings("ignore:.*repeat an item")
def test_every_repeat_is_weighted_by_the_popularity_of_its_item() -> None:
    lists = rm.Lists({"ann": ["film", "film", "song"]})
    test = {"ann": ["film"]}
    train = {"ann": ["book"], "bob": ["film"], "eve": ["film", "song"]}
    once_each, with_repeats = (
        rm.evaluate(lists, test, train=train, metrics="ips_recall@2", duplicates=duplicates)
        for duplicates in ("first", "counted")
    )
    assert once_each.mean() == {"ips_recall@2": 1.0}
    assert with_repeats.mean() == {"ips_recall@2": 2.0}


def test_users_whose_list_is_cut_among_equal_scores_are_counted() -> None:
    scores = {"ann": {"a": 2, "b": 1, "c": 1}, "bob": {"a": 2, "b": 1, "c": 0}}
    lists = rm.Lists(scores, depth=2)
    test = {"ann": ["b"], "bob": ["b"]}
    result = rm.evaluate(lists, test, metrics="recall")
    assert result.counts["cut_in_ties"] == 1
    assert "users whose list is cut among equal scores (the lower ids stay): 1" in str(result)
    assert result["recall"].tolist() == [1.0, 1.0]
    result = rm.evaluate(lists, test, metrics="recall", ties="item_desc")
    assert "cut_in_ties" not in result.counts
    assert result["recall"].tolist() == [0.0, 1.0]


@pytest.mark.parametrize("ties", ORDERED)
def test_cut_items_rank_after_kept_items(ties: str) -> None:
    lists = {"ann": {"a": 1, "b": 1, "c": 1}, "bob": {"a": 3, "b": 2, "c": 2}}
    test = rm.Interactions.of({"ann": ["a", "b", "c"], "bob": ["a", "b", "c"]})
    request = Request(test, protocol=rm.Protocol(ties=ties))
    ranks = rm.Lists(lists, depth=2).rank(request)
    assert (ranks.above >= 0).tolist() == [True, True, False] * 2
    assert ranks.item.tolist() == ([1, 2, 0, 0, 2, 1] if ties == "item_desc" else [0, 1, 2] * 2)


def test_train_items_take_no_place() -> None:
    lists = rm.Lists({"ann": ["a", "b", "c"]}, depth=1)
    result = rm.evaluate(lists, {"ann": ["b"]}, train={"ann": ["a"]}, metrics="recall")
    assert result["recall"].tolist() == [1.0]


def test_depth_of_zero_is_refused() -> None:
    with pytest.raises(rm.InputError, match="depth=0 must be a whole number from 1 to"):
        rm.Lists({"ann": ["a"]}).cut_at(0)


def test_kept_items_share_places_if_the_cut_splits_a_tie():
    lists = rm.Lists({"ann": {"a": 3, "b": 2, "c": 2, "d": 2}}, depth=3)
    for item, expected in (("a", 1), ("b", (1 / 2 + 1 / 3) / 2), ("d", 0)):
        assert rm.evaluate(lists, {"ann": [item]}, metrics="rr")["rr"][0] == pytest.approx(expected)


@pytest.mark.parametrize(
    ("ties", "depth", "expected"),
    [
        ("expected", 2, 3 / 4),
        ("item", 2, 1),
        ("expected", 3, 11 / 18),
        ("expected", 2**31 - 1, 11 / 18),
    ],
)
def test_kept_items_with_equal_scores_are_tied(ties, depth, expected) -> None:
    lists = rm.Lists({"ann": {"a": 1, "b": 1, "c": 1}}, depth=depth)
    result = rm.evaluate(lists, {"ann": ["a"]}, metrics="rr", ties=ties, constant_scores="ties")
    assert result["rr"][0] == pytest.approx(expected)
    in_ties = ties == "expected" and depth == 2
    assert result.counts == ({"cut_in_ties": 1} if in_ties else {})


@pytest.mark.parametrize("ties", ["item_desc", "random"])
def test_cut_lists_agree_with_ranks(ties) -> None:
    test = {f"u{number}": ["a"] for number in range(9)}
    lists = rm.Lists({user: {"a": 1, "b": 1, "c": 2, "d": 0} for user in test}, depth=3)
    result = rm.evaluate(lists, test, metrics="rr coverage@3", catalogue=4, ties=ties)
    items = result.lists.item_ids[result.lists.items]
    assert result["rr"].tolist() == (1 / (1 + np.argmax(items == "a", axis=1))).tolist()
    assert len(set(result["rr"])) == (2 if ties == "random" else 1)
    assert (items[:, 0] == "c").all()

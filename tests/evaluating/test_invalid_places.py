"""A place in a list is invalid if its item is outside the catalogue or repeats an earlier item."""

import itertools
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st

import recometer as rm
from recometer.errors import DataWarning

ITEMS = list("uvwxyz")
CATALOGUE = list("wxyz")
USERS = ["ann", "bob", "cat", "dan"]
METRICS = [
    f"{name}@{k}" for name in ("valid", "repeated_items", "unknown_items") for k in (1, 3, 6)
]
EXAMPLE = {"ann": ["x", "y", "x", "z", "u", "u"], "bob": ["w", "w"], "cat": [], "dan": ["v"]}
TEST = {"ann": ["x", "z"], "bob": ["y"], "cat": ["x"], "dan": ["w"]}


def by_definition(row, removed, k):
    """Compute three metrics of a list by their definitions, without the training items."""
    row = [item for item in row if item not in removed]
    first = [item not in row[:place] for place, item in enumerate(row)]
    valid = sum(new and item in CATALOGUE for item, new in zip(row[:k], first, strict=False)) / k
    if not row:
        return valid, np.nan, np.nan
    distinct = list(dict.fromkeys(row))[:k]
    return (
        valid,
        1 - sum(first[:k]) / len(row[:k]),
        sum(item not in CATALOGUE for item in distinct) / len(distinct),
    )


def evaluate(source, test=TEST, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        return rm.evaluate(source, test, metrics=METRICS, catalogue=CATALOGUE, **options)


def check(result, lists, train=None):
    for user, k in itertools.product(USERS, (1, 3, 6)):
        expected = by_definition(lists.get(user, []), (train or {}).get(user, []), k)
        place = result.user_ids.tolist().index(user)
        actual = [result[f"{name}@{k}"][place] for name in ("valid", "repeated_items")]
        actual.append(result[f"unknown_items@{k}"][place])
        np.testing.assert_allclose(actual, expected, err_msg=f"{user} {k}")


def forms(lists, folder):
    """Yield the same lists in several forms."""
    yield rm.Lists(lists)
    rows = [(u, i, r) for u, row in lists.items() for r, i in enumerate(row, 1)]
    frame = pl.DataFrame(rows, ["user", "item", "rank"], orient="row")
    yield rm.Lists(frame.sample(fraction=1, shuffle=True, seed=1))
    yield rm.Lists(frame.with_columns(score=-pl.col("rank")).drop("rank").to_pandas())
    frame.write_parquet(folder / "lists.parquet")
    yield rm.Lists(folder / "lists.parquet")
    padded = [[ITEMS.index(i) for i in row] + [-1] * (8 - len(row)) for row in lists.values()]
    yield rm.Lists(np.array(padded), user_ids=list(lists), item_ids=ITEMS)


def test_every_form_of_lists_gives_the_same_values(tmp_path):
    for source in forms(EXAMPLE, tmp_path):
        check(evaluate(source), EXAMPLE)


rows = st.lists(st.sampled_from(ITEMS), max_size=8)


@given(st.lists(rows, min_size=4, max_size=4), st.lists(rows, min_size=4, max_size=4))
@examples(2)
def test_values_match_the_definition(rows_of_lists, trained):
    lists, train = (
        dict(zip(USERS, rows_of_users, strict=True)) for rows_of_users in (rows_of_lists, trained)
    )
    if any(rows_of_lists):
        source = rm.Lists(lists)
        check(evaluate(source), lists)
        check(evaluate(source, train=train), lists, train)


@given(st.lists(rows, min_size=4, max_size=4), st.permutations(USERS), st.integers(1, 3))
def test_stream_returns_the_same_values(rows_of_lists, order, n_in_first_stream):
    """Merging two streams of different users does not change a single bit of the values."""
    lists = dict(zip(USERS, rows_of_lists, strict=True))
    if not any(rows_of_lists):
        return
    expected = evaluate(rm.Lists(lists))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        evaluator = rm.Evaluator(TEST, metrics=METRICS, catalogue=CATALOGUE)
        streams = evaluator.stream(), evaluator.stream()
        for number, user in enumerate(order):
            if lists[user]:
                streams[number >= n_in_first_stream].update({user: lists[user]})
        if streams[0].n_users:
            streams[1].merge(streams[0])
        merged = streams[1].compute()
    for metric in METRICS:
        np.testing.assert_array_equal(merged[metric], expected[metric])


def test_repeated_items_are_counted_among_equal_scores():
    """Tied items are ordered by id, and a repeated item directly follows its first occurrence."""
    frame = pd.DataFrame({"user": ["ann"] * 4, "item": list("yxyw"), "score": [1.0, 1, 1, 0]})
    for ties in ("item", "expected", "random", "item_desc"):
        result = evaluate(rm.Lists(frame), {"ann": ["x"]}, ties=ties)
        assert result["valid@3"] == 2 / 3
        assert result["repeated_items@6"] == 1 / 4
        tied = evaluate(
            rm.Lists(frame.assign(item=list("xyzx"), score=1)), {"ann": ["x"]}, ties=ties
        )
        assert tied["repeated_items@3"] == (0 if ties == "item_desc" else 1 / 3)


@pytest.mark.parametrize("ties", ["expected", "random"])
def test_repeats_after_the_last_item_of_a_cut_list_are_ignored(ties):
    """The depth counts distinct items, and a list is cut right after the last of them."""
    lists = {"ann": list("xxxyyxz"), "bob": ["x", "y", "x"], "cat": ["x"], "dan": ["x", "u", "z"]}
    result = evaluate(rm.Lists(lists, depth=2), {user: ["y"] for user in USERS}, ties=ties)
    assert result["repeated_items@6"].tolist() == [2 / 4, 0, 0, 0]
    assert result["repeated_items@3"].tolist() == [2 / 3, 0, 0, 0]
    assert result["valid@3"].tolist() == [1 / 3, 2 / 3, 1 / 3, 1 / 3]


def test_metrics_skip_places_of_items_outside_the_candidates():
    result = evaluate(
        rm.Lists({"ann": ["u", "x", "u", "x", "y"]}), {"ann": ["y"]}, candidates=["x", "y"]
    )
    assert result["repeated_items@3"] == 1 / 3
    assert result["valid@3"] == 2 / 3


def test_empty_list_has_no_valid_place_and_counts_in_the_mean():
    result = evaluate(rm.Lists(EXAMPLE))
    assert result.mean()["valid@3"] == pytest.approx((2 / 3 + 1 / 3) / 4)
    assert result.mean()["repeated_items@3"] == pytest.approx((1 / 3 + 1 / 2) / 3)


def test_score_sources_have_no_repeated_items():
    scores = rm.Scores(np.eye(4), user_ids=USERS, item_ids=CATALOGUE)
    result = evaluate(scores)
    assert set(result["valid@3"]) == {1.0}
    assert set(result["repeated_items@3"]) == {0.0}


def test_metrics_of_places_support_intervals_groups_and_comparisons():
    rng = np.random.default_rng(5)
    users = [f"u{n:02}" for n in range(60)]
    test = {user: ["x"] for user in users}

    def lists(share):
        return {
            user: [rng.choice(ITEMS[:2] if rng.random() < share else CATALOGUE) for _ in range(5)]
            for user in users
        }

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        results = {
            name: rm.evaluate(
                rm.Lists(lists(share)),
                test,
                metrics="valid@5 repeated_items@5",
                catalogue=CATALOGUE,
            )
            for name, share in (("bad", 0.6), ("good", 0.1))
        }
    row = next(
        summary_row for summary_row in results["good"].summary() if summary_row.metric == "valid@5"
    )
    assert row.low < row.mean < row.high
    by = results["good"].by({user: user[1] for user in users})
    assert by.frame()["metric"].unique().sort().to_list() == ["repeated_items@5", "valid@5"]
    versus = rm.compare(results, baseline="bad")
    assert versus.row("valid@5", "good").verdict == "better"
    assert versus.gate("valid@5 >= 0%").passed

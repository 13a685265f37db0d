"""Tests that columns are recognised by name, in Python and on the command line."""

import itertools
import warnings

import duckdb
import pandas as pd
import polars as pl
import pytest
from command_line import run_command

import recometer as rm
from recometer.data.columns import KINDS, choose_columns, find_columns, value_candidates
from recometer.errors import ColumnError, DataWarning

LABELS = ["label", "target", "clicked", "purchased", "is_relevant", "relevant", "y", "Rating"]


def ranker(label="label", **other_columns):
    """Return a ranking model's output, in which the scores contradict the labels."""
    rows = {"query": [1, 1, 2, 2], "doc": [1, 2, 1, 2], label: [0, 1, 1, 0]}
    return pl.DataFrame({**rows, "score": [0.9, 0.1, 0.2, 0.8], **other_columns})


@pytest.mark.parametrize("label", LABELS)
def test_labels_are_read_from_the_label_column_instead_of_the_scores(label, tmp_path):
    frame = ranker(label)
    frame.write_csv(tmp_path / "ranker.csv")
    for data in (frame, frame.to_pandas(), frame.drop("score"), tmp_path / "ranker.csv"):
        interactions = rm.Interactions.of(data)
        assert interactions.values.tolist() == [0, 1, 1, 0]
        assert interactions.columns == ("query", "doc", label, None)
        assert f"of column {label!r}" in repr(interactions)
    lists = rm.Lists(frame)
    assert rm.evaluate(lists, frame, metrics="rr").mean() == {"rr": 0.5}
    assert rm.evaluate(rm.Pairs(frame), metrics="rr").mean() == {"rr": 0.5}


def test_command_line_recognises_the_same_columns(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ranker().write_parquet("ranker.parquet")
    arguments = ["evaluate", "--test", "ranker.parquet", "--run", "ranker.parquet"]
    result = run_command([*arguments, "--metrics", "rr", "--format", "json"])
    assert '"mean": 0.5' in result.stdout
    assert "test: ranker.parquet (user 'query', item 'doc', value 'label')" in result.stderr
    assert "ranker: ranker.parquet (user 'query', item 'doc', score 'score')" in result.stderr


@pytest.mark.parametrize(
    ("user", "item"),
    [
        ("user", "item"), ("user_id", "item_id"), ("uid", "iid"), ("qid", "docno"),
        ("query_id", "doc_id"), ("topic", "docid"), ("session", "product"), ("SessionId", "sku"),
        ("customer", "movie"), ("playlist_id", "track"), ("userId", "video_id"),
    ],
)  # fmt: skip
def test_common_names_of_user_and_item_columns_are_recognised(user, item):
    assert find_columns([item, "price", user])[:2] == (user, item)
    assert rm.Lists(pl.DataFrame({item: [1], user: [2], "rank": [1]})).facts.listed() == [2]
    pairs = pl.DataFrame({item: [1, 2], user: [2, 2], "score": [1.0, 2.0], "label": [0, 1]})
    assert rm.evaluate(rm.Pairs(pairs), metrics="rr").mean() == {"rr": 1.0}


def test_ambiguous_column_names_are_used_only_without_a_clear_one():
    assert find_columns(["session_id", "user_id", "topic", "item_id"])[0] == "user_id"
    assert find_columns(["user", "item", "score", "rating"]).value == "rating"
    assert find_columns(["user", "item", "prediction"]).value is None
    options = {"score": None}
    assert choose_columns(["rating", "score"], options) == {"score": "score"}
    assert choose_columns(["rating", "label"], options) == {"score": "rating"}
    assert choose_columns(["rating", "label"], options, strict=["score"]) == {"score": None}


def test_error_about_ambiguous_columns_lists_the_choices():
    with pytest.raises(ColumnError, match=r"hold the users: 'user_id', 'query'. Hint: pass user="):
        find_columns(["user_id", "query", "doc"])
    with pytest.raises(ColumnError, match=r"'label', 'rating'\. .*or value=False for none"):
        rm.Interactions.of(ranker(rating=[1.0, 2, 3, 4]))
    with pytest.raises(ColumnError, match=r"Name columns in rm\.Interactions\.of\(test, \.\.\.\)"):
        rm.evaluate(rm.Lists({1: [1]}), ranker(rating=[1.0, 2, 3, 4]))


def test_users_items_times_and_values_share_no_column_name():
    for first, second in itertools.combinations(("user", "item", "time", "value"), 2):
        names = {*KINDS[first].names, *KINDS[first].fallback}
        assert not names & {*KINDS[second].names, *KINDS[second].fallback}


FRAMES = {
    "polars": pl.DataFrame,
    "lazy": pl.LazyFrame,
    "pandas": pd.DataFrame,
    "arrow": lambda rows: pl.DataFrame(rows).to_arrow(),
    "duckdb": lambda rows: duckdb.from_arrow(pl.DataFrame(rows).to_arrow()),
}


@pytest.mark.parametrize("kind", FRAMES)
@pytest.mark.parametrize("column", [[3, 4], [0.5, 0.25], [True, False]])
def test_ignored_column_that_could_contain_values_causes_a_warning(kind, column):
    rows = {"user": [1, 2], "item": [1, 2], "dwell": column, "note": ["a", "b"]}
    with pytest.warns(DataWarning, match=r"relevant: 'dwell' is not read\. Hint: value='dwell'"):
        assert rm.Interactions.of(FRAMES[kind](rows)).values is None
    assert rm.Interactions.of(FRAMES[kind](rows), value="dwell").values.tolist() == column
    assert rm.Interactions.of(FRAMES[kind](rows), value=False).values is None
    lists = rm.Lists({1: [1], 2: [2]})
    with pytest.warns(DataWarning, match=r"rm\.Interactions\.of\(test, value='dwell'\) reads"):
        rm.evaluate(lists, FRAMES[kind](rows), metrics="rr")
    # An ignored column of the training data causes no warning, since its values do not affect
    # relevance.
    rm.evaluate(rm.Lists({1: [2]}), {1: [2]}, train=FRAMES[kind](rows), metrics="rr")


@pytest.mark.parametrize("column", ["3,4", "0.5,0.25", "True,False", "true,FALSE"])
def test_ignored_columns_of_text_files_cause_a_warning(tmp_path, column):
    path = tmp_path / "data.csv"
    first, second = column.split(",")
    path.write_text(f"user,item,dwell,note\n1,1,{first},a\n2,2,{second},b\n", encoding="utf-8")
    with pytest.warns(DataWarning, match="'dwell' is not read"):
        assert rm.Interactions.of(path).values is None
    expected = [float(eval(first.title())), float(eval(second.title()))]
    assert rm.Interactions.of(path, value="dwell").values.tolist() == expected


def test_true_and_false_in_text_are_read_as_values(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text("user,item,clicked\n1,1,True\n1,2,False\n2,2,True\n", encoding="utf-8")
    assert rm.Interactions.of(path).values.tolist() == [1, 0, 1]
    path.write_text("user,item,clicked\n1,1,True\n1,2,2\n", encoding="utf-8")
    with pytest.raises(rm.InputError, match=r"holds 'True'.*a number \(or pass value=False\)"):
        rm.Interactions.of(path)


def test_columns_with_unrelated_names_are_not_read_as_values():
    others = ["category_id", "sessionId", "Unnamed: 0", "price", "item.index", "release_year", "ts"]
    assert value_candidates([*others, "dwell", "n_views"]) == ["dwell", "n_views"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rm.Interactions.of(pl.DataFrame({"user": [1], "item": [2], "session_id": [3], "age": [4]}))


def test_reading_labels_from_a_score_column_causes_a_warning():
    frame = ranker().drop("label")
    with pytest.warns(
        DataWarning, match=r"'score' was read as the relevance of items.*not ground truth"
    ):
        assert rm.Interactions.of(frame).values.tolist() == [0.9, 0.1, 0.2, 0.8]
    assert rm.Interactions.of(frame, value="score").values.tolist() == [0.9, 0.1, 0.2, 0.8]


def test_text_column_named_label_can_be_left_out():
    frame = pl.DataFrame({"user": [1], "item": [2], "label": ["electronics"]})
    with pytest.raises(rm.InputTypeError, match="or pass value=False if it contains something"):
        rm.Interactions.of(frame)
    assert rm.Interactions.of(frame, value=False).values is None


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("user", r"rm\.Interactions\.of\(test, user=\.\.\.\) or rm\.Lists\(frame, user=\.\.\.\)"),
        ("value", r"rm\.Interactions\.of\(test, value=\.\.\.\)\."),
        ("rank", r"rm\.Lists\(frame, rank=\.\.\.\)\."),
        ("user_ids", r"rm\.Interactions\.of\(test, user_ids=\.\.\.\)"),
        ("k", r"metrics='ndcg@5,10'"),
    ],
)
def test_error_about_an_argument_of_another_call_names_that_call(name, call):
    with pytest.raises(rm.UnknownNameError, match=call):
        rm.evaluate(rm.Lists({1: [1]}), {1: [1]}, **{name: "x"})


def test_error_about_ids_spelled_differently_shows_both():
    with pytest.raises(rm.InputError, match=r"spelled the same in both\? The source has 'ann'"):
        rm.evaluate(rm.Lists({"ann": [1]}), {"Ann": [1]})

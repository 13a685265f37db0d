"""Splits and folds are evaluated and compared on Spark as on a single machine."""

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal
from spark_cases import MARKS, assert_same
from spark_comparisons import assert_same_rows, frame_of

import recometer as rm
import recometer.spark as rs
from recometer.evaluation import FoldedEvaluation
from recometer.split import Fraction, KFold, folds

pytestmark = MARKS

USERS, ITEMS = [f"u{n}" for n in range(40)], [f"i{n}" for n in range(25)]
SCHEMA = "user string, item string, rating double"


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    places = rng.choice(len(USERS) * len(ITEMS), 300, replace=False).tolist()
    return {
        "user": [USERS[place // len(ITEMS)] for place in places],
        "item": [ITEMS[place % len(ITEMS)] for place in places],
        "rating": rng.integers(1, 6, 300).astype(float).tolist(),
    }


def lists_of(spark, seed):
    rng = np.random.default_rng(seed)
    columns = {
        "user": [user for user in USERS for _ in ITEMS],
        "item": ITEMS * len(USERS),
        "score": rng.integers(0, 8, len(USERS) * len(ITEMS)).astype(float),
    }
    schema = "user string, item string, score double"
    return rs.Lists(frame_of(spark, columns, schema)), rm.Lists(pl.DataFrame(columns))


@pytest.mark.filterwarnings("ignore:coverage@3. one value for all users")
def test_folds_are_pooled_and_compared_as_on_one_machine(spark, rows):
    frame = frame_of(spark, rows, SCHEMA)
    spark_folds, parts = rs.folds(frame, KFold(2)), folds(pl.DataFrame(rows), KFold(2))
    options = {"metrics": "ndcg@5 rr@20 coverage@3", "chance": True, "catalogue": ITEMS}
    results, expected = {}, {}
    for seed, name in enumerate(("one", "two")):
        lists, local_lists = lists_of(spark, seed)
        source = [lists, lists] if seed else lambda split, lists=lists: lists
        results[name] = rs.evaluate(source, spark_folds, **options)
        expected[name] = rm.evaluate([local_lists, local_lists], parts, **options)
    result, local = results["one"], expected["one"]
    assert isinstance(result, FoldedEvaluation)
    assert result.over_users == pytest.approx(dict(local.over_users), abs=1e-12)
    assert result.user_ids.tolist() == local.user_ids.tolist()
    for name, values in local.values.items():
        np.testing.assert_array_equal(result.values[name], values, err_msg=name)
        np.testing.assert_array_equal(result.reasons[name], local.reasons[name], err_msg=name)
    for name in ("n_relevant", "n_candidates", "n_excluded", "depth", "flags"):
        np.testing.assert_array_equal(getattr(result, name), getattr(local, name), err_msg=name)
    for row, local_lists in zip(result.summary(), local.summary(), strict=True):
        ends = [local_lists.mean, local_lists.low, local_lists.high, local_lists.chance]
        actual = [row.mean, row.low, row.high, row.chance]
        assert actual == pytest.approx(ends, abs=1e-12, nan_ok=True)
        assert (row.metric, row.counted, row.note) == (
            local_lists.metric,
            local_lists.counted,
            local_lists.note,
        )
    assert_frame_equal(result.per_fold(), local.per_fold(), rel_tol=1e-12)
    options_of_comparison = {"metrics": "ndcg@5 rr@20", "chance": True}
    actual, local_comparison = (
        rs.compare(results, **options_of_comparison),
        rm.compare(expected, **options_of_comparison),
    )
    assert_same_rows(actual, local_comparison)
    for row, local_lists in zip(actual.rows, local_comparison.rows, strict=True):
        assert (
            (row.runs is None) == (local_lists.runs is None) == ("chance" in (row.model, row.other))
        )
        if row.runs is not None:
            assert row.runs.n_runs == local_lists.runs.n_runs == (2,)
            assert row.runs.p_value == pytest.approx(local_lists.runs.p_value)
            assert row.runs.share_of_runs == pytest.approx(local_lists.runs.share_of_runs)


@pytest.mark.parametrize("spark", ["classic"], indirect=True)
def test_split_provides_train_and_column_names_for_the_evaluation(spark, rows):
    names = {"user": "who", "item": "what", "rating": "stars"}
    renamed = {names[name]: column for name, column in rows.items()}
    columns = {"user": "who", "item": "what", "value": "stars"}
    schema = SCHEMA.replace("user", "who").replace("item", "what").replace("rating", "stars")
    split = rs.split(frame_of(spark, renamed, schema), Fraction(0.3), **columns)
    lists, local_lists = lists_of(spark, 3)
    expected = rm.evaluate(
        local_lists, rm.split(pl.DataFrame(renamed), Fraction(0.3), **columns), metrics="ndcg@5"
    )
    assert_same(rs.evaluate(lists, split, metrics="ndcg@5"), expected)
    with pytest.raises(rm.InputError, match="but SparkSplit contains its own"):
        rs.evaluate(lists, split, train=split.train)
    with pytest.raises(rm.InputTypeError, match="Each fold needs its own model output, found one"):
        rs.evaluate(lists, [split, split])
    with pytest.raises(rm.InputError, match="There are 1 sources for 2 folds"):
        rs.evaluate([lists], [split, split])

"""Results do not change if Spark's workers die, and invalid arguments and data are refused."""

import os

import polars as pl
import pytest
from spark_cases import MARKS, assert_same, data, schema_of

import recometer as rm
import recometer.spark as rs
from recometer.errors import (
    ColumnError,
    DataWarning,
    InputError,
    InputTypeError,
    UnknownNameError,
)
from recometer.spark import evaluation, tables

pytestmark = MARKS


def columns_of_lists(users, items, rng):
    """Draw lists of eight items, and return them as columns."""
    places = [rng.permutation(len(items))[:8] for _ in users]
    return {
        "user": [user for user in users for _ in range(8)],
        "item": [items[place] for places_of_user in places for place in places_of_user],
        "rank": [rank for _ in users for rank in range(1, 9)],
    }


def test_results_do_not_change_if_a_worker_dies(table, monkeypatch, tmp_path):
    users, items, test, train, rng = data(seed=4)
    rows = columns_of_lists(users, items, rng)
    marks = str(tmp_path)

    class Dying(evaluation.Job):
        """A job in which each task's first attempt ends its process after the first rows."""

        def __call__(self, batches):
            import pyspark

            task = pyspark.TaskContext.get().partitionId()
            for batch in super().__call__(batches):
                yield batch
                mark = os.path.join(marks, str(task))
                if not os.path.exists(mark):
                    with open(mark, "w"):
                        pass
                    os._exit(1)

    monkeypatch.setattr(evaluation, "Job", Dying)
    schema = schema_of(str)
    lists = rs.Lists(table(rows, "user string, item string, rank bigint"))
    options = {"metrics": "ndcg@5 recall@5 rr@8", "partitions": 2}
    result = rs.evaluate(lists, table(test, schema), train=table(train, schema), **options)
    local = rm.Lists(pl.DataFrame(rows))
    del options["partitions"]
    expected = rm.evaluate(local, pl.DataFrame(test), train=pl.DataFrame(train), **options)
    assert_same(result, expected)
    assert sorted(os.listdir(marks)) == ["0", "1"]


def test_user_with_too_many_rows_is_refused_before_they_reach_a_worker(table, monkeypatch):
    monkeypatch.setattr(tables, "MOST_ROWS", 30)
    rows = {"user": ["a"] * 40 + ["b"] * 3, "item": [f"i{n}" for n in range(43)]}
    frame = table(rows, "user string, item string")
    lists = rs.Lists(frame.selectExpr("*", "1 AS rank"))
    message = r"user 'a' has 4\d rows\. Hint: such a user .*: leave it out"
    with pytest.raises(InputError, match=message):
        rs.evaluate(lists, frame.where("item != 'i0' AND item < 'i11'"), metrics="rr")
    with pytest.raises(InputError, match=message):
        rs.split(frame, rm.split.Fraction(0.5))


def test_invalid_arguments_and_data_are_refused(table):
    users, items, test, _, rng = data(seed=5)
    rows = table(columns_of_lists(users, items, rng), "user string, item string, rank bigint")
    frame = table(test, schema_of(str))
    lists = rs.Lists(rows)
    with pytest.raises(InputTypeError, match="must be a source, found DataFrame"):
        rs.evaluate(rows, frame)
    with pytest.raises(InputTypeError, match=r"test must be a Spark DataFrame, found dict"):
        rs.evaluate(lists, {"u1": ["i1"]})
    half = rm.split.Fraction(0.5)
    for call in (
        lambda n: rs.evaluate(lists, frame, partitions=n),
        lambda n: rs.split(frame, half, partitions=n),
    ):
        for wrong in (0, -1, "user", 2.0, True, 2**31):
            with pytest.raises(InputError, match=r"partitions=.* must be a whole number"):
                call(wrong)
    with pytest.raises(ColumnError, match="There is no column 'rating'"):
        rs.evaluate(lists, rs.Interactions(frame, value="rating"))
    with pytest.raises(InputTypeError, match="user ids of test are integers, but those of Lists"):
        rs.evaluate(lists, frame.selectExpr("CAST(1 AS int) AS user", "item"))
    with pytest.raises(InputTypeError, match="holds users as date"):
        rs.evaluate(lists, frame.selectExpr("current_date() AS user", "item"))
    with pytest.raises(InputError, match="defects=True is refused for users with a list shorter"):
        rs.evaluate(lists, frame, metrics="LinkPredMRR@9", protocol="pyg", defects=True)
    with pytest.raises(InputError, match="roc_auc needs the whole ranking"):
        rs.evaluate(lists, frame, metrics="roc_auc")
    with pytest.raises(UnknownNameError, match="evaluate has no parameter or rule 'threads'"):
        rs.evaluate(lists, frame, threads=2)
    texts = rows.selectExpr("user", "item", "CAST(rank AS string) AS score")
    with pytest.raises(
        InputTypeError, match=r"scores \(column 'score'\) must be numbers, found str"
    ):
        rs.evaluate(rs.Lists(texts), frame)
    with pytest.raises(
        InputTypeError, match=r"values \(column 'value'\) must be numbers, found str"
    ):
        rs.evaluate(lists, frame.selectExpr("user", "item", "CAST(value AS string) AS value"))
    ranked_and_scored = rs.Lists(rows.selectExpr("*", "-rank AS score"))
    with pytest.raises(InputError, match="ranks in column 'rank' and scores in 'score', which may"):
        rs.evaluate(ranked_and_scored, frame)
    with pytest.raises(InputError, match="test is empty"):
        rs.evaluate(lists, frame.where("false"))
    with pytest.raises(InputError, match=r"None of the \d+ test users, such as"):
        rs.evaluate(lists, frame.selectExpr("concat('x', user) AS user", "item"))
    with pytest.raises(InputError, match="test has rows in which the user is missing"):
        rs.evaluate(lists, frame.selectExpr("CAST(NULL AS string) AS user", "item"))
    vectors = table(
        {"id": ["i1", "i1"], "features": [[1.0], [2.0]]}, "id string, features array<double>"
    )
    with pytest.raises(InputError, match="must be distinct, but 'i1' occurs twice"):
        rs.evaluate(rs.Factors(vectors, vectors), frame)
    with pytest.raises(InputError, match="keeps the order of the input"):
        rs.evaluate(lists, frame, ties="input")
    with pytest.warns(DataWarning, match="ndcg@10: the cut-off is larger than every list"):
        rs.evaluate(lists, frame, metrics="ndcg@10")

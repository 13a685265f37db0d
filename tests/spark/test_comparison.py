"""Comparing on Spark says what one machine says."""

import numpy as np
import polars as pl
import pytest
from spark_cases import MARKS, assert_same_rows, data, schema_of

import recometer as rm
import recometer.spark as rs
from recometer.errors import InputError

pytestmark = [*MARKS, pytest.mark.filterwarnings("ignore:Users that only one")]

NAMES = ("first", "second", "third")
GIVEN = {"metrics": "ndcg@5 rr@20 novelty@5", "chance": True}


@pytest.fixture(scope="module")
def models(spark):
    """Return the results of three models on Spark and on one machine, and the users."""
    users, items, test, train, rng = data(seed=6)
    schema = schema_of(str)
    tables = [frame_of(spark, columns, schema) for columns in (test, train)]
    results, expected = {}, {}
    for name in NAMES:
        rows = {
            "user": [user for user in users for _ in items],
            "item": items * len(users),
            "score": rng.integers(0, 8, len(users) * len(items)).astype(float),
        }
        lists = rs.Lists(frame_of(spark, rows, schema.replace("value", "score")))
        results[name] = rs.evaluate(lists, tables[0], train=tables[1], catalogue=items, **GIVEN)
        one, trained = rm.Lists(pl.DataFrame(rows)), pl.DataFrame(train)
        expected[name] = rm.evaluate(
            one, pl.DataFrame(test), train=trained, catalogue=items, **GIVEN
        )
    return results, expected, users


def frame_of(spark, columns, schema):
    rows = zip(*(np.asarray(one, object).tolist() for one in columns.values()), strict=True)
    return spark.createDataFrame(list(rows), schema).repartition(3)


VARIANTS = {
    "primary": {"baseline": "second", "primary": ["ndcg@5"]},
    "wilcoxon": {"test": "wilcoxon", "metrics": "ndcg@5"},
    "t": {"test": "t", "interval": "bca", "margin": 0.05, "correction": "bonferroni"},
    "tukey": {"correction": "tukey", "metrics": "ndcg@5 novelty@5", "seed": 3},
    "chance": {"chance": True, "margin": {"ndcg@5": 0.2}, "metrics": "ndcg@5 novelty@5"},
    "against chance": {"chance": True, "baseline": "chance"},
}


@pytest.mark.parametrize("spark", ["classic"], indirect=True)
@pytest.mark.parametrize("variant", VARIANTS)
def test_models_are_compared_as_on_one_machine(models, variant):
    results, expected, _ = models
    given = VARIANTS[variant]
    found = rs.compare(results, **given)
    assert_same_rows(found, rm.compare(expected, **given))
    assert "adjusted" in str(found)


def test_clusters_of_users_are_drawn_together(models, spark):
    results, expected, users = models
    clusters = [f"c{number % 7 if number > 20 else number}" for number in range(len(users))]
    frame = spark.createDataFrame(list(zip(users, clusters, strict=True)), "user string, c string")
    groups = pl.DataFrame({"user": users, "c": clusters})
    for given in ({"metrics": "ndcg@5"}, {"metrics": "rr@20", "test": "wilcoxon", "margin": 0.1}):
        found = rs.compare(results, cluster=frame, **given)
        assert_same_rows(found, rm.compare(expected, cluster=groups, **given))
    with pytest.raises(InputError, match="1 of 58 users have no cluster, for instance 'u5'"):
        rs.compare(results, cluster=frame.where("user != 'u5'"))
    with pytest.raises(InputError, match="has 0 columns besides the users"):
        rs.compare(results, cluster=frame.select("user"))


def test_results_of_elsewhere_are_refused(models):
    results, expected, _ = models
    with pytest.raises(rm.InputTypeError, match="must be a result of"):
        rs.compare({"a": results["first"], "b": expected["first"]})
    with pytest.raises(rm.UnknownNameError, match="has no metric 'hit@5'"):
        rs.compare(results, metrics="hit@5")

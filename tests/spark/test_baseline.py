"""Metrics that compare a model's lists with a baseline's give the same values on Spark."""

import polars as pl
import pytest
from spark_cases import MARKS, assert_same, both_factors, data, schema_of

import recometer as rm
import recometer.spark as rs
from recometer.errors import InputError

pytestmark = [*MARKS, pytest.mark.parametrize("spark", ["classic"], indirect=True)]

METRICS = "ndcg@5 overlap@5 unexpectedness@5 serendipity@5 rbo@5"


def test_spark_baseline_gives_the_same_result_as_a_local_baseline(table):
    users, items, test, train, rng = data(seed=8)
    source, local = both_factors(table, rng, "float64", users, items, slice(4, None))
    items_of_lists = [[items[n] for n in rng.permutation(len(items))[:9]] for _ in users[:50]]
    arrays = table({"user": users[:50], "item": items_of_lists}, "user string, item array<string>")
    lists = rm.Lists(pl.DataFrame({"user": users[:50], "item": items_of_lists}))
    tables = [table(columns, schema_of(str)) for columns in (test, train)]
    options = {"metrics": METRICS, "catalogue": items}
    result = rs.evaluate(source, tables[0], train=tables[1], baseline=rs.Lists(arrays), **options)
    frames = [pl.DataFrame(columns) for columns in (test, train)]
    expected = rm.evaluate(local, frames[0], train=frames[1], baseline=lists, **options)
    assert_same(result, expected)
    result = rs.evaluate(rs.Lists(arrays), tables[0], train=tables[1], baseline=source, **options)
    expected = rm.evaluate(lists, frames[0], train=frames[1], baseline=local, **options)
    assert_same(result, expected)
    with pytest.raises(InputError, match="Hint: pass baseline="):
        rs.evaluate(source, tables[0], metrics="overlap@5")
    lists_of_other_users = rs.Lists(arrays.selectExpr("concat('x', user) AS user", "item"))
    with pytest.raises(InputError, match="has no list for any test user"):
        rs.evaluate(source, tables[0], train=tables[1], baseline=lists_of_other_users, **options)

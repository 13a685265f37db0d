"""Metrics restricted to groups of items give the same values on Spark."""

import polars as pl
import pytest
from spark_cases import MARKS, assert_same, both_factors, data, schema_of

import recometer as rm
import recometer.spark as rs
from recometer.errors import UnknownNameError

pytestmark = [*MARKS, pytest.mark.parametrize("spark", ["classic"], indirect=True)]


def test_groups_of_items_are_evaluated_as_on_one_machine(table):
    users, items, test, train, rng = data(seed=3)
    source, local = both_factors(table, rng, "float64", users, items, slice(2, None))
    groups = {item: ("new" if number % 3 else "old") for number, item in enumerate(items)}
    catalogue = rm.Catalogue.of_groups(groups)
    tables = [table(columns, schema_of(str)) for columns in (test, train)]
    options = {"metrics": "ndcg@5 ndcg@5[new] recall@5[old] share@5[new]", "catalogue": catalogue}
    result = rs.evaluate(source, tables[0], train=tables[1], **options)
    frames = [pl.DataFrame(columns) for columns in (test, train)]
    expected = rm.evaluate(local, frames[0], train=frames[1], **options)
    assert_same(result, expected)
    with pytest.raises(UnknownNameError, match="no item of the catalogue is in it"):
        rs.evaluate(source, tables[0], metrics="ndcg@5[nw]", catalogue=catalogue)

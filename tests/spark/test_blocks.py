"""Batches of rows become blocks that never split a user. These tests do not need Spark."""

import itertools

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from recometer.spark.block import blocks
from recometer.spark.tables import Table


@given(
    st.lists(st.integers(0, 9), max_size=40), st.lists(st.integers(0, 40), max_size=4), st.data()
)
def test_blocks_contain_each_user_once_in_order(lengths, cuts, drawn):
    rows = [[{"i": 10 * user + n} for n in range(length)] for user, length in enumerate(lengths)]
    kind = pa.list_(pa.struct([("i", pa.int64())]))
    whole = pa.table({"u": np.arange(len(rows)), "test": pa.array(rows, kind)})
    whole = whole.append_column("many", pa.nulls(len(rows), pa.int32()))
    ends = [0, *sorted(min(cut, len(rows)) for cut in cuts), len(rows)]
    batches = []
    for begin, end in itertools.pairwise(ends):
        part = whole.slice(begin, end - begin).combine_chunks()
        batches += part.to_batches()
    found = list(blocks(batches, drawn.draw(st.sampled_from([1, 60, 300, 2**24]))))
    assert [user for one in found for user in one["u"].to_pylist()] == list(range(len(rows)))
    assert all(one.num_rows for one in found)
    test = Table("test", None, {"user": "user", "item": "i"})
    tables = [test.rows(one, "test") for one in found]
    owners = [user for one in tables for user in one["user"].to_pylist()]
    items = [item for one in tables for item in one["i"].to_pylist()]
    assert owners == [user for user, length in enumerate(lengths) for _ in range(length)]
    assert items == [one["i"] for row in rows for one in row]

"""Batches of rows become blocks that never split a user; these tests do not need Spark."""

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
def test_blocks_contain_each_user_once_in_order(lengths, cuts, data):
    rows = [[{"i": 10 * user + n} for n in range(length)] for user, length in enumerate(lengths)]
    kind = pa.list_(pa.struct([("i", pa.int64())]))
    whole_table = pa.table({"u": np.arange(len(rows)), "test": pa.array(rows, kind)})
    whole_table = whole_table.append_column("many", pa.nulls(len(rows), pa.int32()))
    ends = [0, *sorted(min(cut, len(rows)) for cut in cuts), len(rows)]
    batches = []
    for begin, end in itertools.pairwise(ends):
        part = whole_table.slice(begin, end - begin).combine_chunks()
        batches += part.to_batches()
    user_blocks = list(blocks(batches, data.draw(st.sampled_from([1, 60, 300, 2**24]))))
    assert [user for block in user_blocks for user in block["u"].to_pylist()] == list(
        range(len(rows))
    )
    assert all(block.num_rows for block in user_blocks)
    test = Table("test", None, {"user": "user", "item": "i"})
    tables = [test.rows(block, "test") for block in user_blocks]
    owners = [user for rows_of_test in tables for user in rows_of_test["user"].to_pylist()]
    items = [item for rows_of_test in tables for item in rows_of_test["i"].to_pylist()]
    assert owners == [user for user, length in enumerate(lengths) for _ in range(length)]
    assert items == [entry["i"] for row in rows for entry in row]

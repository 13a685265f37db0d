"""From the Arrow batches of a partition to blocks of whole users."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

# Bounds the memory of a block; a user with more rows is a block alone.
ROWS_PER_BLOCK = 2**18


def blocks(
    batches: Iterable[Any],
    rows_per_block: int = ROWS_PER_BLOCK,
    user: str = "u",
    arrays: str | None = None,
) -> Iterator[Any]:
    """Put batches together, and cut them where users end.

    Parameters
    ----------
    batches : pyarrow.RecordBatch
        Rows sorted by user.
    rows_per_block
        The least number of rows of a block, except for the last one. A block ends with the batch
        that reaches it.
    user
        The column of users.
    arrays
        A column of arrays whose entries count as rows.

    Yields
    ------
    pyarrow.Table
        All rows of some users.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    waiting: list[Any] = []
    n_rows = n_entries = 0
    for batch in batches:
        if not batch.num_rows:
            continue
        waiting.append(batch)
        n_rows += batch.num_rows
        if arrays is not None:
            n_entries += pc.sum(pc.list_value_length(batch[arrays])).as_py() or 0
        if n_rows + n_entries < rows_per_block:
            continue
        table = pa.Table.from_batches(waiting)
        of_last = pc.equal(table[user], table[user][n_rows - 1])
        n_last = int(pc.sum(of_last).as_py() or 0)
        if n_last == n_rows:
            continue
        yield table.slice(0, n_rows - n_last)
        waiting = table.slice(n_rows - n_last).combine_chunks().to_batches()
        n_rows, n_entries = n_last, 0
    if waiting:
        yield pa.Table.from_batches(waiting)

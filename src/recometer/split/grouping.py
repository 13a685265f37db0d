"""Sort the rows of each user, on several threads.

A row's random draw depends only on the seed, the user's id and the item's id. In every `RowOrder`,
rows with the same user, item and time are sorted by value, largest first, and only then by their
place in the data, so shuffling the data does not change the split.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from recometer import _kernel
from recometer._kernel import RowOrder
from recometer.arrays import Bool, Int64, UInt32, UInt64
from recometer.draws import mix, mixed_seed
from recometer.split.checks import limit
from recometer.split.table import Table
from recometer.tasks import BRIEF, Ticker, run_tasks

ROWS_AT_ONCE = 2**22  # the number of rows in a block; at 16 bytes each, they fit into the cache
BLOCKS = 8  # the maximum number of blocks per thread; each block scans all rows to find its own


def hold_first(table: Table, sizes: Int64, order: RowOrder, *, seed: int, threads: int) -> Bool:
    """Return a mask of the first ``sizes[u]`` rows of each user u, sorted by `order`."""
    if order == RowOrder.LATEST:
        table.times  # noqa: B018  # raises an error if there are no times
    held = np.empty(table.n, dtype=bool)
    out = held.view(np.uint8)

    def hold(block: slice, rows: dict[str, Any]) -> bool:
        return _kernel.hold_first(**rows, order=order, sizes=sizes[block], held=out)

    _by_blocks(hold, table, seed, threads)
    return held


def number_rows(table: Table, order: RowOrder, *, seed: int, threads: int) -> UInt32:
    """Return each row's number, counted from 0 among the rows of its user or of its pair."""
    places = np.empty(table.n, dtype=np.uint32)

    def place(block: slice, rows: dict[str, Any]) -> bool:
        return _kernel.number_rows(**rows, order=order, places=places)

    _by_blocks(place, table, seed, threads)
    return places


def hold_share(table: Table, share: float, *, seed: int, threads: int) -> Bool:
    """Return a mask that selects each row with probability `share`, based on its pair's draw."""
    held = np.empty(table.n, dtype=bool)
    users, items = _pair_draws(table, seed)
    threshold = int(limit(share))

    def hold(begin: int, ticker: Ticker) -> None:
        part = slice(begin, begin + ROWS_AT_ONCE)
        _kernel.hold_below(
            users=table.users.codes[part],
            items=table.items.codes[part],
            user_draws=users,
            item_draws=items,
            limit=threshold,
            held=held[part].view(np.uint8),
        )

    starts = range(0, table.n, ROWS_AT_ONCE)
    run_tasks(hold, starts, threads=threads, brief=table.n <= BRIEF)
    return held


def _pair_draws(table: Table, seed: int) -> tuple[UInt64, UInt64]:
    """Return a hash per user and a hash per item, from which ``mix(user ^ item)`` makes draws.

    Ids are hashed before they are combined, so that draws for consecutive ids are not correlated.
    """
    return mix(table.users.keys ^ mixed_seed(seed)), mix(table.items.keys)


def _by_blocks(
    call: Callable[[slice, dict[str, Any]], bool], table: Table, seed: int, threads: int
) -> None:
    """Call a function on blocks of users, and again with values if it needs them to break ties."""
    counts = table.users.counts
    user_draws, item_draws = _pair_draws(table, seed)
    columns = {
        "users": table.users.codes,
        "items": table.items.codes,
        "user_draws": user_draws,
        "item_draws": item_draws,
        "times": table.times.view(np.int64) if table.has_times else None,
        "float_times": table.has_times and table.times.dtype.kind == "f",
    }

    def work(block: tuple[int, int], ticker: Ticker) -> None:
        first, last = block
        users = slice(first, last)
        rows = {**columns, "values": None, "first": first, "counts": counts[users]}
        decided = call(users, rows)
        if not decided and table.values is not None:
            ticker.advance()
            call(users, {**rows, "values": table.values})

    brief = table.n <= BRIEF
    run_tasks(work, _blocks(counts, 1 if brief else threads), threads=threads, brief=brief)


def _blocks(counts: Int64, threads: int) -> list[tuple[int, int]]:
    """Return ranges of users that have roughly equal numbers of rows."""
    n = int(counts.sum())
    rows = max(min(ROWS_AT_ONCE, -(-n // threads)), -(-n // (BLOCKS * threads)), 1)
    ends = np.searchsorted(np.cumsum(counts), np.arange(rows, n + rows, rows)) + 1
    bounds = np.unique(np.concatenate([[0], np.minimum(ends, len(counts))]))
    return list(zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True))

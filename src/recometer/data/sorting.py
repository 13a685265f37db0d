"""The order of interactions by user and item."""

from __future__ import annotations

import itertools

import numpy as np
import numpy.typing as npt

from recometer.arrays import Array, Int64
from recometer.tasks import ROWS_PER_TASK, on_all_threads

MOST_PARTS = 2**16  # as many as their numbers, of 16 bits, can tell apart


def order_of_pairs(
    users: Int64, items: Array, n_users: int, n_items: int
) -> npt.NDArray[np.intp] | None:
    """Return the stable order by user, then item; None where the pairs ascend already."""
    same = users[1:] == users[:-1]
    if ((users[1:] > users[:-1]) | (same & (items[1:] > items[:-1]))).all():
        return None
    n_parts = min(-(-len(users) // ROWS_PER_TASK), MOST_PARTS, n_users)
    if n_parts == 1:
        return _order(users, items, n_items, n_users)
    # Part by part, so that several threads sort, and none of them long: Ctrl-C has to wait for it.
    # Numbers of 16 bits are sorted in one pass each byte.
    part = (users * n_parts // n_users).astype(np.uint16)
    order = np.argsort(part, kind="stable")
    ends = np.cumsum(np.bincount(part, minlength=n_parts)).tolist()

    def sort(bounds: tuple[int, int]) -> None:
        rows = order[slice(*bounds)]
        rows[:] = rows[_order(users[rows], items[rows], n_items, n_users)]

    on_all_threads(sort, list(itertools.pairwise([0, *ends])))
    return order


def _order(users: Int64, items: Array, n_items: int, n_users: int) -> npt.NDArray[np.intp]:
    # One sort of one key is faster than two, as long as the key fits in int64.
    if n_users * n_items < 2**63:
        return np.argsort(users * np.int64(n_items) + items, kind="stable")
    return np.lexsort((items, users))

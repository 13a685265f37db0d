"""Lists that another user's item fills, by the rule ``short_lists="previous_user"``."""

from __future__ import annotations

import numpy as np

from recometer import ragged
from recometer.arrays import Bool
from recometer.data import ids
from recometer.data.matching import both_have_ids, relevant_rows
from recometer.sources._list_table import ListTable
from recometer.sources.base import Request


def filled_by_previous(table: ListTable, request: Request) -> Bool:
    """Tell for which users of test the last item of all is relevant for the user before.

    The last one is that of the highest id among the listed and the relevant items; `table` and
    `request` name the same items. Where other users are elsewhere, the request says for which.
    """
    test = request.test
    if request.filled is not None:
        assert test.user_ids is not None
        known: Bool = ids.match(test.user_ids, request.filled, "user ids of test") >= 0
        return known
    relevant = relevant_rows(test, request.protocol.relevant_from)
    items = test.items[relevant].astype(np.int64)
    if both_have_ids("item", "Lists", table.item_ids, "test", test.item_ids):
        assert test.item_ids is not None
        items = ids.match(test.item_ids, table.item_ids, "item ids")[items]
    last = max(int(table.items.max(initial=-1)), int(items.max(initial=-1)))
    has = (
        np.bincount(ragged.users_of(test.indptr)[relevant][items == last], minlength=test.n_users)
        > 0
    )
    users = np.arange(test.n_users) if test.user_ids is None else test.user_ids
    filled: Bool = np.append(False, has[:-1])
    if users.dtype != object:  # in a matrix with a row per number
        filled[1:] &= np.diff(users) == 1
    return filled

"""What the training data say of each user of test: how active it was, and how mainstream."""

from __future__ import annotations

import numpy as np

from recometer import ragged
from recometer.arrays import Float64, Int64
from recometer.data.interactions import Interactions
from recometer.data.matching import places_of_users

USERS_AT_ONCE = 2**15  # bounds the memory, and keeps what is added up in the caches


def profiles(test: Interactions, train: Interactions) -> tuple[Int64, Float64]:
    """Return the users' activity and the popularity of what they chose.

    Returns
    -------
    activity : int64 [n_users]
        Training items of each user of test.
    popularity : float64 [n_users]
        Mean number of training users of these items; NaN for users without any.
    """
    users = places_of_users(train, test, "train")
    users_of_item = np.bincount(train.items, minlength=train.n_items)
    activity, total = np.empty(test.n_users, np.int64), np.empty(test.n_users, np.int64)
    for first in range(0, test.n_users, USERS_AT_ONCE):
        block = slice(first, first + USERS_AT_ONCE)
        indptr, rows = ragged.take(train.indptr, users[block])
        sums = np.concatenate([[0], np.cumsum(users_of_item[train.items[rows]])])
        activity[block], total[block] = np.diff(indptr), np.diff(sums[indptr])
    popularity = np.divide(total, activity, out=np.full(test.n_users, np.nan), where=activity > 0)
    return activity, popularity

"""What the training data say of each user of test: how active it was, and how mainstream."""

from __future__ import annotations

import numpy as np

from recometer import _kernel, ragged
from recometer.arrays import Float64, Int64
from recometer.data.interactions import Interactions
from recometer.data.matching import users_in


def profiles(test: Interactions, train: Interactions) -> tuple[Int64, Float64]:
    """Return the training items of each user of test, and the popularity of what they chose.

    That is the mean number of training users of these items; NaN for users without any.
    """
    users = users_in(train, test, "train")
    users_of_item = np.zeros(train.n_items, np.int64)
    _kernel.count_rows(train.items, users_of_item)
    activity, total = ragged.lengths(train.indptr, users), np.empty(test.n_users, np.int64)
    _kernel.sum_rows(
        indptr=train.indptr, items=train.items, users=users, numbers=users_of_item, sums=total
    )
    popularity = np.divide(total, activity, out=np.full(test.n_users, np.nan), where=activity > 0)
    return activity, popularity

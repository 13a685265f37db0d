"""What the training data say of each user of test: how active it was, and how mainstream."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from recometer import ids
from recometer.interactions import Interactions

__all__ = ["profiles"]

Int64 = npt.NDArray[np.int64]
Float64 = npt.NDArray[np.float64]


def profiles(test: Interactions, train: Interactions) -> tuple[Int64, Float64]:
    """Return the users' activity and the popularity of what they chose.

    Returns
    -------
    activity : int64 [n_users]
        Training items of each user of test.
    popularity : float64 [n_users]
        Mean number of training users of these items; NaN for users without any.
    """
    if test.user_ids is None or train.user_ids is None:
        rows = np.arange(test.n_users)
        rows[rows >= train.n_users] = -1
    else:
        rows = ids.match(test.user_ids, train.user_ids, "user ids of test", "user ids of train")
    users_of_item = np.bincount(train.items, minlength=train.n_items)
    sums = np.concatenate([[0], np.cumsum(users_of_item[train.items])])
    begin, end = train.indptr[rows], train.indptr[rows + 1]
    known = rows >= 0
    activity = np.where(known, end - begin, 0)
    total = np.where(known, sums[end] - sums[begin], 0)
    popularity = np.divide(total, activity, out=np.full(test.n_users, np.nan), where=activity > 0)
    return activity, popularity

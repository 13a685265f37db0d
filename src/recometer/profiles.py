"""What the training data say of each user of test: how active it was, and how mainstream."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from recometer.interactions import Interactions
from recometer.side_data import of_test_users

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
    indptr, rows = of_test_users(train, test, "train")
    activity = np.diff(indptr)
    users_of_item = np.bincount(train.items, minlength=train.n_items)
    sums = np.concatenate([[0], np.cumsum(users_of_item[train.items[rows]])])
    total = np.diff(sums[indptr])
    popularity = np.divide(total, activity, out=np.full(test.n_users, np.nan), where=activity > 0)
    return activity, popularity

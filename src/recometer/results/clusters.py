"""Clusters of users who are not independent of each other, as `cluster=` gives them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from recometer.arrays import Array, Int64
from recometer.data import ids, sessions
from recometer.errors import InputError
from recometer.results.groups import LEFT_OUT, read_groups

if TYPE_CHECKING:
    pass


def read_clusters(cluster: object, user_ids: Array | None, n_users: int) -> Int64 | None:
    """Return the number of each user's cluster, or None if users are independent.

    Parameters
    ----------
    cluster
        The cluster of each user, as groups in `Evaluation.by`. None takes the users, where ids are
        those of sessions; False takes every session as independent.
    user_ids
    n_users

    Raises
    ------
    InputError, InputTypeError
        If users do not have a cluster, or the argument does not name clusters.
    """
    if cluster is False:
        return None
    if cluster is None:
        return sessions.clusters_of(user_ids)
    codes, _ = read_groups(cluster, user_ids, n_users, None, None)
    without = np.flatnonzero(codes == LEFT_OUT)
    if len(without):
        first = int(without[0])
        shown = str(first) if user_ids is None else ids.show(user_ids, first)
        raise InputError(
            f"{len(without):,} of {n_users:,} users have no cluster, for instance {shown}. Hint: a "
            "single user can be a cluster."
        )
    return codes

"""Random holdout: a share of each user's items, drawn for each user by itself."""

from __future__ import annotations

import dataclasses

import numpy as np
import numpy.typing as npt

from recometer.errors import InputError
from recometer.hashing import mix
from recometer.ids import user_keys
from recometer.interactions import Interactions

__all__ = ["holdout_fraction", "holdout_sizes", "sample_users"]

Int64 = npt.NDArray[np.int64]
UInt64 = npt.NDArray[np.uint64]


def holdout_fraction(
    interactions: Interactions,
    fraction: float,
    *,
    seed: int,
    users: npt.ArrayLike | None = None,
) -> tuple[Interactions, Interactions]:
    """Hold out a random share of each user's interactions.

    Which items of a user are drawn depends on the seed, the user's id and the items' ids
    (positions, where there are no ids) and on nothing else: not on the order of the data,
    the other users or the machine. A larger share draws what a smaller one does, and more.

    Parameters
    ----------
    interactions : Interactions
    fraction : float
        Share of a user's interactions that goes to test, in (0, 1); see `holdout_sizes`.
    seed : int
        Another seed is another draw.
    users : array_like of int, optional
        Positions of the users to hold out from; all that the others have stays in train.
        None: all users.

    Returns
    -------
    train, test : Interactions
        Together the input; both with all of its users and items.

    Raises
    ------
    InputError
        A share outside (0, 1), or a user that does not exist.
    """
    per_user = np.diff(interactions.indptr)
    sizes = holdout_sizes(per_user, fraction)
    if users is not None:
        sizes[~_chosen(users, interactions.n_users)] = 0

    # Random numbers for users and items, mixed once more for their pairs: ids are often
    # consecutive, and must not lead to related draws.
    of_user = mix(user_keys(interactions.user_ids, interactions.n_users) ^ _mixed_seed(seed))
    of_item = mix(user_keys(interactions.item_ids, interactions.n_items))
    user = np.repeat(np.arange(interactions.n_users), per_user)
    draw = mix(of_user[user] ^ of_item[interactions.items])
    # By user, then by draw: one key sorts much faster than two. Of equal draws the lower item
    # comes first, as the sort is stable.
    high = np.uint64(32)
    order = np.argsort((user.astype(np.uint64) << high) | (draw >> high), kind="stable")
    place = np.arange(len(interactions)) - interactions.indptr[user]
    held_out = np.empty(len(interactions), dtype=bool)
    held_out[order] = place < sizes[user]
    return _subset(interactions, ~held_out), _subset(interactions, held_out)


def holdout_sizes(n_interactions: npt.ArrayLike, fraction: float) -> Int64:
    """Return how many of so many interactions a share is: rounded half away from zero.

    Parameters
    ----------
    n_interactions : array_like of int [n_users]
    fraction : float
        In (0, 1).

    Returns
    -------
    int64 [n_users]

    Raises
    ------
    InputError
        A share outside (0, 1).
    """
    if not 0 < fraction < 1:
        raise InputError(
            f"fraction={fraction!r} must lie between 0 and 1. Hint: 0.3 holds out 30 %."
        )
    exact = np.asarray(n_interactions) * fraction
    below = np.floor(exact)
    return (below + (exact - below >= 0.5)).astype(np.int64)


def sample_users(users: npt.ArrayLike, n: int, *, seed: int) -> Int64:
    """Draw users at random.

    Parameters
    ----------
    users : array_like of int
        Positions of the users to draw from, without repetition.
    n : int
        How many to draw; all of them where there are fewer.
    seed : int

    Returns
    -------
    int64
        Their positions, ascending.
    """
    positions = np.unique(np.asarray(users, dtype=np.int64))
    draw = mix(mix(positions.astype(np.uint64)) ^ _mixed_seed(seed))
    return np.sort(positions[np.argsort(draw, kind="stable")[:n]])


def _chosen(users: npt.ArrayLike, n_users: int) -> npt.NDArray[np.bool_]:
    positions = np.asarray(users)
    if positions.size and (positions.min() < 0 or positions.max() >= n_users):
        raise InputError(
            f"users holds positions from {positions.min()} to {positions.max()}, "
            f"and there are {n_users} users. Hint: positions start at 0."
        )
    chosen = np.zeros(n_users, dtype=bool)
    chosen[positions.astype(np.int64)] = True
    return chosen


def _subset(interactions: Interactions, kept: npt.NDArray[np.bool_]) -> Interactions:
    before = np.concatenate([[0], np.cumsum(kept)])
    values, times = interactions.values, interactions.times
    return dataclasses.replace(
        interactions,
        indptr=before[interactions.indptr],
        items=interactions.items[kept],
        values=None if values is None else values[kept],
        times=None if times is None else times[kept],
    )


def _mixed_seed(seed: int) -> UInt64:
    return mix(np.array([seed % 2**64], dtype=np.uint64))

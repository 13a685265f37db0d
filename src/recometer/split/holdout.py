"""Random holdout of `Interactions`, in one call."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from recometer.errors import InputError
from recometer.interactions import Interactions
from recometer.split import draws
from recometer.split.data import open_data
from recometer.split.sizes import holdout_sizes
from recometer.split.splitting import split
from recometer.split.what import Fraction
from recometer.split.who import AllUsers, GivenUsers, Who

__all__ = ["holdout_fraction", "holdout_sizes", "sample_users"]


def holdout_fraction(
    interactions: Interactions,
    fraction: float,
    *,
    seed: int,
    users: npt.ArrayLike | None = None,
) -> tuple[Interactions, Interactions]:
    """Hold out a random share of each user's interactions: `split` with `Fraction`.

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
    who: Who = AllUsers()
    if users is not None:
        positions = _positions(users, interactions.n_users)
        if not len(positions):
            none = np.zeros(len(interactions), dtype=np.uint8)
            return interactions, open_data(interactions, {}).take(none, 1, None)
        ids = interactions.user_ids
        who = GivenUsers(positions if ids is None else ids[positions])
    made = split(interactions, Fraction(fraction), who=who, min_test=0, seed=seed)
    return made.train, made.test


def sample_users(users: npt.ArrayLike, n: int, *, seed: int) -> npt.NDArray[np.int64]:
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
    draw = draws.draw_users(positions.astype(np.uint64), seed)
    return np.sort(positions[np.argsort(draw, kind="stable")[:n]])


def _positions(users: npt.ArrayLike, n_users: int) -> npt.NDArray[np.int64]:
    positions = np.asarray(users)
    if positions.size and (positions.min() < 0 or positions.max() >= n_users):
        raise InputError(
            f"users holds positions from {positions.min()} to {positions.max()}, "
            f"and there are {n_users} users. Hint: positions start at 0."
        )
    return positions.astype(np.int64)

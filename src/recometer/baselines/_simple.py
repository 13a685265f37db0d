"""Rankings that learn nothing about individual users."""

from __future__ import annotations

from typing import Any

import numpy as np

from recometer.arrays import Float64, Int64
from recometer.baselines._matrix import (
    check_seed,
    scores_of,
    training_interactions,
    user_item_matrix,
)
from recometer.data.ids import user_keys as id_keys
from recometer.draws import mix
from recometer.sources.factors import Factors
from recometer.sources.scores import Scores

# Without this salt, a split with the same seed would draw the same numbers, and the test items
# would have the lowest scores.
SALT = 0x72616E6B696E6773


def most_popular(train: Any) -> Factors:
    """Rank the items by their number of training users, in the same order for all users.

    Parameters
    ----------
    train : Interactions, or any input of `Interactions.of`
        Interactions to count. Rows with a value of 0 do not count, and all other values count
        equally: if a user plays a song forty times, this counts like a single play.

    Returns
    -------
    Factors
        A source without user factors, whose item biases, float64 [n_items], are the numbers of
        training users.

    Raises
    ------
    InputError
        If training values are infinite.
    """
    train, matrix = user_item_matrix(train)
    popularity = np.bincount(matrix.indices, minlength=train.n_items).astype(np.float64)
    return Factors(None, None, item_bias=popularity, item_ids=train.item_ids)


def random_ranking(train: Any, *, seed: int = 0) -> Scores:
    """Rank the items in a random order, which differs between users.

    The score of an item is a hash of the seed, the user's id and the item's id (or of positions
    if there are no ids), scaled to [0, 1). A user's order therefore does not depend on other users
    or on the machine.

    Parameters
    ----------
    train : Interactions, or any input of `Interactions.of`
        Only its users and items are read.
    seed
        A whole number from 0 to 2^64 - 1. Different seeds lead to different orders.

    Returns
    -------
    Scores
        float64 scores [batch, n_items], computed on request.

    Raises
    ------
    InputError
        If the seed is not a whole number in this range.
    """
    seed = check_seed(seed)
    train = training_interactions(train)
    users = id_keys(train.user_ids, train.n_users)
    items = mix(id_keys(train.item_ids, train.n_items))
    start = mix(mix(np.array([seed], dtype=np.uint64)) ^ np.uint64(SALT))

    def scores(rows: Int64) -> Float64:
        bits = mix(mix(users[rows] ^ start)[:, None] ^ items)
        return (bits >> np.uint64(11)).astype(np.float64) * 2.0**-53

    return scores_of(scores, train, f"random ranking, seed {seed}")

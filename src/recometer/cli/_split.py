"""Which interactions of the demo are for training, and which for testing."""

from __future__ import annotations

import dataclasses

import numpy as np

from recometer.interactions import Interactions
from recometer.split.holdout import holdout_fraction, holdout_sizes

__all__ = ["split"]


def split(
    interactions: Interactions, fraction: float, seed: int
) -> tuple[Interactions, Interactions, str]:
    """Hold out a share of each user's interactions: the last ones, or any if time is unknown.

    The share is rounded half away from zero, see `holdout_sizes`. Of interactions at the
    same time, the items that come later in the order of the ids count as the later ones.

    Returns
    -------
    train, test
        Both with all users and items.
    rule
        What was done, in words.
    """
    if interactions.times is None:
        train, test = holdout_fraction(interactions, fraction, seed=seed)
        return (
            train,
            test,
            f"a random {100 * fraction:g}% of each user's interactions (seed {seed})",
        )
    per_user = np.diff(interactions.indptr)
    user = np.repeat(np.arange(interactions.n_users), per_user)
    order = np.lexsort((interactions.times, user))
    from_end = interactions.indptr[1:][user] - np.arange(len(interactions))
    held_out = np.empty(len(interactions), dtype=bool)
    held_out[order] = from_end <= holdout_sizes(per_user, fraction)[user]
    train, test = _rows(interactions, ~held_out), _rows(interactions, held_out)
    return train, test, f"the last {100 * fraction:g}% of each user's interactions by time"


def _rows(
    interactions: Interactions, kept: np.ndarray[tuple[int], np.dtype[np.bool_]]
) -> Interactions:
    values, times = interactions.values, interactions.times
    return dataclasses.replace(
        interactions,
        indptr=np.concatenate([[0], np.cumsum(kept)])[interactions.indptr],
        items=interactions.items[kept],
        values=None if values is None else values[kept],
        times=None if times is None else times[kept],
    )

"""Random numbers per user and per pair, which depend only on ids and the seed."""

from __future__ import annotations

import numpy as np

from recometer.arrays import UInt64
from recometer.draws import mix, mixed_seed

OF_ITEMS = np.uint64(0x6974656D73)  # make draws of items and places differ from draws of users
OF_PLACES = np.uint64(0x706C61636573)


def of_users(keys: UInt64, seed: int) -> UInt64:
    """Return the users' part of the draws of pairs, ``mix(of_users ^ mix(keys of items))``.

    Users and items are mixed before they are combined, because consecutive ids, which are common,
    must not lead to related draws.
    """
    return mix(keys ^ mixed_seed(seed))


def draw_users(keys: UInt64, seed: int) -> UInt64:
    """Return the draw of each user, for choosing users."""
    return mix(mix(keys) ^ mixed_seed(seed))


def draw_items(keys: UInt64, seed: int) -> UInt64:
    """Return the draw of each item, for choosing items."""
    return mix(mix(keys ^ OF_ITEMS) ^ mixed_seed(seed))


def draw_places(keys: UInt64, seed: int) -> UInt64:
    """Return the draw of each user that determines the fold in which dealing begins."""
    return mix(mix(keys ^ OF_PLACES) ^ mixed_seed(seed))


def limit(share: float) -> np.uint64:
    """Return the threshold that a draw is below with this probability."""
    return np.uint64(min(int(share * 2.0**64), 2**64 - 1))

"""Orders in which the kernel scores items; see `cpp/ranking.hpp`."""

import numpy as np

OWN_ORDER = dict.fromkeys(("by_place", "places", "item_bound", "user_bound"))


def in_order(by_place, item_bound, user_bound):
    """Return the kernel's arguments for the order in which `by_place` lists the items."""
    places = np.empty(len(by_place), np.int32)
    places[by_place] = np.arange(len(by_place))
    return {
        "by_place": by_place.astype(np.int32),
        "places": places,
        "item_bound": item_bound,
        "user_bound": user_bound,
    }

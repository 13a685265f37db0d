"""Two tables of interactions as one: their users and items are matched by id, or are positions."""

from __future__ import annotations

import numpy as np

from recometer import ragged
from recometer.data.ids import common
from recometer.data.interactions import Interactions, build
from recometer.data.rows import Rows
from recometer.errors import InputError


def together(first: Interactions, second: Interactions) -> Interactions:
    """Return the interactions of two parts of the same data, without their values.

    Users and items of both are matched by id, or are the same positions.
    """
    rows = _all_rows(first, second)
    if first.times is not None and second.times is not None:
        rows.times = np.concatenate([first.times, second.times])
    return build(rows)


def in_either(first: Interactions, second: Interactions) -> Interactions:
    """Return the pairs of user and item that are in one of two, without values and times.

    Users and items are matched by id, or are positions.

    Raises
    ------
    InputError
        If one has ids, and the other has positions, or both have positions of different numbers of
        users or items.
    """
    for name in ("user", "item"):
        has = [getattr(side, f"{name}_ids") is not None for side in (first, second)]
        if has[0] != has[1]:
            raise InputError(
                f"One of test and candidates has {name} ids, and the other does not. Hint: give "
                f"both of them {name} ids, or neither."
            )
        numbers = [getattr(side, f"n_{name}s") for side in (first, second)]
        if not has[0] and numbers[0] != numbers[1]:
            raise InputError(
                f"The sets of candidates have {numbers[0]:,} {name}s, but test has {numbers[1]:,}. "
                f"Hint: without ids both count the same {name}s; an array of positions "
                "[n_users, n] holds whole numbers, and a matrix has a column for every item."
            )
    rows = _all_rows(first, second)
    assert rows.users is not None
    # Pairs that both have are no repetitions of which to warn.
    keys = np.unique(ragged.pairs(rows.users, rows.items, rows.n_items))
    rows.users, rows.items = np.divmod(keys, max(rows.n_items, 1))
    return build(rows)


def _all_rows(*sides: Interactions) -> Rows:
    """Return the rows of both sides, one after the other, by common users and items."""
    users, user_ids, n_users = common("user", [(side.user_ids, side.n_users) for side in sides])
    items, item_ids, n_items = common("item", [(side.item_ids, side.n_items) for side in sides])
    numbered = list(zip(users, items, sides, strict=True))
    who = np.concatenate([codes[ragged.users_of(side.indptr)] for codes, _, side in numbered])
    what = np.concatenate([codes[side.items] for _, codes, side in numbered])
    return Rows(who, what, n_users, n_items, user_ids=user_ids, item_ids=item_ids)

"""Two tables of interactions as one: their users and items are matched by id, or are positions."""

from __future__ import annotations

import numpy as np

from recometer import ragged
from recometer.data.ids import common
from recometer.data.interaction_files import TO_SORT, Sorted
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

    Users and items are matched by id, or are positions. If rows of one lie in files, so do
    those of the result.

    Raises
    ------
    InputError
        If one has ids, and the other has positions.
    """
    for name in ("user", "item"):
        has = [getattr(side, f"{name}_ids") is not None for side in (first, second)]
        if has[0] != has[1]:
            raise InputError(
                f"One of test and candidates has {name} ids, and the other does not. Hint: give "
                f"both of them {name} ids, or neither."
            )
    sides = first, second
    users, user_ids, n_users = common("user", [(side.user_ids, side.n_users) for side in sides])
    items, item_ids, n_items = common("item", [(side.item_ids, side.n_items) for side in sides])
    numbered = list(zip(users, items, sides, strict=True))

    def of_users(block: slice) -> Interactions:
        keys = []
        for user, item, side in numbered:  # both are ascending
            low, high = np.searchsorted(user[: side.n_users], [block.start, block.stop])
            indptr = side.indptr[low : high + 1]
            who = (user[low:high] - block.start).repeat(np.diff(indptr))
            keys.append(who * n_items + item[side.items[indptr[0] : indptr[-1]]])
        pairs = np.divmod(np.unique(np.concatenate(keys)), max(n_items, 1))
        named = None if user_ids is None else user_ids[block]
        n = block.stop - block.start
        return build(Rows(*pairs, n, n_items, user_ids=named, item_ids=item_ids))

    budgets = [side.memory for side in sides if side.memory is not None]
    if not budgets or user_ids is None or item_ids is None:
        return of_users(slice(0, n_users))
    sizes, whole = np.zeros(n_users, np.int64), Sorted(0)
    for user, _, side in numbered:
        sizes[user] += np.diff(side.indptr)
    most = max(1, min(budgets) // TO_SORT)
    for block in ragged.blocks(ragged.indptr_of(sizes), most, n_users):
        whole.add(of_users(block))
    return Interactions(**whole.fields(), memory=min(budgets))


def _all_rows(*sides: Interactions) -> Rows:
    """Return the rows of both sides, one after the other, by common users and items."""
    users, user_ids, n_users = common("user", [(side.user_ids, side.n_users) for side in sides])
    items, item_ids, n_items = common("item", [(side.item_ids, side.n_items) for side in sides])
    numbered = list(zip(users, items, sides, strict=True))
    who = np.concatenate([codes[ragged.users_of(side.indptr)] for codes, _, side in numbered])
    what = np.concatenate([codes[side.items] for _, codes, side in numbered])
    return Rows(who, what, n_users, n_items, user_ids=user_ids, item_ids=item_ids)

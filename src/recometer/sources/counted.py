"""Ranks from counts that were made elsewhere, over parts of the catalogue that were added up."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from recometer import ragged
from recometer.arrays import Array, Float64, Int64, UInt32
from recometer.data import ids, matching
from recometer.data.matching import SourceIndex
from recometer.errors import InternalError
from recometer.ranks import Ranks
from recometer.sources._align import align
from recometer.sources._assemble import assemble, best_first, spread
from recometer.sources.base import Request


def ranks(
    index: SourceIndex,
    request: Request,
    n_items: int,
    flags: UInt32,
    users: Int64,
    items: Array,
    counts: Sequence[Float64],
) -> Ranks:
    """Return the ranks of users whose judged items were counted among all items.

    Parameters
    ----------
    index
        The users that are known, and the items that they have in test or train.
    request
    n_items
        How many items were counted.
    flags : uint32 [index.n_users]
        The flags of users with NaN or infinite scores.
    users, items : [n_counted]
        The user's row of the index, and the item's id, of each judged item that was counted.
    counts : float64 [n_counted] each
        Above (NaN: the score is NaN, and not ranked), tied and before.
    """
    aligned = align(index, request)
    known = aligned.rows >= 0
    aligned.flags[known] |= flags[aligned.rows[known]]
    aligned = dataclasses.replace(aligned, n_items=n_items)
    _, sorted_ids = matching.sorted_items(index)
    assert sorted_ids is not None
    width = np.int64(max(1, len(sorted_ids)))
    there = ids.match(items, sorted_ids, "item ids", "item ids of Factors")
    pairs = ragged.pairs(users, there, int(width))
    order = np.argsort(pairs, kind="stable")
    ranked = aligned.ranked_items.astype(np.int64)
    owner = aligned.rows[ragged.users_of(aligned.ranked_indptr)]
    wanted = ragged.pairs(owner, ranked, int(width))
    at = np.minimum(np.searchsorted(pairs[order], wanted), max(0, len(pairs) - 1))
    row = order[at] if len(order) else np.zeros(len(wanted), np.int64)
    if len(wanted) and not (len(pairs) and (pairs[row] == wanted).all()):
        raise InternalError("A judged item was not counted.")
    above, tied, before = (np.nan_to_num(one[row], nan=-1).astype(np.int64) for one in counts)
    if aligned.ranked is not None:
        above, tied, before = spread(aligned.ranked, len(aligned.judged), above, tied, before)
    best = best_first(aligned.judged_indptr, above, before, 1)
    return assemble(aligned, above, tied, before, best, aligned.outside, None)

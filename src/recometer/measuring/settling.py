"""What some conventions make of a ranking before metrics read it.

Each rule turns `Ranks` into `Ranks`, so that no metric knows of it.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from recometer import ragged
from recometer.errors import InputError
from recometer.protocol import Protocol
from recometer.ranks import Ranks, UserFlag


def leave_out(ranks: Ranks, protocol: Protocol) -> Ranks:
    """Apply the rules `unranked` and `unknown_items`: forget that some items are relevant.

    Where the ranking is known to its end, an item that was not ranked is unknown to the source
    (or no candidate).
    """
    if protocol.unranked == "misses" and protocol.unknown_items == "misses":
        return ranks
    # Of a user whose scores cannot be ranked, nothing says what was left out.
    unusable = (ranks.flags & np.uint32(UserFlag.NAN_SCORE | UserFlag.INFINITE_SCORE)) != 0
    missing = (ranks.above < 0) & ~unusable[ranks.user]
    if protocol.unranked == "misses":
        whole = (ranks.n_candidates >= 0) & (ranks.depth >= ranks.n_candidates)
        missing &= np.repeat(whole, np.diff(ranks.indptr))
    else:
        # Nothing exists but what is in the lists.
        n_candidates = np.where(unusable, ranks.n_candidates, ranks.depth)
        ranks = dataclasses.replace(ranks, n_candidates=n_candidates)
    if not missing.any():
        return ranks
    once = missing & ranks.relevant  # as in n_relevant
    if ranks.repeated is not None:
        once &= ~ranks.repeated
    gone = np.diff(ragged.offsets(once, ranks.indptr))
    return dataclasses.replace(
        ranks,
        gain=np.where(missing, 0.0, ranks.gain),
        relevant=ranks.relevant & ~missing,
        n_relevant=ranks.n_relevant - gone,
    )


def settle(
    ranks: Ranks, score_above: float | None, duplicates: str, padded_to: int | None
) -> Ranks:
    """Apply the rules that may differ from metric to metric.

    Where fewer items can be ranked, the first item of the catalogue fills the places up to
    `padded_to`; None: nothing does.
    """
    if score_above is not None:
        if ranks.score is None:
            raise InputError(
                f"score_above={score_above} needs the scores of what was recommended, which this "
                "source does not give. Hint: rm.Scores, rm.Pairs, and rm.Lists with scores do."
            )
        found = ranks.score > score_above
        ranks = dataclasses.replace(ranks, above=np.where(found, ranks.above, -1))
    if duplicates == "first" and ranks.repeated is not None:
        ranks = dataclasses.replace(ranks.rows(~ranks.repeated), repeated=None)
    if duplicates == "joined" and ranks.repeated is not None:
        again = np.diff(ragged.offsets(ranks.repeated & ranks.relevant, ranks.indptr))
        ranks = dataclasses.replace(ranks, n_relevant=ranks.n_relevant + again, repeated=None)
    return ranks if padded_to is None else _padded(ranks, padded_to)


def _padded(ranks: Ranks, places: int) -> Ranks:
    """Let the first item of the catalogue fill the places after its end."""
    if (ranks.n_candidates < 0).any():
        raise InputError(
            "short_lists='first_item' (or defects=True, under a convention that has it) needs to "
            "know how many items there are. Hint: pass catalogue= (their number, or ids)."
        )
    n_items = ranks.n_candidates + ranks.n_excluded
    user = ranks.user
    first = (ranks.item == 0) & (ranks.relevant | (ranks.gain != 0))
    if ranks.repeated is not None:
        first &= ~ranks.repeated
    judged = np.flatnonzero(first)
    count = np.maximum(places - n_items[user[judged]], 0)
    again = np.repeat(judged, count)
    if not len(again):
        return ranks
    # Copies of the row, with the places after the end.
    number = np.arange(len(again)) - np.repeat(np.cumsum(count) - count, count)
    row = np.concatenate([np.arange(len(user)), again])
    copy = np.arange(len(row)) >= len(user)
    above, tied, before = ranks.above[row], ranks.tied[row], ranks.before[row]
    above[copy] = n_items[user[again]] + number
    tied[copy] = before[copy] = 0
    order = np.lexsort((before, above, above < 0, user[row]))
    return dataclasses.replace(
        ranks.rows(row[order]),
        above=above[order],
        tied=tied[order],
        before=before[order],
        repeated=copy[order],
        depth=np.maximum(ranks.depth, places),
    )

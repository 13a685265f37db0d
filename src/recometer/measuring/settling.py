"""What some conventions make of a ranking before metrics read it.

Each rule turns `Ranks` into `Ranks`, so that no metric knows of it.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from recometer import ragged
from recometer.arrays import Bool
from recometer.errors import InputError
from recometer.protocol import Protocol
from recometer.ranks import Ranks

PER_ROW = ("item", "above", "tied", "before", "gain", "relevant")
PERHAPS = ("score", "popularity", "propensity")  # per row, where they are known


def leave_out(ranks: Ranks, protocol: Protocol) -> Ranks:
    """Apply the rules `unranked` and `unknown_items`: forget that some items are relevant.

    Where the ranking is known to its end, an item that was not ranked is unknown to the source
    (or no candidate).
    """
    if protocol.unranked == "misses" and protocol.unknown_items == "misses":
        return ranks
    missing = ranks.above < 0
    if protocol.unranked == "misses":
        whole = (ranks.n_candidates >= 0) & (ranks.depth >= ranks.n_candidates)
        missing &= np.repeat(whole, np.diff(ranks.indptr))
    else:
        # Nothing exists but what is in the lists.
        ranks = dataclasses.replace(ranks, n_candidates=ranks.depth)
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

    Parameters
    ----------
    ranks
    score_above, duplicates
        As in `Protocol`.
    padded_to
        Where fewer items can be ranked, the first item of the catalogue fills the places up to
        this one; None: nothing does.
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
        ranks = dataclasses.replace(_rows(ranks, ~ranks.repeated), repeated=None)
    if duplicates == "joined" and ranks.repeated is not None:
        again = np.diff(ragged.offsets(ranks.repeated & ranks.relevant, ranks.indptr))
        ranks = dataclasses.replace(ranks, n_relevant=ranks.n_relevant + again, repeated=None)
    return ranks if padded_to is None else _padded(ranks, padded_to)


def _rows(ranks: Ranks, chosen: Bool) -> Ranks:
    """Take some of the judged rows; what is known of users stays as it is."""
    rows = {name: getattr(ranks, name)[chosen] for name in _columns(ranks)}
    if ranks.repeated is not None:
        rows["repeated"] = ranks.repeated[chosen]
    return dataclasses.replace(ranks, indptr=ragged.offsets(chosen, ranks.indptr), **rows)


def _columns(ranks: Ranks) -> list[str]:
    """Return the names of what is known of each judged row."""
    return [*PER_ROW, *(name for name in PERHAPS if getattr(ranks, name) is not None)]


def _padded(ranks: Ranks, places: int) -> Ranks:
    """Let the first item of the catalogue fill the places after its end."""
    n_items = np.maximum(ranks.n_candidates + ranks.n_excluded, 0)
    user = ragged.users_of(ranks.indptr)
    first = np.flatnonzero((ranks.item == 0) & (ranks.relevant | (ranks.gain != 0)))
    count = np.maximum(places - n_items[user[first]], 0)
    source = np.repeat(first, count)
    if not len(source):
        return ranks
    number = np.arange(len(source)) - np.repeat(np.cumsum(count) - count, count)
    rows = {
        name: np.concatenate([getattr(ranks, name), getattr(ranks, name)[source]])
        for name in _columns(ranks)
    }
    n_rows = len(user)
    rows["above"][n_rows:] = n_items[user[source]] + number
    rows["tied"][n_rows:] = 0
    rows["before"][n_rows:] = 0
    repeated = np.zeros(len(rows["item"]), bool)
    repeated[n_rows:] = True
    every_user = np.concatenate([user, user[source]])
    unranked = rows["above"] < 0
    order = np.lexsort((rows["before"], rows["above"], unranked, every_user))
    indptr = np.zeros(ranks.n_users + 1, np.int64)
    np.cumsum(np.bincount(every_user, minlength=ranks.n_users), out=indptr[1:])
    changed: dict[str, Any] = {name: column[order] for name, column in rows.items()}
    changed |= {"repeated": repeated[order], "depth": np.maximum(ranks.depth, places)}
    return dataclasses.replace(ranks, indptr=indptr, **changed)

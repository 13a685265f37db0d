"""Changes that some conventions make to a ranking before metrics read it.

Each rule turns `Ranks` into `Ranks`, so that no metric knows of it.
"""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import numpy as np

from recometer import ragged
from recometer.arrays import Int64
from recometer.draws import find_runs, number_runs
from recometer.errors import InputError
from recometer.protocol import Protocol, TieRule
from recometer.ranks import Ranks, UserFlag


def leave_out(ranks: Ranks, protocol: Protocol) -> Ranks:
    """Apply the rules `unranked` and `unknown_items`: forget that some items are relevant.

    Where the ranking is known to its end, an item that was not ranked is unknown to the source
    (or no candidate).
    """
    if protocol.unranked == "misses" and protocol.unknown_items == "misses":
        return ranks
    # If a user's scores cannot be ranked, nothing says what was left out.
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


# The rules under which tied items share their places, or change them by what is judged.
_SEVERAL_PLACES = ("expected", "optimistic", "pessimistic", "random")


class Settling(NamedTuple):
    """The rules that may differ from metric to metric."""

    score_above: float | None
    duplicates: str
    repeated_test: str
    short_lists: str
    cutoff: int | None


def reads_cutoff(rules: Protocol) -> bool:
    """Return whether what is ranked depends on the cut-off."""
    return rules.short_lists != "misses" or rules.repeated_test == "multiplied"


def settle(ranks: Ranks, how: Settling) -> Ranks:
    """Apply the rules that may differ from metric to metric."""
    score_above, duplicates, repeated_test, short_lists, cutoff = how
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
    ranks = with_repeated_rows(ranks, repeated_test, cutoff)
    if short_lists == "misses" or cutoff is None:
        return ranks
    return (_padded if short_lists == "first_item" else _filled)(ranks, cutoff)


def with_repeated_rows(ranks: Ranks, rule: str, cutoff: int | None = None) -> Ranks:
    """Give repeated pairs of test separate rows, all of which are found or none.

    The rule ``"multiplied"`` depends on what is found within a cut-off. None means anywhere.
    """
    if rule == "multiplied":
        return _multiplied(ranks, cutoff)
    if rule == "once" or ranks.copies is None:
        return ranks
    return _with_copies(ranks, ranks.copies, together=rule == "joined")


def check_places(ranks: Ranks, rule: str, ties: TieRule) -> None:
    """Raise if rows of a pair that belong at one place have none, since their item is tied."""
    if rule in ("once", "counted") or ties not in _SEVERAL_PLACES:
        return
    same = (ranks.above[1:] >= 0) & (ranks.tied[1:] > 0)
    for column in (ranks.user, ranks.item, ranks.above):
        same &= column[1:] == column[:-1]
    if same.any():
        raise InputError(
            f"repeated_test={rule!r} counts all rows of a pair at the place of the item, but "
            f"{np.count_nonzero(same):,} of these rows are of items whose score others have, too, "
            f"and ties={ties!r} gives such items no place of their own. Hint: ties='item' does."
        )


def _multiplied(ranks: Ranks, cutoff: int | None) -> Ranks:
    """Join the rows of test with those of lists, and these with both once more."""
    n_rows = len(ranks.above)
    copies = np.ones(n_rows, np.int64) if ranks.copies is None else ranks.copies
    repeated = np.zeros(n_rows, bool) if ranks.repeated is None else ranks.repeated
    # The rows of a pair have one number; the unknown items of a user are all different ones.
    item = np.where(ranks.item < 0, -1 - np.arange(n_rows), ranks.item)
    order = np.lexsort((item, ranks.user))
    pair = np.empty(n_rows, np.int64)
    pair[order], _ = number_runs(find_runs(ranks.user[order], item[order])[1])
    entries = np.bincount(pair, ranks.above >= 0).astype(np.int64)
    found = (ranks.above >= 0) & (cutoff is None or ranks.above < cutoff)
    times = np.where(found, copies**2 * entries[pair], copies)
    # The first place of a pair is found if any is.
    ranks = dataclasses.replace(ranks, repeated=repeated & ~found)
    return _with_copies(ranks, times, together=True)


def _with_copies(ranks: Ranks, copies: Int64, *, together: bool) -> Ranks:
    """Repeat rows so often, `together` at their places or not found; count what is relevant."""
    again = np.repeat(np.arange(len(copies)), copies - 1)
    row = np.concatenate([np.arange(len(copies)), again])
    above, tied, before = ranks.above[row], ranks.tied[row], ranks.before[row]
    if not together:
        above[len(copies) :] = -1
    order = np.lexsort((before, above, above < 0, ranks.user[row]))
    found = dataclasses.replace(
        ranks.rows(row[order]),
        above=above[order],
        tied=tied[order],
        before=before[order],
        copies=None,
    )
    counted = found.relevant if found.repeated is None else found.relevant & ~found.repeated
    n_relevant = np.bincount(found.user[counted], minlength=ranks.n_users)
    return dataclasses.replace(found, n_relevant=n_relevant)


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
    depth = np.where(places > n_items, np.maximum(ranks.depth, places), ranks.depth)
    ranks = dataclasses.replace(ranks, depth=depth)
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
        repeated=(copy if ranks.repeated is None else copy | ranks.repeated[row])[order],
    )


def _filled(ranks: Ranks, places: int) -> Ranks:
    """Let what is relevant for the user before fill the places after the end of a list."""
    if ranks.filled is None:
        return ranks
    count = np.maximum(np.where(ranks.filled, places - ranks.depth, 0), 0)
    user = np.concatenate([ranks.user, np.repeat(np.arange(ranks.n_users), count)])
    number = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)
    above = np.concatenate([ranks.above, np.repeat(ranks.depth, count) + number])
    order = np.lexsort((above, above < 0, user))
    n_own = len(ranks.above)
    n_new = len(user) - n_own
    fields: dict[str, Any] = {}
    for field in dataclasses.fields(ranks):
        column = getattr(ranks, field.name)
        if isinstance(column, np.ndarray) and field.metadata == ragged.PER_ROW:
            # Each is found once more, at a place of its own.
            more = np.full(n_new, field.name not in ("tied", "before"), column.dtype)
            fields[field.name] = np.concatenate([column, more])[order]
    repeated = np.zeros(n_own, bool) if ranks.repeated is None else ranks.repeated
    fields["above"] = above[order]
    fields["repeated"] = np.concatenate([repeated, np.ones(n_new, bool)])[order]
    fields["indptr"] = ragged.indptr_of(np.bincount(user, minlength=ranks.n_users))
    depth = np.where(ranks.filled, np.maximum(ranks.depth, places), ranks.depth)
    return dataclasses.replace(ranks, **fields, depth=depth)

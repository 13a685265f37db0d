"""Applies the convention rules that change a ranking before metrics read it.

Each rule turns `Ranks` into other `Ranks`, so metrics need not know these rules.
"""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

import numpy as np

from recometer import ragged
from recometer.errors import InputError, python_or_command, rule_text
from recometer.protocol import Protocol, RepeatedTest, TieRule
from recometer.ranks import Ranks, UserFlag


def leave_out(ranks: Ranks, protocol: Protocol) -> Ranks:
    """Apply the rules `unranked` and `unknown_items`, under which some items are not relevant.

    If the whole ranking is known, an unranked item is unknown to the source or not a candidate.
    """
    if protocol.unranked == "misses" and protocol.unknown_items == "misses":
        return ranks
    # If scores cannot be ranked, they do not show which items are unknown.
    unusable = (ranks.flags & np.uint32(UserFlag.NAN_SCORE | UserFlag.INFINITE_SCORE)) != 0
    missing = (ranks.above < 0) & ~unusable[ranks.user]
    if protocol.unranked == "misses":
        is_whole = (ranks.n_candidates >= 0) & (ranks.depth >= ranks.n_candidates)
        missing &= np.repeat(is_whole, np.diff(ranks.indptr))
    else:
        # Only listed items are candidates.
        n_candidates = np.where(unusable, ranks.n_candidates, ranks.depth)
        ranks = dataclasses.replace(ranks, n_candidates=n_candidates)
    if not missing.any():
        return ranks
    lost = missing & ranks.relevant  # counted just as in `n_relevant`
    if ranks.repeated is not None:
        lost &= ~ranks.repeated
    n_lost = np.diff(ragged.offsets(lost, ranks.indptr))
    return dataclasses.replace(
        ranks,
        gain=np.where(missing, 0.0, ranks.gain),
        relevant=ranks.relevant & ~missing,
        n_relevant=ranks.n_relevant - n_lost,
    )


# Under these values of the rule `repeated_test`, each row of a pair counts.
COUNT_EACH: tuple[RepeatedTest, ...] = ("counted", "joined")
# Under these tie rules, a tied item has no fixed place.
_SEVERAL_PLACES = ("expected", "optimistic", "pessimistic", "random")


class Settling(NamedTuple):
    """The rules that may differ from metric to metric."""

    score_above: float | None
    duplicates: str
    repeated_test: str


def settle(ranks: Ranks, rules: Settling) -> Ranks:
    """Apply the rules that may differ from metric to metric."""
    score_above, duplicates, repeated_test = rules
    if score_above is not None:
        if ranks.score is None:
            sources = python_or_command(
                "rm.Scores, rm.Pairs, and rm.Lists with scores do",
                "runs with a column of scores do",
            )
            raise InputError(
                f"{rule_text('score_above', score_above)} needs the scores of the "
                f"recommended items, which this source does not provide. Hint: {sources}."
            )
        above_threshold = ranks.score > score_above
        ranks = dataclasses.replace(ranks, above=np.where(above_threshold, ranks.above, -1))
    if duplicates == "first" and ranks.repeated is not None:
        ranks = dataclasses.replace(ranks.rows(~ranks.repeated), repeated=None)
    if duplicates == "joined" and ranks.repeated is not None:
        n_repeated = np.diff(ragged.offsets(ranks.repeated & ranks.relevant, ranks.indptr))
        ranks = dataclasses.replace(ranks, n_relevant=ranks.n_relevant + n_repeated, repeated=None)
    return with_repeated_rows(ranks, repeated_test)


def with_repeated_rows(ranks: Ranks, rule: str) -> Ranks:
    """Add a row for each copy of a repeated test pair; under "counted", copies cannot be hits."""
    copies = ranks.copies
    if rule not in COUNT_EACH or copies is None:
        return ranks
    extra = np.repeat(np.arange(len(copies)), copies - 1)
    row = np.concatenate([np.arange(len(copies)), extra])
    above, tied, before = ranks.above[row], ranks.tied[row], ranks.before[row]
    if rule == "counted":
        above[len(copies) :] = -1
    order = np.lexsort((before, above, above < 0, ranks.user[row]))
    result = dataclasses.replace(
        ranks.rows(row[order]),
        above=above[order],
        tied=tied[order],
        before=before[order],
        copies=None,
    )
    counted = result.relevant if result.repeated is None else result.relevant & ~result.repeated
    n_relevant = np.bincount(result.user[counted], minlength=ranks.n_users)
    return dataclasses.replace(result, n_relevant=n_relevant)


def check_places(ranks: Ranks, ties: TieRule) -> None:
    """Raise an error if rows of a pair must share a place, but the item is tied."""
    if ties not in _SEVERAL_PLACES:
        return
    same = (ranks.above[1:] >= 0) & (ranks.tied[1:] > 0)
    for column in (ranks.user, ranks.item, ranks.above):
        same &= column[1:] == column[:-1]
    if same.any():
        raise InputError(
            f"{rule_text('repeated_test', 'joined')} counts all rows of a pair at the place of the "
            f"item, but {np.count_nonzero(same):,} of these rows are for items with tied scores, "
            f"and {rule_text('ties', ties)} gives tied items no place of their own. "
            f"Hint: {rule_text('ties', 'item')} does."
        )

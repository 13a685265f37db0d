"""Users whose candidates all have the same score, if no judged item shows it.

A judged item that is a candidate is compared with all others, which shows whether all of them tie
with it (`recometer.sources._rank_counts`). For users without such an item, a few candidates are
compared, then more: nearly always, two of the first few differ.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from recometer import ragged
from recometer._kernel import NanRule
from recometer.arrays import Array, Bool, Int64, steps
from recometer.protocol import Protocol
from recometer.sources.alignment import Aligned

AT_FIRST = 8  # candidates of each user
TIMES_MORE = 4
MOST_AT_ONCE = 2**18  # candidates of all users in memory at once
USERS_AT_ONCE = 4096

# Takes some of the users by number, and items of each as a ragged table. Returns the scores, and
# which of them belong to candidates (None: all).
Score = Callable[[Int64, Int64, Int64], tuple[Array, Bool | None]]


def users_to_check(judged_indptr: Int64, shown: Bool, protocol: Protocol) -> Int64:
    """Return the users to check: their judged items do not show whether all scores are equal.

    Other users are undefined anyway, unless the rules give them a value.
    """
    everybody = protocol.no_relevant == "computed"
    return np.flatnonzero(~shown & (everybody | (steps(judged_indptr) > 0)))


def constant(aligned: Aligned, users: Int64, nan_rule: NanRule, score: Score) -> Bool:
    """Return which of some users have several candidates that all have the same score."""
    found = np.zeros(len(users), bool)
    n_candidates, common = np.zeros(len(users), np.int64), np.zeros(len(users))
    left, begin, size = np.arange(len(users)), 0, AT_FIRST
    while len(left):
        end = begin + max(1, min(size, MOST_AT_ONCE // len(left)))
        indptr, items, ended = _between(aligned, users[left], begin, end)
        scores, candidate = score(left, indptr, items)
        who = ragged.users_of(indptr)
        if candidate is not None:
            scores, who = scores[candidate], who[candidate]
        if nan_rule != NanRule.UNDEFINED:
            scores[np.isnan(scores)] = np.inf if nan_rule == NanRule.FIRST else -np.inf
        counts = np.bincount(who, minlength=len(left))
        first = (counts > 0) & (n_candidates[left] == 0)
        common[left[first]] = scores[(np.cumsum(counts) - counts)[first]]
        n_candidates[left] += counts
        same = np.ones(len(left), bool)
        same[who[scores != common[left][who]]] = False  # NaN does not equal NaN
        found[left[same & ended]] = n_candidates[left[same & ended]] > 1
        left, begin, size = left[same & ~ended], end, size * TIMES_MORE
    return found


def _between(aligned: Aligned, users: Int64, begin: int, end: int) -> tuple[Int64, Int64, Bool]:
    """Return candidates of some users as a ragged table, and which users have no more.

    They are the candidates from `begin` to `end` of each user, or these items if users have no
    candidates of their own.
    """
    if aligned.offered is not None:
        offsets, candidates = aligned.offered
        stop = offsets[users + 1]
        first = np.minimum(offsets[users] + begin, stop)
        last = np.minimum(offsets[users] + end, stop)
        indptr = ragged.indptr_of(last - first)
        rows = (first - indptr[:-1]).repeat(last - first) + np.arange(indptr[-1])
        return indptr, candidates[rows].astype(np.int64), last == stop
    end = min(end, aligned.n_items)
    indptr, rows = ragged.take(aligned.excluded_indptr, users)
    excluded = aligned.excluded[rows]
    inside = (excluded >= begin) & (excluded < end)
    stays = np.ones((len(users), end - begin), bool)
    stays[ragged.users_of(indptr)[inside], excluded[inside] - begin] = False
    items = begin + np.nonzero(stays)[1]
    ended = np.full(len(users), end == aligned.n_items)
    return ragged.indptr_of(np.count_nonzero(stays, axis=1)), items, ended

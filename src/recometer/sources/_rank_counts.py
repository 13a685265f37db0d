"""Turns counts of judged items into `Ranks`, and finds users whose candidates all tie."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from recometer import _kernel, ragged
from recometer._kernel import NanRule
from recometer.arrays import Array, Bool, Int64, any_of, slices, steps
from recometer.errors import InternalError
from recometer.protocol import Protocol
from recometer.ranks import Ranks, UserFlag
from recometer.sources.alignment import Aligned
from recometer.tasks import BRIEF, Ticker, run_tasks

USERS_PER_TASK = 2**10  # number of users whose rows one task sorts


def best_first(indptr: Int64, above: Int64, before: Int64 | None, threads: int) -> Int64:
    """Return the order of judged rows: each user's best first, unranked rows (-1) last.

    See `Ranks` for `above` and `before`; the latter is None if nothing is tied.
    """
    order, n_users = np.empty(len(above), np.int64), len(indptr) - 1
    if n_users + len(above) <= BRIEF:
        _kernel.best_first(indptr, above, before, order)
        return order

    def task(users: slice, ticker: Ticker) -> None:
        ticker.advance()
        _kernel.best_first(indptr[users.start : users.stop + 1], above, before, order)

    run_tasks(task, slices(n_users, USERS_PER_TASK), threads=threads, progress=False)
    return order


def spread(
    counted: Int64 | Bool, n: int, above: Int64, tied: Int64, before: Int64
) -> tuple[Int64, Int64, Int64]:
    """Spread the counts of the counted rows over all n judged rows.

    Rows that were not counted get an `above` of -1.
    """
    columns = np.full(n, -1, np.int64), np.zeros(n, np.int64), np.zeros(n, np.int64)
    for column, found in zip(columns, (above, tied, before), strict=True):
        column[counted] = found
    return columns


def check_own_scores(lost: int, positions: Array) -> None:
    """Raise an error if the score of a judged item (`lost` >= 0) was not found among its user's."""
    if lost >= 0:
        raise InternalError(
            f"The item at position {positions[lost]} did not find its own score among the "
            "candidates. Please report this, with the processor's name."
        )


def assemble(
    aligned: Aligned,
    above: Int64,
    tied: Int64,
    before: Int64,
    order: Int64,
    no_candidates: Int64,
    limit: int | None,
) -> Ranks:
    """Make Ranks from the counts of all judged rows, and the order of the rows, best first."""
    n_candidates: Int64 = aligned.n_items - aligned.n_excluded - no_candidates
    above, flags = above[order], aligned.flags
    if any_of(tied):
        tied, before = tied[order], before[order]
        # If all other candidates tie with a judged item, all candidates have the same score.
        others = n_candidates - 1
        rows = np.flatnonzero(tied >= max(1, others.min()))
        users = np.searchsorted(aligned.judged_indptr, rows, side="right") - 1
        constant = tied[rows] == others[users]
        flags[users[constant]] |= np.uint32(UserFlag.CONSTANT_SCORES)
    # If all are equal, they need not be copied in another order.
    gain = aligned.gain if aligned.one_gain else aligned.gain[order]
    relevant = aligned.relevant if aligned.one_relevance else aligned.relevant[order]
    return Ranks(
        indptr=aligned.judged_indptr,
        item=aligned.item[order].astype(np.int64),
        above=above,
        tied=tied,
        before=before,
        gain=gain,
        relevant=relevant,
        n_relevant=aligned.n_relevant,
        n_candidates=n_candidates,
        n_excluded=aligned.n_excluded,
        depth=n_candidates if limit is None else np.minimum(n_candidates, limit),
        flags=flags,
        counts=aligned.counts,
        n_rankable=None if limit is None else n_rankable(aligned, aligned.judged >= 0),
        item_ids=aligned.item_ids,
    )


def n_rankable(aligned: Aligned, candidates: Bool) -> Int64:
    """Return the number of each user's relevant items that are candidates."""
    return steps(ragged.offsets(aligned.relevant & candidates, aligned.judged_indptr))


AT_FIRST = 8  # number of candidates per user that are compared first
TIMES_MORE = 4
MOST_AT_ONCE = 2**18  # maximum number of candidates in memory
USERS_AT_ONCE = 4096

# A function of the numbers of some users, and a ragged table of items of each user. It returns the
# scores, and a mask of the items that are candidates (None if all are).
Score = Callable[[Int64, Int64, Int64], tuple[Array, Bool | None]]


def users_to_check(judged_indptr: Int64, shown: Bool, protocol: Protocol) -> Int64:
    """Return the users whose judged items do not show whether all scores are equal.

    Users without judged items need no check unless the rules give them a value, because their
    values are undefined anyway.
    """
    everybody = protocol.no_relevant == "computed"
    return np.flatnonzero(~shown & (everybody | (steps(judged_indptr) > 0)))


def constant(aligned: Aligned, users: Int64, nan_rule: NanRule, score: Score) -> Bool:
    """Return a mask of the users who have several candidates, all with the same score."""
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
        same[who[scores != common[left][who]]] = False  # NaN never equals NaN
        found[left[same & ended]] = n_candidates[left[same & ended]] > 1
        left, begin, size = left[same & ~ended], end, size * TIMES_MORE
    return found


def _between(aligned: Aligned, users: Int64, begin: int, end: int) -> tuple[Int64, Int64, Bool]:
    """Return some candidates of users as a ragged table, and a mask of users with none left.

    These are the candidates ``begin:end`` of each user. Without sets of candidates, they are those
    of the items ``begin:end`` that are not excluded.
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

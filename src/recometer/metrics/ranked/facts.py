"""Facts about each user that are not stored in the tie groups."""

from __future__ import annotations

import numpy as np

from recometer.arrays import Bool, Float64, Int64, all_of, steps
from recometer.ragged import indptr_of
from recometer.ranks import number_runs
from recometer.ties import Groups, shared, sum_by_user


def all_gains(groups: Groups) -> Float64:
    """Add up the positive gains of a user's judged items, ranked or not: float64 [n_users]."""
    user, _ = ideal_members(groups)
    return sum_by_user(user, groups.ideal_gain, groups.n_users)


@shared
def sum_of_gains(groups: Groups) -> Float64:
    """Add up all gains of a user's judged items, including negative ones: float64 [n_users]."""
    indptr, gain = groups.signed_ideal()
    return sum_by_user(members(indptr)[0], gain, groups.n_users)


@shared
def ideal_members(groups: Groups) -> tuple[Int64, Int64]:
    """Return the user and the place (counted from 0) of each item in its user's best order."""
    return members(groups.ideal_indptr)


def members(indptr: Int64) -> tuple[Int64, Int64]:
    """Return the user of each row of a ragged table, and the row's place among the user's rows."""
    return number_runs(steps(indptr))


@shared
def listed_relevant(groups: Groups) -> Int64:
    """Count the relevant items that were ranked, ignoring repeats: int64 [n_users]."""
    ranks = groups.ranks
    ranked = ranks.relevant & (ranks.above >= 0)
    return _count(groups, ranked if ranks.repeated is None else ranked & ~ranks.repeated)


@shared
def relevant_candidates(groups: Groups) -> Int64:
    """Count the relevant candidates: int64 [n_users].

    Unless the source gives this number or the whole ranking is known, a relevant item that was not
    ranked counts as a candidate, because it may come later in the ranking.
    """
    ranks = groups.ranks
    is_whole = ranks.depth >= ranks.n_candidates
    at_most = np.minimum(ranks.n_relevant, ranks.n_candidates)
    n_rankable = listed_relevant(groups) if ranks.n_rankable is None else ranks.n_rankable
    return np.where(is_whole, n_rankable, at_most)


def judged_nonrelevant(groups: Groups, *, from_zero: bool) -> Int64:
    """Count the judged items that are not relevant, ranked or not: int64 [n_users].

    `from_zero` leaves out items whose test value is below 0.
    """
    rows = ~groups.ranks.relevant
    return _count(groups, rows & ~(groups.ranks.gain < 0) if from_zero else rows)


def sum_per_user(groups: Groups, values: Int64) -> Int64:
    """For each user, add up integers, one per group: int64 [n_users]."""
    return steps(indptr_of(values)[groups.indptr])


def _count(groups: Groups, rows: Bool) -> Int64:
    if all_of(rows):
        return steps(groups.ranks.indptr)
    return steps(indptr_of(rows)[groups.ranks.indptr])

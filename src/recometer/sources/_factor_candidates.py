"""Factors where each user has candidates of its own: they alone are scored.

The scores of a block of users lie in a table with a row per user and a column per candidate,
padded with -inf ("not a candidate"), and are counted like those of `Scores`.
"""

from __future__ import annotations

import functools

import numpy as np

from recometer import _kernel, ragged
from recometer._kernel import NanRule
from recometer.arrays import Array, Int32, Int64, UInt32
from recometer.data.matching import find_rows
from recometer.ranks import UserFlag
from recometer.sources._align_result import Aligned
from recometer.sources._assemble import check_own_scores
from recometer.sources._factor_work import CANDIDATES_PER_TASK, FactorsWork
from recometer.sources.base import Request
from recometer.tasks import Ticker, run_tasks

USERS_PER_BLOCK = 1024


def blocks(aligned: Aligned) -> list[Int64]:
    """Cut the users who have candidates into blocks of limited size, or of one user."""
    assert aligned.candidate_indptr is not None
    lengths = np.diff(aligned.candidate_indptr)
    users = np.flatnonzero((lengths > 0) & (aligned.rows >= 0))
    # Users with as many candidates come together: little of a table is padding.
    users = users[np.argsort(lengths[users], kind="stable")]
    found, start = [], 0
    while start < len(users):
        some = users[start : start + USERS_PER_BLOCK]
        cells = lengths[some] * np.arange(1, len(some) + 1)
        size = max(1, int(np.searchsorted(cells, CANDIDATES_PER_TASK, side="right")))
        found.append(some[:size])
        start += size
    return found


def rank_all(work: FactorsWork, request: Request) -> None:
    """Rank the judged items of all users among the candidates of each."""
    tasks = blocks(work.aligned)
    run = functools.partial(rank_block, work)
    run_tasks(run, tasks, label="Ranking", brief=work.brief, **request.pace)


def rank_block(work: FactorsWork, users: Int64, ticker: Ticker) -> None:
    """Rank the judged items of some users of test among the candidates of each."""
    ticker.advance()
    aligned = work.aligned
    assert aligned.candidate_indptr is not None
    assert aligned.candidates is not None
    indptr, at = ragged.take(aligned.candidate_indptr, users)
    items = aligned.candidates[at]
    scores: Array = np.empty(len(items), work.scores.dtype)
    work.score(work.user_factors(aligned.rows[users]), indptr, items, scores)
    flags = aligned.flags[users]
    if work.check:
        work.factors.flag_user_bias(aligned.rows[users], flags)
        infinite = np.isinf(scores)
        flags[ragged.users_of(indptr)[infinite]] |= np.uint32(UserFlag.INFINITE_SCORE)
        # In the table -inf is not a candidate; these users' counts are not read any more.
        scores[infinite] = np.finfo(scores.dtype).min
    judged_indptr, judged_at = ragged.take(aligned.ranked_indptr, users)
    judged = aligned.ranked_items[judged_at]
    # Each judged item is a candidate.
    entry = find_rows(judged_indptr, judged, indptr, items)
    counts = _count(work, indptr, scores, judged_indptr, entry, items, flags)
    for column, found in zip((work.above, work.tied, work.before), counts, strict=True):
        column[judged_at] = found
    aligned.flags[users] = flags


def _count(
    work: FactorsWork,
    indptr: Int64,
    scores: Array,
    judged_indptr: Int64,
    entry: Int64,
    items: Int32,
    flags: UInt32,
) -> list[Int64]:
    """Return above, tied and before of judged items among the candidates of their users.

    `indptr`, `items` and `scores` are the candidates, `judged_indptr` and `entry` which of them
    are judged; `flags` are changed in place.
    """
    n_users = len(indptr) - 1
    who = ragged.users_of(indptr)
    column = np.arange(len(items)) - indptr[who]
    table = np.full((n_users, int(np.diff(indptr).max())), -np.inf, scores.dtype)
    table[who, column] = scores
    judged_scores = scores[entry]
    unranked = np.isnan(judged_scores)
    if work.nan_rule != NanRule.UNDEFINED:
        judged_scores[unranked] = np.inf if work.nan_rule == NanRule.FIRST else -np.inf
        unranked[:] = False
    above, tied, before = (np.zeros(len(entry), np.int64) for _ in range(3))
    lost = _kernel.rank_scores(
        instruction_set=work.instruction_set,
        scores=table,
        columns=None,
        excluded_indptr=np.zeros(n_users + 1, np.int64),
        excluded=np.zeros(0, np.int32),
        judged_indptr=judged_indptr,
        judged=column[entry].astype(np.int32),
        judged_scores=judged_scores,
        above=above,
        tied=tied,
        before=before,
        limit=None,
        nan_rule=work.nan_rule,
        flags=flags,
        no_candidates=np.zeros(n_users, np.int64),
    )
    check_own_scores(lost, items[entry])
    above[unranked] = -1
    return [above, tied, before]

"""The first places of each user's ranking by factors: nothing but the best is kept."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from recometer import _kernel, ragged
from recometer.arrays import Array, Bool, Int32, Int64, UInt32, slices
from recometer.ranks import UserFlag
from recometer.sources._factor_work import CANDIDATES_PER_TASK, FactorsWork
from recometer.sources._top import Best, Rule, Shelf
from recometer.sources.base import Request
from recometer.tasks import Ticker, run_tasks

PLACES_PER_TASK = 2**20
USERS_PER_BLOCK = 4096


def best_of_all(work: FactorsWork, request: Request, k: int, rule: Rule) -> Best:
    """Return the best candidates of each user, all items being scored."""
    aligned = work.aligned
    k = min(k, aligned.n_items)
    shelf = Shelf.of(rule.keys, k, work.factors.items.dtype)

    def run(users: slice, ticker: Ticker) -> None:
        rows = np.maximum(aligned.rows[users], 0)
        flags = aligned.flags[users]
        if work.check:
            work.factors.flag_user_bias(rows, flags)
        mine = shelf.users(users)
        factors = work.user_factors(rows)
        order_of_items, last = work.order(factors), 0
        finished = np.zeros(len(rows), np.uint8)
        while last < aligned.n_items and not finished.all():
            first = last
            items, last = work.shown(first, finished)
            _kernel.top_factors(
                **work.native(factors),
                **items,
                **order_of_items,
                first=first,
                last=last,
                excluded_indptr=aligned.excluded_indptr[users.start : users.stop + 1],
                excluded=aligned.excluded,
                order=rule.order,
                **mine.native(),
                check=work.check,
                nan_rule=work.nan_rule,
                flags=flags,
                finished=finished,
            )
            ticker.advance(float((last - first) * len(rows)))

    tasks = [
        task
        for block in work.blocks(request.threads)
        for task in slices(block.stop, PLACES_PER_TASK // k, block.start)
    ]
    work.run_all(run, tasks, "Listing", request)
    n_candidates = aligned.n_items - np.diff(aligned.excluded_indptr)
    aligned.flags[shelf.constant(n_candidates)] |= np.uint32(UserFlag.CONSTANT_SCORES)
    return Best(shelf.items, shelf.left)


def best_of_listed(work: FactorsWork, request: Request, k: int, rule: Rule) -> Best:
    """Return the best candidates of each user, where users have candidates of their own."""
    aligned = work.aligned
    assert aligned.candidate_indptr is not None
    assert aligned.candidates is not None
    n_users, indptr, candidates = aligned.n_users, aligned.candidate_indptr, aligned.candidates
    items = np.full((n_users, min(k, aligned.n_items)), -1, np.int32)
    left = np.zeros(n_users, np.int64)

    def run(users: slice, ticker: Ticker) -> None:
        ticker.advance()
        rows = np.maximum(aligned.rows[users], 0)
        flags = aligned.flags[users]
        offsets = indptr[users.start : users.stop + 1] - indptr[users.start]
        listed = candidates[indptr[users.start] : indptr[users.stop]]
        scores = np.empty(len(listed), work.factors.items.dtype)
        work.score(work.user_factors(rows), offsets, listed, scores)
        if work.check:
            before, empty = flags.copy(), np.diff(offsets) == 0
            work.factors.flag_user_bias(rows, flags)
            flags[empty] = before[empty]
            flags[ragged.users_of(offsets)[np.isinf(scores)]] |= np.uint32(UserFlag.INFINITE_SCORE)
        several = np.flatnonzero(np.diff(offsets) > 1)
        flags[several[_all_equal(scores, offsets, several)]] |= np.uint32(UserFlag.CONSTANT_SCORES)
        _first_places(
            work, rule.users(users), offsets, listed, scores, flags, items[users], left[users]
        )

    blocks = ragged.blocks(indptr, CANDIDATES_PER_TASK, USERS_PER_BLOCK)
    run_tasks(run, blocks, label="Listing", brief=work.brief, **request.pace)
    return Best(items, left)


def _first_places(
    work: FactorsWork,
    rule: Rule,
    indptr: Int64,
    listed: Int32,
    scores: Array,
    flags: UInt32,
    items: Int32,
    left: Int64,
) -> None:
    """Read candidates as lists with scores: write the first places of each user to `items`."""
    nothing, spare, none = (np.zeros(n, np.int64) for n in (len(indptr), len(indptr) - 1, 0))
    _kernel.rank_lists(
        items=listed,
        scores=scores.astype(np.float64),
        begin=indptr[:-1],
        end=indptr[1:],
        n_items=work.aligned.n_items,
        excluded_indptr=nothing,
        excluded=none.astype(np.int32),
        judged_indptr=nothing,
        judged=none.astype(np.int32),
        input_order=False,
        nan_rule=work.nan_rule,
        above=none,
        tied=none,
        before=none,
        flags=flags,
        given=spare,
        listed=spare,
        removed=spare,
        repeated=spare,
        order=rule.order,
        keys=rule.keys,
        top=items,
        left=left,
    )


def _all_equal(scores: npt.NDArray[np.floating], indptr: Int64, users: Int64) -> Bool:
    """Return which of some users, who have scores, have but one."""
    if not len(users):
        return np.zeros(0, bool)
    differs = np.zeros(len(scores) + 1, np.int64)
    np.cumsum(scores[1:] != scores[:-1], out=differs[1:-1])
    equal: Bool = differs[indptr[users + 1] - 1] == differs[indptr[users]]
    return equal

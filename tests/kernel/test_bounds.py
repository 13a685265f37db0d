"""The kernel checks positions when it reads them, since callers can change arrays at any time."""

import numpy as np
import pytest
from orders_of_items import OWN_ORDER

from recometer import _kernel

INT_MAX = 2**31 - 1
OFFSETS = np.array([0, 2, 2, 4])
ITEMS = np.array([0, 3, 1, 2], np.int32)
N_USERS, N_ITEMS = 3, 4
# In each of these invalid tables, an item is outside [0, N_ITEMS) or a user's items are not in
# ascending order.
OUTSIDE = [[0, INT_MAX, 1, 2], [0, 4, 1, 2], [0, 3, 1, 10**9]]
NEGATIVE = [[-1, 3, 1, 2], [0, 3, -(2**31), 2]]
UNSORTED = [[3, 0, 1, 2], [0, 3, 2, 2]]
FALLING = [[0, 2, 1, 4], [0, 9, 2, 4], [0, 2, 2, 5], [-1, 2, 2, 4], [0, 2, 2, -(2**62)]]


def zeros(n=N_ITEMS, dtype=np.int64):
    """Return `n` zeros. The default is the number of items, which is also the number of rows."""
    return np.zeros(n, dtype)


def factors():
    users, items = np.ones((N_USERS, 1)), np.arange(N_ITEMS, dtype=float)[:, np.newaxis]
    return {
        "instruction_set": _kernel.instruction_set(),
        "users": users,
        "items": items,
        "bias": None,
        "rows": None,
    }


def score_items(indptr, items):
    _kernel.score_items(**factors(), indptr=indptr, listed=items, scores=zeros(dtype=float))


def score_arguments():
    return {
        "instruction_set": _kernel.instruction_set(),
        "scores": np.arange(N_USERS * N_ITEMS, dtype=float).reshape(N_USERS, N_ITEMS),
        "columns": None,
        "nan_rule": _kernel.NanRule.UNDEFINED,
        "flags": zeros(N_USERS, np.uint32),
        "no_candidates": zeros(N_USERS),
    }


def range_arguments():
    return {
        **OWN_ORDER,
        "first": 0,
        "last": N_ITEMS,
        "check": False,
        "nan_rule": _kernel.NanRule.UNDEFINED,
        "flags": zeros(N_USERS, np.uint32),
        "finished": zeros(N_USERS, np.uint8),
    }


def counts():
    return {"above": zeros(), "tied": zeros(), "before": zeros()}


def judged(indptr, items):
    judged_arrays = {"judged_indptr": indptr, "judged": items, "judged_scores": zeros(dtype=float)}
    return {**judged_arrays, **counts(), "limit": None, **excluded(zeros(N_USERS + 1), ITEMS[:0])}


def excluded(indptr, items):
    return {"excluded_indptr": indptr, "excluded": items}


def without_judged_items():
    none = judged(zeros(N_USERS + 1), ITEMS[:0])
    return none | {name: zeros(0, array.dtype) for name, array in none.items() if name in NAMES}


NAMES = ("judged_scores", "above", "tied", "before")


def list_arrays():
    return {
        "order": _kernel.TieOrder.ITEM,
        "keys": zeros(N_USERS, np.uint64),
        "top_scores": np.zeros((N_USERS, 1)),
        "top_items": np.zeros((N_USERS, 1), np.int32),
        "n": zeros(N_USERS),
        "left": zeros(N_USERS),
    }


def lists(items=ITEMS, judged_table=(OFFSETS, ITEMS), excluded_table=None):
    excluded_table = excluded_table or (zeros(N_USERS + 1), ITEMS[:0])
    _kernel.rank_lists(
        items=items,
        scores=None,
        begin=OFFSETS[:-1].copy(),
        end=OFFSETS[1:].copy(),
        n_items=N_ITEMS,
        **excluded(*excluded_table),
        judged_indptr=judged_table[0],
        judged=judged_table[1],
        input_order=False,
        nan_rule=_kernel.NanRule.UNDEFINED,
        above=zeros(),
        tied=None,
        before=None,
        flags=zeros(N_USERS, np.uint32),
        **{name: zeros(N_USERS) for name in ("given", "listed", "removed", "repeated", "left")},
        order=_kernel.TieOrder.ITEM,
        keys=zeros(N_USERS, np.uint64),
        top=np.full((N_USERS, 1), -1, np.int32),
    )


def excluded_from(rank, **options):
    return lambda indptr, items: rank(**options | excluded(indptr, items))


CALLS = {
    "score_items": score_items,
    "rank_factors: judged": lambda *table: _kernel.rank_factors(
        **factors(), **range_arguments(), **judged(*table)
    ),
    "rank_factors: excluded": excluded_from(
        _kernel.rank_factors, **factors(), **range_arguments(), **without_judged_items()
    ),
    "top_factors": excluded_from(
        _kernel.top_factors, **factors(), **range_arguments(), **list_arrays()
    ),
    "rank_scores: judged": lambda *table: _kernel.rank_scores(
        **score_arguments(), **judged(*table)
    ),
    "rank_scores: excluded": excluded_from(
        _kernel.rank_scores, **score_arguments(), **without_judged_items()
    ),
    "top_scores": excluded_from(_kernel.top_scores, **score_arguments(), **list_arrays()),
    "rank_lists: judged": lambda *table: lists(judged_table=table),
    "rank_lists: excluded": lambda *table: lists(excluded_table=table),
    "find_rows": lambda *table: _kernel.find_rows(
        indptr=OFFSETS,
        items=ITEMS,
        users=None,
        other_indptr=table[0],
        other_items=table[1],
        found=zeros(),
    ),
    "rows_ascend": lambda indptr, items: _kernel.rows_ascend(
        indptr=indptr, items=items, n_items=N_ITEMS, first=0, last=N_USERS
    ),
    "count_items": lambda indptr, items: _kernel.count_items(
        indptr=indptr,
        items=items,
        users=None,
        counts=zeros(N_ITEMS),
        sums=zeros(N_USERS),
    ),
    "best_first": lambda indptr, _: _kernel.best_first(indptr, zeros(), None, zeros()),
    "count_within": lambda indptr, _: _kernel.count_within(
        indptr, zeros(), zeros(N_USERS), zeros(N_USERS)
    ),
    "add_hits": lambda indptr, _: _kernel.add_hits(
        indptr, zeros(), np.array([2]), np.zeros((1, N_USERS))
    ),
}
ASCENDING = [name for name in CALLS if name.startswith(("rank_factors", "rank_scores", "top"))]
WITH_ITEMS = ["score_items", "rank_lists: judged", "rank_lists: excluded", "count_items"]


@pytest.mark.parametrize("name", CALLS)
def test_valid_positions_are_accepted(name):
    CALLS[name](OFFSETS.copy(), ITEMS.copy())


@pytest.mark.parametrize("indptr", FALLING, ids=str)
@pytest.mark.parametrize("name", CALLS)
def test_descending_or_out_of_range_offsets_are_rejected(name, indptr):
    with pytest.raises(ValueError):
        CALLS[name](np.array(indptr, np.int64), ITEMS.copy())


@pytest.mark.parametrize("items", OUTSIDE, ids=str)
@pytest.mark.parametrize("name", [*ASCENDING, *WITH_ITEMS])
def test_items_beyond_the_last_are_rejected(name, items):
    with pytest.raises(ValueError):
        CALLS[name](OFFSETS.copy(), np.array(items, np.int32))


@pytest.mark.parametrize("items", [*NEGATIVE, *UNSORTED], ids=str)
@pytest.mark.parametrize("name", ASCENDING)
def test_negative_or_unsorted_items_are_rejected(name, items):
    with pytest.raises(ValueError):
        CALLS[name](OFFSETS.copy(), np.array(items, np.int32))


@pytest.mark.parametrize("items", [[-2, 3, 1, 2], [0, 3, -(2**31), 2]], ids=str)
@pytest.mark.parametrize("name", WITH_ITEMS)
def test_items_below_minus_one_are_rejected(name, items):
    with pytest.raises(ValueError):
        CALLS[name](OFFSETS.copy(), np.array(items, np.int32))


@pytest.mark.parametrize("items", OUTSIDE, ids=str)
def test_listed_items_beyond_the_last_are_rejected(items):
    with pytest.raises(ValueError, match="no such item"):
        lists(np.array(items, np.int32))

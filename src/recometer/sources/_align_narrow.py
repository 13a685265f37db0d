"""From the whole catalogue to the candidates: what `candidates` and `exclude` leave of `Aligned`.

Items that are left out for everybody leave the numbering of items altogether, so that a source
ranks a smaller catalogue and knows no better. Sets per user become a ragged table beside it.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from recometer import ragged
from recometer.arrays import Array, Bool, Int32, Int64, UInt64
from recometer.data.tensors import is_tensor, to_numpy
from recometer.errors import InputError
from recometer.ragged import among, indptr_of, numbered, offsets, pairs, users_of
from recometer.sources import _torch
from recometer.sources._align_draw import draw_items
from recometer.sources._align_result import Aligned
from recometer.sources.candidates import SampledCandidates


def leave_out(aligned: Aligned, kept: Bool) -> Aligned:
    """Take items out of the catalogue for everybody, unless `kept` (bool [n_items]).

    There is no table of candidates yet.

    Raises
    ------
    InputError
        If no item is left.
    """
    if kept.all():
        return aligned
    if not kept.any():
        raise InputError(
            f"No candidate is left of the {aligned.n_items:,} items that the source has. "
            "Hint: see candidates= and exclude=."
        )
    left = np.flatnonzero(kept)
    numbers = (np.where(kept, np.cumsum(kept), 0) - 1).astype(np.int32)
    judged = _renumbered(numbers, aligned.judged)
    stays = kept[aligned.excluded]
    return dataclasses.replace(
        _ranking(aligned, judged),
        n_items=len(left),
        item_rows=left if aligned.item_rows is None else aligned.item_rows[left],
        numbers=numbers,
        excluded_indptr=offsets(stays, aligned.excluded_indptr),
        excluded=numbers[aligned.excluded[stays]],
    )


def restrict(aligned: Aligned, indptr: Int64, items: Int32) -> Aligned:
    """Give every user a set of candidates, less what is excluded.

    `items` are positions in the order of the (sorted) item ids, ascending within a user.
    """
    if aligned.numbers is not None:
        items = aligned.numbers[items]
    listed = numbered(indptr, items, aligned.n_items)[items >= 0]
    narrowed = _with_table(aligned, listed[~among(listed, _excluded(aligned))])
    in_a_set = np.zeros(aligned.n_items, bool)
    in_a_set[items[items >= 0]] = True
    return dataclasses.replace(narrowed, n_offered=int(np.count_nonzero(in_a_set)))


def draw(
    aligned: Aligned,
    sample: SampledCandidates,
    user_keys: UInt64,
    popularity: Int64 | None,
    threads: int,
    progress: bool | None,
) -> Aligned:
    """Give every user their items of test and some others, drawn at random.

    `user_keys` stand for the users in the draw; `popularity` (int64 [n_items]) counts the
    interactions of each position in train, where items are drawn by them.

    Raises
    ------
    InputError
        If there are not that many items, or none can be drawn.
    """
    if sample.n > aligned.n_items:
        raise InputError(
            f"{sample} draws more items than there are: {aligned.n_items:,}. "
            "Hint: leave candidates= out to rank all of them."
        )
    pool, weights = np.arange(aligned.n_items, dtype=np.int32), None
    if popularity is not None:
        weights = popularity if aligned.numbers is None else popularity[aligned.numbers >= 0]
        pool, weights = pool[weights > 0], weights[weights > 0]
        if not len(pool):
            raise InputError(
                f"{sample} has nothing to draw from: train has no interaction with an item that "
                "the source knows. Hint: by='uniform' needs no train."
            )
    judged = aligned.judged >= 0
    own = numbered(aligned.judged_indptr, aligned.judged, aligned.n_items)[judged]
    has_row = aligned.rows >= 0
    known = np.flatnonzero(has_row)
    forbidden = np.sort(np.concatenate([own, _excluded(aligned)]))
    user, item = np.divmod(forbidden, aligned.n_items)
    # A user is a row of the block that is drawn for, so the pairs are of positions in `known`.
    row = np.cumsum(has_row) - 1
    forbidden = pairs(row[user], item, aligned.n_items)[has_row[user]]
    drawn = draw_items(
        sample.n,
        sample.seed,
        user_keys[known],
        forbidden,
        pool,
        weights,
        aligned.n_items,
        threads,
        progress,
    )
    who = known[drawn // aligned.n_items]
    short = int(np.count_nonzero(np.bincount(who, minlength=aligned.n_users)[known] < sample.n))
    drawn = pairs(who, drawn % aligned.n_items, aligned.n_items)
    narrowed = _with_table(aligned, np.sort(np.concatenate([drawn, own])))
    return _counted(narrowed, candidates_short=short)


def mask_scores(aligned: Aligned, users: Int64, scores: Any) -> Any:
    """Give items that are not candidates of a user the score -inf.

    `scores`, an array or a tensor, have a row for each of some users of test, and a column per
    item row of the source.
    """
    if aligned.offered is None:
        return scores
    indptr, at = ragged.take(aligned.offered[0], users)
    who, columns = users_of(indptr), _columns(aligned, aligned.offered[1][at])
    _drain(aligned, users, scores)
    if is_tensor(scores):
        return _torch.only_cells(scores, who, columns)
    masked = np.full_like(scores, -np.inf)
    masked[who, columns] = scores[who, columns]
    return masked


def ranked_rows(rows: Int64, indptr: Int64, judged: Int32) -> tuple[Int64, Int64, Int32]:
    """Return which judged items can be ranked (known user, candidate), and their own table."""
    can = (judged >= 0) & np.repeat(rows >= 0, np.diff(indptr))
    ranked = np.flatnonzero(can)
    return ranked, offsets(can, indptr), judged[ranked]


def _with_table(aligned: Aligned, listed: Int64) -> Aligned:
    """Make ascending pairs the table of candidates."""
    n_users, n_items = aligned.n_users, aligned.n_items
    lengths = np.bincount(listed // n_items, minlength=n_users)
    indptr = indptr_of(lengths)
    judged = aligned.judged
    known = judged >= 0
    users = users_of(aligned.judged_indptr)
    inside = known & among(pairs(users, judged, n_items), listed)
    pool = n_items - np.diff(aligned.excluded_indptr)
    pool -= np.bincount(users[known], minlength=n_users)
    narrowed = dataclasses.replace(
        _ranking(aligned, np.where(inside, judged, np.int32(-1)).astype(np.int32)),
        candidate_indptr=indptr,
        candidates=(listed % n_items).astype(np.int32),
        pool=pool,
    )
    without = int(np.count_nonzero((lengths == 0) & (aligned.rows >= 0)))
    return _counted(narrowed, users_without_candidates=without)


def _ranking(aligned: Aligned, judged: Int32) -> Aligned:
    """Replace the judged items, some of which are not candidates any more."""
    lost = int(np.count_nonzero((judged < 0) & (aligned.judged >= 0) & aligned.relevant))
    ranked, ranked_indptr, ranked_items = ranked_rows(aligned.rows, aligned.judged_indptr, judged)
    before = aligned.counts.get("relevant_not_candidates", 0)
    return _counted(
        dataclasses.replace(
            aligned,
            judged=judged,
            ranked=ranked,
            ranked_indptr=ranked_indptr,
            ranked_items=ranked_items,
        ),
        relevant_not_candidates=before + lost,
    )


def _counted(aligned: Aligned, **counts: int) -> Aligned:
    found = {name: count for name, count in counts.items() if count}
    return dataclasses.replace(aligned, counts=aligned.counts | found)


def _drain(aligned: Aligned, users: Int64, scores: Any) -> None:
    """Take items that the model itself does not rank (-inf) out of the pool."""
    absent = scores == -np.inf
    absent = to_numpy(absent) if is_tensor(absent) else absent
    if not absent.any():
        return
    assert aligned.pool is not None
    item = aligned.item if aligned.numbers is None else _renumbered(aligned.numbers, aligned.item)
    in_pool = np.zeros(absent.shape, bool)
    in_pool[:, _columns(aligned, np.arange(aligned.n_items, dtype=np.int32))] = True
    for indptr, items in (
        (aligned.excluded_indptr, aligned.excluded),
        (aligned.judged_indptr, item),
    ):
        indptr, at = ragged.take(indptr, users)
        known = items[at] >= 0
        in_pool[users_of(indptr)[known], _columns(aligned, items[at][known])] = False
    aligned.pool[users] -= np.count_nonzero(in_pool & absent, axis=1)


def _columns(aligned: Aligned, items: Int32) -> Array:
    return items if aligned.item_rows is None else aligned.item_rows[items]


def _excluded(aligned: Aligned) -> Int64:
    return numbered(aligned.excluded_indptr, aligned.excluded, aligned.n_items)


def _renumbered(numbers: Int32, items: Int32) -> Int32:
    return np.where(items >= 0, numbers[items], np.int32(-1)).astype(np.int32)

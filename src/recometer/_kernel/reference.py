"""The kernel's twin in NumPy: slow, obvious, and what the native functions are tested against.

The functions have the arguments of their native twins, the instruction set excepted; see
`cpp/ranking.hpp`. NumPy has no fused multiply-add: scores agree to the last bit where they
are exact (small whole numbers), otherwise up to rounding.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from recometer._kernel import NanRule, ScoreFlag, TieOrder
from recometer._kernel.reference_rows import *  # noqa: F403
from recometer.arrays import Array, Bool, Float64, Int32, Int64, UInt8, UInt32, UInt64
from recometer.draws import mix


def score_items(
    *,
    users: Array,
    items: Array,
    bias: Array | None,
    rows: Int64 | None,
    indptr: Int64,
    listed: Int32,
    scores: Array,
) -> None:
    """Write the scores of listed items, a row of `listed` per user."""
    for user in range(len(users)):
        for j in range(indptr[user], indptr[user + 1]):
            row = listed[j] if rows is None else rows[listed[j]]
            score = users.dtype.type(0 if bias is None else bias[row])
            for factor in range(users.shape[1]):
                score += users[user, factor] * items[row, factor]
            scores[j] = score


def rank_factors(
    *,
    users: Array,
    items: Array,
    bias: Array | None,
    rows: Int64 | None,
    by_place: Int32 | None,
    places: Int32 | None,
    item_bound: Float64 | None,
    user_bound: Float64 | None,
    first: int,
    last: int,
    excluded_indptr: Int64,
    excluded: Int32,
    judged_indptr: Int64,
    judged: Int32,
    judged_scores: Array,
    above: Int64,
    tied: Int64,
    before: Int64,
    limit: int | None,
    check: bool,
    nan_rule: NanRule,
    flags: UInt32,
    finished: UInt8,
) -> int:
    """Add the counts of the items at places [first, last); nobody leaves early here."""
    scores = _all_scores(users, items, bias, rows)
    here = slice(first, last) if by_place is None else by_place[first:last]
    candidates = _candidates(len(users), scores.shape[1], excluded_indptr, excluded, here)
    for user, candidate in enumerate(candidates):
        if check:
            flags[user] |= _settle(scores[user], candidate, nan_rule)
        part = slice(judged_indptr[user], judged_indptr[user + 1])
        _count(scores[user], candidate, judged, judged_scores, part, above, tied, before)
    return -1


def rank_scores(
    *,
    scores: Array,
    columns: Int64 | None,
    excluded_indptr: Int64,
    excluded: Int32,
    judged_indptr: Int64,
    judged: Int32,
    judged_scores: Array,
    above: Int64,
    tied: Int64,
    before: Int64,
    limit: int | None,
    nan_rule: NanRule,
    flags: UInt32,
    no_candidates: Int64,
) -> int:
    """Add the counts of all items, their scores given; -inf is not a candidate."""
    scores = scores.copy() if columns is None else scores[:, columns]
    candidates = _candidates(len(scores), scores.shape[1], excluded_indptr, excluded)
    no_candidates += (candidates & np.isneginf(scores)).sum(1)
    for user, candidate in enumerate(candidates & ~np.isneginf(scores)):
        flags[user] |= _settle(scores[user], candidate, nan_rule)
        part = slice(judged_indptr[user], judged_indptr[user + 1])
        _count(scores[user], candidate, judged, judged_scores, part, above, tied, before)
    return -1


def top_factors(
    *,
    users: Array,
    items: Array,
    bias: Array | None,
    rows: Int64 | None,
    by_place: Int32 | None,
    places: Int32 | None,
    item_bound: Float64 | None,
    user_bound: Float64 | None,
    first: int,
    last: int,
    excluded_indptr: Int64,
    excluded: Int32,
    order: TieOrder,
    keys: UInt64,
    top_scores: Array,
    top_items: Int32,
    n: Int64,
    left: Int64,
    check: bool,
    nan_rule: NanRule,
    flags: UInt32,
    finished: UInt8,
) -> None:
    """Add the items at places [first, last) to the lists of the best; nobody leaves early here."""
    scores = _all_scores(users, items, bias, rows)
    here = slice(first, last) if by_place is None else by_place[first:last]
    candidates = _candidates(len(users), scores.shape[1], excluded_indptr, excluded, here)
    for user, candidate in enumerate(candidates):
        if check:
            flags[user] |= _settle(scores[user], candidate, nan_rule)
        _keep_best(user, scores[user], candidate, order, keys, top_scores, top_items, n, left)


def top_scores(
    *,
    scores: Array,
    columns: Int64 | None,
    excluded_indptr: Int64,
    excluded: Int32,
    order: TieOrder,
    keys: UInt64,
    top_scores: Array,
    top_items: Int32,
    n: Int64,
    left: Int64,
    nan_rule: NanRule,
    flags: UInt32,
    no_candidates: Int64,
) -> None:
    """Add all items to the lists of the best, their scores given; -inf is not a candidate."""
    scores = scores.copy() if columns is None else scores[:, columns]
    candidates = _candidates(len(scores), scores.shape[1], excluded_indptr, excluded)
    no_candidates += (candidates & np.isneginf(scores)).sum(1)
    for user, candidate in enumerate(candidates & ~np.isneginf(scores)):
        flags[user] |= _settle(scores[user], candidate, nan_rule)
        _keep_best(user, scores[user], candidate, order, keys, top_scores, top_items, n, left)


def rank_lists(
    *,
    items: Int32,
    scores: Float64 | None,
    begin: Int64,
    end: Int64,
    n_items: int,
    excluded_indptr: Int64,
    excluded: Int32,
    judged_indptr: Int64,
    judged: Int32,
    input_order: bool,
    nan_rule: NanRule,
    above: Int64,
    tied: Int64 | None,
    before: Int64 | None,
    flags: UInt32,
    given: Int64,
    listed: Int64,
    removed: Int64,
    repeated: Int64,
    order: TieOrder,
    keys: UInt64,
    top: Int32,
    left: Int64,
) -> None:
    """Find the judged items in given lists, and the first items; see `cpp/lists.hpp`."""
    for user in range(len(begin)):
        train = set(excluded[excluded_indptr[user] : excluded_indptr[user + 1]].tolist())
        # Per item: its best score, and the entry that has it.
        kept: dict[int, tuple[float, int]] = {}
        given[user] = removed[user] = repeated[user] = 0
        for entry in range(begin[user], end[user]):
            item = int(items[entry])
            if item < 0:
                continue
            given[user] += 1
            if item in train:
                removed[user] += 1
                continue
            score = -float(entry) if scores is None else float(scores[entry])
            if score == -np.inf:
                continue
            if score == np.inf:
                flags[user] |= ScoreFlag.INFINITE_SCORE
            if np.isnan(score):
                if nan_rule == NanRule.UNDEFINED:
                    flags[user] |= ScoreFlag.NAN_SCORE
                    continue
                score = np.inf if nan_rule == NanRule.FIRST else -np.inf
            repeated[user] += item in kept
            if item not in kept or score > kept[item][0]:
                kept[item] = (score, entry)
        listed[user] = len(kept)
        found = list(kept)
        best = np.array([kept[item][0] for item in found])
        if input_order:
            names, order = np.array([kept[item][1] for item in found]), TieOrder.ITEM
        else:
            names = np.array(found)
        place = np.lexsort((_tie_break(names, order, keys[user]), -best))
        k = top.shape[1]
        top[user, : len(place[:k])] = np.array(found, np.int32)[place[:k]]
        if 0 < k < len(place):
            left[user] = (best[place[k:]] == best[place[k - 1]]).sum()
        for j in range(judged_indptr[user], judged_indptr[user + 1]):
            item, equal = int(judged[j]), {}
            above[j] = -1
            if item in kept:
                score, entry = kept[item]
                above[j] = sum(other > score for other, _ in kept.values())
                equal = {i: at for i, (other, at) in kept.items() if other == score and i != item}
            if tied is not None and before is not None:
                tied[j] = len(equal)
                before[j] = sum(at < entry if input_order else i < item for i, at in equal.items())


def _all_scores(users: Array, items: Array, bias: Array | None, rows: Int64 | None) -> Array:
    chosen = items if rows is None else items[rows]
    scores = np.zeros((len(users), len(chosen)), users.dtype)
    if bias is not None:
        scores += bias if rows is None else bias[rows]
    for factor in range(users.shape[1]):
        scores += users[:, factor, None] * chosen[:, factor]
    return scores


def _candidates(
    n_users: int,
    n_items: int,
    excluded_indptr: Int64,
    excluded: Int32,
    here: slice | Int32 = slice(None),
) -> Bool:
    candidates = np.zeros((n_users, n_items), bool)
    candidates[:, here] = True
    for user, candidate in enumerate(candidates):
        candidate[excluded[excluded_indptr[user] : excluded_indptr[user + 1]]] = False
    return candidates


def _tie_break(items: npt.NDArray[np.integer], order: TieOrder, key: np.uint64) -> Array:
    """Return what items with equal scores are sorted by."""
    if order == TieOrder.RANDOM:
        return mix(key ^ items.astype(np.uint64))
    return items if order == TieOrder.ITEM else -items.astype(np.int64)


def _keep_best(
    user: int,
    scores: Array,
    candidate: Bool,
    order: TieOrder,
    keys: UInt64,
    top_scores: Array,
    top_items: Int32,
    n: Int64,
    left: Int64,
) -> None:
    """Sort the user's list and all candidates that are not NaN together; keep the best."""
    k = top_scores.shape[1]
    more = np.flatnonzero(candidate & ~np.isnan(scores))
    items = np.concatenate([top_items[user, : n[user]], more])
    values = np.concatenate([top_scores[user, : n[user]], scores[more]])
    place = np.lexsort((_tie_break(items, order, keys[user]), -values))
    last = top_scores[user, k - 1] if n[user] == k else np.nan
    n[user] = min(k, len(place))
    top_items[user, : n[user]] = items[place[:k]]
    top_scores[user, : n[user]] = values[place[:k]]
    if len(place) > k:
        new = values[place[k - 1]]
        left[user] = (left[user] if new == last else 0) + (values[place[k:]] == new).sum()


def _settle(scores: Array, candidate: Bool, nan_rule: NanRule) -> int:
    """Apply the rule for NaN in place; return the flags of what remains."""
    nan = candidate & np.isnan(scores)
    flags = ScoreFlag.INFINITE_SCORE if (candidate & np.isinf(scores)).any() else 0
    if nan_rule == NanRule.UNDEFINED:
        return flags | (ScoreFlag.NAN_SCORE if nan.any() else 0)
    scores[nan] = np.inf if nan_rule == NanRule.FIRST else -np.inf
    return flags


def _count(
    scores: Array,
    candidate: Bool,
    judged: Int32,
    judged_scores: Array,
    part: slice,
    above: Int64,
    tied: Int64,
    before: Int64,
) -> None:
    for j in range(part.start, part.stop):
        item, score = judged[j], judged_scores[j]
        if not np.isnan(score):
            equal = candidate & (scores == score)
            above[j] += (candidate & (scores > score)).sum()
            tied[j] += equal.sum() - candidate[item]
            before[j] += equal[:item].sum()

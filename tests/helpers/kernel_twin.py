"""The kernel's twin in NumPy: a slow and simple reference for tests of the native functions.

The functions take the same arguments as the native functions, except for the instruction set; the
headers in cpp/ describe them. NumPy has no fused multiply-add, so only exact scores, such as sums
of small integers, agree to the last bit; other scores agree up to rounding.
"""

from __future__ import annotations

import functools
import itertools
import operator
from typing import Any

import numpy as np
import numpy.typing as npt

from recometer import _kernel
from recometer.arrays import (
    Array,
    Bool,
    Float64,
    Int32,
    Int64,
    UInt8,
    UInt32,
    UInt64,
)
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
    """Compute the scores of each user's listed items."""
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
    nan_rule: _kernel.NanRule,
    flags: UInt32,
    finished: UInt8,
) -> int:
    """Rank judged items among the items at places [first, last), without stopping early."""
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
    nan_rule: _kernel.NanRule,
    flags: UInt32,
    no_candidates: Int64,
) -> int:
    """Rank judged items among all items by score; -inf marks items that are not candidates."""
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
    order: _kernel.TieOrder,
    keys: UInt64,
    top_scores: Array,
    top_items: Int32,
    n: Int64,
    left: Int64,
    check: bool,
    nan_rule: _kernel.NanRule,
    flags: UInt32,
    finished: UInt8,
) -> None:
    """Add the items at places [first, last) to every user's top list, without stopping early."""
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
    order: _kernel.TieOrder,
    keys: UInt64,
    top_scores: Array,
    top_items: Int32,
    n: Int64,
    left: Int64,
    nan_rule: _kernel.NanRule,
    flags: UInt32,
    no_candidates: Int64,
) -> None:
    """Add all items to the users' top lists; items with a score of -inf are not candidates."""
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
    nan_rule: _kernel.NanRule,
    above: Int64,
    tied: Int64 | None,
    before: Int64 | None,
    flags: UInt32,
    given: Int64,
    listed: Int64,
    removed: Int64,
    repeated: Int64,
    order: _kernel.TieOrder,
    keys: UInt64,
    top: Int32,
    left: Int64,
) -> None:
    """Find the judged items and the top items in each user's list; see `cpp/lists.hpp`."""
    for user in range(len(begin)):
        train = set(excluded[excluded_indptr[user] : excluded_indptr[user + 1]].tolist())
        # `entries` maps each item to its best score, and to the list entry with this score.
        entries: dict[int, tuple[float, int]] = {}
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
                flags[user] |= _kernel.ScoreFlag.INFINITE_SCORE
            if np.isnan(score):
                if nan_rule == _kernel.NanRule.UNDEFINED:
                    flags[user] |= _kernel.ScoreFlag.NAN_SCORE
                    continue
                score = np.inf if nan_rule == _kernel.NanRule.FIRST else -np.inf
            repeated[user] += item in entries
            if item not in entries or score > entries[item][0]:
                entries[item] = (score, entry)
        listed[user] = len(entries)
        distinct_items = list(entries)
        best = np.array([entries[item][0] for item in distinct_items])
        if input_order:
            names, order = (
                np.array([entries[item][1] for item in distinct_items]),
                _kernel.TieOrder.ITEM,
            )
        else:
            names = np.array(distinct_items)
        place = np.lexsort((_tie_break(names, order, keys[user]), -best))
        k = top.shape[1]
        top[user, : len(place[:k])] = np.array(distinct_items, np.int32)[place[:k]]
        if 0 < k < len(place):
            left[user] = (best[place[k:]] == best[place[k - 1]]).sum()
        for j in range(judged_indptr[user], judged_indptr[user + 1]):
            item, equal = int(judged[j]), {}
            above[j] = -1
            if item in entries:
                score, entry = entries[item]
                above[j] = sum(other_score > score for other_score, _ in entries.values())
                equal = {
                    i: position
                    for i, (other_score, position) in entries.items()
                    if other_score == score and i != item
                }
            if tied is not None and before is not None:
                tied[j] = len(equal)
                before[j] = sum(
                    position < entry if input_order else i < item for i, position in equal.items()
                )


def _all_scores(users: Array, items: Array, bias: Array | None, rows: Int64 | None) -> Array:
    factors = items if rows is None else items[rows]
    scores = np.zeros((len(users), len(factors)), users.dtype)
    if bias is not None:
        scores += bias if rows is None else bias[rows]
    for factor in range(users.shape[1]):
        scores += users[:, factor, None] * factors[:, factor]
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


def _tie_break(items: npt.NDArray[np.integer], order: _kernel.TieOrder, key: np.uint64) -> Array:
    """Return the keys by which items with equal scores are sorted."""
    if order == _kernel.TieOrder.RANDOM:
        return mix(key ^ items.astype(np.uint64))
    return items if order == _kernel.TieOrder.ITEM else -items.astype(np.int64)


def _keep_best(
    user: int,
    scores: Array,
    candidate: Bool,
    order: _kernel.TieOrder,
    keys: UInt64,
    top_scores: Array,
    top_items: Int32,
    n: Int64,
    left: Int64,
) -> None:
    """Merge all candidates with a score into a user's list, and keep the best entries."""
    k = top_scores.shape[1]
    candidates = np.flatnonzero(candidate & ~np.isnan(scores))
    items = np.concatenate([top_items[user, : n[user]], candidates])
    values = np.concatenate([top_scores[user, : n[user]], scores[candidates]])
    place = np.lexsort((_tie_break(items, order, keys[user]), -values))
    last = top_scores[user, k - 1] if n[user] == k else np.nan
    n[user] = min(k, len(place))
    top_items[user, : n[user]] = items[place[:k]]
    top_scores[user, : n[user]] = values[place[:k]]
    if len(place) > k:
        new = values[place[k - 1]]
        left[user] = (left[user] if new == last else 0) + (values[place[k:]] == new).sum()


def _settle(scores: Array, candidate: Bool, nan_rule: _kernel.NanRule) -> int:
    """Apply the rule for NaN to a user's scores in place, and return the user's flags."""
    nan = candidate & np.isnan(scores)
    flags = _kernel.ScoreFlag.INFINITE_SCORE if (candidate & np.isinf(scores)).any() else 0
    if nan_rule == _kernel.NanRule.UNDEFINED:
        return flags | (_kernel.ScoreFlag.NAN_SCORE if nan.any() else 0)
    scores[nan] = np.inf if nan_rule == _kernel.NanRule.FIRST else -np.inf
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


def count_rows(list: Int32, counts: Int64) -> bool:
    """Count the rows of each list; return False if a row's list does not exist."""
    if len(list) and not 0 <= list.min() <= list.max() < len(counts):
        return False
    counts += np.bincount(list, minlength=len(counts))
    return True


def group_rows(list: Int32, values: Array, next: Int64, grouped: Array) -> None:
    """Group a column's values by list; keep the order of the values within each list."""
    for list_number, value in zip(list, values, strict=True):
        grouped[next[list_number]] = value
        next[list_number] += 1


def place_rows(
    *, list: Int32, items: Int32, places: Int32, first: int, indptr: Int64, sorted_items: Int32
) -> bool:
    """Write rows to their places in lists; return False if a place is outside its list."""
    to = indptr[list] + (places.astype(np.int64) - first)
    if ((to < indptr[list]) | (to >= indptr[list + 1])).any():
        return False
    sorted_items[to] = items
    return True


def take_lists(
    items: Array,
    n_items: int,
    users: Int64,
    came: Bool,
    first: int,
    taken: Int32,
    taken_users: Int64,
) -> bool:
    """Store a batch of lists for new users if it is valid; see `cpp/lists.hpp`."""
    where = slice(first, first + len(items))
    if not len(items) or taken[where].shape != items.shape or len(users) != len(items):
        return False
    inside = ((items >= -1) & (items < n_items)).all()
    users_exist = ((users >= 0) & (users < len(came))).all()
    if not (inside and users_exist and len(set(users.tolist())) == len(users)) or came[users].any():
        return False
    taken[where], taken_users[where] = items, users
    came[users] = True
    return True


def rows_ascend(*, indptr: Int64, items: Array, n_items: int, first: int, last: int) -> bool:
    """Return whether each user's items are strictly ascending, at least 0 and below `n_items`."""
    for begin, end in itertools.pairwise(indptr[first : last + 1].tolist()):
        rows = items[begin:end].tolist()
        if rows != sorted(set(rows)) or (rows and not 0 <= rows[0] <= rows[-1] < n_items):
            return False
    return True


def find_rows(
    *,
    indptr: Int64,
    items: Int32,
    users: Int64 | None,
    other_indptr: Int64,
    other_items: Int32,
    found: Int64,
) -> None:
    """Find the rows of one table in another; see `cpp/tables.hpp`."""
    for user, (begin, end) in enumerate(itertools.pairwise(indptr)):
        other_user = user if users is None else users[user]
        other_rows = (
            slice(0, 0)
            if other_user < 0
            else slice(other_indptr[other_user], other_indptr[other_user + 1])
        )
        places = {int(item): other_rows.start + i for i, item in enumerate(other_items[other_rows])}
        found[begin:end] = [places.get(int(item), -1) for item in items[begin:end]]


def count_items(
    *,
    indptr: Int64,
    items: Int32,
    users: Int64 | None,
    counts: Int64,
    sums: Int64,
) -> None:
    """Count each item's rows, and sum the counts of each user's items; see `cpp/popularity.hpp`."""
    counts[:] = np.bincount(items, minlength=len(counts))
    for user in range(len(sums)):
        row = user if users is None else users[user]
        sums[user] = 0 if row < 0 else counts[items[indptr[row] : indptr[row + 1]]].sum()


def hash_pieces(data: UInt8, piece: int, hashes: UInt64) -> None:
    """Write the XXH64 hash (seed 0) of each piece; see `cpp/hashing.hpp`."""
    for number, begin in enumerate(range(0, len(data), piece)):
        hashes[number] = _xxh64(data[begin : begin + piece].tobytes())


def best_first(indptr: Int64, above: Int64, before: Int64 | None, order: Int64) -> None:
    """Sort each user's judged items, best first; unranked items (`above` is -1) come last."""
    before = np.zeros_like(above) if before is None else before
    for begin, end in itertools.pairwise(indptr):
        unranked = above[begin:end] < 0
        order[begin:end] = begin + np.lexsort((before[begin:end], above[begin:end], unranked))


def longest_first(lengths: Float64, order: Int32, bounds: Float64) -> None:
    """Sort items by descending rounded length; `bounds[i]` is the maximum from place i on."""
    largest = lengths.max(initial=0.0, where=np.isfinite(lengths))
    shares = np.minimum(lengths, largest) / largest if largest > 0 else np.zeros(len(lengths))
    order[:] = np.argsort(-np.floor((2**16 - 1) * shares), kind="stable")
    bounds[:] = np.maximum.accumulate(lengths[order][::-1])[::-1]


PRIMES = (
    *(0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9),
    *(0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5),
)


def _xxh64(data: bytes) -> int:
    prime_1, prime_2, prime_3, prime_4, prime_5 = PRIMES
    position, hashed = 0, prime_5
    if len(data) >= 32:
        lanes = [prime_1 + prime_2, prime_2, 0, -prime_1]
        while len(data) - position >= 32:
            for lane in range(4):
                lanes[lane] = _round(lanes[lane], _little(data[position : position + 8]))
                position += 8
        hashed = sum(_rotate(lane, bits) for lane, bits in zip(lanes, (1, 7, 12, 18), strict=True))
        for lane in lanes:
            hashed = (hashed ^ _round(0, lane)) * prime_1 + prime_4
    hashed += len(data)
    while len(data) - position >= 8:
        hashed = (
            _rotate(hashed ^ _round(0, _little(data[position : position + 8])), 27) * prime_1
            + prime_4
        )
        position += 8
    if len(data) - position >= 4:
        hashed = (
            _rotate(hashed ^ (_little(data[position : position + 4]) * prime_1), 23) * prime_2
            + prime_3
        )
        position += 4
    for byte in data[position:]:
        hashed = _rotate(hashed ^ (byte * prime_5), 11) * prime_1
    for bits, prime in ((33, prime_2), (29, prime_3), (32, 1)):
        hashed %= 2**64
        hashed = (hashed ^ (hashed >> bits)) * prime
    return hashed % 2**64


def _round(lane: int, word: int) -> int:
    return _rotate(lane + word * PRIMES[1], 31) * PRIMES[0] % 2**64


def _rotate(number: int, bits: int) -> int:
    number %= 2**64
    return (number << bits | number >> (64 - bits)) % 2**64


def _little(part: bytes) -> int:
    return int.from_bytes(part, "little")


def hold_first(
    *,
    users: UInt32,
    items: UInt32,
    user_draws: UInt64,
    item_draws: UInt64,
    times: Int64 | None,
    float_times: bool,
    values: Array | None,
    first: int,
    counts: Int64,
    order: _kernel.RowOrder,
    sizes: Int64,
    held: UInt8,
) -> bool:
    """Mark the first `sizes[u]` rows of each user u in a range."""
    arguments = (users, items, user_draws, item_draws, times, float_times, values, order)
    for user, size in enumerate(sizes):
        rows, _ = _in_order(first + user, *arguments)
        held[rows] = np.arange(len(rows)) < size
    return values is not None


def number_rows(
    *,
    users: UInt32,
    items: UInt32,
    user_draws: UInt64,
    item_draws: UInt64,
    times: Int64 | None,
    float_times: bool,
    values: Array | None,
    first: int,
    counts: Int64,
    order: _kernel.RowOrder,
    places: UInt32,
) -> bool:
    """Write each row's place among the rows of its user or of its user-item pair."""
    arguments = (users, items, user_draws, item_draws, times, float_times, values, order)
    for user in range(len(counts)):
        rows, heads = _in_order(first + user, *arguments)
        place = np.arange(len(rows))
        places[rows] = place - np.maximum.accumulate(np.where(heads, place, 0)) if len(rows) else 0
    return values is not None


def _in_order(
    user: int,
    users: UInt32,
    items: UInt32,
    user_draws: UInt64,
    item_draws: UInt64,
    times: Int64 | None,
    float_times: bool,
    values: Array | None,
    order: _kernel.RowOrder,
) -> tuple[Int64, Bool]:
    """Return a user's rows in order, and for each row whether the numbering restarts there."""
    rows = np.flatnonzero(users == user)
    item = item_draws[items[rows]]
    draw = mix(user_draws[user] ^ item)
    time = np.zeros(len(rows)) if times is None else times[rows]
    if float_times:
        time = time.view(np.float64)
    value = np.zeros(len(rows)) if values is None else values[rows]
    # lexsort sorts by its last key first, and in ascending order, so the order is reversed below to
    # put the latest rows first.
    later = [rows, value, time]
    if order == _kernel.RowOrder.LATEST:
        keys = [rows, value, ~item, ~draw, time]
    elif order == _kernel.RowOrder.DRAWN:
        keys = [*later, ~item, ~draw]
    elif order == _kernel.RowOrder.PAIRS:
        keys = [*later, ~item]
    else:
        keys = [*later, item]
    ascending = np.lexsort(keys)
    ordered = ascending if order == _kernel.RowOrder.OLD_PAIRS else ascending[::-1]
    heads = np.zeros(len(rows), bool)
    if order in (_kernel.RowOrder.PAIRS, _kernel.RowOrder.OLD_PAIRS):
        heads[1:] = item[ordered][1:] != item[ordered][:-1]
    return rows[ordered], heads


def hold_below(
    *,
    users: UInt32,
    items: UInt32,
    user_draws: UInt64,
    item_draws: UInt64,
    limit: int,
    held: UInt8,
) -> None:
    """Mark the rows whose random draw is below a limit."""
    held[:] = mix(user_draws[users] ^ item_draws[items]) < np.uint64(limit)


def count_codes(codes: UInt32, counts: Int64) -> None:
    """Add the number of rows with each code to the counts."""
    counts += np.bincount(codes, minlength=len(counts))


def trim_core(
    *,
    users: UInt32,
    items: UInt32,
    user_counts: Int64,
    item_counts: Int64,
    least_user: int,
    least_item: int,
    backwards: bool,
    kept: UInt8,
) -> int:
    """Remove, in a single step, the rows of all users and items with too few rows."""
    enough = (user_counts[users] >= least_user) & (item_counts[items] >= least_item)
    gone = (kept == 1) & ~enough
    kept[gone] = 0
    user_counts -= np.bincount(users[gone], minlength=len(user_counts))
    item_counts -= np.bincount(items[gone], minlength=len(item_counts))
    return int(np.count_nonzero(gone))


def number_strings(column: Any, numbers: UInt32, rows: Int64) -> int:
    """Number the strings of a Polars series in order of first appearance."""
    texts = column.to_list()
    first: dict[str, int] = {}
    for row, text in enumerate(texts):
        first.setdefault(text, row)
    number = {text: place for place, text in enumerate(first)}
    numbers[:] = [number[text] for text in texts]
    rows[: len(first)] = list(first.values())
    return len(first)


def add_within(indptr: Int64, place: Int64, terms: Float64, cutoffs: Int64, sums: Float64) -> None:
    """For each cut-off, sum the terms of the rows at places below it; see `cpp/sums.hpp`."""
    for user, (begin, end) in enumerate(itertools.pairwise(indptr)):
        for column, cutoff in enumerate(cutoffs):
            sums[column, user] = _sum(terms[begin:end][place[begin:end] < cutoff].tolist())


def add_hits(indptr: Int64, place: Int64, cutoffs: Int64, sums: Float64) -> None:
    """For each cut-off, count the rows at places below it; see `cpp/sums.hpp`."""
    add_within(indptr, place, np.ones(len(place)), cutoffs, sums)


def add_precisions(indptr: Int64, place: Int64, cutoffs: Int64, sums: Float64) -> None:
    """Sum the precisions at the places of relevant items; see `cpp/sums.hpp`."""
    before = np.concatenate([np.arange(n) for n in np.diff(indptr)] or [place])
    add_within(indptr, place, (before + 1) / (place + 1), cutoffs, sums)


def add_discounted(
    indptr: Int64,
    place: Int64,
    gains: Float64,
    logarithms: Float64,
    cutoffs: Int64,
    sums: Float64,
) -> None:
    """Sum gain / log(rank + 1) over the rows within each cut-off; see `cpp/sums.hpp`."""
    last = len(logarithms) - 1  # all ranks beyond the cut-offs share the last logarithm
    terms = gains / logarithms[np.minimum(place + 2, last)] if len(place) else gains
    add_within(indptr, place, terms, cutoffs, sums)


def count_within(indptr: Int64, place: Int64, limits: Int64, counts: Int64) -> None:
    """Count each user's rows at places below the user's limit; see `cpp/sums.hpp`."""
    for user, (begin, end) in enumerate(itertools.pairwise(indptr)):
        counts[user] = (place[begin:end] < limits[user]).sum()


def _sum(terms: list[float]) -> float:
    """Add numbers in the same order as the kernel, which also splits long sums into parts."""
    if len(terms) > _kernel.ROWS_WITHOUT_PARTS:
        begins = range(0, len(terms), _kernel.ROWS_OF_PART)
        return _sum([_sum(terms[begin : begin + _kernel.ROWS_OF_PART]) for begin in begins])
    return functools.reduce(operator.add, terms, 0.0)

"""Bring test and train into the order of a source."""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

import numpy as np

from recometer import ragged
from recometer.arrays import Array, Bool, Float64, Int32, Int64
from recometer.data import ids, matching
from recometer.data.interactions import Interactions, gains
from recometer.data.matching import SourceIndex
from recometer.errors import InputError
from recometer.ranks import UserFlag
from recometer.sources import _align_narrow
from recometer.sources._align_result import Aligned
from recometer.sources.base import Request
from recometer.sources.candidates import Items, SampledCandidates, check_sets


def align(index: SourceIndex, request: Request, catalogue: Bool | None = None) -> Aligned:
    """Match the users and items of test and train with those of a source.

    Candidates may be drawn from the items of `catalogue` (bool [n_items]; None for all). What
    was matched for an earlier request is reused, except for what sources change.

    Raises
    ------
    InputError
        If shapes do not fit, or only one side has ids.
    InputTypeError
        If ids have different types.
    """
    rules = request.protocol.relevant_from, request.protocol.seen
    sizes = index.n_users, index.n_items, request.test.n_items
    aligned = request.memory.find(
        "aligned",
        (index.what, sizes, rules),
        lambda: _aligned(index, request, catalogue),
        same=(request.test, request.train, request.candidates, request.exclude),
        equal=(index.user_ids, index.item_ids, catalogue),
    )
    return aligned.anew()


def _aligned(index: SourceIndex, request: Request, catalogue: Bool | None) -> Aligned:
    """Match them anew."""
    test = request.test
    rows = matching.match_users(index, test)
    if rows is None:
        rows = np.arange(test.n_users)
    item_rows, sorted_ids = matching.sorted_items(index)
    positions = matching.match_items(index, sorted_ids, test, "test")
    flags = np.where(rows >= 0, np.uint32(UserFlag.KNOWN), np.uint32(0)).astype(np.uint32)
    counts: dict[str, int] = {}
    excluded_indptr = np.zeros(test.n_users + 1, np.int64)
    excluded = np.zeros(0, np.int32)
    rows_of_train = None
    if request.train is not None:
        rows_of_train = matching.rows_of(index, sorted_ids, test, request.train, "train")
    judged = _judged(request)
    if rows_of_train is not None:
        train_indptr, trained, known = rows_of_train
        flags[np.diff(train_indptr) > 0] |= np.uint32(UserFlag.TRAINED)
        if request.protocol.seen != "kept":
            counts["train_test_overlap"] = len(test) - len(judged.items)
            excluded_indptr, excluded = matching.known_rows(train_indptr, trained, known)
            if len(trained) and not len(excluded) and not request.some_users:
                matching.warn_of_unknown_train(index.what)
    places = judged.items if positions is None else positions[judged.items].astype(np.int32)
    if positions is not None:
        unknown = places < 0
        counts["items_unknown"] = len(np.unique(judged.items[unknown]))
        counts["relevant_unranked"] = int(np.count_nonzero(unknown & judged.relevant))
        if not request.some_users:
            matching.check_items(index, sorted_ids, test, judged.items, unknown)
    counts["users_unknown"] = int(np.count_nonzero(rows < 0))
    ranked, ranked_indptr, ranked_items = None, judged.indptr, places
    if counts["users_unknown"] or counts.get("items_unknown"):
        ranked, ranked_indptr, ranked_items = _align_narrow.ranked_rows(rows, judged.indptr, places)
    aligned = Aligned(
        rows=rows,
        n_items=index.n_items,
        item_rows=item_rows,
        judged_indptr=judged.indptr,
        judged=places,
        ranked=ranked,
        ranked_indptr=ranked_indptr,
        ranked_items=ranked_items,
        gain=judged.gain,
        relevant=judged.relevant,
        excluded_indptr=excluded_indptr,
        excluded=excluded,
        flags=flags,
        counts={name: count for name, count in sorted(counts.items()) if count},
        item=places,
        item_ids=sorted_ids,
    )
    return _choose(aligned, index, sorted_ids, request, catalogue)


class _Judged(NamedTuple):
    """The rows of test that are judged; items as test numbers them."""

    indptr: Int64
    items: Int32
    gain: Float64
    relevant: Bool


def _judged(request: Request) -> _Judged:
    """Return the rows of test that are judged: not those that are in train, too."""
    relevant_from, seen = request.protocol.relevant_from, request.protocol.seen
    return request.memory.find(
        "judged",
        (relevant_from, seen),
        lambda: _without_train(request),
        same=(request.test, request.train),
    )


def _without_train(request: Request) -> _Judged:
    test, train = request.test, request.train
    relevant = matching.relevant_rows(test, request.protocol.relevant_from)
    judged = _Judged(test.indptr, test.items, gains(test), relevant)
    if train is None or request.protocol.seen == "kept":
        return judged
    keep = ~request.in_train()
    if keep.all():
        return judged
    indptr = ragged.offsets(keep, test.indptr)
    return _Judged(indptr, test.items[keep], judged.gain[keep], relevant[keep])


def _choose(
    aligned: Aligned,
    index: SourceIndex,
    sorted_ids: Array | None,
    request: Request,
    catalogue: Bool | None,
) -> Aligned:
    """Leave only what `candidates` and `exclude` of the request allow."""
    test, train, wanted = request.test, request.train, request.candidates
    if wanted is None and request.exclude is None:
        return aligned
    kept = np.ones(aligned.n_items, bool)
    if catalogue is not None and isinstance(wanted, SampledCandidates):
        kept = catalogue.copy()
    counts: dict[str, int] = {}
    sets = None
    if isinstance(wanted, Interactions):
        indptr, items, places = matching.rows_of(index, sorted_ids, test, wanted, "candidates")
        if places is not None and (places < 0).any():
            counts["candidates_unknown"] = int(np.count_nonzero(places < 0))
        sets = matching.known_rows(indptr, items, places)
    if isinstance(wanted, Items):
        kept[:] = False
        kept[positions_of(index, sorted_ids, wanted, counts)] = True
    if request.exclude is not None:
        kept[positions_of(index, sorted_ids, request.exclude, counts)] = False
    aligned = dataclasses.replace(aligned, counts=aligned.counts | counts)
    aligned = _align_narrow.leave_out(aligned, kept)
    if sets is not None:
        aligned = _align_narrow.restrict(aligned, *sets)
    elif isinstance(wanted, SampledCandidates):
        keys = ids.user_keys(test.user_ids, test.n_users)
        popularity = None
        if wanted.by == "popularity":
            if train is None:
                raise InputError(f"{wanted} needs train=, whose interactions it counts.")
            popularity = _popularity(index, sorted_ids, train, request)
        aligned = _align_narrow.draw(
            aligned, wanted, keys, popularity, request.threads, request.progress
        )
    if aligned.candidates is not None and not request.some_users:
        n_known = int(np.count_nonzero(aligned.rows >= 0))
        check_sets(aligned.counts.get("users_without_candidates", 0), n_known)
    return aligned


def _popularity(
    index: SourceIndex, sorted_ids: Array | None, train: Interactions, request: Request
) -> Int64:
    """Return how many users of train have each item of the source: int64 [n_items]."""
    found: Int64
    if request.popularity is not None:
        named, users = request.popularity
        if named is None or sorted_ids is None:
            return users
        positions = ids.match(named, sorted_ids, "item ids of train")
        found = np.zeros(index.n_items, np.int64)
        found[positions[positions >= 0]] = users[positions >= 0]
        return found
    positions_of_train = matching.match_items(index, sorted_ids, train, "train")
    bought = train.items.astype(np.int64)
    if positions_of_train is not None:
        bought = positions_of_train[train.items]
    found = np.bincount(bought[bought >= 0], minlength=index.n_items)
    return found


def positions_of(
    index: SourceIndex, sorted_ids: Array | None, items: Items, counts: dict[str, int]
) -> Int64:
    """Return where the items lie that the source has; count the others."""
    what = f"items of {items.what}"
    if sorted_ids is None:
        if items.ids.dtype.kind not in "iu":
            matching.both_have_ids("item", f"the list {items.what}=", items.ids, index.what, None)
        wrong = (items.ids < 0) | (items.ids >= index.n_items)
        if wrong.any():
            raise InputError(
                f"{items.what} has the item {items.ids[wrong][0]}, but the items of {index.what} "
                f"are the positions 0 to {index.n_items - 1:,}. Hint: leave it out, or "
                "give the source item_ids=."
            )
        return items.ids.astype(np.int64)
    positions = ids.match(items.ids, sorted_ids, what, f"item ids of {index.what}")
    unknown = positions < 0
    if unknown.all() and items.what == "candidates":
        raise InputError(
            f"{index.what} knows none of the {len(unknown):,} {what}, such as "
            f"{ids.show(items.ids, 0)}. Hint: they must be ids like those of {index.what}, such "
            f"as {ids.show(sorted_ids, 0)}."
        )
    if unknown.any():
        counts[f"{items.what}_unknown"] = len(set(items.ids[unknown].tolist()))
    return positions[~unknown]

"""Bring test and train into the order of a source.

Items are numbered by their place in the order of the sorted item ids ("item positions"), and
`Aligned.item_rows` says in which row of the source each lies.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import numpy.typing as npt

from recometer import _kernel, ids, ragged
from recometer.errors import InputError, warn
from recometer.interactions import Interactions
from recometer.ranks import Ranks, UserFlag
from recometer.sources import _narrow
from recometer.sources._match import (
    SourceIndex,
    check_items,
    items_in,
    known_rows,
    match_items,
    match_users,
    positions_of,
    rows_of,
    sorted_items,
)
from recometer.sources.base import Request
from recometer.sources.candidates import Items, SampledCandidates
from recometer.tasks import Ticker, run_tasks

__all__ = ["Aligned", "SourceIndex", "align", "assemble", "best_first", "relevant_rows"]

USERS_PER_TASK = 2**13  # that are sorted at a time

Int64 = npt.NDArray[np.int64]
Int32 = npt.NDArray[np.int32]
Bool = npt.NDArray[np.bool_]


@dataclasses.dataclass(frozen=True)
class Aligned:
    """Test and train as the source sees them.

    Attributes
    ----------
    rows : int64 [n_users]
        The source's row of each user of test, -1 where it has none.
    item_rows : int64 [n_items] or None
        The source's row of each item position; None: they are the same.
    judged_indptr : int64 [n_users + 1]
    judged : int32 [n_judged]
        Item positions, ascending within a user, -1 where the source has no such item or it is
        no candidate. Items of train are gone.
    ranked : int64 [n_ranked] or None
        Which of the judged rows can be ranked (known user, known item); None: all.
    ranked_indptr, ranked_items
        Those rows as a table of their own.
    gain : float64 [n_judged]
    relevant : bool [n_judged]
    excluded_indptr : int64 [n_users + 1]
    excluded : int32 [n_excluded]
    item : int32 [n_judged]
        What `judged` was before candidates were chosen: positions in the whole catalogue.
    numbers : int32 [n_positions] or None
        The item position of each position of the whole catalogue, which `n_items`, `item_rows`,
        `judged` and all else here count by, -1 where it is no candidate of anybody; None: all
        are candidates.
    candidate_indptr, candidates : int64 [n_users + 1], int32 [n_listed], or None
        The candidates of each user, ascending, without items of train; None: all items.
    pool : int64 [n_users] or None
        Where users have candidates of their own: the items of the catalogue that are neither
        in train nor in test.
    item_ids : [n_positions] or None
        Sorted ids of the positions of the whole catalogue; None: positions.
    n_offered : int or None
        How many items are in a set of candidates that was given; None: no sets were given.
    """

    rows: Int64
    n_items: int
    item_rows: Int64 | None
    judged_indptr: Int64
    judged: Int32
    ranked: Int64 | None
    ranked_indptr: Int64
    ranked_items: Int32
    gain: npt.NDArray[np.float64]
    relevant: Bool
    excluded_indptr: Int64
    excluded: Int32
    flags: npt.NDArray[np.uint32]
    counts: dict[str, int]
    item: Int32
    numbers: Int32 | None = None
    candidate_indptr: Int64 | None = None
    candidates: Int32 | None = None
    pool: Int64 | None = None
    item_ids: npt.NDArray[Any] | None = None
    n_offered: int | None = None

    @property
    def n_users(self) -> int:
        """Number of users of test."""
        return len(self.rows)

    @property
    def outside(self) -> Int64:
        """How many items are neither candidates of a user nor excluded: int64 [n_users]."""
        if self.candidate_indptr is None:
            return np.zeros(self.n_users, np.int64)
        listed = np.diff(self.candidate_indptr)
        return self.n_items - np.diff(self.excluded_indptr) - listed

    def locate(self, users: Int64, items: npt.NDArray[np.integer]) -> Int64:
        """Find candidates among items of the whole catalogue.

        Parameters
        ----------
        users : int64 [n]
            Users of test.
        items : [n]
            Positions in the order of the (sorted) item ids, -1 for none.

        Returns
        -------
        int64 [n]
            The item position, in the numbering of `judged`, -1 for what is no candidate of
            its user. Items of the user's train count as if they were candidates.
        """
        found = items.astype(np.int64)
        if self.numbers is not None:
            found = np.where(found >= 0, self.numbers[found], -1)
        if self.candidate_indptr is not None and self.candidates is not None:
            inside = np.zeros(len(found), bool)
            for indptr, known in (
                (self.candidate_indptr, self.candidates),
                (self.excluded_indptr, self.excluded),
            ):
                listed = ragged.pairs(ragged.users_of(indptr), known, self.n_items)
                inside |= ragged.among(ragged.pairs(users, found, self.n_items), listed)
            found = np.where(inside & (found >= 0), found, -1)
        return found


def align(index: SourceIndex, request: Request, catalogue: Bool | None = None) -> Aligned:
    """Match the users and items of test and train with those of a source.

    Parameters
    ----------
    index
    request
    catalogue : bool [n_items] or None
        The items from which candidates may be drawn; None: all.

    Raises
    ------
    InputError
        Shapes that do not fit, or ids on one side only.
    InputTypeError
        Ids of different types.
    """
    test, train = request.test, request.train
    rows = match_users(index, test)
    item_rows, sorted_ids = sorted_items(index)
    counts: dict[str, int] = {}

    positions = match_items(index, sorted_ids, test, "test")
    indptr, items = test.indptr, test.items
    judged = items if positions is None else positions[items].astype(np.int32)
    gain = np.ones(len(items)) if test.values is None else test.values
    relevant = relevant_rows(test, request.protocol.relevant_from)
    flags = np.where(rows >= 0, np.uint32(UserFlag.KNOWN), np.uint32(0)).astype(np.uint32)
    if train is None:
        excluded_indptr = np.zeros(test.n_users + 1, np.int64)
        excluded = np.zeros(0, np.int32)
    else:
        excluded_indptr, trained, known = rows_of(index, sorted_ids, test, train, "train")
        flags[np.diff(excluded_indptr) > 0] |= np.uint32(UserFlag.TRAINED)
        overlap = _overlap(indptr, items_in(train, test), excluded_indptr, trained, train.n_items)
        counts["train_test_overlap"] = int(np.count_nonzero(overlap))
        if counts["train_test_overlap"]:
            keep = ~overlap
            indptr = ragged.offsets(keep, indptr)
            judged, gain, relevant = judged[keep], gain[keep], relevant[keep]
            items = items[keep]
        excluded_indptr, excluded = known_rows(excluded_indptr, trained, known)
        if len(trained) and not len(excluded):
            warn(
                f"{index.what} knows none of the items that users of test have in train: no item "
                "is left out of a ranking. Hint: are the item ids of train written like those of "
                f"{index.what}?"
            )
    if positions is not None:
        unknown = judged < 0
        counts["items_unknown"] = len(np.unique(items[unknown]))
        counts["relevant_unranked"] = int(np.count_nonzero(unknown & relevant))
        check_items(index, sorted_ids, test, items, unknown)

    counts["users_unknown"] = int(np.count_nonzero(rows < 0))
    ranked, ranked_indptr, ranked_items = None, indptr, judged
    if counts["users_unknown"] or counts.get("items_unknown"):
        ranked, ranked_indptr, ranked_items = _narrow.ranked_rows(rows, indptr, judged)
    aligned = Aligned(
        rows=rows,
        n_items=index.n_items,
        item_rows=item_rows,
        judged_indptr=indptr,
        judged=judged,
        ranked=ranked,
        ranked_indptr=ranked_indptr,
        ranked_items=ranked_items,
        gain=gain,
        relevant=relevant,
        excluded_indptr=excluded_indptr,
        excluded=excluded,
        flags=flags,
        counts={name: count for name, count in sorted(counts.items()) if count},
        item=judged,
        item_ids=sorted_ids,
    )
    return _choose(aligned, index, sorted_ids, request, catalogue)


def best_first(indptr: Int64, above: Int64, before: Int64 | None, threads: int) -> Int64:
    """Return the order of judged rows: each user's best first, those not ranked (-1) last.

    `before` is None where nothing is tied.
    """
    order, n_users = np.empty(len(above), np.int64), len(indptr) - 1

    def task(first: int, ticker: Ticker) -> None:
        ticker.advance()
        _kernel.best_first(indptr[first : first + USERS_PER_TASK + 1], above, before, order)

    run_tasks(task, range(0, n_users, USERS_PER_TASK), threads=threads, progress=False)
    return order


def assemble(
    aligned: Aligned,
    above: Int64,
    tied: Int64,
    before: Int64,
    order: Int64,
    no_candidates: Int64,
    limit: int | None,
) -> Ranks:
    """Make the Ranks from the counts of all judged rows and their order, best first."""
    n_excluded = np.diff(aligned.excluded_indptr)
    n_candidates: Int64 = aligned.n_items - n_excluded - no_candidates
    above, flags = above[order], aligned.flags
    tied, before = _in_order(tied, order), _in_order(before, order)
    if tied.any():
        # A judged item with everything else tied to it: all candidates have the same score.
        users = ragged.users_of(aligned.judged_indptr)
        constant = (above == 0) & (tied == n_candidates[users] - 1) & (tied > 0)
        flags[users[constant]] |= np.uint32(UserFlag.CONSTANT_SCORES)
    relevant = _in_order(aligned.relevant, order)
    return Ranks(
        indptr=aligned.judged_indptr,
        item=aligned.item[order].astype(np.int64),
        above=above,
        tied=tied,
        before=before,
        gain=_in_order(aligned.gain, order),
        relevant=relevant,
        n_relevant=np.diff(ragged.offsets(relevant, aligned.judged_indptr)),
        n_candidates=n_candidates,
        n_excluded=n_excluded,
        depth=n_candidates if limit is None else np.minimum(n_candidates, limit),
        flags=flags,
        counts=aligned.counts,
        pool=aligned.pool,
        n_rankable=None if limit is None else _n_rankable(aligned),
        item_ids=aligned.item_ids,
    )


def _in_order(column: npt.NDArray[Any], order: Int64) -> npt.NDArray[Any]:
    """Return a column in another order, uncopied where all rows are alike, as they often are."""
    return column if (column == column[:1]).all() else column[order]


def _n_rankable(aligned: Aligned) -> Int64:
    """Return the relevant items of each user that are candidates."""
    return np.diff(ragged.offsets(aligned.relevant & (aligned.judged >= 0), aligned.judged_indptr))


def _choose(
    aligned: Aligned,
    index: SourceIndex,
    sorted_ids: npt.NDArray[Any] | None,
    request: Request,
    catalogue: Bool | None,
) -> Aligned:
    """Leave only what `candidates` and `exclude` of the request allow."""
    test, train, wanted = request.test, request.train, request.candidates
    kept = np.ones(aligned.n_items, bool)
    if catalogue is not None and isinstance(wanted, SampledCandidates):
        kept = catalogue.copy()
    counts: dict[str, int] = {}
    if isinstance(wanted, Items):
        kept[:] = False
        kept[positions_of(index, sorted_ids, wanted, counts)] = True
    if request.exclude is not None:
        kept[positions_of(index, sorted_ids, request.exclude, counts)] = False
    if counts:
        aligned = dataclasses.replace(aligned, counts=aligned.counts | counts)
    aligned = _narrow.leave_out(aligned, kept)
    if isinstance(wanted, Interactions):
        indptr, items, positions = rows_of(index, sorted_ids, test, wanted, "candidates")
        if positions is not None and (positions < 0).any():
            counts["candidates_unknown"] = int(np.count_nonzero(positions < 0))
        indptr, items = known_rows(indptr, items, positions)
        if counts:
            aligned = dataclasses.replace(aligned, counts=aligned.counts | counts)
        return _narrow.restrict(aligned, indptr, items)
    if isinstance(wanted, SampledCandidates):
        keys = ids.user_keys(test.user_ids, test.n_users)
        popularity = None
        if wanted.by == "popularity":
            if train is None:
                raise InputError(f"{wanted} needs train=, whose interactions it counts.")
            positions = match_items(index, sorted_ids, train, "train")
            bought = train.items.astype(np.int64) if positions is None else positions[train.items]
            popularity = np.bincount(bought[bought >= 0], minlength=index.n_items)
        return _narrow.draw(aligned, wanted, keys, popularity, request.threads, request.progress)
    return aligned


def relevant_rows(test: Interactions, relevant_from: float | None) -> Bool:
    """Return which rows of test are relevant: bool [len(test)]."""
    if test.values is None:
        return np.full(len(test), relevant_from is None or relevant_from <= 1)
    return test.values != 0 if relevant_from is None else test.values >= relevant_from


def _overlap(
    indptr: Int64,
    items: npt.NDArray[np.integer],
    other_indptr: Int64,
    other: Int32,
    n_items: int,
) -> Bool:
    """Return which items of a user are among the user's other items, which ascend."""
    if not len(items) or not len(other):
        return np.zeros(len(items), bool)
    users = np.repeat(np.arange(len(indptr) - 1) * n_items, np.diff(indptr))
    keys = users + items
    other_users = np.repeat(np.arange(len(indptr) - 1) * n_items, np.diff(other_indptr))
    other_keys = other_users + other
    at = np.minimum(np.searchsorted(other_keys, keys), len(other_keys) - 1)
    overlaps: Bool = (other_keys[at] == keys) & (items >= 0)
    return overlaps

"""Bring test and train into the order of a source: the one place that matches ids.

Items are numbered by their place in the order of the sorted item ids ("item positions"), and
`Aligned.item_rows` says in which row of the source each lies.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import numpy.typing as npt

from recometer import ids, ragged
from recometer.errors import InputError, InputTypeError
from recometer.interactions import Interactions
from recometer.ranks import Ranks, UserFlag
from recometer.sources import _narrow
from recometer.sources.base import Request
from recometer.sources.candidates import Items, SampledCandidates

__all__ = ["Aligned", "SourceIndex", "align", "assemble"]

Int64 = npt.NDArray[np.int64]
Int32 = npt.NDArray[np.int32]
Bool = npt.NDArray[np.bool_]


@dataclasses.dataclass(frozen=True)
class SourceIndex:
    """Which users and items a source has.

    Attributes
    ----------
    what
        The source's name for messages: ``"Factors"``.
    n_users
        None: the same ranking for every user, whoever it is.
    n_items
    user_ids, item_ids
        As `ids.as_ids` returns them, in any order; None: positions.
    """

    what: str
    n_users: int | None
    n_items: int
    user_ids: npt.NDArray[Any] | None
    item_ids: npt.NDArray[Any] | None

    @classmethod
    def of(
        cls, what: str, n_users: int | None, n_items: int, user_ids: object, item_ids: object
    ) -> SourceIndex:
        """Check ids and make the index; see the attributes."""
        return cls(
            what,
            n_users,
            n_items,
            None if n_users is None else _checked_ids(what, "user", n_users, user_ids),
            _checked_ids(what, "item", n_items, item_ids),
        )


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
    rows = _match_users(index, test)
    item_rows, sorted_ids = _sorted_items(index)
    counts: dict[str, int] = {}

    positions = _match_items(index, sorted_ids, test, "test")
    indptr, items = test.indptr, test.items
    judged = items if positions is None else positions[items].astype(np.int32)
    gain = np.ones(len(items)) if test.values is None else test.values
    relevant = _relevant(test, request.protocol.relevant_from)
    if positions is not None:
        unknown = judged < 0
        counts["items_unknown"] = int(np.count_nonzero(positions[np.unique(items[unknown])] < 0))
        counts["relevant_unranked"] = int(np.count_nonzero(unknown & relevant))

    flags = np.where(rows >= 0, np.uint32(UserFlag.KNOWN), np.uint32(0)).astype(np.uint32)
    if train is None:
        excluded_indptr = np.zeros(test.n_users + 1, np.int64)
        excluded = np.zeros(0, np.int32)
    else:
        excluded_indptr, excluded, trained = _exclude(index, sorted_ids, test, train)
        flags[trained] |= np.uint32(UserFlag.TRAINED)
        overlap = _overlap(indptr, judged, excluded_indptr, excluded, index.n_items)
        counts["train_test_overlap"] = int(np.count_nonzero(overlap))
        if counts["train_test_overlap"]:
            keep = ~overlap
            indptr = ragged.offsets(keep, indptr)
            judged, gain, relevant = judged[keep], gain[keep], relevant[keep]

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
    )
    return _choose(aligned, index, sorted_ids, request, catalogue)


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
    above, tied = above[order], tied[order]
    flags = aligned.flags
    # A judged item with everything else tied to it: all candidates have the same score.
    users = np.repeat(np.arange(aligned.n_users), np.diff(aligned.judged_indptr))
    constant = (above == 0) & (tied == n_candidates[users] - 1) & (tied > 0)
    flags[users[constant]] |= np.uint32(UserFlag.CONSTANT_SCORES)
    relevant = aligned.relevant[order]
    return Ranks(
        indptr=aligned.judged_indptr,
        item=aligned.item[order].astype(np.int64),
        above=above,
        tied=tied,
        before=before[order],
        gain=aligned.gain[order],
        relevant=relevant,
        n_relevant=np.diff(ragged.offsets(relevant, aligned.judged_indptr)),
        n_candidates=n_candidates,
        n_excluded=n_excluded,
        depth=n_candidates if limit is None else np.minimum(n_candidates, limit),
        flags=flags,
        counts=aligned.counts,
        pool=aligned.pool,
    )


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
        kept[_positions(index, sorted_ids, wanted, counts)] = True
    if request.exclude is not None:
        kept[_positions(index, sorted_ids, request.exclude, counts)] = False
    if counts:
        aligned = dataclasses.replace(aligned, counts=aligned.counts | counts)
    aligned = _narrow.leave_out(aligned, kept)
    if isinstance(wanted, Interactions):
        indptr, items, _ = _exclude(index, sorted_ids, test, wanted, "candidates", counts)
        if counts:
            aligned = dataclasses.replace(aligned, counts=aligned.counts | counts)
        return _narrow.restrict(aligned, indptr, items)
    if isinstance(wanted, SampledCandidates):
        keys = ids.user_keys(test.user_ids, test.n_users)
        popularity = None
        if wanted.by == "popularity":
            if train is None:
                raise InputError(f"{wanted} needs train=, whose interactions it counts.")
            positions = _match_items(index, sorted_ids, train, "train")
            bought = train.items.astype(np.int64) if positions is None else positions[train.items]
            popularity = np.bincount(bought[bought >= 0], minlength=index.n_items)
        return _narrow.draw(aligned, wanted, keys, popularity, request.threads, request.progress)
    return aligned


def _positions(
    index: SourceIndex, sorted_ids: npt.NDArray[Any] | None, items: Items, counts: dict[str, int]
) -> Int64:
    """Return where the items lie that the source has; count the others."""
    what = f"items of {items.what}"
    if sorted_ids is None:
        if items.ids.dtype.kind not in "iu":
            raise InputTypeError(
                f"The {what} are of type {ids.kind(items.ids)} (for instance "
                f"{ids.show(items.ids, 0)}), but {index.what} has no item ids: its items are "
                f"positions. Hint: {index.what}(..., item_ids=...)."
            )
        wrong = (items.ids < 0) | (items.ids >= index.n_items)
        if wrong.any():
            raise InputError(
                f"{items.what} has the item {items.ids[wrong][0]}, but the items of {index.what} "
                f"are the positions 0 to {index.n_items - 1:,}."
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


def _checked_ids(what: str, name: str, n: int, given: object) -> npt.NDArray[Any] | None:
    if given is None:
        return None
    array = ids.as_ids(given, f"{name} ids of {what}")
    if len(array) != n:
        raise InputError(
            f"{what} has {n:,} {name}s, but {len(array):,} {name}_ids. "
            f"Hint: {name}_ids names the {name} of each row, in the same order."
        )
    codes, distinct = ids.encode(array, f"{name} ids of {what}")
    if len(distinct) != n:
        twice = array.tolist()[int(np.flatnonzero(np.bincount(codes)[codes] > 1)[0])]
        raise InputError(f"{name}_ids of {what} must be distinct, {twice!r} is there twice.")
    return array


def _relevant(test: Interactions, relevant_from: float | None) -> Bool:
    if test.values is None:
        return np.full(len(test), relevant_from is None or relevant_from <= 1)
    return test.values != 0 if relevant_from is None else test.values >= relevant_from


def _sides(name: str, left: str, left_has: bool, right: str, right_has: bool) -> InputError:
    has, lacks = (left, right) if left_has else (right, left)
    return InputError(
        f"{has} has {name} ids, but {lacks} has none: its {name}s are positions, and nothing says "
        f"which is which. Hint: give both sides ids ({name}_ids=... for {lacks}), or make the "
        f"{name}s of {has} positions (n_users=, n_items= of Interactions.of)."
    )


def _match_users(index: SourceIndex, test: Interactions) -> Int64:
    if index.n_users is None:
        return np.zeros(test.n_users, np.int64)
    if (index.user_ids is None) != (test.user_ids is None):
        raise _sides("user", index.what, index.user_ids is not None, "test", bool(test.n_users))
    if index.user_ids is None or test.user_ids is None:
        if index.n_users != test.n_users:
            raise InputError(
                f"{index.what} has {index.n_users:,} users, but test has {test.n_users:,}. "
                "Hint: without ids row u of both is the same user; give both sides user ids to "
                "evaluate some of the users."
            )
        return np.arange(test.n_users)
    return ids.match(test.user_ids, index.user_ids, "user ids of test", f"user ids of {index.what}")


def _sorted_items(index: SourceIndex) -> tuple[Int64 | None, npt.NDArray[Any] | None]:
    if index.item_ids is None:
        return None, None
    positions, distinct = ids.encode(index.item_ids, f"item ids of {index.what}")
    if (positions[1:] > positions[:-1]).all():
        return None, distinct
    rows = np.empty_like(positions)
    rows[positions] = np.arange(len(positions))
    return rows, distinct


def _match_items(
    index: SourceIndex, sorted_ids: npt.NDArray[Any] | None, data: Interactions, what: str
) -> Int64 | None:
    """Return the position of each item of `data`, -1 where there is none; None: the same."""
    if (sorted_ids is None) != (data.item_ids is None):
        raise _sides("item", index.what, sorted_ids is not None, what, data.item_ids is not None)
    if sorted_ids is None or data.item_ids is None:
        if index.n_items != data.n_items:
            raise InputError(
                f"{index.what} has {index.n_items:,} items, but {what} has {data.n_items:,}. "
                "Hint: without ids column i of both is the same item; a test that names fewer "
                "items still needs the shape of the whole catalogue."
            )
        return None
    matched = ids.match(
        data.item_ids, sorted_ids, f"item ids of {what}", f"item ids of {index.what}"
    )
    same = len(matched) == index.n_items and bool((matched == np.arange(len(matched))).all())
    return None if same else matched


def _exclude(
    index: SourceIndex,
    sorted_ids: npt.NDArray[Any] | None,
    test: Interactions,
    train: Interactions,
    what: str = "train",
    counts: dict[str, int] | None = None,
) -> tuple[Int64, Int32, Bool]:
    """Return the training items of each user of test, and who has any.

    The same for the `candidates`, with a count of the items that the source does not know.
    """
    positions = _match_items(index, sorted_ids, train, what)
    if (train.user_ids is None) != (test.user_ids is None):
        raise _sides("user", what, train.user_ids is not None, "test", test.user_ids is not None)
    indptr, items = train.indptr, train.items
    if train.user_ids is None or test.user_ids is None:
        if train.n_users != test.n_users:
            raise InputError(
                f"{what} has {train.n_users:,} users, but test has {test.n_users:,}. Hint: without "
                "ids row u of both is the same user."
            )
    elif not np.array_equal(train.user_ids, test.user_ids):
        users = ids.match(test.user_ids, train.user_ids, "user ids of test", f"user ids of {what}")
        indptr, rows = ragged.take(indptr, users)
        items = items[rows]
    trained = np.diff(indptr) > 0
    if positions is not None:
        if counts is not None and (positions < 0).any():
            counts[f"{what}_unknown"] = int(np.count_nonzero(positions < 0))
        items = positions[items].astype(np.int32)
        keep = items >= 0
        if not keep.all():
            indptr, items = ragged.offsets(keep, indptr), items[keep]
    return indptr, items, trained


def _overlap(indptr: Int64, items: Int32, other_indptr: Int64, other: Int32, n_items: int) -> Bool:
    """Return which items of a user are among the user's other items, both ascending."""
    if not len(items) or not len(other):
        return np.zeros(len(items), bool)
    users = np.repeat(np.arange(len(indptr) - 1) * n_items, np.diff(indptr))
    keys = users + items
    other_users = np.repeat(np.arange(len(indptr) - 1) * n_items, np.diff(other_indptr))
    other_keys = other_users + other
    at = np.minimum(np.searchsorted(other_keys, keys), len(other_keys) - 1)
    overlaps: Bool = (other_keys[at] == keys) & (items >= 0)
    return overlaps

"""Ranks, TopLists and Ratings, which sources pass to metrics.

Each field declares whether it has an entry per row, per user or neither (see `recometer.ragged`).
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import operator
from collections.abc import Mapping
from dataclasses import field
from typing import Any

import numpy as np

from recometer.arrays import Array, Bool, Float64, Int64, UInt8, UInt32, UInt64
from recometer.draws import mix, mixed_seed
from recometer.errors import InternalError
from recometer.ragged import OFFSETS, PER_ROW, PER_USER, Record, Table, per_user
from recometer.remembered import cached_property


class UserFlag(enum.IntFlag):
    """Facts about a user on which the rules for undefined values depend."""

    KNOWN = 1  # the source can rank items for the user
    TRAINED = 2  # the user has training items
    NAN_SCORE = 4  # a candidate's score is NaN
    INFINITE_SCORE = 8  # a candidate's score is infinite
    CONSTANT_SCORES = 16  # all candidates have the same score


@functools.cache
def _bits(user_flags: tuple[UserFlag, ...]) -> np.uint32:
    """Combine several flags into one number; cached, because combining flags is slow."""
    return np.uint32(functools.reduce(operator.or_, user_flags))


def raised(flags: UInt32, *user_flags: UserFlag) -> Bool:
    """Return a mask of the users with at least one of the given flags: bool [n_users]."""
    is_raised: Bool = (flags & _bits(user_flags)) != 0
    return is_raised


@dataclasses.dataclass(frozen=True, eq=False)
class Ranks(Table):
    """The position of each judged item in its user's ranking.

    This is a ragged table in CSR layout: the judged items of user ``u`` are the rows
    ``indptr[u]:indptr[u + 1]``, best first (by `above`, then `before`), and unranked items last.

    Attributes
    ----------
    indptr : int64 [n_users + 1]
    item : int64 [n_judged]
        Position of the item in the sorted item ids.
    above : int64 [n_judged]
        The number of candidates with a strictly higher score. 0 is the top of the list. -1 means
        that the item is not ranked, because the source does not know it or because it is beyond
        `depth`.
    tied, before : int64 [n_judged]
        The number of other candidates with exactly the same score, and how many of them come before
        the item, in the order of item ids or, under the rule ``ties="input"``, in input order.
    gain : float64 [n_judged]
        The value in the test data, or 1 if they have no values.
    relevant : bool [n_judged]
    n_relevant : int64 [n_users]
        The number of relevant items of the user, including those that could not be ranked.
    n_candidates : int64 [n_users]
        The number of items that were ranked, not counting excluded items. It is -1 if unknown (for
        lists without a catalogue).
    n_excluded : int64 [n_users]
    depth : int64 [n_users]
        The number of known places: `n_candidates`, or fewer if only the top of the list was
        requested or passed.
    flags : uint32 [n_users]
        `UserFlag` bits.
    counts : mapping of str to int
        The total numbers of users, items or rows that rules affected: ``users_unknown``,
        ``items_unknown`` (distinct test items), ``relevant_unranked`` (relevant rows of unknown
        items), ``train_test_overlap`` (rows).
    any_cutoff : bool
        Whether every metric allows cut-offs up to the number of candidates, because the candidates
        were listed individually and are not the whole catalogue.
    n_rankable : int64 [n_users] or None
        The number of relevant items that are candidates. None if all of them are ranked, because
        lists do not end at `depth`.
    score : float64 [n_judged] or None
        The score of each item, or NaN if it has none. Present only if the rule `score_above` is
        set.
    repeated : bool [n_judged] or None
        Whether an earlier row has the same item, because a list repeats it. None if there are no
        such rows.
    copies : int64 [n_judged] or None
        The number of test rows for this user and item, if a metric reads it. None means one row for
        each item.
    by_rank : bool
        Whether the source contains ranks instead of scores, so that equal scores mean equal ranks.
    popularity, propensity : float64 [n_judged] or None
        The popularity of the item in the training data (1 for the most popular item), and the
        probability that the item is observed at all. Present only if a metric reads them.
    item_ids : [n_items] or None
        The sorted item ids, to which the positions in `item` refer. None if positions identify the
        items.
    """

    indptr: Int64 = field(metadata=OFFSETS)
    item: Int64 = field(metadata=PER_ROW)
    above: Int64 = field(metadata=PER_ROW)
    tied: Int64 = field(metadata=PER_ROW)
    before: Int64 = field(metadata=PER_ROW)
    gain: Float64 = field(metadata=PER_ROW)
    relevant: Bool = field(metadata=PER_ROW)
    n_relevant: Int64 = field(metadata=PER_USER)
    n_candidates: Int64 = field(metadata=PER_USER)
    n_excluded: Int64 = field(metadata=PER_USER)
    depth: Int64 = field(metadata=PER_USER)
    flags: UInt32 = field(metadata=PER_USER)
    counts: Mapping[str, int] = field(default_factory=dict)
    any_cutoff: bool = False
    n_rankable: Int64 | None = field(default=None, metadata=PER_USER)
    score: Float64 | None = field(default=None, metadata=PER_ROW)
    repeated: Bool | None = field(default=None, metadata=PER_ROW)
    copies: Int64 | None = field(default=None, metadata=PER_ROW)
    by_rank: bool = False
    popularity: Float64 | None = field(default=None, metadata=PER_ROW)
    propensity: Float64 | None = field(default=None, metadata=PER_ROW)
    item_ids: Array | None = None

    @classmethod
    def unchecked(cls, *columns: Any, **fields: Any) -> Ranks:
        """Make ranks from valid columns, without checks; `columns` are the first fields' values."""
        ranks = object.__new__(cls)
        vars(ranks).update(zip(cls.__match_args__, columns, strict=False), **fields)
        return ranks

    @property
    def ends_early(self) -> Bool:
        """Whether each user may have candidates beyond `depth`: bool [n_users]."""
        early: Bool = self.n_candidates < 0
        if self.depth is not self.n_candidates:  # the same array for whole rankings
            early = early | (self.depth < self.n_candidates)
        return early & raised(self.flags, UserFlag.KNOWN)


REMOVED_REPEAT, KEPT_REPEAT = 1, 2  # the codes in `TopLists.repeats`


@dataclasses.dataclass(frozen=True, eq=False)
class TopLists(Record):
    """The first places of each user's ranking.

    If the rule for ties does not order equal scores (``"expected"``, ``"optimistic"``,
    ``"pessimistic"``), they are ordered by ascending item id.

    Attributes
    ----------
    items : int64 [n_users, k]
        Positions of items, best first, numbered as in `Ranks.item`; -1 pads a shorter list.
    n_items : int
        The number of positions, including those of items that are not recommended to any user.
    known : bool [n_users]
        Whether the source has a list for the user.
    cut_in_ties : bool [n_users]
        Whether the end of the list splits a group of equal scores.
    counts : mapping of str to int
        The numbers of users, items or rows that rules affected, as in `Ranks`.
    flags : uint32 [n_users]
        `UserFlag` bits. A user with a NaN or infinite score has an empty list.
    item_ids : [n_items] or None
        The sorted item ids, to which the positions refer. None if positions identify the items.
    n_catalogue : int or None
        The number of items that could have been recommended to any user. None if it is unknown.
    uncatalogued : int64 [n_uncatalogued] or None
        Positions of the listed items that are not in the catalogue, in ascending order. None if it
        is unknown which items are in the catalogue.
    repeats : uint8 [n_users, any]
        For each place of the lists before repeats were removed, whether its item is a repeat:
        `KEPT_REPEAT` if ranking metrics count the repeat as a miss, `REMOVED_REPEAT` if they ignore
        it, and 0 if it is not a repeat. By default, there are no repeats.
    """

    items: Int64 = field(metadata=per_user(absent=-1))
    n_items: int
    known: Bool = field(metadata=PER_USER)
    cut_in_ties: Bool = field(metadata=PER_USER)
    counts: Mapping[str, int] = field(default_factory=dict)
    # If this is None, `__post_init__` derives it from `known`.
    flags: UInt32 = field(default=None, metadata=PER_USER)  # type: ignore[arg-type]
    item_ids: Array | None = None
    n_catalogue: int | None = None
    uncatalogued: Array | None = None
    repeats: UInt8 = field(default=None, metadata=PER_USER)  # type: ignore[arg-type]

    def __post_init__(self) -> None:
        if self.items.ndim != 2 or self.items.dtype != np.int64:
            raise InternalError("TopLists.items must be int64 [n_users, k].")
        if self.flags is None:
            flags = np.where(self.known, UserFlag.KNOWN, 0).astype(np.uint32)
            object.__setattr__(self, "flags", flags)
        if self.repeats is None:
            object.__setattr__(self, "repeats", np.zeros((self.n_users, 0), np.uint8))
        super().__post_init__()
        if not -1 <= self.items.min(initial=-1) <= self.items.max(initial=-1) < self.n_items:
            raise InternalError(f"TopLists.items must be -1 or below n_items={self.n_items}.")
        if ((self.items[:, :-1] < 0) & (self.items[:, 1:] >= 0)).any():
            raise InternalError("TopLists.items must have its -1 at the ends of the lists.")

    @property
    def n_users(self) -> int:
        """Number of users."""
        return len(self.items)

    @property
    def depth(self) -> int:
        """The maximum length of a list."""
        return int(self.items.shape[1])

    @cached_property
    def lengths(self) -> Int64:
        """The number of items in each list: int64 [n_users]."""
        lengths: Int64 = np.count_nonzero(self.items >= 0, axis=1).astype(np.int64, copy=False)
        return lengths

    @property
    def n_places(self) -> Int64:
        """The number of places in each list, including those of kept repeats: int64 [n_users]."""
        n_kept: Int64 = np.count_nonzero(self.repeats == KEPT_REPEAT, axis=1).astype(np.int64)
        return self.lengths + n_kept


@dataclasses.dataclass(frozen=True, eq=False)
class Ratings(Table):
    """Predicted and true ratings.

    Attributes
    ----------
    ranks : Ranks
        The position of each row, best predicted first; `gain` is the true rating.
    predicted : float64 [n_judged]
        The predicted ratings in the same order. Rows that the rule ``nan_scores`` ranks first or
        last are still NaN.
    threshold : float64 [n_users] or None
        A row is relevant if its true rating is at least this number, and recommended if its
        predicted rating is at least this number. None if there is no threshold.
    repeats : bool
        Whether rows repeat a user-item pair; `Source.rank` merges such rows.
    """

    ranks: Ranks
    predicted: Float64 = field(metadata=PER_ROW)
    threshold: Float64 | None = field(default=None, metadata=PER_USER)
    repeats: bool = False

    @property
    def indptr(self) -> Int64:
        """The row pointers of `ranks`, which has the same rows."""
        return self.ranks.indptr


def drawn_places(ranks: Ranks, user: Int64, seed: int, user_keys: UInt64 | None) -> Int64:
    """Return a place for every judged item, with each user's tied items in one random order.

    A draw is a hash of the seed, the user's key, the tie group's `above` and the item's number
    among the judged items of the group.
    """
    place = ranks.above.copy()
    rows = np.flatnonzero((ranks.tied > 0) & (ranks.above >= 0))
    first, count = find_runs(user[rows], ranks.above[rows])
    run, index = number_runs(count)
    leader = rows[first]
    size = ranks.tied[leader] + 1
    if user_keys is None:
        user_keys = np.arange(ranks.n_users, dtype=np.uint64)
    key = mix(mixed_seed(seed) ^ user_keys[user[leader]])
    key = mix(key ^ ranks.above[leader].astype(np.uint64))

    crowded = 2 * count > size
    in_crowded = crowded[run]
    sparse = ~in_crowded
    place[rows[in_crowded]] += _shuffled(key[crowded], size[crowded], count[crowded])
    place[rows[sparse]] += _distinct(run[sparse], index[sparse], key, size)
    return place


def _shuffled(key: UInt64, size: Int64, count: Int64) -> Int64:
    """Shuffle all `size` places of every group; return the places of its first `count` members."""
    group, index = number_runs(size)
    order = np.lexsort((mix(key[group] ^ index.astype(np.uint64)), group))
    place = np.empty_like(index)
    place[order] = index
    return place[index < count[group]]


def _distinct(group: Int64, index: Int64, key: UInt64, size: Int64) -> Int64:
    """Draw distinct places; draw again for items that share a place.

    Items take at most half of a group's places, so each round settles about half of the remaining
    items or more. No place is preferred, so every outcome is equally likely.
    """
    place = np.zeros_like(index)
    pending = np.arange(len(index))
    attempt = 0
    while len(pending):
        counter = index[pending].astype(np.uint64) + np.uint64(attempt << 40)
        draw = mix(key[group[pending]] ^ counter) % size[group[pending]].astype(np.uint64)
        place[pending] = draw.astype(np.int64)
        late = np.zeros(len(index), bool)
        late[pending] = True
        order = np.lexsort((late, place, group))
        same = (np.diff(group[order]) == 0) & (np.diff(place[order]) == 0)
        pending = np.sort(order[1:][same])
        attempt += 1
    return place


def find_runs(user: Int64, above: Int64) -> tuple[Int64, Int64]:
    """Find the tie groups: runs of rows with the same user and the same `above`.

    Returns the first row and the number of rows of each run.
    """
    new = np.ones(len(user), bool)
    new[1:] = (user[1:] != user[:-1]) | (above[1:] != above[:-1])
    first = np.flatnonzero(new)
    return first, np.diff(first, append=len(user))


def number_runs(count: Int64) -> tuple[Int64, Int64]:
    """Return the run of each row and its number within the run, given the lengths of the runs."""
    run = np.repeat(np.arange(len(count)), count)
    return run, np.arange(len(run)) - (np.cumsum(count) - count)[run]

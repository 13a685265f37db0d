"""Tie rules turn `Ranks` into tie groups, the only form in which metrics read a ranking.

Under ``"expected"``, tied items stay in one group, and metrics average over all orders of the
group. Every other rule gives each judged item its own place, as a group of one.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Hashable, Sequence
from typing import Any, Literal, TypeVar, cast

import numpy as np

from recometer._kernel import ROWS_OF_PART, ROWS_WITHOUT_PARTS
from recometer.arrays import Array, Bool, Float64, Int64, UInt64, all_of, any_of, begins, read_only
from recometer.errors import InternalError
from recometer.protocol import RelevantFrom, TieRule
from recometer.ragged import indptr_of, offsets, users_of
from recometer.ranks import Ranks, drawn_places, find_runs, number_runs
from recometer.remembered import cached_property

Property = Literal[
    "relevance", "gain", "positive_gain", "exponential", "positive_exponential", "shifted",
    "relevant_gain", "judgement", "judgement_from_zero", "inverse_popularity", "inverse_propensity",
]  # fmt: skip

Shared = TypeVar("Shared", bound=Callable[..., Any])
PART, LONG = ROWS_OF_PART, ROWS_WITHOUT_PARTS
"""The number of rows in each part of a long sum, and the most rows that are added without parts."""

FEW = 2**12  # below this many numbers, saving memory is not worthwhile
SHORT_SORT = 2**11  # up to this many gains, one sort for all users is fastest
WHOLE = int(np.iinfo(np.int64).max)
"""The cut-off that means the whole ranking."""


def shared(function: Shared) -> Shared:
    """Cache the results of ``function(groups, ...)``, which several metrics may need."""

    @functools.wraps(function)
    def remembered(groups: Groups, *options: Any) -> Any:
        key: tuple[Any, ...] = (function,)
        for option in options:
            key += (option.tobytes() if isinstance(option, np.ndarray) else option,)
        if key not in groups.cache:
            groups.cache[key] = function(groups, *options)
        return groups.cache[key]

    return cast(Shared, remembered)


@dataclasses.dataclass(frozen=True, eq=False)
class Groups:
    """Tie groups that contain an item with the property that a metric reads, in rank order.

    This is a ragged table in CSR layout: the groups of user ``u`` are the rows
    ``indptr[u]:indptr[u + 1]``. Items that were not ranked are in no group.

    Attributes
    ----------
    indptr : int64 [n_users + 1]
    start : int64 [n_groups]
        The number of places before the group.
    size : int64 [n_groups]
        The number of places in the group; always 1 except under the rule ``"expected"``.
    relevant : int64 [n_groups]
        The number of items that have the property (are relevant, or have a gain other than 0); at
        least 1.
    gain : float64 [n_groups]
        Mean gain per place. If the property is relevance, a relevant item's gain is 1.
    member_gain : float64 [relevant.sum()]
        The gains of the items with the property, group by group.
    ideal_indptr, ideal_gain : int64 [n_users + 1], float64 [ideal_indptr[-1]]
        The positive gains of each user's judged items, ranked or not, best first.
    judged_gain : float64 [n_judged]
        The gain of each judged item, ranked or not, in the order of `ranks`.
    ranks : Ranks
        The ranks from which the groups were made.
    cache : dict
        Intermediate results that metrics share.
    """

    indptr: Int64
    start: Int64
    size: Int64
    relevant: Int64
    gain: Float64
    member_gain: Float64
    ideal_indptr: Int64
    ideal_gain: Float64
    judged_gain: Float64
    ranks: Ranks
    cache: dict[Hashable, Any] = dataclasses.field(default_factory=dict)

    @property
    def n_users(self) -> int:
        """Number of users."""
        return len(self.indptr) - 1

    @property
    def n_relevant(self) -> Int64:
        """The number of relevant items of each user, as in `Ranks`: int64 [n_users]."""
        return self.ranks.n_relevant

    @property
    def n_candidates(self) -> Int64:
        """As in `Ranks`; -1 (unknown) occurs only for metrics that do not read it."""
        return self.ranks.n_candidates

    @property
    def depth(self) -> Int64:
        """As in `Ranks`."""
        return self.ranks.depth

    @cached_property
    def user(self) -> Int64:
        """The user of each group: int64 [n_groups]."""
        return users_of(self.indptr)

    @cached_property
    def hits_before(self) -> Int64:
        """The number of items with the property in the user's earlier groups: int64 [n_groups]."""
        running = indptr_of(self.relevant)
        return running[:-1] - running[self.indptr[self.user]]

    @cached_property
    def single(self) -> bool:
        """Whether every group is a single place."""
        return all_of(self.size == 1)

    def within(self, cutoff: int | Int64) -> tuple[Int64 | slice, Int64]:
        """Find the groups that begin within a cut-off (one number, or int64 [n_users]).

        Returns the rows of the groups, and how many of their places are within the cut-off: int64
        [n_rows].
        """
        if isinstance(cutoff, int) and cutoff == WHOLE:
            return slice(None), self.size
        room = (cutoff if isinstance(cutoff, int) else cutoff[self.user]) - self.start
        rows = np.flatnonzero(room > 0)
        return rows, np.minimum(self.size[rows], room[rows])

    def parted(self, cutoff: int) -> Int64:
        """Find the groups that a cut-off splits, in the order of users."""
        return np.flatnonzero((self.start < cutoff) & (self.size > cutoff - self.start))

    @shared
    def first(self, cutoff: int) -> tuple[Int64 | slice, Int64, Int64]:
        """Find the groups that begin within a cut-off; return their rows, indptr and `start`."""
        within = self.start < cutoff
        if all_of(within):
            # The arrays of a user-defined source may be strided views of a table.
            indptr, start = (np.ascontiguousarray(array) for array in (self.indptr, self.start))
            return slice(None), indptr, start
        rows = within.nonzero()[0]  # usually few, so the rest is cheap
        counts = np.bincount(self.user[rows], minlength=self.n_users)
        return rows, indptr_of(counts), self.start[rows]

    @shared
    def reach(self, cutoffs: Int64) -> Reach:
        """Find the groups that begin within any of the cut-offs, which are int64 [n_cutoffs]."""
        start, size, user = self.start, self.size, self.user
        rows: Int64 | slice = slice(None)  # the next step usually leaves only a few rows
        deepest = start < cutoffs.max()
        if not all_of(deepest):
            rows = np.flatnonzero(deepest)
            start, size, user = start[rows], size[rows], user[rows]
        inside: Int64 | slice = slice(None)
        empty, requested = np.empty(0, np.int64), cutoffs.tolist()
        within: dict[int, tuple[Int64 | slice, Int64, Int64]] = {}
        parted: dict[int, tuple[Int64, Int64]] = {}
        for cutoff in sorted(set(requested), reverse=True):
            # Search only the groups within the previous, larger cut-off.
            fewer = start < cutoff
            if not all_of(fewer):
                remaining = np.flatnonzero(fewer)
                inside = _chosen(inside, remaining)
                start, size, user = start[remaining], size[remaining], user[remaining]
            room = cutoff - start
            cut = np.flatnonzero(size > room)
            within[cutoff] = inside, user, cut
            parted[cutoff] = _chosen(rows, _chosen(inside, cut)), room[cut]
        ends = np.cumsum([len(parted[cutoff][0]) for cutoff in requested]).tolist()
        spans = zip(requested, [0, *ends], ends, strict=False)
        return Reach(
            rows,
            np.concatenate([empty, *(parted[cutoff][0] for cutoff in requested)]),
            np.concatenate([empty, *(parted[cutoff][1] for cutoff in requested)]),
            [(*within[cutoff], slice(begin, end)) for cutoff, begin, end in spans],
        )

    def listed_ideal(self) -> tuple[Int64, Float64]:
        """Return `ideal_indptr` and `ideal_gain` for the ranked items only."""
        return _best_first(self.ranks, np.where(self.ranks.above >= 0, self.judged_gain, 0))

    def signed_ideal(self) -> tuple[Int64, Float64]:
        """Return `ideal_indptr` and `ideal_gain`, including gains of 0 or less."""
        ranks = self.ranks
        judged = slice(None) if ranks.repeated is None else ~ranks.repeated
        user, gain = ranks.user[judged], self.judged_gain[judged]
        counts = np.bincount(user, minlength=ranks.n_users)
        return indptr_of(counts), gain[np.lexsort((-gain, user))]

    def total(self, rows: Int64 | slice, values: Float64) -> Float64:
        """Sum the values of the given groups by user, in rank order: float64 [n_users]."""
        return sum_by_user(self.user[rows], values, self.n_users)


@dataclasses.dataclass(frozen=True, eq=False)
class Reach:
    """The groups that begin within any of several cut-offs."""

    rows: Int64 | slice  # the groups that begin within the deepest cut-off
    parted: Int64  # the groups that each cut-off splits, one cut-off after another
    places: Int64  # the number of places of each group in `parted` that are within the cut-off
    # For each cut-off: the positions in `rows` of the groups within it, the users of these groups,
    # the groups that it splits, and the slice of `parted` that contains the split groups.
    cutoffs: Sequence[tuple[Int64 | slice, Int64, Int64, slice]]


def _chosen(rows: Int64 | slice, positions: Int64) -> Int64:
    """Return the entries of `rows` at these positions; a slice stands for all rows."""
    return positions if isinstance(rows, slice) else rows[positions]


def sum_by_user(user: Int64, values: Float64, n_users: int) -> Float64:
    """Sum values by user, in the given order: float64 [n_users].

    Up to `LONG` adjacent rows of a user are added one by one. Longer runs are first summed in parts
    of `PART` rows, so that rounding errors grow only with the logarithm of the length.
    """
    # Compare every `PART`-th row: a run longer than `LONG` contains at least two of these in
    # succession. There are usually no such runs.
    if len(user) > PART and any_of(user[:-PART:PART] == user[PART::PART]):
        run = np.flatnonzero(begins(user))
        length = np.diff(run, append=len(user))
        if length.max() > LONG:
            number = np.arange(len(user)) - np.repeat(run, length)
            heads = number % PART == 0
            heads[1:] &= (number[1:] == 0) | np.repeat(length > LONG, length)[1:]
            part = np.cumsum(heads) - 1
            sums = np.bincount(part, weights=values).astype(np.float64, copy=False)
            return sum_by_user(user[heads], sums, n_users)
    # With reduceat or a running sum, other users' rows could affect a user's sum.
    return np.bincount(user, weights=values, minlength=n_users).astype(np.float64, copy=False)


def resolve(
    ranks: Ranks,
    ties: TieRule = "expected",
    by: Property = "relevance",
    seed: int = 0,
    user_keys: UInt64 | None = None,
    relevant_from: RelevantFrom = None,
    within: int | None = None,
) -> Groups:
    """Apply a tie rule.

    Parameters
    ----------
    ranks
        The rank of each judged item.
    ties
        ``"expected"`` keeps tied items together. ``"optimistic"`` puts the best tied items first,
        and ``"pessimistic"`` puts them last; the best items are the relevant ones, or those with
        the highest gains (unjudged items have a gain of 0, so items with negative gains come after
        them). ``"random"`` draws one order per user. ``"item"`` puts lower item ids first,
        ``"item_desc"`` higher ones. ``"input"`` keeps the input order, in which `Ranks.before` must
        then be counted; ``"as_ranked"`` does the same, except that items with equal ranks all get
        that rank.
    by
        The property of items that the metric reads; see `worth_of`.
    seed
        The seed of the rule ``"random"``.
    user_keys : uint64 [n_users], optional
        A number per user, which makes the user's draw under the rule ``"random"`` independent of
        the other users. By default, the user's position.
    relevant_from
        The `Protocol` rule of the same name.
    within
        The cut-off of the rule ``"item_desc_within"``. None means the whole ranking.
    """
    indptr = ranks.indptr
    has_property, every_worth = worth_of(ranks, by, relevant_from)
    counted = has_property & (ranks.above >= 0)
    # Usually, all judged items have the property and are ranked, so nothing is copied.
    rows: Int64 | slice = slice(None)
    if not all_of(counted):
        rows = np.flatnonzero(counted)
        indptr = offsets(counted, indptr)
    above, tied = ranks.above[rows], ranks.tied[rows]
    count = _equal_to(_FEW_COUNTS, len(above))
    members = worth = every_worth[rows]
    if not any_of(tied):
        start, size = above, count
    elif ties == "expected":
        user = ranks.user[rows]
        first, count = find_runs(user, above)
        start, size = above[first], tied[first] + 1
        worth = _sums_of_runs(worth, first, count) / size
        indptr = indptr_of(np.bincount(user[first], minlength=ranks.n_users))
    else:
        place = _places(ranks, rows, worth, ties, seed, user_keys, within)
        order = np.lexsort((place, ranks.user[rows]))
        start, size, worth = place[order], count, worth[order]
        members = worth

    if by == "relevance":
        ideal_indptr = indptr_of(ranks.n_relevant)
        ideal_gain = _equal_to(_FEW_ONES, int(ideal_indptr[-1]))
    else:
        ideal_indptr, ideal_gain = _best_first(ranks, every_worth)
    gains = worth, members, ideal_indptr, ideal_gain, every_worth
    return Groups(indptr, start, size, count, *gains, ranks)


def _places(
    ranks: Ranks,
    rows: Int64 | slice,
    worth: Float64,
    ties: TieRule,
    seed: int,
    user_keys: UInt64 | None,
    within: int | None,
) -> Int64:
    """Return the places of the given rows under a rule that gives each item its own place."""
    if ties == "random":
        return drawn_places(ranks, ranks.user, seed, user_keys)[rows]
    above, tied, before = ranks.above[rows], ranks.tied[rows], ranks.before[rows]
    if ties == "as_ranked" and ranks.by_rank:
        return above
    if ties in ("item", "input", "as_ranked"):
        return above + before
    if ties == "item_desc":
        return above + tied - before
    if ties == "shared":
        return above + tied // 2
    if ties == "item_desc_within":
        return _falling_within(above, tied, before, within)
    best_first = ties == "optimistic"
    return _extreme_places(ranks.user[rows], above, tied + 1, worth, best_first=best_first)


def worth_of(
    ranks: Ranks, by: Property, relevant_from: RelevantFrom = None
) -> tuple[Bool, Float64]:
    """Return a mask of the judged items with a property, and each item's worth (0 without it).

    The worth of an item under each property:

    * ``"relevance"``: 1 for a relevant item.
    * ``"gain"``: its value in the test data. ``"positive_gain"``: the same, if above 0.
    * ``"exponential"``: 2^gain - 1. ``"positive_exponential"``: the same, if above 0.
    * ``"shifted"``: 2^(gain - relevant_from + 1) - 1 for a relevant item; `relevant_from` is 1 by
      default.
    * ``"relevant_gain"``: its value in the test data, if it is relevant and the value is positive.
    * ``"judgement"``: 1 for a relevant item, -1 for any other judged item.
      ``"judgement_from_zero"``: the same, but 0 for an item that is not relevant and has a value
      below 0.
    * ``"inverse_popularity"``, ``"inverse_propensity"``: for a relevant item, 1 / the value in
      `Ranks`.
    """
    relevant, gain = ranks.relevant, ranks.gain
    if by == "relevance":
        # All items are usually relevant; returning `ones` then takes no memory.
        ones = _equal_to(_FEW_ONES, len(relevant))
        return relevant, ones if all_of(relevant) else relevant.astype(np.float64)
    if by in ("judgement", "judgement_from_zero"):
        has_worth = (
            relevant | ~(gain < 0) if by == "judgement_from_zero" else np.ones(len(gain), np.bool_)
        )
        return has_worth, np.where(relevant, 1.0, np.where(has_worth, -1.0, 0.0))
    if by == "gain":
        return gain != 0, gain
    if by in ("positive_gain", "positive_exponential"):
        has_worth = ~(gain <= 0)
        if not all_of(has_worth):
            gain = np.where(has_worth, gain, 0.0)
        return has_worth, gain if by == "positive_gain" else two_to_less_one(gain)
    if by == "relevant_gain":
        has_worth = relevant & ~(gain <= 0)
        return has_worth, np.where(has_worth, gain, 0.0)
    if by in ("inverse_popularity", "inverse_propensity"):
        chance = ranks.popularity if by == "inverse_popularity" else ranks.propensity
        if chance is None:
            raise InternalError(f"A metric of the {by} was requested without it.")
        return relevant, np.divide(1, chance, out=np.zeros(len(chance)), where=relevant)
    if by == "exponential":
        worth = two_to_less_one(gain)
    else:
        first = relevant_from if isinstance(relevant_from, int | float) else 1
        worth = np.where(relevant, two_to_less_one(gain - (first - 1)), 0.0)
    return worth != 0, worth


_FEW_ONES = read_only(np.ones(FEW))
_FEW_COUNTS = read_only(np.ones(FEW, np.int64))


def _equal_to(few: Array, n: int) -> Array:
    """Return an array of n copies of the first number in `few`, without allocating memory."""
    return few[:n] if n <= FEW else np.broadcast_to(few[0], n)


def two_to(power: Float64) -> Float64:
    """Return 2^power, or infinity if that overflows."""
    with np.errstate(invalid="ignore"):
        integral = bool((np.abs(power) <= 1000).all()) and bool((power == np.rint(power)).all())
    if integral:
        return np.ldexp(1.0, power.astype(np.int64))
    # Use math.pow, because the last bit of np.exp2 differs between instruction sets.
    large = power >= 1024
    values = (math.pow(2.0, exponent) for exponent in np.where(large, 0.0, power).tolist())
    return np.where(large, np.inf, np.fromiter(values, np.float64, len(power)))


def two_to_less_one(power: Float64) -> Float64:
    """Return 2^power - 1, accurate for small powers as well."""
    values = two_to(power) - 1
    small = (np.abs(power) < 0.5) & (power != 0)
    if any_of(small):
        values[small] = [math.expm1(exponent * math.log(2)) for exponent in power[small].tolist()]
    return values


def _sums_of_runs(values: Float64, first: Int64, count: Int64) -> Float64:
    sums = values[first]
    several = np.flatnonzero(count > 1)
    run, index = number_runs(count[several])
    members = values[first[several][run] + index]
    sums[several] = sum_by_user(run, members, len(several))
    return sums


def _best_first(ranks: Ranks, gain: Float64) -> tuple[Int64, Float64]:
    """Return the indptr and the positive gains of each user, best first, without repeated items."""
    positive = gain > 0
    if ranks.repeated is not None:
        positive &= ~ranks.repeated
    best, user = gain[positive], ranks.user[positive]
    indptr = indptr_of(np.bincount(user, minlength=ranks.n_users))
    if len(best) <= SHORT_SORT:
        best = best[np.lexsort((-best, user))]
    elif best.min() < best.max():
        # Sorting users with equal numbers of gains together is much faster than one long sort.
        width = np.diff(indptr)
        for n in np.unique(width[width > 1]):
            rows = indptr[:-1][width == n][:, np.newaxis] + np.arange(n)
            best[rows] = np.sort(best[rows], axis=1)[:, ::-1]
    return indptr, best


def _falling_within(above: Int64, tied: Int64, before: Int64, within: int | None) -> Int64:
    """Return places by ascending id, except that tied items within the cut-off are reversed."""
    inside = tied + 1 if within is None else np.clip(within - above, 0, tied + 1)
    return above + np.where(before < inside, inside - 1 - before, before)


def _extreme_places(
    user: Int64, above: Int64, size: Int64, worth: Float64, *, best_first: bool
) -> Int64:
    """Return the places in the best or the worst order of every tie group."""
    _, count = find_runs(user, above)
    run, index = number_runs(count)
    rising = -worth if best_first else worth
    order = np.lexsort((rising, run))
    # Items with worth 0 take the places between positive and negative worths.
    skipped = np.where(rising[order] < 0, 0, size[order] - count[run])
    place = np.empty_like(above)
    place[order] = above[order] + index + skipped
    return place

"""Aligns test, train and candidates with the users and items of a source.

Items are numbered by their place among the sorted item ids ("item positions"). `Aligned.item_rows`
holds the row of each item in the source. Items that are left out for all users have no position, so
a source simply ranks a smaller catalogue. If users have sets of candidates, these are kept in a
separate ragged table.

`assemble` makes `Ranks` from the counts of judged items, with the same numbering.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from recometer import _kernel, ragged
from recometer._kernel import NanRule
from recometer.arrays import (
    Array,
    Bool,
    Float64,
    Int32,
    Int64,
    UInt32,
    UInt64,
    all_equal,
    any_of,
    slices,
    steps,
)
from recometer.data import ids, matching
from recometer.data.interactions import Interactions, gains
from recometer.data.matching import SourceIndex
from recometer.draws import mix
from recometer.errors import InputError, InternalError, argument_text, python_or_command
from recometer.protocol import Protocol
from recometer.ragged import among, indptr_of, numbered, offsets, pairs
from recometer.ranks import Ranks, UserFlag
from recometer.sources.base import Request
from recometer.sources.candidates import Items, SampledCandidates, check_sets
from recometer.tasks import BRIEF, Ticker, run_tasks


class Aligned:
    """Test and train with users and items numbered as in the source.

    Sampled candidates are drawn from the items in `catalogue`; see `align`.
    """

    rows: Int64  # the source's row of each test user, or -1 for unknown users
    n_items: int
    item_rows: Int64 | None  # the source's row of each item position; None if they are the same
    judged_indptr: Int64
    # Item positions, ascending within a user; -1 if the source lacks the item or it is not a
    # candidate. Training items are left out.
    judged: Int32
    # The judged rows that can be ranked, because their user and item are both known (None if all
    # can), and the indptr of a table that contains only these rows.
    ranked: Int64 | None
    ranked_indptr: Int64
    ranked_items: Int32
    gain: Float64  # gain of each judged row
    relevant: Bool
    equal_gains: bool  # whether all gains are equal
    equal_relevance: bool
    n_relevant: Int64  # number of relevant items of each user
    excluded_indptr: Int64
    excluded: Int32
    n_excluded: Int64  # number of excluded items of each user
    flags: UInt32
    counts: dict[str, int]
    item: Int32  # `judged` as positions in the whole catalogue, before candidates were chosen
    # The item position of each item of the whole catalogue, or -1 if it is not a candidate of any
    # user; None if there are no such items. Fields such as `n_items`, `item_rows` and `judged` use
    # item positions.
    numbers: Int32 | None
    # The candidates of each user in CSR layout (indptr, items), ascending, without training items.
    # None means all items.
    candidates: tuple[Int64, Int32] | None
    item_ids: Array | None  # ids of the whole catalogue, sorted; None for positions
    n_in_sets: int | None  # number of items in the sets of candidates, if any

    def __init__(self, index: SourceIndex, request: Request, catalogue: Bool | None) -> None:
        test = request.test
        rows = self.rows = index.places_of_users(test)
        self.item_rows, self.item_ids = index.sorted_items
        positions = index.items_of(test, "test")
        self.flags = np.where(rows >= 0, np.uint32(UserFlag.KNOWN), np.uint32(0)).astype(np.uint32)
        counts = {"users_unknown": int(np.count_nonzero(rows < 0))}
        self.excluded_indptr = np.zeros(test.n_users + 1, np.int64)
        self.excluded = np.zeros(0, np.int32)
        if request.train is not None:
            train_indptr, train_items, places = index.rows_of(test, request.train, "train")
            self.flags[np.diff(train_indptr) > 0] |= np.uint32(UserFlag.TRAINED)
            if request.protocol.seen != "kept":
                known_rows = matching.known_rows(train_indptr, train_items, places)
                self.excluded_indptr, self.excluded = known_rows
                if len(train_items) and not len(self.excluded) and not request.some_users:
                    matching.warn_of_unknown_train(index.name)
        self.judged_indptr, judged, self.gain, self.relevant = _judged(request)
        counts["train_test_overlap"] = len(test) - len(judged)
        self.item = judged if positions is None else positions[judged].astype(np.int32)
        self.judged = self.item
        if positions is not None:
            unknown = self.item < 0
            counts["items_unknown"] = len(np.unique(judged[unknown]))
            counts["relevant_unranked"] = int(np.count_nonzero(unknown & self.relevant))
            if not request.some_users:
                index.check_items(test, judged, unknown)
        self.n_items, self.numbers = index.n_items, None
        self.candidates, self.n_in_sets = None, None
        if request.candidates is not None or request.exclude is not None:
            self._keep_candidates(index, request, catalogue, counts)
        self.ranked, self.ranked_indptr, self.ranked_items = None, self.judged_indptr, self.judged
        if counts["users_unknown"] or (self.judged is not judged and (self.judged < 0).any()):
            can = (self.judged >= 0) & (rows >= 0).repeat(np.diff(self.judged_indptr))
            self.ranked = np.flatnonzero(can)
            self.ranked_indptr = offsets(can, self.judged_indptr)
            self.ranked_items = self.judged[self.ranked]
        self.equal_gains, self.equal_relevance = all_equal(self.gain), all_equal(self.relevant)
        self.n_relevant = steps(offsets(self.relevant, self.judged_indptr))
        self.n_excluded = steps(self.excluded_indptr)
        self.counts = {name: count for name, count in counts.items() if count}

    def _keep_candidates(
        self,
        index: SourceIndex,
        request: Request,
        catalogue: Bool | None,
        counts: dict[str, int],
    ) -> None:
        """Keep only the candidates of the request, and record in `counts` what this affects."""
        is_candidate, sets = _candidates(index, request, catalogue, counts)
        if not is_candidate.all():
            positions = np.flatnonzero(is_candidate)
            self.n_items = len(positions)
            self.item_rows = positions if self.item_rows is None else self.item_rows[positions]
            self.numbers = (np.where(is_candidate, np.cumsum(is_candidate), 0) - 1).astype(np.int32)
            self.judged = np.where(self.item >= 0, self.numbers[self.item], np.int32(-1))
            keep = is_candidate[self.excluded]
            self.excluded_indptr = offsets(keep, self.excluded_indptr)
            self.excluded = self.numbers[self.excluded[keep]]
        rows, n_items, listed = self.rows, self.n_items, None
        judged_pairs = numbered(self.judged_indptr, self.judged, n_items)
        excluded_pairs = numbered(self.excluded_indptr, self.excluded, n_items)
        if sets is not None:
            indptr, items = sets
            items = items if self.numbers is None else self.numbers[items]
            listed = numbered(indptr, items, n_items)[items >= 0]
            listed = listed[~among(listed, excluded_pairs)]
            self.n_in_sets = len(np.unique(items[items >= 0]))
        elif isinstance(request.candidates, SampledCandidates):
            own = judged_pairs[self.judged >= 0]
            drawn = _draw(request, rows, n_items, np.sort(np.concatenate([own, excluded_pairs])))
            n_drawn = np.bincount(drawn // n_items, minlength=len(rows))
            short = (n_drawn < request.candidates.n) & (rows >= 0)
            counts["candidates_short"] = int(np.count_nonzero(short))
            listed = np.sort(np.concatenate([drawn, own]))
        if listed is not None:
            lengths = np.bincount(listed // n_items, minlength=len(rows))
            self.candidates = indptr_of(lengths), (listed % n_items).astype(np.int32)
            inside = (self.judged >= 0) & among(judged_pairs, listed)
            self.judged = np.where(inside, self.judged, np.int32(-1))
            n_without = int(np.count_nonzero((lengths == 0) & (rows >= 0)))
            counts["users_without_candidates"] = n_without
            if not request.some_users:
                check_sets(n_without, int(np.count_nonzero(rows >= 0)))
        missed = (self.judged < 0) & (self.item >= 0) & self.relevant
        counts["relevant_not_candidates"] = int(np.count_nonzero(missed))

    def copy_with(self, **changes: Any) -> Aligned:
        """Return a shallow copy with changed fields; `flags` is copied, as sources modify it."""
        aligned = object.__new__(type(self))
        vars(aligned).update({**vars(self), "flags": self.flags.copy(), **changes})
        return aligned

    @property
    def n_users(self) -> int:
        """Number of test users."""
        return len(self.rows)

    @property
    def n_candidates(self) -> Int64:
        """Each user's number of candidates, if the source scores them all, as int64 [n_users]."""
        if self.candidates is None:
            return self.n_items - self.n_excluded
        return steps(self.candidates[0])

    def locate(self, users: Int64, items: npt.NDArray[np.integer]) -> Int64:
        """Return the item positions (as in `judged`) of items of the whole catalogue.

        `items` are positions among the sorted item ids, or -1, and `users` are the test users to
        whom they belong. Items that are not candidates of their user get -1; a user's training
        items count as candidates.
        """
        positions = items.astype(np.int64)
        if self.numbers is not None:
            positions = np.where(positions >= 0, self.numbers[positions], -1)
        if self.candidates is not None:
            inside = np.zeros(len(positions), bool)
            for indptr, candidates in (self.candidates, (self.excluded_indptr, self.excluded)):
                listed = ragged.numbered(indptr, candidates, self.n_items)
                inside |= ragged.among(ragged.pairs(users, positions, self.n_items), listed)
            positions = np.where(inside & (positions >= 0), positions, -1)
        return positions


def align(index: SourceIndex, request: Request, catalogue: Bool | None = None) -> Aligned:
    """Match the users and items of test and train with those of a source.

    Sampled candidates are drawn from the items in `catalogue` (bool [n_items]; None for all). If
    an earlier request matched the same data, the result is reused, but arrays that sources change
    are copied.

    Raises
    ------
    InputError
        If the shapes do not match, or only one side has ids.
    InputTypeError
        If ids have different types.
    """
    rules = request.protocol.relevant_from, request.protocol.seen
    key = index.name, index.n_users, index.n_items, request.test.n_items, rules
    make = functools.partial(Aligned, index, request, catalogue)
    same = request.test, request.train, request.candidates, request.exclude
    equal = index.user_ids, index.item_ids, catalogue
    return request.memory.find("aligned", key, make, same=same, equal=equal).copy_with()


def _judged(request: Request) -> tuple[Int64, Int32, Float64, Bool]:
    """Return the judged test rows: by default, those that are not in train.

    Returns their indptr, and the item, gain and relevance of each row, numbered as in test.
    """
    test, train = request.test, request.train
    relevant, gain = matching.relevant_rows(test, request.protocol.relevant_from), gains(test)
    if train is None or request.protocol.seen == "kept":
        return test.indptr, test.items, gain, relevant
    keep = ~request.in_train()
    if keep.all():
        return test.indptr, test.items, gain, relevant
    return offsets(keep, test.indptr), test.items[keep], gain[keep], relevant[keep]


def _candidates(
    index: SourceIndex, request: Request, catalogue: Bool | None, counts: dict[str, int]
) -> tuple[Bool, tuple[Int64, Int32] | None]:
    """Return a mask of the items that may be recommended, and the users' sets, if they have any.

    The numbers of unknown items are added to `counts`.
    """
    candidates, sets = request.candidates, None
    mask = np.ones(index.n_items, bool)
    if catalogue is not None and isinstance(candidates, SampledCandidates):
        mask = catalogue.copy()
    if isinstance(candidates, Interactions):
        indptr, items, places = index.rows_of(request.test, candidates, "candidates")
        if places is not None:
            counts["candidates_unknown"] = int(np.count_nonzero(places < 0))
        sets = matching.known_rows(indptr, items, places)
    if isinstance(candidates, Items):
        mask[:] = False
        mask[positions_of(index, candidates, counts)] = True
    if request.exclude is not None:
        mask[positions_of(index, request.exclude, counts)] = False
    if not mask.any():
        raise InputError(
            f"None of the {index.n_items:,} items of the source is left as a candidate. Hint: "
            f"check {argument_text('candidates')} and {argument_text('exclude')}."
        )
    return mask, sets


def positions_of(index: SourceIndex, items: Items, counts: dict[str, int]) -> Int64:
    """Return the positions of the items that the source knows, and count the others."""
    noun, sorted_ids = f"items of {items.parameter}", index.sorted_items[1]
    if sorted_ids is None:
        if items.ids.dtype.kind not in "iu":
            matching.both_have_ids(
                "item", f"the list {argument_text(items.parameter)}", items.ids, index.name, None
            )
        wrong = (items.ids < 0) | (items.ids >= index.n_items)
        if wrong.any():
            fix = python_or_command("pass item_ids= to the source", "add ID files to --factors")
            raise InputError(
                f"{items.parameter} has the item {items.ids[wrong][0]}, but the items of "
                f"{index.name} are the positions 0 to {index.n_items - 1:,}. Hint: leave it out, "
                f"or {fix}."
            )
        return items.ids.astype(np.int64)
    positions = ids.match(items.ids, sorted_ids, noun, f"item ids of {index.name}")
    unknown = positions < 0
    if unknown.all() and items.parameter == "candidates":
        raise InputError(
            f"None of the {len(unknown):,} {noun}, such as {ids.show(items.ids, 0)}, is in "
            f"{index.name}. Hint: they must be ids like those of {index.name}, such as "
            f"{ids.show(sorted_ids, 0)}."
        )
    if unknown.any():
        counts[f"{items.parameter}_unknown"] = len(set(items.ids[unknown].tolist()))
    return positions[~unknown]


def _draw(request: Request, rows: Int64, n_items: int, forbidden: Int64) -> Int64:
    """Draw the candidates of the test users whom the source knows.

    `rows` has -1 for unknown users. `forbidden` and the result are ascending pairs of a test user
    and one of `n_items` items.
    """
    sample, test = request.candidates, request.test
    assert isinstance(sample, SampledCandidates)
    if sample.n > n_items:
        raise InputError(
            f"{sample} draws more items than there are: {n_items:,}. Hint: leave "
            f"{argument_text('candidates')} out to rank all of them."
        )
    has_row = rows >= 0
    known_users = np.flatnonzero(has_row)
    user, item = np.divmod(forbidden, n_items)
    # Draws identify users by their places in `known_users`, so use these places in the pairs too.
    row = np.cumsum(has_row) - 1
    forbidden = pairs(row[user], item, n_items)[has_row[user]]
    keys = ids.user_keys(test.user_ids, test.n_users)[known_users]
    drawn = draw_items(
        sample.n, sample.seed, keys, forbidden, n_items, request.threads, request.progress
    )
    return pairs(known_users[drawn // n_items], drawn % n_items, n_items)


STREAM = np.uint64(0x63616E64)  # makes these draws differ from other draws with the same seed
RACE = np.uint64(1 << 63)  # a bit that makes later draws differ from the first draws
CELLS_AT_ONCE = 2**19  # maximum number of cells (users x draws) in memory at a time


def draw_items(
    n: int,
    seed: int,
    user_keys: UInt64,
    forbidden: Int64,
    n_items: int,
    threads: int,
    progress: bool | None,
) -> Int64:
    """Draw n items for each user, or all allowed items if there are fewer.

    Parameters
    ----------
    n, seed, user_keys
        The number of items, the seed of the draw, and the seed of each user.
    forbidden : int64 [n_forbidden]
        Items that a user must not get, as ascending `pairs` of a user and one of `n_items` items.

    Returns
    -------
    int64 [n_drawn]
        Ascending `pairs` of users and items.
    """
    counters = np.arange(n + n // 2 + 16, dtype=np.uint64)
    keys = mix(mix(np.array([seed], np.uint64) ^ STREAM) ^ user_keys)
    every_item = np.arange(n_items, dtype=np.uint64)

    def draw(block: slice, ticker: Ticker) -> Int64:
        ticker.advance()
        users = np.arange(block.start, block.stop)
        bits = mix(keys[block, np.newaxis] ^ counters)
        drawn = (bits % np.uint64(n_items)).astype(np.int64)
        drawn_pairs = pairs(users[:, np.newaxis], drawn, n_items)
        low, high = np.searchsorted(forbidden, [block.start * n_items, block.stop * n_items])
        refused = forbidden[low:high]
        allowed = _first_of_its_kind(drawn) & ~among(drawn_pairs, refused)
        allowed &= np.cumsum(allowed, axis=1) <= n
        parts = [drawn_pairs[allowed]]
        missing = n - np.count_nonzero(allowed, axis=1)
        incomplete = np.flatnonzero(missing)
        for chunk in slices(len(incomplete), CELLS_AT_ONCE // n_items):
            ticker.advance()
            late_users = incomplete[chunk]
            finish = _uniform(mix(mix(keys[users[late_users], np.newaxis] ^ RACE) ^ every_item))
            row, column = np.nonzero(allowed[late_users])
            finish[row, drawn[late_users][row, column]] = np.inf
            finish[_cells_of(refused, users[late_users], n_items)] = np.inf
            row, item = np.nonzero(_mask_smallest(finish, missing[late_users]))
            parts.append(pairs(users[late_users][row], item, n_items))
        return np.sort(np.concatenate(parts))

    blocks = slices(len(user_keys), CELLS_AT_ONCE // len(counters))
    drawn = run_tasks(draw, blocks, threads=threads, progress=progress, label="Drawing")
    return np.concatenate([np.zeros(0, np.int64), *drawn])


def _first_of_its_kind(rows: Int64) -> Bool:
    """Return a mask of the numbers that occur for the first time in their row."""
    # Sorting a combination of number and place is faster than a stable argsort.
    bits = rows.shape[1].bit_length()
    ordered = np.sort(rows << bits | np.arange(rows.shape[1]), axis=1)
    first = np.ones(rows.shape, bool)
    first[:, 1:] = np.diff(ordered >> bits, axis=1) != 0
    result = np.empty_like(first)
    np.put_along_axis(result, ordered & ((1 << bits) - 1), first, axis=1)
    return result


def _cells_of(numbers: Int64, users: Int64, n_items: int) -> tuple[Int64, Int64]:
    """For pairs whose user is in `users` (sorted), return the user's place there, and the item."""
    user, item = np.divmod(numbers, n_items)
    row = np.minimum(np.searchsorted(users, user), len(users) - 1)
    here = users[row] == user
    return row[here], item[here]


def _mask_smallest(values: Float64, n: Int64) -> Bool:
    """Return a mask of the n smallest values of each row; infinite values do not count."""
    last = np.minimum(n, values.shape[1]) - 1
    limit = np.take_along_axis(np.sort(values, axis=1), last[:, np.newaxis], axis=1)
    mask: Bool = (values <= limit) & np.isfinite(values)
    for row in np.flatnonzero(np.count_nonzero(mask, axis=1) > n):  # equal values are rare
        mask[row] = False
        mask[row, np.argsort(values[row], kind="stable")[: n[row]]] = True
    return mask


def _uniform(bits: UInt64) -> Float64:
    """Return numbers strictly between 0 and 1."""
    return ((bits >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53


USERS_PER_TASK = 2**10  # number of users whose rows one task sorts


def best_first(indptr: Int64, above: Int64, before: Int64 | None, threads: int) -> Int64:
    """Return the order of judged rows: each user's best first, unranked rows (-1) last.

    See `Ranks` for `above` and `before`; the latter is None if nothing is tied.
    """
    order, n_users = np.empty(len(above), np.int64), len(indptr) - 1
    if n_users + len(above) <= BRIEF:
        _kernel.best_first(indptr, above, before, order)
        return order

    def task(users: slice, ticker: Ticker) -> None:
        ticker.advance()
        _kernel.best_first(indptr[users.start : users.stop + 1], above, before, order)

    run_tasks(task, slices(n_users, USERS_PER_TASK), threads=threads, progress=False)
    return order


def spread(
    counted: Int64 | Bool, n: int, above: Int64, tied: Int64, before: Int64
) -> tuple[Int64, Int64, Int64]:
    """Spread the counts of the counted rows over all n judged rows.

    Rows that were not counted get an `above` of -1.
    """
    columns = np.full(n, -1, np.int64), np.zeros(n, np.int64), np.zeros(n, np.int64)
    for column, counts in zip(columns, (above, tied, before), strict=True):
        column[counted] = counts
    return columns


def check_own_scores(lost: int, positions: Array) -> None:
    """Raise an error if a judged item (`lost` >= 0) was not found among its user's candidates."""
    if lost >= 0:
        raise InternalError(
            f"The score of the item at position {positions[lost]} was not found among the scores "
            "of the candidates. Please report this, with the name of the processor."
        )


def assemble(
    aligned: Aligned,
    above: Int64,
    tied: Int64,
    before: Int64,
    order: Int64,
    n_candidates: Int64,
    limit: int | None,
    depth: Int64 | None = None,
) -> Ranks:
    """Make Ranks from the counts of all judged rows, and the order of the rows, best first.

    By default, the first `limit` places are known, or all places if there is no limit.
    """
    above, flags = above[order], aligned.flags
    if any_of(tied):
        tied, before = tied[order], before[order]
        # If all other candidates tie with a judged item, all candidates have the same score.
        n_others = n_candidates - 1
        rows = np.flatnonzero(tied >= max(1, n_others.min()))
        users = np.searchsorted(aligned.judged_indptr, rows, side="right") - 1
        constant = tied[rows] == n_others[users]
        flags[users[constant]] |= np.uint32(UserFlag.CONSTANT_SCORES)
    # If all rows are equal, their order does not matter, and no copy is needed.
    gain = aligned.gain if aligned.equal_gains else aligned.gain[order]
    relevant = aligned.relevant if aligned.equal_relevance else aligned.relevant[order]
    per_row = aligned.item[order].astype(np.int64), above, tied, before, gain, relevant
    if depth is None:
        depth = n_candidates if limit is None else np.minimum(n_candidates, limit)
    per_user = aligned.n_relevant, n_candidates, aligned.n_excluded, depth, flags
    rankable = None if limit is None else n_rankable(aligned, aligned.judged >= 0)
    more: dict[str, Any] = {"n_rankable": rankable, "item_ids": aligned.item_ids}
    return Ranks.unchecked(aligned.judged_indptr, *per_row, *per_user, aligned.counts, **more)


def n_rankable(aligned: Aligned, candidates: Bool) -> Int64:
    """Return how many of each user's relevant items are candidates."""
    return steps(ragged.offsets(aligned.relevant & candidates, aligned.judged_indptr))


FIRST_CANDIDATES = 8  # number of candidates per user that are compared first
GROWTH = 4
MAX_AT_ONCE = 2**18  # maximum number of candidates in memory
USERS_AT_ONCE = 4096

# A function that takes the numbers of some users, and a ragged table of their items. It returns the
# scores, and a mask of the items that are candidates (None if all are).
Score = Callable[[Int64, Int64, Int64], tuple[Array, Bool | None]]


def users_to_check(judged_indptr: Int64, shown: Bool, protocol: Protocol) -> Int64:
    """Return the users whose judged items do not reveal whether all scores are equal.

    Users without judged items need no check unless the rules give them a value, because their
    values are undefined anyway.
    """
    everybody = protocol.no_relevant == "computed"
    return np.flatnonzero(~shown & (everybody | (steps(judged_indptr) > 0)))


def find_constant(aligned: Aligned, users: Int64, nan_rule: NanRule, score: Score) -> Bool:
    """Return a mask of the users who have several candidates, all with the same score."""
    mask = np.zeros(len(users), bool)
    n_candidates, common = np.zeros(len(users), np.int64), np.zeros(len(users))
    remaining, begin, size = np.arange(len(users)), 0, FIRST_CANDIDATES
    while len(remaining):
        end = begin + max(1, min(size, MAX_AT_ONCE // len(remaining)))
        indptr, items, ended = _chunk_of(aligned, users[remaining], begin, end)
        scores, candidate = score(remaining, indptr, items)
        user = ragged.users_of(indptr)
        if candidate is not None:
            scores, user = scores[candidate], user[candidate]
        if nan_rule != NanRule.UNDEFINED:
            scores[np.isnan(scores)] = np.inf if nan_rule == NanRule.FIRST else -np.inf
        counts = np.bincount(user, minlength=len(remaining))
        first = (counts > 0) & (n_candidates[remaining] == 0)
        common[remaining[first]] = scores[(np.cumsum(counts) - counts)[first]]
        n_candidates[remaining] += counts
        same = np.ones(len(remaining), bool)
        same[user[scores != common[remaining][user]]] = False  # NaN never equals NaN
        mask[remaining[same & ended]] = n_candidates[remaining[same & ended]] > 1
        remaining, begin, size = remaining[same & ~ended], end, size * GROWTH
    return mask


def _chunk_of(aligned: Aligned, users: Int64, begin: int, end: int) -> tuple[Int64, Int64, Bool]:
    """Return each user's candidates ``begin:end`` (ragged), and a mask of users with none left.

    Without sets of candidates, they are the items ``begin:end`` that are not excluded.
    """
    if aligned.candidates is not None:
        offsets, candidates = aligned.candidates
        stop = offsets[users + 1]
        first = np.minimum(offsets[users] + begin, stop)
        last = np.minimum(offsets[users] + end, stop)
        indptr = ragged.indptr_of(last - first)
        rows = (first - indptr[:-1]).repeat(last - first) + np.arange(indptr[-1])
        return indptr, candidates[rows].astype(np.int64), last == stop
    end = min(end, aligned.n_items)
    indptr, rows = ragged.take(aligned.excluded_indptr, users)
    excluded = aligned.excluded[rows]
    inside = (excluded >= begin) & (excluded < end)
    keep = np.ones((len(users), end - begin), bool)
    keep[ragged.users_of(indptr)[inside], excluded[inside] - begin] = False
    items = begin + np.nonzero(keep)[1]
    ended = np.full(len(users), end == aligned.n_items)
    return ragged.indptr_of(np.count_nonzero(keep, axis=1)), items, ended

"""Model output that arrives in batches: scores, lists, or candidates with labels.

Each batch is ranked when it arrives, or together with other small batches. Only the counts of
`Ranks` are kept. They take little memory, and do not depend on the order or size of the batches.
"""

from __future__ import annotations

import abc
import copy
import dataclasses
import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

from recometer import _kernel, ragged
from recometer._kernel import TieOrder
from recometer.arrays import Array, Bool, Int32, Int64, all_of, any_of, begins, follow
from recometer.data import ids, matching
from recometer.data.interactions import Interactions
from recometer.data.matching import SourceIndex
from recometer.errors import InputError, InputTypeError, RecometerError
from recometer.ragged import Record
from recometer.ranks import Ranks, Ratings, TopLists, UserFlag
from recometer.remembered import cached_property
from recometer.sources import _top_lists, _torch
from recometer.sources._list_table import ListTable, items_of
from recometer.sources._score_batches import Batches, RankWork, TopWork
from recometer.sources._top_lists import Rule
from recometer.sources.alignment import Aligned, align
from recometer.sources.base import Facts, Kind, Memory, Request, Source
from recometer.sources.candidates import SampledCandidates
from recometer.sources.lists import Lists
from recometer.sources.pairs import UNREAD, UNREAD_WITH_TRUTH, Pairs
from recometer.sources.scores import MATRIX_BYTES, Scores

Work = RankWork | TopWork
NO_BATCH = "are in no batch of the stream"  # how messages describe test users without a batch
PER_ROW = ("above", "tied", "before", "score")  # fields of `RankWork` with an entry per row
# Names of the counts that depend on the lists; the other counts only depend on test, train and
# candidates.
COUNTS_OF_LISTS = (
    "cut_in_ties",
    "list_duplicates",
    "list_items_uncatalogued",
    "list_not_candidates",
    "list_repeats",
    "list_train_items",
    "list_users_ignored",
    "relevant_not_candidates",
    "relevant_unranked",
    "users_unknown",
)
ANY_ITEMS = int(np.iinfo(np.int32).max)
PENDING_ENTRIES = 2**18  # pending lists are ranked before they exceed this many entries


class Streamed(abc.ABC):
    """The counts of all batches so far."""

    @abc.abstractmethod
    def source(self) -> Source:
        """Return the counts as a source for `evaluate`."""

    @property
    @abc.abstractmethod
    def n_users(self) -> int:
        """The number of evaluated users in the batches."""

    @property
    @abc.abstractmethod
    def nbytes(self) -> int:
        """The memory of the counts, in bytes."""

    @abc.abstractmethod
    def state(self) -> dict[str, Any]:
        """Return the counts as arrays and numbers."""

    @abc.abstractmethod
    def in_both(self, state: Mapping[str, Any]) -> Array:
        """Return the ids (or positions) of users that another stream also has."""

    @abc.abstractmethod
    def merge(self, state: Mapping[str, Any]) -> None:
        """Add the state of another stream; users in both streams keep the counts of this one."""


class OfTest(Streamed, Source):
    """Output for the test users; each user may occur only once.

    Parameters
    ----------
    request
        The request for which `rank` and `top` will be called.
    ranked
        Whether `rank` will be called.
    k
        The number of places that `top` must return; None if `top` will not be called.

    Attributes
    ----------
    came : bool [n_users]
        Whether each test user was in a batch.
    """

    def __init__(self, request: Request, ranked: bool, k: int | None) -> None:
        self._is_ranked, self._k = ranked, k
        self._asked = dataclasses.replace(request, progress=False)
        self.came: Bool = np.zeros(request.test.n_users, bool)
        self._strangers: list[Array] = []

    def source(self) -> Source:
        """Return the counts as a source for `evaluate`."""
        return self

    @cached_property
    def _user_ids(self) -> Array:
        """The ids of the test users, or their positions."""
        test = self._asked.test
        return np.arange(test.n_users) if test.user_ids is None else test.user_ids

    @property
    def n_users(self) -> int:
        """The number of test users in the batches."""
        return int(np.count_nonzero(self.came))

    def add_strangers(self, user_ids: Array) -> None:
        """Add the ids (from `ids.as_ids`) of users in a batch who are not in test."""
        if len(user_ids):
            self._strangers.append(user_ids)
            if len(self._strangers) > RECORDS_AT_ONCE:
                self._strangers = [union(self._strangers)]

    def _ids_that_came(self) -> Array | None:
        """Return the sorted ids of all users in the batches; None if users have no ids."""
        user_ids = self._asked.test.user_ids
        return None if user_ids is None else union([user_ids[self.came], *self._strangers])

    def state(self) -> dict[str, Any]:
        """Return the counts as arrays and numbers."""
        return {"users": np.flatnonzero(self.came), "strangers": self._strangers}

    def in_both(self, state: Mapping[str, Any]) -> Array:
        """Return the ids (or positions) of users that another stream also has."""
        users = state["users"]
        both: Array = self._user_ids[users[self.came[users]]]
        return both

    def merge(self, state: Mapping[str, Any]) -> None:
        """Add the state of another stream; users in both streams keep the counts of this one."""
        self.came[state["users"]] = True
        for user_ids in state["strangers"]:
            self.add_strangers(user_ids)


def union(parts: Sequence[Array]) -> Array:
    """Return the distinct ids of several arrays, sorted."""
    filled = [part for part in parts if len(part)]
    if not filled:
        return parts[0]
    if len({part.dtype for part in filled}) > 1:  # some numbers exceed int64
        return ids.encode([one for part in filled for one in part.tolist()], "user ids")[1]
    return ids.encode(np.concatenate(filled), "user ids")[1]


class StreamedScores(OfTest):
    """Scores of all items, counted directly into the arrays of all test users.

    `index` has the items of the stream and the test users; test and train are matched with the
    index only once. For the other parameters, see `OfTest`.
    """

    def __init__(self, index: SourceIndex, request: Request, ranked: bool, k: int | None) -> None:
        super().__init__(request, ranked, k)
        self._index, self._aligned = index, align(index, request)
        self._kind = ""  # dtype of the scores, for `describe`
        self._ranked: dict[int | None, RankWork] = {}
        self._listed: dict[TieOrder, TopWork] = {}
        if k is not None:
            rules = _top_lists.rules(request)
            for rule in rules:
                aligned = rule.applied(self._aligned).anew()
                self._listed[rule.order] = TopWork(aligned, request, k, rule)
            if len(rules) > 1:
                self._add_ranked(k)
        if ranked:
            self._add_ranked(request.depth)

    def _add_ranked(self, depth: int | None) -> None:
        request = dataclasses.replace(self._asked, depth=depth)
        self._ranked[depth] = RankWork(self._aligned.anew(), request)

    @property
    def _works(self) -> list[Work]:
        return [*self._ranked.values(), *self._listed.values()]

    def add(self, batch: Scores, rows: Int64, users: Int64) -> None:
        """Count the given rows of a batch: the scores of the given test users."""
        index, own = batch.index, self._index
        if index.item_ids is not None and (
            own.item_ids is None or not np.array_equal(index.item_ids, own.item_ids)
        ):
            raise InputError(
                "The item_ids of this batch differ from those of the stream or of earlier "
                "batches. Hint: all "
                "batches have the same columns."
            )
        if index.n_items != own.n_items:
            raise InputError(
                f"This batch has scores of {index.n_items:,} items, those before had "
                f"{own.n_items:,}. Hint: a batch has a column for every item."
            )
        request, size = self._asked, MATRIX_BYTES
        if batch.on_device:
            request, size = _torch.one_at_a_time(request), _torch.BLOCK_BYTES
        batches = Batches(
            lambda at: batch.batch(rows[at]),
            request,
            n_columns=index.n_items,
            bytes_per_batch=size,
            ahead=False,
        )
        for work in self._works:
            _count(work, users, batches)
        self.came[users] = True
        self._kind = batch.kind

    def rank(self, request: Request) -> Ranks:
        """Return the rank of each judged item of users in the batches; see `Ranks`."""
        work = copy.copy(self._ranked[request.depth])
        # Copy, because `ranks` overwrites counts beyond the depth, and more batches may arrive.
        for name in ("above", "tied", "before"):
            setattr(work, name, getattr(work, name).copy())
        work.aligned = self._only_known(work.aligned)
        return work.ranks(request.threads)

    def top(self, request: Request, k: int) -> TopLists:
        """Return the first k places of each user in the batches; see `TopLists`."""
        return _top_lists.lists(self, request, k, self._best)

    def _best(self, request: Request, k: int, rule: Rule) -> TopLists:
        work = self._listed[rule.order]
        aligned = self._only_known(work.aligned)
        return _top_lists.finished(aligned, work.best, k, n_catalogue=aligned.n_items)

    def _only_known(self, aligned: Aligned) -> Aligned:
        """Return a copy in which only the users in the batches are known."""
        came, test = self.came, self._asked.test
        if came.all():
            return aligned.anew()
        if test.user_ids is not None:
            user_ids = test.user_ids[came]
            index = dataclasses.replace(self._index, n_users=len(user_ids), user_ids=user_ids)
            narrow = align(index, self._asked)
            rows, counts, n_offered = narrow.rows, narrow.counts, narrow.n_offered
        else:
            counts = aligned.counts | {"users_unknown": int(np.count_nonzero(~came))}
            rows, n_offered = np.where(came, aligned.rows, -1), aligned.n_offered
        flags = aligned.flags.copy()
        flags[~came] &= ~np.uint32(UserFlag.KNOWN)
        return dataclasses.replace(
            aligned, rows=rows, counts=counts, n_offered=n_offered, flags=flags
        )

    @property
    def index_of_items(self) -> tuple[int, Array | None]:
        """The number of items, and their ids."""
        return self._index.n_items, self._index.item_ids

    def state(self) -> dict[str, Any]:
        """Return the counts as arrays and numbers."""
        counted = [
            {
                name: column[_entries(work, name, self.came)]
                for name, column in _counted(work).items()
            }
            for work in self._works
        ]
        return super().state() | {"kind": self._kind, "counted": counted}

    def merge(self, state: Mapping[str, Any]) -> None:
        """Add the state of another stream; users in both streams keep the counts of this one."""
        users = state["users"]
        is_new, taken = ~self.came[users], np.zeros(len(self.came), bool)
        taken[users[is_new]] = True
        for work, counted in zip(self._works, state["counted"], strict=True):
            lengths = np.diff(work.aligned.judged_indptr)[users]
            for name, column in _counted(work).items():
                chosen = np.repeat(is_new, lengths) if name in PER_ROW else is_new
                column[_entries(work, name, taken)] = counted[name][chosen]
        self._kind = state["kind"] or self._kind
        super().merge(state)

    @property
    def nbytes(self) -> int:
        """The memory of the counts, in bytes."""
        arrays = [array.nbytes for work in self._works for array in _counted(work).values()]
        return int(sum(arrays)) + self.came.nbytes

    def describe(self) -> str:
        """Return one line that describes what is evaluated."""
        return (
            f"Scores, streamed: {self.n_users:,} users x {self._index.n_items:,} items{self._kind}"
        )

    @property
    def facts(self) -> Facts:
        """The facts about the source, as far as it has been counted."""
        counted = {
            f"counted_{number}_{name}": column
            for number, work in enumerate(self._works)
            for name, column in _counted(work).items()
        }
        item_ids = self._index.item_ids
        return Facts(
            {"users": np.flatnonzero(self.came), **counted, "item_ids": item_ids},
            known=lambda kind: item_ids if kind == "item" else self._ids_that_came(),
            sized=False,
            of_unknown=NO_BATCH,
        )


def unscored(index: SourceIndex) -> Scores:
    """Return scores without users, for checking the arguments of `evaluate`."""
    return Scores(lambda rows: None, n_users=0, n_items=index.n_items, item_ids=index.item_ids)


def _count(work: Work, users: Int64, batches: Batches) -> None:
    """Count the scores of the given users; `batches` numbers them from 0."""
    numbers = np.arange(len(users))
    pieces = batches.cut(numbers)
    if batches.request.threads > 1 and len(pieces) > 1:
        batches.each(numbers, lambda at, scores: work.count(users[at], scores), "Counting")
        return
    # For a single piece, starting a thread would take longer than the work.
    for piece in pieces:
        work.count(users[piece], batches.ask(piece))


def _counted(work: Work) -> dict[str, Any]:
    """Return the arrays that counting writes to, with an entry per user or judged item."""
    arrays: dict[str, Any] = {"flags": work.aligned.flags}
    if isinstance(work, TopWork):
        arrays |= {"items": work.best.items, "left": work.best.left}
    else:
        names = ("above", "tied", "before", "no_candidates", "score")
        arrays |= {name: getattr(work, name) for name in names}
    return {name: array for name, array in arrays.items() if array is not None}


def _entries(work: Work, name: str, users: Bool) -> Bool:
    """Return the entries of an array from `_counted` that belong to the given users."""
    return np.repeat(users, np.diff(work.aligned.judged_indptr)) if name in PER_ROW else users


class Batch(NamedTuple):
    """Lists, the ids of the users whose lists are read, and these users' positions in test."""

    lists: Lists
    users: Array
    places: Int64  # -1 for users who are not in test

    @property
    def n_entries(self) -> int:
        """The number of places in all lists, plus 1 for each list."""
        return self.lists.n_entries + len(self.users)


class ListsOfPositions:
    """Lists of item positions with equal lengths, each for a different test user.

    Parameters
    ----------
    most
        The maximum number of lists.
    length
        The number of places in each list, including padding.
    n_items
        The number of items.
    came : bool [n_users]
        Whether each test user has a list; `add` marks the users of its batch.
    """

    def __init__(self, most: int, length: int, n_items: int, came: Bool) -> None:
        self._items = np.empty((most, length), np.int32)
        self._places = np.empty(most, np.int64)
        self._n_items, self._came = n_items, came
        self._ends = [0]  # where batches end

    def add(self, items: Array, places: Int64) -> bool:
        """Add a batch if there is room for it and it is valid; return whether it was added."""
        begin = self.n_lists
        try:
            fits: bool = _kernel.take_lists(
                items, self._n_items, places, self._came, begin, self._items, self._places
            )
        except TypeError:  # types or dimensions that the kernel does not take
            return False
        if fits:
            self._ends.append(begin + len(items))
        return fits

    def has_room(self, items: Array) -> bool:
        """Return whether a batch fits, by its number of lists and their length."""
        n, length = items.shape
        return bool(length == self._items.shape[1] and self.n_lists + n <= len(self._items))

    @property
    def n_lists(self) -> int:
        """Number of lists."""
        return self._ends[-1]

    def batches(self, request: Request) -> list[Batch]:
        """Return the batches in the order of arrival."""
        return [self._batch(request, *ends) for ends in itertools.pairwise(self._ends)]

    def merged(self, request: Request) -> Batch:
        """Return all lists as a single batch."""
        return self._batch(request, 0, self.n_lists)

    def _batch(self, request: Request, begin: int, end: int) -> Batch:
        user_ids, places = request.test.user_ids, self._places[begin:end]
        assert user_ids is not None
        users = user_ids[places]
        return Batch(_lists_of(self._items[begin:end], request, users), users, places)

    def of_all(self, request: Request) -> Lists:
        """Return the lists in the order of the test users; every test user must have one."""
        n = self.n_lists
        items, places = self._items[:n], self._places[:n]
        if not follow(places):  # if they are consecutive, they start at 0
            items = np.empty_like(items)
            items[places] = self._items[:n]
        return _lists_of(items, request, request.test.user_ids)


def _lists_of(items: Int32, request: Request, user_ids: Array | None) -> Lists:
    n, k = items.shape
    indptr = np.arange(0, n * k + 1, k, dtype=np.int64)
    n_items = request.test.n_items
    table = ListTable(indptr, items.ravel(), n_items, None, user_ids, None, padded=True)
    return Lists.of_table(table, None)


def can_hold_positions(request: Request) -> bool:
    """Return whether lists of positions need no matching of item ids or sets of items.

    If so, an error can only concern a single list. Otherwise, the first batch must be ranked
    immediately, to find errors in the matching.
    """
    test, train = request.test, request.train
    if test.item_ids is not None or request.candidates is not None or request.exclude is not None:
        return False
    if not isinstance(request.catalogue, int | None):
        return False
    if train is None:
        return True
    own, theirs = test.user_ids, train.user_ids
    if own is None or theirs is None:
        alike = own is theirs and test.n_users == train.n_users
    else:
        alike = ids.kind(own) == ids.kind(theirs)
    return alike and train.item_ids is None


class StreamedLists(OfTest):
    """Lists that are ranked only for their users; small batches are collected and ranked together.

    `counts_others` says whether to count users with a list who are not in test. For the other
    parameters, see `OfTest`.
    """

    def __init__(
        self, request: Request, ranked: bool, k: int | None, counts_others: bool = False
    ) -> None:
        if isinstance(request.candidates, Interactions | SampledCandidates):
            raise InputError(
                "candidates= has a set for each user, which streams of lists do not support. "
                "Hint: evaluate all lists in one call; one list of candidates for all users can "
                "be given, and scores take any."
            )
        super().__init__(request, ranked, k)
        self._counts_others, self._holds_positions = counts_others, can_hold_positions(request)
        # Ranks and lists of a single batch with all users, until another batch is ranked.
        self._complete: tuple[Ranks | None, TopLists | None] | None = None
        # The number of lists that the facts describe, and the facts.
        self._facts: tuple[int, Facts] | None = None
        # `_n_ignored` and `_n_repeats` count users and repeats in lists that were not ranked.
        self._n_lists = self._n_ignored = self._n_repeats = 0
        self._widest = 0
        self._ids: list[Array] = []  # ids of the users of the records, part by part
        self._ranked, self._listed = Buffer(Ranks), Buffer(TopLists)
        self._items = ItemCodes()
        self._pending: list[Batch] = []
        self._n_pending = 0  # number of pending entries
        self.positions: ListsOfPositions | None = None  # pending lists of item positions

    @cached_property
    def _request(self) -> Request:
        """The request for ranking batches, in which users have ids."""
        # Use a separate memory, because no other call can use the matches of a batch.
        return dataclasses.replace(_with_user_ids(self._asked), memory=Memory())

    def add(self, batch: Lists, users: Array, places: Int64) -> None:
        """Add a batch of lists.

        Parameters
        ----------
        batch
            Lists whose users have ids; the ids are positions if test has no ids.
        users
            The ids of the users whose lists are read.
        places : int64 [n]
            The positions of these users in test, or -1 for users who are not in test.
        """
        added = Batch(batch, users, places)
        whole = len(users) == batch.n_lists and all_of(places >= 0)
        # Ranking the first batch immediately reveals errors common to all batches. The largest
        # position reveals items that do not exist.
        exist = batch.n_positions <= self._request.test.n_items
        if not (self._n_lists and whole and exist):
            self._rank(added)
            return
        mixed = self._pending and self._pending[0].lists.kind != batch.kind
        if mixed or self._n_pending + added.n_entries > PENDING_ENTRIES:
            self._rank_pending()
        self._pending.append(added)
        self._n_pending += added.n_entries
        self.came[places] = True

    def take_indices(self, items: Array, places: Int64) -> bool:
        """Add lists of item positions, if they need no further check or conversion.

        Parameters
        ----------
        items : int64 or int32 [n, k], padded with -1
        places : int64 [n]
            The positions of the users in test.

        Returns
        -------
        bool
            Whether they were added. If not, call `add`, which adds them or raises an error.
        """
        if not self._holds_positions or not items.size:
            return False
        if self.positions is None or not self.positions.has_room(items):
            if self.positions is not None:
                self._rank_pending()
            n, length = items.shape
            most = min(max(n, PENDING_ENTRIES // (length + 1)), len(self.came))
            n_items = min(self._asked.test.n_items, ANY_ITEMS)
            self.positions = ListsOfPositions(most, length, n_items, self.came)
        return self.positions.add(items, places)

    def _rank_pending(self) -> None:
        """Rank the pending batches; if a batch is refused, raise its error and keep the others."""
        positions, self.positions = self.positions, None
        if positions is not None and positions.n_lists:
            try:
                if positions.n_lists == len(self.came):
                    self._rank_all(positions.of_all(self._asked))
                else:
                    self._rank(positions.merged(self._request))
            except RecometerError:  # find the refused batch by ranking them one by one
                self._pending += positions.batches(self._request)
        pending, self._pending, self._n_pending = self._pending, [], 0
        if not pending:
            return
        try:
            lists, users, places = zip(*pending, strict=True)
            together = Lists.of_batches(lists)
            self._rank(Batch(together, np.concatenate(users), np.concatenate(places)))
            return
        except RecometerError:
            pass
        for number, batch in enumerate(pending):
            try:
                self._rank(batch)
            except RecometerError as error:
                self.came[batch.places] = False
                self._pending = pending[number + 1 :]
                self._n_pending = sum(left.n_entries for left in self._pending)
                raise type(error)(f"In a batch that came before: {error}") from error

    def _rank(self, batch: Batch) -> None:
        """Rank a batch of lists, and keep its records."""
        self._keep_complete()
        source, users, places = batch
        in_test = places >= 0
        others = users[~in_test] if self._counts_others else users[:0]
        request = self._narrowed(np.sort(places[in_test]), others)
        ranks = lists = None
        if not request.test.n_users:
            if request.protocol.duplicates != "removed":  # also for users who are not in test
                anybody = self._narrowed(np.zeros(1, np.int64), others)
                self._n_repeats += source.rank(anybody).counts.get("list_repeats", 0)
            self._n_ignored += len(users)
        else:
            ranks = source.rank(request) if self._is_ranked else None
            lists = None if self._k is None else source.top(request, self._k)
            # Nothing was refused, so keep the whole batch.
            assert request.test.user_ids is not None
            self._ids.append(request.test.user_ids)
            self.came[places[in_test]] = True
        item_ids = source.facts.known_ids("item")
        if item_ids is not None:
            self._items.add(item_ids)
        self._keep(ranks, lists)
        self._n_lists += len(users)

    def _rank_all(self, source: Lists) -> None:
        """Rank lists of all test users, in the order of test, as `evaluate` would do."""
        ranks = source.rank(self._asked) if self._is_ranked else None
        lists = None if self._k is None else source.top(self._asked, self._k)
        self._complete = ranks, lists
        if self._n_lists:  # earlier lists belong to users who are not in test
            self._keep_complete()
        self._n_lists += source.n_lists

    def _keep_complete(self) -> None:
        """Add the ranks and lists of a batch with all users to the records of the other batches."""
        if self._complete is not None:
            self._keep(*self._complete)
            self._ids, self._complete = [self._user_ids], None

    def _keep_all(self) -> None:
        self._rank_pending()
        self._keep_complete()

    def _keep(self, ranks: Ranks | None, lists: TopLists | None) -> None:
        if ranks is not None:
            self._ranked.add(self._of_items_of_test(ranks))
        if lists is not None:
            self._listed.add(self._of_codes(lists))

    def _narrowed(self, places: Int64, others: Array) -> Request:
        """Return the request for the given test users, and for `others`, who are not in test."""
        request = self._request
        test = request.test.select_users(places)
        if len(others):
            return dataclasses.replace(request, test=test.with_users(others))
        train = request.train
        if train is not None:
            index = SourceIndex.of_data(train, "train")
            train = matching.known_users(train, index.places_of_users(test))
        return dataclasses.replace(request, test=test, train=train)

    def _of_items_of_test(self, ranks: Ranks) -> Ranks:
        """Return ranks whose items are numbered as in test, with the counts of lists."""
        item, own = ranks.item, self._asked.test.item_ids
        if own is not None:
            assert ranks.item_ids is not None  # Lists include the item ids of test
            item = ids.match(ranks.item_ids, own, "item ids of Lists", "item ids of test")[item]
        counts = _counts_of_lists(ranks.counts)
        return dataclasses.replace(ranks, item=item, item_ids=None, counts=counts)

    def _of_codes(self, lists: TopLists) -> TopLists:
        """Return lists with `ItemCodes` as items, padded to a common width."""
        self._widest = max(self._widest, lists.depth)
        assert self._k is not None
        items = np.full((lists.n_users, self._k), -1)
        items[:, : lists.depth] = lists.items
        repeats = np.zeros((lists.n_users, self._k), np.uint8)
        width = min(lists.repeats.shape[1], self._k)
        repeats[:, :width] = lists.repeats[:, :width]
        if lists.item_ids is not None:
            distinct, inverse = np.unique(items, return_inverse=True)
            codes = np.full(len(distinct), -1)
            codes[distinct >= 0] = self._items.add(lists.item_ids[distinct[distinct >= 0]])
            items = codes[inverse].reshape(items.shape)
        return dataclasses.replace(
            lists,
            items=items,
            n_items=ANY_ITEMS,
            n_catalogue=None,
            item_ids=None,
            uncatalogued=None,
            repeats=repeats,
            counts=_counts_of_lists(lists.counts),
        )

    def rank(self, request: Request) -> Ranks:
        """Return the rank of each judged item; see `Ranks`."""
        self._rank_pending()
        if self._complete is not None:
            assert self._complete[0] is not None
            return self._complete[0]
        request = _with_user_ids(request)
        base = nobody(request.test).rank(request)
        absent, order = self._absent(request)
        more = [] if absent is None else [nobody(absent.test).rank(absent)]
        ranks = self._ranked.merged(*map(self._of_items_of_test, more)).users(order)
        item, item_ids, own = ranks.item, base.item_ids, request.test.item_ids
        if own is not None:
            assert item_ids is not None  # Lists include the item ids of test
            _, item_ids = self._items.sorted_with(item_ids.tolist())
            item = ids.match(own, item_ids, "item ids of test")[item]
        counts = self._counts(base.counts, ranks.counts)
        return dataclasses.replace(ranks, item=item, counts=counts, item_ids=item_ids)

    def top(self, request: Request, k: int) -> TopLists:
        """Return the first k places of each user's list; see `TopLists`."""
        self._rank_pending()
        if self._complete is not None:
            assert self._complete[1] is not None
            return self._complete[1]
        request = _with_user_ids(request)
        base = nobody(request.test).top(request, k)
        absent, order = self._absent(request)
        more = [] if absent is None else [nobody(absent.test).top(absent, k)]
        lists = self._listed.merged(*map(self._of_codes, more)).users(order)
        items, n_items, item_ids = lists.items, base.n_items, base.item_ids
        if item_ids is not None:
            places, item_ids = self._items.sorted_with(item_ids.tolist())
            items, n_items = np.append(places, -1)[items], len(item_ids)
        uncatalogued = base.uncatalogued
        if uncatalogued is not None and request.catalogue is not None:
            assert not isinstance(request.catalogue, int)
            listed = np.unique(items[items >= 0])
            uncatalogued = listed[~items_of(request.catalogue, item_ids, n_items)[listed]]
        return dataclasses.replace(
            lists,
            items=items[:, : max(base.depth, self._widest)],
            n_items=n_items,
            item_ids=item_ids,
            counts=self._counts(base.counts, lists.counts),
            n_catalogue=base.n_catalogue,
            uncatalogued=uncatalogued,
        )

    def _absent(self, request: Request) -> tuple[Request | None, Int64]:
        """Return the request for users without a list, and the position of each user's record.

        The records of users without a list follow the records of the batches.
        """
        test, recorded = request.test, self._recorded_users
        assert test.user_ids is not None
        order = ids.match(test.user_ids, recorded, "user ids of test", "user ids of the lists")
        absent = np.flatnonzero(order < 0)
        order[absent] = len(recorded) + np.arange(len(absent))
        if not len(absent):
            return None, order
        return dataclasses.replace(request, test=test.select_users(absent)), order

    def _counts(self, base: Mapping[str, int], recorded: Mapping[str, int]) -> dict[str, int]:
        """Return the counts over all users; those that depend on lists are from `recorded`."""
        more = {"list_users_ignored": self._n_ignored}
        if "list_repeats" in recorded:
            more["list_repeats"] = self._n_repeats
        counts = {name: count for name, count in base.items() if name not in COUNTS_OF_LISTS}
        for name, count in (*recorded.items(), *more.items()):
            counts[name] = counts.get(name, 0) + count
        return {name: count for name, count in counts.items() if count}

    @property
    def _recorded_users(self) -> Array:
        """The ids of the users of the records, in the order of arrival."""
        return np.concatenate(self._ids) if self._ids else self._user_ids[:0]

    def state(self) -> dict[str, Any]:
        """Return the counts as arrays and numbers."""
        self._keep_all()
        return super().state() | {
            "n_lists": self._n_lists,
            "ignored": self._n_ignored,
            "widest": self._widest,
            "repeats": self._n_repeats,
            "ids": list(self._ids),
            "ranked": self._ranked.state(),
            "listed": self._listed.state(),
            "items": self._items.ids,
        }

    def merge(self, state: Mapping[str, Any]) -> None:
        """Add the state of another stream; users in both streams keep the counts of this one."""
        self._keep_all()
        theirs = np.concatenate(state["ids"]) if state["ids"] else self._user_ids[:0]
        new = np.flatnonzero(ids.match(theirs, self._recorded_users, "user ids", "user ids") < 0)
        codes = self._items.add(state["items"])
        ranks = self._ranked.of_state(state["ranked"])
        if ranks is not None:
            self._ranked.add(ranks.users(new))
        lists = self._listed.of_state(state["listed"])
        if lists is not None:
            lists = lists.users(new)
            items = np.append(codes, -1)[lists.items] if len(codes) else lists.items
            self._listed.add(dataclasses.replace(lists, items=items))
        self._ids.append(theirs[new])
        self._n_lists += state["n_lists"] - len(self.in_both(state))
        self._n_ignored += state["ignored"]
        self._n_repeats += state["repeats"]
        self._widest = max(self._widest, state["widest"])
        super().merge(state)

    @property
    def nbytes(self) -> int:
        """The memory of the counts, in bytes."""
        self._keep_all()
        users = sum(part.nbytes for part in self._ids)
        return self._ranked.nbytes + self._listed.nbytes + users + self.came.nbytes

    def describe(self) -> str:
        """Return one line that describes the lists so far."""
        return f"Lists, streamed: {self._n_lists:,} lists"

    @property
    def facts(self) -> Facts:
        """The facts about the source, as far as it has been counted."""
        self._rank_pending()
        if self._facts is None or self._facts[0] != self._n_lists:
            self._facts = self._n_lists, self._current_facts()
        return self._facts[1]

    def _current_facts(self) -> Facts:
        if self._complete is None:
            users = self._recorded_users
            order = np.argsort(users, kind="stable")
            users = users[order]
            ranks = self._ranked.merged().users(order) if self._ranked else None
        else:
            users, ranks = self._user_ids, self._complete[0]
        arrays: dict[str, object] = {"user_ids": users}
        if ranks is not None:
            names = ["indptr", "item", "above", "depth"]
            names += ["tied", "before"] if any_of(ranks.tied) else []
            arrays |= {name: getattr(ranks, name) for name in names}
        return Facts(
            arrays,
            known=self._known_ids,
            listed=lambda: np.sort(self._recorded_users),
            input_order=True,
            repeats_items=True,
            sized=False,
            of_unknown=NO_BATCH,
        )

    def _known_ids(self, kind: Kind) -> Array | None:
        """Return the ids of all users in the batches, or of all listed items."""
        if kind == "user":
            return self._ids_that_came()
        if self._asked.test.item_ids is None:
            return None
        self._keep_all()
        return ids.as_ids(self._items.ids, "item ids of Lists")


def nobody(test: Interactions) -> Lists:
    """Return lists without entries, for computing everything that does not depend on lists."""
    first = np.zeros(1, np.int64) if test.user_ids is None else test.user_ids[:1]
    n_items = 0 if test.item_ids is None else len(test.item_ids)
    none = np.zeros(2, np.int64), np.zeros(0, np.int32), n_items, None, first, test.item_ids
    return Lists.of_table(ListTable(*none), None)


def _with_user_ids(request: Request) -> Request:
    """If users have no ids, use their positions as ids."""
    if request.test.user_ids is not None:
        return request
    users = np.arange(request.test.n_users)
    test, train = dataclasses.replace(request.test, user_ids=users), request.train
    if train is not None and train.user_ids is None:
        SourceIndex.of_data(train, "train").users_of(request.test)  # checks the number of users
        train = dataclasses.replace(train, user_ids=np.arange(train.n_users))
    return dataclasses.replace(request, test=test, train=train)


def _counts_of_lists(counts: Mapping[str, int]) -> dict[str, int]:
    return {name: count for name, count in counts.items() if name in COUNTS_OF_LISTS}


class StreamedPairs(Streamed):
    """Scored candidates with labels; all candidates of a user are in the same batch.

    Parameters
    ----------
    ranked, rated
        Whether metrics read ranks, and whether they read ratings.
    """

    def __init__(self, *, ranked: bool, rated: bool) -> None:
        self._reads_ranks, self._reads_ratings = ranked, rated
        self._ranked, self._rated = Buffer(Ranks), Buffer(Ratings)
        self._users, self._n_users = UserIds(), 0
        self._items: ItemCodes | None = None
        self._largest = 0.0  # total gain, including rows in train
        self._n_repeated = 0  # number of rows that repeat a pair
        self._truth_words, self._has_threshold = "", False  # see `CountedPairs`

    @property
    def n_users(self) -> int:
        """The number of users in the batches."""
        return self._n_users

    @property
    def names_users(self) -> bool | None:
        """Whether users have ids, or None before the first batch."""
        return bool(len(self._users)) if self._n_users else None

    def came(self, user_ids: Array) -> Bool:
        """Return a mask of the users who were in earlier batches: bool [n]."""
        return self._users.contain(user_ids)

    def add(self, batch: Pairs, request: Request) -> None:
        """Rank a batch of candidates of new users, whose labels are the test data of `request`."""
        test = request.test
        self._check_ids(test)
        if test.item_ids is not None and self._items is None:
            self._items = ItemCodes()
        ratings = batch.ratings(request) if self._reads_ratings else None
        if ratings is not None:
            self._rated.add(dataclasses.replace(ratings, ranks=self._of_codes(ratings.ranks)))
        if ratings is None or self._reads_ranks:
            self._ranked.add(self._of_codes(batch.rank(request)))
        self._n_repeated += batch.n_repeated
        if test.user_ids is not None:
            self._users.add(test.user_ids)
        if test.values is not None:
            self._largest = max(self._largest, float(test.values.max(initial=0)))
        self._n_users += test.n_users
        self._truth_words = batch.truth_in_words
        self._has_threshold = batch.facts.threshold

    def _check_ids(self, test: Interactions) -> None:
        """Refuse a batch that has user or item ids if earlier batches had none, or vice versa."""
        if not self._n_users:
            return
        for what, before, now in (
            ("users", self.names_users, test.user_ids is not None),
            ("items", self._items is not None, test.item_ids is not None),
        ):
            if before is not now:
                raise InputError(
                    f"Some batches name their {what}, and others do not. Hint: all of them do, or "
                    "none."
                )

    def _of_codes(self, ranks: Ranks) -> Ranks:
        """Return ranks whose items are `ItemCodes`; all are 0 if each row is a separate item."""
        if self._items is None:
            return dataclasses.replace(ranks, item=np.zeros_like(ranks.item))
        return _renumbered(ranks, self._items.add(ranks.item_ids), None)

    def source(self) -> CountedPairs:
        """Return the candidates of all batches, with users sorted by id if they have ids."""
        if not self._n_users:
            raise InputError(
                "No batch was added yet, so there is nothing to measure. Hint: "
                "stream.update(scores, relevance)."
            )
        order, user_ids = np.arange(self._n_users), None
        if self.names_users:
            order = np.argsort(self._users.ids, kind="stable")
            user_ids = self._users.ids[order]
        codes = item_ids = None
        if self._items is not None:
            codes, item_ids = self._items.sorted_with([])

        def finished(ranks: Ranks) -> Ranks:
            if codes is None:
                return dataclasses.replace(ranks, item=np.arange(len(ranks.item)))
            return _renumbered(ranks, codes, item_ids)

        ratings = None
        if self._rated:
            ratings = self._rated.merged().users(order)
            ranks = finished(ratings.ranks)
            ratings = dataclasses.replace(ratings, ranks=ranks, repeats=self._n_repeated > 0)
        if self._ranked:
            ranks = finished(self._ranked.merged().users(order))
        if self._largest > ranks.gain.max(initial=0):
            raise InputError(
                f"The largest truth, {self._largest:g}, is that of rows that are in train. Hint: "
                "leave the rows of train out of the batches."
            )
        words, has_threshold = self._truth_words, self._has_threshold
        return CountedPairs(ranks, ratings, user_ids, words, has_threshold, self._n_repeated)

    def state(self) -> dict[str, Any]:
        """Return the counts as arrays and numbers."""
        return {
            "ranked": self._ranked.state(),
            "rated": self._rated.state(),
            "users": self._users.ids if self.names_users else self._n_users,
            "items": None if self._items is None else self._items.ids,
            "largest": self._largest,
            "words": (self._truth_words, self._has_threshold),
            "repeated": self._n_repeated,
        }

    def in_both(self, state: Mapping[str, Any]) -> Array:
        """Return the ids of users that another stream also has."""
        users = state["users"]
        if self._n_users and (isinstance(users, int) == self.names_users):
            raise InputError("The users of one stream have ids, those of the other have none.")
        return np.zeros(0, np.int64) if isinstance(users, int) else users[self.came(users)]

    def merge(self, state: Mapping[str, Any]) -> None:
        """Add the state of another stream; users in both streams keep the counts of this one."""
        users = state["users"]
        if isinstance(users, int):
            new = np.arange(users)
        else:
            new = np.flatnonzero(~self.came(users))
            self._users.add(users[new])
        codes = None
        if state["items"] is not None:
            self._items = self._items or ItemCodes()
            codes = self._items.add(state["items"])
        ranks = self._ranked.of_state(state["ranked"])
        if ranks is not None:
            self._ranked.add(_renumbered(ranks.users(new), codes, None))
        ratings = self._rated.of_state(state["rated"])
        if ratings is not None:
            ratings = ratings.users(new)
            ranks = _renumbered(ratings.ranks, codes, None)
            self._rated.add(dataclasses.replace(ratings, ranks=ranks))
        self._n_users += len(new)
        self._largest = max(self._largest, state["largest"])
        self._truth_words, self._has_threshold = state["words"]
        self._n_repeated += state["repeated"]

    @property
    def nbytes(self) -> int:
        """The memory of the counts, in bytes."""
        return self._ranked.nbytes + self._rated.nbytes + self._users.nbytes


def _renumbered(ranks: Ranks, numbers: Int64 | None, item_ids: Array | None) -> Ranks:
    """Renumber the items of ranks and set their ids; return them unchanged without `numbers`."""
    if numbers is None:
        return ranks
    return dataclasses.replace(ranks, item=numbers[ranks.item], item_ids=item_ids)


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class CountedPairs(Source):
    """Candidates with known ranks, and their labels.

    `truth_words` is the part of the description about the labels. `has_threshold` says whether a
    threshold decides what is relevant, and `n_repeated` is the number of rows that repeat a pair.
    """

    ranks: Ranks
    rated: Ratings | None
    user_ids: Array | None
    truth_words: str
    has_threshold: bool
    n_repeated: int

    def describe(self) -> str:
        """Return one line that describes what is evaluated."""
        ranks = self.ranks
        n_rows = len(ranks.item) + ranks.n_excluded.sum()  # rows in train are not judged
        return f"Pairs, streamed: {n_rows:,} rows, {ranks.n_users:,} users{self.truth_words}"

    @cached_property
    def facts(self) -> Facts:
        """The counts, and the labels."""
        names = ("indptr", "above", "tied", "before", "gain", "relevant")
        return Facts(
            {"user_ids": self.user_ids, **{name: getattr(self.ranks, name) for name in names}},
            truth=self._truth(),
            repeats_items=self.n_repeated > 0,
            unread=UNREAD | UNREAD_WITH_TRUTH,
            threshold=self.has_threshold,
            sized=False,
        )

    def _truth(self) -> Interactions:
        """Return the label of each pair, or the highest label if rows repeat the pair."""
        ranks = self.ranks
        order, item = np.arange(len(ranks.item)), ranks.item
        if ranks.item_ids is not None:
            key = ragged.numbered(ranks.indptr, item, len(ranks.item_ids))
            order = np.lexsort((-ranks.gain, key))
            order = order[begins(key[order])]
        return Interactions(
            indptr=ragged.indptr_of(np.bincount(ranks.user[order], minlength=ranks.n_users)),
            items=item[order].astype(np.int32),
            n_items=len(item) if ranks.item_ids is None else len(ranks.item_ids),
            values=ranks.gain[order],
            user_ids=self.user_ids,
            item_ids=ranks.item_ids,
            duplicates=self.n_repeated,
        )

    def rank(self, request: Request) -> Ranks:
        """Return the rank of each row; see `Ranks`."""
        return self.ranks

    def ratings(self, request: Request) -> Ratings | None:
        """Return predicted and true ratings, or None if there are no ratings."""
        return self.rated


AnyRecord = TypeVar("AnyRecord", bound=Record)
# An array in packed form: its numbers (only one number if all are equal), its shape and its dtype.
# These are plain types, so that a pickled state does not refer to classes of recometer.
Packed = tuple[Array, tuple[int, ...], str]
NESTED = {"ranks": Ranks}  # classes of records inside a record, keyed by field name
# Records are packed when they have this many users, or when this many records have arrived.
USERS_AT_ONCE = 2**12
RECORDS_AT_ONCE = 64


def pack(array: Array) -> Packed:
    """Pack an array without loss; arrays of objects are not changed."""
    if array.dtype == object or not array.size:
        return array, array.shape, array.dtype.str
    # Bits are compared, so that NaN equals NaN, and 0.0 differs from -0.0.
    bits = np.ascontiguousarray(array).view(f"u{array.dtype.itemsize}")
    constant = bool((bits == bits.flat[0]).all())
    return array.ravel()[:1].copy() if constant else _narrow(array), array.shape, array.dtype.str


def unpack(packed: Packed) -> Array:
    """Return the array that was packed."""
    numbers, shape, dtype = packed
    if numbers.size != math.prod(shape):
        return np.full(shape, numbers[0], dtype)
    return numbers.astype(dtype, copy=False)


def _narrow(array: Array) -> Array:
    """Return a copy in the narrowest dtype that represents all numbers exactly."""
    if array.dtype.kind in "iu":
        least, most = np.min_scalar_type(int(array.min())), np.min_scalar_type(int(array.max()))
        return array.astype(np.promote_types(least, most))
    if array.dtype == np.float64:
        if (np.abs(array) < 2**15).all() and (array == np.rint(array)).all():
            whole = array.astype(np.int16)
            if not (np.signbit(array) & (array == 0)).any():
                return _narrow(whole)
        single = array.astype(np.float32)
        if np.array_equal(single, array):
            return single
    return array.copy()


def _pack_fields(record: Record) -> dict[str, Any]:
    packed: dict[str, Any] = {}
    for field in dataclasses.fields(record):  # type: ignore[arg-type]
        value = getattr(record, field.name)
        if not field.init or field.metadata.get("per") == "nothing":
            continue
        if isinstance(value, Record):
            value = _pack_fields(value)
        packed[field.name] = pack(value) if isinstance(value, np.ndarray) else value
    return packed


def _unpack_fields(cls: type[AnyRecord], packed: Mapping[str, Any]) -> AnyRecord:
    values = {}
    for name, value in packed.items():
        if isinstance(value, tuple):
            value = unpack(value)
        values[name] = _unpack_fields(NESTED[name], value) if name in NESTED else value
    return cls(**values)


def _packed_arrays(packed: Mapping[str, Any]) -> Iterator[Array]:
    for value in packed.values():
        if isinstance(value, tuple):
            yield value[0]
        elif isinstance(value, dict):
            yield from _packed_arrays(value)


class Buffer(Generic[AnyRecord]):
    """Packed records of a class, in the order in which their users arrived.

    Parts of similar sizes are merged on arrival, so that many small batches take no more memory
    than a few large ones. The time for merging grows little faster than the number of batches.
    """

    def __init__(self, cls: type[AnyRecord]) -> None:
        self._class = cls
        self._parts: list[tuple[int, dict[str, Any]]] = []  # n_users and packed fields
        self._latest: list[AnyRecord] = []  # not yet packed
        self._n_latest = 0

    def add(self, record: AnyRecord) -> None:
        """Add a record after the earlier ones."""
        # Leave the new record unpacked, because it may be read next.
        if self._n_latest >= USERS_AT_ONCE or len(self._latest) >= RECORDS_AT_ONCE:
            self._pack_latest()
        self._latest.append(record)
        self._n_latest += record.n_users

    def _pack_latest(self) -> None:
        if not self._latest:
            return
        self._parts.append(self._pack(self._latest))
        self._latest, self._n_latest = [], 0
        while len(self._parts) > 1 and 2 * self._parts[-1][0] >= self._parts[-2][0]:
            pair = [_unpack_fields(self._class, fields) for _, fields in self._parts[-2:]]
            self._parts[-2:] = [self._pack(pair)]

    def _pack(self, records: list[AnyRecord]) -> tuple[int, dict[str, Any]]:
        merged = self._merge(records)
        return merged.n_users, _pack_fields(merged)

    def _merge(self, records: list[AnyRecord]) -> AnyRecord:
        if self._class is Ranks:
            records = with_equal_columns(records)  # type: ignore[arg-type, assignment]
        return self._class.concat(records)

    def merged(self, *more: AnyRecord) -> AnyRecord:
        """Return all records, followed by `more`, as one record."""
        parts = [_unpack_fields(self._class, fields) for _, fields in self._parts]
        return self._merge([*parts, *self._latest, *more])

    def __bool__(self) -> bool:
        return bool(self._latest or self._parts)

    @property
    def nbytes(self) -> int:
        """The memory of the packed arrays, in bytes."""
        self._pack_latest()
        return sum(array.nbytes for _, part in self._parts for array in _packed_arrays(part))

    def state(self) -> list[tuple[int, dict[str, Any]]]:
        """Return all records as plain types, for `of_state`."""
        self._pack_latest()
        return list(self._parts)

    def of_state(self, state: list[tuple[int, dict[str, Any]]]) -> AnyRecord | None:
        """Return the records in the state of another buffer; None if there are none."""
        return (
            self._merge([_unpack_fields(self._class, part) for _, part in state]) if state else None
        )


def with_equal_columns(parts: list[Ranks]) -> list[Ranks]:
    """Give every part the optional columns that any of the parts has."""
    by_rank = any(part.by_rank for part in parts)
    defaults = {"repeated": False, "score": np.nan}
    wanted = [name for name in defaults if any(getattr(part, name) is not None for part in parts)]

    def completed(part: Ranks) -> Ranks:
        changes: dict[str, Any] = {
            name: np.full(len(part.item), defaults[name])
            for name in wanted
            if getattr(part, name) is None
        }
        same = not changes and part.by_rank == by_rank
        return part if same else dataclasses.replace(part, by_rank=by_rank, **changes)

    return [completed(part) for part in parts]


class ItemCodes:
    """Codes of item ids, in the order of first occurrence."""

    def __init__(self) -> None:
        self._codes: dict[Any, int] = {}

    def add(self, item_ids: object) -> Int64:
        """Return the code of each id; a new id gets the next code."""
        values = ids.as_ids(item_ids, "item ids").tolist()
        codes = self._codes
        return np.fromiter((codes.setdefault(v, len(codes)) for v in values), np.int64, len(values))

    @property
    def ids(self) -> list[Any]:
        """The id of each code."""
        return list(self._codes)

    def sorted_with(self, item_ids: list[Any]) -> tuple[Int64, Array]:
        """Return each code's place among all sorted ids (including `item_ids`), and these ids."""
        sorted_ids = ids.encode([*self.ids, *item_ids], "item ids")[1]
        return ids.match(self.ids, sorted_ids, "item ids"), sorted_ids


class UserIds:
    """Distinct ids of users in the order of arrival, with fast lookup."""

    def __init__(self) -> None:
        self._parts: list[Array] = []  # in the order of arrival
        self._sorted: list[Array] = []

    def add(self, user_ids: Array) -> None:
        """Add ids from `ids.as_ids`; none of them may have been added before."""
        self._parts.append(user_ids)
        self._sorted.append(np.sort(user_ids))
        while len(self._sorted) > 1 and 2 * len(self._sorted[-1]) >= len(self._sorted[-2]):
            merged = np.concatenate([self._sorted.pop(), self._sorted.pop()])
            self._sorted.append(np.sort(merged, kind="stable"))
        if len(self._parts) > 2 * len(self._sorted) + 64:
            self._parts = [self.ids]

    def contain(self, user_ids: Array) -> Bool:
        """Return a mask of the ids that were added: bool [n]."""
        is_here = np.zeros(len(user_ids), bool)
        for part in self._sorted:
            if len(user_ids) and ids.kind(part) != ids.kind(user_ids):
                raise InputTypeError(
                    f"The users of this batch are of type {ids.kind(user_ids)}, but those of "
                    f"batches before are of type {ids.kind(part)}. Hint: convert one of them."
                )
            places = np.minimum(np.searchsorted(part, user_ids), len(part) - 1)
            is_here |= part[places] == user_ids
        return is_here

    @property
    def ids(self) -> Array:
        """All ids in the order of arrival; there must be at least one."""
        return np.concatenate(self._parts)

    def __len__(self) -> int:
        return sum(map(len, self._parts))

    @property
    def nbytes(self) -> int:
        """The memory of the ids, in bytes."""
        return sum(part.nbytes for part in (*self._parts, *self._sorted))

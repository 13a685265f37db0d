"""Model output that arrives in batches: scores, lists, or candidates with labels.

Scores are counted as they arrive, and not kept. Lists and candidates are kept, and ranked when the
result is requested. The result does not depend on the order or size of the batches.
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

from recometer import _kernel, ragged
from recometer._kernel import TieOrder
from recometer.arrays import Array, Bool, Int64
from recometer.data import ids
from recometer.data.interactions import Interactions
from recometer.data.matching import SourceIndex
from recometer.errors import InputError, InputTypeError
from recometer.ranks import Ranks, TopLists, UserFlag
from recometer.sources import _top_lists, _torch
from recometer.sources._list_table import ListTable, encode_all, join_tables
from recometer.sources._score_batches import Batches, RankWork, TopWork
from recometer.sources._top_lists import Rule
from recometer.sources.alignment import Aligned, align
from recometer.sources.base import Facts, Request, Source
from recometer.sources.lists import Lists
from recometer.sources.pairs import PairRows, Pairs, Truth, sorted_rows
from recometer.sources.scores import MATRIX_BYTES, Scores

Work = RankWork | TopWork
NO_BATCH = "are in no batch of the stream"  # how messages describe users in no batch
PER_ROW = ("above", "tied", "before", "score")  # fields of `RankWork` with an entry per row
ENTRIES_AT_ONCE = 2**18  # number of places for which `ListsOfPositions` reserves memory
OF_POSITIONS = (None, False, False, None)  # `StreamedLists._kind` for plain arrays of positions


class _TestUserStream:
    """Batches of model output for the users of a test set."""

    def __init__(self, test: Interactions) -> None:
        self._test = test
        self.in_batches: Bool = np.zeros(test.n_users, bool)  # the users in the batches

    @property
    def n_users(self) -> int:
        """The number of test users in the batches."""
        return int(np.count_nonzero(self.in_batches))

    @property
    def _user_ids(self) -> Array:
        """The ids of the test users, or their positions."""
        test = self._test
        return np.arange(test.n_users) if test.user_ids is None else test.user_ids

    def in_both(self, state: Mapping[str, Any]) -> Array:
        """Return the ids (or positions) of users who are also in the state of another stream."""
        users = state["users"]
        both: Array = self._user_ids[users[self.in_batches[users]]]
        return both


class StreamedScores(_TestUserStream, Source):
    """Scores of all items, counted directly into the arrays of all test users.

    Test and train are matched with the items of the stream only once. `rank` and `top` accept only
    this `request`. Call `rank` only if `ranked` is true, and `top` only with this `k`.
    """

    def __init__(self, index: SourceIndex, request: Request, ranked: bool, k: int | None) -> None:
        super().__init__(request.test)
        request = self._request = dataclasses.replace(request, progress=False)
        self._untested_users: list[Array] = []  # ids of users who are not in test
        self._index, self._aligned = index, align(index, request)
        self._kind = ""  # dtype of the scores, for `describe`
        self._ranked: dict[int | None, RankWork] = {}
        self._listed: dict[TieOrder, TopWork] = {}
        if k is not None:
            rules = _top_lists.rules(request)
            for rule in rules:
                aligned = rule.apply_to(self._aligned).copy_with()
                self._listed[rule.order] = TopWork(aligned, request, k, rule)
            if len(rules) > 1:
                self._add_ranked(k)
        if ranked:
            self._add_ranked(request.depth)

    def source(self) -> StreamedScores:
        """Return the counts as a source for `evaluate`."""
        return self

    def add_untested_users(self, user_ids: Array) -> None:
        """Add the ids (from `ids.as_ids`) of users in a batch who are not in test."""
        if len(user_ids):
            self._untested_users.append(user_ids)
            if len(self._untested_users) > PARTS_AT_ONCE:
                self._untested_users = [encode_all(self._untested_users, "user ids")[1]]

    def _ids_in_batches(self) -> Array | None:
        """Return the sorted ids of all users in the batches; None if users have no ids."""
        if self._test.user_ids is None:
            return None
        return encode_all([self._user_ids[self.in_batches], *self._untested_users], "user ids")[1]

    def _add_ranked(self, depth: int | None) -> None:
        request = dataclasses.replace(self._request, depth=depth)
        self._ranked[depth] = RankWork(self._aligned.copy_with(), request)

    @property
    def _works(self) -> list[Work]:
        return [*self._ranked.values(), *self._listed.values()]

    def add(self, batch: Scores, rows: Int64, users: Int64) -> None:
        """Count the given rows of a batch, which are the scores of the given test users."""
        index, own = batch.index, self._index
        if index.item_ids is not None and (
            own.item_ids is None or not np.array_equal(index.item_ids, own.item_ids)
        ):
            raise InputError(
                "The item_ids of this batch differ from those of the stream or of earlier batches. "
                "Hint: all batches must have the same columns."
            )
        if index.n_items != own.n_items:
            raise InputError(
                f"This batch has scores of {index.n_items:,} items, but earlier batches had "
                f"{own.n_items:,}. Hint: every batch needs a column for every item."
            )
        request, size = self._request, MATRIX_BYTES
        if batch.on_device:
            request, size = dataclasses.replace(request, threads=1), _torch.BLOCK_BYTES
        batches = Batches(
            lambda at: batch.batch(rows[at]),
            request,
            n_columns=index.n_items,
            bytes_per_batch=size,
            ahead=False,
        )

        def counting(work: Work) -> Callable[[Int64, Any], None]:
            return lambda at, scores: work.count(users[at], scores)

        for work in self._works:
            batches.for_each(np.arange(len(users)), counting(work), "Counting")
        self.in_batches[users] = True
        self._kind = batch.kind

    def rank(self, request: Request) -> Ranks:
        """Return the rank of each judged item of the users in the batches; see `Ranks`."""
        work = copy.copy(self._ranked[request.depth])
        # Copy, because `ranks` overwrites counts beyond the depth, and more batches may arrive.
        for name in ("above", "tied", "before"):
            setattr(work, name, getattr(work, name).copy())
        work.aligned = self._limit_to_batches(work.aligned)
        return work.ranks(request.threads)

    def top(self, request: Request, k: int) -> TopLists:
        """Return the first k places of each ranking in the batches; see `TopLists`."""
        return _top_lists.lists(self, request, k, self._best)

    def _best(self, request: Request, k: int, rule: Rule) -> TopLists:
        work = self._listed[rule.order]
        aligned = self._limit_to_batches(work.aligned)
        return _top_lists.make_lists(aligned, work.best, k, n_catalogue=aligned.n_items)

    def _limit_to_batches(self, aligned: Aligned) -> Aligned:
        """Return a copy in which only the users in the batches are known."""
        in_batches, test = self.in_batches, self._test
        if in_batches.all():
            return aligned.copy_with()
        if test.user_ids is not None:
            user_ids = test.user_ids[in_batches]
            index = dataclasses.replace(self._index, n_users=len(user_ids), user_ids=user_ids)
            narrow = align(index, self._request)
            rows, counts, n_in_sets = narrow.rows, narrow.counts, narrow.n_in_sets
        else:
            counts = aligned.counts | {"users_unknown": int(np.count_nonzero(~in_batches))}
            rows, n_in_sets = np.where(in_batches, aligned.rows, -1), aligned.n_in_sets
        narrowed = aligned.copy_with(rows=rows, counts=counts, n_in_sets=n_in_sets)
        narrowed.flags[~in_batches] &= ~np.uint32(UserFlag.KNOWN)
        return narrowed

    @property
    def index_of_items(self) -> tuple[int, Array | None]:
        """The number of items, and their ids."""
        return self._index.n_items, self._index.item_ids

    def state(self) -> dict[str, Any]:
        """Return the counts as arrays and numbers."""
        counted = [
            {
                name: array[_entries(work, name, self.in_batches)]
                for name, array in _count_arrays(work).items()
            }
            for work in self._works
        ]
        users = np.flatnonzero(self.in_batches)
        strangers = self._untested_users
        return {"users": users, "strangers": strangers, "kind": self._kind, "counted": counted}

    def merge(self, state: Mapping[str, Any], check: object = None) -> None:
        """Add the state of another stream; users in both streams keep the counts of this one."""
        users = state["users"]
        is_new, new_users = ~self.in_batches[users], np.zeros(len(self.in_batches), bool)
        new_users[users[is_new]] = True
        for work, counted in zip(self._works, state["counted"], strict=True):
            lengths = np.diff(work.aligned.judged_indptr)[users]
            for name, column in _count_arrays(work).items():
                chosen = np.repeat(is_new, lengths) if name in PER_ROW else is_new
                column[_entries(work, name, new_users)] = counted[name][chosen]
        self._kind = state["kind"] or self._kind
        self.in_batches[users] = True
        for user_ids in state["strangers"]:
            self.add_untested_users(user_ids)

    @property
    def nbytes(self) -> int:
        """The size of the counts in bytes."""
        arrays = [array.nbytes for work in self._works for array in _count_arrays(work).values()]
        return int(sum(arrays)) + self.in_batches.nbytes

    def describe(self) -> str:
        """Return one line that describes what is evaluated."""
        return (
            f"Scores, streamed: {self.n_users:,} users x {self._index.n_items:,} items{self._kind}"
        )

    @property
    def facts(self) -> Facts:
        """The facts about the source, for the batches so far."""
        counted = {
            f"counted_{number}_{name}": column
            for number, work in enumerate(self._works)
            for name, column in _count_arrays(work).items()
        }
        item_ids = self._index.item_ids
        return Facts(
            {"users": np.flatnonzero(self.in_batches), **counted, "item_ids": item_ids},
            known=lambda kind: item_ids if kind == "item" else self._ids_in_batches(),
            sized=False,
            of_unknown=NO_BATCH,
        )


def _count_arrays(work: Work) -> dict[str, Any]:
    """Return the arrays that counting writes to, with an entry per user or judged item."""
    arrays: dict[str, Any] = {"flags": work.aligned.flags}
    if isinstance(work, TopWork):
        arrays |= {"items": work.best.items, "left": work.best.n_cut}
    else:
        names = ("above", "tied", "before", "no_candidates", "score")
        arrays |= {name: getattr(work, name) for name in names}
    return {name: array for name, array in arrays.items() if array is not None}


def _entries(work: Work, name: str, users: Bool) -> Bool:
    """Return the entries of an array from `_count_arrays` that belong to the given users."""
    return np.repeat(users, np.diff(work.aligned.judged_indptr)) if name in PER_ROW else users


class ListsOfPositions:
    """Up to `max_lists` lists of item positions, of equal length, each for a different test user.

    `add` marks the users of its batch in `in_batches`.
    """

    def __init__(self, max_lists: int, length: int, n_items: int, in_batches: Bool) -> None:
        self._items = np.empty((max_lists, length), np.int32)
        self._places = np.empty(max_lists, np.int64)
        self._n_items, self._in_batches = n_items, in_batches
        self.n_lists = 0

    def add(self, items: Array, places: Int64) -> bool:
        """Add a batch if there is room for it and it is valid; return whether it was added."""
        out = self.n_lists, self._items, self._places
        try:
            fits: bool = _kernel.take_lists(items, self._n_items, places, self._in_batches, *out)
        except TypeError:  # types or dimensions that the kernel does not accept
            return False
        if fits:
            self.n_lists += len(items)
        return fits

    def has_room(self, n: int, length: int) -> bool:
        """Return whether a batch of n lists fits."""
        return length == self._items.shape[1] and self.n_lists + n <= len(self._items)

    def table(self, user_ids: Array) -> ListTable:
        """Return the lists; `user_ids` are the ids of all test users."""
        items = self._items[: self.n_lists]
        n, k = items.shape
        indptr = np.arange(0, n * k + 1, k, dtype=np.int64)
        users = user_ids[self._places[:n]]
        return ListTable(indptr, items.ravel(), self._n_items, None, users, None, padded=True)


class StreamedLists(_TestUserStream):
    """The lists of all batches, which are ranked together."""

    def __init__(self, test: Interactions) -> None:
        super().__init__(test)
        self._tables = Parts(join_tables)
        self._kind: tuple[object, ...] | None = None  # of the first batch
        self._depth: int | None = None
        self._n_items = 0  # larger than every item position in the batches
        # The lists that `take_indices` has added since the last call to `source`.
        self.positions: ListsOfPositions | None = None

    def add(self, batch: Lists, places: Int64, check: Callable[[Any], None]) -> None:
        """Add lists for users whose positions in test are `places` (-1 for users not in test).

        Lists for users who already have a list are ignored. `check` matches lists with test, and
        raises any errors; it is called unless earlier batches show that there are none.
        """
        table = batch.table
        ids_of_items = None if table.item_ids is None else ids.kind(table.item_ids)
        kind = (ids_of_items, table.given is not None, table.generated, batch.depth)
        if table.user_ids is None:
            table = dataclasses.replace(table, user_ids=np.arange(table.n_lists))
        largest = table.n_items if table.item_ids is None else 0
        if self._kind is None or largest > self._n_items:
            check(self._as_lists(join_tables([table]), batch.depth))
        if self._kind not in (None, kind):
            raise InputError(
                "The lists of this batch differ from earlier ones: either only some have scores, "
                "or the type of their item ids or depth= differs. Hint: use a separate stream for "
                "each."
            )
        self._kind, self._depth = kind, batch.depth
        self._n_items = max(largest, self._n_items, self._test.n_items)
        matrix = table.padded and len(places) == table.n_lists
        if matrix and self.take_indices(table.items.reshape(len(places), -1), places):
            return
        self._close_positions()  # a user's first list counts, so keep the order of arrival
        self._tables.add(table)
        self.in_batches[places[places >= 0]] = True

    def take_indices(self, items: Array, places: Int64) -> bool:
        """Add lists of item positions, if they need no further check or conversion.

        `items` are int64 or int32 [n, k], padded with -1, and `places` are the users' positions in
        test. Returns whether they were added; if not, `add` adds them or raises an error.
        """
        if self._kind != OF_POSITIONS or not items.size:
            return False
        n, length = items.shape
        if self.positions is None or not self.positions.has_room(n, length):
            self._close_positions()
            max_lists = min(max(n, ENTRIES_AT_ONCE // (length + 1)), len(self.in_batches))
            self.positions = ListsOfPositions(max_lists, length, self._n_items, self.in_batches)
        return self.positions.add(items, places)

    def _close_positions(self) -> None:
        """Move the lists of `positions` to the tables."""
        if self.positions is not None and self.positions.n_lists:
            self._tables.add(self.positions.table(self._user_ids))
        self.positions = None

    def _joined_table(self) -> ListTable:
        self._close_positions()
        return self._tables.join_all()

    def _as_lists(self, table: ListTable, depth: int | None) -> Lists:
        """Return lists with user ids, or, if test has no ids, with one list per test user."""
        if self._test.user_ids is None:
            lengths = np.zeros(self._test.n_users, np.int64)
            lengths[table.user_ids] = np.diff(table.indptr)
            table = dataclasses.replace(table, indptr=ragged.indptr_of(lengths), user_ids=None)
        return Lists.of_table(table, depth)

    def source(self) -> Lists:
        """Return the lists of all batches, sorted by user."""
        return self._as_lists(self._joined_table(), self._depth)

    def state(self) -> dict[str, Any]:
        """Return the lists as arrays and numbers."""
        users = np.flatnonzero(self.in_batches)
        return {"users": users, "table": vars(self._joined_table()), "depth": self._depth}

    def merge(self, state: Mapping[str, Any], check: Callable[[Any], None]) -> None:
        """Add the state of another stream; users in both streams keep the lists of this one."""
        self.add(Lists.of_table(ListTable(**state["table"]), state["depth"]), state["users"], check)

    @property
    def nbytes(self) -> int:
        """The size of the lists in bytes."""
        columns = vars(self._joined_table()).values()
        arrays = [column for column in columns if isinstance(column, np.ndarray)]
        return sum(array.nbytes for array in arrays) + self.in_batches.nbytes


class PackedPairs(NamedTuple):
    """Rows of `Pairs`, grouped by user, in dtypes that take little memory."""

    lengths: Array  # number of rows of each user
    item: Array  # positions among `item_ids`; empty without ids
    score: Array
    truth: Array
    user_ids: Array | None
    item_ids: Array | None  # an id may occur several times
    n_without_truth: int

    @classmethod
    def of(cls, rows: PairRows, with_ids: bool) -> PackedPairs:
        """Pack rows with labels; `with_ids` says whether to keep the user ids."""
        assert rows.truth is not None
        return cls(
            _narrow(np.bincount(rows.user, minlength=rows.n_users)),
            _narrow(rows.item[: 0 if rows.item_ids is None else None]),
            _narrow(rows.score),
            _narrow(rows.truth),
            rows.user_ids if with_ids else None,
            rows.item_ids,
            rows.n_without_truth,
        )

    @classmethod
    def concat(cls, parts: Sequence[PackedPairs]) -> PackedPairs:
        """Concatenate the rows of different users."""
        items, n_items = [], 0
        for part in parts:
            items.append(part.item.astype(np.int64) + n_items)
            n_items += 0 if part.item_ids is None else len(part.item_ids)
        columns = {name: [getattr(part, name) for part in parts] for name in cls._fields[:-1]}
        columns["item"] = items
        merged: dict[str, Any] = {
            name: None if arrays[0] is None else _narrow(np.concatenate(arrays))
            for name, arrays in columns.items()
        }
        return cls(**merged, n_without_truth=sum(part.n_without_truth for part in parts))

    def rows(self, kind: Truth) -> PairRows:
        """Return the rows, sorted by user; users without ids stay in the order of arrival."""
        n_users = len(self.lengths)
        user: Int64 = np.arange(n_users).repeat(self.lengths)
        user_ids = None
        if self.user_ids is not None:
            codes, user_ids = ids.encode(self.user_ids, "user ids")
            user = codes[user]
        items = None
        if self.item_ids is not None:
            places, item_ids = ids.encode(self.item_ids, "item ids")
            items = places[self.item], item_ids
        score, truth = self.score.astype(np.float64), self.truth.astype(np.float64)
        rows = sorted_rows((user, user_ids), items, score, truth, kind)
        return dataclasses.replace(rows, n_users=n_users, n_without_truth=self.n_without_truth)


class StreamedPairs:
    """Scored candidates with labels; all candidates of a user are in the same batch."""

    def __init__(self) -> None:
        self._parts = Parts(PackedPairs.concat)
        self._sorted_ids: list[Array] = []  # of users, in several arrays
        self._kind: tuple[Truth, float | None, bool, bool] | None = None  # see `add`
        self.n_users = 0

    def in_earlier(self, user_ids: Array) -> Bool:
        """Return a mask of the users who were in earlier batches, as bool [n]."""
        is_here = np.zeros(len(user_ids), bool)
        for part in self._sorted_ids:
            if len(user_ids) and ids.kind(part) != ids.kind(user_ids):
                raise InputTypeError(
                    f"The users of this batch are of type {ids.kind(user_ids)}, but those of "
                    f"earlier batches are of type {ids.kind(part)}. Hint: convert one of them."
                )
            places = np.minimum(np.searchsorted(part, user_ids), len(part) - 1)
            is_here |= part[places] == user_ids
        return is_here

    def check(self, batch: Pairs, with_ids: bool, check: Callable[[Any], None]) -> None:
        """Raise an error if a batch is not usable; the first batch is passed to `check`."""
        rows = batch.rows
        if self._kind is None:
            check(batch)
            return
        kind, threshold, users_with_ids, items_with_ids = self._kind
        for noun, before, now in (
            ("users", users_with_ids, with_ids),
            ("items", items_with_ids, rows.item_ids is not None),
        ):
            if before is not now:
                raise InputError(
                    f"Some batches name their {noun}, but others do not. Hint: name them in all "
                    "batches or in none."
                )
        if (kind, threshold) != (rows.kind, batch.threshold):
            raise InputError(
                "This batch has a different kind of label, or a different threshold=, from earlier "
                "batches. Hint: use a separate stream for each."
            )

    def add(self, batch: Pairs, with_ids: bool) -> None:
        """Add candidates of new users that `check` has accepted."""
        rows = batch.rows
        assert rows.kind is not None
        self._kind = rows.kind, batch.threshold, with_ids, rows.item_ids is not None
        self._add(PackedPairs.of(rows, with_ids))

    def _add(self, part: PackedPairs) -> None:
        self._parts.add(part)
        self.n_users += len(part.lengths)
        if part.user_ids is not None:
            arrays = [*self._sorted_ids, np.sort(part.user_ids)]
            while len(arrays) > 1 and 2 * len(arrays[-1]) >= len(arrays[-2]):
                arrays.append(np.sort(np.concatenate([arrays.pop(), arrays.pop()]), kind="stable"))
            self._sorted_ids = arrays

    def source(self) -> Pairs:
        """Return the candidates of all batches, with users sorted by id if they have ids."""
        assert self._kind is not None
        return Pairs.of_rows(self._parts.join_all().rows(self._kind[0]), self._kind[1])

    def state(self) -> dict[str, Any]:
        """Return the candidates as arrays and numbers."""
        return {"kind": self._kind, "part": self._parts.join_all()._asdict()}

    def in_both(self, state: Mapping[str, Any]) -> Array:
        """Return the ids of users who are also in the state of another stream."""
        users = state["part"]["user_ids"]
        if self._kind is not None and (users is None) is self._kind[2]:
            raise InputError("The users of one stream have ids, but those of the other have none.")
        return np.zeros(0, np.int64) if users is None else users[self.in_earlier(users)]

    def merge(self, state: Mapping[str, Any], check: Callable[[Any], None]) -> None:
        """Add the state of another stream; users in both streams keep the rows of this one."""
        kind, threshold, with_ids, _ = state["kind"]
        other = Pairs.of_rows(PackedPairs(**state["part"]).rows(kind), threshold)
        self.check(other, with_ids, check)
        if other.rows.user_ids is not None:
            other = other.of_users(~self.in_earlier(other.rows.user_ids))
        self.add(other, with_ids)

    @property
    def nbytes(self) -> int:
        """The size of the candidates in bytes."""
        arrays = [*self._parts.join_all(), *self._sorted_ids]
        return sum(array.nbytes for array in arrays if isinstance(array, np.ndarray))


def _narrow(array: Array) -> Array:
    """Return a copy in the narrowest dtype that represents all numbers exactly."""
    if array.dtype.kind in "iu" and len(array):
        low, high = np.min_scalar_type(int(array.min())), np.min_scalar_type(int(array.max()))
        return array.astype(np.promote_types(low, high))
    if array.dtype == np.float64:
        if (np.abs(array) < 2**15).all() and (array == np.rint(array)).all():
            integers = array.astype(np.int16)
            if not (np.signbit(array) & (array == 0)).any():
                return _narrow(integers)
        single = array.astype(np.float32)
        if np.array_equal(single, array):
            return single
    return array.copy()


T = TypeVar("T")
PARTS_AT_ONCE = 64


class Parts(Generic[T]):
    """Parts that arrive one by one and are joined by `join` in groups of `PARTS_AT_ONCE`.

    Many small parts therefore take no more memory than one large part.
    """

    def __init__(self, join: Callable[[Sequence[T]], T]) -> None:
        self._join = join
        self._parts: list[tuple[int, T]] = []  # the number of joins so far, and the part

    def add(self, part: T) -> None:
        """Append a part."""
        self._parts.append((0, part))
        while len({n for n, _ in self._parts[-PARTS_AT_ONCE:]}) == 1 and (
            len(self._parts) >= PARTS_AT_ONCE
        ):
            last = self._parts[-PARTS_AT_ONCE:]
            self._parts[-PARTS_AT_ONCE:] = [
                (last[0][0] + 1, self._join([part for _, part in last]))
            ]

    def join_all(self) -> T:
        """Return all parts as one; there must be at least one."""
        merged = self._join([part for _, part in self._parts])
        self._parts = [(max(n for n, _ in self._parts), merged)]
        return merged

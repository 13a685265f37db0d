"""The base class of all sources; scores are compared only in its method `rank`.

A `Request` specifies what to rank; its `Memory` holds results of earlier requests. `Facts` are
known before anything is ranked.
"""

from __future__ import annotations

import abc
import copy
import dataclasses
import functools
import operator
import sys
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, Literal, TypeVar

import numpy as np

from recometer.arrays import Array, Bool
from recometer.data import matching
from recometer.data.interactions import Interactions
from recometer.data.tensors import is_tensor
from recometer.errors import InputError
from recometer.protocol import Protocol
from recometer.ranks import Ranks, Ratings, TopLists
from recometer.sources.candidates import Candidates, Items

Result = TypeVar("Result")

_ARRAYS = operator.attrgetter("indptr", "items", "values", "user_ids", "item_ids")
MAX_RESULTS = 2  # number of results kept per kind, such as one for a model and one for a baseline


class Memory:
    """Keeps the last few results of each kind; several threads may use it at the same time.

    A copied or unpickled memory starts empty.
    """

    def __init__(self) -> None:
        # For each kind, the key, `same`, `equal` and the result of the last few calls to `find`.
        self._entries: dict[str, tuple[tuple[Any, ...], ...]] = {}

    def find(
        self,
        kind: str,
        key: Hashable,
        make: Callable[[], Result],
        *,
        same: Sequence[object] = (),
        equal: Sequence[Array | None] = (),
    ) -> Result:
        """Return the stored result of a kind for these arguments, or compute it with `make`.

        The result depends on `key`, on the objects in `same` (`Interactions` are compared by the
        identity of their arrays), and on the values of the arrays in `equal`, which may change in
        place. Exceptions raised by `make` are not stored.
        """
        entries = self._entries.get(kind, ())
        objects: tuple[object, ...] = ()
        for argument in same:
            objects += _ARRAYS(argument) if isinstance(argument, Interactions) else (argument,)
        for place, entry in enumerate(entries):
            key_of_entry, objects_of_entry, arrays_of_entry, stored = entry
            if key_of_entry != key or len(objects_of_entry) != len(objects):
                continue
            same_objects = all(map(operator.is_, objects_of_entry, objects))
            if same_objects and all(map(_equal, arrays_of_entry, equal)):
                if place:
                    others = (other for other in entries if other is not entry)
                    self._entries[kind] = (entry, *others)
                return stored  # type: ignore[no-any-return]
        result = make()
        arrays = tuple(map(copy.copy, equal))
        # If two threads compute the same result, the second replaces the first, which is harmless.
        self._entries[kind] = ((key, objects, arrays, result), *entries)[:MAX_RESULTS]
        return result

    def __reduce__(self) -> tuple[type[Memory], tuple[()]]:
        return Memory, ()


def _equal(left: Array | None, right: Array | None) -> bool:
    if left is None or right is None:
        return left is right
    return left.dtype == right.dtype and np.array_equal(left, right)


Kind = Literal["user", "item"]


@dataclasses.dataclass(frozen=True)
class Request:
    """A request to a source for ranks or lists.

    Attributes
    ----------
    test, train
        The interactions whose items should have been recommended, and those whose items must not be
        recommended again.
    protocol
        The rules. Sources read `relevant_from`, `nan_scores`, `single_precision` and
        `infinite_scores`. To make lists, they also read `ties`. To rank, they need it only if it is
        ``"input"`` and the data have an order.
    catalogue
        The number of items that could be recommended, or their ids from `ids.as_ids`. Sources that
        score every item do not read it.
    depth
        The number of places at the top that matter. None means the whole ranking. A source may
        leave items beyond these places unranked.
    threads
        The number of threads to use, at least 1.
    progress
        Whether to show progress. If None, it is shown only if standard error is a terminal.
    candidates, exclude
        The items that may be recommended, as returned by `candidates.read_candidates`, and those
        that must not be; `alignment.align` applies both.
    seed
        The seed of the random order of equal scores in a list under ``ties="random"``.
    memory
        Results of earlier requests.
    some_users
        Whether test contains only some of the users, and others are requested elsewhere. If so, a
        source must not conclude or warn that no user has a certain property.
    """

    test: Interactions
    train: Interactions | None = None
    protocol: Protocol = dataclasses.field(default_factory=Protocol)
    catalogue: int | Array | None = None
    depth: int | None = None
    threads: int = 1
    progress: bool | None = False
    candidates: Candidates | None = None
    exclude: Items | None = None
    seed: int = 0
    memory: Memory = dataclasses.field(default_factory=Memory)
    some_users: bool = False

    @property
    def pace(self) -> dict[str, Any]:
        """The keyword arguments for `recometer.tasks.run_tasks`."""
        return {"threads": self.threads, "progress": self.progress}

    def in_train(self) -> Bool:
        """Return a mask of the test rows in train, as bool [len(test)]; it must not be changed."""
        test, train = self.test, self.train
        if train is None:
            return np.zeros(len(test), bool)
        make = functools.partial(matching.in_train, test, train)
        return self.memory.find("in train", None, make, same=(test, train))


@dataclasses.dataclass(frozen=True, eq=False)
class Facts:
    """Facts about a source that are known before it ranks anything.

    Attributes
    ----------
    arrays
        The arrays (or None) that its rankings depend on, keyed by name, for fingerprints.
        ``"user_ids"`` and ``"item_ids"`` are the ids of its users and items; without them, users
        and items are positions.
    truth
        The relevant items, if the model's output contains them. None if they are passed as test.
    known
        A function that returns the ids of the users (``"user"``) or items (``"item"``) for which
        the model has output, unless it has output for all ids in `arrays`.
    listed
        A function that returns the ids (or positions) of the users with a list. None if the output
        is not lists.
    input_order
        Whether the input orders items with equal scores (``ties="input"``).
    repeats_items
        Whether the output may repeat an item, so that the rule `duplicates` matters.
    unread
        Rules that do not affect this source's rankings, each with the reason.
    threshold
        Whether the source has its own threshold, which replaces the rule `relevant_from`.
    sized
        Whether the arrays account for all the memory that the source takes.
    of_unknown
        How messages describe test users that the model does not know.
    """

    arrays: Mapping[str, object]
    truth: Interactions | None = None
    known: Callable[[Kind], Array | None] | None = None
    listed: Callable[[], Array] | None = None
    input_order: bool = False
    repeats_items: bool = False
    unread: Mapping[str, str] = dataclasses.field(default_factory=dict)
    threshold: bool = False
    sized: bool = True
    of_unknown: str = "are unknown to the model"

    def known_ids(self, kind: Kind) -> Array | None:
        """Return the ids of the users or items that the model knows; None for positions."""
        if self.known is not None:
            return self.known(kind)
        array = self.arrays.get(f"{kind}_ids")
        return array if isinstance(array, np.ndarray) else None

    def removes_train(self, protocol: Protocol) -> bool:
        """Return whether a user's training items are removed from the ranking and from test."""
        return protocol.seen == "removed" or (protocol.seen != "kept" and self.listed is None)


class Source(abc.ABC):
    """Model output that can be ranked."""

    @property
    @abc.abstractmethod
    def facts(self) -> Facts:
        """Facts that are known before the source ranks anything."""

    @abc.abstractmethod
    def describe(self) -> str:
        """Return one line that describes the source, such as ``"Factors, 10 x 20, 4 factors"``."""

    @abc.abstractmethod
    def rank(self, request: Request) -> Ranks:
        """Return the rank of each judged item of each test user."""

    def top(self, request: Request, k: int) -> TopLists:
        """Return the first k places of each user's ranking; the request's `depth` is ignored.

        The lists agree with `rank`: a judged item is at the place that the tie rule determines.

        Raises
        ------
        InputError
            If the source cannot provide lists.
        """
        raise InputError(
            f"The source ({self.describe()}) returns no lists of items, so list metrics cannot be "
            "computed. Hint: its class needs a method top(request, k)."
        )

    def ratings(self, request: Request) -> Ratings | None:
        """Return predicted and true ratings, or None if the source has none."""
        return None

    def __repr__(self) -> str:
        return f"<{self.describe()}>"


def comparable_scores(scores: Any, protocol: Protocol, *, lowest: bool = False) -> Any:
    """Return scores (an array or a tensor), rounded and made finite as the rules require.

    `lowest` says whether -inf is also a score, instead of marking an item that is not a candidate.
    """
    scores = rounded(scores, protocol)
    if protocol.infinite_scores == "undefined":
        return scores
    if is_tensor(scores):
        torch = sys.modules["torch"]
        return scores.clamp(max=torch.finfo(scores.dtype).max)
    ends = np.finfo(scores.dtype)
    infinite = np.isinf(scores) if lowest else np.isposinf(scores)
    return np.where(infinite, np.copysign(ends.max, scores), scores) if infinite.any() else scores


def rounded(scores: Any, protocol: Protocol) -> Any:
    """Return scores of the same dtype, rounded to single precision if the rule says so.

    Scores that are too large become infinite. No score becomes -inf, because -inf marks items that
    are not candidates in `Scores`.
    """
    if not protocol.single_precision:
        return scores
    lowest = float(np.finfo(np.float32).min)
    if is_tensor(scores):
        single = scores.float().to(scores.dtype)
        return single.where(~single.isneginf() | scores.isneginf(), lowest)
    if scores.dtype == np.float32:
        return scores
    with np.errstate(over="ignore"):
        single = scores.astype(np.float32).astype(scores.dtype)
    single[np.isneginf(single) & ~np.isneginf(scores)] = lowest
    return single

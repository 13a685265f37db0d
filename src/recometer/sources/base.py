"""The base class of all sources, whose method `rank` is the only place that compares scores."""

from __future__ import annotations

import abc
import dataclasses
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from recometer.arrays import Array, Bool, Int64
from recometer.data import matching
from recometer.data.interactions import Interactions
from recometer.errors import InputError
from recometer.protocol import Protocol
from recometer.ranks import Ranks, Ratings, TopLists
from recometer.sources.candidates import Candidates, Items
from recometer.sources.memory import Memory


@dataclasses.dataclass(frozen=True)
class Request:
    """A request of `evaluate` to a source.

    Attributes
    ----------
    test, train
        The items that should have been recommended, and those that must not be recommended again.
    protocol
        The rules. Sources read `relevant_from`, `nan_scores`, `single_precision`,
        `infinite_scores` and `ties`: the last one for lists, and to see whether it is ``"input"``
        if the data have an order.
    catalogue
        The number of items that could be recommended, or their ids as `ids.as_ids` returns
        them. Sources that score every item do not read it.
    depth
        The number of first places that matter. None stands for the whole ranking. A source may
        leave items beyond them unranked.
    threads
        The number of threads to use, at least 1.
    progress
        Whether to show progress. None shows it only if standard error is a terminal.
    candidates, exclude
        The items that may be recommended, as `candidates.read_candidates` returns them, and those
        that may not; `_align.align` applies both.
    seed
        Seed of the order that ``ties="random"`` gives equal scores in a list.
    memory
        Results of earlier requests.
    some_users
        Whether test contains only some of the users, and others are requested elsewhere. Then
        nothing follows from what none of them has.
    popularity
        The ids of the items of the whole train (None for positions) and how many users have each,
        if `train` contains only some of the users.
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
    popularity: tuple[Array | None, Int64] | None = None

    @property
    def pace(self) -> dict[str, Any]:
        """The arguments for `recometer.tasks.run_tasks`, by its parameters."""
        return {"threads": self.threads, "progress": self.progress}

    def in_train(self) -> Bool:
        """Return which rows of test are also in train: bool [len(test)], not to be changed."""
        test, train = self.test, self.train
        if train is None:
            return np.zeros(len(test), bool)
        return self.memory.find(
            "in train", None, lambda: matching.in_train(test, train), same=(test, train)
        )


class Source(abc.ABC):
    """Model output that can be ranked."""

    says_of_unknown: str = "are unknown to the model"
    """How messages speak of users of test whom it does not know."""

    has_input_order: bool = False
    """Whether items with equal scores stand in an order that was given (``ties="input"``)."""

    @abc.abstractmethod
    def rank(self, request: Request) -> Ranks:
        """Return where each judged item of each user of test is ranked."""

    def top(self, request: Request, k: int) -> TopLists:
        """Return the first k places of each user's ranking; `depth` of the request is not read.

        They agree with `rank`: a judged item is at the place that the tie rule gives it.

        Raises
        ------
        InputError
            If the source cannot give any.
        """
        raise InputError(
            f"The source ({self.describe()}) gives no lists of items, so metrics of lists cannot "
            "be computed. Hint: its class needs a method top(request, k)."
        )

    def test(self) -> Interactions | None:
        """Return the truth if the output contains it, or None if `evaluate` gets it as test."""
        return None

    def listed_users(self) -> Array | None:
        """Return the ids (or positions) of the users with a list, or None if there are no lists."""
        return None

    def known_ids(self, kind: str) -> Array | None:
        """Return the ids of the users or items that it knows; None if it has none.

        Parameters
        ----------
        kind
            ``"user"`` or ``"item"``.
        """
        found = self.arrays().get(f"{kind}_ids")
        return found if isinstance(found, np.ndarray) else None

    def known_ends(self, kind: str) -> tuple[int, int] | None:
        """Return the lowest and the highest of `known_ids`; None if these are no integers."""
        known = self.known_ids(kind)
        if known is None or known.dtype.kind not in "iu" or not len(known):
            return None
        return int(known.min()), int(known.max())

    def removes_train(self, protocol: Protocol) -> bool:
        """Return whether the rule removes a user's items of train from the ranking and test."""
        return protocol.seen != "kept"

    def unread_rules(self, *, listed: bool) -> Mapping[str, str]:
        """Return the rules that have no effect on its rankings, or on its lists, and why."""
        return {
            "duplicates": f"{type(self).__name__} repeat no items, as lists may",
        }

    def ratings(self, request: Request) -> Ratings | None:
        """Return predicted and true ratings, or None if the source has none."""
        return None

    def says_what_is_relevant(self, protocol: Protocol) -> bool:
        """Return whether the source has a threshold that replaces the rule `relevant_from`."""
        return False

    @abc.abstractmethod
    def describe(self) -> str:
        """Return one line that describes the source: ``"Factors, 10 x 20, 4 factors"``."""

    def described_under(self, protocol: Protocol) -> str:
        """Return the same, without what the rules replace."""
        return self.describe()

    def __repr__(self) -> str:
        return f"<{self.describe()}>"

    def held_bytes(self) -> int | None:
        """Return the memory that its arrays take in bytes, or None if this is unknown."""
        arrays: list[Any] = [array for array in self.arrays().values() if array is not None]
        return int(sum(math.prod(array.shape) * array.dtype.itemsize for array in arrays))

    @abc.abstractmethod
    def arrays(self) -> Mapping[str, object]:
        """Return the arrays that the scores depend on, by name, for their fingerprints."""

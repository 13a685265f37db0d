"""What every source offers: `rank`, the only place that compares scores."""

from __future__ import annotations

import abc
import dataclasses
import math
from collections.abc import Mapping
from typing import Any, NamedTuple

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
    """What `evaluate` asks of a source.

    Attributes
    ----------
    test, train
        What should have been recommended, and what must not be recommended again.
    protocol
        Sources read `relevant_from`, `nan_scores`, `infinite_scores` and `ties`: for lists, and,
        where the data have an order of their own, whether it is ``"input"``.
    catalogue
        The number of items that could be recommended, or their ids as `ids.as_ids` returns
        them. Sources that score every item do not read it.
    depth
        The number of first places that matter. None stands for the whole ranking. A source may
        leave items beyond them unranked.
    threads
        How many threads to use, at least 1.
    progress
        Whether to show progress; None only where standard error is a terminal.
    candidates, exclude
        What may be recommended, as `candidates.read_candidates` returns it, and what may not;
        `_align.align` settles both.
    seed
        Seed of the order that ``ties="random"`` gives equal scores in a list.
    memory
        What was found for earlier requests.
    some_users
        Whether test holds some of the users alone, others being asked for elsewhere: then nothing
        follows from what none of them has.
    part
        Whose part these users are, so that all of them are matched once.
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
    part: Part | None = None

    @property
    def pace(self) -> dict[str, Any]:
        """How `recometer.tasks.run_tasks` is to run, by its parameters."""
        return {"threads": self.threads, "progress": self.progress}

    def in_train(self) -> Bool:
        """Return which rows of test are in train, too: bool [len(test)], not to be changed."""
        test, train = self.test, self.train
        if train is None:
            return np.zeros(len(test), bool)
        return self.memory.find(
            "in train", None, lambda: matching.in_train(test, train), same=(test, train)
        )


class Part(NamedTuple):
    """Some of the users of a request, where all are asked for part by part."""

    whole: Request
    users: Int64  # their places in its test
    test: Interactions  # of theirs
    memory: Memory  # of what is found once for all parts


class Source(abc.ABC):
    """Model output that can be ranked."""

    has_input_order: bool = False
    """Whether items with equal scores stand in an order that was given (``ties="input"``)."""

    @abc.abstractmethod
    def rank(self, request: Request) -> Ranks:
        """Find where each judged item of each user of test landed."""

    def top(self, request: Request, k: int) -> TopLists:
        """Return the first k places of each user's ranking; `depth` of the request is not read.

        They agree with `rank`: a judged item stands at the place that the tie rule gives it.

        Raises
        ------
        InputError
            The source has none to give.
        """
        raise InputError(
            f"The source ({self.describe()}) gives no lists of items, so metrics of lists cannot "
            "be computed. Hint: its class needs a method top(request, k)."
        )

    def test(self) -> Interactions | None:
        """Return the truth where it comes with the output, or None where `evaluate` is given it."""
        return None

    def listed_users(self) -> Array | None:
        """Return the ids (or positions) of the users with a list, or None if there are no lists."""
        return None

    def with_user_ids(self, user_ids: Array) -> Source | None:
        """Return the same source, whose users have ids that were positions.

        None where it cannot be named: then users without ids are not evaluated part by part.
        """
        return None

    def matched(self, request: Request) -> Mapping[str, int] | None:
        """Return what matching with test and train settles, as `Ranks.counts` of `rank` has it.

        None where more than matching is counted.
        """
        return None

    def removes_train(self, protocol: Protocol) -> bool:
        """Tell whether a user's items of train leave the ranking and test, as the rule says."""
        return protocol.seen != "kept"

    def unread_rules(self, *, listed: bool) -> Mapping[str, str]:
        """Return the rules that change nothing of its rankings, or of its lists, and why."""
        return {
            "duplicates": f"{type(self).__name__} repeat no items, as lists may",
        }

    def ratings(self, request: Request) -> Ratings | None:
        """Return predicted beside true ratings, or None if the source has none."""
        return None

    @abc.abstractmethod
    def describe(self) -> str:
        """Say in a line what is evaluated, for instance ``"Factors, 10 x 20, 4 factors"``."""

    def __repr__(self) -> str:
        return f"<{self.describe()}>"

    def held_bytes(self) -> int | None:
        """Return the memory that its arrays take in bytes, or None if that is not known."""
        arrays: list[Any] = [array for array in self.arrays().values() if array is not None]
        return int(sum(math.prod(array.shape) * array.dtype.itemsize for array in arrays))

    @abc.abstractmethod
    def arrays(self) -> Mapping[str, object]:
        """Return the arrays that the scores depend on, by name, for their fingerprints."""

"""The classes `Evaluator`, for evaluating many models, and `Stream`, for output in batches."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import numbers
import time
import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from recometer.arrays import Array, Bool, Int64, all_of, any_of, follow
from recometer.data import ids
from recometer.data.fingerprints import Fingerprinting
from recometer.data.frames import is_frame
from recometer.data.interactions import Interactions
from recometer.data.matching import SourceIndex
from recometer.data.numbers import as_array, without_mask
from recometer.data.tensors import is_tensor, to_numpy
from recometer.errors import DataWarning, InputError, InputTypeError, RecometerError
from recometer.evaluating.arguments import Arguments
from recometer.evaluating.case import fields_of, request_of
from recometer.evaluating.preparation import Preparation
from recometer.evaluating.sides import Sides, arrays_of, inputs_of
from recometer.evaluation import Evaluation
from recometer.remembered import cached_property
from recometer.sources.base import Memory, Source
from recometer.sources.lists import Lists
from recometer.sources.pairs import Pairs
from recometer.sources.scores import Scores
from recometer.sources.streams import StreamedLists, StreamedPairs, StreamedScores

if TYPE_CHECKING:
    from recometer.sources.models import Recommender

INDICES = (np.dtype(np.int64), np.dtype(np.int32))  # the kernel takes item positions of these types
Repeated = Literal["error", "first"]
Streamed = StreamedScores | StreamedLists | StreamedPairs
KINDS: dict[type[Streamed], str] = {
    StreamedScores: "scores",
    StreamedLists: "lists",
    StreamedPairs: "candidates",
}


class Evaluator(Preparation):
    """An evaluation that is prepared once, for many models.

    ``rm.Evaluator(test, ...)(source)`` returns the same as ``rm.evaluate(source, test, ...)``, bit
    for bit. Work that does not depend on the model is done only once: test and train are read,
    checked, matched with each other and hashed, and the lists of the baseline and the data for
    list metrics are prepared. A source with the same ids as the previous one is not matched
    with test and train again.

    Several threads may use an evaluator at the same time. You can copy and pickle it if you can
    copy and pickle its arguments; matches with sources are not included.

    Parameters
    ----------
    test, train, candidates, exclude, metrics, protocol, catalogue, baseline, seed, threads, \
    progress, chance, **rules
        See `recometer.evaluate`. The data are shared, not copied. Do not change them while the
        evaluator is in use: it raises an error if it notices a change, but it may not notice if
        only a few numbers change. Without `test`, each source must contain the labels, and there is
        less to prepare. `test` may be a `Split`.

    Raises
    ------
    InputError, InputTypeError, UnknownNameError
        See `recometer.evaluate`. The constructor raises errors about the arguments above. A call
        raises errors about the source, and an error if the data of an argument have changed. An
        evaluator that has refused a source can still be used for others.

    Warns
    -----
    DataWarning
        See `recometer.evaluate`. Warnings from matching test and train with a source appear
        only for the first of several sources with the same ids.

    Attributes
    ----------
    arguments
        All arguments except test, as they were read.
    sides
        The test data as they were read, and everything derived from them. None if the sources
        contain the labels.

    Examples
    --------
    >>> import numpy as np, recometer as rm
    >>> evaluator = rm.Evaluator({"ann": ["song"]}, metrics="rr ndcg@2")
    >>> lists = [{"ann": ["song", "film"]}, {"ann": ["film", "song"]}]
    >>> [evaluator.mean(rm.Lists(one))["rr"] for one in lists]
    [1.0, 0.5]
    """

    is_kept = True

    def __call__(self, source: Source | Recommender) -> Evaluation:
        """Evaluate a model: a source, or a fitted model that `recometer.from_model` recognises."""
        begin = time.perf_counter()
        return Evaluation(**fields_of(self.case(source), begin))

    def stream(
        self,
        *,
        item_ids: object = None,
        repeated: Repeated = "error",
    ) -> Stream:
        """Return a `Stream`, which takes output in batches; see there for the parameters."""
        return Stream(self, item_ids=item_ids, repeated=repeated)

    def __repr__(self) -> str:
        users = "each source's own users"
        if self.sides is not None:
            users = f"{self.sides.test.n_users:,} users"
        metrics = ", ".join(map(str, self.arguments.metrics))
        return f"<Evaluator of {users}: {metrics}>"


class Stream:
    """An evaluation of model output that arrives in batches; returned by `Evaluator.stream`.

    From scores of all items, a stream keeps only the judged items' ranks, so its memory does not
    grow with the number of items (if you request a list metric, it also keeps the lists). Batches
    of lists, or of candidates with their labels, are kept as they are, and ranked together at the
    end. The order and the sizes of batches have no effect: `compute` returns what `evaluate`
    returns for the whole output, bit for bit.

    Parameters
    ----------
    evaluator
        The evaluator, which determines the metrics and rules. If it has test data, batches are
        scores of all items, or lists; otherwise, batches are candidates together with their labels.
    item_ids
        The ids of the items to which the columns of scores and the positions in arrays of items
        refer. Required if test has item ids.
    repeated
        What happens if a user occurs again: ``"error"`` raises an error; ``"first"`` keeps the
        first occurrence, for samplers that repeat some users so that every process gets the same
        number of users.

    Examples
    --------
    >>> import numpy as np
    >>> import recometer as rm
    >>> test = rm.Interactions.of(np.array([[0, 1, 2], [3, 0, 1]]), n_users=3, n_items=4)
    >>> evaluator = rm.Evaluator(test, metrics="rr ndcg@2")
    >>> scores = np.array([[0.1, 0.2, 0.3, 0.4], [0.4, 0.1, 0.2, 0.3], [0.1, 0.4, 0.2, 0.3]])
    >>> stream = evaluator.stream()
    >>> stream.update(scores[1:], users=[1, 2])
    >>> stream.update(scores[:1], users=[0])
    >>> stream.compute()["rr"]
    array([1., 1., 1.])
    """

    def __init__(
        self,
        evaluator: Preparation,
        *,
        item_ids: object = None,
        repeated: Repeated = "error",
    ) -> None:
        if repeated not in ("error", "first"):
            raise InputError(f"repeated={repeated!r} must be 'error' or 'first'.")
        self._evaluator, self._item_ids, self._repeated = evaluator, item_ids, repeated
        sides = evaluator.sides
        if sides is None and item_ids is not None:
            raise InputError(
                "item_ids= does not apply to labelled candidates. Hint: leave it out, or use an "
                "evaluator with test data."
            )
        self._places = None if sides is None else UserPlaces(sides.test)
        # Whether users and items in arrays are positions in the test data.
        self._by_position = item_ids is None and sides is not None and sides.test.user_ids is None
        self._counted: Streamed | None = None
        self._n_batches = self._n_repeated = 0
        self._latest: Int64 | None = None

    def update(
        self,
        scores: Any = None,
        relevance: Any = None,
        *,
        users: Any = None,
        items: Any = None,
        padding: Any = None,
    ) -> None:
        """Add a batch.

        Parameters
        ----------
        scores
            If the evaluator has test data: scores [batch, n_items] of all items, as `Scores` takes
            them, with `users`; or lists with their users, as a data frame, a dict or `Lists`. Torch
            tensors are processed on their device.

            Otherwise: scores of candidates [batch, n], with `relevance`; or scores [n] of all
            candidates of the batch, with the user of each candidate in `users`; or a data frame, or
            `Pairs`.
        relevance
            The labels for these scores, in the same shape. Candidates whose label is NaN are left
            out.
        users : [batch]
            The user of each row: ids if test has user ids, otherwise positions. For candidates with
            labels, any ids will do. None means that the users are unknown; they are numbered in
            order of arrival.
        items : [batch, k]
            Lists of items, best first, padded with -1, instead of `scores`.
        padding
            The entries that are not candidates: a bool array in the shape of `relevance`, or the
            number that stands for padding in `relevance`.

        Raises
        ------
        InputError
            If the batch is not in one of these forms, or a user occurs again (see `repeated`).
        InputTypeError
            If the type of an argument is not supported, or the ids in `users` differ in type from
            those of the test users.
        """
        lists = items is not None and scores is relevance is padding is None
        if lists and self._take_indices(items, users):
            self._n_batches += 1
            return
        if self._evaluator.sides is None:
            if items is not None:
                raise InputError(
                    "items= contains lists, which require an evaluator with test data. Hint: "
                    "rm.Evaluator(test, ...)."
                )
            self._add_pairs(*pairs_of(scores, relevance, users, padding))
        else:
            self._add_ranking(scores, relevance, users, items, padding)
        self._n_batches += 1

    def _add_ranking(
        self, scores: Any, relevance: Any, users: Any, items: Any, padding: Any
    ) -> None:
        """Add scores of all items, or lists."""
        for name, value in (("relevance", relevance), ("padding", padding)):
            if value is not None:
                raise InputError(
                    f"{name}= was passed, but the evaluator has test data. Hint: leave it out, "
                    "or use rm.Evaluator(metrics=...), which reads the labels from the batches."
                )
        if (scores is None) == (items is None):
            raise InputError(
                "A batch is either scores or items=: "
                f"{'both were' if items is not None else 'neither was'} passed. Hint: items= are "
                "best first; if scores tie, pass a data frame with columns of users, items and "
                "scores."
            )
        if items is not None or are_lists(scores):
            lists = scores if items is None else items
            self._add_lists(lists_of(lists, users, self._item_ids))
        else:
            self._add_scores(scores_of(scores), users)

    def _add_scores(self, batch: Scores, users: object) -> None:
        assert self._places is not None
        index = batch.index
        if users is None:
            users = index.user_ids
        if users is None:
            raise _unnamed("scores")
        item_ids = index.item_ids if self._item_ids is None else self._item_ids
        counted = self._store(StreamedScores, index.n_items, item_ids)
        named = user_ids_of(users, index.n_users or 0)
        places = self._places.of(named)
        rows = self._new_rows(named, places, counted.in_batches)
        if any_of(places < 0):
            counted.add_untested_users(named[places < 0])
            rows = rows[places[rows] >= 0]
        counted.add(batch, rows, places[rows])
        self._counted = counted

    def _add_lists(self, batch: Lists) -> None:
        assert self._places is not None
        counted = self._store(StreamedLists)
        listed = batch.facts.listed
        assert listed is not None
        named = ids.as_ids(listed(), "users of the lists")
        places = self._places.of(named)
        self._new_rows(named, places, counted.in_batches)
        counted.add(batch, places, self._check)
        self._counted = counted

    def _take_indices(self, items: Any, users: Any) -> bool:
        """Add lists of positions if they are plain, valid arrays; return whether this succeeded."""
        counted = self._counted
        if (
            self._by_position
            and isinstance(counted, StreamedLists)
            and type(items) is type(users) is np.ndarray  # not a subclass, such as a masked array
            and counted.positions is not None
            and counted.positions.add(items, users)
        ):
            return True
        if self._item_ids is not None or self._places is None:
            return False
        items = to_numpy(items) if is_tensor(items) else items
        users = to_numpy(users) if is_tensor(users) else users
        if type(items) is not np.ndarray or type(users) is not np.ndarray:
            return False
        if items.dtype not in INDICES or items.ndim != 2 or not items.flags.c_contiguous:
            return False
        if users.shape != (len(items),) or not len(items):
            return False
        if self._by_position:
            if users.dtype != np.int64 or not users.flags.c_contiguous:
                return False
        else:
            users = self._places.of(user_ids_of(users, len(items)))
        return isinstance(counted, StreamedLists) and counted.take_indices(items, users)

    def _new_rows(self, users: Array, places: Int64, present: Array) -> Int64:
        """Return the rows of new users; with ``repeated="error"``, refuse users who occur again."""
        numbers = np.arange(len(places))
        if follow(places):  # all users are known and distinct
            place = int(places[0])
            if not any_of(present[place : place + len(places)]):
                return numbers
        # A user's last row overwrites the earlier ones, which reveals users with several rows.
        if self._latest is None:
            self._latest = np.empty(len(present) + 1, np.int64)
        self._latest[places] = numbers
        if not any_of(present[places]) and all_of(self._latest[places] == numbers):
            return numbers
        known = places >= 0
        repeats = known & present[places]
        first = np.zeros(len(places), bool)
        first[np.unique(places, return_index=True)[1]] = True
        in_batch = known & ~first
        if self._repeated == "error" and (repeats | in_batch).any():
            user = int(np.argmax(repeats | in_batch))
            location = "an earlier batch" if repeats[user] else "two rows of a batch"
            raise repeated_user(ids.show(users, user), location)
        self._n_repeated += int(np.count_nonzero(repeats | in_batch))
        return np.flatnonzero(~(repeats | in_batch))

    def _add_pairs(self, batch: Pairs | None, named: bool) -> None:
        if batch is None:
            return
        counted: StreamedPairs = self._store(StreamedPairs)
        counted.check(batch, named, self._check)
        user_ids = batch.rows.user_ids
        if named and user_ids is not None:
            repeats = counted.in_earlier(user_ids)
            if repeats.any() and self._repeated == "error":
                raise repeated_user(ids.show(user_ids, int(np.argmax(repeats))), "an earlier batch")
            self._n_repeated += int(np.count_nonzero(repeats))
            if repeats.all():
                return
            if repeats.any():
                batch = batch.of_users(~repeats)
        counted.add(batch, named)
        self._counted = counted

    def _check(self, source: Lists | Pairs) -> None:
        """Raise the errors that ranking this batch would raise, but suppress warnings."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DataWarning)
            case = self._evaluator.case(source)
            request = dataclasses.replace(request_of(case), progress=False, some_users=True)
            if case.sides.test.item_ids is not None:
                # Do not store this batch's matches: `compute` would reuse them, and would not issue
                # the warnings that are suppressed here.
                request = dataclasses.replace(request, memory=Memory())
            if isinstance(source, Lists):
                source.check(request)
            else:
                source.rank(request)

    def _store(self, kind: type[Any], n_items: int = 0, item_ids: object = None) -> Any:
        """Return the object that stores the batches; before the first batch, return a new one."""
        if self._counted is not None:
            if not isinstance(self._counted, kind):
                raise InputError(
                    f"This batch contains {KINDS[kind]}, but earlier batches contained "
                    f"{KINDS[type(self._counted)]}. Hint: use a separate stream for each."
                )
            return self._counted
        if kind is StreamedPairs:
            return StreamedPairs()
        sides = self._evaluator.sides
        assert sides is not None
        test = sides.test
        if kind is StreamedLists:
            return StreamedLists(test)
        index = SourceIndex.of("The stream", 0, n_items, None, item_ids)
        of_test = dataclasses.replace(index, n_users=test.n_users, user_ids=test.user_ids)
        empty = Scores(lambda rows: None, n_users=0, n_items=n_items, item_ids=index.item_ids)
        case = self._evaluator.case(empty)
        needs = case.requirements
        ranked, k = bool(needs.of_rankings), needs.depth_of_lists or None
        return StreamedScores(of_test, request_of(case), ranked, k)

    def compute(self) -> Evaluation:
        """Return the evaluation of all batches, as `evaluate` does for the whole output.

        Test users who are in no batch are unknown to the source: the rule ``no_list`` determines
        how they count, and ``counts["users_unknown"]`` is their number.

        Raises
        ------
        InputError
            If no batch was added, or if `evaluate` would raise this error for the whole output.
        """
        begin = time.perf_counter()
        return Evaluation(**fields_of(self._evaluator.case(self._source()), begin))

    def mean(self) -> dict[str, float]:
        """Return only the means, as ``compute().mean()`` does, but in less time."""
        return self._evaluator.mean(self._source())

    def _source(self) -> Source:
        """Return a source with everything counted so far."""
        counted = self._counted
        if counted is None:
            raise InputError(
                "No batch has been added yet, so there is nothing to measure. Hint: "
                "stream.update(...) adds a batch."
            )
        return counted.source()

    def reset(self) -> None:
        """Forget all batches."""
        self._counted = None
        self._n_batches = self._n_repeated = 0

    def state(self) -> dict[str, Any]:
        """Return everything counted so far as numbers, strings and arrays, to pickle or send."""
        counted, of = self._counted, dict(self._identity)
        state: dict[str, Any] = {"batches": self._n_batches, "again": self._n_repeated, "of": of}
        if counted is None:
            return {**state, "kind": None}
        items = counted.index_of_items if isinstance(counted, StreamedScores) else (0, None)
        return {**state, "kind": KINDS[type(counted)], "items": items, "counted": counted.state()}

    @cached_property
    def _identity(self) -> dict[str, str]:
        """The properties that must be the same in merged streams; data are replaced by digests."""
        return identity_of(self._evaluator.arguments, self._evaluator.sides)

    def merge(self, other: Stream | Mapping[str, Any]) -> None:
        """Add the batches of another stream, for instance from another process.

        Parameters
        ----------
        other
            A stream with an equal evaluator, or what the `state` of such a stream returned.

        Raises
        ------
        InputError
            If the evaluators differ, or a user is in both streams (see `repeated`).
        """
        state = other.state() if isinstance(other, Stream) else other
        try:
            self._merge(state)
        except RecometerError:
            raise
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            raise InputError(
                f"The state to merge is incomplete ({type(error).__name__}: {error}). Hint: pass "
                "what state() of a stream returned, as it is."
            ) from error

    def _merge(self, state: Any) -> None:
        if not isinstance(state, Mapping) or "kind" not in state:
            raise InputTypeError(
                f"merge takes a stream, or what state() of one returned, found "
                f"{type(state).__name__}."
            )
        differs = difference(self._identity, state["of"])
        if differs:
            raise InputError(
                f"The streams belong to different evaluators: they differ in {differs}. Hint: all "
                "processes, and those that load a state, must make the same evaluator."
            )
        if state["kind"] is None:
            self._n_batches += state["batches"]
            self._n_repeated += state["again"]
            return
        kind = {name: store for store, name in KINDS.items()}[state["kind"]]
        counted = self._store(kind, *state["items"])
        if state["items"][0] and counted.index_of_items[0] != state["items"][0]:
            raise InputError(
                f"One stream has scores for {counted.index_of_items[0]:,} items, the other for "
                f"{state['items'][0]:,}."
            )
        repeated = counted.in_both(state["counted"])
        if len(repeated) and self._repeated == "error":
            raise repeated_user(ids.show(repeated, 0), "both streams")
        counted.merge(state["counted"], self._check)
        self._counted = counted
        self._n_batches += state["batches"]
        self._n_repeated += state["again"] + len(repeated)

    def __getstate__(self) -> dict[str, Any]:
        options = {
            "item_ids": self._item_ids,
            "repeated": self._repeated,
        }
        return {"evaluator": self._evaluator, "options": options, "state": self.state()}

    def __setstate__(self, pickled: Mapping[str, Any]) -> None:
        self.__init__(pickled["evaluator"], **pickled["options"])  # type: ignore[misc]
        self.merge(pickled["state"])

    @property
    def nbytes(self) -> int:
        """The memory that the stream takes, in bytes."""
        return 0 if self._counted is None else self._counted.nbytes

    @property
    def n_users(self) -> int:
        """The number of evaluated users in the batches so far."""
        return 0 if self._counted is None else self._counted.n_users

    def __repr__(self) -> str:
        repeated = f", {self._n_repeated:,} repeated" if self._n_repeated else ""
        kind = "" if self._counted is None else f" of {KINDS[type(self._counted)]}"
        return (
            f"<Stream{kind}: {self.n_users:,} users{repeated}, {self._n_batches:,} batches, "
            f"{self.nbytes / 2**20:.1f} MB>"
        )


class UserPlaces:
    """Finds the places of users in the test data by their ids or positions."""

    def __init__(self, test: Interactions) -> None:
        self._ids, self._n_users = test.user_ids, test.n_users
        self._places: dict[Any, int] | None = None

    def of(self, users: Array) -> Int64:
        """Return the place of each user, or -1 if not in test; `users` comes from `ids.as_ids`."""
        if self._ids is None:
            return self._positions(users)
        integers = self._ids.dtype != object and users.dtype != object
        # `match` refuses ids of different kinds.
        if integers or ids.kind(users) != ids.kind(self._ids):
            return ids.match(users, self._ids, "users of the batch", "user ids of test")
        if self._places is None:
            self._places = {user: place for place, user in enumerate(self._ids.tolist())}
        places = (self._places.get(user, -1) for user in users.tolist())
        return np.fromiter(places, np.int64, len(users))

    def _positions(self, users: Array) -> Int64:
        if users.dtype.kind not in "iu":
            raise InputTypeError(
                f"test has no user ids: its users are the positions 0 to {self._n_users - 1:,}, "
                f"but users= of the batch are of type {ids.kind(users)}. Hint: pass ids with "
                "test, rm.Interactions.of(test, user_ids=...)."
            )
        if len(users) and not 0 <= users.min() <= users.max() < self._n_users:
            wrong = (users < 0) | (users >= self._n_users)
            raise InputError(
                f"users= has {users[wrong][0]}, but the test users are the positions 0 to "
                f"{self._n_users - 1:,}. Hint: pass user ids with test, or leave that user out."
            )
        return users.astype(np.int64, copy=False)


def user_ids_of(users: object, n: int) -> Array:
    """Read the users of a batch of n rows."""
    user_ids: Array
    if type(users) is np.ndarray and users.dtype == np.int64 and users.ndim == 1:
        user_ids = users
    else:
        user_ids = ids.as_ids(users, "users of the batch")
    if len(user_ids) != n:
        raise InputError(
            f"The batch has {n:,} rows, but {len(user_ids):,} users. Hint: users= must contain the "
            "user of each row, in the same order."
        )
    return user_ids


def scores_of(batch: object) -> Scores:
    """Read scores [batch, n_items] from an array, or from a tensor, which stays on its device."""
    if isinstance(batch, Scores):
        return batch
    if isinstance(batch, Source):
        raise InputTypeError(
            f"A batch cannot be {type(batch).__name__} if the evaluator has test data. Hint: "
            "stream.update(scores, users=...), with the scores of all items; Pairs, which contain "
            "labels, are batches of rm.Evaluator(metrics=...), without test data."
        )
    if callable(batch):
        raise InputTypeError(
            "The batch is a function. Hint: stream.update(function(rows), users=rows); or "
            "evaluator(rm.Scores(function, ...)), which asks for the batches itself."
        )
    return Scores(batch)  # type: ignore[arg-type]


def are_lists(batch: object) -> bool:
    """Return whether a batch must consist of lists, because it is a table or a dict."""
    return isinstance(batch, Lists | Mapping) or is_frame(batch)


def lists_of(batch: object, users: object, item_ids: object) -> Lists:
    """Read lists from a table or dict that names users, or from items [batch, k], best first."""
    if isinstance(batch, Lists) or are_lists(batch):
        if users is not None:
            raise InputError(
                f"users= does not apply to {type(batch).__name__}, which already contains the "
                "users. Hint: leave it out."
            )
        return batch if isinstance(batch, Lists) else Lists(batch)
    try:
        items = as_array(batch, "items=")
    except InputError:
        items = None
    if items is None or items.ndim != 2:
        raise InputError(
            "items= must be lists of equal length, [batch, k]. Hint: -1 fills shorter ones."
        )
    if users is None:
        raise _unnamed("items")
    named = user_ids_of(users, len(items))
    return Lists(items, user_ids=named, item_ids=item_ids)


def _unnamed(name: str) -> InputError:
    return InputError(
        "users= is missing, so the users of the rows are unknown. Hint: "
        f"stream.update({'items=' if name == 'items' else ''}{name}, users=...) takes the user of "
        "each row, by id if test has user ids, and otherwise by position."
    )


def pairs_of(
    scores: Any, relevance: object, users: object, padding: object
) -> tuple[Pairs | None, bool]:
    """Read candidates with scores and relevance.

    Returns
    -------
    pairs
        The candidates. None if the batch consists only of padding.
    named
        Whether users have ids.
    """
    if isinstance(scores, Pairs) or is_frame(scores):
        arguments = {"relevance": relevance, "users": users, "padding": padding}
        for name, value in arguments.items():
            if value is not None:
                raise InputError(
                    f"{name}= does not apply to {type(scores).__name__}, which already contains "
                    "it. Hint: leave it out."
                )
        pairs = scores if isinstance(scores, Pairs) else Pairs(scores)
        return pairs, pairs.rows.user_ids is not None
    if relevance is None:
        raise InputError(
            "There are no labels: the evaluator has no test data, and the batch has no relevance. "
            "Hint: stream.update(scores, relevance), or rm.Evaluator(test, ...)."
        )
    score, truth = _numbers(scores, "scores"), _numbers(relevance, "relevance")
    if score.shape != truth.shape or score.ndim not in (1, 2):
        raise InputError(
            f"The batch has scores of shape {score.shape} and relevance of shape {truth.shape}. "
            "Hint: both must be [batch, n], with one row per user, or [n] together with users=."
        )
    keep = ~_padding(padding, truth)
    rows = _rows(users, score)
    if not keep.any():
        return None, users is not None
    pairs = Pairs.of(truth[keep], score[keep], None if rows is None else rows[keep])
    return pairs, users is not None


def _rows(users: object, score: Array) -> Array | None:
    """Return the user of each candidate, in the shape of the scores, or None for a single user."""
    if score.ndim == 1:
        return None if users is None else user_ids_of(users, len(score))
    named = np.arange(len(score)) if users is None else user_ids_of(users, len(score))
    if users is not None:
        codes, distinct = ids.encode(named, "users of the batch")
        if len(distinct) < len(named):
            twice = int(np.flatnonzero(np.bincount(codes) > 1)[0])
            raise repeated_user(ids.show(distinct, twice), "two rows of a batch")
    return np.repeat(named, score.shape[1]).reshape(score.shape)


def repeated_user(user: str, location: str) -> InputError:
    """Return the error for a user who occurs twice; `location` describes the two places."""
    return InputError(
        f"The user {user} was in {location}. Hint: each user may appear only once; if a sampler "
        "repeats users, as DistributedSampler does, evaluator.stream(repeated='first') keeps each "
        "user's first row; stream.reset() starts again."
    )


def _numbers(argument: object, name: str) -> Array:
    array = without_mask(as_array(argument, f"The {name}"))
    if array.dtype.kind not in "fiub":
        raise InputTypeError(
            f"The {name} of the batch must be numbers, found dtype {array.dtype} "
            f"({type(argument).__name__})."
        )
    return array


def _padding(padding: object, relevance: Array) -> Bool:
    """Return a mask of the entries that are padding, in the shape of the relevance."""
    if padding is None:
        return np.zeros(relevance.shape, bool)
    if isinstance(padding, numbers.Real) and not isinstance(padding, bool):
        is_padding: Bool = relevance == padding
        return is_padding
    mask = np.asarray(as_array(padding, "padding="))
    if mask.dtype != bool or mask.shape != relevance.shape:
        raise InputError(
            f"padding= is of dtype {mask.dtype} and shape {mask.shape}, expected bool "
            f"{relevance.shape}, True for entries that are not candidates; or the number that "
            "marks padding in the relevance, for instance -1."
        )
    return mask


def identity_of(arguments: Arguments, sides: Sides | None) -> dict[str, str]:
    """Return the metrics and rules of an evaluator, and a digest of each data argument."""
    if sides is None:
        prints, texts = _prints(arguments, None), dict[str, str]()
    else:
        if not sides.fingerprints:
            sides.fingerprints.update(_prints(arguments, sides))
        prints = sides.fingerprints
        texts = {name: described["description"] for name, described in sides.descriptions.items()}
    return {
        "metrics": " ".join(map(str, arguments.metrics)),
        "protocol": arguments.protocol.describe(),
        "seed": str(arguments.seed),
        **{
            name: _digest(texts.get(name, ""), prints.get(name, {}))
            for name in {*texts, *(name for name, of in prints.items() if of)}
        },
    }


def difference(own: Mapping[str, str], other: Mapping[str, str]) -> str:
    """Describe the first difference between two evaluators; return "" if there is none."""
    for name in sorted({*own, *other}, key=lambda name: (name != "test", name)):
        own_value, other_value = own.get(name), other.get(name)
        if own_value == other_value:
            continue
        if name in ("metrics", "protocol", "seed"):
            return f"{name} ({own_value!r} here, {other_value!r} there)"
        if own_value is None or other_value is None:
            return f"{name}, which was passed only {'there' if own_value is None else 'here'}"
        return f"{name}, which contains different data"
    return ""


def _prints(arguments: Arguments, sides: Sides | None) -> dict[str, dict[str, str]]:
    arrays = {name: arrays_of(data) for name, data in inputs_of(arguments, sides).items()}
    with Fingerprinting(arrays, arguments.threads) as fingerprinting:
        return fingerprinting.result()


def _digest(description: str, prints: Mapping[str, str]) -> str:
    """Return a short digest of an argument's fingerprints or, without any, of its description."""
    # A description may contain a path or a memory address, which may differ for equal data.
    text = json.dumps(prints, sort_keys=True) if prints else description
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]

"""Reads the batches that a stream is given: scores, lists, or candidates with the truth."""

from __future__ import annotations

import numbers
from collections.abc import Mapping
from typing import Any

import numpy as np

from recometer.arrays import Array, Bool, Int64
from recometer.data import ids
from recometer.data.frames import is_frame
from recometer.data.interactions import Interactions
from recometer.data.numbers import are_ignored, as_array, without_mask
from recometer.data.sessions import are_pairs
from recometer.errors import InputError, InputTypeError
from recometer.sources.base import Source
from recometer.sources.lists import Lists
from recometer.sources.pairs import Pairs
from recometer.sources.scores import Scores


class UserPlaces:
    """Where users stand in test, by their ids or positions."""

    def __init__(self, test: Interactions) -> None:
        self._ids, self._n_users = test.user_ids, test.n_users
        self._places: dict[Any, int] | None = None

    @property
    def are_positions(self) -> bool:
        """Whether users have no ids, and their positions are their places."""
        return self._ids is None

    def of(self, users: Array) -> Int64:
        """Return the place of each user, as `ids.as_ids` returns them; -1 if not in test."""
        if self._ids is None:
            return self._positions(users)
        if self._ids.dtype != object and users.dtype != object:
            return ids.match(users, self._ids, "users of the batch", "user ids of test")
        if len(users) and len(self._ids) and ids.kind(users) != ids.kind(self._ids):
            hint = (
                "users= takes pairs (user, session)."
                if are_pairs(self._ids)
                else "convert one side, for instance to strings."
            )
            raise InputTypeError(
                f"The users of the batch are of type {ids.kind(users)} (for instance "
                f"{ids.show(users, 0)}), but the user ids of test are of type "
                f"{ids.kind(self._ids)} (for instance {ids.show(self._ids, 0)}). Hint: {hint}"
            )
        if self._places is None:
            self._places = {user: place for place, user in enumerate(self._ids.tolist())}
        places = (self._places.get(user, -1) for user in users.tolist())
        return np.fromiter(places, np.int64, len(users))

    def _positions(self, users: Array) -> Int64:
        if users.dtype.kind not in "iu":
            raise InputTypeError(
                f"test has no user ids: its users are the positions 0 to {self._n_users - 1:,}, "
                f"but users= of the batch are of type {ids.kind(users)}. Hint: give test ids, "
                "rm.Interactions.of(test, user_ids=...)."
            )
        if len(users) and not 0 <= users.min() <= users.max() < self._n_users:
            wrong = (users < 0) | (users >= self._n_users)
            raise InputError(
                f"users= has {users[wrong][0]}, but the users of test are the positions 0 to "
                f"{self._n_users - 1:,}. Hint: give test user ids, or leave that user out."
            )
        return users.astype(np.int64, copy=False)


def user_ids_of(users: object, n: int) -> Array:
    """Read the users of the n rows of a batch."""
    found: Array
    if type(users) is np.ndarray and users.dtype == np.int64 and users.ndim == 1:
        found = users
    else:
        found = ids.as_ids(users, "users of the batch")
    if len(found) != n:
        raise InputError(
            f"The batch has {n:,} rows, but {len(found):,} users. Hint: users= names the user of "
            "each row, in the same order."
        )
    return found


def scores_of(given: object) -> Scores:
    """Read scores [batch, n_items]: an array, or a tensor, which stays on its device."""
    if isinstance(given, Scores):
        return given
    if isinstance(given, Source):
        raise InputTypeError(
            f"A batch cannot be {type(given).__name__} if the evaluator has a test. Hint: "
            "stream.update(scores, users=...), with the scores of all items; Pairs, which contain "
            "the truth, are batches of rm.Evaluator(metrics=...), without a test."
        )
    if callable(given):
        raise InputTypeError(
            "The batch is a function. Hint: stream.update(function(rows), users=rows); or "
            "evaluator(rm.Scores(function, ...)), which asks for the batches itself."
        )
    return Scores(given)  # type: ignore[arg-type]


def are_lists(given: object) -> bool:
    """Return whether a batch is read as lists, though nobody said so: a table, a dict."""
    return isinstance(given, Lists | Mapping) or is_frame(given)


def lists_of(given: object, users: object, item_ids: object) -> Lists:
    """Read lists: a table or a dict, which name users; or items [batch, k], best first."""
    if isinstance(given, Lists) or are_lists(given):
        if users is not None:
            raise InputError(
                f"users= does not apply to {type(given).__name__}, which names the users itself. "
                "Hint: leave it out."
            )
        return given if isinstance(given, Lists) else Lists(given)
    try:
        items = as_array(given, "items=")
    except InputError:
        items = None
    if items is None or items.ndim != 2:
        raise InputError(
            "items= must be lists of one length, [batch, k]. Hint: -1 fills shorter ones."
        )
    if users is None:
        raise _unnamed("items")
    named = user_ids_of(users, len(items))
    return Lists(items, user_ids=named, item_ids=item_ids)


def unnamed_scores() -> InputError:
    """Return the error for scores of nobody."""
    return _unnamed("scores")


def _unnamed(what: str) -> InputError:
    return InputError(
        "users= is missing: whose rows are these? Hint: "
        f"stream.update({'items=' if what == 'items' else ''}{what}, users=...) takes the user of "
        "each row, by id if test has user ids, and otherwise by position."
    )


def pairs_of(
    scores: Any, relevance: object, users: object, padding: object, ignored: Any
) -> tuple[Pairs | None, bool]:
    """Read candidates with the truth beside their scores.

    Returns
    -------
    pairs
        None where nothing but padding came.
    named
        Whether users have ids.
    """
    if isinstance(scores, Pairs) or is_frame(scores):
        given = {"relevance": relevance, "users": users, "padding": padding}
        for name, value in given.items():
            if value is not None:
                raise InputError(
                    f"{name}= does not apply to {type(scores).__name__}, which has it itself. "
                    "Hint: leave it out."
                )
        if isinstance(scores, Pairs) and ignored is not None:
            raise InputError(
                "ignore_label= of the stream does not apply to Pairs. Hint: rm.Pairs(..., "
                "ignore_label=...), or a frame."
            )
        pairs = scores if isinstance(scores, Pairs) else Pairs(scores, ignore_label=ignored)
        return pairs, pairs.names_users
    if relevance is None:
        raise InputError(
            "There is no truth: the evaluator has no test, and the batch no relevance. Hint: "
            "stream.update(scores, relevance), or rm.Evaluator(test, ...)."
        )
    score, truth = _numbers(scores, "scores"), _numbers(relevance, "relevance")
    if score.shape != truth.shape or score.ndim not in (1, 2):
        raise InputError(
            f"The batch has scores of shape {score.shape} and relevance of shape {truth.shape}. "
            "Hint: both are [batch, n], a row per user, or [n] together with users=."
        )
    keep = ~(_padding(padding, truth) | are_ignored(truth, ignored))
    rows = _rows(users, score)
    if not keep.any():
        return None, users is not None
    pairs = Pairs.of(truth[keep], score[keep], None if rows is None else rows[keep])
    return pairs, users is not None


def _rows(users: object, score: Array) -> Array | None:
    """Return the user of each candidate, shaped like the scores, or None for a single user."""
    if score.ndim == 1:
        return None if users is None else user_ids_of(users, len(score))
    named = np.arange(len(score)) if users is None else user_ids_of(users, len(score))
    if users is not None:
        codes, distinct = ids.encode(named, "users of the batch")
        if len(distinct) < len(named):
            twice = int(np.flatnonzero(np.bincount(codes) > 1)[0])
            raise came_twice(ids.show(distinct, twice), "two rows of a batch")
    return np.repeat(named, score.shape[1]).reshape(score.shape)


def came_twice(user: str, where: str) -> InputError:
    """Return the error for a user who came in two places."""
    return InputError(
        f"The user {user} came in {where}. Hint: every user may come once; if a sampler repeats "
        "some, as DistributedSampler does, evaluator.stream(repeated='first') keeps what came "
        "first; stream.reset() starts again."
    )


def _numbers(given: object, what: str) -> Array:
    array = without_mask(as_array(given, f"The {what}"))
    if array.dtype.kind not in "fiub":
        raise InputTypeError(
            f"The {what} of the batch must be numbers, found dtype {array.dtype} "
            f"({type(given).__name__})."
        )
    return array


def _padding(padding: object, relevance: Array) -> Bool:
    """Return which candidates are none: bool, in the shape of the relevance."""
    if padding is None:
        return np.zeros(relevance.shape, bool)
    if isinstance(padding, numbers.Real) and not isinstance(padding, bool):
        found: Bool = relevance == padding
        return found
    mask = np.asarray(as_array(padding, "padding="))
    if mask.dtype != bool or mask.shape != relevance.shape:
        raise InputError(
            f"padding= is of dtype {mask.dtype} and shape {mask.shape}, expected bool "
            f"{relevance.shape}, True for entries that are not candidates; or the number that "
            "marks padding in the relevance, for instance -1."
        )
    return mask

"""The arguments `candidates` and `exclude`, which determine the items that may be recommended."""

from __future__ import annotations

import dataclasses
import numbers
from typing import Any

import numpy as np

from recometer.arrays import Array
from recometer.data import ids
from recometer.data.frames import (
    in_numpy,
    is_column,
    is_frame,
    only_column,
    open_frame,
    rereadable,
)
from recometer.data.interactions import Interactions, build, read_interactions, union
from recometer.data.rows import Rows
from recometer.errors import InputError, InputTypeError, argument_text, quantity


@dataclasses.dataclass(frozen=True)
class SampledCandidates:
    """Candidates that consist of each user's test items and other items drawn at random.

    ``rm.evaluate(..., candidates=rm.SampledCandidates(100))`` ranks each user's test items among
    100 items that are in neither the user's training data nor the user's test data. They are drawn
    uniformly, without replacement, and separately for each user: a draw does not depend on other
    users, the order of the data, the number of threads or the platform. If there are too few items
    to draw from, the user gets all of them, and the result counts such users.

    Metrics on sampled candidates say less than they seem to. They are higher than on the whole
    catalogue, and can reverse the order of two models (Krichene & Rendle 2020, On Sampled Metrics
    for Item Recommendation).

    Parameters
    ----------
    n
        The number of items to draw for each user.
    seed
        The seed of the draw.

    Raises
    ------
    InputError
        If n or seed is not a whole number, or is out of range.

    Examples
    --------
    >>> import recometer as rm
    >>> rm.SampledCandidates(100)
    SampledCandidates(n=100, seed=0)
    """

    n: int
    seed: int = 0

    def __post_init__(self) -> None:
        for name, low, high in (("n", 1, 2**31), ("seed", 0, 2**63)):
            value = getattr(self, name)
            is_integer = isinstance(value, numbers.Integral) and not isinstance(value, bool)
            if not is_integer or not low <= value < high:
                raise InputError(
                    f"{name}={value!r} of SampledCandidates must be a whole number, at least "
                    f"{low} and below {high}."
                )
            object.__setattr__(self, name, int(value))


@dataclasses.dataclass(frozen=True, eq=False)
class Negatives:
    """Candidates that consist of each user's test items and the negatives passed here.

    Files of sampled negatives, such as NCF's (99 per user), often do not contain the test items.
    With ``candidates=negatives``, every test item would therefore be a miss. Instead,
    ``candidates=rm.Negatives(negatives)`` ranks the test items among the negatives.

    Parameters
    ----------
    items
        A set for each user, in the same form as for ``candidates=``: anything that
        `Interactions.of` takes, or an array of positions [n_users, n].

    Examples
    --------
    >>> import recometer as rm
    >>> source = rm.Scores([[0.1, 0.5, 0.9, 0.7]], user_ids=["ann"], item_ids=[1, 2, 3, 4])
    >>> negatives = {"ann": [1, 2]}
    >>> rm.evaluate(
    ...     source, {"ann": [4]}, candidates=rm.Negatives(negatives), metrics="rr"
    ... ).mean()
    {'rr': 1.0}
    """

    items: object

    def __post_init__(self) -> None:
        if self.items is None or isinstance(self.items, SampledCandidates | Negatives):
            raise InputTypeError(
                f"Negatives must be items for each user, found {type(self.items).__name__}. Hint: "
                "rm.Negatives({user: [items]}); rm.SampledCandidates(100) draws them."
            )


@dataclasses.dataclass(frozen=True, eq=False)
class Items:
    """A set of items, identified by the ids that the source uses.

    Attributes
    ----------
    parameter
        The parameter that contained the items, for messages.
    ids : [n]
        Ids from `ids.as_ids`, or positions if the source has no ids.
    """

    parameter: str
    ids: Array

    def __repr__(self) -> str:
        return f"{quantity(len(self.ids), 'item')} for all users"


Candidates = Items | Interactions | SampledCandidates


def check_sets(n_without: int, n_known: int) -> None:
    """Refuse sets of candidates if none of the test users that the source knows has a set."""
    if n_without == n_known > 0:
        raise InputError(
            "No test user has a candidate that is in the source but not in train. Hint: does "
            f"{argument_text('candidates')} use the same user and item ids as test?"
        )


def read_candidates(data: object, test: Interactions | None = None) -> Candidates | None:
    """Read the argument `candidates`: items for all users, a set per user, or a sample.

    Parameters
    ----------
    given
        The argument of `recometer.evaluate`.
    test
        The test data. Their items are added to `Negatives`, and arrays of candidates contain
        the positions of these items.

    Raises
    ------
    InputError
        If there are no items, or an id is missing.
    InputTypeError
        If the type is not supported.
    """
    data = in_numpy(data, "candidates")
    if data is None or isinstance(data, SampledCandidates):
        return data
    if isinstance(data, Negatives):
        negatives = read_candidates(data.items, test)
        if not isinstance(negatives, Interactions) or test is None:
            raise InputTypeError(
                "Negatives must be items for each user, found one list for all users. Hint: "
                "rm.Negatives({user: [items]})."
            )
        return union(negatives, test)
    if isinstance(data, type) and issubclass(data, SampledCandidates):
        raise InputTypeError("candidates= is a class. Hint: rm.SampledCandidates(100).")
    if isinstance(data, numbers.Number):
        raise InputTypeError(
            f"candidates={data!r} is a number. Hint: rm.SampledCandidates({data!r}) draws this "
            "number of items for each user."
        )
    if isinstance(data, list | tuple) and data and isinstance(data[0], list | tuple | np.ndarray):
        raise InputError(
            "candidates is a list of lists. Hint: pass a dict {user: [items]}, or, for positions, "
            "np.array(...) with a row for each test user, padded with -1."
        )
    if is_frame(data):
        data = rereadable(data)
    if _one_dimensional(data) or (is_frame(data) and len(open_frame(data)[0]) == 1):
        return read_items(data, "candidates")
    if test is not None and isinstance(data, np.ndarray) and data.ndim == 2:
        is_mask = data.dtype.kind not in "iu" or not ((data > 1).any() or (data < 0).any())
        if not is_mask:
            return _from_positions(data, test)
    candidates = read_interactions(data, "candidates", warns=False)
    if not len(candidates):
        raise InputError("candidates is empty: no user has an item that could be recommended.")
    return candidates


def read_items(data: object, parameter: str) -> Items:
    """Return the items in a list, a set, an array, a series, or the only column of a frame.

    Raises
    ------
    InputError
        If there are no candidates, or an id is missing.
    InputTypeError
        If the argument is not a list of items.
    ColumnError
        If a data frame has several columns.
    """
    data = in_numpy(data, parameter)
    if is_frame(data):
        data = only_column(data, parameter)
    if isinstance(data, set | frozenset | range):
        data = list(data)
    elif not _one_dimensional(data):
        raise InputTypeError(
            f"{parameter} must be a list or an array of items, found {type(data).__name__}."
        )
    if str(getattr(data, "dtype", "")).lower() in ("bool", "boolean", "torch.bool"):
        raise InputTypeError(
            f"{parameter} is a mask, expected the items themselves. Hint: numpy.flatnonzero(mask)."
        )
    items = ids.as_ids(data, f"items of {parameter}")
    if not len(items) and parameter == "candidates":
        raise InputError("candidates is empty: no item could be recommended.")
    return Items(parameter, items)


def _from_positions(array: Any, test: Interactions) -> Interactions:
    """Read an array of item positions with a row per test user, padded with -1."""
    if test.user_ids is not None or test.item_ids is not None:
        raise InputError(
            f"candidates is an array of whole numbers of shape {array.shape}, which are read as "
            "item positions, but test has ids. Hint: pass a dict {user: [items]} with ids."
        )
    if len(array) != test.n_users or array.min() < -1 or array.max() >= test.n_items:
        raise InputError(
            f"candidates is an array of positions of shape {array.shape}, from {array.min()} to "
            f"{array.max()}. Hint: pass a row for each of the {test.n_users:,} test users, with "
            f"positions from 0 to {test.n_items - 1}, padded with -1; a matrix [n_users, n_items] "
            "of 0 and 1 (or of floats, or sparse) marks the candidates."
        )
    users, places = np.nonzero(array >= 0)
    items = array[users, places]
    if array.shape[1] == test.n_items and len(np.unique(users * test.n_items + items)) < len(items):
        raise InputError(
            f"candidates is an array of whole numbers of shape {array.shape}: it could hold "
            "positions, some of them repeated, or a count for every item. Hint: for counts, pass "
            "matrix != 0; for positions, replace repeated ones with -1."
        )
    return build(Rows(users, items, test.n_users, test.n_items))


def _one_dimensional(data: object) -> bool:
    return isinstance(data, list | tuple | set | frozenset | range) or is_column(data)

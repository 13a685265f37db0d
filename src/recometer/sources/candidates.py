"""What may be recommended: the items that `candidates` and `exclude` of `evaluate` name."""

from __future__ import annotations

import dataclasses
import numbers
from typing import Literal

from recometer.arrays import Array
from recometer.data import ids
from recometer.data.frames import is_column, is_frame, only_column, open_frame, twice_readable
from recometer.data.interactions import Interactions, read_interactions
from recometer.errors import InputError, InputTypeError, UnknownNameError, did_you_mean

WAYS = ("uniform", "popularity")


@dataclasses.dataclass(frozen=True)
class SampledCandidates:
    """For each user the items of test and some others, drawn at random.

    ``rm.evaluate(..., candidates=rm.SampledCandidates(100))`` ranks each user's items of
    test among 100 items that are neither in train nor in test of the user. They are drawn
    without replacement, for each user apart: who else is evaluated changes nothing, nor do
    the order of the data, the number of threads or the platform. A user for whom there are
    fewer gets all of them, and is counted.

    Metrics of such candidates say less than they seem to: they are higher than those of the
    whole catalogue, and can put two systems in the other order (Krichene & Rendle 2020, On
    Sampled Metrics for Item Recommendation). The rule `correction` estimates what the whole
    catalogue would give.

    Parameters
    ----------
    n
        How many items are drawn for each user.
    by
        ``"uniform"``: all items are alike. ``"popularity"``: an item is drawn in proportion
        to the number of its interactions in train.
    seed
        Of the draw.

    Raises
    ------
    InputError
        n or seed is no whole number, or out of range.
    UnknownNameError
        A way to draw that does not exist.

    Examples
    --------
    >>> import recometer as rm
    >>> rm.SampledCandidates(100, by="popularity")
    SampledCandidates(n=100, by='popularity', seed=0)
    """

    n: int
    by: Literal["uniform", "popularity"] = "uniform"
    seed: int = 0

    def __post_init__(self) -> None:
        for name, low, high in (("n", 1, 2**31), ("seed", 0, 2**63)):
            value = getattr(self, name)
            whole = isinstance(value, numbers.Integral) and not isinstance(value, bool)
            if not whole or not low <= value < high:
                raise InputError(
                    f"{name}={value!r} of SampledCandidates must be a whole number, at least "
                    f"{low} and below {high}."
                )
            object.__setattr__(self, name, int(value))
        if self.by not in WAYS:
            raise UnknownNameError(
                f"SampledCandidates cannot draw by={self.by!r}. {did_you_mean(str(self.by), WAYS)}"
            )


@dataclasses.dataclass(frozen=True, eq=False)
class Items:
    """Some items, named as the source names them.

    Attributes
    ----------
    what
        The parameter that named them, for messages.
    ids : [n]
        As `ids.as_ids` returns them; positions where the source has no ids.
    """

    what: str
    ids: Array

    def __repr__(self) -> str:
        n = len(self.ids)
        return f"{n:,} item{'' if n == 1 else 's'} for all users"


Candidates = Items | Interactions | SampledCandidates


def read_candidates(given: object) -> Candidates | None:
    """Return what `candidates` means: items for all users, a set per user, or a sample.

    Raises
    ------
    InputError
        No item, or a missing id.
    InputTypeError
        Something else.
    """
    if given is None or isinstance(given, SampledCandidates):
        return given
    if isinstance(given, type) and issubclass(given, SampledCandidates):
        raise InputTypeError("candidates= is a class. Hint: rm.SampledCandidates(100).")
    if isinstance(given, numbers.Number):
        raise InputTypeError(
            f"candidates={given!r} is a number. Hint: rm.SampledCandidates({given!r}) draws so "
            "many items for each user."
        )
    if is_frame(given):
        given = twice_readable(given)
    if _one_dimensional(given) or (is_frame(given) and len(open_frame(given)[0]) == 1):
        return read_items(given, "candidates")
    candidates = read_interactions(given, "candidates", warns=False)
    if not len(candidates):
        raise InputError("candidates is empty: no user has an item that could be recommended.")
    return candidates


def read_items(given: object, what: str) -> Items:
    """Return the items that a list, a set, an array, a series or a frame's only column names.

    Raises
    ------
    InputError
        No candidate, or a missing id.
    InputTypeError
        Something that is no list of items.
    ColumnError
        A data frame of several columns.
    """
    if is_frame(given):
        given = only_column(given, what)
    if isinstance(given, set | frozenset | range):
        given = list(given)
    elif not _one_dimensional(given):
        raise InputTypeError(
            f"{what} must be a list or an array of items, found {type(given).__name__}."
        )
    if str(getattr(given, "dtype", "")).lower() in ("bool", "boolean", "torch.bool"):
        raise InputTypeError(
            f"{what} is a mask, expected the items themselves. Hint: numpy.flatnonzero(mask)."
        )
    items = ids.as_ids(given, f"items of {what}")
    if not len(items) and what == "candidates":
        raise InputError("candidates is empty: no item could be recommended.")
    return Items(what, items)


def _one_dimensional(given: object) -> bool:
    return isinstance(given, list | tuple | set | frozenset | range) or is_column(given)

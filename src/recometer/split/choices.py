"""Ways to choose the users to test, and the interactions to hold out."""

from __future__ import annotations

import dataclasses
import datetime
import itertools
import numbers
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from recometer._kernel import RowOrder
from recometer.arrays import Array, Bool, Int64
from recometer.data.numbers import flag
from recometer.errors import InputError, InputTypeError, python_or_command, warn
from recometer.split.checks import check_folds, check_share, check_whole, limit, moment
from recometer.split.grouping import hold_first, hold_share, number_rows
from recometer.split.table import OF_ITEMS, OF_PLACES, Table, size_of
from recometer.tasks import ROWS_PER_TASK, each_block

Time = float | str | datetime.date


class Who:
    """The base class for selecting the users who are tested."""

    counts_users = False  # whether `tested` needs to know the eligible users

    def tested(self, table: Table, eligible: Bool | None, seed: int) -> Bool | None:
        """Return a mask of the tested users (indexed by code), or None for all eligible users.

        Parameters
        ----------
        eligible : bool by code, or None
            Whether each user has enough interactions in the test and training data to be tested.
        """
        raise NotImplementedError


@dataclasses.dataclass(frozen=True)
class AllUsers(Who):
    """Test all users."""

    def tested(self, table: Table, eligible: Bool | None, seed: int) -> Bool | None:
        """Return None, which means all eligible users."""
        return None


@dataclasses.dataclass(frozen=True)
class UsersFraction(Who):
    """Test a random share of the users; each user is drawn independently.

    Whether a user is tested depends only on the user's id and the seed, not on the other users.
    The share is therefore met only on average; `UsersNumber` draws an exact number.

    Parameters
    ----------
    fraction : float
        The share, in (0, 1).
    """

    fraction: float

    def __post_init__(self) -> None:
        check_share("fraction", self.fraction)

    def tested(self, table: Table, eligible: Bool | None, seed: int) -> Bool:
        """Return the users whose draw is below the share."""
        return table.users.draws(seed) < limit(self.fraction)


@dataclasses.dataclass(frozen=True)
class UsersNumber(Who):
    """Test a number of users, drawn at random from all users who can be tested.

    Each user gets a random number that depends only on the user's id and the seed, and the users
    with the lowest numbers are tested.

    Parameters
    ----------
    number : int
    """

    number: int
    counts_users = True

    def __post_init__(self) -> None:
        check_whole("number", self.number, 1)

    def tested(self, table: Table, eligible: Bool | None, seed: int) -> Bool:
        """Return the users with the lowest draws."""
        assert eligible is not None
        n_eligible = int(np.count_nonzero(eligible))
        if n_eligible < self.number:
            warn(f"{self!r}: only {n_eligible:,} users can be tested, so all of them are.")
        candidates = np.flatnonzero(eligible)
        draw = table.users.draws(seed)[candidates]
        chosen = np.zeros(table.users.n, dtype=bool)
        chosen[candidates[np.argsort(draw, kind="stable")[: self.number]]] = True
        return chosen


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class GivenUsers(Who):
    """Test the users with these ids.

    Parameters
    ----------
    users : sequence, array or path
        The ids of the users, or their positions if the data have no ids. A path names a file of
        ids: a text file with one id per line, a ``.npy`` file, or a table with a column of ids.
    """

    users: Sequence[Any] | Array | Path

    def __repr__(self) -> str:
        return f"GivenUsers({size_of(self.users, 'users')})"

    def tested(self, table: Table, eligible: Bool | None, seed: int) -> Bool:
        """Return a mask of these users."""
        chosen = np.zeros(table.users.n, dtype=bool)
        chosen[table.users.find(self.users, "user")] = True
        return chosen


@dataclasses.dataclass(frozen=True)
class ActiveAfter(Who):
    """Test the users who have an interaction at or after a time.

    Parameters
    ----------
    time : number, date, or ISO 8601 string
        The time, as in `After`.
    """

    time: Time

    def tested(self, table: Table, eligible: Bool | None, seed: int) -> Bool:
        """Return a mask of the users with an interaction at this time or later."""
        chosen = np.zeros(table.users.n, dtype=bool)
        chosen[table.users.codes[table.times >= moment(table, self.time)]] = True
        return chosen


@dataclasses.dataclass(frozen=True)
class UserFolds:
    """Test every user in one of k random folds, as in cross-validation over users.

    The fold of a user depends only on the user's id and the seed, so the sizes of the folds are
    only approximately equal.

    Parameters
    ----------
    k : int
    """

    k: int

    def __post_init__(self) -> None:
        check_folds(self.k, "UserFolds(5)")

    def __len__(self) -> int:
        return self.k

    def parts(self, table: Table, seed: int) -> list[Who]:
        """Return the tested users of each fold."""
        draw = table.users.draws(seed)
        # Compute the fold from only the high half of the draw, so that the product cannot overflow.
        fold = ((draw >> np.uint64(32)) * np.uint64(self.k)) >> np.uint64(32)
        return [_Fold(fold == number) for number in range(self.k)]


@dataclasses.dataclass(frozen=True, eq=False)
class _Fold(Who):
    users: Bool

    def tested(self, table: Table, eligible: Bool | None, seed: int) -> Bool:
        return self.users


class Held(NamedTuple):
    """Masks (bool [n]) of the rows that a split holds out, and of those that it leaves out."""

    test: Bool
    left_out: Bool | None = None


class What:
    """The base class for selecting the interactions to hold out; `Who` selects the tested users."""

    # Whether the selected rows must be kept out of the training data even for untested users.
    for_everybody = False

    def held(self, table: Table, seed: int, threads: int) -> Held:
        """Return the rows to hold out and the rows to leave out, as if every user were tested."""
        raise NotImplementedError


class Folding:
    """The base class for holding out different interactions in each of several folds."""

    for_everybody = False

    def __len__(self) -> int:
        """Return the number of folds."""
        raise NotImplementedError

    def folds(self, table: Table, seed: int, threads: int) -> Iterator[Held]:
        """Yield the rows that each fold holds out and leaves out."""
        raise NotImplementedError


@dataclasses.dataclass(frozen=True)
class Fraction(What):
    """Hold out a random share of the interactions.

    Parameters
    ----------
    fraction : float
        The share, in (0, 1).
    per_user : bool
        Whether to hold out this share of each user's interactions, with their number rounded to the
        nearest integer (halves up). If False, each interaction is drawn independently, and the
        share is met only on average.
    """

    fraction: float
    per_user: bool = True

    def __post_init__(self) -> None:
        check_share("fraction", self.fraction)
        flag("per_user", self.per_user)

    def held(self, table: Table, seed: int, threads: int) -> Held:
        """Return the rows with the lowest draws."""
        if not self.per_user:
            return Held(hold_share(table, self.fraction, seed=seed, threads=threads))
        sizes = holdout_sizes(table.users.counts, self.fraction)
        return Held(hold_first(table, sizes, RowOrder.DRAWN, seed=seed, threads=threads))


@dataclasses.dataclass(frozen=True)
class Number(What):
    """Hold out a given number of each user's interactions at random, or all if there are fewer.

    Parameters
    ----------
    number : int
        The number of interactions, at least 1.
    """

    number: int

    def __post_init__(self) -> None:
        check_whole("number", self.number, 1)

    def held(self, table: Table, seed: int, threads: int) -> Held:
        """Return the rows with the lowest draws."""
        sizes = np.minimum(table.users.counts, min(self.number, 2**62))
        return Held(hold_first(table, sizes, RowOrder.DRAWN, seed=seed, threads=threads))


@dataclasses.dataclass(frozen=True)
class Last(What):
    """Hold out a given number of each user's last interactions, or all if there are fewer.

    Parameters
    ----------
    number : int
        The number of interactions, at least 1.
    """

    number: int = 1

    def __post_init__(self) -> None:
        check_whole("number", self.number, 1)

    def held(self, table: Table, seed: int, threads: int) -> Held:
        """Return the latest rows of each user."""
        sizes = np.minimum(table.users.counts, min(self.number, table.n))
        return Held(hold_first(table, sizes, RowOrder.LATEST, seed=seed, threads=threads))


@dataclasses.dataclass(frozen=True)
class LastFraction(What):
    """Hold out a given share of each user's interactions, namely the last ones.

    Their number is rounded to an integer (halves up).

    Parameters
    ----------
    fraction : float
        The share, in (0, 1).
    """

    fraction: float

    def __post_init__(self) -> None:
        check_share("fraction", self.fraction)

    def held(self, table: Table, seed: int, threads: int) -> Held:
        """Return the latest rows of each user."""
        sizes = holdout_sizes(table.users.counts, self.fraction)
        return Held(hold_first(table, sizes, RowOrder.LATEST, seed=seed, threads=threads))


@dataclasses.dataclass(frozen=True)
class LeaveOneOut(What):
    """Hold out one interaction of each user who has at least two.

    Parameters
    ----------
    by : {"time", "random"}
        Whether to hold out the last interaction, or a random one.
    """

    by: Literal["time", "random"] = "time"

    def __post_init__(self) -> None:
        if self.by not in ("time", "random"):
            raise InputError(
                f"{python_or_command('by=', '')}{self.by!r} must be 'time' or 'random'."
            )

    def held(self, table: Table, seed: int, threads: int) -> Held:
        """Return one row per user."""
        sizes = (table.users.counts >= 2).astype(np.int64)
        order = RowOrder.LATEST if self.by == "time" else RowOrder.DRAWN
        return Held(hold_first(table, sizes, order, seed=seed, threads=threads))


@dataclasses.dataclass(frozen=True)
class After(What):
    """Hold out all interactions from a given time on, as if the model had been trained then.

    Later interactions of untested users are left out, because the model would not have seen them.

    Parameters
    ----------
    time : number, date, or ISO 8601 string
        Interactions at exactly this time belong to the test data. A date without a time of day
        means midnight. A time without a time zone is assumed to be in the time zone of the data.
    until : same type, or None
        Interactions from this time on are left out.
    since : same type, or None
        Interactions before this time are left out.
    share : float, optional
        An alternative to `time`: the share of all interactions that come before it, in (0, 1). If n
        interactions are sorted by time and numbered from 0, the time is that of interaction
        ``share * n``, rounded down.
    """

    time: Time | None = None
    until: Time | None = None
    since: Time | None = None
    share: float | None = None
    for_everybody = True

    def __post_init__(self) -> None:
        if (self.time is None) == (self.share is None):
            raise InputError(
                "After takes a time or a share. Hint: After('2024-05-31'), or After(share=0.8) for "
                "the time before which 80 % of the interactions lie."
            )
        if self.share is not None:
            check_share("share", self.share)

    def held(self, table: Table, seed: int, threads: int) -> Held:
        """Return the rows from the time on, and the rows before `since` or from `until` on."""
        time = self._time(table)
        bounds = (self.since, self.until)
        since, until = (None if bound is None else moment(table, bound) for bound in bounds)
        if (since is not None and since >= time) or (until is not None and until <= time):
            raise InputError(
                f"{self!r}: the times must be in ascending order: since < time < until."
            )
        return _held_between(table, since, time, until)

    def _time(self, table: Table) -> float:
        if self.share is None:
            return moment(table, self.time)
        if not len(table.times):
            raise InputError(f"{self!r}: there are no interactions.")
        place = min(int(self.share * len(table.times) + 1e-9), len(table.times) - 1)
        time: float = np.partition(table.times, place)[place].item()
        if time == table.times.min():
            raise InputError(
                f"{self!r}: so many interactions have the first time, {time}, that none is before "
                "the split. Hint: use a larger share, or pass a time."
            )
        return time


@dataclasses.dataclass(frozen=True)
class Windows(Folding):
    """Hold out successive windows of time, as in back-testing.

    In fold i, the training data contain the interactions before ``times[i]``, and the test data
    contain the interactions from this time until the start of the next window.

    Parameters
    ----------
    times : numbers, dates, or ISO 8601 strings
        The times at which the windows start, in ascending order; dates are read as in `After`.
    until : same type, or None
        The end of the last window. None means the end of the data.
    length : number, datetime.timedelta or None
        How much time before each window the training data cover. None means all earlier times.
    """

    times: Sequence[Time]
    until: Time | None = None
    length: float | datetime.timedelta | None = None
    for_everybody = True

    def __post_init__(self) -> None:
        if isinstance(self.times, str) or not hasattr(self.times, "__len__"):
            raise InputTypeError(
                f"times={self.times!r} must be a list of times. Hint: use "
                f"Windows([{self.times!r}]) for one window, or After(time) for one split."
            )
        length = self.length
        number = isinstance(length, numbers.Real) and not isinstance(length, bool)
        if not (length is None or number or isinstance(length, datetime.timedelta)):
            raise InputTypeError(
                f"length={length!r} must be a number or a datetime.timedelta. Hint: for 30 days, "
                "datetime.timedelta(days=30)."
            )
        nothing = 0 if number else datetime.timedelta()
        if length is not None and not length > nothing:  # type: ignore[operator]
            raise InputError(
                f"length={length!r} must be above 0. Hint: None stands for all earlier times."
            )

    def __len__(self) -> int:
        return len(self.times)

    def folds(self, table: Table, seed: int, threads: int) -> Iterator[Held]:
        """Yield one fold per window."""
        begins = [moment(table, time) for time in self.times]
        if not begins or any(a >= b for a, b in itertools.pairwise(begins)):
            raise InputError(
                f"{self!r}: the times must be in ascending order, and at least one is "
                "needed. Hint: sort them."
            )
        ends: list[Any] = [*begins[1:], None if self.until is None else moment(table, self.until)]
        if ends[-1] is not None and ends[-1] <= begins[-1]:
            raise InputError(
                f"{self!r}: the last window must begin before until. Hint: until is where it ends."
            )
        length = self.length
        if isinstance(length, datetime.timedelta):
            if not table.dates:
                raise InputError(
                    f"length={length} is a span of dates, but the times of the data are numbers. "
                    "Hint: pass a number in their unit."
                )
            length = length // datetime.timedelta(microseconds=1)
        elif length is not None and table.dates:
            raise InputError(
                f"length={length} is a number, but the times of the data are dates. Hint: pass a "
                "datetime.timedelta."
            )
        for begin, end in zip(begins, ends, strict=True):
            since = None if length is None else begin - length
            yield _held_between(table, since, begin, end)


@dataclasses.dataclass(frozen=True)
class KFold(Folding):
    """Hold out each interaction in one of k folds, as in cross-validation over interactions.

    Each user's interactions are dealt to the folds in turn, in random order and starting with a
    random fold. The numbers of a user's interactions in any two folds thus differ by at most one.

    Parameters
    ----------
    k : int
        The number of folds, at least 2.
    """

    k: int

    def __post_init__(self) -> None:
        check_folds(self.k, "KFold(5)")

    def __len__(self) -> int:
        return self.k

    def folds(self, table: Table, seed: int, threads: int) -> Iterator[Held]:
        """Yield k folds."""
        dealt = number_rows(table, RowOrder.DRAWN, seed=seed, threads=threads)
        first = table.users.draws(seed, OF_PLACES) % np.uint64(self.k)
        dealt += first.astype(np.uint32)[table.users.codes]
        dealt %= np.uint32(self.k)
        for number in range(self.k):
            yield Held(dealt == number)


@dataclasses.dataclass(frozen=True, eq=False)
class ColdItems(What):
    """Hold out all interactions with certain items, which the training data then do not contain.

    Interactions between untested users and these items are left out.

    Parameters
    ----------
    fraction : float, optional
        The share of items, in (0, 1); each item is drawn independently.
    items : sequence, array or path, optional
        The ids of the items, or their positions if the data have no ids, instead of a share. A path
        names a file of ids, as in `GivenUsers`.
    """

    fraction: float | None = None
    items: Sequence[Any] | Array | Path | None = None
    for_everybody = True

    def __post_init__(self) -> None:
        if (self.fraction is None) == (self.items is None):
            raise InputError("ColdItems takes a fraction or items. Hint: ColdItems(0.1).")
        if self.fraction is not None:
            check_share("fraction", self.fraction)

    def __repr__(self) -> str:
        setting = f"{self.fraction}" if self.items is None else size_of(self.items, "items")
        return f"ColdItems({setting})"

    def held(self, table: Table, seed: int, threads: int) -> Held:
        """Return the rows whose items are selected."""
        if self.fraction is not None:
            cold = table.items.draws(seed, OF_ITEMS) < limit(self.fraction)
        else:
            cold = np.zeros(table.items.n, dtype=bool)
            cold[table.items.find(self.items, "item")] = True
        return Held(cold[table.items.codes])


def holdout_sizes(n_interactions: npt.ArrayLike, fraction: float) -> Int64:
    """Multiply numbers of interactions by a share in (0, 1), and round to integers (halves up)."""
    exact = np.asarray(n_interactions) * check_share("fraction", fraction)
    below = np.floor(exact)
    return (below + (exact - below >= 0.5)).astype(np.int64)


def _held_between(table: Table, since: float | None, time: float, until: float | None) -> Held:
    """Hold out the rows from `time` on; leave out the rows before `since` and from `until` on."""
    left_out = None if until is None else table.times >= until
    if since is not None:
        before = table.times < since
        left_out = before if left_out is None else left_out | before
    held = np.empty(len(table.times), dtype=bool)

    def compare(block: slice) -> None:
        np.greater_equal(table.times[block], time, out=held[block])

    each_block(len(held), compare, ROWS_PER_TASK)
    return Held(held if left_out is None else held & ~left_out, left_out)

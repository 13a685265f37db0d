"""The users who are tested."""

from __future__ import annotations

import dataclasses
import datetime
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from recometer.arrays import Array, Bool
from recometer.errors import warn
from recometer.split.checks import check_folds, check_share, check_whole, limit, moment
from recometer.split.table import Table, size_of


class Who:
    """Selects the users who are tested."""

    counts_users = False  # whether `tested` needs to know the eligible users

    def tested(self, table: Table, eligible: Bool | None, seed: int) -> Bool | None:
        """Return a mask of the tested users (bool by code), or None for all eligible users.

        Parameters
        ----------
        eligible : bool by code, or None
            Whether each user has enough interactions in test and train to be tested.
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
    The share is therefore met on average; `UsersNumber` draws an exact number.

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

    The users with the lowest draws are tested; a draw depends only on the user's id and the seed.

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
            warn(f"{self!r}: only {n_eligible:,} users can be tested, and all of them are.")
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

    time: float | str | datetime.date

    def tested(self, table: Table, eligible: Bool | None, seed: int) -> Bool:
        """Return a mask of the users with an interaction at this time or later."""
        chosen = np.zeros(table.users.n, dtype=bool)
        chosen[table.users.codes[table.times >= moment(table, self.time)]] = True
        return chosen


@dataclasses.dataclass(frozen=True)
class UserFolds:
    """Test every user in one of k folds, drawn at random: cross-validation over users.

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
        # Scale only the high half of each draw to a fold, so that the product does not overflow.
        fold = ((draw >> np.uint64(32)) * np.uint64(self.k)) >> np.uint64(32)
        return [_Fold(fold == number) for number in range(self.k)]


@dataclasses.dataclass(frozen=True, eq=False)
class _Fold(Who):
    users: Bool

    def tested(self, table: Table, eligible: Bool | None, seed: int) -> Bool:
        return self.users

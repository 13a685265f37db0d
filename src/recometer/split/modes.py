"""The three modes of recometrics, as compositions: all, separated, joined."""

from __future__ import annotations

from typing import Literal

import numpy as np

from recometer.data.numbers import flag
from recometer.errors import InputError, warn
from recometer.split.checks import NoTestUsersError, check_share, check_whole
from recometer.split.data import Container, open_data
from recometer.split.result import Split
from recometer.split.splitting import split
from recometer.split.what import Fraction, holdout_sizes
from recometer.split.who import GivenUsers, UsersNumber


def all(  # recometrics' name
    data: object,
    *,
    items_test_fraction: float = 0.3,
    seed: int = 0,
    user: str | None = None,
    item: str | None = None,
    value: object = None,
    time: object = None,
) -> Split:
    """Hold out a random share of every user's interactions: recometrics' mode "all".

    This is ``split(data, Fraction(items_test_fraction), min_test=0)``. For a user with n
    interactions, n * `items_test_fraction` go to test, rounded half away from zero, without further
    conditions.

    Parameters
    ----------
    data, seed, user, item, value, time
        As in `split`.
    items_test_fraction : float
        The share, in (0, 1).
    """
    check_share("items_test_fraction", items_test_fraction)
    opened = open_data(data, {"user": user, "item": item, "value": value, "time": time})
    return split(opened, Fraction(items_test_fraction), min_test=0, seed=seed)


def separated(
    data: object,
    *,
    users_test_fraction: float | None = 0.1,
    max_test_users: float | None = 10000,
    items_test_fraction: float = 0.3,
    min_items_pool: int = 2,
    min_pos_test: int = 1,
    consider_cold_start: bool = False,
    seed: int = 0,
    user: str | None = None,
    item: str | None = None,
    value: object = None,
    time: object = None,
) -> Split:
    """Draw users to test, and separate all others: recometrics' mode "separated".

    The model is fitted to ``remainder``, and learns about the test users only from ``train``
    (strong generalisation).

    Parameters
    ----------
    data, seed, user, item, value, time
        As in `split`.
    users_test_fraction : float or None
        Share of the users to draw, in (0, 1), rounded half to even, at least one user. None
        draws `max_test_users`.
    max_test_users : float or None
        Maximum number of users to draw, a whole number. None, 0 or infinity set no limit.
    items_test_fraction : float
        Share of a test user's interactions that goes to test, in (0, 1), rounded half away from
        zero.
    min_items_pool : int
        Minimum number of items per test user that are not in their training data.
    min_pos_test : int
        Minimum number of interactions per test user in test.
    consider_cold_start : bool
        Whether users without interactions in train may be test users.

    Raises
    ------
    InputError
        If a number is out of range, or there are fewer than two users.
    NoTestUsersError
        If no user can be a test user. A user with n_items - 1 interactions or more never can.

    Warns
    -----
    DataWarning
        If the share of users is less than one user, or there are fewer users than requested.
    """
    opened = open_data(data, {"user": user, "item": item, "value": value, "time": time})
    return _drawn(
        opened, "apart", users_test_fraction, max_test_users, items_test_fraction,
        min_items_pool, min_pos_test, consider_cold_start, seed,
    )  # fmt: skip


def joined(
    data: object,
    *,
    users_test_fraction: float | None = 0.1,
    max_test_users: float | None = 10000,
    items_test_fraction: float = 0.3,
    min_items_pool: int = 2,
    min_pos_test: int = 1,
    consider_cold_start: bool = False,
    seed: int = 0,
    user: str | None = None,
    item: str | None = None,
    value: object = None,
    time: object = None,
) -> Split:
    """Draw users to test, and leave all others in train: recometrics' mode "joined".

    Parameters, errors and warnings are the same as for `separated`.
    """
    opened = open_data(data, {"user": user, "item": item, "value": value, "time": time})
    return _drawn(
        opened, "train", users_test_fraction, max_test_users, items_test_fraction,
        min_items_pool, min_pos_test, consider_cold_start, seed,
    )  # fmt: skip


def _drawn(
    opened: Container,
    untested: Literal["train", "apart"],
    users_test_fraction: float | None,
    max_test_users: float | None,
    items_test_fraction: float,
    min_items_pool: int,
    min_pos_test: int,
    consider_cold_start: bool,
    seed: int,
) -> Split:
    table = opened.table
    n_items = table.items.n_known
    for name, number in (("min_pos_test", min_pos_test), ("min_items_pool", min_items_pool)):
        if check_whole(name, number) >= n_items:
            raise InputError(f"{name}={number!r} must be below the number of items, {n_items}.")
    check_share("items_test_fraction", items_test_fraction)
    wanted = _number_of_users(table.users.n_known, users_test_fraction, max_test_users)

    n_rows = table.users.counts
    n_test = holdout_sizes(n_rows, items_test_fraction)
    # Minimums in train and test cannot express how many items must remain to choose from.
    roomy = (n_rows < n_items - 1) & (n_items - (n_rows - n_test) >= min_items_pool)
    least_train = 0 if flag("consider_cold_start", consider_cold_start) else 1
    possible = roomy & (n_rows > 0) & (n_test >= min_pos_test) & (n_rows - n_test >= least_train)
    if not possible.any():
        raise NoTestUsersError(
            f"None of the {table.users.n_known} users can be a test user with "
            f"min_pos_test={min_pos_test}, min_items_pool={min_items_pool}, "
            f"items_test_fraction={items_test_fraction}, "
            f"consider_cold_start={consider_cold_start}. Hint: loosen one of them."
        )
    drawn = UsersNumber(wanted).among(table, possible, seed)
    return split(
        opened,
        Fraction(items_test_fraction),
        who=GivenUsers(table.users.named(np.flatnonzero(drawn))),
        untested=untested,
        min_test=0,
        seed=seed,
    )


def _number_of_users(n_users: int, share: float | None, largest: float | None) -> int:
    if n_users < 2:
        raise InputError(
            f"There is {n_users} user, but drawing needs at least two. Hint: the mode 'all'."
        )
    if isinstance(largest, float) and largest.is_integer():
        largest = int(largest)  # numbers from R are floats
    limited = largest is not None and largest != 0 and largest != np.inf
    most = check_whole("max_test_users", largest, 1) if limited else n_users
    if share is None:
        if most > n_users:
            warn(
                f"max_test_users={largest} is above the number of users, {n_users}: all users are "
                "drawn."
            )
        return min(most, n_users)
    target = n_users * check_share("users_test_fraction", share)
    if target < 1:
        warn(f"users_test_fraction={share} of {n_users} users is less than one: one is drawn.")
    return min(max(1, round(target)), most)

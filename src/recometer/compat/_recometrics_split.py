"""Drop-in for recometrics.split_reco_train_test."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from recometer.compat._recometrics_inputs import whole
from recometer.errors import DataWarning, InputError, RecometerError
from recometer.interactions import Interactions
from recometer.split.holdout import holdout_fraction, holdout_sizes, sample_users

if TYPE_CHECKING:
    from scipy.sparse import csr_array

__all__ = ["NoTestUsersError", "split_reco_train_test"]

MODES = ("all", "separated", "joined")


class NoTestUsersError(RecometerError, RuntimeError):
    """No user meets the conditions for being a test user."""


def split_reco_train_test(
    X: Any,
    split_type: str = "separated",
    users_test_fraction: float | None = 0.1,
    max_test_users: float | None = 10000,
    items_test_fraction: float = 0.3,
    min_items_pool: int = 2,
    min_pos_test: int = 1,
    consider_cold_start: bool = False,
    seed: int = 1,
) -> tuple[Any, ...]:
    """Split interactions into train and test, as ``recometrics.split_reco_train_test`` does.

    Of each test user with n interactions, n * ``items_test_fraction`` go to test, rounded
    half away from zero. Which users and items are drawn depends on ``seed``, and is not what
    recometrics draws with it.

    Parameters
    ----------
    X : sparse matrix or array (n_users, n_items), or what ``scipy.sparse.csr_array`` takes
        Interactions. Stored zeros are interactions. float32 stays, all else becomes float64.
    split_type : {"separated", "joined", "all"}
        Whether test users are drawn and set apart, drawn and left in the training data, or
        are all users, without any condition.
    users_test_fraction : float or None
        Share of the users to draw, in (0, 1), rounded half to even, at least one user; None:
        ``max_test_users``.
    max_test_users : float or None
        Largest number of users to draw; None or 0: no limit.
    items_test_fraction : float
        Share of a test user's interactions that go to test, in (0, 1).
    min_items_pool : int
        A test user has at least so many items that are not in their training data.
    min_pos_test : int
        A test user has at least so many interactions in test.
    consider_cold_start : bool
        Whether users may be test users without any interaction in train.
    seed : int

    Returns
    -------
    tuple
        csr_arrays with n_items columns:

        * "separated": ``X_rem`` (the other users), ``X_train``, ``X_test`` (the test users)
          and ``users_test`` (their rows in X, ascending, int32);
        * "joined": ``X_train`` (the test users, then the others), ``X_test``, ``users_test``;
        * "all": ``X_train``, ``X_test``.

    Raises
    ------
    InputError
        A number out of range, or an X that is empty or has less than two users to draw from.
    NoTestUsersError
        No user can be a test user (a RuntimeError). A user with n_items - 1 interactions or
        more never can.

    Warns
    -----
    DataWarning
        The share of users is less than one user, or more users are asked for than there are.
    """
    matrix = _by_rows(X)
    n_users, n_items = matrix.shape
    seed = whole("seed", seed, least=0)
    min_pos_test = _below_items("min_pos_test", min_pos_test, n_items)
    min_items_pool = _below_items("min_items_pool", min_items_pool, n_items)
    items_test_fraction = _share("items_test_fraction", items_test_fraction)
    if split_type not in MODES:
        raise InputError(
            f"split_type={split_type!r} does not exist. "
            f"Hint: it is one of {', '.join(map(repr, MODES))}."
        )
    interactions = Interactions.of(matrix)
    if split_type == "all":
        parts = holdout_fraction(interactions, items_test_fraction, seed=seed)
        return tuple(_to_scipy(part, matrix.dtype) for part in parts)

    n_wanted = _number_of_users(n_users, users_test_fraction, max_test_users)
    n_rows = np.diff(interactions.indptr)
    n_test = holdout_sizes(n_rows, items_test_fraction)
    eligible = (
        (n_rows > 0)
        & (n_rows < n_items - 1)
        & (n_test >= min_pos_test)
        & (n_items - (n_rows - n_test) >= min_items_pool)
    )
    if not consider_cold_start:
        eligible &= n_test < n_rows
    users = sample_users(np.flatnonzero(eligible), n_wanted, seed=seed)
    if len(users) == 0:
        raise NoTestUsersError(
            f"None of the {n_users} users can be a test user with min_pos_test={min_pos_test}, "
            f"min_items_pool={min_items_pool}, items_test_fraction={items_test_fraction}, "
            f"consider_cold_start={consider_cold_start}. Hint: loosen one of them."
        )
    parts = holdout_fraction(interactions, items_test_fraction, seed=seed, users=users)
    train, test = (_to_scipy(part, matrix.dtype) for part in parts)
    others = np.setdiff1d(np.arange(n_users), users)
    rows = users.astype(np.int32)
    if split_type == "separated":
        return train[others], train[users], test[users], rows
    return train[np.concatenate([users, others])], test[users], rows


def _by_rows(X: Any) -> csr_array[Any]:
    from scipy.sparse import csr_array

    matrix = csr_array(X)
    if matrix.nnz == 0:
        raise InputError(f"X is empty: it has the shape {matrix.shape} and no entry.")
    return matrix if matrix.dtype in (np.float32, np.float64) else matrix.astype(np.float64)


def _number_of_users(n_users: int, share: float | None, largest: float | None) -> int:
    """Return how many test users to draw."""
    if n_users < 2:
        raise InputError(
            f"X has {n_users} user, and must have two to draw from. Hint: split_type='all'."
        )
    most = whole("max_test_users", largest, least=1) if largest else n_users
    if share is None:
        if most > n_users:
            _warn(f"max_test_users={largest} is above the number of users, {n_users}: all it is.")
        return min(most, n_users)
    target = n_users * _share("users_test_fraction", share)
    if target < 1:
        _warn(f"users_test_fraction={share} of {n_users} users is less than one: one is drawn.")
    return min(max(1, round(target)), most)


def _below_items(name: str, value: Any, n_items: int) -> int:
    number = whole(name, value, least=0)
    if number >= n_items:
        raise InputError(f"{name}={value!r} must be below the number of items, {n_items}.")
    return number


def _share(name: str, value: float) -> float:
    if not 0 < value < 1:
        raise InputError(f"{name}={value!r} must lie between 0 and 1.")
    return float(value)


def _warn(message: str) -> None:
    warnings.warn(message, DataWarning, stacklevel=4)


def _to_scipy(interactions: Interactions, dtype: np.dtype[Any]) -> csr_array[Any]:
    matrix: csr_array[Any] = interactions.to_csr().astype(dtype)
    # 32 bits where they suffice, as in recometrics: many libraries take no others.
    if matrix.nnz < 2**31:
        matrix.indptr = matrix.indptr.astype(np.int32)
        matrix.indices = matrix.indices.astype(np.int32)
    return matrix

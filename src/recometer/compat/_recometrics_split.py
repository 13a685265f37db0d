"""Drop-in for recometrics.split_reco_train_test."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from recometer.compat._recometrics_inputs import whole
from recometer.data.interactions import Interactions
from recometer.errors import InputError
from recometer.split import NoTestUsersError, modes

if TYPE_CHECKING:
    from scipy.sparse import csr_array

__all__ = ["NoTestUsersError", "split_reco_train_test"]

MODES = ("all", "separated", "joined")


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

    For each test user with n interactions, n * ``items_test_fraction`` go to test, rounded
    half away from zero. The users and items drawn depend on ``seed``, and differ from those that
    recometrics draws with it.

    Parameters
    ----------
    X : sparse matrix or array (n_users, n_items), or anything ``scipy.sparse.csr_array`` takes
        Interactions. Stored zeros are interactions. float32 is kept, and other types become
        float64.
    split_type : {"separated", "joined", "all"}
        Whether test users are drawn and separated, drawn and left in the training data, or
        are all users, without any condition.
    users_test_fraction : float or None
        Share of the users to draw, in (0, 1), rounded half to even, at least one user. None
        draws ``max_test_users``.
    max_test_users : float or None
        Largest number of users to draw. None or 0 sets no limit.
    items_test_fraction : float
        Share of a test user's interactions that go to test, in (0, 1).
    min_items_pool : int
        Minimum number of items per test user that are not in their training data.
    min_pos_test : int
        Minimum number of interactions per test user in test.
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
        If a number is out of range, or X is empty or has fewer than two users to draw from.
    NoTestUsersError
        If no user can be a test user (a RuntimeError). A user with n_items - 1 interactions or
        more never can.

    Warns
    -----
    DataWarning
        If the share of users is less than one user, or there are fewer users than requested.
    """
    matrix = _by_rows(X)
    n_users, n_items = matrix.shape
    seed = whole("seed", seed, least=0)
    most = whole("max_test_users", max_test_users, least=1) if max_test_users else None
    options: dict[str, Any] = {
        "users_test_fraction": users_test_fraction,
        "max_test_users": most,
        "min_items_pool": whole("min_items_pool", min_items_pool, least=0),
        "min_pos_test": whole("min_pos_test", min_pos_test, least=0),
        "consider_cold_start": consider_cold_start,
    }
    if split_type not in MODES:
        raise InputError(
            f"split_type={split_type!r} does not exist. "
            f"Hint: it is one of {', '.join(map(repr, MODES))}."
        )
    for name in ("min_pos_test", "min_items_pool"):
        if options[name] >= n_items:
            raise InputError(
                f"{name}={options[name]!r} must be below the number of items, {n_items}."
            )
    interactions = Interactions.of(matrix)
    if split_type == "all":
        made = modes.all(interactions, items_test_fraction=items_test_fraction, seed=seed)
        return tuple(_to_scipy(part, matrix.dtype) for part in (made.train, made.test))
    if n_users < 2:
        raise InputError(
            f"X has {n_users} user, and must have two to draw from. Hint: split_type='all'."
        )
    mode = modes.separated if split_type == "separated" else modes.joined
    made = mode(interactions, items_test_fraction=items_test_fraction, seed=seed, **options)
    train, test = (_to_scipy(part, matrix.dtype) for part in (made.train, made.test))
    users = made.users
    others = np.setdiff1d(np.arange(n_users), users)
    rows = users.astype(np.int32)
    if made.remainder is not None:
        return _to_scipy(made.remainder, matrix.dtype)[others], train[users], test[users], rows
    return train[np.concatenate([users, others])], test[users], rows


def _by_rows(X: Any) -> csr_array[Any]:
    from scipy.sparse import csr_array

    matrix = csr_array(X)
    if matrix.nnz == 0:
        raise InputError(f"X is empty: it has the shape {matrix.shape} and no entry.")
    return matrix if matrix.dtype in (np.float32, np.float64) else matrix.astype(np.float64)


def _to_scipy(interactions: Interactions, dtype: np.dtype[Any]) -> csr_array[Any]:
    matrix: csr_array[Any] = interactions.to_csr().astype(dtype)
    # 32 bits where they suffice, as in recometrics: many libraries take no others.
    if matrix.nnz < 2**31:
        matrix.indptr = matrix.indptr.astype(np.int32)
        matrix.indices = matrix.indices.astype(np.int32)
    return matrix

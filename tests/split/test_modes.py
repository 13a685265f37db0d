"""The modes "all", "separated" and "joined" pass the tests of recometrics' own split.

The originals are in R (``tests/testthat/test-split.R`` of recometrics 0.1.6). The tests here check
the same properties in Python, for matrices with and without ids and for data frames.
"""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
import scipy.sparse as sp

import recometer as rm
from recometer import DataWarning, InputError
from recometer.split import NoTestUsersError, Split, modes

N_USERS, N_ITEMS = 100, 60
MODES = {"separated": modes.separated, "joined": modes.joined}


def matrix(seed=0, density=0.2):
    rng = np.random.default_rng(seed)
    return sp.random_array((N_USERS, N_ITEMS), density=density, rng=rng, format="csr")


def as_matrix(part):
    return np.zeros((N_USERS, N_ITEMS)) if part is None else part.to_csr().toarray()


def test_all_users_keep_their_rows():
    whole = matrix()
    made = modes.all(whole, items_test_fraction=0.3, seed=1)
    train, test = as_matrix(made.train), as_matrix(made.test)
    assert train.shape == test.shape == whole.shape
    np.testing.assert_array_equal(train + test, whole.toarray())
    assert not ((train != 0) & (test != 0)).any()
    expected = np.floor(np.diff(whole.indptr) * 0.3 + 0.5)
    np.testing.assert_array_equal((test != 0).sum(axis=1), expected)
    assert made.remainder is None


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_rows_of_drawn_test_users_are_divided(mode, seed):
    whole = matrix(seed)
    made = MODES[mode](whole, users_test_fraction=0.3, items_test_fraction=0.4, seed=seed)
    train, test, remainder = map(as_matrix, (made.train, made.test, made.remainder))
    users = made.users
    assert len(users) == 30
    assert (np.diff(users) > 0).all()
    others = np.setdiff1d(np.arange(N_USERS), users)
    # Each row of a test user is either in train or in test.
    np.testing.assert_array_equal((train + test)[users], whole.toarray()[users])
    assert not ((train != 0) & (test != 0)).any()
    assert not test[others].any()
    # The rows of other users are in the remainder (mode "separated") or in train.
    rest, empty = (remainder, train) if mode == "separated" else (train, remainder)
    np.testing.assert_array_equal(rest[others], whole.toarray()[others])
    assert not empty[others].any()
    assert (made.remainder is None) == (mode == "joined")


@pytest.mark.parametrize("mode", MODES)
def test_conditions_of_test_users(mode):
    whole = matrix(density=0.05)
    options = {"users_test_fraction": 0.9, "items_test_fraction": 0.5, "seed": 1}
    for cold, least_test, pool in ((False, 1, 2), (True, 1, 2), (False, 3, 2), (False, 1, 58)):
        made = MODES[mode](
            whole,
            consider_cold_start=cold,
            min_pos_test=least_test,
            min_items_pool=pool,
            **options,
        )
        n_train = np.diff(made.train.indptr)[made.users]
        n_test = np.diff(made.test.indptr)[made.users]
        assert (n_test >= least_test).all()
        assert (N_ITEMS - n_train >= pool).all()
        assert (n_train > 0).all() != cold


@pytest.mark.parametrize("mode", MODES)
def test_number_of_drawn_users(mode):
    whole = matrix()
    call = MODES[mode]
    assert len(call(whole, users_test_fraction=None, max_test_users=12).users) == 12
    assert len(call(whole, users_test_fraction=0.5, max_test_users=20).users) == 20
    assert len(call(whole, users_test_fraction=0.5, max_test_users=None).users) == 50
    with pytest.warns(DataWarning, match="less than one: one is drawn"):
        assert len(call(whole, users_test_fraction=0.001).users) == 1
    with pytest.warns(DataWarning, match="above the number of users, 100"):
        call(whole, users_test_fraction=None, max_test_users=1000)


@pytest.mark.parametrize("mode", MODES)
def test_no_user_qualifies(mode):
    with pytest.raises(NoTestUsersError, match=r"None of the 100 users .* Hint: loosen"):
        MODES[mode](matrix(density=0.02), min_pos_test=20)
    with pytest.raises(RuntimeError):
        MODES[mode](sp.csr_array(np.ones((5, 4))), users_test_fraction=0.5)
    with pytest.raises(InputError, match="There is 1 user, but drawing needs at least two"):
        MODES[mode](sp.csr_array(np.ones((1, 4))))
    with pytest.raises(InputError, match="min_pos_test=60 must be below the number of items, 60"):
        MODES[mode](matrix(), min_pos_test=60)
    for options in ({"items_test_fraction": 1}, {"users_test_fraction": 0}, {"max_test_users": -1}):
        with pytest.raises(InputError, match=rf"{next(iter(options))}="):
            MODES[mode](matrix(), **options)
    with pytest.raises(InputError, match="items_test_fraction=0 must lie"):
        modes.all(matrix(), items_test_fraction=0)


@pytest.mark.parametrize("mode", ["all", *MODES])
def test_frames_with_ids_are_divided_like_matrices(mode):
    whole = matrix().tocoo()
    frame = pl.DataFrame({"user": whole.row + 7, "item": whole.col, "value": whole.data})
    data = rm.Interactions.of(frame)
    by_position = getattr(rm.split, mode)(data, seed=4)
    by_row = getattr(rm.split, mode)(frame, seed=4)
    assert isinstance(by_row, Split)
    assert by_row.users.tolist() == by_position.users.tolist()
    assert by_row.users.min() >= 7
    assert by_row.protocol == by_position.protocol
    pairs = by_row.test.sort("user", "item")
    assert by_position.test.item_ids[by_position.test.items].tolist() == pairs["item"].to_list()


@pytest.mark.parametrize("mode", ["all", *MODES])
def test_seeds(mode):
    drawn = [getattr(rm.split, mode)(matrix(), seed=seed).test for seed in (1, 1, 2)]
    np.testing.assert_array_equal(drawn[0].items, drawn[1].items)
    assert drawn[0].items.tolist() != drawn[2].items.tolist()


def test_sizes_of_the_tests_of_recometrics():
    rng = np.random.default_rng(123)
    for n_items in (10_000, 3):
        whole = sp.random_array((1000, n_items), density=0.01, rng=rng, format="csr")
        made = modes.all(whole)
        train, test = made.train.to_csr(), made.test.to_csr()
        assert train.shape == test.shape == whole.shape
        assert abs(train + test - whole).sum() == 0
    whole = sp.random_array((1000, 10_000), density=0.01, rng=rng, format="csr")
    for mode in MODES.values():
        made = mode(whole, users_test_fraction=0.1)
        train, test = (part.to_csr()[made.users] for part in (made.train, made.test))
        assert train.shape == test.shape == (100, 10_000)
        assert abs(train + test - whole[made.users]).sum() == 0
    small = sp.random_array((10, 9), density=0.5, rng=rng, format="csr")
    made = modes.separated(small, users_test_fraction=None, max_test_users=2)
    assert len(made.users) == np.count_nonzero(np.diff(made.test.indptr)) == 2
    assert set(np.flatnonzero(np.diff(made.remainder.indptr))).isdisjoint(made.users)
    sparse = sp.random_array((1000, 3), density=0.01, rng=rng, format="csr")
    with pytest.raises(NoTestUsersError):
        modes.separated(sparse, min_pos_test=2)


@pytest.mark.parametrize("mode", MODES)
def test_number_of_users_can_be_a_float_as_in_r(mode):
    options = {"users_test_fraction": 0.5, "seed": 1}
    users = [
        MODES[mode](matrix(), max_test_users=largest, **options).users.tolist()
        for largest in (7, 7.0, 1e4, np.inf, None)
    ]
    assert len(users[0]) == 7
    assert users[1] == users[0]
    assert users[2] == users[3] == users[4]
    with pytest.raises(InputError, match=r"max_test_users=7\.5 must be a whole number"):
        MODES[mode](matrix(), max_test_users=7.5, **options)

"""`split_reco_train_test` agrees with the function of the same name in recometrics."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
import recometrics
import scipy.sparse as sp
from recometrics_cases import as_csr, many_users

from recometer import DataWarning, InputError
from recometer.compat.recometrics import (
    NoTestUsersError,
    calc_reco_metrics,
    split_reco_train_test,
)


def random_split_case(seed):
    """Draw options, and a matrix whose rows contain none, some or all of the items."""
    rng = np.random.default_rng(seed)
    n_users, n_items = int(rng.integers(2, 30)), int(rng.integers(6, 25))
    sizes = rng.choice([0, 1, 2, 3, 5, n_items - 2, n_items - 1, n_items], n_users)
    sizes[0] = 4
    rows = [(rng.permutation(n_items)[:n], rng.integers(0, 4, n).astype(float)) for n in sizes]
    X = as_csr(rows, n_items, rng.choice(["float32", "float64"]))
    return X, {
        "items_test_fraction": float(rng.choice([0.1, 0.3, 0.5, 0.6, 0.8])),
        "min_items_pool": int(rng.integers(0, 6)),
        "min_pos_test": int(rng.integers(0, 4)),
        "consider_cold_start": bool(rng.random() < 0.5),
    }


def both_results(X, *args, **options):
    """Return the results of recometrics and recometer; a result is None if no user qualifies."""
    results = []
    for function, error in (
        (recometrics.split_reco_train_test, RuntimeError),
        (split_reco_train_test, NoTestUsersError),
    ):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)
                results.append(function(X.copy(), *args, **options))
        except error:
            results.append(None)
    return results


def assert_same_array(ours, theirs):
    """Assert that types, dtypes and entries are equal, including stored zeros."""
    assert type(ours) is type(theirs) is sp.csr_array
    assert ours.shape == theirs.shape
    assert ours.indices.dtype == theirs.indices.dtype
    for name in ("indptr", "indices", "data"):
        np.testing.assert_array_equal(getattr(ours, name), getattr(theirs, name))


def assert_partition(X_train, X_test, X):
    """Assert that every entry of X is in exactly one part, with its value unchanged."""
    assert X_train.dtype == X_test.dtype == X.dtype
    for row in range(X.shape[0]):
        parts = [
            dict(zip(part.indices[a:b].tolist(), part.data[a:b].tolist(), strict=True))
            for part in (X_train, X_test, X)
            for a, b in [part.indptr[row : row + 2]]
        ]
        assert not parts[0].keys() & parts[1].keys()
        assert parts[0] | parts[1] == parts[2]


@pytest.mark.parametrize("mode", ["separated", "joined"])
def test_qualifying_users_and_numbers_of_test_items_match_recometrics(mode):
    n_without_users = 0
    for seed in range(50):
        X, options = random_split_case(seed)
        theirs, ours = both_results(
            X, mode, users_test_fraction=None, max_test_users=None, seed=seed, **options
        )
        if theirs is None:
            n_without_users += 1
            assert ours is None
            continue
        users = ours[-1]
        assert len(ours) == len(theirs)
        assert users.dtype == theirs[-1].dtype == np.int32
        np.testing.assert_array_equal(users, theirs[-1])
        X_train, X_test = ours[-3], ours[-2]
        assert X_train.shape == theirs[-3].shape
        np.testing.assert_array_equal(X_train.indptr, theirs[-3].indptr)
        np.testing.assert_array_equal(X_test.indptr, theirs[-2].indptr)
        assert_partition(X_train[: len(users)], X_test, X[users])
        other_users = np.setdiff1d(np.arange(X.shape[0]), users)
        if mode == "separated":
            assert_same_array(ours[0], theirs[0])
        else:
            assert_same_array(X_train[len(users) :], X[other_users])
    assert 0 < n_without_users < 25


@pytest.mark.parametrize("mode", ["separated", "joined"])
def test_number_of_drawn_users_matches_recometrics(mode):
    for seed in range(50):
        X, options = random_split_case(seed)
        rng = np.random.default_rng(seed)
        options |= {
            "users_test_fraction": [None, 0.05, 0.25, 0.5, 0.9][seed % 5],
            "max_test_users": rng.choice([None, 0, 1, 3, 10, 1000]),
        }
        theirs, ours = both_results(X, mode, seed=seed, **options)
        if theirs is None:
            assert ours is None
            continue
        users = ours[-1]
        assert [part.shape for part in ours] == [part.shape for part in theirs]
        assert (np.diff(users) > 0).all()
        assert_partition(ours[-3][: len(users)], ours[-2], X[users])
        other_users = np.setdiff1d(np.arange(X.shape[0]), users)
        rest = ours[0] if mode == "separated" else ours[0][len(users) :]
        assert_same_array(rest, X[other_users])


@pytest.mark.parametrize("mode", ["separated", "joined"])
def test_number_of_users_can_be_a_float_as_in_r(mode):
    X = sp.csr_array(np.tri(30, 40))
    options = {"users_test_fraction": 0.5, "seed": 1}
    users = [
        split_reco_train_test(X, mode, max_test_users=largest, **options)[-1].tolist()
        for largest in (7, 7.0, 1e4, np.inf, None)
    ]
    assert len(users[0]) == 7
    assert users[1] == users[0]
    assert users[2] == users[3] == users[4]


def test_all_users_are_split_without_conditions():
    for seed in range(60):
        X, options = random_split_case(seed)
        theirs, ours = both_results(X, "all", seed=seed, **options)
        assert len(ours) == 2
        for our, their in zip(ours, theirs, strict=True):
            assert our.shape == their.shape == X.shape
            np.testing.assert_array_equal(our.indptr, their.indptr)
        assert_partition(*ours, X)


def test_numbers_are_rounded_as_in_recometrics():
    """Item counts are rounded half up, and user counts half to even."""
    X = sp.csr_array(np.ones((25, 15)))
    assert np.diff(split_reco_train_test(X, "all")[1].indptr).tolist() == [5] * 25
    X = sp.csr_array(np.tri(25, 40) + 1.0 * (np.arange(40) < 6))
    assert len(split_reco_train_test(X, users_test_fraction=0.1)[-1]) == 2


def test_split_depends_on_the_seed():
    X = sum(many_users()[:2])
    first, same_seed, other_seed = (
        split_reco_train_test(X, users_test_fraction=0.5, seed=seed) for seed in (1, 1, 2)
    )
    for first_part, second_part in zip(first[:3], same_seed[:3], strict=True):
        assert_same_array(first_part, second_part)
    assert first[3].tolist() == same_seed[3].tolist() != other_seed[3].tolist()
    # The items drawn for a user do not depend on which other users are drawn.
    shared = np.intersect1d(first[3], split_reco_train_test(X, users_test_fraction=0.9)[3])
    _, of_all = split_reco_train_test(X, "all")
    for user in shared:
        drawn_items = first[2][[int(np.flatnonzero(first[3] == user)[0])]]
        assert drawn_items.indices.tolist() == of_all[[user]].indices.tolist()


def test_split_can_be_evaluated():
    _, _, users, items = many_users()
    X_rem, X_train, X_test, rows = split_reco_train_test(
        sum(many_users()[:2]), users_test_fraction=0.5
    )
    assert X_rem.shape[0] + X_train.shape[0] == 30
    assert not calc_reco_metrics(X_train, X_test, users[rows], items)["P@5"].isna().any()


@pytest.mark.parametrize("convert", [np.asarray, pd.DataFrame, sp.coo_array, sp.csc_matrix])
def test_interactions_in_other_formats_are_converted(convert):
    X = sum(many_users()[:2]).astype(int)
    expected = split_reco_train_test(X, "all")
    ours = split_reco_train_test(convert(X.toarray()), "all")
    for our_part, expected_part in zip(ours, expected, strict=True):
        assert expected_part.dtype == np.float64
        assert_same_array(our_part, expected_part)


@pytest.mark.parametrize(
    ("shape", "options", "message"),
    [
        ((5, 4), {"min_pos_test": 4}, "min_pos_test=4 must be below the number of items, 4"),
        ((5, 4), {"min_items_pool": 9}, "min_items_pool=9 must be below the number of items, 4"),
        ((1, 4), {}, "X has 1 user, but drawing needs at least two"),
        ((0, 4), {"split_type": "all"}, r"X is empty: it has the shape \(0, 4\)"),
    ],
)
def test_split_raises_the_value_errors_of_recometrics(shape, options, message):
    X = sp.csr_array(np.ones(shape))
    with pytest.raises(ValueError):
        recometrics.split_reco_train_test(X, **options)
    with pytest.raises(InputError, match=message):
        split_reco_train_test(X, **options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"split_type": "both"}, "split_type='both' does not exist. Hint: .*'joined'"),
        ({"items_test_fraction": 1}, "items_test_fraction=1 must lie between 0 and 1"),
        ({"users_test_fraction": 0}, "users_test_fraction=0 must lie between 0 and 1"),
        ({"max_test_users": -1}, "max_test_users=-1 must be at least 1"),
        ({"min_pos_test": -1}, "min_pos_test=-1 must be at least 0"),
        ({"seed": -1}, "seed=-1 must be at least 0"),
    ],
)
def test_split_raises_errors_where_recometrics_has_assertions(options, message):
    X = sp.csr_array(np.tri(8))
    with pytest.raises(AssertionError):
        recometrics.split_reco_train_test(X, **options)
    with pytest.raises(InputError, match=message):
        split_reco_train_test(X, **options)


@pytest.mark.parametrize(
    ("options", "theirs", "ours", "n_drawn"),
    [
        (
            {"users_test_fraction": 0.05},
            "will select 1 user",
            "less than one: one user is drawn",
            1,
        ),
        (
            {"users_test_fraction": None, "max_test_users": 9},
            "Will take all",
            "max_test_users=9 is above the number of users, 8",
            6,
        ),
    ],
)
def test_split_warns_where_recometrics_warns(options, theirs, ours, n_drawn):
    X = sp.csr_array(np.tri(8))
    options |= {"consider_cold_start": True, "min_pos_test": 0}
    with pytest.warns(UserWarning, match=theirs):
        assert len(recometrics.split_reco_train_test(X, **options)[-1]) == n_drawn
    with pytest.warns(DataWarning, match=ours):
        assert len(split_reco_train_test(X, **options)[-1]) == n_drawn


def test_split_without_qualifying_users_is_refused():
    X = sp.csr_array(np.tri(8))
    options = {"min_pos_test": 5, "users_test_fraction": 0.5}
    with pytest.raises(RuntimeError):
        recometrics.split_reco_train_test(X, **options)
    with pytest.raises(RuntimeError, match=r"None of the 8 users .* Hint") as caught:
        split_reco_train_test(X, **options)
    assert isinstance(caught.value, NoTestUsersError)

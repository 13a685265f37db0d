"""`Fraction` holds out a random share of each user's interactions."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from recometer import InputError, Interactions
from recometer.split import Fraction, GivenUsers, split
from recometer.split.choices import holdout_sizes

seeds = st.integers(0, 2**40)
fractions = st.floats(0.01, 0.99)

pytestmark = pytest.mark.filterwarnings("ignore:the training data are empty")


@st.composite
def interactions(draw, max_users=8, max_items=12):
    """Draw interactions that have values, but no ids."""
    n_users = draw(st.integers(1, max_users))
    n_items = draw(st.integers(1, max_items))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    dense = rng.integers(1, 9, (n_users, n_items)) * (rng.random((n_users, n_items)) < 0.6)
    dense[0, 0] = 1
    return Interactions.of(sp.csr_array(dense.astype(float)))


def rows(data):
    """Return a dict for each user, which maps the user's items to their values."""
    values = np.ones(len(data)) if data.values is None else data.values
    return [
        dict(zip(data.items[a:b].tolist(), values[a:b].tolist(), strict=True))
        for a, b in zip(data.indptr[:-1], data.indptr[1:], strict=True)
    ]


def by_ids(data):
    """Return all pairs of a user id and an item id."""
    user = np.repeat(np.arange(data.n_users), np.diff(data.indptr))
    return set(zip(data.user_ids[user].tolist(), data.item_ids[data.items].tolist(), strict=True))


def held_out(data, fraction, **options):
    """Hold out a share of each user's interactions; return the training and test data."""
    result = split(data, Fraction(fraction), min_test=0, **options)
    return result.train, result.test


@given(interactions(), fractions, seeds)
def test_interactions_are_partitioned_into_train_and_test(data, fraction, seed):
    train, test = held_out(data, fraction, seed=seed)
    assert train.n_users == test.n_users == data.n_users
    assert train.n_items == test.n_items == data.n_items
    for all_rows, left, right in zip(rows(data), rows(train), rows(test), strict=True):
        assert not left.keys() & right.keys()
        assert left | right == all_rows
        assert list(left) == sorted(left)
        assert list(right) == sorted(right)


@given(interactions(), fractions, seeds)
def test_held_out_number_rounds_half_away_from_zero(data, fraction, seed):
    _, test = held_out(data, fraction, seed=seed)
    for all_rows, right in zip(rows(data), rows(test), strict=True):
        exact = len(all_rows) * fraction
        assert len(right) == math.floor(exact) + (exact - math.floor(exact) >= 0.5)


def test_holdout_sizes_round_halves_up():
    assert holdout_sizes([15, 5, 1, 2, 3, 0], 0.3).tolist() == [5, 2, 0, 1, 1, 0]
    assert holdout_sizes([1, 3, 5], 0.5).tolist() == [1, 2, 3]
    # floor(x + 0.5) would return 1 here, since the sum is rounded to 1.
    assert holdout_sizes([1], np.nextafter(0.5, 0)).tolist() == [0]


def test_draw_does_not_depend_on_the_platform():
    data = Interactions.of(sp.csr_array(np.ones((3, 10))))
    _, test = held_out(data, 0.3, seed=7)
    assert [list(row) for row in rows(test)] == [[7, 8, 9], [1, 3, 7], [0, 2, 7]]


def test_different_seeds_hold_out_different_items():
    data = Interactions.of(sp.csr_array(np.ones((20, 20))))
    draws = {tuple(held_out(data, 0.5, seed=seed)[1].items) for seed in range(10)}
    assert len(draws) == 10


def test_users_have_different_draws():
    data = Interactions.of(sp.csr_array(np.ones((40, 20))))
    _, test = held_out(data, 0.5, seed=1)
    assert len({tuple(row) for row in rows(test)}) == 40


def test_every_item_is_drawn_equally_often():
    data = Interactions.of(sp.csr_array(np.ones((20_000, 10))))
    _, test = held_out(data, 0.3, seed=3)
    share = np.bincount(test.items, minlength=10) / 20_000
    # Allow 4.5 standard errors of a share of 0.3 over 20,000 users.
    np.testing.assert_allclose(share, 0.3, atol=4.5 * math.sqrt(0.3 * 0.7 / 20_000))


@given(interactions(), seeds)
def test_larger_share_includes_the_rows_of_a_smaller_share(data, seed):
    _, small_test = held_out(data, 0.3, seed=seed)
    _, large_test = held_out(data, 0.6, seed=seed)
    for small_rows, large_rows in zip(rows(small_test), rows(large_test), strict=True):
        assert small_rows.keys() <= large_rows.keys()


@pytest.mark.parametrize(
    "name",
    [lambda n: 3 * n + 1, lambda n: f"id {n}", lambda n: f"{n:02}"],
    ids=["numbers", "text", "digits"],
)
def test_draws_only_depend_on_ids(name):
    """Neither the order of rows nor other users change which items are drawn for a user."""
    rng = np.random.default_rng(0)
    pairs = [(u, i) for u in range(12) for i in range(20) if rng.random() < 0.6]

    def draw(drawn_pairs):
        users, items = zip(*drawn_pairs, strict=True)
        table = {"user": [name(u) for u in users], "item": [name(i) for i in items]}
        data = Interactions.of(as_frame(table), user="user", item="item")
        return by_ids(held_out(data, 0.4, seed=5)[1])

    all_draws = draw(pairs)
    assert draw([pairs[n] for n in rng.permutation(len(pairs))]) == all_draws
    half = [(u, i) for u, i in pairs if u % 2]
    assert draw(half) == {(u, i) for u, i in all_draws if u in {name(n) for n, _ in half}}


def as_frame(table):
    pl = pytest.importorskip("polars")
    return pl.DataFrame(table)


@given(interactions(), fractions, seeds, st.data())
def test_items_are_held_out_only_for_the_users_in_who(data, fraction, seed, source):
    users = source.draw(st.lists(st.integers(0, data.n_users - 1), unique=True, min_size=1))
    _, test_of_all_users = held_out(data, fraction, seed=seed)
    train, test = held_out(data, fraction, seed=seed, who=GivenUsers(users))
    for user in range(data.n_users):
        if user in users:
            assert rows(test)[user] == rows(test_of_all_users)[user]
        else:
            assert rows(test)[user] == {}
            assert rows(train)[user] == rows(data)[user]


@pytest.mark.parametrize("fraction", [0, 1, -0.1, 1.5, math.nan])
def test_share_outside_0_and_1_is_refused(fraction):
    data = Interactions.of(sp.csr_array(np.ones((2, 2))))
    with pytest.raises(InputError, match=r"fraction=.* must lie between 0 and 1"):
        held_out(data, fraction, seed=1)


def test_times_are_split_with_their_interactions():
    table = {"user": [0, 0, 1, 1], "item": [0, 1, 0, 1], "time": [10, 20, 30, 40]}
    data = Interactions.of(as_frame(table), user="user", item="item", time="time")
    train, test = held_out(data, 0.5, seed=1)
    assert sorted([*train.times, *test.times]) == [10, 20, 30, 40]
    for part in (train, test):
        user = np.repeat(np.arange(2), np.diff(part.indptr))
        np.testing.assert_array_equal(part.times, 10 + 20 * user + 10 * part.items)

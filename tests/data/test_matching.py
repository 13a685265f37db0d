"""The one place where users and items of two sides are matched."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import recometer as rm
from recometer import ragged
from recometer.data.matching import in_train, items_in, twins, users_in


@st.composite
def two_sides(draw):
    """Draw pairs of users and items for test and train, whose users and items overlap in part."""
    pairs = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 8)), unique=True, max_size=30)
    test = [(f"u{user}", f"i{item}") for user, item in draw(pairs)]
    train = [(f"u{user + 2}", f"i{item + 3}") for user, item in draw(pairs)]
    return test, train


def with_ids(pairs):
    columns = {"user": [user for user, _ in pairs], "item": [item for _, item in pairs]}
    return rm.Interactions.of(columns_of(columns), user="user", item="item")


def columns_of(columns):
    import polars as pl

    return pl.DataFrame(columns, schema={"user": pl.String, "item": pl.String})


def rows(data):
    users = np.repeat(np.arange(data.n_users), np.diff(data.indptr))
    return [
        (data.user_ids[user], data.item_ids[item])
        for user, item in zip(users, data.items, strict=True)
    ]


@given(two_sides())
def test_twins_have_the_same_user_and_item(sides):
    test, train = map(with_ids, sides)
    of_test, of_train = rows(test), rows(train)
    users, items = users_in(train, test, "train"), items_in(train, test, "train")
    found = twins(test, train, users, items)
    for pair, row in zip(of_test, found.tolist(), strict=True):
        assert (of_train[row] == pair) if row >= 0 else (pair not in of_train)
    np.testing.assert_array_equal(in_train(test, train), found >= 0)


@pytest.mark.parametrize("rows_at_once", [1, 7, 2**16])
@pytest.mark.parametrize("n_items", [40, 2**21])
@pytest.mark.parametrize("moved", [False, True])
def test_no_block_of_users_makes_a_difference(monkeypatch, rows_at_once, n_items, moved):
    monkeypatch.setattr(ragged, "ROWS_AT_ONCE", rows_at_once)
    rng = np.random.default_rng(0)
    scale = n_items // 40  # few items, or few of many
    test, train = (np.where(rng.random((30, 40)) < 0.3, 1, 0) for _ in range(2))
    train[[3, 4, 29]] = 0
    users = rng.permutation(30) if moved else None
    tables = []
    for cells in (test, train):
        indptr = ragged.indptr_of(np.count_nonzero(cells, axis=1))
        tables += [indptr, (np.nonzero(cells)[1] * scale).astype(np.int32)]
    found = ragged.find(*tables, n_items, users)
    who, item = np.nonzero(test)
    of_train = np.argwhere(train).tolist()
    place = {tuple(pair): row for row, pair in enumerate(of_train)}
    mapped = who if users is None else users[who]
    expected = [place.get((u, i), -1) for u, i in zip(mapped.tolist(), item.tolist(), strict=True)]
    assert found.tolist() == expected


def test_ids_on_one_side_only_have_one_wording():
    """Whoever is matched says which side lacks ids, and how it comes by them."""
    matrix = np.eye(3)
    named = rm.Interactions.of(matrix, user_ids=list("abc"), item_ids=list("xyz"))
    wording = "its users are positions, and nothing says which is which. Hint: "
    with pytest.raises(rm.InputError, match=wording + r"rm.Scores\(..., user_ids=...\)"):
        rm.evaluate(rm.Scores(matrix), named)
    with pytest.raises(rm.InputError, match=wording + r"rm.Interactions.of\(test, user_ids="):
        rm.evaluate(rm.Scores(matrix, user_ids=list("abc")), matrix)
    with pytest.raises(rm.InputError, match="test has user ids, but train has none: " + wording):
        rm.audit(matrix, named)
    source = rm.Scores(matrix, user_ids=list("abc"), item_ids=list("xyz"))
    with pytest.raises(rm.InputError, match="test has user ids, but train has none: " + wording):
        rm.evaluate(source, named, train=rm.Interactions.of(matrix, item_ids=list("xyz")))
    listed = rm.Lists(np.array([[0, 1]]))
    with pytest.raises(rm.InputError, match="but Lists has none: its items are positions"):
        rm.evaluate(listed, np.eye(1, 3), catalogue=["x", "y", "z"])

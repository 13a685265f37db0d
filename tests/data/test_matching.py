"""Tests that users and items are matched in the same way for all kinds of data."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import recometer as rm
from recometer.data.matching import SourceIndex, find_rows, in_train


@st.composite
def two_sides(draw):
    """Draw test and training rows; some users and items occur in only one of the two."""
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
def test_train_rows_are_found_by_user_and_item(sides):
    test, train = map(with_ids, sides)
    rows_of_test, rows_of_train = rows(test), rows(train)
    index = SourceIndex.of_data(train, "train")
    users, items = index.users_of(test), index.items_of(test, "test", same_size=False)
    items_in_train = test.items if items is None else items[test.items]
    matching_rows = find_rows(test.indptr, items_in_train, train.indptr, train.items, users)
    for pair, row in zip(rows_of_test, matching_rows.tolist(), strict=True):
        assert (rows_of_train[row] == pair) if row >= 0 else (pair not in rows_of_train)
    np.testing.assert_array_equal(in_train(test, train), matching_rows >= 0)


def test_errors_about_data_without_ids_share_their_wording():
    """Each error names the data without ids, and says how to provide ids."""
    matrix = np.eye(3)
    with_both_ids = rm.Interactions.of(matrix, user_ids=list("abc"), item_ids=list("xyz"))
    wording = "its users are positions, which cannot be matched to ids. Hint: "
    with pytest.raises(rm.InputError, match=wording + r"rm.Scores\(..., user_ids=...\)"):
        rm.evaluate(rm.Scores(matrix), with_both_ids)
    with pytest.raises(rm.InputError, match=wording + r"rm.Interactions.of\(test, user_ids="):
        rm.evaluate(rm.Scores(matrix, user_ids=list("abc")), matrix)
    with pytest.raises(rm.InputError, match="test has user ids, but train has none: " + wording):
        rm.audit(matrix, with_both_ids)
    source = rm.Scores(matrix, user_ids=list("abc"), item_ids=list("xyz"))
    with pytest.raises(rm.InputError, match="test has user ids, but train has none: " + wording):
        rm.evaluate(source, with_both_ids, train=rm.Interactions.of(matrix, item_ids=list("xyz")))
    lists = rm.Lists(np.array([[0, 1]]))
    with pytest.raises(rm.InputError, match="but Lists has none: its items are positions"):
        rm.evaluate(lists, np.eye(1, 3), catalogue=["x", "y", "z"])

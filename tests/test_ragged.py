"""Tests of records, which check each column against its declared axis and slice it accordingly."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import recometer as rm
from recometer.metrics import ListData, Side
from recometer.ragged import Record, Table
from recometer.ranks import Ratings
from recometer.testing import cases, list_cases

RECORDS = (rm.Ranks, rm.TopLists, Ratings, ListData, Side)


def equal_records(left: Record, right: Record) -> bool:
    """Return whether all fields of two records are equal."""
    for field in dataclasses.fields(left):
        if field.name.startswith("kept"):
            continue
        left_column, right_column = getattr(left, field.name), getattr(right, field.name)
        if isinstance(left_column, Record):
            equal = equal_records(left_column, right_column)
        elif hasattr(left_column, "nnz"):
            equal = (left_column != right_column).nnz == 0
        elif isinstance(left_column, np.ndarray):
            equal = left_column.dtype == right_column.dtype and np.array_equal(
                left_column, right_column, equal_nan=left_column.dtype.kind == "f"
            )
        else:
            equal = left_column == right_column
        if not equal:
            return False
    return True


def every_column(ranks: rm.Ranks) -> Ratings:
    """Return a record whose optional columns all contain distinct numbers."""
    n_rows, n_users = len(ranks.item), ranks.n_users
    ranks = dataclasses.replace(
        ranks,
        n_rankable=np.arange(n_users) + 50,
        score=np.arange(n_rows) / 2,
        repeated=np.arange(n_rows) % 2 == 0,
    )
    return Ratings(ranks, np.arange(n_rows) + 0.25, np.arange(n_users) + 0.75)


@pytest.mark.parametrize("kind", RECORDS)
def test_every_array_declares_its_axis(kind: type[Record]) -> None:
    """Slicing ignores a column without a declared axis, so every array must declare its axis."""
    for field in dataclasses.fields(kind):
        text = str(field.type)
        array = any(name in text for name in ("Int64", "Float64", "Bool", "UInt", "csr_array"))
        assert array == (field.metadata.get("per") in ("row", "user", "item", "offset")), field.name


@given(cases(), st.data())
def test_slices_of_users_are_views(case, data) -> None:
    ranks = case.ranks()
    cut = data.draw(st.integers(0, case.n_users))
    parts = [ranks.users(slice(None, cut)), ranks.users(slice(cut, None))]
    assert np.array_equal(np.concatenate([part.above for part in parts]), ranks.above)
    for part in parts:
        assert not len(part.above) or np.shares_memory(part.above, ranks.above)


@given(cases(), st.data())
def test_users_and_rows_can_be_selected_in_any_order(case, data) -> None:
    ratings = every_column(case.ranks())
    order = data.draw(st.permutations(range(case.n_users)))
    permuted = ratings.users(np.array(order))
    assert equal_records(permuted.users(np.argsort(order)), ratings)
    for place, user in enumerate(order):
        one = slice(place, place + 1)
        assert equal_records(permuted.users(one), ratings.users(slice(user, user + 1)))
    # Rows can be selected by a mask or by row numbers.
    n_rows = len(ratings.predicted)
    mask = np.array(data.draw(st.lists(st.booleans(), min_size=n_rows, max_size=n_rows)), bool)
    selected = ratings.rows(mask)
    assert equal_records(selected, ratings.rows(np.flatnonzero(mask)))
    assert selected.predicted.tolist() == ratings.predicted[mask].tolist()
    assert np.array_equal(selected.ranks.user, ratings.ranks.user[mask])
    assert selected.threshold is ratings.threshold
    repeated = ratings.rows(np.repeat(np.arange(len(mask)), 2))
    assert np.array_equal(np.diff(repeated.indptr), 2 * np.diff(ratings.indptr))


@given(list_cases(), st.data())
def test_lists_with_side_data_can_be_reordered(case, data) -> None:
    lists = case.data()
    order = data.draw(st.permutations(range(case.n_users)))
    assert equal_records(lists.users(np.array(order)).users(np.argsort(order)), lists)


def test_missing_users_get_empty_entries() -> None:
    lists = rm.TopLists(np.array([[2, 1], [0, -1]]), 3, np.ones(2, bool), np.array([True, False]))
    reordered = lists.users(np.array([1, -1, 0]))
    assert reordered.items.tolist() == [[0, -1], [-1, -1], [2, 1]]
    assert reordered.known.tolist() == [True, False, True]
    assert reordered.cut_in_ties.tolist() == [False, False, True]
    assert reordered.flags.tolist() == [1, 0, 1]
    missing = lists.users(slice(0, 0)).users(np.array([-1]))
    assert missing.items.tolist() == [[-1, -1]]
    side = Side(np.array([0, 1, 3]), np.array([5, 6, 7]), np.array([1.0, 2.0, 3.0]))
    side_of_users = side.users(np.array([1, -1]))
    assert side_of_users.indptr.tolist() == [0, 2, 2]
    assert side_of_users.items.tolist() == [6, 7]


def test_columns_of_wrong_lengths_are_refused() -> None:
    side = Side(np.array([0, 1]), np.array([3]), np.array([1.0]))
    with pytest.raises(rm.InternalError, match=r"Side.gain must have one entry per row: 2 of 1"):
        dataclasses.replace(side, gain=np.ones(2))
    lists = rm.TopLists(np.array([[0]]), 1, np.ones(1, bool), np.zeros(1, bool))
    with pytest.raises(rm.InternalError, match=r"TopLists.known must have one entry per user"):
        dataclasses.replace(lists, known=np.ones(2, bool))
    with pytest.raises(rm.InternalError, match=r"ListData.item_users must have one entry per item"):
        ListData(lists, item_users=np.ones(2, np.int64))
    other_side = Side(np.array([0, 1, 1]), np.array([3]), np.array([1.0]))
    with pytest.raises(rm.InternalError, match=r"ListData.train must have one entry per user"):
        ListData(lists, train=other_side)
    with pytest.raises(rm.InternalError, match=r"ListData.relevant must have one entry per row"):
        ListData(lists, test=side, relevant=np.ones(2, bool))


def test_tables_declare_their_row_offsets() -> None:
    for kind in RECORDS:
        if issubclass(kind, Table) and kind is not Ratings:  # Ratings stores no offsets itself
            assert [f.name for f in dataclasses.fields(kind) if f.metadata.get("per") == "offset"]

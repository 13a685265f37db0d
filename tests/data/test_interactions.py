"""Tests of `Interactions.of` and of the class `Interactions`."""

from __future__ import annotations

import datetime
import subprocess
import sys
import types
import uuid

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse
from frames import FRAMES, ArrowStream
from hypothesis import given
from hypothesis import strategies as st

import recometer as rm
from recometer.data.columns import find_columns
from recometer.errors import ColumnError, DataWarning, FileError, InputError, InputTypeError
from recometer.ragged import take

SPARSE_FORMATS = ("csr", "csc", "coo", "lil", "dok", "bsr", "dia")


def facts(interactions: rm.Interactions) -> dict[str, object]:
    """Return the contents of interactions as plain Python values."""
    values, times = interactions.values, interactions.times
    return {
        "indptr": interactions.indptr.tolist(),
        "items": interactions.items.tolist(),
        "values": [1.0] * len(interactions) if values is None else values.tolist(),
        "times": None if times is None else times.tolist(),
        "n_items": interactions.n_items,
        "user_ids": None if interactions.user_ids is None else interactions.user_ids.tolist(),
        "item_ids": None if interactions.item_ids is None else interactions.item_ids.tolist(),
    }


# Tests of sparse and dense matrices


@pytest.mark.parametrize("form", ["csr", "csc", "coo", "bsr", "dia"])
def test_sparse_matrix_is_read_from_a_file(tmp_path, form):
    matrix = scipy.sparse.coo_array(([2.0, 3.0, 4.0], ([0, 1, 1], [1, 0, 2])), shape=(3, 4))
    path = tmp_path / "test.npz"
    scipy.sparse.save_npz(path, matrix.asformat(form))
    for source in (path, str(path)):
        assert facts(rm.Interactions.of(source)) == facts(rm.Interactions.of(matrix.tocsr()))
    source = rm.Interactions.of(path, user_ids=["c", "a", "b"])
    assert source.user_ids.tolist() == ["a", "b", "c"]
    assert rm.evaluate(rm.Scores(matrix.toarray()), path, metrics="rr").mean() == {"rr": 1.0}


def test_interactions_are_returned_unchanged():
    interactions = rm.Interactions.of({"a": ["x"]})
    assert rm.Interactions.of(interactions) is interactions
    with pytest.raises(InputError, match="n_users= does not apply to Interactions"):
        rm.Interactions.of(interactions, n_users=1)


@pytest.mark.parametrize("form", SPARSE_FORMATS)
@pytest.mark.parametrize("kind", [scipy.sparse.csr_array, scipy.sparse.csr_matrix])
def test_every_sparse_format_is_read(form, kind):
    matrix = kind(np.array([[0, 2.5, 0], [0, 0, 0], [1, 0, -3]])).asformat(form)
    interactions = rm.Interactions.of(matrix)
    assert facts(interactions) == {
        "indptr": [0, 1, 1, 3],
        "items": [1, 0, 2],
        "values": [2.5, 1.0, -3.0],
        "times": None,
        "n_items": 3,
        "user_ids": None,
        "item_ids": None,
    }
    assert interactions.indptr.dtype == np.int64
    assert interactions.items.dtype == np.int32
    assert interactions.values.dtype == np.float64
    assert (interactions.n_users, interactions.n_items, len(interactions)) == (3, 3, 3)


def unsorted_matrix():
    return scipy.sparse.csr_array(
        (np.array([1.0, 2.0, 3.0, 4.0]), np.array([2, 0, 2, 1]), np.array([0, 3, 4])), shape=(2, 3)
    )


@pytest.mark.parametrize("form", ["csr", "coo", "csc"])
def test_duplicates_of_a_sparse_matrix_are_summed_with_a_warning(form):
    matrix = unsorted_matrix()
    if form == "coo":
        matrix = matrix.tocoo()
    if form == "csc":
        matrix = scipy.sparse.csc_array(
            (np.array([2.0, 4.0, 1.0, 3.0]), np.array([0, 1, 0, 0]), np.array([0, 1, 2, 4])),
            shape=(2, 3),
        )
    with pytest.warns(DataWarning) as warned:
        interactions = rm.Interactions.of(matrix)
    assert str(warned[0].message) == (
        "1 of 4 interactions repeat a user-item pair (the first: row 0 and column 2); their values "
        "were summed."
    )
    assert warned[0].filename == __file__
    assert facts(interactions)["items"] == [0, 2, 1]
    assert facts(interactions)["values"] == [2.0, 4.0, 4.0]


def test_sparse_input_is_not_modified():
    matrix = unsorted_matrix()
    with pytest.warns(DataWarning):
        rm.Interactions.of(matrix)
    assert matrix.indices.tolist() == [2, 0, 2, 1]
    assert matrix.data.tolist() == [1, 2, 3, 4]
    assert matrix.nnz == 4


def test_sums_do_not_depend_on_the_order_of_rows():
    values = [0.1, 0.7, -0.3, 1e17, -1e17, 0.2]
    sums = set()
    for shift in range(6):
        data = values[shift:] + values[:shift]
        with pytest.warns(DataWarning):
            interactions = rm.Interactions.of(scipy.sparse.coo_array((data, ([0] * 6, [0] * 6))))
        sums.add(float(interactions.values[0]))
    assert len(sums) == 1


@pytest.mark.parametrize("form", ["csr", "csc", "coo"])
def test_stored_zeros_are_kept(form):
    matrix = scipy.sparse.csr_array((np.array([0.0, 5.0]), np.array([0, 1]), np.array([0, 2])))
    assert facts(rm.Interactions.of(matrix.asformat(form)))["values"] == [0.0, 5.0]


def test_padding_of_blocks_and_diagonals_is_left_out():
    matrix = scipy.sparse.csr_array(np.array([[1, 0, 0, 2], [0, 3, 0, 0]]))
    expected = facts(rm.Interactions.of(matrix))
    assert facts(rm.Interactions.of(matrix.tobsr(blocksize=(2, 2)))) == expected
    assert facts(rm.Interactions.of(matrix.todia())) == expected


def test_boolean_values_are_kept_only_if_some_are_false():
    assert rm.Interactions.of(scipy.sparse.csr_array(np.array([[True, False]]))).values is None
    stored = scipy.sparse.csr_array((np.array([True, False]), np.array([0, 1]), np.array([0, 2])))
    assert rm.Interactions.of(stored).values.tolist() == [1.0, 0.0]
    assert rm.Interactions.of(np.array([[True, False]])).values is None


def test_canonical_csr_matrix_is_not_copied():
    matrix = scipy.sparse.random(50, 80, density=0.1, format="csr", random_state=0)
    matrix.sort_indices()
    interactions = rm.Interactions.of(matrix)
    assert np.shares_memory(interactions.items, matrix.indices)
    assert np.shares_memory(interactions.values, matrix.data)


def test_csr_arrays_may_be_longer_than_their_content():
    matrix = scipy.sparse.csr_array((2, 3))
    matrix.indices = np.array([2, 0, 1, 1], dtype=np.int32)
    matrix.data = np.array([1.0, 2.0, 3.0, 4.0])
    matrix.indptr = np.array([0, 1, 2], dtype=np.int32)
    assert facts(rm.Interactions.of(matrix))["values"] == [1.0, 2.0]


def test_column_index_beyond_the_matrix_is_refused():
    matrix = scipy.sparse.csr_array((1, 3))
    matrix.indices, matrix.data = np.array([3]), np.array([1.0])
    matrix.indptr = np.array([0, 1])
    with pytest.raises(InputError, match=r"item index 3 in entry 0 .* is too large.* 0 to 2"):
        rm.Interactions.of(matrix)


def test_sparse_values_may_be_infinite_but_not_nan():
    with pytest.raises(InputError, match=r"value of row 1 and column 2 is NaN\. Hint: drop"):
        rm.Interactions.of(scipy.sparse.csr_array(np.array([[1, 0, 0], [1, 0, np.nan]])))
    assert rm.Interactions.of(scipy.sparse.csr_array(np.array([[np.inf]]))).values[0] == np.inf


def test_complex_sparse_values_are_refused():
    with pytest.raises(InputTypeError, match=r"must be numbers, found complex \(for instance 1j\)"):
        rm.Interactions.of(scipy.sparse.csr_array(np.array([[1j]])))


@pytest.mark.parametrize("form", ["csr", "csc", "coo"])
def test_sparse_values_may_be_numbers_of_dtype_object(form):
    def matrix(*values):
        array = scipy.sparse.csr_array(np.eye(2)).asformat(form)
        array.data = np.array(values, dtype=object)
        return array

    assert rm.Interactions.of(matrix(1, 2.5)).values.tolist() == [1.0, 2.5]
    with pytest.raises(InputError, match="value of row 1 and column 1 is NaN"):
        rm.Interactions.of(matrix(1, None))
    with pytest.raises(InputTypeError, match=r"must be numbers, found str \(for instance 'b'\)"):
        rm.Interactions.of(matrix(1, "b"))


def test_one_dimensional_sparse_array_is_refused():
    with pytest.raises(InputError, match=r"shape \(3,\) does not fit"):
        rm.Interactions.of(scipy.sparse.coo_array(np.array([1, 0, 2])))


def test_matrix_of_another_shape_is_refused():
    matrix = np.eye(3)
    assert len(rm.Interactions.of(matrix, n_users=3, n_items=3)) == 3
    with pytest.raises(InputError, match=r"\(3, 3\) does not fit: expected \(3, 4\) = "):
        rm.Interactions.of(matrix, n_users=3, n_items=4)
    with pytest.raises(InputError, match="n_users= and n_items= go together"):
        rm.Interactions.of(scipy.sparse.eye(3), n_users=3)


@pytest.mark.parametrize("option", ["user", "item", "value", "time"])
def test_column_options_are_refused_for_a_matrix(option):
    for matrix, description in ((np.eye(2), "a dense matrix"), (scipy.sparse.eye(2), "a sparse")):
        with pytest.raises(InputError, match=f"{option}= does not apply to {description}"):
            rm.Interactions.of(matrix, **{option: "a"})


def test_zeros_of_a_dense_matrix_are_left_out():
    dense = np.array([[0, 2], [3, 0], [0, 0]])
    interactions = rm.Interactions.of(dense)
    assert facts(interactions)["indptr"] == [0, 1, 2, 2]
    assert facts(interactions)["values"] == [2.0, 3.0]
    assert facts(rm.Interactions.of(np.asfortranarray(dense))) == facts(interactions)
    with pytest.warns(PendingDeprecationWarning):
        matrix = np.matrix(dense)
    assert facts(rm.Interactions.of(matrix)) == facts(interactions)


def test_error_about_nan_in_a_dense_matrix_names_row_and_column():
    with pytest.raises(InputError, match="row 1 and column 0 is NaN"):
        rm.Interactions.of(np.array([[0, 2.0], [np.nan, 0]]))


def test_masked_entries_are_left_out():
    masked = np.ma.masked_invalid([[1.0, np.nan]])
    assert facts(rm.Interactions.of(masked))["items"] == [0]


@pytest.mark.parametrize("shape", [(3,), (2, 2, 2)])
def test_dense_arrays_must_have_two_dimensions(shape):
    with pytest.raises(InputError, match="does not fit: expected"):
        rm.Interactions.of(np.ones(shape))


def test_dense_matrix_of_strings_is_refused():
    with pytest.raises(InputTypeError, match=r"must be numbers, found str \(for instance 'a'\)"):
        rm.Interactions.of(np.array([["a"]]))


def test_ids_of_a_matrix_reorder_its_rows_and_columns():
    matrix = scipy.sparse.csr_array(np.array([[1, 2], [0, 3]]))
    interactions = rm.Interactions.of(matrix, user_ids=["b", "a"], item_ids=np.array([20, 10]))
    assert facts(interactions) == facts(rm.Interactions.of({"b": {20: 1, 10: 2}, "a": {10: 3}}))
    sorted_ids = rm.Interactions.of(matrix, user_ids=["a", "b"])
    assert np.shares_memory(sorted_ids.items, matrix.indices)
    assert sorted_ids.user_ids.tolist() == ["a", "b"]
    assert sorted_ids.item_ids is None


def test_mismatched_and_repeated_ids_of_a_matrix_are_refused():
    with pytest.raises(InputError, match="There are 2 users, but 3 user_ids"):
        rm.Interactions.of(np.eye(2), user_ids=[1, 2, 3])
    with pytest.raises(InputError, match="item_ids must be distinct, but 'x' occurs twice"):
        rm.Interactions.of(np.eye(2), item_ids=["x", "x"])
    with pytest.raises(InputError, match="user_ids must be distinct, but 7 occurs twice"):
        rm.Interactions.of(np.eye(2), user_ids=[7, 7])
    with pytest.raises(InputError, match="user_ids= does not apply to data with ids"):
        rm.Interactions.of({"a": ["x"]}, user_ids=["a"])


# Dicts


def test_dict_of_dicts_holds_values():
    interactions = rm.Interactions.of({"b": {"y": 2, "x": 1.5}, "a": {}})
    assert facts(interactions) == {
        "indptr": [0, 0, 2],
        "items": [0, 1],
        "values": [1.5, 2.0],
        "times": None,
        "n_items": 2,
        "user_ids": ["a", "b"],
        "item_ids": ["x", "y"],
    }


@pytest.mark.parametrize("container", [list, tuple, set, frozenset, np.array, pd.Series])
def test_dict_of_collections_holds_items(container):
    interactions = rm.Interactions.of({3: container([9, 8]), 1: [], 2: container([8])})
    assert interactions.values is None
    assert interactions.user_ids.tolist() == [1, 2, 3]
    assert interactions.indptr.tolist() == [0, 0, 1, 3]
    assert interactions.item_ids.tolist() == [8, 9]
    assert interactions.items.tolist() == [0, 0, 1]


def test_duplicates_in_a_list_count_once_with_a_warning():
    with pytest.warns(DataWarning, match=r"2 of 4 .*user 'a' and item 'x'\); they count once"):
        interactions = rm.Interactions.of({"a": ["x", "x", "y", "x"]})
    assert facts(interactions)["values"] == [1.0, 1.0]


def test_dict_may_hold_positions():
    interactions = rm.Interactions.of({1: [4], 0: [3, 5]}, n_users=2, n_items=3, item_offset=3)
    assert interactions.user_ids is None
    assert interactions.items.tolist() == [0, 2, 1]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"a": "xy"}, "items of user 'a' are of type str"),
        ({"a": 3}, "items of user 'a' are of type int"),
        ({"a": ["x"], "b": {"x": 1}}, "items of user 'b' are of type dict"),
        ({"a": {"x": "good"}}, r"values must be numbers, found str \(for instance 'good'\)"),
        ({"a": ["x"], 1: ["x"]}, r"user ids mix int \(for instance 1\) and str"),
        ({"a": ["x", 1]}, r"item ids mix int \(for instance 1\) and str \(for instance 'x'\)"),
        ({"a": [1j, 2j]}, r"item ids of type complex \(for instance 1j\) cannot be compared"),
        ({"a": [["x"]]}, "item ids of type list .* cannot be compared"),
    ],
)
def test_unreadable_dicts_are_refused(data, message):
    with pytest.raises(InputTypeError, match=message):
        rm.Interactions.of(data)


def test_missing_entries_of_a_dict_are_refused():
    with pytest.raises(InputError, match="value of user 'a' and item 'x' is NaN"):
        rm.Interactions.of({"a": {"x": None}})
    with pytest.raises(InputError, match="item ids have no value in row 1"):
        rm.Interactions.of({"a": ["x", None]})


def test_column_options_are_refused_for_a_dict():
    with pytest.raises(InputError, match="user= does not apply to a dict of users"):
        rm.Interactions.of({"ann": [1], "bob": [2]}, user="user")


@pytest.mark.parametrize(
    "data",
    [
        {"user_id": ["a", "b"], "item_id": ["x", "y"]},
        {"movieId": (1, 2), "userId": np.array([1, 2]), "rating": [3.0, 4.0]},
        {"user": pd.Series([1]), "item": pl.Series([2])},
    ],
)
def test_dict_of_columns_is_refused(data):
    with pytest.raises(InputTypeError, match=r"seems to hold the columns .* polars.DataFrame"):
        rm.Interactions.of(data)
    with pytest.raises(InputTypeError, match="seems to hold the columns"):
        rm.Interactions.of(data, user="user_id")


def test_user_ids_may_equal_column_names():
    for data in ({"user": ["x"], "item": ["x", "y"]}, {"u": ["x"], "i": ["y"]}, {"user": ["x"]}):
        assert rm.Interactions.of(data).user_ids.tolist() == sorted(data)
    assert rm.Interactions.of({"user": {"x": 1}, "item": {"y": 1}}).n_users == 2


# Data frames


def test_frames_are_read_by_column_name(frame):
    data = {
        "userId": ["b", "a", "b"],
        "movieId": [30, 10, 20],
        "rating": [1.5, 2.0, -3.0],
        "timestamp": [7, 8, 9],
        "comment": ["", "x", "y"],
    }
    assert facts(rm.Interactions.of(frame(data))) == {
        "indptr": [0, 1, 3],
        "items": [0, 1, 2],
        "values": [2.0, -3.0, 1.5],
        "times": [8, 9, 7],
        "n_items": 3,
        "user_ids": ["a", "b"],
        "item_ids": [10, 20, 30],
    }


def test_columns_of_a_frame_can_be_named(frame):
    data = {"who": [2, 1], "what": ["x", "y"], "n": [3, 4], "at": [0.5, 1.5]}
    interactions = rm.Interactions.of(frame(data), user="who", item="what", value="n", time="at")
    assert facts(interactions)["values"] == [4.0, 3.0]
    assert facts(interactions)["times"] == [1.5, 0.5]
    with pytest.warns(DataWarning, match=r"'n', 'at' are not read\. Hint: value='n' reads"):
        assert rm.Interactions.of(frame(data), user="who", item="what").values is None


def test_values_and_times_can_be_left_out(frame):
    data = {"user": [1], "item": [2], "rating": [3.0], "date": ["yesterday"]}
    interactions = rm.Interactions.of(frame(data), value=False, time=False)
    assert interactions.values is None
    assert interactions.times is None


def test_error_for_missing_ids_names_the_row(frame):
    with pytest.raises(
        InputError, match=r"user ids \(column 'user'\) have no value in row 1 .*Hint"
    ):
        rm.Interactions.of(frame({"user": ["a", None], "item": [1, 2]}))
    with pytest.raises(InputError, match=r"item ids \(column 'item'\) have no value in row 2"):
        rm.Interactions.of(frame({"user": ["a", "b", "c"], "item": [1, 2, None]}))


def test_error_for_missing_values_names_user_and_item(frame):
    data = {"user": ["a", "b"], "item": [1, 2], "value": [1.0, None]}
    with pytest.raises(InputError, match="value of user 'b' and item 2 is NaN"):
        rm.Interactions.of(frame(data))


def test_error_for_missing_booleans_names_user_and_item(frame):
    data = {"user": ["a", "b"], "item": [1, 2], "value": [True, None]}
    with pytest.raises(InputError, match="value of user 'b' and item 2 is NaN"):
        rm.Interactions.of(frame(data))
    data["value"] = [True, True]
    assert facts(rm.Interactions.of(frame(data)))["values"] == [1.0, 1.0]


def test_error_for_missing_times_names_the_row(frame):
    data = {"user": ["a", "b"], "item": [1, 2], "time": [1, None]}
    with pytest.raises(InputError, match=r"times \(column 'time'\) have no value in row 1 "):
        rm.Interactions.of(frame(data))


def test_dates_become_microseconds(frame):
    naive = [datetime.datetime(1970, 1, 2), datetime.datetime(1970, 1, 1, 0, 0, 1)]
    data = {"user": [1, 2], "item": [1, 1], "time": naive}
    assert rm.Interactions.of(frame(data)).times.tolist() == [86_400_000_000, 1_000_000]
    zone = datetime.timezone(datetime.timedelta(hours=1))
    data["time"] = [moment.replace(tzinfo=zone) for moment in naive]
    assert rm.Interactions.of(frame(data)).times.tolist() == [82_800_000_000, -3_599_000_000]
    data["time"] = [datetime.date(1970, 1, 2), datetime.date(1970, 1, 1)]
    assert rm.Interactions.of(frame(data)).times.tolist() == [86_400_000_000, 0]
    data["time"] = [datetime.datetime(1970, 1, 2), None]
    with pytest.raises(InputError, match=r"times \(column 'time'\) have no value in row 1 "):
        rm.Interactions.of(frame(data))


def test_dates_in_seconds_become_microseconds():
    moments = np.array(["1970-01-01T00:00:01"], dtype="M8[s]")
    frame = pd.DataFrame({"user": [1], "item": [2], "time": moments})
    assert rm.Interactions.of(frame).times.tolist() == [1_000_000]


def test_text_in_columns_of_values_and_times_is_refused(frame):
    data = {"user": [1], "item": [2], "value": ["good"]}
    with pytest.raises(InputTypeError, match=r"values \(column 'value'\) must be numbers, found"):
        rm.Interactions.of(frame(data))
    data = {"user": [1], "item": [2], "time": ["today"]}
    message = r"The times \(column 'time'\): row 0 \(counted from 0\) holds 'today'\..*2024-05-31"
    with pytest.raises(InputError, match=message):
        rm.Interactions.of(frame(data))
    with pytest.raises(InputTypeError, match="must be numbers or dates, found List"):
        rm.Interactions.of(pl.DataFrame({**data, "time": [[1]]}))


@pytest.mark.parametrize(
    ("texts", "times"),
    [
        (["1970-01-02", "1970-01-01"], [86_400_000_000, 0]),
        (["1970-01-02T00:00:01", "1970-01-01T00:00:02"], [86_401_000_000, 2_000_000]),
        (["12", " 7"], [12, 7]),
        (["1.5", "7"], [1.5, 7.0]),
    ],
)
def test_times_are_read_from_text(frame, texts, times):
    data = {"user": [1, 1], "item": [2, 3], "time": texts}
    assert rm.Interactions.of(frame(data)).times.tolist() == times
    data["time"] = ["03/04/2020", "05/06/2020"]
    with pytest.raises(InputError, match=r"'03/04/2020', and no row shows which .* is the day"):
        rm.Interactions.of(frame(data))


def test_duplicate_rows_keep_the_latest_time(frame):
    data = {"user": [1, 1], "item": [2, 2], "time": [5, 3]}
    with pytest.warns(
        DataWarning, match="they count once \\(in test, unless the rule repeated_test"
    ):
        interactions = rm.Interactions.of(frame(data))
    assert interactions.times.tolist() == [5]


def test_columns_may_hold_positions(frame):
    data = {"user": [1, 0], "item": [4, 2]}
    interactions = rm.Interactions.of(frame(data), n_users=3, n_items=4, item_offset=1)
    assert facts(interactions)["indptr"] == [0, 1, 2, 2]
    assert facts(interactions)["items"] == [1, 3]
    assert interactions.user_ids is None
    interactions_with_ids = rm.Interactions.of(
        frame(data), n_users=2, n_items=5, user_ids=["b", "a"], item_ids=range(5)
    )
    assert interactions_with_ids.user_ids.tolist() == ["a", "b"]
    assert interactions_with_ids.items.tolist() == [4, 2]


def test_positions_out_of_range_are_refused(frame):
    def read_columns(users, items, **options):
        return rm.Interactions.of(
            frame({"user": users, "item": items}), n_users=3, n_items=2, **options
        )

    with pytest.raises(InputError, match=r"user index 3 in row 1 .* too large: .* 0 to 2\."):
        read_columns([0, 3], [0, 1])
    with pytest.raises(InputError, match=r"user index -1 in row 0 .* is negative"):
        read_columns([-1, 2], [0, 1])
    with pytest.raises(InputError, match=r"item index 2 in row 1 .* below item_offset: .* 3 to 4"):
        read_columns([0, 0], [3, 2], item_offset=3)
    with pytest.raises(InputError, match=r"item index 2 in row 0 .* too large"):
        read_columns([0, 0], [2, 1])
    with pytest.raises(InputTypeError, match=r"Positions of users must be integers.*'a'.*Hint"):
        read_columns(["a"], [1])


def test_invalid_options_of_positions_are_refused():
    frame = pl.DataFrame({"user": [0], "item": [0]})
    with pytest.raises(InputError, match="n_users= and n_items= go together"):
        rm.Interactions.of(frame, n_items=3)
    with pytest.raises(InputError, match=r"n_items=-1 must be a whole number from 0 to"):
        rm.Interactions.of(frame, n_users=1, n_items=-1)
    with pytest.raises(InputError, match=r"n_users=1\.5 must be a whole number"):
        rm.Interactions.of(frame, n_users=1.5, n_items=2)
    with pytest.raises(InputError, match="item_offset= does not apply to data whose items are ids"):
        rm.Interactions.of(frame, item_offset=1)


def test_error_about_an_unknown_column_lists_the_columns(frame):
    data = {"user_id": [1], "item_id": [2]}
    with pytest.raises(ColumnError) as caught:
        rm.Interactions.of(frame(data), user="user")
    assert str(caught.value) == (
        "There is no column 'user'. Hint: Did you mean 'user_id'? Known: user_id, item_id."
    )


def test_duplicate_column_names_are_refused():
    frame = pd.DataFrame([[1, 2, 3]], columns=["user", "item", "user"])
    with pytest.raises(ColumnError, match="There are 2 columns named 'user'"):
        rm.Interactions.of(frame, user="user")


def test_column_names_may_be_numbers():
    frame = pd.DataFrame([[1, 2], [3, 4]])
    assert rm.Interactions.of(frame, user="0", item="1").user_ids.tolist() == [1, 3]


def test_single_column_is_refused():
    columns = [pd.Series([1]), pl.Series([1]), pa.array([1]), pa.chunked_array([[1]])]
    for column in columns:
        with pytest.raises(InputTypeError, match=r"from one column .*Hint: pass a data frame"):
            rm.Interactions.of(column)
    index = pd.MultiIndex.from_tuples([("a", "x")], names=["user", "item"])
    frame_of_series = pd.Series([2.0], index=index, name="rating").reset_index()
    assert facts(rm.Interactions.of(frame_of_series))["values"] == [2.0]


def test_arrow_stream_without_a_table_is_refused():
    with pytest.raises(InputTypeError, match="Arrow stream of ArrowStream cannot be read"):
        rm.Interactions.of(ArrowStream(pa.chunked_array([[1]])))


def test_error_about_a_failing_lazy_frame_quotes_its_cause(tmp_path):
    frame = pl.LazyFrame({"user": ["a"], "item": ["x"]})
    with pytest.raises(ColumnError, match=r"lazy frame cannot .*\"itm\".*Hint: .*\.collect\(\)"):
        rm.Interactions.of(frame.select("user", "itm"))
    with pytest.raises(ColumnError, match=r"common name for items.* Columns: thing\.|item= with"):
        rm.Interactions.of(frame.rename({"item": "thing"}))
    with pytest.raises(InputError, match="lazy frame cannot be executed: conversion from `str`"):
        rm.Interactions.of(frame.with_columns(pl.col("item").cast(pl.Int64)))
    with pytest.raises(FileError, match="lazy frame cannot be executed: No such file"):
        rm.Interactions.of(pl.scan_parquet(tmp_path / "nowhere.parquet"))


# DuckDB


def test_only_needed_columns_of_a_duckdb_relation_are_read():
    relation = duckdb.sql(
        "select 'a' as user_id, 1 as item_id, cast(text as integer) as broken "
        "from (values ('none')) as rows(text)"
    )
    assert facts(rm.Interactions.of(relation, value=False))["user_ids"] == ["a"]
    with pytest.raises(InputError, match=r"DuckDB relation cannot .*'none'.*Hint: .*fetchall"):
        rm.Interactions.of(relation, value="broken")


def test_column_names_may_contain_special_characters_of_sql():
    relation = duckdb.sql('select 1 as "the user", 2 as "a.b", 3 as "say ""n"""')
    interactions = rm.Interactions.of(relation, user="the user", item="a.b", value='say "n"')
    assert (interactions.user_ids[0], interactions.item_ids[0], interactions.values[0]) == (
        1,
        2,
        3.0,
    )


def test_columns_of_duckdb_types_are_read():
    relation = duckdb.sql(
        "select sum(n) as user_id, 7::decimal(9, 0) as item_id, 2.5::decimal(9, 2) as rating, "
        "timestamp '1970-01-01 00:00:01' as time from (values (3), (4)) as rows(n)"
    )
    interactions = rm.Interactions.of(relation)
    assert interactions.user_ids.dtype == interactions.item_ids.dtype == np.int64
    assert facts(interactions) == {
        "indptr": [0, 1],
        "items": [0],
        "values": [2.5],
        "times": [1_000_000],
        "n_items": 1,
        "user_ids": [7],
        "item_ids": [7],
    }
    kinds = duckdb.sql("select 'x'::enum('w', 'x') as user_id, date '2024-01-02' as item_id")
    interactions = rm.Interactions.of(kinds)
    assert (interactions.user_ids[0], interactions.item_ids[0]) == ("x", datetime.date(2024, 1, 2))


def test_unused_categories_are_not_read_as_ids():
    ids = pd.Categorical(["b", "a"], categories=["c", "b", "a"])
    interactions = rm.Interactions.of(pd.DataFrame({"user": ids, "item": [1, 2]}))
    assert interactions.user_ids.tolist() == ["a", "b"]
    categories = pl.Series(["b", "a"], dtype=pl.Enum(["c", "b", "a"]))
    interactions = rm.Interactions.of(pl.DataFrame({"user": categories, "item": [1, 2]}))
    assert interactions.user_ids.tolist() == ["a", "b"]


def test_arrow_dictionaries_and_uuids_can_be_ids():
    uuid_of_user = uuid.UUID(int=5)
    table = pa.table(
        {
            "user": pa.array([uuid_of_user.bytes], type=pa.uuid()),
            "item": pa.array(["x"]).dictionary_encode(),
        }
    )
    interactions = rm.Interactions.of(table)
    assert interactions.user_ids.tolist() == [uuid_of_user]
    assert interactions.item_ids.tolist() == ["x"]


@pytest.mark.parametrize(
    "empty_column", [pl.Series([], dtype=pl.Int64), pl.Series([], dtype=pl.String)]
)
def test_empty_frame_is_read_as_no_interactions(empty_column):
    interactions = rm.Interactions.of(pl.DataFrame({"user": empty_column, "item": empty_column}))
    assert (len(interactions), interactions.n_users, interactions.n_items) == (0, 0, 0)


@pytest.mark.parametrize(
    "empty", [{}, {"a": []}, {"a": {}}, np.zeros((0, 0)), np.zeros((2, 3)), pl.DataFrame(
        {"user": [], "item": [], "value": [], "time": []})]
)  # fmt: skip
def test_empty_data_is_accepted(empty):
    interactions = rm.Interactions.of(empty)
    assert len(interactions) == 0
    assert interactions.indptr.tolist() == [0] * (interactions.n_users + 1)


def test_unsupported_data_is_refused():
    with pytest.raises(InputTypeError, match=r"cannot be read from list\. Hint: pass a SciPy"):
        rm.Interactions.of([[1, 2]])
    with pytest.raises(InputTypeError, match="from NoneType"):
        rm.Interactions.of(None)


# Column names


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["userId", "movieId", "rating", "timestamp"], "userId movieId rating timestamp"),
        (["USER ID", "Item-ID"], "USER ID,Item-ID"),
        (["visitorid", "itemid", "event"], "visitorid itemid"),
        (["x", "u", "i", "t"], "u,i,,t"),
        (["date", "product_id", "customer_id", "stars"], "customer_id product_id stars date"),
        (["uid", "iid", "count", "weight_unit"], "uid iid count"),
    ],
)
def test_columns_with_common_names_are_found(names, expected):
    columns = expected.split("," if "," in expected else None)
    assert tuple(find_columns(names)) == tuple([c or None for c in [*columns, "", ""]][:4])


@pytest.mark.parametrize(
    ("names", "options", "message"),
    [
        (["a", "item"], {}, r"No column has a common name for users\. Hint: pass user=.*: a, item"),
        (["user", "b"], {}, "No column has a common name for items. Hint: pass item="),
        ([], {}, "Columns: none"),
        (["user", "user_id", "item"], {}, "hold the users: 'user', 'user_id'. Hint: pass user="),
        (["u", "item_id", "movieId"], {}, "hold the items: 'item_id', 'movieId'. Hint: pass item="),
        (["u", "i", "count", "rating"], {}, "the values: 'count', 'rating'.*or value=False for"),
        (["u", "i", "date", "ts"], {}, "the times: 'date', 'ts'.*or time=False for none"),
        (["u", "i"], {"item": "u"}, "user= and item= both name the column 'u'"),
        (["u", "i"], {"value": "valu"}, "There is no column 'valu'"),
    ],
)  # fmt: skip
def test_missing_and_ambiguous_columns_are_refused(names, options, message):
    if "both name" in message:
        options = {"user": "u", **options}
    with pytest.raises(ColumnError, match=message):
        find_columns(names, **options)


def test_column_named_for_one_role_is_not_detected_for_another():
    columns = find_columns(["user", "item", "item_id"], user="item", item="item_id")
    assert columns == ("item", "item_id", None, None)


def test_column_options_must_be_names():
    with pytest.raises(InputTypeError, match="value= must be the name of a column, found list"):
        find_columns(["user", "item"], value=[1.0])
    with pytest.raises(InputTypeError, match=r"user= must be the name of a column.*, found bool"):
        find_columns(["user", "item"], user=False)


# edge_index


def test_edge_index_is_read_with_values_and_times():
    index = np.array([[1, 0, 1], [5, 4, 3]], dtype=np.int32)
    interactions = rm.Interactions.of(
        index, n_users=2, n_items=3, item_offset=3, value=[0.5, 1, 2], time=[1, 2, 3]
    )
    assert facts(interactions)["indptr"] == [0, 1, 3]
    assert facts(interactions)["items"] == [1, 0, 2]
    assert facts(interactions)["values"] == [1.0, 2.0, 0.5]
    assert facts(interactions)["times"] == [2, 3, 1]
    assert index.tolist() == [[1, 0, 1], [5, 4, 3]]


def test_two_rows_of_integers_without_sizes_are_read_as_a_matrix():
    index = np.array([[1, 0, 1], [2, 1, 0]])
    assert rm.Interactions.of(index).n_users == 2
    assert facts(rm.Interactions.of(index))["values"] == [1, 1, 2, 1]
    assert facts(rm.Interactions.of(index, n_users=2, n_items=3))["indptr"] == [0, 1, 3]


@pytest.mark.parametrize("index", [[[0, 1, 2], [13, 14, 15]], [[11], [0]]])
def test_two_rows_that_look_like_an_edge_index_cause_a_warning(index):
    with pytest.warns(DataWarning, match=r"matrix of 2 users\. Hint: if it is an edge_index"):
        assert rm.Interactions.of(np.array(index)).n_users == 2
    assert rm.Interactions.of(np.array(index, float)).n_users == 2


def test_invalid_edge_index_is_refused():
    index = np.array([[1, 0], [5, 4]])
    with pytest.raises(InputError, match=r"item index 5 in edge 0 .* too large"):
        rm.Interactions.of(index, n_users=2, n_items=5)
    with pytest.raises(InputError, match=r"user index -1 in edge 1 .* negative"):
        rm.Interactions.of(np.array([[0, -1], [0, 0]]), n_users=2, n_items=5)
    with pytest.raises(InputError, match="n_users= and n_items= go together"):
        rm.Interactions.of(index, n_users=2)
    with pytest.raises(InputError, match=r"value= .* entry per edge, of shape \(2,\), .* \(3,\)"):
        rm.Interactions.of(index, n_users=2, n_items=6, value=[1, 2, 3])
    with pytest.raises(InputError, match=r"edge_index has the shape \[2, n_edges\]"):
        rm.Interactions.of(np.zeros((3, 2), int), n_users=2, n_items=6)
    with pytest.raises(InputError, match=r"holds integers"):
        rm.Interactions.of(index.astype(float), n_users=2, n_items=6)
    with pytest.raises(InputError, match="user= does not apply to an edge_index"):
        rm.Interactions.of(index, n_users=2, n_items=6, user="u")


class FakeTensor:
    """A stand-in for torch.Tensor, which can be copied to a NumPy array on the CPU."""

    device = types.SimpleNamespace(type="cuda")

    def __init__(self, array, steps=()):
        self.array = np.array(array)
        self.steps = steps

    def detach(self):
        return FakeTensor(self.array, (*self.steps, "detach"))

    def cpu(self):
        return FakeTensor(self.array, (*self.steps, "cpu"))

    def numpy(self):
        assert self.steps == ("detach", "cpu")
        return self.array


def test_torch_tensors_are_copied_to_numpy(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", types.SimpleNamespace(Tensor=FakeTensor))
    index = FakeTensor([[1, 0], [2, 3]])
    interactions = rm.Interactions.of(
        index, n_users=2, n_items=2, item_offset=2, value=FakeTensor([3.0, 4.0])
    )
    assert facts(interactions)["items"] == [1, 0]
    assert facts(interactions)["values"] == [4.0, 3.0]
    assert facts(rm.Interactions.of(FakeTensor([[0.0, 2.0]])))["values"] == [2.0]


# The result


def test_repr_states_sizes_types_and_values():
    interactions = rm.Interactions.of({"a": {1: 2.5, 2: 4}, "b": {}})
    assert repr(interactions) == (
        "Interactions(2 users (str ids), 2 items (int ids), 2 interactions, values 2.5 to 4)"
    )
    assert repr(rm.Interactions.of(np.zeros((3, 2000)))) == (
        "Interactions(3 users (positions), 2,000 items (positions), 0 interactions)"
    )
    frame = pl.DataFrame({"user": [1], "item": [2], "time": [7]})
    assert "every time 7" in repr(rm.Interactions.of(frame))


def test_to_csr_returns_a_copy():
    dense = np.array([[0, 2.0, 0], [0, 0, 0], [4, 0, 5]])
    interactions = rm.Interactions.of(dense)
    matrix = interactions.to_csr()
    assert matrix.format == "csr"
    assert (matrix.toarray() == dense).all()
    matrix.data[:] = 0
    assert interactions.values.tolist() == [2, 4, 5]
    assert rm.Interactions.of({0: [1]}).to_csr().toarray().tolist() == [[1.0]]


def test_select_users_accepts_positions_or_a_mask():
    interactions = rm.Interactions.of(np.array([[0, 2.0, 0], [0, 0, 0], [4, 0, 5]]))
    selected = interactions.select_users([2, 1, 0])
    assert selected.to_csr().toarray().tolist() == [[4, 0, 5], [0, 0, 0], [0, 2, 0]]
    assert interactions.select_users([]).n_users == 0
    assert interactions.select_users([False, False, True]).values.tolist() == [4, 5]
    with pytest.raises(InputError, match="user index 3 in row 0"):
        interactions.select_users([3])
    with pytest.raises(InputError, match="mask of users must have the shape"):
        interactions.select_users([True])


def test_select_users_keeps_ids_and_times():
    frame = pl.DataFrame({"user": ["c", "a", "b"], "item": ["x", "y", "x"], "time": [1, 2, 3]})
    selected = rm.Interactions.of(frame).select_users(np.array([0, 2]))
    assert selected.user_ids.tolist() == ["a", "c"]
    assert selected.item_ids.tolist() == ["x", "y"]
    assert selected.times.tolist() == [2, 1]
    with pytest.raises(InputError, match=r"must be in ascending order. Hint: pass numpy.unique"):
        rm.Interactions.of(frame).select_users([2, 0])


def consistent_arrays() -> dict[str, object]:
    return {
        "indptr": np.array([0, 2, 3]),
        "items": np.array([0, 2, 1], dtype=np.int32),
        "n_items": 3,
    }


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"indptr": np.array([0, 2, 3], dtype=np.int32)}, "indptr must be int64"),
        ({"indptr": np.array([0, 2, 4])}, "begin with 0 and end with 3"),
        ({"indptr": np.array([0, 4, 3])}, "indptr must not decrease"),
        ({"items": np.array([0, 2, 1])}, "items must be int32"),
        ({"items": np.array([2, 0, 1], dtype=np.int32)}, "items must be in ascending order"),
        ({"items": np.array([2, 2, 1], dtype=np.int32)}, "items must be in ascending order"),
        ({"items": np.array([0, 3, 1], dtype=np.int32)}, "between 0 and n_items - 1 = 2"),
        ({"items": np.array([-1, 2, 1], dtype=np.int32)}, "between 0 and n_items - 1 = 2"),
        ({"n_items": 2**31}, "2,147,483,648 items, but at most 2,147,483,647"),
        ({"values": np.ones(2)}, r"values must be float64 \[3\], found float64 \[2\]"),
        ({"values": np.array([1, np.nan, 1])}, "value of row 0 and column 2 is NaN"),
        ({"times": np.ones(3, dtype=np.float32)}, "times must be int64 or float64"),
        ({"times": np.array([1, np.nan, 1])}, "times must not be NaN"),
        ({"user_ids": np.array([1, 2, 3])}, r"user_ids must be .* \[2\]"),
        ({"user_ids": np.array([2, 1])}, "user_ids must be sorted and distinct"),
        ({"item_ids": np.array(["a", "b", "b"], dtype=object)}, "item_ids must be sorted"),
    ],
)  # fmt: skip
def test_constructor_refuses_inconsistent_arrays(change, message):
    assert len(rm.Interactions(**consistent_arrays())) == 3
    with pytest.raises(InputError, match=message):
        rm.Interactions(**{**consistent_arrays(), **change})


def test_interactions_are_frozen():
    with pytest.raises(AttributeError):
        rm.Interactions(**consistent_arrays()).n_items = 4


# Size


def test_too_many_items_are_refused():
    matrix = scipy.sparse.csr_array((1, 2**31))
    with pytest.raises(InputError, match="2,147,483,648 items, but at most 2,147,483,647"):
        rm.Interactions.of(matrix)


def test_row_numbers_beyond_two_billion_do_not_overflow():
    indptr = np.array([0, 3_000_000_000, 3_000_000_002, 6_000_000_000, 6_000_000_001])
    pointers, rows = take(indptr, np.array([1, 3]))
    assert pointers.tolist() == [0, 2, 3]
    assert rows.tolist() == [3_000_000_000, 3_000_000_001, 6_000_000_000]


# Round trips


def sparse_of(users, items, values, shape, form):
    return scipy.sparse.coo_array((values, (users, items)), shape=shape).asformat(form)


@st.composite
def triples(draw, user=None, item=None):
    """Draw distinct (row, column) pairs with nonzero values, and a matrix shape that fits them."""
    n_users, n_items = draw(st.integers(1, 6)), draw(st.integers(1, 6))
    cells = st.tuples(st.integers(0, n_users - 1), st.integers(0, n_items - 1))
    pairs = draw(st.lists(cells, unique=True, max_size=20))
    numbers = st.floats(allow_nan=False).filter(bool)
    values = draw(st.lists(numbers, min_size=len(pairs), max_size=len(pairs)))
    users = np.array([pair[0] for pair in pairs], dtype=np.int64)
    items = np.array([pair[1] for pair in pairs], dtype=np.int64)
    return users, items, np.array(values, dtype=np.float64), (n_users, n_items)


@given(triples(), st.sampled_from(SPARSE_FORMATS), st.sampled_from(sorted(FRAMES)))
def test_every_format_of_positions_gives_equal_interactions(data, form, library):
    users, items, values, shape = data
    size = {"n_users": shape[0], "n_items": shape[1]}
    expected = facts(rm.Interactions.of(sparse_of(users, items, values, shape, "csr")))
    dense = np.zeros(shape)
    dense[users, items] = values
    frame = FRAMES[library]({"user": users, "item": items, "value": values})
    rows = {
        user: dict(zip(items[users == user].tolist(), values[users == user].tolist(), strict=True))
        for user in range(shape[0])
    }
    edges = np.stack([users, items + shape[0]])
    offset = {"item_offset": shape[0], "value": values}
    for interactions in (
        rm.Interactions.of(sparse_of(users, items, values, shape, form)),
        rm.Interactions.of(dense),
        rm.Interactions.of(frame, **size),
        rm.Interactions.of(rows, **size),
        rm.Interactions.of(edges, **size, **offset),
    ):
        assert facts(interactions) == expected


names = st.text(st.characters(exclude_categories=["Cs"]), max_size=4)
kinds_of_ids = st.one_of(
    st.lists(names, min_size=6, max_size=6, unique=True),
    st.lists(st.integers(-(2**63), 2**63 - 1), min_size=6, max_size=6, unique=True),
    st.lists(st.integers(-5, 5), min_size=6, max_size=6, unique=True),
)


@given(triples(), kinds_of_ids, kinds_of_ids, st.sampled_from(sorted(FRAMES)), st.randoms())
def test_every_format_of_ids_gives_equal_interactions(
    data, user_names, item_names, library, random
):
    users, items, values, _ = data
    rows = list(zip(users.tolist(), items.tolist(), values.tolist(), strict=True))
    nested: dict[object, dict[object, float]] = {}
    for user, item, value in rows:
        nested.setdefault(user_names[user], {})[item_names[item]] = value
    expected = facts(rm.Interactions.of(nested, separator=False))
    random.shuffle(rows)
    columns = {
        "user": [user_names[row[0]] for row in rows],
        "item": [item_names[row[1]] for row in rows],
        "value": [row[2] for row in rows],
    }
    assert facts(rm.Interactions.of(FRAMES[library](columns), separator=False)) == expected
    # A sparse matrix with ids gives the same interactions if every user and item has an entry.
    user_ids, item_ids = sorted(set(columns["user"])), sorted(set(columns["item"]))
    random.shuffle(user_ids)
    random.shuffle(item_ids)
    matrix = sparse_of(
        [user_ids.index(user) for user in columns["user"]],
        [item_ids.index(item) for item in columns["item"]],
        columns["value"],
        (len(user_ids), len(item_ids)),
        "csc",
    )
    if rows:
        interactions = rm.Interactions.of(matrix, user_ids=user_ids, item_ids=item_ids)
        assert facts(interactions) == expected


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.floats(-1e3, 1e3))), st.randoms()
)
def test_order_of_rows_changes_nothing_even_with_duplicates(rows, random):
    def read_rows(rows):
        frame = pl.DataFrame(rows, schema=["user", "item", "value"], orient="row")
        if len({row[:2] for row in rows}) == len(rows):
            return facts(rm.Interactions.of(frame))
        with pytest.warns(DataWarning):
            return facts(rm.Interactions.of(frame))

    shuffled = list(rows)
    random.shuffle(shuffled)
    assert read_rows(rows) == read_rows(shuffled)


def test_import_of_interactions_loads_only_numpy():
    program = (
        "import sys, recometer.data.interactions; "
        "print([m for m in ('scipy', 'polars', 'pandas', 'pyarrow', 'torch') if m in sys.modules])"
    )
    command = [sys.executable, "-c", program]
    process = subprocess.run(command, capture_output=True, text=True, check=False)
    assert process.stdout == "[]\n", process.stderr


def test_warning_points_at_the_line_of_the_caller():
    with pytest.warns(DataWarning, match="repeat a user-item pair") as caught:
        rm.Interactions.of({"ann": ["song", "song"]})
    assert caught[0].filename == __file__


def test_duplicates_are_counted():
    with pytest.warns(DataWarning):
        data = rm.Interactions.of({"ann": ["song", "song", "song"], "bob": ["song"]})
    assert data.duplicates == 2
    assert rm.Interactions.of({"ann": ["song"]}).duplicates == 0


@pytest.mark.parametrize("argument", ["test", "train", "candidates"])
def test_errors_in_evaluate_name_the_argument(argument):
    good = pl.DataFrame({"user": ["a"], "item": ["x"]})
    arguments = {"test": good, "train": good, "candidates": good}
    lists = rm.Lists({"a": ["x", "y"]})
    arguments[argument] = pl.DataFrame({"user": ["a"], "produkt": ["x"], "number": [1]})
    message = rf"^{argument}: No column .*rm\.Interactions\.of\({argument}, \.\.\.\)"
    with pytest.raises(ColumnError, match=message):
        rm.evaluate(lists, **arguments)
    arguments[argument] = pl.DataFrame({"user": ["a", None], "item": ["x", "y"]})
    with pytest.raises(InputError, match=f"^{argument}: .*row 1"):
        rm.evaluate(lists, **arguments)


@pytest.mark.parametrize("layout", ["every other", "swapped bytes"])
def test_constructor_arrays_may_have_any_memory_layout(layout):
    def with_layout(array):
        if layout == "swapped bytes":
            return array.astype(array.dtype.newbyteorder())
        return np.repeat(array, 2)[::2]

    matrix = np.array([[2.0, 0.0, 5.0], [0.0, 1.0, 0.0]])
    plain = rm.Interactions.of(matrix)
    constructed = rm.Interactions(
        indptr=with_layout(plain.indptr),
        items=with_layout(plain.items),
        n_items=3,
        values=with_layout(plain.values),
    )
    scores, train = rm.Scores(np.array([[3.0, 2.0, 1.0]] * 2)), np.eye(2, 3)
    results = [
        rm.evaluate(scores, test, train=train, metrics="ndcg@2") for test in (plain, constructed)
    ]
    np.testing.assert_array_equal(results[0]["ndcg@2"], results[1]["ndcg@2"])
    assert rm.evaluate(scores, train, train=constructed, metrics="rr").counts == (
        rm.evaluate(scores, train, train=plain, metrics="rr").counts
    )

"""Tests of id types, of how ids are matched, and of the keys of users."""

from __future__ import annotations

import datetime
import decimal
import subprocess
import sys
import uuid

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import recometer as rm
from recometer.data.ids import as_ids, encode, kind, match, user_keys
from recometer.errors import InputError, InputTypeError

# Kinds of ids


@pytest.mark.parametrize(
    "ids",
    [
        [3, -1, 2**62],
        [2**64 - 1, 0, 5],
        [2**70, -1, 5],
        ["ä", "z", "Z"],
        ["\uffff", "a", "\U0001f600"],
        [2**63, -1, 5],
        [b"b", b"a", b"c"],
        [uuid.UUID(int=3), uuid.UUID(int=1), uuid.UUID(int=2)],
        [datetime.date(2024, 1, 2), datetime.date(2024, 1, 1), datetime.date(1960, 1, 1)],
        [datetime.datetime(2024, 1, 2), datetime.datetime(2024, 1, 1), datetime.datetime(1, 1, 1)],
        [1.5, 0.5, -2.0],
        [decimal.Decimal("1.5"), decimal.Decimal(1), decimal.Decimal(2)],
        [("a", 2), ("a", 1), ("b", 0)],
    ],
    ids=lambda ids: type(ids[0]).__name__,
)
def test_ids_of_any_type_are_sorted(ids):
    interactions = rm.Interactions.of({user: ["x"] for user in ids})
    assert interactions.user_ids.tolist() == sorted(ids)
    assert rm.Interactions.of({"x": ids}).item_ids.tolist() == sorted(ids)


def test_strings_with_invalid_unicode_are_refused():
    with pytest.raises(InputError, match=r"user ids hold '\\ud800', which is not Unicode"):
        rm.Interactions.of({"\ud800": ["x"]})


def test_integer_ids_are_int64_if_they_fit():
    assert rm.Interactions.of({2**63: [1]}).user_ids.dtype == np.uint64
    assert rm.Interactions.of({2**63: [1]}).item_ids.dtype == np.int64
    frame = pl.DataFrame({"user": pl.Series([1, 2], dtype=pl.UInt64), "item": [1, 2]})
    assert rm.Interactions.of(frame).user_ids.dtype == np.int64
    small = pl.DataFrame({"user": pl.Series([1, 2], dtype=pl.Int8), "item": [1, 2]})
    assert rm.Interactions.of(small).user_ids.dtype == np.int64
    huge = pl.DataFrame({"user": pl.Series([2**100, 1], dtype=pl.Int128), "item": [1, 2]})
    assert rm.Interactions.of(huge).user_ids.tolist() == [1, 2**100]


def test_whole_floats_are_read_as_integers():
    interactions = rm.Interactions.of(pd.DataFrame({"user": [1.0, 2.0], "item": ["x", "y"]}))
    assert interactions.user_ids.dtype == np.int64


def test_dates_and_booleans_in_a_frame_can_be_ids():
    frame = pl.DataFrame(
        {"user": [datetime.date(2024, 1, 2), datetime.date(2024, 1, 1)], "item": [True, False]}
    )
    interactions = rm.Interactions.of(frame)
    assert interactions.user_ids.tolist() == [datetime.date(2024, 1, 1), datetime.date(2024, 1, 2)]
    assert interactions.item_ids.tolist() == [False, True]


def test_ids_may_come_from_arrays_of_any_library():
    for ids in (
        np.array(["b", "a"]),
        np.array(["b", "a"], dtype=object),
        pd.Series(["b", "a"]),
        pd.Index(["b", "a"]),
        pl.Series(["b", "a"]),
        pl.Series(["b", "a"], dtype=pl.Categorical),
        pa.array(["b", "a"]),
        ("b", "a"),
    ):
        interactions = rm.Interactions.of(np.eye(2), user_ids=ids)
        assert interactions.user_ids.tolist() == ["a", "b"]
        assert type(interactions.user_ids[0]) is str
    days = rm.Interactions.of(np.eye(2), user_ids=np.array(["2024-01-02", "2024-01-01"], "M8[D]"))
    assert days.user_ids.tolist() == [datetime.date(2024, 1, 1), datetime.date(2024, 1, 2)]


def test_ids_must_be_a_sequence():
    with pytest.raises(InputError, match=r"one dimension, found ndarray of shape \(1, 2\)"):
        rm.Interactions.of(np.eye(2), user_ids=np.array([[1, 2]]))
    with pytest.raises(InputError, match="one dimension, found set"):
        rm.Interactions.of(np.eye(2), user_ids={1, 2})
    with pytest.raises(InputError, match="user ids have no value in row 0"):
        rm.Interactions.of(np.eye(2), user_ids=np.array(["NaT", "2024-01-01"], "M8[D]"))


# Matching


def test_match_returns_positions_or_minus_one():
    assert match([30, 5, 10], [10, 20, 30], "user ids").tolist() == [2, -1, 0]
    assert match(["c", "x", "a"], ["a", "b", "c"], "user ids").tolist() == [2, -1, 0]
    assert match([3, 1], [1, 2, 3], "user ids").dtype == np.int64


def test_match_accepts_unsorted_ids():
    assert match([30, 5, 10], [30, 10, 20], "user ids").tolist() == [0, -1, 1]
    assert match(["c", "x"], ["c", "a"], "user ids").tolist() == [0, -1]


@pytest.mark.parametrize(("left", "right"), [([], [1]), ([], ["a"]), ([], [])])
def test_match_accepts_empty_ids(left, right):
    assert match(left, right, "user ids").tolist() == []
    assert match(right, left, "user ids").tolist() == [-1] * len(right)


def test_integer_ids_of_different_widths_match():
    signed, unsigned = [-1, 7], [7, 2**64 - 1]
    assert as_ids(unsigned, "ids").dtype == np.uint64
    assert match(signed, unsigned, "user ids").tolist() == [-1, 0]
    assert match(unsigned, signed, "user ids").tolist() == [1, -1]
    assert match([7, 2**70], [2**70, 7], "user ids").tolist() == [1, 0]
    assert match(np.array([7], np.int8), [2**70, 7], "user ids").tolist() == [1]


def test_matching_ids_of_different_types_is_refused():
    with pytest.raises(InputTypeError) as caught:
        match([1, 2], ["1", "2"], "user ids of test", "user ids of the factors")
    assert str(caught.value) == (
        "The user ids of test are of type int (for instance 1), but the user ids of the factors "
        "are of type str (for instance '1'). "
        "Hint: convert one side, for instance cast its column to the other's type."
    )
    with pytest.raises(InputTypeError, match=r"of type UUID .* the ids they are matched with are"):
        match([uuid.UUID(int=1)], [1], "item ids of train")


@pytest.mark.parametrize("repeated", [[1, 2, 1], ["a", "b", "a"]])
def test_match_needs_distinct_ids(repeated):
    message = f"ids of x must be distinct, but {repeated[0]!r} occurs twice"
    with pytest.raises(InputError, match=message):
        match(repeated[:1], repeated, "user ids", "ids of x")


def test_matching_missing_ids_is_refused():
    with pytest.raises(InputError, match="user ids of test have no value in row 1"):
        match(["a", None], ["a"], "user ids of test")


ids_of_a_kind = st.one_of(
    st.tuples(st.lists(st.integers(-3, 12)), st.lists(st.integers(-3, 12), unique=True)),
    st.tuples(st.lists(st.integers()), st.lists(st.integers(), unique=True)),
    st.tuples(st.lists(st.text(max_size=2)), st.lists(st.text(max_size=2), unique=True)),
)


@given(ids_of_a_kind)
def test_match_returns_the_position_of_each_common_id(sides):
    ids, other_ids = sides
    expected = [other_ids.index(value) if value in other_ids else -1 for value in ids]
    assert match(ids, other_ids, "ids").tolist() == expected


texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=3)


@given(st.one_of(st.lists(st.integers()), st.lists(st.integers(0, 99)), st.lists(texts)))
def test_encode_assigns_codes_in_the_order_of_the_ids(ids):
    codes, distinct = encode(ids, "ids")
    assert distinct.tolist() == sorted(set(ids))
    assert distinct[codes].tolist() == ids
    assert codes.dtype == np.int64


@pytest.mark.parametrize("make", [list, lambda ids: np.array(ids, object), pd.Series])
@pytest.mark.parametrize(
    ("unusual_id", "error", "message"),
    [
        ("one more", None, None),
        (5, InputTypeError, "mix int"),
        (2**200, InputTypeError, "mix int"),
        (b"bytes", InputTypeError, "mix bytes"),
        (["a", "list"], InputTypeError, "mix list"),
        (None, InputError, "no value in row 777"),
        (np.nan, InputError, "no value in row 777"),
        (pd.NA, InputError, "no value in row 777"),
        ("\ud800", InputError, "not Unicode"),
    ],
)
def test_many_strings_are_encoded_or_refused_like_few(make, unusual_id, error, message):
    """Encode columns that are long enough to be read by Polars.

    If Polars rejects an id, the column is read like a short column, which may succeed or raise a
    more helpful error.
    """
    words = [f"{number % 997} ä" for number in range(20_000)]
    words[777] = unusual_id
    if error is None:
        codes, distinct = encode(make(words), "user ids")
        assert distinct.tolist() == sorted(set(words))
        assert distinct[codes].tolist() == words
    elif not (
        isinstance(unusual_id, str) and make is pd.Series
    ):  # pandas itself rejects these strings
        with pytest.raises(error, match=message):
            encode(make(words), "user ids")


@pytest.mark.parametrize("dtype", [object, "str", "category"])
def test_many_strings_are_read_from_pandas(dtype):
    users = pd.Series([f"{number % 997} ä" for number in range(20_000)], dtype=dtype)
    items = pd.Series(np.arange(20_000).astype(str), dtype=dtype)
    short = rm.Interactions.of(pd.DataFrame({"user_id": users[:500], "item_id": items[:500]}))
    long = rm.Interactions.of(pd.DataFrame({"user_id": users, "item_id": items}))
    assert long.user_ids.tolist() == sorted(set(users))
    for interactions, n in ((short, 500), (long, len(users))):
        expected = {}
        for user, item in zip(users[:n].tolist(), items[:n].tolist(), strict=True):
            expected.setdefault(user, set()).add(item)
        ends = zip(interactions.indptr[:-1], interactions.indptr[1:], strict=True)
        items_of_users = [
            set(interactions.item_ids[interactions.items[start:end]]) for start, end in ends
        ]
        assert dict(zip(interactions.user_ids.tolist(), items_of_users, strict=True)) == expected


def test_kind_returns_the_type_of_the_ids():
    values = {"int": 2**70, "str": "a", "UUID": uuid.UUID(int=1), "bool": True, "float": 0.5}
    for name, value in values.items():
        assert kind(as_ids([value], "ids")) == name
    assert kind(as_ids([datetime.datetime(2024, 1, 1)], "ids")) == "datetime"
    assert kind(as_ids([pd.Timestamp(2024, 1, 1)], "ids")) == "datetime"


# User keys


def keys(ids):
    return user_keys(as_ids(ids, "ids"), len(ids)).tolist()


def test_integer_ids_are_their_own_user_keys():
    assert keys([3, -1, 2**62]) == [3, 2**64 - 1, 2**62]
    assert keys([2**64 - 1]) == [2**64 - 1]
    assert keys([2**64 + 5, -1]) == [5, 2**64 - 1]
    assert user_keys(None, 3).tolist() == [0, 1, 2]
    assert user_keys(None, 3).dtype == np.uint64


def test_user_keys_depend_on_the_id_alone():
    assert keys(["b", "a"]) == keys(["a", "b"])[::-1]
    # If these keys changed, results with ties="random" would differ between releases.
    assert keys(["a", "é"]) == [3405396810240292928, 3394012004367669963]
    assert keys([uuid.UUID(int=1)]) == keys([str(uuid.UUID(int=1))])
    assert user_keys(as_ids([], "ids"), 0).tolist() == []


def test_user_keys_are_the_same_in_every_process():
    program = "from recometer.data.ids import *; print(user_keys(as_ids(['a'], 'ids'), 1)[0])"
    command = [sys.executable, "-c", program]
    process = subprocess.run(command, capture_output=True, text=True, check=False)
    assert process.stdout.strip() == str(keys(["a"])[0]), process.stderr


def test_user_keys_with_a_wrong_number_of_ids_are_refused():
    with pytest.raises(InputError, match="There are 3 users, but 2 user ids"):
        user_keys(as_ids([1, 2], "ids"), 3)


def test_column_name_may_contain_a_nul():
    """If Polars exported this frame, the process would abort, so the frame is read differently."""
    frame = pl.DataFrame({"\0user": ["b", "a"], "item": ["x", "y"]})
    interactions = rm.Interactions.of(frame, user="\0user")
    assert interactions.user_ids.tolist() == ["a", "b"]

"""Tests that processing long columns in blocks gives the same result as a single call to NumPy."""

from __future__ import annotations

import itertools

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recometer import tasks
from recometer.data import files, ids
from recometer.errors import InputError
from recometer.sources import _list_reading
from recometer.sources._list_reading import read_lists

NO_OPTIONS = dict.fromkeys(("user", "item", "rank", "score")), {}, None


@pytest.fixture(autouse=True, scope="module")
def many_parts():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tasks, "BLOCK", 3)
        patch.setattr(tasks, "ROWS_PER_TASK", 7)
        patch.setattr(_list_reading, "ROWS_PER_TASK", 2)
        patch.setattr(ids, "STRINGS_PER_THREAD", 2)
        patch.setattr(files, "ROWS_AT_ONCE", 5)
        patch.setattr(tasks, "resolve_threads", lambda _: 3)
        yield


@given(seed=st.integers(0, 2**32), n=st.integers(0, 40), dtype=st.sampled_from("bBhHiIqQ"))
def test_narrow_returns_32_bit_integers_and_their_range(seed, n, dtype):
    values = np.random.default_rng(seed).integers(0, 99, n).astype(dtype)
    chunked = pl.concat([pl.Series(values[:9]), pl.Series(values[9:])], rechunk=False)
    for column in (values, chunked):
        out, low, high = _list_reading.narrow(column)
        assert out.dtype == np.int32
        np.testing.assert_array_equal(out, values)
        assert (low, high) == ((values.min(), values.max()) if n else (0, -1))


def test_narrow_accepts_only_integers():
    for column in (pl.Series([1, None]), pl.Series(["a"]), pl.Series([1.0]), np.ones(2)):
        assert _list_reading.narrow(column) is None
    assert _list_reading.narrow(np.array([2**40, -(2**40)]))[1:] == (-(2**40), 2**40)


@given(seed=st.integers(0, 2**32), n=st.integers(0, 40))
def test_each_change_of_value_starts_a_run(seed, n):
    values = np.random.default_rng(seed).integers(0, 2, n)
    expected = np.flatnonzero(np.diff(values, prepend=-1))
    np.testing.assert_array_equal(_list_reading.runs(values), expected)
    np.testing.assert_array_equal(_list_reading.runs(pl.Series(values).cast(pl.String)), expected)


@given(seed=st.integers(0, 2**32), n_lists=st.integers(0, 9), falling=st.booleans())
def test_is_ordered_detects_whether_all_lists_are_sorted(seed, n_lists, falling):
    rng = np.random.default_rng(seed)
    lengths = rng.integers(0, 6, n_lists)
    indptr = np.concatenate([[0], np.cumsum(lengths)])
    lists = [np.sort(rng.choice(99, length, replace=False)) for length in lengths]
    values = np.concatenate([*lists, []])
    if rng.random() < 0.5 and len(values):
        values[rng.integers(len(values))] = rng.integers(0, 99)
    expected = all((np.diff(values[a:b]) > 0).all() for a, b in itertools.pairwise(indptr))
    assert _list_reading.is_ordered(-values if falling else values, indptr, falling) == expected


@given(seed=st.integers(0, 2**32), n=st.integers(0, 40))
def test_group_and_place_sort_items_by_list(seed, n):
    rng = np.random.default_rng(seed)
    n_lists = int(rng.integers(1, 5))
    lists = rng.integers(0, n_lists, n).astype(np.int32)
    items = rng.integers(0, 9, n).astype(np.int32)
    order = np.argsort(lists, kind="stable")
    expected = np.searchsorted(lists[order], np.arange(n_lists + 1))
    pieces = np.split(items, [n // 3, n // 2])
    for dtype in (np.int32, np.float64):
        indptr, grouped = _list_reading.group(lists, n_lists, iter(pieces), dtype)
        assert grouped.dtype == dtype
        np.testing.assert_array_equal(indptr, expected)
        np.testing.assert_array_equal(grouped, items[order])
    ranks = np.empty(n, np.int32)
    ranks[order] = np.arange(n) - expected[lists[order]] + 5
    np.testing.assert_array_equal(
        _list_reading.place(lists, n_lists, items, ranks, 5)[1], items[order]
    )
    if n:
        ranks[rng.integers(n)] += rng.choice([-1, 1])
        assert _list_reading.place(lists, n_lists, items, ranks, 5) is None


@given(values=st.lists(st.text(max_size=3), max_size=30), dtype=st.sampled_from([int, np.int32]))
def test_strings_are_encoded_as_sorted_distinct_values(values, dtype):
    codes, distinct = ids.encode(pl.Series(values, dtype=pl.String), "ids", dtype)
    assert codes.dtype == dtype
    assert distinct.tolist() == sorted(set(values))
    assert distinct[codes].tolist() == values


@pytest.mark.parametrize("grouped", [True, False])
@pytest.mark.parametrize("by", ["rank", "score", "uneven", "equal", None])
def test_parquet_file_read_in_pieces_equals_its_frame(tmp_path, grouped, by):
    rng = np.random.default_rng(0)
    frame = pl.DataFrame({"user": np.repeat(np.arange(6), 4), "item": rng.permutation(24)})
    ranks = np.tile(np.arange(1, 5), 6)
    columns = {
        "rank": {"rank": ranks},
        "score": {"score": 1 / ranks},
        "uneven": {"rank": ranks**2},
        "equal": {"score": np.minimum(ranks, 3.0)},
    }
    frame = frame.with_columns(**{k: pl.Series(v) for k, v in columns.get(by, {}).items()})
    frame = frame if grouped else frame[rng.permutation(24)]
    frame.write_parquet(tmp_path / "lists.parquet")
    tables = [read_lists(data, *NO_OPTIONS) for data in (frame, tmp_path / "lists.parquet")]
    for name in ("indptr", "items", "scores", "user_ids", "item_ids"):
        np.testing.assert_array_equal(*(getattr(table, name) for table in tables))
    assert (tables[0].scores is None) == (by in ("rank", None) or (grouped and by != "equal"))
    if by == "rank":
        ordered = frame.sort("user", "rank")["item"].to_numpy()
        np.testing.assert_array_equal(tables[0].item_ids[tables[0].items], ordered)


def test_error_for_a_missing_entry_of_a_parquet_file_names_its_row(tmp_path):
    for name in ("user", "item", "rank"):
        frame = pl.DataFrame({"user": [1, 1, 2], "item": [1, 2, 3], "rank": [1, 2, 1]})
        frame = frame.with_columns(pl.when(pl.int_range(3) != 2).then(name).alias(name))
        frame.write_parquet(tmp_path / "lists.parquet")
        with pytest.raises(InputError, match=f"{name}.* no value in row 2"):
            read_lists(tmp_path / "lists.parquet", *NO_OPTIONS)

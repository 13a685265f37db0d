"""The native functions for ragged tables agree with their NumPy twins."""

import kernel_twin
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recometer import _kernel


def table(rng, n_users, n_items, ascending=True):
    """Draw up to 20 items for each user."""
    rows = [
        rng.choice(n_items, int(rng.integers(0, min(20, n_items) + 1)), replace=False)
        for _ in range(n_users)
    ]
    rows = [np.sort(row) for row in rows] if ascending else rows
    indptr = np.concatenate([[0], np.cumsum([len(row) for row in rows])]).astype(np.int64)
    return indptr, np.concatenate([*rows, []]).astype(np.int32)


def places(rng, n_users, n_there, kind):
    return {"same": None, "others": rng.integers(-1, n_there, n_users)}[kind]


@given(
    seed=st.integers(0, 2**32),
    n_items=st.sampled_from([1, 2, 3, 30, 2**31 - 1]),
    kind=st.sampled_from(["same", "others"]),
    ascending=st.booleans(),
)
def test_find_rows_agrees_with_its_twin(seed, n_items, kind, ascending):
    rng = np.random.default_rng(seed)
    n_users = int(rng.integers(0, 6))
    n_there = n_users + int(rng.integers(0, 3))
    n_items_of_table = min(n_items, 30)
    indptr, items = table(rng, n_users, n_items_of_table, ascending)
    other_indptr, other_items = table(rng, n_there, n_items_of_table)
    items, other_items = (
        part + np.int32(n_items - n_items_of_table) for part in (items, other_items)
    )
    items[rng.random(len(items)) < 0.2] = -1  # -1 means "no item" and must not be found
    results = np.full((2, len(items)), -9)
    for module, out in zip((_kernel, kernel_twin), results, strict=True):
        module.find_rows(
            indptr=indptr,
            items=items,
            users=places(np.random.default_rng(seed), n_users, n_there, kind),
            other_indptr=other_indptr,
            other_items=other_items,
            found=out,
        )
    np.testing.assert_array_equal(*results)
    hit = results[0] >= 0
    np.testing.assert_array_equal(other_items[results[0][hit]], items[hit])


def test_mismatched_arrays_are_rejected():
    indptr, items = np.array([0, 1]), np.array([3], np.int32)
    rows = {"indptr": indptr, "items": items}

    def find(users, **changes):
        arguments = {
            **rows,
            "other_indptr": indptr,
            "other_items": items,
            "found": np.zeros(1, int),
        }
        _kernel.find_rows(**{**arguments, **changes}, users=users)

    for users, changes, message in (
        (np.array([1]), {}, "no such users"),
        (np.array([-2]), {}, "no such users"),
        (np.array([0, 0]), {}, "places must have one entry per user"),
        (None, {"other_indptr": np.array([0])}, "places must have one entry per user"),
        (None, {"other_items": items[:0]}, "beyond the items"),
        (None, {"found": np.zeros(2, int)}, "one entry per row"),
    ):
        with pytest.raises(ValueError, match=message):
            find(users, **changes)


@given(seed=st.integers(0, 2**32), dtype=st.sampled_from([np.int32, np.int64]))
def test_rows_ascend_agrees_with_its_twin(seed, dtype):
    rng = np.random.default_rng(seed)
    indptr, items = table(rng, int(rng.integers(0, 6)), 12)
    n_users, n_items = len(indptr) - 1, int(rng.integers(10, 14))
    if len(items) and rng.random() < 0.7:
        items[rng.integers(len(items))] = rng.integers(-1, 13)
    first, last = np.sort(rng.integers(0, n_users + 1, 2)).tolist()
    range_of_rows = {"n_items": n_items, "first": first, "last": last}
    arguments = {"indptr": indptr, "items": items.astype(dtype), **range_of_rows}
    assert _kernel.rows_ascend(**arguments) is kernel_twin.rows_ascend(**arguments)


def test_rows_ascend_rejects_nonexistent_rows():
    arguments = {"indptr": np.array([0, 2]), "items": np.arange(2), "n_items": 2}
    assert _kernel.rows_ascend(**arguments, first=0, last=1)
    for first, last, changes, message in (
        (0, 2, {}, "no such users"),
        (1, 0, {}, "no such users"),
        (0, 1, {"indptr": np.array([0, 3])}, "no such rows"),
        (0, 1, {"indptr": np.array([-1, 2])}, "no such rows"),
    ):
        with pytest.raises(ValueError, match=message):
            _kernel.rows_ascend(**{**arguments, **changes}, first=first, last=last)

"""Tests of arrays with unusual memory layouts, and of different ids that look the same."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
import scipy.sparse as sp

import recometer as rm

USERS = np.array([[1.0, 0.5], [0.25, -1.0], [-0.5, 0.75]])
ITEMS = np.array([[1.0, 0.0], [0.5, 1.0], [0.0, -1.0], [-1.0, 0.5]])
TEST = np.array([[1, 0, 0, 0], [0, 1, 0, 1], [0, 0, 1, 0]])
LISTS = np.array([[0, 1], [2, 3], [1, -1]])
METRICS = "ndcg@2 rr roc_auc coverage@2"


def read_only(array: np.ndarray) -> np.ndarray:
    copy = array.copy()
    copy.setflags(write=False)
    return copy


LAYOUTS = {
    "columns first": np.asfortranarray,
    "every second entry": lambda array: np.repeat(array, 2, axis=1)[:, ::2],
    "backwards": lambda array: array[::-1].copy()[::-1],
    "read only": read_only,
    "not aligned": lambda array: np.frombuffer(
        b"x" + array.tobytes(), np.uint8, offset=1
    ).view(array.dtype).reshape(array.shape),
}  # fmt: skip


def assert_same(result: rm.Evaluation, expected: rm.Evaluation) -> None:
    assert result.mean() == expected.mean()
    assert result.per_user().equals(expected.per_user())


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
def test_memory_layout_does_not_change_results(layout) -> None:
    options = {"metrics": METRICS, "catalogue": 4}
    expected = rm.evaluate(rm.Factors(USERS, ITEMS), TEST, **options)
    assert_same(
        rm.evaluate(rm.Factors(layout(USERS), layout(ITEMS)), layout(TEST), **options), expected
    )
    biases = {"user_bias": np.arange(len(USERS)) / 2, "item_bias": np.arange(len(ITEMS)) / 4}
    flat = {name: layout(bias[np.newaxis])[0] for name, bias in biases.items()}
    expected = rm.evaluate(rm.Factors(USERS, ITEMS, **biases), TEST, **options)
    assert_same(rm.evaluate(rm.Factors(USERS, ITEMS, **flat), TEST, **options), expected)
    scores = USERS @ ITEMS.T
    expected = rm.evaluate(rm.Scores(scores), TEST, **options)
    assert_same(rm.evaluate(rm.Scores(layout(scores)), layout(TEST), **options), expected)
    options["metrics"] = "ndcg@2 rr coverage@2"
    expected = rm.evaluate(rm.Lists(LISTS), TEST, **options)
    assert_same(rm.evaluate(rm.Lists(layout(LISTS)), TEST, **options), expected)


def test_byte_order_does_not_change_results() -> None:
    swapped = [array.astype(array.dtype.newbyteorder(">")) for array in (USERS, ITEMS, TEST)]
    with pytest.warns(rm.DataWarning, match="converted from >f8 to float64"):
        factors = rm.Factors(swapped[0], swapped[1])
    assert_same(rm.evaluate(factors, swapped[2]), rm.evaluate(rm.Factors(USERS, ITEMS), TEST))


def test_entries_that_share_memory_do_not_change_results() -> None:
    """The arrays are broadcast: with strides of 0, their rows or entries share memory."""
    users, scores = np.broadcast_to(0.5, (3, 2)), np.broadcast_to(ITEMS[:, 0], (3, 4))
    options = {"metrics": METRICS, "catalogue": 4}
    expected = rm.evaluate(rm.Factors(users.copy(), ITEMS), TEST, **options)
    assert_same(rm.evaluate(rm.Factors(users, ITEMS), TEST, **options), expected)
    expected = rm.evaluate(rm.Scores(scores.copy()), TEST, **options)
    assert_same(rm.evaluate(rm.Scores(scores), TEST, **options), expected)
    lists = np.broadcast_to(np.array([2, 0]), (3, 2))
    options["metrics"] = "ndcg@2 rr coverage@2"
    expected = rm.evaluate(rm.Lists(lists.copy()), TEST, **options)
    assert_same(rm.evaluate(rm.Lists(lists), TEST, **options), expected)
    matrix = sp.csr_array(TEST.astype(float))
    matrix.data = np.broadcast_to(1.0, matrix.nnz)
    expected = rm.evaluate(rm.Factors(USERS, ITEMS), TEST)
    assert_same(rm.evaluate(rm.Factors(USERS, ITEMS), matrix), expected)


def test_ids_that_look_the_same_stay_different() -> None:
    """The ids differ only in an invisible mark or in the encoding of an accent."""
    names = ["ann", "ann\u200f", "ann\u200b", "ren\u00e9", "rene\u0301"]
    frame = pl.DataFrame({"user_id": names, "item_id": ["a", "b", "c", "d", "e"]})
    test = rm.Interactions.of(frame)
    assert test.n_users == 5
    lists = rm.Lists({name: [item] for name, item in frame.iter_rows()})
    result = rm.evaluate(lists, test, metrics="hit@1")
    assert result["hit@1"].tolist() == [1] * 5

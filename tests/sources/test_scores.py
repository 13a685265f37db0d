"""Scores: a matrix or a function gives what the same model gives as Factors."""

import threading

import numpy as np
import pytest
import scipy.sparse as sp

import recometer as rm
from recometer.errors import InputError, InputTypeError

ALL = "precision@3 recall@3 ap@3 ndcg@3 rr roc_auc pr_auc rprecision"


@pytest.fixture(scope="module", params=["expected", "item", "pessimistic"])
def case(request):
    rng = np.random.default_rng(4)
    users = rng.integers(-2, 3, (50, 3)).astype(np.float32)
    items = rng.integers(-2, 3, (400, 3)).astype(np.float32)
    kind = rng.random((50, 400))
    options = {
        "train": sp.csr_array((kind < 0.1) * 1.0),
        "metrics": ALL,
        "ties": request.param,
    }
    return users, items, sp.csr_array((kind > 0.97) * 1.0), options


def same(left, right):
    for name in left.values:
        np.testing.assert_array_equal(left.values[name], right.values[name], err_msg=name)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_matrix_function_and_factors_agree(case, dtype):
    users, items, test, options = case
    expected = rm.evaluate(rm.Factors(users, items), test, **options)
    scores = (users @ items.T).astype(dtype)
    same(rm.evaluate(rm.Scores(scores), test, **options), expected)
    function = rm.Scores(lambda rows: scores[rows], n_users=50, n_items=400)
    same(rm.evaluate(function, test, **options), expected)
    same(rm.evaluate(rm.Scores(np.asfortranarray(scores)), test, threads=3, **options), expected)


def test_ids_in_any_order(case):
    users, items, test, options = case
    rng = np.random.default_rng(1)
    row, column = rng.permutation(50), rng.permutation(400)
    source = rm.Scores((users @ items.T)[row][:, column], user_ids=row, item_ids=column)
    named = {
        name: rm.Interactions.of(data, user_ids=range(50), item_ids=range(400))
        for name, data in (("test", test), ("train", options["train"]))
    }
    expected = rm.evaluate(rm.Factors(users, items), test, **options)
    same(rm.evaluate(source, named["test"], **{**options, "train": named["train"]}), expected)


def test_minus_infinity_is_no_candidate(case):
    users, items, test, options = case
    masked = (users @ items.T).astype(np.float64)
    masked[options["train"].toarray() > 0] = -np.inf
    expected = rm.evaluate(rm.Factors(users, items), test, **options)
    untrained = {**options, "train": None}
    result = rm.evaluate(rm.Scores(masked), test, **untrained)
    same(result, expected)
    np.testing.assert_array_equal(result.n_candidates, expected.n_candidates)


def test_a_relevant_item_that_is_no_candidate_is_a_miss():
    result = rm.evaluate(
        rm.Scores([[3.0, 2.0, 1.0, -np.inf]]), np.array([[0, 1, 0, 1]]), metrics="recall@2 rr"
    )
    assert result["recall@2"].tolist() == [0.5]
    assert result["rr"].tolist() == [0.5]


@pytest.mark.parametrize(
    ("nan_scores", "expected"), [("undefined", np.nan), ("first", 0.5), ("last", 1.0)]
)
def test_nan_scores(nan_scores, expected):
    scores = np.array([[np.nan, 2.0, 1.0], [3.0, 2.0, 1.0]])
    test = np.array([[0, 1, 0], [1, 0, 0]])
    result = rm.evaluate(rm.Scores(scores), test, metrics="rr", nan_scores=nan_scores)
    np.testing.assert_array_equal(result["rr"], [expected, 1.0])


def test_plus_infinity_is_undefined():
    scores = np.array([[np.inf, 2.0, 1.0], [3.0, 2.0, 1.0]])
    result = rm.evaluate(rm.Scores(scores), np.eye(2, 3), metrics="rr")
    np.testing.assert_array_equal(result["rr"], [np.nan, 0.5])


def test_the_function_is_never_called_twice_at_once(monkeypatch):
    from recometer.sources import scores as module

    monkeypatch.setattr(module, "USERS_PER_BATCH", 3)
    busy, asked = threading.Lock(), []

    def function(rows):
        assert busy.acquire(blocking=False)
        asked.extend(rows.tolist())
        busy.release()
        return np.random.default_rng(0).random((len(rows), 20))

    test = np.eye(30, 20)
    rm.evaluate(rm.Scores(function, n_users=30, n_items=20), test, metrics="rr", threads=4)
    assert sorted(asked) == list(range(30))


def test_messages():
    test = np.eye(3, 4)

    def failing(rows):
        raise ZeroDivisionError("my model")

    for source, message in (
        (lambda rows: np.ones((len(rows), 5)), r"returned shape \(3, 5\) for the user rows 0 to 2"),
        (lambda rows: np.ones(4), r"expected \(3, 4\): a row per user"),
        (lambda rows: np.full((len(rows), 4), "x"), "returned dtype <U1 .* expected numbers"),
    ):
        with pytest.raises(InputError, match=message):
            rm.evaluate(rm.Scores(source, n_users=3, n_items=4), test, metrics="rr")
    with pytest.raises(ZeroDivisionError, match="my model"):
        rm.evaluate(rm.Scores(failing, n_users=3, n_items=4), test, metrics="rr")
    with pytest.raises(InputError, match=r"needs n_users=\.\.\."):
        rm.Scores(failing)
    with pytest.raises(InputError, match=r"shape \(2, 2\), but n_users=3"):
        rm.Scores(np.ones((2, 2)), n_users=3)
    with pytest.raises(InputError, match="n_items=-1 must be a whole number"):
        rm.Scores(failing, n_users=3, n_items=-1)
    with pytest.raises(InputTypeError, match="matrix of numbers or a function, found dtype <U1"):
        rm.Scores([["a"]])
    with pytest.raises(InputError, match="expected \\[n_users, n_items\\]"):
        rm.Scores(np.ones(3))
    with pytest.raises(InputError, match="no items"):
        rm.Scores(np.ones((3, 0)))

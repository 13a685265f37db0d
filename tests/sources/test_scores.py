"""Tests of `rm.Scores`, which must agree with `rm.Factors` for the same model."""

import functools
import re
import threading
import time

import numpy as np
import pytest
import scipy.sparse as sp

import recometer as rm
from recometer.data.array_files import lies_in_file
from recometer.errors import InputError, InputTypeError, ModelError
from recometer.sources import _score_batches, scores
from recometer.sources._score_batches import Prefetch
from recometer.tasks import Cancelled

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


def assert_same(left, right):
    for name in left.values:
        np.testing.assert_array_equal(left.values[name], right.values[name], err_msg=name)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_matrix_function_and_factors_agree(case, dtype):
    users, items, test, options = case
    expected = rm.evaluate(rm.Factors(users, items), test, **options)
    scores = (users @ items.T).astype(dtype)
    assert_same(rm.evaluate(rm.Scores(scores), test, **options), expected)
    function = rm.Scores(lambda rows: scores[rows], n_users=50, n_items=400)
    assert_same(rm.evaluate(function, test, **options), expected)
    assert_same(
        rm.evaluate(rm.Scores(np.asfortranarray(scores)), test, threads=3, **options), expected
    )


def test_order_of_ids_changes_nothing(case):
    users, items, test, options = case
    rng = np.random.default_rng(1)
    row, column = rng.permutation(50), rng.permutation(400)
    source = rm.Scores((users @ items.T)[row][:, column], user_ids=row, item_ids=column)
    data = {
        name: rm.Interactions.of(data, user_ids=range(50), item_ids=range(400))
        for name, data in (("test", test), ("train", options["train"]))
    }
    expected = rm.evaluate(rm.Factors(users, items), test, **options)
    assert_same(rm.evaluate(source, data["test"], **{**options, "train": data["train"]}), expected)


def test_minus_infinity_is_not_a_candidate(case):
    users, items, test, options = case
    masked = (users @ items.T).astype(np.float64)
    masked[options["train"].toarray() > 0] = -np.inf
    expected = rm.evaluate(rm.Factors(users, items), test, **options)
    untrained = {**options, "train": None}
    result = rm.evaluate(rm.Scores(masked), test, **untrained)
    assert_same(result, expected)
    np.testing.assert_array_equal(result.n_candidates, expected.n_candidates)


def test_relevant_item_outside_the_candidates_is_a_miss():
    result = rm.evaluate(
        rm.Scores([[3.0, 2.0, 1.0, -np.inf]]), np.array([[0, 1, 0, 1]]), metrics="recall@2 rr"
    )
    assert result["recall@2"].tolist() == [0.5]
    assert result["rr"].tolist() == [0.5]


@pytest.mark.parametrize(
    ("nan_scores", "expected"), [("undefined", np.nan), ("first", 0.5), ("last", 1.0)]
)
def test_nan_scores_follow_their_rule(nan_scores, expected):
    scores = np.array([[np.nan, 2.0, 1.0], [3.0, 2.0, 1.0]])
    test = np.array([[0, 1, 0], [1, 0, 0]])
    result = rm.evaluate(rm.Scores(scores), test, metrics="rr", nan_scores=nan_scores)
    np.testing.assert_array_equal(result["rr"], [expected, 1.0])


def test_score_of_plus_infinity_makes_its_user_undefined():
    scores = np.array([[np.inf, 2.0, 1.0], [3.0, 2.0, 1.0]])
    result = rm.evaluate(rm.Scores(scores), np.eye(2, 3), metrics="rr")
    np.testing.assert_array_equal(result["rr"], [np.nan, 0.5])


@pytest.mark.parametrize("threads", [1, 4])
def test_one_thread_calls_the_function_in_the_order_of_the_users(monkeypatch, threads):
    monkeypatch.setattr(_score_batches, "USERS_PER_BATCH", 3)
    busy, rows_scored, callers = threading.Lock(), [], set()

    def function(rows):
        assert busy.acquire(blocking=False)
        rows_scored.extend(rows.tolist())
        callers.add(threading.get_ident())
        busy.release()
        return np.random.default_rng(0).random((len(rows), 20))

    source = rm.Scores(function, n_users=30, n_items=20)
    rm.evaluate(source, np.eye(30, 20), metrics="rr", threads=threads)
    assert rows_scored == list(range(30))
    assert len(callers) == 1
    assert threading.get_ident() not in callers


def test_size_of_batches_is_limited_by_memory(monkeypatch):
    monkeypatch.setattr(scores, "FUNCTION_BYTES", 8 * 20 * 7)
    sizes = []

    def function(rows):
        sizes.append(len(rows))
        return np.ones((len(rows), 20))

    rm.evaluate(rm.Scores(function, n_users=30, n_items=20), np.eye(30, 20), metrics="rr")
    assert sizes == [7, 7, 7, 7, 2]


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.int8])
def test_scores_in_a_file_are_read_in_batches_of_rows(tmp_path, monkeypatch, dtype, order):
    monkeypatch.setattr(_score_batches, "USERS_PER_BATCH", 7)
    matrix = np.random.default_rng(3).integers(-9, 10, (50, 200)).astype(dtype)
    path = tmp_path / "scores.npy"
    np.save(path, np.asarray(matrix, order=order))
    test = (np.random.default_rng(4).random((50, 200)) < 0.05).astype(float)
    options = {"metrics": "ndcg@5 roc_auc coverage@3", "threads": 2}
    expected = rm.evaluate(rm.Scores(matrix), test, **options)
    for source_data in (path, str(path), np.load(path, mmap_mode="r")):
        source = rm.Scores(source_data)
        assert lies_in_file(source.facts.arrays["matrix"])
        result = rm.evaluate(source, test, **options)
        for name, values in expected.values.items():
            np.testing.assert_array_equal(result.values[name], values)
        assert result.inputs == expected.inputs


@pytest.mark.parametrize("threads", [1, 3])
def test_next_batch_is_scored_while_the_last_one_is_ranked(monkeypatch, threads):
    monkeypatch.setattr(_score_batches, "USERS_PER_BATCH", 5)
    called, count = threading.Event(), _score_batches.RankWork.count

    def function(rows):
        if rows[0] == 5:
            called.set()
        return np.ones((len(rows), 20))

    def wait_for_the_next(work, users, scores):
        assert called.wait(10)
        count(work, users, scores)

    monkeypatch.setattr(_score_batches.RankWork, "count", wait_for_the_next)
    source = rm.Scores(function, n_users=10, n_items=20)
    rm.evaluate(source, np.eye(10, 20), metrics="rr", threads=threads)


@pytest.mark.parametrize("threads", [1, 3])
def test_function_is_never_more_than_one_batch_ahead(monkeypatch, threads):
    monkeypatch.setattr(_score_batches, "USERS_PER_BATCH", 2)
    batches_scored, batches_counted, ahead, count = [], [], [], _score_batches.RankWork.count

    def function(rows):
        batches_scored.append(rows)
        return np.ones((len(rows), 20))

    def slow(work, users, scores):
        time.sleep(0.005)
        ahead.append(len(batches_scored) - len(batches_counted))
        count(work, users, scores)
        batches_counted.append(users)

    monkeypatch.setattr(_score_batches.RankWork, "count", slow)
    source = rm.Scores(function, n_users=40, n_items=20)
    rm.evaluate(source, np.eye(40, 20), metrics="rr", threads=threads)
    assert len(batches_counted) == 20
    assert 1 < max(ahead) <= threads + 1


@pytest.mark.parametrize("threads", [1, 3])
def test_function_may_use_one_buffer_for_all_batches(case, monkeypatch, threads):
    monkeypatch.setattr(_score_batches, "USERS_PER_BATCH", 7)
    users, items, test, options = case
    scores = users @ items.T
    buffer = np.empty((7, 400), np.float32)

    def function(rows):
        buffer[: len(rows)] = scores[rows]
        rows[:] = 0  # this must change only the function's own copy
        return buffer[: len(rows)]

    source = rm.Scores(function, n_users=50, n_items=400)
    assert_same(
        rm.evaluate(source, test, threads=threads, **options),
        rm.evaluate(rm.Scores(scores), test, **options),
    )


def test_no_thread_outlives_a_failure(monkeypatch):
    monkeypatch.setattr(_score_batches, "USERS_PER_BATCH", 1)

    def function(rows):
        time.sleep(0.001)
        return np.ones((len(rows), 4 if rows[0] < 20 else 5))

    before = threading.active_count()
    with pytest.raises(InputError, match="the user row 20, expected"):
        rm.evaluate(rm.Scores(function, n_users=900, n_items=4), np.eye(900, 4), threads=2)
    assert threading.active_count() == before


def test_interrupt_in_the_function_is_raised():
    def function(rows):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        rm.evaluate(rm.Scores(function, n_users=3, n_items=4), np.eye(3, 4))


def test_memory_mapped_matrix_is_used_in_place(case, tmp_path):
    users, items, test, options = case
    scores = users @ items.T
    np.save(tmp_path / "scores.npy", scores)
    mapped = np.load(tmp_path / "scores.npy", mmap_mode="r")
    source = rm.Scores(mapped)
    assert np.shares_memory(source.facts.arrays["matrix"], mapped)
    assert_same(
        rm.evaluate(source, test, **options), rm.evaluate(rm.Scores(scores), test, **options)
    )


def test_masked_entries_are_not_candidates(case):
    users, items, test, options = case
    scores = users @ items.T
    masked = np.ma.masked_array(scores, options["train"].toarray() > 0)
    untrained = {**options, "train": None}
    expected = rm.evaluate(rm.Scores(scores), test, **options)
    assert_same(rm.evaluate(rm.Scores(masked), test, **untrained), expected)
    function = rm.Scores(lambda rows: masked[rows], n_users=50, n_items=400)
    assert_same(rm.evaluate(function, test, **untrained), expected)


@pytest.mark.parametrize("dtype", ["f2", "i1", "u4", "?", ">f4"])
def test_scores_may_have_any_dtype_of_numbers(dtype):
    scores = np.random.default_rng(3).integers(0, 2, (20, 30)).astype(dtype)
    test = np.random.default_rng(4).random((20, 30)) < 0.1
    expected = rm.evaluate(rm.Scores(scores.astype(np.float64)), test, metrics=ALL)
    assert_same(rm.evaluate(rm.Scores(scores), test, metrics=ALL), expected)
    function = rm.Scores(scores.__getitem__, n_users=20, n_items=30)
    assert_same(rm.evaluate(function, test, metrics=ALL), expected)


def test_invalid_scores_are_refused():
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
    with pytest.raises(InputError, match=r"returned for .*: row 0 has 1 entries, but row 1 has 2"):
        rm.evaluate(rm.Scores(lambda rows: [[1], [1, 2], []], n_users=3, n_items=4), test)
    with pytest.raises(InputError, match=r"needs n_users=\.\.\."):
        rm.Scores(failing)
    with pytest.raises(InputError, match=r"shape \(2, 2\), but n_users=3"):
        rm.Scores(np.ones((2, 2)), n_users=3)
    for n in (-1, 2.5, True):
        with pytest.raises(InputError, match=f"n_items={n} must be a whole number"):
            rm.Scores(failing, n_users=3, n_items=n)
    with pytest.raises(InputTypeError, match="matrix of numbers or a function, found dtype <U1"):
        rm.Scores([["a"]])
    assert rm.Scores(np.ones((2, 3)), n_users=2).describe().endswith("2 users x 3 items, float64")
    with pytest.raises(InputTypeError, match=r"found dtype object \(csr_array\). Hint: .toarray"):
        rm.Scores(sp.csr_array(np.ones((2, 2))))
    with pytest.raises(InputError, match="expected \\[n_users, n_items\\]"):
        rm.Scores(np.ones(3))
    with pytest.raises(InputError, match="no items"):
        rm.Scores(np.ones((3, 0)))


@pytest.mark.parametrize(
    ("ids", "scores", "named_users"),
    [
        (None, [0, 1, 2, 3, 4], "the user rows 0 to 4"),
        (
            list("edcba"),
            "abcde",
            "the users 'a', 'b', 'c' and 2 more (user rows 4, 3, 2 and 2 more)",
        ),
        ([10, 20, 30, 40, 50], [30, 40], "the users 30, 40 (user rows 2 to 3)"),
        ([10, 20, 30, 40, 50], [30], "the user 30 (user row 2)"),
    ],
)
def test_errors_in_scores_of_a_function_name_the_users(ids, scores, named_users):
    def failing(rows):
        return {"my": "model"}["other"]

    def wrong(rows):
        return np.ones(3)

    if ids is None:
        test = np.eye(5, 4)
    else:
        test = rm.Interactions.of({user: ["x", "y"] for user in scores})
    items = None if ids is None else list("wxyz")
    options = {"n_users": 5, "n_items": 4, "user_ids": ids, "item_ids": items}
    with pytest.raises(
        ModelError, match=re.escape(f"raised KeyError for {named_users}: 'other'")
    ) as error:
        rm.evaluate(rm.Scores(failing, **options), test, metrics="rr")
    assert isinstance(error.value, RuntimeError)
    assert isinstance(error.value.__cause__, KeyError)
    assert error.value.__cause__.__traceback__.tb_next.tb_frame.f_code.co_name == "failing"
    with pytest.raises(InputError, match=re.escape(f"shape (3,) for {named_users}, expected")):
        rm.evaluate(rm.Scores(wrong, **options), test, metrics="rr")


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("ties", ["expected", "pessimistic", "item"])
def test_skipping_ranks_beyond_the_last_cutoff_changes_no_value(dtype, ties):
    rng = np.random.default_rng(0)
    scores = rng.integers(0, 300, (40, 3000)).astype(dtype)
    scores[0] = 7
    scores[1, :2990] = -np.inf
    scores[2, 17] = np.nan
    scores[3, 17] = np.inf
    test = sp.csr_array((rng.random(scores.shape) < 0.01) * 1.0)
    options = {"train": sp.csr_array((rng.random(scores.shape) < 0.02) * 1.0), "ties": ties}
    shallow = rm.evaluate(rm.Scores(scores), test, metrics="ndcg@9 recall@3 rr@9", **options)
    deep = rm.evaluate(rm.Scores(scores), test, metrics="ndcg@9 recall@3 rr@9 rr", **options)
    for name in shallow.values:
        np.testing.assert_array_equal(shallow.values[name], deep.values[name])
        np.testing.assert_array_equal(shallow.reasons[name], deep.reasons[name])


def test_lists_of_many_users_are_sorted_in_several_tasks(monkeypatch):
    rng = np.random.default_rng(5)
    source, test = rm.Scores(rng.random((11, 20))), rng.random((11, 20)) < 0.3
    single_thread = rm.evaluate(source, test, metrics="ndcg@5 ap")
    monkeypatch.setattr("recometer.sources.alignment.BRIEF", 0)
    monkeypatch.setattr("recometer.sources.alignment.USERS_PER_TASK", 3)
    for threads in (1, 2):
        several_threads = rm.evaluate(source, test, metrics="ndcg@5 ap", threads=threads)
        assert several_threads.mean() == single_thread.mean()


def test_interrupted_ranking_waits_for_the_function_and_does_not_call_it_again():
    was_called, has_returned = threading.Event(), threading.Event()
    calls = []

    def function(number):
        calls.append(number)
        was_called.set()
        time.sleep(0.05)
        has_returned.set()

    class GivingUp:
        def advance(self):
            was_called.wait()
            raise Cancelled

    with pytest.raises(Cancelled), Prefetch(function, range(3)) as results:
        results.take(GivingUp())
    assert has_returned.is_set()
    assert calls == [0]


def test_memory_is_known_for_a_matrix_but_not_for_a_function():
    assert rm.Scores(np.ones((2, 3), np.float32)).facts.sized
    assert not rm.Scores(lambda rows: np.ones((len(rows), 3)), n_users=2, n_items=3).facts.sized


def test_scores_keep_their_precision():
    scores = np.array([[1.0, 1 + 1e-12]])
    for source in (rm.Scores(scores), rm.Scores(lambda rows: scores[rows], n_users=1, n_items=2)):
        result = rm.evaluate(source, np.eye(1, 2), metrics="rr", ties="optimistic")
        assert result["rr"].tolist() == [0.5]


class Plain:
    def __call__(self, rows):
        return np.ones((len(rows), 2))


class Named(Plain):
    def __repr__(self):
        return "my model"


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (Plain(), "Plain"),
        (Named(), "my model"),
        (functools.partial(Plain.__call__, Plain()), "partial"),
        (Plain().__call__, "Plain.__call__"),
    ],
)
def test_description_of_a_function_contains_no_address(function, expected):
    source = rm.Scores(function, n_users=1, n_items=2)
    assert source.describe() == f"Scores: {expected}, 1 users x 2 items"

"""If the system refuses to start more threads, the running threads do all the work."""

import threading

import numpy as np
import pytest

import recometer as rm

N_USERS, N_ITEMS = 2500, 300


@pytest.fixture
def limit(monkeypatch):
    """Return a function that limits how many more threads can start."""
    start = threading.Thread.start

    def set_limit(n):
        left = [n]

        def start_one(thread):
            if not left[0]:
                raise RuntimeError("can't start new thread")
            left[0] -= 1
            start(thread)

        monkeypatch.setattr(threading.Thread, "start", start_one)

    return set_limit


@pytest.mark.parametrize("n", [0, 1, 2])
def test_fewer_threads_compute_the_same_values(n, limit, tmp_path):
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(N_USERS, N_ITEMS))
    test = (rng.random((N_USERS, N_ITEMS)) < 0.02) * 1.0
    users, items = (
        [f"u{row:04}" for row in range(N_USERS)],
        [f"i{row:03}" for row in range(N_ITEMS)],
    )
    test_with_ids = rm.Interactions.of(test, user_ids=users, item_ids=items)
    options = {"metrics": "ndcg@5 rr coverage@5", "threads": 4, "progress": False}
    sources = {
        "scores": lambda: rm.Scores(scores, user_ids=users, item_ids=items),
        "function": lambda: rm.Scores(lambda rows: scores[rows], user_ids=users, item_ids=items),
        "factors": lambda: rm.Factors(scores, np.eye(N_ITEMS), user_ids=users, item_ids=items),
    }
    expected = {
        name: rm.evaluate(make(), test_with_ids, **options) for name, make in sources.items()
    }
    for name, make in sources.items():
        limit(n)
        result = rm.evaluate(make(), test_with_ids, **options)
        assert result.mean() == expected[name].mean()
        assert result.inputs == expected[name].inputs
    limit(n)
    rm.compare({"a": expected["scores"], "b": expected["factors"]}).report(tmp_path / "r.html")


def test_errors_of_score_functions_are_raised_without_threads(limit):
    def fails(users):
        raise KeyError("no model")

    limit(0)
    with pytest.raises(rm.ModelError, match="no model"):
        rm.evaluate(rm.Scores(fails, n_users=3, n_items=3), np.eye(3), metrics="rr")

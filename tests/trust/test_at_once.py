"""Eight Python threads evaluate at the same time, while processes are forked."""

import os
import signal
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import recometer as rm

THREADS = 8
RNG = np.random.default_rng(4)
USERS, ITEMS = (RNG.integers(-2, 3, (n, 6)).astype(np.float32) for n in (300, 200))
TEST, TRAIN = (np.where(RNG.random((300, 200)) < 0.05, 1.0, 0.0) for _ in range(2))
METRICS = "ndcg@5 ap rr roc_auc coverage@5"


def values(number):
    """Evaluate one of several models on the same data with several threads."""
    source = (rm.Factors(USERS, ITEMS), rm.Scores(USERS @ ITEMS.T))[number % 2]
    ties = ("expected", "random")[number // 2 % 2]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = rm.evaluate(source, TEST, train=TRAIN, metrics=METRICS, ties=ties, threads=2)
    return [repr(result.mean()), *(result[name].tobytes() for name in ("ndcg@5", "ap", "rr"))]


@pytest.mark.filterwarnings("ignore")  # other threads change the warning filters
def test_concurrent_evaluations_give_the_same_values():
    separate = [values(number) for number in range(4)]
    with ThreadPoolExecutor(THREADS) as pool:
        concurrent = list(pool.map(values, range(4 * THREADS)))
    assert concurrent == separate * THREADS


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore")
def test_forked_child_can_evaluate():
    """A forked process does not have its parent's threads, but can still evaluate."""
    expected = values(0)
    with ThreadPoolExecutor(3) as pool:
        working = [pool.submit(values, number) for number in range(12)]
        children = []
        for _ in range(3):
            child = os.fork()
            if child == 0:
                signal.alarm(30)  # end the child instead of waiting forever
                os._exit(0 if values(0) == expected else 1)
            children.append(child)
        assert all(child.result() for child in working)
    for child in children:
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0

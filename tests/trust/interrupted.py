"""Interrupt long-running work at several moments, and measure how long it continues.

`python interrupted.py PHASE` prints the duration of the work, and then how long it continued after
each interruption. All times are processor time in seconds, since wall time depends on the machine's
load.
`test_interrupted.py` runs this script.
"""

import signal
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl
import scipy.sparse

import recometer as rm

RNG = np.random.default_rng(0)
SHARES = (0.05, 0.25, 0.45, 0.65, 0.85)  # interrupt after these shares of the duration
TRIES = 5
PHASES: dict[str, Callable[[], Callable[[], Any]]] = {}


def phase(prepare):
    """Register a function that prepares work and returns a function that does the work."""
    PHASES[prepare.__name__] = prepare
    return prepare


def random_test(n_users, n_items, n_per_user):
    """Draw a test set with a few items per user."""
    rows = np.repeat(np.arange(n_users), n_per_user)
    columns = RNG.integers(0, n_items, n_users * n_per_user)
    return scipy.sparse.csr_array(
        (np.ones(len(rows), np.float32), (rows, columns)), shape=(n_users, n_items)
    )


def normal(*shape):
    return RNG.standard_normal(shape, dtype=np.float32)


@phase
def factors():
    model, test = rm.Factors(normal(60_000, 64), normal(40_000, 64)), random_test(60_000, 40_000, 4)
    return lambda: rm.evaluate(model, test, metrics="ndcg@10 roc_auc", threads=1)


@phase
def many_items():
    """Check the factors of many items, and compute their fingerprint."""
    n_users, n_items = 400_000, 2_000_000
    model = rm.Factors(normal(n_users, 64), normal(n_items, 64))
    test = random_test(n_users, n_items, 4)
    return lambda: rm.evaluate(model, test, metrics="ndcg@10", threads=1)


@phase
def factors_in_a_file():
    """Rank with factors from a file, which two threads convert block by block."""
    with tempfile.NamedTemporaryFile() as file:  # the memory map outlives the file's name
        normal(500_000, 64).astype(np.float16).tofile(file)
        file.flush()
        items = np.memmap(file.name, np.float16, mode="r", shape=(500_000, 64))
    model, test = rm.Factors(normal(4000, 64), items), random_test(4000, 500_000, 4)
    return lambda: rm.evaluate(model, test, metrics="ndcg@10 roc_auc", threads=2)


@phase
def lists_of_factors():
    model, test = rm.Factors(normal(60_000, 64), normal(40_000, 64)), random_test(60_000, 40_000, 4)
    return lambda: rm.evaluate(model, test, metrics="coverage@10", threads=1)


@phase
def scores():
    # To save memory, all users share one array of scores, which is shifted by one item per user.
    shared = np.lib.stride_tricks.sliding_window_view(normal(89_999), 50_000)
    model, test = rm.Scores(shared), random_test(40_000, 50_000, 20)
    return lambda: rm.evaluate(model, test, metrics="ndcg@10 coverage@10", threads=1)


@phase
def metrics():
    model = rm.Scores(RNG.integers(0, 5, (300_000, 30)).astype(np.float32))
    test = random_test(300_000, 30, 8)
    names = "ndcg@1..9 ap@1..9 err@1..9 rr roc_auc"
    return lambda: rm.evaluate(model, test, metrics=names, threads=1)


@phase
def expected_ties():
    model, test = rm.Scores(np.zeros((80, 100_000), np.float32)), random_test(80, 100_000, 40_000)
    return lambda: rm.evaluate(model, test, metrics="rr err ap ndcg@100", threads=1)


def rows(n, text=False):
    users, items = RNG.integers(0, n // 10, n), RNG.integers(0, 50_000, n)
    columns = [users.astype(str), items.astype(str)] if text else [users, items]
    times = RNG.integers(0, 10**9, n)
    return pl.DataFrame({"user": columns[0], "item": columns[1], "time": times})


@phase
def lists_with_ids():
    scored_rows = rows(3_000_000, text=True).rename({"time": "score"})
    test = rows(3_000_000, text=True).drop("time")
    return lambda: rm.evaluate(rm.Lists(scored_rows), test, metrics="ndcg@10", threads=1)


@phase
def reading():
    table = rows(6_000_000)
    return lambda: rm.Interactions.of(table)


@phase
def split():
    table = rows(18_000_000)
    return lambda: rm.split(table, rm.split.Last(1), threads=1)


@phase
def audit():
    split = rm.split(rows(6_000_000), rm.split.Last(1))
    return lambda: rm.audit(split)


def evaluations(n_users):
    test = random_test(n_users, 30, 8)
    return {
        name: rm.evaluate(rm.Scores(normal(n_users, 30)), test, metrics="ndcg@10 rr recall@5")
        for name in ("one", "two", "three")
    }


@phase
def compare():
    results = evaluations(2_000_000)
    return lambda: str(rm.compare(results, threads=1))


def interrupted_at(share, duration, work):
    """Interrupt work after a share of its duration; return for how many seconds it continues.

    If the work ends before the interruption, try again with the latest duration.
    """
    interruptions = []

    def interrupt(*_):
        interruptions.append(True)
        raise KeyboardInterrupt

    signal.signal(signal.SIGPROF, interrupt)
    for _ in range(TRIES):
        begin = time.process_time()
        signal.setitimer(signal.ITIMER_PROF, share * duration)
        try:
            work()
            signal.setitimer(signal.ITIMER_PROF, 0)
        except KeyboardInterrupt:
            return time.process_time() - begin - share * duration
        assert not interruptions, "the work ran to its end although it was interrupted"
        duration = time.process_time() - begin
    raise AssertionError(f"the work ended {TRIES} times before {share:.0%} of its time")


def main():
    warnings.simplefilter("ignore")
    work = PHASES[sys.argv[1]]()
    work()
    begin = time.process_time()
    work()
    duration = time.process_time() - begin
    print(duration, flush=True)
    for share in SHARES:
        print(interrupted_at(share, duration, work), flush=True)
        left = [
            thread.name for thread in threading.enumerate() if thread.name.startswith("recometer-")
        ]
        assert not left, left
    work()
    print("again", flush=True)


if __name__ == "__main__":
    main()

"""Run out of memory, or evaluate repeatedly, in a separate process: `python starved.py CASE`.

The script prints the error, and whether a small evaluation still works afterwards.
`test_memory.py` runs this script.
"""

import resource
import sys
import threading
import warnings

import numpy as np
import polars as pl

import recometer as rm

RNG = np.random.default_rng(0)
ROOM = 256 * 2**20  # the work may use at most this many bytes of memory


def pages(column):
    """Return the size of this process's address space (0), resident memory (1) or data (5)."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[column]) * resource.getpagesize()


def small(number=0):
    """Run a small evaluation with each kind of source."""
    test = np.eye(30) + np.eye(30, k=3)
    sources = (
        lambda: rm.Scores(np.outer(np.arange(30.0), np.ones(30))),
        lambda: rm.Factors(np.ones((30, 3)), np.arange(90.0).reshape(30, 3)),
        lambda: rm.Lists(np.tile(np.arange(10), (30, 1))),
    )
    return rm.evaluate(
        sources[number % 3](), test, metrics="ndcg@5 rr@10 coverage@5", catalogue=30, threads=2
    )


def long_lists():
    """Make lists with all items in the catalogue."""
    model = rm.Factors(np.ones((2000, 2), np.float32), np.ones((60_000, 2), np.float32))
    return rm.evaluate(model, np.eye(2000, 60_000), metrics="coverage@60000", threads=1)


def many_cutoffs():
    """Compute many values per user."""
    names = "recall@1..2000"
    model = rm.Scores(np.zeros((100_000, 3), np.float32))
    return rm.evaluate(model, np.ones((100_000, 3)), metrics=names, threads=2)


def many_users():
    """Allocate arrays with one entry per user, for hundreds of millions of users."""
    return rm.Interactions.of(np.array([[2**28 - 5], [7]]), n_users=2**28 - 1, n_items=8)


def texts():
    """Read string ids, which are numbered by Polars and the kernel."""
    ids = pl.Series(np.arange(10_000_000)).cast(pl.String)
    return rm.Interactions.of(pl.DataFrame({"user": ids, "item": ids}))


CASES = {function.__name__: function for function in (long_lists, many_cutoffs, many_users, texts)}


def starved(case):
    """Run work that needs more memory than is available, and print the error."""
    before = small().mean()
    limit = pages(5) + ROOM
    resource.setrlimit(resource.RLIMIT_DATA, (limit, resource.RLIM_INFINITY))
    try:
        CASES[case]()
        print("nothing was raised")
    except MemoryError as error:
        print(f"MemoryError: {error}")
    left = [thread.name for thread in threading.enumerate() if thread.name.startswith("recometer-")]
    assert not left, left
    assert small().mean() == before
    print("alive")


def repeated():
    """Print the number of bytes by which the process grows during a thousand evaluations."""
    for number in range(300):
        small(number)
    before = pages(1)
    for number in range(1000):
        small(number)
    print(pages(1) - before)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    pl.Series([1]).sort()  # make Polars start its threads
    if sys.argv[1] == "repeated":
        repeated()
    else:
        starved(sys.argv[1])

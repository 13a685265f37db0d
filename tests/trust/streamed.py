"""Evaluate a 3 GiB file with half as much memory: `python streamed.py CASE DTYPE ORDER FOLDER`.

The numbers take up 3 GiB in the dtype that the kernel reads; float16 scores are converted to
float32.

The script prints how many bytes of anonymous memory the evaluation took, and whether its values
equal those of an evaluation in memory. `test_streamed.py` runs this script.
"""

import json
import resource
import sys
import threading
import warnings
from pathlib import Path

import numpy as np

import recometer as rm

GIB = 2**30
LIMIT = 3 * GIB // 2  # the maximum number of bytes in the process's data segment
N_ROWS, N_FACTORS, N_OTHERS = 12_582_912, 64, 24  # the factors take at least 3 GiB
N_SCORED = 768  # the number of users; the scores of each user take 4 MiB
WRITTEN = 4096  # the number of nonzero rows of factors, which are spread over the file


def anonymous():
    """Return how many bytes of this process's memory are not backed by a file."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) * 1024
    raise RuntimeError("the system does not report anonymous memory")


def file_of(path, shape, dtype, order):
    """Create a sparse file, which contains zeros wherever nothing is written; return its array."""
    options = {"dtype": dtype, "shape": shape, "fortran_order": order == "F"}
    return np.lib.format.open_memmap(path, mode="w+", **options)


def factors_in_file(path, dtype, order):
    """Write factors in blocks spread over a file, each row twice; return the rows and positions."""
    rows = file_of(path, (N_ROWS, N_FACTORS), dtype, order)
    starts = np.linspace(0, N_ROWS - 64, WRITTEN // 64).astype(int)
    positions = np.concatenate([np.arange(start, start + 64) for start in starts])
    half = np.random.default_rng(0).standard_normal((WRITTEN // 2, N_FACTORS))
    rows[positions] = np.concatenate([half, half])
    rows.flush()
    return np.ascontiguousarray(rows[positions]), positions


def judged(items, n_items, user_ids=None):
    """Return interactions between each user and the items in the user's row of `items`."""
    pairs = np.stack([np.repeat(np.arange(len(items)), items.shape[1]), items.ravel()])
    sizes = {"n_users": len(items), "n_items": n_items}
    item_ids = None if user_ids is None else np.arange(n_items)
    return rm.Interactions.of(pairs, **sizes, user_ids=user_ids, item_ids=item_ids)


def best(scores, places):
    """Return the items at these places in each user's ranking."""
    return np.argsort(-scores, axis=1, kind="stable")[:, places]


def items(path, dtype, order):
    """Write item factors to the file; the judged items are some of the items with high scores."""
    nonzero_items, positions = factors_in_file(path, dtype, order)
    users = np.random.default_rng(1).standard_normal((N_OTHERS, N_FACTORS)).astype(dtype)
    place = best(users @ nonzero_items.T.astype(dtype), [0, 5, 8, 40, 90])
    in_file = (lambda: rm.Factors(users, path)), judged(positions[place], N_ROWS)
    # All other items have a score of 0, so they rank below the judged items.
    return in_file, (rm.Factors(users, nonzero_items), judged(place, len(positions)))


def users(path, dtype, order):
    """Write user factors to the file; some users are test users, and item factors are float32."""
    nonzero_users, positions = factors_in_file(path, dtype, order)
    item_factors = np.random.default_rng(1).standard_normal((300, N_FACTORS)).astype(np.float32)
    ids = np.arange(N_ROWS)
    test = judged(best(nonzero_users @ item_factors.T, [0, 5, 8, 40, 90]), 300, user_ids=positions)
    names = {"item_ids": np.arange(300)}
    in_file = (lambda: rm.Factors(path, item_factors, user_ids=ids, **names)), test
    return in_file, (rm.Factors(nonzero_users, item_factors, user_ids=positions, **names), test)


def scores(path, dtype, order):
    """Write scores to the file; only some users have scores other than 0."""
    matrix = file_of(path, (N_SCORED, GIB // 1024), dtype, order)
    rows = np.arange(0, N_SCORED, 64)
    matrix[rows, :1000] = np.random.default_rng(0).random((len(rows), 1000), np.float32)
    matrix.flush()
    rows_with_scores, ids = np.ascontiguousarray(matrix[rows]), np.arange(N_SCORED)
    test = judged(
        best(rows_with_scores, [0, 5, 8, 40, 90]), rows_with_scores.shape[1], user_ids=rows
    )
    names = {"item_ids": np.arange(rows_with_scores.shape[1])}
    in_file = (lambda: rm.Scores(path, user_ids=ids, **names)), test
    return in_file, (rm.Scores(rows_with_scores, user_ids=rows, **names), test)


class Watch(threading.Thread):
    """A thread that keeps measuring how much memory the process uses."""

    def __init__(self):
        super().__init__(daemon=True)
        self.most, self.ended = anonymous(), threading.Event()

    def run(self):
        while not self.ended.wait(0.005):
            self.most = max(self.most, anonymous())


def main(case, dtype, order, folder):
    """Evaluate the file with limited memory, and then only its nonzero rows, in memory."""
    path = folder / "a.npy"
    (make, test), (small_source, small) = CASES[case](path, dtype, order)
    mapped, read_as = np.load(path, mmap_mode="r"), np.result_type(dtype, np.float32)
    resource.setrlimit(resource.RLIMIT_DATA, (LIMIT, resource.RLIM_INFINITY))
    options = {"metrics": "ndcg@10 recall@100 rr@50 ap@100", "threads": 2}
    before = anonymous()
    watch = Watch()
    watch.start()
    result = rm.evaluate(make(), test, **options)
    watch.ended.set()
    watch.join()
    try:
        refused = not len(mapped.astype(read_as))
    except MemoryError:
        refused = True
    part = rm.evaluate(small_source, small, **options)
    is_equal = all(np.array_equal(result.values[name], part.values[name]) for name in result.values)
    report = {"before": before, "most": watch.most, "refused": refused, "same": is_equal}
    report["copy"] = mapped.size * read_as.itemsize
    print(json.dumps({**report, "mean": result.mean()}))


CASES = {function.__name__: function for function in (items, users, scores)}

if __name__ == "__main__":
    warnings.simplefilter("ignore")  # recometer warns about conversions
    main(*sys.argv[1:4], Path(sys.argv[4]))

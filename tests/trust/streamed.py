"""Evaluate what lies in a file of 3 GiB with less memory: `python streamed.py CASE FOLDER`.

Prints how many bytes of anonymous memory it took, and whether values are those of what was in
memory. Run by `test_streamed.py`.
"""

import json
import resource
import sys
import threading
from pathlib import Path

import numpy as np

import recometer as rm

GIB = 2**30
LIMIT = 3 * GIB // 2  # of the data of the process
BUDGET = 800 * 10**6
N_ROWS, N_FACTORS, N_OTHERS = 12_582_912, 64, 24  # 3 GiB of factors in float32
N_SCORED = 768  # users, each with 4 MiB of scores
WRITTEN = 4096  # rows of factors that are not all zero, in pieces all over the file


def anonymous():
    """Return the bytes of this process that lie in no file."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) * 1024
    raise RuntimeError("the system does not say it")


def file_of(folder, shape):
    """Return a file with holes, which are read as zeros."""
    return np.lib.format.open_memmap(folder / "a.npy", mode="w+", dtype=np.float32, shape=shape)


def factors_in_file(folder):
    """Write rows of factors, each twice, with zeros between them; return where they are."""
    rows = file_of(folder, (N_ROWS, N_FACTORS))
    starts = np.linspace(0, N_ROWS - 64, WRITTEN // 64).astype(int)
    chosen = np.concatenate([np.arange(start, start + 64) for start in starts])
    half = np.random.default_rng(0).standard_normal((WRITTEN // 2, N_FACTORS))
    rows[chosen] = np.concatenate([half, half])
    rows.flush()
    return np.load(folder / "a.npy", mmap_mode="r"), chosen


def judged(items, n_items, user_ids=None):
    """Return interactions of each user with a row of items."""
    pairs = np.stack([np.repeat(np.arange(len(items)), items.shape[1]), items.ravel()])
    sizes = {"n_users": len(items), "n_items": n_items}
    item_ids = None if user_ids is None else np.arange(n_items)
    return rm.Interactions.of(pairs, **sizes, user_ids=user_ids, item_ids=item_ids)


def best(scores, places):
    """Return the items at some places of each user's ranking."""
    return np.argsort(-scores, axis=1, kind="stable")[:, places]


def items(folder):
    """Items in the file: of those that are not zero some of the best are judged."""
    mapped, chosen = factors_in_file(folder)
    users = np.random.default_rng(1).standard_normal((N_OTHERS, N_FACTORS)).astype(np.float32)
    few = np.ascontiguousarray(mapped[chosen])
    place = best(users @ few.T, [0, 5, 8, 40, 90])
    whole = (lambda: rm.Factors(users, mapped, memory=BUDGET)), judged(chosen[place], N_ROWS)
    # All other items score 0, and none of them is above these.
    return mapped, whole, (rm.Factors(users, few), judged(place, len(chosen)))


def users(folder):
    """Users in the file, some of whom are in test."""
    mapped, chosen = factors_in_file(folder)
    others = np.random.default_rng(1).standard_normal((300, N_FACTORS)).astype(np.float32)
    few, ids = np.ascontiguousarray(mapped[chosen]), np.arange(N_ROWS)
    test = judged(best(few @ others.T, [0, 5, 8, 40, 90]), 300, user_ids=chosen)
    names = {"item_ids": np.arange(300)}
    whole = (lambda: rm.Factors(mapped, others, user_ids=ids, memory=BUDGET, **names)), test
    return mapped, whole, (rm.Factors(few, others, user_ids=chosen, **names), test)


def scores(folder):
    """Scores in the file, of users some of whom have other scores than zeros."""
    matrix = file_of(folder, (N_SCORED, GIB // 1024))
    rows = np.arange(0, N_SCORED, 64)
    matrix[rows] = np.random.default_rng(0).random((len(rows), matrix.shape[1]), np.float32)
    matrix.flush()
    mapped, ids = np.load(folder / "a.npy", mmap_mode="r"), np.arange(N_SCORED)
    few = np.ascontiguousarray(mapped[rows])
    test = judged(best(few, [0, 5, 8, 40, 90]), few.shape[1], user_ids=rows)
    names = {"item_ids": np.arange(few.shape[1])}
    whole = (lambda: rm.Scores(mapped, user_ids=ids, memory="100MB", **names)), test
    return mapped, whole, (rm.Scores(few, user_ids=rows, **names), test)


class Watch(threading.Thread):
    """Looks at the memory again and again."""

    def __init__(self):
        super().__init__(daemon=True)
        self.most, self.ended = anonymous(), threading.Event()

    def run(self):
        while not self.ended.wait(0.005):
            self.most = max(self.most, anonymous())


def main(case, folder):
    """Evaluate within limits; then the part of it that matters, in memory."""
    mapped, (make, test), (alone, small) = CASES[case](folder)
    resource.setrlimit(resource.RLIMIT_DATA, (LIMIT, resource.RLIM_INFINITY))
    options = {"metrics": "ndcg@10 recall@100 rr@50 ap@100", "threads": 2}
    before = anonymous()
    watch = Watch()
    watch.start()
    whole = rm.evaluate(make(), test, **options)
    watch.ended.set()
    watch.join()
    try:
        refused = not len(mapped * np.float32(1))
    except MemoryError:
        refused = True
    part = rm.evaluate(alone, small, **options)
    same = all(np.array_equal(whole.values[name], part.values[name]) for name in whole.values)
    found = {"before": before, "most": watch.most, "refused": refused, "same": same}
    print(json.dumps({**found, "mean": whole.mean()}))


CASES = {one.__name__: one for one in (items, users, scores)}

if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))

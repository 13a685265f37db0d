"""Rank factors in a file that is larger than the memory there is: `python streamed.py FOLDER`.

Prints how many bytes of anonymous memory the ranking took, and values. Run by `test_streamed.py`.
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
N_ITEMS, N_FACTORS, N_USERS = 12_582_912, 64, 24  # 3 GiB of items in float32
WRITTEN = 4096  # items that are not all zero, in pieces all over the file


def anonymous():
    """Return the bytes of this process that lie in no file."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) * 1024
    raise RuntimeError("the system does not say it")


def written(folder):
    """Write the items: a file with holes, read as zeros, and between them a few items, each twice.

    Returns where these are.
    """
    rng = np.random.default_rng(0)
    items = np.lib.format.open_memmap(
        folder / "items.npy", mode="w+", dtype=np.float32, shape=(N_ITEMS, N_FACTORS)
    )
    starts = np.linspace(0, N_ITEMS - 64, WRITTEN // 64).astype(int)
    chosen = np.concatenate([np.arange(start, start + 64) for start in starts])
    half = rng.standard_normal((WRITTEN // 2, N_FACTORS))
    items[chosen] = np.concatenate([half, half])
    items.flush()
    return chosen


def judged(items, n_items):
    """Return interactions of each user with a row of items."""
    pairs = np.stack([np.repeat(np.arange(len(items)), items.shape[1]), items.ravel()])
    return rm.Interactions.of(pairs, n_users=len(items), n_items=n_items)


class Watch(threading.Thread):
    """Looks at the memory again and again."""

    def __init__(self):
        super().__init__(daemon=True)
        self.most, self.ended = anonymous(), threading.Event()

    def run(self):
        while not self.ended.wait(0.005):
            self.most = max(self.most, anonymous())


def main(folder):
    """Rank within limits; then the same with the items that are not zero, and one that is."""
    chosen = written(folder)
    users = np.random.default_rng(1).standard_normal((N_USERS, N_FACTORS)).astype(np.float32)
    mapped = np.load(folder / "items.npy", mmap_mode="r")
    few = np.ascontiguousarray(mapped[chosen])
    # Of each user some of the best items: one of a pair with equal scores each.
    place = np.argsort(-users @ few.T, axis=1, kind="stable")[:, [0, 5, 8, 40, 90]]
    test, small = judged(chosen[place], N_ITEMS), judged(place, len(chosen))
    resource.setrlimit(resource.RLIMIT_DATA, (LIMIT, resource.RLIM_INFINITY))
    options = {"metrics": "ndcg@10 recall@100 rr@50 ap@100", "threads": 2}
    before = anonymous()
    watch = Watch()
    watch.start()
    streamed = rm.evaluate(rm.Factors(users, mapped, memory=BUDGET), test, **options)
    watch.ended.set()
    watch.join()
    try:
        copied = mapped * np.float32(1)
        refused = len(copied) == 0
    except MemoryError:
        refused = True
    # All other items score 0, and none of them is above these.
    alone = rm.evaluate(rm.Factors(users, few), small, **options)
    same = all(
        np.array_equal(streamed.values[name], alone.values[name]) for name in streamed.values
    )
    print(
        json.dumps(
            {
                "before": before,
                "most": watch.most,
                "refused": refused,
                "same": bool(same),
                "mean": streamed.mean(),
            }
        )
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]))

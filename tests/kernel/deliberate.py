"""Trigger a bug that the sanitizers must report.

Usage: `python deliberate.py race` or `python deliberate.py read`.

`.ci/check_sanitizers` runs this script and expects it to fail, which shows that the sanitizers are
active.
"""

import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from recometer import _kernel


def race() -> None:
    """Let several threads add to the same array without synchronisation."""
    codes, counts = np.zeros(1_000_000, np.uint32), np.zeros(1, np.int64)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: _kernel.count_codes(codes, counts), range(16)))


def read() -> None:
    """Read past the end of an array of factors by claiming a larger shape."""
    items = np.ones((5, 4), np.float32)
    _kernel.score_items(
        instruction_set="plain",
        users=np.ones((1, 4), np.float32),
        items=np.lib.stride_tricks.as_strided(items, (8, 4), items.strides),
        bias=None,
        rows=None,
        indptr=np.array([0, 1]),
        listed=np.array([7], np.int32),
        scores=np.zeros(1, np.float32),
    )


if __name__ == "__main__":
    {"race": race, "read": read}[sys.argv[1]]()

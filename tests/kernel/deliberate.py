"""Mistakes made on purpose, which the sanitizers must see: `python deliberate.py race` or `read`.

`.ci/check_sanitizers` runs it and fails where it ends well: a sanitizer that finds nothing may
also be one that does not look.
"""

import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from recometer import _kernel


def race() -> None:
    """Have threads count into the same array."""
    codes, counts = np.zeros(1_000_000, np.uint32), np.zeros(1, np.int64)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: _kernel.count_codes(codes, counts), range(16)))


def read() -> None:
    """Read on where an array ends: its shape promises 64 codes, its memory holds one."""
    codes = np.lib.stride_tricks.as_strided(np.zeros(1, np.uint32), shape=(64,))
    _kernel.count_codes(codes, np.zeros(1, np.int64))


if __name__ == "__main__":
    {"race": race, "read": read}[sys.argv[1]]()

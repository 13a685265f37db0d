"""Readers of a split wait while another process replaces it, so that they never mix two splits."""

from __future__ import annotations

import os
import sys
import threading

import polars as pl
import pytest

import recometer as rm
from recometer.split import Last

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX locks")


def test_load_waits_while_a_split_is_replaced(tmp_path):
    import fcntl

    rows = pl.DataFrame({"user": [1, 1, 2, 2], "item": [1, 2, 3, 4], "time": [1, 2, 1, 2]})
    rm.split(rows, Last(1)).save(tmp_path)
    splits = []
    reader = threading.Thread(target=lambda: splits.append(rm.Split.load(tmp_path)))
    writer = os.open(tmp_path, os.O_RDONLY)
    try:
        fcntl.flock(writer, fcntl.LOCK_EX)
        reader.start()
        reader.join(timeout=0.3)
        assert not splits
    finally:
        os.close(writer)  # closing the file releases the lock
    reader.join(timeout=30)
    assert len(splits) == 1

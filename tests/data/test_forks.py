"""Tests that a process forked after Polars has run raises an error instead of hanging."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

SCRIPT = """
import os, sys, warnings
import numpy as np, polars as pl, recometer as rm
warnings.simplefilter("ignore")

def matrices():
    return rm.evaluate(rm.Scores(np.eye(3)), np.eye(3)[::-1], metrics="rr").mean()

def ids():
    return rm.evaluate(rm.Lists({"ann": ["a", "b"]}), {"ann": ["b", "a"]}, metrics="rr").mean()

def frames():
    return len(rm.Interactions.of(pl.DataFrame({"user_id": [1], "item_id": [2]})))

def files():
    return rm.load("result.parquet")

pl.Series(["b", "a", "b"]).unique().sort()
pl.DataFrame({"a": [1, 2]}).lazy().group_by("a").len().collect()
expected = matrices()
for work in (matrices, ids, frames, files):
    child = os.fork()
    if child == 0:
        try:
            print(work.__name__, work() == expected, flush=True)
        except rm.RecometerError as error:
            print(work.__name__, error, flush=True)
        os._exit(0)
    os.waitpid(child, 0)
print("parent", ids(), flush=True)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs the names of threads")
def test_forked_process_reports_that_polars_lost_its_threads(tmp_path):
    run = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    printed = dict(line.split(" ", 1) for line in run.stdout.splitlines())
    assert printed["matrices"] == "True"
    for work in ("ids", "frames", "files"):
        assert "forked from one in which Polars had been used" in printed[work]
        assert "Hint: start new processes" in printed[work]
    assert printed["parent"] == "{'rr': 1.0}"

"""Data in a file larger than the available memory can be evaluated."""

import json
import sys

import pytest
from scripts import run_script

pytestmark = [
    pytest.mark.faults,
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs Linux's memory limits"),
]
MOST = 800 * 10**6  # an evaluation may take at most this many bytes of memory


@pytest.mark.parametrize(
    ("case", "dtype", "order"),
    [
        (case, dtype, order)
        for case in ("items", "users", "scores")
        for dtype, order in (("f4", "C"), ("f4", "F"), ("f2", "C"))
        if (case == "scores") or dtype == "f4"  # only scores are converted as they are read
    ],
)
def test_3_gib_are_evaluated_with_half_the_memory(tmp_path, case, dtype, order):
    try:
        printed = json.loads(
            run_script("streamed.py", case, dtype, order, str(tmp_path), timeout=600)
        )
    finally:
        (tmp_path / "a.npy").unlink(missing_ok=True)
    assert printed["copy"] >= 3 * 2**30
    assert printed["refused"]  # the whole file does not fit into memory
    assert printed["same"]
    assert min(printed["mean"].values()) > 0.1
    assert printed["most"] - printed["before"] < MOST

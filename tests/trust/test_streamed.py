"""What lies in a file larger than the memory there is is evaluated all the same."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.faults,
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the limits are Linux's"),
]
STREAMED = Path(__file__).with_name("streamed.py")
BUDGET = 800 * 10**6  # bytes, as in streamed.py


@pytest.mark.parametrize("case", ["items", "users", "scores"])
def test_3_gib_are_evaluated_in_a_process_that_may_have_half_of_that(tmp_path, case):
    run = subprocess.run(
        [sys.executable, str(STREAMED), case, str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=600,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    size = (tmp_path / "a.npy").stat().st_size
    (tmp_path / "a.npy").unlink()
    assert run.returncode == 0, run.stdout + run.stderr
    assert size > 3 * 2**30
    said = json.loads(run.stdout)
    assert said["refused"]  # the whole does not fit
    assert said["same"]
    assert min(said["mean"].values()) > 0.1
    assert said["most"] - said["before"] < BUDGET

"""Ctrl-C in the middle of long work: it ends soon, leaves no thread, and can be done again."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.faults
INTERRUPTED = Path(__file__).with_name("interrupted.py")
LATEST = 0.5  # seconds
PHASES = [
    "factors",
    "many_items",
    "factors_in_a_file",
    "lists_of_factors",
    "scores",
    "metrics",
    "expected_ties",
    "lists_with_ids",
    "lists_in_files",
    "reading",
    "split",
    "audit",
    "compare",
]


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="the system has no such timer")
@pytest.mark.parametrize("phase", PHASES)
def test_long_work_ends_soon(phase):
    run = subprocess.run(
        [sys.executable, str(INTERRUPTED), phase],
        capture_output=True,
        text=True,
        timeout=600,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert run.returncode == 0, run.stdout + run.stderr
    *latencies, again = run.stdout.split("\n")[:-1]
    assert again.startswith("again")
    found = [float(one) for one in latencies if one != "None"]
    assert len(found) >= 3  # the last moments may come after the end
    assert max(found) < LATEST

"""After Ctrl-C, long-running work ends soon, leaves no threads behind, and can be repeated."""

import signal

import pytest
from interrupted import PHASES
from scripts import run_script

pytestmark = pytest.mark.faults
LATEST = 0.5  # the work must end within this many seconds after an interruption


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs setitimer")
@pytest.mark.parametrize("phase", PHASES)
def test_interrupted_work_ends_soon(phase):
    printed = run_script("interrupted.py", phase, timeout=600)
    duration, *latencies, last_line = printed.split("\n")[:-1]
    assert last_line == "again"
    assert float(duration) > LATEST, "the work is too short for this test"
    assert max(map(float, latencies)) < LATEST

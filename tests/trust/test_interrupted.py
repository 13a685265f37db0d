"""Ctrl-C in the middle of long work: it ends soon, leaves no thread, and can be done again."""

import signal

import pytest
from interrupted import PHASES
from scripts import run_script

pytestmark = pytest.mark.faults
LATEST = 0.5  # seconds


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="the system has no such timer")
@pytest.mark.parametrize("phase", PHASES)
def test_long_work_ends_soon(phase):
    printed = run_script("interrupted.py", phase, timeout=600)
    whole, *latencies, again = printed.split("\n")[:-1]
    assert again == "again"
    assert float(whole) > LATEST, "the work is too short for the test to notice that it goes on"
    assert max(map(float, latencies)) < LATEST

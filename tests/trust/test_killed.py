"""Killed (SIGKILL) while saving: what was there before is whole, or what was saved is."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.faults
KILLED = Path(__file__).with_name("killed.py")
# What is saved, and how many kills there are at least: one before each step.
SAVED = {
    "evaluation": 2,
    "split": 10,
    "csv": 2,
    "json": 2,
    "page": 2,
    "markdown": 2,
    "chart": 2,
    "command_line": 4,
}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked, to be fast")
@pytest.mark.parametrize("what", SAVED)
def test_the_old_or_the_new_is_whole(what, tmp_path):
    run = subprocess.run(
        [sys.executable, str(KILLED), what, str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert run.returncode == 0, run.stdout + run.stderr
    *kills, end = run.stdout.split("\n")[:-1]
    assert end == "ended"
    assert len(kills) >= SAVED[what]
    assert set(kills) == {"old", "new"}
    # First the old one, and from some step on the new one.
    assert kills == sorted(kills, reverse=True)

"""If a process is killed (SIGKILL) while saving, either the old or the new version is complete."""

import os

import pytest
from scripts import run_script

pytestmark = pytest.mark.faults
# For each kind of saved result, the minimum number of kills; there is one kill before each step.
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


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize("kind", SAVED)
def test_old_or_new_version_is_complete_after_a_kill(kind, tmp_path):
    printed = run_script("killed.py", kind, str(tmp_path), timeout=300)
    *kills, end = printed.split("\n")[:-1]
    assert end == "ended"
    assert len(kills) >= SAVED[kind]
    assert set(kills) == {"old", "new"}
    # At first, the old version must be complete; from a certain step on, the new version must be.
    assert kills == sorted(kills, reverse=True)

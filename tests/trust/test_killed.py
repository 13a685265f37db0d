"""Killed (SIGKILL) while saving: what was there before is whole, or what was saved is."""

import os

import pytest
from scripts import run_script

pytestmark = pytest.mark.faults
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
    printed = run_script("killed.py", what, str(tmp_path), timeout=300)
    *kills, end = printed.split("\n")[:-1]
    assert end == "ended"
    assert len(kills) >= SAVED[what]
    assert set(kills) == {"old", "new"}
    # First the old one, and from some step on the new one.
    assert kills == sorted(kills, reverse=True)

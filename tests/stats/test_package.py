"""The statistics package lists its exports in sorted order, and importing it loads few modules."""

from __future__ import annotations

import subprocess
import sys

import recometer.stats


def test_importing_the_package_does_not_load_scipy() -> None:
    code = "import sys, recometer.stats; print([m for m in sys.modules if m.startswith('scipy')])"
    command = [sys.executable, "-c", f"import sys; sys.path[:] = {sys.path!r}; {code}"]
    assert subprocess.run(command, check=True, capture_output=True, text=True).stdout == "[]\n"


def test_exported_names_are_sorted() -> None:
    assert recometer.stats.__all__ == sorted(recometer.stats.__all__)

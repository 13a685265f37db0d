"""The names that the statistics package exports, and the modules that importing it loads."""

from __future__ import annotations

import subprocess
import sys

import recometer.stats


def test_the_package_loads_no_scipy() -> None:
    code = "import sys, recometer.stats; print([m for m in sys.modules if m.startswith('scipy')])"
    command = [sys.executable, "-c", f"import sys; sys.path[:] = {sys.path!r}; {code}"]
    assert subprocess.run(command, check=True, capture_output=True, text=True).stdout == "[]\n"


def test_its_names_are_sorted() -> None:
    assert recometer.stats.__all__ == sorted(recometer.stats.__all__)

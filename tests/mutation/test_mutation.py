"""The tool for mutation testing itself: its mutants are what they say, and it sees who survives."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest
from mutation import mutants

HERE = Path(__file__).parent
PACKAGE = HERE.parents[1] / "src" / "recometer"

SOURCE = '''
"""A text < another."""

import math


@metric(upper=1)
def scale(values: list[int], top: int = 3) -> int:
    """Return 1 < 2."""
    total = 0
    for value in values[1:]:
        total += value
    if not values or (top > 2 and math.isfinite(top)):
        raise ValueError(f"{1 + 1} of {top}")
    if ready(top):
        table["größe"] = np.searchsorted(values, top, side="left")
    log.info("done")
    return -max(total, top) * 2
'''


def test_every_mutant_has_one_mistake() -> None:
    found = [f"{one.line}: {one}" for one in mutants.mutants_of(SOURCE)]
    assert found == [
        "8: 3 -> 4",
        "10: 0 -> 1",
        "11: 1 -> 2",
        "12: total += value -> total -= value",
        "12: total += value -> pass",
        "13: not values or (top > 2 and math.isfinite(top)) -> "
        "not values and (top > 2 and math.isfinite(top))",
        "13: not values -> values",
        "13: top > 2 and math.isfinite(top) -> top > 2 or math.isfinite(top)",
        "13: top > 2 -> top >= 2",
        "13: 2 -> 3",
        "15: ready(top) -> not ready(top)",
        "16: table['größe'] = np.searchsorted(values, top, side='left') -> pass",
        "16: np.searchsorted(values, top, side='left') -> "
        "np.searchsorted(values, top, side='right')",
        "17: log.info('done') -> pass",
        "18: -max(total, top) * 2 -> -max(total, top) / 2",
        "18: -max(total, top) -> max(total, top)",
        "18: max(total, top) -> min(total, top)",
        "18: 2 -> 3",
    ]


@pytest.mark.parametrize("path", ["ties.py", "metrics/ranked/graded.py", "stats/gaffke.py"])
def test_mutants_are_modules(path: str) -> None:
    source = (PACKAGE / path).read_text("utf-8")
    tree = ast.dump(ast.parse(source))
    found = mutants.mutants_of(source)
    assert len(found) > 50
    for one in found[::7]:
        assert ast.dump(ast.parse(one.source)) != tree


def run(*options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(HERE / "run.py"), *options]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.skipif(sys.platform == "win32", reason="processes are forked")
def test_survivors_are_seen() -> None:
    """The constants of a module for tables on screen do not concern the tests of ties."""
    one = ["--area", "ties", "--share", "0", "--least", "1"]
    found = run(*one, "--seed", "5", "--needed", "0")
    assert found.returncode == 0, found.stderr
    assert "ties: " in found.stdout
    wrong = run("--area", "tie")
    assert wrong.returncode == 1
    assert "There is no area tie" in wrong.stderr

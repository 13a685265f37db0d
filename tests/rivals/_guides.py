"""Read the guides for users of other libraries, and run their code."""

from __future__ import annotations

import doctest
import re
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parents[2] / "docs"
FENCE = re.compile(r"^```(?:python|pycon)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
HEADER = re.compile(r'^\| in .+ \| with `protocol="(\w+)"` \| recometer\'s own \|$')


def page(library: str) -> str:
    """Return the text of a library's guide."""
    return (DOCS / f"from_{library}.md").read_text(encoding="utf-8")


def run(text: str) -> dict[str, Any]:
    """Run all Python code in a guide, including calls to the other library.

    Return the names that the code defines. Blocks without a prompt also run, because readers copy
    the functions and classes that they define.
    """
    names: dict[str, Any] = {"__name__": "guide"}
    runner, parser = doctest.DocTestRunner(), doctest.DocTestParser()
    for number, block in enumerate(FENCE.findall(text)):
        if ">>>" in block:
            example = parser.get_doctest(block, names, f"block {number}", None, 0)
            assert runner.run(example, clear_globs=False).failed == 0, f"block {number}"
            names |= example.globs
        else:
            exec(compile(block, f"block {number}", "exec"), names)
    return names


def lines(text: str) -> list[tuple[str, str, str, str]]:
    """For each row of the guide's tables, return the convention and the text of the three cells."""
    rows = []
    convention = ""
    for line in text.splitlines():
        if header := HEADER.match(line):
            convention = header[1]
        elif not line.startswith("|"):
            convention = ""
        elif convention and not line.startswith("|---"):
            cells = [cell.strip() for cell in line.strip("|").split(" | ")]
            theirs, ours, own_name = (re.fullmatch(r"`(.+)`", cell)[1] for cell in cells)  # type: ignore[index]
            rows.append((convention, theirs, ours, own_name))
    return rows

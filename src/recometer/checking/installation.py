"""Check whether this installation computes correctly on this processor."""

from __future__ import annotations

import dataclasses
import functools
import gzip
import json
import math
import pathlib
import platform
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from recometer import _kernel
from recometer.evaluation import evaluate
from recometer.rendering import Column, Printed, Table
from recometer.sources.scores import Scores
from recometer.tasks import resolve_threads
from recometer.version import __version__

# Calls to the kernel, together with the results of a slow NumPy version; the file is written by
# tests/helpers/kernel_problems.py.
PROBLEMS = pathlib.Path(__file__).with_name("problems.json.gz")
# These kernel functions are compiled separately for each instruction set.
PER_SET = ("score_items", "rank_factors", "rank_scores", "top_factors", "top_scores")


@dataclasses.dataclass(frozen=True)
class Line:
    """A check of the installation, and its result."""

    what: str
    found: str
    works: bool

    @property
    def verdict(self) -> str:
        """The word that a table shows after a wrong result; empty if the result is correct."""
        return "" if self.works else "WRONG"


COLUMNS = (
    Column("what"),
    Column("found", wraps=True),
    Column("", ("verdict",)),
    Column("works", hidden=True),
)


@dataclasses.dataclass(frozen=True)
class Installation(Printed):
    """The result of `check_installation`.

    Attributes
    ----------
    lines : tuple of Line
        The checks, and facts about the installation.
    """

    lines: tuple[Line, ...]

    @property
    def works(self) -> bool:
        """Whether all results are correct."""
        return all(line.works for line in self.lines)

    def to_dict(self) -> dict[str, Any]:
        """Return the whole result as Python objects that can be written as JSON."""
        return {"works": self.works, "lines": self.table().records()}

    def table(self) -> Table:
        """Return a table with a row for each check."""
        wrong = [line.what for line in self.lines if not line.works]
        verdict = f"Wrong: {', '.join(wrong)}. Please report this." if wrong else "All is well."
        return Table(COLUMNS, self.lines, [verdict])


def check_installation() -> Installation:
    """Recompute a known result, and compare the native kernel with a slow NumPy version.

    The function compares the result of a small evaluation with a result computed by hand. For each
    instruction set of this processor, it compares ranks, lists, sums and hashes with the results of
    plain NumPy code for the same input.

    Returns
    -------
    Installation
        The versions, the processor, the number of threads, and the outcome of each comparison.
    """
    return Installation(tuple(_lines()))


def _lines() -> Iterator[Line]:
    yield Line("recometer", __version__, works=True)
    yield Line("Python", f"{platform.python_version()} ({sys.executable})", works=True)
    yield Line("NumPy", np.__version__, works=True)
    yield Line("platform", f"{sys.platform} {platform.machine()}", works=True)
    sets = _kernel.instruction_sets()
    try:
        chosen = _kernel.instruction_set()
        yield Line("instruction set", f"{chosen} (of {', '.join(sets)})", works=True)
    except ValueError as error:
        yield Line("instruction set", str(error), works=False)
    yield Line("threads", f"{resolve_threads(None)}", works=True)
    yield _timed("a known result", _known_result)
    for name in sets:
        yield _timed(f"kernel, {name}", functools.partial(_compare_numpy, name))


def _timed(what: str, check: Callable[[], tuple[str, bool]]) -> Line:
    begin = time.perf_counter()
    try:
        result, works = check()
    except Exception as error:  # the check reports any exception
        result, works = f"raised {type(error).__name__}: {error}", False
    return Line(what, f"{result} ({time.perf_counter() - begin:.2f} s)", works)


# Ann's item is at place 2, Bob's is at place 1, and Cleo's is tied with another item for place 1.
SCORES = [[3.0, 2.0, 1.0], [1.0, 2.0, 3.0], [2.0, 2.0, 1.0]]
TEST = [[0, 1, 0], [0, 0, 1], [1, 0, 0]]
AT_TWO = 1 / math.log2(3)
EXPECTED = {"rr": (1 / 2 + 1 + 3 / 4) / 3, "ndcg@2": (AT_TWO + 1 + (1 + AT_TWO) / 2) / 3}


def _known_result() -> tuple[str, bool]:
    means = evaluate(Scores(SCORES), np.array(TEST), metrics=" ".join(EXPECTED)).mean()
    works = all(abs(means[name] - value) < 1e-15 for name, value in EXPECTED.items())
    return ", ".join(f"{name} {means[name]:.15g}" for name in EXPECTED), works


def _compare_numpy(instruction_set: str) -> tuple[str, bool]:
    compared, different = 0, 0
    for name, arguments, expected in _problems():
        options = {"instruction_set": instruction_set} if name in PER_SET else {}
        getattr(_kernel, name)(**arguments, **options)
        for argument in expected.keys() - {"finished"}:  # only later calls read "finished"
            x, y = arguments[argument], expected[argument]
            compared += x.size
            different += int(np.count_nonzero((x != y) & ((x == x) | (y == y))))
    if different:
        return f"{different:,} of {compared:,} numbers differ from NumPy's", False
    return f"{compared:,} numbers equal NumPy's", True


def _problems() -> Iterator[tuple[str, dict[str, Any], dict[str, Any]]]:
    """Yield the name, arguments and expected output arrays of each kernel call."""
    stored = json.loads(gzip.decompress(PROBLEMS.read_bytes()))

    def value(entry: object) -> Any:
        if not isinstance(entry, str):
            return entry
        kind, _, name = entry.partition(".")
        if kind != "array":
            return getattr(_kernel, kind)[name]
        dtype, shape, values = stored["arrays"][int(name)]
        return np.array(values, dtype).reshape(shape)

    for name, *parts in stored["calls"]:
        arguments, expected = ({key: value(entry) for key, entry in part.items()} for part in parts)
        yield name, arguments, expected

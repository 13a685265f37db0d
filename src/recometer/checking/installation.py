"""Checks whether this installation computes correctly on this processor."""

from __future__ import annotations

import dataclasses
import functools
import math
import platform
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from recometer import _kernel
from recometer._kernel import NanRule, reference
from recometer.arrays import Array
from recometer.evaluation import evaluate
from recometer.rendering import Column, Printed, Table
from recometer.sources.scores import Scores
from recometer.tasks import resolve_threads
from recometer.version import __version__

SHAPES = ((1, 7, 3), (13, 64, 16), (6, 257, 5), (29, 511, 17))  # users, items, factors
LARGEST = 4  # factors are whole numbers up to it: every score is exact


@dataclasses.dataclass(frozen=True)
class Line:
    """One line of the check."""

    what: str
    found: str
    works: bool

    @property
    def verdict(self) -> str:
        """The text of the verdict."""
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
    """

    lines: tuple[Line, ...]

    @property
    def works(self) -> bool:
        """Whether everything is correct."""
        return all(line.works for line in self.lines)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values (for JSON)."""
        return {"works": self.works, "lines": self.table().records()}

    def table(self) -> Table:
        """Return a row for everything that was checked."""
        wrong = [line.what for line in self.lines if not line.works]
        verdict = f"Wrong: {', '.join(wrong)}. Please report this." if wrong else "All is well."
        return Table(COLUMNS, self.lines, [verdict])


def check_installation() -> Installation:
    """Compute a known result, and compare the native kernel with its slow twin.

    Returns
    -------
    Installation
        Versions, processor and threads; a small evaluation whose result was computed by hand; and,
        for each instruction set of this processor, the counts for random factors and scores in
        comparison with those of plain NumPy.
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
        yield _timed(f"kernel, {name}", functools.partial(_like_its_twin, name))


def _timed(what: str, check: Callable[[], tuple[str, bool]]) -> Line:
    begin = time.perf_counter()
    try:
        found, works = check()
    except Exception as error:  # whatever it is, it belongs in the report
        found, works = f"raised {type(error).__name__}: {error}", False
    return Line(what, f"{found} ({time.perf_counter() - begin:.2f} s)", works)


# Ann finds her item at place 2, Bob at 1, and Cleo's is one of two that tie for 1.
SCORES = [[3.0, 2.0, 1.0], [1.0, 2.0, 3.0], [2.0, 2.0, 1.0]]
TEST = [[0, 1, 0], [0, 0, 1], [1, 0, 0]]
AT_TWO = 1 / math.log2(3)
EXPECTED = {"rr": (1 / 2 + 1 + 3 / 4) / 3, "ndcg@2": (AT_TWO + 1 + (1 + AT_TWO) / 2) / 3}


def _known_result() -> tuple[str, bool]:
    means = evaluate(Scores(SCORES), np.array(TEST), metrics=" ".join(EXPECTED)).mean()
    works = all(abs(means[name] - value) < 1e-15 for name, value in EXPECTED.items())
    return ", ".join(f"{name} {means[name]:.15g}" for name in EXPECTED), works


def _like_its_twin(instruction_set: str) -> tuple[str, bool]:
    native = {"instruction_set": instruction_set}
    compared, different = 0, 0
    for seed, shape in enumerate(SHAPES):
        for call in (_of_factors, _of_scores):
            ours = call(_kernel, native, *_problem(seed, *shape))
            twins = call(reference, {}, *_problem(seed, *shape))
            for one, other in zip(ours, twins, strict=True):
                compared += one.size
                different += int(np.count_nonzero(one != other))
    if different:
        return f"{different:,} of {compared:,} numbers differ from those of NumPy", False
    return f"{compared:,} numbers are those of NumPy", True


def _problem(
    seed: int, n_users: int, n_items: int, n_factors: int
) -> tuple[Array, Array, dict[str, Any]]:
    """Return factors, and the tables that both kernels take: two items excluded, two judged."""
    rng = np.random.default_rng(seed)
    users, items = (
        rng.integers(-LARGEST, LARGEST + 1, (n, n_factors)).astype(np.float32)
        for n in (n_users, n_items)
    )
    drawn = np.array([rng.choice(n_items, 4, replace=False) for _ in range(n_users)], np.int32)
    indptr = np.arange(0, 2 * n_users + 1, 2)
    tables = {
        "excluded_indptr": indptr,
        "excluded": np.sort(drawn[:, :2], axis=1).ravel(),
        "judged_indptr": indptr,
        "judged": np.sort(drawn[:, 2:], axis=1).ravel(),
        **{name: np.zeros(2 * n_users, np.int64) for name in ("above", "tied", "before")},
        "limit": None,
        "nan_rule": NanRule.UNDEFINED,
        "flags": np.zeros(n_users, np.uint32),
    }
    return users, items, tables


def _of_factors(
    kernel: Any, native: dict[str, str], users: Array, items: Array, tables: dict[str, Any]
) -> list[Array]:
    factors = {"users": users, "items": items, "bias": None, "rows": None}
    scores = np.empty(len(tables["judged"]), np.float32)
    kernel.score_items(
        **factors, indptr=tables["judged_indptr"], listed=tables["judged"], scores=scores, **native
    )
    kernel.rank_factors(
        **factors,
        **dict.fromkeys(("by_place", "places", "item_bound", "user_bound")),
        first=0,
        last=len(items),
        **tables,
        judged_scores=scores,
        check=True,
        finished=np.zeros(len(users), np.uint8),
        **native,
    )
    return [scores, *_counts(tables)]


def _of_scores(
    kernel: Any, native: dict[str, str], users: Array, items: Array, tables: dict[str, Any]
) -> list[Array]:
    scores = users @ items.T
    whose = np.repeat(np.arange(len(users)), 2)
    kernel.rank_scores(
        scores=scores,
        columns=None,
        **tables,
        judged_scores=scores[whose, tables["judged"]],
        no_candidates=np.zeros(len(users), np.int64),
        **native,
    )
    return _counts(tables)


def _counts(tables: dict[str, Any]) -> list[Array]:
    return [tables[name] for name in ("above", "tied", "before", "flags")]

"""Findings of rows, users and items of test."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from recometer.arrays import Bool
from recometer.auditing._sides import Sides
from recometer.auditing.result import Finding, Level


def of_rows(
    sides: Sides,
    chosen: Bool,
    name: str,
    what: str,
    level: Level,
    found: str,
    clear: str,
    among: Bool | None = None,
    statistics: Mapping[str, float] | None = None,
) -> Finding:
    """Return what was found in some rows of test.

    Parameters
    ----------
    sides
    chosen : bool [len(test)]
    name, what, level
        As in `Finding`.
    found, clear
        The sentence if there are such rows, and if there are none.
    among : bool [len(test)] or None
        The rows that `chosen` was chosen from; None: all.
    statistics
    """
    total = len(chosen) if among is None else int(np.count_nonzero(among))
    examples = sides.example_rows(chosen)
    count = int(np.count_nonzero(chosen))
    return counted(count, total, examples, name, what, level, found, clear, statistics)


def of_users(
    sides: Sides, chosen: Bool, name: str, what: str, level: Level, found: str, clear: str
) -> Finding:
    """Return what was found in some users of test (bool [test.n_users]), see `of_rows`."""
    total = int(np.count_nonzero(sides.tested))
    examples = sides.example_users(chosen)
    return counted(int(np.count_nonzero(chosen)), total, examples, name, what, level, found, clear)


def of_items(
    sides: Sides, chosen: Bool, name: str, what: str, level: Level, found: str, clear: str
) -> Finding:
    """Return what was found in some items of test (bool [test.n_items]), see `of_rows`."""
    total = int(np.count_nonzero(sides.item_counts_of_test))
    examples = sides.example_items(chosen)
    return counted(int(np.count_nonzero(chosen)), total, examples, name, what, level, found, clear)


def counted(
    count: int,
    total: int,
    examples: tuple[Any, ...],
    name: str,
    what: str,
    level: Level,
    found: str,
    clear: str,
    statistics: Mapping[str, float] | None = None,
) -> Finding:
    """Return a finding; where nothing was found it is a fact."""
    return Finding(
        name=name,
        what=what,
        level=level if count else "fact",
        count=count,
        total=total,
        examples=examples,
        sentence=found if count else clear,
        statistics=statistics or {},
    )


def unchecked(total: int, name: str, what: str, why: str) -> Finding:
    """Return a finding of what could not be checked."""
    return Finding(
        name=name, what=what, level="fact", count=None, total=total, sentence=f"Not checked: {why}."
    )

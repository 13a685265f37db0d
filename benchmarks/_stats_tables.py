"""Tables of the results of benchmarks/stats.py: intervals, tests and power."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
from _table import markdown

Rows = Sequence[dict[str, Any]]


def tables(results: dict[str, Rows]) -> str:
    """Return the tables of coverage, type I errors and power."""
    return "\n\n".join(
        [
            _of_coverage(results["coverage"]),
            _of_errors(results["errors"]),
            _of_power(results["power"]),
        ]
    )


def _sizes(rows: Rows) -> list[int]:
    return sorted({row["n"] for row in rows})


def _range(values: Sequence[float], digits: int = 3) -> str:
    return f"{min(values):.{digits}f} to {max(values):.{digits}f}"


def _of_coverage(rows: Rows) -> str:
    """Return a table of coverage by number of users: the minimum and the mean."""
    lines = []
    for of, n in itertools.product(("mean", "difference"), _sizes(rows)):
        matching = [row for row in rows if (row["of"], row["n"]) == (of, n)]
        cells = [of, f"{n:,}"]
        for kind in ("covered", "without range", "student"):
            values = [row[kind] for row in matching]
            cells.append(f"{min(values):.3f}, {np.mean(values):.3f}")
        lines.append([*cells, _range([row["width"] for row in matching], 2)])
    headers = ["of", "users", "default", "range not known", "Student's t", "width, default / t"]
    return markdown(headers, lines)


def _of_errors(rows: Rows) -> str:
    """Return a table of rejection rates between equal models, by number of users."""
    tests = ("randomisation", "t", "wilcoxon", "sign")
    lines = []
    for hits, n in itertools.product((False, True), _sizes(rows)):
        matching = [row for row in rows if row["n"] == n and ("hit" in row["population"]) == hits]
        users = _range([row["differ"] for row in matching], 0)
        cells = [_range([row[test] for row in matching]) for test in (*tests, "sign could")]
        lines.append(["hit@10" if hits else "others", f"{n:,}", users, *cells])
    return markdown(["metric", "users", "who differ", *tests, "sign, at most"], lines)


def _of_power(rows: Rows) -> str:
    """Return a table of the difference between actual and predicted power, by number of users."""
    lines = []
    for how, hits, n in itertools.product(("swapped", "shifted"), (False, True), _sizes(rows)):
        matching = [
            row
            for row in rows
            if (row["n"], row["how"], "hit" in row["population"]) == (n, how, hits)
        ]
        largest_errors = [
            f"{max(abs(row['power'] - row[by]) for row in matching):.3f}"
            for by in ("predicted", "predicted by t")
        ]
        power = _range([row["power"] for row in matching])
        lines.append([how, "hit@10" if hits else "others", f"{n:,}", power, *largest_errors])
    headers = ["models are", "metric", "users", "power", "error", "error of t"]
    return markdown(headers, lines)

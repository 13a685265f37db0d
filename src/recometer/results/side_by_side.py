"""Tables with a column per metric, for models and for groups of users."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from recometer.rendering import Column, Table
from recometer.rendering.formats import GAP, number


def metric_column(name: str) -> Column:
    """Return the column of a metric, for cells that are already formatted."""
    return Column(name, number=True)


def cell(mean: float, low: float, high: float) -> str:
    """Return a mean with the longer arm of its interval: ``"0.1234 ±.0123"``."""
    if math.isnan(mean):
        return "undefined"
    if math.isnan(low):
        return number(mean)
    # The longer arm is informative even if the other arm is clipped to a bound of the metric.
    far = number(max(high - mean, mean - low))
    return f"{number(mean)} ±{far.removeprefix('0')}"


def legend(confidence: float, others: str = "") -> str:
    """Return the sentence that explains `cell`, without a full stop; `others` is inserted."""
    return (
        f"Mean over the users counted{others}; ± is the longer arm of the {confidence:.0%} interval"
    )


def span(counts: Sequence[int]) -> str:
    """Return ``"12"``, or ``"12-15"`` if counts differ."""
    low, high = min(counts), max(counts)
    return f"{low:,}" if low == high else f"{low:,}-{high:,}"


def fitting(
    make: Callable[[Sequence[str]], Table], metrics: Sequence[str], width: int | None
) -> list[Table]:
    """Return one table of all metrics, or several tables if one would exceed the width.

    `make` makes the table of the given metrics, without notes, because these follow the last table.
    """
    groups: list[list[str]] = [[]]
    for metric in metrics:
        if width is not None and groups[-1] and _width(make([*groups[-1], metric])) > width:
            groups.append([])
        groups[-1].append(metric)
    return [make(group) for group in groups]


def _width(table: Table) -> int:
    columns = zip(table.headers, *table.cells(), strict=True)
    return sum(max(map(len, column)) + GAP for column in columns) - GAP

"""The groups of users of several models, in one table."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from recometer.rendering import Column, Table
from recometer.results.groups import Segments
from recometer.results.side_by_side import cell, fitting, metric_column


def side_by_side(segments: Mapping[str, Segments], width: int | None = None) -> list[Table]:
    """Return tables with a row per group and model, a column per metric; none of no models."""
    every = list(segments.values())
    if len(every) <= 1:
        return [table for one in every for table in one.tables(width)]
    metrics = list(dict.fromkeys(row.metric for row in every[0].rows))

    def make(chosen: Sequence[str]) -> Table:
        columns = [Column("group"), Column("model"), *map(metric_column, ("users", *chosen))]
        return Table(columns, list(lines.values()))

    lines: dict[tuple[str, str], dict[str, Any]] = {
        (group, model): {"group": group, "model": model}
        for group in dict.fromkeys(group for one in every for group in one.groups)
        for model, one in segments.items()
        if group in one.groups
    }
    for model, one in segments.items():
        for row in one.rows:
            line = lines[row.group, model]
            line["users"] = f"{row.users:,}"
            line[row.metric] = cell(row.mean, row.low, row.high)
    *before, last = fitting(make, metrics, width)
    left_out = max(one.left_out for one in every)
    notes = [f"users without a group (left out): {left_out:,}"] if left_out else []
    return [*before, dataclasses.replace(last, notes=notes)]


def segments_data(segments: Mapping[str, Segments]) -> Table:
    """Return a row per model, metric and group."""
    tables = {model: one.data() for model, one in segments.items()}
    rows = [{"model": model, **vars(row)} for model, table in tables.items() for row in table.rows]
    return Table([Column("model"), *next(iter(tables.values())).columns], rows)

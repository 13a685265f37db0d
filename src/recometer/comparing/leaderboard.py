"""The leaderboard of a comparison as a table."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from recometer.comparing import wording
from recometer.comparing.corrections import Correction
from recometer.comparing.pairs import Options
from recometer.comparing.rows import SIGNS, Standing, standing_text
from recometer.rendering import Column, Table
from recometer.results.side_by_side import fitting, metric_column


def leaderboard(
    standings: Sequence[Standing],
    metrics: Sequence[str],
    options: Options,
    correction: Correction,
    *,
    width: int | None,
) -> list[Table]:
    """Return a row per model and a column per metric, best first by the first of all.

    There are several tables if one is wider than `width`; the last one has the notes.
    """
    order = [row.model for row in standings if row.metric == metrics[0]]
    of = {(row.model, row.metric): row for row in standings}

    def table(some: Sequence[str]) -> Table:
        lines = [
            {"model": model, **{one: standing_text(of[model, one]) for one in some}}
            for model in order
        ]
        best = {
            (line, at)
            for line, model in enumerate(order)
            for at, metric in enumerate(some, start=1)
            if of[model, metric].leads
        }
        return Table([Column("model"), *map(metric_column, some)], lines, best=best)

    *before, last = fitting(table, metrics, width)
    notes = wording.on_standings(standings, options, correction)
    return [*before, dataclasses.replace(last, legend=SIGNS, notes=notes)]

"""Evaluations of several models side by side: a table, and what it leaves out."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from recometer.cli._tables import GAP, rich_table
from recometer.cli._text import WIDTH, count, say
from recometer.metrics.names import parse
from recometer.rendering import Table, to_text
from recometer.results.evaluation import Evaluation
from recometer.results.summary import SummaryRow

if TYPE_CHECKING:
    from rich.table import Table as RichTable


@dataclasses.dataclass(frozen=True)
class Entry:
    """A model, its evaluation, and the seconds that each step took."""

    model: str
    result: Evaluation
    seconds: Mapping[str, float] = dataclasses.field(default_factory=dict)

    @functools.cached_property
    def rows(self) -> dict[str, SummaryRow]:
        """The summary, by the metric's name."""
        return {row.metric: row for row in self.result.summary()}


def leaderboard(entries: Sequence[Entry]) -> Table:
    """Return all models and metrics in one table, best first by the first metric."""
    metrics = list(entries[0].rows)
    return _table(_best_first(entries, metrics[0]), metrics)


def print_leaderboard(entries: Sequence[Entry]) -> None:
    """Print the models, best first by the first metric, with notes on who was skipped.

    On a terminal the best means are highlighted. Metrics that do not fit into its width (100
    columns of plain text elsewhere) get a table of their own.
    """
    from rich.console import Console

    metrics = list(entries[0].rows)
    entries = _best_first(entries, metrics[0])
    console = Console(highlight=False)
    width = console.width if console.is_terminal else WIDTH
    for shown in _fitting(entries, metrics, width):
        table = _table(entries, shown)
        if console.is_terminal:
            console.print(_styled(table, entries, shown))
            console.print()
        else:
            print(to_text(table), end="\n\n", flush=True)
    for note in _notes(entries):
        say("", note)


def _table(entries: Sequence[Entry], metrics: Sequence[str]) -> Table:
    headers = ["model", *metrics, "counted", "skipped", *entries[0].seconds]
    lines = []
    for entry in entries:
        rows = [entry.rows[metric] for metric in metrics]
        lines.append(
            [
                entry.model,
                *map(_cell, rows),
                _range([row.counted for row in rows]),
                _range([row.skipped for row in rows]),
                *(f"{seconds:.2f} s" for seconds in entry.seconds.values()),
            ]
        )
    return Table(headers, lines, numbers=headers[1:])


def _fitting(entries: Sequence[Entry], metrics: Sequence[str], width: int) -> list[list[str]]:
    """Return the metrics in groups, each as large as fits into a table of some width."""
    groups: list[list[str]] = [[]]
    for metric in metrics:
        wider = _table(entries, [*groups[-1], metric])
        columns = zip(wider.headers, *wider.rows, strict=True)
        if groups[-1] and sum(max(map(len, column)) + GAP for column in columns) - GAP > width:
            groups.append([])
        groups[-1].append(metric)
    return groups


def _styled(table: Table, entries: Sequence[Entry], metrics: Sequence[str]) -> RichTable:
    """Return the table with its best means highlighted."""
    best = set()
    for column, metric in enumerate(metrics, start=1):
        winner = _best_first(entries, metric)[0]
        if not math.isnan(winner.rows[metric].mean):
            best.add((entries.index(winner), column))
    return rich_table(table, best=best)


def _notes(entries: Sequence[Entry]) -> list[str]:
    protocol = entries[0].result.protocol
    notes = [
        f"Mean over the users counted, ± to the further end of its {protocol.confidence:.0%} "
        f"interval. {protocol.sentence('interval')}"
    ]
    skipped: dict[tuple[str, int], list[tuple[str, str]]] = {}
    for entry in entries:
        for metric, row in entry.rows.items():
            for reason, users in row.reasons.items():
                skipped.setdefault((reason, users), []).append((entry.model, metric))
    models, metrics = [entry.model for entry in entries], list(entries[0].rows)
    total = count(entries[0].result.n_users, "user")
    for (reason, users), where in skipped.items():
        notes.append(f"Skipped {users:,} of {total}: {reason}{_scope(where, models, metrics)}.")
    return notes


def _scope(where: Sequence[tuple[str, str]], models: Sequence[str], metrics: Sequence[str]) -> str:
    """Say for which models and metrics something holds; nothing if for all."""
    if len(where) == len(models) * len(metrics):
        return ""
    by_models: dict[tuple[str, ...], list[str]] = {}
    for model in dict.fromkeys(model for model, _ in where):
        own = tuple(metric for other, metric in where if other == model)
        by_models.setdefault(own, []).append(model)
    parts = []
    for own, of in by_models.items():
        names = [] if len(of) == len(models) else [", ".join(of)]
        names += [] if len(own) == len(metrics) else [", ".join(own)]
        parts.append(": ".join(names))
    return f" ({'; '.join(parts)})"


def _best_first(entries: Sequence[Entry], metric: str) -> list[Entry]:
    """Sort by a metric's mean; undefined ones come last."""
    sign = -1 if parse(metric)[0].definition.higher_is_better else 1

    def place(entry: Entry) -> tuple[bool, float]:
        mean = entry.rows[metric].mean
        return math.isnan(mean), sign * mean

    return sorted(entries, key=place)


def _cell(row: SummaryRow) -> str:
    if math.isnan(row.mean):
        return "undefined"
    if math.isnan(row.low):
        return f"{row.mean:.4f}"
    # An end that is cut off at a bound of the metric is the nearer one.
    far = f"{max(row.high - row.mean, row.mean - row.low):.4f}"
    return f"{row.mean:.4f} ±{far.removeprefix('0')}"


def _range(counts: Sequence[int]) -> str:
    low, high = min(counts), max(counts)
    return f"{low:,}" if low == high else f"{low:,}-{high:,}"

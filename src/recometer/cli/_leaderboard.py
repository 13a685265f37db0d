"""Evaluations of several models side by side: a table, and what it leaves out."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence

from recometer.cli._text import WIDTH, count, say
from recometer.evaluation import Evaluation, SummaryRow
from recometer.metrics.registry import METRICS
from recometer.rendering import Table, to_text

__all__ = ["Entry", "print_leaderboard"]

GAP = 2  # between two columns


@dataclasses.dataclass(frozen=True)
class Entry:
    """A model, its evaluation, and how long both took."""

    model: str
    result: Evaluation
    fit_seconds: float
    evaluate_seconds: float


def print_leaderboard(entries: Sequence[Entry]) -> None:
    """Print the models, best first by the first metric, with notes on who was skipped.

    On a terminal the best means are highlighted. Metrics that do not fit into its width (100
    columns of plain text elsewhere) get a table of their own.
    """
    from rich.console import Console

    summaries = {entry.model: entry.result.summary() for entry in entries}
    entries = sorted(entries, key=lambda entry: _place(summaries[entry.model][0]))
    metrics = [row.metric for row in summaries[entries[0].model]]
    console = Console(highlight=False)
    width = console.width if console.is_terminal else WIDTH
    for shown in _fitting(entries, summaries, metrics, width):
        table = _table(entries, summaries, metrics, shown)
        if console.is_terminal:
            best = {metric: _best(entries, summaries, metrics.index(metric)) for metric in shown}
            console.print(_styled(table, entries, best))
            console.print()
        else:
            print(to_text(table), end="\n\n", flush=True)
    for note in _notes(entries, summaries):
        say("", note)


def _table(
    entries: Sequence[Entry],
    summaries: Mapping[str, Sequence[SummaryRow]],
    metrics: Sequence[str],
    shown: Sequence[str],
) -> Table:
    headers = ["model", *shown, "counted", "skipped", "fit", "evaluate"]
    rows = []
    for entry in entries:
        summary = [summaries[entry.model][metrics.index(metric)] for metric in shown]
        rows.append(
            [
                entry.model,
                *map(_cell, summary),
                _range([row.counted for row in summary]),
                _range([row.skipped for row in summary]),
                f"{entry.fit_seconds:.2f} s",
                f"{entry.evaluate_seconds:.2f} s",
            ]
        )
    return Table(headers, rows, numbers=headers[1:])


def _fitting(
    entries: Sequence[Entry],
    summaries: Mapping[str, Sequence[SummaryRow]],
    metrics: Sequence[str],
    width: int,
) -> list[list[str]]:
    """Return the metrics in groups, each as large as fits into a table of some width."""
    groups: list[list[str]] = [[]]
    for metric in metrics:
        wider = _table(entries, summaries, metrics, [*groups[-1], metric])
        columns = zip(wider.headers, *wider.rows, strict=True)
        if groups[-1] and sum(max(map(len, column)) + GAP for column in columns) - GAP > width:
            groups.append([])
        groups[-1].append(metric)
    return groups


def _styled(table: Table, entries: Sequence[Entry], best: Mapping[str, str | None]) -> object:
    from rich import box
    from rich.table import Table as RichTable
    from rich.text import Text

    styled = RichTable(
        box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, GAP - 1, 0, 0)
    )
    for header in table.headers:
        right = header in table.numbers
        styled.add_column(header, justify="right" if right else "left", no_wrap=True)
    for entry, row in zip(entries, table.rows, strict=True):
        styled.add_row(
            *(
                Text(cell, style="bold green" if best.get(header) == entry.model else "")
                for header, cell in zip(table.headers, row, strict=True)
            )
        )
    return styled


def _notes(entries: Sequence[Entry], summaries: Mapping[str, Sequence[SummaryRow]]) -> list[str]:
    protocol = entries[0].result.protocol
    name = {"t": "Student's t", "bootstrap": "bootstrap"}[protocol.interval]
    notes = [
        f"Mean over the users counted, ± half of its {protocol.confidence:.0%} interval ({name})."
    ]
    cells: dict[str, dict[tuple[str, str], int]] = {}
    for model, summary in summaries.items():
        for row in summary:
            for reason, users in row.reasons.items():
                cells.setdefault(reason, {})[model, row.metric] = users
    total = count(entries[0].result.n_users, "user")
    for reason, found in cells.items():
        for users in dict.fromkeys(found.values()):
            where = [cell for cell, number in found.items() if number == users]
            scope = _scope(where, list(summaries), [row.metric for row in summary])
            notes.append(f"Skipped {users:,} of {total}: {reason}{scope}.")
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


def _place(row: SummaryRow) -> tuple[bool, float]:
    """Sort key: the better mean first, undefined ones last."""
    return math.isnan(row.mean), -row.mean if _higher_is_better(row) else row.mean


def _best(
    entries: Sequence[Entry], summaries: Mapping[str, Sequence[SummaryRow]], column: int
) -> str | None:
    best = min(entries, key=lambda entry: _place(summaries[entry.model][column])).model
    return None if math.isnan(summaries[best][column].mean) else best


def _higher_is_better(row: SummaryRow) -> bool:
    return METRICS[row.metric.partition("@")[0]].higher_is_better


def _cell(row: SummaryRow) -> str:
    if math.isnan(row.mean):
        return "undefined"
    if math.isnan(row.low):
        return f"{row.mean:.4f}"
    half = f"{(row.high - row.low) / 2:.4f}"
    return f"{row.mean:.4f} ±{half.removeprefix('0')}"


def _range(counts: Sequence[int]) -> str:
    low, high = min(counts), max(counts)
    return f"{low:,}" if low == high else f"{low:,}-{high:,}"

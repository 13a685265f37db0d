"""Evaluations of several models as JSON, CSV, Markdown, or tables for people."""

from __future__ import annotations

import csv
import enum
import io
import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from recometer.cli._leaderboard import Entry, leaderboard, print_leaderboard
from recometer.cli._tables import print_table
from recometer.cli._text import say
from recometer.metrics.conventions import describe
from recometer.protocol import Protocol
from recometer.rendering import Table
from recometer.results.evaluation import Evaluation
from recometer.results.summary import COUNTS
from recometer.version import __version__

if TYPE_CHECKING:
    import polars as pl

Results = Mapping[str, Evaluation]
"""By the name of the model."""


SUMMARY_COLUMNS = ["model", "metric", "mean", "low", "high", "counted", "skipped"]


class Format(str, enum.Enum):
    """How results are written."""

    table = "table"
    json = "json"
    csv = "csv"
    markdown = "markdown"


def print_results(results: Results, form: Format, per_user: bool) -> None:
    """Write results to standard output.

    Parameters
    ----------
    results
        Evaluations of the same test data with the same metrics.
    form
    per_user
        Whether the values of every user are written: in JSON and tables beside the means,
        in CSV instead of them.
    """
    if form is Format.json:
        print(_json(results, per_user))
    elif form is Format.csv:
        print(_per_user(results).write_csv() if per_user else summary_csv(results), end="")
    elif form is Format.markdown:
        if per_user:
            print(markdown(_user_table(results)), end="\n\n")
        entries = _entries(results)
        print(markdown(entries[0].result.table() if len(entries) == 1 else leaderboard(entries)))
    else:
        if per_user:
            print_table(_user_table(results))
            print()
        _print_means(results)


def is_summary(path: Path) -> bool:
    """Tell whether a file is what `summary_csv` returns."""
    head = (",".join(SUMMARY_COLUMNS) + "\n").encode()
    try:
        with path.open("rb") as file:
            return file.read(len(head)) == head
    except OSError:
        return False


def summary_csv(results: Results) -> str:
    """Return a row per model and metric; what is undefined is empty."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(SUMMARY_COLUMNS)
    for model, result in results.items():
        for row in result.summary():
            numbers = ["" if math.isnan(x) else repr(x) for x in (row.mean, row.low, row.high)]
            writer.writerow([model, row.metric, *numbers, row.counted, row.skipped])
    return text.getvalue()


def _json(results: Results, per_user: bool) -> str:
    first = next(iter(results.values()))
    content: dict[str, Any] = {
        "recometer": __version__,
        "test": first.inputs["test"]["description"],
        "train": first.inputs["train"]["description"] if "train" in first.inputs else None,
        "seed": first.seed,
        "models": {model: _model(result, per_user) for model, result in results.items()},
    }
    # With values per user, an entry a line would be most of the output.
    indent = None if per_user else 2
    return json.dumps(content, indent=indent, allow_nan=False)


def _model(result: Evaluation, per_user: bool) -> dict[str, Any]:
    content: dict[str, Any] = {
        "source": result.inputs["source"]["description"],
        "users": result.n_users,
        "protocol": result.protocol.to_dict(),
        "counts": dict(result.counts),
        "metrics": {
            row.metric: {
                "mean": _or_null(row.mean),
                "low": _or_null(row.low),
                "high": _or_null(row.high),
                "counted": row.counted,
                "skipped": row.skipped,
                "reasons": dict(row.reasons),
            }
            for row in result.summary()
        },
    }
    if per_user:
        frame = result.per_user().fill_nan(None)
        users = frame.drop_in_place("user")
        content["per_user"] = {
            "user": [user if isinstance(user, int | str) else str(user) for user in users],
            **frame.to_dict(as_series=False),
        }
    return content


def _per_user(results: Results) -> pl.DataFrame:
    """Return a row per model and user."""
    import polars as pl

    return pl.concat(
        result.per_user().fill_nan(None).select(pl.lit(model).alias("model"), pl.all())
        for model, result in results.items()
    )


def _user_table(results: Results) -> Table:
    frame = _per_user(results)
    headers = frame.columns
    rows = [
        [model, str(user), *("undefined" if value is None else f"{value:.4f}" for value in values)]
        for model, user, *values in frame.iter_rows()
    ]
    return Table(headers, rows, numbers=headers[2:])


def _print_means(results: Results) -> None:
    """Print one model's metrics below each other, several models' side by side."""
    entries = _entries(results)
    if len(entries) == 1:
        print_table(entries[0].result.table(), wrapped=("why",))
        return
    print_leaderboard(entries)
    for note in [*_counts(results), *_protocols(results)]:
        say("", note)


def _entries(results: Results) -> list[Entry]:
    return [Entry(model, result) for model, result in results.items()]


def _counts(results: Results) -> list[str]:
    """Say what the rules settled, for which models."""
    settled: dict[str, dict[str, list[str]]] = {}
    for model, result in results.items():
        for name, number in result.counts.items():
            if number:
                settled.setdefault(name, {}).setdefault(f"{number:,}", []).append(model)
    return [
        f"{COUNTS.get(name, name)}: {_by_model(found, results)}" for name, found in settled.items()
    ]


def _protocols(results: Results) -> list[str]:
    """Say which rules are not the default, for which models."""
    found: dict[str, list[str]] = {}
    for model, result in results.items():
        found.setdefault(describe(result.protocol), []).append(model)
    default = Protocol().describe()
    return [] if list(found) == [default] else [f"protocol: {_by_model(found, results)}"]


def _by_model(found: Mapping[str, Sequence[str]], results: Results) -> str:
    """Say what was found with the models that it was found for, unless those are all."""
    return "; ".join(
        text if len(models) == len(results) else f"{text} ({', '.join(models)})"
        for text, models in found.items()
    )


def markdown(table: Table) -> str:
    """Return a table in Markdown, without its notes."""

    def line(cells: list[str]) -> str:
        return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"

    rule = ["---:" if header in table.numbers else "---" for header in table.headers]
    return "\n".join([line(list(table.headers)), line(rule), *(line(list(r)) for r in table.rows)])


def _or_null(value: float) -> float | None:
    return value if math.isfinite(value) else None

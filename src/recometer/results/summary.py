"""The summary of a result: a row per metric, and the tables that ``print`` shows.

Tables of models or of user groups have a column per metric.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from recometer.protocol import Protocol
from recometer.rendering import Column, Table
from recometer.rendering.formats import GAP, number
from recometer.stats.ends import METHODS

# Descriptions of counts, with the effect in parentheses. Other counts are shown by name.
COUNTS = {
    "users_unknown": "test users that the source does not know",
    "items_unknown": "test items that the source does not know (ranked last)",
    "relevant_unranked": "relevant test rows with such items",
    "relevant_not_candidates": "relevant test rows whose items are not candidates (misses)",
    "rows_not_candidates": "rows of pairs that are not candidates (not ranked)",
    "list_not_candidates": "list entries that are not candidates (later entries move up)",
    "candidates_unknown": "candidates that the source does not know (ignored)",
    "exclude_unknown": "items to exclude that the source does not know (ignored)",
    "candidates_short": "users with fewer candidates to draw from than requested",
    "users_without_candidates": "test users without a candidate",
    "list_users_ignored": "users with a list who are not in the test data (ignored)",
    "list_duplicates": "repeated list entries (each item counted once, at its first place)",
    "list_repeats": "repeated list entries (see the rule duplicates)",
    "list_train_items": "list entries that are training items (later entries move up)",
    "list_items_uncatalogued": "list entries whose items are not in the catalogue",
    "cut_in_ties": "users whose list is cut among equal scores (the lower ids stay)",
    "train_test_overlap": "test rows that are also in the training data (left out)",
    "rows_without_truth": "rows of the source without a true rating or relevance (left out)",
    "users_below_cutoff": "users with fewer rows than a cut-off (the missing places are misses)",
    "users_below_relevant": "users whose list ends before place R (rprecision counts misses there)",
    "negative_values": "test values below 0 (judged; by default not relevant, with a gain of 0)",
    "train_zeros": "training values of 0 (their items count as training items)",
    "test_duplicates": "test rows that repeat a user-item pair (resolved by the rules)",
    "train_duplicates": "training rows that repeat a user-item pair (resolved by the rules)",
}


@dataclasses.dataclass(frozen=True)
class SummaryRow:
    """The mean of a metric over all users.

    Attributes
    ----------
    metric
        The name of the metric, for instance ``"ndcg@10"``.
    mean
        The mean over the users with a defined value; NaN if there are none.
    low, high
        The ends of the mean's interval. NaN if there is none; `note` then gives the reason.
    counted, skipped
        The numbers of users who do and do not count in the mean.
    reasons
        The reasons why the metric is undefined, with the number of users for each reason. These
        users are skipped, or count with the value that the rule ``undefined`` sets.
    method
        How the interval was computed: a key of `recometer.stats.ends.METHODS`, or ``"none"``.
    note
        A remark about the interval, or an empty string.
    chance
        The expected mean for a random order of the same candidates; NaN if unknown.
    """

    metric: str
    mean: float
    low: float
    high: float
    counted: int
    skipped: int
    reasons: Mapping[str, int]
    method: str = ""
    note: str = ""
    chance: float = math.nan


CHANCE = "chance: the exact mean over all orders of the same candidates"


def columns(protocol: Protocol, *, chance: bool = False) -> list[Column]:
    """Return the columns of a table of `SummaryRow`, with or without a chance column."""
    number = protocol.undefined
    settled = "" if number == "nan" else f" (counted as {number:g})"

    def why(reasons: Mapping[str, int]) -> str:
        return "; ".join(f"{users:,}{settled}: {reason}" for reason, users in reasons.items())

    return [
        Column("metric"),
        MEAN,
        Column("chance", show=four_digits, number=True, hidden=not chance),
        interval_column(protocol.confidence),
        COUNTED,
        Column("skipped", show="{:,}".format, number=True),
        Column("method", hidden=True),
        Column("why", ("reasons",), why, wraps=True),
    ]


MEAN = Column("mean", show=number, number=True)
COUNTED = Column("counted", show="{:,}".format, number=True)


def interval_column(confidence: float) -> Column:
    """Return the column for an interval."""

    def show(low: float, high: float) -> str:
        return "" if math.isnan(low) else f"{number(low)} to {number(high)}"

    return Column(f"{confidence:.0%} interval", ("low", "high"), show, number=True)


def table(rows: Sequence[SummaryRow], protocol: Protocol, below: Iterable[str]) -> Table:
    """Return the table of a result: a row per metric, with notes below."""
    chance = any(not math.isnan(row.chance) for row in rows)
    notes = [*on_intervals(rows, protocol.confidence), *below]
    if chance:
        notes.insert(0, CHANCE)
    return Table(columns(protocol, chance=chance), rows, notes)


def four_digits(value: float) -> str:
    """Return a number as tables show it, or an empty string for NaN."""
    return "" if math.isnan(value) else number(value)


def on_intervals(rows: Iterable[Any], confidence: float, *, remarks: bool = True) -> list[str]:
    """Explain how the intervals in summary rows or group rows were computed.

    Without `remarks`, only missing intervals are explained.
    """
    methods: dict[str, list[str]] = {}
    notes: dict[str, list[str]] = {}
    for row in rows:
        if row.method in METHODS:
            methods.setdefault(METHODS[row.method], []).append(row.metric)
        if row.note and (remarks or row.method == "none"):
            notes.setdefault(row.note, []).append(row.metric)
    texts = [
        text if len(methods) == 1 else f"{text} ({', '.join(dict.fromkeys(metrics))})"
        for text, metrics in methods.items()
    ]
    lines = [f"{confidence:.0%} interval: {'; '.join(texts)}"] if texts else []
    return [*lines, *(f"{', '.join(dict.fromkeys(of))}: {note}" for note, of in notes.items())]


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


def legend(confidence: float, more: str = "") -> str:
    """Explain `cell`, without a full stop; `more` follows the explanation of the mean."""
    return (
        f"Mean over the counted users{more}; ± is the longer arm of the {confidence:.0%} interval"
    )


def span(counts: Sequence[int]) -> str:
    """Return ``"12"``, or ``"12-15"`` if counts differ."""
    low, high = min(counts), max(counts)
    return f"{low:,}" if low == high else f"{low:,}-{high:,}"


def fitting(
    make: Callable[[Sequence[str]], Table], metrics: Sequence[str], width: int | None
) -> list[Table]:
    """Return one table of all metrics, or several tables if one would exceed the width.

    `make` returns a table without notes for some of the metrics; the notes go below the last table.
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

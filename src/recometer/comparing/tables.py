"""The tables of a comparison."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from recometer.comparing import wording
from recometer.comparing.compared import Compared
from recometer.comparing.rows import (
    SIGNS,
    PairRow,
    Standing,
    difference_columns,
    standing_text,
    user_columns,
)
from recometer.rendering import Column, Printed, Shown, Table
from recometer.results.side_by_side import fitting, metric_column

MOST_PAIRS = 6  # with more of them, gains and losses of users are left to `full`
MOST_NAMED = 2  # models in the line of a metric that is not shown in full


class ComparisonTables(Compared, Printed):
    """The tables of a comparison."""

    @property
    def decisive(self) -> tuple[str, ...]:
        """The metrics that ``print`` shows in full: the primary ones, or else the first."""
        return self.primary if self.chosen else self.metrics[:1]

    def full(self) -> Shown:
        """Return all pairs by all metrics, to be printed or written in any format."""
        return FullComparison(self)

    def table(self) -> Table:
        """Return the differences by all metrics, and the notes on the comparison."""
        found = self._differences(self.metrics)
        return dataclasses.replace(found, notes=self.said(self.metrics))

    def tables(self, width: int | None = None) -> list[Table]:
        """Return the leaderboard, what decides in full, and a line for each other metric.

        How users differ is left to `full` if there are more than `MOST_PAIRS` pairs.
        """
        return self._tables(self.decisive, width)

    def _tables(self, metrics: Sequence[str], width: int | None) -> list[Table]:
        """Return the tables, with these metrics in full."""
        ranked = {one.metric for one in self.standings}
        names = [name for name in self.metrics if name in ranked]
        boards = leaderboard(self.standings, names, width=width) if names else []
        if boards:
            whole = {row.metric for row in self.rows if row.for_all_users}
            of_users = [one.n for one in self.standings if one.metric not in whole]
            said = wording.on_standings(of_users, self.options, self.correction)
            boards[-1] = dataclasses.replace(boards[-1], legend=SIGNS, notes=said)
        per_user = [row for row in self._rows(metrics) if not row.for_all_users]
        others = [name for name in self.metrics if name not in metrics]
        if others and len(per_user) > MOST_PAIRS:
            per_user = []
        users = [Table(user_columns(self.options.confidence), per_user)] if per_user else []
        differences, notes = self._differences(metrics), self.said(metrics)
        if not others:
            return [*boards, *users, dataclasses.replace(differences, notes=notes)]
        notes.append("comparison.full() has all pairs by all metrics, and how they were compared.")
        return [*boards, *users, differences, self._others(others, notes)]

    def said(self, metrics: Sequence[str]) -> list[str]:
        """Return the notes on a comparison of which some metrics are shown in full.

        How p-values and intervals were found is said where all of them are shown.
        """
        rows, every = self._rows(metrics), len(metrics) == len(self.metrics)
        tested = [row for row in self.rows if row.test.method != "none"]
        undefined = wording.on_undefined(self.rows)
        return [
            *wording.on_correction(self.rows, self.primary, self.chosen, self.correction),
            *(wording.on_methods(tested, self.options) if every else []),
            *wording.on_smallest_p(rows, sum(row.primary for row in tested), self.options),
            *wording.on_power(rows, self.options),
            *wording.on_runs(rows),
            *wording.on_seeds(self.models),
            *([undefined] if undefined else []),
            *self.notes,
            *wording.on_rows(self.rows),
        ]

    def _rows(self, metrics: Sequence[str]) -> list[PairRow]:
        chosen = set(metrics)
        return [row for row in self.rows if row.metric in chosen]

    def _differences(self, metrics: Sequence[str]) -> Table:
        rows = self._rows(metrics)
        columns = difference_columns(
            self.options.confidence,
            margin=self.options.margin is not None,
            adjusted=all(row.primary for row in rows),
        )
        head = [] if self.known_users is None else self.known_users.sentences(metrics)
        return Table(columns, rows, head=head)

    def _others(self, metrics: Sequence[str], notes: Sequence[str]) -> Table:
        """Return a line for each metric that is not shown in full."""
        lines = [{"metric": name, "found": self._line(name)} for name in metrics]
        columns = [Column("other metric", ("metric",)), Column("found", wraps=True)]
        return Table(columns, lines, notes)

    def _line(self, metric: str) -> str:
        rows = [row for row in self.rows if row.metric == metric]
        verdicts: dict[str, list[str]] = {}
        for row in rows:
            verdicts.setdefault(row.verdict or "not tested", []).append(row.model)
        if self.baseline is not None:
            found = [f"{said}: {_models_named(names)}" for said, names in verdicts.items()]
            return "; ".join(found)
        standings = [one for one in self.standings if one.metric == metric]
        best = [one.model for one in standings if one.leads]
        differ = sum(len(verdicts.get(said, ())) for said in ("better", "worse"))
        pairs = f"{differ:,} of {len(rows):,} pairs differ"
        if not best:
            return pairs
        return f"best: {_models_named(best)}; {pairs}"


class FullComparison(Printed):
    """A comparison, of which all pairs by all metrics are shown."""

    def __init__(self, comparison: ComparisonTables) -> None:
        self.comparison = comparison

    def table(self) -> Table:
        """Return the differences, and the notes on the comparison."""
        return self.comparison.table()

    def tables(self, width: int | None = None) -> list[Table]:
        """Return the leaderboard, how users differ, and the differences."""
        return self.comparison._tables(self.comparison.metrics, width)

    def data(self) -> Table:
        """Return a row per metric and pair, with all values."""
        return self.comparison.data()

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values (for JSON)."""
        return self.comparison.to_dict()


def _models_named(names: Sequence[str]) -> str:
    """Return some names, or how many there are."""
    return ", ".join(names) if len(names) <= MOST_NAMED else f"{len(names):,} models"


def leaderboard(
    standings: Sequence[Standing], metrics: Sequence[str], *, width: int | None
) -> list[Table]:
    """Return a row per model and a column per metric, best first by the first of all.

    There are several tables if one is wider than `width`.
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

    return fitting(table, metrics, width)

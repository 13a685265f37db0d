"""Comparison: the result of `compare`, and how it is shown."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from recometer.comparing import wording
from recometer.comparing.compared import Compared
from recometer.comparing.corrections import Correction
from recometer.comparing.gates import Gate, GateReport, Undecided, check_gates
from recometer.comparing.known_users import KnownUsers
from recometer.comparing.models import Model
from recometer.comparing.pairs import Options
from recometer.comparing.rows import (
    SIGNS,
    PairRow,
    Standing,
    difference_columns,
    standing_text,
    user_columns,
)
from recometer.errors import visible
from recometer.removed import without
from recometer.rendering import Column, Printed, Shown, Table
from recometer.results.flat import FlatName, Tracked
from recometer.results.reported import Reported
from recometer.results.side_by_side import fitting, metric_column
from recometer.version import __version__

if TYPE_CHECKING:
    import polars


MOST_PAIRS = 6  # of which it is shown how users differ, beside other metrics
MOST_NAMED = 2  # models in the line of a metric that is not shown in full


class ComparisonTables(Printed):
    """The tables of a comparison, which has these attributes."""

    baseline: str | None
    metrics: tuple[str, ...]
    primary: tuple[str, ...]
    rows: tuple[PairRow, ...]
    standings: tuple[Standing, ...]
    correction: Correction
    options: Options
    notes: tuple[str, ...]
    chosen: bool
    known_users: KnownUsers | None

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
            *wording.on_seeds(self._models()),
            *([undefined] if undefined else []),
            *self.notes,
            *wording.on_rows(self.rows),
        ]

    def _models(self) -> Sequence[Model]:
        """Return the models, for what is said of their seeds."""
        raise NotImplementedError

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


@dataclasses.dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Comparison(Compared, Tracked, Reported, ComparisonTables):
    """The result of `compare`: models side by side, and pairs of them.

    ``print(comparison)`` shows the leaderboard; by the primary metrics, or else the first, the
    differences with intervals and p-values, and how many users gain and lose; and a line for each
    other metric. `to_markdown`, `to_latex` and `to_html` show the same. `full` has all pairs by all
    metrics for all of these. `to_json` and `to_csv` always have everything, with all digits.

    Attributes
    ----------
    models : tuple of Model
        The models that were compared.
    baseline : str or None
    metrics, primary : tuple of str
    rows : tuple of PairRow
        One for each metric and pair.
    standings : tuple of Standing
        The leaderboard: per metric every model, best first, with the ranks that it can have.
    correction
    options
        How pairs were compared: `test`, `interval`, `confidence`, ...
    users : Users
        All users, in the order of `per_user`.
    notes : tuple of str
        The inputs and rules that were allowed to differ.
    chosen : bool
        Whether the primary metrics were chosen; if not, they are all metrics.
    known_users : KnownUsers or None
        Users who count although some models do not know them, and the means without them. None if
        all models know the same users, and nearly all.
    """

    @without("mode")
    def gate(
        self, gates: str | Gate | Sequence[str | Gate], undecided: Undecided | None = None
    ) -> GateReport:
        """Check bounds for the difference of every model, except chance, to the baseline.

        A gate is passed if the lower end of the interval reaches the bound, failed if the upper
        end is below it, and undecided otherwise; it then says how many users would decide it.

        Parameters
        ----------
        gates
            ``"ndcg@10 >= -5%"`` bounds the relative difference, and ``"coverage@10 >= -0.02"``
            the absolute difference. Use ``<=`` if lower values are better; the two ends of the
            interval then change roles.
        undecided
            How an undecided gate counts in ``passed`` of the report and in JUnit: ``"pass"`` or
            ``"fail"``. Its verdict stays ``"undecided"``.

        Raises
        ------
        InputError
            If a gate cannot be read, or there is no baseline.
        UnknownNameError
            If a metric or value of `undecided` does not exist.
        """
        return check_gates(self, gates, undecided)

    def data(self) -> Table:
        """Return a row per metric and pair, with all values."""
        columns = difference_columns(self.confidence, margin=self.options.margin is not None)
        more = ("mean_other", "n_only_model", "n_only_other", "primary", "smallest_difference")
        return Table(
            [*columns, *user_columns(self.confidence), *(Column(name) for name in more)], self.rows
        )

    def frame(self) -> polars.DataFrame:
        """Return a Polars frame: a row per metric and pair."""
        import polars as pl

        return pl.DataFrame(self.data().records(), infer_schema_length=None)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values (for JSON)."""
        return {
            "recometer": __version__,
            "models": {model.name: len(model.runs) for model in self.models},
            "baseline": self.baseline,
            "metrics": list(self.metrics),
            "primary": list(self.primary),
            "test": self.options.test,
            "correction": self.correction,
            "confidence": self.confidence,
            "standings": [dataclasses.asdict(row) for row in self.standings],
            "comparisons": [
                {**dataclasses.asdict(row), "p_value": row.p_value, "verdict": row.verdict}
                for row in self.rows
            ],
            "known_users": None
            if self.known_users is None
            else dataclasses.asdict(self.known_users),
            "notes": self.said(self.metrics),
        }

    def _flat_values(self) -> Iterator[tuple[FlatName, float]]:
        for one in self.standings:
            of = (one.metric, one.model)
            yield from _named(*of, None, mean=one.mean, low=one.low, high=one.high, counted=one.n)
        for row in self.rows:
            yield from _named(
                row.metric,
                row.model,
                row.other,
                mean=row.difference,
                low=row.low,
                high=row.high,
                counted=row.n,
                p_value=row.p_value,
                adjusted_p=row.adjusted_p,
            )

    def __repr__(self) -> str:
        names = ", ".join(model.name for model in self.models)
        return visible(f"<Comparison of {names}: {', '.join(self.metrics)}>")

    def _models(self) -> tuple[Model, ...]:
        return self.models


def _named(
    metric: str, model: str, other: str | None, **values: float
) -> Iterator[tuple[FlatName, float]]:
    for statistic, value in values.items():
        yield FlatName(metric, statistic, model, other), value  # type: ignore[arg-type]


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

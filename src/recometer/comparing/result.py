"""Comparison: the result of `compare`, and how it is shown."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from recometer.comparing import wording
from recometer.comparing.compared import Compared
from recometer.comparing.corrections import Correction
from recometer.comparing.gates import Gate, GateReport, Undecided, check_gates
from recometer.comparing.pairs import Options
from recometer.comparing.rows import (
    SIGNS,
    Standing,
    difference_columns,
    standing_text,
    user_columns,
)
from recometer.removed import without
from recometer.rendering import Column, Printed, Table
from recometer.results.flat import FlatName, Tracked
from recometer.results.reported import Reported
from recometer.results.side_by_side import fitting, metric_column
from recometer.version import __version__

if TYPE_CHECKING:
    import polars


@dataclasses.dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Comparison(Compared, Tracked, Reported, Printed):
    """The result of `compare`: models side by side, and pairs of them.

    ``print(comparison)`` shows the leaderboard, the differences with intervals and p-values, and
    how many users gain and lose. `to_markdown`, `to_latex`, `to_html`, `to_json` and `to_csv` show
    the same, the last two with all digits.

    Attributes
    ----------
    models : tuple of Model
        The models that were compared.
    baseline : str or None
    metrics, primary : tuple of str
    rows : tuple of PairRow
        One for each metric and pair.
    correction
    options
        How pairs were compared: `test`, `interval`, `confidence`, ...
    users : Users
        All users, in the order of `per_user`.
    notes : tuple of str
        The inputs and rules that were allowed to differ.
    chosen : bool
        Whether the primary metrics were chosen; if not, they are all metrics.
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

    def table(self) -> Table:
        """Return the differences, and the notes on the comparison."""
        columns = difference_columns(self.confidence, margin=self.options.margin is not None)
        return Table(columns, self.rows, self._said())

    def tables(self, width: int | None = None) -> list[Table]:
        """Return the leaderboard, how users differ, and the differences."""
        boards = leaderboard(
            self.standings, self.metrics, self.options, self.correction, width=width
        )
        per_user = [row for row in self.rows if not row.for_all_users]
        of_users = [Table(user_columns(self.confidence), per_user)] if per_user else []
        return [*boards, *of_users, self.table()]

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
            "notes": self._said(),
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
        return f"<Comparison of {names}: {', '.join(self.metrics)}>"

    def _said(self) -> list[str]:
        tested = [row for row in self.rows if row.test.method != "none"]
        return [
            *wording.on_correction(self.rows, self.primary, self.chosen, self.correction),
            *wording.on_methods(tested, self.options),
            *wording.on_smallest_p(self.rows, self.options),
            *wording.on_power(self.rows, self.options),
            *wording.on_runs(self.rows),
            *wording.on_seeds(self.models),
            *([undefined] if (undefined := wording.on_undefined(self.rows)) else []),
            *self.notes,
            *wording.on_rows(self.rows),
        ]


def _named(
    metric: str, model: str, other: str | None, **values: float
) -> Iterator[tuple[FlatName, float]]:
    for statistic, value in values.items():
        yield FlatName(metric, statistic, model, other), value  # type: ignore[arg-type]


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

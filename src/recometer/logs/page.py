"""The content of the report of policies: whether the log can answer, values, and differences."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from recometer.comparing.gates import GateReport
from recometer.comparing.rows import PairRow, Standing
from recometer.logs.policies import LOGGED
from recometer.rendering import Table
from recometer.report.model import Facts, Headline, ReportModel, Standings
from recometer.report.sections import means
from recometer.stats import adjust, rank_intervals
from recometer.version import __version__


def content(
    comparison: Any, title: str | None = None, gates: GateReport | None = None
) -> ReportModel:
    """Return the content of the report of a `PolicyComparison`, whose module imports this one."""
    values = comparison.values
    rows = values.compare().rows  # all pairs
    standings = [_standings(values, name, rows) for name in values.estimators]
    first, second, *_ = (place.model for place in standings[0].places)
    other = comparison.baseline if comparison.baseline not in (None, first) else second
    chart = means(standings, values.confidence)
    chart = dataclasses.replace(
        chart,
        section="leaderboard",
        title="Values and intervals",
        text=f"Point: reward per {values.unit}; line: its {values.confidence:.0%} interval. Filled "
        f"points are the best policy and those without a shown difference from it. {LOGGED} is the "
        "policy that wrote the log.",
        choices=(dataclasses.replace(chart.choices[0], label="Estimator"),),
    )
    table, weights = values.table(), values.weights_table()
    shown = [_facts("Differences", comparison.table())]
    if gates is not None:
        shown.append(_facts("Gates", gates.table()))
    return ReportModel(
        title=title or "How good would other policies have been?",
        subtitle=f"{' '.join(weights.head)}. {' '.join(table.notes)}",
        models=tuple(place.model for place in standings[0].places),
        metrics=tuple(values.estimators),
        headline=_headline(values, standings[0], other, gates),
        standings=tuple(standings),
        charts=(chart,),
        audit="",
        inspector=None,
        protocol=(),
        notes=(),
        missing=(),
        call=f"rm.Impressions(...).evaluate({{...}}, estimators={' '.join(values.estimators)!r})"
        f".compare(baseline={comparison.baseline!r}).report('report.html')",
        version=__version__,
        before=(_facts("Can the log answer?", weights),),
        after=tuple(shown),
    )


def _facts(title: str, table: Table) -> Facts:
    rows = tuple(map(tuple, table.cells()))
    lines = [f"{line.rstrip('.')}." for line in (*table.head, *table.below)]
    return Facts(title, tuple(table.headers), rows, " ".join(lines))


def _standings(values: Any, estimator: str, pairs: tuple[PairRow, ...]) -> Standings:
    """Rank all policies on an estimator, best first, in the same way as models."""
    names = values.policies
    rows = [row for row in pairs if row.metric == estimator]
    p_values = np.ones((len(names), len(names)))
    for row, p in zip(rows, adjust([row.p_value for row in rows]), strict=True):
        at = names.index(row.model), names.index(row.other)
        p_values[at] = p_values[at[::-1]] = 1.0 if np.isnan(p) else p
    found = np.array([values[name, estimator].value for name in names])
    alpha, higher = 1 - values.confidence, values.maximise
    ranking = rank_intervals(found, p_values, alpha=alpha, higher_is_better=higher)
    order = np.argsort(-found if higher else found, kind="stable").tolist()
    places = tuple(
        Standing(
            metric=estimator,
            model=names[at],
            mean=float(found[at]),
            interval=values[names[at], estimator].interval,
            n=values.n_users,
            leads=at == order[0],
            best=bool(ranking.best[at]),
            rank_low=int(ranking.low[at]),
            rank_high=int(ranking.high[at]),
        )
        for at in order
    )
    return Standings(estimator, higher, places, np.nan)


def _headline(values: Any, standings: Standings, other: str, gates: GateReport | None) -> Headline:
    winner, estimator = standings.places[0].model, standings.metric
    row = values.row(estimator, winner, other)
    tied = [place.model for place in standings.places[1:] if place.best]
    shown = other not in tied
    relative = "" if np.isnan(row.relative) else f" ({abs(row.relative):.1%})"
    low, high = sorted((abs(row.low), abs(row.high)))
    size = f"{abs(row.difference):.4f}{relative} per {values.unit} by {estimator}"
    verdict = f"{winner} leads {other} by {size}, but no difference between them is shown."
    if np.isnan(row.difference):
        verdict = f"{winner} and {other} cannot be compared by {estimator}."
    elif row.difference == 0:
        verdict = f"{winner} and {other} are level by {estimator}."
    elif shown:
        verdict = f"{winner} beats {other} by {size} [{low:.4f}, {high:.4f}]."
    said = values.remarks()
    if winner in values.weights:
        of = values.weights[winner]
        said.append(
            f"{winner} has {of.effective_users:,.0f} effective users of {values.n_users:,}; its "
            f"largest weight is {of.largest[0]:.3g}."
        )
    if gates is not None:
        said.append(gates.summary())
    difference = None if np.isnan(row.difference) else row
    return Headline(verdict, winner, not tied, tuple(said), difference)

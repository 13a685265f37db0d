"""The content of the report on policies: their weights, values and differences."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from recometer.comparing.gates import GateReport
from recometer.comparing.rows import PairRow, rank_models
from recometer.rendering import Table
from recometer.report.headline import size_of, verdict_of
from recometer.report.model import Facts, Headline, ReportModel, Standings
from recometer.report.sections import means
from recometer.version import __version__


def content(values: Any, gates: GateReport | None = None) -> ReportModel:
    """Return the content of the report on `values`, a `PolicyValues`."""
    rows = values.compare().rows  # all pairs of policies
    standings = [_standings(values, name, rows) for name in values.estimators]
    first, second, *_ = (place.model for place in standings[0].places)
    other = values.baseline if values.baseline not in (None, first) else second
    chart = dataclasses.replace(
        means(standings, values.confidence),
        section="leaderboard",
        title="Values and intervals",
        text=f"Point: reward per {values.sums.unit}; line: its {values.confidence:.0%} interval. "
        "Filled points are the best policy and those without a shown difference from it. "
        "logged is the logging policy.",
        labels=("Estimator",),
    )
    weights, table, differences = values.tables()
    tables = [_facts("Differences", differences)]
    if gates is not None:
        tables.append(_facts("Gates", gates.table()))
    return ReportModel(
        title="How good would other policies have been?",
        subtitle=f"{' '.join(weights.head)}. {' '.join(table.notes)}",
        models=tuple(place.model for place in standings[0].places),
        metrics=tuple(values.estimators),
        headline=_headline(values, standings[0], other, gates),
        standings=tuple(standings),
        charts=(chart,),
        call=f"rm.Impressions(...).evaluate({{...}}, estimators={' '.join(values.estimators)!r})"
        f".compare(baseline={values.baseline!r}).report('report.html')",
        version=__version__,
        facts_before=(_facts("Can the log answer?", weights),),
        facts_after=tuple(tables),
    )


def _facts(title: str, table: Table) -> Facts:
    rows = tuple(map(tuple, table.cells()))
    lines = [f"{line.rstrip('.')}." for line in (*table.head, *table.below)]
    return Facts(title, tuple(table.headers), rows, " ".join(lines))


def _standings(values: Any, estimator: str, pairs: tuple[PairRow, ...]) -> Standings:
    """Rank all policies by an estimator, best first."""
    names, higher = values.policies, values.maximise
    estimates = [values[name, estimator] for name in names]
    places = rank_models(
        estimator,
        names,
        [estimate.value for estimate in estimates],
        [row.p_value for row in pairs if row.metric == estimator],
        [estimate.interval for estimate in estimates],
        [len(values.sums.user_ids)] * len(names),
        higher_is_better=higher,
        confidence=values.confidence,
    )
    return Standings(estimator, higher, tuple(places), np.nan)


def _headline(values: Any, standings: Standings, other: str, gates: GateReport | None) -> Headline:
    winner, estimator = standings.places[0].model, standings.metric
    row = values.row(estimator, winner, other)
    tied = [place.model for place in standings.places[1:] if place.best]
    size = size_of(row, f"per {values.sums.unit} by {estimator}")
    sentences = [*values.remarks(), *([] if gates is None else [gates.summary()])]
    difference = None if np.isnan(row.difference) else row
    verdict = verdict_of(row, size, significant=other not in tied)
    return Headline(verdict, winner, not tied, tuple(sentences), difference)

"""The content of a report as numbers and strings, which does not depend on its format."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from recometer.auditing import Audit
from recometer.comparing.rows import PairRow, Standing

Key = tuple[str, ...]  # the selected option for each choice that a chart offers
Row = Mapping[str, Any]

SAME = "no difference from the best shown"  # a verdict in charts; the best model also gets it


class Field(NamedTuple):
    """A column of a chart's table of numbers: its name in rows, its heading, and its format."""

    name: str
    title: str
    kind: Literal["text", "number", "signed", "count", "share", "flag"] = "text"


class Choice(NamedTuple):
    """A choice between options, such as ``"Metric"``, that a chart offers to the reader."""

    label: str
    options: tuple[str, ...]  # the first option is selected initially


@dataclasses.dataclass(frozen=True)
class Chart:
    """A chart: its numbers, its title and the text around it."""

    name: str  # the name of the chart in files and calls, such as "leaderboard"
    kind: str  # the key in `charts.SPECS` of the function that draws the chart
    title: str
    text: str  # sentences that say how to read the chart
    fields: tuple[Field, ...]  # the columns of its table of numbers
    rows: Mapping[Key, tuple[Row, ...]]  # the rows for each combination of options
    labels: tuple[str, ...] = ()  # the labels of the choices that the chart offers
    lines: int = 0  # the number of rows of marks, which determines the height of the chart
    models: tuple[str, ...] = ()  # the names of the models, in the order of their colours
    section: str = ""  # the section of the page that shows the chart

    @property
    def choices(self) -> tuple[Choice, ...]:
        """The choices that the chart offers, in the order of `labels`."""
        options = (tuple(dict.fromkeys(values)) for values in zip(*self.rows, strict=True))
        return tuple(map(Choice, self.labels, options))

    @property
    def first(self) -> tuple[Row, ...]:
        """The rows that are shown initially."""
        return next(iter(self.rows.values()))


@dataclasses.dataclass(frozen=True)
class Headline:
    """The headline at the top of the report."""

    verdict: str  # the main sentence
    winner: str  # the best model on the primary metric
    certain: bool | None  # whether the winner beats all others significantly; None for one model
    sentences: tuple[str, ...]  # further sentences, about metrics, users and limitations
    difference: PairRow | None = None  # the difference that the page draws below the verdict
    harmed: str = ""  # the id of the user who loses most, as text; empty if nobody loses


@dataclasses.dataclass(frozen=True)
class Standings:
    """The standings of all models on one metric, best first."""

    metric: str
    higher_is_better: bool
    places: tuple[Standing, ...]
    chance: float  # the expected mean of a random order; NaN if it is unknown

    def place(self, model: str) -> Standing:
        """Return the standing of a model."""
        return next(standing for standing in self.places if standing.model == model)


class Entry(NamedTuple):
    """An item in a user's ranking; `item` is a key of `Inspector.items`."""

    item: Any
    rank: int | None  # None if the item was not ranked
    score: float | None
    relevant: bool
    tied: bool


@dataclasses.dataclass(frozen=True)
class UserLists:
    """The list that a model recommends to a user, and the relevant items that the list misses."""

    entries: tuple[Entry, ...]
    missed: tuple[Entry, ...]


@dataclasses.dataclass(frozen=True)
class InspectedUser:
    """A user whom the inspector shows."""

    id: str
    title: str  # the title of the item if items are recommended for items; empty otherwise
    kinds: tuple[str, ...]  # the reasons for showing the user, such as "most improved"
    change: float  # by how much the first model of the main pair is better for the user, or NaN
    values: Mapping[str, Mapping[str, float]]  # values keyed by model and metric; NaN if undefined
    history: tuple[int, ...]  # some of the user's training items, latest first if there are times
    n_history: int  # the number of all the user's training items
    n_relevant: int  # the number of all the user's relevant items
    lists: Mapping[str, UserLists]  # the user's lists, keyed by model


@dataclasses.dataclass(frozen=True)
class Inspector:
    """The models' lists for individual users, side by side."""

    noun: str  # "user", or "item" if items are recommended for items
    models: tuple[str, ...]  # the models whose lists are known
    metrics: tuple[str, ...]  # the metrics whose values are shown
    depth: int  # the number of places to show in each list
    users: tuple[InspectedUser, ...]
    items: Mapping[int, tuple[str, str]]  # each item's id and title (or ""), keyed by its number
    n_all: int  # the number of all users, including users who are not shown
    note: str = ""  # a remark for the reader


@dataclasses.dataclass(frozen=True)
class Facts:
    """A table: a title, headings, and rows of strings."""

    title: str
    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    text: str = ""


@dataclasses.dataclass(frozen=True)
class ReportModel:
    """The whole content of a report."""

    title: str
    subtitle: str  # the test data and the metrics, in one line
    models: tuple[str, ...]  # the names of the models, best first on the primary metric
    metrics: tuple[str, ...]  # the names of the metrics, with the primary metric first
    headline: Headline
    standings: tuple[Standings, ...]
    charts: tuple[Chart, ...]
    call: str  # Python code that recreates the report
    version: str  # the version of recometer
    audit: Audit | str = ""  # the audit, or why there is none; empty if nothing can be audited
    inspector: Inspector | None = None
    protocol: tuple[Facts, ...] = ()
    notes: tuple[str, ...] = ()  # notes on the comparison
    missing: tuple[str, ...] = ()  # sentences on the parts that the report lacks
    facts_before: tuple[Facts, ...] = ()  # tables before the leaderboard
    facts_after: tuple[Facts, ...] = ()  # tables after the leaderboard

    def charts_in(self, section: str) -> tuple[Chart, ...]:
        """Return the charts in a section of the page."""
        return tuple(chart for chart in self.charts if chart.section == section)

    def places(self, model: str) -> list[Standing]:
        """Return the standing of a model on each metric."""
        return [standings.place(model) for standings in self.standings]

    def chart(self, name: str) -> Chart | None:
        """Return the chart with this name, or None if there is none."""
        return next((chart for chart in self.charts if chart.name == name), None)

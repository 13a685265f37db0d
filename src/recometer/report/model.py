"""ReportModel: the content of a report as numbers and strings, independent of formats."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from recometer.auditing import Audit
from recometer.comparing.rows import PairRow, Standing

Key = tuple[str, ...]  # the selected option of each choice of a chart
Row = Mapping[str, Any]

SAME = "no difference from the best shown"  # a verdict in charts, also for the best model itself


class Field(NamedTuple):
    """A column of the numbers behind a chart: its name in rows, its heading, and its format."""

    name: str
    title: str
    kind: Literal["text", "number", "signed", "count", "share", "flag"] = "text"


class Choice(NamedTuple):
    """A choice between options that the reader makes above a chart, such as ``"Metric"``."""

    label: str
    options: tuple[str, ...]  # the first is selected initially


@dataclasses.dataclass(frozen=True)
class Chart:
    """A chart: its numbers, its title and the text around it."""

    name: str  # the name of the chart in files and calls, such as "leaderboard"
    kind: str  # how the chart is drawn: a key of `charts.SPECS`
    title: str
    text: str  # how to read the chart
    fields: tuple[Field, ...]  # the columns of its table of numbers
    rows: Mapping[Key, tuple[Row, ...]]  # the rows for each combination of options
    labels: tuple[str, ...] = ()  # the labels of the reader's choices; empty if there are none
    lines: int = 0  # the number of rows of marks, which determines the height
    models: tuple[str, ...] = ()  # the names of the models, in the order of their colours
    section: str = ""  # the section of the page that shows it

    @property
    def choices(self) -> tuple[Choice, ...]:
        """The choices of the reader, in the order of `labels`."""
        options = (tuple(dict.fromkeys(of)) for of in zip(*self.rows, strict=True))
        return tuple(map(Choice, self.labels, options))

    @property
    def first(self) -> tuple[Row, ...]:
        """The rows that are shown initially."""
        return next(iter(self.rows.values()))


@dataclasses.dataclass(frozen=True)
class Headline:
    """The headline at the beginning of the report."""

    verdict: str  # the main sentence
    winner: str  # the best model on the primary metric
    certain: bool | None  # whether it beats all others significantly; None if there are no others
    sentences: tuple[str, ...]  # further sentences, about other metrics, users and limitations
    difference: PairRow | None = None  # the main pair, whose difference and interval are drawn
    harmed: str = ""  # the id of the user who loses most, as text; empty if nobody loses


@dataclasses.dataclass(frozen=True)
class Standings:
    """The standings of all models on one metric, best first."""

    metric: str
    higher_is_better: bool
    places: tuple[Standing, ...]
    chance: float  # the mean of a random order; NaN if it is unknown

    def place(self, model: str) -> Standing:
        """Return the standing of a model."""
        return next(one for one in self.places if one.model == model)


class Entry(NamedTuple):
    """An item in the ranking of a user; `item` is a key of `Inspector.items`."""

    item: Any
    rank: int | None  # None if the item was not ranked
    score: float | None
    relevant: bool
    tied: bool


@dataclasses.dataclass(frozen=True)
class UserLists:
    """The list that a model recommends to a user, and the relevant items that it misses."""

    entries: tuple[Entry, ...]
    missed: tuple[Entry, ...]


@dataclasses.dataclass(frozen=True)
class InspectedUser:
    """A user who is shown in the inspector."""

    id: str
    title: str  # the title if items are recommended for items; empty otherwise
    kinds: tuple[str, ...]  # reasons: "most improved", "most harmed", "random", "chosen"
    change: float  # the difference between the main pair on the primary metric; NaN if undefined
    values: Mapping[str, Mapping[str, float]]  # keyed by model and metric; NaN if undefined
    history: tuple[int, ...]  # the user's training items, the latest first if there are times
    n_history: int  # the number of all training items of the user
    n_relevant: int  # the number of all relevant items of the user
    lists: Mapping[str, UserLists]  # the user's lists, keyed by model


@dataclasses.dataclass(frozen=True)
class Inspector:
    """Lists of single users, with the models side by side."""

    who: str  # "user", or "item" if items are recommended for items
    models: tuple[str, ...]  # the models with lists
    metrics: tuple[str, ...]  # the metrics whose values are shown
    depth: int  # the number of places shown of each list
    users: tuple[InspectedUser, ...]
    items: Mapping[int, tuple[str, str]]  # the id and the title (or "") of each item, by number
    n_all: int  # the number of all users, including those who are not in the report
    note: str = ""  # a remark that readers should know


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
    models: tuple[str, ...]  # best first on the primary metric, also in charts and tables
    metrics: tuple[str, ...]  # the primary metric first
    headline: Headline
    standings: tuple[Standings, ...]
    charts: tuple[Chart, ...]
    call: str  # Python code that repeats the report
    version: str  # the version of recometer
    audit: Audit | str = ""  # the audit, or why there is none; empty if there is nothing to audit
    inspector: Inspector | None = None
    protocol: tuple[Facts, ...] = ()
    notes: tuple[str, ...] = ()  # notes on the comparison
    missing: tuple[str, ...] = ()  # the parts that are not shown, and how to get them
    before: tuple[Facts, ...] = ()  # tables before the leaderboard
    after: tuple[Facts, ...] = ()  # tables after the leaderboard

    def charts_in(self, section: str) -> tuple[Chart, ...]:
        """Return the charts of a section of the page."""
        return tuple(chart for chart in self.charts if chart.section == section)

    def places(self, model: str) -> list[Standing]:
        """Return the standing of a model on each metric."""
        return [one.place(model) for one in self.standings]

    def chart(self, name: str) -> Chart | None:
        """Return the chart of this name, or None if there is none."""
        return next((chart for chart in self.charts if chart.name == name), None)

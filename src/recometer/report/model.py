"""ReportModel: the content of a report as numbers and texts, independent of formats."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, Literal

from recometer.auditing import Audit
from recometer.comparing.rows import PairRow, Standing

Key = tuple[str, ...]  # one option per choice
Row = Mapping[str, Any]

SAME = "no difference from the best shown"  # a verdict in charts, also for the best model itself


@dataclasses.dataclass(frozen=True)
class Field:
    """A column of the numbers behind a chart.

    Attributes
    ----------
    name
        The name of the value in a row.
    title
        The heading.
    kind
        The format of its values.
    """

    name: str
    title: str
    kind: Literal["text", "number", "signed", "count", "share", "flag"] = "text"


@dataclasses.dataclass(frozen=True)
class Choice:
    """A choice between options that the reader makes above a chart.

    Attributes
    ----------
    label
        The label, such as ``"Metric"``.
    options
        The options; the first is selected initially.
    """

    label: str
    options: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class Chart:
    """A chart: its numbers, and the texts around it.

    Attributes
    ----------
    name
        Its name in files and calls, such as ``"leaderboard"``.
    kind
        How it is drawn: a key of `charts.SPECS`.
    title, text
        The texts above it; `text` explains how to read it.
    fields
        Columns of its table of numbers.
    choices
        The choices of the reader; empty if the chart never changes.
    rows : mapping of Key to tuple of rows
        The rows of each combination of options.
    section
        The section of the page with the chart.
    lines
        The number of rows of marks, which determines the height.
    models
        The models in the order of their colours.
    """

    name: str
    kind: str
    title: str
    text: str
    fields: tuple[Field, ...]
    rows: Mapping[Key, tuple[Row, ...]]
    choices: tuple[Choice, ...] = ()
    lines: int = 0
    models: tuple[str, ...] = ()
    section: str = ""

    @property
    def first(self) -> tuple[Row, ...]:
        """The rows that are shown initially."""
        return self.rows[tuple(choice.options[0] for choice in self.choices)]


@dataclasses.dataclass(frozen=True)
class Headline:
    """The beginning of the report.

    Attributes
    ----------
    verdict
        The main sentence.
    winner
        The best model on the primary metric.
    certain
        Whether it is significantly better than all others. None if there are no others.
    sentences
        Further sentences on other metrics, users and limitations.
    difference
        The row of the main pair, whose difference and interval are drawn. None if there is no pair.
    harmed
        The id of the user who loses most, as text. Empty if nobody loses.
    """

    verdict: str
    winner: str
    certain: bool | None
    sentences: tuple[str, ...]
    difference: PairRow | None = None
    harmed: str = ""


@dataclasses.dataclass(frozen=True)
class Standings:
    """All models on one metric, best first.

    Attributes
    ----------
    chance
        The mean of a random order; NaN if it is unknown.
    """

    metric: str
    higher_is_better: bool
    places: tuple[Standing, ...]
    chance: float

    def place(self, model: str) -> Standing:
        """Return the standing of a model."""
        return next(one for one in self.places if one.model == model)


@dataclasses.dataclass(frozen=True)
class Entry:
    """An item in a user's list.

    Attributes
    ----------
    item
        A key of `Inspector.items`.
    """

    item: int
    rank: int
    score: float | None
    relevant: bool
    tied: bool


@dataclasses.dataclass(frozen=True)
class Missed:
    """A relevant item that is not in the first places; its rank is None if it was not ranked."""

    item: int
    rank: int | None


@dataclasses.dataclass(frozen=True)
class UserLists:
    """The list that a model recommends to a user, and the relevant items that it misses."""

    entries: tuple[Entry, ...]
    missed: tuple[Missed, ...]


@dataclasses.dataclass(frozen=True)
class InspectedUser:
    """A user in the inspector.

    Attributes
    ----------
    id
        The id as text.
    title
        The title if items are recommended for items; empty otherwise.
    kinds
        Why the user is shown: ``"most improved"``, ``"most harmed"``, ``"random"``, ``"chosen"``.
    change
        The difference between the main pair on the primary metric; NaN if it is undefined.
    values
        The user's values by model and metric; NaN if undefined.
    history
        Items of the user in train, the latest first if there are times.
    n_history, n_relevant
        The numbers of all items in train, and of all relevant items.
    lists
        The user's lists by model, for the models with lists.
    """

    id: str
    title: str
    kinds: tuple[str, ...]
    change: float
    values: Mapping[str, Mapping[str, float]]
    history: tuple[int, ...]
    n_history: int
    n_relevant: int
    lists: Mapping[str, UserLists]


@dataclasses.dataclass(frozen=True)
class Inspector:
    """Lists of single users, with the models side by side.

    Attributes
    ----------
    who
        ``"user"``, or ``"item"`` if items are recommended for items.
    models
        The models with lists.
    metrics
        The metrics whose values are shown.
    depth
        Number of places shown of each list.
    users
    items
        The id and the title (which may be empty) of each item, as texts, by number.
    n_all
        The number of all users, including those who are not in the report.
    note
        A remark that readers should know, or an empty text.
    """

    who: str
    models: tuple[str, ...]
    metrics: tuple[str, ...]
    depth: int
    users: tuple[InspectedUser, ...]
    items: Mapping[int, tuple[str, str]]
    n_all: int
    note: str = ""


@dataclasses.dataclass(frozen=True)
class Facts:
    """A table: a title, and rows of texts under headings."""

    title: str
    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    text: str = ""


@dataclasses.dataclass(frozen=True)
class ReportModel:
    """Everything that a report says.

    Attributes
    ----------
    title
    subtitle
        The test data and the metrics, in a line.
    models
        The names of the models, best first on the primary metric. All charts and tables have this
        order.
    metrics
        The metrics, the primary metric first.
    headline, standings, charts, audit, inspector, protocol
        The sections; without an audit, `audit` is a sentence that says why there is none, or empty
        if there is nothing to audit.
    notes
        Notes on the comparison.
    missing
        The parts that are not shown, and how to get them.
    before, after
        Tables before and after the leaderboard.
    call
        Python code that repeats the report.
    version
        Version of recometer.
    """

    title: str
    subtitle: str
    models: tuple[str, ...]
    metrics: tuple[str, ...]
    headline: Headline
    standings: tuple[Standings, ...]
    charts: tuple[Chart, ...]
    call: str
    version: str
    audit: Audit | str = ""
    inspector: Inspector | None = None
    protocol: tuple[Facts, ...] = ()
    notes: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    before: tuple[Facts, ...] = ()
    after: tuple[Facts, ...] = ()

    def charts_in(self, section: str) -> tuple[Chart, ...]:
        """Return the charts of a section of the page."""
        return tuple(chart for chart in self.charts if chart.section == section)

    def chart(self, name: str) -> Chart | None:
        """Return the chart of this name, or None."""
        return next((chart for chart in self.charts if chart.name == name), None)

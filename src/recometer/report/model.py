"""ReportModel: everything that a report says, as numbers and texts; no format is known here."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, Literal

from recometer.auditing import Audit
from recometer.comparing.rows import PairRow, Standing

Key = tuple[str, ...]  # what is chosen, an option of each choice
Row = Mapping[str, Any]

SAME = "no difference from the best shown"  # what a chart says of a model, and of the best one


@dataclasses.dataclass(frozen=True)
class Field:
    """A column of the numbers behind a chart.

    Attributes
    ----------
    name
        Name of the value in a row.
    title
        What people read.
    kind
        How it is written.
    """

    name: str
    title: str
    kind: Literal["text", "number", "signed", "count", "share", "flag"] = "text"


@dataclasses.dataclass(frozen=True)
class Choice:
    """What the reader may choose above a chart.

    Attributes
    ----------
    label
        For instance ``"Metric"``.
    options
        The first is chosen at the beginning.
    """

    label: str
    options: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class Chart:
    """What a chart shows: its numbers, and the words around it.

    Attributes
    ----------
    name
        What it is called in files, ``"leaderboard"``; how it is drawn follows from `kind`.
    kind
        A key of `charts.SPECS`.
    title, text
        Above it; `text` says how it is read.
    fields
        Columns of the table behind it.
    choices
        None for a chart that is always the same.
    rows : mapping of Key to tuple of rows
        Per combination of choices.
    lines
        How many rows of marks it has; its height follows.
    models
        In the order of their colours.
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

    @property
    def first(self) -> tuple[Row, ...]:
        """The rows that are shown at the beginning."""
        return self.rows[tuple(choice.options[0] for choice in self.choices)]


@dataclasses.dataclass(frozen=True)
class Headline:
    """What the report says first.

    Attributes
    ----------
    verdict
        The main sentence.
    winner
        The best model by the primary metric.
    certain
        Whether it is significantly better than all others. None if there are no others.
    sentences
        Further ones: other metrics, users, what cannot be said.
    difference
        Difference of the main pair, with its interval, to be drawn; None without a pair.
    harmed
        The id of the user who loses most, as text; empty where there is none.
    """

    verdict: str
    winner: str
    certain: bool | None
    sentences: tuple[str, ...]
    difference: PairRow | None = None
    harmed: str = ""


@dataclasses.dataclass(frozen=True)
class Standings:
    """All models by one metric, best first.

    Attributes
    ----------
    chance
        What a random order would have; NaN: not known.
    """

    metric: str
    higher_is_better: bool
    places: tuple[Standing, ...]
    chance: float

    def place(self, model: str) -> Standing:
        """Return a model's place."""
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
    """A relevant item that is not among the first places; its rank is None if not ranked."""

    item: int
    rank: int | None


@dataclasses.dataclass(frozen=True)
class UserLists:
    """What one model recommends to one user, and what it misses."""

    entries: tuple[Entry, ...]
    missed: tuple[Missed, ...]


@dataclasses.dataclass(frozen=True)
class InspectedUser:
    """A user in the inspector.

    Attributes
    ----------
    id
        As text.
    title
        Title of a user that is an item itself; empty otherwise.
    kinds
        Why the user is here: ``"most improved"``, ``"most harmed"``, ``"random"``, ``"chosen"``.
    change
        In the primary metric, between the main pair; NaN where there is none.
    values
        Per model and metric; NaN where it is undefined.
    history
        Items of train, the last by time first where times are known.
    n_history, n_relevant
        How many there are in all.
    lists
        Per model; empty where its lists are not known.
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
    """Lists of single users, the models side by side.

    Attributes
    ----------
    who
        ``"user"``, or ``"item"`` where items are recommended for an item.
    models
        Those whose lists are known.
    metrics
        Whose values are shown.
    depth
        Number of places shown of each list.
    users
    items
        Per number: id and title (perhaps empty) as texts.
    n_all
        How many users there are, in the report or not.
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
    """A part of the protocol: a title, and rows of texts under headings."""

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
        What was compared on what, in a line.
    models
        Names, best first by the primary metric; in charts and tables always in this order.
    metrics
        The primary one first.
    headline, standings, charts, audit, inspector, protocol
        The sections; `audit` is a text if there is none, which says why.
    notes
        What is said of the comparison.
    missing
        What is not shown, and how to get it.
    call
        What repeats all of it, as Python.
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
    audit: Audit | str
    inspector: Inspector | None
    protocol: tuple[Facts, ...]
    notes: tuple[str, ...]
    missing: tuple[str, ...]
    call: str
    version: str

    def chart(self, name: str) -> Chart | None:
        """Return a chart, if there is one of this name."""
        return next((chart for chart in self.charts if chart.name == name), None)

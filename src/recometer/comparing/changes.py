"""Find the users, and groups of users, who gain or lose if one model replaces another."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from recometer import stats
from recometer.arrays import Float64
from recometer.comparing.kinds import UserPair
from recometer.comparing.models import Model, Users
from recometer.comparing.rows import interval_column, pair_name, signed
from recometer.rendering import Column, Printed, Table
from recometer.rendering.formats import number
from recometer.results.groups import quantiles, read_groups
from recometer.stats.checks import check_whole

PROFILES = ("activity", "popularity")


@dataclasses.dataclass(frozen=True)
class UserChange:
    """A user whose value differs between two models.

    Attributes
    ----------
    user
        The user's id, or the user's position if there are no ids.
    value, value_other
        The user's values with the model and with the other model.
    difference
        `value` minus `value_other`.
    """

    user: Any
    value: float
    value_other: float
    difference: float


@dataclasses.dataclass(frozen=True)
class Changes(Printed):
    """The users that a model harms and helps most, compared with another model.

    Attributes
    ----------
    metric, model, other
        The metric and the two models.
    harmed, helped : tuple of UserChange
        The users, with the largest change first.
    """

    metric: str
    model: str
    other: str
    harmed: tuple[UserChange, ...]
    helped: tuple[UserChange, ...]

    def table(self) -> Table:
        """Return a row per user."""
        rows = [
            {"change": change, **vars(one)}
            for change, users in (("harmed", self.harmed), ("helped", self.helped))
            for one in users
        ]
        columns = [
            Column("change"),
            Column("user", show=repr),
            Column(self.model, ("value",), number, number=True),
            Column(self.other, ("value_other",), number, number=True),
            Column("difference", show=signed, number=True),
        ]
        notes = [] if rows else ["No user's value changes."]
        return Table(
            columns, rows, notes, head=[f"{self.metric}: {pair_name(self.model, self.other)}"]
        )


@dataclasses.dataclass(frozen=True, kw_only=True)
class Segment(stats.Difference):
    """The difference between two models in a group of users, with the name of the `group`."""

    group: str


@dataclasses.dataclass(frozen=True)
class SegmentChanges(Printed):
    """The differences between two models in groups of users.

    Attributes
    ----------
    metric, model, other
        The metric and the two models.
    rows : tuple of Segment
        The groups, with the most harmed group first.
    confidence
        The confidence of each interval. The intervals are not adjusted for their number.
    """

    metric: str
    model: str
    other: str
    rows: tuple[Segment, ...]
    confidence: float

    def table(self) -> Table:
        """Return a row per group."""
        columns = [
            Column("group"),
            Column("users", ("n",), "{:,}".format, number=True),
            Column(self.model, ("mean",), number, number=True),
            Column(self.other, ("mean_other",), number, number=True),
            Column("difference", show=signed, number=True),
            interval_column(self.confidence),
        ]
        methods = ", ".join(dict.fromkeys(row.interval.method for row in self.rows))
        notes = [f"Intervals: {methods}; not adjusted for their number."]
        return Table(
            columns, self.rows, notes, [f"{self.metric}: {pair_name(self.model, self.other)}"]
        )


def changes(pair: UserPair, n: int) -> Changes:
    """Return the n users that a model harms most, and the n that it helps most."""
    check_whole("n", n, 1)
    users, columns = pair.of.users, pair.columns
    model, other = (each.name for each in pair.models)
    lowest, highest = stats.most_changed(pair.values, n)
    harmed, helped = (
        tuple(
            UserChange(
                users.id(at),
                float(columns[0].values[at]),
                float(columns[1].values[at]),
                float(pair.values[at]),
            )
            for at in positions.tolist()
        )
        for positions in (lowest, highest)
    )
    if not pair.of.definition.higher_is_better:
        harmed, helped = helped, harmed
    return Changes(pair.of.metric, model, other, harmed, helped)


def segments(pair: UserPair, groups: Any, n_quantiles: int = 4) -> SegmentChanges:
    """Return the differences between two models in groups of users; see `Comparison.by`."""
    of, users, options = pair.of, pair.of.users, pair.options
    model, other = pair.models
    if isinstance(groups, str) and groups in PROFILES:
        values = profile(groups, [other] if options.paired else [other, model], users)
        codes, names = quantiles(groups, values, n_quantiles)
    else:
        codes, names = read_groups(groups, users.ids, users.n, None, None)
    rows = []
    for code, name in enumerate(names):
        difference = of.among(codes == code).pair(model.name, other.name).difference()
        rows.append(Segment(**vars(difference), group=name))
    sign = 1 if of.definition.higher_is_better else -1
    rows.sort(key=lambda row: (np.isnan(row.difference), sign * row.difference))
    return SegmentChanges(of.metric, model.name, other.name, tuple(rows), options.confidence)


def profile(name: str, models: Sequence[Model], users: Users) -> Float64 | None:
    """Return each user's activity or popularity in the training data; None without such data."""
    merged: Float64 | None = None
    for model in models:
        columns = [getattr(run, name) for run in model.runs]
        if any(column is None for column in columns):
            continue
        each = users.spread(model, [column.astype(np.float64) for column in columns], np.nan)
        for column in each:
            merged = column if merged is None else np.where(np.isnan(merged), column, merged)
        if merged is not None and not np.isnan(merged).any():
            break
    return merged

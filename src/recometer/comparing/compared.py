"""The result of a comparison: its rows, its tables, and methods that answer questions about it."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from recometer import stats
from recometer.arrays import Float64
from recometer.comparing import wording
from recometer.comparing.kinds import Options, UserPair, resolve
from recometer.comparing.models import Model, Users
from recometer.comparing.rows import (
    POWER_WANTED,
    SIGNS,
    Correction,
    PairRow,
    Standing,
    difference_columns,
    interval_column,
    pair_name,
    signed,
    standing_text,
    user_columns,
)
from recometer.data import ids
from recometer.errors import InputError, UnknownNameError, did_you_mean, python_or_command
from recometer.rendering import Column, Printed, Shown, Table
from recometer.rendering.formats import number
from recometer.results.evaluation import EvaluationRecord, name_of
from recometer.results.groups import quantiles as quantile_groups
from recometer.results.groups import read_groups
from recometer.results.saved import PROFILE
from recometer.results.summary import fitting, metric_column
from recometer.stats import Power, SampleRatio
from recometer.stats.checks import check_whole

if TYPE_CHECKING:
    import polars


MOST_PAIRS = 6  # maximum number of pairs for which `tables` shows how many users gain and lose
MOST_NAMED = 2  # maximum number of models named in a metric's line


@dataclasses.dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Compared(Printed):
    """The models and pairs that were compared, their tables, and methods for querying them.

    The attributes are documented in `recometer.Comparison`, which adds gates and output formats.
    """

    models: tuple[Model, ...]
    baseline: str | None
    metrics: tuple[str, ...]
    primary: tuple[str, ...]
    rows: tuple[PairRow, ...]
    standings: tuple[Standing, ...]
    correction: Correction
    options: Options
    users: Users
    notes: tuple[str, ...] = ()
    chosen: bool = False
    known_users: tuple[str, ...] = ()
    sample_ratio: SampleRatio | None = None
    in_full: bool = False

    @property
    def confidence(self) -> float:
        """Return the confidence level of the intervals."""
        return self.options.confidence

    def standings_of(self, metric: str) -> tuple[Standing, ...]:
        """Return the `standings` for one metric, best first."""
        name = self.known(metric)
        return tuple(row for row in self.standings if row.metric == name)

    def row(self, metric: str, model: str, other: str | None = None) -> PairRow:
        """Return the comparison of a pair of models on a metric.

        Parameters
        ----------
        metric, model
            The names of the metric and of the first model.
        other
            The name of the other model. None means the baseline, or the only other model.

        Raises
        ------
        UnknownNameError
            If the metric or a model was not compared.
        InputError
            If the pair was not compared.
        """
        name = self.known(metric)
        other = self._other(model, other)
        for row in self.rows:
            if row.metric == name and (row.model, row.other) == (model, other):
                return row
        raise InputError(
            f"{model!r} was not compared with {other!r} in this order. Hint: these pairs were "
            "compared: "
            f"{', '.join(dict.fromkeys(pair_name(row.model, row.other) for row in self.rows))}."
        )

    def per_user(self, metric: str) -> polars.DataFrame:
        """Return a Polars frame with a ``user`` column and a column of values for each model.

        Models may have values for different users, whereas the means in `standings_of` only
        include users with a value from every model.
        """
        import polars as pl

        name = self.known(metric)
        self._check_per_user(name)
        users = np.arange(self.users.n) if self.users.ids is None else self.users.ids
        return pl.DataFrame(ids.id_columns(users)).with_columns(
            pl.Series(model.name, self.users.values(model, name))
            for model in self.models
            if model.has_metric(name)
        )

    def changes(self, metric: str, model: str, other: str | None = None, *, n: int = 5) -> Changes:
        """Return the n users who lose most, and the n who gain most, from a switch to `model`.

        Parameters
        ----------
        metric, model, other
            As in `row`.
        n
            Maximum number of users to return, both of those who gain and of those who lose.

        Raises
        ------
        InputError
            If the models have different users.
        """
        if not self.options.paired:
            raise InputError(
                "The groups have different users, so no user gains or loses. Hint: "
                "comparison.by(groups, metric, model) compares segments of users."
            )
        return changes(self._pair(self.known(metric), model, other), n)

    def by(
        self,
        groups: object,
        metric: str,
        model: str,
        other: str | None = None,
        *,
        quantiles: int = 4,
    ) -> SegmentChanges:
        """Return the difference between two models for each group, most harmed group first.

        Parameters
        ----------
        groups
            As in `Evaluation.by`: ``"activity"``, ``"popularity"``, or the group of each user.
        metric, model, other
            As in `row`.
        quantiles
            The number of groups for ``"activity"`` and ``"popularity"``.
        """
        pair = self._pair(self.known(metric), model, other)
        of, users = pair.of, pair.of.users
        first, second = pair.models
        if isinstance(groups, str) and groups in PROFILE:
            values = profile(groups, [second] if self.options.paired else [second, first], users)
            codes, names = quantile_groups(groups, values, quantiles)
        else:
            codes, names = read_groups(groups, users.ids, users.n, None, None)
        rows = []
        for code, name in enumerate(names):
            difference = of.among(codes == code).pair(first.name, second.name).difference()
            rows.append(Segment(**vars(difference), group=name))
        sign = 1 if of.definition.higher_is_better else -1
        rows.sort(key=lambda row: (np.isnan(row.difference), sign * row.difference))
        return SegmentChanges(of.metric, first.name, second.name, tuple(rows), self.confidence)

    def power(
        self,
        metric: str,
        difference: float | None = None,
        *,
        model: str | None = None,
        other: str | None = None,
        wanted: float = POWER_WANTED,
        alpha: float | None = None,
    ) -> Power:
        """Return how many users it takes to detect a difference, and the smallest detectable one.

        If you have evaluated only one model so far, multiply its values by √2 and pass them to
        `recometer.stats.power`: if two models have independent values, the spread of their
        differences is larger by this factor. In practice, the values of two models for the same
        users are correlated, so fewer users are needed.

        Parameters
        ----------
        metric
            A metric with a value for each user.
        difference
            The mean difference to detect. None uses the difference that the comparison found.
        model, other
            The pair of models, if several pairs were compared.
        wanted
            The power to achieve.
        alpha
            The two-sided significance level. None means 1 - confidence. To plan for m comparisons,
            pass (1 - confidence) / m.

        Returns
        -------
        recometer.stats.Power
            The plan, with `users_needed`, its range from `fewest_users` to `most_users` (because
            the spread of the differences is only estimated), `power` at the current number of
            users, and `smallest_difference`. ``print`` shows these numbers in a sentence.

        Raises
        ------
        InputError
            If the metric does not have a value for each user, or if several pairs were compared and
            no model is given.
        UnknownNameError
            If the metric or a model was not compared.
        """
        name = self.known(metric)
        if model is None:
            pairs = list(dict.fromkeys((row.model, row.other) for row in self.rows))
            if len(pairs) > 1:
                names = ", ".join(dict.fromkeys(first for first, _ in pairs))
                raise InputError(
                    f"{len(pairs)} pairs of models were compared. Hint: set model= to one "
                    f"of {names}."
                )
            model, other = pairs[0]
        pair = self._pair(name, model, other)
        planned = pair.power(difference, wanted, alpha)
        both = {m.name for m in pair.models}
        row = next(
            (row for row in self.rows if row.metric == name and {row.model, row.other} == both),
            None,
        )
        if row is None or row.test.test != "gaffke":
            return planned
        by_bound = (
            f"Since only {row.test.n_differ:,} users differ, Gaffke's bound decides here, and it "
            "has less power. The numbers are for the test that decides if more users differ."
        )
        return dataclasses.replace(planned, note=f"{planned.note} {by_bound}".lstrip())

    def known(self, metric: str) -> str:
        """Return the standard name of a compared metric, given any of its spellings."""
        return known_metric(metric, self.metrics, self.models[0].first)

    def model(self, name: str) -> Model:
        """Return the model with this name."""
        names = [model.name for model in self.models]
        if name not in names:
            raise UnknownNameError(f"There is no model {name!r}. {did_you_mean(str(name), names)}")
        return self.models[names.index(name)]

    def higher_is_better(self, metric: str) -> bool:
        """Return whether higher values of a metric are better."""
        return self.models[0].first.known_metric(metric).definition.higher_is_better

    def _pair(self, metric: str, model: str, other: str | None) -> UserPair:
        self._check_per_user(metric)
        models = self.model(model), self.model(self._other(model, other))
        for m in models:
            if not m.has_metric(metric):
                raise InputError(f"{metric} has no value for a random order, {m.name!r}.")
        on_metric = resolve(metric, models, self.users, self.options)
        return on_metric.pair(*(m.name for m in models))

    def _other(self, model: str, other: str | None) -> str:
        self.model(model)
        if other is not None:
            return self.model(other).name
        if self.baseline is not None and self.baseline != model:
            return self.baseline
        choices = [m.name for m in self.models if m.name != model]
        if len(choices) > 1:
            names = ", ".join(choices)
            raise InputError(
                f"The model to compare {model!r} with is unclear. Hint: set other= to one of "
                f"{names}."
            )
        return choices[0]

    def _check_per_user(self, metric: str) -> None:
        if metric not in self.models[0].first.values:
            raise InputError(f"{metric} has one value for all users, not one for each user.")

    @property
    def decisive(self) -> tuple[str, ...]:
        """The metrics that ``print`` shows in full.

        These are the primary metrics if any were chosen, and otherwise the first metric.
        """
        return self.primary if self.chosen else self.metrics[:1]

    def full(self) -> Shown:
        """Return a comparison whose tables, in every format, show all pairs on all metrics."""
        return dataclasses.replace(self, in_full=True)

    def table(self) -> Table:
        """Return the differences on all metrics, with the notes on the comparison."""
        differences = self._differences(self.metrics)
        return dataclasses.replace(differences, notes=self.said(self.metrics))

    def tables(self, width: int | None = None) -> list[Table]:
        """Return the leaderboard, all pairs on `decisive` metrics, and a line per remaining metric.

        With more than `MOST_PAIRS` pairs, only `full` shows how many users gain and lose.
        """
        metrics = self.metrics if self.in_full else self.decisive
        ranked = {row.metric for row in self.standings}
        names = [name for name in self.metrics if name in ranked]
        boards = leaderboard(self.standings, names, width=width) if names else []
        if boards:
            for_all_users = {row.metric for row in self.rows if row.for_all_users}
            of_users = [row.n for row in self.standings if row.metric not in for_all_users]
            on_board = wording.on_standings(of_users, self.options, self.correction)
            boards[-1] = dataclasses.replace(boards[-1], legend=SIGNS, notes=on_board)
        per_user = [row for row in self._rows(metrics) if not row.for_all_users]
        remaining = [name for name in self.metrics if name not in metrics]
        if remaining and len(per_user) > MOST_PAIRS:
            per_user = []
        columns = user_columns(self.options.confidence, paired=self.options.paired)
        users = [Table(columns, per_user)] if per_user else []
        differences, notes = self._differences(metrics), self.said(metrics)
        if not remaining:
            return [*boards, *users, dataclasses.replace(differences, notes=notes)]
        command = python_or_command("comparison.full() shows", "--all shows")
        notes.append(f"{command} all pairs for all metrics, and how they were compared.")
        lines = [{"metric": name, "found": self._line(name)} for name in remaining]
        columns = [Column("other metric", ("metric",)), Column("found", wraps=True)]
        return [*boards, *users, differences, Table(columns, lines, notes)]

    def said(self, metrics: Sequence[str]) -> list[str]:
        """Return the notes below tables that show these metrics in full.

        The notes name the methods behind p-values and intervals only if all metrics are shown.
        """
        rows, every = self._rows(metrics), len(metrics) == len(self.metrics)
        tested = [row for row in self.rows if row.test.method != "none"]
        undefined = wording.on_undefined(self.rows)
        return [
            *wording.on_correction(self.rows, self.primary, self.chosen, self.correction),
            *(wording.on_methods(tested, self.options) if every else []),
            *wording.on_power(rows),
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
        return Table(columns, rows, head=self.known_users)

    def _line(self, metric: str) -> str:
        """Return the outcome in one line, for a metric that is not shown in full."""
        rows = [row for row in self.rows if row.metric == metric]
        verdicts: dict[str, list[str]] = {}
        for row in rows:
            verdicts.setdefault(row.verdict or "not tested", []).append(row.model)
        if self.baseline is not None:
            parts = [f"{verdict}: {_models_named(names)}" for verdict, names in verdicts.items()]
            return "; ".join(parts)
        standings = [row for row in self.standings if row.metric == metric]
        best = [row.model for row in standings if row.leads]
        differ = sum(len(verdicts.get(verdict, ())) for verdict in ("better", "worse"))
        pairs = f"{differ:,} of {len(rows):,} pairs differ"
        if not best:
            return pairs
        return f"best: {_models_named(best)}; {pairs}"


def _models_named(names: Sequence[str]) -> str:
    """Return the names, or only their number if there are many."""
    return ", ".join(names) if len(names) <= MOST_NAMED else f"{len(names):,} models"


def leaderboard(
    standings: Sequence[Standing], metrics: Sequence[str], *, width: int | None
) -> list[Table]:
    """Return the leaderboard, with a row per model and a column per metric.

    The models are ordered by the first metric, best first. The leaderboard is split into several
    tables if a single one would be wider than `width`.
    """
    order = [row.model for row in standings if row.metric == metrics[0]]
    rows = {(row.model, row.metric): row for row in standings}

    def table(shown: Sequence[str]) -> Table:
        lines = [
            {"model": model, **{metric: standing_text(rows[model, metric]) for metric in shown}}
            for model in order
        ]
        best = {
            (line, column)
            for line, model in enumerate(order)
            for column, metric in enumerate(shown, start=1)
            if rows[model, metric].leads
        }
        return Table([Column("model"), *map(metric_column, shown)], lines, best=best)

    return fitting(table, metrics, width)


def known_metric(metric: str, metrics: Sequence[str], result: EvaluationRecord) -> str:
    """Return the standard name of one of `metrics`, given any of its spellings."""
    compared = {str(parsed): parsed for parsed in result.metrics if str(parsed) in metrics}
    try:
        return name_of(metric, compared, result.protocol)
    except UnknownNameError:
        hint = did_you_mean(str(metric), metrics)
        raise UnknownNameError(f"The metric {str(metric)!r} was not compared. {hint}") from None


@dataclasses.dataclass(frozen=True)
class UserChange:
    """A user whose value differs between two models."""

    user: Any  # the user's id, or the user's position if there are no ids
    value: float
    value_other: float  # the user's value with the other model
    difference: float  # `value` minus `value_other`


@dataclasses.dataclass(frozen=True)
class Changes(Printed):
    """The users that a model harms and helps most, compared with the model `other`.

    In both `harmed` and `helped`, the users with the largest changes come first.
    """

    metric: str
    model: str
    other: str
    harmed: tuple[UserChange, ...]
    helped: tuple[UserChange, ...]

    def table(self) -> Table:
        """Return a table with a row per user."""
        rows = [
            {"change": change, **vars(user)}
            for change, users in (("harmed", self.harmed), ("helped", self.helped))
            for user in users
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
    """The difference between two models for one `group` of users."""

    group: str


@dataclasses.dataclass(frozen=True)
class SegmentChanges(Printed):
    """The differences between two models for several groups of users, most harmed group first.

    `confidence` is the confidence level of each interval, not adjusted for the number of groups.
    """

    metric: str
    model: str
    other: str
    rows: tuple[Segment, ...]
    confidence: float

    def table(self) -> Table:
        """Return a table with a row per group."""
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
    model, other = (m.name for m in pair.models)
    lowest, highest = stats.most_changed(pair.values, n)
    harmed, helped = (
        tuple(
            UserChange(
                users.id(position),
                float(columns[0].values[position]),
                float(columns[1].values[position]),
                float(pair.values[position]),
            )
            for position in positions.tolist()
        )
        for positions in (lowest, highest)
    )
    if not pair.of.definition.higher_is_better:
        harmed, helped = helped, harmed
    return Changes(pair.of.metric, model, other, harmed, helped)


def profile(name: str, models: Sequence[Model], users: Users) -> Float64 | None:
    """Return users' activity, or the popularity of their items; None if no model knows it."""
    merged: Float64 | None = None
    for model in models:
        columns = [getattr(run, name) for run in model.runs]
        if any(column is None for column in columns):
            continue
        spread = users.spread(model, [column.astype(np.float64) for column in columns], np.nan)
        for column in spread:
            merged = column if merged is None else np.where(np.isnan(merged), column, merged)
        if merged is not None and not np.isnan(merged).any():
            break
    return merged

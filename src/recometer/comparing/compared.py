"""Models and pairs of them that were compared, and what can be asked of them."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from recometer import ragged, stats
from recometer.comparing.changes import Changes, SegmentChanges, changes, segments
from recometer.comparing.corrections import POWER_WANTED, Correction
from recometer.comparing.kinds import Options
from recometer.comparing.known_users import KnownUsers
from recometer.comparing.models import Model, Users
from recometer.comparing.rows import PairRow, Standing, pair_name
from recometer.data import sessions
from recometer.data.numbers import flag
from recometer.errors import InputError, UnknownNameError, did_you_mean
from recometer.metrics.names import names_in
from recometer.results.evaluation import EvaluationRecord
from recometer.results.naming import name_of, names_of
from recometer.stats import Power
from recometer.stats.comparing import Pairs

if TYPE_CHECKING:
    import polars


@dataclasses.dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Compared:
    """Models and pairs of them that were compared.

    `Comparison`, which is made of it, says what the attributes are.
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
    known_users: KnownUsers | None = None

    @property
    def confidence(self) -> float:
        """Return the coverage of intervals."""
        return self.options.confidence

    def standings_of(self, metric: str) -> tuple[Standing, ...]:
        """Return the leaderboard of one metric, best first; see `standings`."""
        name = self.known(metric)
        return tuple(one for one in self.standings if one.metric == name)

    def row(self, metric: str, model: str, other: str | None = None) -> PairRow:
        """Return the comparison of a pair by a metric.

        Parameters
        ----------
        metric, model
        other
            None compares with the baseline, or with the only other model.

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
            f"{model!r} was not compared with {other!r}, in this order. Hint: compared were "
            f"{', '.join(dict.fromkeys(pair_name(row.model, row.other) for row in self.rows))}."
        )

    def per_user(self, metric: str, *, means: bool = True) -> polars.DataFrame:
        """Return a Polars frame: the column ``user``, and a column per model with its values.

        Parameters
        ----------
        metric
        means
            Whether a last row, whose ``user`` is null, has the means over the users that all models
            have a value for. (Means of all of a column's values would be of different users.)
        """
        import polars as pl

        name = self.known(metric)
        self._check_per_user(name)
        models = [model for model in self.models if model.has(name)]
        columns = [self.users.values(model, name) for model in models]
        labels = [model.name for model in models]
        users = np.arange(self.users.n) if self.users.ids is None else self.users.ids
        frame = pl.DataFrame(sessions.id_columns(users)).with_columns(
            pl.Series(label, column) for label, column in zip(labels, columns, strict=True)
        )
        if not flag("means", means):
            return frame
        table = np.column_stack(columns)
        table = table[~np.isnan(table).any(axis=1)]
        values = (
            (ragged.column_sums(table) / len(table)).tolist()
            if len(table)
            else [np.nan] * len(labels)
        )
        last = {
            **{name: [None] for name in frame.columns[: -len(labels)]},
            **{label: [value] for label, value in zip(labels, values, strict=True)},
        }
        return pl.concat([frame, pl.DataFrame(last, schema=frame.schema)])

    def changes(self, metric: str, model: str, other: str | None = None, *, n: int = 5) -> Changes:
        """Return the n users who lose most and the n who gain most by a model instead of another.

        Parameters
        ----------
        metric, model, other
            As in `row`.
        n
            Maximum number of users who gain, and of those who lose.
        """
        name = self.known(metric)
        self._check_per_user(name)
        pair = self._pair(name, model, other)
        return changes(name, *pair, self.users, n, self.higher_is_better(name))

    def by(
        self,
        groups: object,
        metric: str,
        model: str,
        other: str | None = None,
        *,
        quantiles: int = 4,
    ) -> SegmentChanges:
        """Return how two models differ in each group of users, the most harmed first.

        Parameters
        ----------
        groups
            As in `Evaluation.by`: ``"activity"``, ``"popularity"``, or the group of each user.
        metric, model, other
            As in `row`.
        quantiles
            How many groups ``"activity"`` and ``"popularity"`` make.
        """
        name = self.known(metric)
        self._check_per_user(name)
        pair = self._pair(name, model, other)
        return segments(name, *pair, self.users, groups, self.options, quantiles)

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
        """Return what this test set can show; see `recometer.power`."""
        name = self.known(metric)
        self._check_per_user(name)
        if model is None:
            pairs = list(dict.fromkeys((row.model, row.other) for row in self.rows))
            if len(pairs) > 1:
                found = ", ".join(dict.fromkeys(one for one, _ in pairs))
                raise InputError(
                    f"{len(pairs)} pairs of models were compared. Hint: model= names one: {found}."
                )
            model, other = pairs[0]
        pair = self._pair(name, model, other)
        values = [self.users.values(one, name) for one in pair]
        level = 1 - self.confidence if alpha is None else alpha
        by_randomisation = self.options.test == "randomisation"
        seeds, clusters = max(one.n_seeds for one in pair) > 1, self.options.clusters
        planned = stats.power(
            Pairs.of(values[0], values[1], clusters).units,
            difference,
            wanted=wanted,
            alpha=level,
            unit=None if by_randomisation and not seeds else 0.0,
        )
        notes = [
            planned.note,
            "Numbers of users are numbers of clusters." if clusters is not None else "",
            "The variance between seeds is left out: more users do not change it." if seeds else "",
            self._on_bound(name, *(one.name for one in pair)),
        ]
        return dataclasses.replace(planned, note=" ".join(filter(None, notes)))

    def _on_bound(self, metric: str, model: str, other: str) -> str:
        """Say that fewer differences are found where Gaffke's bound decides."""
        pairs = {(model, other), (other, model)}
        of = [one for one in self.rows if one.metric == metric and (one.model, one.other) in pairs]
        if not of or of[0].test.test != "gaffke":
            return ""
        return (
            f"Here Gaffke's bound decides, since only {of[0].test.n_differ:,} users differ: it has "
            "less power. The numbers are those of the test that more users would have."
        )

    def known(self, metric: str) -> str:
        """Return the name of a metric that was compared, which may be written otherwise."""
        return known_metric(metric, self.metrics, self.models[0].first)

    def model(self, name: str) -> Model:
        """Return a model by its name."""
        names = [model.name for model in self.models]
        if name not in names:
            raise UnknownNameError(f"There is no model {name!r}. {did_you_mean(str(name), names)}")
        return self.models[names.index(name)]

    def higher_is_better(self, metric: str) -> bool:
        """Return the direction of a metric."""
        return self.models[0].first.known_metric(metric).definition.higher_is_better

    def _pair(self, metric: str, model: str, other: str | None) -> tuple[Model, Model]:
        pair = self.model(model), self.model(self._other(model, other))
        for one in pair:
            if not one.has(metric):
                raise InputError(f"{metric} has no value for a random order, {one.name!r}.")
        return pair

    def _other(self, model: str, other: str | None) -> str:
        self.model(model)
        if other is not None:
            return self.model(other).name
        if self.baseline is not None and self.baseline != model:
            return self.baseline
        others = [one.name for one in self.models if one.name != model]
        if len(others) > 1:
            known = ", ".join(others)
            raise InputError(
                f"Which model is {model!r} compared with? Hint: other= is one of {known}."
            )
        return others[0]

    def _check_per_user(self, metric: str) -> None:
        if metric not in self.models[0].first.values:
            raise InputError(f"{metric} is one value for all users, and none for each of them.")


def known_metric(metric: str, metrics: Sequence[str], result: EvaluationRecord) -> str:
    """Return the name of one of some metrics, which may be written otherwise.

    Raises
    ------
    UnknownNameError
        If the name is not that of one of the metrics.
    InputError
        If it is that of several.
    """
    known = {str(one): one for one in result.metrics if str(one) in metrics}
    try:
        return name_of(metric, known, result.protocol)
    except UnknownNameError:
        raise _not_compared(metric, metrics) from None


def primary_of(
    primary: str | Iterable[str], metrics: Sequence[str], result: EvaluationRecord
) -> list[str]:
    """Return the metrics that decide, each once; see `known_metric`."""
    known = {str(one): one for one in result.metrics if str(one) in metrics}
    found: dict[str, None] = {}
    for one in names_in(primary):
        try:
            found.update(dict.fromkeys(names_of(one, known, result.protocol)[0]))
        except UnknownNameError:
            raise _not_compared(one, metrics) from None
    if not found:
        raise InputError("primary names no metric. Hint: primary='ndcg@10'.")
    return list(found)


def margin_of(margin: Any, metrics: Sequence[str], result: EvaluationRecord) -> Any:
    """Return the margin, or those of metrics by the names that these have; see `known_metric`."""
    if not isinstance(margin, Mapping):
        return margin
    return {known_metric(name, metrics, result): one for name, one in margin.items()}


def _not_compared(metric: object, metrics: Sequence[str]) -> UnknownNameError:
    return UnknownNameError(
        f"The metric {str(metric)!r} was not compared. {did_you_mean(str(metric), metrics)}"
    )

"""compare on Spark: pairs of models, from sums of the differences of their users."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from recometer.comparing import wording
from recometer.comparing.corrections import Correction, adjusted, check_correction, on_tukey
from recometer.comparing.models import (
    Model,
    check_baseline,
    check_chance,
    pairs_of,
    with_chance,
)
from recometer.comparing.pairs import (
    IntervalKind,
    Options,
    bounds_for,
    check_users,
    pair_notes,
    pair_row,
)
from recometer.comparing.rows import PairRow, difference_columns, user_columns
from recometer.draws import seed_of
from recometer.errors import InputError, InputTypeError, UnknownNameError, did_you_mean, warn
from recometer.evaluating.chance import knows_chance
from recometer.metrics.conventions import parse_under
from recometer.metrics.registry import Metric, rules_of
from recometer.protocol import Protocol
from recometer.rendering import Printed, Table
from recometer.spark import _clusters
from recometer.spark._differences import Compared, Differences
from recometer.spark._frames import Frame
from recometer.spark._pairs_together import compare_together
from recometer.spark.result import SparkEvaluation
from recometer.stats import Tukey
from recometer.stats.comparing import Test, compare_grouped
from recometer.stats.ends import check_confidence
from recometer.stats.two_one_sided import Equivalence, equivalence_grouped

Named = Mapping[str, SparkEvaluation]
CHANCE = "chance"  # the name of a random order among the models


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class SparkComparison(Printed):
    """The result of `compare` on Spark: pairs of models.

    Attributes
    ----------
    models : tuple of str
    baseline : str or None
    metrics, primary : tuple of str
    rows : tuple of recometer.comparing.rows.PairRow
        One for each metric and pair, as in `Comparison`.
    correction
    options
        How pairs were compared.
    notes : tuple of str
        What holds for the whole comparison.
    chosen : bool
        Whether the primary metrics were chosen.
    """

    models: tuple[str, ...]
    baseline: str | None
    metrics: tuple[str, ...]
    primary: tuple[str, ...]
    rows: tuple[PairRow, ...]
    correction: Correction
    options: Options
    notes: tuple[str, ...] = ()
    chosen: bool

    def row(self, metric: str, model: str, other: str) -> PairRow:
        """Return the row of two models by a metric."""
        for one in self.rows:
            if (one.metric, one.model, one.other) == (metric, model, other):
                return one
        known = [f"{one.metric}: {one.model} less {one.other}" for one in self.rows]
        raise UnknownNameError(f"There is no such row. Hint: {'; '.join(known)}.")

    def table(self) -> Table:
        """Return the differences, and the notes on them."""
        margin = self.options.margin is not None
        columns = difference_columns(self.options.confidence, margin=margin)
        return Table(columns, self.rows, self._said())

    def tables(self, width: int | None = None) -> list[Table]:
        """Return how users differ, and the differences."""
        per_user = [row for row in self.rows if not row.for_all_users]
        of_users = [Table(user_columns(self.options.confidence), per_user)] if per_user else []
        return [*of_users, self.table()]

    def _said(self) -> list[str]:
        tested = [row for row in self.rows if row.test.method != "none"]
        undefined = wording.on_undefined(self.rows)
        return [
            *wording.on_correction(self.rows, self.primary, self.chosen, self.correction),
            *wording.on_methods(tested, self.options),
            *wording.on_smallest_p(self.rows, self.options),
            *wording.on_power(self.rows, self.options),
            *([undefined] if undefined else []),
            *self.notes,
            *wording.on_rows(self.rows),
        ]

    def __repr__(self) -> str:
        return f"<SparkComparison of {', '.join(map(str, self.models))}: {', '.join(self.metrics)}>"


def compare(
    models: Named,
    *,
    baseline: str | None = None,
    metrics: str | Iterable[str] | None = None,
    primary: str | Iterable[str] | None = None,
    test: Test = "randomisation",
    interval: IntervalKind = "auto",
    confidence: float | None = None,
    correction: Correction = "holm",
    margin: float | Mapping[str, float] | None = None,
    cluster: object = None,
    chance: bool = False,
    seed: int = 0,
) -> SparkComparison:
    """Test whether models differ, and estimate by how much, from sums that Spark computes.

    Models are compared in pairs, on the users for whom both have a value. Differences, p-values
    and intervals are those of `recometer.compare`. If differences have more than some thousands
    of values, those with the same leading bits count as their mean, which changes intervals and
    p-values by less than a thousandth.

    Parameters
    ----------
    models
        A dict from the names of models to results of `evaluate` on the same test.
    baseline
        The model that all others are compared with. None compares every pair.
    metrics
        The metrics to compare. None compares all metrics of the first model.
    primary, test, interval, confidence, correction, margin, chance
        As in `recometer.compare`.
    cluster
        A DataFrame with a column of users and one of their clusters, if users are not independent
        of each other. If test has sessions of users, None takes the users as clusters, and False
        takes every session as independent.
    seed
        Seed of the orders that ``correction="tukey"`` draws for up to 100 users who differ, and
        of the users that are drawn for metrics with one value for all of them.

    Returns
    -------
    SparkComparison

    Raises
    ------
    InputError
        If there are fewer than two models, protocols differ, or there are no users in common.
    InputTypeError
        If the models are not results of Spark.
    UnknownNameError
        If a baseline, metric, test, interval or correction does not exist.

    Examples
    --------
    >>> import recometer.spark as rs
    >>> print(rs.compare({"als": first, "bpr": second}, baseline="als"))  # doctest: +SKIP
    """
    given = _Models.of(models, baseline, chance)
    names, first = given.names, given.first
    compared, notes = given.metrics(metrics)
    decisive = compared if primary is None else _primary(primary, compared, first)
    counted = [one for one in given.runs if not one.by_chance or one.name == baseline]
    check_correction(correction, test, counted, decisive, first.together)
    level = first.protocol.confidence if confidence is None else confidence
    of = _margins(margin, compared, first)
    options = Options(test, interval, check_confidence(level), of, None, seed_of(seed), 1)
    whole = [name for name in compared if name in first.together]
    of_users = [name for name in compared if name not in whole]
    joined, clustered = _clusters.joined(_joined(given, of_users), cluster, first)
    work = _Work.of(given, of_users, joined, clustered, correction, decisive, counted)
    of_all = compare_together(whole, given.model_pairs(), cluster, options) if whole else []
    rows = [
        row
        for name in compared
        for row in ([] if name in whole else work.rows(name, options))
        + [row for row in of_all if row.metric == name]
    ]
    check_users(rows)
    tests = work.tukey(decisive, options) if correction == "tukey" else {}
    undefined = wording.on_undefined(rows)
    if undefined:
        warn(undefined)
    return SparkComparison(
        models=tuple(names),
        baseline=baseline,
        metrics=tuple(compared),
        primary=tuple(decisive),
        rows=tuple(adjusted(rows, decisive, correction, options, tests, counted)),
        correction=correction,
        options=options,
        notes=(*notes, *wording.on_chance(given.runs, counted), *work.said(tests, options)),
        chosen=primary is not None,
    )


@dataclasses.dataclass(frozen=True, eq=False)
class _Models:
    """The models that are compared."""

    given: Named
    baseline: str | None
    runs: Sequence[Model]

    @classmethod
    def of(cls, models: Named, baseline: str | None, chance: bool) -> _Models:
        """Check that the models fit to each other."""
        names = list(models) if isinstance(models, Mapping) else []
        if len(names) < 2 and not (names and chance):
            raise InputError(
                "compare needs two models at least. Hint: rs.compare({'als': first, ...})."
            )
        for name, one in models.items():
            if not isinstance(one, SparkEvaluation):
                raise InputTypeError(
                    f"{name!r} must be a result of recometer.spark.evaluate, found "
                    f"{type(one).__name__}. Hint: recometer.compare takes result.collect()."
                )
        first = models[names[0]]
        for name in names[1:]:
            if models[name].protocol != first.protocol:
                raise InputError(
                    f"{names[0]} and {name} were evaluated by different protocols. Hint: "
                    "protocol=other.protocol repeats one."
                )
            if (models[name].session is None) != (first.session is None):
                raise InputError(
                    f"Only one of {names[0]} and {name} was evaluated on sessions of users. Hint: "
                    "evaluate both on the same test."
                )
        runs = [Model(name, (one,)) for name, one in models.items()]  # type: ignore[arg-type]
        if chance:
            check_chance(names, names[0], knows=first.chance)
            runs.append(Model(CHANCE, (first,), by_chance=True))  # type: ignore[arg-type]
        check_baseline(baseline, (one.name for one in runs))
        return cls(models, baseline, runs)

    @property
    def names(self) -> list[str]:
        """The names of all models, that of chance among them."""
        return [one.name for one in self.runs]

    @property
    def first(self) -> SparkEvaluation:
        """The result of the first model."""
        return next(iter(self.given.values()))

    def metrics(self, metrics: str | Iterable[str] | None) -> tuple[list[str], list[str]]:
        """Return the metrics to compare, and what is said of those that are left out."""
        first = self.first
        asked = [str(one) for one in first.metrics]
        if metrics is not None:
            asked = list(dict.fromkeys(map(str, parse_under(metrics, first.protocol))))
        for name, one in self.given.items():
            own = list(map(str, one.metrics))
            for metric in asked:
                if metric not in own:
                    raise UnknownNameError(
                        f"{name} has no metric {metric!r}. {did_you_mean(metric, own)}"
                    )
        if not self.runs[-1].by_chance:
            return asked, []
        ranked = {str(one) for one in first.metrics if knows_chance(one)}
        lacking = [name for name in asked if name not in ranked]
        return with_chance(asked, lacking, is_baseline=self.baseline == CHANCE)

    def model_pairs(self) -> list[tuple[Model, Model]]:
        """Return the pairs of models, except those with a random order."""
        by_name = {model.name: model for model in self.runs}
        pairs = [
            (by_name[one], by_name[other]) for one, other in pairs_of([*by_name], self.baseline)
        ]
        return [pair for pair in pairs if not any(model.by_chance for model in pair)]

    def pairs(self, metric: Metric) -> list[tuple[str, str]]:
        """Return the pairs of models that both have a value of a metric."""
        both = pairs_of(self.names, self.baseline)
        alone = self.runs[-1].by_chance and not knows_chance(metric)
        return [pair for pair in both if not (alone and CHANCE in pair)]


def _primary(
    primary: str | Iterable[str], compared: Sequence[str], first: SparkEvaluation
) -> list[str]:
    found = list(dict.fromkeys(map(str, parse_under(primary, first.protocol))))
    for name in found:
        if name not in compared:
            raise UnknownNameError(f"primary= has {name!r}. {did_you_mean(name, compared)}")
    return found


def _margins(margin: Any, compared: Sequence[str], first: SparkEvaluation) -> Any:
    """Return the margin, or those of metrics by their names."""
    if not isinstance(margin, Mapping):
        return margin
    found = {}
    for given, one in margin.items():
        name = str(next(iter(parse_under(given, first.protocol))))
        if name not in compared:
            raise UnknownNameError(f"margin= has {name!r}. {did_you_mean(name, compared)}")
        found[name] = one
    return found


def _rules(metric: Metric, protocol: Protocol) -> Protocol:
    rules = rules_of(metric, protocol)
    return rules.replace(missing="skip") if rules.missing == "nan" else rules


def _joined(given: _Models, metrics: Sequence[str]) -> Frame:
    """Return a row per user with the values and reasons of all models."""
    found, by = None, ["u"] if given.first.session is None else ["u", "s"]
    for number, model in enumerate(given.runs):
        one: Any = model.first
        own, columns = [str(metric) for metric in one.metrics], []
        for place, name in enumerate(metrics):
            at = own.index(name)
            value = (
                f"CASE WHEN r{at} = 0 THEN c{at} ELSE m{at} END" if model.by_chance else f"m{at}"
            )
            columns += [f"{value} AS m{number}_{place}", f"r{at} AS r{number}_{place}"]
        frame = one.values().selectExpr(*by, *columns)
        found = frame if found is None else found.join(frame, by, "full_outer")
    return found


@dataclasses.dataclass(frozen=True, eq=False)
class _Work:
    """The sums of the differences of all pairs, and what is made of them."""

    given: _Models
    metrics: Sequence[str]
    places: Mapping[tuple[str, str, str], int]  # of a metric and a pair among the sums
    sums: Differences
    counted: Sequence[Model]

    @classmethod
    def of(
        cls,
        given: _Models,
        metrics: Sequence[str],
        joined: Frame,
        clustered: bool,
        correction: Correction,
        primary: Sequence[str],
        counted: Sequence[Model],
    ) -> _Work:
        """Add up the differences of all users."""
        known = {str(one): one for one in given.first.metrics}
        names, numbers = given.names, {name: place for place, name in enumerate(metrics)}
        each = [(name, *pair) for name in metrics for pair in given.pairs(known[name])]
        shuffled = [numbers[name] for name in primary] if correction == "tukey" else []
        asked = Compared(
            [(numbers[name], names.index(a), names.index(b)) for name, a, b in each],
            [_rules(known[name], given.first.protocol) for name in metrics],
            (shuffled, [names.index(one.name) for one in counted]),
            clustered,
            ["u"] if given.first.session is None else ["u", "s"],
        )
        places = {key: place for place, key in enumerate(each)}
        return cls(given, metrics, places, Differences.of(joined, asked), counted)

    def rows(self, name: str, options: Options) -> list[PairRow]:
        """Return the row of each pair by a metric."""
        metric = next(one for one in self.given.first.metrics if str(one) == name)
        bounds, note = _bounds(metric, list(self.given.given.values()))
        if options.interval == "gaffke" and not np.isfinite(bounds).all():
            raise InputError(
                f"interval='gaffke' needs a range, and {name} has none. {note} "
                "Hint: interval='bca', or metrics= without it."
            )
        average = {rules_of(metric, self.given.first.protocol).average}
        found = []
        for pair in self.given.pairs(metric):
            row = self._row(metric, pair, bounds, options)
            said = pair_notes(average, (row.interval, row.relative_interval), row.test)
            notes = (note, *said) if note else said
            found.append(dataclasses.replace(row, notes=notes))
        return found

    def _row(
        self, metric: Metric, pair: tuple[str, str], bounds: tuple[float, float], options: Options
    ) -> PairRow:
        number = self.places[(str(metric), *pair)]
        cells, sums = self.sums.cells(number), self.sums.totals(number)
        n, clusters = cells.n, self.sums.clusters(number)
        difference = compare_grouped(
            cells.grouped(),
            n_only=(int(sums[2]), int(sums[3])),
            means=(float(sums[0] / n), float(sums[1] / n)) if n else (np.nan, np.nan),
            relative=self.sums.relative(number, options.confidence),
            clusters=clusters,
            bounds=bounds,
            test=options.test,
            interval=options.interval,
            confidence=options.confidence,
        )
        deviation = float(np.sqrt(cells.squares / (n - 1))) if n > 1 else np.nan
        higher = metric.definition.higher_is_better
        row = pair_row(str(metric), pair, higher, difference, bounds, deviation)
        equivalence = self._equivalence(number, str(metric), bounds, options)
        unit = difference.unit if difference.test.test == "randomisation" else 0.0
        return dataclasses.replace(row, unit=unit, equivalence=equivalence)

    def _equivalence(
        self, number: int, metric: str, bounds: tuple[float, float], options: Options
    ) -> Equivalence | None:
        margin, clusters = options.margin_of(metric), self.sums.clusters(number)
        if margin is None:
            return None
        differences = self.sums.cells(number).grouped()
        units, sums = (differences, differences) if clusters is None else clusters
        return equivalence_grouped(
            units,
            sums,
            margin,
            alpha=options.alpha,
            test="t" if options.test == "t" else "randomisation",
            bounds=bounds,
        )

    def tukey(self, primary: Sequence[str], options: Options) -> dict[str, Tukey]:
        """Return Tukey's test of each primary metric."""
        numbers = {name: place for place, name in enumerate(self.metrics)}
        return {
            name: self.sums.tukey(numbers[name], alpha=options.alpha, seed=options.seed)
            for name in primary
        }

    def said(self, tests: Mapping[str, Tukey], options: Options) -> list[str]:
        """Return what is said of sessions, and of Tukey's test."""
        said, (n_users, n_clusters) = [], self.sums.n_rows
        if self.given.first.session is not None:
            said = wording.on_sessions(n_users, n_clusters if self.sums.asked.clustered else None)
        return [*said, *on_tukey(tests, options)]


def _bounds(metric: Metric, models: Sequence[SparkEvaluation]) -> tuple[tuple[float, float], str]:
    """Return the bounds of a value; infinite, with a note, where one lies outside."""
    each = [one.bounds(metric) for one in models]
    ends = min(low for low, _ in each), max(high for _, high in each)
    cells = [one.sums.metrics[str(metric)].cells for one in models]
    values = [value for one in cells if one.n for value in (one.low[0], one.high[-1])]
    return bounds_for(ends, values)

"""compare on Spark: pairs of models, from sums of the differences of their users."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from recometer.arrays import Float64
from recometer.comparing import wording
from recometer.comparing.corrections import Correction, adjusted, check_correction
from recometer.comparing.models import Model, check_baseline, pairs_of
from recometer.comparing.pairs import IntervalKind, Options, pair_row
from recometer.comparing.rows import PairRow, difference_columns, user_columns
from recometer.errors import InputError, InputTypeError, UnknownNameError, did_you_mean, warn
from recometer.measuring.reasons import entering
from recometer.metrics.registry import Metric, rules_of
from recometer.protocol import Protocol
from recometer.rendering import Printed, Table
from recometer.spark._cells import Cells
from recometer.spark._frames import Frame
from recometer.spark._packing import added_up, together
from recometer.spark._ratios import Ratios
from recometer.spark.result import SparkEvaluation
from recometer.stats import Interval
from recometer.stats.comparing import Test, compare_grouped
from recometer.stats.effect_sizes import ratio_of_grouped
from recometer.stats.ends import check_confidence

Named = Mapping[str, SparkEvaluation]
NO_RATIO = "The mean that the difference is relative to is not above 0."


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
        return Table(
            difference_columns(self.options.confidence, margin=False), self.rows, self._said()
        )

    def tables(self, width: int | None = None) -> list[Table]:
        """Return how users differ, and the differences."""
        return [Table(user_columns(self.options.confidence), self.rows), self.table()]

    def _said(self) -> list[str]:
        tested = [row for row in self.rows if row.test.method != "none"]
        return [
            *wording.on_correction(self.rows, self.primary, self.chosen, self.correction),
            *wording.on_methods(tested, self.options),
            *wording.on_smallest_p(self.rows, self.options),
            *wording.on_power(self.rows, self.options),
            *wording.on_rows(self.rows),
        ]

    def __repr__(self) -> str:
        return f"<SparkComparison of {', '.join(self.models)}: {', '.join(self.metrics)}>"


def compare(
    models: Named,
    *,
    baseline: str | None = None,
    metrics: Iterable[str] | None = None,
    primary: Iterable[str] | None = None,
    test: Test = "randomisation",
    interval: IntervalKind = "auto",
    confidence: float | None = None,
    correction: Correction = "holm",
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
        The metrics to compare. None compares all of them.
    primary, interval, confidence
        As in `recometer.compare`.
    test
        ``"randomisation"``, ``"t"`` or ``"sign"``.
    correction
        As in `recometer.compare`, except ``"tukey"``.

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
        If a baseline or metric does not exist.

    Examples
    --------
    >>> import recometer.spark as rs
    >>> print(rs.compare({"als": first, "bpr": second}, baseline="als"))  # doctest: +SKIP
    """
    names, compared = _checked(models, baseline, metrics)
    decisive = compared if primary is None else list(primary)
    unknown = [name for name in decisive if name not in compared]
    if unknown:
        raise UnknownNameError(f"primary= has {unknown[0]!r}. {did_you_mean(unknown[0], compared)}")
    if correction == "tukey":
        raise InputError("correction='tukey' shuffles users, not on Spark. Hint: 'holm'.")
    runs = [Model(name, ()) for name in names]
    check_correction(correction, test, runs, decisive)
    first = models[names[0]]
    level = first.protocol.confidence if confidence is None else confidence
    options = Options(test, interval, check_confidence(level), None, None, 0, 1)
    work = _Pairs.of(models, compared, pairs_of(names, baseline))
    rows = [
        row for name in compared for row in work.rows(name, [models[one] for one in names], options)
    ]
    return SparkComparison(
        models=tuple(names),
        baseline=baseline,
        metrics=tuple(compared),
        primary=tuple(decisive),
        rows=tuple(adjusted(rows, decisive, correction, options, {}, runs)),
        correction=correction,
        options=options,
        chosen=primary is not None,
    )


@dataclasses.dataclass(frozen=True, eq=False)
class _Pairs:
    """The sums of the differences of pairs, by metric and pair."""

    pairs: Sequence[tuple[str, str]]
    sums: Mapping[str, Any]

    @classmethod
    def of(cls, models: Named, metrics: Sequence[str], pairs: Sequence[tuple[str, str]]) -> _Pairs:
        """Add up the differences of all users."""
        names = list(models)
        joined = _joined(models, metrics)
        each = [
            (metric, one, other)
            for metric in range(len(metrics))
            for one, other in ((names.index(a), names.index(b)) for a, b in pairs)
        ]
        first: Any = next(iter(models.values()))
        rules = [_rules(first, name) for name in metrics]
        sums = _added(joined, each, rules, None)
        ratios = [
            sums[f"{key} sums"][0] / sums[f"{key} sums"][1] if sums[f"{key} sums"][1] > 0 else None
            for key in range(len(each))
        ]
        sums |= _added(joined, each, rules, ratios)
        sums = {
            f"{metrics[metric]} {names[one]} {names[other]} {what}": sums.get(f"{key} {what}")
            for key, (metric, one, other) in enumerate(each)
            for what in ("sums", "cells", "ratios")
        }
        return cls(pairs, sums)

    def rows(
        self, metric: str, models: Sequence[SparkEvaluation], options: Options
    ) -> list[PairRow]:
        """Return the row of each pair."""
        known = next(one for one in models[0].metrics if str(one) == metric)
        bounds, note = _bounds(known, models)
        found = []
        for pair in self.pairs:
            key = " ".join((metric, *pair))
            cells, sums = self.sums[f"{key} cells"], self.sums[f"{key} sums"]
            n = cells.n
            if n < 2:
                raise InputError(
                    f"{pair[0]} and {pair[1]} have {n} users in common with a value of {metric}. "
                    "Hint: were both evaluated on the same test?"
                )
            n_only = int(sums[2]), int(sums[3])
            if sum(n_only):
                warn(
                    f"{metric}: {sum(n_only):,} users have a value for only one of {pair[0]} and "
                    f"{pair[1]}, and are left out."
                )
            ratios = self.sums[f"{key} ratios"]
            relative = (np.nan, Interval.unknown(options.confidence, n, NO_RATIO))
            if ratios is not None:
                relative = ratio_of_grouped(ratios.grouped(), options.confidence)
            difference = compare_grouped(
                cells.grouped(),
                n_only=n_only,
                means=(float(sums[0] / n), float(sums[1] / n)),
                relative=relative,
                bounds=bounds,
                test=options.test,
                interval=options.interval,
                confidence=options.confidence,
            )
            deviation = float(np.sqrt(cells.squares / (n - 1)))
            higher = known.definition.higher_is_better
            row = pair_row(metric, pair, higher, difference, bounds, deviation)
            said = (note, row.interval.note, row.test.note, row.relative_interval.note)
            notes = tuple(dict.fromkeys(filter(None, said)))
            found.append(dataclasses.replace(row, notes=notes))
        return found


def _checked(
    models: Named, baseline: str | None, metrics: Iterable[str] | None
) -> tuple[list[str], list[str]]:
    """Return the names of models and metrics, which must fit."""
    names = list(models) if isinstance(models, Mapping) else []
    if len(names) < 2:
        raise InputError(
            "compare needs two models at least. Hint: rs.compare({'als': first, ...})."
        )
    for name, one in models.items():
        if not isinstance(one, SparkEvaluation):
            raise InputTypeError(
                f"{name!r} must be a result of recometer.spark.evaluate, found "
                f"{type(one).__name__}. Hint: recometer.compare takes result.collect()."
            )
    check_baseline(baseline, names)
    first = models[names[0]]
    for name in names[1:]:
        if models[name].protocol != first.protocol:
            raise InputError(
                f"{names[0]} and {name} were evaluated by different protocols. Hint: "
                "protocol=other.protocol repeats one."
            )
    common = [str(one) for one in first.metrics if str(one) not in first.over_users]
    asked = common if metrics is None else _listed(metrics)
    _check_of_users(first, asked, chosen=metrics is not None)
    for name in names:
        for metric in asked:
            own = list(map(str, models[name].metrics))
            if metric not in own:
                raise UnknownNameError(
                    f"{name} has no metric {metric!r}. {did_you_mean(metric, own)}"
                )
    return names, asked


def _check_of_users(first: SparkEvaluation, asked: Sequence[str], *, chosen: bool) -> None:
    """Refuse metrics with one value for all users, or say that they are left out."""
    whole = [name for name in first.over_users if name in asked or not chosen]
    if not whole:
        return
    what = f"{', '.join(whole)}: one value for all users has no difference by user"
    if chosen:
        raise InputError(
            f"{what}, and on Spark no users are resampled. Hint: result.mean() has the values."
        )
    warn(f"{what}, so it is not compared. Hint: result.mean() has the values.")


def _listed(metrics: Iterable[str]) -> list[str]:
    return metrics.split() if isinstance(metrics, str) else list(metrics)


def _rules(result: SparkEvaluation, name: str) -> Protocol:
    metric = next(one for one in result.metrics if str(one) == name)
    rules = rules_of(metric, result.protocol)
    return rules.replace(missing="skip") if rules.missing == "nan" else rules


def _bounds(metric: Metric, models: Sequence[SparkEvaluation]) -> tuple[tuple[float, float], str]:
    """Return the bounds of a value; infinite, with a note, where one lies outside."""
    each = [one.bounds(metric) for one in models]
    low, high = min(low for low, _ in each), max(high for _, high in each)
    rounding = 1e-9 * (high - low) if np.isfinite(high - low) else 0.0
    for one in models:
        cells = one.sums.metrics[str(metric)].cells
        if cells.n and (cells.low[0] < low - rounding or cells.high[-1] > high + rounding):
            return (-np.inf, np.inf), "A value lies outside the range, on which no interval rests."
    return (low, high), ""


def _joined(models: Named, metrics: Sequence[str]) -> Frame:
    """Return a row per user with the values and reasons of all models."""
    found = None
    for number, one in enumerate(models.values()):
        own = [str(metric) for metric in one.metrics]
        columns = [
            f"{letter}{own.index(name)} AS {letter}{number}_{place}"
            for place, name in enumerate(metrics)
            for letter in "mr"
        ]
        frame = one.values().selectExpr("u", *columns)
        found = frame if found is None else found.join(frame, "u", "full_outer")
    return found


def _added(
    joined: Frame,
    each: Sequence[tuple[int, int, int]],
    rules: Sequence[Protocol],
    ratios: Sequence[float | None] | None,
) -> dict[str, Any]:
    """Add up, per pair and metric: the differences, or what the ratio of the means needs."""
    found = added_up(joined, functools.partial(_adding, each=each, rules=rules, ratios=ratios))
    if not found:
        raise InputError("The models have no users in common. Hint: were they evaluated alike?")
    return found


def _adding(
    batches: Any,
    *,
    each: Sequence[tuple[int, int, int]],
    rules: Sequence[Protocol],
    ratios: Sequence[float | None] | None,
) -> dict[str, Any]:
    parts = []
    for batch in batches:
        found: dict[str, Any] = {}
        for key, (metric, one, other) in enumerate(each):
            x, y = (_values(batch, model, metric, rules[metric]) for model in (one, other))
            both = ~(np.isnan(x) | np.isnan(y))
            if ratios is None:
                only = [np.count_nonzero(~np.isnan(a) & np.isnan(b)) for a, b in ((x, y), (y, x))]
                found[f"{key} sums"] = np.array([x[both].sum(), y[both].sum(), *only], np.float64)
                found[f"{key} cells"] = Cells.of(x[both] - y[both])
            elif ratios[key] is not None:
                found[f"{key} ratios"] = Ratios.of(x[both], y[both], float(ratios[key]))  # type: ignore[arg-type]
        parts.append(found)
    return together(parts) if parts else {}


def _values(batch: Any, model: int, metric: int, rules: Protocol) -> Float64:
    """Return the values of the users who count in the mean; NaN for the others."""
    values = batch.column(f"m{model}_{metric}").to_numpy(zero_copy_only=False).astype(np.float64)
    codes = batch.column(f"r{model}_{metric}")
    there = codes.is_valid().to_numpy(zero_copy_only=False)
    reasons = codes.fill_null(1).to_numpy(zero_copy_only=False).astype(np.uint8)
    found = entering(values, reasons, rules)
    if np.isinf(found).any():
        raise InputError("A value is infinite: differences have no mean.")
    return np.where(there, found, np.nan)

"""Computes metrics in a single loop over all kinds of `Measured` users.

The kinds (in `recometer.measuring.ranked`, `rated` and `listed`) compute values and say which are
undefined for which users, and why. This module applies the rules to the values. The metric
functions contain only formulas.
"""

from __future__ import annotations

import abc
import functools
import typing
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np

from recometer.arrays import Bool, Float64, Int64, UInt8, any_of, read_only
from recometer.errors import InternalError
from recometer.measuring.reasons import Reason, mark, replace_undefined, users_left_out
from recometer.metrics.registry import Metric, Record, rules_of
from recometer.protocol import Protocol
from recometer.tasks import Ticker, run_tasks
from recometer.ties import WHOLE


class Together(typing.Protocol):
    """The data read by metrics that have one value for all users."""

    @property
    def n_users(self) -> int:
        """Number of users."""

    @property
    def size(self) -> int:
        """The amount of work for one value: the number of list places or of rows."""

    def users(self, chosen: Int64) -> Together:
        """Return the data of only the given users."""

    def for_all(self, metrics: Sequence[Metric], rules: Protocol, weights: Int64 | None) -> Float64:
        """Return each metric's value for all users together, as float64 [n_metrics].

        `weights` say how often each user counts.
        """


class Variant(NamedTuple):
    """Metrics that are computed together, usually one metric at several cut-offs.

    It contains nothing that depends on the users, so it is prepared only once.
    """

    metrics: tuple[Metric, ...]
    names: tuple[str, ...]
    rules: Protocol
    over_users: bool  # whether there is one value for all users (each still has a reason)
    is_final: bool  # whether defined values are final as computed
    values: Callable[[Any], Float64]  # a function from the record to float64 [n_users, n_metrics]
    prepared: Any = None  # further prepared data, depending on the subclass of `Measured`

    @classmethod
    def of(cls, metrics: Sequence[Metric], rules: Protocol, prepared: Any = None) -> Variant:
        """Prepare the same metric at several cut-offs."""
        first = metrics[0]
        definition = first.definition
        numbers = [WHOLE if metric.cutoff is None else metric.cutoff for metric in metrics]
        cutoffs, parameters = np.array(numbers, np.int64), dict(first.parameters)
        return cls(
            tuple(metrics),
            tuple(map(str, metrics)),
            rules,
            definition.over_users,
            not definition.may_be_nan and rules.decimals is None,
            lambda record: definition.function(record, cutoffs, **parameters),
            prepared,
        )


class Measured(abc.ABC):
    """A block of users, with the record that one kind of metric reads.

    It computes values and says which are undefined for which users, and why. The name of a metric
    may override individual rules.
    """

    record: ClassVar[Record]
    """The record that the metrics read."""
    group: str = ""
    """The group of items to which metrics are restricted."""
    n_users: int
    """Number of users."""

    @abc.abstractmethod
    def blocks(self) -> list[slice]:
        """Cut the users into blocks, so that working memory stays bounded."""

    @abc.abstractmethod
    def users(self, block: slice) -> Measured:
        """Return a block of users as views, without copying."""

    @classmethod
    def variant(cls, metrics: Sequence[Metric], rules: Protocol) -> Variant:
        """Prepare what does not depend on the users, for a metric at several cut-offs."""
        return Variant.of(metrics, rules)

    @abc.abstractmethod
    def reasons(self, variant: Variant, number: int) -> tuple[UInt8, bool]:
        """Return each user's first `Reason` for a metric (or 0), and whether any user has a reason.

        The array must not be changed.
        """

    @abc.abstractmethod
    def compute(self, variant: Variant) -> Float64:
        """Return the values of the metrics, as float64 [n_users, n_metrics]."""

    @abc.abstractmethod
    def outside(self, variant: Variant) -> Bool | None:
        """Return a mask of users who do not count towards a mean; see `reasons.users_outside`."""

    @classmethod
    def bounded(cls, rules: Protocol) -> bool:
        """Return whether values lie within the metric's bounds, except for rounding."""
        return True


class _Plan(NamedTuple):
    """The work to be done for the metrics of one record, variant by variant."""

    variants: tuple[Variant, ...]
    n_metrics: int
    rows: dict[str, int]  # the row of each metric among the reasons, in the requested order
    valued: dict[str, int]  # each metric's row among the values, if it has a value per user
    lower: Float64  # [n_valued, 1], the bounds of the metrics in `valued`
    upper: Float64

    @classmethod
    def of(cls, metrics: Sequence[Metric], protocol: Protocol, kind: type[Measured]) -> _Plan:
        """Prepare everything that does not depend on the users."""
        variants = tuple(_variants(metrics, protocol, kind.variant))
        bounds: list[tuple[float, float]] = []
        for variant in variants:
            definition = variant.metrics[0].definition
            bounded = kind.bounded(variant.rules)
            pair = (definition.lower, definition.upper) if bounded else (-np.inf, np.inf)
            bounds += [] if variant.over_users else [pair] * len(variant.metrics)
        limits = np.array(bounds, np.float64).reshape(len(bounds), 2, 1)
        names = [name for variant in variants for name in variant.names]
        valued = [n for variant in variants if not variant.over_users for n in variant.names]
        numbered = [{name: row for row, name in enumerate(part)} for part in (names, valued)]
        order = [str(metric) for metric in metrics]
        rows, values = ({name: row[name] for name in order if name in row} for row in numbered)
        return cls(variants, len(names), rows, values, limits[:, 0], limits[:, 1])


class _Task(NamedTuple):
    """A block of users, and the metrics to compute for it."""

    measured: Measured
    block: slice
    plan: _Plan
    values: Float64  # [n_valued, n_users], an output
    reasons: UInt8  # [n_metrics, n_users], an output


def compute(
    measured: Measured | Iterable[Measured],
    metrics: Sequence[Metric],
    protocol: Protocol,
    threads: int = 1,
) -> tuple[dict[str, Float64], dict[str, UInt8]]:
    """Compute metrics for every user.

    Parameters
    ----------
    measured
        The records that the metrics read, all with the same users.
    metrics
        Metrics from `recometer.metrics.parse`.
    protocol
        The rules. Names of metrics may override individual rules.
    threads
        The number of threads to use; the values do not depend on it.

    Returns
    -------
    values : dict of str to float64 [n_users]
        Values keyed by the metric's name, such as ``"ndcg@10"``, in the requested order. Metrics
        with one value for all users are not included; see `compute_for_all`.
    reasons : dict of str to uint8 [n_users]
        The `Reason` why a value is undefined, or 0 if it is defined.
    """
    parts = [measured] if isinstance(measured, Measured) else list(measured)
    reading: dict[tuple[str, str], list[Metric]] = {}
    for metric in metrics:
        reading.setdefault((metric.definition.record, metric.group), []).append(metric)
    values, reasons, tasks = dict[str, Float64](), dict[str, UInt8](), list[_Task]()
    for part in parts:
        requested = reading.pop((part.record, part.group), [])
        plan = _planned(tuple(requested), tuple(map(id, requested)), protocol, type(part))
        table = np.empty((len(plan.lower), part.n_users))
        codes = np.empty((plan.n_metrics, part.n_users), np.uint8)
        final_values, final_reasons = read_only(table), read_only(codes)
        values |= {name: final_values[row] for name, row in plan.valued.items()}
        reasons |= {name: final_reasons[row] for name, row in plan.rows.items()}
        if plan.variants:
            tasks += [_Task(part, block, plan, table, codes) for block in part.blocks()]
    for (record, _), unread in reading.items():
        raise InternalError(f"The metric {str(unread[0])!r} was requested without {record}.")

    if threads > 1 and len(tasks) > 1:
        run_tasks(_run, tasks, threads=threads, progress=False)
    else:
        for task in tasks:
            _run(task)
    if len(parts) == 1:  # already in the requested order
        return values, reasons
    names = [str(metric) for metric in metrics]
    return {name: values[name] for name in names if name in values}, {
        name: reasons[name] for name in names
    }


def compute_for_all(
    measured: Together,
    metrics: Sequence[Metric],
    protocol: Protocol,
    weights: Int64 | None = None,
) -> dict[str, float]:
    """Compute each metric's value for all users together, keyed by name; NaN if undefined.

    `weights` (int64 [n_users]) say how often each user was drawn in a resample.
    """
    return computed_for_all(measured, metrics, protocol)(weights)


def computed_for_all(
    measured: Together, metrics: Sequence[Metric], protocol: Protocol
) -> Callable[[Int64 | None], dict[str, float]]:
    """Return a function that maps user weights to the values of `compute_for_all`.

    Resampling calls the returned function many times. Work that does not depend on the weights is
    done only once, when the function is made.
    """
    variants = _variants(metrics, protocol, Variant.of)
    order = [str(metric) for metric in metrics]

    def compute_with(weights: Int64 | None) -> dict[str, float]:
        values: dict[str, float] = {}
        for variant in variants:
            rules, definition = variant.rules, variant.metrics[0].definition
            row = measured.for_all(variant.metrics, rules, weights)
            row = np.minimum(np.maximum(row, definition.lower), definition.upper)
            if rules.undefined != "nan":
                row = np.where(np.isnan(row), rules.undefined, row)
            if rules.percent and definition.over_users:
                row = 100 * row
            if rules.decimals is not None:
                row = np.round(row, rules.decimals)
            values |= zip(variant.names, row.tolist(), strict=True)
        return {name: values[name] for name in order}

    return compute_with


def _run(task: _Task, _: Ticker | None = None) -> None:
    """Fill in the values and reasons of a block of users."""
    block, plan = task.block, task.plan
    users, values, codes = task.measured.users(block), task.values[:, block], task.reasons[:, block]
    unfinished = []
    row = first = 0
    for variant in plan.variants:
        outside = None if variant.over_users else users.outside(variant)
        is_final = variant.is_final and outside is None
        if not variant.over_users:
            values[first : first + len(variant.metrics)] = users.compute(variant).T
        for number in range(len(variant.metrics)):
            codes[row], undefined = users.reasons(variant, number)
            if not variant.over_users:
                if undefined or not is_final:
                    unfinished.append((variant, number, outside, values[first], codes[row]))
                first += 1
            row += 1
    # Owing to rounding errors, a sum over tied groups may exceed a bound.
    values.clip(plan.lower, plan.upper, out=values)
    for arguments in unfinished:
        _settle(*arguments)


def _settle(
    variant: Variant, number: int, outside: Bool | None, values: Float64, reasons: UInt8
) -> None:
    """Apply the rules on undefined values and on which users count."""
    metric, rules = variant.metrics[number], variant.rules
    if metric.definition.may_be_nan:
        mark(reasons, np.isnan(values), Reason.ONE_KIND)
    if any_of(reasons):
        replace_undefined(values, reasons, rules)
    if rules.decimals is not None:
        values[:] = np.round(values, rules.decimals)
    removed = users_left_out(outside, values, rules)
    if removed is not None:
        reasons[removed] = Reason.NOT_COUNTED


@functools.lru_cache(maxsize=64)
def _planned(
    metrics: tuple[Metric, ...], _ids: tuple[int, ...], protocol: Protocol, kind: type[Measured]
) -> _Plan:
    """Return the plan, cached by identity, because equal metrics may have different definitions."""
    return _Plan.of(metrics, protocol, kind)


def _variants(
    metrics: Iterable[Metric],
    protocol: Protocol,
    make: Callable[[Sequence[Metric], Protocol], Variant],
) -> list[Variant]:
    """Group metrics that differ only in the cut-off, unless it affects the order of ties."""
    groups: dict[Hashable, tuple[list[Metric], Protocol]] = {}
    for metric in metrics:
        rules = rules_of(metric, protocol)
        separate = rules.ties == "item_desc_within"
        key: Hashable = metric if separate else (metric.variant, metric.rules)
        groups.setdefault(key, ([], rules))[0].append(metric)
    return [make(group, rules) for group, rules in groups.values()]

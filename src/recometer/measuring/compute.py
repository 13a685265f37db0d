"""From rules to values: one loop over whatever is measured.

What is measured (`recometer.measuring.ranked`, `rated`, `listed`) answers who is undefined, and
why, and computes; what then becomes of values is settled here. The functions of metrics know the
formulas alone.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from recometer.arrays import Float64, Int64, UInt8
from recometer.errors import InternalError
from recometer.measuring.measured import Measured, Together
from recometer.measuring.reasons import Reason, left_out, mark, replace_undefined
from recometer.measuring.settling import reads_cutoff
from recometer.metrics.registry import Metric, rules_of
from recometer.protocol import Protocol
from recometer.tasks import Ticker, run_tasks

USERS_PER_PART = 2048  # of whom a second thread takes a part


class _Variant(NamedTuple):
    """Metrics that are computed at once, mostly one at several cut-offs, under their rules."""

    metrics: list[Metric]
    rules: Protocol


class _Task(NamedTuple):
    """Some users of what is measured, and the metrics that read it."""

    measured: Measured
    block: slice
    variants: Sequence[_Variant]


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
        What the metrics read, of the same users.
    metrics
        As `recometer.metrics.parse` returns them.
    protocol
        The rules, which a metric's name may change.
    threads
        How many threads to use; the values do not depend on it.

    Returns
    -------
    values : dict of str to float64 [n_users]
        By the metric's name, such as ``"ndcg@10"``, in the order asked for. Metrics with one value
        for all users have none here, see `compute_for_all`.
    reasons : dict of str to uint8 [n_users]
        The `Reason` why a value is undefined, 0 where it is defined.
    """
    every = [measured] if isinstance(measured, Measured) else list(measured)
    by_record: dict[str, Measured] = {one.record: one for one in every}
    tasks: list[_Task] = []
    values: dict[str, Float64] = {}
    reasons: dict[str, UInt8] = {}
    for metric in metrics:
        n_users = _read_by(metric, by_record).n_users
        reasons[str(metric)] = np.empty(n_users, np.uint8)
        if not metric.definition.over_users:
            values[str(metric)] = np.empty(n_users)
    for one in every:
        reading = [metric for metric in metrics if metric.definition.record == one.record]
        variants = _variants(reading, protocol)
        for block in one.blocks() if variants else ():
            tasks += [_Task(one, part, variants) for part in _parts(block, threads)]

    def run(task: _Task, ticker: Ticker | None = None) -> None:
        some = task.measured.users(task.block)
        for variant in task.variants:
            _fill(some, variant, task.block, values, reasons)
        if ticker is not None:
            ticker.advance()

    if min(threads, len(tasks)) > 1:
        run_tasks(run, tasks, threads=threads, progress=False)
    else:
        for task in tasks:
            run(task)
    return values, reasons


def compute_for_all(
    measured: Together,
    metrics: Sequence[Metric],
    protocol: Protocol,
    weights: Int64 | None = None,
) -> dict[str, float]:
    """Compute the values that metrics over users, or over rows, have for all users together.

    By the metric's name; NaN where it is undefined. `weights`, int64 [n_users], say how often each
    user counts: how often one was drawn in a resampling.
    """
    return computed_for_all(measured, metrics, protocol)(weights)


def computed_for_all(
    measured: Together, metrics: Sequence[Metric], protocol: Protocol
) -> Callable[[Int64 | None], dict[str, float]]:
    """Return what computes the values for all users together, given how often each counts.

    Users are resampled many times: what does not depend on who is drawn is done once.
    """
    variants = _variants(metrics, protocol)
    named = [(variant, [str(metric) for metric in variant.metrics]) for variant in variants]
    order = [str(metric) for metric in metrics]

    def compute_with(weights: Int64 | None) -> dict[str, float]:
        found: dict[str, float] = {}
        for (wanted, rules), names in named:
            definition = wanted[0].definition
            row = measured.for_all(wanted, rules, weights)
            row = np.minimum(np.maximum(row, definition.lower), definition.upper)
            if rules.undefined != "nan":
                row = np.where(np.isnan(row), rules.undefined, row)
            if rules.percent and definition.over_users:
                row = 100 * row
            if rules.decimals is not None:
                row = np.round(row, rules.decimals)
            found |= dict(zip(names, row.tolist(), strict=True))
        return {name: found[name] for name in order}

    return compute_with


def _fill(
    some: Measured,
    variant: _Variant,
    block: slice,
    values: Mapping[str, Float64],
    reasons: Mapping[str, UInt8],
) -> None:
    """Fill in the values and reasons of a block of users."""
    metrics, rules = variant
    definition = metrics[0].definition
    if definition.over_users:
        for metric in metrics:
            reasons[str(metric)][block] = some.reasons(metric, rules)
        return
    table, bounded = some.compute(metrics, rules), some.bounded(rules)
    for column, metric in enumerate(metrics):
        found, reason = values[str(metric)][block], some.reasons(metric, rules)
        if bounded:
            # Sums over tied groups may pass a bound by their rounding.
            table[:, column].clip(definition.lower, definition.upper, out=found)
        else:
            found[:] = table[:, column]
        if definition.may_be_nan:
            reason = reason.copy()
            mark(reason, np.isnan(found), Reason.ONE_KIND)
        if reason.any():
            replace_undefined(found, reason, rules)
        if rules.decimals is not None:
            found[:] = np.round(found, rules.decimals)
        why = reasons[str(metric)][block]
        why[:] = reason
        gone = left_out(some.outside(metric, rules), found, rules)
        if gone is not None:
            why[gone] = Reason.NOT_COUNTED


def _parts(block: slice, threads: int) -> list[slice]:
    """Cut a block of users into a part for each thread, where there are many users."""
    n = max(1, min(threads, (block.stop - block.start) // USERS_PER_PART))
    ends = [block.start + (block.stop - block.start) * part // n for part in range(n + 1)]
    return [slice(begin, end) for begin, end in itertools.pairwise(ends)]


def _read_by(metric: Metric, by_record: Mapping[str, Measured]) -> Measured:
    """Return what a metric reads."""
    record = metric.definition.record
    if record not in by_record:
        raise InternalError(f"The metric {str(metric)!r} was asked for without {record}.")
    return by_record[record]


def _variants(metrics: Iterable[Metric], protocol: Protocol) -> list[_Variant]:
    """Put the cut-offs of the same metric together, unless what is ranked depends on them."""
    found: dict[Hashable, _Variant] = {}
    for metric in metrics:
        rules = rules_of(metric, protocol)
        alone = rules.ties == "item_desc_within" or reads_cutoff(rules)
        key: Hashable = metric if alone else (metric.variant, metric.rules)
        found.setdefault(key, _Variant([], rules)).metrics.append(metric)
    return list(found.values())

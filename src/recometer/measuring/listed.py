"""Metrics of lists for all users, and when they have no value for one.

As `recometer.measuring.compute` is for rankings: the functions of metrics know the formulas alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np

from recometer.arrays import Bool, Float64, Int64, UInt8
from recometer.measuring.compute import Reason, replace_undefined
from recometer.metrics.listed.data import ListData, Side, needed
from recometer.metrics.listed.sums import of_listed, relevant_places
from recometer.metrics.registry import Metric, Without, rules_of
from recometer.protocol import Protocol
from recometer.ranks import UserFlag
from recometer.ties import sum_by_user

# Users are taken in blocks with about so many listed items, so that working memory does not
# grow with their number.
BLOCK_PLACES = 2**21


def compute_lists(
    data: ListData,
    metrics: Sequence[Metric],
    protocol: Protocol,
) -> tuple[dict[str, Float64], dict[str, UInt8]]:
    """Compute metrics of lists for every user.

    Parameters
    ----------
    data
        The lists, and the side data that the metrics read.
    metrics
        Of the record ``"lists"``, with a value per user.
    protocol
        `undefined` and the rules for undefined values are read.

    Returns
    -------
    values, reasons
        As `recometer.measuring.compute.compute` returns them.
    """
    values = {str(metric): np.empty(data.n_users) for metric in metrics}
    why = {str(metric): np.empty(data.n_users, np.uint8) for metric in metrics}
    for block in _blocks(data):
        some = data.users(block)
        for wanted in _variants(metrics):
            definition = wanted[0].definition
            table = wanted[0].compute(some, _cutoffs(wanted))
            table = np.clip(table, definition.lower, definition.upper)
            own = rules_of(wanted[0], protocol)
            for column, metric in enumerate(wanted):
                reason = list_reasons(some, metric, own)
                of_block = table[:, column]
                replace_undefined(of_block, reason, own)
                if own.decimals is not None:
                    of_block = np.round(of_block, own.decimals)
                values[str(metric)][block] = of_block
                why[str(metric)][block] = reason
    return values, why


def compute_over_users(
    data: ListData,
    metrics: Sequence[Metric],
    protocol: Protocol,
    weights: Int64 | None = None,
) -> dict[str, float]:
    """Compute metrics of lists that have one value for all users.

    Parameters
    ----------
    data, metrics, protocol
        As of `compute_lists`. Users without a ranking (NaN scores, for instance) do not count.
    weights : int64 [n_users], optional
        How often each user counts: how often one was drawn in a resampling.

    Returns
    -------
    dict of str to float
        By the metric's name; NaN where it is undefined.
    """
    counted = _for_all_metrics(data, protocol) == 0
    if not counted.all():
        weights = counted.astype(np.int64) if weights is None else weights * counted
    found: dict[str, float] = {}
    for wanted in _variants(metrics):
        definition = wanted[0].definition
        row = wanted[0].compute_over_users(data, _cutoffs(wanted), weights)
        row = np.clip(row, definition.lower, definition.upper)
        own = rules_of(wanted[0], protocol)
        row = 100 * row if own.percent else row
        if own.decimals is not None:
            row = np.round(row, own.decimals)
        found |= {str(metric): float(value) for metric, value in zip(wanted, row, strict=True)}
    return {str(metric): found[str(metric)] for metric in metrics}


def list_reasons(data: ListData, metric: Metric, protocol: Protocol) -> UInt8:
    """Say for every user why a metric of lists is undefined; 0 where it is defined."""
    definition, cutoff = metric.definition, needed(metric.cutoff)
    result = _for_all_metrics(data, protocol)
    if "relevant" in definition.without:
        n_relevant = _relevant(data)
        _mark(result, n_relevant == 0, Reason.NO_RELEVANT)
        _mark(result, n_relevant < protocol.min_positives, Reason.FEW_RELEVANT)
    _mark(result, ~_any(data.lists.items >= 0), Reason.NO_LIST)
    for without in definition.without:
        if without != "relevant":
            reason, has = HAS[without]
            _mark(result, ~has(data, cutoff), reason)
    return result


def _for_all_metrics(data: ListData, protocol: Protocol) -> UInt8:
    """Apply the rules that do not depend on the metric."""
    result = np.zeros(data.n_users, np.uint8)
    flags = needed(data.lists.flags)
    raised = {flag: (flags & np.uint32(flag)) != 0 for flag in UserFlag}
    if protocol.users == "known":
        _mark(result, ~data.lists.known, Reason.UNKNOWN_USER)
    if not protocol.cold_start:
        _mark(result, ~raised[UserFlag.TRAINED], Reason.COLD_START)
    _mark(result, raised[UserFlag.NAN_SCORE], Reason.NAN_SCORE)
    _mark(result, raised[UserFlag.INFINITE_SCORE], Reason.INFINITE_SCORE)
    if protocol.constant_scores == "undefined":
        _mark(result, raised[UserFlag.CONSTANT_SCORES], Reason.CONSTANT_SCORES)
    return result


def _several(data: ListData, cutoff: int) -> Bool:
    several: Bool = np.count_nonzero(data.first(cutoff) >= 0, axis=1) >= 2
    return several


def _seen(data: ListData, cutoff: int) -> Bool:
    return _any(of_listed(needed(data.item_users) > 0, data.first(cutoff)))


def _hits(data: ListData, cutoff: int) -> Bool:
    return _any(relevant_places(data)[:, :cutoff])


def _history(data: ListData, cutoff: int) -> Bool:
    return np.diff(needed(data.train).indptr) > 0


def _baseline(data: ListData, cutoff: int) -> Bool:
    return _any(needed(data.baseline).items >= 0)


def _categories(data: ListData, cutoff: int) -> Bool:
    return _any(of_listed(_has_category(data), data.first(cutoff)))


def _history_categories(data: ListData, cutoff: int) -> Bool:
    train = needed(data.train)
    return _any_category(data, train, np.ones(len(train.items), bool))


def _relevant_categories(data: ListData, cutoff: int) -> Bool:
    return _any_category(data, needed(data.test), needed(data.relevant))


def _features(data: ListData, cutoff: int) -> Bool:
    features = needed(data.features)
    if not isinstance(features, np.ndarray):
        return np.ones(data.n_users, bool)
    lacking = data.keep("lacks features", lambda: _any(np.isnan(features)))
    return ~_any(of_listed(lacking, data.first(cutoff)))


HAS: dict[Without, tuple[Reason, Callable[[ListData, int], Bool]]] = {
    "pairs": (Reason.ONE_ITEM, _several),
    "seen": (Reason.NOTHING_SEEN, _seen),
    "hits": (Reason.NO_HIT, _hits),
    "history": (Reason.NO_HISTORY, _history),
    "baseline": (Reason.NO_BASELINE, _baseline),
    "categories": (Reason.NO_CATEGORY, _categories),
    "history_categories": (Reason.NO_HISTORY_CATEGORY, _history_categories),
    "relevant_categories": (Reason.NO_RELEVANT_CATEGORY, _relevant_categories),
    "features": (Reason.NO_FEATURES, _features),
}
"""Per word of `MetricDefinition.without`: the reason, and who has what is needed."""


def _has_category(data: ListData) -> Bool:
    return data.keep("has category", lambda: np.diff(needed(data.categories).indptr) > 0)


def _any_category(data: ListData, side: Side, counted: Bool) -> Bool:
    has = (_has_category(data)[side.items] & counted).astype(np.float64)
    return sum_by_user(side.user, has, data.n_users) > 0


def _relevant(data: ListData) -> Float64:
    relevant = needed(data.relevant).astype(np.float64)
    return sum_by_user(needed(data.test).user, relevant, data.n_users)


def _any(table: Bool) -> Bool:
    found: Bool = np.any(table, axis=1)
    return found


def _mark(result: UInt8, where: Bool, reason: Reason) -> None:
    result[where & (result == 0)] = reason


def _variants(metrics: Iterable[Metric]) -> list[list[Metric]]:
    """Put the cut-offs of the same metric together."""
    found: dict[tuple[object, ...], list[Metric]] = {}
    for metric in metrics:
        found.setdefault((metric.variant, metric.rules), []).append(metric)
    return list(found.values())


def _cutoffs(metrics: Iterable[Metric]) -> Int64:
    return np.array([needed(metric.cutoff) for metric in metrics], np.int64)


def _blocks(data: ListData) -> Iterator[slice]:
    size = max(BLOCK_PLACES // max(data.lists.items.shape[1], 1), 1)
    for first in range(0, data.n_users, size):
        yield slice(first, min(first + size, data.n_users))

"""Pairs of rows of whatever users, ordered by their predictions: counted in ranges of these.

Where the users are, a block becomes rows (metric, prediction, relevant rows, other rows). Spark
brings those of neighbouring predictions together; each range of predictions counts its own pairs,
and a relevant row is in order with all other rows of the lower ranges, too. So a few numbers of
each range are all that the driver needs.
"""

from __future__ import annotations

import dataclasses
import itertools
import operator
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from recometer.arrays import Array, Float64, Int32, Int64, begins
from recometer.measuring.rated import RatedTogether
from recometer.measuring.reasons import OF_ONE_USER
from recometer.metrics.registry import Metric
from recometer.spark import _frames, _rows
from recometer.spark._draws import Resamples
from recometer.spark._frames import Frame
from recometer.spark._sums import Sums

# Of a metric, by its place: a prediction, and how many rows that are relevant and others have it.
COLUMNS = ("k", "x", "h", "o")
ROWS_AT_ONCE = 2**14  # bounds the memory, which holds each row as often as users are drawn


def about_pairs(metrics: Sequence[Metric]) -> list[int]:
    """Return the places of the metrics about pairs of rows of different users."""
    return [place for place, metric in enumerate(metrics) if metric.name in _rows.ACROSS]


def rows_of(metrics: Sequence[Metric], rated: RatedTogether | None) -> dict[str, Array] | None:
    """Count the rows of some users by their predictions, if a metric reads that: `COLUMNS`."""
    places = about_pairs(metrics)
    if rated is None or not places:
        return None
    rows, parts = rated.predictions, []
    for place in places:
        counted = np.isin(rated.reasons[str(metrics[place])], OF_ONE_USER)[rows.user]
        values, which = np.unique(rows.predicted[counted] + 0.0, return_inverse=True)
        relevant = rows.kinds[counted]
        each = [np.bincount(which[kind], minlength=len(values)) for kind in (relevant, ~relevant)]
        parts.append([np.full(len(values), place, np.int32), values, *each])
    columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
    return dict(zip(COLUMNS, columns, strict=True))


def placed_rows(
    metrics: Sequence[Metric], rated: RatedTogether, places: Int64
) -> dict[str, Array] | None:
    """Return the rows of some users with their `places`: `COLUMNS`, and ``q``; None without any."""
    rows, parts = rated.predictions, []
    for place in about_pairs(metrics):
        counted = np.isin(rated.reasons[str(metrics[place])], OF_ONE_USER) & (places >= 0)
        own = np.flatnonzero(counted[rows.user])
        number = np.full(len(own), place, np.int32)
        relevant = rows.kinds[own].astype(np.int64)
        x = rows.predicted[own] + 0.0
        parts.append([number, x, relevant, 1 - relevant, places[rows.user[own]]])
    columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
    return dict(zip((*COLUMNS, "q"), columns, strict=True)) if len(columns[0]) else None


def with_pairs(sums: Sums, metrics: Sequence[Metric], rows: Frame) -> Sums:
    """Return sums with the pairs that `rows` of all users have, if a metric is about them."""
    if not about_pairs(metrics):
        return sums
    changed, at = dict(sums.metrics), _rows.SUMS.index("ordered")
    for place, pairs in _pairs(rows).items():
        name = str(metrics[place])
        own = changed[name].rows.copy()
        own[at : at + 2] = pairs
        changed[name] = dataclasses.replace(changed[name], rows=own)
    return dataclasses.replace(sums, metrics=changed)


def _pairs(rows: Frame) -> dict[int, tuple[float, float]]:
    """Return the pairs in order, and all pairs, by the metric's place."""
    each = rows.where("h IS NOT NULL").groupBy("k", "x").agg({"h": "sum", "o": "sum"})
    found = in_order(each.toDF(*COLUMNS))
    return {place: (float(pairs[0, 0]), float(pairs[1, 0])) for place, pairs in found.items()}


def in_order(rows: Frame, resamples: Resamples | None = None) -> dict[int, Float64]:
    """Return the pairs in order, and all pairs, by the metric's place: float64 [2, n].

    Parameters
    ----------
    rows
        `COLUMNS`; with `resamples` also ``q``, the place of the user or cluster.
    resamples
        How often the users count: n times. None counts each once.
    """

    def run(batches: Any) -> Any:
        return within_range(batches, None if resamples is None else resamples.table())

    spread = rows.repartitionByRange("k", "x").sortWithinPartitions("k", "x")
    return of_ranges(_frames.table_of(spread.mapInArrow(run, "k int, x double, sums binary")))


def of_ranges(table: Any) -> dict[int, Float64]:
    """Put all ranges together, which `within_range` returned."""
    ranges = sorted(zip(*(column.to_pylist() for column in table.columns), strict=True))
    found = {}
    for place, of_metric in itertools.groupby(ranges, operator.itemgetter(0)):
        ordered = relevant = lower = np.zeros(1)
        for _, _, content in of_metric:
            within, hits, others = np.frombuffer(content, np.float64).reshape(3, -1)
            ordered = ordered + within + hits * lower
            relevant, lower = relevant + hits, lower + others
        found[place] = np.stack([ordered, relevant * lower])
    return found


def within_range(batches: Iterable[Any], weights: Int32 | None) -> Iterator[Any]:
    """Return a row per metric: its lowest prediction, and the sums of a `_Range`.

    `weights` [n, n_units] say how often the users of each row count.
    """
    import pyarrow as pa

    found: dict[int, _Range] = {}
    for batch in batches:
        for start in range(0, batch.num_rows, ROWS_AT_ONCE):
            some = batch.slice(start, ROWS_AT_ONCE)
            k, x, hits, others = (some[name].to_numpy() for name in COLUMNS)
            times = None if weights is None else weights[:, some["q"].to_numpy()]
            for place in np.unique(k).tolist():
                own = k == place
                counts = [one[own].astype(np.float64)[np.newaxis] for one in (hits, others)]
                if times is not None:
                    counts = [one * times[:, own] for one in counts]
                if place not in found:
                    found[place] = _Range(float(x[own][0]), len(counts[0]))
                found[place].add(x[own], *counts)
    if found:
        ranges = list(found.values())
        arrays = [
            pa.array(list(found), pa.int32()),
            pa.array([one.lowest for one in ranges], pa.float64()),
            pa.array([one.sums().tobytes() for one in ranges], pa.binary()),
        ]
        yield pa.RecordBatch.from_arrays(arrays, ["k", "x", "sums"])


class _Range:
    """Rows of a range of predictions, the lowest first, in n countings."""

    def __init__(self, lowest: float, n: int) -> None:
        self.lowest = lowest
        self._sums = np.zeros((3, n))  # pairs in order, relevant rows, others
        self._last = (lowest, np.zeros(n), np.zeros(n))  # more rows may have this prediction

    def add(self, x: Float64, hits: Float64, others: Float64) -> None:
        """Add rows: float64 [n_rows], and [n, n_rows]."""
        first = np.flatnonzero(begins(x))
        each = [np.add.reduceat(one, first, axis=1) for one in (hits, others)]
        if x[0] == self._last[0]:
            for one, before in zip(each, self._last[1:], strict=True):
                one[:, 0] += before
        else:
            self._count(*(one[:, np.newaxis] for one in self._last[1:]))
        self._count(*(one[:, :-1] for one in each))
        self._last = (float(x[-1]), each[0][:, -1], each[1][:, -1])

    def sums(self) -> Float64:
        """Return what all rows add up to: float64 [3, n]."""
        self._count(*(one[:, np.newaxis] for one in self._last[1:]))
        self._last = (np.nan, *np.zeros((2, len(self._last[1]))))
        return self._sums

    def _count(self, hits: Float64, others: Float64) -> None:
        lower = self._sums[2][:, np.newaxis] + np.cumsum(others, axis=1) - others
        self._sums[0] += (hits * (lower + others / 2)).sum(axis=1)
        self._sums[1] += hits.sum(axis=1)
        self._sums[2] += others.sum(axis=1)

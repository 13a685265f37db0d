"""Intervals of means that are ratios: a second pass over the users, once the means are known.

A weighted mean is the ratio of two means, and so is that of sessions: of sums over each user.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from recometer.arrays import Float64
from recometer.measuring.reasons import entering
from recometer.metrics.registry import Metric
from recometer.protocol import Protocol
from recometer.spark._blocks import blocks
from recometer.spark._cells import Cells
from recometer.spark._columns import ids
from recometer.spark._frames import Frame
from recometer.spark._packing import added_up
from recometer.spark._ratios import Ratios
from recometer.spark._sums import weights_of
from recometer.stats import Interval
from recometer.stats.clusters import by_cluster
from recometer.stats.grouping import Grouped
from recometer.stats.means import interval_of

WEIGHTED, UNEQUAL = "mean is weighted", "clusters differ in size"


class Weighted(NamedTuple):
    """A mean that is a ratio."""

    number: int  # of the metric's columns
    metric: Metric
    rules: Protocol
    weights: str
    mean: float


def ratios_of(rows: Frame, asked: Sequence[Weighted], *, sessions: bool) -> dict[int, Ratios]:
    """Return what the means are ratios of, by the number of the metric's columns.

    Parameters
    ----------
    rows
        The users' values.
    asked
    sessions
        Whether users have several rows, which are added up.
    """
    columns = [f"{letter}{one.number}" for one in asked for letter in "mr"]
    read = rows.selectExpr("u", *dict.fromkeys(columns), "n_relevant", "n_candidates")
    adding = functools.partial(_adding, asked=asked, sessions=sessions)
    found = added_up(read, adding)
    return {one.number: found[f"{one.number} ratios"] for one in asked if found}


def interval_of_ratio(
    found: Ratios | None, rules: Protocol, weights: str, bounds: tuple[float, float]
) -> Interval:
    """Return the interval of a mean that is a ratio, as one machine."""
    kind, why = rules.interval, UNEQUAL if weights == "users" else WEIGHTED
    if found is None or not len(found.counts):
        grouped = Cells.of(np.zeros(0)).grouped()
    else:
        grouped = found.grouped()
        sizes = np.asarray(grouped.sizes)
        if (sizes == sizes[0]).all():
            grouped, why = unweighted(grouped), ""
    return interval_of(
        grouped,
        "auto" if kind == "gaffke" else kind,  # type: ignore[arg-type]
        bounds=bounds,
        confidence=rules.confidence,
        why=why,
        of_clusters=why == UNEQUAL,
    )


def _adding(batches: Any, *, asked: Sequence[Weighted], sessions: bool) -> Iterator[dict[str, Any]]:
    for column in whole_users(batches) if sessions else map(_columns, batches):
        found = {}
        for one in asked:
            skipping = one.rules.replace(missing="skip")
            rules = skipping if one.rules.missing == "nan" else one.rules
            values = column[f"m{one.number}"].astype(np.float64)
            values = entering(values, column[f"r{one.number}"].astype(np.uint8), rules)
            weight = weights_of(one.metric, column)[one.weights]
            counted = ~np.isnan(values) & (weight > 0)
            x, y = values[counted] * weight[counted], weight[counted]
            if sessions:
                users = column["u"][counted]
                x, y = by_cluster(x, users), by_cluster(y, users)
            found[f"{one.number} ratios"] = Ratios.of(x, y, one.mean)
        yield found


def whole_users(batches: Iterable[Any]) -> Iterator[Mapping[str, Any]]:
    """Return columns of rows as arrays, cut where users end; of a user there is a number."""
    for table in blocks(batches):
        column = _columns(table)
        column["u"] = np.unique(ids(table["u"]), return_inverse=True)[1]
        yield column


def _columns(batch: Any) -> dict[str, Any]:
    names = [name for name in batch.schema.names if name != "u"]
    return {name: np.asarray(batch[name]) for name in names}


def unweighted(found: Grouped) -> Grouped:
    """Return values whose weights are all the same as if they had none."""
    values: Float64 = found.values / found.sizes
    order = np.argsort(values, kind="stable")
    values, counts = values[order], found.counts[order]
    squares = float(counts @ (values - found.estimate) ** 2)
    above, below = counts[values > 0].sum(), counts[values < 0].sum()
    return Grouped(
        *(values, counts, 1.0, found.n, found.estimate, int(above), int(below), squares),
        found.exact,
    )

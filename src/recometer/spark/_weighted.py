"""Intervals of weighted means: a second pass over the users, once the mean is known."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from recometer.measuring.reasons import entering
from recometer.metrics.registry import Metric
from recometer.protocol import Protocol
from recometer.spark._frames import Frame
from recometer.spark._packing import added_up, together
from recometer.spark._ratios import Ratios
from recometer.spark._sums import weights_of
from recometer.stats import Interval
from recometer.stats.grouping import Grouped
from recometer.stats.means import interval_of

WHY = "mean is weighted"


def weighted_interval(
    rows: Frame,
    number: int,
    metric: Metric,
    rules: Protocol,
    weights: str,
    mean: float,
    bounds: tuple[float, float],
) -> Interval:
    """Return the interval of the weighted mean of the metric with this number, as one machine."""
    read = rows.selectExpr(f"m{number} AS m", f"r{number} AS r", "n_relevant", "n_candidates")
    adding = functools.partial(_adding, metric=metric, rules=rules, weights=weights, mean=mean)
    found = added_up(read, adding).get("0 ratios")
    if found is None or not len(found.counts):
        return Interval.unknown(rules.confidence, 0, "No user has a value.")
    kind, grouped = rules.interval, found.grouped()
    sizes = np.asarray(grouped.sizes)
    why = WHY
    if (sizes == sizes[0]).all():
        grouped, why = _unweighted(grouped), ""
    return interval_of(
        grouped,
        "auto" if kind == "gaffke" else kind,  # type: ignore[arg-type]
        bounds=bounds,
        confidence=rules.confidence,
        why=why,
    )


def _adding(
    batches: Any, *, metric: Metric, rules: Protocol, weights: str, mean: float
) -> dict[str, Any]:
    parts = []
    skipping = rules.replace(missing="skip") if rules.missing == "nan" else rules
    for batch in batches:
        column = {
            name: batch.column(name).to_numpy(zero_copy_only=False) for name in batch.schema.names
        }
        values = entering(column["m"].astype(np.float64), column["r"].astype(np.uint8), skipping)
        weight = weights_of(metric, column)[weights]
        counted = ~np.isnan(values) & (weight > 0)
        x, y = values[counted] * weight[counted], weight[counted]
        parts.append({"0 ratios": Ratios.of(x, y, mean)})
    return together(parts) if parts else {}


def _unweighted(found: Grouped) -> Grouped:
    """Return values whose weights are all the same as if they had none."""
    values = found.values / found.sizes
    order = np.argsort(values, kind="stable")
    values, counts = values[order], found.counts[order]
    squares = float(counts @ (values - found.estimate) ** 2)
    above, below = counts[values > 0].sum(), counts[values < 0].sum()
    return Grouped(
        values, counts, 1.0, found.n, found.estimate, int(above), int(below), squares, True
    )

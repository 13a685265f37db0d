"""Errors of predicted ratings over the rows of all users, from sums of the users' rows."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from recometer.arrays import Float64, Int64, UInt8
from recometer.errors import InputError
from recometer.measuring.rated import RatedTogether
from recometer.measuring.reasons import OF_ONE_USER
from recometer.metrics.registry import Metric
from recometer.protocol import Protocol

# What the functions of `recometer.metrics.over_rows` read, by metric; of pairs two sums each.
SUMS = ("n_rows", "squared_error", "absolute_error", "surprisal", "pairs", "concordant")
SPREADS = ("actual", "unexplained")  # means and squared deviations
READ = {
    "rmse": ("squared_error",),
    "mse": ("squared_error",),
    "mae": ("absolute_error",),
    "log_loss": ("surprisal",),
    "fcp": ("pairs",),
    "r2": ("squared_error", "actual"),
    "explained_variance": ("actual", "unexplained"),
}
SIZE = len(SUMS) + 2 * len(SPREADS)


def check(metric: Metric) -> None:
    """Refuse a metric over rows that does not follow from sums of users.

    Raises
    ------
    InputError
        If the metric needs all rows at once.
    """
    averaged = metric.name == "fcp" and dict(metric.parameters).get("averaged")
    if metric.definition.over_rows is not None and (metric.name not in READ or averaged):
        raise InputError(
            f"The metric {str(metric)!r} is about pairs of rows of all users, which is not "
            "computed on Spark. Hint: collect a sample of the pairs for recometer.evaluate."
        )


def row_sums(metric: Metric, rated: RatedTogether | None, reasons: UInt8) -> Float64:
    """Add up the rows of the users who count, as far as the metric reads them: float64 [SIZE]."""
    found = np.zeros(SIZE)
    if rated is None or metric.name not in READ or metric.definition.over_rows is None:
        return found
    rows, read = rated.predictions, READ[metric.name]
    weight = np.isin(reasons, OF_ONE_USER).astype(np.float64)
    found[0] = weight @ rows.n_rows
    for name in ("squared_error", "absolute_error", "surprisal"):
        if name in read:
            found[SUMS.index(name)] = weight @ getattr(rows, name)
    if "pairs" in read:
        found[SUMS.index("pairs") : SUMS.index("concordant") + 1] = [
            weight @ one for one in rows.pairs
        ]
    spreads = {"actual": (rows.mean_actual, rows.squared_deviation)} if "actual" in read else {}
    if "unexplained" in read:
        spreads["unexplained"] = rows.unexplained
    for name, (means, deviations) in spreads.items():
        at = len(SUMS) + 2 * SPREADS.index(name)
        found[at : at + 2] = _spread(means, deviations, weight * rows.n_rows, weight)
    return found


def together(parts: Sequence[Float64]) -> Float64:
    """Put the sums of several parts together."""
    table = np.stack(parts)
    found: Float64 = table.sum(axis=0)
    for at in range(len(SUMS), SIZE, 2):
        ones = np.ones(len(table))
        found[at : at + 2] = _spread(table[:, at], table[:, at + 1], table[:, 0], ones)
    return found


@dataclasses.dataclass(frozen=True, eq=False)
class OverRows:
    """Sums of all rows, read as if they were those of one user; see `measured.Together`."""

    sums: Float64
    n_users: int = 1
    size: int = 1

    def users(self, chosen: Int64) -> OverRows:
        """Return this object, since there are no users to choose from."""
        return self

    def for_all(self, metrics: Sequence[Metric], rules: Protocol, weights: Int64 | None) -> Float64:
        """Return the value over the rows of all users."""
        one = np.ones(1)
        return np.array([metric.compute_over_rows(self, one) for metric in metrics])

    def __getattr__(self, name: str) -> Any:
        """Return what `Predictions` has of each user, of all together."""
        if name in SUMS and name not in ("pairs", "concordant"):
            return self.sums[SUMS.index(name)][np.newaxis]
        at = {"mean_actual": 6, "squared_deviation": 7}.get(name)
        if at is not None:
            return self.sums[at][np.newaxis]
        if name == "pairs":
            return self.sums[4:5], self.sums[5:6]
        if name == "unexplained":
            return self.sums[8:9], self.sums[9:10]
        raise AttributeError(name)


def _spread(
    means: Float64, deviations: Float64, counts: Float64, weights: Float64
) -> tuple[float, float]:
    """Return the mean of all, and the squared deviations from it."""
    some = np.flatnonzero(counts)
    if not len(some):
        return 0.0, 0.0
    base = means[some[0]]  # so that equal ones leave nothing, not even rounding
    shifted = np.where(counts > 0, means - base, 0.0)
    mean = float(counts @ shifted) / float(counts.sum())
    squares = float(weights @ deviations + counts @ (shifted - mean) ** 2)
    return float(base + mean), squares

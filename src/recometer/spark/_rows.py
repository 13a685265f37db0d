"""Metrics of predicted ratings over the rows of all users, from sums of the users' rows."""

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

# What the functions of `recometer.metrics.over_rows` read, by metric. The fields of `Predictions`
# that have two parts have two sums.
SUMS = (
    *("n_rows", "squared_error", "absolute_error", "surprisal", "pairs", "concordant"),
    *("with_ordered", "with_others", "ordered", "compared"),
)
SPREADS = ("actual", "unexplained")  # means and squared deviations
READ = {
    "rmse": ("squared_error",),
    "mse": ("squared_error",),
    "mae": ("absolute_error",),
    "log_loss": ("surprisal",),
    "fcp": ("pairs", "having_pairs"),
    "r2": ("squared_error", "actual"),
    "explained_variance": ("actual", "unexplained"),
}
BOTH = {"pairs": "pairs", "having_pairs": "with_ordered", "across": "ordered"}
SIZE = len(SUMS) + 2 * len(SPREADS)
ACROSS = ("rated_roc_auc",)  # about pairs of rows of different users: see `_across`


def check(metric: Metric) -> None:
    """Refuse a metric over rows that does not follow from sums of users.

    Raises
    ------
    InputError
        If it is not one of recometer's own.
    """
    if metric.definition.over_rows is not None and metric.name not in {*READ, *ACROSS}:
        raise InputError(
            f"The metric {str(metric)!r} has a value over the rows of all users, and does not say "
            "how it adds up from parts of them. Hint: collect the pairs, or a sample of them, for "
            "recometer.evaluate; or register the metric without over_rows=, for a value per user."
        )


def row_sums(
    metric: Metric, rated: RatedTogether | None, reasons: UInt8, weights: Int64 | None = None
) -> Float64:
    """Add up the rows of the users who count, as far as the metric reads them: float64 [SIZE].

    `weights`, int64 [n_users], say how often each user counts.
    """
    found = np.zeros(SIZE)
    if rated is None or metric.name not in READ or metric.definition.over_rows is None:
        return found
    rows, read = rated.predictions, READ[metric.name]
    weight = np.isin(reasons, OF_ONE_USER).astype(np.float64)
    if weights is not None:
        weight *= weights
    found[0] = weight @ rows.n_rows
    for name in ("squared_error", "absolute_error", "surprisal"):
        if name in read:
            found[SUMS.index(name)] = weight @ getattr(rows, name)
    for name in BOTH.keys() & read:
        at = SUMS.index(BOTH[name])
        found[at : at + 2] = [weight @ one for one in getattr(rows, name)]
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


def added(sums: Float64, centre: Float64) -> Float64:
    """Return the sums in a form that adds up: means and squares are about those of `centre`."""
    found = sums.copy()
    for at in range(len(SUMS), SIZE, 2):
        shift = sums[at] - centre[at]
        found[at : at + 2] = sums[0] * shift, sums[at + 1] + sums[0] * shift**2
    return found


def from_added(total: Float64, centre: Float64) -> Float64:
    """Return the sums that `added` was given, of all parts together."""
    found = total.copy()
    for at in range(len(SUMS), SIZE, 2):
        shift = total[at] / total[0] if total[0] > 0 else 0.0
        found[at : at + 2] = centre[at] + shift, max(total[at + 1] - total[at] * shift, 0.0)
    return found


@dataclasses.dataclass(frozen=True, eq=False)
class OverRows:
    """Sums of all rows, read as if they were those of one user; see `measured.Together`."""

    sums: Float64
    n_users: int = 1
    size: int = 1

    @classmethod
    def of_pairs(cls, pairs: Float64) -> OverRows:
        """Return the pairs of `_across` that are in order, and all pairs."""
        sums = np.zeros(SIZE)
        sums[SUMS.index("ordered") :][:2] = pairs
        return cls(sums)

    def users(self, chosen: Int64) -> OverRows:
        """Return this object, since there are no users to choose from."""
        return self

    def for_all(self, metrics: Sequence[Metric], rules: Protocol, weights: Int64 | None) -> Float64:
        """Return the value over the rows of all users."""
        one = np.ones(1)
        return np.array([metric.compute_over_rows(self, one) for metric in metrics])

    def across(self, weights: Float64) -> tuple[float, float]:
        """Return the pairs of `_across`."""
        ordered, compared = self.sums[SUMS.index("ordered") :][:2].tolist()
        return ordered, compared

    def __getattr__(self, name: str) -> Any:
        """Return what `Predictions` has of each user, of all together."""
        spreads = len(SUMS)
        at = {"mean_actual": spreads, "squared_deviation": spreads + 1}.get(name)
        if name in BOTH or name == "unexplained":
            at = SUMS.index(BOTH[name]) if name in BOTH else spreads + 2
            return self.sums[at : at + 1], self.sums[at + 1 : at + 2]
        if at is None and name in SUMS:
            at = SUMS.index(name)
        if at is None:
            raise AttributeError(name)
        return self.sums[at : at + 1]


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

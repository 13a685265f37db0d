"""Pairs of values of users, counted so that parts can be put together: for ratios of means."""

from __future__ import annotations

import dataclasses

import numpy as np

from recometer.arrays import Float64, Int64
from recometer.spark._cells import MOST_VALUES, leading
from recometer.stats.grouping import Grouped

RESIDUAL_BITS = 22  # sign, exponent and 10 bits of the fraction


@dataclasses.dataclass(frozen=True, eq=False)
class Ratios:
    """Pairs (x, y) in cells of about the same residual x - ratio · y.

    Attributes
    ----------
    x, y : float64 [n_cells]
        Their means.
    counts : int64 [n_cells]
    squares
        Sum of the squared residuals.
    ratio
        Sum of all x divided by that of all y.
    exact
        Whether all pairs of a cell are the same.
    """

    x: Float64
    y: Float64
    counts: Int64
    squares: float
    ratio: float
    exact: bool = True

    @classmethod
    def of(cls, x: Float64, y: Float64, ratio: float) -> Ratios:
        """Count pairs."""
        squares = float(np.square(x - ratio * y).sum())
        found = cls(x, y, np.ones(len(x), np.int64), squares, ratio)
        return found._distinct()._narrowed()

    @classmethod
    def together(cls, parts: list[Ratios]) -> Ratios:
        """Put several parts together."""
        x, y, counts = (
            np.concatenate([getattr(part, name) for part in parts]) for name in ("x", "y", "counts")
        )
        squares = float(sum(part.squares for part in parts))
        exact = all(part.exact for part in parts)
        found = cls(x, y, counts, squares, parts[0].ratio, exact)
        return (found._distinct() if exact else found)._narrowed()

    def grouped(self) -> Grouped:
        """Return the pairs as the statistics of ratios read them."""
        n, counts = int(self.counts.sum()), self.counts.astype(np.float64)
        return Grouped(self.x, counts, self.y, n, self.ratio, 0, 0, self.squares, self.exact)

    def _distinct(self) -> Ratios:
        """Count each pair once."""
        pairs, which = np.unique(np.column_stack([self.x, self.y]), axis=0, return_inverse=True)
        weights = self.counts.astype(np.float64)
        counts = np.bincount(which.ravel(), weights, minlength=len(pairs)).astype(np.float64)
        return dataclasses.replace(self, x=pairs[:, 0], y=pairs[:, 1], counts=_whole(counts))

    def _narrowed(self) -> Ratios:
        """Join the pairs whose residuals have the same leading bits, where there are many."""
        if len(self.counts) <= MOST_VALUES:
            return self
        residuals = self.x - self.ratio * self.y + 0.0
        keys, cell = np.unique(leading(residuals, RESIDUAL_BITS), return_inverse=True)
        counts, x, y = (
            np.bincount(cell, self.counts * column, minlength=len(keys)).astype(np.float64)
            for column in (1.0, self.x, self.y)
        )
        return Ratios(x / counts, y / counts, _whole(counts), self.squares, self.ratio, False)


def _whole(counts: Float64) -> Int64:
    found: Int64 = np.rint(counts).astype(np.int64)
    return found

"""Values of users counted by how large they are, so that parts can be put together."""

from __future__ import annotations

import dataclasses

import numpy as np

from recometer.arrays import Array, Float64, Int64
from recometer.stats.grouping import SAME, Grouped

# Different values that are kept as they are; beyond that, those with the same leading bits are one
# cell. The number of bits is the largest that leaves at most this number of cells.
MOST_VALUES = 8_192
ALL_BITS = 64
FEWER_BITS = (52, 46, 42, 38, 35, 32, 30, 28, 26, 25, 24, 23, 22, 21, 20, 18, 16, 12)


@dataclasses.dataclass(frozen=True, eq=False)
class Cells:
    """Values in cells: their number, sum, smallest and largest one.

    Attributes
    ----------
    low, high, total : float64 [n_cells]
        By ascending values; cells do not overlap.
    counts : int64 [n_cells]
    squares
        Sum of the squared deviations of all values from their mean.
    bits
        How many leading bits the values of a cell have in common, at least.
    """

    low: Float64
    high: Float64
    total: Float64
    counts: Int64
    squares: float
    bits: int = ALL_BITS

    @classmethod
    def of(cls, values: Float64) -> Cells:
        """Count finite values; NaN is left out."""
        known = values[~np.isnan(values)] + 0.0  # no negative zero
        distinct, counts = np.unique(known, return_counts=True)
        squares = float(np.square(known - known.mean()).sum()) if len(known) else 0.0
        found = cls(distinct, distinct, distinct * counts, counts.astype(np.int64), squares)
        return found._narrowed()

    @classmethod
    def together(cls, parts: list[Cells]) -> Cells:
        """Put the cells of several parts together, in their order."""
        counts = np.array([float(part.n) for part in parts])
        means = np.array([part.mean if part.n else 0.0 for part in parts])
        n = counts.sum()
        mean = float(counts @ means) / n if n else 0.0
        squares = float(sum(part.squares for part in parts) + counts @ (means - mean) ** 2)
        names = ("low", "high", "total", "counts")
        columns = {name: np.concatenate([getattr(part, name) for part in parts]) for name in names}
        bits = min(part.bits for part in parts)
        keys, cell = np.unique(leading(columns["low"], bits), return_inverse=True)
        return _joined(columns, cell, len(keys), squares, bits)._narrowed()

    @property
    def n(self) -> int:
        """Number of values."""
        return int(self.counts.sum())

    @property
    def mean(self) -> float:
        """Return the mean; NaN without a value."""
        return float(self.total.sum()) / self.n if self.n else float("nan")

    def grouped(self) -> Grouped:
        """Return the values as the statistics of means read them."""
        n, counts = self.n, self.counts.astype(np.float64)
        if not n:
            return Grouped(counts, counts, 1.0, 0, np.nan, 0, 0, 0.0, True)
        zero = SAME * float(np.abs([self.low[0], self.high[-1]]).max())
        above, below = counts[self.low > zero].sum(), counts[self.high < -zero].sum()
        exact = bool((self.low == self.high).all())
        values = self.low if exact else self.total / counts
        squares = float(counts @ (values - self.mean) ** 2) if exact else self.squares
        return Grouped(values, counts, 1.0, n, self.mean, int(above), int(below), squares, exact)

    def _narrowed(self) -> Cells:
        """Join values with the same leading bits where there are many."""
        if len(self.counts) <= MOST_VALUES:
            return self
        names = ("low", "high", "total", "counts")
        columns: dict[str, Array] = {name: getattr(self, name) for name in names}
        for bits in FEWER_BITS:
            keys, cell = np.unique(leading(self.low, bits), return_inverse=True)
            if bits < self.bits and len(keys) <= MOST_VALUES:
                break
        return _joined(columns, cell, len(keys), self.squares, bits)


def leading(values: Float64, bits: int) -> Int64:
    """Return numbers that ascend with the values, the same for those with the same leading bits.

    These bits are the sign, the exponent and the fraction.
    """
    whole = np.ascontiguousarray(values).view(np.int64)
    size = (whole & np.int64(2**63 - 1)) >> np.int64(64 - bits)
    # Below 0 the larger number is the smaller value, and is not the cell of 0.
    found: Int64 = np.where(values < 0, -size - 1, size)
    return found


def _joined(columns: dict[str, Array], cell: Int64, n: int, squares: float, bits: int) -> Cells:
    low, high = np.full(n, np.inf), np.full(n, -np.inf)
    np.minimum.at(low, cell, columns["low"])
    np.maximum.at(high, cell, columns["high"])
    total = np.bincount(cell, columns["total"], minlength=n)
    counts = np.bincount(cell, columns["counts"], minlength=n)
    return Cells(
        low, high, total.astype(np.float64), np.rint(counts).astype(np.int64), squares, bits
    )

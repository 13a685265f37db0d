"""What else parts of the users add up to: the largest numbers, and rows as long as they are few."""

from __future__ import annotations

import dataclasses

import numpy as np

from recometer.arrays import Array, Float64


@dataclasses.dataclass(frozen=True, eq=False)
class Largest:
    """The largest numbers of all parts: float64 [n]."""

    values: Float64

    @classmethod
    def together(cls, parts: list[Largest]) -> Largest:
        """Put several parts together."""
        return cls(np.max([part.values for part in parts], axis=0))


@dataclasses.dataclass(frozen=True, eq=False)
class FewRows:
    """Rows that are kept while there are at most `most` of them; otherwise only their sums.

    Attributes
    ----------
    keys, rows
        The sort keys of each row, [n_kept, n_keys], and its numbers, [n_kept, n_columns].
    n, squares, most
        The number of all rows, the sum of their squared numbers, and how many rows are kept.
    """

    keys: Array
    rows: Float64
    n: int
    squares: float
    most: int

    @classmethod
    def of(cls, keys: Array, rows: Float64, most: int) -> FewRows:
        """Keep rows."""
        return cls(keys, rows, len(rows), float((rows**2).sum()), most)._limited()

    @classmethod
    def together(cls, parts: list[FewRows]) -> FewRows:
        """Put several parts together."""
        kept = [part for part in parts if len(part.rows)] or parts[:1]
        return cls(
            np.concatenate([part.keys for part in kept]),
            np.concatenate([part.rows for part in kept]),
            sum(part.n for part in parts),
            sum(part.squares for part in parts),
            parts[0].most,
        )._limited()

    def sorted(self) -> Float64:
        """Return the rows in the order of their keys."""
        return self.rows[np.lexsort(self.keys.T[::-1])]

    def _limited(self) -> FewRows:
        if self.n <= self.most:
            return self
        return dataclasses.replace(self, keys=self.keys[:0], rows=self.rows[:0])

"""Users who are drawn from a seed, by their places among all: so that no draw travels."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import numpy as np

from recometer.arrays import Int32, Int64
from recometer.stats.intervals import draws


@dataclasses.dataclass(frozen=True)
class Resamples:
    """Draws of users, or of clusters of them: first all of them, then n resamples."""

    n_units: int
    n: int
    seed: int

    def weights(self, places: Int64) -> Iterator[Int64]:
        """Yield how often users count: once, then as often as drawn; the place -1: never."""
        known = places >= 0
        yield known.astype(np.int64)
        for counts in draws(self.n_units, self.n, self.seed):
            yield np.where(known, counts[places], 0)

    def table(self) -> Int32:
        """Return how often all units count: int32 [1 + n, n_units]."""
        found = np.empty((1 + self.n, self.n_units), np.int32)
        for row, counts in zip(found, self.weights(np.arange(self.n_units)), strict=True):
            row[:] = counts
        return found

"""What the users of several models add up to, by pairs of models: for `comparing.compare`.

A first pass over the users counts their differences, and a second one, once the means are known,
what intervals of ratios of means need. Users who belong together (sessions of one user, or other
clusters) are in one partition, where they are added up.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from recometer.arrays import Array, Float64
from recometer.errors import InputError
from recometer.measuring.reasons import entering
from recometer.protocol import Protocol
from recometer.spark._blocks import blocks
from recometer.spark._cells import Cells
from recometer.spark._columns import ids
from recometer.spark._few import FewRows, Largest
from recometer.spark._frames import Frame
from recometer.spark._packing import added_up
from recometer.spark._ratios import Ratios
from recometer.spark._weighted import unweighted
from recometer.stats import Interval, Tukey
from recometer.stats.clusters import by_cluster
from recometer.stats.effect_sizes import ratio_of_grouped
from recometer.stats.grouping import Grouped
from recometer.stats.several import RESAMPLED_UP_TO, differing_rows, tukey_of

NO_RATIO = "The mean that the difference is relative to is not above 0."
NOBODY = "No user has both values."


@dataclasses.dataclass(frozen=True, eq=False)
class Compared:
    """What is compared, which travels to the executors.

    Attributes
    ----------
    each
        The numbers of a metric and of two models, for each row of the comparison.
    rules
        By metric.
    shuffled
        For Tukey's test, the numbers of the metrics, and those of the models.
    clustered
        Whether the column ``g`` says which users belong together.
    names
        The columns that name a user, by which rows are sorted.
    """

    each: Sequence[tuple[int, int, int]]
    rules: Sequence[Protocol]
    shuffled: tuple[Sequence[int], Sequence[int]]
    clustered: bool
    names: Sequence[str]


@dataclasses.dataclass(frozen=True, eq=False)
class Differences:
    """The sums of all users, of `Compared`."""

    asked: Compared
    sums: Mapping[str, Any]

    @classmethod
    def of(cls, joined: Frame, asked: Compared) -> Differences:
        """Add up the differences of all users.

        Parameters
        ----------
        joined
            A row per user with a column for each model and metric, of its values (``m0_1``) and
            reasons (``r0_1``), missing where a model does not have the user.
        asked
        """
        first = added_up(joined, functools.partial(_first, asked=asked))
        if not first:
            raise InputError("The models have no users in common. Hint: were they evaluated alike?")
        centres = {
            key: one for number in range(len(asked.each)) for key, one in _centres(number, first)
        }
        scales = {
            metric: float(first[f"{metric} largest"].values[0]) for metric in asked.shuffled[0]
        }
        second = added_up(
            joined, functools.partial(_second, asked=asked, centres=centres, scales=scales)
        )
        return cls(asked, {**first, **second})

    @property
    def n_rows(self) -> tuple[int, int]:
        """The numbers of all users, and of clusters of these."""
        n_users, n_clusters = self.sums["all sums"].tolist()
        return int(n_users), int(n_clusters)

    def cells(self, number: int) -> Cells:
        """Return the differences of a row of the comparison."""
        found: Cells = self.sums[f"{number} cells"]
        return found

    def totals(self, number: int) -> Float64:
        """Return the sums of the values of both models, and how many have only one of them."""
        found: Float64 = self.sums[f"{number} sums"]
        return found

    def clusters(self, number: int) -> tuple[Grouped, Grouped] | None:
        """Return the differences of clusters and of their sums, as `compare_grouped` takes them."""
        if not self.asked.clustered:
            return None
        sums = self.sums[f"{number} of_sums"].grouped()
        units = self.sums[f"{number} units"].grouped()
        sizes = np.asarray(units.sizes)
        if (sizes == sizes[0]).all():
            return unweighted(units), sums
        return dataclasses.replace(units, n_above=sums.n_above, n_below=sums.n_below), sums

    def relative(self, number: int, confidence: float) -> tuple[float, Interval]:
        """Return the ratio of the means, minus 1, with its interval."""
        found = self.sums.get(f"{number} ratios")
        if found is None:
            n = self.cells(number).n if not self.asked.clustered else self._n_clusters(number)
            return np.nan, Interval.unknown(confidence, n, NO_RATIO if n else NOBODY)
        return ratio_of_grouped(found.grouped(), confidence)

    def tukey(self, metric: int, *, alpha: float, seed: int) -> Tukey:
        """Return Tukey's test of a metric."""
        n, *totals = self.sums[f"{metric} of_all"].tolist()
        if n < 2:
            raise InputError(
                f"{int(n)} users have a value for every model; at least two are needed."
            )
        rows = self.sums[f"{metric} rows"]
        means = np.array(totals) / n
        return tukey_of(int(n), means, rows.n, rows.squares, rows.sorted(), alpha=alpha, seed=seed)

    def _n_clusters(self, number: int) -> int:
        return int(self.sums[f"{number} of_sums"].n)


@dataclasses.dataclass(frozen=True, eq=False)
class _Users:
    """Some users with their values, whole clusters at a time."""

    table: Any
    asked: Compared
    clusters: Array | None

    def values(self, model: int, metric: int) -> Float64:
        """Return the values of the users who count in the mean; NaN for the others."""
        column = np.asarray(self.table[f"m{model}_{metric}"]).astype(np.float64)
        codes = self.table[f"r{model}_{metric}"]
        there = np.asarray(codes.is_valid())
        reasons = np.asarray(codes.fill_null(1)).astype(np.uint8)
        found = entering(column, reasons, self.asked.rules[metric])
        if np.isinf(found).any():
            raise InputError("A value is infinite: differences have no mean.")
        return np.where(there, found, np.nan)

    def pair(self, metric: int, one: int, other: int) -> tuple[Float64, Float64, Any]:
        """Return the values of the users who have both, and which these are."""
        x, y = self.values(one, metric), self.values(other, metric)
        both = ~(np.isnan(x) | np.isnan(y))
        return x[both], y[both], both

    def summed(self, values: Float64, chosen: Any) -> Float64:
        """Return values of some users, added up over clusters where there are some."""
        return values if self.clusters is None else by_cluster(values, self.clusters[chosen])

    def all_models(self, metric: int) -> tuple[Float64, Array]:
        """Return the values of the users whom all models have, [n, n_models], and who these are."""
        table = np.column_stack([self.values(one, metric) for one in self.asked.shuffled[1]])
        chosen = ~np.isnan(table).any(axis=1)
        return table[chosen], chosen

    def units(self, table: Float64, chosen: Array) -> Float64:
        """Return the values of some users, those of a cluster added up."""
        if self.clusters is None or not len(table):
            return table
        return np.column_stack([self.summed(column, chosen) for column in table.T])

    def few_rows(self, metric: int, largest: float) -> FewRows:
        """Return the rows (of users, or of clusters) that Tukey's test may draw orders of."""
        table, chosen = self.all_models(metric)
        centred, which = differing_rows(self.units(table, chosen), largest)
        names = ["g"] if self.asked.clustered else list(self.asked.names)
        some = which if len(centred) <= RESAMPLED_UP_TO else np.zeros(len(which), bool)
        own = [ids(self.table[name])[chosen] for name in names]
        if self.asked.clustered:
            own = [np.unique(own[0])]
        keys = _keys([column[some] for column in own])
        return FewRows.of(keys, centred, RESAMPLED_UP_TO)


def _keys(columns: Sequence[Array]) -> Array:
    """Return ids as columns that bytes can hold: integers, or texts of one width."""
    if all(column.dtype != object for column in columns):
        return np.column_stack(columns)
    texts = [
        column.astype(str) if column.dtype == object else _padded(column) for column in columns
    ]
    return np.column_stack(texts)


def _padded(column: Array) -> Array:
    """Return integers as texts in the same order."""
    shifted = column.astype(np.int64).view(np.uint64) ^ np.uint64(1 << 63)
    return np.array([f"{one:020d}" for one in shifted.tolist()], dtype="U20")


def _users(batches: Any, asked: Compared) -> Iterator[_Users]:
    for table in blocks(batches, user="g" if asked.clustered else "u"):
        one = table.combine_chunks()
        codes = np.unique(ids(one["g"]), return_inverse=True)[1] if asked.clustered else None
        yield _Users(one, asked, codes)


def _first(batches: Any, *, asked: Compared) -> Iterator[dict[str, Any]]:
    for users in _users(batches, asked):
        n_clusters = 0 if users.clusters is None else int(users.clusters.max(initial=-1)) + 1
        found: dict[str, Any] = {
            "all sums": np.array([users.table.num_rows, n_clusters], np.float64)
        }
        for key, (metric, one, other) in enumerate(asked.each):
            x, y, both = users.pair(metric, one, other)
            known = [~np.isnan(users.values(model, metric)) for model in (one, other)]
            only = [np.count_nonzero(mask & ~both) for mask in known]
            found[f"{key} sums"] = np.array([x.sum(), y.sum(), *only], np.float64)
            found[f"{key} cells"] = Cells.of(x - y)
            if asked.clustered:
                of_clusters = users.summed(x, both), users.summed(y, both)
                found[f"{key} of_sums"] = Cells.of(of_clusters[0] - of_clusters[1])
        for metric in asked.shuffled[0]:
            table, chosen = users.all_models(metric)
            found[f"{metric} of_all"] = np.array([len(table), *table.sum(axis=0)], np.float64)
            largest = np.abs(users.units(table, chosen)).max(initial=0.0)
            found[f"{metric} largest"] = Largest(np.array([largest]))
        yield found


def _centres(key: int, first: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    """Return the ratios that residuals are about: of the means, and the difference of clusters."""
    x, y = first[f"{key} sums"][:2].tolist()
    if y > 0:
        yield f"{key} ratios", x / y
    n = first[f"{key} cells"].n
    if f"{key} of_sums" in first and n:
        yield f"{key} units", (x - y) / n


def _second(
    batches: Any,
    *,
    asked: Compared,
    centres: Mapping[str, float],
    scales: Mapping[int, float],
) -> Iterator[dict[str, Any]]:
    for users in _users(batches, asked):
        found: dict[str, Any] = {}
        for key, (metric, one, other) in enumerate(asked.each):
            x, y, both = users.pair(metric, one, other)
            sums = users.summed(x, both), users.summed(y, both)
            ratio, difference = (centres.get(f"{key} {kind}") for kind in ("ratios", "units"))
            if ratio is not None:
                found[f"{key} ratios"] = Ratios.of(*sums, ratio)
            if difference is not None:
                sizes = users.summed(np.ones(len(x)), both)
                found[f"{key} units"] = Ratios.of(sums[0] - sums[1], sizes, difference)
        for metric in asked.shuffled[0]:
            found[f"{metric} rows"] = users.few_rows(metric, scales[metric])
        yield found

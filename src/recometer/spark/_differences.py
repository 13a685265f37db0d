"""What the users of several models add up to, by pairs of models: for `comparing.compare`.

A first pass over the users counts their differences, and a second one, once the means are known,
what intervals of ratios of means need. Users who belong together (sessions of one user, or other
clusters) are in one partition, where they are added up.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

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
from recometer.stats import Tukey
from recometer.stats.clusters import by_cluster
from recometer.stats.grouping import Grouped
from recometer.stats.runs import Moments, RunMoments, mean_of_runs
from recometer.stats.several import RESAMPLED_UP_TO, differing_rows, tukey_of


class Each(NamedTuple):
    """What is added up over users: differences of two models by a metric, or values of one.

    Attributes
    ----------
    metric, model, other
        Their numbers. Without another model, `other` is None, and differences are values.
    everyone
        Whether only the users count whom all ranked models have a value of.
    """

    metric: int
    model: int
    other: int | None
    everyone: bool = False


@dataclasses.dataclass(frozen=True, eq=False)
class Compared:
    """What is compared, which travels to the executors.

    Attributes
    ----------
    each
        A row of the comparison, or a mean.
    rules
        By metric and model.
    n_runs
        The number of runs (seeds) of each model.
    ranked
        The numbers of the models that are ranked.
    shuffled
        For Tukey's test, the numbers of the metrics, and those of the models.
    clustered
        Whether the column ``g`` says which users belong together.
    names
        The columns that name a user, by which rows are sorted.
    """

    each: Sequence[Each]
    rules: Sequence[Sequence[Protocol]]
    n_runs: Sequence[int]
    ranked: Sequence[int]
    shuffled: tuple[Sequence[int], Sequence[int]]
    clustered: bool
    names: Sequence[str]

    def has_seeds(self, one: Each) -> bool:
        """Return whether two models are compared one of which has several runs."""
        if one.other is None:
            return False
        return max(self.n_runs[one.model], self.n_runs[one.other]) > 1


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
            A row per user with a column for each model, run and metric, of its values (``m0_0_1``)
            and reasons (``r0_0_1``), missing where a model does not have the user.
        asked
        """
        first = cls.only_first(joined, asked).sums
        if not first:
            raise InputError("The models have no users in common. Hint: were they evaluated alike?")
        centres: dict[str, Any] = {}
        for number, each in enumerate(asked.each):
            centres |= dict(_centres(number, first))
            if asked.has_seeds(each):
                means = list(_means_of_runs(first, number, asked.n_runs[each.model]))
                centres[f"{number} of_runs"] = means
        scales = {
            metric: float(first[f"{metric} largest"].values[0]) for metric in asked.shuffled[0]
        }
        second = added_up(
            joined, functools.partial(_second, asked=asked, centres=centres, scales=scales)
        )
        return cls(asked, {**first, **second})

    @classmethod
    def only_first(cls, joined: Frame, asked: Compared) -> Differences:
        """Add up what a single pass over the users tells: cells, totals and ends."""
        return cls(asked, added_up(joined, functools.partial(_first, asked=asked)))

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

    def moments(self, number: int) -> Moments:
        """Return the number, mean and variance of the differences."""
        cells = self.sums.get(f"{number} cells")
        if cells is None or cells.n < 2:
            return Moments(0 if cells is None else cells.n, np.nan, np.nan)
        return Moments(cells.n, cells.mean, cells.squares / (cells.n - 1))

    def ends(self, metric: int) -> Float64:
        """Return the smallest and the largest value of each model; infinite without a value."""
        found = self.sums[f"{metric} ends"].values.reshape(-1, 2)
        return np.column_stack([-found[:, 0], found[:, 1]])

    def runs(self, number: int) -> RunMoments | None:
        """Return what is known of seeds and users; None where both models have one seed."""
        one = self.asked.each[number]
        if not self.asked.has_seeds(one):
            return None
        assert one.other is not None
        n_runs = self.asked.n_runs[one.model], self.asked.n_runs[one.other]
        users, rests = self.moments(number), self.sums[f"{number} rests"]
        squares = []
        for means, rest in zip(_means_of_runs(self.sums, number, n_runs[0]), rests, strict=True):
            between, r = users.n * float(((means - means.mean()) ** 2).sum()), len(means)
            few = r < 2 or users.n < 2
            squares.append(
                (0.0, 0.0) if few else (between / (r - 1), float(rest) / ((users.n - 1) * (r - 1)))
            )
        return RunMoments(users, n_runs, tuple(squares))

    def clusters(self, number: int) -> tuple[Grouped, Grouped] | None:
        """Return the differences of clusters and of their sums, as `compare_grouped` takes them."""
        if not self.asked.clustered:
            return None
        sums = self.sums[f"{number} of_sums"].grouped()
        if f"{number} units" not in self.sums:  # nobody has values of both models
            return sums, sums
        units = self.sums[f"{number} units"].grouped()
        sizes = np.asarray(units.sizes)
        if (sizes == sizes[0]).all():
            return unweighted(units), sums
        return dataclasses.replace(units, n_above=sums.n_above, n_below=sums.n_below), sums

    def ratios(self, number: int) -> Grouped | None:
        """Return the values of both models, as `compare_grouped` takes them."""
        found = self.sums.get(f"{number} ratios")
        return None if found is None else found.grouped()

    def largest_cluster(self, number: int) -> float:
        """Return how many users the largest cluster has; 1 without clusters."""
        units = self.sums.get(f"{number} units")
        return 1.0 if units is None else float(np.max(units.y))

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


@dataclasses.dataclass(frozen=True, eq=False)
class _Users:
    """Some users with their values, whole clusters at a time."""

    table: Any
    asked: Compared
    clusters: Array | None
    kept: dict[tuple[int, int], list[Float64]] = dataclasses.field(default_factory=dict)

    def runs(self, model: int, metric: int) -> list[Float64]:
        """Return the values of the users who count in the mean, of each run; NaN for others."""
        key = model, metric
        if key not in self.kept:
            runs = range(self.asked.n_runs[model])
            rules = self.asked.rules[metric][model]
            self.kept[key] = [self._column(f"{model}_{run}_{metric}", rules) for run in runs]
        return self.kept[key]

    def _column(self, name: str, rules: Protocol) -> Float64:
        column = np.asarray(self.table[f"m{name}"]).astype(np.float64)
        codes = self.table[f"r{name}"]
        there = np.asarray(codes.is_valid())
        reasons = np.asarray(codes.fill_null(1)).astype(np.uint8)
        found = entering(column, reasons, rules)
        if np.isinf(found).any():
            raise InputError("A value is infinite: differences have no mean.")
        return np.where(there, found, np.nan)

    def values(self, model: int | None, metric: int) -> Float64:
        """Return the values of a model: means over its runs; zeros without a model."""
        if model is None:
            return np.zeros(self.table.num_rows)
        return mean_of_runs(self.runs(model, metric))

    def everyone(self, metric: int) -> Array:
        """Return which users all ranked models have a value of."""
        known = [~np.isnan(self.values(model, metric)) for model in self.asked.ranked]
        return np.asarray(np.all(known, axis=0))

    def pair(self, one: Each) -> tuple[Float64, Float64, Any]:
        """Return the values of the users who have both, and which these are."""
        x, y = self.values(one.model, one.metric), self.values(one.other, one.metric)
        both = ~(np.isnan(x) | np.isnan(y))
        if one.everyone:
            both &= self.everyone(one.metric)
        return x[both], y[both], both

    def tables(self, one: Each, both: Any) -> list[Float64]:
        """Return the values of some users in each run of both models, [n, n_runs]."""
        assert one.other is not None
        models = one.model, one.other
        return [np.column_stack(self.runs(model, one.metric))[both] for model in models]

    def summed(self, values: Float64, chosen: Any) -> Float64:
        """Return values of some users, added up over clusters where there are some."""
        return values if self.clusters is None else by_cluster(values, self.clusters[chosen])

    def all_models(self, metric: int) -> tuple[Float64, Array]:
        """Return the values of the users whom all models have, [n, n_models], and who these are."""
        table = np.column_stack([self.values(one, metric) for one in self.asked.shuffled[1]])
        chosen = np.asarray(~np.isnan(table).any(axis=1))
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
        for key, each in enumerate(asked.each):
            x, y, both = users.pair(each)
            models = each.model, each.other
            known = [~np.isnan(users.values(model, each.metric)) for model in models]
            only = [np.count_nonzero(mask & ~both) for mask in known]
            found[f"{key} sums"] = np.array([x.sum(), y.sum(), *only], np.float64)
            found[f"{key} cells"] = Cells.of(x - y)
            if asked.clustered:
                of_clusters = users.summed(x, both), users.summed(y, both)
                found[f"{key} of_sums"] = Cells.of(of_clusters[0] - of_clusters[1])
            if asked.has_seeds(each):
                tables = users.tables(each, both)
                found[f"{key} of_runs"] = np.concatenate([one.sum(axis=0) for one in tables])
        for metric in range(len(asked.rules)):
            found[f"{metric} ends"] = Largest(_ends(users, metric))
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
    centres: Mapping[str, Any],
    scales: Mapping[int, float],
) -> Iterator[dict[str, Any]]:
    for users in _users(batches, asked):
        found: dict[str, Any] = {}
        for key, each in enumerate(asked.each):
            x, y, both = users.pair(each)
            sums = users.summed(x, both), users.summed(y, both)
            ratio, difference = (centres.get(f"{key} {kind}") for kind in ("ratios", "units"))
            if ratio is not None:
                found[f"{key} ratios"] = Ratios.of(*sums, ratio)
            if difference is not None:
                sizes = users.summed(np.ones(len(x)), both)
                found[f"{key} units"] = Ratios.of(sums[0] - sums[1], sizes, difference)
            if asked.has_seeds(each):
                tables = users.tables(each, both)
                means = centres[f"{key} of_runs"]
                found[f"{key} rests"] = np.array(
                    [_rest(one, own) for one, own in zip(tables, means, strict=True)]
                )
        for metric in asked.shuffled[0]:
            found[f"{metric} rows"] = users.few_rows(metric, scales[metric])
        yield found


def _ends(users: _Users, metric: int) -> Float64:
    """Return the largest value of each model, less its smallest before: [2 * n_models]."""
    found = np.full((len(users.asked.n_runs), 2), -np.inf)
    pairs = [one[1:3] for one in users.asked.each if one.metric == metric]
    for model in {model for pair in pairs for model in pair if model is not None}:
        values = users.values(model, metric)
        found[model] = [np.fmax.reduce(one, initial=-np.inf) for one in (-values, values)]
    return found.ravel()


def _means_of_runs(sums: Mapping[str, Any], number: int, n_first: int) -> Iterator[Float64]:
    """Yield the means over users of each run, of both models."""
    n = max(1, sums[f"{number} cells"].n)
    totals = sums[f"{number} of_runs"]
    yield totals[:n_first] / n
    yield totals[n_first:] / n


def _rest(table: Float64, means: Float64) -> float:
    """Return the sum of squares that neither users nor runs explain; `means` are of runs."""
    of_users = table.mean(axis=1, keepdims=True)
    return float(((table - of_users - means + means.mean()) ** 2).sum())

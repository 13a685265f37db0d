"""Values that all users have together, over resampled users: as `stats.intervals.resampled`.

Users are drawn by their places among all (`Resamples`), by every block for itself. A second pass
over the data adds up each resample; its values follow where its sums meet.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from recometer.arrays import Array, Float64, Int64
from recometer.data import ids as matching
from recometer.data.sessions import are_pairs, split_pairs
from recometer.measuring.compute import compute_for_all
from recometer.measuring.listed import ListedUsers
from recometer.metrics.registry import Metric, rules_of
from recometer.protocol import Protocol
from recometer.spark import _across, _frames, _rows, _whole
from recometer.spark._blocks import blocks
from recometer.spark._columns import ids, user_ids
from recometer.spark._draws import Resamples
from recometer.spark._frames import Frame, IdKinds, Spread, Table
from recometer.spark._job import PLACES, Job

MOST_UNITS = 2**20  # users, or clusters of them, of whom each block draws all
TOO_MANY = f"On Spark at most {MOST_UNITS:,} users are drawn again, for intervals by resampling."
UNITS_PER_TASK = 2**16  # that are put in order at once
ROWS_AT_ONCE = 2**17  # of sums that leave a block
COLUMNS = ["r", "k", "j", "i", "x"]  # resample, metric, number of a total or -1, item, number


@dataclasses.dataclass(frozen=True, eq=False)
class Again:
    """What an evaluation was made of, to compute it again.

    Attributes
    ----------
    job, spread
        What runs, and on which rows.
    known
        Facts about the items that all blocks share.
    centres : mapping of str to float64 [_rows.SIZE]
        The sums of metrics over rows of all users, by name.
    """

    job: Job
    spread: Spread
    known: _whole.KnownItems
    centres: Mapping[str, Float64]

    def values(self, names: Sequence[str], placed: Frame, resamples: Resamples) -> Drawn:
        """Return the values of some metrics over users who are drawn.

        Parameters
        ----------
        names
            Of the metrics.
        placed
            Users ``u`` (and sessions ``s``), and the place ``q`` of each, or of their cluster.
        resamples

        Returns
        -------
        dict of str to list of float
            Of all users who have a place, then of each resample.
        """
        kinds = IdKinds(*(self.job.options[name] for name in IdKinds._fields))
        by = {"user": "u"} | ({"session": "s"} if "s" in placed.columns else {})
        beside = _frames.rows(Table("places", placed, by), PLACES, kinds, x="q")
        beside = beside.drop("f")  # whose type is that of the other rows
        every = {str(one): one.name in _rows.ACROSS for one in self.job.given["metrics"]}
        found: dict[str, Sequence[float]] = {}
        for across, values in ((False, self._of_sums), (True, self._of_pairs)):
            own = [name for name in names if every[name] == across]
            if own:
                found |= values(self.job.of_metrics(own), beside, resamples)
        return found

    def _of_sums(self, job: Job, beside: Frame, resamples: Resamples) -> Drawn:
        """Return the values of metrics that users add up to."""
        metrics, rules = job.given["metrics"], job.given["settled"]
        known, centres = self.known, self.centres

        def add(batches: Any) -> Any:
            return _added(batches, job, resamples, centres)

        def value(batches: Any) -> Any:
            return _valued(batches, metrics, rules, known, centres)

        schema = f"r int, k int, j int, i {job.options['item']}, x double"
        sums = self.spread.mapped(add, schema, beside)
        each = sums.groupBy(*COLUMNS[:-1]).agg({"x": "sum"}).toDF(*COLUMNS)
        spread = each.repartition("r").sortWithinPartitions("r")
        found = _frames.table_of(spread.mapInArrow(value, "r int, k int, x double"))
        values = np.full((len(metrics), 1 + resamples.n), np.nan)
        values[found["k"].to_numpy(), found["r"].to_numpy()] = found["x"].to_numpy()
        return {str(one): row.tolist() for one, row in zip(metrics, values, strict=True)}

    def _of_pairs(self, job: Job, beside: Frame, resamples: Resamples) -> Drawn:
        """Return the values of metrics about pairs of rows of different users."""
        metrics, rules = job.given["metrics"], job.given["settled"]

        def rows(batches: Any) -> Any:
            return _placed_rows(batches, job)

        sums = self.spread.mapped(rows, "k int, x double, h bigint, o bigint, q bigint", beside)
        pairs = _across.in_order(sums, resamples)
        found = {}
        for place, metric in enumerate(metrics):
            own = np.broadcast_to(pairs.get(place, np.zeros((2, 1))), (2, 1 + resamples.n))
            each = map(_rows.OverRows.of_pairs, own.T)
            found[str(metric)] = [
                compute_for_all(one, [metric], rules)[str(metric)] for one in each
            ]
        return found


Drawn = Mapping[str, Sequence[float]]


def placed(users: Frame, units: Sequence[str], n: int) -> Frame:
    """Return users with their places, by the units that are drawn.

    Parameters
    ----------
    users
        A row per user.
    units
        The columns that name the unit of a user: the user, or a cluster of users.
    n
        The number of units.

    Returns
    -------
    DataFrame
        With a column ``q``: the place of the unit among all in their order.
    """
    first = units[0]
    distinct = users.select(*units).distinct()
    n_blocks, limits = math.ceil(n / UNITS_PER_TASK), tuple[Any, ...]()
    if n_blocks > 1:
        limits = _frames.limits_of(distinct, first, n, n_blocks)
    in_blocks = distinct.selectExpr("*", f"{_frames.place_among(limits, first)} AS b")
    before = np.zeros(len(limits) + 1, np.int64)
    if limits:
        for block, count in in_blocks.groupBy("b").count().collect():
            before[block + 1 :] += count
    starts, by = ", ".join(map(str, before.tolist())), ", ".join(units)
    place = f"element_at(array({starts}), b + 1) + row_number() OVER (PARTITION BY b ORDER BY {by})"
    numbered = in_blocks.selectExpr(*units, f"CAST({place} - 1 AS bigint) AS q")
    return users.join(numbered, [*units])


def _added(
    batches: Iterable[Any], job: Job, resamples: Resamples, centres: Mapping[str, Float64]
) -> Iterator[Any]:
    """Return what the users of each block add up to, in each resample."""
    for table in job.blocks(batches):
        found = job.measured(table)
        if found is None:
            continue
        given, _, measured = found
        adding = [
            _adding(metric, given.protocol, measured, centres) for metric in given.truth.metrics
        ]
        rows = _Rows(job.options["item"])
        places = _places(table, given.truth.test.user_ids)
        for number, weights in enumerate(resamples.weights(places)):
            for place, add in enumerate(adding):
                rows.add(number, place, add(weights))
            if rows.n >= ROWS_AT_ONCE:
                yield rows.batch()
        yield rows.batch()


def _placed_rows(batches: Iterable[Any], job: Job) -> Iterator[Any]:
    """Return the rows of users with the places of these."""
    import pyarrow as pa

    for table in job.blocks(batches):
        found = job.measured(table)
        if found is not None:
            given, _, measured = found
            places = _places(table, given.truth.test.user_ids)
            columns = _across.placed_rows(given.truth.metrics, measured["rated"], places)
            if columns is not None:
                yield pa.RecordBatch.from_pydict(columns)


class _Summed(NamedTuple):
    """Items with their numbers, and totals that belong to no item."""

    items: Array
    numbers: Float64
    totals: Float64


def _adding(
    metric: Metric, protocol: Protocol, measured: Mapping[str, Any], centres: Mapping[str, Float64]
) -> Callable[[Int64], _Summed]:
    """Return what adds users up for a metric, given how often each counts."""
    name = str(metric)
    if not metric.definition.over_users:
        rated, reasons = measured["rated"], measured["reasons"][name]
        none = np.zeros(0, np.int64)

        def of_rows(weights: Int64) -> _Summed:
            sums = _rows.row_sums(metric, rated, reasons, weights)
            return _Summed(none, np.zeros(0), _rows.added(sums, centres[name]))

        return of_rows
    data, rules = measured["list_data"], rules_of(metric, protocol)
    named = np.arange(data.n_items) if data.lists.item_ids is None else data.lists.item_ids
    listed = ListedUsers(data)

    def of_lists(weights: Int64) -> _Summed:
        found = listed.add_up(metric, rules, weights)
        numbers = np.zeros(0) if found.items is None else found.items
        some = np.flatnonzero(numbers)
        return _Summed(named[some], numbers[some], found.totals)

    return of_lists


class _Rows:
    """Rows of sums that wait to leave a block: resample, metric, total or item, number."""

    def __init__(self, item: str) -> None:
        self.item, self.n = item, 0
        self._parts: list[tuple[int, int, _Summed]] = []

    def add(self, number: int, place: int, found: _Summed) -> None:
        """Add what a metric has in a resample; a total comes in any case."""
        if not len(found.totals):
            found = found._replace(totals=np.zeros(1))
        self._parts.append((number, place, found))
        self.n += len(found.items) + len(found.totals)

    def batch(self) -> Any:
        """Return the rows, and begin anew."""
        import pyarrow as pa

        kind = {"bigint": pa.int64(), "string": pa.string()}[self.item]
        columns: list[list[Any]] = [[], [], [], [], []]
        for number, place, (items, numbers, totals) in self._parts:
            n_items, n = len(items), len(totals)
            columns[0].append(np.full(n_items + n, number, np.int32))
            columns[1].append(np.full(n_items + n, place, np.int32))
            columns[2].append(np.append(np.full(n_items, -1), np.arange(n)).astype(np.int32))
            columns[3] += [pa.array(items, kind), pa.nulls(n, kind)]
            columns[4] += [numbers, totals]
        self._parts, self.n = [], 0
        r, k, j, x = (np.concatenate([np.zeros(0), *columns[n]]) for n in (0, 1, 2, 4))
        whole = [pa.array(one.astype(np.int32)) for one in (r, k, j)]
        items = pa.chunked_array(columns[3], kind).combine_chunks()
        if isinstance(items, pa.ChunkedArray):  # as older versions return it
            items = pa.concat_arrays(items.chunks) if items.num_chunks else pa.nulls(0, kind)
        return pa.RecordBatch.from_arrays([*whole, items, pa.array(x)], COLUMNS)


def _places(table: Any, users: Array | None) -> Int64:
    """Return the place of each user of a block, or of the user's cluster; -1 without one."""
    import pyarrow.compute as pc

    own = table.filter(pc.equal(table["t"], PLACES))
    named, places = ids(own["u"]), own["x"].to_numpy().astype(np.int64)
    if are_pairs(users):
        if own.num_rows and own["s"].null_count == 0:
            named = user_ids(own, ["u", "s"])
        else:
            users = split_pairs(users)[0]
    at = matching.match(users, named, "user ids of test", "user ids of places")
    return np.where(at < 0, -1, places[at]) if len(places) else np.full(len(at), -1)


def _valued(
    batches: Iterable[Any],
    metrics: Sequence[Metric],
    protocol: Protocol,
    known: _whole.KnownItems,
    centres: Mapping[str, Float64],
) -> Iterator[Any]:
    """Return the value of each metric in each resample, all of whose sums are here."""
    import pyarrow as pa

    for table in blocks(batches, user="r"):
        columns = [table[name].to_numpy() for name in ("r", "k", "j", "x")]
        items = ids(table["i"])
        for number in np.unique(columns[0]).tolist():
            some = columns[0] == number
            k, j, x = (one[some] for one in columns[1:])
            found = _values(metrics, protocol, known, centres, (k, j, items[some], x))
            arrays = [
                pa.array(np.full(len(found), number, np.int32)),
                pa.array(np.arange(len(found), dtype=np.int32)),
                pa.array(found),
            ]
            yield pa.RecordBatch.from_arrays(arrays, ["r", "k", "x"])


def _values(
    metrics: Sequence[Metric],
    protocol: Protocol,
    known: _whole.KnownItems,
    centres: Mapping[str, Float64],
    sums: tuple[Int64, Int64, Array, Float64],
) -> list[float]:
    """Return the values of the metrics, from the sums of all users."""
    k, j, items, x = sums
    totals = {}
    for place, metric in enumerate(metrics):
        some = (k == place) & (j >= 0)
        own = np.zeros(int(j[some].max()) + 1)
        own[j[some]] = x[some]
        totals[str(metric)] = own
    listed = j < 0
    of_items = k[listed], items[listed], x[listed]
    found = _whole.values(metrics, protocol, known, of_items, totals)
    for metric in metrics:
        name = str(metric)
        if not metric.definition.over_users:
            together = _rows.OverRows(_rows.from_added(totals[name], centres[name]))
            found |= compute_for_all(together, [metric], protocol)
    return [found[str(metric)] for metric in metrics]

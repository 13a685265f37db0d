"""Metrics with one value for all users: what blocks of users add up to, by item, and the value.

Where the users are, a block becomes rows (metric, item, number), which Spark adds up by metric and
item; numbers that belong to no item are in `Sums`. The value follows on the driver, by the function
that one machine uses.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from recometer.arrays import Array, Float64, Int64
from recometer.errors import InputError
from recometer.measuring.compute import compute_for_all
from recometer.measuring.listed import ListedUsers
from recometer.measuring.side_data import Popularity
from recometer.metrics.adding_up import Summed
from recometer.metrics.listed.data import ListData
from recometer.metrics.listed.whole import value_of
from recometer.metrics.registry import Metric, rules_of
from recometer.protocol import Protocol
from recometer.spark import _frames
from recometer.spark._frames import Frame
from recometer.spark._sums import Sums

# A row on the driver has a metric, an item and a number.
BYTES_PER_ROW = 32


def over_users(metrics: Sequence[Metric]) -> list[Metric]:
    """Return the metrics that have one value for all users."""
    return [metric for metric in metrics if metric.definition.over_users]


def check(metric: Metric) -> None:
    """Refuse a metric whose value does not follow from what blocks of users add up to.

    Raises
    ------
    InputError
        If the metric needs the lists of all users at once.
    """
    if metric.definition.over_users and metric.definition.adds_up is None:
        raise InputError(
            f"The metric {str(metric)!r} has one value for all users, and does not say how it adds "
            "up from parts of them. Hint: collect the lists, or a sample of them, for "
            "recometer.evaluate."
        )


def summed(metrics: Sequence[Metric], data: ListData, protocol: Protocol) -> dict[str, Summed]:
    """Return what the users of some lists add up to, by metric."""
    listed = ListedUsers(data)
    return {str(one): listed.add_up(one, rules_of(one, protocol)) for one in over_users(metrics)}


def item_rows(metrics: Sequence[Metric], data: ListData, found: Mapping[str, Summed]) -> list[Any]:
    """Return columns with the metric's number, the item and the number; all but zeros."""
    numbers, items, values = [np.zeros(0, np.int32)], [], [np.zeros(0)]
    named = np.arange(data.n_items) if data.lists.item_ids is None else data.lists.item_ids
    for number, metric in enumerate(metrics):
        own = found.get(str(metric))
        if own is None or own.items is None:
            continue
        some = np.flatnonzero(own.items)
        numbers.append(np.full(len(some), number, np.int32))
        items.append(named[some])
        values.append(own.items[some])
    every = np.concatenate(items) if items else named[:0]
    return [np.concatenate(numbers), every, np.concatenate(values)]


def collected(rows: Frame, most: int) -> tuple[Any, Any]:
    """Return tables of what ends the partitions, and of the numbers of items, added up.

    Raises
    ------
    InputError
        If there are more than `most` numbers of items.
    """
    import pyarrow.compute as pc

    wanted = rows.where("sums IS NOT NULL OR error IS NOT NULL OR i IS NOT NULL")
    total = wanted.groupBy("sums", "error", "k", "i").agg({"x": "sum"})
    table = _frames.table_of(total.toDF("sums", "error", "k", "i", "x").limit(most + 1))
    if table.num_rows > most:
        raise InputError(
            f"Metrics with one value for all users need more than {most:,} numbers of items on the "
            "driver, which takes more than closure=. Hint: a larger closure=."
        )
    of_items = pc.is_valid(table["k"])
    return table.filter(pc.invert(of_items)), table.filter(of_items)


@dataclasses.dataclass(frozen=True, eq=False)
class OfAllUsers:
    """What all users add up to, and what is known of the items; see `measured.Together`."""

    n_catalogue: int | None
    item_users: Int64 | None
    found: Mapping[str, Summed]
    n_users: int = 1
    size: int = 1

    def users(self, chosen: Int64) -> OfAllUsers:
        """Return this object, since there are no users to choose from."""
        return self

    def for_all(self, metrics: Sequence[Metric], rules: Protocol, weights: Int64 | None) -> Float64:
        """Return the value of all users."""
        return np.array([value_of(metric, self, self.found[str(metric)]) for metric in metrics])


@dataclasses.dataclass(frozen=True, eq=False)
class KnownItems:
    """What is known of the items beside the lists: how many there are, and who has them."""

    n_catalogue: int | None
    popularity: Popularity | None


def values(
    metrics: Sequence[Metric],
    protocol: Protocol,
    known: KnownItems,
    of_items: tuple[Array, Array, Float64],
    totals: Mapping[str, Float64],
) -> dict[str, float]:
    """Return the values of the metrics over users.

    Parameters
    ----------
    metrics
        All metrics.
    protocol, known
    of_items
        The place of a metric, an item, and the number that all users add up to.
    totals
        The totals of each metric that belong to no item.
    """
    numbers, listed, x = of_items
    popularity, named, users = known.popularity, [listed], None
    if popularity is not None and popularity.item_ids is not None:
        named.append(popularity.item_ids)
    every = np.unique(np.concatenate([one for one in named if len(one)] or named[:1]))
    if popularity is not None:
        users = np.zeros(len(every), np.int64)
        if popularity.item_ids is not None and len(popularity.item_ids):
            users[np.searchsorted(every, popularity.item_ids)] = popularity.users
    found = {}
    for number, metric in enumerate(metrics):
        if metric.definition.over_users:
            some = numbers == number
            found[str(metric)] = Summed(_spread(every, listed[some], x[some]), totals[str(metric)])
    together = OfAllUsers(known.n_catalogue, users, found)
    return compute_for_all(together, over_users(metrics), protocol)


def n_catalogue(sums: Sums) -> int | None:
    """Return how many items could have been recommended, if all blocks of users know it."""
    largest, less = (sums.largest.get(name) for name in ("catalogue", "less_catalogue"))
    if largest is None:
        return None
    if largest != -float(less or 0):
        raise InputError(
            "Blocks of users know catalogues of different sizes. Hint: catalogue= with all items."
        )
    return int(largest)


def _spread(every: Array, items: Array, values_of: Float64) -> Float64:
    found = np.zeros(len(every))
    if len(items):
        found[np.searchsorted(every, items)] = values_of
    return found

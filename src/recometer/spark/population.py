"""Facts about all users and items that Spark counts, since no block of users knows them."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from recometer.arrays import Array
from recometer.evaluating.sides import rows_stay
from recometer.evaluating.unknown import ASKED, KINDS, Unknown, check_shifted, settle_shifted
from recometer.evaluating.unused_rules import given_by_hand
from recometer.measuring.settling import COUNT_EACH
from recometer.measuring.side_data import Popularity
from recometer.metrics.registry import Metric, rules_of
from recometer.protocol import Protocol
from recometer.sources.base import Kind
from recometer.spark.sources import Given
from recometer.spark.tables import IdKinds, Table, acted, ids

MOST_KNOWN = 2**20  # ids of a source that are compared with unknown ones for their spelling
Tables = Mapping[str, Table]


def popularity(train: Table, kinds: IdKinds) -> Popularity:
    """Return how many users of train have each item."""
    rows = train.pairs(kinds).distinct()
    counted = acted(rows.groupBy("i").count().toArrow)
    named = ids(counted["i"])
    order = np.argsort(named, kind="stable")
    users = counted["count"].to_numpy()[order]
    n_users = acted(rows.drop("i").distinct().count)
    return Popularity(named[order], users, int(n_users), int(users.sum()))


def every_item(tables: Sequence[Table], kinds: IdKinds) -> Array:
    """Return the ids of the items of some tables, ascending."""
    found = [_sorted(one, "item", kinds) for one in tables]
    return np.unique(np.concatenate(found))


def largest_gain(
    table: Table, value: str, metrics: Sequence[Metric], protocol: Protocol, kinds: IdKinds
) -> float:
    """Return the largest value of test; 1 where there is none. `value` is the option with it."""
    if not table.has(value):
        return 1.0
    each = any(rules_of(one, protocol).repeated_test in COUNT_EACH for one in metrics)
    stays = value != "value" and rows_stay(metrics, protocol)
    how = "avg" if each else "sum"
    if stays or protocol.repeated_test == "largest":
        how = "max"
    user = table.users(kinds)
    columns = [f"{table['item']} AS i", f"CAST({table[value]} AS double) AS x"]
    rows = table.frame.selectExpr(*user, *columns).where("x IS NOT NULL")
    per_pair = rows.groupBy(*rows.columns[:-1]).agg({"x": how}).toDF(*rows.columns)
    finite = per_pair.where("abs(x) < double('infinity')").agg({"x": "max"})
    largest = acted(finite.collect)[0][0]
    return float(largest) if largest and largest > 0 else 1.0


def n_unknown_items(source: Given, test: Table, train: Table | None, kinds: IdKinds) -> int:
    """Count the items of test, except for pairs in `train`, that the source does not know."""
    rows = test.pairs(kinds)
    if train is not None:
        by = [name for name in train.pairs(kinds).columns if name in rows.columns]
        rows = rows.join(train.pairs(kinds).select(*by), by, "left_anti")
    there = source.of_items.ids("item", kinds).toDF("i")
    return int(acted(rows.select("i").distinct().join(there, "i", "left_anti").count))


def find_unknown(source: Given, test: Table, kinds: IdKinds, kind: Kind) -> Unknown:
    """Return some ids of test that a source does not know, and those that it knows."""
    table = source.of_items if kind == "item" else source.table
    known = table.ids(kind, kinds).where("id IS NOT NULL").distinct()
    lost = test.ids(kind, kinds).distinct().join(known, "id", "left_anti")
    asked = acted(lost.where("id IS NOT NULL").limit(ASKED).toArrow)["id"].to_pylist()
    there = acted(known.limit(MOST_KNOWN).toArrow)["id"].to_pylist()
    return Unknown(sorted(asked), sorted(there))


def check_positions(
    source: Given, tables: Tables, kinds: IdKinds, protocol: Protocol, least: Mapping[str, int]
) -> None:
    """Refuse ids that look like positions, by the check of one machine.

    `least` has the least id of each side, or of texts "0" or "1", as blocks of users found it.
    Only if these do not begin alike, the ids of all users and items come to the driver.
    """
    by_hand = given_by_hand(protocol)
    data = [tables[name] for name in ("test", "train") if name in tables]

    def differ(kind: Kind) -> bool:
        here, there = least.get(f"data {kind}"), least.get(f"source {kind}")
        return (there == 0 and here != 0) or (here == 0 and there == 1)

    if not data or kinds.session is not None or not any(map(differ, KINDS)):
        settle_shifted([], protocol, by_hand)
        return
    sides: list[Any] = []
    for table in data:
        users, items = (_sorted(table, kind, kinds) for kind in KINDS)
        sides.append(SimpleNamespace(user_ids=users, item_ids=items, n_users=len(users)))
    known = {
        kind: _sorted(source.of_items if kind == "item" else source.table, kind, kinds)
        for kind in KINDS
    }
    like: Any = source.like
    arrays = {f"{kind}_ids": own for kind, own in known.items()}
    like.facts = dataclasses.replace(like.facts, arrays=arrays, known=None)
    check_shifted(like, sides[0], sides[1] if len(sides) > 1 else None, protocol, by_hand)


def _sorted(table: Table, kind: Kind, kinds: IdKinds) -> Array:
    found = table.ids(kind, kinds).where("id IS NOT NULL").distinct()
    return np.sort(ids(acted(found.toArrow)["id"]))

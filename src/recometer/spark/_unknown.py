"""Ids of test that a source on Spark does not know, and ids that look like positions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from recometer.data.spelling import plain
from recometer.evaluating.effects import given_by_hand
from recometer.evaluating.unknown import (
    ASKED,
    KINDS,
    Kind,
    Unknown,
    said_of_shifted,
    settle_shifted,
)
from recometer.protocol import Protocol
from recometer.spark import _frames
from recometer.spark._frames import Frame, IdKinds, Table
from recometer.spark._sources import Given


def ids_of(table: Table, kind: Kind, kinds: IdKinds) -> Frame:
    """Return the ids of the users or items of a table in one column, ``id``."""
    if kind == "item" and table.has("entry"):
        item = f"e.{table['item']}" if table.has("item") else "e"
        entries = table.frame.selectExpr(f"explode({table['entry']}) AS e")
        return entries.selectExpr(f"CAST({item} AS {kinds.item}) AS id")
    return table.frame.selectExpr(f"CAST({table[kind]} AS {getattr(kinds, kind)}) AS id")


def known_ids(source: Given, kind: Kind, kinds: IdKinds) -> Frame:
    """Return the ids of the users or items that a source knows, in one column, ``id``."""
    items = source.items if kind == "item" else None
    return ids_of(source.table if items is None else items, kind, kinds)


def find_unknown(source: Given, test: Table, kinds: IdKinds) -> Callable[[Kind], Unknown]:
    """Return a function that finds some ids of test that a source does not know."""

    def find(kind: Kind) -> Unknown:
        known = known_ids(source, kind, kinds).distinct()
        lost = ids_of(test, kind, kinds).distinct().join(known, "id", "left_anti")
        asked = [row[0] for row in lost.where("id IS NOT NULL").limit(ASKED).collect()]
        found = [row[0] for row in known.limit(1).collect()]
        if getattr(kinds, kind) == "string" and asked:
            alike = {plain(one) for one in asked}

            def chosen(batches: Any) -> Any:
                import pyarrow as pa

                for batch in batches:
                    keep = [plain(one) in alike for one in batch.column(0).to_pylist()]
                    yield batch.filter(pa.array(keep))

            near = known.where("id IS NOT NULL").mapInArrow(chosen, known.schema).limit(ASKED)
            found += [row[0] for row in near.collect()]
        return Unknown(sorted(asked), found)

    return find


def check_shifted(
    source: Given,
    tables: Mapping[str, Table],
    kinds: IdKinds,
    protocol: Protocol,
    facts: Mapping[str, int],
) -> None:
    """Refuse ids of a source that look like positions, as on one machine.

    `facts` has an entry ``"zero user"`` or ``"zero item"`` where test or train has the id 0.
    """
    data = [tables[name] for name in ("test", "train") if name in tables]
    open_kinds = [
        kind for kind in KINDS if getattr(kinds, kind) == "bigint" and not facts.get(f"zero {kind}")
    ]
    said = [_shifted(source, data, kind, kinds) for kind in open_kinds if data]
    settle_shifted(said, protocol, given_by_hand(protocol))


def _shifted(source: Given, data: Sequence[Table], kind: Kind, kinds: IdKinds) -> str:
    known = known_ids(source, kind, kinds)
    low, high = known.selectExpr("min(id)", "max(id)").collect()[0]
    if low != 0 or not high:
        return ""
    n = int(known.distinct().count())
    sides = _frames.together([ids_of(table, kind, kinds) for table in data])
    if n != high + 1 or _has(sides, 0):
        return ""
    ends = sides.selectExpr("min(id)", "max(id)").collect()[0]
    users: set[int] = set()
    if kind == "item":
        every = [ids_of(table, "user", kinds) for table in data]
        users = {int(one.distinct().count()) for one in (known_ids(source, "user", kinds), *every)}
    return said_of_shifted(
        source.like, kind, n, (ends[0], ends[1]), lambda number: _has(sides, number), users
    )


def _has(ids: Frame, number: int) -> bool:
    return bool(ids.where(f"id = {number}").limit(1).collect())

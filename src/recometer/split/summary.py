"""What a split has made, as tables: users, items and interactions of each part."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from recometer.data.columns import Columns
from recometer.data.frames import open_frame
from recometer.data.ids import encode
from recometer.data.interactions import Interactions
from recometer.data.sessions import selected
from recometer.rendering import Column, Table
from recometer.split.saving import PARTS

if TYPE_CHECKING:
    from recometer.split.result import Split, SplitProtocol


def _counts(title: str) -> Column:
    return Column(title, (title.replace(" ", "_"),), "{:,}".format, number=True)


OF_SPLIT = (
    Column("part"),
    *map(_counts, ("users", "items", "interactions")),
    Column("share", show="{:.1%}".format, number=True),
)


def table_of_split(made: Split) -> Table:
    """Return how many users, items and interactions each part has, and what was left out."""
    counts = made.protocol.counts
    total = sum(counts[part] for part in PARTS)
    rows = []
    for name in PARTS:
        part = getattr(made, name)
        if part is not None:
            users, items = _distinct(part, made.columns)
            row = {"part": name, "users": users, "items": items, "interactions": counts[name]}
            rows.append({**row, "share": counts[name] / total if total else 0.0})
    notes = _notes(made.protocol, made.protocol.removed)
    # For instance what users who are not tested have after the time of a split.
    rest = counts["left_out"] - sum(made.protocol.removed.values())
    if rest:
        notes.append(f"in no part: {rest:,}")
    return Table(OF_SPLIT, rows, notes)


def table_of_folds(folds: Iterable[Split]) -> Table:
    """Return how many users are tested in each fold, and how many interactions it has."""
    rows: list[dict[str, int]] = []
    protocols, apart = [], False
    for number, made in enumerate(folds):
        apart = made.remainder is not None
        rows.append({"fold": number, "users_of_test": len(made.users), **made.protocol.counts})
        protocols.append(made.protocol)
    parts = (*(PARTS if apart else PARTS[:2]), "left out")
    # What filters leave out before the split is the same in every fold.
    first = protocols[0]
    removed = {
        name: n
        for name, n in first.removed.items()
        if all(protocol.removed[name] == n for protocol in protocols)
    }
    columns = [Column("fold", number=True), *map(_counts, ("users of test", *parts))]
    return Table(columns, rows, _notes(dataclasses.replace(first, fold=None), removed))


def _distinct(part: Any, columns: Columns | None) -> tuple[int, int]:
    """Return the number of users and of items that have a row in a part of a split."""
    import polars as pl

    if isinstance(part, Interactions):
        return int(np.count_nonzero(np.diff(part.indptr))), len(np.unique(part.items))
    user, item, *_ = columns or Columns("user", "item", None, None)
    if isinstance(part, pl.LazyFrame):
        counted = part.select(selected(part, user).n_unique(), pl.col(item).n_unique())
        n_users, n_items = counted.collect(engine="streaming").row(0)
        return n_users, n_items
    _, fetch = open_frame(part)
    names = zip(("user", "item"), fetch([user, item]), strict=True)
    n_users, n_items = (len(encode(ids, what)[1]) for what, ids in names)
    return n_users, n_items


def _notes(protocol: SplitProtocol, removed: Mapping[str, int]) -> list[str]:
    """Say how it was made, and how many rows the filters left out."""
    notes = [f"made by: {protocol}"]
    return notes + [f"left out by {name}: {n:,}" for name, n in removed.items()]

"""What a split has made, as tables."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from pathlib import Path

from recometer.data.columns import Columns
from recometer.rendering import Table
from recometer.split import Split, SplitProtocol

PARTS = ("train", "test", "remainder")


def table_of_split(made: Split, folder: Path) -> Table:
    """Return how many users, items and interactions each part has, and what was left out.

    Parameters
    ----------
    made
    folder
        Where it was saved: there its parts are counted without being in memory.
    """
    import polars as pl

    user, item, *_ = made.columns or Columns("user", "item", None, None)
    counts = made.protocol.counts
    total = sum(counts[part] for part in PARTS)
    rows = []
    for part in PARTS:
        if getattr(made, part) is None:
            continue
        scan = pl.scan_parquet(folder / f"{part}.parquet", glob=False)
        counted = scan.select(pl.col(user).n_unique(), pl.col(item).n_unique()).collect()
        numbers = (*counted.row(0), counts[part])
        rows.append((part, *(f"{n:,}" for n in numbers), f"{counts[part] / total:.1%}"))
    headers = ("part", "users", "items", "interactions", "share")
    notes = _notes(made.protocol, made.protocol.removed)
    # For instance what users who are not tested have after the time of a split.
    rest = counts["left_out"] - sum(made.protocol.removed.values())
    if rest:
        notes.append(f"in no part: {rest:,}")
    return Table(headers, rows, headers[1:], notes)


def table_of_folds(folds: Iterable[Split]) -> Table:
    """Return how many users are tested in each fold, and how many interactions it has."""
    rows, protocols, apart = [], [], False
    for made in folds:
        apart = made.remainder is not None
        rows.append((len(made.users), made.protocol.counts))
        protocols.append(made.protocol)
    parts = (*(PARTS if apart else PARTS[:2]), "left_out")
    headers = ("fold", "users of test", *(part.replace("_", " ") for part in parts))
    cells = [
        (str(number), f"{n_users:,}", *(f"{counts[part]:,}" for part in parts))
        for number, (n_users, counts) in enumerate(rows)
    ]
    # What filters leave out before the split is the same in every fold.
    first = protocols[0]
    removed = {
        name: n
        for name, n in first.removed.items()
        if all(protocol.removed[name] == n for protocol in protocols)
    }
    return Table(headers, cells, headers, _notes(first, removed))


def _notes(protocol: SplitProtocol, removed: Mapping[str, int]) -> list[str]:
    """Say how it was made, and how many rows the filters left out."""
    notes = [f"made by: {dataclasses.replace(protocol, fold=None)}"]
    return notes + [f"left out by {name}: {n:,}" for name, n in removed.items()]

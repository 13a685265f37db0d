"""How many items could have been recommended to anybody, where no block of users knows that."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from recometer.arrays import Array
from recometer.sources.candidates import Items, Negatives
from recometer.spark import _frames
from recometer.spark._frames import Frame, IdKinds, Table, users_of
from recometer.spark._sources import Given


def n_offered(
    source: Given,
    tables: Mapping[str, Table],
    candidates: object,
    exclude: Items | None,
    kinds: IdKinds,
    *,
    listed: bool,
) -> int | None:
    """Count the items that could have been recommended to any user of test.

    If each user has a set of candidates, these are the items in the sets; otherwise, for pairs, the
    items in these. As on one machine, items that the source does not know do not count.

    Parameters
    ----------
    source, tables, exclude
        As in a `Plan`.
    candidates
        What was given, or a list of `Items` for all users.
    kinds
        As what ids are read.
    listed
        Whether users with a list count, whom test need not have.

    Returns
    -------
    int, or None if every block of users knows the number
    """
    own_sets = "candidates" in tables
    if not own_sets and source.kind != "pairs":
        return None
    known = _items(source, kinds)
    found: Frame = known
    if own_sets:
        test = tables.get("test", source.table)
        users = [test, source.table] if listed and known is None else [test]
        found = _in_sets(tables["candidates"], users, kinds)
        if isinstance(candidates, Negatives):
            found = found.union(_rows(test, kinds).select("i")).distinct()
        if known is not None:
            found = found.join(known, "i", "left_semi")
    elif isinstance(candidates, Items):
        found = known.join(_given(known, candidates.ids, kinds), "i", "left_semi")
    if exclude is not None:
        found = found.join(_given(found, exclude.ids, kinds), "i", "left_anti")
    return int(found.count())


def _items(source: Given, kinds: IdKinds) -> Frame:
    """Return the items that a source knows, each once; None for lists, which may have any."""
    table = source.items if source.items is not None else source.table
    if source.items is None and source.kind != "pairs":
        return None
    return table.frame.selectExpr(f"CAST({table['item']} AS {kinds.item}) AS i").distinct()


def _in_sets(sets: Table, users: Sequence[Table], kinds: IdKinds) -> Frame:
    """Return the items in the sets of the users of some tables."""
    by = ["u", "s"] if all(one.has("session") for one in (sets, *users)) else ["u"]
    each = [one.frame.selectExpr(*users_of(one, kinds).values()).select(*by) for one in users]
    found = _rows(sets, kinds).join(_frames.together(each).distinct(), by, "left_semi")
    return found.select("i").distinct()


def _rows(table: Table, kinds: IdKinds) -> Frame:
    item = f"CAST({table['item']} AS {kinds.item}) AS i"
    return table.frame.selectExpr(*users_of(table, kinds).values(), item)


def _given(frame: Frame, ids: Array, kinds: IdKinds) -> Frame:
    """Return ids that are on this machine as a DataFrame."""
    rows = [(one,) for one in ids.tolist()]
    return frame.sparkSession.createDataFrame(rows, f"i {kinds.item}")

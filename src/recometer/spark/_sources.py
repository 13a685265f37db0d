"""The sources of `recometer.spark.evaluate`: what is read of each, and how."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

import recometer.sources.factors as one_machine
from recometer.arrays import Array
from recometer.errors import InputError, InputTypeError
from recometer.sources.base import Source
from recometer.sources.lists import Lists as OneLists
from recometer.sources.pairs import Pairs as OnePairs
from recometer.spark import _frames
from recometer.spark._columns import ids, numbers, vectors
from recometer.spark._frames import Frame, IdKinds, Table
from recometer.spark._outputs import ItemFactors
from recometer.spark.given import Factors, Lists, Pairs

CLOSURE = "64MB"
BYTES_PER_ITEM = 32  # of an id and a number, on the driver


@dataclasses.dataclass(frozen=True, eq=False)
class Given:
    """A source on Spark.

    Attributes
    ----------
    kind, options
        As in a `Job`.
    table
        The rows that belong to users.
    items
        The table of item factors, for factors only.
    like
        A source of the same kind on one machine, which knows what rules change nothing.
    """

    kind: str
    options: Mapping[str, Any]
    table: Table
    items: Table | None
    like: Source

    def id_kinds(self, option: str) -> dict[str, str]:
        """Return as what the users or the items of each table are read, by table."""
        found: dict[str, str] = {}
        if option == "user":
            found[self.table.what] = _frames.kind_of(self.table, "user")
        elif self.items is not None:
            found[self.items.what] = _frames.kind_of(self.items, "item")
        elif self.table.has("entry"):
            element = _frames.type_of(self.table, "entry").elementType
            if self.table.has("item"):
                element = element[str(self.table.columns["item"])].dataType
            where = f"column {self.table.columns['entry']!r} of {self.table.what}"
            found[self.table.what] = _frames.id_kind(element.simpleString(), where, "item")
        else:
            found[self.table.what] = _frames.kind_of(self.table, "item")
        return found

    def rows(self, kinds: IdKinds, number: int) -> Frame:
        """Return the rows of the source in the form of all rows, with this number."""
        table = self.table
        if self.kind == "factors":
            columns = {"f": table["vector"], "f_type": self.array_type(kinds)}
            if table.has("bias"):
                columns["x"] = table["bias"]
            return _frames.rows(table, number, kinds, **columns)
        if self.kind == "arrays":
            return self._of_arrays(kinds, number)
        if self.kind == "pairs":
            truth = self.options["truth"]
            columns = {"i": table["item"], "x": _frames.to_rank_by(table, "score")}
            return _frames.rows(
                table, number, kinds, **columns, **({} if truth is None else {"y": table[truth]})
            )
        by = self.options["by"]
        number_of = table[by] if by == "rank" else _frames.to_rank_by(table, by)
        place = number_of if by == "rank" else f"-CAST({number_of} AS double)"
        return _frames.rows(table, number, kinds, i=table["item"], x=number_of, p=place)

    def array_type(self, kinds: IdKinds) -> str:
        """Return the Spark type of the array that a row of the source holds."""
        if self.kind != "arrays":
            return str(self.options.get("array", "array<float>"))
        if self.table.has("score"):
            return f"array<struct<i:{kinds.item},x:double>>"
        return f"array<{kinds.item}>"

    def _of_arrays(self, kinds: IdKinds, number: int) -> Frame:
        table, entry = self.table, self.table["entry"]
        if table.has("score"):
            fields = f"'i', e.{table['item']}, 'x', e.{table['score']}"
            entry = f"transform({entry}, e -> named_struct({fields}))"
        elif table.has("item"):
            entry = f"{entry}.{table['item']}"
        columns = {"f": f"coalesce({entry}, array())", "f_type": self.array_type(kinds)}
        return _frames.rows(table, number, kinds, **columns)


def read_source(given: object, what: str = "The first argument") -> Given:
    """Return a source on Spark of what `evaluate` was given, as the argument called `what`."""
    # A DataFrame of Connect has every attribute, as a column.
    parts = ("userFactors", "itemFactors", "rank")
    if not _frames.is_frame(given) and all(hasattr(given, name) for name in parts):
        given = Factors(given.userFactors, given.itemFactors)  # type: ignore[attr-defined]
    if isinstance(given, Factors):
        return _factors(given)
    if isinstance(given, Lists):
        return _lists(given)
    if isinstance(given, Pairs):
        return _pairs(given)
    hint = "rs.Lists(frame), rs.Factors(user_factors, item_factors) or rs.Pairs(frame)"
    raise InputTypeError(
        f"{what} on Spark must be a source, found {type(given).__name__}. Hint: with "
        f"import recometer.spark as rs, {hint}; or an ALSModel."
    )


def _factors(given: Factors) -> Given:
    users, items = given.tables()
    single = given.is_single()
    options = {
        "array": f"array<{'float' if single else 'double'}>",
        "user_bias": given.user_bias is not None,
    }
    like = one_machine.Factors([[0.0]], [[0.0]])
    text = f"Factors on Spark: {'float32' if single else 'float64'} of column {given.vector!r}"
    return Given("factors", options, users, items, _described(like, text))


def _lists(given: Lists) -> Given:
    table = given.table()
    like = OneLists({"user": ["item"]}, depth=given.depth)  # checks depth
    by = next((name for name in ("rank", "score") if table.has(name)), None)
    kind = "arrays" if table.has("entry") else "lists"
    like.has_input_order = kind == "arrays"
    cut = "" if given.depth is None else f", cut at {given.depth:,}"
    order = "in the order of arrays" if by is None else f"by column {table.columns[by]!r}"
    text = f"Lists on Spark: {order}{cut}"
    options = {"by": by, "depth": given.depth}
    return Given(kind, options, table, None, _described(like, text))


def _pairs(given: Pairs) -> Given:
    import pyarrow as pa

    table = given.table()
    truth = next((name for name in ("relevance", "rating") if table.has(name)), None)
    columns: dict[str, Any] = {"user": "u", "item": "i", "score": "x"}
    columns |= {} if truth is None else {truth: "y"}
    row = pa.table({"u": ["user"], "i": ["item"], "x": [1.0], "y": [1.0]})
    like = OnePairs.of_some_users(row, threshold=given.threshold, **columns)
    text = f"Pairs on Spark: scores of column {table.columns['score']!r}" + (
        ", no truth" if truth is None else f", truth of column {table.columns[truth]!r}"
    )
    options = {"truth": truth, "threshold": given.threshold}
    return Given("pairs", options, table, None, _described(like, text))


def _described(source: Source, text: str) -> Source:
    source.describe = lambda: text  # type: ignore[method-assign]
    source.arrays = dict  # type: ignore[method-assign]  # none are here
    return source


class ItemSizes(NamedTuple):
    """How many items there are, and the bytes of their factors and ids."""

    n_items: int
    n_bytes: int


def item_sizes(items: Table) -> ItemSizes:
    """Return how much the factors of all items are."""
    row = items.frame.selectExpr(
        "count(*) AS n",
        f"coalesce(max(size({items['vector']})), 0) AS k",
        f"coalesce(sum(octet_length(CAST({items['item']} AS string))), 0) AS t",
    ).collect()[0]
    width = 4 if _frames.type_of(items, "vector").elementType.typeName() == "float" else 8
    n, k = int(row["n"]), int(row["k"])
    if not n:
        raise InputError("Factors has no items to rank.")
    return ItemSizes(n, n * k * width + int(row["t"]))


def read_items(items: Table, kind: str, array: str) -> ItemFactors:
    """Collect the factors of all items by ascending ids, to send them along with the job."""
    bias = items["bias"] if items.has("bias") else "NULL"
    frame = items.frame.selectExpr(
        f"CAST({items['item']} AS {kind}) AS i",
        f"CAST({items['vector']} AS {array}) AS f",
        f"CAST({bias} AS double) AS b",
    )
    table = frame.toArrow()
    if not table.num_rows:
        raise InputError("Factors has no items to rank.")
    if table["i"].null_count or table["f"].null_count:
        raise InputError("item_factors has rows without an id or factors. Hint: drop them.")
    named = ids(table["i"])
    order = np.argsort(named, kind="stable")
    factors = vectors(table["f"], None, "item_factors")[order]
    own = numbers(table["b"])[order].astype(factors.dtype) if items.has("bias") else None
    return ItemFactors(named[order], np.ascontiguousarray(factors), own)


def every_item(found: Given, others: Sequence[Table], kinds: IdKinds, closure: int) -> Array:
    """Collect the ids of the items of all lists or pairs, and of other tables, ascending.

    Raises
    ------
    InputError
        If they take more than `closure` bytes.
    """
    of_structs = found.kind == "arrays" and found.table.has("score")
    item = "explode(f.i)" if of_structs else "explode(f)" if found.kind == "arrays" else "i"
    frames = [found.rows(kinds, 0).selectExpr(f"{item} AS i")]
    frames += [one.frame.selectExpr(f"CAST({one['item']} AS {kinds.item}) AS i") for one in others]
    items = _frames.together(frames).where("i IS NOT NULL").distinct()
    check_travels(items, "What is drawn depends on all items, and the ids of", closure)
    return np.sort(ids(items.toArrow()["i"]))


def check_travels(frame: Frame, what: str, closure: int) -> None:
    """Refuse to collect a row per item if there are too many.

    Raises
    ------
    InputError
        If they take more than `closure` bytes.
    """
    n_items = frame.count()
    if BYTES_PER_ITEM * n_items > closure:
        raise InputError(
            f"{what} {n_items:,} items takes more than closure={closure / 1e6:,.1f} MB. Hint: a "
            "larger closure=, or leave out what reads it."
        )

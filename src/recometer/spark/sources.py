"""What an evaluation on Spark is given: DataFrames, and the meanings of their columns."""

from __future__ import annotations

import dataclasses
import numbers as numbers_of_python
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np

import recometer.sources.factors as one_machine
from recometer.arrays import Array
from recometer.data.columns import check_column, choose_columns
from recometer.data.numbers import size_in_words
from recometer.errors import ColumnError, InputError, InputTypeError, brief
from recometer.sources.base import Source
from recometer.sources.lists import Lists as OneLists
from recometer.sources.pairs import Pairs as OnePairs
from recometer.spark.tables import (
    IDS,
    Frame,
    IdKinds,
    Table,
    acted,
    biases,
    ids,
    is_frame,
    memory,
    need_frame,
    quoted,
    refusing,
    vectors,
)

NAMED = dict.fromkeys(("user_ids", "item_ids"), IDS)
OF_LISTS = {**NAMED, "item_offset": IDS}
OF_INTERACTIONS = {
    **OF_LISTS,
    **dict.fromkeys(("n_users", "n_items"), IDS),
    "time": "evaluations read no times. Hint: rs.split and rs.audit take time=",
}
OF_FACTORS = {**NAMED, "allow_tf32": "executors rank on their processors. Hint: leave it out"}


@dataclasses.dataclass(frozen=True, eq=False)
class Given:
    """A source on Spark."""

    kind: str  # "factors", "lists", "arrays" or "pairs"
    options: Mapping[str, Any]  # of the class of one machine
    table: Table  # the rows that belong to users
    numbers: Mapping[str, str]  # what the fields x and y of a row hold, as `table` calls it
    like: Source  # one of the same kind on one machine, which knows what rules change nothing
    items: Table | None = None  # of item factors

    @property
    def of_items(self) -> Table:
        """The table that names items."""
        return self.table if self.items is None else self.items

    def cells(self, kinds: IdKinds) -> Frame:
        """Return the rows of users with what is read of each; see `Table.cells`."""
        table = self.table
        if self.kind == "arrays":
            return table.cells(kinds, f=f"coalesce({self._entries(kinds)}, array())")
        if self.kind == "factors":
            fields = {"f": f"CAST({table['vector']} AS {self.options['array']})"}
        else:
            fields = {"i": f"CAST({table['item']} AS {kinds.item})"}
        fields |= {name: table.number(option) for name, option in self.numbers.items()}
        return table.cells(kinds, **fields)

    def _entries(self, kinds: IdKinds) -> str:
        table, entry = self.table, self.table["entry"]
        if not table.has("score"):
            own = f"{entry}.{table['item']}" if table.has("item") else entry
            return f"CAST({own} AS array<{kinds.item}>)"
        kind = table.type_of("score")
        if kind.typeName() in ("string", "array", "struct"):
            raise InputTypeError(
                f"The scores (field {table.columns['score']!r} of column {entry} of Lists) must be "
                f"numbers, found {kind.simpleString()}. Hint: score=False uses the order alone."
            )
        return (
            f"transform({entry}, e -> named_struct('i', CAST(e.{table['item']} AS {kinds.item}), "
            f"'x', CAST(e.{table['score']} AS double)))"
        )


@refusing(OF_INTERACTIONS)
@dataclasses.dataclass(frozen=True, eq=False)
class Interactions:
    """A DataFrame of interactions whose columns do not have common names.

    Parameters
    ----------
    frame
        A row per interaction.
    user, item, value
        As in `recometer.Interactions.of`, also ``user=["user", "session"]``.
    """

    frame: Frame
    user: str | Sequence[str] | None = None
    item: str | None = None
    value: str | Literal[False] | None = None

    @classmethod
    def read(cls, data: object, what: str) -> Table:
        """Return the columns of test, train or candidates that are read."""
        given = data if isinstance(data, cls) else cls(data)
        columns = {"user": given.user, "item": given.item, "value": given.value}
        return Table.of(given.frame, what, columns)


@refusing(OF_FACTORS)
@dataclasses.dataclass(frozen=True, eq=False)
class Factors:
    """A model whose score of a user and an item is a dot product; see `recometer.Factors`.

    Parameters
    ----------
    user_factors, item_factors
        DataFrames with a row per user, and with a row per item, like `ALSModel.userFactors` and
        `ALSModel.itemFactors`.
    id
        The column of ids in both.
    vector
        The column of arrays of numbers in both; all arrays have the same length.
    user_bias, item_bias
        Columns of biases. None means that there are none.
    """

    user_factors: Frame
    item_factors: Frame
    id: str = "id"
    vector: str = "features"
    user_bias: str | None = None
    item_bias: str | None = None

    def read(self) -> Given:
        """Check the columns, and return what is read of them."""
        users = self._table("user", self.user_factors, self.user_bias)
        items = self._table("item", self.item_factors, self.item_bias)
        kinds = {one.type_of("vector").elementType.typeName() for one in (users, items)}
        width, array = ("float32", "float") if kinds == {"float"} else ("float64", "double")
        like = _described(
            one_machine.Factors([[0.0]], [[0.0]]),
            f"Factors on Spark: {width} of column {self.vector!r}",
        )
        bias = {} if self.user_bias is None else {"x": "bias"}
        return Given("factors", {"array": f"array<{array}>"}, users, bias, like, items)

    def _table(self, option: str, given: object, bias: str | None) -> Table:
        what = f"{option}_factors"
        frame = need_frame(given, what)
        columns = {option: self.id, "vector": self.vector, "bias": bias}
        for name in filter(None, columns.values()):
            check_column("column", name, frame.columns)
        table = Table(what, frame, columns)
        kind = table.type_of("vector")
        element = kind.elementType.typeName() if kind.typeName() == "array" else ""
        if element not in ("float", "double"):
            hint = ""
            if kind.typeName() in ("udt", "vector", "vectorudt"):
                hint = " Hint: pyspark.ml.functions.vector_to_array makes an array of a vector."
            raise ColumnError(
                f"Column {self.vector!r} of {what} must hold arrays of float or double, found "
                f"{kind.simpleString()}.{hint}"
            )
        return table


@refusing(OF_LISTS)
@dataclasses.dataclass(frozen=True, eq=False)
class Lists:
    """Lists of recommended items, a list per user; see `recometer.Lists`.

    Parameters
    ----------
    frame
        A row per user and item, with a rank (1 is best) or a score; or a row per user with an
        array, best first, of items or of structs as ``ALSModel.recommendForAllUsers`` returns them.
    user, item, rank, score, depth
        As in `recometer.Lists`. If there are both ranks and scores, one of them has to be named.
        For structs, `item` is the column and `score` the field; with ``score=False`` the order of
        an array is the ranking.
    """

    frame: Frame
    user: str | Sequence[str] | None = None
    item: str | None = None
    rank: str | Literal[False] | None = None
    score: str | Literal[False] | None = None
    depth: int | None = None

    def read(self) -> Given:
        """Find the columns, and return what is read of them."""
        frame = need_frame(self.frame, "The frame of Lists")
        arrays = [f.name for f in frame.schema.fields if f.dataType.typeName() == "array"]
        named = self.item if self.item in arrays else None
        if named is None and self.item is None and len(arrays) == 1:
            named = arrays[0]
        table = self._of_rows(frame) if named is None else self._of_arrays(frame, named)
        by = next((name for name in ("rank", "score") if table.has(name)), None)
        cut = "" if self.depth is None else f", cut at {self.depth:,}"
        order = "in the order of arrays" if by is None else f"by column {table.columns[by]!r}"
        one = OneLists({"user": ["item"]}, depth=self.depth)  # checks depth
        like = _described(one, f"Lists on Spark: {order}{cut}")
        like.facts = dataclasses.replace(like.facts, input_order=named is not None)
        kind, numbers = ("lists", {"x": str(by)}) if named is None else ("arrays", {})
        return Given(kind, {"by": by, "depth": self.depth}, table, numbers, like)

    def _of_rows(self, frame: Frame) -> Table:
        if isinstance(self.score, str) and isinstance(self.rank, str):
            raise InputError("rank= and score= were both given. Hint: name the one to rank by.")
        wanted = {"user": self.user, "item": self.item, "rank": self.rank, "score": self.score}
        for one, other in (("rank", "score"), ("score", "rank")):
            if isinstance(wanted[one], str) and wanted[other] is None:
                wanted[other] = False
        table = Table.of(frame, "Lists", wanted, strict=("score",))
        if not table.has("rank"):
            table = Table.of(frame, "Lists", wanted)
        elif table.has("score"):
            rank, score = table.columns["rank"], table.columns["score"]
            raise InputError(
                f"Lists has ranks in column {rank!r} and scores in {score!r}, which may disagree. "
                f"Hint: rank={rank!r} or score={score!r} names the one to rank by."
            )
        if not table.has("rank") and not table.has("score"):
            raise ColumnError(
                "The frame of Lists has no column with a common name for ranks or scores, and "
                f"rows on Spark have no order. Hint: rank= or score= names one of "
                f"{', '.join(frame.columns)}."
            )
        return table

    def _of_arrays(self, frame: Frame, entry: str) -> Table:
        others = [quoted(name) for name in frame.columns if name != entry]
        users = Table.of(frame.select(*others), "Lists", {"user": self.user}, required=("user",))
        element = frame.schema[entry].dataType.elementType
        columns = {**users.columns, "entry": entry, "item": None, "score": None}
        if isinstance(self.rank, str):
            raise InputError("rank= does not apply to arrays. Hint: they are read best first.")
        if element.typeName() == "struct":
            fields = [field.name for field in element.fields]
            inner = choose_columns(fields, {"item": None, "score": self.score}, required=("item",))
            columns |= {"item": inner["item"], "score": inner["score"]}
        elif isinstance(self.score, str):
            raise InputError(
                f"score={self.score!r} names a field, but column {entry!r} holds no structs. Hint: "
                "leave score= out; arrays of items are read best first."
            )
        return Table("Lists", frame, columns)


@dataclasses.dataclass(frozen=True, eq=False)
class Pairs:
    """Scored pairs of a user and an item, which also contain the truth; see `recometer.Pairs`.

    Parameters
    ----------
    frame
        A row per pair.
    user, item, score, relevance, rating, threshold
        As in `recometer.Pairs`; no threshold for each user. ``relevance=False, rating=False`` says
        that there is no truth, and that you pass test to `evaluate`.
    """

    frame: Frame
    user: str | Sequence[str] | None = None
    item: str | None = None
    score: str | None = None
    relevance: str | Literal[False] | None = None
    rating: str | Literal[False] | None = None
    threshold: Any = None

    def read(self) -> Given:
        """Find the columns, and return what is read of them."""
        import pyarrow as pa

        threshold: Any = self.threshold
        if not (threshold is None or isinstance(threshold, numbers_of_python.Real | str)):
            raise InputTypeError(
                f"threshold={brief(threshold)} must be a number, 'user_mean' or None on Spark."
            )
        truths = {"relevance": self.relevance, "rating": self.rating}
        named = [name for name, given in truths.items() if isinstance(given, str)]
        if len(named) == 1:
            truths = {name: truths[name] if name in named else False for name in truths}
        wanted = {"user": self.user, "item": self.item, "score": self.score, **truths}
        required = ("user", "item", "score")
        table = Table.of(self.frame, "Pairs", wanted, required=required, strict=("score",))
        found = [name for name in truths if table.has(name)]
        if len(found) == 2:
            both = [f"{name}={table.columns[name]!r}" for name in found]
            raise InputError(
                f"{' and '.join(both)} are two truths. Hint: name the one that counts."
            )
        truth = found[0] if found else None
        numbers = {"x": "score"} if truth is None else {"x": "score", "y": truth}
        columns: dict[str, Any] = {option: name for name, option in numbers.items()}
        row = pa.table({"u": ["user"], "i": ["item"], "x": [1.0], "y": [1.0]})
        one = OnePairs.of_some_users(row, threshold=self.threshold, user="u", item="i", **columns)
        of = "no truth" if truth is None else f"truth of column {table.columns[truth]!r}"
        text = f"Pairs on Spark: scores of column {table.columns['score']!r}, {of}"
        options = {"truth": truth, "threshold": threshold}
        return Given("pairs", options, table, numbers, _described(one, text))


def read_source(given: object, what: str = "The first argument") -> Given:
    """Return a source on Spark of what `evaluate` was given, as the argument called `what`."""
    # A DataFrame of Connect has every attribute, as a column.
    parts = ("userFactors", "itemFactors", "rank")
    if not is_frame(given) and all(hasattr(given, name) for name in parts):
        given = Factors(given.userFactors, given.itemFactors)  # type: ignore[attr-defined]
    if isinstance(given, Factors | Lists | Pairs):
        return given.read()
    hint = "rs.Lists(frame), rs.Factors(user_factors, item_factors) or rs.Pairs(frame)"
    raise InputTypeError(
        f"{what} on Spark must be a source, found {type(given).__name__}. Hint: with "
        f"import recometer.spark as rs, {hint}; or an ALSModel."
    )


def with_columns(data: object, **columns: Any) -> Interactions:
    """Return data with the columns that are named beside them; not if they name some themselves."""
    if not isinstance(data, Interactions):
        return Interactions(data, **columns)
    for option, name in columns.items():
        if name is not None:
            raise InputError(
                f"{option}={name!r} was given beside recometer.spark.Interactions, which names "
                f"columns itself. Hint: rs.Interactions(frame, {option}={name!r})."
            )
    return data


def read_items(given: Given, kinds: IdKinds) -> tuple[Array, Array, Array | None]:
    """Bring the ids, factors and biases of all items to the driver, by ascending ids.

    Raises
    ------
    InputError
        If they do not fit there, or there are none.
    """
    items, array = given.items, given.options["array"]
    assert items is not None
    size = f"coalesce(max(size({items['vector']})), 0)"
    n, width = acted(items.frame.selectExpr("count(*)", size).collect)[0]
    n_bytes = n * width * (4 if "float" in array else 8)
    if n_bytes > memory() / 2:
        raise InputError(
            f"The factors of {n:,} items take {size_in_words(n_bytes)}, more than half the memory "
            "of the driver. Hint: a larger driver; or rs.Lists of what the model recommends, which "
            "needs no factors."
        )
    if not n:
        raise InputError("Factors has no items to rank.")
    bias = items.number("bias") if items.has("bias") else "CAST(NULL AS double)"
    item, vector = f"CAST({items['item']} AS {kinds.item})", f"CAST({items['vector']} AS {array})"
    frame = items.frame.selectExpr(f"{item} AS i", f"{vector} AS f", f"{bias} AS b")
    table = acted(frame.toArrow).combine_chunks()
    if table["i"].null_count or table["f"].null_count:
        raise InputError("item_factors has rows without an id or factors. Hint: drop them.")
    named = ids(table["i"])
    order = np.argsort(named, kind="stable")
    factors = np.ascontiguousarray(vectors(table["f"].combine_chunks(), None, items.what)[order])
    own = biases(table["b"], factors.dtype)[order] if items.has("bias") else None
    return named[order], factors, own


def _described(source: Source, text: str) -> Any:
    """Return a source that stands for one on Spark, with its description."""
    source.describe = lambda: text  # type: ignore[method-assign]
    # None of its arrays are here.
    source.facts = dataclasses.replace(source.facts, arrays={})  # type: ignore[misc]
    return source

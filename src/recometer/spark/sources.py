"""Model output on Spark: DataFrames, and the meanings of their columns."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np

import recometer.sources.factors as one_machine
from recometer.arrays import Array
from recometer.data.columns import check_column, choose_columns
from recometer.data.numbers import all_numbers, size_in_words
from recometer.errors import ColumnError, InputError, InputTypeError
from recometer.sources.base import Source
from recometer.sources.lists import Lists as ListsHere
from recometer.sources.pairs import Pairs as PairsHere
from recometer.spark import tables
from recometer.spark.tables import Frame, IdKinds, Table, acted
from recometer.tasks import memory

TRUTHS = ("relevance", "rating")


@dataclasses.dataclass(frozen=True, eq=False)
class Output:
    """A model's output: DataFrames on the driver, which executors read block by block."""

    kind: str  # "factors", "lists" or "pairs"
    table: Table  # the table that contains the users' rows
    options: Mapping[str, Any]  # options of the `recometer` source, except for column names
    like: Any = None  # on the driver, a `recometer` source with the same `Facts`
    items: Table | None = None  # on the driver, the table of item factors
    item_factors: tuple[Array, Array, Array | None] | None = None  # ids, factors and biases
    every_item: Array | None = None  # all items, if random draws depend on them

    @property
    def of_items(self) -> Table:
        """The table that contains the ids of all items."""
        return self.table if self.items is None else self.items

    def for_executors(self, kinds: IdKinds, every_item: Array | None) -> Output:
        """Return the part that executors need, including the factors of all items."""
        return Output(
            self.kind,
            dataclasses.replace(self.table, frame=None),
            self.options,
            item_factors=None if self.items is None else read_items(self.items, kinds),
            every_item=every_item,
        )

    def source(self, rows: Any) -> Source:
        """Return a `recometer` source for some rows of `table`, passed as an Arrow table."""
        if self.item_factors is not None:
            item_ids, factors, item_bias = self.item_factors
            columns = {option: name for option, name in self.table.columns.items() if name}
            user_factors = _vectors(
                rows[columns["vector"]].combine_chunks(), factors.shape[1], self.table.label
            )
            bias = _biases(rows[columns["bias"]], factors.dtype) if "bias" in columns else None
            return one_machine.Factors(
                user_factors.astype(factors.dtype, copy=False),
                factors,
                user_bias=bias,
                item_bias=item_bias,
                user_ids=tables.ids(rows[columns["user"]]),
                item_ids=item_ids,
            )
        of_kind: Any = PairsHere if self.kind == "pairs" else ListsHere
        options = {**self.table.options, **self.options, "every_item": self.every_item}
        source: Source = of_kind.of_some_users(rows, **options)
        return source


@dataclasses.dataclass(frozen=True, eq=False)
class Interactions:
    """A DataFrame of interactions whose columns do not have common names.

    Parameters
    ----------
    frame
        A row per interaction.
    user, item, value
        As in `recometer.Interactions.of`, including ``user=["user", "session"]``.
    """

    frame: Frame
    user: str | Sequence[str] | None = None
    item: str | None = None
    value: str | Literal[False] | None = None

    @classmethod
    def read(cls, data: object, label: str, *, time: object = False, **columns: object) -> Table:
        """Find the columns of interactions; `columns` names the columns of a plain DataFrame."""
        if isinstance(data, cls):
            for option, name in columns.items():
                if name is not None:
                    raise InputError(
                        f"{option}={name!r} was passed, but recometer.spark.Interactions already "
                        f"names its columns. Hint: rs.Interactions(frame, {option}={name!r})."
                    )
            columns = {"user": data.user, "item": data.item, "value": data.value}
            data = data.frame
        requested = {"user": None, "item": None, "value": None, **columns, "time": time}
        return Table.of(data, label, requested)


@dataclasses.dataclass(frozen=True, eq=False)
class Factors:
    """A model whose scores are dot products of user and item factors; see `recometer.Factors`.

    Parameters
    ----------
    user_factors, item_factors
        A DataFrame with a row per user, and one with a row per item, like `ALSModel.userFactors`
        and `ALSModel.itemFactors`.
    id
        The name of the id column in both DataFrames.
    vector
        The name of the factor column in both DataFrames. The column contains arrays of numbers, all
        of the same length.
    user_bias, item_bias
        The names of the bias columns. None means that there are no biases.
    """

    user_factors: Frame
    item_factors: Frame
    id: str = "id"
    vector: str = "features"
    user_bias: str | None = None
    item_bias: str | None = None

    def read(self) -> Output:
        """Check the columns."""
        sides = [
            self._table("user", self.user_factors, self.user_bias),
            self._table("item", self.item_factors, self.item_bias),
        ]
        single = all(side.type_of("vector").elementType.typeName() == "float" for side in sides)
        casts = {"vector": f"array<{'float' if single else 'double'}>"}
        users, items = (dataclasses.replace(side, casts=casts) for side in sides)
        width = "float32" if single else "float64"
        text = f"Factors on Spark: {width} of column {self.vector!r}"
        like = _stand_in(one_machine.Factors([[0.0]], [[0.0]]), text)
        return Output("factors", users, {}, like, items)

    def _table(self, option: str, data: object, bias: str | None) -> Table:
        label = f"{option}_factors"
        frame = tables.need_frame(data, label)
        columns = {option: self.id, "vector": self.vector, "bias": bias}
        for name in filter(None, columns.values()):
            check_column("column", name, frame.columns)
        table = Table(label, frame, columns)
        kind = table.type_of("vector")
        element = kind.elementType.typeName() if kind.typeName() == "array" else ""
        if element not in ("float", "double"):
            hint = ""
            if kind.typeName() in ("udt", "vector", "vectorudt"):
                hint = " Hint: pyspark.ml.functions.vector_to_array converts a vector to an array."
            raise ColumnError(
                f"Column {self.vector!r} of {label} must hold arrays of float or double, found "
                f"{kind.simpleString()}.{hint}"
            )
        return table


@dataclasses.dataclass(frozen=True, eq=False)
class Lists:
    """Lists of recommended items, one per user; see `recometer.Lists`.

    Parameters
    ----------
    frame
        Either a row per user and item, with a rank (1 is best) or a score, or a row per user with
        an array, sorted best first, of items or of structs like those that
        ``ALSModel.recommendForAllUsers`` returns.
    user, item, rank, score, depth
        As in `recometer.Lists`. If the frame has both ranks and scores, you must name one of them.
        For structs, `item` names the array column and `score` a field of the structs; with
        ``score=False``, the order of the array is the ranking.
    """

    frame: Frame
    user: str | Sequence[str] | None = None
    item: str | None = None
    rank: str | Literal[False] | None = None
    score: str | Literal[False] | None = None
    depth: int | None = None

    def read(self) -> Output:
        """Find the columns."""
        frame = tables.need_frame(self.frame, "The frame of Lists")
        arrays = [f.name for f in frame.schema.fields if f.dataType.typeName() == "array"]
        entry = self.item if self.item in arrays else None
        if self.item is None and len(arrays) == 1:
            entry = arrays[0]
        table = self._of_rows(frame) if entry is None else self._of_arrays(frame, entry)
        key = next(filter(table.has_column, ("rank", "score")), None)
        cut = "" if self.depth is None else f", cut at {self.depth:,}"
        order = "in the order of arrays" if key is None else f"by column {table.columns[key]!r}"
        example = ListsHere({"user": ["item"]}, depth=self.depth)  # checks depth
        like = _stand_in(example, f"Lists on Spark: {order}{cut}", input_order=entry is not None)
        return Output("lists", table, {"depth": self.depth}, like)

    def _of_rows(self, frame: Frame) -> Table:
        columns = {"user": self.user, "item": self.item, "rank": self.rank, "score": self.score}
        for option, alternative in (("rank", "score"), ("score", "rank")):
            if isinstance(columns[option], str) and columns[alternative] is None:
                columns[alternative] = False
        table = Table.of(frame, "Lists", columns, strict=("score",))
        if not table.has_column("rank"):
            table = Table.of(frame, "Lists", columns)
        elif table.has_column("score"):
            rank, score = table.columns["rank"], table.columns["score"]
            raise InputError(
                f"Lists has ranks in column {rank!r} and scores in {score!r}, which may disagree. "
                f"Hint: pass only the one to rank by, rank={rank!r} or score={score!r}."
            )
        if not table.has_column("rank") and not table.has_column("score"):
            raise ColumnError(
                "The frame of Lists has no column with a common name for ranks or scores, and rows "
                "on Spark have no order. Hint: set rank= or score= to one of "
                f"{', '.join(frame.columns)}."
            )
        return table

    def _of_arrays(self, frame: Frame, entry: str) -> Table:
        names = [tables.quoted(name) for name in frame.columns if name != entry]
        users = Table.of(frame.select(*names), "Lists", {"user": self.user}, required=("user",))
        element = frame.schema[entry].dataType.elementType
        columns: dict[str, str | None] = {**users.columns, "item": entry}
        if isinstance(self.rank, str):
            raise InputError("rank= does not apply to arrays. Hint: they are read best first.")
        if element.typeName() == "struct":
            fields = [field.name for field in element.fields]
            columns |= choose_columns(
                fields, {"item": None, "score": self.score}, required=("item",)
            )
        elif isinstance(self.score, str):
            raise InputError(
                f"score={self.score!r} names a field, but column {entry!r} holds no structs. Hint: "
                "leave score= out; arrays of items are read best first."
            )
        return Table("Lists", frame, columns, entry)


@dataclasses.dataclass(frozen=True, eq=False)
class Pairs:
    """Scored user-item pairs, which may have labels; see `recometer.Pairs`.

    Parameters
    ----------
    frame
        A row per pair.
    user, item, score, relevance, rating, threshold
        As in `recometer.Pairs`. ``relevance=False, rating=False`` means that the pairs have neither
        labels nor true ratings, so that you must pass `test` to `evaluate`.
    """

    frame: Frame
    user: str | Sequence[str] | None = None
    item: str | None = None
    score: str | None = None
    relevance: str | Literal[False] | None = None
    rating: str | Literal[False] | None = None
    threshold: Any = None

    def read(self) -> Output:
        """Find the columns."""
        import pyarrow as pa

        truths = {"relevance": self.relevance, "rating": self.rating}
        if sum(isinstance(name, str) for name in truths.values()) == 1:
            truths = {option: name or False for option, name in truths.items()}
        columns = {"user": self.user, "item": self.item, "score": self.score, **truths}
        required = ("user", "item", "score")
        table = Table.of(self.frame, "Pairs", columns, required=required, strict=("score",))
        options = {**table.options, "threshold": self.threshold}
        # Let the `recometer` source check the options on a table with a single row.
        row = {
            name: [1.0] if option in ("score", *TRUTHS) else ["id"]
            for option, name in table.columns.items()
            if name is not None
        }
        example = PairsHere.of_some_users(pa.table(row), **options)
        truth = next(filter(table.has_column, TRUTHS), None)
        truth_text = "no labels" if truth is None else f"labels of column {table.columns[truth]!r}"
        text = f"Pairs on Spark: scores of column {table.columns['score']!r}, {truth_text}"
        return Output("pairs", table, {"threshold": self.threshold}, _stand_in(example, text))


def read_output(data: object, label: str = "The first argument") -> Output:
    """Return the output of a model; error messages call the argument `label`."""
    # Spark Connect's DataFrames return a column for any attribute.
    parts = ("userFactors", "itemFactors", "rank")
    if not tables.is_frame(data) and all(hasattr(data, name) for name in parts):
        data = Factors(data.userFactors, data.itemFactors)  # type: ignore[attr-defined]
    if isinstance(data, Factors | Lists | Pairs):
        return data.read()
    hint = "rs.Lists(frame), rs.Factors(user_factors, item_factors) or rs.Pairs(frame)"
    raise InputTypeError(
        f"{label} on Spark must be a source, found {type(data).__name__}. Hint: with "
        f"import recometer.spark as rs, {hint}; or an ALSModel."
    )


def read_items(items: Table, kinds: IdKinds) -> tuple[Array, Array, Array | None]:
    """Collect the ids, factors and biases of all items on the driver, ordered by id."""
    vector = items.sql("vector", kinds)
    size = f"coalesce(max(size({vector})), 0)"
    n, width = acted(items.frame.selectExpr("count(*)", size).collect)[0]
    n_bytes = n * width * (4 if "float" in items.casts["vector"] else 8)
    if n_bytes > memory() / 2:
        raise InputError(
            f"The factors of {n:,} items take {size_in_words(n_bytes)}, more than half the memory "
            "of the driver. Hint: use a larger driver, or rs.Lists of recommendations, "
            "which needs no factors."
        )
    if not n:
        raise InputError("Factors has no items to rank.")
    frame = items.select(("item", "vector", "bias"), kinds)
    table = acted(frame.toArrow).combine_chunks()
    if table["i"].null_count or table["v"].null_count:
        raise InputError("item_factors has rows without an id or factors. Hint: drop them.")
    item_ids = tables.ids(table["i"])
    order = np.argsort(item_ids, kind="stable")
    factors = np.ascontiguousarray(_vectors(table["v"].combine_chunks(), None, items.label)[order])
    bias = _biases(table["b"], factors.dtype)[order] if items.has_column("bias") else None
    return item_ids[order], factors, bias


def _vectors(column: Any, n_factors: int | None, label: str) -> Array:
    """Convert an Arrow column of arrays (of equal length, without nulls) to a matrix."""
    import pyarrow.compute as pc

    lengths = pc.list_value_length(column).to_numpy(zero_copy_only=False)
    width = n_factors if n_factors is not None else lengths[0] if len(lengths) else 0
    differs = lengths != width
    flat = pc.list_flatten(column)
    if differs.any() or flat.null_count:
        raise InputError(
            f"A row of {label} has {lengths[differs][0] if differs.any() else 'missing'} factors, "
            f"but others have {width}. Hint: all rows need the same number."
        )
    return np.asarray(flat.to_numpy(zero_copy_only=False)).reshape(len(lengths), int(width))


def _biases(column: Any, dtype: Any) -> Array:
    """Convert an Arrow column of biases to an array with the dtype of the factors."""
    return all_numbers(column.to_numpy(zero_copy_only=False), "biases").astype(dtype)


def _stand_in(source: Any, text: str, **facts: Any) -> Any:
    """Give a source the description and facts of its Spark counterpart, which has no arrays."""
    source.describe = lambda: text
    source.facts = dataclasses.replace(source.facts, arrays={}, **facts)
    return source

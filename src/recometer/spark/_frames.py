"""DataFrames of Spark: their columns, by what they hold, and the one form that all are brought to.

Expressions are SQL texts, which classic Spark and Spark Connect read alike.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, NoReturn

from recometer import errors
from recometer.errors import ColumnError, InputError, InputTypeError

Frame = Any

INTEGERS = ("tinyint", "smallint", "int", "bigint")
EXACT, ALMOST_ALL = 2**53, 2**63 - 2**10  # up to which double holds all integers; that are bigint
# The columns of all rows: user, which table the row is from, item, two numbers, place, and an
# array: factors, or the items of a list. Where users have sessions, "s" is the session.
COLUMNS = ("u", "t", "i", "x", "y", "p", "f")


class IdKinds(NamedTuple):
    """The Spark types that users and items are read as: ``"bigint"`` or ``"string"``.

    That of the sessions of users is None where there are none.
    """

    user: str
    item: str
    session: str | None = None


@dataclasses.dataclass(frozen=True, eq=False)
class Table:
    """A DataFrame and the columns of it that are read, by what they hold."""

    what: str  # "test", "train", ...
    frame: Frame
    columns: Mapping[str, str | None]

    def __getitem__(self, option: str) -> str:
        """Return the quoted name of a column that there is."""
        return quoted(str(self.columns[option]))

    def has(self, option: str) -> bool:
        """Return whether there is such a column."""
        return self.columns.get(option) is not None


def is_frame(data: object) -> bool:
    """Return whether this is a DataFrame of Spark, classic or Connect, without importing it."""
    return type(data).__module__.startswith("pyspark.sql.") and hasattr(data, "mapInArrow")


def need_frame(data: object, what: str) -> Frame:
    """Return a DataFrame; InputTypeError: it is something else."""
    if is_frame(data):
        return data
    raise InputTypeError(
        f"{what} must be a DataFrame of Spark, found {type(data).__name__}. Hint: "
        "spark.createDataFrame(...) makes one; recometer.evaluate reads what is on this machine."
    )


def quoted(name: str) -> str:
    """Return a column's name as SQL has it."""
    return "`" + name.replace("`", "``") + "`"


def type_of(table: Table, option: str) -> Any:
    """Return the Spark type of a column."""
    return table.frame.schema[str(table.columns[option])].dataType


def kind_of(table: Table, option: str) -> str:
    """Return as what ids are read: ``"bigint"`` or ``"string"``."""
    name = type_of(table, option).simpleString()
    return id_kind(name, f"column {table.columns[option]!r} of {table.what}", option)


def id_kind(name: str, where: str, option: str) -> str:
    """Return as what ids of a Spark type are read."""
    if name in INTEGERS:
        return "bigint"
    if name == "string" or name.startswith(("varchar", "char")):
        return "string"
    raise InputTypeError(
        f"The {where} holds {option}s as {name}; on Spark they are integers or strings. Hint: "
        f"cast it to bigint or to string, in all tables alike."
    )


def same_kind(kinds: Mapping[str, str], option: str) -> str:
    """Return the one kind that ids have in all tables; InputTypeError: they have two."""
    (first, kind), *others = kinds.items()
    for name, other in others:
        if other != kind:
            raise InputTypeError(
                f"The {option} ids of {first} are {_words(kind)}, those of {name} "
                f"{_words(other)}. Hint: cast one of them, so that they are alike."
            )
    return kind


def _words(kind: str) -> str:
    return "integers" if kind == "bigint" else "strings"


def rows(table: Table, number: int, kinds: IdKinds, **columns: str) -> Frame:
    """Return a table in the form of all rows; `columns` are SQL texts, NULL where there is none.

    `number` tells the tables apart. An array that is not given is empty: one that is NULL takes
    Spark ten times as long as all the rest of a row, on its way to Arrow.
    """
    values = {"u": table["user"], **columns}
    types = {"u": kinds.user, "i": kinds.item, "f": columns.get("f_type", "array<float>")}
    types["y"] = columns.get("y_type", "double")
    casts, names = [], list(COLUMNS)
    if kinds.session is not None:
        types["s"] = kinds.session
        values |= {"s": table["session"]} if table.has("session") else {}
        names.append("s")
    for name in names:
        if name == "t":
            casts.append(f"CAST({number} AS tinyint) AS t")
        else:
            value = values.get(name, "array()" if name == "f" else "NULL")
            casts.append(f"CAST({value} AS {types.get(name, 'double')}) AS {name}")
    return table.frame.selectExpr(*casts)


def to_rank_by(table: Table, option: str) -> str:
    """Return a column of scores as SQL; integers that float64 does not hold raise an error."""
    column = table[option]
    if type_of(table, option).simpleString() != "bigint":
        return column
    message = (
        f"recometer.errors.InputError: The scores (column {table.columns[option]!r} of "
        f"{table.what}) are ranked as double, which does not hold all integers beyond 2**53, and "
        "here they are such. Hint: subtract the same number from all."
    )
    message = message.replace("\\", "\\\\").replace("'", "\\'")
    lost = (
        f"{column} NOT BETWEEN -{EXACT} AND {EXACT} AND ({column} NOT BETWEEN -{ALMOST_ALL} AND "
        f"{ALMOST_ALL} OR CAST(CAST({column} AS double) AS bigint) <> {column})"
    )
    return f"CASE WHEN {lost} THEN raise_error('{message}') ELSE {column} END"


def users_of(table: Table, kinds: IdKinds) -> dict[str, str]:
    """Return what names users, as SQL texts by the name in all rows: u, and s for sessions."""
    found = {"u": f"CAST({table['user']} AS {kinds.user}) AS u"}
    if table.has("session"):
        found["s"] = f"CAST({table['session']} AS {kinds.session}) AS s"
    return found


def together(frames: Sequence[Frame]) -> Frame:
    """Return the rows of all frames."""
    found, *others = frames
    for other in others:
        found = found.unionByName(other)
    return found


def partitioned(frame: Frame, partitions: int | None, *within: str) -> Frame:
    """Put all rows of a user together, by table, and `within` it by some columns.

    Whatever else is read does not depend on the order of rows, and is sorted where it is read.
    """
    spread = frame.repartition("u") if partitions is None else frame.repartition(partitions, "u")
    return spread.sortWithinPartitions("u", "t", *within)


@dataclasses.dataclass(frozen=True, eq=False)
class Spread:
    """Rows that `partitioned` brings together by user, with its arguments."""

    rows: Frame
    partitions: int | None
    within: tuple[str, ...]

    def mapped(self, run: Callable[[Any], Any], schema: str, more: Frame | None = None) -> Frame:
        """Return what a function makes of the Arrow batches of all users, perhaps with `more`."""
        rows = self.rows
        if more is not None:
            rows = rows.unionByName(more, allowMissingColumns=True)
        return partitioned(rows, self.partitions, *self.within).mapInArrow(run, schema)


def check_partitions(given: object) -> None:
    """Raise InputError unless a number of partitions is None, or one that Spark can have."""
    whole = isinstance(given, int) and not isinstance(given, bool) and 0 < given < 2**31
    if given is not None and not whole:
        raise InputError(
            f"partitions={errors.brief(given)} must be a whole number, at least 1. Hint: None "
            "takes spark.sql.shuffle.partitions."
        )


def partitions_of(frame: Frame, given: int | None) -> int | None:
    """Return the number of parts that users are spread over. None lets Spark decide."""
    if given is not None:
        return given
    try:
        return int(frame.sparkSession.conf.get("spark.sql.shuffle.partitions"))
    except (TypeError, ValueError):  # "auto"
        return None


def check_array(data_type: Any, where: str) -> Any:
    """Return the type of an array's elements, or raise ColumnError for another type."""
    if data_type.typeName() != "array":
        hint = ""
        if data_type.typeName() in ("udt", "vector", "vectorudt"):
            hint = " Hint: pyspark.ml.functions.vector_to_array makes an array of a vector."
        raise ColumnError(f"{where} must hold arrays, found {data_type.simpleString()}.{hint}")
    return data_type.elementType


def persisted(rows: Frame) -> bool:
    """Let Spark keep computed rows. Return whether it can: serverless Spark has no cache."""
    from pyspark.errors import PySparkException

    try:
        rows.persist()
    except PySparkException:
        return False
    return True


def collected(frame: Frame) -> list[Any]:
    """Return the rows of a frame; an error of ours in a worker is raised as such.

    Raises
    ------
    RecometerError
        What a worker raised, without what Spark says around it.
    """
    found: list[Any] = _ours(frame.collect)
    return found


def _ours(call: Callable[[], Any]) -> Any:
    """Call a function, and raise an error of ours in a worker as such."""
    from pyspark.errors import PySparkException

    try:
        return call()
    except PySparkException as error:
        ours = re.search(r"recometer\.errors\.(\w+): (.*)", str(error))
        if ours is None:
            raise
        raise getattr(errors, ours[1])(ours[2]) from None


def raise_named(text: str) -> NoReturn:
    """Raise an error of ours that a worker gave as a text: its name, a colon and the message."""
    name, _, message = text.partition(":")
    kind = getattr(errors, name, errors.InternalError)
    raise kind(message)


def table_of(frame: Frame) -> Any:
    """Return a frame as an Arrow table; errors as `collected`."""
    return _ours(frame.toArrow)


def schema_with(frame: Frame, more: Mapping[str, str]) -> Any:
    """Return the schema of a frame with more columns, whose types are given by name."""
    from pyspark.sql.types import ByteType, LongType, StructField, StructType

    types = {"tinyint": ByteType, "bigint": LongType}
    added = [StructField(name, types[kind]()) for name, kind in more.items()]
    return StructType([*frame.schema.fields, *added])


DRAWN_PER_BLOCK = 50  # ids, of which the limits of blocks are taken


def literal(name: Any) -> str:
    """Return an id as SQL has it."""
    return str(name) if isinstance(name, int) else f"CAST(X'{name.encode().hex()}' AS string)"


def place_among(limits: Sequence[Any], column: str) -> str:
    """Return, as SQL, how many limits are not above the id in a column."""
    if not limits:
        return "0"
    values = ", ".join(map(literal, limits))
    return f"size(filter(array({values}), limit -> limit <= {column}))"


def limits_of(frame: Frame, column: str, n_ids: int, n_blocks: int) -> tuple[Any, ...]:
    """Return ids of a column that cut it into about this number of blocks of similar size."""
    share = DRAWN_PER_BLOCK * n_blocks / n_ids
    named = frame.select(column)
    drawn = named if share >= 1 else named.sample(share, seed=0)
    found = sorted({row[column] for row in drawn.collect() if row[column] is not None})
    step = max(1, -(-len(found) // n_blocks))
    return tuple(found[step::step])

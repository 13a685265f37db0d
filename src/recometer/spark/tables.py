"""Tools for Spark DataFrames: finding columns, gathering each user's rows, and running jobs.

Expressions are SQL strings, because both classic Spark and Spark Connect accept them.
"""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from recometer import errors
from recometer.arrays import Array
from recometer.data.columns import ColumnPair, choose_columns
from recometer.errors import ColumnError, InputError, InputTypeError

Frame = Any

INTEGERS = ("tinyint", "smallint", "int", "bigint")
# Columns of other types are passed on unchanged, and rejected by the single-machine readers.
AS_DOUBLE = ("tinyint", "smallint", "int", "float", "double", "boolean", "decimal")
NESTED = ("item", "score")  # the columns that may contain arrays
MOST_ROWS = 10**7  # maximum number of rows per user; they share a cell, which Spark limits to 2 GB
LIMIT = 200_000_000  # maximum number of values or list places that the driver collects (1.6 GB)

# The errors from executors that lack recometer, or have another version of it; see `block.run_job`.
NOT_THERE = re.compile(
    r"No module named '?recometer|Can't get attribute .* on <module 'recometer"
    r"|cannot import name .* from 'recometer"
)
OUT_OF_MEMORY = re.compile(
    "OutOfMemory|ExecutorLostFailure|Cannot grow BufferHolder|Cannot initialize array|code 52|"
    "MemoryError"
)
INSTALL = (
    "Hint: install recometer in the Python environment of the executors, the same version as here "
    "(PYSPARK_PYTHON, or --archives with venv-pack; see docs/spark.md)."
)


class IdKinds(NamedTuple):
    """The Spark types of ids: ``"bigint"``, ``"string"``, or None if there are no sessions."""

    user: str
    item: str
    session: str | None = None


@dataclasses.dataclass(frozen=True, eq=False)
class Table:
    """A DataFrame, and the names of its columns, keyed by meaning.

    If `entry` names an array column, the elements of its arrays are items, or structs with a field
    for items and possibly a field for scores.
    """

    label: str  # the name of the argument, such as "test" or "train"
    frame: Frame  # None on executors
    columns: Mapping[str, str | None]  # keyed by meaning: "user", "session", "item", "value", ...
    entry: str | None = None
    casts: Mapping[str, str] = dataclasses.field(default_factory=dict)  # Spark types of columns

    @classmethod
    def of(cls, data: object, label: str, requested: Mapping[str, Any], **options: Any) -> Table:
        """Find the columns as for other frames; the `options` are passed to `choose_columns`."""
        frame = need_frame(data, label)
        try:
            columns = choose_columns(frame.columns, requested, **options)
        except ColumnError as error:
            error.args = (f"{label}: {error}",)
            raise
        user = columns["user"]
        if isinstance(user, ColumnPair):
            del columns["user"]
            columns = {**dict(zip(("user", "session"), user.parts, strict=True)), **columns}
        return cls(label, frame, columns)

    def has_column(self, option: str) -> bool:
        """Return whether the table has a column for an option such as ``"value"``."""
        return self.columns.get(option) is not None

    @property
    def description(self) -> str:
        """How results describe the data."""
        return f"Spark DataFrame, columns {', '.join(filter(None, self.columns.values()))}"

    @property
    def options(self) -> dict[str, Any]:
        """The column names, as options for the readers in `recometer`."""
        columns: dict[str, Any] = {option: name or False for option, name in self.columns.items()}
        session = columns.pop("session", False)
        return {**columns, "user": [columns["user"], session]} if session else columns

    def type_of(self, option: str) -> Any:
        """Return the Spark type of a column or, for arrays, the type of their elements."""
        name, schema = self.columns[option], self.frame.schema
        if self.entry is None or option not in NESTED:
            return schema[name].dataType
        element = schema[self.entry].dataType.elementType
        return element[name].dataType if element.typeName() == "struct" else element

    def sql(self, option: str, kinds: IdKinds) -> str:
        """Return SQL for a column; ids are cast to their kind, and numbers except times to double.

        If the values are inside arrays, the expression casts the arrays' elements.
        """
        text, kind = quoted(str(self.columns[option])), self.type_of(option).simpleString()
        nested = self.entry is not None and option in NESTED
        if nested:
            text = "e" if self.columns[option] == self.entry else f"e.{text}"
        cast = getattr(kinds, option, None) or self.casts.get(option)
        if cast is None and option != "time" and kind.partition("(")[0] in AS_DOUBLE:
            cast = "double"
        if cast is not None:
            text = f"CAST({text} AS {cast})"
        if nested:
            text = f"coalesce(transform({quoted(str(self.entry))}, e -> {text}), array())"
        return text

    def select(self, options: Iterable[str], kinds: IdKinds, *more: str) -> Frame:
        """Select the columns for these options, renamed to the options' initials, and `more`."""
        columns = [
            f"{self.sql(name, kinds)} AS {name[0]}" for name in options if self.has_column(name)
        ]
        return self.frame.selectExpr(*columns, *more)

    def ids(self, option: str, kinds: IdKinds) -> Frame:
        """Return the distinct user or item ids, in a column called ``id``."""
        column = self.sql(option, kinds)
        if self.entry is not None and option in NESTED:
            column = f"explode({column})"
        return self.frame.selectExpr(f"{column} AS id").where("id IS NOT NULL").distinct()

    def cells(self, kinds: IdKinds) -> Frame:
        """Return each row as a user u and a struct c of the other columns."""
        columns = ", ".join(
            f"{self.sql(option, kinds)} AS {quoted(name)}"
            for option, name in self.columns.items()
            if name is not None and option != "user"
        )
        return self.frame.selectExpr(f"{self.sql('user', kinds)} AS u", f"struct({columns}) AS c")

    def rows(self, block: Any, name: str) -> Any:
        """Return the rows of this table for a block of users, from the column `name`."""
        import pyarrow as pa
        import pyarrow.compute as pc

        cells = block[name].combine_chunks()
        lengths = pc.fill_null(pc.list_value_length(cells), 0).to_numpy(zero_copy_only=False)
        rows = cells.flatten()
        users = block["u"].take(pa.array(np.repeat(np.arange(len(cells)), lengths)))
        columns = {str(self.columns["user"]): users}
        columns |= dict(zip([field.name for field in rows.type], rows.flatten(), strict=True))
        for option in IdKinds._fields:
            column = columns.get(str(self.columns.get(option)))
            nested = column is not None and pa.types.is_list(column.type)
            if column is not None and (column.flatten() if nested else column).null_count:
                place = "arrays" if nested else "rows"
                how = "filter(items, item -> item IS NOT NULL)" if nested else "frame.dropna()"
                raise InputError(
                    f"{self.label} has {place} in which the {option} is missing. Hint: drop them: "
                    f"{how}."
                )
        return pa.table(columns)


def kinds_of(tables: Iterable[Table]) -> IdKinds:
    """Return the kinds of ids, which must be the same in all tables."""
    first: dict[str, tuple[str, str]] = {}
    words = {"bigint": "integers", "string": "strings"}
    for table in tables:
        for option in filter(table.has_column, IdKinds._fields):
            name = table.type_of(option).simpleString()
            kind = "bigint" if name in INTEGERS else "string"
            if kind == "string" and not name.startswith(("string", "varchar", "char")):
                raise InputTypeError(
                    f"The column {table.columns[option]!r} of {table.label} holds {option}s as "
                    f"{name}; on Spark they must be integers or strings. Hint: cast it to bigint "
                    "or to string, in all tables."
                )
            first_label, first_kind = first.setdefault(option, (table.label, kind))
            if first_kind != kind:
                raise InputTypeError(
                    f"The {option} ids of {first_label} are {words[first_kind]}, but those of "
                    f"{table.label} are {words[kind]}. Hint: cast one of them, so that both have "
                    "the same type."
                )
    return IdKinds(**{option: kind for option, (_, kind) in first.items()})


def gathered(cells: Mapping[str, Frame], partitions: int | None) -> Frame:
    """Return a row per user u; for each table, a column holds the user's rows as an array.

    If `partitions` is None, Spark chooses the number based on the size of the data. For a
    user with more than `MOST_ROWS` rows, the column ``many`` contains the number of rows, and the
    arrays are missing.
    """
    from pyspark.sql import functions

    frames = [rows.withColumnRenamed("c", name) for name, rows in cells.items()]
    rows = functools.reduce(lambda a, b: a.unionByName(b, allowMissingColumns=True), frames)
    if partitions is not None:
        rows = rows.repartition(partitions, "u")
    users = rows.groupBy("u").agg(*(functions.collect_list(name).alias(name) for name in cells))
    n_rows = " + ".join(f"size({name})" for name in cells)
    fits = f"IF({n_rows} <= {MOST_ROWS}, {{}}, {{}})"
    arrays = [f"{fits.format(name, 'NULL')} AS {name}" for name in cells]
    return users.selectExpr("u", *arrays, f"{fits.format('NULL', n_rows)} AS many")


def too_many_rows(user: object, n_rows: int) -> InputError:
    """Return the error for a user with more than `MOST_ROWS` rows."""
    return InputError(
        f"{MOST_ROWS:,} rows per user are the limit, because a task holds all rows of a user in "
        f"memory, but user {user!r} has {n_rows:,} rows. Hint: such a user often stands for "
        "everyone who is not logged in: leave it out with frame.where(...); or use "
        "recometer.evaluate on frame.toArrow(), which has no limit."
    )


def without_sessions(label: str) -> InputError:
    """Return the error for a table that has sessions although the test data have none."""
    return InputError(
        f"{label} has sessions of users, but test has none. Hint: test=rs.Interactions(frame, "
        "user=['user', 'session']); or leave them out."
    )


def is_frame(data: object) -> bool:
    """Recognise a DataFrame of classic Spark or Spark Connect without importing either."""
    return type(data).__module__.startswith("pyspark.sql.") and hasattr(data, "mapInArrow")


def need_frame(data: object, label: str) -> Frame:
    """Return a DataFrame, or raise InputTypeError for anything else."""
    if is_frame(data):
        return data
    raise InputTypeError(
        f"{label} must be a Spark DataFrame, found {type(data).__name__}. Hint: "
        "spark.createDataFrame(...) creates one; recometer.evaluate reads data on this machine."
    )


def quoted(name: str) -> str:
    """Return the name of a column, quoted for SQL."""
    return "`" + name.replace("`", "``") + "`"


def check_partitions(number: object) -> None:
    """Raise InputError unless the number of partitions is None or valid in Spark."""
    valid = isinstance(number, int) and not isinstance(number, bool) and 0 < number < 2**31
    if number is not None and not valid:
        raise InputError(
            f"partitions={errors.brief(number)} must be a whole number, at least 1. Hint: None "
            "chooses it by the size of the data."
        )


def persisted(rows: Frame) -> bool:
    """Ask Spark to keep computed rows; return False for serverless Spark, which has no cache."""
    from pyspark.errors import PySparkException

    # Without this setting, cached rows always have spark.sql.shuffle.partitions partitions.
    conf, name = rows.sparkSession.conf, "spark.sql.optimizer.canChangeCachedPlanOutputPartitioning"
    try:
        before = conf.get(name)
        conf.set(name, "true")
        try:
            rows.persist()
        finally:
            conf.set(name, before)
    except PySparkException:
        return False
    return True


def acted(call: Callable[[], Any]) -> Any:
    """Run a job on Spark, and raise recometer's own errors without Spark's message around them.

    Errors from executors that lack recometer or memory are also translated.
    """
    try:
        return call()
    except Exception as error:
        text = str(error)
        match = re.search(r"recometer\.errors\.(\w+): (.*)", text)
        if match is not None:
            raise getattr(errors, match[1])(match[2]) from None
        if NOT_THERE.search(text) is not None:
            raise InputError(
                f"An executor has no recometer, or a different version. {INSTALL}"
            ) from None
        java_ended = isinstance(error, ConnectionError) or type(error).__module__.startswith("py4j")
        if java_ended or OUT_OF_MEMORY.search(text) is not None:
            raise InputError(
                "Spark seems to have run out of memory. Hint: increase spark.driver.memory and "
                "spark.executor.memory; all rows of a user are in memory at once, about 200 bytes "
                "each, and frame.groupBy(...).count() shows who has the most."
            ) from error
        raise


def ids(column: Any) -> Array:
    """Convert an Arrow column of ids to an array."""
    is_integer = str(column.type) == "int64"
    return column.to_numpy() if is_integer else np.array(column.to_pylist(), object)

"""DataFrames of Spark: their columns by what they hold, one row per user, and what Spark is asked.

Expressions are SQL texts, which classic Spark and Spark Connect read alike.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import inspect
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple, TypeVar

import numpy as np

from recometer import errors
from recometer.arrays import Array
from recometer.data.columns import ColumnPair, Columns, choose_columns, single_names
from recometer.data.numbers import all_numbers
from recometer.errors import ColumnError, InputError, InputTypeError

Frame = Any
Made = TypeVar("Made", bound=Callable[..., Any])

INTEGERS = ("tinyint", "smallint", "int", "bigint")
# Other types come as they are to the functions of one machine, which refuse what is no number.
AS_DOUBLE = ("tinyint", "smallint", "int", "float", "double", "boolean", "decimal")
FIELDS = ("u", "s", "i", "f", "x", "y")  # of rows: users, sessions, items, factors and numbers
MOST_ROWS = 10**7  # of a user: they are in one cell, of which Spark has at most 2 GB

IDS = "users and items have ids, in columns. Hint: leave it out"
RUNNING = {
    "threads": "a task has one thread, and Spark runs as many tasks at a time as executors have "
    "cores. Hint: leave it out",
    "progress": "Spark shows the progress of its jobs itself. Hint: leave it out; see "
    "spark.ui.showConsoleProgress, and the web interface of Spark",
    "closure": "item factors travel as a file that executors map, so nothing limits their size but "
    "the memory of the driver. Hint: leave it out; shared= names storage that all executors see, "
    "and rs.Lists evaluates what a model recommends, without its factors",
    "resamples": "users are drawn where the values are. Hint: result.collect().interval(...)",
}

LIMIT = 200_000_000  # values, or places of lists, that the driver collects: 1.6 GB
# What an executor says that has no recometer, or another one; see `carrying`.
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


def refusing(why: Mapping[str, str]) -> Callable[[Made], Made]:
    """Refuse arguments of one machine that Spark has no use for; `why` has reasons by name."""

    def checking(function: Callable[..., Any]) -> Any:
        refused = why.keys() - inspect.signature(function).parameters.keys()

        @functools.wraps(function)
        def checked(*args: Any, **options: Any) -> Any:
            for name in sorted(refused & options.keys()):
                raise InputError(f"{name}= is not for Spark: {why[name]}.")
            return function(*args, **options)

        return checked

    def of(made: Any) -> Any:
        if isinstance(made, type):
            made.__init__ = checking(made.__init__)  # type: ignore[misc]
            return made
        return checking(made)

    return of


class IdKinds(NamedTuple):
    """The Spark types that ids are read as: ``"bigint"`` or ``"string"``; no sessions: None."""

    user: str
    item: str
    session: str | None = None


@dataclasses.dataclass(frozen=True, eq=False)
class Table:
    """A DataFrame and the columns of it that are read, by what they hold."""

    what: str  # "test", "train", ...
    frame: Frame
    columns: Mapping[str, str | None]

    @classmethod
    def of(cls, frame: object, what: str, wanted: Mapping[str, Any], **options: Any) -> Table:
        """Find the columns as on one machine; `options` are those of `choose_columns`."""
        found = need_frame(frame, what)
        try:
            columns = choose_columns(found.columns, wanted, **options)
        except ColumnError as error:
            error.args = (f"{what}: {error}",)
            raise
        if isinstance(columns["user"], ColumnPair):
            columns["user"], columns["session"] = columns["user"].parts
        return cls(what, found, columns)

    def __getitem__(self, option: str) -> str:
        """Return the quoted name of a column that there is."""
        return quoted(str(self.columns[option]))

    def called(self, option: str, field: str) -> str:
        """Return how a field of a row is called where it is read: as its column, if it can be."""
        name = str(self.columns[option])
        return field if name in FIELDS else name

    def has(self, option: str) -> bool:
        """Return whether there is such a column."""
        return self.columns.get(option) is not None

    def type_of(self, option: str) -> Any:
        """Return the Spark type of a column, or of what the entries of arrays have."""
        name, schema = self.columns[option], self.frame.schema
        if option not in ("item", "score") or not self.has("entry"):
            return schema[str(name)].dataType
        element = schema[str(self.columns["entry"])].dataType.elementType
        return element if name is None else element[name].dataType

    def of_ids(self) -> Iterator[tuple[str, str, str, str]]:
        """Yield of each column of ids: its table, where it is, what has the ids, and its type."""
        for option in ("user", "session", "item"):
            entry = self.columns.get("entry") if option == "item" else None
            if entry is not None or self.has(option):
                where = f"column {entry or self.columns[option]!r} of {self.what}"
                yield self.what, where, option, self.type_of(option).simpleString()

    def users(self, kinds: IdKinds) -> list[str]:
        """Return what names users, as SQL: u, and s for sessions."""
        found = [f"CAST({self['user']} AS {kinds.user}) AS u"]
        if self.has("session"):
            found.append(f"CAST({self['session']} AS {kinds.session}) AS s")
        return found

    def pairs(self, kinds: IdKinds) -> Frame:
        """Return the users and items of all rows: u, perhaps s, and i."""
        item = f"CAST({self['item']} AS {kinds.item}) AS i"
        return self.frame.selectExpr(*self.users(kinds), item)

    def ids(self, option: str, kinds: IdKinds) -> Frame:
        """Return the users or items of all rows, also of arrays, in one column, ``id``."""
        if option == "item" and self.has("entry"):
            entries = self.frame.selectExpr(f"explode({self['entry']}) AS e")
            item = f"e.{self['item']}" if self.has("item") else "e"
            return entries.selectExpr(f"CAST({item} AS {kinds.item}) AS id")
        return self.frame.selectExpr(f"CAST({self[option]} AS {getattr(kinds, option)}) AS id")

    def number(self, option: str) -> str:
        """Return a column of numbers as SQL."""
        kind = self.type_of(option).simpleString().partition("(")[0]
        return f"CAST({self[option]} AS double)" if kind in AS_DOUBLE else self[option]

    def cells(self, kinds: IdKinds, **fields: str) -> Frame:
        """Return each row as its user u and a struct ``c`` of SQL expressions, by name."""
        given = {"s": f"CAST({self['session']} AS {kinds.session})"} if self.has("session") else {}
        given |= fields
        struct = ", ".join(f"'{name}', {text}" for name, text in given.items())
        return self.frame.selectExpr(self.users(kinds)[0], f"named_struct({struct}) AS c")


def gathered(cells: Mapping[str, Frame], partitions: int | None) -> Frame:
    """Return a row per user u, with the rows of each table in an array of its name.

    Without a number of partitions, Spark makes as many as there are data for. Of a user with more
    than `MOST_ROWS` rows, ``many`` is their number, and the arrays are missing.
    """
    from pyspark.sql import functions

    frames = [rows.withColumnRenamed("c", name) for name, rows in cells.items()]
    found = functools.reduce(lambda a, b: a.unionByName(b, allowMissingColumns=True), frames)
    if partitions is not None:
        found = found.repartition(partitions, "u")
    found = found.groupBy("u").agg(*(functions.collect_list(name).alias(name) for name in cells))
    n_rows = " + ".join(f"size({name})" for name in cells)
    fits = f"IF({n_rows} <= {MOST_ROWS}, {{}}, {{}})"
    arrays = [f"{fits.format(name, 'NULL')} AS {name}" for name in cells]
    return found.selectExpr("u", *arrays, f"{fits.format('NULL', n_rows)} AS many")


def too_many_rows(user: object, n_rows: int, why: str) -> InputError:
    """Return the error of a user with so many rows, and why they are too many."""
    return InputError(
        f"{why} User {user!r} has {n_rows:,} rows, and a task holds the rows of a user in memory "
        "together. Hint: such a user often stands for all who are not known: leave it out, with "
        "frame.where(...); recometer.evaluate of frame.toArrow() takes any number."
    )


def without_sessions(what: str) -> InputError:
    """Return the error of a table with sessions of users beside a test that has none."""
    return InputError(
        f"{what} has sessions of users, but test has none. Hint: test=rs.Interactions(frame, "
        "user=['user', 'session']); or leave them out."
    )


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


def kinds_of(columns: Iterable[tuple[str, str, str, str]]) -> IdKinds:
    """Return as what ids are read, alike in all tables; `columns` are as `Table.of_ids` says."""
    found: dict[str, tuple[str, str]] = {}
    words = {"bigint": "integers", "string": "strings"}
    for what, where, option, name in columns:
        kind = "bigint" if name in INTEGERS else "string"
        if kind == "string" and not name.startswith(("string", "varchar", "char")):
            raise InputTypeError(
                f"The {where} holds {option}s as {name}; on Spark they are integers or strings. "
                "Hint: cast it to bigint or to string, in all tables alike."
            )
        first, known = found.setdefault(option, (what, kind))
        if known != kind:
            raise InputTypeError(
                f"The {option} ids of {first} are {words[known]}, those of {what} {words[kind]}. "
                "Hint: cast one of them, so that they are alike."
            )
    return IdKinds(**{option: kind for option, (_, kind) in found.items()})


def check_ids(frame: Frame, columns: Columns) -> None:
    """Refuse columns of users and items whose entries cannot be ids."""
    for name in single_names([columns.user, columns.item]):
        kind = frame.schema[name].dataType
        # Whether floating-point numbers count as integers depends on all rows.
        if kind.typeName() in ("float", "double", "struct", "array", "map"):
            raise InputTypeError(
                f"Column {name!r} holds {kind.simpleString()}, of which no ids are made. Hint: "
                f"cast it to bigint or to string: frame.withColumn({name!r}, "
                f'frame[{name!r}].cast("bigint")).'
            )


def check_partitions(given: object) -> None:
    """Raise InputError unless a number of partitions is None, or one that Spark can have."""
    whole = isinstance(given, int) and not isinstance(given, bool) and 0 < given < 2**31
    if given is not None and not whole:
        raise InputError(
            f"partitions={errors.brief(given)} must be a whole number, at least 1. Hint: None "
            "makes as many as there are data for."
        )


def persisted(rows: Frame) -> bool:
    """Let Spark keep computed rows. Return whether it can: serverless Spark has no cache."""
    from pyspark.errors import PySparkException

    # Otherwise what is kept has as many partitions as spark.sql.shuffle.partitions says.
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


def acted(call: Callable[[], Any], cells: Mapping[str, Frame] | None = None) -> Any:
    """Let Spark run a job, and raise an error of ours in a worker as such.

    Parameters
    ----------
    call
    cells
        What was `gathered`, whose rows are counted if memory runs out.

    Raises
    ------
    RecometerError
        What a worker raised, without what Spark says around it; that it has no recometer; or who
        has too many rows, or that Java ended, where memory runs out.
    """
    try:
        return call()
    except Exception as error:
        text = str(error)
        ours = re.search(r"recometer\.errors\.(\w+): (.*)", text)
        if ours is not None:
            raise getattr(errors, ours[1])(ours[2]) from None
        if NOT_THERE.search(text) is not None:
            raise InputError(
                f"An executor has no recometer, or another version. {INSTALL}"
            ) from None
        if isinstance(error, ConnectionError) or type(error).__module__.startswith("py4j."):
            raise InputError(
                "The Java process of Spark ended; most often its memory has run out. Hint: "
                "spark.driver.memory; the rows of a user are in memory together, about 200 bytes "
                "each, and frame.groupBy(...).count() shows who has the most."
            ) from error
        if cells is not None and OUT_OF_MEMORY.search(text) is not None:
            users = functools.reduce(
                lambda a, b: a.union(b), (c.select("u") for c in cells.values())
            )
            counted = users.groupBy("u").count().orderBy("count", ascending=False)
            [(user, n_rows)] = counted.limit(1).collect()
            raise too_many_rows(user, n_rows, "An executor ran out of memory.") from error
        raise


def memory() -> int:
    """Return the memory of this machine, or that of its container, in bytes."""
    found = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    with contextlib.suppress(OSError, ValueError), open("/sys/fs/cgroup/memory.max") as file:
        found = min(found, int(file.read()))
    return found


def ids(column: Any) -> Array:
    """Return an Arrow column of ids as an array."""
    return (
        column.to_numpy() if str(column.type) == "int64" else np.array(column.to_pylist(), object)
    )


def vectors(column: Any, n_factors: int | None, what: str) -> Array:
    """Return an Arrow column of arrays as rows, which must be of one length and complete."""
    import pyarrow.compute as pc

    lengths = pc.list_value_length(column).to_numpy(zero_copy_only=False)
    width = n_factors if n_factors is not None else lengths[0] if len(lengths) else 0
    wrong = lengths != width
    flat = pc.list_flatten(column)
    if wrong.any() or flat.null_count:
        raise InputError(
            f"A row of {what} has {lengths[wrong][0] if wrong.any() else 'missing'} factors, "
            f"others have {width}. Hint: all rows need as many numbers."
        )
    return np.asarray(flat.to_numpy(zero_copy_only=False)).reshape(len(lengths), int(width))


def biases(column: Any, dtype: Any) -> Array:
    """Return an Arrow column of biases in the type of the factors."""
    return all_numbers(column.to_numpy(zero_copy_only=False), "biases").astype(dtype)

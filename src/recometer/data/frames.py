"""Finds columns in any data frame by name, and reads them as arrays."""

from __future__ import annotations

import datetime
import itertools
import re
from collections.abc import Callable, Mapping, Sized
from typing import TYPE_CHECKING, Any

import numpy as np

from recometer.arrays import Array, Int64
from recometer.data import columns as naming
from recometer.data.columns import ColumnPair, Columns
from recometer.data.forks import check_threads
from recometer.data.ids import as_pairs, many_strings, missing
from recometer.data.numbers import as_array, check_whole
from recometer.data.tensors import is_a, is_nested, is_tensor
from recometer.data.times import check_units, named_zone, offsets_of_text, times_of_text
from recometer.errors import ColumnError, FileError, InputError, InputTypeError, argument_text

if TYPE_CHECKING:
    import polars as pl

PROBE = 100  # number of rows from which column types are inferred
# Types of rows (one row per user) that need no further check.
PLAIN_ROWS = {list, tuple, set, frozenset, dict, np.ndarray}
# The names of numeric types in NumPy, pandas, Arrow, DuckDB and Polars.
NUMERIC = re.compile(
    r"(sparse\[)?(u?(tiny|small|big|huge)?int(eger)?(\d|$)|(half)?float|double|decimal)",
    re.IGNORECASE,
)


def is_column(data: object) -> bool:
    """Return whether an object is a column: a series, or a one-dimensional array."""
    if _is_series(data):
        return True
    # Do not ask for the shape of a DuckDB relation, because that would execute it.
    several = _is_relation(data) or is_nested(data) or _is_structured(data)
    shape = None if several else getattr(data, "shape", None)
    return shape is not None and len(shape) == 1


def is_array(data: object) -> bool:
    """Return whether an object is an array from any library, but not a frame or a series."""
    if isinstance(data, np.ndarray) or is_tensor(data):
        return not _is_structured(data)
    convertible = hasattr(data, "__dlpack__") or hasattr(data, "__array__")
    return convertible and not (isinstance(data, type) or is_frame(data) or _is_series(data))


def _is_series(data: object) -> bool:
    of_pandas = is_a(data, "pandas", "Series", "Index") or is_a(data, "polars", "Series")
    return of_pandas or is_a(data, "pyarrow", "Array", "ChunkedArray")


def in_numpy(data: Any, noun: str) -> Any:
    """Convert an array from any library to NumPy; return anything else unchanged."""
    return as_array(data, noun) if is_array(data) else data


def is_frame(data: object) -> bool:
    """Return whether an object is a data frame that `open_frame` can read."""
    return not is_column(data) and (
        _is_structured(data)
        or is_a(data, "polars", "LazyFrame")
        or hasattr(data, "__arrow_c_stream__")
        or (hasattr(data, "columns") and hasattr(data, "__getitem__"))
        or _is_arrow_table(data)
    )


def holds_lists(column: Any) -> bool:
    """Return whether the entries of a column are lists, judging by the first entry."""
    # The column may be a FileColumn, which has a Polars dtype.
    if is_a(column.dtype, "polars", "DataType"):
        return is_a(column.dtype, "polars", "List", "Array")
    if column.dtype != object:
        return False
    first = next((entry for entry in column if entry is not None), None)
    return isinstance(first, list | tuple | np.ndarray)


def flat(column: Any, noun: str) -> tuple[Any, Int64]:
    """Return the concatenated lists of a column, and the length of each list.

    A missing list counts as empty.
    """
    import polars as pl

    if isinstance(column, pl.Series) and isinstance(column.dtype, pl.List | pl.Array):
        lists = column.arr.to_list() if column.dtype == pl.Array else column
        lengths = lists.list.len().fill_null(0)
        return lists.filter(lengths > 0).explode(), lengths.cast(pl.Int64).to_numpy()
    rows = [[] if row is None else row for row in column]
    wrong = next((row for row in rows if not isinstance(row, list | tuple | np.ndarray)), None)
    if wrong is not None:
        raise InputTypeError(
            f"Only some of the {noun} are lists: {wrong!r} is of type {type(wrong).__name__}. "
            "Hint: use a list in every row."
        )
    entries = list(itertools.chain.from_iterable(rows))
    return entries, np.fromiter(map(len, rows), np.int64, len(rows))


def flat_dict(
    data: Mapping[Any, Any], refused: tuple[type, ...], noun: str, expected: str
) -> tuple[list[Any], list[Any], Int64, list[Any] | None]:
    """Return the contents of ``{user: [items]}`` or ``{user: {item: number}}``.

    These are the users, all their items, how many items each user has, and the items' numbers, if
    there are any. `refused` are types that have a length but are not allowed as rows. In messages,
    `noun` is the word for a row, and `expected` lists the supported types of rows.
    """
    users, rows = list(data), list(data.values())
    if not {*map(type, rows)} <= PLAIN_ROWS:
        rows = [in_numpy(row, f"The {noun} of user {user!r}") for user, row in data.items()]
    mappings = [isinstance(row, Mapping) for row in rows]
    for user, row, mapping in zip(users, rows, mappings, strict=True):
        # A 0-dimensional array is Sized, but has no length.
        single = not isinstance(row, Sized) or getattr(row, "ndim", 1) == 0
        if isinstance(row, refused) or single or mapping != mappings[0]:
            raise InputTypeError(
                f"The {noun} of user {user!r} {'is' if noun == 'list' else 'are'} of type "
                f"{type(row).__name__}. Hint: expected {expected} for every user. A dict of "
                "columns becomes a data frame with polars.DataFrame(...)."
            )
    lengths = np.fromiter(map(len, rows), np.int64, len(rows))
    values = None
    if any(mappings):
        values = list(itertools.chain.from_iterable(row.values() for row in rows))
    return users, list(itertools.chain.from_iterable(rows)), lengths, values


def flatten(series: dict[str, Any], columns: Columns) -> Int64:
    """Replace list columns with their concatenated entries; return the length of each list."""
    series[columns.item], lengths = flat(series[columns.item], f"items (column {columns.item!r})")
    for name in filter(None, (columns.value, columns.time)):
        if not holds_lists(series[name]):
            series[name] = series[name][np.repeat(np.arange(len(lengths)), lengths)]
            continue
        series[name], n_entries = flat(series[name], f"entries of column {name!r}")
        if isinstance(series[name], list):
            series[name] = np.array(series[name])
        if not np.array_equal(lengths, n_entries):
            row = int(np.flatnonzero(lengths != n_entries)[0])
            raise InputError(
                f"Row {row} (counted from 0) has {lengths[row]} items (column {columns.item!r}), "
                f"but {n_entries[row]} entries of column {name!r}. Hint: use one for each item."
            )
    return lengths


def times(column: Any, noun: str) -> tuple[Array, bool]:
    """Return times as int64 or float64, and whether the column contains dates.

    Numbers stay unchanged, and dates are converted to microseconds since 1970.
    Strings are read as numbers, or as dates and times in ISO 8601. Missing times, floats that may
    stand for several whole numbers, and mixed units (seconds and milliseconds) are refused.
    """
    import polars as pl

    hint = f"drop such rows, or pass {argument_text('time', False)}"
    if not isinstance(column, pl.Series):
        if column.dtype.kind == "M":
            column = column.astype("datetime64[us]")
        elif column.dtype.kind == "f":
            check_whole(column, noun)
        try:
            column = pl.Series(column.tolist() if column.dtype == object else column)
        except (TypeError, pl.exceptions.PolarsError) as error:
            raise InputTypeError(
                f"The {noun} are of several types: {first_line(error)}. Hint: convert them to "
                "numbers or to dates."
            ) from None
    if column.dtype.is_float():
        column = column.fill_nan(None)
    if column.null_count():
        missing(noun, int(column.is_null().arg_true()[0]), hint)
    if column.dtype in (pl.Categorical, pl.Enum):
        column = column.cast(pl.String)
    if column.dtype == pl.String:
        column = times_of_text(column.alias(""), f"The {noun}: ")
    dates = column.dtype in (pl.Date, pl.Datetime)
    if dates:
        column = column.dt.epoch("us")
    if len(column) and not (column.dtype.is_integer() or column.dtype.is_float()):
        raise InputTypeError(
            f"The {noun} must be numbers or dates, found {column.dtype} (for instance "
            f"{column[0]!r}). Hint: convert them, or pass {argument_text('time', False)}."
        )
    wide = column.dtype.is_integer() and column.dtype != pl.Int64
    if wide and len(column) and int(column.max()) >= 2**63:
        raise InputError(
            f"The {noun} must be below 2**63, found {column.max()}. Hint: convert them to another "
            f"unit, or pass {argument_text('time', False)}."
        )
    if column.dtype.is_float():
        check_whole(column.to_numpy(), noun)
    array: Array = column.cast(pl.Float64 if column.dtype.is_float() else pl.Int64).to_numpy()
    if not dates:
        check_units(array, noun)
    return array, dates


def time_zone(column: Any, data: Any, name: str) -> datetime.tzinfo:
    """Return the time zone of the dates in a column; UTC if they have none.

    `column` comes from the function that `open_frame` returns, `data` is the data frame, if there
    is one, and `name` is the column's name. Dates with different UTC offsets raise InputError.
    """
    import polars as pl

    zones: set[Any] = set()
    if is_a(data, "pandas", "DataFrame"):
        # The column was read without its zone, because pandas knows more zones than Polars.
        zones = {getattr(data.iloc[:, list(map(str, data.columns)).index(name)].dtype, "tz", None)}
    if isinstance(column, pl.Series):
        if column.dtype == pl.Datetime:
            zones = {column.dtype.time_zone}  # type: ignore[attr-defined]
        elif column.dtype in (pl.String, pl.Categorical, pl.Enum):
            zones = offsets_of_text(column.cast(pl.String))
    elif column.dtype == object:
        zones = {getattr(entry, "tzinfo", None) for entry in column}
        if any(isinstance(entry, str) for entry in column[:1]):
            zones = offsets_of_text(pl.Series(column.tolist(), dtype=pl.String))
    by_name = {str(zone): zone for zone in map(named_zone, zones - {None})}
    if len(by_name) > 1:
        several = ", ".join(sorted(by_name)[:3])
        raise InputError(
            f"The times (column {name!r}) are written in several zones ({several}), so a date "
            "without a zone could begin in any of them. Hint: write the date with its zone, for "
            "instance '2024-05-31T00:00+02:00'; or convert the times to one zone."
        )
    return next(iter(by_name.values()), datetime.timezone.utc)


def rereadable(data: Any) -> Any:
    """Return a data frame that can be read twice; convert an Arrow stream to Polars."""
    if is_a(data, "pandas", "DataFrame") or is_a(data, "polars", "LazyFrame"):
        return data
    keep = _is_arrow_table(data) or _is_relation(data) or not hasattr(data, "__arrow_c_stream__")
    return data if keep else _from_stream(data)


def only_column(data: Any, noun: str) -> Any:
    """Return the only column of a frame."""
    names, fetch = open_frame(data)
    if len(names) != 1:
        raise ColumnError(
            f"{noun} is a data frame with {len(names)} columns: {', '.join(names)}. Hint: pass "
            "only the column of items."
        )
    return fetch(names)[0]


def _is_arrow_table(data: object) -> bool:
    return is_a(data, "pyarrow", "Table", "RecordBatch")


def _is_structured(data: object) -> bool:
    """Return whether an object is a structured NumPy array, whose fields are columns."""
    return isinstance(data, np.ndarray) and data.ndim == 1 and data.dtype.names is not None


def _is_relation(data: object) -> bool:
    return is_a(data, "duckdb", "DuckDBPyRelation")


def open_frame(data: Any) -> tuple[list[str], Callable[[list[str]], list[Any]]]:
    """Return the names of the columns, and a function that reads columns by name.

    The function reads a pair of columns as a single column; see `as_pairs`. Both `open_frame` and
    the function raise an error if a lazy frame or relation cannot be executed.
    """
    names, fetch = _open_frame(data)

    def fetch_pairs(subset: list[str]) -> list[Any]:
        for name in subset:
            naming.check_column("name", name, names)
            naming.check_unique(name, names)
        parts: dict[str, tuple[str, str]] = {
            name: name.parts
            for name in subset
            if isinstance(name, ColumnPair) and name not in names
        }
        if not parts:
            return fetch(subset)
        single = list(dict.fromkeys(part for name in subset for part in parts.get(name, (name,))))
        columns = dict(zip(single, fetch(single), strict=True))
        return [
            as_pairs(name, {part: columns[part] for part in parts[name]})
            if name in parts
            else columns[name]
            for name in subset
        ]

    return names, fetch_pairs


def _open_frame(data: Any) -> tuple[list[str], Callable[[list[str]], list[Any]]]:
    check_threads()
    if is_a(data, "polars", "LazyFrame"):
        try:
            names = data.collect_schema().names()
        except Exception as error:  # a lazy frame may call the user's functions
            raise _not_executed("lazy frame", error) from error
        return names, lambda subset: execute(data.select(subset)).get_columns()
    if is_a(data, "pandas", "DataFrame"):
        names = naming.Names(map(str, data.columns))
        names.hint = _hint_of_other_names(data)
        return names, lambda subset: [
            _from_pandas(data.iloc[:, names.index(name)]) for name in subset
        ]
    if _is_arrow_table(data):
        return data.schema.names, lambda subset: _from_arrow(data, subset)
    if _is_relation(data):
        return data.columns, lambda subset: _from_relation(data, subset)
    if hasattr(data, "__arrow_c_stream__"):
        frame = _from_stream(data)
        return frame.columns, lambda subset: frame.select(subset).get_columns()
    keys = {str(name): name for name in _names_of(data)}
    return list(keys), lambda subset: [_field(data, keys[name]) for name in subset]


def _hint_of_other_names(frame: Any) -> str:
    """Return a hint about names in a pandas frame that are not column names."""
    levels = [repr(name) for name in frame.index.names if name is not None]
    if levels:
        return f" The index holds {', '.join(levels)}: frame.reset_index() turns it into columns."
    if frame.columns.nlevels > 1:
        return (
            f" The column names have {frame.columns.nlevels} levels: frame.columns = [...] sets "
            "names with one level."
        )
    return ""


def _names_of(data: Any) -> list[Any]:
    """Return the column names of a structured array, or of a data frame from any library."""
    return list(data.dtype.names if _is_structured(data) else data.columns)


def _field(data: Any, name: Any) -> Array:
    return as_array(data[name], f"The column {str(name)!r}")


def numeric_columns(data: Any, *, booleans: bool = False) -> list[str]:
    """Return the names of the numeric columns, judging by their types.

    `data` must come from `rereadable`. ``booleans=True`` includes Boolean columns.
    """
    if is_a(data, "pandas", "DataFrame"):
        # Infer the types of object columns from their first entries.
        types = data.iloc[:PROBE].infer_objects().dtypes.items()
    elif _is_arrow_table(data):
        types = ((field.name, field.type) for field in data.schema)
    elif _is_relation(data):
        types = zip(data.columns, data.types, strict=True)
    elif is_a(data, "polars", "DataFrame", "LazyFrame"):
        types = data.collect_schema().items()
    else:
        types = ((name, _field(data, name).dtype) for name in _names_of(data))
    return [str(name) for name, dtype in types if is_numeric(dtype, booleans)]


def is_numeric(dtype: Any, booleans: bool) -> bool:
    """Return whether a type is numeric (or, if `booleans`, Boolean), judging by its name."""
    name = str(getattr(dtype, "name", dtype))
    return NUMERIC.match(name) is not None or (booleans and name.lower().startswith("bool"))


def _from_stream(data: Any) -> pl.DataFrame:
    import polars as pl

    if isinstance(data, pl.DataFrame):
        return data
    try:
        return pl.DataFrame(data)
    except pl.exceptions.PolarsError as error:
        raise InputTypeError(
            f"The Arrow stream of {type(data).__name__} cannot be read as a data frame: "
            f"{first_line(error)}. Hint: it must contain rows with named columns."
        ) from error


def execute(frame: pl.LazyFrame) -> pl.DataFrame:
    """Execute a lazy frame; raise one of recometer's errors if that fails."""
    try:
        return frame.collect()
    except Exception as error:  # a lazy frame may call the user's functions
        raise _not_executed("lazy frame", error) from error


def _from_relation(relation: Any, subset: list[str]) -> list[Any]:
    """Let DuckDB read only the wanted columns."""
    import duckdb
    import polars as pl

    try:
        # DuckDB 1 reads ColumnExpression("a.b") as column b of a table a.
        quoted = (f'"{name}"' for name in (name.replace('"', '""') for name in subset))
        chosen = relation.project(", ".join(quoted))
        return pl.DataFrame(chosen).get_columns()
    except (duckdb.Error, pl.exceptions.PolarsError, OSError) as error:
        raise _not_executed("DuckDB relation", error) from error


def _not_executed(noun: str, error: Exception) -> ColumnError | FileError | InputError:
    missing = type(error).__name__ == "ColumnNotFoundError"
    kind = ColumnError if missing else FileError if isinstance(error, OSError) else InputError
    text = first_line(error)
    if not isinstance(error, OSError) and not type(error).__module__.startswith(("polars", "duck")):
        text = f"{type(error).__name__}: {text}"
    return kind(
        f"The {noun} cannot be executed: {text}. Hint: it fails in the same way without recometer, "
        f"in {'.collect()' if noun == 'lazy frame' else '.fetchall()'}."
    )


def first_line(error: BaseException) -> str:
    """Return the first line of an error message."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def _from_pandas(series: Any) -> Any:
    if getattr(series.dtype, "tz", None) is not None:
        series = series.dt.tz_convert("UTC").dt.tz_localize(None)
    if series.dtype.kind not in "OU" or hasattr(series.dtype, "categories"):
        array = np.asarray(series)
        if array.dtype != object:
            return array
    if series.dtype == object:
        strings = many_strings(series.to_numpy())
        if not isinstance(strings, np.ndarray):
            return strings
    # Missing entries in pandas may be NaN, NA, NaT or None, depending on its version; use None.
    return series.to_numpy(dtype=object, na_value=None)


def _from_arrow(table: Any, subset: list[str]) -> list[Any]:
    import polars as pl

    # Polars would read an extension type (such as arrow.uuid) as its underlying bytes.
    plain = [n for n in subset if not hasattr(table.schema.field(n).type, "extension_name")]
    # Read the columns in one call, so that Polars can use all processors.
    frame = pl.DataFrame(table.select(plain))
    return [
        frame[name] if name in plain else pl.Series(table.column(name).to_pylist(), dtype=pl.Object)
        for name in subset
    ]

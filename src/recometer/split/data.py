"""Read data of any kind as a `Table`, and divide the data into parts of the same kind."""

from __future__ import annotations

import datetime
import os
import pathlib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from recometer import ragged
from recometer.arrays import Array, UInt8
from recometer.data.columns import Columns, find_columns
from recometer.data.files import in_memory, open_file, parts_of, read_columns, scan
from recometer.data.frames import execute, is_frame, open_frame, time_zone, times
from recometer.data.interactions import Interactions, check_positions
from recometer.data.numbers import numbers
from recometer.data.paths import as_path
from recometer.data.tensors import is_a
from recometer.split.table import Coded, Table

if TYPE_CHECKING:
    import polars as pl


T = TypeVar("T")


class Container:
    """Data whose rows can be divided into the parts of a split."""

    table: Table  # the columns that the split reads
    columns: Columns | None = None  # their names, if the data have columns

    def take(self, parts: UInt8, number: int, values: Array | None) -> Any:
        """Return the rows of part `number`; `values`, if any, replace the values of all rows."""
        raise NotImplementedError


def open_data(data: Any, options: dict[str, Any]) -> Container:
    """Open any data that `Interactions.of` accepts; `options` are user, item, value and time.

    The parts of data frames and of Parquet, CSV and TSV files keep all columns. All other data are
    read as `Interactions`.
    """
    if isinstance(data, Container):
        return data
    if isinstance(data, str | os.PathLike):
        path = as_path(data, "data")
        if path.name.lower().endswith(".parquet") or parts_of(path) is not None:
            return _Parquet(path, options)
        if path.name.lower().endswith((".csv", ".tsv", ".csv.gz", ".tsv.gz")):
            return _Frame(*_read_text(path, options))
    if is_a(data, "scipy.sparse", "sparray", "spmatrix") or not is_frame(data):
        return _Interactions(Interactions.of(data, **options))
    if is_a(data, "polars", "LazyFrame"):
        data = execute(data)  # running the query twice could return the rows in different orders
    return _Frame(data, options)


class _Interactions(Container):
    def __init__(self, data: Interactions) -> None:
        self.data = data
        if data.item_ids is None:
            check_positions(data.n_items, len(data), "The items of the data")

        def users() -> Coded:
            codes = np.repeat(np.arange(data.n_users, dtype=np.uint32), np.diff(data.indptr))
            return Coded(codes, data.n_users, None, data.user_ids)

        self.table = Table(
            len(data),
            users,
            lambda: Coded(data.items.view(np.uint32), data.n_items, None, data.item_ids),
            None if data.times is None else _constant((data.times, False)),
            None if data.values is None else _constant(data.values),
        )

    def take(self, parts: UInt8, number: int, values: Array | None) -> Interactions:
        rows = parts == number
        changes: dict[str, Any] = {"duplicates": 0, "repeated": (), "columns": None, "copies": None}
        if values is not None:
            changes |= {"values": values[rows], "largest": None}
        return self.data.with_rows(ragged.offsets(rows, self.data.indptr), rows, **changes)


def _constant(column: T) -> Callable[[], T]:
    return lambda: column


def _table(
    fetch: Any,
    columns: Columns,
    n: int,
    names: Sequence[str],
    data: Any = None,
    time_texts: pl.DataFrame | None = None,
) -> Table:
    """Return the table of a frame; `fetch` takes the name of a column and returns the column.

    `data` is the frame, if any, and `time_texts` contains the times as they appear in a text file.
    """
    user, item, value, time = columns

    def values() -> Array:
        column = fetch(value)
        array = column.to_numpy() if hasattr(column, "to_numpy") else np.asarray(column)
        floats = numbers(array, f"values (column {value!r})")
        return np.ones(n) if floats is None else floats

    def zone() -> datetime.tzinfo:
        assert time is not None
        return time_zone(fetch(time) if time_texts is None else time_texts[time], data, time)

    return Table(
        n,
        lambda: Coded.of(fetch(user), f"user ids (column {user!r})"),
        lambda: Coded.of(fetch(item), f"item ids (column {item!r})"),
        None if time is None else lambda: times(fetch(time), f"times (column {time!r})"),
        None if value is None else values,
        names,
        zone,
    )


class _Frame(Container):
    """A Polars, pandas or pyarrow frame; frames of other libraries become Polars frames."""

    columns: Columns

    def __init__(
        self, data: Any, options: dict[str, Any], time_texts: pl.DataFrame | None = None
    ) -> None:
        import polars as pl

        native = is_a(data, "polars", "DataFrame") or is_a(data, "pandas", "DataFrame")
        self.data = data = data if native or is_a(data, "pyarrow", "Table") else pl.DataFrame(data)
        available, fetch = open_frame(data)
        self.columns = find_columns(available, **options)

        def read(name: str) -> Any:
            return fetch([name])[0]

        self.table = _table(read, self.columns, len(data), available, data, time_texts)

    def take(self, parts: UInt8, number: int, values: Array | None) -> Any:
        import polars as pl

        data = self.data
        value = self.columns.value
        sums = None
        if values is not None:
            assert self.table.values is not None
            rows = parts == number
            sums = _sums(values[rows], self.table.values[rows])
        if is_a(data, "pandas", "DataFrame"):
            part = data[parts == number]
            if sums is not None:
                name = data.columns[[str(name) for name in data.columns].index(str(value))]
                part = part.assign(**{name: _into_pandas(part[name], sums)})
        elif isinstance(data, pl.DataFrame):
            part = data.filter(pl.Series(parts) == number)
            if sums is not None:
                part = part.with_columns(_into(part[str(value)], sums))
        else:
            part = data.filter(parts == number)
            if sums is not None:
                place = part.schema.get_field_index(value)
                column = _into(pl.Series(part.column(value)), sums)
                part = part.set_column(place, value, column.to_arrow())
        return part


def _sums(values: Array, before: Array) -> pl.Series:
    """Return the values that differ from `before`, and null in place of all others."""
    import polars as pl

    return pl.Series("\0sum", np.where(values == before, np.nan, values)).fill_nan(None)


def _merged(sums: pl.Expr, values: pl.Expr, kind: pl.DataType) -> pl.Expr:
    """Replace values with sums wherever there is one; sums of integers or bools become integers."""
    import polars as pl

    kind = pl.Int64() if kind.is_integer() or kind == pl.Boolean else kind
    return pl.coalesce(sums.cast(kind), values.cast(kind))


def _into(column: pl.Series, sums: pl.Series) -> pl.Series:
    import polars as pl

    merged = _merged(pl.lit(sums), pl.lit(column), column.dtype)
    return pl.select(merged).to_series().alias(column.name)


def _into_pandas(column: Any, sums: pl.Series) -> Any:
    new = sums.fill_null(0).to_numpy()
    plain = isinstance(column.dtype, np.dtype)
    if column.dtype.kind in "iub":
        column, new = column.astype("int64" if plain else "Int64"), new.astype(np.int64)
    elif plain and column.dtype.kind == "f":
        new = new.astype(column.dtype)
    return column.mask(sums.is_not_null().to_numpy(), new)


class _Parquet(Container):
    """A Parquet file, or several files that form one table.

    Only the columns that the split reads are loaded in full.
    """

    columns: Columns

    def __init__(self, path: pathlib.Path, options: dict[str, Any]) -> None:
        import polars as pl

        names_of_columns, fetch = open_file(path, options)
        self.path = path
        self.columns = Columns(**names_of_columns)  # type: ignore[arg-type]
        by_name = {name: option for option, name in names_of_columns.items()}
        table = scan(path)
        n = int(table.select(pl.len()).collect().item())
        names = table.collect_schema().names()

        def read(name: str) -> Any:
            return in_memory(fetch(by_name[name]))

        self.table = _table(read, self.columns, n, names)

    def take(self, parts: UInt8, number: int, values: Array | None) -> pl.LazyFrame:
        import polars as pl

        extra = [pl.Series("\0part", parts)]
        if values is not None:
            assert self.table.values is not None
            extra.append(_sums(values, self.table.values))
        table = scan(self.path)
        schema = table.collect_schema()
        part = pl.concat([table, pl.LazyFrame(extra)], how="horizontal").filter(
            pl.col("\0part") == number
        )
        if values is not None:
            value = str(self.columns.value)
            merged = _merged(pl.col("\0sum"), pl.col(value), schema[value])
            part = part.with_columns(merged.alias(value))
        return part.select(schema.names())


def _read_text(
    path: pathlib.Path, options: dict[str, Any]
) -> tuple[pl.DataFrame, dict[str, Any], pl.DataFrame]:
    """Read all columns of a text file, and convert those that the split reads to numbers or ids.

    Return the frame, the options, and the times as they appear in the file.
    """
    import polars as pl

    names_of_columns, fetch = open_file(path, options)
    columns = [in_memory(fetch(column)) for column, name in names_of_columns.items() if name]
    parts = (
        part
        for column in columns
        for part in (column.struct.unnest() if isinstance(column.dtype, pl.Struct) else [column])
    )
    text, time = read_columns(path), names_of_columns["time"]
    return text.with_columns(parts), options, text.select([time] if time else [])

"""Lists of structs: items with their scores in a single cell, as Spark's ALS returns them.

``recommendForAllUsers`` returns a row per user, with a list of (item, rating). Each field is read
as a column of lists.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from recometer.data.columns import common_names
from recometer.data.tensors import is_a

if TYPE_CHECKING:
    import polars as pl


def without_structs(data: Any) -> Any:
    """Replace such lists in a data frame by a column for each field.

    This happens only if the structs have a field of items, and the frame has no column of items.
    """
    if is_a(data, "polars", "DataFrame", "LazyFrame"):
        return _of_polars(data)
    if is_a(data, "pandas", "DataFrame"):
        return _of_pandas(data)
    if is_a(data, "pyarrow", "Table", "RecordBatch"):
        nested = any("list<" in str(one) and "struct<" in str(one) for one in data.schema.types)
    else:
        nested = is_a(data, "duckdb", "DuckDBPyRelation") and any(
            str(one).startswith("STRUCT(") and str(one).endswith("[]") for one in data.types
        )
    if not nested:
        return data
    import polars as pl

    return _of_polars(pl.DataFrame(data))


def _of_polars(table: pl.DataFrame | pl.LazyFrame) -> pl.DataFrame | pl.LazyFrame:
    import polars as pl

    schema = table.collect_schema()
    for name, dtype in schema.items():
        inner = dtype.inner if isinstance(dtype, pl.List | pl.Array) else None
        fields = [field.name for field in getattr(inner, "fields", ())]
        if _hold_items(fields, schema):
            of_items = pl.element().struct
            cells = pl.col(name).arr.to_list() if isinstance(dtype, pl.Array) else pl.col(name)
            lists = [cells.list.eval(of_items.field(one)).alias(one) for one in fields]
            return table.with_columns(lists).drop({name} - {*fields})
    return table


def _of_pandas(frame: Any) -> Any:
    names = list(map(str, frame.columns))
    objects = (at for at, dtype in enumerate(frame.dtypes) if dtype.kind == "O")
    for rows in (frame.iloc[:, at] for at in objects):
        first = next((row for row in rows if not _is_empty(row)), None)
        entries = first if isinstance(first, list | np.ndarray) else []
        fields = _fields(next((one for one in entries if one is not None), None))
        if _hold_items(fields, names):
            lists = {field: [_entries(row, field) for row in rows] for field in fields}
            return frame.drop(columns=[rows.name]).assign(**lists)
    return frame


def _is_empty(row: Any) -> bool:
    return row is None or (isinstance(row, list | np.ndarray) and not len(row))


def _entries(row: Any, field: str) -> list[Any]:
    """Return a field's values in all structs of a list; a missing list is empty."""
    if not isinstance(row, list | np.ndarray):
        return []
    return [one[field] if isinstance(one, Mapping) else getattr(one, field, None) for one in row]


def _hold_items(fields: Sequence[str], names: Iterable[str]) -> bool:
    return bool(common_names("item", fields)) and not common_names("item", names)


def _fields(entry: object) -> list[str]:
    """Return the fields of a dict, a Spark row or a named tuple."""
    if isinstance(entry, Mapping):
        return [str(field) for field in entry]
    return list(getattr(entry, "__fields__", getattr(entry, "_fields", ())))

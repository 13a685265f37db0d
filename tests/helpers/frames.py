"""Data frames of every supported library, made from a dict of columns.

The libraries are slow to import, so each library is imported only by tests that use its frames.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

__all__ = ["FRAMES", "ArrowStream"]


class ArrowStream:
    """A table that offers only the Arrow stream protocol."""

    def __init__(self, table: Any) -> None:
        self.table = table

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.table.__arrow_c_stream__(requested_schema)


class PlainColumns:
    """A data frame from an unknown library, which offers nothing but access to its columns."""

    def __init__(self, columns: dict[str, list[object]]) -> None:
        self.columns = list(columns)
        self.data = columns

    def __getitem__(self, name: str) -> list[object]:
        return self.data[name]


def polars_categories(data: dict[str, Any]) -> Any:
    """Return a Polars frame whose first two columns, if they are strings, are categorical."""
    import polars as pl

    frame = pl.DataFrame(data)
    texts = [name for name in frame.columns[:2] if frame[name].dtype == pl.String]
    return frame.with_columns(pl.col(texts).cast(pl.Categorical))


def pandas(data: dict[str, Any]) -> Any:
    """Return a pandas frame."""
    return importlib.import_module("pandas").DataFrame(data)


def table(data: dict[str, Any]) -> Any:
    """Return a pyarrow table."""
    return importlib.import_module("pyarrow").table(data)


FRAMES: dict[str, Callable[[dict[str, Any]], Any]] = {
    "polars": lambda data: importlib.import_module("polars").DataFrame(data),
    "polars lazy": lambda data: importlib.import_module("polars").LazyFrame(data),
    "polars categories": polars_categories,
    "pandas": pandas,
    "pandas nullable": lambda data: pandas(data).convert_dtypes(),
    "pandas arrow": lambda data: pandas(data).convert_dtypes(dtype_backend="pyarrow"),
    "pandas objects": lambda data: pandas(data).astype(object),
    "pandas categories": lambda data: pandas(data).astype(
        dict.fromkeys(list(data)[:2], "category")
    ),
    "pyarrow table": table,
    "pyarrow batch": lambda data: importlib.import_module("pyarrow").RecordBatch.from_pydict(data),
    "pyarrow reader": lambda data: table(data).to_reader(),
    "arrow stream": lambda data: ArrowStream(table(data)),
    "duckdb": lambda data: importlib.import_module("duckdb").from_arrow(table(data)),
    "columns": PlainColumns,
}

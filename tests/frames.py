"""Data frames of every library that recometer reads, made of a dict of columns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa

__all__ = ["FRAMES", "ArrowStream"]


class ArrowStream:
    """An object that is known by its Arrow stream alone."""

    def __init__(self, table: pa.Table) -> None:
        self.table = table

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.table.__arrow_c_stream__(requested_schema)


class PlainColumns:
    """A frame of an unknown library: columns, and nothing else."""

    def __init__(self, columns: dict[str, list[object]]) -> None:
        self.columns = list(columns)
        self.data = columns

    def __getitem__(self, name: str) -> list[object]:
        return self.data[name]


def polars_categories(data: dict[str, Any]) -> pl.DataFrame:
    """Return a Polars frame whose ids, the first two columns, are categories where texts."""
    frame = pl.DataFrame(data)
    texts = [name for name in frame.columns[:2] if frame[name].dtype == pl.String]
    return frame.with_columns(pl.col(texts).cast(pl.Categorical))


FRAMES: dict[str, Callable[[dict[str, Any]], Any]] = {
    "polars": pl.DataFrame,
    "polars lazy": pl.LazyFrame,
    "polars categories": polars_categories,
    "pandas": pd.DataFrame,
    "pandas nullable": lambda data: pd.DataFrame(data).convert_dtypes(),
    "pandas arrow": lambda data: pd.DataFrame(data).convert_dtypes(dtype_backend="pyarrow"),
    "pandas objects": lambda data: pd.DataFrame(data).astype(object),
    "pandas categories": lambda data: pd.DataFrame(data).astype(
        dict.fromkeys(list(data)[:2], "category")
    ),
    "pyarrow table": pa.table,
    "pyarrow batch": lambda data: pa.RecordBatch.from_pydict(data),
    "pyarrow reader": lambda data: pa.table(data).to_reader(),
    "arrow stream": lambda data: ArrowStream(pa.table(data)),
    "duckdb": lambda data: duckdb.from_arrow(pa.table(data)),
    "columns": PlainColumns,
}

"""What Polars raises for a file that it cannot read."""

from __future__ import annotations


def unreadable() -> tuple[type[BaseException], ...]:
    """Return the exceptions of reading, including a panic, which damaged Parquet may cause."""
    import polars as pl

    return OSError, pl.exceptions.PolarsError, pl.exceptions.PanicException

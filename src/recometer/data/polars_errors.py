"""What Polars raises for a file that it cannot read."""

from __future__ import annotations


def unreadable() -> tuple[type[BaseException], ...]:
    """Return what reading may raise: a panic of the core, too, which damaged Parquet may cause."""
    import polars as pl

    return OSError, pl.exceptions.PolarsError, pl.exceptions.PanicException

"""Reads ids of users or items from files, as numbers or strings like the ids of test."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from recometer.arrays import Array
from recometer.data import ids, sessions
from recometer.data.array_files import open_array
from recometer.data.cells import integers
from recometer.data.columns import REQUIRED, common_names
from recometer.data.files import check_file, column_names, read_columns
from recometer.data.interactions import Interactions
from recometer.data.texts import DAMAGED, open_text
from recometer.errors import ColumnError, FileError, python_or_command

if TYPE_CHECKING:
    import polars as pl


def known_ids(test: Interactions | None, what: str) -> Array | None:
    """Return the ids of test's users or items; None without test, or if test has no ids."""
    found: Array | None = None if test is None else getattr(test, f"{what}_ids")
    return found


def read_ids(path: Path, what: str, column: str | None, known: Array | None) -> object:
    """Read ids of users or items: text with one per line, a NumPy array, or a table's column.

    The column is `column`, the one with a common name, or the only one. If the ids of test
    (`known`) are strings, ids in text files stay strings, even if they look like numbers.
    """
    name = path.name.lower()
    if name.endswith(".npy"):
        return ids.as_ids(open_array(path, f"{what} ids"), f"{what} ids of {path}")
    if name.endswith(".txt"):
        return _from_text(path, known)
    own = id_column(path, column_names(path), what, column)
    return like(read_columns(path, [own])[own], known)


def _from_text(path: Path, known: Array | None) -> pl.Series:
    import polars as pl

    check_file(path)
    try:
        with open_text(path) as file:
            # Do not use splitlines(), which also splits at characters that ids may contain.
            lines = file.read().removesuffix("\n").split("\n")
    except FileError:
        raise
    except DAMAGED as error:
        raise FileError(
            f"{path} cannot be read as text: {error}. Hint: it must be UTF-8."
        ) from None
    return like(pl.Series("id", lines, dtype=pl.String), known)


def id_column(path: Path, names: list[str], what: str, column: str | None) -> str:
    """Find the column of ids: as named, by a common name (or "id"), or the only column."""
    if column in names:
        return str(column)
    near = common_names(what, names) or [name for name in names if name.lower() == "id"]
    if len(near) == 1:
        return near[0]
    if len(names) == 1:
        return names[0]
    found = "several columns" if near else "no column"
    raise ColumnError(
        f"{path}: {found} could hold the {what} ids. Hint: {python_or_command('', '--')}{what} "
        f"names it. Columns: {', '.join(names)}."
    )


def like(series: pl.Series, known: Array | None) -> pl.Series:
    """Convert ids to strings or numbers, like the ids of test, if this is lossless.

    Whole numbers become strings if the ids of test are strings. Otherwise, strings become numbers
    if each of them is written as a plain integer.
    """
    import polars as pl

    if isinstance(series.dtype, pl.Struct):
        parts = series.struct.fields
        like_parts = sessions.split_pairs(known) if sessions.are_pairs(known) else (None, None)
        fields = [
            like(series.struct.field(p), one) for p, one in zip(parts, like_parts, strict=True)
        ]
        return pl.DataFrame(fields).to_struct(series.name)
    if sessions.are_pairs(known):
        known = sessions.split_pairs(known)[0]
    if known is not None and len(known) and ids.kind(known) == "str":
        return series.cast(pl.String) if series.dtype.is_integer() else series
    return integers(series) if series.dtype == pl.String else series


def frame_like(columns: Mapping[str, Any], test: Interactions | None) -> pl.DataFrame:
    """Return a data frame of columns; user and item ids get the types of the ids of test."""
    import polars as pl

    alike = {what: like(columns[what], known_ids(test, what)) for what in REQUIRED}
    return pl.DataFrame({**columns, **alike})


def same_kinds(ids_of_source: object, known: Array | None) -> bool:
    """Return whether both sides have the same types of ids; True if either has none."""
    if not isinstance(ids_of_source, np.ndarray) or known is None:
        return True
    if not len(ids_of_source) or not len(known):
        return True
    return sessions.kinds(ids_of_source) == sessions.kinds(
        sessions.as_named_by(known, ids_of_source)
    )

"""Interactions in files: Parquet, and text with a header."""

from __future__ import annotations

import difflib
import os
import pathlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from recometer.errors import ColumnError, FileError, InputError
from recometer.frames import Columns, choose_columns

if TYPE_CHECKING:
    import polars as pl

__all__ = [
    "EXTENSIONS",
    "FileColumn",
    "check_file",
    "column_names",
    "integers",
    "open_file",
    "read_columns",
    "read_file",
]

SEPARATORS = {".csv": ",", ".csv.gz": ",", ".tsv": "\t", ".tsv.gz": "\t"}
EXTENSIONS = (".parquet", *SEPARATORS)
ROWS_AT_ONCE = 2**22  # of a column, that is read piece by piece
NUMBER = re.compile(r"\s*[-+]?\d+(\.\d*)?([eE][-+]?\d+)?\s*")


def column_names(path: str | os.PathLike[str]) -> list[str]:
    """Return the names of a file's columns, in its order.

    Raises
    ------
    FileError
        A file that is not there, is empty or damaged, or has an extension that is not read.
    """
    return _scan(pathlib.Path(path)).collect_schema().names()


def read_columns(path: str | os.PathLike[str], names: Sequence[str] | None = None) -> pl.DataFrame:
    """Read some columns of a file, or all; those of text files (CSV, TSV) stay texts.

    Raises
    ------
    FileError
        As `column_names` does.
    """
    path = pathlib.Path(path)
    return _collect(_scan(path), column_names(path) if names is None else names, path)


def read_file(
    path: str | os.PathLike[str],
    *,
    user: object = None,
    item: object = None,
    value: object = None,
    time: object = None,
) -> tuple[Columns, pl.DataFrame]:
    """Read the columns of users, items, values and times of a file, and no others.

    Parameters
    ----------
    path
        A file that ends in one of `EXTENSIONS`. Text (CSV, TSV) is UTF-8, and its first line
        names the columns. Ids in text are integers if every one is written as a plain
        integer (so ``007`` stays a string), else strings. Times in text are numbers, or
        dates and times in ISO 8601.
    user, item, value, time
        As in `recometer.frames.find_columns`.

    Raises
    ------
    FileError
        A file that is not there, is empty or damaged, has no header, or has an extension
        that is not read.
    ColumnError
        See `find_columns`; the message starts with the path.
    InputError
        Text where a number or a time was expected; the message names its row.
    """
    import polars as pl

    wanted = {"user": user, "item": item, "value": value, "time": time}
    found, fetch = open_file(path, wanted)
    assert found["user"] is not None
    assert found["item"] is not None
    columns = Columns(found["user"], found["item"], found["value"], found["time"])
    fetched = (fetch(option) for option, name in found.items() if name)
    return columns, pl.DataFrame(
        [column.read() if isinstance(column, FileColumn) else column for column in fetched]
    )


class FileColumn:
    """A column of a Parquet file, to be read whole or piece by piece."""

    def __init__(self, table: pl.LazyFrame, name: str, path: pathlib.Path) -> None:
        import polars as pl

        self._table, self._name, self._path = table.select(name), name, path
        self._n = int(_collect(table.select(pl.len()), ["len"], path).item())

    def __len__(self) -> int:
        return self._n

    @property
    def dtype(self) -> pl.DataType:
        """What it holds."""
        return self._table.collect_schema()[self._name]

    def read(self) -> pl.Series:
        """Return all of it."""
        return _collect(self._table, [self._name], self._path).to_series()

    def pieces(self) -> Iterator[pl.Series]:
        """Yield the rows in their order, some at a time."""
        for begin in range(0, self._n, ROWS_AT_ONCE):
            some = self._table.slice(begin, ROWS_AT_ONCE)
            yield _collect(some, [self._name], self._path).to_series()


def open_file(
    path: str | os.PathLike[str], wanted: Mapping[str, object]
) -> tuple[dict[str, str | None], Callable[[str], pl.Series | FileColumn]]:
    """Find columns in a file, to be read one by one.

    Parameters
    ----------
    path
        As in `read_file`.
    wanted
        As in `recometer.frames.choose_columns`.

    Returns
    -------
    found
        The name of the column, or None, for every key of `wanted`.
    fetch
        A function that returns the column of a key; that of a Parquet file is not read yet.
    """
    path = pathlib.Path(path)
    table = _scan(path)
    names = table.collect_schema().names()
    try:
        found = choose_columns(names, wanted)
    except ColumnError as error:
        if _extension(path) in SEPARATORS and any(map(NUMBER.fullmatch, names)):
            raise FileError(
                f"{path} seems to have no header: its first line is {', '.join(names)}. Hint: "
                "the first line must name the columns, for instance: user_id, item_id, rating."
            ) from None
        raise ColumnError(f"{path}: {error}") from None
    if _extension(path) in SEPARATORS:
        # All at once: a single column would be read without looking at the others.
        text = _collect(table, [name for name in found.values() if name is not None], path)
        return found, lambda option: _typed(text[str(found[option])], option, path)
    return found, lambda option: FileColumn(table, str(found[option]), path)


def _extension(path: pathlib.Path) -> str:
    name = path.name.lower()
    return next((extension for extension in EXTENSIONS if name.endswith(extension)), "")


def check_file(path: pathlib.Path) -> None:
    """Raise if there is no such file."""
    if path.is_file():
        return
    if path.exists():
        raise FileError(f"{path} is not a file. Hint: name one file, not a folder.")
    folder = path.parent
    others = [other.name for other in folder.iterdir()] if folder.is_dir() else []
    near = difflib.get_close_matches(path.name, others, n=3)
    hint = (
        f"Did you mean {' or '.join(map(repr, near))}?"
        if near
        else f"Relative paths start at {pathlib.Path.cwd()}."
    )
    raise FileError(f"There is no file {path}. Hint: {hint}")


def _scan(path: pathlib.Path) -> pl.LazyFrame:
    import polars as pl

    check_file(path)
    extension = _extension(path)
    if not extension:
        raise FileError(
            f"{path} has an extension that is not read. Hint: known are {', '.join(EXTENSIONS)}, "
            "and TREC runs and qrels of any name; load others into a data frame and pass that."
        )
    try:
        if extension == ".parquet":
            table = pl.scan_parquet(path, glob=False)
        else:
            # All text at first: the types of ids are settled by every row, not the first few.
            table = pl.scan_csv(
                path, separator=SEPARATORS[extension], infer_schema=False, glob=False
            )
        table.collect_schema()
    except pl.exceptions.NoDataError:
        raise FileError(f"{path} is empty. Hint: the first line must name the columns.") from None
    except (pl.exceptions.PolarsError, OSError) as error:
        raise _unreadable(path, error) from error
    return table


def _unreadable(path: pathlib.Path, error: Exception) -> FileError:
    reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
    return FileError(
        f"{path} cannot be read as {_extension(path)}: {reason}. Hint: is it damaged, or of "
        "another format than its name says? Text must be UTF-8."
    )


def _collect(table: pl.LazyFrame, names: Sequence[str], path: pathlib.Path) -> pl.DataFrame:
    import polars as pl

    try:
        return table.select(names).collect()
    except (pl.exceptions.PolarsError, OSError) as error:
        raise _unreadable(path, error) from error


def _typed(text: pl.Series, option: str, path: pathlib.Path) -> pl.Series:
    if option in ("user", "item"):
        return integers(text)
    return _times(text, path) if option == "time" else _floats(text, path)


def integers(text: pl.Series) -> pl.Series:
    """Return integers if every entry is written as one and nothing would be lost."""
    import polars as pl

    for dtype in (pl.Int64, pl.UInt64):
        whole = text.cast(dtype, strict=False)
        if whole.null_count() == text.null_count() and (whole.cast(pl.String) == text).all():
            return whole
    return text


def _floats(text: pl.Series, path: pathlib.Path) -> pl.Series:
    import polars as pl

    parsed = text.str.strip_chars().cast(pl.Float64, strict=False)
    _check_parsed(text, parsed, path, "a number")
    return parsed


def _times(text: pl.Series, path: pathlib.Path) -> pl.Series:
    import polars as pl

    for dtype in (pl.Int64, pl.Float64):
        number = text.str.strip_chars().cast(dtype, strict=False)
        if number.null_count() == text.null_count():
            return number
    try:
        parsed = text.str.to_datetime(time_unit="us", strict=False)
    except pl.exceptions.PolarsError:
        parsed = pl.Series(text.name, [None] * len(text), dtype=pl.Datetime("us"))
    _check_parsed(text, parsed, path, "a number or a date such as 2024-05-31 (or pass time=False)")
    return parsed


def _check_parsed(text: pl.Series, parsed: pl.Series, path: pathlib.Path, expected: str) -> None:
    wrong = (parsed.is_null() & text.is_not_null()).arg_true()
    if len(wrong):
        row = int(wrong[0])
        raise InputError(
            f"{path}: row {row} (counted from 0) of column {text.name!r} holds {text[row]!r}. "
            f"Hint: expected {expected}."
        )

"""Interactions in files: Parquet, and text with a header."""

from __future__ import annotations

import contextlib
import csv
import functools
import glob
import gzip
import itertools
import os
import pathlib
import re
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn, TextIO

from recometer.data.columns import ColumnPair, Columns, choose_columns, single_names
from recometer.data.forks import check_threads
from recometer.data.frames import first_line, numeric_names, warn_of_values
from recometer.data.paths import as_path, check_readable, unreadable
from recometer.data.sessions import paired, selected
from recometer.data.times import check_parsed, times_of_text
from recometer.data.unpacking import check_gzip, check_table
from recometer.errors import ColumnError, FileError

if TYPE_CHECKING:
    import polars as pl

SEPARATORS = {".csv": ",", ".csv.gz": ",", ".tsv": "\t", ".tsv.gz": "\t"}
OTHER_SEPARATORS = (",", "\t", ";", "|")
EXTENSIONS = (".parquet", *SEPARATORS)
ROWS_AT_ONCE = 2**22  # of a column, that is read piece by piece
PROBE = 100  # rows
LONGEST_HEADER = 2**22  # characters
WHAT = "data"
NUMBER = re.compile(r"\s*[-+]?\d+(\.\d*)?([eE][-+]?\d+)?\s*")
TRUE_OR_FALSE = re.compile(r"\s*(true|false)\s*", re.IGNORECASE)


def column_names(path: str | os.PathLike[str]) -> list[str]:
    """Return the names of a file's columns, in its order.

    Raises
    ------
    FileError
        If a file is not there, is empty or damaged, or has an extension that is not read.
    """
    return scan(as_path(path, WHAT)).collect_schema().names()


def read_columns(path: str | os.PathLike[str], names: Sequence[str] | None = None) -> pl.DataFrame:
    """Read some columns of a file, or all; those of text files (CSV, TSV) stay texts.

    Raises
    ------
    FileError
        As `column_names` does.
    """
    path = as_path(path, WHAT)
    table = scan(path)
    names = table.collect_schema().names() if names is None else names
    if _extension(path) not in SEPARATORS:
        count_rows(table, path, len(names))
    return collect(table, names, path)


def read_file(
    path: str | os.PathLike[str],
    *,
    user: object = None,
    item: object = None,
    value: object = None,
    time: object = None,
    whose: str | None = "",
) -> tuple[Columns, pl.DataFrame]:
    """Read the columns of users, items, values and times of a file, and no others.

    Parameters
    ----------
    path
        A file that ends in one of `EXTENSIONS`; or a folder of Parquet files, or a pattern such as
        ``"ratings/part-*.parquet"``, whose files are one table, in the order of their names.
        Text (CSV, TSV) is UTF-8, and its first line names the columns; if it has no comma (in
        .csv) or tab (in .tsv), its fields may be separated by a comma, a tab, ``;`` or ``|``. Ids
        in text are integers if every one is written as a plain integer (so ``007`` stays a
        string), else strings. Values are numbers, or True and False. Times in text are numbers,
        or dates and times in ISO 8601.
    user, item, value, time
        As in `recometer.data.columns.find_columns`.
    whose
        As in `recometer.data.frames.read_frame`.

    Raises
    ------
    FileError
        If a file is not there, is empty or damaged, does not have a header, has lines of another
        number of fields (the first is named), or has an extension that is not read.
    ColumnError
        See `find_columns`; the message starts with the path.
    InputError
        If there is text where a number or a time was expected, or a date whose day and month could
        be either; the message names its row.
    """
    import polars as pl

    found, fetch = open_file(path, {"user": user, "item": item, "value": value, "time": time})
    columns = Columns(**found)  # type: ignore[arg-type]  # there are users and items
    if whose is not None and value is None:
        warn_of_values(columns, lambda: numeric_columns(path, booleans=True), whose)
    fetched = (fetch(option) for option, name in columns._asdict().items() if name)
    return columns, pl.DataFrame([in_memory(column) for column in fetched])


class FileColumn:
    """A column of a Parquet file, to be read whole or piece by piece."""

    def __init__(self, table: pl.LazyFrame, name: str, path: pathlib.Path, n_rows: int) -> None:
        self._table, self._name, self._path = table.select(selected(table, name)), name, path
        self._n = n_rows

    def __len__(self) -> int:
        return self._n

    @property
    def dtype(self) -> pl.DataType:
        """The type of its entries."""
        return self._table.collect_schema()[self._name]

    def read(self) -> pl.Series:
        """Return the whole column."""
        return collect(self._table, [self._name], self._path).to_series()

    def pieces(self) -> Iterator[pl.Series]:
        """Yield the rows in their order, some at a time."""
        for begin in range(0, self._n, ROWS_AT_ONCE):
            some = self._table.slice(begin, ROWS_AT_ONCE)
            yield collect(some, [self._name], self._path).to_series()


def in_memory(column: Any) -> Any:
    """Return a column as it is, one of a file that is not read yet as a series."""
    return column.read() if isinstance(column, FileColumn) else column


def open_file(
    path: str | os.PathLike[str], wanted: Mapping[str, object]
) -> tuple[dict[str, str | None], Callable[[str], pl.Series | FileColumn]]:
    """Find columns in a file, to be read one by one.

    `path` is as in `read_file`, `wanted` as in `recometer.data.columns.choose_columns`.

    Returns
    -------
    found
        The name of the column, or None, for every key of `wanted`.
    fetch
        A function that returns the column of a key; that of a Parquet file is not read yet.
    """
    path = as_path(path, WHAT)
    table = scan(path)
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
        text = collect(table, single_names(found.values()), path)
        text = _without_blank_lines(text, path)
        for column in text:
            if column.null_count():
                _check_fields(path, int(column.is_null().arg_true()[0]))
        return found, lambda option: _typed_columns(text, str(found[option]), option, path)
    n_rows = functools.cache(lambda: count_rows(table, path, 1))
    return found, lambda option: FileColumn(table, str(found[option]), path, n_rows())


def numeric_columns(path: str | os.PathLike[str], *, booleans: bool = False) -> list[str]:
    """Return the names of the columns that hold numbers; of text, the first rows tell.

    Those of True and False are among them with `booleans`.

    Raises
    ------
    FileError
        As `column_names` does.
    """
    path = as_path(path, WHAT)
    table = scan(path)
    if _extension(path) not in SEPARATORS:
        return numeric_names(table, booleans)
    schema = table.collect_schema()
    rows = [record for _, record in itertools.islice(_records(path), 1, 1 + PROBE)]
    found = []
    for name, column in zip(schema, itertools.zip_longest(*rows, fillvalue=""), strict=False):
        entries = [entry for entry in column if entry]
        kinds = (NUMBER, TRUE_OR_FALSE) if booleans else (NUMBER,)
        if entries and any(all(map(kind.fullmatch, entries)) for kind in kinds):
            found.append(name)
    return found


def _extension(path: pathlib.Path) -> str:
    name = path.name.lower()
    return next((extension for extension in EXTENSIONS if name.endswith(extension)), "")


def check_file(path: pathlib.Path) -> None:
    """Raise if there is no such file, or if it may not be read."""
    if path.is_file():
        check_readable(path)
        return
    import difflib  # needed for messages alone

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


def parts_of(path: pathlib.Path) -> list[pathlib.Path] | None:
    """Return the Parquet files of a folder or a pattern, by their names, or None if it is neither.

    Those whose names begin with ``_`` or a dot are not data.

    Raises
    ------
    FileError
        If there is no such file.
    """
    if path.is_dir():
        found = [
            pathlib.Path(folder, name)
            for folder, _, names in os.walk(path, onerror=_unlisted)
            for name in names
            if name.endswith(".parquet")
        ]
        none, hint = f"{path} is not a file", "name one file, or a folder with Parquet files"
    elif not path.exists() and any(letter in str(path) for letter in "*?["):
        found = [pathlib.Path(part) for part in glob.glob(str(path), recursive=True)]
        none, hint = f"No file is called {path}", f"relative paths start at {pathlib.Path.cwd()}"
    else:
        return None
    parts = sorted(part for part in found if not part.is_dir() and part.name[0] not in "_.")
    broken = next((part for part in parts if not part.is_file()), None)
    if broken is not None:
        raise FileError(f"{broken} is not a file. Hint: remove it, if it is a link to nowhere.")
    wrong = next((part for part in parts if part.suffix.lower() != ".parquet"), None)
    if wrong is not None:
        raise FileError(f"{path} means several files, and {wrong} is not Parquet. Hint: name one.")
    if not parts:
        raise FileError(f"{none}. Hint: {hint}.")
    return parts


def _unlisted(error: OSError) -> NoReturn:
    raise FileError(
        f"The folder {error.filename} cannot be listed: {error.strerror}. Hint: ask its owner for "
        "the permission to read it (chmod +rx), or name single files."
    )


def scan(path: pathlib.Path) -> pl.LazyFrame:
    """Return the table of a file, or of the Parquet files of a folder or a pattern, not read yet.

    Raises
    ------
    FileError
        As `column_names` does.
    """
    import polars as pl

    check_threads()
    parts = parts_of(path)
    if parts is None:
        check_file(path)
    extension = _extension(path) if parts is None else ".parquet"
    if not extension:
        raise FileError(
            f"{path} has an extension that is not read. Hint: known are {', '.join(EXTENSIONS)}, "
            "and TREC runs and qrels of any name; load others into a data frame and pass that."
        )
    try:
        if extension == ".parquet":
            table = pl.scan_parquet(parts or path, glob=False, hive_partitioning=False)
        else:
            if extension.endswith(".gz"):
                check_gzip(path)
            # All text at first: the types of ids are settled by every row, not the first few.
            table = pl.scan_csv(path, separator=_separator(path), infer_schema=False, glob=False)
        table.collect_schema()
    except pl.exceptions.NoDataError:
        raise FileError(f"{path} is empty. Hint: the first line must name the columns.") from None
    except unreadable() as error:
        raise _unreadable(path, error) from error
    return table


def _separator(path: pathlib.Path) -> str:
    """Return what separates the fields: what the name says, unless the first line lacks it."""
    usual, header = SEPARATORS[_extension(path)], ""
    with contextlib.suppress(OSError, EOFError, zlib.error), _open(path) as file:
        header = file.readline(LONGEST_HEADER).removeprefix("\ufeff")
    if len(header) >= LONGEST_HEADER - 1:
        raise FileError(
            f"{path}: the first line has more than {LONGEST_HEADER - 2:,} characters, and must "
            "hold the names of the columns. Hint: is it a text file, with ends of lines?"
        )
    with contextlib.suppress(csv.Error):
        fields = {
            one: len(next(csv.reader([header], delimiter=one), []))
            for one in (usual, *OTHER_SEPARATORS)
        }
        return usual if fields[usual] > 1 else max(fields, key=fields.__getitem__)
    return usual  # Polars will say what is wrong


def _open(path: pathlib.Path) -> TextIO:
    opened = gzip.open if path.name.lower().endswith(".gz") else open
    file: TextIO = opened(path, "rt", encoding="utf-8", errors="replace", newline="")
    return file


def _records(path: pathlib.Path) -> Iterator[tuple[int, list[str]]]:
    """Return the records of a text file, the header first, each with the number of its line."""
    try:
        with contextlib.suppress(csv.Error), _open(path) as file:
            reader = csv.reader(file, delimiter=_separator(path))
            for record in reader:
                yield reader.line_num, record
    except (OSError, EOFError, zlib.error) as error:
        raise _unreadable(path, error) from error


def _without_blank_lines(text: pl.DataFrame, path: pathlib.Path) -> pl.DataFrame:
    import polars as pl

    if not text.select(pl.all_horizontal(pl.all().is_null()).any()).item():
        return text
    blank = [row for row, (_, record) in enumerate(_records(path), -1) if not record]
    return text.filter(~pl.int_range(pl.len()).is_in(blank))


def _check_fields(path: pathlib.Path, row: int) -> None:
    """Raise if a row, counted from 0 without blank lines, has fewer fields than the header."""
    records = (entry for entry in _records(path) if entry[1])
    width = len(next(records)[1])
    for line, record in itertools.islice(records, row, row + 1):
        if len(record) < width:
            raise _ragged(path, line, len(record), width)


def _ragged(path: pathlib.Path, line: int, found: int, width: int) -> FileError:
    return FileError(
        f"{path}: line {line} has {found} field{'' if found == 1 else 's'}, but the first line "
        f"names {width} columns. Hint: fields are separated by {_separator(path)!r}; one that "
        "holds it must stand in double quotes."
    )


def _unreadable(path: pathlib.Path, error: BaseException) -> FileError:
    reason = first_line(error)
    if not path.is_file():
        return FileError(
            f"The files of {path} cannot be read as one table: {reason}. Hint: all must have the "
            "same columns; or name one file."
        )
    return FileError(
        f"{path} cannot be read as {_extension(path)}: {reason}. Hint: is it damaged, or does it "
        "have another format than its name says? Text must be UTF-8."
    )


def collect(table: pl.LazyFrame, names: Sequence[str], path: pathlib.Path) -> pl.DataFrame:
    """Read some columns of a table that `scan` returned.

    Raises
    ------
    FileError
        If a file is damaged, or a line of text has more fields than there are columns.
    """
    try:
        return table.select([selected(table, name) for name in names]).collect()
    except unreadable() as error:
        if "found more fields" in str(error):
            width = table.collect_schema().len()
            for line, record in _records(path):
                if len(record) > width:
                    raise _ragged(path, line, len(record), width) from None
        raise _unreadable(path, error) from error


def count_rows(table: pl.LazyFrame, path: pathlib.Path, n_columns: int) -> int:
    """Return the number of rows, if this number of columns may be read from Parquet files."""
    import polars as pl

    n_rows = int(collect(table.select(pl.len()), ["len"], path).item())
    check_table(path, parts_of(path) or [path], n_rows, n_columns)
    return n_rows


def _typed_columns(text: pl.DataFrame, name: str, option: str, path: pathlib.Path) -> pl.Series:
    """Return a column of a text file, or a pair of columns as one."""
    if isinstance(name, ColumnPair) and name not in text.columns:
        return paired(name[:], {part: _typed(text[part], option, path) for part in name.parts})
    return _typed(text[name], option, path)


def _typed(text: pl.Series, option: str, path: pathlib.Path) -> pl.Series:
    if option in ("user", "item"):
        return integers(text)
    return times_of_text(text, f"{path}: ") if option == "time" else _floats(text, path, option)


def integers(text: pl.Series) -> pl.Series:
    """Return integers if every entry is written as one and nothing would be lost."""
    import polars as pl

    for dtype in (pl.Int64, pl.UInt64):
        whole = text.cast(dtype, strict=False)
        if whole.null_count() == text.null_count() and (whole.cast(pl.String) == text).all():
            return whole
    return text


def _floats(text: pl.Series, path: pathlib.Path, option: str) -> pl.Series:
    import polars as pl

    plain = text.str.strip_chars()
    parsed = plain.cast(pl.Float64, strict=False)
    wrong = text.filter(parsed.is_null() & text.is_not_null())
    if len(wrong) and TRUE_OR_FALSE.fullmatch(wrong[0]):
        lower = plain.str.to_lowercase()
        if (lower.is_null() | lower.is_in(["true", "false"])).all():
            return lower == "true"
    comma = len(wrong) > 0 and wrong.str.contains(r"^[^,]*\d,\d[^,]*$")[0]
    expected = "a number" + (" with a decimal point" if comma else "")
    if option == "value":
        expected += " (or pass value=False)"
    check_parsed(text, parsed, f"{path}: ", expected)
    return parsed

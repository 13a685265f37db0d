"""Reads interactions from files: Parquet, text with a header, and TREC runs and qrels."""

from __future__ import annotations

import contextlib
import csv
import functools
import glob
import gzip
import io
import itertools
import os
import pathlib
import re
import urllib.parse
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, NoReturn, TextIO

from recometer.data.cells import integers
from recometer.data.columns import (
    ColumnPair,
    Columns,
    choose_columns,
    single_names,
    warn_of_values,
)
from recometer.data.forks import check_threads
from recometer.data.frames import first_line, is_numeric
from recometer.data.ids import as_pairs, column_expr
from recometer.data.numbers import check_distinct, large_in_text
from recometer.data.paths import as_path, check_file, unreadable
from recometer.data.times import check_parsed, times_of_text
from recometer.data.unpacking import check_gzip, check_nested, check_table
from recometer.errors import ColumnError, FileError, argument_text, brief, python_or_command

if TYPE_CHECKING:
    import polars as pl

SEPARATORS = {".csv": ",", ".csv.gz": ",", ".tsv": "\t", ".tsv.gz": "\t"}
OTHER_SEPARATORS = (",", "\t", ";", "|")
EXTENSIONS = (".parquet", *SEPARATORS)
ROWS_AT_ONCE = 2**22  # number of rows per piece of a column
PROBE = 100  # number of rows from which numeric columns are inferred
LONGEST_HEADER = 2**22  # maximum length of a header, in characters
NOUN = "data"
NUMBER = re.compile(r"\s*[-+]?\d+(\.\d*)?([eE][-+]?\d+)?\s*")
TRUE_OR_FALSE = re.compile(r"\s*(true|false)\s*", re.IGNORECASE)
RUN_LINE = "topic Q0 document rank score run"
QRELS_LINE = "topic 0 document relevance"
PARTITION = re.compile(r"([^=]+)=(.*)")
NO_PARTITION = "__HIVE_DEFAULT_PARTITION__"


def column_names(path: str | os.PathLike[str]) -> list[str]:
    """Return the column names of a file, in file order."""
    return scan(as_path(path, NOUN)).collect_schema().names()


def read_columns(path: str | os.PathLike[str], names: Sequence[str] | None = None) -> pl.DataFrame:
    """Read some or all columns of a file; columns of text files (CSV, TSV) stay strings."""
    path = as_path(path, NOUN)
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
    argument: str | None = "",
) -> tuple[Columns, pl.DataFrame]:
    """Find the user, item, value and time columns of a file, and read only these.

    Columns are found as in `open_file`. For `argument`, see `warn_of_values`; None suppresses its
    warnings.
    """
    import polars as pl

    named, fetch = open_file(path, {"user": user, "item": item, "value": value, "time": time})
    columns = Columns(**named)  # type: ignore[arg-type]  # users and items are required
    if argument is not None and value is None:
        warn_of_values(columns, lambda: numeric_columns(path, booleans=True), argument)
    fetched = (fetch(option) for option, name in columns._asdict().items() if name)
    return columns, pl.DataFrame([in_memory(column) for column in fetched])


class FileColumn:
    """A column of a Parquet file that can be read whole or piece by piece."""

    def __init__(self, table: pl.LazyFrame, name: str, path: pathlib.Path, n_rows: int) -> None:
        self._table, self._name, self._path = table.select(column_expr(table, name)), name, path
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
        """Yield the column in pieces, in row order."""
        for begin in range(0, self._n, ROWS_AT_ONCE):
            piece = self._table.slice(begin, ROWS_AT_ONCE)
            yield collect(piece, [self._name], self._path).to_series()


def in_memory(column: Any) -> Any:
    """Return a column in memory; read it if it is a `FileColumn`."""
    return column.read() if isinstance(column, FileColumn) else column


def open_file(
    path: str | os.PathLike[str], options: Mapping[str, object]
) -> tuple[dict[str, str | None], Callable[[str], pl.Series | FileColumn]]:
    """Find columns in a file with `choose_columns`; they can then be read one by one.

    The path is that of a file (with one of `EXTENSIONS`) or of a folder of Parquet files, or it is
    a pattern such as ``"ratings/part-*.parquet"``. Several files are read as one table, in order of
    name. Subfolders with names such as ``model=als`` become a column ``model``.

    Text is UTF-8, and its first line names the columns. If that line has no comma (in .csv) or tab
    (in .tsv), fields may be separated by a comma, a tab, ``;`` or ``|``. Ids in text become
    integers if all of them are written as plain integers (so ``007`` stays a string).

    Returns
    -------
    columns
        The name of the column, or None, for every key of `options`.
    fetch
        A function that returns the column for a key. Columns of Parquet files are returned unread.

    Raises
    ------
    FileError
        If a file does not exist, is empty or damaged, has no header, has lines with a different
        number of fields (the message names the first), or has an extension that is not supported.
    ColumnError
        See `choose_columns`; the message starts with the path.
    """
    path = as_path(path, NOUN)
    table = scan(path)
    names = table.collect_schema().names()
    try:
        columns = choose_columns(names, options)
    except ColumnError as error:
        if _extension(path) in SEPARATORS:
            _check_header(path, names)
        raise ColumnError(f"{path}: {error}") from None
    if _extension(path) in SEPARATORS:
        # Read all columns at once, because only this reveals lines with too few fields.
        text = collect(table, single_names(columns.values()), path)
        text = _without_blank_lines(text, path)
        for column in text:
            if column.null_count():
                _check_fields(path, int(column.is_null().arg_true()[0]))
        return columns, lambda option: _typed_columns(text, str(columns[option]), option, path)
    n_rows = functools.cache(lambda: count_rows(table, path, 1))
    return columns, lambda option: FileColumn(table, str(columns[option]), path, n_rows())


def numeric_columns(path: str | os.PathLike[str], *, booleans: bool = False) -> list[str]:
    """Return the names of the numeric columns, judging text files by their first rows.

    ``booleans=True`` includes Boolean columns.
    """
    path = as_path(path, NOUN)
    schema = scan(path).collect_schema()
    if _extension(path) not in SEPARATORS:
        return [name for name, dtype in schema.items() if is_numeric(dtype, booleans)]
    rows = [record for _, record in itertools.islice(_records(path), 1, 1 + PROBE)]
    numeric = []
    for name, column in zip(schema, itertools.zip_longest(*rows, fillvalue=""), strict=False):
        entries = [entry for entry in column if entry]
        kinds = (NUMBER, TRUE_OR_FALSE) if booleans else (NUMBER,)
        if entries and any(all(map(kind.fullmatch, entries)) for kind in kinds):
            numeric.append(name)
    return numeric


def _extension(path: pathlib.Path) -> str:
    name = path.name.lower()
    return next((extension for extension in EXTENSIONS if name.endswith(extension)), "")


def parts_of(path: pathlib.Path) -> list[pathlib.Path] | None:
    """Return the sorted Parquet files in a folder or matching a pattern; None for other paths.

    Files whose names begin with ``_`` or a dot are ignored.
    """
    if path.is_dir():
        paths = [
            pathlib.Path(folder, name)
            for folder, _, names in os.walk(path, onerror=_unlisted)
            for name in names
            if name.endswith(".parquet")
        ]
        problem, hint = f"{path} is not a file", "name one file, or a folder with Parquet files"
    elif not path.exists() and any(letter in str(path) for letter in "*?["):
        fixed = itertools.takewhile(lambda part: not set(part) & set("*?["), path.parts)
        names_in(pathlib.Path(*fixed))  # raises an error where `glob` would silently find nothing
        paths = [pathlib.Path(part) for part in glob.glob(str(path), recursive=True)]
        problem, hint = f"No file is called {path}", f"relative paths start at {pathlib.Path.cwd()}"
    else:
        return None
    parts = sorted(part for part in paths if not part.is_dir() and part.name[0] not in "_.")
    broken = next((part for part in parts if not part.is_file()), None)
    if broken is not None:
        raise FileError(f"{broken} is not a file. Hint: remove it if it is a broken link.")
    wrong = next((part for part in parts if part.suffix.lower() != ".parquet"), None)
    if wrong is not None:
        raise FileError(
            f"{path} stands for several files, but {wrong} is not Parquet. Hint: name a single "
            "file."
        )
    if not parts:
        raise FileError(f"{problem}. Hint: {hint}.")
    return parts


def names_in(folder: pathlib.Path) -> list[str]:
    """Return the sorted names of the files in a folder; none if the folder does not exist."""
    try:
        return sorted(os.listdir(folder))
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        _unlisted(error)


def _unlisted(error: OSError) -> NoReturn:
    raise FileError(
        f"The folder {error.filename} cannot be listed: {error.strerror}. Hint: ask its owner for "
        "permission to read it (chmod +rx), or name individual files."
    )


def scan(path: pathlib.Path) -> pl.LazyFrame:
    """Return a lazy table for a file, a folder of Parquet files, or a pattern that matches them."""
    import polars as pl

    check_threads()
    parts = parts_of(path)
    if parts is None:
        check_file(path)
    extension = _extension(path) if parts is None else ".parquet"
    if not extension:
        raise _unsupported(path)
    try:
        if extension == ".parquet":
            table = _scan_parquet([path]) if parts is None else _scan_parts(path, parts)
            check_nested(path, parts or [path], table.collect_schema())
        else:
            table = _scan_text(path)
            table.collect_schema()
    except pl.exceptions.NoDataError:
        raise FileError(f"{path} is empty. Hint: the first line must name the columns.") from None
    except FileError:
        raise
    except unreadable() as error:
        raise _unreadable(path, error) from error
    return table


def _unsupported(path: pathlib.Path) -> FileError:
    """Return the error for a file that is neither a table nor a TREC file."""
    supported = (
        f"{', '.join(EXTENSIONS)}, and TREC runs and qrels of any name; "
        + python_or_command(
            "load other files into a data frame and pass that.",
            "--factors reads arrays of factors (.npy, .npz).",
        )
    )
    _, line = first_line_of(path)
    fields = line.split()
    numbers = sum(map(bool, map(NUMBER.fullmatch, fields)))
    # Four numbers are probably user, item, rating and time, as in MovieLens.
    if len(fields) < 3 or not numbers or numbers == len(fields) == 4 or "\0" in line:
        return FileError(f"{path} has an unsupported extension. Hint: supported are {supported}")
    return FileError(f"{path}: {not_of_trec(path)} Hint: supported are {supported}")


def first_line_of(path: pathlib.Path) -> tuple[int, str]:
    """Return the first nonblank line of a text file and its number, counted from 1."""
    with open_text(path, errors="replace") as file:
        lines = enumerate(iter(lambda: file.readline(LONGEST_HEADER), ""), 1)
        return next(((number, line.strip()) for number, line in lines if line.strip()), (1, ""))


def not_of_trec(path: pathlib.Path) -> str:
    """Explain why the first line of a file is not in TREC format."""
    number, line = first_line_of(path)
    return (
        f"line {number} is {brief(line)} ({len(line.split())} fields), but lines of TREC runs have "
        f"six fields ({RUN_LINE}; the score is a number), and those of qrels have four "
        f"({QRELS_LINE}; the relevance is a whole number)."
    )


def _source(path: pathlib.Path) -> pathlib.Path | io.BytesIO:
    """Return what Polars can read: the path, or the content if Polars cannot represent the path."""
    try:
        os.fspath(path).encode()
    except UnicodeEncodeError:
        return io.BytesIO(path.read_bytes())
    return path


def _scan_parquet(parts: Iterable[pathlib.Path]) -> pl.LazyFrame:
    import polars as pl

    sources: Any = list(map(_source, parts))
    return pl.scan_parquet(sources, glob=False, hive_partitioning=False)


@functools.lru_cache(maxsize=2**14)  # the same files are opened several times
def _schema(path: pathlib.Path, _size: int, _modified: int) -> pl.Schema:
    return _scan_parquet([path]).collect_schema()


def _scan_parts(path: pathlib.Path, parts: Sequence[pathlib.Path]) -> pl.LazyFrame:
    """Return several Parquet files as one table, with columns from the folder names."""
    import polars as pl

    states = [(part, part.stat()) for part in parts]
    schemas = [_schema(part, state.st_size, state.st_mtime_ns) for part, state in states]
    _check_parts(path, parts, schemas)
    partitions = _partitions(path, parts, schemas[0])
    tables = []
    of_parts = zip(parts, schemas, partitions, strict=True)
    for (_, folders), group in itertools.groupby(of_parts, lambda part: part[1:]):
        values = [pl.lit(value, pl.String).alias(name) for name, value in folders.items()]
        table = _scan_parquet(part for part, *_ in group).select(schemas[0].names())
        tables.append(table.with_columns(values))
    table = tables[0] if len(tables) == 1 else pl.concat(tables, how="vertical_relaxed")
    texts = pl.DataFrame(partitions, dict.fromkeys(partitions[0], pl.String))
    integer_names = [column.name for column in texts if integers(column).dtype == pl.Int64]
    return table.with_columns(pl.col(integer_names).cast(pl.Int64)) if integer_names else table


def _check_parts(
    path: pathlib.Path, parts: Sequence[pathlib.Path], schemas: Sequence[pl.Schema]
) -> None:
    """Raise an error unless all parts of a table have the same columns, of the same kinds."""
    first = schemas[0]
    for part, schema in zip(parts, schemas, strict=True):
        for name in {**first, **schema} if schema != first else ():
            if name not in schema or name not in first:
                owner, other = (parts[0], part) if name in first else (part, parts[0])
                raise _not_one_table(path, f"extra column {name!r} in {owner}, which {other} lacks")
            if len({_kind(dtype) for dtype in (first[name], schema[name])} - {"Null"}) > 1:
                raise _not_one_table(
                    path,
                    f"data type mismatch for column {name}: {first[name]} in {parts[0]}, "
                    f"{schema[name]} in {part}",
                )


def _kind(dtype: pl.DataType) -> str:
    """Return the kind of a type; columns of the same kind can be concatenated."""
    if dtype.is_numeric():
        return "number"
    if dtype.is_temporal():
        return "time"
    text = str(dtype).startswith(("String", "Categorical", "Enum"))
    return "text" if text else str(dtype.base_type())


def _partitions(
    path: pathlib.Path, parts: Sequence[pathlib.Path], columns: Iterable[str]
) -> list[dict[str, str | None]]:
    """Return the columns and values in each file's folder names, such as Hive's ``model=als``.

    Names that are also columns in the files are left out.
    """
    fixed = path.parts
    if not path.is_dir():
        fixed = tuple(itertools.takewhile(lambda part: not glob.has_magic(part), fixed))
    partitions: list[dict[str, str | None]] = []
    for part in parts:
        folders = filter(None, map(PARTITION.fullmatch, part.parts[len(fixed) : -1]))
        pairs = {folder[1]: urllib.parse.unquote(folder[2]) for folder in folders}
        partitions.append(
            {
                name: None if value == NO_PARTITION else value
                for name, value in pairs.items()
                if name not in columns
            }
        )
    for part, values in zip(parts, partitions, strict=True):
        if [*values] != [*partitions[0]]:
            first, other = (", ".join(names) or "no column" for names in (partitions[0], values))
            raise _not_one_table(
                path,
                f"the folders of {parts[0]} define {first}, but those of {part} define {other}",
            )
    return partitions


class _Form(NamedTuple):
    """The format of a text file, judging by its first lines."""

    names: list[str]  # column names
    separator: str
    line_end: str
    spaced: bool  # whether blanks follow separators


def _form(path: pathlib.Path) -> _Form:
    default = SEPARATORS[_extension(path)]
    names, separator, rows = [], default, []
    with open_text(path, newline="", errors="replace") as file:
        header = file.readline(LONGEST_HEADER)
        if len(header) >= LONGEST_HEADER - 1:
            raise FileError(
                f"{path}: the first line has more than {LONGEST_HEADER - 2:,} characters, but it "
                "must hold the names of the columns. Hint: is this a text file with line breaks?"
            )
        with contextlib.suppress(csv.Error):  # Polars reports this error later
            fields = {
                character: len(next(csv.reader([header], delimiter=character), []))
                for character in (default, *OTHER_SEPARATORS)
            }
            if fields[default] < 2:
                separator = max(fields, key=fields.__getitem__)
            reader = filter(None, csv.reader(itertools.chain([header], file), delimiter=separator))
            names = next(reader, [])
            rows = list(itertools.islice(reader, PROBE))
    spaced = any(field.startswith(" ") for row in (names, *rows) for field in row[1:])
    return _Form(
        [_plain(name) for name in names],
        separator,
        "\r" if header.endswith("\r") else "\n",
        spaced,
    )


def _plain(field: str) -> str:
    """Strip a byte order mark, surrounding blanks and quotes from a field."""
    field = field.lstrip(MARK).strip()
    return field[1:-1] if len(field) > 1 and field[0] == field[-1] == '"' else field


def _scan_text(path: pathlib.Path) -> pl.LazyFrame:
    import polars as pl

    form = _form(path)
    repeat = next((name for name in form.names if name and form.names.count(name) > 1), None)
    if repeat is not None:
        _check_header(path, form.names)
        raise ColumnError(
            f"{path}: {form.names.count(repeat)} columns are called {repeat!r}. Hint: rename one."
        )
    # Read all columns as strings, because the type of ids depends on all rows, not only on
    # the first ones.
    table = pl.scan_csv(
        _source(path),
        separator=form.separator,
        eol_char=form.line_end,
        infer_schema=False,
        glob=False,
    )
    names = table.collect_schema().names()
    if not form.spaced:
        return table.rename({name: _plain(name) for name in names if name.startswith(MARK)})
    plain = pl.all().str.strip_chars().str.replace(r'(?s)^"(.*)"$', "${1}").replace("", None)
    return table.rename({name: _plain(name) for name in names}).with_columns(plain)


def _check_header(path: pathlib.Path, names: Sequence[str]) -> None:
    """Raise an error if the first line of a text file holds numbers and so is not a header."""
    fields = names if len(names) > 1 else " ".join(names).split()
    if not any(map(NUMBER.fullmatch, fields)):
        return
    trec = f"; or, for a TREC file, choose a name that does not end in {_extension(path)}"
    raise FileError(
        f"{path} seems to have no header: its first line is {', '.join(names)}. Hint: the first "
        "line must name the columns, for instance: user_id, item_id, rating"
        f"{trec if len(fields) in (4, 6) else ''}."
    )


def _records(path: pathlib.Path) -> Iterator[tuple[int, list[str]]]:
    """Yield the records of a text file with their line numbers, starting with the header."""
    separator = _form(path).separator
    with contextlib.suppress(csv.Error), open_text(path, newline="", errors="replace") as file:
        reader = csv.reader(file, delimiter=separator)
        for record in reader:
            yield reader.line_num, record


def _without_blank_lines(text: pl.DataFrame, path: pathlib.Path) -> pl.DataFrame:
    import polars as pl

    if not text.select(pl.all_horizontal(pl.all().is_null()).any()).item():
        return text
    blank = [row for row, (_, record) in enumerate(_records(path), -1) if not record]
    return text.filter(~pl.int_range(pl.len()).is_in(blank))


def _check_fields(path: pathlib.Path, row: int) -> None:
    """Raise an error if a row (not counting blank lines) has fewer fields than the header."""
    records = (entry for entry in _records(path) if entry[1])
    width = len(next(records)[1])
    for line, record in itertools.islice(records, row, row + 1):
        if len(record) < width:
            raise _ragged(path, line, len(record), width)


def _ragged(path: pathlib.Path, line: int, n: int, width: int) -> FileError:
    return FileError(
        f"{path}: line {line} has {n} field{'' if n == 1 else 's'}, but the first line "
        f"names {width} columns. Hint: fields are separated by {_form(path).separator!r}; a field "
        "that contains it must be in double quotes."
    )


def _unreadable(path: pathlib.Path, error: BaseException) -> FileError:
    reason = first_line(error)
    if not path.is_file():
        return _not_one_table(path, reason)
    extension = _extension(path)
    return FileError(
        f"{path} cannot be read{extension and f' as {extension}'}: {reason}. Hint: is it damaged, "
        "or in a different format than its name suggests? Text must be UTF-8."
    )


def _not_one_table(path: pathlib.Path, reason: str) -> FileError:
    return FileError(
        f"The files of {path} cannot be read as one table: {reason}. Hint: all must have the same "
        "columns; or name a single file."
    )


def collect(table: pl.LazyFrame, names: Sequence[str], path: pathlib.Path) -> pl.DataFrame:
    """Read the named columns of a table that `scan` returned."""
    try:
        return table.select([column_expr(table, name) for name in names]).collect()
    except unreadable() as error:
        if "found more fields" in str(error):
            width = table.collect_schema().len()
            for line, record in _records(path):
                if len(record) > width:
                    raise _ragged(path, line, len(record), width) from None
        raise _unreadable(path, error) from error


def count_rows(table: pl.LazyFrame, path: pathlib.Path, n_columns: int) -> int:
    """Return the number of rows; refuse Parquet files whose columns would take too much memory."""
    import polars as pl

    n_rows = int(collect(table.select(pl.len()), ["len"], path).item())
    check_table(path, parts_of(path) or [path], n_rows, n_columns)
    return n_rows


def _typed_columns(text: pl.DataFrame, name: str, option: str, path: pathlib.Path) -> pl.Series:
    """Return a column of a text file, or a pair of columns as a single column."""
    if isinstance(name, ColumnPair) and name not in text.columns:
        return as_pairs(name[:], {part: _typed(text[part], option, path) for part in name.parts})
    return _typed(text[name], option, path)


def _typed(text: pl.Series, option: str, path: pathlib.Path) -> pl.Series:
    if option in ("user", "item"):
        parsed = integers(text)
        if parsed.dtype == text.dtype:
            check_marks(text, f"{path}: row")
        return parsed
    return times_of_text(text, f"{path}: ") if option == "time" else _floats(text, path, option)


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
        expected += f" (or pass {argument_text('value', False)})"
    check_parsed(text, parsed, f"{path}: ", expected)
    if option in ("rank", "score"):
        check_distinct(large_in_text(plain, parsed), f"{option}s of {path}")
    return parsed


MAX_RELEVANCE_DIGITS = 5  # a fourth field with more digits is a time, not a relevance
FIELD = r"[ \t]+(\S+)"
RUN = rf"^[ \t]*(\S+)[ \t]+\S+{FIELD}[ \t]+\S+{FIELD}[ \t]+\S"
QRELS = rf"^[ \t]*(\S+)[ \t]+\S+{FIELD}{FIELD}[ \t]*$"


def kind_of(path: str | os.PathLike[str]) -> Literal["run", "qrels"] | None:
    """Return whether a file is a run, qrels or neither, judging by its first nonblank line.

    A file with the extension of another format is neither.
    """
    path = as_path(path, "data")
    if path.name.lower().endswith(EXTENSIONS) or parts_of(path) is not None:
        return None
    check_file(path)
    fields = first_line_of(path)[1].split()
    if len(fields) >= 6 and _is_number(fields[4]):
        return "run"
    # A longer number is a time: lines of user, item, rating and time (as in MovieLens' u.data) are
    # not qrels.
    few_digits = len(fields) == 4 and len(fields[3]) <= MAX_RELEVANCE_DIGITS
    return "qrels" if few_digits and _is_number(fields[3]) else None


def read_run(path: str | os.PathLike[str]) -> pl.DataFrame:
    """Read a TREC run, with topic, ignored field, document, rank, score and run name on each line.

    The result has the columns user (the topic) and item (the document) as String, and score as
    Float64. As in trec_eval, documents are ranked by score. The rank is ignored, and so is
    everything after the sixth field.
    """
    expected = f"{RUN_LINE} (six fields), for instance: 301 Q0 FT941-793 1 2.5 mine"
    return _read(path, RUN, ("user", "item", "score"), expected)


def read_qrels(path: str | os.PathLike[str]) -> pl.DataFrame:
    """Read TREC qrels, with topic, ignored field, document and integer relevance on each line.

    The result has the columns user (the topic) and item (the document) as String, and value as
    Float64. Documents with a negative relevance count as unjudged and are left out.
    """
    import polars as pl

    expected = f"{QRELS_LINE} (four fields), for instance: 301 0 FT941-793 1"
    frame = _read(path, QRELS, ("user", "item", "value"), expected)
    return frame.filter(pl.col("value") >= 0)


def _read(
    path: str | os.PathLike[str], pattern: str, names: tuple[str, str, str], expected: str
) -> pl.DataFrame:
    import polars as pl

    with open_text(pathlib.Path(path)) as file:
        lines = pl.Series(file.read().split("\n"), dtype=pl.String)
    check_marks(lines, f"{path}: line")
    fields = lines.str.extract_groups(pattern).struct.unnest()
    fields.columns = list(names)
    number = fields[names[2]].cast(pl.Float64 if names[2] == "score" else pl.Int64, strict=False)
    blank = lines.str.strip_chars() == ""
    wrong = (number.is_null() & ~blank).arg_true()
    if len(wrong):
        line = int(wrong[0])
        raise FileError(f"{path}: line {line + 1} is {lines[line]!r}. Hint: expected {expected}.")
    if names[2] == "score":
        check_distinct(large_in_text(fields[names[2]], number), f"scores of {path}")
    return fields.with_columns(number.cast(pl.Float64)).filter(~blank)


def _is_number(field: str) -> bool:
    try:
        float(field)
    except ValueError:
        return False
    return True


MARK = "\ufeff"  # the byte order mark, which is not part of the text
GZIP = b"\x1f\x8b"
# UTF-16 text starts with a byte order mark, or every other byte of its first letters is 0.
UTF_16 = re.compile(rb"\xff\xfe|\xfe\xff|[\t -~]\0[\t -~]\0|\0[\t -~]\0[\t -~]")
# Exceptions raised for files that are not text, or whose compressed data are damaged.
DAMAGED = (OSError, EOFError, UnicodeDecodeError, zlib.error)


def check_marks(texts: pl.Series, prefix: str) -> None:
    """Refuse strings that begin with a byte order mark; `prefix` precedes the row in messages."""
    marked = texts.str.starts_with(MARK)
    if marked.any():
        raise FileError(
            f"{prefix} {int(marked.arg_true()[0])} (counted from 0) begins with a byte order mark: "
            "files that begin with one seem to have been concatenated. Hint: remove the mark, and "
            "perhaps the header that follows."
        )


@contextlib.contextmanager
def open_text(
    path: pathlib.Path, *, newline: str | None = None, errors: str = "strict"
) -> Iterator[TextIO]:
    """Open a text file, compressed or not; skip a byte order mark; refuse damaged files.

    `newline` and `errors` are as in `open`; ``newline=None`` reads any line ending as a newline.
    """
    try:
        with path.open("rb") as file:
            packed = file.read(len(GZIP)) == GZIP
        if packed:
            check_gzip(path)
        opened: Any = gzip.open if packed else open
        with opened(path, "rb") as file:
            start = file.read(4)
        if UTF_16.match(start):
            raise FileError(
                f"{path} is written in UTF-16, but text must be UTF-8. Hint: save it as UTF-8 (in "
                f'Excel "CSV UTF-8"), or: iconv -f UTF-16 -t UTF-8 {path.name} > utf8_{path.name}.'
            )
        with opened(path, "rt", encoding="utf-8-sig", errors=errors, newline=newline) as text:
            yield text
    except FileError:
        raise
    except DAMAGED as error:
        raise _unreadable(path, error) from error

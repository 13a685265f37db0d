"""Reads TREC files: runs (the lists of a system) and qrels (judgements).

Each line has fields separated by white space. A file may be compressed (.gz). Topics and documents
are strings, even if they consist of digits.
"""

from __future__ import annotations

import os
import pathlib
from typing import TYPE_CHECKING, Literal

from recometer.data.files import (
    EXTENSIONS,
    QRELS_LINE,
    RUN_LINE,
    check_file,
    first_line_of,
    parts_of,
)
from recometer.data.numbers import check_told_apart, large_in_text
from recometer.data.paths import as_path
from recometer.data.texts import DAMAGED, check_marks, open_text
from recometer.errors import FileError

if TYPE_CHECKING:
    import polars as pl

MAX_RELEVANCE_DIGITS = 5  # limit in the first line, by which qrels are recognised
FIELD = r"[ \t]+(\S+)"
RUN = rf"^[ \t]*(\S+)[ \t]+\S+{FIELD}[ \t]+\S+{FIELD}[ \t]+\S"
QRELS = rf"^[ \t]*(\S+)[ \t]+\S+{FIELD}{FIELD}[ \t]*$"


def kind_of(path: str | os.PathLike[str]) -> Literal["run", "qrels"] | None:
    """Return whether a file is a run, qrels or neither, judging by the first line with text.

    A file with the extension of another format is neither.

    Raises
    ------
    FileError
        If the file does not exist.
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
    """Read a run: topic, an ignored field, document, rank, score, and the run's name.

    As in trec_eval, documents are ranked by score. The rank is ignored, and so is everything after
    the sixth field.

    Returns
    -------
    polars.DataFrame
        The columns user (topic), item (document): String, and score: Float64.

    Raises
    ------
    FileError
        If the file cannot be read, a line has fewer than six fields, or a score is not a number.
        The message names the line.
    """
    expected = f"{RUN_LINE} (six fields), for instance: 301 Q0 FT941-793 1 2.5 mine"
    return _read(path, RUN, ("user", "item", "score"), expected)


def read_qrels(path: str | os.PathLike[str]) -> pl.DataFrame:
    """Read qrels: topic, an ignored field, document, and its relevance (a whole number).

    Documents with a negative relevance count as unjudged and are left out.

    Returns
    -------
    polars.DataFrame
        The columns user (topic), item (document): String, and value: Float64.

    Raises
    ------
    FileError
        If the file cannot be read, or a line has another format. The message names the line.
    """
    import polars as pl

    expected = f"{QRELS_LINE} (four fields), for instance: 301 0 FT941-793 1"
    frame = _read(path, QRELS, ("user", "item", "value"), expected)
    return frame.filter(pl.col("value") >= 0)


def _read(
    path: str | os.PathLike[str], pattern: str, names: tuple[str, str, str], expected: str
) -> pl.DataFrame:
    import polars as pl

    try:
        with open_text(pathlib.Path(path)) as file:
            lines = pl.Series(file.read().split("\n"), dtype=pl.String)
    except FileError:
        raise
    except DAMAGED as error:
        raise FileError(f"{path} cannot be read: {error}. Hint: is it damaged?") from error
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
        check_told_apart(large_in_text(fields[names[2]], number), f"scores of {path}")
    return fields.with_columns(number.cast(pl.Float64)).filter(~blank)


def _is_number(field: str) -> bool:
    try:
        float(field)
    except ValueError:
        return False
    return True

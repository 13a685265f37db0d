"""Reads text files: compressed or not, with or without a byte order mark, with any line ends."""

from __future__ import annotations

import gzip
import pathlib
import re
import zlib
from typing import TYPE_CHECKING, TextIO

from recometer.data.unpacking import check_gzip
from recometer.errors import FileError

if TYPE_CHECKING:
    import polars as pl

MARK = "\ufeff"  # the byte order mark, which is not part of the text
GZIP = b"\x1f\x8b"
# UTF-16 has a byte order mark, or every other byte of the first letters is 0.
UTF_16 = re.compile(rb"\xff\xfe|\xfe\xff|[\t -~]\0[\t -~]\0|\0[\t -~]\0[\t -~]")
# Exceptions for files that are not text, or whose compression is damaged.
DAMAGED = (OSError, EOFError, UnicodeDecodeError, zlib.error)


def check_marks(texts: pl.Series, where: str) -> None:
    """Refuse strings that begin with a byte order mark; `where` precedes the row in the message."""
    marked = texts.str.starts_with(MARK)
    if marked.any():
        raise FileError(
            f"{where} {int(marked.arg_true()[0])} (counted from 0) begins with a byte order mark: "
            "files that begin with one seem to have been put together. Hint: remove the mark, and "
            "perhaps the header that follows."
        )


def open_text(path: pathlib.Path, *, newline: str | None = None, errors: str = "strict") -> TextIO:
    """Open a text file, compressed or not; skip a byte order mark.

    `newline` and `errors` are as in `open`; ``newline=None`` reads any line end as a newline.

    Raises
    ------
    FileError
        If the file is UTF-16, or unpacks to too much.
    """
    with path.open("rb") as file:
        packed = file.read(len(GZIP)) == GZIP
    if packed:
        check_gzip(path)
    opened = gzip.open if packed else open
    with opened(path, "rb") as file:
        start = file.read(4)
    if UTF_16.match(start):
        raise FileError(
            f"{path} is written in UTF-16, and text must be UTF-8. Hint: save it as UTF-8 (in "
            f'Excel "CSV UTF-8"), or: iconv -f UTF-16 -t UTF-8 {path.name} > utf8_{path.name}.'
        )
    text: TextIO = opened(path, "rt", encoding="utf-8-sig", errors=errors, newline=newline)
    return text

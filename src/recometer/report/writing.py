"""Write reports to files: completely or not at all, and never over other kinds of files."""

from __future__ import annotations

import os
from pathlib import Path

from recometer.data.paths import as_path, is_replaced, write_whole
from recometer.data.storage import check_replaced
from recometer.errors import FileError

MARK = "recometer report"
"""A string in the first line of every report."""
HEADS = {".png": b"\x89PNG", ".svg": b"<svg"}


def check(path: str | os.PathLike[str], inputs: tuple[str, ...] = ()) -> None:
    """Raise FileError if a report cannot be written there, or would replace something else."""
    path = as_path(path, "a report")
    if path.is_dir():
        raise FileError(f"{path} is a folder. Hint: name a file in it, such as report.html.")
    if not path.parent.is_dir():
        raise FileError(f"{path} cannot be written: there is no folder {path.parent}.")
    try:
        check_replaced([path], is_report, inputs)
    except FileError as error:
        # The original hint is about folders, so replace it.
        hint = "choose another name, or remove the file."
        raise FileError(f"{error.reason} Hint: {hint}") from None


def is_report(path: Path) -> bool:
    """Return whether a file is a report of recometer."""
    return MARK.encode() in _first_line(path)


def _first_line(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.readline(200)
    except OSError:
        return b""


def write(path: str | os.PathLike[str], text: str) -> str:
    """Write a report and return it, escaping lone surrogates, which UTF-8 cannot encode."""
    check(path)
    write_whole(as_path(path, "a report"), text.encode("utf-8", errors="backslashreplace"))
    return text


def write_image(path: str | os.PathLike[str], image: bytes, suffix: str) -> None:
    """Write a chart, which may replace another image of the same format."""
    path = as_path(path, "a chart")
    if path.exists() and is_replaced(path) and not _first_line(path).startswith(HEADS[suffix]):
        raise FileError(
            f"{path} exists, and is not a {suffix[1:].upper()}: it is not replaced. Hint: choose "
            "another name."
        )
    write_whole(path, image)

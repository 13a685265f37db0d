"""Copies standard input and pipes to temporary files, which can be read several times."""

from __future__ import annotations

import contextlib
import enum
import os
import shutil
import stat
import sys
import tempfile
from pathlib import Path
from typing import BinaryIO

from recometer.data.files import EXTENSIONS, GZIP, kind_of, not_of_trec
from recometer.errors import FileError

STDIN = "-"
"""The argument that stands for standard input in place of a path."""
STDIN_PATHS = ("/dev/stdin", "/dev/fd/0", "/proc/self/fd/0")
STREAMS = ("/dev/fd/", "/proc/self/fd/")  # the paths that a shell substitutes for <(command)

SUFFIXES = (*EXTENSIONS, ".npy", ".npz", ".txt")  # suffixes that reveal the format


def is_stdin(text: str) -> bool:
    """Return whether a path stands for standard input."""
    return text == STDIN or text in STDIN_PATHS


def is_stream(text: str) -> bool:
    """Return whether a path can be read only once, from beginning to end."""
    if is_stdin(text) or text.startswith(STREAMS):
        return True
    try:
        mode = os.stat(text).st_mode
    except OSError:
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or stat.S_ISCHR(mode)


def needs_format(text: str) -> bool:
    """Return whether a path can be read only once and its name does not reveal the format."""
    return is_stream(text) and not text.lower().endswith(SUFFIXES)


class InputFormat(str, enum.Enum):
    """The format of standard input and pipes; csv, tsv and trec may be gzipped."""

    csv = "csv"
    tsv = "tsv"
    parquet = "parquet"
    trec = "trec"
    npy = "npy"
    npz = "npz"
    txt = "txt"


class StandardInput:
    """A context manager that copies standard input and pipes to files, and provides their paths.

    `form` is the format of pipes whose names do not reveal it.
    """

    def __init__(self, form: InputFormat | None) -> None:
        self._form = form
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._copies: dict[str, Path] = {}

    def __enter__(self) -> StandardInput:
        return self

    def __exit__(self, *_: object) -> None:
        if self._folder is not None:
            self._folder.cleanup()

    def path(self, text: str) -> Path:
        """Copy standard input or a pipe; return the copy's path, or any other path unchanged."""
        if not is_stream(text):
            return Path(text)
        name = STDIN if is_stdin(text) else text
        if name not in self._copies:
            self._copies[name] = self._save(name)
        return self._copies[name]

    def restore_names(self, message: str) -> str:
        """Replace the paths of copies in a message with the names of the pipes."""
        for name, copy in self._copies.items():
            message = message.replace(str(copy), _title(name))
        return message

    def _save(self, name: str) -> Path:
        if self._folder is None:
            self._folder = tempfile.TemporaryDirectory(prefix="recometer-")
        number = len(self._copies)
        raw = Path(self._folder.name) / ("stdin" if name == STDIN else f"pipe{number}")
        try:
            with raw.open("wb") as file, _opened(name) as stream:
                shutil.copyfileobj(stream, file)
        except OSError as error:
            raise FileError(f"{_title(name)} cannot be read: {error.strerror}.") from error
        with raw.open("rb") as file:
            head = file.read(len(GZIP))
        title = "Standard input" if name == STDIN else name
        if not head:
            empty = "did the command that writes it fail?"
            hint = "pipe a file into it: ... < file.csv." if name == STDIN else empty
            raise FileError(f"{title} is empty. Hint: {hint}")
        if not needs_format(name):
            extension = next(end for end in SUFFIXES if name.lower().endswith(end))
        elif self._form is InputFormat.trec:
            if kind_of(raw) is None:
                raise FileError(f"{title} is not a TREC file. Hint: {not_of_trec(raw)}")
            return raw
        else:
            assert self._form is not None  # check_stdin ensures this
            text = self._form in (InputFormat.csv, InputFormat.tsv)
            extension = f".{self._form.value}" + (".gz" if text and head == GZIP else "")
        return raw.rename(raw.with_name(raw.name + extension))


def _opened(name: str) -> contextlib.AbstractContextManager[BinaryIO]:
    """Open a stream; standard input stays open afterwards."""
    return contextlib.nullcontext(sys.stdin.buffer) if name == STDIN else open(name, "rb")


def _title(name: str) -> str:
    return "standard input" if name == STDIN else name

"""Standard input and pipes, kept in files for as long as they are read."""

from __future__ import annotations

import contextlib
import enum
import os
import shutil
import stat
import sys
import tempfile
import zlib
from pathlib import Path
from types import TracebackType
from typing import BinaryIO

from recometer.data.trec import kind_of
from recometer.errors import FileError

STDIN = "-"
"""What stands for standard input in place of a path."""
ALSO_STDIN = ("/dev/stdin", "/dev/fd/0", "/proc/self/fd/0")
STREAMS = ("/dev/fd/", "/proc/self/fd/")  # what a shell writes for <(command)

HEAD = 2**16  # bytes by which the format is recognised
GZIP = b"\x1f\x8b"
PARQUET = b"PAR1"
NUMPY = b"\x93NUMPY"


def is_stdin(text: str) -> bool:
    """Return whether a path stands for standard input."""
    return text == STDIN or text in ALSO_STDIN


def is_stream(text: str) -> bool:
    """Return whether a path can be read only once, from begin to end."""
    if is_stdin(text) or text.startswith(STREAMS):
        return True
    try:
        mode = os.stat(text).st_mode
    except OSError:
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or stat.S_ISCHR(mode)


class InputFormat(str, enum.Enum):
    """The format of standard input and pipes; text may be compressed by gzip."""

    csv = "csv"
    tsv = "tsv"
    parquet = "parquet"
    trec = "trec"


class StandardInput:
    """Gives paths: of files, and of copies of standard input and of pipes. A context manager.

    `form` is the format of input without a name. None recognises it by its first bytes.
    """

    def __init__(self, form: InputFormat | None) -> None:
        self._form = form
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._copies: dict[str, Path] = {}

    def __enter__(self) -> StandardInput:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._folder is not None:
            self._folder.cleanup()

    def path(self, text: str) -> Path:
        """Return a path as it is, or that of the copy of what can be read only once."""
        if not is_stream(text):
            return Path(text)
        name = STDIN if is_stdin(text) else text
        if name not in self._copies:
            self._copies[name] = self._save(name)
        return self._copies[name]

    def named(self, message: str) -> str:
        """Return a message that does not know of copies."""
        for name, copy in self._copies.items():
            message = message.replace(str(copy), _called(name))
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
            raise FileError(f"{_called(name)} cannot be read: {error.strerror}.") from error
        with raw.open("rb") as file:
            head = file.read(HEAD)
        called = "Standard input" if name == STDIN else name
        if not head:
            hint = "pipe a file into it: ... < file.csv."
            if name != STDIN:
                hint = "does the command that writes it fail?"
            raise FileError(f"{called} is empty. Hint: {hint}")
        trec = self._form is InputFormat.trec
        if trec or (self._form is None and not head.startswith((PARQUET, NUMPY))):
            if kind_of(raw) is not None:
                return raw  # files of TREC are recognised by what is in them
            if trec:
                raise FileError(
                    f"{called} is not a file of TREC. Hint: qrels have the fields topic, 0, "
                    "document and relevance, runs topic, Q0, document, rank, score and a name."
                )
        return raw.rename(raw.with_name(raw.name + _extension(head, self._form)))


def _opened(name: str) -> contextlib.AbstractContextManager[BinaryIO]:
    """Open a stream; standard input stays open."""
    return contextlib.nullcontext(sys.stdin.buffer) if name == STDIN else open(name, "rb")


def _called(name: str) -> str:
    return "standard input" if name == STDIN else name


def _extension(head: bytes, form: InputFormat | None) -> str:
    if head.startswith(PARQUET) or form is InputFormat.parquet:
        return ".parquet"
    if head.startswith(NUMPY):
        return ".npy"
    compressed = head.startswith(GZIP)
    if compressed:
        head = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16).decompress(head)
    if form is None:
        first = head.partition(b"\n")[0]
        form = InputFormat.tsv if first.count(b"\t") > first.count(b",") else InputFormat.csv
    return f".{form.value}" + (".gz" if compressed else "")

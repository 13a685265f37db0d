"""Standard input, kept in a file for as long as it is read."""

from __future__ import annotations

import enum
import shutil
import sys
import tempfile
import zlib
from pathlib import Path
from types import TracebackType

from recometer.data.trec import kind_of
from recometer.errors import FileError

STDIN = "-"
"""What stands for standard input in place of a path."""

HEAD = 2**16  # bytes by which the format is recognised
GZIP = b"\x1f\x8b"
PARQUET = b"PAR1"


class InputFormat(str, enum.Enum):
    """The format of standard input; any of them may be compressed by gzip."""

    csv = "csv"
    tsv = "tsv"
    parquet = "parquet"
    trec = "trec"


class StandardInput:
    """Gives paths: of files, and of a copy of standard input. A context manager.

    Parameters
    ----------
    form
        The format of standard input; None: recognised by its first bytes.
    """

    def __init__(self, form: InputFormat | None) -> None:
        self._form = form
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._copy: Path | None = None

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
        """Return a path as it is, or that of the copy for ``-``."""
        if text != STDIN:
            return Path(text)
        if self._copy is None:
            self._copy = self._save()
        return self._copy

    def named(self, message: str) -> str:
        """Return a message that does not know of the copy."""
        return message if self._copy is None else message.replace(str(self._copy), "standard input")

    def _save(self) -> Path:
        self._folder = tempfile.TemporaryDirectory(prefix="recometer-")
        raw = Path(self._folder.name) / "stdin"
        with raw.open("wb") as file:
            shutil.copyfileobj(sys.stdin.buffer, file)
        with raw.open("rb") as file:
            head = file.read(HEAD)
        if not head:
            raise FileError("Standard input is empty. Hint: pipe a file into it: ... < file.csv.")
        trec = self._form is InputFormat.trec
        if trec or (self._form is None and not head.startswith(PARQUET)):
            if kind_of(raw) is not None:
                return raw  # files of TREC are recognised by what is in them
            if trec:
                raise FileError(
                    "Standard input is no file of TREC. Hint: qrels have the fields topic, 0, "
                    "document and relevance, runs topic, Q0, document, rank, score and a name."
                )
        return raw.rename(raw.with_name(raw.name + _extension(head, self._form)))


def _extension(head: bytes, form: InputFormat | None) -> str:
    if head.startswith(PARQUET) or form is InputFormat.parquet:
        return ".parquet"
    compressed = head.startswith(GZIP)
    if compressed:
        head = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16).decompress(head)
    if form is None:
        first = head.partition(b"\n")[0]
        form = InputFormat.tsv if first.count(b"\t") > first.count(b",") else InputFormat.csv
    return f".{form.value}" + (".gz" if compressed else "")

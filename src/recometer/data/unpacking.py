"""Limits the unpacked size of compressed files, so that a small file cannot exhaust memory.

When Polars reads lists, it relies on the page headers of a Parquet file, not on its footer.
Both are written in Thrift's compact protocol
(https://github.com/apache/thrift/blob/master/doc/specs); their fields are defined in
https://github.com/apache/parquet-format.
"""

from __future__ import annotations

import functools
import math
import os
import zipfile
import zlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, BinaryIO, NoReturn

import numpy as np

from recometer.errors import FileError

if TYPE_CHECKING:
    import polars as pl

LIMIT = 2**32  # any file may unpack to this many bytes
RATIO = 200  # or to this many times its size, if that is more
MAX_RATIO = 1032  # the maximum compression ratio of deflate, and therefore of gzip
CHUNK = 2**20
WIDTH = 8  # the minimum number of bytes that a value of a table takes in memory


def check_gzip(path: Path) -> None:
    """Raise FileError if a gzip file is too large when unpacked; damaged files are not checked.

    A file that could exceed the limit, judging by its size, is unpacked once, piece by piece.
    """
    status = path.stat()
    if status.st_size * MAX_RATIO > LIMIT:
        _check_gzip(path, status.st_size, status.st_mtime_ns)


@functools.lru_cache(maxsize=64)  # the same file is opened several times
def _check_gzip(path: Path, size: int, _modified: int) -> None:
    limit, unpacked = _limit(size), 0
    with path.open("rb") as file:
        try:
            for n in _unpacked(file):
                unpacked += n
                if unpacked > limit:
                    break
        except zlib.error:
            return  # the error is raised when the file is read
    if unpacked > limit:
        _refuse(path, "unpack it first, for instance with gunzip")


def _unpacked(file: BinaryIO) -> Iterator[int]:
    """Unpack the members of a gzip file piece by piece, and yield the sizes of the pieces."""
    packed = file.read(CHUNK)
    while packed:
        member = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
        while packed and not member.eof:
            yield len(member.decompress(packed, CHUNK))
            packed = member.unconsumed_tail or (member.unused_data if member.eof else b"")
            packed = packed or file.read(CHUNK)


def check_archive(path: Path) -> None:
    """Raise FileError if an .npz archive is too large when unpacked, or too short for its arrays.

    Files that are not archives raise the exceptions of `zipfile` and NumPy.
    """
    with zipfile.ZipFile(path) as archive:
        members = archive.infolist()
        if sum(member.file_size for member in members) > _limit(path.stat().st_size):
            _refuse(path, "load and save its arrays one by one")
        for member in members:
            if not member.filename.endswith(".npy"):
                continue
            with archive.open(member) as file:
                needed = _bytes_of_array(file)
            if needed > member.file_size:
                raise FileError(
                    f"{path} is damaged: {member.filename} has {member.file_size:,} bytes, but its "
                    f"array takes {needed:,}. Hint: write it again."
                )


def _bytes_of_array(file: IO[bytes]) -> int:
    """Return the size of an array in bytes, according to the file's header."""
    form = np.lib.format
    version = form.read_magic(file)
    read = form.read_array_header_1_0 if version == (1, 0) else form.read_array_header_2_0
    shape, _, dtype = read(file)
    # Object arrays are refused later. Use Python's integers, because NumPy's could overflow.
    return 0 if dtype.hasobject else math.prod(map(int, shape)) * int(dtype.itemsize)


def check_table(path: Path, parts: Sequence[Path | BinaryIO], n_rows: int, n_columns: int) -> None:
    """Raise FileError if columns of Parquet files are far too large when unpacked."""
    if n_rows * n_columns * WIDTH >= _limit(sum(map(_size, parts))):
        hint = f"and its {n_rows:,} rows are correct, load it into a data frame and pass that"
        _refuse(path, hint)


def check_nested(
    path: Path, parts: Sequence[Path | BinaryIO], schema: Mapping[str, pl.DataType]
) -> None:
    """Raise FileError if lists in Parquet files are far too large when unpacked.

    The number of rows does not show this, because a row may have any number of entries.
    """
    nested = {name for name, dtype in schema.items() if dtype.is_nested()}
    if not nested:
        return
    total = 0
    for part in parts:
        if isinstance(part, Path):
            status = part.stat()
            total += _n_values(part, frozenset(nested), status.st_size, status.st_mtime_ns)
        else:
            total += n_values(part, nested)
    if total * WIDTH >= _limit(sum(map(_size, parts))):
        hint = f"and the {total:,} entries of its lists are correct, load it into a data frame"
        _refuse(path, f"{hint} and pass that")


@functools.lru_cache(maxsize=1024)  # the same file is opened several times
def _n_values(path: Path, columns: frozenset[str], _size: int, _modified: int) -> int:
    with path.open("rb") as file:
        return n_values(file, columns)


def _size(part: Path | BinaryIO) -> int:
    return part.stat().st_size if isinstance(part, Path) else part.seek(0, os.SEEK_END)


def _limit(size: int) -> int:
    return max(LIMIT, RATIO * size)


def _refuse(path: Path, hint: str) -> NoReturn:
    raise FileError(
        f"{path} unpacks to {LIMIT / 2**30:.0f} GiB or more, and to {RATIO} times its size or "
        f"more: it is not read. Hint: if you trust this file, {hint}."
    )


MAGIC = b"PAR1"
HEADER = 2**13  # enough bytes for a page header, unless its statistics are long
MAX_DEPTH = 40  # the maximum depth of nested structs and lists

# Field numbers in the footer, in its parts, and in page headers.
ROW_GROUPS, CHUNKS, OF_CHUNK = 4, 1, 3
PATH, COMPRESSED, FIRST_DATA, FIRST_DICTIONARY = 3, 7, 9, 11
PAGE_SIZE, DATA, DATA_2, N_VALUES = 3, 5, 8, 1


def n_values(file: BinaryIO, columns: Collection[str]) -> int:
    """Return the number of values in the pages of the given columns, including list entries."""
    try:
        return sum(_values_of_chunk(file, chunk) for chunk in _chunks(file, columns))
    except (LookupError, TypeError, ValueError, OverflowError, AttributeError) as error:
        name = getattr(file, "name", "The file")
        raise FileError(
            f"{name} is damaged: the positions of its lists cannot be read. Hint: write it again."
        ) from error


def _chunks(file: BinaryIO, columns: Collection[str]) -> Iterator[Mapping[int, Any]]:
    """Yield the metadata of each chunk of the given columns."""
    end = file.seek(0, os.SEEK_END)
    file.seek(max(end - 8, 0))
    last = file.read()
    length = int.from_bytes(last[:4], "little")
    if last[4:] != MAGIC or length > end - 8:
        raise ValueError("no footer")
    file.seek(end - 8 - length)
    footer = _Compact(file.read(length)).struct()
    for group in footer.get(ROW_GROUPS, ()):
        for chunk in group[CHUNKS]:
            if chunk[OF_CHUNK][PATH][0].decode() in columns:
                yield chunk[OF_CHUNK]


def _values_of_chunk(file: BinaryIO, chunk: Mapping[int, Any]) -> int:
    """Return the number of values in the pages of a column chunk."""
    offset = chunk[FIRST_DATA]
    if FIRST_DICTIONARY in chunk:
        offset = min(offset, chunk[FIRST_DICTIONARY])
    end, total = offset + chunk[COMPRESSED], 0
    while offset < end:
        file.seek(offset)
        content = _Compact(file.read(HEADER))
        try:
            page = content.struct()
        except IndexError:
            file.seek(offset)
            content = _Compact(file.read(end - offset))
            page = content.struct()
        total += page.get(DATA, page.get(DATA_2, {})).get(N_VALUES, 0)
        if page[PAGE_SIZE] < 0:
            raise ValueError("a page with a negative size")
        offset += content.position + page[PAGE_SIZE]
    return total


class _Compact:
    """Reads values in Thrift's compact protocol."""

    def __init__(self, content: bytes) -> None:
        self.content, self.position = content, 0

    def struct(self, depth: int = 0) -> dict[int, Any]:
        """Return the fields of a struct by number; `depth` counts the levels above it."""
        fields: dict[int, Any] = {}
        number = 0
        while head := self._byte():
            number = number + (head >> 4) if head >> 4 else self._signed()
            kind = head & 15
            fields[number] = kind == 1 if kind in (1, 2) else self._value(kind, depth)
        return fields

    def _value(self, kind: int, depth: int) -> Any:
        if depth > MAX_DEPTH:
            raise ValueError("too many levels")
        if kind == 12:
            return self.struct(depth + 1)
        if kind in (4, 5, 6):
            return self._signed()
        if kind in (9, 10):
            head = self._byte()
            size = head >> 4 if head >> 4 < 15 else self._number()
            return [self._value(head & 15, depth + 1) for _ in range(size)]
        if kind == 8:
            return self._bytes(self._number())
        if kind == 7:
            return self._bytes(8)
        if kind in (1, 2, 3):  # the bools in a list, which take a byte each
            return self._byte()
        raise ValueError(f"a field of kind {kind}")

    def _byte(self) -> int:
        self.position += 1
        return self.content[self.position - 1]

    def _bytes(self, size: int) -> bytes:
        self.position += size
        if self.position > len(self.content):
            raise IndexError(self.position)
        return self.content[self.position - size : self.position]

    def _number(self) -> int:
        """Return a whole number that is stored with seven bits per byte."""
        number = shift = 0
        while True:
            byte = self._byte()
            number |= (byte & 127) << shift
            if byte < 128:
                return number
            shift += 7

    def _signed(self) -> int:
        number = self._number()
        return (number >> 1) ^ -(number & 1)

"""How much a compressed file may unpack to: a small one must not fill the memory."""

from __future__ import annotations

import functools
import math
import os
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, BinaryIO, NoReturn

import numpy as np

from recometer.data import parquet_pages
from recometer.errors import FileError

if TYPE_CHECKING:
    import polars as pl

MOST = 2**32  # bytes: any file may unpack to as much
TIMES = 200  # its size: a larger file may unpack to as much
DENSEST = 1032  # deflate, and so gzip, packs no more bytes into one
CHUNK = 2**20
WIDTH = 8  # bytes that a value of a table takes at least, once it is read


def check_gzip(path: Path) -> None:
    """Raise FileError if a gzip file unpacks to too much; a damaged file is not checked.

    It is unpacked once for that, in pieces, unless it is too small to be one.
    """
    status = path.stat()
    if status.st_size * DENSEST > MOST:
        _check_gzip(path, status.st_size, status.st_mtime_ns)


@functools.lru_cache(maxsize=64)  # the same file is opened several times
def _check_gzip(path: Path, size: int, _modified: int) -> None:
    most, found = _most(size), 0
    with path.open("rb") as file:
        try:
            for n in _unpacked(file):
                found += n
                if found > most:
                    break
        except zlib.error:
            return  # whoever reads it says so
    if found > most:
        _refuse(path, "unpack it first, for instance with gunzip")


def _unpacked(file: BinaryIO) -> Iterator[int]:
    """Yield the sizes of the pieces that the members of a gzip file unpack to."""
    packed = file.read(CHUNK)
    while packed:
        member = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
        while packed and not member.eof:
            yield len(member.decompress(packed, CHUNK))
            packed = member.unconsumed_tail or (member.unused_data if member.eof else b"")
            packed = packed or file.read(CHUNK)


def check_archive(path: Path) -> None:
    """Raise FileError if an archive of arrays (.npz) holds too much, or more than it has.

    What is not an archive of arrays raises what `zipfile` and `numpy.load` do.
    """
    with zipfile.ZipFile(path) as archive:
        members = archive.infolist()
        if sum(member.file_size for member in members) > _most(path.stat().st_size):
            _refuse(path, "load and save its arrays one by one")
        for member in members:
            if not member.filename.endswith(".npy"):
                continue
            with archive.open(member) as file:
                needed = _bytes_of_array(file)
            if needed > member.file_size:
                raise FileError(
                    f"{path} is damaged: {member.filename} has {member.file_size:,} bytes, but its "
                    f"array takes {needed:,}. Hint: write it once more."
                )


def _bytes_of_array(file: IO[bytes]) -> int:
    """Return the bytes that an array takes, as the header of its file says."""
    form = np.lib.format
    version = form.read_magic(file)
    read = form.read_array_header_1_0 if version == (1, 0) else form.read_array_header_2_0
    shape, _, dtype = read(file)
    # Objects are refused by whoever reads it. Python's integers, as NumPy's would overflow.
    return 0 if dtype.hasobject else math.prod(map(int, shape)) * int(dtype.itemsize)


def check_table(path: Path, parts: Sequence[Path | BinaryIO], n_rows: int, n_columns: int) -> None:
    """Raise FileError if columns of Parquet files take far more than the files have room for."""
    if n_rows * n_columns * WIDTH >= _most(sum(map(_size, parts))):
        way_out = f"and its {n_rows:,} rows are right, load it into a data frame and pass that"
        _refuse(path, way_out)


def check_nested(
    path: Path, parts: Sequence[Path | BinaryIO], schema: Mapping[str, pl.DataType]
) -> None:
    """Raise FileError if lists in Parquet files hold far more than the files have room for.

    A row may hold any number of entries, so the numbers of rows do not tell.
    """
    nested = {name for name, dtype in schema.items() if dtype.is_nested()}
    if not nested:
        return
    n_values = 0
    for part in parts:
        if isinstance(part, Path):
            status = part.stat()
            n_values += _n_values(part, frozenset(nested), status.st_size, status.st_mtime_ns)
        else:
            n_values += parquet_pages.n_values(part, nested)
    if n_values * WIDTH >= _most(sum(map(_size, parts))):
        way_out = f"and the {n_values:,} entries of its lists are right, load it into a data frame"
        _refuse(path, f"{way_out} and pass that")


@functools.lru_cache(maxsize=1024)  # the same file is opened several times
def _n_values(path: Path, columns: frozenset[str], _size: int, _modified: int) -> int:
    with path.open("rb") as file:
        return parquet_pages.n_values(file, columns)


def _size(part: Path | BinaryIO) -> int:
    return part.stat().st_size if isinstance(part, Path) else part.seek(0, os.SEEK_END)


def _most(size: int) -> int:
    return max(MOST, TIMES * size)


def _refuse(path: Path, way_out: str) -> NoReturn:
    raise FileError(
        f"{path} unpacks to {MOST / 2**30:.0f} GiB or more, and to {TIMES} times its size or more: "
        f"it is not read. Hint: if you know what it holds, {way_out}."
    )

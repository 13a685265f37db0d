"""Stores per-user tables in Parquet files with a JSON header; refuses to overwrite other files."""

from __future__ import annotations

import datetime
import hashlib
import io
import json
import os
import uuid
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from recometer.arrays import Array
from recometer.data import ids
from recometer.data.forks import check_threads
from recometer.data.paths import as_path, check_file, is_replaced, unreadable, write_atomic
from recometer.data.unpacking import check_nested, check_table
from recometer.errors import FileError, InputTypeError, python_or_command

if TYPE_CHECKING:
    import polars

KEY = "recometer"  # key of the JSON header in the file's metadata
PARQUET = b"PAR1"  # the bytes that begin and end a Parquet file
VERSION = 1  # version of the format; readers understand their own version and all older ones

# Exceptions that a damaged file may raise, in addition to those of Polars and the system.
DAMAGED = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)

# The methods that write a result as a table, by file extension.
WRITES = {".csv": "to_csv", ".json": "to_json", ".md": "to_markdown", ".tex": "to_latex"}
WRITES |= {".html": "to_html", ".htm": "to_html"}
OTHER_FORMATS = {*WRITES, ".tsv", ".txt", ".xlsx", ".pkl", ".pickle", ".npy", ".npz", ".gz", ".zip"}
OTHER_FORMATS |= {".arrow", ".feather", ".jsonl", ".db"}

# Functions that convert object ids to strings and back, by kind of id.
TEXTS: dict[str, tuple[Callable[[Any], str], Callable[[str], object]]] = {
    "str": (str, str),
    "int": (str, int),
    "float": (repr, float),
    "bool": (str, "True".__eq__),
    "bytes": (bytes.hex, bytes.fromhex),
    "date": (datetime.date.isoformat, datetime.date.fromisoformat),
    "datetime": (datetime.datetime.isoformat, datetime.datetime.fromisoformat),
    "UUID": (str, uuid.UUID),
}


def check_replaced(
    paths: Iterable[Path], is_ours: Callable[[Path], bool], inputs: Iterable[str] = ()
) -> None:
    """Refuse to replace an input, or a file that recometer did not write.

    `is_ours` says whether recometer wrote an existing file. `inputs` are the files that are read;
    files that do not exist are ignored. A path that is not a file, such as a pipe, is written to,
    not replaced.
    """
    input_paths = [path for path in inputs if os.path.exists(path)]
    for path in paths:
        if not os.path.lexists(path):
            continue
        if any(path.exists() and path.samefile(other) for other in input_paths):
            raise FileError(
                f"{path} is an input, and would be replaced. Hint: choose an empty folder."
            )
        if is_replaced(path) and not is_ours(path):
            raise FileError(
                f"{path} exists, and was not written by recometer: it is not replaced. "
                "Hint: choose an empty folder."
            )


def is_table(path: Path) -> bool:
    """Return whether `write_table` wrote a file, judging by its end."""
    try:
        with path.open("rb") as file:
            end = end_of(file)
    except OSError:
        return False
    return end.endswith(PARQUET) and MARK in end


def write_table(
    path: str | os.PathLike[str],
    columns: Mapping[str, Array],
    user_ids: Array | None,
    header: Mapping[str, Any],
) -> None:
    """Write a table with one row per user; the file is written completely or not at all.

    Parameters
    ----------
    path
        The file to write; an existing file is replaced.
    columns
        Arrays of numbers by name, all of the same length.
    user_ids
        The users' ids, which become the column ``user``. If None, there is no such column.
    header
        Entries that JSON can represent.

    Raises
    ------
    FileError
        If the file cannot be written, or its extension belongs to another format.
    InputTypeError
        If ids have a type that cannot be stored.
    """
    import polars as pl

    check_threads()
    path = as_path(path, "a saved evaluation")
    extension = path.suffix.lower()
    if extension in OTHER_FORMATS:
        writes = WRITES.get(extension)
        hint = f" result.{writes}({path.name!r}) writes the table." if writes else ""
        raise FileError(
            f"{str(path)!r} has the extension of another format, but evaluations are saved as "
            f"Parquet. Hint: save({path.with_suffix('.parquet').name!r}).{hint}"
        )
    series = [pl.Series(name, values) for name, values in columns.items()]
    kind: str | list[str] | None = None
    if user_ids is not None:
        kind, encoded = encode_ids(user_ids)
        series.insert(0, encoded)
    text = json.dumps({"version": VERSION, "user": kind, **header, "checksum": PLACEHOLDER})
    content = io.BytesIO()
    pl.DataFrame(series).write_parquet(content, metadata={KEY: text})
    write_atomic(path, seal(content.getvalue()))


def evaluations_hint() -> str:
    """Return a hint on how to write the files that `read_table` reads."""
    advice = python_or_command(
        "recometer.load reads only what result.save(path) wrote.",
        "recometer evaluate --out FOLDER writes saved evaluations.",
    )
    return f"Hint: {advice}"


def read_table(
    path: str | os.PathLike[str],
) -> tuple[dict[str, Array], Array | None, dict[str, Any]]:
    """Return the columns, users' ids (or None) and header of a file that `write_table` wrote."""
    import polars as pl

    check_threads()
    path = as_path(path, "a saved evaluation")
    hint = evaluations_hint()
    content = _verified(path, hint)
    try:
        header: dict[str, Any] = json.loads(pl.read_parquet_metadata(io.BytesIO(content))[KEY])
        version, kind = int(header.pop("version")), header.pop("user")
        if version > VERSION:
            raise FileError(
                f"{str(path)!r} was written by a newer version of recometer, in a format that this "
                "version cannot read. Hint: pip install --upgrade recometer."
            )
        frame = read_frame(path, io.BytesIO(content))
        user_ids = None if kind is None else decode_ids(frame.drop_in_place("user"), kind)
        return {column.name: column.to_numpy() for column in frame}, user_ids, header
    except FileError:
        raise
    except unreadable() + DAMAGED as error:
        raise FileError(f"{str(path)!r} is damaged: {error}. {hint}") from error


def read_frame(path: Path, file: BinaryIO) -> polars.DataFrame:
    """Return the table in an open Parquet file; `path` names it in messages."""
    import polars as pl

    table = pl.scan_parquet(file)
    schema = table.collect_schema()
    check_table(path, [file], int(table.select(pl.len()).collect().item()), len(schema))
    check_nested(path, [file], schema)
    return table.collect()


def _verified(path: Path, hint: str) -> bytes:
    """Read a file once, verify the checksum in it, and return its content.

    Reading the file several times could mix two versions if another process saves it in between.
    """
    check_file(path)
    try:
        with path.open("rb") as file:
            begin, end = file.read(len(PARQUET)), end_of(file)
            content = file.read() if MARK in end else b""
    except OSError as error:
        raise FileError(f"{str(path)!r} cannot be read: {error.strerror}. {hint}") from error
    if is_sealed(content):
        return content
    if PARQUET not in (begin, end[-len(PARQUET) :]):
        raise FileError(f"{str(path)!r} is not a Parquet file. {hint}")
    if MARK in end or begin != end[-len(PARQUET) :]:
        raise FileError(
            f"{str(path)!r} is damaged: it does not match its checksum, or its end is missing. "
            "Hint: copy it again, or evaluate and save again."
        )
    if KEY.encode() in end:
        raise FileError(
            f"{str(path)!r} has no checksum: it is damaged, or was not written by a released "
            "version. Hint: evaluate and save again."
        )
    raise FileError(f"{str(path)!r} is a Parquet file, but not a saved evaluation. {hint}")


def encode_ids(user_ids: Array) -> tuple[str | list[str], polars.Series]:
    """Return the name of the ids' type (two names for pairs), and the ids as column ``user``."""
    import polars as pl

    if ids.are_pairs(user_ids):
        kinds, columns = zip(*map(encode_ids, ids.split_pairs(user_ids)), strict=True)
        struct = pl.DataFrame([columns[0], columns[1].alias("session")]).to_struct("user")
        return list(kinds), struct
    if user_ids.dtype != object:
        return str(user_ids.dtype), pl.Series("user", user_ids)
    kind = ids.kind(user_ids)
    if kind not in TEXTS:
        raise InputTypeError(
            f"User or item ids of type {kind} cannot be stored. Hint: convert them to strings; "
            f"types that can be stored: {', '.join(TEXTS)}."
        )
    texts = list(map(TEXTS[kind][0], user_ids.tolist()))
    return f"object {kind}", pl.Series("user", texts, dtype=pl.String)


def decode_ids(series: polars.Series, kind: str | list[str]) -> Array:
    """Return the ids in a column that `encode_ids` made."""
    if isinstance(kind, list):
        sides = [
            decode_ids(series.struct.field(name), part).tolist()
            for name, part in zip(series.struct.fields, kind, strict=True)
        ]
        return np.fromiter(zip(*sides, strict=True), object, len(series))
    if not kind.startswith("object "):
        return series.to_numpy()
    read = TEXTS[kind.removeprefix("object ")][1]
    return np.fromiter(map(read, series.to_list()), object, len(series))


MARK = b"recometer-sha256:"  # the checksum follows
DIGITS = 64
PLACEHOLDER = MARK.decode() + "0" * DIGITS
"""Takes the place of the checksum while the checksum is computed."""

AT_END = 2**22  # the checksum lies within this many bytes of the end of the file
PIECE = 2**20


def seal(content: bytes) -> bytes:
    """Replace the last `PLACEHOLDER` in the content with the checksum."""
    start = content.rindex(MARK) + len(MARK)
    return content[:start] + _digest(content, start) + content[start + DIGITS :]


def is_sealed(content: bytes) -> bool:
    """Return whether the content contains the correct checksum of all its other bytes."""
    start = content.rfind(MARK) + len(MARK)
    return start >= len(MARK) and content[start : start + DIGITS] == _digest(content, start)


def _digest(content: bytes, start: int) -> bytes:
    digest, view = hashlib.sha256(), memoryview(content)
    for part in (view[:start], b"0" * DIGITS, view[start + DIGITS :]):
        digest.update(part)
    return digest.hexdigest().encode()


def end_of(file: BinaryIO) -> bytes:
    """Return the last bytes of a file, and rewind it."""
    file.seek(max(file.seek(0, os.SEEK_END) - AT_END, 0))
    end = file.read(AT_END)
    file.seek(0)
    return end


def checksum_of(file: BinaryIO) -> str:
    """Return the checksum of a file, and rewind it."""
    digest = hashlib.sha256()
    while piece := file.read(PIECE):
        digest.update(piece)
    file.seek(0)
    return digest.hexdigest()

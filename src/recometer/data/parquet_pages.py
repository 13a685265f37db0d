"""How many values the pages of Parquet files say to hold, by which lists are read.

Polars reads lists by what the headers of the pages say, whatever the footer says. Both are written
in the compact protocol of Thrift (https://github.com/apache/thrift/blob/master/doc/specs), with
the fields that https://github.com/apache/parquet-format names.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping
from typing import Any, BinaryIO

from recometer.errors import FileError

MAGIC = b"PAR1"
HEADER = 2**13  # bytes, in which the header of a page lies unless its statistics are long
DEEPEST = 40  # structs and lists in one another

# Fields of the footer, of its parts, and of the header of a page, by their numbers.
ROW_GROUPS, CHUNKS, OF_CHUNK = 4, 1, 3
PATH, COMPRESSED, FIRST_DATA, FIRST_DICTIONARY = 3, 7, 9, 11
PAGE_SIZE, DATA, DATA_2, N_VALUES = 3, 5, 8, 1


def n_values(file: BinaryIO, columns: Collection[str]) -> int:
    """Return the number of values that the pages of some columns hold, entries of lists included.

    Raises
    ------
    FileError
        If it is not a Parquet file, or is damaged.
    """
    try:
        return sum(_values_of_chunk(file, chunk) for chunk in _chunks(file, columns))
    except (LookupError, TypeError, ValueError, OverflowError, AttributeError) as error:
        name = getattr(file, "name", "The file")
        raise FileError(
            f"{name} is damaged: where its lists lie cannot be read. Hint: write it once more."
        ) from error


def _chunks(file: BinaryIO, columns: Collection[str]) -> Iterator[Mapping[int, Any]]:
    """Yield the descriptions of the pieces of some columns."""
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
    """Return the number of values of the pages of a piece of a column."""
    at = chunk[FIRST_DATA]
    if FIRST_DICTIONARY in chunk:
        at = min(at, chunk[FIRST_DICTIONARY])
    end, found = at + chunk[COMPRESSED], 0
    while at < end:
        file.seek(at)
        content = _Compact(file.read(HEADER))
        try:
            page = content.struct()
        except IndexError:
            file.seek(at)
            content = _Compact(file.read(end - at))
            page = content.struct()
        found += page.get(DATA, page.get(DATA_2, {})).get(N_VALUES, 0)
        if page[PAGE_SIZE] < 0:
            raise ValueError("a page of less than no bytes")
        at += content.at + page[PAGE_SIZE]
    return found


class _Compact:
    """Reads values of Thrift's compact protocol."""

    def __init__(self, content: bytes) -> None:
        self.content, self.at, self.depth = content, 0, 0

    def struct(self) -> dict[int, Any]:
        """Return the fields of a struct by their numbers."""
        self._deeper(1)
        found: dict[int, Any] = {}
        number = 0
        while head := self._byte():
            number = number + (head >> 4) if head >> 4 else self._signed()
            kind = head & 15
            found[number] = kind == 1 if kind in (1, 2) else self._value(kind)
        self._deeper(-1)
        return found

    def _value(self, kind: int) -> Any:
        if kind == 12:
            return self.struct()
        if kind in (4, 5, 6):
            return self._signed()
        if kind in (9, 10):
            head = self._byte()
            size = head >> 4 if head >> 4 < 15 else self._number()
            self._deeper(1)
            found = [self._value(head & 15) for _ in range(size)]
            self._deeper(-1)
            return found
        if kind == 8:
            return self._bytes(self._number())
        if kind == 7:
            return self._bytes(8)
        if kind in (1, 2, 3):  # of a list: each takes a byte
            return self._byte()
        raise ValueError(f"a field of kind {kind}")

    def _deeper(self, step: int) -> None:
        self.depth += step
        if self.depth > DEEPEST:
            raise ValueError("too many levels")

    def _byte(self) -> int:
        self.at += 1
        return self.content[self.at - 1]

    def _bytes(self, size: int) -> bytes:
        self.at += size
        if self.at > len(self.content):
            raise IndexError(self.at)
        return self.content[self.at - size : self.at]

    def _number(self) -> int:
        """Return a whole number of seven bits to a byte."""
        found = shift = 0
        while True:
            byte = self._byte()
            found |= (byte & 127) << shift
            if byte < 128:
                return found
            shift += 7

    def _signed(self) -> int:
        number = self._number()
        return (number >> 1) ^ -(number & 1)

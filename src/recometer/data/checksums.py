"""Checksums that a file holds of itself, and of others: read once, and verified before decoding."""

from __future__ import annotations

import hashlib
import os
from typing import BinaryIO

MARK = b"recometer-sha256:"  # the checksum follows
DIGITS = 64
PLACEHOLDER = MARK.decode() + "0" * DIGITS
"""What a file holds in place of its checksum, of which the checksum is taken, too."""

AT_END = 2**22  # bytes: in the last ones is the checksum of a file
PIECE = 2**20


def sealed(content: bytes) -> bytes:
    """Return content with its checksum where its last `PLACEHOLDER` is."""
    at = content.rindex(MARK) + len(MARK)
    return content[:at] + _digest(content, at) + content[at + DIGITS :]


def is_sealed(content: bytes) -> bool:
    """Tell whether content holds the checksum of all of its other bytes."""
    at = content.rfind(MARK) + len(MARK)
    return at >= len(MARK) and content[at : at + DIGITS] == _digest(content, at)


def _digest(content: bytes, at: int) -> bytes:
    whole, view = hashlib.sha256(), memoryview(content)
    for part in (view[:at], b"0" * DIGITS, view[at + DIGITS :]):
        whole.update(part)
    return whole.hexdigest().encode()


def end_of(file: BinaryIO) -> bytes:
    """Return the last bytes of a file, which is then at its begin again."""
    file.seek(max(file.seek(0, os.SEEK_END) - AT_END, 0))
    end = file.read(AT_END)
    file.seek(0)
    return end


def checksum_of(file: BinaryIO) -> str:
    """Return the checksum of a file, which is then at its begin again."""
    whole = hashlib.sha256()
    while piece := file.read(PIECE):
        whole.update(piece)
    file.seek(0)
    return whole.hexdigest()

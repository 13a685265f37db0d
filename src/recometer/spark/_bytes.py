"""Arrays and plain values as bytes: they travel in a cell of a DataFrame, and no code with them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from recometer.arrays import Array

LENGTH = 8  # bytes of the length of what describes the rest


def packed(plain: object, arrays: Mapping[str, Array]) -> bytes:
    """Return what JSON can write, and arrays of numbers, as bytes that `unpacked` reads."""
    shapes = [(name, array.dtype.str, array.shape) for name, array in arrays.items()]
    head = json.dumps([plain, shapes], default=str).encode()
    return b"".join(
        [len(head).to_bytes(LENGTH, "little"), head, *(one.tobytes() for one in arrays.values())]
    )


def unpacked(content: bytes) -> tuple[Any, dict[str, Array]]:
    """Return what `packed` was given; the arrays are read-only."""
    at = LENGTH + int.from_bytes(content[:LENGTH], "little")
    plain, shapes = json.loads(content[LENGTH:at])
    arrays = {}
    for name, kind, shape in shapes:
        dtype, size = np.dtype(kind), int(np.prod(shape, dtype=np.int64))
        arrays[name] = np.frombuffer(content, dtype, size, at).reshape(shape)
        at += size * dtype.itemsize
    return plain, arrays

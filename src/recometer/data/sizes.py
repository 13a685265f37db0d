"""Sizes in memory as users write them: ``"2GB"``, or a number of bytes."""

from __future__ import annotations

import re

import numpy as np

from recometer.errors import InputError, brief

UNITS = {"": 1, "b": 1}
UNITS |= {f"{letter}b": 1000**n for n, letter in enumerate("kmgt", 1)}
UNITS |= {f"{letter}ib": 1024**n for n, letter in enumerate("kmgt", 1)}
LARGEST = 2**63 - 1


def bytes_of(size: object, name: str) -> int:
    """Return a size as a number of bytes.

    Parameters
    ----------
    size
        A whole number of bytes, or a text with a unit: ``"64MB"`` (millions), ``"1.5 GiB"``
        (2**30 each). Capital and small letters are the same.
    name
        The name of the argument, for messages.

    Raises
    ------
    InputError
        If it is neither.
    """
    found: float | None = None
    if isinstance(size, int | np.integer) and not isinstance(size, bool):
        found = int(size)
    elif isinstance(size, str):
        parts = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([a-z]*)\s*", size.lower(), re.ASCII)
        if parts is not None and parts[2] in UNITS:
            found = float(parts[1]) * UNITS[parts[2]]
    if found is None or not 0 <= found <= LARGEST:
        raise InputError(
            f"{name}={brief(size)} must be a size, such as '64MB' or '1.5GiB', or a whole number "
            "of bytes."
        )
    return int(found)


def size_in_words(n_bytes: float) -> str:
    """Return a size with its unit: ``"12 kB"``, ``"3.4 MB"``."""
    if n_bytes >= 10**9:
        return f"{n_bytes / 1e9:,.1f} GB"
    return f"{n_bytes / 1e6:,.1f} MB" if n_bytes >= 10**6 else f"{n_bytes / 1e3:,.1f} kB"

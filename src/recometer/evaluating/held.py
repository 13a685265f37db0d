"""How much memory objects hold."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from recometer.sources.memory import Memory


def held_bytes(*what: object) -> int:
    """Return the bytes of all arrays that some objects hold, each counted once.

    It looks into records of recometer, and the mappings and sequences in them. For texts, it counts
    the pointers and not the texts themselves.
    """
    waiting, seen, total = list(what), set(), 0
    while waiting:
        one = waiting.pop()
        if isinstance(one, np.ndarray):
            while isinstance(one.base, np.ndarray):
                one = one.base  # a view keeps the whole
        if id(one) in seen:
            continue
        seen.add(id(one))
        if isinstance(one, np.ndarray):
            total += one.nbytes
        else:
            waiting += _parts(one)
    return total


def _parts(one: Any) -> Iterable[object]:
    """Return the parts of an object."""
    if isinstance(one, Memory):
        return one.held()
    if isinstance(one, Mapping):
        return one.values()
    if isinstance(one, list | tuple):
        return one
    ours = type(one).__module__.split(".")[0] in ("recometer", "scipy")
    if not ours or not hasattr(one, "__dict__"):
        return ()
    # What was given in a form of the user's own is only referred to.
    return [part for name, part in vars(one).items() if name != "as_given"]

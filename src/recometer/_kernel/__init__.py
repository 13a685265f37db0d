"""The native kernel.

Only this module imports the native module, which also defines the enums that its functions take.
Every function here has a slow, simple counterpart in NumPy, in `tests/helpers/kernel_twin.py`.
"""

from __future__ import annotations

import functools
import os
import types

try:
    from recometer._kernel._native import *  # noqa: F403
except ImportError as error:
    raise ImportError(
        f"The native part of recometer is missing from {os.path.dirname(__file__)}, or was not "
        f"built for this Python ({error}). Hint: if this is a source tree, install it (pip install "
        "., needs a C++17 compiler), or start Python where it finds the installed recometer."
    ) from error

from recometer._kernel import _native

# Counts and hashes either at once (this module) or after it is started (a background thread).
Counting = types.ModuleType | _native.Background


def instruction_set() -> str:
    """Return the best instruction set, or the one that RECOMETER_INSTRUCTION_SET names.

    Raises
    ------
    ValueError
        If the processor does not support the named instruction set.
    """
    chosen = os.environ.get("RECOMETER_INSTRUCTION_SET") or next(iter(_available()))
    if chosen not in _available():
        raise ValueError(
            f"RECOMETER_INSTRUCTION_SET={chosen!r} is not an instruction set that this processor "
            f"supports (it supports {', '.join(_available())})."
        )
    return chosen


def users_at_once(instruction_set: str) -> int:
    """Return how many users are scored at a time.

    Task sizes should be multiples of this number; any other size takes as long as the next
    multiple.
    """
    return _available()[instruction_set]


@functools.cache
def _available() -> dict[str, int]:
    return _native.instruction_sets()

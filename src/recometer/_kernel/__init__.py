"""The native kernel: the only importer of the native module, and the home of its codes.

Every function here has a twin in NumPy, slow and obvious, in `recometer._kernel.reference`.
"""

from __future__ import annotations

import os

try:
    from recometer._kernel import _native
except ImportError as error:
    raise ImportError(
        f"The native part of recometer is missing or does not fit this Python ({error}). "
        "Hint: install it with a C++17 compiler at hand: pip install . (in the source folder)."
    ) from error

from recometer._kernel._native import NanRule as NanRule
from recometer._kernel._native import RowOrder as RowOrder
from recometer._kernel._native import ScoreFlag as ScoreFlag
from recometer._kernel._native import TieOrder as TieOrder

best_first = _native.best_first
count_codes = _native.count_codes
count_rows = _native.count_rows
find_rows = _native.find_rows
group_rows = _native.group_rows
hash_pieces = _native.hash_pieces
hold_below = _native.hold_below
hold_first = _native.hold_first
instruction_sets = _native.instruction_sets
number_rows = _native.number_rows
number_strings = _native.number_strings
place_rows = _native.place_rows
rank_factors = _native.rank_factors
rank_lists = _native.rank_lists
rank_scores = _native.rank_scores
score_items = _native.score_items
sum_rows = _native.sum_rows
top_factors = _native.top_factors
top_scores = _native.top_scores
trim_core = _native.trim_core


def instruction_set() -> str:
    """Return the instruction set in use: the best, or the one RECOMETER_INSTRUCTION_SET names.

    Raises
    ------
    ValueError
        The processor does not have the one that is named.
    """
    available = instruction_sets()
    chosen = os.environ.get("RECOMETER_INSTRUCTION_SET", available[0])
    if chosen not in available:
        raise ValueError(
            f"RECOMETER_INSTRUCTION_SET={chosen!r} is not one that this processor has: "
            f"{', '.join(available)}."
        )
    return chosen

"""Error messages for malformed cut-offs."""

from __future__ import annotations

import re
from collections.abc import Callable

from recometer.errors import InputError

CUTOFF_AT_END = re.compile(r"(.*?)(?:[-_]?at)?[-_]?(\d+)", re.IGNORECASE)
PLACEHOLDER = re.compile(r"\[@k\]|@k\b")


def bad_cutoff(name: str, value: object) -> InputError:
    """Return the error for a value that is not a cut-off."""
    return InputError(
        f"The cut-off {str(value)!r} of the metric {name!r} must be a whole number, at least 1 "
        f"(and less than 2^63). Hint: write {name}@10, {name}@5,10 or {name}@1..10."
    )


def misplaced_cutoff(name: str, meaning: Callable[[str], str | None]) -> str:
    """Return the hint for a name with a cut-off but no @, such as ndcg10 or ndcg_at_10.

    `meaning` returns the metric that a name refers to. For any other name, the hint is empty.
    """
    parts = CUTOFF_AT_END.fullmatch(name)
    metric = meaning(parts[1]) if parts else None
    if parts is None or metric is None:
        return ""
    return f"Hint: write the cut-off after an @: {metric}@{parts[2]}."


def cutoff_without_number(name: str) -> InputError:
    """Return the error for a name such as ``ndcg@k``, in which k was not replaced by a number."""
    return InputError(
        f"{name!r} has no number for its cut-off k. Hint: write {PLACEHOLDER.sub('@10', name)}."
    )

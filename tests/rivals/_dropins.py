"""Split the 10,000 random cases for each drop-in into parts that can run in parallel."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

N_CASES, N_PARTS = 10_000, 10

in_parts = pytest.mark.parametrize("part", range(N_PARTS))


def numbers(part: int) -> Iterator[tuple[int, np.random.Generator]]:
    """Yield the number of each case in a part, with a separate random generator."""
    size = N_CASES // N_PARTS
    for number in range(part * size, (part + 1) * size):
        yield number, np.random.default_rng([2028, number])


def outcome(call: Callable[..., Any], *given: Any, **options: Any) -> Any:
    """Return the result of a call, or a marker if it raised an error."""
    try:
        return call(*given, **options)
    except Exception:
        return "an error"


def assert_same(ours: Any, theirs: Any, what: object, tolerance: float = 1e-9) -> None:
    """Compare numbers, or dicts and sequences of numbers; NaN equals NaN."""
    if isinstance(theirs, dict):
        assert set(ours) == set(theirs), what
        for key, value in theirs.items():
            assert_same(ours[key], value, (what, key), tolerance)
    elif isinstance(theirs, str) or theirs is None:
        assert ours == theirs, what
    elif isinstance(theirs, (list, tuple)):
        assert len(ours) == len(theirs), what
        for place, (one, other) in enumerate(zip(ours, theirs, strict=True)):
            assert_same(one, other, (what, place), tolerance)
    elif math.isnan(theirs):
        assert math.isnan(ours), (what, ours, theirs)
    else:
        assert abs(ours - theirs) <= tolerance * max(1, abs(theirs)), (what, ours, theirs)

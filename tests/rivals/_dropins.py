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
    """Yield the number of each case in a part, and a random generator for the case."""
    size = N_CASES // N_PARTS
    for number in range(part * size, (part + 1) * size):
        yield number, np.random.default_rng([2028, number])


def outcome(call: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    """Return the result of a call, or a marker if it raised an error."""
    try:
        return call(*arguments, **options)
    except Exception:
        return "an error"


def assert_same(ours: Any, theirs: Any, label: object, tolerance: float = 1e-9) -> None:
    """Compare numbers, or dicts and sequences of numbers; NaN equals NaN."""
    if isinstance(theirs, dict):
        assert set(ours) == set(theirs), label
        for key, value in theirs.items():
            assert_same(ours[key], value, (label, key), tolerance)
    elif isinstance(theirs, str) or theirs is None:
        assert ours == theirs, label
    elif isinstance(theirs, (list, tuple)):
        assert len(ours) == len(theirs), label
        for place, (our_value, their_value) in enumerate(zip(ours, theirs, strict=True)):
            assert_same(our_value, their_value, (label, place), tolerance)
    elif math.isnan(theirs):
        assert math.isnan(ours), (label, ours, theirs)
    else:
        assert abs(ours - theirs) <= tolerance * max(1, abs(theirs)), (label, ours, theirs)

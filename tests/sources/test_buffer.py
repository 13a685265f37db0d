"""Tests that streams pack arrays into less memory without changing their numbers."""

from __future__ import annotations

import numpy as np
import pytest

from recometer.sources.streams import pack, unpack


@pytest.mark.parametrize(
    ("values", "bytes_each"),
    [
        ([1.0, 2.0, 200.0], 1),
        ([-1.0, 2.0, 100.0], 2),
        ([1.0, 2.0, 300.0], 2),
        ([1.0, 2.0**15 - 1], 2),
        ([1.0, 2.0**15], 4),  # too large for a 16-bit integer
        ([-(2.0**15), 1.0], 4),
        ([0.5, 1.0], 4),
        ([-0.0, 1.0], 4),
        ([-0.0, 0.5], 4),
        ([0.1, 1.0], 8),
        ([2.0**60, 1.0], 4),
        ([np.inf, 1.0], 4),
        ([np.nan, 1.0], 8),
        ([1, 255], 1),
        ([-1, 255], 2),
        ([1, 2**40], 8),
    ],
)
def test_arrays_are_packed_without_loss(values: list[float], bytes_each: int) -> None:
    array = np.array(values)
    packed = pack(array)
    unpacked = unpack(packed)
    assert unpacked.dtype == array.dtype
    assert unpacked.tobytes() == array.tobytes()
    assert packed[0].nbytes == bytes_each * len(values)


@pytest.mark.parametrize("value", [0.1, -0.0, np.nan, 7])
def test_constant_arrays_are_stored_as_one_number(value: float) -> None:
    array = np.full((3, 4), value)
    packed = pack(array)
    assert packed[0].nbytes == array.itemsize
    assert unpack(packed).shape == (3, 4)
    assert unpack(packed).tobytes() == array.tobytes()


def test_empty_arrays_and_objects_are_not_packed() -> None:
    for array in (np.empty((0, 3)), np.array(["a", None], dtype=object)):
        unpacked = unpack(pack(array))
        assert unpacked.shape == array.shape
        assert unpacked.tolist() == array.tolist()

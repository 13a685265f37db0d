"""The native function that counts item popularity agrees with its NumPy twin."""

import kernel_twin
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rows_to_count import counting

from recometer import _kernel

LENGTHS = st.lists(st.sampled_from([0, 1, 2, 5]), max_size=6)


def all_equal(actual, expected):
    for name, value in actual.items():
        np.testing.assert_array_equal(value, expected[name])


@given(
    seed=st.integers(0, 2**32),
    lengths=LENGTHS,
    same_users=st.booleans(),
)
def test_count_items_agrees_with_its_twin(seed, lengths, same_users):
    native, twin = (
        counting(np.random.default_rng(seed), lengths, same_users=same_users) for _ in range(2)
    )
    _kernel.count_items(**native)
    kernel_twin.count_items(**twin)
    all_equal(native, twin)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"items": np.full(2, 9, np.int32)}, "no such item"),
        ({"items": np.full(2, -1, np.int32)}, "no such item"),
        ({"users": np.full(12, 1)}, "no such users"),
        ({"indptr": np.zeros(0, int)}, "must not be empty"),
        ({"items": np.zeros(1, np.int32)}, "beyond the items"),
    ],
)
def test_count_items_rejects_mismatched_arrays(changes, message):
    with pytest.raises(ValueError, match=message):
        _kernel.count_items(**counting(np.random.default_rng(0), [2]) | changes)

"""The native popularity counts agree with their NumPy twins, even on background threads."""

import kernel_twin
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rows_to_count import counting, indptr_of

from recometer import _kernel

LENGTHS = st.lists(st.sampled_from([0, 1, 2, 5]), max_size=6)
SOON = 60.0  # seconds


def banded(rng, lengths, n_items=4, n_bands=3):
    """Draw arguments of `count_in_bands`; some of the judged items are unranked."""
    indptr = indptr_of(lengths)
    n = int(indptr[-1])
    with_band = rng.permutation(n_items)[: rng.integers(0, n_items + 1)]
    return {
        "indptr": indptr,
        "item": rng.integers(0, n_items, n),
        "counted": rng.random(n) < 0.7,
        "above": rng.integers(-1, 7, n),
        "tied": rng.integers(0, 4, n),
        "n_items": n_items,
        "banded": with_band,
        "band": rng.integers(0, n_bands, len(with_band)).astype(np.int8),
        "cutoff": int(rng.integers(0, 6)),
        "counts": np.full((len(lengths), n_bands), -9, np.int32),
        "within": np.full((len(lengths), n_bands), -9, np.float32),
    }


def all_equal(actual, expected):
    for name, value in actual.items():
        np.testing.assert_array_equal(value, expected[name])


@given(
    seed=st.integers(0, 2**32),
    lengths=LENGTHS,
    n_bands=st.sampled_from([1, 2, 5]),
    same_users=st.booleans(),
)
def test_count_items_agrees_with_its_twin(seed, lengths, n_bands, same_users):
    native, twin = (
        counting(np.random.default_rng(seed), lengths, n_bands=n_bands, same_users=same_users)
        for _ in range(2)
    )
    _kernel.count_items(**native)
    kernel_twin.count_items(**twin)
    all_equal(native, twin)


def test_items_with_equal_counts_share_a_band():
    # Four items occur in 5, 2, 2 and 1 of the 10 rows. An item's band depends on the share of rows
    # that belong to more popular items, which is 0, 1/2, 1/2 and 9/10.
    numbers = [5, 2, 0, 2, 1]
    case = counting(np.random.default_rng(0), [sum(numbers)])
    items = np.repeat(np.arange(5, dtype=np.int32), numbers)
    case |= {"items": items, "counts": np.zeros(5, int), "band": np.zeros(5, np.int8)}
    _kernel.count_items(**case)
    assert case["counts"].tolist() == numbers
    assert case["band"].tolist() == [0, 2, 4, 2, 4]
    assert case["ranges"].tolist() == [[5, 5], [0, 0], [2, 2], [0, 0], [0, 1]]


@given(seed=st.integers(0, 2**32), lengths=LENGTHS)
def test_count_in_bands_agrees_with_its_twin(seed, lengths):
    native, twin = (banded(np.random.default_rng(seed), lengths) for _ in range(2))
    _kernel.count_in_bands(**native)
    kernel_twin.count_in_bands(**twin)
    all_equal(native, twin)


@pytest.mark.parametrize("threads", [1, 2, 8])
def test_background_assigns_bands_before_reading_them(threads):
    lengths = [5] * 200
    data, hashes = np.zeros(2**16, np.uint8), np.zeros(2**13, np.uint64)
    for seed in range(20):
        separate = counting(np.random.default_rng(seed), lengths, n_items=4)
        judged = banded(np.random.default_rng(seed), lengths, n_bands=5)
        judged |= {"banded": np.arange(4), "band": separate["band"]}
        background = _kernel.Background()
        background.count_items(**separate)
        background.hash_pieces(data, 8, hashes)
        background.count_in_bands(**judged)
        background.start(threads)
        assert background.wait(SOON)
        outputs = {name: np.empty_like(judged[name]) for name in ("counts", "within")}
        expected = judged | outputs
        kernel_twin.count_in_bands(**expected)
        all_equal(judged, expected)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"items": np.full(2, 9, np.int32)}, "no such item"),
        ({"items": np.full(2, -1, np.int32)}, "no such item"),
        ({"users": np.full(12, 1)}, "no such users"),
        ({"indptr": np.zeros(0, int)}, "must not be empty"),
        ({"items": np.zeros(1, np.int32)}, "beyond the items"),
        ({"band": np.zeros(8, np.int8)}, "one count and one band per item"),
        ({"ranges": np.zeros((0, 2), int)}, "1 to 127 bands"),
        ({"ranges": np.zeros((128, 2), int)}, "1 to 127 bands"),
        ({"ranges": np.zeros((5, 3), int)}, "two ends"),
    ],
)
def test_count_items_rejects_mismatched_arrays(changes, message):
    with pytest.raises(ValueError, match=message):
        _kernel.count_items(**counting(np.random.default_rng(0), [2]) | changes)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"item": np.zeros(1, int)}, "one entry per row"),
        ({"tied": np.zeros(3, int)}, "one entry per row"),
        ({"indptr": np.array([0, 1, 2])}, "one row of counts per user"),
        ({"within": np.zeros((1, 2), np.float32)}, "the same shape"),
        ({"counts": np.zeros((1, 0), np.int32), "within": np.zeros((1, 0), np.float32)}, "1 to"),
        ({"band": np.zeros(1, np.int8)}, "one band per item"),
        ({"band": np.full(2, 3, np.int8)}, "no such band"),
        ({"band": np.full(2, -1, np.int8)}, "no such band"),
        ({"banded": np.array([0, 4])}, "no such item"),
        ({"banded": np.array([0, -1])}, "no such item"),
        ({"item": np.array([4, 0])}, "no such item"),
        ({"item": np.array([-1, 0])}, "no such item"),
    ],
)
def test_count_in_bands_rejects_mismatched_arrays(changes, message):
    case = banded(np.random.default_rng(0), [2])
    case |= {"counted": np.ones(2, bool), "banded": np.arange(2), "band": np.zeros(2, np.int8)}
    with pytest.raises(ValueError, match=message):
        _kernel.count_in_bands(**case | changes)

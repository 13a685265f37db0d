"""The native hash function agrees with its NumPy twin and with published values."""

import kernel_twin
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recometer import _kernel

# XXH64 hashes (seed 0) from xxHash's own tests and documentation.
PUBLISHED = {
    b"a": 0xD24EC4F1A98C6E5B,
    b"abc": 0x44BC2CF5AD770999,
    b"Nobody inspects the spammish repetition": 0xFBCEA83C8A378BF1,
}


def hashes_of(hash_pieces, data, piece):
    hashes = np.zeros(-(-len(data) // piece), np.uint64)
    hash_pieces(np.frombuffer(data, np.uint8), piece, hashes)
    return hashes.tolist()


@pytest.mark.parametrize("hash_pieces", [_kernel.hash_pieces, kernel_twin.hash_pieces])
@pytest.mark.parametrize("data", list(PUBLISHED))
def test_hashes_equal_published_values(hash_pieces, data):
    assert hashes_of(hash_pieces, data, 1000) == [PUBLISHED[data]]


@given(data=st.binary(max_size=200), piece=st.integers(1, 210))
def test_hashes_of_pieces_agree_with_the_twin(data, piece):
    native = hashes_of(_kernel.hash_pieces, data, piece)
    assert native == hashes_of(kernel_twin.hash_pieces, data, piece)
    cut = [data[begin : begin + piece] for begin in range(0, len(data), piece)]
    assert native == [hashes_of(_kernel.hash_pieces, part, len(part))[0] for part in cut]


def test_output_arrays_of_the_wrong_size_are_rejected():
    data = np.zeros(8, np.uint8)
    for piece, n in ((3, 2), (0, 1)):
        with pytest.raises(ValueError, match="piece"):
            _kernel.hash_pieces(data, piece, np.zeros(n, np.uint64))

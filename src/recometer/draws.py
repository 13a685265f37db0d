"""Random numbers from hashes."""

from __future__ import annotations

import numpy as np

from recometer.arrays import UInt64


def mix(bits: UInt64) -> UInt64:
    """Scramble 64-bit numbers one-to-one, with the output function of SplitMix64.

    Steele, Lea & Flood, Fast splittable pseudorandom number generators, OOPSLA 2014.
    """
    bits = bits + np.uint64(0x9E3779B97F4A7C15)
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))


def mixed_seed(seed: int) -> UInt64:
    """Scramble a seed, so that consecutive seeds give unrelated numbers."""
    return mix(np.array([seed % 2**64], dtype=np.uint64))

"""Logarithms of whole numbers to the base 2, correct to the last bit on every platform.

Those of a mathematics library may be wrong in the last bit, and differ from one platform to the
next. These are made of additions, multiplications and divisions alone, which IEEE 754 defines to
the last bit, with twice the precision of float64.
"""

from __future__ import annotations

import functools

import numpy as np

from recometer.arrays import Array, Float64, Int64, slices

FACTOR = 2.8853900817779268, 4.0710547481862066e-17  # 2 / log(2), as the sum of two numbers
SMALLEST = 2**12  # number that the smallest table ends with
BLOCK = 2**14  # numbers whose temporary arrays fit into the caches of a processor
UPPER_HALF = np.int64(-(2**29))  # the first 24 of the 53 bits of a number


@functools.cache
def log2_table(size: int) -> Float64:
    """Return log2 of 0 .. size, a power of two of at least `SMALLEST`; log2(0) is set to 0.

    In the octave from 2^k on, log2(n + 1) = log2(n) + log2(1 + 1/n), and the logarithm of 1 + 1/n
    is 2 atanh(1 / (2n + 1)). The sums begin anew at every power of two, whose logarithm is exact,
    and what is lost by rounding them is carried along. Those of smaller numbers are those of
    n · 2^j, less j.
    """
    table = np.empty(size + 1)
    start = SMALLEST
    while True:
        high, low = _octave(start)
        if start == SMALLEST:
            numbers = np.arange(1, start)
            octave = np.frexp(numbers)[1].astype(np.int64) - 1
            at = (numbers << (start.bit_length() - 1 - octave)) - start
            table[0], table[1:start] = 0.0, _rounded(octave.astype(np.float64), high[at], low[at])
        if start == size:
            table[size] = size.bit_length() - 1
            return table
        table[start : 2 * start] = _rounded(np.float64(start.bit_length() - 1), high, low)
        start *= 2


def _octave(start: int) -> tuple[Float64, Float64]:
    """Return log2(n / start) of n from start up to 2 start, each as the sum of two numbers."""
    numbers = np.arange(start, 2 * start - 1)
    high, low = np.empty(len(numbers)), np.empty(len(numbers))
    for here in slices(len(numbers), BLOCK):
        high[here], low[here] = _steps(numbers[here])
    sums = np.concatenate([[0.0], np.cumsum(high)])
    before, after = sums[:-1], sums[1:]
    added = after - before
    lost = (before - (after - added)) + (high - added)  # exact (Knuth's two-sum)
    return sums, np.concatenate([[0.0], np.cumsum(lost + low)])


def _steps(numbers: Int64) -> tuple[Float64, Float64]:
    """Return log2(1 + 1/n), each as the sum of two numbers."""
    divisor = (2 * numbers + 1).astype(np.float64)
    z = 1 / divisor
    first, rest = _halves(z)
    z_low = ((1 - first * divisor) - rest * divisor) / divisor
    high = FACTOR[0] * z
    # What the product loses (Dekker's two-product); then the next terms of the series.
    one, other = _halves(np.float64(FACTOR[0]))
    lost = ((first * one - high) + first * other + rest * one) + rest * other
    square = z * z
    series = square * (1 / 3 + square / 5)
    return high, lost + FACTOR[1] * z + FACTOR[0] * z_low + high * series


def _halves(values: Array | np.float64) -> tuple[Float64, Float64]:
    """Cut numbers into their first 24 bits and the rest, so that products of them are exact."""
    bits = np.asarray(values, np.float64).view(np.int64)
    first: Float64 = (bits & UPPER_HALF).view(np.float64)
    return first, values - first


def _rounded(whole: Float64 | np.float64, high: Float64, low: Float64) -> Float64:
    """Add the logarithms of an octave to that of its beginning, rounding once."""
    total = whole + high
    lost = high - (total - whole)  # exact, since whole is the larger one
    rounded: Float64 = total + (lost + low)
    return rounded

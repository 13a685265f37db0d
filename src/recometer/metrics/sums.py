"""Sums over tied places, shared by several metrics.

A group of tied items occupies the places ``start + 1 .. start + size``; `places` of them are within
the cut-off. The expected value of a metric is a sum over these places, which can be written with
harmonic numbers, or with sums of logarithmic discounts.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator

import numpy as np

from recometer import _kernel
from recometer.arrays import Array, Float64, Int64, all_of, largest, slices
from recometer.ties import Groups, shared, sum_by_user

FACTOR = 2.8853900817779268, 4.0710547481862066e-17  # 2 / log(2), as the sum of two numbers
SMALLEST = 2**12  # the smallest table of logarithms ends at the logarithm of this number
BLOCK = 2**14  # size of a block whose temporary arrays fit into the processor's caches
UPPER_HALF = np.int64(-(2**29))  # a mask for the first 24 of the 53 significant bits


@functools.cache
def log2_table(size: int) -> Float64:
    """Return log2 of 0 .. `size`, a power of two not below `SMALLEST`; log2(0) is set to 0.

    Each logarithm is the sum of the previous one and a small term: log2(n + 1) = log2(n) + log2(1 +
    1/n), where the natural logarithm of 1 + 1/n is 2 atanh(1 / (2n + 1)). The sums restart at every
    power of two, whose logarithm is exact, and they carry their rounding errors along. The
    logarithm of a number n below `SMALLEST` is log2(n · 2^j) - j, where n · 2^j is at least
    `SMALLEST`.
    """
    table = np.empty(size + 1)
    start = SMALLEST
    while True:
        high, low = _octave(start)
        if start == SMALLEST:
            numbers = np.arange(1, start)
            octave = np.frexp(numbers)[1].astype(np.int64) - 1
            i = (numbers << (start.bit_length() - 1 - octave)) - start
            table[0], table[1:start] = 0.0, _rounded(octave.astype(np.float64), high[i], low[i])
        if start == size:
            table[size] = size.bit_length() - 1
            return table
        table[start : 2 * start] = _rounded(np.float64(start.bit_length() - 1), high, low)
        start *= 2


def _octave(start: int) -> tuple[Float64, Float64]:
    """Return log2(n / start) for start <= n < 2 start, each as the sum of two numbers."""
    numbers = np.arange(start, 2 * start - 1)
    high, low = np.empty(len(numbers)), np.empty(len(numbers))
    for block in slices(len(numbers), BLOCK):
        high[block], low[block] = _steps(numbers[block])
    return running_sums(high, low)


def _steps(numbers: Int64) -> tuple[Float64, Float64]:
    """Return log2(1 + 1/n), each as the sum of two numbers."""
    divisor = (2 * numbers + 1).astype(np.float64)
    z = 1 / divisor
    first, second = _halves(z)
    z_low = ((1 - first * divisor) - second * divisor) / divisor
    high = FACTOR[0] * z
    # Add the rounding error of the product (Dekker's two-product), and then further terms of the
    # series.
    factor_high, factor_low = _halves(np.float64(FACTOR[0]))
    lost = (
        (first * factor_high - high) + first * factor_low + second * factor_high
    ) + second * factor_low
    square = z * z
    series = square * (1 / 3 + square / 5)
    return high, lost + FACTOR[1] * z + FACTOR[0] * z_low + high * series


def _halves(values: Array | np.float64) -> tuple[Float64, Float64]:
    """Split numbers into their first 24 bits and the rest, so that products are exact."""
    bits = np.asarray(values, np.float64).view(np.int64)
    first: Float64 = (bits & UPPER_HALF).view(np.float64)
    return first, values - first


def _rounded(log_start: Float64 | np.float64, high: Float64, low: Float64) -> Float64:
    """Add log2(n / start) to the logarithm of `start`, rounding only once."""
    total = log_start + high
    lost = high - (total - log_start)  # the exact error, because `log_start` is larger than `high`
    rounded: Float64 = total + (lost + low)
    return rounded


PerUser = Callable[[Groups, int], Float64]
PerGroup = Callable[[Int64 | slice, Int64], Float64]
AddHits = Callable[[Int64, Int64, Int64, Float64], None]

# Harmonic numbers up to this one are looked up in a table. For larger ones, two terms of their
# expansion leave a relative error below 1e-20.
HARMONIC_TABLE = 2**16


def columns(function: PerUser, groups: Groups, cutoffs: Int64) -> Float64:
    """Compute each column as ``function(groups, cutoff)``: float64 [n_users, n_cutoffs]."""
    values = np.empty((len(cutoffs), groups.n_users)).T  # makes each column contiguous
    for column, cutoff in enumerate(cutoffs.tolist()):
        values[:, column] = function(groups, cutoff)
    return values


def repeated(values: Float64, cutoffs: Int64) -> Float64:
    """Repeat each user's value for every cut-off: float64 [n_users, n_cutoffs]."""
    return np.repeat(values[:, np.newaxis], len(cutoffs), axis=1)


def totals(value: PerGroup, groups: Groups, cutoffs: Int64) -> Float64:
    """Add up, in rank order, the terms of the groups within each cut-off: [n_users, n_cutoffs].

    ``value(rows, places)`` returns the terms of the groups `rows`, for their first `places` places.
    It is called once for whole groups and once for split groups, regardless of the number of
    cut-offs.
    """
    if groups.single:  # in this case, no cut-off splits a group
        rows, indptr, start = groups.first(largest(cutoffs))
        sums = np.empty((len(cutoffs), groups.n_users))
        terms = np.ascontiguousarray(value(rows, groups.size[rows]))
        _kernel.add_within(indptr, start, terms, cutoffs, sums)
        return sums.T
    reach = groups.reach(cutoffs)
    whole_terms = value(reach.rows, groups.size[reach.rows])
    split_terms = value(reach.parted, reach.places) if len(reach.parted) else whole_terms
    result = np.empty((len(cutoffs), groups.n_users))
    for column, (inside, user, parted, part) in enumerate(reach.cutoffs):
        terms = whole_terms[inside]
        if len(parted):
            terms = terms.copy()
            terms[parted] = split_terms[part]
        result[column] = sum_by_user(user, terms, groups.n_users)
    return result.T


@shared
def _starts(groups: Groups) -> tuple[Int64, Int64]:
    """Return `indptr` and `start` as contiguous arrays, which the kernel requires."""
    # A user-defined source may pass columns of a table, which are not contiguous.
    return np.ascontiguousarray(groups.indptr), np.ascontiguousarray(groups.start)


def hit_totals(add: AddHits, value: PerGroup, groups: Groups, cutoffs: Int64) -> Float64:
    """Compute `totals`, with the kernel's function `add` if every group is a single place."""
    if not groups.single:
        return totals(value, groups, cutoffs)
    sums = np.empty((len(cutoffs), groups.n_users))
    add(*_starts(groups), cutoffs, sums)
    return sums.T


def single_within(groups: Groups, limits: Int64) -> Int64:
    """Count the items within each user's limit; all groups must be single places."""
    indptr, start = _starts(groups)
    counts = np.empty(groups.n_users, np.int64)
    _kernel.count_within(indptr, start, limits.astype(np.int64, copy=False), counts)
    return counts


def discounted_totals(groups: Groups, cutoffs: Int64) -> Float64:
    """Add up gain / log2(rank + 1); all groups must be single places: [n_users, n_cutoffs]."""
    indptr, start = _starts(groups)
    last = min(largest(cutoffs), largest(start) + 1)  # log2(last + 1) is needed too
    table = log2_table(table_size(last))
    sums = np.empty((len(cutoffs), groups.n_users))
    gain = np.require(groups.gain, requirements=["ALIGNED"])
    _kernel.add_discounted(indptr, start, gain, table, cutoffs, sums)
    return sums.T


def ratio(numerator: Float64, denominator: Int64 | Float64) -> Float64:
    """Divide; the result is 0 where the denominator is not above 0."""
    positive = denominator > 0
    if all_of(positive):
        return numerator / denominator
    return np.divide(numerator, denominator, out=np.zeros_like(numerator), where=positive)


@shared
def hits_within(groups: Groups, cutoffs: Int64) -> Float64:
    """Count (expected) hits: each place of a tied group counts as the group's mean."""

    def value(rows: Int64 | slice, places: Int64) -> Float64:
        return places * groups.relevant[rows] / groups.size[rows]

    return hit_totals(_kernel.add_hits, value, groups, cutoffs)


@shared
def gains_within(groups: Groups, cutoffs: Int64) -> Float64:
    """Add up the (expected) gains of the first places."""
    return totals(lambda rows, places: places * groups.gain[rows], groups, cutoffs)


def harmonic(start: Int64, places: Int64) -> Float64:
    """Sum 1/j over the places j = start + 1 .. start + places."""
    stop = start + places
    table = _harmonic_table()
    if largest(stop) <= HARMONIC_TABLE:
        return sums_between(table, start, stop)
    near = sums_between(table, np.minimum(start, HARMONIC_TABLE), np.minimum(stop, HARMONIC_TABLE))
    far = np.flatnonzero(stop > HARMONIC_TABLE)
    low = np.maximum(start[far], HARMONIC_TABLE).astype(np.float64)
    high = stop[far].astype(np.float64)
    step = high - low
    # H(n) = log n + gamma + 1/(2n) - 1/(12n²) + ... Differences of these terms are written so that
    # no digits cancel.
    square = step * (high + low) / (low * high) ** 2
    near[far] += log1p_of(step / low) - step / (2 * low * high) + square / 12
    return near


def discounts(start: Int64, places: Int64) -> Float64:
    """Sum 1/log2(j + 1) over the places j = start + 1 .. start + places."""
    stop = start + places
    return sums_between(_discount_table(table_size(largest(stop))), start, stop)


def place_sums(groups: Groups, cutoffs: Int64, weight: Callable[[Float64], Float64]) -> Float64:
    """Add up the gains of the first k places, each multiplied by a weight for its rank.

    This is ``sum over j <= k of gain(j) weight(j)``. For tied items, it is the exact mean over all
    orders: each place of a tied group has the group's mean gain. If the metric reads relevance, the
    gain of a relevant item is 1.

    Parameters
    ----------
    groups, cutoffs
        The arguments of the metric's function.
    weight
        A function that takes an array of ranks (float64, counted from 1) and returns their weights.

    Returns
    -------
    float64 [n_users, n_cutoffs]
    """
    ranks = np.arange(largest(groups.start + groups.size), dtype=np.float64) + 1
    table = running_sums(np.asarray(weight(ranks), np.float64))

    def value(rows: Int64 | slice, places: Int64) -> Float64:
        start = groups.start[rows]
        return groups.gain[rows] * sums_between(table, start, start + places)

    return totals(value, groups, cutoffs)


def means_of_members(groups: Groups, values: Float64) -> Float64:
    """Average the values of each group's members over its places: float64 [n_groups]."""
    if groups.single:
        return values
    group = np.repeat(np.arange(len(groups.size)), groups.relevant)
    return sum_by_user(group, values, len(groups.size)) / groups.size


def step_by_step(steps: Int64) -> Iterator[tuple[int, Int64]]:
    """Yield 0, 1, 2, ..., each with the rows that need more steps than that, most steps first."""
    order = np.argsort(-steps, kind="stable")
    more = len(steps) - np.cumsum(np.bincount(steps))
    for step, n in enumerate(more[:-1].tolist()):
        yield step, order[:n]


def log2_of(numbers: Int64) -> Float64:
    """Return log2 of positive whole numbers."""
    return log2_table(table_size(largest(numbers)))[numbers]


def log1p_of(values: Float64) -> Float64:
    """Return log(1 + values)."""
    # Use math.log1p, because the last bit of np.log1p differs between instruction sets.
    return np.fromiter(map(math.log1p, values.tolist()), np.float64, len(values))


def table_size(number: int) -> int:
    """Round a number up to a power of two, so that only a few tables are created."""
    return max(1 << number.bit_length(), SMALLEST)


@functools.cache
def _discount_table(size: int) -> tuple[Float64, Float64]:
    return running_sums(1 / log2_of(np.arange(size) + 2))


@functools.cache
def _harmonic_table() -> tuple[Float64, Float64]:
    return running_sums(1 / (np.arange(HARMONIC_TABLE) + 1))


def running_sums(terms: Float64, low: Float64 | float = 0.0) -> tuple[Float64, Float64]:
    """Return running sums from 0 on, and their rounding errors plus the running sums of `low`."""
    high = np.concatenate([[0.0], np.cumsum(terms)])
    before, after = high[:-1], high[1:]
    added = after - before
    lost = (before - (after - added)) + (terms - added)  # the rounding error (Knuth's two-sum)
    return high, np.concatenate([[0.0], np.cumsum(lost + low)])


def sums_between(table: tuple[Float64, Float64], start: Int64, stop: Int64) -> Float64:
    """Return the sums of the terms ``start:stop``, from a table of running sums."""
    high, low = table
    return (high[stop] - high[start]) + (low[stop] - low[start])

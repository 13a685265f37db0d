"""Where the first relevant item of a tie group falls.

In a random order of ``size`` tied items, ``relevant`` of them relevant, let I be the place
within the group, from 1 on, of the first relevant one:

    P(I = i) = C(size - i, relevant - 1) / C(size, relevant)

`chance` is P(I <= places); `reciprocal` the expected 1 / (start + I), which counts 0 beyond
the cut-off. Only the first group with a relevant item matters for either.
"""

from __future__ import annotations

import numpy as np

from recometer.arrays import Float64, Int64
from recometer.metrics.sums import harmonic, hits_within, log1p_of, step_by_step, totals
from recometer.ties import Groups

SHORT = 32  # up to this number of terms are added up one by one
NEVER = np.iinfo(np.int64).max


def chance_of_hit(groups: Groups, cutoffs: Int64) -> Float64:
    """Return the (expected) share of orders with a hit within each cut-off."""
    if groups.single:
        return np.minimum(hits_within(groups, cutoffs), 1)

    def value(rows: Int64 | slice, places: Int64) -> Float64:
        first = groups.hits_before[rows] == 0
        found: Float64 = first.astype(np.float64)
        size = groups.size[rows]
        open_ = np.flatnonzero(first & (places < size))
        found[open_] = chance(size[open_], groups.relevant[rows][open_], places[open_])
        return found

    return totals(value, groups, cutoffs)


def reciprocal_rank(groups: Groups, cutoffs: Int64) -> Float64:
    """Return the (expected) reciprocal rank of the first hit within each cut-off, or 0."""
    if groups.single:
        some = groups.indptr[1:] > groups.indptr[:-1]
        first = np.ones(groups.n_users, np.int64)
        first[some] += groups.start[groups.indptr[:-1][some]]
        return chance_of_hit(groups, cutoffs) / first[:, np.newaxis]

    def value(rows: Int64 | slice, places: Int64) -> Float64:
        first = groups.hits_before[rows] == 0
        start, size = groups.start[rows], groups.size[rows]
        found: Float64 = first / (start + 1)
        tied = np.flatnonzero(first & (size > 1))
        found[tied] = reciprocal(start[tied], size[tied], groups.relevant[rows][tied], places[tied])
        return found

    return totals(value, groups, cutoffs)


def chance(size: Int64, relevant: Int64, places: Int64) -> Float64:
    """Return the chance of a relevant item within the first `places` of a group.

    One minus the hypergeometric C(size - relevant, places) / C(size, places), summed up
    from positive terms, so that a small chance is as accurate as a large one.
    """
    # The number of relevant items and that of places may be exchanged: take fewer steps.
    steps, others = np.minimum(relevant, places), np.maximum(relevant, places)
    # After i steps less than exp(-others * i / size) is missing from 1: here 1e-18.
    steps = np.minimum(steps, 42 * size // others + 1)
    order = np.argsort(-steps, kind="stable")
    size, steps, others = size[order], steps[order], others[order]
    total = np.zeros(len(size))
    for step, active in step_by_step(steps):
        # Beyond 1 it was certain one step before, and nothing is left to be added.
        total[active] += (1 - total[active]) * (others[active] / (size[active] - step))
    return _unsorted(total, order)


def reciprocal(start: Int64, size: Int64, relevant: Int64, places: Int64) -> Float64:
    """Return the expected 1 / (start + I), counted as 0 where I is beyond `places`.

    Place by place, that is a sum of as many terms, or of fewer where r of n items are relevant:
    P(I > i) <= exp(-r i / n). In steps of r, after t others and with q(r) = P(I > places),

        S(r) = r / ((r - 1)(n - r + 1)) * ((n + t - r + 2) S(r - 1) - 1 + q(r - 1))
        S(1) = (H(t + places) - H(t)) / n

    and for a whole group (q = 0) also S(n) = 1 / (t + 1). Downwards, from any r beyond, this
    forgets an error of its start and adds no new ones; upwards it takes r steps. What takes the
    fewest steps is chosen, among what is accurate.
    """
    last = size - relevant + 1  # the last place where the first relevant item can be
    places = np.minimum(places, last)
    # Beyond, less than 1e-18 is left.
    places_left = np.minimum(places, 42 * size // relevant + 1)
    top, (upwards, downwards) = size.copy(), np.full((2, len(size)), NEVER)
    long = np.flatnonzero((places_left > SHORT) | (relevant == 1))
    t, n, r = start[long], size[long], relevant[long]
    # A step down shrinks an error by a factor 1 + (t + 1) / (n - r + 1) or more, so e^-40 of
    # it is left after `away` steps. Where these are more than 14 r, the r steps up magnify
    # rounding errors by the same factor each: by e^(40 / 14) at most.
    away = np.ceil(40 / log1p_of((t + 1) / (n - r + 1))).astype(np.int64)
    top[long] = np.minimum(n, r + away)
    upwards[long] = np.where((away > 14 * r) | (r == 1), r, NEVER)
    downwards[long] = np.where(places[long] == last[long], top[long] - r, NEVER)
    way = np.argmin([places_left, upwards, downwards], axis=0)
    value = np.empty(len(size))
    rows = np.flatnonzero(way == 0)
    value[rows] = _by_place(start[rows], size[rows], relevant[rows], places_left[rows])
    rows = np.flatnonzero(way == 1)
    value[rows] = _upwards(start[rows], size[rows], relevant[rows], places[rows])
    rows = np.flatnonzero(way == 2)
    value[rows] = _downwards(start[rows], size[rows], relevant[rows], top[rows])
    return value


def _by_place(start: Int64, size: Int64, relevant: Int64, places: Int64) -> Float64:
    """Add P(I = i) / (start + i) up."""
    order = np.argsort(-places, kind="stable")
    start, size, relevant = start[order], size[order], relevant[order]
    probability = relevant / size
    total = np.zeros(len(size))
    for step, active in step_by_step(places[order]):
        total[active] += probability[active] / (start[active] + step + 1)
        # At the last place nothing is left to be divided.
        left = np.maximum(size[active] - step - 1, 1)
        probability[active] *= (left - relevant[active] + 1) / left
    return _unsorted(total, order)


def _upwards(start: Int64, size: Int64, relevant: Int64, places: Int64) -> Float64:
    """Go from one relevant item to all of them."""
    order = np.argsort(-relevant, kind="stable")
    start, size, places = start[order], size[order], places[order]
    value = harmonic(start, places) / size
    beyond = (size - places) / size
    for step, active in step_by_step(relevant[order] - 1):
        r, n, t, q = step + 2, size[active], start[active], beyond[active]
        value[active] = r / ((r - 1) * (n - r + 1)) * ((n + t - r + 2) * value[active] - (1 - q))
        beyond[active] *= (n - places[active] - r + 1) / (n - r + 1)
    return _unsorted(value, order)


def _downwards(start: Int64, size: Int64, relevant: Int64, top: Int64) -> Float64:
    """Correct the limit of many relevant items to their actual number."""
    steps = top - relevant
    order = np.argsort(-steps, kind="stable")
    start, size, top = start[order], size[order], top[order]
    # Exact where top is the size, else near enough to be soon forgotten.
    value = 1 / (start + 1)
    for step, active in step_by_step(steps[order]):
        n, t, r = size[active], start[active], top[active] - step
        value[active] = (1 + value[active] * (r - 1) * (n - r + 1) / r) / (n + t - r + 2)
    return _unsorted(value, order)


def _unsorted(values: Float64, order: Int64) -> Float64:
    result = np.empty_like(values)
    result[order] = values
    return result

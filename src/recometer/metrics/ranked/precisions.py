"""Sums of the precisions at hits, averaged over all orders of tied items.

P(j) is the precision of the first j places; see `recometer.metrics.ranked.binary` for the other
symbols.
"""

from __future__ import annotations

import functools

import numpy as np

from recometer import _kernel
from recometer.arrays import Float64, Int64
from recometer.metrics.sums import (
    harmonic,
    hit_totals,
    hits_within,
    ratio,
    step_by_step,
    totals,
)
from recometer.ragged import indptr_of
from recometer.ranks import number_runs
from recometer.ties import WHOLE, Groups, shared, sum_by_user


@shared
def reciprocal_sum(groups: Groups, cutoffs: Int64) -> Float64:
    """Return the (expected) sums of rel(j) / j over j <= k: [n_users, n_cutoffs]."""

    def value(rows: Int64 | slice, places: Int64) -> Float64:
        start, size = groups.start[rows], groups.size[rows]
        terms = 1 / (start + 1)
        if groups.single:
            return terms
        tied = np.flatnonzero(size > 1)
        rate = groups.relevant[rows][tied] / size[tied]
        terms[tied] = rate * harmonic(start[tied], places[tied])
        return terms

    return totals(value, groups, cutoffs)


@shared
def precision_sum(groups: Groups, cutoffs: Int64) -> Float64:
    """Return the sums over j <= k of P(j) rel(j): [n_users, n_cutoffs]."""
    value = functools.partial(_precision_terms, groups)
    return hit_totals(_kernel.add_precisions, value, groups, cutoffs)


def _precision_terms(groups: Groups, rows: Int64 | slice, places: Int64) -> Float64:
    start, size, before = groups.start[rows], groups.size[rows], groups.hits_before[rows]
    terms: Float64 = (before + 1) / (start + 1)
    tied = np.flatnonzero(size > 1)
    relevant = groups.relevant[rows][tied]
    terms[tied] = precisions(start[tied], places[tied], before[tied], size[tied], relevant)
    return terms


@shared
def precision_sum_by_place(groups: Groups, cutoffs: Int64) -> Float64:
    """Sum P(j) over the distinct places j <= k that hold hits; ties as in `precision_sum`."""
    user, start = groups.user, groups.start
    last = np.ones(len(start), bool)
    last[:-1] = (np.diff(user) != 0) | (np.diff(start) != 0)
    missing = np.flatnonzero(~last)
    terms = (groups.hits_before[missing] + 1) / (start[missing] + 1)
    sums = precision_sum(groups, cutoffs).copy()
    for column, cutoff in enumerate(cutoffs.tolist()):
        inside = start[missing] < cutoff
        sums[:, column] -= groups.total(missing[inside], terms[inside])
    return sums


def precisions(start: Int64, places: Int64, before: Int64, size: Int64, relevant: Int64) -> Float64:
    """Return what the first places of each tie group add to the sum of P(j) rel(j)."""
    rate = (relevant - 1) / (size - 1)  # expected share of hits among the tied items above a hit
    first = (before + 1 - rate * (start + 1)) * harmonic(start, places)
    return relevant / size * (first + rate * places)


def mean_precision_of_hits(groups: Groups, cutoffs: Int64) -> Float64:
    """Return the mean of the precisions at the hits, or 0 without hits: [n_users, n_cutoffs]."""
    values = ratio(precision_sum(groups, cutoffs), hits_within(groups, cutoffs))
    for column, cutoff in enumerate(cutoffs.tolist()):
        parted = groups.parted(cutoff)
        if len(parted):
            # In a group that the cut-off splits, the mean of a ratio is not the ratio of the means.
            values[groups.user[parted], column] = _mean_over_hits(groups, cutoff, parted)
    return values


def _mean_over_hits(groups: Groups, cutoff: int, parted: Int64) -> Float64:
    """Average the mean precision of hits over the possible numbers of hits in the split groups."""
    user, start, before = groups.user[parted], groups.start[parted], groups.hits_before[parted]
    places = cutoff - start
    inside = np.flatnonzero(groups.start + groups.size <= cutoff)
    certain = groups.total(inside, _precision_terms(groups, inside, groups.size[inside]))
    group, n_hits, chance = expand(groups.size[parted], groups.relevant[parted], places)
    with_hit = n_hits > 0
    inner = np.zeros(len(group))
    row, x = group[with_hit], n_hits[with_hit]
    inner[with_hit] = np.where(
        places[row] > 1,
        precisions(start[row], places[row], before[row], np.maximum(places[row], 2), x),
        (before[row] + 1) / (start[row] + 1),
    )
    hits = before[group] + n_hits
    values = chance * ratio(certain[user[group]] + inner, hits)
    return sum_by_user(group, values, len(parted))


def missing_places(groups: Groups, cutoffs: Int64) -> Int64:
    """Return by how many places each list is shorter than k: int64 [n_users, n_cutoffs]."""
    return np.maximum(np.where(cutoffs == WHOLE, 0, cutoffs) - groups.depth[:, np.newaxis], 0)


def last_groups(groups: Groups) -> tuple[Int64, Float64, Float64]:
    """Find the tie group at the last place of each list.

    Returns these groups, the probability of a hit at the last place, and the (expected) number of
    hits in the whole list if the last place is a hit.
    """
    depth = groups.depth[groups.user]
    rows = np.flatnonzero((groups.start < depth) & (groups.start + groups.size >= depth))
    n, r = groups.size[rows], groups.relevant[rows]
    earlier_hits = (depth[rows] - groups.start[rows] - 1) * (r - 1) / np.maximum(n - 1, 1)
    return rows, r / n, groups.hits_before[rows] + 1 + earlier_hits


def last_precision(groups: Groups) -> Float64:
    """Return the (expected) P(n) rel(n) at the last place n of each list: float64 [n_users]."""
    rows, chance, hits = last_groups(groups)
    return groups.total(rows, chance * (hits / groups.depth[groups.user[rows]]))


def hits_squared(groups: Groups, cutoff: int) -> Float64:
    """Return the (expected) square of the number of hits within a cut-off: float64 [n_users]."""
    rows, within = groups.within(cutoff)
    size, rate = groups.size[rows], groups.relevant[rows] / groups.size[rows]
    # If the cut-off splits a group, the number of the group's hits within the cut-off varies.
    correction = (size - within) / np.maximum(size - 1, 1)
    hits = hits_within(groups, np.array([cutoff]))[:, 0]
    return hits**2 + groups.total(rows, within * rate * (1 - rate) * correction)


def expand(size: Int64, relevant: Int64, places: Int64) -> tuple[Int64, Int64, Float64]:
    """List each group's possible numbers of hits in its first `places`, with their probabilities.

    Returns the group, the number of hits (ascending within a group), and the probability, with one
    row per possible number. Requires ``1 <= places <= size``.
    """
    lowest = np.maximum(relevant + places - size, 0)
    highest = np.minimum(relevant, places)
    count = highest - lowest + 1
    offset = indptr_of(count)
    group, number = number_runs(count)
    n_hits = lowest[group] + number

    # Start from the most likely number and work outwards, so that nothing overflows and only
    # negligible probabilities underflow.
    mode = np.clip((relevant + 1) * (places + 1) // (size + 2), lowest, highest)
    chance = np.ones(len(group))
    for sign, steps in ((1, highest - mode), (-1, mode - lowest)):
        for step, active in step_by_step(steps):
            x = mode[active] + sign * step
            n, r, s = size[active], relevant[active], places[active]
            if sign == 1:
                factor = (r - x) / (x + 1) * ((s - x) / (n - r - s + x + 1))
            else:
                factor = x / (r - x + 1) * ((n - r - s + x) / (s - x + 1))
            row = offset[active] + x - lowest[active]
            chance[row + sign] = chance[row] * factor
    total = np.bincount(group, weights=chance, minlength=len(size))
    return group, n_hits, chance / total[group]

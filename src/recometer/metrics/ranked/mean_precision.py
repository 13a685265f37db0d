"""The mean of the precisions at 1, 2, ..., k, which some libraries call average precision.

The module `recometer.metrics.ranked.binary` explains the symbols in the formulas.
"""

from __future__ import annotations

import numpy as np

from recometer.arrays import Float64, Int64, steps
from recometer.metrics.parameters import Parameter
from recometer.metrics.ranked.precisions import hits_squared, last_groups, missing_places
from recometer.metrics.registry import metric
from recometer.metrics.sums import columns, harmonic, hits_within, ratio, step_by_step
from recometer.ranks import number_runs
from recometer.ties import Groups, sum_by_user


@metric(
    title="Mean precision",
    formula="mean of hits(j) / j over j = 1 .. k",
    source="Elliot (Anelli et al. 2021), there called MAP",
    parameters={
        "stop": Parameter(
            "The place at which the mean stops.",
            choices={
                "none": "at k",
                "last": "at the last relevant item within k (0 if there is none)",
            },
            for_conventions=True,
        )
    },
    when={"stop": {"last": {"monotone": False}}},
)
def mean_precision(groups: Groups, cutoffs: Int64, *, stop: str = "none") -> Float64:
    """Mean of the precisions at 1, 2, ..., k; in [0, 1].

    A relevant item at rank i adds ``1/i + ... + 1/k`` to the sum of the precisions. The value is
    linear in rel(j), so at each place in a tied group, rel(j) is replaced by the group's mean. With
    ``stop="last"``, the value is the mean over the possible places of the last relevant item.

    References
    ----------
    Anelli et al. 2021, Elliot: a comprehensive and rigorous framework for reproducible
    recommender systems evaluation.
    """
    if stop == "last":
        return columns(_up_to_last_hit, groups, cutoffs)
    return columns(_sums_until, groups, cutoffs) / cutoffs


@metric(
    title="Mean recall",
    formula="mean of hits(j) / R over j = 1 .. k",
    source="Elliot (Anelli et al. 2021), there called MAR",
    parameters={
        "over": Parameter(
            "The places over which the mean is taken.",
            choices={
                "places": "the places 1 .. k",
                "relevant": "the places of all relevant items; 0 beyond k",
                "first": "the places of the first min(k, R) relevant items; 0 beyond k",
            },
            for_conventions=True,
        ),
        "repeat_last": Parameter(
            "If the mean is over relevant items and a list is shorter than k, its last place "
            "is repeated for every missing place.",
            for_conventions=True,
        ),
    },
    when={"repeat_last": {True: {"upper": np.inf, "monotone": False}}},
)
def mean_recall(
    groups: Groups, cutoffs: Int64, *, over: str = "places", repeat_last: bool = False
) -> Float64:
    """Mean of the recalls at 1, 2, ..., k; in [0, 1].

    A relevant item at rank i adds ``(k - i + 1) / (k R)``. With ``over=relevant``, the value is the
    mean of the recalls at the relevant items, ``h(k) (h(k) + 1) / (2 R^2)``. With ``over=first``,
    the denominator is ``2 R min(k, R)``. The value is averaged over all orders of tied items.

    References
    ----------
    Anelli et al. 2021, Elliot: a comprehensive and rigorous framework for reproducible recommender
    systems evaluation.
    """
    relevant = groups.n_relevant[:, np.newaxis]
    if over == "places":
        return ratio(columns(_recalls_until, groups, cutoffs), relevant * cutoffs)
    hits = hits_within(groups, cutoffs)
    total = (columns(hits_squared, groups, cutoffs) + hits) / 2
    if repeat_last:
        total = total + missing_places(groups, cutoffs) * _last_hits(groups)[:, np.newaxis]
    return ratio(total, relevant * (np.minimum(relevant, cutoffs) if over == "first" else relevant))


def _recalls_until(groups: Groups, cutoff: int) -> Float64:
    """Add up the (expected) numbers of hits in the first 1, 2, ..., `cutoff` places."""
    rows, places = groups.within(cutoff)
    rate = groups.relevant[rows] / groups.size[rows]
    behind = places * (cutoff - groups.start[rows]) - places * (places - 1) / 2
    return groups.total(rows, rate * behind)


def _last_hits(groups: Groups) -> Float64:
    """Return the (expected) h(n) rel(n) at the last place n of each list."""
    rows, chance, hits = last_groups(groups)
    return groups.total(rows, chance * hits)


def _sums_until(groups: Groups, cutoff: int) -> Float64:
    """Add up the precisions at 1 .. `cutoff`."""
    rows, places = groups.within(cutoff)
    start, rate = groups.start[rows], groups.relevant[rows] / groups.size[rows]
    return groups.total(rows, rate * _precisions(start, places, np.full(len(start), cutoff)))


def _precisions(start: Int64, places: Int64, end: Int64) -> Float64:
    """Add up 1/i + ... + 1/end over the places i = start + 1 .. start + places.

    This equals the sum over j of 1/j times the number of these places that are at most j.
    """
    inside = places - start * harmonic(start, places)
    return np.asarray(inside + places * harmonic(start + places, end - start - places))


def _up_to_last_hit(groups: Groups, cutoff: int) -> Float64:
    count = steps(groups.first(cutoff)[1])  # number of groups that begin within the cut-off
    users = np.flatnonzero(count)
    last = groups.indptr[users] + count[users] - 1
    places = np.minimum(groups.size[last], cutoff - groups.start[last])
    value = np.zeros(groups.n_users)
    value[users], missed = _last_in_group(groups, last, places)
    # If the last group has no relevant item within the cut-off, the last relevant item is in the
    # previous group.
    rows = np.flatnonzero((missed > 0) & (count[users] > 1))
    before = last[rows] - 1
    earlier, _ = _last_in_group(groups, before, groups.size[before])
    value[users[rows]] += missed[rows] * earlier
    return value


def _last_in_group(groups: Groups, row: Int64, places: Int64) -> tuple[Float64, Float64]:
    """Return the expected mean precision up to the last hit in the first `places` of each group.

    The mean counts as 0 if these places have no relevant item. Also return the probability of this
    case.
    """
    start, size, relevant = groups.start[row], groups.size[row], groups.relevant[row]
    before = groups.hits_before[row]
    offset = _sums_before(groups, row)
    total = np.zeros(len(row))
    # Go from the last place to the first; `free` is the chance that no later place holds a hit.
    free = np.ones(len(row))
    for step, active in step_by_step(places):
        n, r, t, place = size[active], relevant[active], start[active], (places - step)[active]
        places_left = n - step  # number of places that may still hold a relevant item
        hit_chance = r / places_left
        # Each of the other places has an equal share of the r - 1 other relevant items.
        rate = (r - 1) / np.maximum(places_left - 1, 1)
        end = t + place
        earlier = before[active] * harmonic(np.zeros(len(t), np.int64), t) - offset[active]
        earlier = earlier + before[active] * harmonic(t, place)
        inner = rate * _precisions(t, place - 1, end) + 1 / end
        total[active] += free[active] * hit_chance * (earlier + inner) / end
        free[active] *= np.maximum(places_left - r, 0) / places_left
    return total, free


def _sums_before(groups: Groups, row: Int64) -> Float64:
    """Add up H(i - 1), the sum of 1/j for j < i, over the ranks i of hits in earlier groups."""
    start, size = groups.start, groups.size
    zero = np.zeros(len(start), np.int64)
    # For n items that follow t others, the mean of H(i - 1) over their ranks i is the mean of H(t),
    # ..., H(t + n - 1).
    first, after = harmonic(zero, start), harmonic(start, size)
    mean = first + ((start + size) * after - size) / size
    terms = groups.relevant * mean
    # For each row, add up only the earlier groups of the same user.
    begin = groups.indptr[groups.user[row]]
    count = row - begin
    group, number = number_runs(count)
    return sum_by_user(group, terms[begin[group] + number], len(row))

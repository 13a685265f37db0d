"""Metrics that model a user who goes down the list and stops somewhere.

The module `recometer.metrics.ranked.binary` explains the symbols in the formulas.
"""

from __future__ import annotations

import functools
import math

import numpy as np

from recometer.arrays import Float64, Int64, largest
from recometer.errors import InputError
from recometer.metrics.parameters import Parameter
from recometer.metrics.ranked.large_ties import of_large_tie
from recometer.metrics.registry import metric
from recometer.metrics.sums import (
    means_of_members,
    ratio,
    running_sums,
    step_by_step,
    sums_between,
    totals,
)
from recometer.ragged import indptr_of, take
from recometer.ranks import number_runs
from recometer.ties import Groups, two_to, two_to_less_one

NEGLIGIBLE = 2.0**-60  # terms smaller than this share of the value are ignored
LOOK = 64  # number of places between two checks of whether the remainder is negligible
ROW_FREE = 100  # the fixed cost of a step equals the cost of this many rows
MOST_WORK = 10**6  # if a tied group takes more work (in rows), an integral is faster


@metric(
    title="Rank-biased precision",
    formula="(1 - p) * sum over j <= k of rel(j) p^(j - 1)",
    source="Moffat & Zobel 2008",
    cutoff="optional",
    parameters={
        "p": Parameter(
            "The probability that a user goes on to the next item.",
            above=0,
            below=1,
            examples=(0.5, 0.95),
        ),
        "graded": Parameter(
            "rel(j) is replaced by gain / max_gain. Gains below 0 count as 0, and gains above "
            "max_gain count as max_gain."
        ),
        "max_gain": Parameter(
            "The largest possible gain, if graded. By default, it is the user's largest gain.",
            above=0,
            examples=(2,),
        ),
    },
    when={"graded": {True: {"reads": "gain"}}},
)
def rbp(
    groups: Groups,
    cutoffs: Int64,
    *,
    p: float = 0.8,
    graded: bool = False,
    max_gain: float | None = None,
) -> Float64:
    """Probability that a user who goes on with probability p stops at a hit; in [0, 1].

    ``(1 - p) * sum over j <= k of rel(j) p^(j-1)``. At each place in a tied group, rel(j) is
    replaced by the group's mean.

    References
    ----------
    Moffat & Zobel 2008, Rank-biased precision for measurement of retrieval effectiveness.
    """
    rate = _shares_of_largest(groups, max_gain) if graded else groups.relevant / groups.size

    def value(rows: Int64 | slice, places: Int64) -> Float64:
        return rate[rows] * _chances(p, groups.start[rows], places)

    return totals(value, groups, cutoffs)


def _shares_of_largest(groups: Groups, max_gain: float | None) -> Float64:
    """Return the mean of gain / max_gain over the places of each tie group."""
    largest: Float64 = np.full(groups.n_users, max_gain or 0.0)
    if max_gain is None:
        with_gain = np.flatnonzero(np.diff(groups.ideal_indptr))
        largest[with_gain] = groups.ideal_gain[groups.ideal_indptr[with_gain]]
    of_member = np.repeat(largest[groups.user], groups.relevant)
    gain = np.clip(groups.member_gain, 0, of_member)
    with np.errstate(invalid="ignore"):  # NaN and infinite gains make the value undefined
        return means_of_members(groups, ratio(gain, of_member))


def _chances(p: float, start: Int64, places: Int64) -> Float64:
    """Return the probability that the user stops at one of the `places` after `start`."""
    # From place `end` on, the terms are too small for float64.
    end = min(int(740 / -math.log(p)) + 2, largest(start + places))
    table = _chance_table(p, 1 << end.bit_length())
    return sums_between(table, np.minimum(start, end), np.minimum(start + places, end))


@functools.lru_cache(maxsize=8)
def _chance_table(p: float, size: int) -> tuple[Float64, Float64]:
    # Use math.pow, because the last bit of np.power's result depends on the instruction set.
    terms = ((1 - p) * math.pow(p, j) for j in range(size))
    return running_sums(np.fromiter(terms, np.float64, size))


@metric(
    title="Expected reciprocal rank",
    formula="sum over j <= k of q(j) (1 - q(1)) ... (1 - q(j - 1)) / j, "
    "q(j) = (2^gain(j) - 1) / 2^max_gain",
    source="Chapelle et al. 2009",
    cutoff="optional",
    reads="gain",
    parameters={
        "max_gain": Parameter(
            "The largest possible gain. By default, it is the largest gain in the test data. "
            "Gains below 0 count as 0, and gains above max_gain count as max_gain.",
            above=0,
            from_test=True,
            examples=(2, 3.5),
        )
    },
)
def err(groups: Groups, cutoffs: Int64, *, max_gain: float | None = None) -> Float64:
    """Mean reciprocal of the rank at which a user is satisfied; in [0, 1].

    If no earlier item satisfied the user, the item at rank j does so with probability
    ``q(j) = (2^gain - 1) / 2^max_gain``. For a tied group, let e(m) be the product of ``1 - q``
    over m of its judged items, averaged over all choices of m items. The judged item after m
    others adds ``(e(m) - e(m + 1)) / rank``, averaged over its possible ranks.

    References
    ----------
    Chapelle, Metzler, Zhang & Grinspan 2009, Expected reciprocal rank for graded relevance.
    """
    if max_gain is None:
        raise InputError(
            "err needs the largest possible gain. Hint: write err@10(max_gain=5); by default, "
            "evaluate uses the largest gain in the test data."
        )
    rows, begin, _ = groups.first(largest(cutoffs))
    chosen = np.arange(len(groups.size))[rows]
    relevant = groups.relevant[chosen]
    indptr, members = take(indptr_of(groups.relevant), chosen)
    with np.errstate(invalid="ignore"):  # NaN and infinite gains make the value undefined
        gain = np.clip(groups.member_gain[members], 0, max_gain)
        # Compute (2^gain - 1) / 2^max_gain without overflow.
        content = two_to(gain - max_gain) - math.pow(2.0, -max_gain)
        small = gain < 0.5
        content[small] = two_to_less_one(gain[small]) * math.pow(2.0, -max_gain)
    # `none` is the probability that no item of a group satisfies the user, and `before` is the
    # probability that no item above the group does.
    none, before = np.ones(len(chosen)), np.ones(len(chosen))
    for number, longer in step_by_step(relevant):
        none[longer] *= 1 - content[indptr[longer] + number]
    for number, longer in step_by_step(np.maximum(np.diff(begin) - 1, 0)):
        last = begin[longer] + number
        before[last + 1] = before[last] * none[last]
    position = np.empty(len(groups.size), np.int64)
    position[chosen] = np.arange(len(chosen))

    def value(rows: Int64 | slice, places: Int64) -> Float64:
        index, start, size = position[rows], groups.start[rows], groups.size[rows]
        terms = before[index] * content[indptr[index]] / (start + 1)
        tied = np.flatnonzero(size > 1)
        index = index[tied]
        terms[tied] = before[index] * _of_tied_groups(
            start[tied], size[tied], relevant[index], places[tied], content, indptr[index]
        )
        return terms

    return totals(value, groups, cutoffs)


def _of_tied_groups(
    start: Int64, size: Int64, relevant: Int64, places: Int64, content: Float64, first: Int64
) -> Float64:
    """Return what each group adds to ERR if no item above the group satisfied the user.

    `first` is the position in `content` of each group's first judged item.
    """
    limit = np.minimum(_n_that_matter(size, relevant, content, first), places)
    large = (relevant + places) * (limit + ROW_FREE) > MOST_WORK
    values = np.empty(len(size))
    for i in np.flatnonzero(large).tolist():
        of_members = content[first[i] : first[i] + relevant[i]]
        values[i] = of_large_tie(int(start[i]), int(size[i]), int(places[i]), of_members)
    few = np.flatnonzero(~large)
    values[few] = _place_by_place(
        start[few], size[few], relevant[few], places[few], content, first[few], limit[few]
    )
    return values


def _place_by_place(
    start: Int64,
    size: Int64,
    relevant: Int64,
    places: Int64,
    content: Float64,
    first: Int64,
    limit: Int64,
) -> Float64:
    """Return what small groups add to ERR, ignoring judged items after the first `limit`."""
    order = np.argsort(-places, kind="stable")  # groups with the fewest places come last
    start, size, relevant, places = start[order], size[order], relevant[order], places[order]
    limit = limit[order]
    # There is a row for each group and each possible number m of judged items at earlier places.
    offset = indptr_of(limit + 1)
    row, n_earlier = number_runs(limit + 1)
    r, n = relevant[row], size[row]
    product = _means_of_products(relevant, limit, row, n_earlier, content, first[order])
    drop = product - np.append(product[1:], 0.0)
    drop[offset[1:] - 1] = 0.0  # no further judged item matters

    sums = np.zeros(len(order))
    chance = (n_earlier == 0).astype(np.float64)
    for place, in_group in step_by_step(places):
        active = len(in_group)
        rows = slice(0, int(offset[active]))
        moved = chance[rows] * ((r[rows] - n_earlier[rows]) / (n[rows] - place))
        added = np.bincount(row[rows], weights=moved * drop[rows], minlength=active)
        chance[rows] -= moved
        moved[offset[1 : active + 1] - 1] = 0.0
        chance[1 : rows.stop] += moved[:-1]
        sums[:active] += added / (start[:active] + place + 1)
        if place % LOOK == LOOK - 1:
            # The remaining places add at most the probability that the user is not yet satisfied.
            remainder = np.bincount(
                row[rows], weights=chance[rows] * product[rows], minlength=active
            )
            if (remainder <= NEGLIGIBLE * sums[:active] * (start[:active] + place + 1)).all():
                break
    result = np.empty_like(sums)
    result[order] = sums
    return result


def _means_of_products(
    relevant: Int64, limit: Int64, row: Int64, n_earlier: Int64, content: Float64, first: Int64
) -> Float64:
    """Return e(m) for each group and m: the mean product of ``1 - q`` over m items of the group."""
    # A random choice of m of the first i items contains the i-th item with probability m / i.
    r, member = relevant[row], first[row] - 1
    product: Float64 = (n_earlier == 0).astype(np.float64)
    widest, completed = largest(limit), {n + 1 for n in np.unique(relevant).tolist()}
    for i in range(1, int(relevant.max(initial=0)) + 1):
        if i <= widest or i in completed:  # otherwise, the rows are unchanged
            rows = np.flatnonzero((r >= i) & (n_earlier <= i))
            m, base = n_earlier[rows], member[rows]
        previous = product[rows - 1]  # the product for m - 1; unused if m = 0
        unsatisfied = 1 - content[base + i]
        product[rows] = m / i * unsatisfied * previous + (i - m) / i * product[rows]
    return product


def _n_that_matter(size: Int64, relevant: Int64, content: Float64, first: Int64) -> Int64:
    """Return the number of judged items in each group after which the remainder is negligible.

    By Maclaurin's inequality, e(m) is at most the m-th power of the mean of ``1 - q``. The first
    place alone adds the mean of q times the share of judged items in the group.
    """
    total = np.append(0.0, np.cumsum(content))
    mean = (total[first + relevant] - total[first]) / relevant
    with np.errstate(all="ignore"):  # a mean of 0, 1 or NaN would cause a warning
        enough = np.log(NEGLIGIBLE * mean * relevant / size) / np.log1p(-mean)
    few = enough < relevant
    # The first judged item always matters, even if it is certain to satisfy the user.
    return np.where(few, np.ceil(np.where(few, enough, 1.0)), relevant).clip(1).astype(np.int64)

"""Metrics of binary relevance: an item is either relevant or not.

For one user, `rel(j)` is 1 if the item at rank j is relevant and 0 otherwise,
`h(k) = rel(1) + ... + rel(k)` counts the hits in the first k places, and `R` is the number
of relevant items. Every function returns the mean over all orders of tied items.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from recometer.arrays import Float64, Int64, any_of, largest
from recometer.metrics.parameters import Parameter
from recometer.metrics.ranked.facts import all_gains, ideal_members, listed_relevant, sum_of_gains
from recometer.metrics.ranked.precisions import (
    last_precision,
    mean_precision_of_hits,
    missing_places,
    precision_sum,
    precision_sum_by_place,
    reciprocal_sum,
)
from recometer.metrics.registry import metric
from recometer.metrics.sums import (
    columns,
    gains_within,
    harmonic,
    hits_within,
    log1p_of,
    ratio,
    single_within,
    step_by_step,
    totals,
)
from recometer.ties import WHOLE, Groups, sum_by_user


@metric(
    title="Precision",
    takes_group=True,
    formula="hits(k) / k",
    source="Cleverdon & Keen 1966",
    other_names=("p", "prec"),
    cutoff="optional",
    pooled="cutoff",
    order_free=True,
    parameters={
        "denominator": Parameter(
            "The divisor of the number of hits.",
            choices={
                "k": "k",
                "list": "min(k, length of the list)",
                "min": "min(k, R)",
                "least": "min(k, R, length of the list)",
            },
            for_conventions=True,
        )
    },
    when={
        "denominator": {
            "list": {"pooled": None},
            "min": {"pooled": "possible"},
            "least": {"pooled": None},
        }
    },
)
def precision(groups: Groups, cutoffs: Int64, *, denominator: str = "k") -> Float64:
    """Share of the first k places that hold a relevant item: ``h(k) / k``, in [0, 1].

    Without a cut-off, k is the number of places whose items are known, and min(k, R) is R. The
    value is linear in rel(j), so at each place in a tied group, rel(j) is replaced by the group's
    mean.

    References
    ----------
    Cleverdon & Keen 1966, Factors Determining the Performance of Indexing Systems.
    """
    if denominator == "min":
        places = _possible(groups, cutoffs)
    elif denominator == "list":
        places = np.minimum(cutoffs[:, np.newaxis], groups.depth).T
    elif denominator == "least":
        places = np.minimum(_possible(groups, cutoffs).T, groups.depth).T
    else:
        places = _places(groups, cutoffs)
    return ratio(hits_within(groups, cutoffs), places)


@metric(
    title="Truncated precision",
    formula="hits(k) / min(k, R)",
    source="Cortes 2021, recometrics",
    pooled="possible",
    order_free=True,
)
def tprecision(groups: Groups, cutoffs: Int64) -> Float64:
    """Hits divided by the largest possible number of hits: ``h(k) / min(k, R)``, in [0, 1].

    The value is linear in rel(j), so at each place in a tied group, rel(j) is replaced by the
    group's mean.

    References
    ----------
    Cortes 2021, recometrics ("truncated precision").
    """
    return ratio(hits_within(groups, cutoffs), _possible(groups, cutoffs))


# What changes if the denominator depends on the sum of all test values, which can be negative.
OF_ALL_GAINS: dict[str, Any] = {
    "reads": "gain",
    "lower": -np.inf,
    "lower_of_gains": 0.0,
    "upper": np.inf,
    "monotone": False,
    "pooled": None,
}


@metric(
    title="Recall",
    takes_group=True,
    formula="hits(k) / R",
    source="Cleverdon & Keen 1966",
    cutoff="optional",
    pooled="relevant",
    order_free=True,
    parameters={
        "denominator": Parameter(
            "The divisor of the number of hits.",
            choices={
                "relevant": "R",
                "min": "min(k, R)",
                "list": "the number of relevant items in the whole list",
                "gains": "the sum of all test values; items with values other than 0 are relevant",
                "min_gains": "the smaller of k and the sum of all test values",
            },
            for_conventions=True,
        ),
        "weighted": Parameter(
            "Each relevant item is weighted by its gain, and the denominator adds up gains instead "
            "of counting items. Gains that are not positive are left out.",
            for_conventions=True,
        ),
    },
    when={
        "denominator": {
            "min": {"pooled": "possible"},
            "list": {"beyond_cutoff": True, "pooled": None},
            "gains": OF_ALL_GAINS,
            "min_gains": OF_ALL_GAINS,
        },
        "weighted": {True: {"reads": "relevant_gain", "pooled": None}},
    },
)
def recall(
    groups: Groups, cutoffs: Int64, *, denominator: str = "relevant", weighted: bool = False
) -> Float64:
    """Share of the relevant items that are in the first k places: ``h(k) / R``, in [0, 1].

    The value is linear in rel(j), so at each place in a tied group, rel(j) is replaced by the
    group's mean.

    References
    ----------
    Cleverdon & Keen 1966, Factors Determining the Performance of Indexing Systems.
    """
    numerator = (gains_within if weighted else hits_within)(groups, cutoffs)
    if weighted and denominator in ("relevant", "gains"):
        return ratio(numerator, all_gains(groups)[:, np.newaxis])
    if denominator in ("gains", "min_gains"):
        total = (all_gains if weighted else sum_of_gains)(groups)[:, np.newaxis]
        if denominator == "min_gains":
            total = np.minimum(total, _places(groups, cutoffs))
        return np.divide(numerator, total, out=np.zeros_like(numerator), where=total != 0)
    if denominator == "min":
        return ratio(
            numerator,
            columns(_best_gains, groups, cutoffs) if weighted else _possible(groups, cutoffs),
        )
    if denominator == "list":
        if weighted:
            return ratio(numerator, gains_within(groups, np.array([WHOLE])))
        return ratio(numerator, listed_relevant(groups)[:, np.newaxis])
    return ratio(numerator, groups.n_relevant[:, np.newaxis])


@metric(
    title="F measure",
    formula="(1 + beta²) P Q / (beta² P + Q), P: precision(k), Q: recall(k)",
    source="van Rijsbergen 1979",
    other_names=("f1", "f1_score"),
    cutoff="optional",
    order_free=True,
    parameters={
        "beta": Parameter(
            "The weight of recall relative to precision.", above=0, examples=(0.5, 2)
        ),
        "denominator": Parameter(
            "The denominator of precision.",
            choices={"k": "k", "list": "min(k, length of the list)"},
            for_conventions=True,
        ),
        "empty": Parameter(
            "The value if precision and recall are both 0.",
            choices={"zero": "0", "undefined": "undefined"},
            for_conventions=True,
        ),
    },
    when={"empty": {"undefined": {"monotone": False, "may_be_nan": True}}},
)
def f(
    groups: Groups,
    cutoffs: Int64,
    *,
    beta: float = 1.0,
    denominator: str = "k",
    empty: str = "zero",
) -> Float64:
    """Weighted harmonic mean of precision and recall: ``(1+b²) h(k) / (b² R + k)``.

    The value is in [0, 1], and b is `beta`. It equals ``(1+b²) P Q / (b² P + Q)`` with the
    precision ``P = h(k)/k`` and the recall ``Q = h(k)/R``, and is 0 if both are 0. It is linear in
    rel(j), so at each place in a tied group, rel(j) is replaced by the group's mean.

    References
    ----------
    van Rijsbergen 1979, Information Retrieval (E = 1 - F).
    """
    square = beta * beta
    relevant = square * groups.n_relevant[:, np.newaxis].astype(np.float64)
    places = _places(groups, cutoffs)
    if denominator == "list":
        places = np.minimum(places, groups.depth[:, np.newaxis])
    values = ratio((1 + square) * hits_within(groups, cutoffs), np.add(relevant, places))
    if empty == "undefined":
        # The value is undefined if any order of the tied items has no hit.
        values[hit(groups, cutoffs) < 1] = np.nan
    return values


@metric(
    title="Hit (its mean is the hit rate)",
    takes_group=True,
    formula="1 if hits(k) > 0, else 0",
    source="Deshpande & Karypis 2004",
    other_names=("hit_rate", "hit_ratio", "hr", "success"),
    cutoff="optional",
    order_free=True,
)
def hit(groups: Groups, cutoffs: Int64) -> Float64:
    """1 if a relevant item is in the first k places (``h(k) > 0``), and 0 otherwise.

    With tied items, the value is the probability of a hit, in [0, 1]. If the first tied group with
    a relevant item has n items, r of them relevant, and s places within k, the probability is
    ``1 - C(n-r, s) / C(n, s)``, where C(n, s) is a binomial coefficient.

    References
    ----------
    Deshpande & Karypis 2004, Item-based top-N recommendation algorithms.
    """
    if groups.single:
        return np.minimum(hits_within(groups, cutoffs), 1)

    def value(rows: Int64 | slice, places: Int64) -> Float64:
        first = groups.hits_before[rows] == 0
        chances: Float64 = first.astype(np.float64)
        size = groups.size[rows]
        open_ = np.flatnonzero(first & (places < size))
        chances[open_] = chance(size[open_], groups.relevant[rows][open_], places[open_])
        return chances

    return totals(value, groups, cutoffs)


@metric(
    title="Hits",
    formula="hits(k)",
    source="Manning, Raghavan & Schütze 2008, Introduction to Information Retrieval, section 8.3",
    cutoff="optional",
    upper=np.inf,
    upper_at=lambda cutoff, binary: float(cutoff),
    order_free=True,
)
def hits(groups: Groups, cutoffs: Int64) -> Float64:
    """Count the relevant items in the first k places, averaged over all orders of tied items."""
    return hits_within(groups, cutoffs)


@metric(
    title="Reciprocal rank (its mean is the MRR)",
    takes_group=True,
    formula="1 / rank of the first relevant item, 0 if that is beyond k",
    source="Voorhees 1999, TREC-8 Question Answering",
    other_names=("mrr", "mean_reciprocal_rank", "reciprocal_rank", "recip_rank"),
    unclear_names={
        "arhr": "some definitions use only the first relevant item (rr), others all of them "
        "(rr(all))"
    },
    cutoff="optional",
    parameters={
        "all": Parameter("The value is the mean of 1 / rank over all relevant items."),
        "graded": Parameter("The value is the largest 1 / (rank * gain).", for_conventions=True),
    },
    when={
        "all": {True: {"pooled": "relevant"}},
        "graded": {
            True: {
                "reads": "relevant_gain",
                "upper": np.inf,
                "monotone": False,
                "averages_ties": False,
                "pooled": None,
            }
        },
    },
)
def rr(groups: Groups, cutoffs: Int64, *, all: bool = False, graded: bool = False) -> Float64:
    """Reciprocal of the rank of the first relevant item, or 0 if it is beyond k; in [0, 1].

    With tied items, the value is the mean over the possible places of the first relevant item in
    the first group that contains one. If t items rank above this group, and r of its n items are
    relevant, the mean is the sum of ``C(n-i, r-1) / C(n, r) / (t+i)`` over the places i = 1 .. n
    of the group that are within k, where C(n, r) is a binomial coefficient.

    References
    ----------
    Voorhees 1999, The TREC-8 Question Answering Track Report. McSherry & Najork 2008,
    Computing information retrieval performance measures efficiently in the presence of
    tied scores.
    """
    if graded:
        return columns(_graded_reciprocal, groups, cutoffs)
    if all:
        return ratio(reciprocal_sum(groups, cutoffs), groups.n_relevant[:, np.newaxis])
    if groups.single:
        nonempty = groups.indptr[1:] > groups.indptr[:-1]
        first = np.ones(groups.n_users, np.int64)
        first[nonempty] += groups.start[groups.indptr[:-1][nonempty]]
        return hit(groups, cutoffs) / first[:, np.newaxis]

    def value(rows: Int64 | slice, places: Int64) -> Float64:
        first = groups.hits_before[rows] == 0
        start, size = groups.start[rows], groups.size[rows]
        reciprocals: Float64 = first / (start + 1)
        tied = np.flatnonzero(first & (size > 1))
        reciprocals[tied] = reciprocal(
            start[tied], size[tied], groups.relevant[rows][tied], places[tied]
        )
        return reciprocals

    return totals(value, groups, cutoffs)


@metric(
    title="Average precision (its mean is MAP)",
    takes_group=True,
    formula="(1 / R) * sum over j <= k of (hits(j) / j) * rel(j)",
    source="Buckley & Voorhees 2000; ties: McSherry & Najork 2008",
    other_names=("map", "mean_average_precision", "average_precision"),
    cutoff="optional",
    pooled="relevant",
    parameters={
        "denominator": Parameter(
            "The divisor of the sum.",
            choices={
                "relevant": "R",
                "min": "min(k, R)",
                "k": "k",
                "hits": "hits(k)",
                "list": "min(R, k, length of the list)",
                "listed": "the number of relevant items in the whole list",
            },
            for_conventions=True,
        ),
        "repeat_last": Parameter(
            "If a list is shorter than k, its last place is repeated for every missing place.",
            for_conventions=True,
        ),
        "by_place": Parameter(
            "Hits that share a place count as one hit, whose precision includes all of them.",
            for_conventions=True,
        ),
    },
    when={
        "denominator": {
            "min": {"pooled": "possible"},
            "k": {"pooled": "cutoff"},
            "hits": {"monotone": False, "pooled": None},
            "list": {"pooled": None},
            "listed": {"beyond_cutoff": True, "pooled": None},
        },
        "repeat_last": {True: {"upper": np.inf, "monotone": False, "pooled": None}},
    },
)
def ap(
    groups: Groups,
    cutoffs: Int64,
    *,
    denominator: str = "relevant",
    repeat_last: bool = False,
    by_place: bool = False,
) -> Float64:
    """Mean of the precisions at the ranks of the relevant items; in [0, 1].

    ``(1/R) * sum over j <= k of P(j) rel(j)``, where ``P(j) = h(j) / j``. If r of the n items in a
    tied group and p of the t items above it are relevant, the group adds
    ``(r/n) [p + 1 + (j-t-1)(r-1)/(n-1)] / j`` at each of its places j. With ``denominator=hits``,
    the value is the mean over the possible numbers of hits in the group that the cut-off splits.

    References
    ----------
    Buckley & Voorhees 2000, Evaluating evaluation measure stability. McSherry & Najork
    2008.
    """
    if denominator == "hits" and not (repeat_last or by_place):
        return mean_precision_of_hits(groups, cutoffs)
    possible: Int64 | Float64 = groups.n_relevant[:, np.newaxis]
    if denominator == "min":
        possible = _possible(groups, cutoffs)
    elif denominator == "k":
        possible = _places(groups, cutoffs)
    elif denominator == "list":
        possible = np.minimum(_possible(groups, cutoffs), groups.depth[:, np.newaxis])
    elif denominator == "listed":
        possible = listed_relevant(groups)[:, np.newaxis]
    elif denominator == "hits":
        possible = hits_within(groups, cutoffs)
    total = (precision_sum_by_place if by_place else precision_sum)(groups, cutoffs)
    if repeat_last:
        total = total + missing_places(groups, cutoffs) * last_precision(groups)[:, np.newaxis]
    return ratio(total, possible)


@metric(
    title="Truncated average precision",
    formula="(1 / min(k, R)) * sum over j <= k of (hits(j) / j) * rel(j)",
    source="Cortes 2021, recometrics",
    pooled="possible",
)
def tap(groups: Groups, cutoffs: Int64) -> Float64:
    """Average precision whose divisor is the largest possible number of hits; in [0, 1].

    ``(1/min(k, R)) * sum over j <= k of P(j) rel(j)``. Ties are treated as in `ap`.

    References
    ----------
    Cortes 2021, recometrics ("truncated average precision").
    """
    return ratio(precision_sum(groups, cutoffs), _possible(groups, cutoffs))


@metric(
    title="R-precision",
    formula="hits(R) / R; with k: hits(min(k, R)) / R",
    source="Buckley & Voorhees 2000",
    other_names=("r_precision",),
    cutoff="optional",
    pooled="possible",
)
def rprecision(groups: Groups, cutoffs: Int64) -> Float64:
    """Precision at the number of relevant items: ``h(R) / R``, in [0, 1].

    With a cut-off, it is ``h(min(k, R)) / R``. The value is linear in rel(j), so at each place in a
    tied group, rel(j) is replaced by the group's mean.

    References
    ----------
    Buckley & Voorhees 2000, Evaluating evaluation measure stability.
    """
    # All cut-offs above every user's number of relevant items give the same value.
    limits = np.minimum(cutoffs, largest(groups.n_relevant))
    distinct, column = np.unique(limits, return_inverse=True)
    values = columns(_hits_until_relevant, groups, distinct)
    return ratio(values.T[column].T, groups.n_relevant[:, np.newaxis])


def _hits_until_relevant(groups: Groups, cutoff: int) -> Float64:
    """Return the (expected) number of hits in the first min(cutoff, R) places."""
    if groups.single:
        return single_within(groups, np.minimum(groups.n_relevant, cutoff)).astype(np.float64)
    rows, places = groups.within(np.minimum(groups.n_relevant, cutoff))
    return groups.total(rows, places * groups.relevant[rows] / groups.size[rows])


def _possible(groups: Groups, cutoffs: Int64) -> Int64:
    """Return the largest possible number of hits, min(k, R): [n_users, n_cutoffs]."""
    return np.minimum(groups.n_relevant[:, np.newaxis], cutoffs)


def _places(groups: Groups, cutoffs: Int64) -> Int64:
    """Return k or, without a cut-off, the length of the ranking: [n_users or 1, n_cutoffs]."""
    without_cutoff = cutoffs == WHOLE
    if not any_of(without_cutoff):
        return cutoffs[np.newaxis]
    return np.where(without_cutoff[:, np.newaxis], groups.depth, cutoffs[:, np.newaxis]).T


def _best_gains(groups: Groups, cutoff: int) -> Float64:
    """Return the sum of each user's `cutoff` largest gains."""
    user, place = ideal_members(groups)
    rows = place < cutoff
    return sum_by_user(user[rows], groups.ideal_gain[rows], groups.n_users)


def _graded_reciprocal(groups: Groups, cutoff: int) -> Float64:
    """Return the largest 1 / (rank * gain); tied items share their last rank and lowest gain."""
    rows, places = groups.within(cutoff)
    rank = groups.start[rows] + places
    first = np.cumsum(groups.relevant) - groups.relevant
    least = np.minimum.reduceat(groups.member_gain, first)[rows] if len(first) else np.zeros(0)
    value = np.zeros(groups.n_users)
    np.maximum.at(value, groups.user[rows], 1 / (rank * least))
    return value


SHORT = 32  # `reciprocal` adds up at most this many terms one by one, without a recurrence
NEVER = np.iinfo(np.int64).max


def chance(size: Int64, relevant: Int64, places: Int64) -> Float64:
    """Return the probability that a relevant item is in the first `places` of a group.

    This is 1 - C(size - relevant, places) / C(size, places) (hypergeometric). The sum has only
    positive terms, so small probabilities are as accurate as large ones.
    """
    # `relevant` and `places` are interchangeable in the formula, so loop over the smaller one.
    steps, larger = np.minimum(relevant, places), np.maximum(relevant, places)
    # After i steps, the total is less than 1 by at most exp(-larger * i / size). The limit on the
    # number of steps makes this difference smaller than 1e-18.
    steps = np.minimum(steps, 42 * size // larger + 1)
    total = np.zeros(len(size))
    for step, active in step_by_step(steps):
        # A quotient above 1 does no harm: the total reached 1 one step earlier, so 0 is added.
        total[active] += (1 - total[active]) * (larger[active] / (size[active] - step))
    return total


def reciprocal(start: Int64, size: Int64, relevant: Int64, places: Int64) -> Float64:
    """Return the expected value of 1 / (start + I), counted as 0 if I is beyond `places`.

    I is the place of the first relevant item in a group of n items, r of them relevant, that comes
    after t other items. Summing over the places takes `places` terms, or fewer if many items are
    relevant, because P(I > i) <= exp(-r i / n). Alternatively, with the harmonic numbers H and q(r)
    = P(I > places), the expected value S(r) follows from the recurrence

        S(r) = r / ((r - 1)(n - r + 1)) * ((n + t - r + 2) S(r - 1) - 1 + q(r - 1))
        S(1) = (H(t + places) - H(t)) / n

    and, if all places of the group count (q = 0), from S(n) = 1 / (t + 1). Downwards, the
    recurrence may start at any larger r: an error in the starting value fades out, and no new
    errors appear. Upwards, it takes r steps. Of the methods that are accurate, the function chooses
    the one with the fewest steps.
    """
    last = size - relevant + 1  # the last possible place of the first relevant item
    places = np.minimum(places, last)
    # All places beyond `places_left` together add less than 1e-18.
    places_left = np.minimum(places, 42 * size // relevant + 1)
    top, (upwards, downwards) = size.copy(), np.full((2, len(size)), NEVER)
    long = np.flatnonzero((places_left > SHORT) | (relevant == 1))
    t, n, r = start[long], size[long], relevant[long]
    # Each step down divides an error by at least 1 + (t + 1) / (n - r + 1), so e^-40 of it is left
    # after `away` steps. Each step up multiplies a rounding error by the same factor. If `away` is
    # more than 14 r, the r steps up multiply it by at most e^(40 / 14).
    away = np.ceil(40 / log1p_of((t + 1) / (n - r + 1))).astype(np.int64)
    top[long] = np.minimum(n, r + away)
    upwards[long] = np.where((away > 14 * r) | (r == 1), r, NEVER)
    downwards[long] = np.where(places[long] == last[long], top[long] - r, NEVER)
    method = np.argmin([places_left, upwards, downwards], axis=0)
    value = np.empty(len(size))
    rows = np.flatnonzero(method == 0)
    value[rows] = _by_place(start[rows], size[rows], relevant[rows], places_left[rows])
    rows = np.flatnonzero(method == 1)
    value[rows] = _upwards(start[rows], size[rows], relevant[rows], places[rows])
    rows = np.flatnonzero(method == 2)
    value[rows] = _downwards(start[rows], size[rows], relevant[rows], top[rows])
    return value


def _by_place(start: Int64, size: Int64, relevant: Int64, places: Int64) -> Float64:
    """Add up P(I = i) / (start + i) over the places i of each group."""
    probability = relevant / size
    total = np.zeros(len(size))
    for step, active in step_by_step(places):
        total[active] += probability[active] / (start[active] + step + 1)
        # After the last place, no items are left, so avoid a division by 0.
        n_left = np.maximum(size[active] - step - 1, 1)
        probability[active] *= (n_left - relevant[active] + 1) / n_left
    return total


def _upwards(start: Int64, size: Int64, relevant: Int64, places: Int64) -> Float64:
    """Apply the recurrence of `reciprocal` upwards, from one relevant item to `relevant` items."""
    value = harmonic(start, places) / size
    beyond = (size - places) / size
    for step, active in step_by_step(relevant - 1):
        r, n, t, q = step + 2, size[active], start[active], beyond[active]
        value[active] = r / ((r - 1) * (n - r + 1)) * ((n + t - r + 2) * value[active] - (1 - q))
        beyond[active] *= (n - places[active] - r + 1) / (n - r + 1)
    return value


def _downwards(start: Int64, size: Int64, relevant: Int64, top: Int64) -> Float64:
    """Apply the recurrence of `reciprocal` downwards, from `top` relevant items to `relevant`."""
    # This starting value is exact if `top` equals `size`; otherwise, its error fades out.
    value = 1 / (start + 1)
    for step, active in step_by_step(top - relevant):
        n, t, r = size[active], start[active], top[active] - step
        value[active] = (1 + value[active] * (r - 1) * (n - r + 1) / r) / (n + t - r + 2)
    return value

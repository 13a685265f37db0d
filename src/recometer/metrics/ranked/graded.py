"""Metrics based on gains. An item's gain is its test value, a measure of how good the item is."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from recometer.arrays import Float64, Int64, all_equal, largest, steps
from recometer.metrics.parameters import Parameter
from recometer.metrics.ranked.facts import ideal_members, members, sum_of_gains
from recometer.metrics.registry import metric
from recometer.metrics.sums import (
    columns,
    discounted_totals,
    discounts,
    log1p_of,
    log2_of,
    ratio,
    table_size,
    totals,
)
from recometer.ranks import number_runs
from recometer.ties import LONG, Groups, shared, sum_by_user

GAIN = Parameter(
    "The gain of an item.",
    choices={
        "linear": "its test value; the rule negative_gains determines how negative values count",
        "binary": "1 if it is relevant, otherwise 0",
        "positive": "its test value if that is above 0, otherwise 0",
        "exponential": "2^value - 1",
        "shifted": "2^(value - relevant_from + 1) - 1 if it is relevant (relevant_from is 1 by "
        "default)",
    },
)
DISCOUNT = Parameter(
    "The divisor of the gain at rank j.",
    choices={
        "standard": "log2(j + 1)",
        "original": "log2(max(j, 2)), by Järvelin & Kekäläinen: the first two places have the "
        "same weight",
        "graded": "log2(j * gain + 1); a gain of -1 / j adds 0, and a lower one makes the value "
        "undefined",
    },
)
MOST_PLACES = 2**16  # maximum number of places for which a bound is computed
WHEN: dict[str, Any] = {
    "gain": {
        "positive": {"reads": "positive_gain"},
        "binary": {"reads": "relevance"},
        "exponential": {"reads": "exponential"},
        "shifted": {"reads": "shifted"},
    },
    "discount": {"graded": {"upper": np.inf, "monotone": False, "may_be_nan": True}},
}


def _max_of_ones(
    cutoff: int, binary: bool, *, gain: str = "linear", discount: str = "standard"
) -> float:
    """Return an upper bound of DCG: the sum of the discounts for binary gains, else infinity.

    If gains are not binary, the largest test value need not be the top of the scale.
    """
    ones = gain == "binary" or (binary and gain != "shifted")
    if not ones or cutoff > MOST_PLACES:
        return np.inf
    start, places = np.zeros(1, np.int64), np.array([cutoff])
    return float(_sum_of_discounts(start, places, discount)[0])


@metric(
    title="Discounted cumulative gain",
    formula="sum over j <= k of gain(j) / log2(j + 1)",
    source="Järvelin & Kekäläinen 2002; ties: McSherry & Najork 2008",
    cutoff="optional",
    lower=-np.inf,
    lower_of_gains=0.0,
    upper=np.inf,
    upper_at=_max_of_ones,
    reads="gain",
    parameters={"gain": GAIN, "discount": DISCOUNT},
    when=WHEN,
)
def dcg(
    groups: Groups, cutoffs: Int64, *, gain: str = "linear", discount: str = "standard"
) -> Float64:
    """Sum of the gains in the first k places, each divided by a logarithm of the item's rank.

    ``sum over j <= k of gain(j) / log2(j + 1)``, where gain(j) is the test value of the item at
    rank j, or 0 if the item is unjudged. Each place of a tied group has the mean gain of the group.
    The parameter `gain` selects other gains.

    References
    ----------
    Järvelin & Kekäläinen 2002, Cumulated gain-based evaluation of IR techniques. McSherry
    & Najork 2008.
    """
    with np.errstate(over="ignore", invalid="ignore"):  # infinite gains make a value undefined
        return _dcg(groups, cutoffs, discount)


@metric(
    title="Normalised discounted cumulative gain",
    takes_group=True,
    formula="dcg(k) / dcg(k) of the best order; dcg(k) = sum over j <= k of gain(j) / log2(j + 1)",
    source="Järvelin & Kekäläinen 2002; ties: McSherry & Najork 2008",
    cutoff="optional",
    lower=-np.inf,
    lower_of_gains=0.0,
    reads="gain",
    defined_when_all_relevant=True,
    parameters={
        "gain": GAIN,
        "discount": DISCOUNT,
        "ideal": Parameter(
            "The best order, whose DCG is the divisor.",
            choices={
                "all": "the largest gains of all judged items",
                "k": "k times the user's largest gain",
                "list": "the largest gains of the items in the whole list",
                "signed": "the largest gains of all judged items, including those below 0",
                "sum": "gains of 1, as many as the sum of all gains (rounded towards 0, at least 1 "
                "and at most k); a negative sum s counts as k + 1 + s",
            },
            for_conventions=True,
        ),
        "within": Parameter(
            "The number of places that count.",
            choices={"k": "k", "possible": "min(k, R)", "list": "min(k, length of the list)"},
            for_conventions=True,
        ),
    },
    when={
        **WHEN,
        "ideal": {
            "k": {"cutoff": "required"},
            "list": {"beyond_cutoff": True},
            "signed": {"upper": np.inf},
            "sum": {"cutoff": "required", "upper": np.inf},
        },
    },
)
def ndcg(
    groups: Groups,
    cutoffs: Int64,
    *,
    gain: str = "linear",
    discount: str = "standard",
    ideal: str = "all",
    within: str = "k",
) -> Float64:
    """Discounted gain, relative to the discounted gain of the best possible order; at most 1.

    ``dcg(k) / ideal(k)`` with ``dcg(k) = sum over j <= k of gain(j) / log2(j + 1)``, where gain(j)
    is the test value of the item at rank j, or 0 if the item is unjudged. ``ideal(k)`` is the dcg
    of the positive gains, best first. An item with a value below 0 has a gain of 0. With the rule
    ``negative_gains="counted"``, negative gains count in dcg as they are, so the value can be
    negative. Each place of a tied group has the mean gain of the group.

    References
    ----------
    Järvelin & Kekäläinen 2002, Cumulated gain-based evaluation of IR techniques. McSherry
    & Najork 2008.
    """
    if within != "k":
        limits = groups.n_relevant if within == "possible" else groups.depth
        return _ndcg_within(limits, groups, cutoffs, gain, discount, ideal)
    with np.errstate(over="ignore", invalid="ignore"):  # infinite gains make a value undefined
        best = _ideal_dcg(groups, cutoffs, discount, ideal)
        values = ratio(_dcg(groups, cutoffs, discount), best)
    if discount == "graded":
        values[np.isnan(best)] = np.nan
    return values


def _ndcg_within(
    limits: Int64, groups: Groups, cutoffs: Int64, gain: str, discount: str, ideal: str
) -> Float64:
    places = np.minimum(cutoffs, limits[:, np.newaxis])
    distinct, column = np.unique(np.maximum(places, 1), return_inverse=True)
    values = ndcg(groups, distinct, gain=gain, discount=discount, ideal=ideal)
    return np.take_along_axis(values, column.reshape(places.shape), axis=1)


@shared
def _dcg(groups: Groups, cutoffs: Int64, discount: str) -> Float64:
    if groups.single and discount == "standard":
        return discounted_totals(groups, cutoffs)

    def value(rows: Int64 | slice, places: Int64) -> Float64:
        start, size, gain = groups.start[rows], groups.size[rows], groups.gain[rows]
        if discount == "graded":
            return _terms_of_members(groups, rows, places)
        terms = gain / _divisor(start, discount)
        if groups.single:
            return terms
        tied = np.flatnonzero(size > 1)
        terms[tied] = gain[tied] * _sum_of_discounts(start[tied], places[tied], discount)
        return terms

    return totals(value, groups, cutoffs)


def _ideal_dcg(groups: Groups, cutoffs: Int64, discount: str, ideal: str) -> Float64:
    if ideal == "k":
        return columns(functools.partial(_largest_gain_throughout, discount), groups, cutoffs)
    if ideal == "sum":
        return columns(functools.partial(_ideal_of_ones, discount), groups, cutoffs)
    gains = groups.ideal_gain
    if ideal == "all" and len(gains) and all_equal(gains):
        counts = np.minimum(steps(groups.ideal_indptr), cutoffs[:, np.newaxis])
        terms, sums = _sums_of_equal(float(gains[0]), table_size(largest(counts)), discount)
        result: Float64 = sums[counts]
        for count in set(counts[counts > LONG].tolist()):
            result[counts == count] = sum_by_user(np.zeros(count, np.int64), terms[:count], 1)
        return result.T
    # All cut-offs above every user's number of gains give the same value.
    _, place, _ = _ideal_terms(groups, discount, ideal)
    limits = np.minimum(cutoffs, largest(place) + 1)
    distinct, column = np.unique(limits, return_inverse=True)
    best = columns(functools.partial(_best_gains, discount, ideal), groups, distinct)
    return best.T[column].T


@functools.lru_cache(maxsize=4)
def _sums_of_equal(gain: float, size: int, discount: str) -> tuple[Float64, Float64]:
    """Return the terms of equal gains at the first places, and their running sums from 0 on.

    The terms are added up in the same way as users' terms, so a perfect ranking gets exactly 1.
    """
    terms = _discounted(np.full(size, gain), np.arange(size), discount)
    return terms, np.append(0.0, np.cumsum(terms))


def _largest_gain_throughout(discount: str, groups: Groups, cutoff: int) -> Float64:
    indptr, gain = groups.ideal_indptr, groups.ideal_gain
    with_gain = np.flatnonzero(np.diff(indptr))
    value = np.zeros(groups.n_users)
    largest = gain[indptr[with_gain]]
    if discount == "graded":
        distinct, index = np.unique(largest, return_inverse=True)
        rank = np.arange(cutoff) + 1
        sums = [
            _graded_terms(rank, np.full(cutoff, largest_gain)).sum() for largest_gain in distinct
        ]
        value[with_gain] = np.array(sums)[index]
        return value
    start, all_places = np.zeros(1, np.int64), np.array([cutoff])
    value[with_gain] = largest * _sum_of_discounts(start, all_places, discount)
    return value


def _ideal_of_ones(discount: str, groups: Groups, cutoff: int) -> Float64:
    total = np.minimum(np.trunc(sum_of_gains(groups)), float(cutoff))
    # A negative sum counts backwards from the end of a table whose first entry is for 0.
    best = np.maximum(np.where(total < 0, cutoff + 1 + total, total), 1).astype(np.int64)
    return _sum_of_discounts(np.zeros(groups.n_users, np.int64), best, discount)


def _best_gains(discount: str, ideal: str, groups: Groups, cutoff: int) -> Float64:
    user, place, terms = _ideal_terms(groups, discount, ideal)
    rows = np.flatnonzero(place < cutoff)
    return sum_by_user(user[rows], terms[rows], groups.n_users)


@shared
def _ideal_terms(groups: Groups, discount: str, ideal: str) -> tuple[Int64, Int64, Float64]:
    """Return the user, place (from 0) and discounted gain of each item in the ideal order."""
    if ideal in ("list", "signed"):
        indptr, gain = groups.listed_ideal() if ideal == "list" else groups.signed_ideal()
        user, place = members(indptr)
    else:
        gain = groups.ideal_gain
        user, place = ideal_members(groups)
    return user, place, _discounted(gain, place, discount)


def _discounted(gain: Float64, place: Int64, discount: str) -> Float64:
    """Return gains discounted by their places, which are counted from 0."""
    if discount == "graded":
        return _graded_terms(place + 1, gain)
    return gain / _divisor(place, discount)


def _terms_of_members(groups: Groups, rows: Int64 | slice, places: Int64) -> Float64:
    """Add up the expected terms of each group's items over the group's first places."""
    first = np.cumsum(groups.relevant) - groups.relevant
    count = groups.relevant[rows] * places
    row, number = number_runs(count)
    member = first[rows][row] + number // places[row]
    rank = groups.start[rows][row] + number % places[row] + 1
    terms = _graded_terms(rank, groups.member_gain[member]) / groups.size[rows][row]
    return sum_by_user(row, terms, len(places))


def _graded_terms(rank: Int64, gain: Float64) -> Float64:
    """Return gain / log2(rank * gain + 1); NaN if there is no logarithm, and 0 if it is -inf."""
    product = np.where(gain == 0, rank, rank * gain)
    terms = np.full(len(gain), np.nan)
    valid = product > -1
    terms[valid] = gain[valid] * math.log(2) / log1p_of(product[valid])
    terms[product == -1] = 0.0
    return terms


def _divisor(start: Int64, discount: str) -> Float64:
    """Return the divisor of a gain at place `start + 1`."""
    return log2_of(start + 2) if discount == "standard" else log2_of(np.maximum(start + 1, 2))


def _sum_of_discounts(start: Int64, places: Int64, discount: str) -> Float64:
    """Add up the discounts of the `places` places that follow the first `start`."""
    if discount != "original":  # with "graded", this is correct for gains of 1
        return discounts(start, places)
    # The discount is 1 at the first place. At every later place, it is the standard discount of the
    # previous place.
    top = (start == 0).astype(np.int64)
    total: Float64 = top + discounts(np.maximum(start - 1, 0), places - top)
    return total

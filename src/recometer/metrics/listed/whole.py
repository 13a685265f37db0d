"""Metrics with one value for all users, which is computed from sums over the users.

The sums over blocks of users can be added up in any order, on one machine or on many.
"""

from __future__ import annotations

import math
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from recometer.arrays import Bool, Float64, Int64
from recometer.errors import InputError, argument_text
from recometer.metrics.adding_up import AddsUp, Summed
from recometer.metrics.listed.data import ListData, exposures, lengths, log2, needed, powers
from recometer.metrics.registry import METRICS, Metric
from recometer.metrics.sums import ratio
from recometer.ties import sum_by_user

NO_TOTALS: Float64 = np.array([])


class ItemFacts(Protocol):
    """Facts about the items; see `ListData`."""

    @property
    def n_catalogue(self) -> int | None:
        """The number of items that could have been recommended."""

    @property
    def item_users(self) -> Int64 | None:
        """The number of training users who interacted with each item."""


def at_cutoffs(
    parts: AddsUp, data: ListData, cutoffs: Int64, weights: Int64 | None, **parameters: object
) -> Float64:
    """Return the value for all users at each cut-off: float64 [n_cutoffs]."""
    values = np.empty(len(cutoffs))
    for column, cutoff in enumerate(cutoffs.tolist()):
        summed = parts.sums(data, cutoff, weights, **parameters)
        values[column] = parts.value(data, summed, cutoff, **parameters)
    return values


def add_up(metric: Metric, data: ListData, weights: Int64 | None) -> Summed:
    """Return the sums over the users from which `value_of` computes a metric."""
    parts = needed(metric.definition.adds_up)
    return parts.sums(data, metric.cutoff, weights, **_parameters(metric))


def value_of(metric: Metric, facts: ItemFacts, summed: Summed) -> float:
    """Compute a metric's value for all users from the sums."""
    parts = needed(metric.definition.adds_up)
    return parts.value(facts, summed, metric.cutoff, **_parameters(metric))


def _parameters(metric: Metric) -> dict[str, Any]:
    defaults = {
        parameter.name: parameter.default for parameter in METRICS[metric.name].parameters.values()
    }
    return {**defaults, **dict(metric.parameters)}


def _counted(
    data: ListData,
    cutoff: int,
    weights: Any,
    *,
    users: str = "all",
    numerator: str = "distinct",
    denominator: str = "one",
    divisor: str = "none",
    **_: object,
) -> Summed:
    """Count how often each item is listed."""
    if users == "relevant":
        counted = _with_relevant(data).astype(np.int64)
        weights = counted if weights is None else weights * counted
    counts = exposures(data, cutoff, weights)
    if numerator == "trained":
        counts[needed(data.item_users) == 0] = 0
    return _of_items(data, counts, "catalogue" if divisor == "largest" else denominator)


def _of_items(data: ListData, counts: Float64, support: str) -> Summed:
    """Return how often each item is listed, with one total for all items outside the catalogue.

    There is a total only if `support` is "catalogue" or "padded". With "padded", it is the count of
    the padding entry.
    """
    if support not in ("catalogue", "padded"):
        return Summed(counts, NO_TOTALS)
    lacking = data.lists.uncatalogued
    if lacking is None:
        return Summed(counts, np.zeros(1))
    uncatalogued = counts[lacking].sum()
    counts[lacking] = 0
    return Summed(counts, np.array([uncatalogued]))


def _coverage(facts: ItemFacts, summed: Summed, _: int, *, denominator: str, **__: object) -> float:
    n_listed = len(_listed(summed))
    if denominator == "one":
        return float(n_listed)
    if denominator == "train":
        n_items = int(np.count_nonzero(needed(facts.item_users)))
    else:
        padded = denominator == "padded"
        n_listed += padded and bool(summed.totals[0] > 0)
        n_items = _size(facts, n_listed, padded)
    return n_listed / n_items if n_items else math.nan


def _size(facts: ItemFacts, n_listed: int, padded: bool = False) -> int:
    """Return the size of the catalogue; `padded` adds one padding entry."""
    n = needed(facts.n_catalogue)
    if n_listed > n + padded:
        raise InputError(
            f"{argument_text('catalogue', n)} is less than the number of listed items, "
            f"{n_listed:,}. Hint: pass the number of all items that could be recommended; or pass "
            "their ids, so that listed items outside the catalogue do not count."
        )
    return n + padded


COVERAGE = AddsUp(_counted, _coverage)


def _served(data: ListData, cutoff: int, weights: Any, *, least: str) -> Summed:
    """Count the users whose list is long enough, and all users."""
    weight = np.ones(data.n_users) if weights is None else weights.astype(np.float64)
    required = cutoff if least == "full" else 1
    served = lengths(data.lists, np.array([cutoff]))[:, 0] >= required
    return Summed(None, np.array([(served * weight).sum(), weight.sum()]))


def ratio_of_totals(_: ItemFacts, summed: Summed, __: int, **___: object) -> float:
    """Divide the first total by the second, or return NaN if the second is 0."""
    return float(_or_nan(summed.totals[0], summed.totals[1]))


USER_COVERAGE = AddsUp(_served, ratio_of_totals)


def _placed(
    data: ListData, cutoff: int, weights: Any, *, patience: float | None, support: str, **_: object
) -> Summed:
    """For each item, add up the weights of the places at which it is listed."""
    discount = None
    if patience is not None:
        discount = powers(patience, data.first(cutoff).shape[1])
    return _of_items(data, exposures(data, cutoff, weights, discount), support)


def _gini(
    facts: ItemFacts,
    summed: Summed,
    _: int,
    *,
    support: str,
    divisor: str,
    complement: bool,
    **__: object,
) -> float:
    listed = _listed(summed)
    if support == "padded":
        listed = np.append(listed, summed.totals[summed.totals > 0])
    listed = np.sort(listed)
    n = len(listed)
    if support != "listed":
        n = _size(facts, n, support == "padded")
    # Items that are in no list would come first in the order, and would add nothing to the sum.
    place = np.arange(n - len(listed) + 1, n + 1)
    below = n - (divisor == "others")
    index = float(_or_nan(((2 * place - n - 1) * listed).sum(), max(below, 1) * listed.sum()))
    return 1 - index if complement else index


GINI = AddsUp(_placed, _gini)


def _entropy(facts: ItemFacts, summed: Summed, _: int, *, unit: str, divisor: str) -> float:
    listed = _listed(summed)
    if not len(listed):
        return math.nan
    share = listed / listed.sum()
    bits = 0.0 - float((share * log2(share)).sum())
    if divisor == "largest":
        largest = math.log2(_size(facts, len(listed)))
        return bits / largest if largest else bits
    if unit == "nats":
        bits *= math.log(2)
    return bits / len(listed) if divisor == "listed" else bits


ENTROPY = AddsUp(_counted, _entropy)


def _overlapping(data: ListData, cutoff: int, weights: Any, *, overlap: str) -> Summed:
    """Add up the users' lists as vectors over the items, and add up the vectors' squared norms."""
    n = lengths(data.lists, np.array([cutoff]))[:, 0]
    weight = np.ones(data.n_users) if weights is None else weights.astype(np.float64)
    counts = weight * (n > 0)
    size = np.sqrt(n) if overlap == "cosine" else np.full(data.n_users, np.sqrt(cutoff))
    total = exposures(data, cutoff, ratio(counts, size))
    own = 1.0 if overlap == "matrix" else ratio(n.astype(np.float64), size**2)
    totals = (counts**2 * own).sum(), counts.sum(), (counts**2).sum()
    return Summed(total, np.array(totals))


def _personalization(_: ItemFacts, summed: Summed, __: int, **___: object) -> float:
    # The sum over all pairs of lists follows from the squared norm of the sum of their vectors.
    own, users, squares = summed.totals
    overlap = (needed(summed.items) ** 2).sum() - own
    return 1 - float(_or_nan(overlap, users**2 - squares))


PERSONALIZATION = AddsUp(_overlapping, _personalization)


def _listed(summed: Summed) -> Float64:
    """Return the counts of the items that are listed at least once."""
    counts = needed(summed.items)
    return counts[counts > 0]


def _with_relevant(data: ListData) -> Bool:
    test = needed(data.test)
    relevant = needed(data.relevant).astype(np.float64)
    return sum_by_user(test.user, relevant, data.n_users) > 0


def _or_nan(numerator: npt.ArrayLike, denominator: float) -> Float64:
    values = np.asarray(numerator, np.float64)
    return values / denominator if denominator > 0 else np.full_like(values, np.nan)

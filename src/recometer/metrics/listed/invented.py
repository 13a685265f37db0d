"""Invalid places of lists: items that do not exist, and items that the list already has."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from recometer.arrays import Float64, Int64
from recometer.metrics.listed.data import (
    ListData,
    lengths,
    list_metric,
    needed,
    of_listed,
    sums_within,
)
from recometer.metrics.sums import ratio
from recometer.ranks import KEPT_REPEAT, REMOVED_REPEAT, TopLists

SOURCE = "Jiang et al. 2025"


@list_metric(
    title="Share of unknown items",
    formula="items in the first k places that the catalogue lacks / items in the first k places",
    source=SOURCE,
    side=("catalogue_items",),
    higher_is_better=False,
    order_free=True,
)
def unknown_items(data: ListData, cutoffs: Int64) -> Float64:
    """Share of the listed items that the catalogue lacks; in [0, 1].

    A model that writes its recommendations as text, such as a language model, may invent items. A
    model that was fitted long ago may list items that are no longer sold. Such items are misses and
    do not count in coverage.

    References
    ----------
    Jiang, Wang, Ma, Clarke, Wang, Wu & Zhang 2025, Beyond utility: evaluating LLM as recommender
    ("hallucinations").
    """
    unknown = of_listed(~needed(data.in_catalogue), data.lists.items)
    # A kept repeat is a separate item that the catalogue lacks, although the item itself may exist.
    kept_repeats = data.lists.repeats[:, : data.lists.depth] == KEPT_REPEAT
    unknown[:, : kept_repeats.shape[1]] &= ~kept_repeats
    return ratio(sums_within(unknown, cutoffs), lengths(data.lists, cutoffs).astype(float))


@list_metric(
    title="Share of repeated items",
    formula="places among the first k whose item the list has at an earlier place / items in the "
    "first k places",
    source=SOURCE,
    higher_is_better=False,
    order_free=True,
)
def repeated_items(data: ListData, cutoffs: Int64) -> Float64:
    """Share of the places whose item the list already has; in [0, 1].

    The places are those of the list as the model returned it, without the user's training items.
    By default, other metrics do not read repeated items: later items move up (see the rule
    ``duplicates``).

    References
    ----------
    Jiang, Wang, Ma, Clarke, Wang, Wu & Zhang 2025, Beyond utility: evaluating LLM as recommender.
    """
    places = _places(data.lists, cutoffs)
    return ratio(places.repeated, places.filled)


@list_metric(
    title="Share of valid places",
    formula="places among the first k that have an item of the catalogue for the first time / k",
    source=SOURCE,
    side=("catalogue_items",),
    order_free=True,
    of_empty_lists=True,
)
def valid(data: ListData, cutoffs: Int64) -> Float64:
    """Share of the first k places that have an item of the catalogue for the first time; in [0, 1].

    A place is not valid if the list ends before it, if the catalogue lacks its item, or if the item
    is also at an earlier place. The places are those of the list as the model returned it, without
    the user's training items. An empty list has no valid place: its value is 0.

    References
    ----------
    Jiang, Wang, Ma, Clarke, Wang, Wu & Zhang 2025, Beyond utility: evaluating LLM as recommender.
    """
    in_catalogue = of_listed(needed(data.in_catalogue), data.lists.items)
    running = np.zeros((data.n_users, data.lists.depth + 1))
    np.cumsum(in_catalogue, axis=1, out=running[:, 1:])
    listed = _places(data.lists, cutoffs).listed
    return np.take_along_axis(running, listed, axis=1) / cutoffs


class Places(NamedTuple):
    """The first k places of lists whose repeats were not removed: [n_users, n_cutoffs]."""

    listed: Int64  # number of places that `TopLists.items` has
    filled: Float64  # number of places before the list ends
    repeated: Float64  # number of places that repeat an item


def _places(lists: TopLists, cutoffs: Int64) -> Places:
    removed, kept = (
        sums_within(lists.repeats == code, cutoffs) for code in (REMOVED_REPEAT, KEPT_REPEAT)
    )
    listed = np.minimum(lists.lengths[:, np.newaxis], cutoffs - removed.astype(np.int64))
    return Places(listed, listed + removed, removed + kept)

"""Metrics of invalid places, whose item does not exist or is a repeat of an earlier one."""

from __future__ import annotations

import numpy as np

from recometer.arrays import Bool, Float64, Int64
from recometer.metrics.listed.data import (
    ListData,
    list_metric,
    needed,
    of_listed,
    sums_within,
)
from recometer.metrics.sums import ratio
from recometer.ranks import KEPT_REPEAT, TopLists

SOURCE = "Jiang et al. 2025"


@list_metric(
    title="Share of unknown items",
    formula="items in the first k places that are not in the catalogue / items in the first k "
    "places",
    source=SOURCE,
    side=("catalogue_items",),
    higher_is_better=False,
    order_free=True,
)
def unknown_items(data: ListData, cutoffs: Int64) -> Float64:
    """Share of the listed items that are not in the catalogue; in [0, 1].

    A model that writes its recommendations as text, such as a language model, may invent items. A
    model that was fitted long ago may list items that are no longer sold. Such items are misses and
    do not count towards coverage.

    References
    ----------
    Jiang, Wang, Ma, Clarke, Wang, Wu & Zhang 2025, Beyond utility: evaluating LLM as recommender
    ("hallucinations").
    """
    listed, filled, _ = _places(data.lists, cutoffs, data.lists.repeats == KEPT_REPEAT)
    return ratio(_among_listed(~needed(data.in_catalogue), data.lists, listed), filled)


@list_metric(
    title="Share of repeated items",
    formula="places among the first k whose item is also at an earlier place / items in the first "
    "k places",
    source=SOURCE,
    higher_is_better=False,
    order_free=True,
)
def repeated_items(data: ListData, cutoffs: Int64) -> Float64:
    """Share of the places whose item also occurs at an earlier place in the list; in [0, 1].

    Places are counted in the list as the model returned it, but after the removal of the user's
    training items. For other metrics, later items move up by default to replace repeated ones (rule
    ``duplicates``).

    References
    ----------
    Jiang, Wang, Ma, Clarke, Wang, Wu & Zhang 2025, Beyond utility: evaluating LLM as recommender.
    """
    _, filled, repeated = _places(data.lists, cutoffs, data.lists.repeats > 0)
    return ratio(repeated, filled)


@list_metric(
    title="Share of valid places",
    formula="places among the first k that hold a catalogue item for the first time / k",
    source=SOURCE,
    side=("catalogue_items",),
    order_free=True,
    of_empty_lists=True,
)
def valid(data: ListData, cutoffs: Int64) -> Float64:
    """Share of the first k places that hold a catalogue item for the first time; in [0, 1].

    A place is not valid if the list ends before it, if its item is not in the catalogue, or if the
    item also occurs at an earlier place. Places are counted in the list as the model returned
    it, but after the removal of the user's training items. An empty list has no valid place, so its
    value is 0.

    References
    ----------
    Jiang, Wang, Ma, Clarke, Wang, Wu & Zhang 2025, Beyond utility: evaluating LLM as recommender.
    """
    listed, _, _ = _places(data.lists, cutoffs, data.lists.repeats > 0)
    return _among_listed(needed(data.in_catalogue), data.lists, listed) / cutoffs


def _places(lists: TopLists, cutoffs: Int64, repeats: Bool) -> tuple[Int64, Float64, Float64]:
    """Of the first k places, count those with a new item, with any item, and with a repeated item.

    Only the places in the mask `repeats` count as repeats.
    """
    repeated = sums_within(repeats, cutoffs)
    listed = np.minimum(lists.lengths[:, np.newaxis], cutoffs - repeated.astype(np.int64))
    return listed, listed + repeated, repeated


def _among_listed(items: Bool, lists: TopLists, listed: Int64) -> Float64:
    """Count how many of the first `listed` items of each list are in the mask `items`."""
    running = np.zeros((len(lists.items), lists.depth + 1))
    np.cumsum(of_listed(items, lists.items), axis=1, out=running[:, 1:])
    return np.take_along_axis(running, listed, axis=1)

"""Recommended items that do not exist."""

from __future__ import annotations

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


@list_metric(
    title="Share of unknown items",
    formula="items in the first k places that the catalogue lacks / items in the first k places",
    source="Jiang et al. 2025",
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
    return ratio(sums_within(unknown, cutoffs), lengths(data.lists, cutoffs).astype(float))

"""Metrics of repeat consumption: the shares of old and new items among the hits."""

from __future__ import annotations

import functools

from recometer.arrays import Float64, Int64
from recometer.metrics.listed.data import (
    ListData,
    history_places,
    list_metric,
    relevant_places,
    sums_within,
)
from recometer.metrics.sums import ratio

hits_metric = functools.partial(
    list_metric,
    source="Li, Jullien, Ariannezhad & de Rijke 2023",
    side=("test", "train"),
    without=("relevant", "hits"),
)


@hits_metric(
    title="Share of repeated items among the hits",
    formula="relevant items among the first k that are among the user's training items / relevant "
    "items among the first k",
)
def repeated_hits(data: ListData, cutoffs: Int64) -> Float64:
    """Share of the hits that are among the user's training items; in [0, 1].

    Use it with the rule ``seen="kept"``. By default, training items are neither listed nor
    relevant, so the share is 0.

    References
    ----------
    Li, Jullien, Ariannezhad & de Rijke 2023, A next basket recommendation reality check, ACM
    TOIS 41(4).
    """
    hits = relevant_places(data)
    repeated = sums_within(hits & history_places(data), cutoffs)
    return ratio(repeated, sums_within(hits, cutoffs))


@hits_metric(
    title="Share of new items among the hits",
    formula="relevant items among the first k that are not among the user's training items / "
    "relevant items among the first k",
)
def new_hits(data: ListData, cutoffs: Int64) -> Float64:
    """Share of the hits that are not among the user's training items; in [0, 1].

    The value is 1 - `repeated_hits`. By default, training items are not ranked, so the value is 1.

    References
    ----------
    Li, Jullien, Ariannezhad & de Rijke 2023, A next basket recommendation reality check, ACM
    TOIS 41(4).
    """
    hits = relevant_places(data)
    new = sums_within(hits & ~history_places(data), cutoffs)
    return ratio(new, sums_within(hits, cutoffs))

"""Metrics of novelty and popularity: how well known the listed items are among training users."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from recometer.arrays import Float64, Int64, largest
from recometer.metrics.adding_up import AddsUp, Summed
from recometer.metrics.listed.data import (
    ListData,
    lengths,
    list_metric,
    log2,
    needed,
    of_listed,
    places_discount,
    pooled,
    relevant_places,
    sums_within,
)
from recometer.metrics.listed.whole import ratio_of_totals
from recometer.metrics.parameters import Parameter, Value
from recometer.metrics.sums import ratio

EPSILON = 1e-10
DIVISOR = Parameter(
    "The divisor of the sum over the listed items.",
    choices={
        "list": "the number of items in the sum",
        "cutoff": "k, even if the list is shorter",
        "rows": "the number of items in all users' sums, which gives one value for all users",
    },
    for_conventions=True,
)


def _novelty(
    data: ListData, cutoffs: Int64, *, probability: str, unseen: str, normalised: bool
) -> Float64:
    """Add up the self-information of the listed items, in bits: float64 [n_users, n_cutoffs]."""
    bits = _bits(data, probability, unseen, normalised)
    return sums_within(of_listed(bits, data.lists.items), cutoffs)


def _bits(data: ListData, probability: str, unseen: str, normalised: bool = False) -> Float64:
    """Return the self-information of each item, in bits: float64 [n_items]."""

    def per_item() -> Float64:
        count = needed(data.item_users).astype(np.float64)
        total = needed(data.n_train_users)
        if probability == "interactions":
            total = needed(data.n_train_interactions)
        is_trained = count > 0
        users_of_item = np.maximum(count, 1) if unseen != "epsilon" else count + EPSILON
        bits: Float64 = math.log2(max(total, 1)) - log2(users_of_item)
        if unseen in ("dropped", "zero"):
            bits[~is_trained] = 0
        elif unseen == "largest":
            bits[~is_trained] = bits[is_trained].max(initial=0)
        users = needed(data.n_train_users)
        if normalised and users > 1:
            bits /= math.log2(users)
        return bits

    return data.keep(("novelty", probability, unseen, normalised), per_item)


def _popularity(data: ListData, cutoffs: Int64, *, scale: str, unseen: str) -> Float64:
    """Add up the popularity of the listed items: float64 [n_users, n_cutoffs]."""

    def per_item() -> Float64:
        count = needed(data.item_users)
        if unseen == "one":
            count = np.maximum(count, 1)
        if scale == "percentile":
            return _percentiles(count)
        total = 1
        if scale == "users":
            total = needed(data.n_train_users)
        elif scale == "interactions":
            total = needed(data.n_train_interactions)
        elif scale == "largest":
            total = largest(count)
        return count / max(total, 1)

    return sums_within(
        of_listed(data.keep(("popularity", scale, unseen), per_item), data.lists.items), cutoffs
    )


def _over_rows(sums_of: Callable[..., Float64]) -> dict[Value, dict[str, Any]]:
    """Return what ``divisor="rows"`` changes in the declaration of a metric.

    `sums_of` adds up the values of each user's listed items.
    """

    def add_up(
        data: ListData,
        cutoff: int,
        weights: Int64 | None,
        *,
        divisor: str,
        unseen: str = "one",
        **parameters: Any,
    ) -> Summed:
        cutoffs = np.array([cutoff])
        sums = sums_of(data, cutoffs, unseen=unseen, **parameters)[:, 0]
        counts = _counts(data, cutoffs, seen_only=unseen == "dropped")[:, 0]
        if weights is not None:
            sums, counts = sums * weights, counts * weights
        return Summed(None, np.array([sums.sum(), counts.sum()], np.float64))

    return {"rows": {"over_users": True, "adds_up": AddsUp(add_up, ratio_of_totals)}}


@list_metric(
    title="Novelty (mean inverse user frequency)",
    formula="mean over the first k items of -log2(the item's training users / users)",
    source="Zhou et al. 2010; Castells, Vargas & Wang 2011",
    side=("train",),
    order_free=True,
    upper=np.inf,
    parameters={
        "probability": Parameter(
            "The probability that an item is known.",
            choices={
                "users": "the item's training users / users",
                "interactions": "interactions with the item / interactions",
            },
        ),
        "unseen": Parameter(
            "What an item without training users adds to the sum.",
            choices={
                "one": "as much as an item with one training user",
                "dropped": "nothing; the item is not counted",
                "zero": "0",
                "epsilon": f"as much as an item with {EPSILON:g} training users (this number is "
                "added to the count of every item)",
                "largest": "as much as the rarest training item",
            },
            for_conventions=True,
        ),
        "divisor": DIVISOR,
        "normalised": Parameter("The value is divided by log2(users), its maximum."),
    },
    when={"unseen": {"dropped": {"without": ("seen",)}}, "divisor": _over_rows(_novelty)},
)
def novelty(
    data: ListData,
    cutoffs: Int64,
    weights: Int64 | None = None,
    *,
    probability: str = "users",
    unseen: str = "one",
    divisor: str = "list",
    normalised: bool = False,
) -> Float64:
    """Mean surprise of a random user at the listed items, in bits; 0 or more.

    The value is the ``mean of -log2 p(i)`` over the first k items, where ``p(i)`` is the share of
    training users who interacted with item i. It is also called mean self-information or mean
    inverse user frequency.

    References
    ----------
    Zhou, Kuscsik, Liu, Medo, Wakeling & Zhang 2010, Solving the apparent diversity-accuracy
    dilemma of recommender systems. Castells, Vargas & Wang 2011, Novelty and diversity metrics
    for recommender systems.
    """
    sums = _novelty(data, cutoffs, probability=probability, unseen=unseen, normalised=normalised)
    return _divided(data, sums, cutoffs, weights, divisor, seen_only=unseen == "dropped")


@list_metric(
    title="Expected popularity complement",
    formula="sum over j <= k of d(j) rel(j) (1 - the item's training users / users) / "
    "sum over j <= k of d(j)",
    source="Vargas & Castells 2011",
    side=("train",),
    upper=np.inf,
    parameters={
        "discount": Parameter(
            "The weight d(j) of place j.",
            choices={
                "log": "1 / log2(j + 1)",
                "geometric": "patience^(j - 1)",
                "none": "1",
            },
        ),
        "patience": Parameter(
            "The probability that a user goes on to the next place, if discount=geometric.",
            above=0,
            below=1,
            examples=(0.5,),
        ),
        "novelty": Parameter(
            "The weight of a relevant item.",
            choices={
                "complement": "1 - the item's training users / users",
                "discovery": "-log2(interactions with the item / interactions), which gives "
                "expected free discovery (EFD); an item without training users counts like the "
                "rarest training item",
            },
        ),
        "any": Parameter("All listed items count, whether they are relevant or not."),
    },
    when={
        "novelty": {"complement": {"upper": 1.0}},
        "any": {False: {"side": ("test",), "without": ("relevant",)}},
    },
)
def epc(
    data: ListData,
    cutoffs: Int64,
    *,
    discount: str = "log",
    patience: float = 0.85,
    novelty: str = "complement",
    any: bool = False,
) -> Float64:
    """Mean novelty of the relevant items that a user sees on the way down the list; in [0, 1].

    ``C * sum over j <= k of d(j) rel(j) (1 - p(i_j))`` with ``C = 1 / sum over j <= k of d(j)``,
    where i_j is the item at place j, d(j) is the discount of that place, rel(j) is 1 if the item is
    relevant and 0 otherwise, and p(i) is the share of training users who interacted with item i.

    References
    ----------
    Vargas & Castells 2011, Rank and relevance in novelty and diversity metrics for recommender
    systems.
    """
    if novelty == "complement":
        of_item = 1 - needed(data.item_users) / max(needed(data.n_train_users), 1)
    else:
        of_item = _bits(data, "interactions", "largest")
    items = data.lists.items
    worth = of_listed(of_item, items)
    weight = (items >= 0) * places_discount(items.shape[1], discount, patience)
    counted = worth * weight if any else worth * weight * relevant_places(data)
    return ratio(sums_within(counted, cutoffs), sums_within(weight, cutoffs))


@list_metric(
    title="Average recommendation popularity",
    formula="mean number of training users of the first k items",
    source="Yin et al. 2012; Abdollahpouri, Burke & Mobasher 2017",
    other_names=("arp",),
    side=("train",),
    higher_is_better=False,
    order_free=True,
    upper=np.inf,
    parameters={
        "scale": Parameter(
            "The popularity of an item.",
            choices={
                "count": "its number of training users",
                "users": "its number of training users / users",
                "interactions": "its number of training users / interactions",
                "largest": "its number of training users / that of the most popular item",
                "percentile": "its rank among the training items, counted from the least popular, "
                "divided by the number of training items; equally popular items share their mean "
                "rank",
            },
        ),
        "unseen": Parameter(
            "What an item without training users adds to the sum.",
            choices={
                "zero": "0",
                "dropped": "nothing; the item is not counted",
                "one": "as much as an item with one training user",
            },
            for_conventions=True,
        ),
        "divisor": DIVISOR,
    },
    when={
        "scale": {
            part: {"upper": 1.0} for part in ("users", "interactions", "largest", "percentile")
        },
        "unseen": {"dropped": {"without": ("seen",)}},
        "divisor": _over_rows(_popularity),
    },
)
def popularity(
    data: ListData,
    cutoffs: Int64,
    weights: Int64 | None = None,
    *,
    scale: str = "count",
    unseen: str = "zero",
    divisor: str = "list",
) -> Float64:
    """Mean popularity of the listed items: their mean number of training users; 0 or more.

    References
    ----------
    Yin, Cui, Li, Yao & Chen 2012, Challenging the long tail recommendation. Abdollahpouri, Burke
    & Mobasher 2017, Controlling popularity bias in learning-to-rank recommendation ("ARP").
    """
    sums = _popularity(data, cutoffs, scale=scale, unseen=unseen)
    return _divided(data, sums, cutoffs, weights, divisor, seen_only=unseen == "dropped")


@list_metric(
    title="Share of the long tail",
    formula="tail items in the first k places / items in the first k places",
    source="Anderson 2006; Abdollahpouri, Burke & Mobasher 2019",
    side=("train",),
    order_free=True,
    parameters={
        "head": Parameter(
            "The head is the set of the most popular items that account for this share of the "
            "training interactions, plus all items as popular as the last item in this set. All "
            "other items are in the tail, including items without training users.",
            above=0,
            below=1,
            examples=(0.5,),
        ),
        "tail": Parameter(
            "If set, the tail instead consists of this share of the training items (at least one "
            "item): the least popular items, lower ids first.",
            above=0,
            below=1,
            examples=(0.1, 0.5),
        ),
        "divisor": Parameter(
            "The divisor of the number of tail items.",
            choices={"list": "the number of items within k", "cutoff": "k"},
            for_conventions=True,
        ),
    },
)
def tail_share(
    data: ListData,
    cutoffs: Int64,
    *,
    head: float = 0.8,
    tail: float | None = None,
    divisor: str = "list",
) -> Float64:
    """Share of the listed items that belong to the long tail; in [0, 1].

    The tail contains every item outside the head. The head is filled with the most popular items
    until they account for 80% of the training interactions, and also contains all items that are
    as popular as the last of these.

    References
    ----------
    Anderson 2006, The long tail. Abdollahpouri, Burke & Mobasher 2019, Managing popularity bias
    in recommender systems with personalized re-ranking ("APLT").
    """

    def per_item() -> Float64:
        count = needed(data.item_users)
        if tail is None:
            falling = -np.sort(-count)
            in_head = np.cumsum(falling) - falling < head * count.sum()
            least = falling[in_head].min(initial=np.iinfo(np.int64).max)
            in_tail: Float64 = (count < least).astype(np.float64)
            return in_tail
        rising = np.argsort(count, kind="stable")
        rising = rising[count[rising] > 0]
        in_tail = np.zeros(len(count))
        in_tail[rising[: max(int(len(rising) * tail), 1)]] = 1
        return in_tail

    items = data.lists.items
    sums = sums_within(of_listed(data.keep(("tail", head, tail), per_item), items), cutoffs)
    return _divided(data, sums, cutoffs, None, divisor, seen_only=False)


def _percentiles(count: Int64) -> Float64:
    """Return each item's rank by ascending popularity, divided by the number of training items.

    Equally popular items share their mean rank, and items without training users get 0.
    """
    sorted_counts = np.sort(count[count > 0])
    below = np.searchsorted(sorted_counts, count, side="left")
    until = np.searchsorted(sorted_counts, count, side="right")
    rank = (below + until + 1) / 2 / max(len(sorted_counts), 1)
    return np.where(count > 0, rank, 0.0)


def _divided(
    data: ListData,
    sums: Float64,
    cutoffs: Int64,
    weights: Int64 | None,
    divisor: str,
    seen_only: bool,
) -> Float64:
    """Divide sums over the listed items by the number that `divisor` selects."""
    if divisor == "cutoff":
        return sums / cutoffs
    counts = _counts(data, cutoffs, seen_only)
    return pooled(sums, counts, weights) if divisor == "rows" else ratio(sums, counts)


def _counts(data: ListData, cutoffs: Int64, seen_only: bool) -> Float64:
    """Count the listed items: float64 [n_users, n_cutoffs]."""
    if seen_only:
        return sums_within(of_listed(needed(data.item_users) > 0, data.lists.items), cutoffs)
    return lengths(data.lists, cutoffs).astype(np.float64)

"""Metrics of the spread of recommendations over the catalogue, with one value for all users."""

from __future__ import annotations

import numpy as np

from recometer.arrays import Float64, Int64
from recometer.metrics.listed.data import ListData, list_metric
from recometer.metrics.listed.whole import (
    COVERAGE,
    ENTROPY,
    GINI,
    PERSONALIZATION,
    USER_COVERAGE,
    at_cutoffs,
)
from recometer.metrics.parameters import Parameter

PATIENCE = Parameter(
    "The probability that a user goes on from one place to the next, so that place j has the "
    "weight patience^(j - 1). By default, all places have the same weight.",
    above=0,
    below=1,
    examples=(0.85,),
)


@list_metric(
    title="Catalogue coverage",
    formula="distinct items in the first k places of all lists / items of the catalogue",
    source="Ge, Delgado-Battenfeld & Jannach 2010; Herlocker et al. 2004",
    other_names=("catalog_coverage", "catalogue_coverage", "item_coverage"),
    over_users=True,
    adds_up=COVERAGE,
    order_free=True,
    upper=np.inf,
    parameters={
        "numerator": Parameter(
            "The items that are counted.",
            choices={"distinct": "every listed item", "trained": "listed training items"},
            for_conventions=True,
        ),
        "denominator": Parameter(
            "The divisor of the count.",
            choices={
                "catalogue": "the items that could have been recommended",
                "train": "the training items",
                "padded": "the catalogue and one padding entry, which is not an item but may be "
                "listed",
                "one": "1, so that the value is a count",
            },
            for_conventions=True,
        ),
        "users": Parameter(
            "The users whose lists count.",
            choices={"all": "all users", "relevant": "users with a relevant item"},
            for_conventions=True,
        ),
    },
    when={
        "numerator": {"trained": {"side": ("train",)}},
        "denominator": {
            "catalogue": {"side": ("catalogue",), "upper": 1.0},
            "padded": {"side": ("catalogue",), "upper": 1.0},
            "train": {"side": ("train",)},
        },
        "users": {"relevant": {"side": ("test",)}},
    },
)
def coverage(
    data: ListData,
    cutoffs: Int64,
    weights: Int64 | None = None,
    *,
    numerator: str = "distinct",
    denominator: str = "catalogue",
    users: str = "all",
) -> Float64:
    """Share of the catalogue that is recommended to at least one user; in [0, 1].

    ``|union of the first k items of all lists| / |catalogue|``. With ``denominator=train``, the
    value can exceed 1 if lists contain items without training interactions.

    References
    ----------
    Herlocker, Konstan, Terveen & Riedl 2004, Evaluating collaborative filtering recommender
    systems. Ge, Delgado-Battenfeld & Jannach 2010, Beyond accuracy: evaluating recommender
    systems by coverage and serendipity.
    """
    return at_cutoffs(
        COVERAGE,
        data,
        cutoffs,
        weights,
        numerator=numerator,
        denominator=denominator,
        users=users,
    )


@list_metric(
    title="User coverage",
    formula="users whose list has at least k items / users",
    source="Ge, Delgado-Battenfeld & Jannach 2010",
    over_users=True,
    adds_up=USER_COVERAGE,
    order_free=True,
    parameters={
        "least": Parameter(
            "The number of items that a list must contain to count.",
            choices={"full": "k", "any": "one"},
        )
    },
)
def user_coverage(
    data: ListData, cutoffs: Int64, weights: Int64 | None = None, *, least: str = "full"
) -> Float64:
    """Share of the users who get a full list of k items; in [0, 1].

    References
    ----------
    Ge, Delgado-Battenfeld & Jannach 2010.
    """
    return at_cutoffs(USER_COVERAGE, data, cutoffs, weights, least=least)


@list_metric(
    title="Gini index of exposure",
    formula="sum over i of (2 i - n - 1) x(i) / (n * sum of x), x: how often each of the n items "
    "of the catalogue is listed, ascending",
    source="Fleder & Hosanagar 2009",
    over_users=True,
    adds_up=GINI,
    higher_is_better=False,
    parameters={
        "support": Parameter(
            "The items that are counted.",
            choices={
                "catalogue": "all items that could have been recommended",
                "padded": "all items that could have been recommended and one padding entry, "
                "which is not an item but may be listed",
                "listed": "only items that are in a list",
            },
            for_conventions=True,
        ),
        "divisor": Parameter(
            "The number that replaces n in the denominator.",
            choices={"items": "n", "others": "n - 1, so that a value of 1 is possible"},
            for_conventions=True,
        ),
        "complement": Parameter(
            "The value is 1 minus the index, so that a higher value means a more even spread."
        ),
        "patience": PATIENCE,
    },
    when={
        "support": {
            "catalogue": {"side": ("catalogue",)},
            "padded": {"side": ("catalogue",)},
        },
        "complement": {True: {"higher_is_better": True}},
        "patience": {None: {"order_free": True}},
    },
)
def gini(
    data: ListData,
    cutoffs: Int64,
    weights: Int64 | None = None,
    *,
    support: str = "catalogue",
    divisor: str = "items",
    complement: bool = False,
    patience: float | None = None,
) -> Float64:
    """Inequality of the items' shares of the listed places; in [0, 1], where 0 means equal shares.

    ``sum over i of (2 i - n - 1) x(i) / (n * sum of x)``, where ``x(1) <= ... <= x(n)`` are the
    sorted counts of how often each item of the catalogue is in the first k places of a list.

    References
    ----------
    Fleder & Hosanagar 2009, Blockbuster culture's next rise or fall. Raj & Ekstrand 2022,
    Measuring fairness in ranked results (weights of places).
    """
    return at_cutoffs(
        GINI,
        data,
        cutoffs,
        weights,
        support=support,
        divisor=divisor,
        complement=complement,
        patience=patience,
    )


@list_metric(
    title="Shannon entropy of exposure",
    formula="- sum over items of p log2 p, p: an item's share of all listed places",
    source="Shannon 1948; Adomavicius & Kwon 2012",
    over_users=True,
    adds_up=ENTROPY,
    order_free=True,
    upper=np.inf,
    parameters={
        "unit": Parameter("The base of the logarithm.", choices={"bits": "2", "nats": "e"}),
        "divisor": Parameter(
            "The divisor of the entropy.",
            choices={
                "none": "1",
                "largest": "the logarithm of the size of the catalogue, so that the value is in "
                "[0, 1]",
                "listed": "the number of distinct listed items",
            },
        ),
    },
    when={"divisor": {"largest": {"side": ("catalogue",), "upper": 1.0}}},
)
def entropy(
    data: ListData,
    cutoffs: Int64,
    weights: Int64 | None = None,
    *,
    unit: str = "bits",
    divisor: str = "none",
) -> Float64:
    """How evenly recommendations are spread over the items, as Shannon entropy in bits.

    The value is ``- sum of p log2 p``, where p is an item's share of the first k places of all
    lists. It is 0 if all places hold the same item, and at most the logarithm of the number of
    items.

    References
    ----------
    Shannon 1948, A mathematical theory of communication. Adomavicius & Kwon 2012, Improving
    aggregate recommendation diversity using ranking-based techniques.
    """
    return at_cutoffs(ENTROPY, data, cutoffs, weights, unit=unit, divisor=divisor)


@list_metric(
    title="Personalisation",
    formula="1 - mean over pairs of users of the number of items in the first k places of both "
    "lists / k",
    source="Zhou et al. 2010",
    other_names=("personalisation",),
    over_users=True,
    adds_up=PERSONALIZATION,
    order_free=True,
    upper=2.0,
    parameters={
        "overlap": Parameter(
            "The similarity of two lists.",
            choices={
                "cutoff": "common items / k",
                "cosine": "common items / the square root of the product of the two lengths, which "
                "takes account of short lists",
                "matrix": "common items / k, computed as a matrix whose diagonal is assumed to be "
                "1, although it is less for short lists",
            },
        )
    },
    when={"overlap": {"cutoff": {"upper": 1.0}, "cosine": {"upper": 1.0}}},
)
def personalization(
    data: ListData, cutoffs: Int64, weights: Int64 | None = None, *, overlap: str = "cutoff"
) -> Float64:
    """Mean difference between the lists of two users, over all pairs of users; in [0, 1].

    ``1 - mean of |A and B| / k``, where A and B are the first k items of two lists. It is 0 if
    everybody gets the same items, and 1 if no item is recommended twice. Users without a list are
    left out. A user drawn several times by resampling (`weights`) is not paired with their own
    copies.

    References
    ----------
    Zhou, Kuscsik, Liu, Medo, Wakeling & Zhang 2010, Solving the apparent diversity-accuracy
    dilemma of recommender systems ("Hamming distance").
    """
    return at_cutoffs(PERSONALIZATION, data, cutoffs, weights, overlap=overlap)

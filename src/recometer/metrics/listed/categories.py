"""Metrics that measure how the items of a list are spread over categories."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from recometer.arrays import Float64, Int64, begins, largest
from recometer.metrics.listed.data import (
    ListData,
    lengths,
    list_metric,
    listing,
    log2,
    log_discount,
    needed,
    of_listed,
    powers,
    relevant_places,
    sums_within,
    table_of,
)
from recometer.metrics.parameters import Parameter
from recometer.metrics.sums import ratio
from recometer.ragged import among, pairs, take, users_of
from recometer.ranks import number_runs
from recometer.ties import sum_by_user

if TYPE_CHECKING:
    import scipy.sparse


UNIT = Parameter("The base of the logarithm.", choices={"bits": "2", "nats": "e"})


@list_metric(
    title="Entropy of the categories in the list",
    formula="- sum over categories of q log2 q, q: a category's share of the first k items",
    source="Shannon 1948; Steck 2018 (shares)",
    side=("categories",),
    without=("categories",),
    order_free=True,
    upper=np.inf,
    parameters={
        "unit": UNIT,
        "normalised": Parameter(
            "The value is divided by the logarithm of the number of "
            "categories, so that it is in [0, 1]."
        ),
    },
    when={"normalised": {True: {"upper": 1.0}}},
)
def category_entropy(
    data: ListData, cutoffs: Int64, *, unit: str = "bits", normalised: bool = False
) -> Float64:
    """Shannon entropy of the categories' shares of the list, in bits; 0 or more.

    An item with n categories counts as 1 / n in each of them. An item without a category does not
    count.

    References
    ----------
    Shannon 1948, A mathematical theory of communication.
    """
    values = np.empty((data.n_users, len(cutoffs)))
    for column, cutoff in enumerate(cutoffs.tolist()):
        share = _list_shares(data, cutoff)
        terms = 0.0 - share.data * log2(share.data)
        values[:, column] = sum_by_user(_rows(share), terms, data.n_users)
    if normalised:
        return values / math.log2(max(needed(data.categories).shape[1], 2))
    return values * math.log(2) if unit == "nats" else values


@list_metric(
    title="Share of items with a category",
    formula="items in the first k places that have a category, or the category in brackets / items "
    "in the first k places",
    source="Abdollahpouri, Burke & Mobasher 2019 (for the long tail)",
    takes_group=True,
    side=("categories",),
    order_free=True,
)
def share(data: ListData, cutoffs: Int64) -> Float64:
    """Share of the listed items that have a category; in [0, 1].

    ``share@10[new]`` is the share of the first 10 items that are in the category ``new``. A higher
    value is neither better nor worse in itself.

    References
    ----------
    Abdollahpouri, Burke & Mobasher 2019, Managing popularity bias in recommender systems with
    personalized re-ranking (APLT).
    """
    has_category = np.diff(needed(data.categories).indptr) > 0
    counts = sums_within(of_listed(has_category, data.lists.items), cutoffs)
    return ratio(counts, lengths(data.lists, cutoffs).astype(float))


@list_metric(
    title="Subtopic recall",
    formula="categories of the user's relevant items that occur in the first k items / categories "
    "of the user's relevant items",
    source="Zhai, Cohen & Lafferty 2003",
    side=("categories",),
    order_free=True,
    upper=np.inf,
    parameters={
        "denominator": Parameter(
            "The categories to cover.",
            choices={
                "relevant": "the categories of the user's relevant items",
                "all": "all categories",
                "cutoff": "all categories, but the number of those in the list is divided by k",
            },
        ),
        "relevant": Parameter(
            "Of the first k items, only relevant items count.", for_conventions=True
        ),
    },
    when={
        "denominator": {
            "relevant": {
                "side": ("test",),
                "without": ("relevant", "relevant_categories"),
                "upper": 1.0,
            },
            "all": {"upper": 1.0},
        },
        "relevant": {True: {"side": ("test",), "without": ("relevant",)}},
    },
)
def subtopic_recall(
    data: ListData, cutoffs: Int64, *, denominator: str = "relevant", relevant: bool = False
) -> Float64:
    """Share of the relevant items' categories that the list covers; in [0, 1].

    ``|categories in both the first k items and T| / |categories in T|``, where T is the set of the
    user's relevant items.

    References
    ----------
    Zhai, Cohen & Lafferty 2003, Beyond independent relevance: methods and evaluation metrics
    for subtopic retrieval.
    """
    categories = needed(data.categories)
    counts = np.empty((data.n_users, len(cutoffs)))
    ones = np.ones(data.lists.n_items)
    relevant_categories = None
    if denominator == "relevant":
        relevant_categories = _relevant(data) @ categories
    for column, cutoff in enumerate(cutoffs.tolist()):
        listed = listing(data, cutoff, ones)
        covered = (listed.multiply(_relevant(data)).tocsr() if relevant else listed) @ categories
        if relevant_categories is not None:
            covered = covered.multiply(relevant_categories).tocsr()
        counts[:, column] = np.diff(covered.indptr)
    if relevant_categories is not None:
        return ratio(counts, np.diff(relevant_categories.indptr)[:, np.newaxis])
    return counts / (cutoffs if denominator == "cutoff" else max(categories.shape[1], 1))


@list_metric(
    title="Alpha-NDCG",
    formula="DCG / DCG of the best order; DCG: sum over j <= k of rel(j) times the sum over the "
    "categories c of item j of (1 - alpha)^(relevant items with c before j) / log2(j + 1)",
    source="Clarke et al. 2008",
    side=("test", "categories"),
    without=("relevant", "relevant_categories"),
    parameters={
        "alpha": Parameter(
            "The share by which the gain of a category falls with each relevant item that has it.",
            above=0,
            below=1,
            examples=(0.75,),
        )
    },
)
def alpha_ndcg(data: ListData, cutoffs: Int64, *, alpha: float = 0.5) -> Float64:
    """Normalised discounted gain that rewards relevant items from new categories; in [0, 1].

    The gain of a relevant item is the sum over its categories of ``(1 - alpha)^m``, where m is the
    number of earlier relevant items in this category. As in Clarke et al., the best order is found
    greedily: each place takes the item with the largest gain or, if several items are tied, the one
    with the lowest id. If a better order exists, the quotient may exceed 1; in that case, the value
    is 1.

    References
    ----------
    Clarke, Kolla, Cormack, Vechtomova, Ashkan, Büttcher & MacKinnon 2008, Novelty and diversity
    in information retrieval evaluation.
    """
    categories = needed(data.categories)
    n_categories = categories.shape[1]
    items, relevant = data.lists.items, relevant_places(data)
    user, place = np.nonzero(relevant)
    row, category = _categories_of(categories, items[relevant])
    key = pairs(user[row], category, n_categories)
    order = np.argsort(key, kind="stable")  # keeps each user's places in ascending order
    first = np.flatnonzero(begins(key[order]))
    before = np.empty(len(key), np.int64)
    _, before[order] = number_runs(np.diff(first, append=len(key)))
    power = powers(1 - alpha, items.shape[1])[before]
    gain = sum_by_user(user[row] * items.shape[1] + place[row], power, items.size)
    sums = sums_within(gain.reshape(items.shape) * log_discount(items.shape[1]), cutoffs)
    return ratio(sums, _best_sums(data, cutoffs, 1 - alpha))


@list_metric(
    title="Miscalibration",
    formula="sum over categories of p log2(p / ((1 - a) q + a p)), p: a category's share of the "
    "user's training items, q: its share of the first k items",
    source="Steck 2018",
    side=("train", "categories"),
    without=("history", "history_categories", "categories"),
    higher_is_better=False,
    order_free=True,
    upper=np.inf,
    parameters={
        "divergence": Parameter(
            "The divergence between the shares in the list and in the history.",
            choices={
                "kl": "Kullback-Leibler, with the list smoothed by the history",
                "js": "Jensen-Shannon: the mean divergence of both from their mean, "
                "without smoothing",
            },
        ),
        "smoothing": Parameter(
            "The weight a of the history, if divergence=kl.", above=0, below=1, examples=(0.1,)
        ),
        "unit": UNIT,
    },
    when={"divergence": {"js": {"upper": 1.0}}},
)
def miscalibration(
    data: ListData,
    cutoffs: Int64,
    *,
    divergence: str = "kl",
    smoothing: float = 0.01,
    unit: str = "bits",
) -> Float64:
    """Divergence of the list's categories from those of the user's history; 0 or more.

    ``KL(p || (1 - a) q + a p)`` in bits with a = 0.01, where p and q are the shares of the
    categories in the history and in the list. An item with n categories counts as 1 / n in each of
    them. An item without a category does not count.

    References
    ----------
    Steck 2018, Calibrated recommendations (RecSys).
    """
    train = needed(data.train)
    history = _shares(data, table_of(data, train, np.ones(len(train.items))))
    values = np.empty((data.n_users, len(cutoffs)))
    for column, cutoff in enumerate(cutoffs.tolist()):
        listed = _list_shares(data, cutoff)
        values[:, column] = _divergence(history, listed, divergence, smoothing)
    return values * math.log(2) if unit == "nats" else values


def _divergence(
    history: scipy.sparse.csr_array,
    listed: scipy.sparse.csr_array,
    kind: str,
    smoothing: float,
) -> Float64:
    p, q = history.data, _values_at(listed, history)
    if kind == "kl":
        smooth = (1 - smoothing) * q + smoothing * p
        return sum_by_user(_rows(history), p * log2(p / smooth), history.shape[0])
    halves = sum_by_user(_rows(history), p * log2(2 * p / (p + q)), history.shape[0])
    p, q = _values_at(history, listed), listed.data
    halves += sum_by_user(_rows(listed), q * log2(2 * q / (p + q)), history.shape[0])
    return halves / 2


def _best_sums(data: ListData, cutoffs: Int64, factor: float) -> Float64:
    """Return the sums of discounted gains in the best order, which is found greedily."""
    test, relevant = needed(data.test), needed(data.relevant)
    categories = needed(data.categories)
    rows = np.flatnonzero(relevant & (np.diff(categories.indptr)[test.items] > 0))
    user = test.user[rows]
    row, category = _categories_of(categories, test.items[rows])
    number = pairs(user[row], category, categories.shape[1])
    key, topic = np.unique(number, return_inverse=True)
    worth = np.ones(len(key))
    available = np.ones(len(rows), bool)
    begin = np.flatnonzero(begins(user))  # the first row of each user
    max_rows = largest(np.diff(begin, append=len(rows)))
    gains = np.zeros((data.n_users, min(largest(cutoffs), max_rows)))
    for step in range(gains.shape[1]):
        gain = np.where(available, sum_by_user(row, worth[topic], len(rows)), -1.0)
        best = np.maximum.reduceat(gain, begin)
        is_best = available & (gain == np.repeat(best, np.diff(begin, append=len(rows))))
        chosen = np.flatnonzero(is_best)
        chosen = chosen[begins(user[chosen])]  # each user's first row with the largest gain
        gains[user[chosen], step] = gain[chosen]
        available[chosen] = False
        was_chosen = np.zeros(len(rows), bool)
        was_chosen[chosen] = True
        # Each topic belongs to one user, whose chosen item has it at most once, so no index is
        # repeated.
        worth[topic[was_chosen[row]]] *= factor
    return sums_within(gains * log_discount(gains.shape[1]), cutoffs)


def _list_shares(data: ListData, cutoff: int) -> scipy.sparse.csr_array:
    return _shares(data, listing(data, cutoff, np.ones(data.lists.n_items)))


def _shares(data: ListData, counts: scipy.sparse.csr_array) -> scipy.sparse.csr_array:
    """Return each category's share of each user's items: [n_users, n_categories]."""
    import scipy.sparse

    categories = needed(data.categories)

    def per_item() -> scipy.sparse.csr_array:
        width = np.diff(categories.indptr)
        parts = np.reciprocal(np.repeat(width, width), dtype=np.float64)
        return scipy.sparse.csr_array(
            (parts, categories.indices, categories.indptr), shape=categories.shape
        )

    shares: scipy.sparse.csr_array = counts @ data.keep("parts of categories", per_item)
    shares.sort_indices()
    row = _rows(shares)
    total = sum_by_user(row, shares.data, shares.shape[0])
    shares.data = shares.data / total[row]
    return shares


def _relevant(data: ListData) -> scipy.sparse.csr_array:
    """Return a sparse matrix [n_users, n_items] with 1 for each relevant item."""
    test, relevant = needed(data.test), needed(data.relevant)
    side = test.rows(relevant)
    return table_of(data, side, np.ones(len(side.items)))


def _values_at(table: scipy.sparse.csr_array, entries: scipy.sparse.csr_array) -> Float64:
    """Return the values of `table` at the positions of `entries`, and 0 where it has no entry."""
    keys = pairs(_rows(entries), entries.indices, table.shape[1])
    table_keys = pairs(_rows(table), table.indices, table.shape[1])
    values = np.zeros(len(keys))
    present = among(keys, table_keys)
    values[present] = table.data[np.searchsorted(table_keys, keys[present])]
    return values


def _categories_of(categories: Any, items: Int64) -> tuple[Int64, Int64]:
    """Return one pair for each category of each item: an index in `items`, and the category."""
    indptr, entries = take(categories.indptr, items)
    return users_of(indptr), categories.indices[entries].astype(np.int64)


def _rows(table: scipy.sparse.csr_array) -> Int64:
    return np.repeat(np.arange(table.shape[0]), np.diff(table.indptr))

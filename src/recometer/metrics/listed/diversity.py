"""Metrics that measure how much the items in a list differ from each other."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from recometer.arrays import Array, Float64, Int64, slices
from recometer.metrics.listed.data import (
    ListData,
    lengths,
    list_metric,
    listing,
    needed,
    of_listed,
    sums_within,
    table_of,
)
from recometer.metrics.parameters import Parameter
from recometer.metrics.sums import ratio
from recometer.ragged import users_of
from recometer.ties import sum_by_user

if TYPE_CHECKING:
    import scipy.sparse

    Features = Float64 | scipy.sparse.csr_array


# A batch of users has at most this many feature entries, so that they fit in the cache.
BATCH = 2**18


@list_metric(
    title="Intra-list distance",
    formula="mean distance between two items over all pairs of items in the first k places",
    source="Ziegler et al. 2005; Zhang & Hurley 2008; Vargas & Castells 2011",
    other_names=("intra_list_distance", "intra_list_diversity"),
    unclear_names={"diversity": "ild@k is the mean distance between two items in a list"},
    order_free=True,
    upper=np.inf,
    parameters={
        "distance": Parameter(
            "The distance between two items.",
            choices={
                "cosine": "1 - the cosine of the angle between their features; 1 if all features "
                "of an item are 0",
                "euclidean": "the length of the difference between their features",
                "jaccard": "1 - features that both have / features that either has, counting "
                "nonzero features",
                "hamming": "the share of their features that differ",
                "differing": "the number of their features that differ",
                "categories": "1 - categories that both have / categories that either has; if each "
                "has one category, it is 0 or 1",
            },
        ),
        "average": Parameter(
            "The divisor of the sum of the distances.",
            choices={
                "pairs": "the number of pairs in the list",
                "items": "the number of items in the list",
                "cutoff": "k (k - 1) / 2 pairs; the missing pairs of a short list have a "
                "distance of 1",
            },
            for_conventions=True,
        ),
        "single": Parameter(
            "The value for a list with one item.",
            choices={"undefined": "no value", "zero": "0"},
            for_conventions=True,
        ),
        "similarity": Parameter(
            "The result is the intra-list similarity (ILS), which is 1 minus the value.",
            for_conventions=True,
        ),
    },
    when={
        "distance": {
            "cosine": {"side": ("features",), "without": ("features",), "upper": 2.0},
            "euclidean": {"side": ("features",), "without": ("features",)},
            "jaccard": {"side": ("features",), "without": ("features",), "upper": 1.0},
            "hamming": {"side": ("features",), "without": ("features",), "upper": 1.0},
            "differing": {"side": ("features",), "without": ("features",)},
            "categories": {"side": ("categories",), "without": ("categories",), "upper": 1.0},
        },
        "average": {"items": {"upper": np.inf}},
        "single": {"undefined": {"without": ("pairs",)}},
        "similarity": {True: {"lower": -np.inf, "upper": 1.0, "higher_is_better": False}},
    },
)
def ild(
    data: ListData,
    cutoffs: Int64,
    *,
    distance: str = "cosine",
    average: str = "pairs",
    single: str = "undefined",
    similarity: bool = False,
) -> Float64:
    """Mean distance between two items in the list; 0 or more, and 0 if all items are equal.

    ``2 / (n (n - 1)) * sum over pairs of d(i, j)`` over the n items in the first k places.

    References
    ----------
    Ziegler, McNee, Konstan & Lausen 2005, Improving recommendation lists through topic
    diversification (intra-list similarity). Zhang & Hurley 2008, Avoiding monotony. Vargas &
    Castells 2011, Rank and relevance in novelty and diversity metrics for recommender systems.
    """
    n = lengths(data.lists, cutoffs).astype(np.float64)
    pairs = n * (n - 1) / 2
    if distance == "cosine":
        sums = pairs - _sums_of_products(data, cutoffs, *_directions(data))
    elif distance in ("hamming", "differing"):
        sums = _sums_of_differing(data, cutoffs)
        if distance == "hamming":
            sums /= max(_features(data).shape[1], 1)
    else:
        sums = _sums_of_pairs(data, cutoffs, distance)
    if average == "pairs":
        value = ratio(sums, pairs)
    elif average == "items":
        value = ratio(sums, n)
    else:
        possible = np.broadcast_to(cutoffs * (cutoffs - 1) / 2, sums.shape)
        value = 1 - ratio(pairs - sums, possible)
        value[n < 2] = 0  # lists without a pair get 0, regardless of `single`
    return 1 - value if similarity else value


def mean_over_pairs(
    data: ListData, cutoffs: Int64, distance: Callable[[Int64, Int64], Float64]
) -> Float64:
    """Average a custom distance over the pairs of items in the first k places.

    Parameters
    ----------
    data, cutoffs
        The arguments of a metric's function.
    distance
        A function that takes two arrays of item positions (int64 [n]) and returns the distance of
        each pair (float64 [n]).

    Returns
    -------
    float64 [n_users, n_cutoffs]
        The value is 0 for lists with fewer than two items. To make the metric undefined for these
        lists, declare it with ``without=("pairs",)``.
    """
    items = data.lists.items
    sums = np.zeros(items.shape)
    for place in range(1, items.shape[1]):
        users = np.flatnonzero(items[:, place] >= 0)
        for other in range(place):
            sums[users, place] += distance(items[users, other], items[users, place])
    n = lengths(data.lists, cutoffs).astype(np.float64)
    return ratio(sums_within(sums, cutoffs), n * (n - 1) / 2)


def history_similarity(data: ListData) -> Float64:
    """Return the mean cosine similarity of each listed item to the user's training items.

    The result is float64 [n_users, width]; it is 0 beyond a list's end, and for users without
    training items.
    """
    features, scale = _directions(data)
    train, items = needed(data.train), data.lists.items
    n_history = np.diff(train.indptr)
    worth = scale[train.items] / np.repeat(n_history, n_history)
    history: Any = table_of(data, train, worth) @ features
    similarities = np.zeros(items.shape)
    for place in range(items.shape[1]):
        users = np.flatnonzero(items[:, place] >= 0)
        listed = items[users, place]
        if isinstance(features, np.ndarray):
            product = np.einsum("uf,uf->u", features[listed], history[users])
        else:
            product = features[listed].multiply(history[users]).sum(axis=1)
        similarities[users, place] = product * scale[listed]
    return similarities


def _directions(data: ListData) -> tuple[Features, Float64]:
    """Return features without NaN, and 1 / the norm of each item's features (0 if all are 0)."""
    features = _features(data)

    def per_item() -> Float64:
        length = np.sqrt(_squares(features))
        # A row of NaN makes a user's value undefined, but must not affect other users.
        return ratio(np.ones(len(length)), np.nan_to_num(length))

    without_nan: Features = data.keep("features without NaN", lambda: _without_nan(features))
    return without_nan, data.keep("one by length", per_item)


def _sums_of_differing(data: ListData, cutoffs: Int64) -> Float64:
    """Add up the number of differing features over all pairs of listed items.

    If two items have a and b nonzero features, the number of features that differ is a + b, minus
    the features that are nonzero in both, minus the features that are nonzero and equal in both.
    """
    import scipy.sparse

    nonzero, values = data.keep("features as values", lambda: _as_values(_features(data)))
    ones = np.ones(data.lists.n_items)
    width = np.diff(nonzero.indptr).astype(np.float64)
    n = lengths(data.lists, cutoffs).astype(np.float64)
    sizes = sums_within(of_listed(width, data.lists.items), cutoffs)
    both = _sums_of_products(data, cutoffs, scipy.sparse.csr_array(nonzero), ones)
    return (n - 1) * sizes - both - _sums_of_products(data, cutoffs, values, ones)


def _sums_of_products(
    data: ListData,
    cutoffs: Int64,
    features: Features,
    scale: Float64,
) -> Float64:
    """Add up the inner products of features times `scale` over all pairs of listed items.

    The squared norm of the sum of a list's vectors is ``sum of squares + 2 * sum of products``.
    """
    own = _squares(features) * scale**2
    sums = np.empty((data.n_users, len(cutoffs)))
    for column, cutoff in enumerate(cutoffs.tolist()):
        # The sparse product adds a list's vectors in a fixed order.
        total = listing(data, cutoff, scale) @ features
        sums[:, column] = _squares(total)
    return (sums - sums_within(of_listed(own, data.lists.items), cutoffs)) / 2


def _sums_of_pairs(data: ListData, cutoffs: Int64, distance: str) -> Float64:
    """Add up the distances of all pairs, for a distance that is not a sum over features."""
    items = data.lists.items
    features = needed(data.categories) if distance == "categories" else _features(data)
    sums = np.zeros(items.shape)
    for users, vectors in _batches(items, features, distance != "euclidean"):
        if distance == "euclidean":
            # Do not use a matrix product: its last bits depend on the processor, and
            # cancellation would lose digits.
            for place in range(1, items.shape[1]):
                differences = vectors[:, :place] - vectors[:, place : place + 1]
                length = np.sqrt(np.einsum("uid,uid->ui", differences, differences))
                sums[users, place] = length.sum(axis=1)
        else:
            # These products are counts, which are exact in any order of summation.
            both = vectors @ vectors.transpose(0, 2, 1)
            both = both.astype(np.float64)
            own = np.einsum("uii->ui", both)
            either = own[:, :, np.newaxis] + own[:, np.newaxis, :] - both
            differences = 1 - np.divide(both, either, out=np.ones(both.shape), where=either > 0)
            sums[users] = np.triu(differences, 1).sum(axis=1)
    sums[items < 0] = 0
    return sums_within(np.nan_to_num(sums), cutoffs)


def _batches(items: Int64, features: Features, binary: bool) -> Iterator[tuple[slice, Array]]:
    """Yield the features of the listed items in batches of users: [n_batch, width, n_features].

    For sparse features, only columns in which one of the user's listed items is nonzero are kept.
    With `binary`, nonzero values are replaced by 1.
    """
    n_users, width = items.shape
    if isinstance(features, np.ndarray):
        n_columns = features.shape[1]
    else:
        n_columns = width * int(np.diff(features.indptr).max(initial=0))
    for users in slices(n_users, BATCH // max(width * n_columns, 1)):
        listed = items[users]
        vectors: Array
        vectors = (
            features[listed] if isinstance(features, np.ndarray) else _compact(features, listed)
        )
        yield users, np.not_equal(vectors, 0).astype(np.float32) if binary else vectors


def _features(data: ListData) -> Features:
    return cast("Features", needed(data.features))


def _compact(features: Any, items: Int64) -> Float64:
    """Return rows of sparse features as [n_users, width, n_columns], without unused columns."""
    n_users, width = items.shape
    rows = features[np.maximum(items, 0).ravel()]
    cell = np.repeat(np.arange(n_users * width), np.diff(rows.indptr))
    user, place = np.divmod(cell, width)
    column, number = np.unique(user * features.shape[1] + rows.indices, return_inverse=True)
    owner = column // features.shape[1]
    begin = np.searchsorted(owner, np.arange(n_users + 1))
    vectors = np.zeros((n_users, width, int(np.diff(begin).max())))
    vectors[user, place, number - begin[user]] = rows.data
    return vectors


def _squares(table: Any) -> Float64:
    """Return the squared norm of each row of `table`."""
    if isinstance(table, np.ndarray):
        squares: Float64 = np.einsum("ij,ij->i", table, table)
        return squares
    row = users_of(table.indptr)
    return sum_by_user(row, np.asarray(table.data, np.float64) ** 2, table.shape[0])


def _without_nan(features: Features) -> Features:
    if isinstance(features, np.ndarray) and np.isnan(features).any():
        return np.nan_to_num(features)
    return features


def _as_values(
    features: Features,
) -> tuple[scipy.sparse.csr_array, scipy.sparse.csr_array]:
    """Mark nonzero features by feature in one table, and by (feature, value) pair in another."""
    import scipy.sparse

    table = scipy.sparse.csr_array(features)
    table.eliminate_zeros()
    ones = np.ones(table.nnz)
    nonzero = scipy.sparse.csr_array((ones, table.indices, table.indptr), shape=table.shape)
    order = np.lexsort((table.data, table.indices))
    column, value = table.indices[order], table.data[order]
    new = np.ones(len(order), np.int64)
    new[1:] = (column[1:] != column[:-1]) | (value[1:] != value[:-1])
    number = np.empty(len(order), np.int64)
    number[order] = np.cumsum(new) - 1
    shape = (table.shape[0], int(new.sum()))
    return nonzero, scipy.sparse.csr_array((ones, number, table.indptr), shape=shape)

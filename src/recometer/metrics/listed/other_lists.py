"""Metrics that compare lists with a baseline's lists: overlap, surprise and serendipity."""

from __future__ import annotations

import numpy as np

from recometer.arrays import Array, Bool, Float64, Int64
from recometer.metrics.listed.data import (
    ListData,
    history_places,
    lengths,
    list_metric,
    needed,
    of_listed,
    relevant_places,
    sums_within,
)
from recometer.metrics.listed.diversity import history_similarity
from recometer.metrics.parameters import Parameter
from recometer.metrics.sums import ratio

DIVISOR = Parameter(
    "The divisor of the sum over the listed items.",
    choices={"list": "the number of items", "cutoff": "k, even if the list is shorter"},
    for_conventions=True,
)


@list_metric(
    title="Overlap with other lists",
    formula="items that are in the first k places of both the list and the baseline's list / k",
    source="Fagin, Kumar & Sivakumar 2003",
    side=("baseline",),
    without=("baseline",),
    order_free=True,
    parameters={
        "denominator": Parameter(
            "The divisor of the number of common items.",
            choices={
                "cutoff": "k",
                "shorter": "the number of items in the shorter list",
                "union": "the number of items in either list, which gives the Jaccard index",
            },
        )
    },
)
def overlap(data: ListData, cutoffs: Int64, *, denominator: str = "cutoff") -> Float64:
    """Share of the first k items that are also in the baseline's first k items; in [0, 1].

    References
    ----------
    Fagin, Kumar & Sivakumar 2003, Comparing top k lists.
    """
    common = sums_within(_new_in_common(data), cutoffs)
    if denominator == "cutoff":
        return common / cutoffs
    length, baseline_length = lengths(data.lists, cutoffs), lengths(needed(data.baseline), cutoffs)
    if denominator == "shorter":
        return ratio(common, np.minimum(length, baseline_length))
    return ratio(common, length + baseline_length - common)


@list_metric(
    title="Rank-biased overlap with other lists",
    formula="(1 - p) * sum over d of p^(d - 1) X(d) / d, X(d): the items that are in the first d "
    "places of both the list and the baseline's list; beyond k, X(d) / d is constant",
    source="Webber, Moffat & Zobel 2010",
    side=("baseline",),
    without=("baseline",),
    parameters={
        "p": Parameter(
            "The probability that a user goes on from one depth to the next.",
            above=0,
            below=1,
            examples=(0.5,),
        ),
        "rest": Parameter(
            "The contribution of depths beyond k or beyond the ends of the lists.",
            choices={
                "extrapolated": "X(d) / d keeps its value from the last known depth (RBO_EXT)",
                "nothing": "0, even if the longer list has ended",
            },
        ),
    },
)
def rbo(data: ListData, cutoffs: Int64, *, p: float = 0.9, rest: str = "extrapolated") -> Float64:
    """Similarity of a list to the baseline's, with most weight on the first places; in [0, 1].

    Let s and l be the lengths of the shorter and the longer list, and X(d) the number of items that
    are in the first d places of both. The value is ``(1 - p)/p * (sum for d = 1 .. l of
    X(d)/d p^d + sum for d = s+1 .. l of X(s) (d - s)/(s d) p^d) + ((X(l) - X(s))/l + X(s)/s) p^l``.

    References
    ----------
    Webber, Moffat & Zobel 2010, A similarity measure for indefinite rankings, equation 32.
    """
    new = _new_in_common(data)
    length, baseline_length = data.lists.lengths, needed(data.baseline).lengths
    values = np.empty((data.n_users, len(cutoffs)))
    for column, cutoff in enumerate(cutoffs.tolist()):
        added = new[:, :cutoff]
        common = np.cumsum(added, axis=1)
        depth = np.arange(1, common.shape[1] + 1)
        power = np.cumprod(np.full(len(depth), p))
        short = np.minimum(np.minimum(length, baseline_length), cutoff)[:, np.newaxis]
        long = np.minimum(np.maximum(length, baseline_length), cutoff)[:, np.newaxis]
        agreement = common / depth
        if rest == "nothing":
            terms = np.where(depth <= long, agreement * power, 0.0)
            values[:, column] = (1 - p) / p * _total(terms, cutoff)
            continue
        until_short = _total(added * (depth <= short), cutoff)[:, np.newaxis]
        until_long = _total(added, cutoff)[:, np.newaxis]
        share = ratio(until_short, short)
        agreement += share * np.maximum(depth - short, 0) / depth
        reached = ratio(until_long - until_short, long) + share
        terms = np.where(depth <= long, agreement * power, 0.0)
        last = np.concatenate([[1.0], power])[long]
        values[:, column] = (1 - p) / p * _total(terms, cutoff) + (reached * last)[:, 0]
    return values


@list_metric(
    title="Unexpectedness",
    formula="items in the first k places that are not in the baseline's first k places / items in "
    "the first k places",
    source="Murakami, Mori & Orihara 2008; Ge, Delgado-Battenfeld & Jannach 2010",
    order_free=True,
    parameters={
        "expected": Parameter(
            "The items that are expected.",
            choices={
                "baseline": "the first k items of the baseline's list",
                "train": "the user's training items",
            },
        ),
        "divisor": DIVISOR,
    },
    when={
        "expected": {
            "baseline": {"side": ("baseline",), "without": ("baseline",)},
            "train": {"side": ("train",)},
        }
    },
)
def unexpectedness(
    data: ListData, cutoffs: Int64, *, expected: str = "baseline", divisor: str = "list"
) -> Float64:
    """Share of the listed items that a baseline would not list; in [0, 1].

    With ``divisor=cutoff``, the missing places of a short list count as unexpected items.

    References
    ----------
    Murakami, Mori & Orihara 2008, Metrics for evaluating the serendipity of recommendation
    lists. Ge, Delgado-Battenfeld & Jannach 2010, Beyond accuracy.
    """
    expected_places = history_places(data) if expected == "train" else _new_in_common(data)
    n_expected = sums_within(expected_places, cutoffs)
    if divisor == "cutoff":
        return 1 - n_expected / cutoffs
    n = lengths(data.lists, cutoffs)
    return 1 - ratio(n_expected, n)


@list_metric(
    title="Serendipity",
    formula="mean over the first k items of rel(j) (1 - e(j)), e(j): 1 if item j is among the "
    "baseline's first k items, else 0",
    source="Murakami, Mori & Orihara 2008; Ge, Delgado-Battenfeld & Jannach 2010",
    parameters={
        "expected": Parameter(
            "The degree e(j) to which item j is expected.",
            choices={
                "baseline": "1 if it is among the first k items of the baseline's list, else 0",
                "popularity": "the share of training users who interacted with the item",
                "rank": "1 - e(j) is r(place) - r(rank by popularity), but at least 0, where r(j) "
                "= (n + 1 - j) / n; equally popular items have the same rank, and r(rank) is 0 "
                "for items without training users",
                "similarity": "the mean cosine similarity of its features to the features of "
                "the user's training items",
            },
        ),
        "any": Parameter("All items count, relevant or not."),
        "combine": Parameter(
            "How rel(j) and e(j) are combined into a value.",
            choices={
                "mean": "the mean of rel(j) (1 - e(j)) over the listed items",
                "cutoff": "the sum of rel(j) (1 - e(j)), divided by k",
                "complement": "1 - the sum of rel(j) e(j), which may be below 0",
            },
            for_conventions=True,
        ),
    },
    when={
        "expected": {
            "baseline": {"side": ("baseline",), "without": ("baseline",)},
            "popularity": {"side": ("train",)},
            "rank": {"side": ("train", "catalogue")},
            "similarity": {
                "side": ("train", "features"),
                "without": ("history", "features"),
                "upper": 2.0,
            },
        },
        "any": {False: {"side": ("test",), "without": ("relevant",)}},
        "combine": {
            "complement": {
                "side": ("test",),
                "without": ("hits",),
                "lower": -np.inf,
                "upper": np.inf,
            }
        },
    },
)
def serendipity(
    data: ListData,
    cutoffs: Int64,
    *,
    expected: str = "baseline",
    any: bool = False,
    combine: str = "mean",
) -> Float64:
    """Share of the listed items that are relevant and unexpected; in [0, 1].

    ``mean over j <= k of rel(j) (1 - e(j))``, where rel(j) is 1 if the item at place j is relevant
    and 0 otherwise. By default, e(j) is 1 if the item is among the baseline's first k items, and 0
    otherwise.

    References
    ----------
    Murakami, Mori & Orihara 2008, Metrics for evaluating the serendipity of recommendation
    lists. Ge, Delgado-Battenfeld & Jannach 2010, Beyond accuracy.
    """
    items = data.lists.items
    counted = items >= 0 if any else relevant_places(data)
    hits = sums_within(counted, cutoffs)
    if expected == "baseline":
        # Count the items that are in both lists within k, each at the later of its two places.
        expectedness = sums_within(_new_in_common(data, counted), cutoffs)
    else:
        expectedness = sums_within(np.where(counted, _expectedness(data, expected), 0.0), cutoffs)
    if combine == "complement":
        return 1 - expectedness
    divisor = cutoffs if combine == "cutoff" else lengths(data.lists, cutoffs)
    return ratio(hits - expectedness, np.broadcast_to(divisor, hits.shape))


def _expectedness(data: ListData, expected: str) -> Float64:
    """Return the degree to which each listed item is expected: float64 [n_users, width]."""
    items = data.lists.items
    if expected == "similarity":
        return history_similarity(data)
    count = needed(data.item_users)
    if expected == "popularity":
        shares: Float64 = of_listed(count / max(needed(data.n_train_users), 1), items)
        return shares
    n = max(needed(data.n_catalogue), 1)
    distinct = np.unique(count)
    rank = len(distinct) - np.searchsorted(distinct, count)
    of_item = np.where(count > 0, np.maximum(n + 1 - rank, 0) / n, 0.0)
    of_place = (n - np.arange(items.shape[1])) / n
    return 1 - np.maximum(of_place - of_listed(of_item, items), 0.0)


def _new_in_common(data: ListData, counted: Bool | None = None) -> Int64:
    """For each depth d, count the items that both lists contain by place d, but not by place d - 1.

    The result is int64 [n_users, width of the wider lists]. Only places in the mask `counted`
    count; by default, all places with an item do.
    """
    items, baseline_items = data.lists.items, needed(data.baseline).items
    width = max(items.shape[1], baseline_items.shape[1])
    numbers = np.int64(max(data.lists.n_items, needed(data.baseline).n_items))
    key, place = _numbered(items, numbers, counted)
    baseline_key, baseline_place = _numbered(baseline_items, numbers, None)
    order = np.argsort(baseline_key)
    baseline_key, baseline_place = baseline_key[order], baseline_place[order]
    baseline_row = np.minimum(np.searchsorted(baseline_key, key), max(len(baseline_key) - 1, 0))
    in_common = baseline_key[baseline_row] == key if len(baseline_key) else np.zeros(len(key), bool)
    depth = np.maximum(place[in_common], baseline_place[baseline_row[in_common]])
    cell = key[in_common] // numbers * width + depth
    return np.bincount(cell, minlength=len(items) * width).reshape(len(items), width)


def _numbered(items: Int64, numbers: np.int64, counted: Bool | None) -> tuple[Int64, Int64]:
    """Return a unique key for each (user, listed item) pair, and the item's place in the list."""
    user, place = np.nonzero(items >= 0 if counted is None else counted)
    return user * numbers + items[user, place], place


def _total(values: Array, cutoff: int) -> Float64:
    """Add up each user's values within a cut-off: float64 [n_users]."""
    return sums_within(values, np.array([cutoff]))[:, 0]

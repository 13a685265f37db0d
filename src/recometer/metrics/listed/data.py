"""The input of list metrics: lists and their side data."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Hashable
from dataclasses import field
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from recometer.arrays import Array, Bool, Float64, Int64
from recometer.errors import InternalError
from recometer.metrics.registry import metric
from recometer.metrics.sums import log2_of, ratio
from recometer.ragged import (
    OFFSETS,
    PER_ITEM,
    PER_ROW,
    Record,
    Table,
    among,
    column_sums,
    indptr_of,
    pairs,
    per_row_of,
    sums_of,
)
from recometer.ranks import TopLists

if TYPE_CHECKING:
    import scipy.sparse

Kept = TypeVar("Kept")

list_metric = functools.partial(metric, record="lists", monotone=False)


def needed(value: Kept | None) -> Kept:
    """Return side data that a metric needs, or raise an error if there are none."""
    if value is None:
        raise InternalError("A metric was requested without its side data.")
    return value


@dataclasses.dataclass(frozen=True, eq=False)
class Side(Table):
    """Items for each user who has a list, as a ragged table in CSR layout.

    Attributes
    ----------
    indptr : int64 [n_users + 1]
    items : int64 [indptr[-1]]
        Positions of items, in ascending order for each user.
    gain : float64 [indptr[-1]]
        The value of each item, or 1 if the data have no values.
    """

    indptr: Int64 = field(metadata=OFFSETS)
    items: Int64 = field(metadata=PER_ROW)
    gain: Float64 = field(metadata=PER_ROW)


@dataclasses.dataclass(frozen=True, eq=False)
class ListData(Record):
    """Lists, and the side data of list metrics. Items are identified by position.

    Fields that no metric needs are None. A metric declares its side data in the registry, and the
    code that creates a `ListData` fills in the fields.

    Attributes
    ----------
    lists : TopLists
    n_catalogue : int or None
        The number of items that could have been recommended.
    train : Side or None
        The training items of the users who have lists.
    n_train_users, n_train_interactions : int or None
        The numbers of training users and training interactions, including users without a list.
    item_users : int64 [n_items] or None
        For each item, the number of training users who interacted with it.
    test : Side or None
        The judged items of the users who have lists.
    relevant : bool [test.indptr[-1]] or None
        Whether each judged item is relevant.
    baseline : TopLists or None
        Other lists for the same users. Positions from ``lists.n_items`` on are items that occur
        only in these lists.
    categories : sparse bool [n_items, n_categories] or None
        The categories of each item (CSR).
    features : float64 [n_items, n_features] or sparse of that shape, or None
        The features of each item. A row of NaN means that the features are unknown.
    propensity : float64 [n_items] or None
        The propensity of each item.
    in_catalogue : bool [n_items] or None
        Whether each item is in the catalogue that the user passed.
    kept : dict
        Cached results that do not depend on the users.
    kept_of_users : dict
        Cached results that depend on the users, and are not passed on to data for other users.
    """

    lists: TopLists
    n_catalogue: int | None = None
    train: Side | None = None
    n_train_users: int | None = None
    n_train_interactions: int | None = None
    item_users: Int64 | None = field(default=None, metadata=PER_ITEM)
    test: Side | None = None
    relevant: Bool | None = field(default=None, metadata=per_row_of("test"))
    baseline: TopLists | None = None
    categories: scipy.sparse.csr_array | None = field(default=None, metadata=PER_ITEM)
    features: Float64 | scipy.sparse.csr_array | None = field(default=None, metadata=PER_ITEM)
    propensity: Float64 | None = field(default=None, metadata=PER_ITEM)
    in_catalogue: Bool | None = field(default=None, metadata=PER_ITEM)
    kept: dict[Hashable, Any] = field(default_factory=dict)
    kept_of_users: dict[Hashable, Any] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        if (self.test is None) != (self.relevant is None):
            raise InternalError("ListData.test and ListData.relevant must be set together.")
        super().__post_init__()

    @property
    def n_users(self) -> int:
        """The number of users."""
        return self.lists.n_users

    @property
    def n_items(self) -> int:
        """The number of item positions."""
        return self.lists.n_items

    def first(self, cutoff: int) -> Int64:
        """Return the first k items of each list: int64 [n_users, min(k, length)]."""
        return self.lists.items[:, :cutoff]

    def keep(self, name: Hashable, compute: Callable[[], Kept], *, of_users: bool = False) -> Kept:
        """Return a cached result, or compute and cache it.

        `of_users` says whether the result depends on the users.
        """
        cache = self.kept_of_users if of_users else self.kept
        if name not in cache:
            cache[name] = compute()
        result: Kept = cache[name]
        return result


def sums_within(values: Array, cutoffs: Int64) -> Float64:
    """Add up the values of the places within each cut-off: float64 [n_users, n_cutoffs].

    `values` has the shape [n_users, width], and is 0 beyond the end of a list.
    """
    n_users, width = values.shape
    if not width:
        return np.zeros((n_users, len(cutoffs)))
    # Add up in sequence, so that no sum depends on the other cut-offs, not even in its last bit.
    running = np.cumsum(values, axis=1, dtype=np.float64)
    sums: Float64 = running[:, np.minimum(cutoffs, width) - 1]
    return sums


def lengths(lists: TopLists, cutoffs: Int64) -> Int64:
    """Count the items within each cut-off: int64 [n_users, n_cutoffs]."""
    counts: Int64 = np.minimum(lists.lengths[:, np.newaxis], cutoffs)
    return counts


def of_listed(values: Array, items: Int64) -> Array:
    """Return the values of listed items, with 0 for the -1 that pads short lists."""
    return np.append(values, values.dtype.type(0))[items]


def pooled(sums: Float64, counts: Array, weights: Int64 | None) -> Float64:
    """Divide the total sum by the total count: float64 [n_cutoffs], or NaN if the count is 0."""
    if weights is not None:
        sums, counts = sums * weights[:, np.newaxis], counts * weights[:, np.newaxis]
    total = column_sums(counts)
    return np.where(total > 0, ratio(column_sums(sums), total), np.nan)


def exposures(
    data: ListData,
    cutoff: int,
    weights: Int64 | Float64 | None = None,
    discount: Float64 | None = None,
) -> Float64:
    """Count how often each item is in the first `cutoff` places of a list: float64 [n_items].

    Each occurrence is multiplied by the weight of its user and by the discount of its place.
    """
    if weights is not None:
        sums: Float64 = placed(data, cutoff, discount) @ weights.astype(np.float64)
        return sums
    items = data.first(cutoff)
    listed = items >= 0
    if discount is not None:
        worth = np.broadcast_to(discount[: items.shape[1]], items.shape)[listed]
        return sums_of(items[listed], worth, data.lists.n_items)
    return np.bincount(items[listed], minlength=data.lists.n_items).astype(np.float64)


def placed(data: ListData, cutoff: int, discount: Float64 | None) -> Any:
    """Return the discount of each item's place in each user's list: sparse [n_items, n_users].

    The result is cached, because users are resampled many times.
    """

    def build() -> Any:
        items = data.first(cutoff)
        worth = np.ones(items.shape[1]) if discount is None else discount[: items.shape[1]]
        return _listed(data, items, np.broadcast_to(worth, items.shape)[items >= 0]).T

    kind = None if discount is None else discount.tobytes()
    return data.keep(("places", cutoff, kind), build, of_users=True)


def places_discount(width: int, kind: str, patience: float) -> Float64:
    """Return the weight of each place j.

    It is 1 if `kind` is "none", 1 / log2(j + 1) if it is "log", and patience^(j - 1) otherwise.
    """
    if kind == "none":
        return np.ones(width)
    return log_discount(width) if kind == "log" else powers(patience, width)


def log_discount(width: int) -> Float64:
    """Return 1 / log2(j + 1) for the places j = 1 .. width."""
    return 1 / log2_of(np.arange(2, width + 2))


def powers(base: float, n: int) -> Float64:
    """Return base^0 .. base^(n - 1)."""
    factors = np.full(n, base)
    factors[:1] = 1
    return np.cumprod(factors)


def log2(values: Array) -> Float64:
    """Return the base-2 logarithm of positive numbers."""
    # Use math.log2, because the last bit of np.log2's result depends on the instruction set. The
    # loop is fast enough, because there are usually few distinct numbers.
    distinct, index = np.unique(values, return_inverse=True)
    logs = np.fromiter(map(math.log2, distinct.tolist()), np.float64, len(distinct))
    return logs[index].reshape(values.shape)


def relevant_places(data: ListData) -> Bool:
    """Return a mask of the list places that hold a relevant item: bool [n_users, width]."""
    test, relevant = needed(data.test), needed(data.relevant)
    return _places_with(data, test.user[relevant], test.items[relevant])


def history_places(data: ListData) -> Bool:
    """Return a mask of the list places that hold one of the user's training items."""
    train = needed(data.train)
    return _places_with(data, train.user, train.items)


def _places_with(data: ListData, user: Int64, item: Int64) -> Bool:
    items = data.lists.items
    rows = np.arange(data.n_users)[:, np.newaxis]
    numbers = np.sort(pairs(user, item, data.n_items))
    return (items >= 0) & among(pairs(rows, items, data.n_items), numbers)


def listing(data: ListData, cutoff: int, worth: Float64) -> scipy.sparse.csr_array:
    """Return the `worth` of each list's items within the cut-off: sparse [n_users, n_items]."""
    items = data.first(cutoff)
    return _listed(data, items, worth[items[items >= 0]])


def _listed(data: ListData, items: Int64, worth: Float64) -> scipy.sparse.csr_array:
    listed = items >= 0
    indptr = indptr_of(np.count_nonzero(listed, axis=1))
    return table_of(data, Side(indptr, items[listed], worth), worth)


def table_of(data: ListData, side: Side, worth: Float64) -> scipy.sparse.csr_array:
    """Return the `worth` of each row of `side` as a sparse array: [n_users, n_items]."""
    import scipy.sparse

    shape = (data.n_users, data.lists.n_items)
    return scipy.sparse.csr_array((worth, side.items, side.indptr), shape=shape)

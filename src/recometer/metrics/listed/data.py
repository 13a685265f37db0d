"""The data that metrics of the lists themselves read: the lists, and further data."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Hashable
from dataclasses import field
from typing import TYPE_CHECKING, Any, TypeVar

from recometer.arrays import Bool, Float64, Int64
from recometer.errors import InternalError
from recometer.metrics.registry import metric
from recometer.ragged import KEPT, OFFSETS, PER_ITEM, PER_ROW, Record, Table, per_row_of
from recometer.ranks import TopLists

if TYPE_CHECKING:
    import scipy.sparse

Kept = TypeVar("Kept")

list_metric = functools.partial(metric, record="lists", monotone=False)


def needed(value: Kept | None) -> Kept:
    """Return side data that a metric reads, which must be present."""
    if value is None:
        raise InternalError("A metric was asked for without its side data.")
    return value


@dataclasses.dataclass(frozen=True, eq=False)
class Side(Table):
    """Items of the users of the lists: a ragged table in CSR layout.

    Attributes
    ----------
    indptr : int64 [n_users + 1]
    items : int64 [indptr[-1]]
        Positions of items, those of a user in the order of their ids.
    gain : float64 [indptr[-1]]
        The value of each, or 1 if the data have no values.
    """

    indptr: Int64 = field(metadata=OFFSETS)
    items: Int64 = field(metadata=PER_ROW)
    gain: Float64 = field(metadata=PER_ROW)

    def __post_init__(self) -> None:
        self.check_shapes()


@dataclasses.dataclass(frozen=True, eq=False)
class ListData(Record):
    """Lists, and the further data that their metrics read; all items are positions.

    Fields that no metric needs are None. A metric declares its side data in the registry, and
    the code that makes a `ListData` provides them.

    Attributes
    ----------
    lists : TopLists
    n_catalogue : int or None
        The number of items that could have been recommended.
    train : Side or None
        The items of the users of the lists in train.
    n_train_users, n_train_interactions : int or None
        Counts over the whole train, of all users.
    item_users : int64 [n_items] or None
        The number of users of the whole train who have each item.
    test : Side or None
        The judged items of the users of the lists.
    relevant : bool [test.indptr[-1]] or None
        Which of them are relevant.
    baseline : TopLists or None
        Other lists for the same users. Positions from ``lists.n_items`` on stand for items
        that are only in these lists.
    categories : sparse bool [n_items, n_categories] or None
        The categories of each item (CSR).
    features : float64 [n_items, n_features] or sparse of that shape, or None
        The features of each item. A row of NaN means that they are unknown.
    propensity : float64 [n_items] or None
    in_catalogue : bool [n_items] or None
        Which items are in the catalogue that was given.
    kept : dict
        Results that do not depend on the users, computed once.
    kept_of_users : dict
        Results that depend on these users, which are never used for others.
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
    kept: dict[Hashable, Any] = field(default_factory=dict, metadata=KEPT)
    kept_of_users: dict[Hashable, Any] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        if (self.test is None) != (self.relevant is None):
            raise InternalError("ListData.test and ListData.relevant belong together.")
        self.check_shapes()

    @property
    def n_users(self) -> int:
        """Number of users."""
        return self.lists.n_users

    @property
    def n_items(self) -> int:
        """Number of positions of items."""
        return self.lists.n_items

    def first(self, cutoff: int) -> Int64:
        """Return the first k items of each list: int64 [n_users, min(k, length)]."""
        return self.lists.items[:, :cutoff]

    def keep(self, name: Hashable, compute: Callable[[], Kept]) -> Kept:
        """Compute what does not depend on the users, once."""
        return _keep(self.kept, name, compute)

    def keep_of_users(self, name: Hashable, compute: Callable[[], Kept]) -> Kept:
        """Compute what depends on the users, once."""
        return _keep(self.kept_of_users, name, compute)


def _keep(kept: dict[Hashable, Any], name: Hashable, compute: Callable[[], Kept]) -> Kept:
    if name not in kept:
        kept[name] = compute()
    found: Kept = kept[name]
    return found

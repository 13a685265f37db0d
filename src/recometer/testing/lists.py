"""Small lists with all the side data that list metrics read, and a strategy that draws them."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Mapping, Sequence

import numpy as np
from hypothesis import strategies as st

from recometer.arrays import Int64, UInt8
from recometer.metrics import ListData, Side
from recometer.ranks import TopLists

LENGTH = 5  # the maximum length of a list, not counting repeated items


@dataclasses.dataclass(frozen=True)
class ListCase:
    """Lists of a few users with their side data, in plain Python.

    Attributes
    ----------
    n_items
        The number of items. Items are numbered from 0; `baseline` may contain other items, too.
    lists, baseline
        The items of each user, best first.
    train, test
        The items of each user with their values. Items with the value 0 in `test` are irrelevant.
    others
        The training items of users without a list.
    categories
        The categories of each item, which are numbers below `n_categories`.
    features
        A row of numbers for each item, all of them NaN if its features are unknown.
    n_catalogue
        The number of items that could have been recommended.
    uncatalogued
        The listed items that are missing from the catalogue.
    repeats
        For each place of a list, the number of repeats that were removed after it.
    """

    n_items: int
    lists: Sequence[Sequence[int]]
    baseline: Sequence[Sequence[int]]
    train: Sequence[Mapping[int, float]]
    test: Sequence[Mapping[int, float]]
    others: Sequence[Sequence[int]]
    categories: Sequence[frozenset[int]]
    n_categories: int
    features: Sequence[Sequence[float]]
    n_catalogue: int
    uncatalogued: frozenset[int] = frozenset()
    repeats: Sequence[int] = ()

    @property
    def n_users(self) -> int:
        """The number of users with a (possibly empty) list."""
        return len(self.lists)

    @property
    def n_train_users(self) -> int:
        """The number of training users, with or without a list."""
        return len(self.train) + len(self.others)

    def count(self, item: int) -> int:
        """Count the training users who interacted with an item."""
        return sum(item in items for items in [*self.train, *self.others])

    @property
    def n_train_interactions(self) -> int:
        """The number of training interactions of all users."""
        return sum(map(len, [*self.train, *self.others]))

    def users(self, which: Sequence[int]) -> ListCase:
        """Return a case with only some of the lists, in this order; train keeps all users."""
        left = [list(row) for user, row in enumerate(self.train) if user not in which]
        return dataclasses.replace(
            self,
            lists=[self.lists[user] for user in which],
            baseline=[self.baseline[user] for user in which],
            train=[self.train[user] for user in which],
            test=[self.test[user] for user in which],
            others=[*self.others, *left],
        )

    def relabelled(self, name: Sequence[int]) -> ListCase:
        """Return the case with item i renamed to ``name[i]``."""

        def other(item: int) -> int:
            return name[item] if item < self.n_items else item

        old = np.argsort(name).tolist()
        return dataclasses.replace(
            self,
            lists=[[other(item) for item in row] for row in self.lists],
            baseline=[[other(item) for item in row] for row in self.baseline],
            train=[{other(item): gain for item, gain in row.items()} for row in self.train],
            test=[{other(item): gain for item, gain in row.items()} for row in self.test],
            others=[[other(item) for item in row] for row in self.others],
            categories=[self.categories[item] for item in old],
            features=[self.features[item] for item in old],
            uncatalogued=frozenset(map(other, self.uncatalogued)),
        )

    def data(self, *, sparse: bool = False) -> ListData:
        """Return the input of the metric functions; features are a sparse array if requested."""
        import scipy.sparse

        features = np.array(self.features, np.float64).reshape(self.n_items, -1)
        rows = [sorted(names) for names in self.categories]
        indptr = np.cumsum([0, *map(len, rows)])
        columns = np.array([name for row in rows for name in row], np.int64)
        categories = scipy.sparse.csr_array(
            (np.ones(len(columns), np.bool_), columns, indptr),
            shape=(self.n_items, self.n_categories),
        )
        test = _side(self.test)
        lists, inside = _lists(self.lists, self.n_items), np.ones(self.n_items, np.bool_)
        inside[sorted(self.uncatalogued)] = False
        listed = np.unique(lists.items[lists.items >= 0])
        return ListData(
            lists=dataclasses.replace(
                lists, uncatalogued=listed[~inside[listed]], repeats=self._repeated_places()
            ),
            n_catalogue=self.n_catalogue,
            train=_side(self.train),
            n_train_users=self.n_train_users,
            n_train_interactions=self.n_train_interactions,
            item_users=np.array([self.count(item) for item in range(self.n_items)], np.int64),
            test=test,
            relevant=test.gain != 0,
            baseline=_lists(self.baseline, self.n_items + 2),
            categories=categories,
            features=scipy.sparse.csr_array(features) if sparse else features,
            in_catalogue=inside,
        )

    def as_returned(self, user: int) -> list[int | None]:
        """Return a user's list before repeats were removed; None stands for a repeat."""
        pairs = itertools.zip_longest(self.lists[user], self.repeats[: len(self.lists[user])])
        return [place for item, n in pairs for place in (item, *[None] * (n or 0))]

    def _repeated_places(self) -> UInt8:
        found = np.zeros((self.n_users, 2 * LENGTH), np.uint8)
        for user in range(self.n_users):
            again = [place is None for place in self.as_returned(user)]
            found[user, : len(again)] = again
        return found


@st.composite
def list_cases(
    draw: st.DrawFn, *, min_users: int = 1, max_users: int = 4, max_items: int = 7
) -> ListCase:
    """Draw a `ListCase` with all special kinds of users and items.

    Parameters
    ----------
    min_users, max_users, max_items
        The size of the case.
    """
    n_users, n_items = draw(st.integers(min_users, max_users)), draw(st.integers(1, max_items))

    def some(items: int, most: int) -> st.SearchStrategy[list[int]]:
        one = st.integers(0, items - 1)
        return st.lists(one, unique=True, max_size=min(most, items))

    def per_user(row: st.SearchStrategy[list[int]]) -> list[list[int]]:
        return draw(st.lists(row, min_size=n_users, max_size=n_users))

    gains = st.sampled_from([1.0, 0.0, 2.0])
    number = st.sampled_from([0.0, 1.0, -1.0, 2.0])
    n_features = draw(st.integers(1, 3))
    row = st.lists(number, min_size=n_features, max_size=n_features)
    unknown = st.just([math.nan] * n_features)
    vectors = st.one_of(row, row, row, row, unknown)
    names = st.frozensets(st.integers(0, 2), max_size=3)
    some_items = st.frozensets(st.integers(0, n_items - 1), max_size=min(2, n_items - 1))
    uncatalogued = draw(st.one_of(st.just(frozenset()), some_items))
    return ListCase(
        n_items=n_items,
        lists=per_user(some(n_items, LENGTH)),
        baseline=per_user(some(n_items + 2, LENGTH)),
        train=[dict.fromkeys(items, 1.0) for items in per_user(some(n_items, 4))],
        test=[{item: draw(gains) for item in items} for items in per_user(some(n_items, 5))],
        others=draw(st.lists(some(n_items, 4), max_size=3)),
        categories=draw(st.lists(names, min_size=n_items, max_size=n_items)),
        n_categories=3,
        features=draw(st.lists(vectors, min_size=n_items, max_size=n_items)),
        n_catalogue=n_items - len(uncatalogued) + draw(st.sampled_from([0, 2])),
        uncatalogued=uncatalogued,
        repeats=draw(st.lists(st.integers(0, 1), min_size=LENGTH, max_size=LENGTH)),
    )


def _lists(rows: Sequence[Sequence[int]], n_items: int) -> TopLists:
    items = np.full((len(rows), max(map(len, rows), default=0)), -1, np.int64)
    for user, row in enumerate(rows):
        items[user, : len(row)] = row
    return TopLists(items, n_items, np.ones(len(rows), np.bool_), np.zeros(len(rows), np.bool_))


def _side(rows: Sequence[Mapping[int, float]]) -> Side:
    indptr: Int64 = np.cumsum([0, *map(len, rows)])
    ordered = [pair for row in rows for pair in sorted(row.items())]
    items = np.array([item for item, _ in ordered], np.int64)
    return Side(indptr, items, np.array([gain for _, gain in ordered], np.float64))

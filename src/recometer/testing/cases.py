"""Small inputs for metrics (rankings, lists and ratings), and strategies that draw them."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import numpy.typing as npt
from hypothesis import strategies as st

from recometer.arrays import Bool, Float64, Int64, UInt8
from recometer.metrics import METRICS, ListData, Side
from recometer.metrics.parameters import Value
from recometer.protocol import RelevantFrom
from recometer.ranks import Ranks, Ratings, TopLists, UserFlag

LENGTH = 5  # the maximum length of a list, not counting repeated items


def rank(
    scores: npt.ArrayLike,
    gains: npt.ArrayLike,
    excluded: npt.ArrayLike | None = None,
    unranked: npt.ArrayLike | None = None,
    *,
    relevant_from: RelevantFrom = None,
) -> Ranks:
    """Rank a few items for a few users.

    Parameters
    ----------
    scores : float [n_users, n_items], or [n_items] for one user
    gains : float, of the same shape
        The values in the test data, with NaN for items that were not judged.
    excluded : bool, of the same shape, optional
        Whether an item is a training item, which is neither a candidate nor judged.
    unranked : bool, of the same shape, optional
        Whether an item is unknown to the source, and thus not a candidate.
    relevant_from : float or str, optional
        As in `Protocol`.
    """
    scores = np.atleast_2d(np.asarray(scores, np.float64))
    gains = np.atleast_2d(np.asarray(gains, np.float64))
    excluded = np.atleast_2d(_mask(excluded, scores))
    unranked = np.atleast_2d(_mask(unranked, scores))
    n_users, n_items = scores.shape
    rows: list[tuple[int, int, int, int, float, bool]] = []
    indptr, n_relevant, n_candidates, flags = [0], [], [], []
    for user in range(n_users):
        score = scores[user].tolist()
        candidates = [i for i in range(n_items) if not excluded[user, i] and not unranked[user, i]]
        judged = []
        for item in range(n_items):
            gain = float(gains[user, item])
            if math.isnan(gain) or excluded[user, item]:
                continue
            above, tied, before = -1, 0, 0
            if not unranked[user, item]:
                above = sum(score[other] > score[item] for other in candidates)
                equal = [o for o in candidates if score[o] == score[item] and o != item]
                tied, before = len(equal), sum(other < item for other in equal)
            judged.append((item, above, tied, before, gain, is_relevant(gain, relevant_from)))
        judged.sort(key=lambda row: (row[1] < 0, row[1], row[3]))
        rows += judged
        indptr.append(len(rows))
        n_relevant.append(sum(row[5] for row in judged))
        n_candidates.append(len(candidates))
        constant = len({score[i] for i in candidates}) == 1
        flags.append(
            UserFlag.KNOWN
            | (UserFlag.TRAINED if excluded[user].any() else 0)
            | (UserFlag.CONSTANT_SCORES if constant else 0)
        )
    columns: list[tuple[float, ...]] = list(zip(*rows, strict=True)) or [()] * 6
    return Ranks(
        indptr=np.array(indptr, np.int64),
        item=np.array(columns[0], np.int64),
        above=np.array(columns[1], np.int64),
        tied=np.array(columns[2], np.int64),
        before=np.array(columns[3], np.int64),
        gain=np.array(columns[4], np.float64),
        relevant=np.array(columns[5], np.bool_),
        n_relevant=np.array(n_relevant, np.int64),
        n_candidates=np.array(n_candidates, np.int64),
        n_excluded=excluded.sum(axis=1, dtype=np.int64),
        depth=np.array(n_candidates, np.int64),
        flags=np.array(flags, np.uint32),
    )


@dataclasses.dataclass(frozen=True, eq=False)
class RankingCase:
    """The arguments of `rank` for a small evaluation, as arrays of shape [n_users, n_items]."""

    scores: Float64
    gains: Float64
    excluded: Bool
    unranked: Bool

    @property
    def n_users(self) -> int:
        """The number of users."""
        return len(self.scores)

    def users(self, selected: Sequence[int]) -> RankingCase:
        """Return a case with only the given users, in this order."""
        rows = list(selected)
        return RankingCase(
            self.scores[rows], self.gains[rows], self.excluded[rows], self.unranked[rows]
        )

    def ranks(self, *, relevant_from: RelevantFrom = None) -> Ranks:
        """Rank the items, and set their popularities and propensities; see `observed`."""
        return observed(
            rank(self.scores, self.gains, self.excluded, self.unranked, relevant_from=relevant_from)
        )

    def orders(self, user: int) -> Iterator[list[int]]:
        """Return every order of a user's candidates that agrees with the scores."""
        candidates = np.flatnonzero(~self.excluded[user] & ~self.unranked[user])
        return orders({int(item): float(self.scores[user, item]) for item in candidates})


@st.composite
def cases(
    draw: st.DrawFn,
    *,
    min_users: int = 1,
    max_users: int = 3,
    max_items: int = 5,
    gains: st.SearchStrategy[float] | None = None,
) -> RankingCase:
    """Draw a `RankingCase` with many ties and every special kind of item.

    Parameters
    ----------
    min_users, max_users, max_items
        Bounds on the size of the case. Five items have at most 120 orders.
    gains
        Values in the test data; NaN stands for items that were not judged. By default, some values
        are negative or 0.
    """
    if gains is None:
        gains = st.sampled_from([math.nan, 1.0, 0.0, 2.0, 0.5, -1.0])
    n_users, n_items = draw(st.integers(min_users, max_users)), draw(st.integers(1, max_items))

    def table(elements: st.SearchStrategy[float] | st.SearchStrategy[bool]) -> list[list[float]]:
        row = st.lists(elements, min_size=n_items, max_size=n_items)
        return draw(st.lists(row, min_size=n_users, max_size=n_users))

    rarely_true = st.sampled_from([False, False, False, False, True])
    return RankingCase(
        scores=np.array(table(st.sampled_from([0.0, 1.0, 2.0, 3.0])), np.float64),
        gains=np.array(table(gains), np.float64),
        excluded=np.array(table(rarely_true), np.bool_),
        unranked=np.array(table(rarely_true), np.bool_),
    )


def variants(name: str) -> list[dict[str, Value]]:
    """Return parameter sets for a metric: the defaults, and sets that differ in one value.

    Numeric parameters take the values in `Parameter.examples`.
    """
    parameters = METRICS[name].parameters
    required: dict[str, Value] = {
        parameter.name: parameter.examples[0]
        for parameter in parameters.values()
        if parameter.from_test
    }
    sets: list[dict[str, Value]] = [required]
    for parameter in parameters.values():
        values: list[Value] = [*parameter.choices, *parameter.examples]
        if parameter.is_flag:
            values.append(True)
        sets += [required | {parameter.name: value} for value in values]
    return sets


def orders(scores: Mapping[int, float]) -> Iterator[list[int]]:
    """Yield every order of the items by descending score, with tied items in all orders."""
    ties = [
        [item for item in scores if scores[item] == score]
        for score in sorted(set(scores.values()), reverse=True)
    ]
    for parts in itertools.product(*map(itertools.permutations, ties)):
        yield [item for part in parts for item in part]


def is_relevant(gain: float, relevant_from: RelevantFrom) -> bool:
    """Return whether an item with this gain is relevant."""
    if relevant_from is None:
        return gain > 0
    return gain != 0 if relevant_from == "not_zero" else gain >= relevant_from


def observed(ranks: Ranks) -> Ranks:
    """Set the popularity and the propensity of each item to ``1 / (1 + abs(gain))``.

    Better items thus have lower propensities, so weighting by propensity agrees with the gains.
    """
    chance = 1 / (1 + np.abs(ranks.gain))
    return dataclasses.replace(ranks, popularity=chance, propensity=chance)


def _mask(mask: npt.ArrayLike | None, like: Float64) -> Bool:
    return np.zeros(like.shape, np.bool_) if mask is None else np.asarray(mask, np.bool_)


@dataclasses.dataclass(frozen=True, eq=False)
class RatingCase:
    """Predicted and true ratings of a few users.

    Attributes
    ----------
    predicted, actual : float64 [n_users, n_items]
        `actual` is NaN where a user has no row for an item.
    threshold : float64 [n_users]
        Rows are relevant if their true rating is at least this value, and recommended if their
        predicted rating is.
    """

    predicted: Float64
    actual: Float64
    threshold: Float64

    @property
    def n_users(self) -> int:
        """The number of users."""
        return len(self.predicted)

    @property
    def n_items(self) -> int:
        """The number of items."""
        return int(self.predicted.shape[1])

    def users(self, selected: Sequence[int]) -> RatingCase:
        """Return a case with only the given users, in this order."""
        rows = list(selected)
        return RatingCase(self.predicted[rows], self.actual[rows], self.threshold[rows])

    def relabelled(self, name: Sequence[int]) -> RatingCase:
        """Return the case with item i renamed to ``name[i]``."""
        old = np.argsort(name)
        return RatingCase(self.predicted[:, old], self.actual[:, old], self.threshold)

    def rows(self, user: int) -> list[int]:
        """Return the items of a user's rows."""
        return [int(item) for item in np.flatnonzero(~np.isnan(self.actual[user]))]

    def orders(self, user: int) -> Iterator[list[int]]:
        """Return every order of a user's rows that agrees with the predicted ratings."""
        return orders({item: float(self.predicted[user, item]) for item in self.rows(user)})

    def ratings(self, scores: Float64 | None = None) -> Ratings:
        """Return the input for rating metrics, ranked by `scores` or by the predicted ratings."""
        missing = np.isnan(self.actual)
        relevant = np.where(missing, np.nan, self.actual >= self.threshold[:, np.newaxis])
        ranks = rank(self.predicted if scores is None else scores, relevant, unranked=missing)
        user = np.repeat(np.arange(self.n_users), np.diff(ranks.indptr))
        ranks = dataclasses.replace(ranks, gain=self.actual[user, ranks.item])
        return Ratings(ranks, self.predicted[user, ranks.item], self.threshold)


@st.composite
def rating_cases(
    draw: st.DrawFn,
    *,
    min_users: int = 1,
    max_users: int = 3,
    max_items: int = 5,
    predicted: st.SearchStrategy[float] | None = None,
) -> RatingCase:
    """Draw a `RatingCase` with ties, equal true ratings, and users with one row or none.

    Parameters
    ----------
    min_users, max_users, max_items
        Bounds on the size of the case. Five items have at most 120 orders.
    predicted
        A strategy for predicted ratings. By default, it draws possible true ratings, and values
        between and beyond them.
    """
    n_users, n_items = draw(st.integers(min_users, max_users)), draw(st.integers(1, max_items))
    if predicted is None:
        predicted = st.sampled_from([1.0, 3.0, 5.0, 3.7, 3.5, -0.3])
    true = st.sampled_from([float("nan"), 1.0, 2.0, 3.0, 4.0, 5.0])

    def table(elements: st.SearchStrategy[float]) -> Float64:
        row = st.lists(elements, min_size=n_items, max_size=n_items)
        rows = st.lists(row, min_size=n_users, max_size=n_users)
        return np.array(draw(rows), np.float64)

    thresholds = st.lists(st.sampled_from([3.5, 3.0, 0.0, 9.0]), min_size=n_users, max_size=n_users)
    return RatingCase(table(predicted), table(true), np.array(draw(thresholds), np.float64))


@dataclasses.dataclass(frozen=True)
class ListCase:
    """Lists for a few users with their side data, as plain Python objects.

    Attributes
    ----------
    n_items
        The number of items. Items are numbered from 0; `baseline` may contain other items, too.
    lists, baseline
        The items of each user, best first.
    train, test
        The items of each user with their values. Items with the value 0 in `test` are irrelevant.
    unlisted
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
        For each place of a list, the number of repeats that were removed directly after it.
    """

    n_items: int
    lists: Sequence[Sequence[int]]
    baseline: Sequence[Sequence[int]]
    train: Sequence[Mapping[int, float]]
    test: Sequence[Mapping[int, float]]
    unlisted: Sequence[Sequence[int]]
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
        return len(self.train) + len(self.unlisted)

    def count(self, item: int) -> int:
        """Count the training users who interacted with an item."""
        return sum(item in items for items in [*self.train, *self.unlisted])

    @property
    def n_train_interactions(self) -> int:
        """The number of training interactions of all users."""
        return sum(map(len, [*self.train, *self.unlisted]))

    def users(self, selected: Sequence[int]) -> ListCase:
        """Return a case with only the given users' lists, in this order, but all training users."""
        omitted = [list(row) for user, row in enumerate(self.train) if user not in selected]
        return dataclasses.replace(
            self,
            lists=[self.lists[user] for user in selected],
            baseline=[self.baseline[user] for user in selected],
            train=[self.train[user] for user in selected],
            test=[self.test[user] for user in selected],
            unlisted=[*self.unlisted, *omitted],
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
            unlisted=[[other(item) for item in row] for row in self.unlisted],
            categories=[self.categories[item] for item in old],
            features=[self.features[item] for item in old],
            uncatalogued=frozenset(map(other, self.uncatalogued)),
        )

    def data(self, *, sparse: bool = False) -> ListData:
        """Return the input for the metric functions; features are a sparse array if requested."""
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
        repeated = np.zeros((self.n_users, 2 * LENGTH), np.uint8)
        for user in range(self.n_users):
            mask = [place is None for place in self.as_returned(user)]
            repeated[user, : len(mask)] = mask
        return repeated


@st.composite
def list_cases(
    draw: st.DrawFn, *, min_users: int = 1, max_users: int = 4, max_items: int = 7
) -> ListCase:
    """Draw a `ListCase` with every special kind of user and item.

    Parameters
    ----------
    min_users, max_users, max_items
        Bounds on the size of the case.
    """
    n_users, n_items = draw(st.integers(min_users, max_users)), draw(st.integers(1, max_items))

    def item_lists(items: int, length: int) -> st.SearchStrategy[list[int]]:
        item_numbers = st.integers(0, items - 1)
        return st.lists(item_numbers, unique=True, max_size=min(length, items))

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
        lists=per_user(item_lists(n_items, LENGTH)),
        baseline=per_user(item_lists(n_items + 2, LENGTH)),
        train=[dict.fromkeys(items, 1.0) for items in per_user(item_lists(n_items, 4))],
        test=[{item: draw(gains) for item in items} for items in per_user(item_lists(n_items, 5))],
        unlisted=draw(st.lists(item_lists(n_items, 4), max_size=3)),
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

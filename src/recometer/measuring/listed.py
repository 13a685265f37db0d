"""Computes users' values from their lists and side data."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import field

import numpy as np

from recometer.arrays import Bool, Float64, Int64, UInt8, any_of, slices
from recometer.measuring.compute import Measured, Variant
from recometer.measuring.reasons import Reason, mark, mark_scores, mark_unknown, users_outside
from recometer.metrics.adding_up import Summed
from recometer.metrics.listed.data import ListData, Side, needed, of_listed, relevant_places
from recometer.metrics.listed.whole import add_up
from recometer.metrics.registry import Metric, Without
from recometer.protocol import Protocol
from recometer.ragged import PER_USER, Record
from recometer.ranks import UserFlag, raised
from recometer.ties import sum_by_user

# Users are measured in blocks with about this many listed items, so that working memory does not
# grow with the number of users.
BLOCK_PLACES = 2**21


@dataclasses.dataclass(frozen=True, eq=False)
class Judged(Record):
    """The numbers of judged and relevant items of each user with a list."""

    n_rows: Int64 = field(metadata=PER_USER)
    n_relevant: Int64 = field(metadata=PER_USER)

    @property
    def n_users(self) -> int:
        """Number of users."""
        return len(self.n_rows)


class ListedUsers(Measured):
    """Users whose values are computed from their lists, with the side data that metrics read.

    If `judged` is None, the counts of judged items come from the test data in `data`, if any.
    If `data` has only the category of one group, `group` is the name of that group.
    """

    record = "lists"

    def __init__(self, data: ListData, judged: Judged | None = None, group: str = "") -> None:
        self.data, self.n_users, self.group = data, data.n_users, group
        self._judged = judged
        # The keys are the ids of `Protocol` objects, which are kept so that their ids stay unique.
        self._counted: dict[int, tuple[Protocol, Int64 | None]] = {}

    @property
    def size(self) -> int:
        """Number of places."""
        return self.data.lists.items.size

    def blocks(self) -> list[slice]:
        """Cut the users into blocks with a bounded number of places."""
        return slices(self.n_users, BLOCK_PLACES // max(self.data.lists.depth, 1))

    def users(self, block: slice | Int64) -> ListedUsers:
        """Return a block of users as views, without copying."""
        judged = None if self._judged is None else self._judged.users(block)
        return ListedUsers(self.data.users(block), judged)

    def reasons(self, variant: Variant, number: int) -> tuple[UInt8, bool]:
        """Return each user's first `Reason` (or 0), and whether any user has a reason."""
        metric, rules = variant.metrics[number], variant.rules
        data, definition, cutoff = self.data, metric.definition, needed(metric.cutoff)
        result = self._for_all_metrics(rules)
        if "relevant" in definition.without:
            n_relevant = self.judged.n_relevant
            if rules.no_relevant != "computed":
                mark(result, n_relevant == 0, Reason.NO_RELEVANT)
            if rules.min_positives > 1:  # having no relevant items is a separate reason
                mark(result, n_relevant < rules.min_positives, Reason.FEW_RELEVANT)
        if not definition.of_empty_lists:
            mark(result, ~_any(data.lists.items >= 0), Reason.NO_LIST)
        for without in definition.without:
            if without != "relevant":
                reason, unaffected = UNAFFECTED[without]
                mark(result, ~unaffected(data, cutoff), reason)
        if definition.over_users:
            # Metrics with one value for all users also count users with empty lists, for instance
            # as users whose lists are not full.
            result[result == Reason.NO_LIST] = 0
        return result, any_of(result)

    def outside(self, variant: Variant) -> Bool | None:
        """Return a mask of users who do not count towards a mean."""
        rules, without = variant.rules, variant.metrics[0].definition.without
        # Unless the metric reads relevance, the value of a list does not depend on test.
        reads = "relevant" in without and rules.no_relevant != "undefined"
        if rules.users in ("test", "known", "all") and not reads:
            return None
        return users_outside(
            self.data.lists.known,
            lambda: self.judged.n_relevant > 0,
            lambda: self.judged.n_rows > 0,
            rules,
        )

    def compute(self, variant: Variant) -> Float64:
        """Return the values of the metrics, as float64 [n_users, n_metrics]."""
        return variant.values(self.data)

    def for_all(self, metrics: Sequence[Metric], rules: Protocol, weights: Int64 | None) -> Float64:
        """Return each metric's value for all users; users without a ranking do not count."""
        weights = self._weights(rules, weights)
        cutoffs = np.array([needed(metric.cutoff) for metric in metrics], np.int64)
        return metrics[0].compute_over_users(self.data, cutoffs, weights)

    def add_up(self, metric: Metric, rules: Protocol, weights: Int64 | None = None) -> Summed:
        """Return the sums over users, for a metric with one value for all users.

        `weights` (int64 [n_users]) say how often each user counts.
        """
        return add_up(metric, self.data, self._weights(rules, weights))

    def _weights(self, rules: Protocol, weights: Int64 | None) -> Int64 | None:
        counted = self._counted_users(rules)
        if counted is None:
            return weights
        return counted if weights is None else weights * counted

    def _counted_users(self, rules: Protocol) -> Int64 | None:
        """Return 1 for each user who counts and 0 for all others, or None if all users count."""
        if id(rules) not in self._counted:
            counted = self._for_all_metrics(rules) == 0
            weights = None if counted.all() else counted.astype(np.int64)
            self._counted[id(rules)] = rules, weights
        return self._counted[id(rules)][1]

    @property
    def judged(self) -> Judged:
        """The counts of each user's judged items."""
        if self._judged is not None:
            return self._judged
        test, relevant = needed(self.data.test), needed(self.data.relevant)
        return Judged(
            np.diff(test.indptr), np.bincount(test.user[relevant], minlength=self.n_users)
        )

    def _for_all_metrics(self, rules: Protocol) -> UInt8:
        """Return the reasons that do not depend on the metric."""
        lists = self.data.lists
        result = np.zeros(self.n_users, np.uint8)
        mark_unknown(result, lists.known, rules)
        if not rules.cold_start:
            mark(result, ~raised(lists.flags, UserFlag.TRAINED), Reason.COLD_START)
        mark_scores(result, lists.flags, rules)
        return result


def _features(data: ListData, cutoff: int) -> Bool:
    features = needed(data.features)
    if not isinstance(features, np.ndarray):
        return np.ones(data.n_users, bool)
    without = data.keep("lacks features", lambda: _any(np.isnan(features)))
    return ~_any_listed(data, cutoff, without)


UNAFFECTED: dict[Without, tuple[Reason, Callable[[ListData, int], Bool]]] = {
    "pairs": (Reason.ONE_ITEM, lambda data, k: np.count_nonzero(data.first(k) >= 0, axis=1) >= 2),
    "seen": (
        Reason.NOTHING_SEEN,
        lambda data, k: _any_listed(data, k, needed(data.item_users) > 0),
    ),
    "hits": (Reason.NO_HIT, lambda data, k: _any(relevant_places(data)[:, :k])),
    "history": (Reason.NO_HISTORY, lambda data, _: np.diff(needed(data.train).indptr) > 0),
    "baseline": (Reason.NO_BASELINE, lambda data, _: _any(needed(data.baseline).items >= 0)),
    "categories": (Reason.NO_CATEGORY, lambda data, k: _any_listed(data, k, _has_category(data))),
    "history_categories": (
        Reason.NO_HISTORY_CATEGORY,
        lambda data, _: _any_category(data, needed(data.train)),
    ),
    "relevant_categories": (
        Reason.NO_RELEVANT_CATEGORY,
        lambda data, _: _any_category(data, needed(data.test), needed(data.relevant)),
    ),
    "features": (Reason.NO_FEATURES, _features),
}
"""The reason, and a mask of unaffected users, for each word in `MetricDefinition.without`."""


def _has_category(data: ListData) -> Bool:
    return data.keep("has category", lambda: np.diff(needed(data.categories).indptr) > 0)


def _any_listed(data: ListData, cutoff: int, items: Bool) -> Bool:
    return _any(of_listed(items, data.first(cutoff)))


def _any_category(data: ListData, side: Side, counted: Bool | bool = True) -> Bool:
    in_category = (_has_category(data)[side.items] & counted).astype(np.float64)
    return sum_by_user(side.user, in_category, data.n_users) > 0


def _any(table: Bool) -> Bool:
    any_in_row: Bool = np.any(table, axis=1)
    return any_in_row

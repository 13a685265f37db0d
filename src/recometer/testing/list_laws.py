"""Laws that hold for every metric of lists, driven by what the registry states of each."""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
from hypothesis import strategies as st

from recometer.arrays import Bool, Float64, Int64
from recometer.measuring.compute import compute, compute_for_all
from recometer.measuring.listed import ListedUsers
from recometer.metrics import ListData, Metric
from recometer.metrics.registry import SideData
from recometer.protocol import Protocol
from recometer.testing._checks import MOST_USERS, Law, holds, law, near, within_range
from recometer.testing.list_cases import ListCase, list_cases

Key = TypeVar("Key", bound=Hashable)

SLACK = 1e-9
# Which of equally good items comes first is settled by their ids: in the tail, if that is a
# number of items, and in the best order of alpha_ndcg.
BY_ITEM_ID = ("alpha_ndcg", "tail_share")
FIELDS: dict[SideData, tuple[str, ...]] = {
    "train": ("train", "item_users", "n_train_users", "n_train_interactions"),
    "test": ("test", "relevant"),
    "baseline": ("baseline",),
    "categories": ("categories",),
    "features": ("features",),
    "propensity": ("propensity",),
    "catalogue": ("n_catalogue",),
}


@law(list_cases(max_users=MOST_USERS))
def values_are_within_the_stated_range(metrics: Sequence[Metric], case: ListCase) -> None:
    """Check that formulas leave the bounds that the registry states by rounding only."""
    within_range(metrics, _values(case.data(), metrics))


@law(list_cases(max_users=MOST_USERS), st.data())
def items_have_no_names(metrics: Sequence[Metric], case: ListCase, data: st.DataObject) -> None:
    """Check that other ids for the items change nothing but rounding."""
    metrics = [metric for metric in metrics if metric.name not in BY_ITEM_ID]
    name = data.draw(st.permutations(range(case.n_items)))
    values = _values(case.relabelled(name).data(), metrics)
    holds(metrics, near(values, _values(case.data(), metrics), SLACK))


@law(list_cases(min_users=4, max_users=MOST_USERS), st.data())
def a_user_does_not_depend_on_the_others(
    metrics: Sequence[Metric], case: ListCase, data: st.DataObject
) -> None:
    """Check that leaving out and permuting users changes not one bit of a user's values.

    Nor, except for rounding, the values of the same users in another order.
    """
    per_user = [metric for metric in metrics if not metric.definition.over_users]
    over_users = [metric for metric in metrics if metric.definition.over_users]
    every = data.draw(st.permutations(range(case.n_users)))
    at, together = data.draw(st.integers(1, case.n_users - 1)), _values(case.data(), per_user)
    for part in (every[:at], every[at:]):
        alone = _values(case.users(part).data(), per_user)
        holds(per_user, _same_bits(alone, together[part]))
    permuted = _values(case.users(every).data(), over_users)
    holds(over_users, near(permuted, _values(case.data(), over_users), SLACK))


@law(list_cases(max_users=MOST_USERS))
def cumulative_equals_separate(metrics: Sequence[Metric], case: ListCase) -> None:
    """Check that what else is computed changes not one bit."""
    data = case.data()
    alone = [_values(data, [metric]) for metric in metrics]
    holds(metrics, _same_bits(np.concatenate(alone, axis=1), _values(data, metrics)))


@law(list_cases(max_users=MOST_USERS))
def only_the_first_places_are_read(metrics: Sequence[Metric], case: ListCase) -> None:
    """Check that what a list holds beyond the cut-off changes not one bit."""
    for k, some in _by(metrics, lambda metric: metric.cutoff or 0):
        short = dataclasses.replace(case, lists=[row[:k] for row in case.lists])
        holds(some, _same_bits(_values(short.data(), some), _values(case.data(), some)))


@law(list_cases(max_users=MOST_USERS))
def order_within_the_cutoff_does_not_matter_where_so_declared(
    metrics: Sequence[Metric], case: ListCase
) -> None:
    """Check that only which items are in the first places counts, except for rounding."""
    metrics = [metric for metric in metrics if metric.definition.order_free]
    for k, some in _by(metrics, lambda metric: metric.cutoff or 0):
        rows = [[*row[:k][::-1], *row[k:]] for row in case.lists]
        turned = dataclasses.replace(case, lists=rows)
        holds(some, near(_values(turned.data(), some), _values(case.data(), some), SLACK))


@law(list_cases(max_users=MOST_USERS))
def no_more_is_read_than_is_stated(metrics: Sequence[Metric], case: ListCase) -> None:
    """Check that side data that the registry does not name can be missing."""
    data = case.data()
    for stated, some in _by(metrics, lambda metric: metric.definition.side):
        missing: dict[str, Any] = {
            name: None
            for side in typing.get_args(SideData)
            if side not in stated
            for name in FIELDS[side]
        }
        bare = dataclasses.replace(data, kept={}, **missing)
        holds(some, _same_bits(_values(bare, some), _values(data, some)))


@law(list_cases(max_users=MOST_USERS))
def sparse_features_say_the_same(metrics: Sequence[Metric], case: ListCase) -> None:
    """Check that features as a sparse array give the same values, except for rounding."""
    metrics = [metric for metric in metrics if "features" in metric.definition.side]
    known = [row if row[0] == row[0] else [0.0] * len(row) for row in case.features]
    case = dataclasses.replace(case, features=known)
    sparse, dense = (_values(case.data(sparse=sparse), metrics) for sparse in (True, False))
    holds(metrics, near(sparse, dense, SLACK))


@law(list_cases(max_users=MOST_USERS), st.data())
def users_who_do_not_count_are_as_if_they_were_not_there(
    metrics: Sequence[Metric], case: ListCase, data: st.DataObject
) -> None:
    """Check the weights of metrics with one value for all users: 0 leaves one out."""
    metrics = [metric for metric in metrics if metric.definition.over_users]
    counted = data.draw(st.lists(st.booleans(), min_size=case.n_users, max_size=case.n_users))
    weights = np.array(counted, np.int64)
    chosen = [user for user, counts in enumerate(counted) if counts]
    without = _values(case.users(chosen).data(), metrics)[:1]
    holds(metrics, near(_values(case.data(), metrics, weights)[:1], without, SLACK))
    doubled = _values(case.data(), metrics, np.full(case.n_users, 2))
    holds(metrics, near(doubled, _values(case.data(), metrics), SLACK))


LIST_LAWS: tuple[Law, ...] = (
    values_are_within_the_stated_range,
    items_have_no_names,
    a_user_does_not_depend_on_the_others,
    cumulative_equals_separate,
    only_the_first_places_are_read,
    order_within_the_cutoff_does_not_matter_where_so_declared,
    no_more_is_read_than_is_stated,
    sparse_features_say_the_same,
    users_who_do_not_count_are_as_if_they_were_not_there,
)
"""Every law of metrics of lists."""


def _values(data: ListData, metrics: Sequence[Metric], weights: Int64 | None = None) -> Float64:
    """Compute values of all users, float64 [n_users, n_metrics]; at least one row."""
    over_users = [metric for metric in metrics if metric.definition.over_users]
    per_user = [metric for metric in metrics if not metric.definition.over_users]
    listed = ListedUsers(data)
    found: dict[str, npt.ArrayLike] = dict(compute(listed, per_user, Protocol())[0])
    found |= compute_for_all(listed, over_users, Protocol(), weights)
    n_rows = max(data.n_users, 1)
    columns = [np.broadcast_to(found[str(metric)], n_rows) for metric in metrics]
    return np.column_stack(columns) if columns else np.empty((n_rows, 0))


def _by(
    metrics: Sequence[Metric], key: Callable[[Metric], Key]
) -> Iterable[tuple[Key, list[Metric]]]:
    """Put the metrics with the same key together."""
    found: dict[Key, list[Metric]] = {}
    for metric in metrics:
        found.setdefault(key(metric), []).append(metric)
    return found.items()


def _same_bits(left: Float64, right: Float64) -> Bool:
    # Undefined is undefined, whatever the sign of the NaN; and 0 is 0.
    return np.asarray((left == right) | (np.isnan(left) & np.isnan(right)))

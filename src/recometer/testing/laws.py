"""Laws for metrics; some laws depend on how the registry declares a metric.

A law is a function that takes metrics and raises an AssertionError that names those which break
it. Values are float64 [n_users, n_metrics].
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
import typing
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
from hypothesis import given, settings
from hypothesis import strategies as st

from recometer.arrays import Bool, Float64, Int64, UInt64
from recometer.errors import UnknownNameError, brief, did_you_mean
from recometer.measuring.compute import Measured, compute, compute_for_all
from recometer.measuring.listed import ListedUsers
from recometer.measuring.ranked import RankedUsers
from recometer.measuring.rated import RatedUsers
from recometer.metrics import METRICS, ListData, Metric
from recometer.metrics.predictions import Predictions
from recometer.metrics.registry import SideData
from recometer.protocol import Protocol, TieRule
from recometer.ranks import Ranks, Ratings
from recometer.testing.cases import (
    ListCase,
    RankingCase,
    RatingCase,
    cases,
    list_cases,
    observed,
    rank,
    rating_cases,
    variants,
)
from recometer.ties import WHOLE, resolve

Key = TypeVar("Key", bound=Hashable)
Law = Callable[[Sequence[Metric]], None]

RULES: tuple[TieRule, ...] = (
    "expected", "optimistic", "pessimistic", "random", "item", "item_desc",
)  # fmt: skip
# Treat constant scores as ties, because undefined values would hide errors in the formulas.
AS_TIES = Protocol(constant_scores="ties")

SMALL_SETS = (
    (1, math.nan, math.nan, math.nan, math.nan),
    (1, 1, math.nan, math.nan, math.nan),
    (1, 1, 1, 1, math.nan),
    (3, 2, 1, math.nan, 0),
    (2, 2, 0.5, math.nan, math.nan, math.nan),
)
# These metrics break ties by item id: alpha_ndcg in its ideal order, and tail_share when it chooses
# the tail by the parameter `tail`.
BY_ITEM_ID = ("alpha_ndcg", "tail_share")
FIELDS: dict[SideData, tuple[str, ...]] = {
    "train": ("train", "item_users", "n_train_users", "n_train_interactions"),
    "test": ("test", "relevant"),
    "baseline": ("baseline",),
    "categories": ("categories",),
    "features": ("features",),
    "propensity": ("propensity",),
    "catalogue": ("n_catalogue",),
    "catalogue_items": ("in_catalogue",),
}
STARS = st.sampled_from([1.0, 2.0, 3.0, 4.0, 5.0])


def check_laws(metric: str) -> None:
    """Check all laws for a metric, with each of its parameter sets.

    Each law draws a tenth as many cases as the current Hypothesis profile sets
    (`hypothesis.settings.load_profile`), which means 10 by default. A case has several users.

    Parameters
    ----------
    metric
        The name of a metric in the registry, which may be your own.

    Raises
    ------
    AssertionError
        If the metric breaks a law. The traceback shows the law and the case that breaks it.
    """
    if not isinstance(metric, str) or metric not in METRICS:
        hint = "without cut-off and parameters, which are drawn" if "@" in str(metric) else ""
        raise UnknownNameError(
            f"check_laws takes the name of a metric, found {brief(metric)}. "
            f"{f'Hint: {hint}.' if hint else did_you_mean(str(metric), METRICS)}"
        )
    metrics = at_cutoffs(metric, 1, 3, 9)
    of_record = {"ranks": LAWS, "lists": LIST_LAWS, "ratings": RATING_LAWS}
    for check_law in of_record[METRICS[metric].record]:
        check_law(metrics)


def at_cutoffs(name: str, *cutoffs: int) -> list[Metric]:
    """Return a metric with each parameter set, at each cut-off and possibly without one."""
    metrics = []
    for parameters in variants(name):
        definition = METRICS[name].with_parameters(parameters.items())
        options: list[int | None] = [] if definition.cutoff == "none" else [*cutoffs]
        # Metrics that ignore the order of the first places have no meaning without a cut-off.
        if definition.cutoff != "required" and not definition.order_free:
            options.append(None)
        metrics += [Metric(name, cutoff, tuple(parameters.items())) for cutoff in options]
    return list(dict.fromkeys(metrics))


MOST_USERS = 8
"""The maximum number of users per case in most laws.

A few large cases are faster than many small ones.
"""


def law(*drawn: st.SearchStrategy[Any], share: float = 0.5) -> Callable[[Callable[..., None]], Law]:
    """Return a decorator that turns a check of metrics on a drawn case into a law for many cases.

    `share` scales the number of cases; the default suits cases of up to `MOST_USERS` users.
    """

    def law_of(check: Callable[..., None]) -> Law:
        @functools.wraps(check)
        def holds_always(metrics: Sequence[Metric]) -> None:
            def of_case(case: tuple[Any, ...]) -> None:
                check(metrics, *case)

            of_case.__name__ = check.__name__  # Hypothesis identifies laws by this name
            law_settings(share)(given(st.tuples(*drawn))(of_case))()

        return holds_always

    return law_of


def values_of(measured: Measured, metrics: Sequence[Metric], protocol: Protocol) -> Float64:
    """Compute the metric values for all users, as float64 [n_users, n_metrics]."""
    values, _ = compute(measured, metrics, protocol)
    columns = [values[str(metric)] for metric in metrics]
    return np.column_stack(columns) if columns else np.empty((measured.n_users, 0))


def direction(metrics: Sequence[Metric]) -> Float64:
    """Return 1 for metrics where higher values are better, and -1 for others."""
    return np.array([1.0 if metric.definition.higher_is_better else -1.0 for metric in metrics])


def holds(metrics: Sequence[Metric], is_true: Bool) -> None:
    """Raise an AssertionError that names the metrics for which `is_true` is False for some user."""
    columns = zip(metrics, is_true.T, strict=True)
    broken = [str(metric) for metric, column in columns if not column.all()]
    assert not broken, f"The law does not hold for {', '.join(broken)}."


def near(left: Float64, right: Float64, slack: float) -> Bool:
    """Return a mask of the values that are equal up to rounding, or NaN on both sides."""
    both_undefined = np.isnan(left) & np.isnan(right)
    return both_undefined | (np.abs(left - right) <= slack * (1 + np.abs(right)))


def same_bits(left: Float64, right: Float64) -> Bool:
    """Return a mask of the values that have the same bits on both sides."""
    return np.asarray(left.view(np.uint64) == right.view(np.uint64))


def law_settings(share: float = 1) -> settings:
    """Return settings for a law: a fifth of the cases in the current profile, but at least 6.

    The default of 20 cases suffices, because each case is checked for all metrics and usually under
    all tie rules. `share` scales this number.
    """
    n_cases = settings.default.max_examples if settings.default else 100
    return settings(deadline=None, max_examples=round(share * max(n_cases // 5, 6)))


@dataclasses.dataclass(frozen=True)
class Kind:
    """A kind of input for metrics, with the functions that let a law apply to any kind."""

    cases: Callable[..., st.SearchStrategy[Any]]  # returns a strategy that draws cases
    record: Callable[..., Any]  # makes the input for metrics from a case and, optionally, scores
    values: Callable[..., Float64]  # computes values from a record, metrics, ties and user_keys
    raw: Callable[[Any, Metric], Float64] | None  # computes values by the formula, without clipping
    slack: float  # the tolerance for rounding errors
    scores: Callable[[Any], Float64] | None = None  # returns the scores that rank a case, if any
    same: Callable[[Float64, Float64], Bool] = same_bits


def shared_laws(kind: Kind) -> tuple[Law, ...]:
    """Return the laws that hold for all metrics, whatever their kind of input."""

    @law(kind.cases(max_users=MOST_USERS))
    def values_are_within_the_stated_range(metrics: Sequence[Metric], case: Any) -> None:
        """Check that values are within the bounds that the registry declares."""
        record = kind.record(case)
        lower = [metric.definition.lower for metric in metrics]
        upper = [metric.definition.upper for metric in metrics]
        for ties in RULES if kind.scores is not None else RULES[:1]:
            values = kind.values(record, metrics, ties)
            holds(metrics, np.isnan(values) | ((values >= lower) & (values <= upper)))

    @law(kind.cases(max_users=MOST_USERS))
    def formulas_leave_the_range_by_rounding_only(metrics: Sequence[Metric], case: Any) -> None:
        """Check that unclipped values exceed the declared bounds only by rounding errors."""
        record = kind.record(case)
        assert kind.raw is not None
        for metric in metrics:
            raw, definition = kind.raw(record, metric), metric.definition
            assert (raw >= definition.lower - 1e-14).all(), str(metric)
            assert (raw <= definition.upper + 1e-14).all(), str(metric)

    @law(kind.cases(min_users=4, max_users=MOST_USERS), st.data())
    def a_user_does_not_depend_on_the_others(
        metrics: Sequence[Metric], case: Any, data: st.DataObject
    ) -> None:
        """Check that neither omitting nor permuting users changes any bit of a value."""
        metrics = [metric for metric in metrics if not metric.definition.over_users]
        order = data.draw(st.permutations(range(case.n_users)))
        size = data.draw(st.integers(1, case.n_users - 1))
        keys = np.arange(case.n_users, dtype=np.uint64)
        rules: tuple[TieRule, ...] = ("expected",)
        if kind.scores is not None:
            rules = ("expected", "random", data.draw(st.sampled_from(RULES)))
        for ties in dict.fromkeys(rules):
            together = kind.values(kind.record(case), metrics, ties, keys)
            for part in (order[:size], order[size:]):
                separate = kind.values(kind.record(case.users(part)), metrics, ties, keys[part])
                holds(metrics, kind.same(separate, together[part]))

    @law(kind.cases(max_users=MOST_USERS), st.sampled_from(["expected", "item"]))
    def cumulative_equals_separate(metrics: Sequence[Metric], case: Any, ties: str) -> None:
        """Check that values have the same bits whether metrics are computed together or alone."""
        record = kind.record(case)
        separate = [kind.values(record, [metric], ties) for metric in metrics]
        holds(metrics, kind.same(np.column_stack(separate), kind.values(record, metrics, ties)))

    range_laws: tuple[Law, ...] = (values_are_within_the_stated_range,)
    if kind.raw is not None:
        range_laws = (*range_laws, formulas_leave_the_range_by_rounding_only)
    return *range_laws, a_user_does_not_depend_on_the_others, cumulative_equals_separate


def name_law(kind: Kind, without: Sequence[str] = ()) -> Law:
    """Return the law that item names do not matter, except to the metrics in `without`."""

    @law(kind.cases(max_users=MOST_USERS), st.data())
    def items_have_no_names(metrics: Sequence[Metric], case: Any, data: st.DataObject) -> None:
        """Check that renaming items changes values only by rounding errors."""
        metrics = [metric for metric in metrics if metric.name not in without]
        renamed = case.relabelled(data.draw(st.permutations(range(case.n_items))))
        values, expected = (kind.values(kind.record(c), metrics) for c in (renamed, case))
        holds(metrics, near(values, expected, kind.slack))

    return items_have_no_names


def tie_laws(kind: Kind) -> tuple[Law, ...]:
    """Return the laws about items with equal scores."""
    assert kind.scores is not None
    scores_of = kind.scores

    @law(kind.cases(max_users=1), share=1)
    def expected_is_the_mean_over_all_orders(metrics: Sequence[Metric], case: Any) -> None:
        """Check that values under ``ties="expected"`` are means over all orders of tied items."""
        metrics = averaged(metrics)
        orders = list(case.orders(0))
        copies = case.users([0] * len(orders))
        scores = scores_of(copies).copy()
        for row, order in enumerate(orders):
            scores[row, order] = -np.arange(len(order), dtype=np.float64)
        mean = kind.values(kind.record(copies, scores), metrics).mean(axis=0, keepdims=True)
        holds(metrics, near(kind.values(kind.record(case), metrics), mean, kind.slack))

    @law(kind.cases(max_users=MOST_USERS))
    def without_ties_every_rule_gives_the_same_bits(metrics: Sequence[Metric], case: Any) -> None:
        """Check that without ties, all tie rules give the same bits."""
        order = np.argsort(np.argsort(scores_of(case), axis=1, kind="stable"), axis=1)
        record = kind.record(case, order.astype(np.float64))
        expected = kind.values(record, metrics)
        for ties in RULES[1:]:
            holds(metrics, same_bits(kind.values(record, metrics, ties), expected))

    return expected_is_the_mean_over_all_orders, without_ties_every_rule_gives_the_same_bits


def averaged(metrics: Sequence[Metric]) -> list[Metric]:
    """Return the metrics whose values can be averaged over the orders of tied items."""
    return [metric for metric in metrics if metric.definition.averages_ties]


@functools.cache
def _all_orders(gains: tuple[float, ...]) -> tuple[Ranks, Float64]:
    """Rank items with these gains in every possible order, with a user for each order.

    Returns the ranks, and the gains in the order of the ranking, as float64 [n_users, n_items].
    """
    orders = np.array(list(itertools.permutations(range(len(gains)))))
    scores = np.empty(orders.shape)
    np.put_along_axis(scores, orders, -np.arange(len(gains), dtype=np.float64)[None, :], axis=1)
    gains_of_users = np.tile(gains, (len(orders), 1))
    return observed(rank(scores, gains_of_users)), np.nan_to_num(np.array(gains)[orders])


def monotone_where_so_declared(metrics: Sequence[Metric]) -> None:
    """Check that no value gets worse if an item swaps places with a worse item above it.

    The order from the best item to the worst is therefore the best, and its reverse is the worst.
    """
    metrics = [metric for metric in metrics if metric.definition.monotone]
    sign = direction(metrics)
    for gains in SMALL_SETS:
        ranks, in_order = _all_orders(gains)
        values = _ranking_values(ranks, metrics)
        number = {tuple(order): row for row, order in enumerate(in_order.tolist())}
        pairs = []
        for order, row in number.items():
            for above, below in itertools.combinations(range(len(order)), 2):
                if order[above] < order[below]:
                    better = list(order)
                    better[above], better[below] = better[below], better[above]
                    pairs.append((row, number[tuple(better)]))
        before, after = np.array(pairs).T
        change = sign * (values[after] - values[before])
        holds(metrics, np.isnan(change) | (change >= -1e-15 * (1 + np.abs(values[after]))))


def order_within_the_cutoff_does_not_matter_where_so_declared(metrics: Sequence[Metric]) -> None:
    """Check that values depend on the set of items in the first places, but not on their order."""
    metrics = [metric for metric in metrics if metric.definition.order_free]
    for gains in SMALL_SETS:
        ranks, in_order = _all_orders(gains)
        values = _ranking_values(ranks, metrics)
        for column, metric in enumerate(metrics):
            first_values: dict[tuple[float, ...], float] = {}
            for order, value in zip(in_order.tolist(), values[:, column].tolist(), strict=True):
                first = first_values.setdefault(tuple(sorted(order[: metric.cutoff])), value)
                assert math.isnan(value) or math.isclose(value, first, abs_tol=1e-15), str(metric)


@law(cases(max_users=MOST_USERS))
def expected_lies_between_pessimistic_and_optimistic(
    metrics: Sequence[Metric], case: RankingCase
) -> None:
    """Check that the mean over the orders of tied items lies between the worst and best values."""
    metrics = [metric for metric in averaged(metrics) if metric.definition.monotone]
    ranks = case.ranks()
    worst, value, best = (
        direction(metrics) * _ranking_values(ranks, metrics, ties)
        for ties in ("pessimistic", "expected", "optimistic")
    )
    slack = 1e-14 * (1 + np.abs(value))
    between = (worst <= value + slack) & (value <= best + slack) & (worst <= best)
    holds(metrics, np.isnan(value) | between)


def _ranking_values(
    ranks: Ranks,
    metrics: Sequence[Metric],
    ties: str = "expected",
    user_keys: UInt64 | None = None,
) -> Float64:
    return values_of(RankedUsers(ranks, 0, user_keys), metrics, AS_TIES.replace(ties=ties))


def _ranked(case: RankingCase, scores: Float64 | None = None) -> Ranks:
    return (case if scores is None else dataclasses.replace(case, scores=scores)).ranks()


def _ranking_formula(ranks: Ranks, metric: Metric) -> Float64:
    definition = metric.definition
    if definition.needs_candidates:
        return np.empty(0)  # the formula is meaningless for users without candidates
    cutoffs = [WHOLE] if metric.cutoff is None else [1, 2, 3, 9]
    raw = definition.function(
        resolve(ranks, by=definition.reads), np.array(cutoffs), **dict(metric.parameters)
    )
    return raw[~np.isnan(raw)] if definition.may_be_nan else raw


RANKINGS = Kind(cases, _ranked, _ranking_values, _ranking_formula, 1e-13, lambda case: case.scores)
LAWS: tuple[Law, ...] = (
    monotone_where_so_declared,
    order_within_the_cutoff_does_not_matter_where_so_declared,
    *shared_laws(RANKINGS),
    *tie_laws(RANKINGS),
    expected_lies_between_pessimistic_and_optimistic,
)
"""All laws for ranking metrics."""


@law(list_cases(max_users=MOST_USERS), st.data())
def the_order_of_users_does_not_matter(
    metrics: Sequence[Metric], case: ListCase, data: st.DataObject
) -> None:
    """Check that permuting users changes metrics over all users only by rounding errors."""
    metrics = [metric for metric in metrics if metric.definition.over_users]
    permuted = case.users(data.draw(st.permutations(range(case.n_users))))
    values, expected = (_list_values(variant.data(), metrics) for variant in (permuted, case))
    holds(metrics, near(values, expected, 1e-9))


@law(list_cases(max_users=MOST_USERS))
def only_the_first_places_are_read(metrics: Sequence[Metric], case: ListCase) -> None:
    """Check that items beyond the cut-off do not change any bit of a value."""
    for k, group in _group_by(metrics, lambda metric: metric.cutoff or 0):
        short = dataclasses.replace(case, lists=[row[:k] for row in case.lists])
        holds(group, _equal(_list_values(short.data(), group), _list_values(case.data(), group)))


@law(list_cases(max_users=MOST_USERS))
def order_within_the_list_does_not_matter_where_so_declared(
    metrics: Sequence[Metric], case: ListCase
) -> None:
    """Check that reversing the first places changes values only by rounding errors."""
    metrics = [metric for metric in metrics if metric.definition.order_free]
    for k, group in _group_by(metrics, lambda metric: metric.cutoff or 0):
        rows = [[*row[:k][::-1], *row[k:]] for row in case.lists]
        unrepeated = dataclasses.replace(case, repeats=())
        turned = dataclasses.replace(unrepeated, lists=rows)
        values, expected = (_list_values(c.data(), group) for c in (turned, unrepeated))
        holds(group, near(values, expected, 1e-9))


@law(list_cases(max_users=MOST_USERS))
def no_more_is_read_than_is_stated(metrics: Sequence[Metric], case: ListCase) -> None:
    """Check that metrics read only the side data that the registry declares."""
    data = case.data()
    for stated, group in _group_by(metrics, lambda metric: metric.definition.side):
        missing: dict[str, Any] = {
            name: None
            for side in typing.get_args(SideData)
            if side not in stated
            for name in FIELDS[side]
        }
        bare = dataclasses.replace(data, kept={}, **missing)
        holds(group, _equal(_list_values(bare, group), _list_values(data, group)))


@law(list_cases(max_users=MOST_USERS))
def sparse_features_say_the_same(metrics: Sequence[Metric], case: ListCase) -> None:
    """Check that features in a sparse array give the same values up to rounding errors."""
    metrics = [metric for metric in metrics if "features" in metric.definition.side]
    features = [row if row[0] == row[0] else [0.0] * len(row) for row in case.features]
    case = dataclasses.replace(case, features=features)
    sparse, dense = (_list_values(case.data(sparse=sparse), metrics) for sparse in (True, False))
    holds(metrics, near(sparse, dense, 1e-9))


@law(list_cases(max_users=MOST_USERS), st.data())
def users_who_do_not_count_are_as_if_they_were_not_there(
    metrics: Sequence[Metric], case: ListCase, data: st.DataObject
) -> None:
    """Check that metrics with one value for all users ignore users with weight 0."""
    metrics = [metric for metric in metrics if metric.definition.over_users]
    counted = data.draw(st.lists(st.booleans(), min_size=case.n_users, max_size=case.n_users))
    weights = np.array(counted, np.int64)
    chosen = [user for user, counts in enumerate(counted) if counts]
    without = _list_values(case.users(chosen).data(), metrics)[:1]
    holds(metrics, near(_list_values(case.data(), metrics, weights=weights)[:1], without, 1e-9))
    doubled = _list_values(case.data(), metrics, weights=np.full(case.n_users, 2))
    holds(metrics, near(doubled, _list_values(case.data(), metrics), 1e-9))


def _list_values(
    data: ListData, metrics: Sequence[Metric], *_: object, weights: Int64 | None = None
) -> Float64:
    """Compute the metric values for all users, as float64 [n_rows, n_metrics] with n_rows >= 1."""
    over_users = [metric for metric in metrics if metric.definition.over_users]
    per_user = [metric for metric in metrics if not metric.definition.over_users]
    listed = ListedUsers(data)
    by_name: dict[str, npt.ArrayLike] = dict(compute(listed, per_user, Protocol())[0])
    by_name |= compute_for_all(listed, over_users, Protocol(), weights)
    n_rows = max(data.n_users, 1)
    columns = [np.broadcast_to(by_name[str(metric)], n_rows) for metric in metrics]
    return np.column_stack(columns) if columns else np.empty((n_rows, 0))


def _equal(left: Float64, right: Float64) -> Bool:
    # The signs of NaN and of 0 may differ.
    return np.asarray((left == right) | (np.isnan(left) & np.isnan(right)))


LISTS = Kind(list_cases, ListCase.data, _list_values, None, 1e-9, same=_equal)
LIST_LAWS: tuple[Law, ...] = (
    *shared_laws(LISTS),
    name_law(LISTS, BY_ITEM_ID),
    the_order_of_users_does_not_matter,
    only_the_first_places_are_read,
    order_within_the_list_does_not_matter_where_so_declared,
    no_more_is_read_than_is_stated,
    sparse_features_say_the_same,
    users_who_do_not_count_are_as_if_they_were_not_there,
)
"""All laws for list metrics."""


def _group_by(
    metrics: Sequence[Metric], key: Callable[[Metric], Key]
) -> Iterable[tuple[Key, list[Metric]]]:
    groups: dict[Key, list[Metric]] = {}
    for metric in metrics:
        groups.setdefault(key(metric), []).append(metric)
    return groups.items()


@law(rating_cases(max_users=MOST_USERS, predicted=STARS))
def true_ratings_are_the_best_predictions(metrics: Sequence[Metric], case: RatingCase) -> None:
    """Check that no predictions beat the true ratings; metrics of probabilities are exempt."""
    metrics = [metric for metric in metrics if metric.definition.needs != "probabilities"]
    true = np.nan_to_num(case.actual)
    best = _rating_values(dataclasses.replace(case, predicted=true).ratings(), metrics)
    values = _rating_values(case.ratings(), metrics)
    undefined = np.isnan(best) | np.isnan(values)
    holds(metrics, undefined | (direction(metrics) * (best - values) >= -1e-14))


def _rating_values(
    ratings: Ratings,
    metrics: Sequence[Metric],
    ties: str = "expected",
    user_keys: UInt64 | None = None,
) -> Float64:
    return values_of(RatedUsers(ratings, 0, user_keys), metrics, Protocol().replace(ties=ties))


def _rating_formula(ratings: Ratings, metric: Metric) -> Float64:
    definition = metric.definition
    predictions = Predictions.of(ratings, nan_first=False)
    if definition.reads == "relevance":
        predictions = dataclasses.replace(predictions, ranked=resolve(ratings.ranks))
    cutoffs = [WHOLE] if metric.cutoff is None else [1, 2, 3, 9]
    raw = definition.function(predictions, np.array(cutoffs), **dict(metric.parameters))
    return raw[predictions.meets(definition.needs) & (predictions.n_rows > 0)]


RATINGS = Kind(
    rating_cases,
    RatingCase.ratings,
    _rating_values,
    _rating_formula,
    1e-12,
    lambda case: case.predicted,
)
RATING_LAWS: tuple[Law, ...] = (
    true_ratings_are_the_best_predictions,
    *shared_laws(RATINGS),
    name_law(RATINGS),
    *tie_laws(RATINGS),
)
"""All laws for metrics of predicted ratings."""

"""No metric depends on the numbering of items, the scale of scores or the kind of source.

A user's values do not depend on the other users either.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import recometer as rm
from recometer.metrics import parse, reading

METRICS = reading("ranks")

RULES = ("expected", "optimistic", "pessimistic", "random", "item", "item_desc")
WITHOUT_ITEM_ORDER = ("expected", "optimistic", "pessimistic")
METRICS_ASKED = (
    [
        name if definition.cutoff == "none" else f"{name}@1..4,7"
        for name, definition in METRICS.items()
        if name != "err"  # err depends on the largest gain of all users
    ]
    + [
        name
        for name, definition in METRICS.items()
        if definition.cutoff == "optional" and not definition.order_free and name != "err"
    ]
    + ["err@1..4,7(max_gain=3)", "err(max_gain=3)"]
)
ASKED = parse(METRICS_ASKED)


@st.composite
def problems(draw):
    """Draw integer scores with many ties, graded and negative gains, and training items."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    n_users, n_items = draw(st.integers(1, 5)), draw(st.integers(2, 12))
    scores = rng.integers(-3, draw(st.sampled_from([-1, 2, 40])), (n_users, n_items))
    kind = rng.random((n_users, n_items))
    test = np.where(kind < 0.3, rng.integers(0, 4, kind.shape), np.nan)
    test[0, 0] = 1  # an empty test set is an error
    train = (kind > draw(st.sampled_from([0.7, 1.0]))).astype(np.float64)
    return scores.astype(np.float64), to_sparse(test), sp.csr_array(train)


def to_sparse(values):
    """Return a sparse array that stores all entries except NaN, including zeros."""
    users, items = np.nonzero(~np.isnan(values))
    return sp.coo_array((values[users, items], (users, items)), shape=values.shape).tocsr()


def values(source, test, train, ties):
    result = rm.evaluate(source, test, train=train, metrics=ASKED, ties=ties, threads=1)
    return np.column_stack(list(result.values.values()))


def as_factors(scores):
    """Return the same scores as factors, with one factor per item."""
    return rm.Factors(scores, np.eye(scores.shape[1]))


@given(ties=st.sampled_from(RULES), problem=problems())
def test_factors_and_scores_agree(ties, problem):
    scores, test, train = problem
    np.testing.assert_array_equal(
        values(as_factors(scores), test, train, ties),
        values(rm.Scores(scores), test, train, ties),
    )


@given(ties=st.sampled_from(WITHOUT_ITEM_ORDER), problem=problems(), data=st.data())
def test_relabelling_items_does_not_change_values(ties, problem, data):
    scores, test, train = problem
    order = np.array(data.draw(st.permutations(range(scores.shape[1]))))
    np.testing.assert_allclose(
        values(as_factors(scores[:, order]), test[:, order], train[:, order], ties),
        values(as_factors(scores), test, train, ties),
        rtol=1e-14,
    )


CHANGES = {
    "half": lambda scores: scores * 0.5 - 3,
    "four times": lambda scores: scores * 4 + 8,
    "cube": lambda scores: scores**3,
    "power of 2": np.exp2,
}


@given(ties=st.sampled_from(RULES), problem=problems(), change=st.sampled_from(sorted(CHANGES)))
def test_strictly_increasing_transformations_do_not_change_values(ties, problem, change):
    scores, test, train = problem
    np.testing.assert_array_equal(
        values(rm.Scores(CHANGES[change](scores)), test, train, ties),
        values(rm.Scores(scores), test, train, ties),
    )


@given(ties=st.sampled_from(RULES), problem=problems(), data=st.data())
def test_values_of_a_user_do_not_depend_on_other_users(ties, problem, data):
    scores, test, train = problem
    n_users = len(scores)
    chosen = np.array(data.draw(st.permutations(range(n_users)))[: max(1, n_users - 1)])
    if not test[chosen].nnz:
        return
    together = rm.evaluate(
        rm.Factors(scores, np.eye(scores.shape[1]), user_ids=range(n_users)),
        rm.Interactions.of(test, user_ids=range(n_users)),
        train=rm.Interactions.of(train, user_ids=range(n_users)),
        metrics=ASKED,
        ties=ties,
    )
    separate = rm.evaluate(
        rm.Factors(scores[chosen], np.eye(scores.shape[1]), user_ids=chosen),
        rm.Interactions.of(test[chosen], user_ids=chosen),
        train=rm.Interactions.of(train, user_ids=range(n_users)),
        metrics=ASKED,
        ties=ties,
    )
    for name in together.values:
        np.testing.assert_array_equal(
            separate[name], together[name][separate.user_ids], err_msg=name
        )


@given(problem=problems())
def test_expected_value_lies_between_pessimistic_and_optimistic(problem):
    scores, test, train = problem
    sign = [1 if metric.definition.higher_is_better else -1 for metric in ASKED]
    low, middle, high = (
        sign * values(as_factors(scores), test, train, ties)
        for ties in ("pessimistic", "expected", "optimistic")
    )
    defined = ~np.isnan(middle)
    assert (low[defined] <= middle[defined] + 1e-14).all()
    assert (middle[defined] <= high[defined] + 1e-14).all()


@settings(max_examples=15)
@given(
    ties=st.sampled_from(RULES),
    seed=st.integers(0, 2**32),
    graded=st.booleans(),
    last=st.integers(2, 8) | st.none(),
)
def test_users_with_or_without_ties_get_the_same_values_alone_as_together(ties, seed, graded, last):
    rng = np.random.default_rng(seed)
    shape, tied = (40, 9), rng.choice(40, int(rng.integers(1, 7)), replace=False)
    scores = np.argsort(rng.random(shape), axis=1).astype(np.float64)
    # Either all items are tied in groups of three, or only the items at the end of the ranking are
    # tied, where some metrics ignore ties.
    scores[tied] = scores[tied] // 3 if last is None else np.maximum(scores[tied], last)
    test = np.where(rng.random(shape) < 0.4, rng.integers(1, 4 if graded else 2, shape), 0)
    test[:, 0] = 1
    train = rm.Interactions.of((rng.random(shape) < 0.1) & (test == 0), user_ids=np.arange(40))

    def measured(rows):
        users = {"user_ids": np.arange(40)[rows]}
        source, judged = rm.Scores(scores[rows], **users), rm.Interactions.of(test[rows], **users)
        return values(source, judged, train, ties)

    together = measured(slice(None))
    untied = np.setdiff1d(np.arange(40), tied)
    np.testing.assert_array_equal(together[np.sort(tied)], measured(np.sort(tied)))
    np.testing.assert_array_equal(together[untied], measured(untied))

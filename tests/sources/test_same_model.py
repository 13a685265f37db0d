"""Tests that every kind of source gives the same values for the same model."""

from __future__ import annotations

import numpy as np
import polars as pl
from hypothesis import given
from hypothesis import strategies as st

import recometer as rm
from recometer.metrics import reading

RULES = ("expected", "optimistic", "pessimistic", "random", "item", "item_desc")


@st.composite
def problems(draw):
    """Draw integer scores with many ties, a graded test set, and training items."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    shape = draw(st.integers(1, 4)), draw(st.integers(2, 8))
    scores = rng.integers(-3, draw(st.sampled_from([-1, 2, 40])), shape).astype(np.float64)
    test = np.where(rng.random(shape) < 0.4, rng.integers(1, 4, shape), 0)
    test[0, 0] = 1
    train = rng.random(shape) > draw(st.sampled_from([0.7, 1.0]))
    train[:, -1] = False  # the last item remains a candidate for every user
    return scores, test, train


def narrowed(draw_from, shape):
    """Return options for `evaluate` that leave out items for all users, some users or no users."""
    items = list(range(shape[1]))
    kind = draw_from.choice(["all", "whitelist", "sets", "exclude"])
    if kind == "whitelist":
        return {"candidates": sorted(draw_from.sample(items, draw_from.randint(1, len(items))))}
    if kind == "sets":
        sets = {user: draw_from.sample(items, len(items) // 2) for user in range(shape[0])}
        return {"candidates": sets | {0: items}}
    if kind == "exclude":
        return {"exclude": draw_from.sample(items[1:], draw_from.randint(0, len(items) - 2))}
    return {}


@given(ties=st.sampled_from(RULES), problem=problems(), random=st.randoms(use_true_random=False))
def test_all_sources_agree(ties, problem, random):
    scores, test, train = problem
    n_users, n_items = scores.shape
    train[0, 0] = False  # item 0 always remains a candidate for user 0
    options = narrowed(random, scores.shape)
    if "candidates" in options and isinstance(options["candidates"], list):
        options["candidates"] = sorted({0, *options["candidates"]})
    ids = {"user_ids": range(n_users), "item_ids": range(n_items)}
    test, train = (rm.Interactions.of(data, **ids) for data in (test, train))
    if options:  # each kind of source detects constant scores in different cases
        options["constant_scores"] = "ties"
    users, items = np.indices(scores.shape).reshape(2, -1)
    rows = pl.DataFrame({"user": users, "item": items, "score": scores.ravel()})

    def evaluate(source, metrics, test=test, **further_options):
        return rm.evaluate(
            source, test, train=train, metrics=metrics, ties=ties, **options, **further_options
        )

    # `Pairs` would warn about a cut-off beyond the rows of every user.
    deepest = evaluate(rm.Scores(scores, **ids), "rr").n_candidates.max()
    metrics = []
    ranking_metrics = reading("ranks", side=False)
    for name in random.sample(sorted(ranking_metrics), 15):
        definition = ranking_metrics[name]
        metrics += [f"{name}@1..{deepest}"] if definition.cutoff != "none" else []
        metrics += [name] if definition.cutoff != "required" else []

    expected = evaluate(rm.Scores(scores, **ids), metrics)
    assert_same(evaluate(rm.Factors(scores, np.eye(n_items), **ids), metrics), expected)
    assert_same(evaluate(rm.Lists(rows), metrics, catalogue=n_items), expected)
    assert_same(evaluate(rm.Pairs(rows), metrics), expected, deep_cutoffs_off=True)
    if ties != "random":  # the random order depends on which items are judged
        truth = test.to_csr().toarray()[users, items]
        labelled = rm.Pairs(rows.with_columns(relevance=truth))
        values = evaluate(labelled, metrics, None)
        assert_same(values, expected, deep_cutoffs_off=True, more_judged=True)


def assert_same(result, expected, deep_cutoffs_off=False, more_judged=False):
    """Assert that values are equal, with up to two exceptions.

    `deep_cutoffs_off` skips values that are undefined because the cut-off includes all candidates,
    since the rule `deep_cutoffs` does not apply to `Pairs`. `more_judged` skips bpref, which counts
    judged irrelevant items and therefore changes if more items are judged.
    """
    for name in ("n_candidates", "n_excluded", "n_relevant"):
        np.testing.assert_array_equal(getattr(result, name), getattr(expected, name), name)
    for name, values in expected.values.items():
        if more_judged and name == "bpref":
            continue
        compared_users = np.ones(len(values), bool)
        if deep_cutoffs_off:
            compared_users = expected.reasons[name] != rm.Reason.CUTOFF_TOO_DEEP
        np.testing.assert_array_equal(
            result[name][compared_users], values[compared_users], err_msg=name
        )

"""Tests of the flags for known users, users with training items, and constant scores."""

import numpy as np
import polars as pl
import pytest

import recometer as rm
from recometer.sources.base import Request

KNOWN, TRAINED, CONSTANT = rm.UserFlag.KNOWN, rm.UserFlag.TRAINED, rm.UserFlag.CONSTANT_SCORES

# The scores of users 0 to 3. User 4 is a test user, but unknown to all sources.
SCORES = np.array([[1.0, 1, 1, 1], [0, 1, 1, 1], [1, 1, 1, 2], [1, 1, 1, 1]])
# User 1 has one training item, and user 2 has two. User 3 has three, so only one candidate remains.
TRAIN = {1: [3], 2: [0, 3], 3: [1, 2, 3]}
TEST = {0: [1], 1: [1], 2: [1], 3: [0], 4: [2]}
EXPECTED = [KNOWN | CONSTANT, KNOWN | TRAINED, KNOWN | TRAINED | CONSTANT, KNOWN | TRAINED, 0]

IDS = {"user_ids": range(4), "item_ids": range(4)}
USERS, ITEMS = np.indices(SCORES.shape).reshape(2, -1)
ROWS = pl.DataFrame({"user": USERS, "item": ITEMS, "score": SCORES.ravel()})
SOURCES = {
    "scores": lambda: (rm.Scores(SCORES, **IDS), {}),
    "factors": lambda: (rm.Factors(SCORES, np.eye(4), **IDS), {}),
    "pairs": lambda: (rm.Pairs(ROWS, relevance=False, rating=False), {}),
    "lists": lambda: (rm.Lists(ROWS), {"catalogue": 4}),
}


@pytest.mark.parametrize("name", SOURCES)
def test_ranks_flag_known_trained_and_constant_users(name):
    source, options = SOURCES[name]()
    result = rm.evaluate(source, TEST, train=TRAIN, metrics="rr", **options)
    assert result.flags.tolist() == EXPECTED


@pytest.mark.parametrize("name", ["scores", "factors"])
def test_top_lists_carry_the_flags_of_their_users(name):
    """`top` does not look at judged items, but must derive the flags from all scores."""
    source, _ = SOURCES[name]()
    test, train = rm.Interactions.of(TEST), rm.Interactions.of(TRAIN)
    assert source.top(Request(test, train, rm.Protocol()), 3).flags.tolist() == EXPECTED


@pytest.mark.parametrize("name", SOURCES)
def test_users_without_train_items_are_undefined_if_cold_start_is_false(name):
    source, options = SOURCES[name]()
    rules = {"cold_start": False, "constant_scores": "ties", "min_candidates": 1}
    rules |= {"all_relevant": "computed"}
    result = rm.evaluate(source, TEST, train=TRAIN, metrics="rr", **rules, **options)
    np.testing.assert_array_equal(result["rr"], [np.nan, 0.75, 0.75, 1, np.nan])

"""Rules for undefined values and means agree with literal implementations of their descriptions."""

from __future__ import annotations

import math
import warnings
from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import recometer as rm

METRICS = ("recall@2", "popularity@2")
K, N_ITEMS = 2, 5
ITEMS = st.lists(st.integers(0, N_ITEMS - 1), min_size=1, max_size=3, unique=True)
# A strategy for users: a list or None, the values of test items, and whether the user has training
# rows.
USER = st.tuples(
    st.none() | ITEMS,
    st.dictionaries(st.integers(0, N_ITEMS - 1), st.sampled_from([0.0, 1.0]), max_size=3),
    st.booleans(),
)
RULES: Mapping[str, st.SearchStrategy[Any]] = {
    "users": st.sampled_from(
        ["test", "all", "known", "relevant", "known_relevant", "listed", "positive"]
    ),
    "undefined": st.sampled_from(["nan", 0.25]),
    "no_relevant": st.sampled_from(["undefined", "computed", 0.66]),
    "no_list": st.sampled_from(["misses", "undefined"]),
    "min_positives": st.integers(0, 3),
    "cold_start": st.booleans(),
    "missing": st.sampled_from(["skip", "zero", "nan"]),
    "decimals": st.sampled_from([None, 0, 1]),
}
# Every case contains these users, so that the test data, the training data and the lists are never
# empty.
ALWAYS = [([0, 1], {1: 1.0}, True), ([0], {}, True), ([N_ITEMS], {0: 1.0, N_ITEMS: 1.0}, True)]


def expected(metric: str, user: Any, rules: Mapping[str, Any]) -> tuple[float, str, bool]:
    """Return a user's value, the reason why it is undefined, and whether it counts in the mean."""
    user_list, judged, trained = user
    relevant = [item for item, value in judged.items() if value]
    of_test = metric == "recall@2"
    reason, value = "", 0.0
    if user_list is None and rules["users"] == "known":
        reason, value = "the user is unknown to the source", math.nan
    elif user_list is None and rules["no_list"] == "undefined":
        reason, value = "the source has no list for the user", math.nan
    elif of_test and not relevant and rules["no_relevant"] != "computed":
        reason, number = "no relevant item to find", rules["no_relevant"]
        value = rules["undefined"] if number == "undefined" else number
    elif of_test and len(relevant) < rules["min_positives"] > 1:
        reason, value = "fewer relevant items than min_positives", rules["undefined"]
    elif not trained and not rules["cold_start"]:
        reason, value = "no training item, and cold_start is off", rules["undefined"]
    elif not of_test and not user_list:
        reason, value = "the user's list is empty", rules["undefined"]
    elif not of_test:
        value = sum(item != 0 for item in user_list[:K]) / len(user_list[:K])
    elif relevant:
        value = sum(item in relevant for item in (user_list or [])[:K]) / len(relevant)
    value = float(value)
    if rules["decimals"] is not None:
        value = round(value, rules["decimals"])
    # If a metric reads only the lists, its mean includes users without test items.
    in_test = bool(judged) or not of_test or rules["no_relevant"] == "undefined"
    counts = {
        "test": in_test,
        "all": True,
        "known": in_test,
        "relevant": bool(relevant),
        "known_relevant": bool(relevant) and user_list is not None,
        "listed": user_list is not None,
        "positive": value > 0,
    }[rules["users"]]
    if not counts and not (rules["missing"] == "skip" and math.isnan(value)):
        reason = "the rule users= leaves the user out of the mean"
    return value, reason, counts


@given(st.lists(USER, max_size=4), st.fixed_dictionaries(RULES))
def test_values_reasons_and_means_follow_the_rules(
    random_users: list[Any], rules: Mapping[str, Any]
) -> None:
    people = dict(enumerate(random_users + ALWAYS))
    users, items = range(len(people)), range(N_ITEMS + 2)
    as_given = {"n_users": len(users), "user_ids": users, "n_items": len(items), "item_ids": items}
    test = rm.Interactions.of({user: person[1] for user, person in people.items()}, **as_given)
    trained = {user: [N_ITEMS + 1] for user in users if people[user][2]}
    trained |= {users[-1]: list(range(1, N_ITEMS)), users[-2]: [N_ITEMS]}
    train = rm.Interactions.of(
        {u: dict.fromkeys(train_items, 1.0) for u, train_items in trained.items()}, **as_given
    )
    source = rm.Lists({user: person[0] for user, person in people.items() if person[0] is not None})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rm.DataWarning)
        result = rm.evaluate(source, test, train=train, metrics=METRICS, **rules)
    for metric in METRICS:
        expected_values = [expected(metric, user, rules) for user in people.values()]
        np.testing.assert_allclose(result[metric], [value for value, _, _ in expected_values])
        assert result.skipped(metric) == Counter(
            reason for _, reason, _ in expected_values if reason
        )
        entering = [value for value, _, counts in expected_values if counts]
        if rules["missing"] == "skip":
            entering = [value for value in entering if not math.isnan(value)]
        if rules["missing"] == "zero":
            entering = [0.0 if math.isnan(value) else value for value in entering]
        mean = sum(entering) / len(entering) if entering else math.nan
        assert result.mean()[metric] == pytest.approx(mean, nan_ok=True)

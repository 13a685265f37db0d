"""Lists that the user before fills: on Spark, too, whoever that is and wherever."""

import warnings

import numpy as np
import polars as pl
import pytest
from spark_cases import MARKS, assert_same, data, schema_of

import recometer as rm
import recometer.spark as rs
from recometer.errors import DataWarning, InputError
from recometer.spark import _previous

pytestmark = MARKS

RULE = {"metrics": "ndcg@8 precision@6 recall@8", "short_lists": "previous_user"}
PYG = {
    "metrics": "LinkPredPrecision@8 LinkPredNDCG@8 LinkPredMRR@8 LinkPredAveragePopularity@3",
    "protocol": "pyg",
    "defects": True,
}


def held_out(seed, ids):
    """Return a test in which many users have the last item, some of it with the value 0."""
    users, items, test, train, rng = data(seed=seed, ids=ids)
    last, own = max(items), sorted({*test["user"]})[::2]
    test = {name: list(column) for name, column in test.items()}
    for user in own:
        test["user"].append(user)
        test["item"].append(last)
        test["value"].append(float(rng.integers(0, 3)))
    return users, items, test, train, rng


def short(users, items, rng):
    """Return the columns of lists with ranks, shorter than most cut-offs."""
    lengths = rng.integers(1, 7, len(users))
    places = [rng.permutation(len(items))[:n] for n in lengths]
    return {
        "user": [user for user, n in zip(users, lengths, strict=True) for _ in range(n)],
        "item": [items[place] for one in places for place in one],
        "rank": [rank + 1 for n in lengths for rank in range(n)],
    }


@pytest.mark.parametrize(
    ("spark", "ids", "given"),
    [("classic", str, RULE), ("connect", str, RULE), ("classic", int, PYG)],
    indirect=["spark"],
)
def test_the_user_before_fills_the_list_wherever_it_is(table, monkeypatch, ids, given):
    monkeypatch.setattr(_previous, "USERS_PER_RANGE", 7)
    users, items, test, train, rng = held_out(11, ids)
    if ids is int:  # neighbours, and gaps
        number = {user: n if n < 30 else 2 * n for n, user in enumerate(users)}
        users = list(number.values())
        test["user"] = [number[user] for user in test["user"]]
        train["user"] = [number[user] for user in train["user"]]
    rows = short(users[5:], items, rng)
    schema = schema_of(ids)
    frame = table(rows, schema.replace("value double", "rank bigint"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        tables = table(test, schema), table(train, schema)
        result = rs.evaluate(rs.Lists(frame), tables[0], train=tables[1], **given)
        one = rm.Lists(pl.DataFrame(rows))
        frames = pl.DataFrame(test), pl.DataFrame(train)
        expected = rm.evaluate(one, frames[0], train=frames[1], **given)
        other = {**given, "defects": False} if "defects" in given else {"metrics": given["metrics"]}
        assert rm.evaluate(one, frames[0], train=frames[1], **other).mean() != expected.mean()
    assert_same(result, expected)


@pytest.mark.parametrize("spark", ["classic"], indirect=True)
def test_the_session_before_fills_the_list_of_a_session(table, monkeypatch):
    monkeypatch.setattr(_previous, "USERS_PER_RANGE", 7)
    _, items, test, _, rng = held_out(12, int)
    test["session"] = [f"s{rng.integers(0, 3)}" for _ in test["user"]]
    named = sorted({*zip(test["user"], test["session"], strict=True)})
    lists = [[items[n] for n in rng.permutation(len(items))[:4]] for _ in named]
    rows = {"user": [u for u, _ in named], "session": [s for _, s in named], "item": lists}
    both = ["user", "session"]
    schema = "user bigint, item bigint, value double, session string"
    source = rs.Lists(table(rows, "user bigint, session string, item array<bigint>"), user=both)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        result = rs.evaluate(source, rs.Interactions(table(test, schema), user=both), **RULE)
        expected = rm.evaluate(
            rm.Lists(pl.DataFrame(rows), user=both),
            rm.Interactions.of(pl.DataFrame(test), user=both, item="item", value="value"),
            **RULE,
        )
    found = result.collect()
    assert found.user_ids.tolist() == expected.user_ids.tolist()
    for name, values in expected.values.items():
        np.testing.assert_array_equal(found.values[name], values, err_msg=name)


@pytest.mark.parametrize("spark", ["classic"], indirect=True)
def test_what_is_not_a_list_is_not_filled(table):
    users, items, _, _, rng = data(ids=int)
    rows = {
        "user": users * 2,
        "item": [items[n] for n in rng.integers(0, len(items), 2 * len(users))],
        "relevance": [1.0] * 2 * len(users),
        "score": rng.random(2 * len(users)),
    }
    frame = table(rows, "user bigint, item bigint, relevance double, score double")
    given = {**RULE, "metrics": "precision@2"}
    for call in (
        lambda: rs.evaluate(rs.Pairs(frame), **given),
        lambda: rm.evaluate(rm.Pairs(pl.DataFrame(rows)), **given),
    ):
        with pytest.raises(InputError, match=r"about lists that are shorter than k.*is not a list"):
            call()

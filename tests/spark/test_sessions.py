"""Sessions of users on Spark: values, means and intervals are those of one machine."""

import numpy as np
import polars as pl
import pytest
from spark_cases import CUT, MARKS, assert_same, data, factors

import recometer as rm
import recometer.spark as rs
from recometer.errors import InputError

pytestmark = MARKS

BOTH = ["user", "session"]
SCHEMA = "user string, session bigint, item string, value double"


def with_sessions(columns, rng, most=3):
    """Return columns whose rows are in one of a few sessions, of some users in more than others."""
    several = [1 + hash_of(user) % most for user in columns["user"]]
    return {**columns, "session": [10 - int(rng.integers(0, n)) for n in several]}


def hash_of(user):
    return int(user[1:])


def ordered(columns, schema=SCHEMA):
    """Return the columns in the order of a schema."""
    return {part.split()[0]: columns[part.split()[0]] for part in schema.split(", ")}


def paired(columns):
    return rm.Interactions.of(pl.DataFrame(columns), user=BOTH, item="item", value="value")


def test_train_and_factors_of_users_hold_for_all_of_their_sessions(table):
    users, items, test, train, rng = data(seed=3)
    test = ordered(with_sessions(test, rng))
    of_users, of_items = factors(rng, "float32", users, items)
    kind = "id string, features array<float>"
    source = rs.Factors(
        table({"id": users[4:], "features": of_users[4:]}, kind),
        table({"id": items, "features": of_items}, kind),
    )
    one = rm.Factors(of_users[4:], of_items, user_ids=users[4:], item_ids=items)
    frame = rs.Interactions(table(test, SCHEMA), user=BOTH)
    trained = table(train, "user string, item string, value double")
    given = {"metrics": f"{CUT} err@10 rr roc_auc coverage@3 novelty@3", "ties": "random"}
    expected = rm.evaluate(one, paired(test), train=pl.DataFrame(train), **given)
    result = rs.evaluate(source, frame, train=trained, **given)
    assert_same_sessions(result, expected)
    assert result.per_user().columns[:2] == BOTH
    said = next(line for line in str(expected).splitlines() if "sessions of" in line)
    assert said in str(result)
    given["metrics"] = f"{CUT} rr roc_auc"
    expected = rm.evaluate(one, paired(test), train=pl.DataFrame(train), **given)
    blocked = rs.evaluate(source, frame, train=trained, closure=120, partitions=3, **given)
    assert_same_sessions(blocked, expected)


def assert_same_sessions(result, expected):
    whole = result.over_users
    assert whole == pytest.approx(dict(expected.over_users), abs=1e-12)
    if not whole:
        assert_same(result, expected)
        return
    found = result.collect()
    assert found.user_ids.tolist() == expected.user_ids.tolist()
    for name, values in expected.values.items():
        np.testing.assert_array_equal(found.values[name], values, err_msg=name)
    for row, other in zip(result.summary(), expected.summary(), strict=True):
        if row.metric not in whole:
            ends = [other.mean, other.low, other.high]
            assert [row.mean, row.low, row.high] == pytest.approx(ends, abs=1e-9, nan_ok=True)
            assert (row.method, row.note, row.counted) == (other.method, other.note, other.counted)


def test_lists_of_sessions_and_train_of_sessions(table):
    _, items, test, train, rng = data(seed=4)
    test, train = (ordered(with_sessions(one, rng)) for one in (test, train))
    rows = {"user": [], "session": [], "item": [], "value": []}
    for user, session in sorted({*zip(test["user"], test["session"], strict=True)})[5:]:
        for place in rng.permutation(len(items))[:12]:
            for name, one in zip(rows, (user, session, items[place], float(place)), strict=True):
                rows[name].append(one)
    lists = rs.Lists(table(rows, SCHEMA), user=BOTH, score="value")
    frames = [rs.Interactions(table(one, SCHEMA), user=BOTH) for one in (test, train)]
    given = {"metrics": CUT, "catalogue": items, "interval": "bca", "users": "listed"}
    result = rs.evaluate(lists, frames[0], train=frames[1], **given)
    one = rm.Lists(pl.DataFrame(rows), user=BOTH, score="value")
    assert_same(result, rm.evaluate(one, paired(test), train=paired(train), **given))
    with pytest.raises(InputError, match="Lists has sessions of users, but test has none"):
        rs.evaluate(lists, table(test, SCHEMA).drop("session"), metrics="rr@5")

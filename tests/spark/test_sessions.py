"""Users' sessions have the same values, means and intervals on Spark as on one machine."""

import numpy as np
import polars as pl
import pytest
from spark_cases import CUT, MARKS, assert_same, both_factors, data

import recometer as rm
import recometer.spark as rs
from recometer.errors import DataWarning, InputError

pytestmark = MARKS

BOTH = ["user", "session"]
SCHEMA = "user string, session bigint, item string, value double"


def with_sessions(columns, rng, max_sessions=3):
    """Add a column that divides the rows of each user into up to `max_sessions` sessions."""
    several = [1 + hash_of(user) % max_sessions for user in columns["user"]]
    return {**columns, "session": [10 - int(rng.integers(0, n)) for n in several]}


def hash_of(user):
    return int(user[1:])


def ordered(columns, schema=SCHEMA):
    """Return the columns in the order of a schema."""
    return {part.split()[0]: columns[part.split()[0]] for part in schema.split(", ")}


def paired(columns):
    return rm.Interactions.of(pl.DataFrame(columns), user=BOTH, item="item", value="value")


def test_train_and_factors_of_users_apply_to_all_of_their_sessions(table):
    users, items, test, train, rng = data(seed=3)
    test = ordered(with_sessions(test, rng))
    source, local = both_factors(table, rng, "float32", users, items, slice(4, None))
    frame = rs.Interactions(table(test, SCHEMA), user=BOTH)
    trained = table(train, "user string, item string, value double")
    options = {"metrics": f"{CUT} err@10 rr roc_auc coverage@3 novelty@3", "ties": "random"}
    expected = rm.evaluate(local, paired(test), train=pl.DataFrame(train), **options)
    result = rs.evaluate(source, frame, train=trained, **options)
    assert_same_sessions(result, expected)
    assert result.per_user().columns[:2] == BOTH
    session_line = next(line for line in str(expected).splitlines() if "sessions of" in line)
    assert session_line in str(result)


def assert_same_sessions(result, expected):
    means = result.over_users
    assert means == pytest.approx(dict(expected.over_users), abs=1e-12)
    if not means:
        assert_same(result, expected)
        return
    collected = result.collect()
    assert collected.user_ids.tolist() == expected.user_ids.tolist()
    for name, values in expected.values.items():
        np.testing.assert_array_equal(collected.values[name], values, err_msg=name)
    for row, expected_row in zip(result.summary(), expected.summary(), strict=True):
        if row.metric not in means:
            ends = [expected_row.mean, expected_row.low, expected_row.high]
            assert [row.mean, row.low, row.high] == pytest.approx(ends, abs=1e-9, nan_ok=True)
            assert (row.method, row.note, row.counted) == (
                expected_row.method,
                expected_row.note,
                expected_row.counted,
            )


def test_lists_and_train_of_sessions_are_evaluated_as_on_one_machine(table):
    _, items, test, train, rng = data(seed=4)
    test, train = (ordered(with_sessions(side, rng)) for side in (test, train))
    rows = {"user": [], "session": [], "item": [], "value": []}
    for user, session in sorted({*zip(test["user"], test["session"], strict=True)})[5:]:
        for place in rng.permutation(len(items))[:12]:
            for name, value in zip(rows, (user, session, items[place], float(place)), strict=True):
                rows[name].append(value)
    lists = rs.Lists(table(rows, SCHEMA), user=BOTH, score="value")
    frames = [rs.Interactions(table(side, SCHEMA), user=BOTH) for side in (test, train)]
    options = {"metrics": CUT, "catalogue": items, "interval": "bca", "users": "listed"}
    result = rs.evaluate(lists, frames[0], train=frames[1], **options)
    value = rm.Lists(pl.DataFrame(rows), user=BOTH, score="value")
    assert_same(result, rm.evaluate(value, paired(test), train=paired(train), **options))
    missing = table(test, SCHEMA).selectExpr("user", "nullif(session, 10) AS session", "item")
    with pytest.raises(InputError, match="test has rows in which the session is missing"):
        rs.evaluate(lists, rs.Interactions(missing, user=BOTH), metrics="rr@5", catalogue=items)
    with pytest.raises(InputError, match="Lists has sessions of users, but test has none"):
        rs.evaluate(lists, table(test, SCHEMA).drop("session"), metrics="rr@5")


@pytest.mark.parametrize("spark", ["classic"], indirect=True)
def test_pairs_and_arrays_of_sessions_are_evaluated_as_on_one_machine(table):
    users, items, test, _, rng = data(seed=9)
    rows = ordered(with_sessions(test, rng)) | {"score": rng.integers(0, 4, len(test["user"])) / 4}
    schema = SCHEMA.replace("value", "relevance") + ", score double"
    rows["relevance"] = [float(value > 2) for value in rows.pop("value")]
    columns = [part.split()[0] for part in schema.split(", ")]
    rows = {name: rows[name] for name in columns}
    result = rs.evaluate(rs.Pairs(table(rows, schema), user=BOTH), metrics="ndcg@3 roc_auc")
    local = rm.Pairs(pl.DataFrame(rows), user=BOTH)
    assert_same(result, rm.evaluate(local, metrics="ndcg@3 roc_auc"))
    pairs = sorted({*zip(rows["user"], rows["session"], strict=True)})
    lists = {
        "user": [user for user, _ in pairs],
        "session": [session for _, session in pairs],
        "item": [[items[n] for n in rng.permutation(len(items))[:7]] for _ in pairs],
    }
    test = ordered({**rows, "value": rows["relevance"]})
    sets = {"user": [u for u in users for _ in range(20)], "item": items[::2] * len(users)}
    options = {"metrics": "ndcg@5 recall@5", "catalogue": items}
    with pytest.warns(DataWarning, match="are not candidates"):
        expected = rm.evaluate(
            rm.Lists(pl.DataFrame(lists), user=BOTH),
            paired(test),
            candidates=pl.DataFrame(sets),
            **options,
        )
    with pytest.warns(DataWarning, match="are not candidates"):
        result = rs.evaluate(
            rs.Lists(table(lists, "user string, session bigint, item array<string>"), user=BOTH),
            rs.Interactions(table(test, SCHEMA), user=BOTH),
            candidates=table(sets, "user string, item string"),
            **options,
        )
    assert_same(result, expected)
    plain, expected_facts = result.to_dict(), expected.to_dict()
    assert plain.keys() == expected_facts.keys()
    assert plain["users"] == expected_facts["users"]
    assert plain["metrics"].keys() == expected_facts["metrics"].keys()

"""Errors and warnings about ids, scores and times are the same as on one machine."""

import datetime

import numpy as np
import pytest

import recometer as rm
import recometer.spark as rs
from recometer.split import After

pytestmark = pytest.mark.spark

N = 20
BEST = np.array([np.random.default_rng(user).permutation(N)[:5] for user in range(N)])
IDS = "user bigint, item bigint"
RANKED = "user bigint, item bigint, rank int"
WORDS = "positions seem to be used as ids"


def ranked(table, users, items):
    """Return all users' lists, best items first."""
    columns = {
        "user": np.repeat(users, 5),
        "item": items[BEST].ravel(),
        "rank": np.tile(np.arange(5), N),
    }
    return rs.Lists(table(columns, RANKED))


@pytest.mark.filterwarnings("ignore:.*unknown to the model")
@pytest.mark.filterwarnings("ignore:.*shifted_ids")
def test_positions_are_not_mistaken_for_ids(table):
    zero, from_one = np.arange(N), np.arange(1, N + 1)
    test = table({"user": from_one, "item": BEST[:, 1] + 1}, IDS)
    with pytest.raises(rm.InputError, match=f"contain user 20 and no user 0: {WORDS}"):
        rs.evaluate(ranked(table, zero, from_one), test, metrics="rr")
    train = table({"user": [1], "item": [20]}, IDS)
    with pytest.raises(rm.InputError, match=f"contain item 20 and no item 0: {WORDS}"):
        rs.evaluate(ranked(table, from_one, zero), test, train=train, metrics="rr")
    result = rs.evaluate(ranked(table, zero, from_one), test, metrics="rr", shifted_ids="kept")
    assert result.counts["users_unknown"] == 1
    assert rs.evaluate(ranked(table, from_one, from_one), test, metrics="rr").mean() == {"rr": 0.5}
    # User ids begin at 0 in the data, and at 1 in the model.
    test_from_zero = table({"user": zero, "item": BEST[:, 1]}, IDS)
    with pytest.raises(rm.InputError, match="users of test and train are 0 to 19, but those of"):
        rs.evaluate(ranked(table, from_one, zero), test_from_zero, metrics="rr")
    # The user ids begin at 0, but user 0 has no test rows.
    test_without_user_0 = table({"user": zero[1:], "item": BEST[1:, 1]}, IDS)
    assert rs.evaluate(ranked(table, zero, zero), test_without_user_0, metrics="rr").mean() == {
        "rr": 0.5
    }


@pytest.mark.parametrize("spark", ["classic"], indirect=True)
def test_positions_as_text_are_not_mistaken_for_ids(table):
    texts = "user string, item string"
    columns = {
        "user": np.repeat([str(n) for n in range(N)], 5),
        "item": [f"i{item}" for item in BEST.ravel()],
        "rank": np.tile(np.arange(5), N),
    }
    lists = rs.Lists(table(columns, f"{texts}, rank int"))
    items = [f"i{item}" for item in BEST[:, 1]]
    test = table({"user": [str(n) for n in range(1, N + 1)], "item": items}, texts)
    with pytest.raises(rm.InputError, match=f"contain user 20 and no user 0: {WORDS}"):
        rs.evaluate(lists, test, metrics="rr")
    same_ids = table({"user": [str(n) for n in range(N)], "item": items}, texts)
    assert rs.evaluate(lists, same_ids, metrics="rr").mean() == {"rr": 0.5}


def test_users_with_a_different_spelling_are_reported(table):
    lists = {"user": ["ann", "bob", "eve"] * 2, "item": ["a", "b", "c", "b", "c", "a"]}
    frame = table({**lists, "rank": [1, 1, 1, 2, 2, 2]}, "user string, item string, rank int")
    test = table(
        {"user": ["Ann", "Bob", "eve"], "item": ["a", "b", "c"]}, "user string, item string"
    )
    message = (
        r"2 of 3 test users \(67%\) are unknown to the model .*such as 'Ann', 'Bob', and count"
    )
    with pytest.warns(rm.DataWarning, match=message) as caught:
        rs.evaluate(rs.Lists(frame), test, metrics="rr")
    text = " ".join(str(warning.message) for warning in caught)
    assert "'Ann' may be 'ann', written differently: letter case" in text


def test_integer_scores_are_refused_if_double_cannot_represent_them(table):
    columns = {"user": [1, 1], "item": [1, 2], "score": [2**60, 2**60 + 1], "label": [0, 1]}
    schema = "user bigint, item bigint, score bigint, label int"
    frame = table(columns, schema)
    test = table({"user": [1], "item": [2]}, IDS)
    with pytest.raises(
        rm.InputError, match=r"column 'score'\) are ranked as float64, which cannot distinguish 1"
    ):
        rs.evaluate(rs.Lists(frame.drop("label")), test, metrics="rr")
    with pytest.raises(
        rm.InputError, match=r"column 'score'\) are ranked as float64, which cannot distinguish 1"
    ):
        rs.evaluate(rs.Pairs(frame), metrics="rr")
    small = table({**columns, "score": [2**60, 2**61]}, schema)
    assert rs.evaluate(rs.Pairs(small), metrics="rr").mean() == {"rr": 1}


@pytest.mark.parametrize("spark", ["classic"], indirect=True)
def test_date_means_midnight_in_the_time_zone_of_the_spark_session(spark, table):
    noon = datetime.datetime(2024, 5, 31, 12, tzinfo=datetime.timezone.utc)
    hours = [0, 9, 10, 12]  # midnight in Berlin is 10 hours after noon UTC
    seconds = [int(noon.timestamp()) + 3600 * hour for hour in hours]
    columns = {"user": [1, 1, 2, 2], "item": [1, 2, 3, 4], "s": seconds}
    frame = table(columns, "user bigint, item bigint, s bigint")
    dated = frame.selectExpr("user", "item", "timestamp_seconds(s) AS time")
    before = spark.conf.get("spark.sql.session.timeZone")
    try:
        spark.conf.set("spark.sql.session.timeZone", "Europe/Berlin")
        plain = dated.selectExpr("user", "item", "CAST(time AS timestamp_ntz) AS time")
        for data in (dated, plain):
            split = rs.split(data, After("2024-06-01"))
            assert sorted(row.item for row in split.test.collect()) == [3, 4]
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)


def test_ambiguous_times_are_refused(table):
    schema = "user bigint, item bigint, time {}"
    rows = {"user": [1, 1, 2], "item": [1, 2, 3]}
    for kind, times, message in (
        ("float", [1.7e9, 1.7e9, 1.7e9], "float32, which holds"),
        ("bigint", [1_700_000_000, 1_700_000_000_000, 1_700_000_001], "count in different units"),
    ):
        frame = table({**rows, "time": times}, schema.format(kind))
        with pytest.raises(rm.InputError, match=message):
            rs.split(frame, After(1_700_000_001))
        with pytest.raises(rm.InputError, match=message):
            rs.audit(frame, frame)
    # Times in nanoseconds since 1970 are compared as integers.
    first_time = 1_700_000_000_000_000_000
    train = table(
        {**rows, "time": [first_time, first_time + 1, first_time]}, schema.format("bigint")
    )
    test = table(
        {"user": [1, 2], "item": [7, 8], "time": [first_time + 2, first_time + 1]},
        schema.format("bigint"),
    )
    report = rs.audit(train, test)
    assert report["same_time"].count == 0
    assert report["older_than_training"].count == 0

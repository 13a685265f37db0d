"""Spark puts every row into the same part of a split as a single machine does."""

import time
import warnings

import numpy as np
import polars as pl
import pytest
from spark_cases import MARKS

import recometer as rm
import recometer.spark as rs
from recometer.split import (
    After,
    ColdItems,
    Fraction,
    GivenUsers,
    KFold,
    Last,
    LeaveOneOut,
    NoTestUsersError,
    Number,
    UserFolds,
    UsersFraction,
    UsersNumber,
    Windows,
    folds,
)

pytestmark = MARKS

SCHEMA = "user string, session bigint, item bigint, rating double, time bigint, note string"
BOTH = {"user": ["user", "session"]}
CASES = [
    (Last(2), {}),
    (Fraction(0.3), {"who": UsersFraction(0.5), "untested": "apart", "seed": 3}),
    (LeaveOneOut("random"), {"min_train": 2, **BOTH}),
    (Number(2), BOTH),
    (After(share=0.7), {}),
    (ColdItems(0.2), BOTH),
]


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    n = 400
    return {
        "user": [f"u{k}" for k in rng.integers(0, 30, n)],
        "session": rng.integers(0, 2, n).tolist(),
        "item": rng.integers(0, 25, n).tolist(),
        "rating": rng.integers(1, 6, n).astype(float).tolist(),
        "time": rng.integers(0, 50, n).tolist(),
        "note": [f"row {k}" for k in range(n)],
    }


@pytest.mark.parametrize(("what", "options"), CASES, ids=lambda case: type(case).__name__)
def test_rows_are_in_the_same_part_as_on_a_single_machine(table, rows, what, options):
    split = rs.split(table(rows, SCHEMA), what, **options)
    expected = rm.split(pl.DataFrame(rows), what, **options)
    for name in ("train", "test", "remainder"):
        part, local_part = getattr(split, name), getattr(expected, name)
        assert (part is None) == (local_part is None)
        if part is not None:
            assert part.columns == list(rows)
            spark_rows = sorted(map(tuple, part.collect()))
            assert spark_rows == sorted(local_part.rows()), name
    assert split.protocol == expected.protocol


FOLDS = [
    (KFold(3), {"who": UsersFraction(0.7), **BOTH}),
    (Windows([10, 25, 40], length=20), {"min_train": 1}),
    (Last(1), {"who": UserFolds(2), "untested": "apart", "seed": 5}),
]


@pytest.mark.parametrize(("what", "options"), FOLDS, ids=lambda case: type(case).__name__)
def test_folds_match_a_single_machine(table, rows, what, options):
    spark_folds = rs.folds(table(rows, SCHEMA), what, partitions=3, **options)
    expected = list(folds(pl.DataFrame(rows), what, **options))
    assert len(spark_folds) == len(expected)
    for fold, expected_fold in zip(spark_folds, expected, strict=True):
        assert fold.protocol == expected_fold.protocol
        for name in ("train", "test", "remainder"):
            part, expected_part = getattr(fold, name), getattr(expected_fold, name)
            assert (part is None) == (expected_part is None)
            if part is not None:
                assert sorted(map(tuple, part.collect())) == sorted(expected_part.rows()), name
        fold.unpersist()


def test_split_without_test_users_is_refused(table, rows):
    frame = table(rows, SCHEMA)
    with pytest.raises(
        NoTestUsersError, match="no user can be tested: none of the 400 interactions is held out"
    ):
        rs.split(frame, Last(1), min_train=1000)
    for what, options in (
        (Last(1), {"who": GivenUsers(["u3"])}),
        (Last(1), {"who": UsersNumber(3)}),
        (ColdItems(items=[3]), {}),
    ):
        with pytest.raises(
            rm.InputError,
            match=r"is not available on Spark: .* Hint: .* use recometer\.split on",
        ):
            rs.split(frame, what, **options)
    with pytest.raises(rm.InputTypeError, match="column 'rating' of data holds users as double"):
        rs.split(frame, Last(1), user="rating")
    with pytest.raises(rm.InputError, match=r"user='note' was passed, but recometer\.spark\.Inter"):
        rs.split(rs.Interactions(frame), Last(1), user="note")
    with pytest.raises(rm.InputTypeError, match=r"several splits. Hint: recometer\.spark\.folds"):
        rs.split(frame, rm.split.KFold(3))
    with pytest.raises(rm.InputTypeError, match="Either what or who must make the folds"):
        rs.folds(frame, Last(1))
    with pytest.raises(rm.InputTypeError, match=r"defines what is held out\. Hint: call it: Last"):
        rs.split(frame, Last)


@pytest.mark.parametrize("spark", ["classic"], indirect=True)
def test_split_by_a_share_is_the_same_in_every_time_zone(table, rows, monkeypatch):
    frame = table(rows, SCHEMA)
    dated = frame.selectExpr("user", "item", "timestamp_micros(time * 3600000000) AS time")
    expected = rm.split(pl.DataFrame(rows), After(share=0.7))
    try:
        monkeypatch.setenv("TZ", "America/New_York")
        time.tzset()
        split = rs.split(dated, After(share=0.7))
    finally:
        monkeypatch.undo()
        time.tzset()
    assert split.protocol.counts == expected.protocol.counts


def assert_same_findings(report, expected):
    assert [finding.name for finding in report.findings] == [
        finding.name for finding in expected.findings
    ]
    for finding, expected_finding in zip(report.findings, expected.findings, strict=True):
        assert finding.to_dict() == expected_finding.to_dict()


@pytest.mark.filterwarnings("ignore:.*repeat a user-item pair:recometer.DataWarning")
def test_audit_matches_a_single_machine(table, rows):
    split = rs.split(table(rows, SCHEMA), Fraction(0.3), who=UsersFraction(0.8), seed=2)
    parts = [pl.from_arrow(part.toArrow()) for part in (split.train, split.test)]
    options = {"relevant_from": 2.0, "min_positives": 2, "min_candidates": 5}
    report = rs.audit(split, **options)
    assert_same_findings(report, rm.audit(*parts, **options))
    assert report.leaks
    assert "older_than_own_training" in str(report)
    with pytest.raises(rm.InputError, match="test is empty"):
        rs.audit(split.train, split.test.where("false"))
    with pytest.raises(rm.InputTypeError, match="needs train and test, or a SparkSplit"):
        rs.audit(split.train)
    with pytest.raises(
        rm.InputError, match=r"item= was passed, but a SparkSplit already names its columns"
    ):
        rs.audit(split, item="item")


@pytest.mark.filterwarnings("ignore:.*repeat a user-item pair:recometer.DataWarning")
@pytest.mark.parametrize("spark", ["classic"], indirect=True)
def test_audit_of_sessions_matches_a_single_machine(table, rows):
    split = rs.split(table(rows, SCHEMA), Fraction(0.3), **BOTH)
    train, test = (pl.from_arrow(part.toArrow()) for part in (split.train, split.test))
    assert_same_findings(rs.audit(split), rm.audit(train, test, **BOTH))
    spark_train = split.train.where("user > 'u15'")
    local_train = train.filter(pl.col("user") > "u15")
    users = rm.Interactions.of(local_train, user="user"), rm.Interactions.of(test, **BOTH)
    report = rs.audit(
        rs.Interactions(spark_train, user="user"), rs.Interactions(split.test, **BOTH)
    )
    assert_same_findings(report, rm.audit(*users))
    with pytest.raises(rm.InputError, match="train has sessions of users, but test has none"):
        rs.audit(rs.Interactions(split.train, **BOTH), split.test)
    with pytest.raises(rm.InputError, match="are of different kinds: they differ by a factor"):
        rs.audit(split.train, split.test.withColumn("time", (split.test["time"] + 1) * 10**9))


TIMES = [
    "bigint(time) + 1700000000000000000",
    "date_add(DATE '2024-05-01', int(time))",
    "timestamp_seconds(1700000000 + 3600 * time)",
    "concat('2024-05-', lpad(time % 28 + 1, 2, '0'))",
    "time + 0.5D",
    "int(time)",
]


@pytest.mark.filterwarnings("ignore:.*repeat a user-item pair:recometer.DataWarning")
@pytest.mark.parametrize("spark", ["classic"], indirect=True)
@pytest.mark.parametrize("time", TIMES)
def test_audit_reads_times_of_every_kind(table, rows, time):
    frame = table(rows, SCHEMA).selectExpr("user", "item", "rating", f"{time} AS time", "time AS t")
    train, test = frame.where("t < 30 AND item < 20"), frame.where("t > 24")
    options = {"time": "time", "relevant_from": 3.0, "min_candidates": 22}
    here = [pl.from_arrow(part.toArrow()) for part in (train, test)]
    report = rs.audit(train, test, **options)
    assert_same_findings(report, rm.audit(*here, **options))
    assert report["unreachable"].count


@pytest.mark.parametrize("spark", ["classic"], indirect=True)
def test_audit_of_data_without_common_ids_asks_about_their_spelling(table, rows):
    frame = table(rows, SCHEMA).select("user", "item", "session").distinct()
    renamed = frame.selectExpr("upper(user) AS user", "item + 100 AS item", "session")
    for columns in ({}, BOTH):
        here = [pl.from_arrow(part.toArrow()) for part in (frame, renamed)]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", rm.DataWarning)
            expected = rm.audit(*here, **columns)
        assert_same_findings(rs.audit(frame, renamed, **columns), expected)


@pytest.mark.filterwarnings("ignore:.*repeat a user-item pair:recometer.DataWarning")
@pytest.mark.parametrize("spark", ["classic"], indirect=True)
@pytest.mark.parametrize("kind", ["bigint", "string"])
def test_audit_uses_the_latest_time_of_repeated_pairs(table, kind):
    def frame(items, times):
        columns = {"user": ["ann"] * len(items), "item": items, "time": times}
        frame_of_times = table(columns, "user string, item bigint, time bigint")
        return frame_of_times.withColumn("time", frame_of_times["time"].cast(kind))

    train, test = frame([1, 2, 3], [8, 9, 10]), frame([4, 4, 5], [9, 100, 40])
    here = [pl.from_arrow(part.toArrow()) for part in (train, test)]
    report = rs.audit(train, test)
    assert_same_findings(report, rm.audit(*here))
    assert report["older_than_training"].statistics == {"training_newer": 0}

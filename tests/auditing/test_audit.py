"""`audit` agrees with a slow version in plain Python, and finds the faults planted in splits."""

from __future__ import annotations

import collections
import contextlib
import importlib
import json
import uuid
import warnings
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import recometer as rm
from recometer import split as splits

Rows = dict[tuple[Any, Any], tuple[float, int]]  # (user, item) -> (value, time)

ROW = st.tuples(
    st.integers(0, 5),  # user
    st.integers(0, 5),  # item
    st.integers(-1, 3),  # value
    st.integers(0, 6),  # time
)


@st.composite
def sides(draw: st.DrawFn) -> tuple[list[Any], list[Any]]:
    """Draw training and test rows whose ids are all integers or all strings."""
    name = draw(st.sampled_from([lambda n: n, lambda n: f"id {n}"]))
    drawn_sides = []
    for _ in range(2):
        rows = draw(st.lists(ROW, min_size=1, max_size=14))
        drawn_sides.append(
            [(name(user), name(10 + item), value, time) for user, item, value, time in rows]
        )
    return drawn_sides[0], drawn_sides[1]


def frame(rows: list[Any]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=["user_id", "item_id", "rating", "timestamp"], orient="row")


def audit(train: Any, test: Any, **options: Any) -> rm.Audit:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rm.DataWarning)
        return rm.audit(train, test, **options)


def merged_rows(rows: list[Any]) -> Rows:
    merged: Rows = {}
    for user, item, value, time in rows:
        before = merged.get((user, item), (0, time))
        merged[user, item] = (before[0] + value, max(before[1], time))
    return merged


def duplicates(rows: list[Any]) -> tuple[int, int, list[Any]]:
    times = collections.Counter(row[:2] for row in rows)
    return len(rows) - len(times), len(rows), sorted(p for p, n in times.items() if n > 1)[:5]


def slow_audit(
    train_rows: list[Any],
    test_rows: list[Any],
    relevant_from: float | None,
    min_positives: int,
    min_candidates: int,
) -> dict[str, tuple[int, int, list[Any]]]:
    """Compute every finding's count, total and first examples with plain loops."""
    train, test = merged_rows(train_rows), merged_rows(test_rows)
    newest: dict[Any, int] = {}
    owned = collections.Counter(user for user, _ in train)
    bought = collections.Counter(item for _, item in train)
    for (user, _), (_, time) in train.items():
        newest[user] = max(newest.get(user, time), time)
    pairs = sorted(test)
    users = sorted({user for user, _ in pairs})
    items = sorted({item for _, item in pairs})
    catalogue = len(set(bought) | set(items))

    def relevant(pair: Any) -> bool:
        value = test[pair][0]
        return value > 0 if relevant_from is None else value >= relevant_from

    n_ranked, left = collections.Counter(), collections.Counter()
    for pair in pairs:
        n_ranked[pair[0]] += relevant(pair)
        left[pair[0]] += relevant(pair) and pair not in train

    def rows(predicate: Any) -> tuple[int, int, list[Any]]:
        matching = [pair for pair in pairs if predicate(pair)]
        return len(matching), len(pairs), matching[:5]

    def of_users(predicate: Any) -> tuple[int, int, list[Any]]:
        matching = [user for user in users if predicate(user)]
        return len(matching), len(users), matching[:5]

    def enough(user: Any) -> bool:
        return catalogue - owned[user] >= min_candidates

    relevant_pairs = [pair for pair in pairs if relevant(pair)]
    missed = [pair for pair in relevant_pairs if pair[1] not in bought]
    untested = [user for user in sorted(owned) if user not in users]
    last = max(time for _, time in train.values())
    return {
        "overlap": rows(lambda pair: pair in train),
        "older_than_own_training": rows(
            lambda pair: pair[0] in newest and test[pair][1] < newest[pair[0]]
        ),
        "older_than_training": rows(lambda pair: test[pair][1] < last),
        "same_time": rows(lambda pair: newest.get(pair[0]) == test[pair][1]),
        "train_duplicates": duplicates(train_rows),
        "test_duplicates": duplicates(test_rows),
        "unseen_users": of_users(lambda user: user not in owned),
        "unseen_items": (
            sum(item not in bought for item in items),
            len(items),
            [item for item in items if item not in bought][:5],
        ),
        "unreachable": (len(missed), len(relevant_pairs), missed[:5]),
        "users_without_relevant": of_users(lambda user: n_ranked[user] == 0),
        "users_emptied": of_users(lambda user: n_ranked[user] > 0 and left[user] == 0),
        "users_without_candidates": of_users(lambda user: left[user] > 0 and not enough(user)),
        "users_few_relevant": of_users(
            lambda user: 0 < left[user] < min_positives and enough(user)
        ),
        "untested_users": (len(untested), len(owned), untested[:5]),
    }


@given(
    split=sides(),
    relevant_from=st.sampled_from([None, 1, 2.5]),
    min_positives=st.integers(1, 3),
    min_candidates=st.integers(1, 4),
)
def test_audit_agrees_with_slow_audit(split, relevant_from, min_positives, min_candidates):
    rules = {
        "relevant_from": relevant_from,
        "min_positives": min_positives,
        "min_candidates": min_candidates,
    }
    report = audit(*map(frame, split), **rules)
    expected = slow_audit(*split, **rules)
    for name, (count, total, examples) in expected.items():
        finding = report[name]
        assert (finding.name, finding.count, finding.total) == (name, count, total)
        assert list(finding.examples) == examples, name
    leaking = ("overlap", "older_than_own_training", "older_than_training")
    assert report.leaks == any(expected[name][0] for name in leaking)
    levels = {f.name: f.level for f in report.findings}
    assert all((levels[name] == "leakage") == (expected[name][0] > 0) for name in leaking)
    assert {f.name for f in report.findings} == set(expected)


@given(split=sides(), order=st.randoms(use_true_random=False))
def test_audit_does_not_depend_on_the_order_of_rows(split, order):
    shuffled = [order.sample(side, len(side)) for side in split]
    assert audit(*map(frame, split)).to_dict() == audit(*map(frame, shuffled)).to_dict()


@given(split=sides())
def test_positions_are_audited_like_ids(split):
    numbers = [
        [(*(int(str(x).split()[-1]) for x in row[:2]), *row[2:]) for row in s] for s in split
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rm.DataWarning)
        positions = [rm.Interactions.of(frame(side), n_users=6, n_items=16) for side in numbers]
    by_id, by_position = audit(*map(frame, numbers)), rm.audit(*positions)
    for finding in by_id.findings:
        # Two findings may differ because n_items=16 includes unused positions.
        if finding.name not in ("users_without_candidates", "users_few_relevant"):
            other_finding = by_position[finding.name]
            assert (finding.count, finding.total, finding.examples) == (
                other_finding.count,
                other_finding.total,
                other_finding.examples,
            )
            assert finding.statistics == pytest.approx(dict(other_finding.statistics))


@given(
    split=sides(), relevant_from=st.sampled_from([None, 1, 2.5]), min_positives=st.integers(1, 2)
)
def test_audit_counts_the_users_that_evaluate_leaves_out(split, relevant_from, min_positives):
    rules = {"relevant_from": relevant_from, "min_positives": min_positives}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rm.DataWarning)
        train, test = (rm.Interactions.of(frame(side)) for side in split)
    items = sorted({*train.item_ids.tolist(), *test.item_ids.tolist()})
    users = sorted({*train.user_ids.tolist(), *test.user_ids.tolist()})
    scores = np.arange(len(users) * len(items), dtype=float).reshape(len(users), len(items))
    source = rm.Scores(scores, user_ids=users, item_ids=items)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rm.DataWarning)
        options = {"metrics": "precision@1", "repeated_test": "summed"}
        result = rm.evaluate(source, test, train=train, **options, **rules)
    report = rm.audit(train, test, **rules)
    reasons = {
        "users_without_relevant": "no relevant item to find",
        "users_emptied": "no relevant item to find",
        "users_without_candidates": "fewer items to rank than min_candidates",
        "users_few_relevant": "fewer relevant items than min_positives",
    }
    expected: collections.Counter[str] = collections.Counter()
    for name, reason in reasons.items():
        expected[reason] += report[name].count
    assert {r: n for r, n in result.skipped("precision@1").items() if n} == {
        reason: n for reason, n in expected.items() if n
    }


# Tests of faults planted in a clean split


def clean_split() -> tuple[pl.DataFrame, pl.DataFrame]:
    """Draw 8 interactions for each of 300 users; each user's latest two are test rows."""
    generator = np.random.default_rng(3)
    users = np.repeat(np.arange(300), 8)
    items = np.concatenate([generator.choice(50, 8, replace=False) for _ in range(300)])
    held_out = np.tile(np.arange(8) >= 6, 300)
    times = generator.integers(1_000, 2_000, len(users)) + 1_000 * held_out
    interactions = pl.DataFrame({"user_id": users, "item_id": items, "timestamp": times})
    return interactions.filter(~held_out), interactions.filter(held_out)


def test_clean_split_has_no_leakage():
    report = rm.audit(*clean_split())
    assert not report.leaks
    assert {finding.level for finding in report.findings} == {"fact"}
    assert repr(report) == "<Audit: no leakage>"
    assert str(report).endswith("\nNo leakage was found.")


@pytest.mark.parametrize("n", [1, 7, 100])
def test_planted_overlaps_are_counted(n):
    train, test = clean_split()
    copies = test.sample(n, seed=n).with_columns(timestamp=pl.lit(1_500, pl.Int64))
    report = rm.audit(pl.concat([train, copies]), test)
    assert report.leaks
    assert report["overlap"].count == n
    assert report["overlap"].statistics == {"same_time": 0}
    assert report["older_than_training"].count == 0
    exact = test.sample(n, seed=n)
    assert rm.audit(pl.concat([train, exact]), test)["overlap"].statistics == {"same_time": n}


@pytest.mark.parametrize("n", [1, 7, 100])
def test_planted_old_interactions_are_counted(n):
    train, test = clean_split()
    test = test.with_row_index().with_columns(
        timestamp=pl.when(pl.col("index") < n).then(10).otherwise("timestamp")
    )
    report = rm.audit(train, test)
    assert report["older_than_own_training"].count == n
    assert report["older_than_training"].count == n
    assert report["older_than_training"].statistics == {"training_newer": len(train)}
    assert [finding.name for finding in report.findings if finding.level == "leakage"] == [
        "older_than_own_training",
        "older_than_training",
    ]


def test_later_interactions_of_the_user_and_of_others_are_separate_findings():
    train = frame([("ann", 1, 5, 10), ("bob", 1, 5, 90)])
    test = frame([("ann", 2, 5, 20), ("bob", 3, 5, 95)])
    report = rm.audit(train, test)
    assert report["older_than_own_training"].count == 0
    assert report["older_than_training"].examples == (("ann", 2),)


def test_equal_times_are_reported_as_a_fact():
    report = rm.audit(frame([("ann", 1, 5, 10)]), frame([("ann", 2, 5, 10)]))
    assert not report.leaks
    assert report["same_time"].count == 1


def test_random_split_with_times_has_leakage():
    generator = np.random.default_rng(1)
    interactions = pl.concat(clean_split())
    in_test = generator.random(len(interactions)) < 0.2
    report = rm.audit(interactions.filter(~in_test), interactions.filter(in_test))
    assert report["older_than_own_training"].count > 0.8 * in_test.sum()
    assert report["overlap"].count == 0


def test_missing_times_are_reported_as_not_checked():
    train, test = clean_split()
    names = ["older_than_own_training", "older_than_training", "same_time"]
    for options, data, missing in [
        ({"time": False}, (train, test), "train and test have no times"),
        ({}, (train.drop("timestamp"), test), "train has no times"),
        ({}, (train, test.drop("timestamp")), "test has no times"),
    ]:
        report = rm.audit(*data, **options)
        for name in names:
            assert report[name].count is None
            assert report[name].share is None
            assert report[name].sentence == f"Not checked: {missing}."
        assert str(report).count("not checked") == 3
        assert str(report).endswith("\nNo leakage was found by the checks that ran.")
        assert not report.leaks


# Tests of the library's own splits


@st.composite
def whole_data(draw: st.DrawFn) -> pl.DataFrame:
    """Draw interactions with few distinct times and no repeated pairs."""
    pairs = st.lists(
        st.tuples(st.integers(0, 5), st.integers(0, 6)), min_size=6, max_size=30, unique=True
    )
    return frame([(*pair, 1, draw(st.integers(0, 9))) for pair in draw(pairs)])


WHO = st.sampled_from(
    [splits.AllUsers(), splits.UsersFraction(0.6), splits.UsersNumber(3), splits.ActiveAfter(5)]
)
SETTINGS = st.fixed_dictionaries(
    {
        "untested": st.sampled_from(["train", "apart"]),
        "min_train": st.integers(0, 2),
        "seed": st.integers(0, 9),
        "filters": st.sampled_from([(), splits.MinCounts(user=2), splits.SeenInTrain()]),
    }
)
TIME = st.integers(1, 8)


def make_splits(*arguments: Any, several: bool = False, **settings: Any) -> list[rm.Split]:
    """Make splits, and skip those with no test users or no training rows."""
    results = []
    make = splits.folds if several else splits.split
    with warnings.catch_warnings(), contextlib.suppress(splits.NoTestUsersError):
        warnings.simplefilter("ignore", rm.DataWarning)
        result = make(*arguments, **settings)
        for split in result if several else [result]:
            results.append(split)
    return [split for split in results if len(split.train) or split.protocol.counts["remainder"]]


@given(data=whole_data(), who=WHO, time=TIME, until=st.sampled_from([None, 9]), settings=SETTINGS)
def test_splits_at_a_single_time_have_no_leakage(data, who, time, until, settings):
    for split in make_splits(data, splits.After(time, until), who=who, **settings):
        assert not rm.audit(split).leaks
    windows = splits.Windows(sorted({time, 4, 7}), until=until, length=5)
    for split in make_splits(data, windows, who=who, several=True, **settings):
        assert not rm.audit(split).leaks


BY_TIME = st.sampled_from(
    [splits.Last(), splits.Last(2), splits.LastFraction(0.3), splits.LeaveOneOut()]
)
AT_RANDOM = st.sampled_from(
    [splits.Fraction(0.4), splits.Fraction(0.3, per_user=False), splits.Number(2)]
)


@given(data=whole_data(), who=WHO, what=BY_TIME, settings=SETTINGS)
def test_splits_by_last_items_leak_only_through_other_users(data, who, what, settings):
    for split in make_splits(data, what, who=who, **settings):
        report = rm.audit(split)
        assert {f.name for f in report.findings if f.level == "leakage"} <= {"older_than_training"}


@given(data=whole_data(), who=WHO, what=st.one_of(BY_TIME, AT_RANDOM), settings=SETTINGS)
def test_audit_counts_the_leakage_of_each_split(data, who, what, settings):
    for split in make_splits(data, what, who=who, **settings):
        report = rm.audit(split)
        parts = [part for part in (split.train, split.remainder) if part is not None]
        expected = slow_audit(pl.concat(parts).rows(), split.test.rows(), None, 1, 2)
        for name, (count, total, examples) in expected.items():
            assert (report[name].count, report[name].total) == (count, total), name
            assert list(report[name].examples) == examples


def test_split_has_the_same_audit_as_its_train_and_test(tmp_path):
    train, test = clean_split()
    interactions = pl.concat([train, test])
    for data in (interactions, rm.Interactions.of(interactions), interactions.to_pandas()):
        split = splits.split(data, splits.Last(2))
        assert rm.audit(split).to_dict()["findings"] == rm.audit(train, test).to_dict()["findings"]
        split.save(tmp_path)
        assert rm.audit(rm.Split.load(tmp_path)).to_dict() == rm.audit(split).to_dict()
    with pytest.raises(rm.InputError, match="user= does not apply"):
        rm.audit(split, user="user_id")
    with pytest.raises(rm.InputTypeError, match="needs train and test, or a Split, found only"):
        rm.audit(interactions)


def test_remainder_of_a_split_counts_as_train():
    train, test = clean_split()
    interactions = pl.concat([train, test])
    dense = np.zeros((300, 50))
    dense[interactions["user_id"], interactions["item_id"]] = 1
    for data, what in ((interactions, splits.Last(2)), (dense, splits.Number(2))):
        split = splits.split(data, what, who=splits.UsersFraction(0.1), untested="apart")
        report = rm.audit(split)
        assert report["untested_users"].count == 300 - len(split.users)
        assert report["untested_users"].total == 300
        assert report["unseen_items"].count == 0
        if data is interactions:
            joined = pl.concat([split.train, split.remainder])
            assert (
                report.to_dict()["findings"] == rm.audit(joined, split.test).to_dict()["findings"]
            )


def test_rows_merged_before_the_split_are_not_duplicates():
    rows = [(user, item, 1, item) for user in range(3) for item in range(4)]
    with pytest.warns(rm.DataWarning, match="3 of 15 interactions repeat"):
        data = rm.Interactions.of(frame(rows + rows[:3]))
    report = rm.audit(splits.split(data, splits.Last(1)))
    assert (report["train_duplicates"].count, report["test_duplicates"].count) == (0, 0)
    with_repeated_rows = splits.split(frame(rows + rows[:3]), splits.After(3))
    with pytest.warns(rm.DataWarning):
        assert rm.audit(with_repeated_rows)["train_duplicates"].examples == ((0, 0), (0, 1), (0, 2))


# Tests of training and test data whose times or ids are of different kinds


def microseconds(dates: list[str]) -> pl.Series:
    return pl.Series(dates).str.to_datetime(time_unit="us")


@pytest.mark.parametrize(
    ("early", "late"),
    [
        ([1_500_000_000], [1_600_000_000_000]),  # seconds, milliseconds
        ([1_600_000_000], microseconds(["2024-05-31"])),
        ([2019], microseconds(["2024-05-31"])),
        ([1, 2, 3], [1_600_000_000]),
    ],
)
def test_times_of_different_kinds_are_refused(early, late):
    def side(times: Any) -> pl.DataFrame:
        return pl.DataFrame({"user_id": 1, "item_id": 1, "time": times})

    for train, test in ((early, late), (late, early)):
        with pytest.raises(rm.InputError, match="of different kinds"):
            audit(side(train), side(test))


@pytest.mark.parametrize(
    ("early", "late"),
    [([-(10**15)], [10**15]), ([0], [10]), ([1, 5], [600_000_000]), ([3e8], [9e8]), ([-5], [7])],
)
def test_times_are_compared_if_their_units_may_be_equal(early, late):
    def side(times: Any, item: int) -> pl.DataFrame:
        items = [item + i for i in range(len(times))]
        return pl.DataFrame({"user_id": [1] * len(times), "item_id": items, "time": times})

    assert not rm.audit(side(early, 0), side(late, 10)).leaks
    assert rm.audit(side(late, 10), side(early, 0))["older_than_training"].count == len(early)


def test_integer_and_fractional_times_can_be_compared():
    train = pl.DataFrame({"user": [1], "item": [1], "time": [3]})
    test = pl.DataFrame({"user": [1, 1], "item": [2, 3], "time": [2.5, 3.5]})
    assert rm.audit(train, test)["older_than_own_training"].examples == ((1, 2),)


def test_ids_of_different_types_are_refused():
    train, test = frame([(1, 1, 1, 1)]), frame([("1", 1, 1, 1)])
    with pytest.raises(
        rm.InputTypeError, match=r"user ids of test are of type str .* train are of"
    ):
        rm.audit(train, test)
    with pytest.raises(rm.InputTypeError, match="item ids of test are of type str"):
        rm.audit(train, frame([(1, "1", 1, 1)]))


def test_data_with_ids_is_not_compared_with_data_without_ids():
    with pytest.raises(rm.InputError, match="train has user ids, but test has none"):
        rm.audit({"ann": ["tea"]}, np.ones((2, 2)))
    with pytest.raises(rm.InputError, match="train has 2 users, but test has 3"):
        rm.audit(np.ones((2, 2)), np.ones((3, 2)))


@pytest.mark.parametrize(
    ("sides", "empty_side"),
    [(({}, {"ann": ["tea"]}), "train"), (({"ann": ["tea"]}, {"ann": []}), "test")],
)
def test_empty_train_or_test_is_refused(sides, empty_side):
    with pytest.raises(rm.InputError, match=f"{empty_side} is empty"):
        rm.audit(*sides)


def test_audit_asks_about_the_spelling_of_ids_if_none_match():
    report = rm.audit({"U1": ["a"]}, {"u1": ["A"]})
    assert (
        "are ids spelled the same way? Test ids look like 'u1'" in report["unseen_users"].sentence
    )
    assert "Test ids look like 'A', training ids like 'a'" in report["unseen_items"].sentence


# Inputs


def test_audit_accepts_all_kinds_of_interactions(tmp_path):
    train, test = clean_split()
    renamed = {"user_id": "who", "item_id": "what", "timestamp": "when"}
    columns = {"user": "who", "item": "what", "time": "when"}
    for name, side in (("train", train), ("test", test)):
        side.write_parquet(tmp_path / f"{name}.parquet")
        side.rename(renamed).write_csv(tmp_path / f"{name}.csv")
    expected = rm.audit(train, test).to_dict()
    for report in (
        rm.audit(tmp_path / "train.parquet", str(tmp_path / "test.parquet")),
        rm.audit(tmp_path / "train.csv", tmp_path / "test.csv", **columns),
        rm.audit(train.rename(renamed), rm.Interactions.of(test), **columns),
        rm.audit(rm.Interactions.of(train), rm.Interactions.of(test)),
        rm.audit(train.to_pandas(), test.lazy()),
    ):
        assert report.to_dict()["findings"] == expected["findings"]
        assert report.train.startswith("Interactions(300 users (int ids of column ")
    with pytest.raises(rm.InputError, match="user= does not apply"):
        rm.audit(rm.Interactions.of(train), rm.Interactions.of(test), user="who")


def test_train_is_searched_in_blocks(monkeypatch):
    train, test = clean_split()
    train = pl.concat([train, test.head(40)])
    expected = rm.audit(train, test).to_dict()
    monkeypatch.setattr(importlib.import_module("recometer.auditing.facts"), "BLOCK", 20)
    assert rm.audit(train, test).to_dict() == expected
    assert rm.audit(train, test)["overlap"].count == 40


# Output


def test_audit_is_printed_as_a_table_with_a_verdict():
    report = rm.audit(
        {"ann": ["book", "film"], "bob": ["film"]}, {"ann": ["book"], "cleo": ["game"]}
    )
    lines = str(report).splitlines()
    assert lines[0].split() == ["finding", "level", "count", "of", "share", "for", "instance"]
    assert lines[1].split(None, 5) == ["overlap", "leakage", "1", "2", "50.0%", "('ann', 'book')"]
    assert lines[-1] == "There is leakage."
    assert "<td" in report._repr_html_()
    assert repr(report) == "<Audit: overlap>"
    table = report.frame()
    assert table.columns[:4] == ["name", "what", "level", "count"]
    assert table["examples"].to_list()[0] == ["('ann', 'book')"]
    with pytest.raises(rm.UnknownNameError, match="'overlap'"):
        report["overlaps"]
    with pytest.raises(AttributeError):
        report.findings = ()


def test_ids_of_any_type_are_converted_to_json():
    ids = [uuid.UUID(int=n) for n in range(2)]
    report = rm.audit({ids[0]: [ids[1]]}, {ids[0]: [ids[1], ids[0]]})
    content = json.loads(json.dumps(report.to_dict(), allow_nan=False))
    assert content["leaks"] is True
    assert content["findings"][0]["examples"] == [[str(ids[0]), str(ids[1])]]
    assert content["findings"][0]["share"] == 0.5

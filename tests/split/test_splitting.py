"""Tests of laws that splits obey for every combination of `who`, `what` and `filters`."""

from __future__ import annotations

import ast
import datetime
import inspect
import json
import pickle
import sys
import uuid
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

import recometer as rm
from recometer import DataWarning, FileError, InputError, InputTypeError
from recometer.data.storage import PLACEHOLDER, seal
from recometer.split import (
    ActiveAfter,
    After,
    AllUsers,
    ColdItems,
    Duplicates,
    Fraction,
    GivenUsers,
    KCore,
    KFold,
    Last,
    LastFraction,
    LeaveOneOut,
    MinCounts,
    NoTestUsersError,
    Number,
    SeenInTrain,
    UserFolds,
    UsersFraction,
    UsersNumber,
    ValuesFrom,
    Windows,
    calling,
    folds,
    saving,
    split,
)
from recometer.split.choices import holdout_sizes

WHO = [AllUsers(), UsersFraction(0.5), UsersNumber(4), GivenUsers([13, 17, 22]), ActiveAfter(33)]
WHAT = [
    *(Last(1), Last(3), LastFraction(0.3), LeaveOneOut(), LeaveOneOut("random"), Number(2)),
    *(Fraction(0.3), Fraction(0.3, per_user=False), After(30), After(20, until=30, since=5)),
    *(ColdItems(0.3), ColdItems(items=[104, 109])),
]
FILTERS = [
    (),
    (KCore(3),),
    (MinCounts(user=4, item=2),),
    (Duplicates("last"), ValuesFrom(2)),
    (Duplicates("first"), KCore(user=2, item=3), SeenInTrain()),
    (Duplicates("sum"), SeenInTrain(items=False)),
]
PARTS = ("train", "test", "remainder")


def interactions(seed=0, n=240, n_users=18, n_items=12):
    """Draw a data frame with repeated pairs and, for each user, repeated times."""
    rng = np.random.default_rng(seed)
    return pl.DataFrame(
        {
            "user": 10 + (n_users * rng.random(n) ** 1.5).astype(np.int64),
            "item": 100 + (n_items * rng.random(n) ** 1.3).astype(np.int64),
            "value": rng.integers(1, 6, n),
            "time": rng.integers(0, 40, n),
            "row": np.arange(n),
        }
    )


def split_or_none(data, what, **options):
    """Return the split, or None if the data have no test users."""
    try:
        return split(data, what, **options)
    except NoTestUsersError:
        return None


def rows_of(result):
    return {
        part: sorted(getattr(result, part)["row"].to_list())
        for part in PARTS
        if getattr(result, part) is not None
    }


def columns_of(result):
    """Return the sorted rows of each part without row numbers, to compare their contents."""
    return {
        part: sorted(getattr(result, part).drop("row").rows())
        for part in PARTS
        if getattr(result, part) is not None
    }


def one_row_per_pair(frame):
    """Keep only the first row of each pair, so that the order of rows cannot change a split."""
    return frame.unique(["user", "item"], keep="first", maintain_order=True)


@pytest.mark.parametrize("who", WHO, ids=repr)
@pytest.mark.parametrize("what", WHAT, ids=repr)
def test_every_composition_obeys_the_laws_of_splits(who, what):
    data = interactions()
    n_tested = 0
    # Test a third of the filters for each combination; over all combinations, each filter is
    # tested with every `who` and every `what`.
    first = (WHO.index(who) + WHAT.index(what)) % 3
    for number, filters in list(enumerate(FILTERS))[first::3]:
        untested = ("train", "apart")[number // 3]
        options = {"who": who, "filters": filters, "untested": untested, "seed": number}
        result = split_or_none(data, what, **options)
        if result is None:
            continue
        n_tested += 1
        # Every row is in exactly one part, or is counted as left out.
        parts = rows_of(result)
        rows = [row for part in parts.values() for row in part]
        assert len(set(rows)) == len(rows)
        counts = result.protocol.counts
        assert {name: counts[name] for name in parts} == {k: len(v) for k, v in parts.items()}
        assert sum(counts.values()) == len(data)
        assert (counts["left_out"] == 0) or filters or what.for_everybody
        # The parts contain the rows unchanged, with all columns of the data.
        for name in parts:
            part = getattr(result, name)
            assert part.columns == data.columns
            assert part["row"].is_sorted()
            if Duplicates("sum") not in filters:
                assert part.equals(data.filter(pl.col("row").is_in(parts[name])))
        # The test part contains the test users, and no other users.
        users = result.users.tolist()
        assert users == sorted(set(result.test["user"]))
        if isinstance(who, GivenUsers):
            assert set(users) <= {13, 17, 22}
        if isinstance(who, UsersNumber):
            assert len(users) == 4 or any(
                isinstance(split_filter, SeenInTrain) for split_filter in filters
            )
        if untested == "apart":
            # Models are fitted to the remainder, so the training part contains only test users.
            assert not set(users) & set(result.remainder["user"])
            if not any(isinstance(split_filter, SeenInTrain) for split_filter in filters):
                assert set(result.train["user"]) <= set(users)
        else:
            assert counts["remainder"] == 0
        # Neither the number of threads nor the order of rows changes the parts' contents.
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("recometer.split.grouping.BRIEF", 0)
            assert rows_of(split(data, what, **options, threads=3)) == parts
        shuffled = data.sample(fraction=1.0, shuffle=True, seed=number)
        repeated = split(shuffled, what, **options)
        assert columns_of(repeated) == columns_of(result)
    assert n_tested


@pytest.mark.parametrize("who", [w for w in WHO if not isinstance(w, UsersNumber)], ids=repr)
@pytest.mark.parametrize("what", WHAT, ids=repr)
def test_draws_do_not_depend_on_other_users(who, what):
    data = one_row_per_pair(interactions())
    some_users = data.filter((pl.col("user") % 3 != 0) & (pl.col("user") != 11))
    for untested in ("train", "apart"):
        options = {"who": who, "untested": untested, "filters": MinCounts(user=2)}
        if isinstance(who, GivenUsers):
            options["who"] = GivenUsers([13, 17, 22])
        of_all_users, part = (
            split_or_none(data, what, **options),
            split_or_none(some_users, what, **options),
        )
        assert of_all_users is not None
        rows_of_some_users = set(some_users["row"])
        expected = {
            name: [r for r in rows if r in rows_of_some_users]
            for name, rows in rows_of(of_all_users).items()
        }
        actual = {"train": [], "test": [], **rows_of(part)} if part is not None else None
        if actual is None:
            assert expected["test"] == []
        else:
            assert actual == expected


def test_users_are_drawn_independently_of_other_users():
    """A user who is drawn from all users is also drawn if only some users are in the data."""
    data = interactions()
    five_users = split(data, Last(1), who=UsersNumber(5)).users
    eight_users = split(data, Last(1), who=UsersNumber(8)).users
    assert set(five_users) <= set(eight_users)
    fewer_data = data.filter(pl.col("user").is_in(five_users.tolist()) | (pl.col("user") % 2 == 0))
    assert set(split(fewer_data, Last(1), who=UsersNumber(5)).users) >= set(five_users)


@pytest.mark.parametrize("what", WHAT, ids=repr)
def test_different_seeds_hold_out_different_rows(what):
    data = interactions()
    results = {tuple(rows_of(split(data, what, seed=seed))["test"]) for seed in range(8)}
    random = isinstance(what, Fraction | Number) or "random" in repr(what)
    random |= isinstance(what, ColdItems) and what.items is None
    if random:
        assert len(results) >= 6
    elif not isinstance(what, Last | LastFraction | LeaveOneOut):
        assert len(results) == 1


# Kinds of data


@pytest.mark.parametrize("what", WHAT, ids=repr)
def test_all_kinds_of_data_are_split_the_same(what, tmp_path):
    data = one_row_per_pair(interactions())
    path = tmp_path / "data.parquet"
    data.write_parquet(path)
    options = {"who": UsersFraction(0.6), "untested": "apart", "filters": [KCore(2)], "seed": 3}
    expected = split(data, what, **options)
    pandas = data.to_pandas()
    pandas.index = pandas.index[::-1]
    kinds = {
        "pandas": (pandas, pd.DataFrame),
        "arrow": (data.to_arrow(), pa.Table),
        "lazy": (data.lazy(), pl.DataFrame),
        "file": (path, pl.LazyFrame),
    }
    for given_data, kind in kinds.values():
        result = split(given_data, what, **options)
        for part in PARTS:
            actual = getattr(result, part)
            assert isinstance(actual, kind)
            frame = actual.collect() if kind is pl.LazyFrame else pl.DataFrame(actual)
            assert frame.equals(getattr(expected, part))
        assert result.users.tolist() == expected.users.tolist()
        assert result.protocol == expected.protocol
    actual = split(rm.Interactions.of(data), what, **options)
    assert actual.protocol == expected.protocol
    assert actual.users.tolist() == expected.users.tolist()
    for part in PARTS:
        plain = getattr(actual, part)
        users = plain.user_ids[np.repeat(np.arange(plain.n_users), np.diff(plain.indptr))]
        table = pl.DataFrame(
            {
                "user": users,
                "item": plain.item_ids[plain.items],
                "value": plain.values.astype(int),
                "time": plain.times,
            }
        )
        assert table.equals(getattr(expected, part).drop("row").sort("user", "item"))
        assert plain.n_users == data["user"].n_unique()
        assert plain.n_items == data["item"].n_unique()


@pytest.mark.parametrize(
    "rename",
    [str, lambda n: n - 50, lambda n: n * 10**12, lambda n: 2**63 + n],
    ids=["text", "negative", "far apart", "above int64"],
)
def test_renaming_ids_does_not_change_the_split(rename):
    data = one_row_per_pair(interactions())
    renamed = data.with_columns(
        pl.Series("user", [rename(n) for n in data["user"]]),
        pl.Series("item", [rename(n) for n in data["item"]]),
    )
    # Equal times would be ordered by draws that depend on ids, so this test needs distinct times.
    for frame in (data, renamed):
        frame.insert_column(0, pl.Series("moment", np.random.default_rng(0).permutation(len(data))))
    results = [split(frame, Last(2), filters=KCore(3), time="moment") for frame in (data, renamed)]
    assert rows_of(results[0]) == rows_of(results[1])
    assert results[1].users.tolist() == [rename(n) for n in results[0].users.tolist()]
    result = split(renamed, Fraction(0.3))
    assert len(result.test) == len(split(data, Fraction(0.3)).test)
    plain = split(rm.Interactions.of(renamed), Fraction(0.3))
    assert plain.users.tolist() == result.users.tolist()
    pairs = result.test.sort("user", "item")
    assert plain.test.item_ids[plain.test.items].tolist() == pairs["item"].to_list()


def test_text_file_is_split_like_its_frame(tmp_path):
    data = interactions()
    path = tmp_path / "data.csv"
    data.write_csv(path)
    result = split(path, Last(2))
    assert result.test.with_columns(pl.col("row").cast(pl.Int64))["row"].to_list() == (
        split(data, Last(2)).test["row"].to_list()
    )


def test_matrices_are_converted_to_interactions():
    matrix = sp.random_array((30, 20), density=0.4, rng=np.random.default_rng(0), format="csr")
    result = split(matrix, Fraction(0.3), who=UsersNumber(7), untested="apart")
    total = sum(getattr(result, part).to_csr() for part in PARTS)
    assert (total != matrix).nnz == 0
    assert result.users.tolist() == np.flatnonzero(np.diff(result.test.indptr)).tolist()
    assert len(result.users) == 7


def test_columns_are_named_or_detected():
    data = one_row_per_pair(interactions()).rename({"user": "who", "item": "what", "time": "when"})
    with pytest.raises(rm.ColumnError, match="user="):
        split(data, Last(1))
    result = split(data, Last(1), user="who", item="what", time="when")
    assert result.columns == ("who", "what", "value", "when")
    assert result.interactions().test.times is not None
    assert result.users.tolist() == sorted(set(data["who"]))


# Tests of held-out interactions


def by_user(frame):
    return {user[0]: part for user, part in frame.group_by("user")}


@given(st.integers(0, 10**6), st.sampled_from([Last(1), Last(3), LastFraction(0.4)]))
def test_last_items_are_not_before_train_items(seed, what):
    data = interactions(seed, n=80)
    result = split(data, what, seed=seed)
    train, interactions_of_users = by_user(result.train), by_user(data)
    tests_of_users = by_user(result.test)
    for user, rows in interactions_of_users.items():
        n = len(rows)
        size = min(n, what.number) if isinstance(what, Last) else holdout_sizes([n], 0.4)[0]
        test = tests_of_users.get(user, rows.clear())
        assert len(test) == size
        if user in train and size:
            assert test["time"].min() >= train[user]["time"].max()


@pytest.mark.filterwarnings("ignore:the training data are empty")
@given(st.integers(0, 10**6), st.floats(0.05, 0.95), st.integers(1, 5))
def test_random_shares_and_numbers_are_exact_per_user(seed, fraction, number):
    data = interactions(seed, n=80)
    sizes = data.group_by("user").len().sort("user")
    for what, expected in (
        (Fraction(fraction), holdout_sizes(sizes["len"], fraction)),
        (Number(number), np.minimum(sizes["len"], number)),
    ):
        result = split(data, what, seed=seed, min_test=0)
        n_tested = result.test.group_by("user").len()
        joined = sizes.join(n_tested, on="user", how="left", suffix="_test").sort("user")
        assert joined["len_test"].fill_null(0).to_list() == list(expected)


def test_share_of_all_interactions_is_met_on_average():
    data = interactions(n=40_000, n_users=2000, n_items=500)
    for fraction in (0.1, 0.5):
        share = len(split(data, Fraction(fraction, per_user=False)).test) / len(data)
        # Rows that repeat a pair are drawn together, which slightly increases the standard error.
        assert abs(share - fraction) < 6 * np.sqrt(fraction * (1 - fraction) / len(data))
    n_test_users = len(split(data, Last(1), who=UsersFraction(0.3)).users)
    assert abs(n_test_users / 2000 - 0.3) < 4.5 * np.sqrt(0.21 / 2000)


def test_users_with_a_single_interaction_keep_it_in_train():
    data = pl.DataFrame({"user": [1, 2, 2], "item": [5, 5, 6], "time": [1, 1, 2]})
    assert split(data, LeaveOneOut()).test.rows() == [(2, 6, 2)]
    assert len(split(data, Last(1)).test) == 2
    assert split(data, Last(1), min_train=1).test.rows() == [(2, 6, 2)]


def test_interactions_from_a_time_on_are_held_out():
    data = interactions()
    result = split(data, After(30))
    assert result.test.equals(data.filter(pl.col("time") >= 30))
    assert result.train.equals(data.filter(pl.col("time") < 30))
    result = split(data, After(20, until=30, since=10))
    assert result.test.equals(data.filter(pl.col("time").is_between(20, 29)))
    assert result.train.equals(data.filter(pl.col("time").is_between(10, 19)))
    # If a user is not a test user, the user's later interactions are left out.
    given_users = split(data, After(30), who=GivenUsers([13]))
    assert given_users.train.equals(data.filter(pl.col("time") < 30))
    assert set(given_users.test["user"]) == {13}


def test_times_can_be_passed_as_dates():
    days = [datetime.datetime(2024, 5, day) for day in (1, 2, 3, 4)]
    data = pl.DataFrame({"user": [1, 1, 2, 2], "item": [1, 2, 1, 2], "time": days})
    objects = data.to_pandas().astype({"time": object})
    categorical = data.cast({"time": pl.String}).cast({"time": pl.Categorical})
    of_dates = data.cast({"time": pl.Date})
    for frame in (data, data.to_pandas(), objects, data.to_arrow(), of_dates, categorical):
        for time in ("2024-05-03", days[2], days[2].date()):
            assert len(split(frame, After(time)).test) == 2
    berlin = datetime.timezone(datetime.timedelta(hours=2))
    assert len(split(data, After(datetime.datetime(2024, 5, 3, 2, tzinfo=berlin))).test) == 2
    windows = Windows(["2024-05-02", "2024-05-03"], length=datetime.timedelta(days=1))
    assert [(len(f.train), len(f.test)) for f in folds(data, windows)] == [(1, 1), (1, 2)]


NOON = datetime.datetime(2024, 5, 31, 12, tzinfo=datetime.timezone.utc)


def frames_in_zone(zone):
    """Return frames of all kinds, with times around two midnights in a zone ahead of UTC."""
    hours = [0, 9, 10, 12, 33, 34, 36]  # 10 and 34 are midnights in this zone
    times = [NOON + datetime.timedelta(hours=hour) for hour in hours]
    columns = {"user": [1] * 7, "item": [*range(7)]}
    of_arrow = pa.table({**columns, "time": pa.array(times, pa.timestamp("us", tz=zone))})
    of_pandas = pd.DataFrame({**columns, "time": pd.to_datetime(times, utc=True)})
    of_pandas["time"] = of_pandas["time"].dt.tz_convert(zone)
    texts = [time.isoformat() for time in of_pandas["time"]]
    return {
        "Arrow": of_arrow,
        "Polars": pl.DataFrame(of_arrow),
        "pandas": of_pandas,
        "objects": of_pandas.astype({"time": object}),
        "pandas with Arrow": of_arrow.to_pandas(types_mapper=pd.ArrowDtype),
        "texts": pl.DataFrame({**columns, "time": texts}),
        "texts of pandas": pd.DataFrame({**columns, "time": texts}),
    }


@pytest.mark.parametrize("zone", ["Europe/Berlin", "+02:00"])
def test_dates_are_in_the_time_zone_of_the_times(zone, tmp_path):
    frames_by_library = frames_in_zone(zone)
    frames_by_library["Polars"].write_parquet(tmp_path / "zoned.parquet")
    frames_by_library["texts"].write_csv(tmp_path / "zoned.csv")
    frames_by_library |= {name: tmp_path / name for name in ("zoned.parquet", "zoned.csv")}

    def items(part):
        part = part.collect() if isinstance(part, pl.LazyFrame) else part
        return [*map(int, pl.DataFrame({"item": part["item"]})["item"])]

    day = datetime.date(2024, 6, 1)
    midnight = datetime.datetime(2024, 6, 1)
    for name, data in frames_by_library.items():
        for time in ("2024-06-01", day, midnight, np.datetime64(day), pd.Timestamp(day)):
            assert items(split(data, After(time)).test) == [2, 3, 4, 5, 6], name
        # A time zone in the argument takes precedence over the time zone of the column.
        utc = midnight.replace(tzinfo=datetime.timezone.utc)
        assert items(split(data, After(utc)).test) == [3, 4, 5, 6], name
        assert items(split(data, After("2024-06-01T00:00Z")).test) == [3, 4, 5, 6], name
        between = split(data, After(day, until="2024-06-02"))
        assert items(between.test) == [2, 3, 4], name
        assert items(split(data, After("2024-06-02", since=day)).train) == [2, 3, 4], name
        (window,) = folds(data, Windows(["2024-06-01"], until="2024-06-02"))
        assert items(window.test) == [2, 3, 4], name
        active = split(data, Fraction(0.5), who=ActiveAfter("2024-06-02T02:00"))
        assert len(items(active.test)) == 4, name


def test_dates_need_a_time_zone_if_times_have_several():
    texts = ["2024-01-31T23:30+01:00", "2024-05-31T23:30+02:00", "2024-06-01T00:30+02:00"]
    data = pl.DataFrame({"user": [1, 1, 1], "item": [1, 2, 3], "time": texts})
    with pytest.raises(InputError, match=r"in several zones \(UTC\+01:00, UTC\+02:00\)"):
        split(data, After("2024-06-01"))
    assert split(data, After("2024-06-01T00:00+02:00")).test["item"].to_list() == [3]
    assert split(data, Last(1)).test["item"].to_list() == [3]
    # These times are in one time zone, but have different offsets in winter and in summer.
    local = [pd.Timestamp(text).tz_convert("Europe/Berlin") for text in texts]
    of_pandas = data.to_pandas().assign(time=pd.Series(local, dtype=object))
    assert split(of_pandas, After("2024-06-01")).test["item"].tolist() == [3]


def test_day_without_a_midnight_starts_after_the_clock_change():
    # In Beirut, this day began at 1:00 (22:00 UTC), because the clocks skipped the hour after
    # midnight.
    times = pl.Series([datetime.datetime(2021, 3, 27, 21, 59), datetime.datetime(2021, 3, 27, 22)])
    zoned = times.dt.replace_time_zone("UTC").dt.convert_time_zone("Asia/Beirut")
    data = pl.DataFrame({"user": [1, 1], "item": [1, 2], "time": zoned})
    assert split(data, After("2021-03-28")).test["item"].to_list() == [2]


def test_train_of_new_items_is_empty():
    data = interactions()
    result = split(data, ColdItems(0.3), who=UsersFraction(0.5))
    assert not set(result.test["item"]) & set(result.train["item"])
    assert set(split(data, ColdItems(items=[104])).test["item"]) == {104}


def test_equal_times_are_ordered_by_draws():
    data = pl.DataFrame({"user": [1] * 40, "item": range(40), "time": [7] * 40})
    tested_items = {split(data, Last(1), seed=seed).test["item"][0] for seed in range(30)}
    assert len(tested_items) > 15
    assert split(data, Last(5), seed=1).test.equals(split(data, Number(5), seed=1).test)


def test_rows_that_only_differ_in_value_are_ordered_by_value():
    data = pl.DataFrame({"user": [1] * 3, "item": [2] * 3, "time": [3] * 3, "value": [2, 5, 4]})
    for frame in (data, data.reverse()):
        for what in (Last(1), Number(1)):
            assert split(frame, what).test["value"].to_list() == [5]
        assert set(split(frame, Last(2)).test["value"]) == {4, 5}


# Folds


@pytest.mark.parametrize("filters", [(), (KCore(3), Duplicates("last"))])
def test_every_interaction_is_tested_in_exactly_one_fold(filters):
    data = interactions()
    made_folds = folds(data, KFold(4), filters=filters, seed=2)
    assert len(made_folds) == len(list(made_folds)) == 4
    all_tests = pl.concat([fold.test for fold in made_folds])
    tested_rows = sorted(all_tests["row"])
    assert (
        len(set(tested_rows))
        == len(tested_rows)
        == len(made_folds[0].train) + len(made_folds[0].test)
    )
    assert tested_rows == list(range(240)) or filters
    for number, fold in enumerate(made_folds):
        assert fold.protocol.fold == number
        assert sorted([*fold.train["row"], *fold.test["row"]]) == tested_rows
        assert fold.test.equals(made_folds[number].test)
        assert fold.test.equals(made_folds[number - 4].test)
    sizes = [by_user(fold.test) for fold in made_folds]
    for user in set(all_tests["user"]):
        of_user = [len(size[user]) if user in size else 0 for size in sizes]
        assert max(of_user) - min(of_user) <= 1


def test_every_user_is_tested_in_exactly_one_fold():
    data = interactions(n_users=30)
    for untested in ("train", "apart"):
        made_folds = list(folds(data, Last(2), who=UserFolds(3), untested=untested))
        users = [user for fold in made_folds for user in fold.users.tolist()]
        assert sorted(users) == sorted(set(data["user"]))
        assert made_folds[0].protocol.who == "UserFolds(k=3)"
        expected = split(data, Last(2)).test
        assert pl.concat([fold.test for fold in made_folds]).sort("row").equals(expected)
        for fold in made_folds:
            assert (fold.remainder is None) == (untested == "train")
    data_of_fold = data.filter(pl.col("user").is_in(made_folds[1].users.tolist()))
    assert split(data_of_fold, Last(2)).users.tolist() == made_folds[1].users.tolist()


def test_windows_hold_out_successive_periods():
    data = interactions()
    times = [10, 20, 33]
    for length in (None, 7):
        made_folds = list(folds(data, Windows(times, until=38, length=length)))
        for fold, begin, end in zip(made_folds, times, [20, 33, 38], strict=True):
            assert fold.test.equals(data.filter(pl.col("time").is_between(begin, end - 1)))
            since = -1 if length is None else begin - length
            expected = data.filter((pl.col("time") < begin) & (pl.col("time") >= since))
            assert fold.train.equals(expected)


# Filters


def slow_core(frame, user, item):
    while True:
        remaining = frame.filter(
            (pl.len().over("user") >= user) & (pl.len().over("item") >= item),
        )
        if len(remaining) == len(frame):
            return remaining
        frame = remaining


@pytest.mark.filterwarnings("ignore:the training data are empty")
@given(st.integers(0, 10**6), st.integers(1, 7), st.integers(1, 7))
def test_core_matches_repeated_removal(seed, user, item):
    data = interactions(seed, n=120, n_users=25, n_items=20)
    expected = slow_core(data, user, item)
    if not len(expected):
        with pytest.raises(NoTestUsersError):
            split(data, Fraction(0.5), filters=KCore(user=user, item=item))
        return
    result = split(data, Fraction(0.5), filters=KCore(user=user, item=item), min_test=0)
    assert sorted([*result.train["row"], *result.test["row"]]) == expected["row"].to_list()
    assert result.protocol.removed == {
        f"KCore(user={user}, item={item})": len(data) - len(expected)
    }


def test_filters_use_the_initial_counts():
    data = interactions()
    result = split(data, Fraction(0.5), filters=MinCounts(user=9, item=8))
    expected = data.filter((pl.len().over("user") >= 9) & (pl.len().over("item") >= 8))
    assert sorted([*result.train["row"], *result.test["row"]]) == expected["row"].to_list()
    assert KCore(5) == KCore(user=5, item=5) != KCore(5, user=4)


@pytest.mark.parametrize("kind", [pl.Int32, pl.Float32])
@pytest.mark.parametrize("as_library", [lambda f: f, pl.DataFrame.to_pandas, pl.DataFrame.to_arrow])
def test_repeated_pairs_are_merged_as_the_rule_says(kind, as_library):
    data = interactions(n=400).cast({"value": kind})
    for keep in ("first", "last", "sum"):
        result = split(as_library(data), Last(1), filters=Duplicates(keep))
        all_rows = pl.concat([pl.DataFrame(result.train), pl.DataFrame(result.test)])
        assert all_rows.select(pl.struct("user", "item").is_unique().all()).item()
        assert len(all_rows) == data.select("user", "item").n_unique()
        order = data.sort("time", "value", descending=keep == "first")
        expected = order.unique(["user", "item"], keep="last", maintain_order=True)
        columns = ["user", "item", "time"]
        if keep == "sum":
            sums = data.group_by("user", "item").agg(pl.col("value").cast(pl.Float64).sum())
            expected = expected.drop("value").join(sums, on=["user", "item"])
        results = [
            frame.select(*columns, pl.col("value").cast(pl.Float64)).sort(columns)
            for frame in (all_rows, expected)
        ]
        assert results[0].equals(results[1])


def test_sums_are_kept_if_rows_are_left_out_before_and_after(tmp_path):
    data = interactions()
    path = tmp_path / "data.parquet"
    data.write_parquet(path)
    filters = [ValuesFrom(2), Duplicates("sum"), KCore(2), ValuesFrom(4)]
    result = split(data, Last(1), filters=filters)
    sums = data.filter(pl.col("value") >= 2).group_by("user", "item").agg(pl.col("value").sum())
    all_rows = pl.concat([result.train, result.test]).select("user", "item", "value")
    assert all_rows.join(sums, on=["user", "item", "value"]).height == all_rows.height
    assert split(path, Last(1), filters=filters).test.collect().equals(result.test)


def test_items_not_seen_in_train_are_left_out():
    data = interactions(n=120, n_items=40)
    base = split(data, After(20), who=UsersFraction(0.7), untested="apart")
    result = split(data, After(20), who=UsersFraction(0.7), untested="apart", filters=SeenInTrain())
    users, items = set(base.train["user"]), {*base.train["item"], *base.remainder["item"]}
    expected = base.test.filter(pl.col("user").is_in(users) & pl.col("item").is_in(items))
    assert len(expected) < len(base.test)
    assert result.test.equals(expected)
    assert result.users.tolist() == sorted(set(expected["user"]))


# Saving and loading


@pytest.mark.parametrize("untested", ["train", "apart"])
@pytest.mark.parametrize("kind", ["polars", "pandas", "file", "interactions", "matrix", "text ids"])
def test_saved_splits_can_be_loaded(kind, untested, tmp_path):
    data = one_row_per_pair(interactions())
    data.write_parquet(tmp_path / "data.parquet")
    data_with_text_ids = data.with_columns(
        pl.format("u{}", "user").alias("user"), pl.col("item").cast(pl.String)
    )
    given_data = {
        "polars": lambda: data,
        "pandas": data.to_pandas,
        "file": lambda: tmp_path / "data.parquet",
        "interactions": lambda: rm.Interactions.of(data),
        "matrix": lambda: sp.csr_array(np.tri(20, 30)),
        "text ids": lambda: rm.Interactions.of(data_with_text_ids),
    }[kind]()
    result = split(given_data, Fraction(0.4), who=UsersFraction(0.5), untested=untested)
    folder = tmp_path / "a" / "split"
    split(data, Last(1), who=UsersNumber(1), untested="apart").save(folder)
    result.save(folder)
    assert (folder / "remainder.parquet").exists() == (untested == "apart")
    loaded = rm.Split.load(folder)
    assert loaded.protocol == result.protocol
    assert loaded.columns == result.columns
    assert repr(loaded) == repr(result)
    np.testing.assert_array_equal(loaded.users, result.users)
    assert loaded.users.dtype == result.users.dtype
    for part in PARTS:
        original_part, loaded_part = getattr(result, part), getattr(loaded, part)
        assert type(original_part) is type(loaded_part)
        if isinstance(original_part, rm.Interactions):
            for name in ("indptr", "items", "values", "times", "user_ids", "item_ids"):
                np.testing.assert_array_equal(
                    getattr(original_part, name), getattr(loaded_part, name)
                )
            assert original_part.n_items == loaded_part.n_items
        elif original_part is not None:
            frames = (
                f.collect() if isinstance(f, pl.LazyFrame) else f
                for f in (original_part, loaded_part)
            )
            first, second = map(pl.DataFrame, frames)
            assert first.equals(second)


def test_train_of_a_split_can_be_split_again_in_place(tmp_path):
    data = interactions()
    split(data, Last(1)).save(tmp_path)
    result = split(tmp_path / "train.parquet", Last(2))
    expected = result.test.collect()
    result.save(tmp_path)
    assert rm.Split.load(tmp_path).test.collect().equals(expected)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        *("split.json", "test.parquet", "train.parquet", "users.parquet")
    ]


@pytest.mark.parametrize("name", ["train.parquet", "remainder.parquet", "split.json"])
def test_saving_refuses_to_replace_unrelated_files(tmp_path, name):
    (tmp_path / name).write_text("mine")
    with pytest.raises(rm.FileError, match=rf"{name} exists.* Hint: choose an empty folder"):
        split(interactions(), Last(1)).save(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [name]
    assert (tmp_path / name).read_text() == "mine"


def test_other_files_in_the_folder_of_a_split_are_kept(tmp_path):
    split(interactions(), Last(1)).save(tmp_path)
    (tmp_path / "remainder.parquet").write_text("mine")
    with pytest.raises(rm.FileError, match=r"remainder\.parquet exists"):
        split(interactions(), Last(1)).save(tmp_path)
    assert (tmp_path / "remainder.parquet").read_text() == "mine"


def test_folders_without_a_readable_split_are_refused(tmp_path, monkeypatch):
    with pytest.raises(rm.FileError, match=r"There is no split in .* Hint: .*save"):
        rm.Split.load(tmp_path)
    split(interactions(), Last(1)).save(tmp_path)
    (tmp_path / "test.parquet").write_bytes(b"")
    with pytest.raises(rm.FileError, match="is damaged"):
        rm.Split.load(tmp_path)
    monkeypatch.setattr(saving, "VERSION", 9)
    split(interactions(), Last(1)).save(tmp_path)
    monkeypatch.undo()
    with pytest.raises(rm.FileError, match="newer version of recometer"):
        rm.Split.load(tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(rm.FileError, match=r"Cannot write the split"):
        split(interactions(), Last(1)).save(tmp_path / "file")


# Evaluating splits


def popularity(split_result):
    plain = split_result.interactions().train
    counts = np.bincount(plain.items, minlength=plain.n_items).astype(float)
    return rm.Factors(None, None, item_bias=counts, item_ids=plain.item_ids)


def test_split_is_evaluated():
    data = one_row_per_pair(interactions()).rename({"user": "who", "item": "what"})
    result = split(data, Last(2), user="who", item="what")
    source = popularity(result)
    evaluation = rm.evaluate(source, result, metrics="ndcg@3 rr", ties="item")
    test, train = (p.rename({"who": "user", "what": "item"}) for p in (result.test, result.train))
    expected = rm.evaluate(source, test, train=train, metrics="ndcg@3 rr", ties="item")
    for name in ("ndcg@3", "rr"):
        np.testing.assert_array_equal(evaluation[name], expected[name])
        np.testing.assert_array_equal(
            evaluation[name],
            rm.evaluate(source, result.interactions(), metrics=name, ties="item")[name],
        )
    with pytest.raises(InputError, match="Split contains its own"):
        rm.evaluate(source, result, train=train)


def test_every_parameter_of_evaluate_is_passed_on_for_splits(monkeypatch):
    other_parameters = {
        "source",
        "test",
        "train",
        "rules",
        "until",
    }  # replaced by the split, or passed when the evaluator is called
    names = set(inspect.signature(rm.evaluate).parameters) - other_parameters
    received = {}

    def evaluator(test, **arguments):
        received.update(arguments, test=test)
        raise InterruptedError

    evaluation = sys.modules["recometer.evaluation"]
    monkeypatch.setattr(evaluation, "Preparation", evaluator)
    monkeypatch.setattr(
        evaluation, "check_evaluable", lambda source, test: received.update(source=source)
    )
    data = rm.Interactions.of(one_row_per_pair(interactions()))
    single_split = split(data, Last(1))
    for given_test in (single_split, [single_split], folds(data, KFold(2))):
        values = {name: object() for name in names}
        source = object()
        sources = source if given_test is single_split else [source] * len(given_test)
        with pytest.raises(InterruptedError):
            rm.evaluate(sources, given_test, **values, ties="item")
        assert {name: received[name] for name in names} == values
        assert received["ties"] == "item"
        assert received["source"] is source
        assert isinstance(received["test"], rm.Split)  # a split contains its training data
        assert received["train"] is None


@pytest.mark.parametrize("convert", [lambda f: f, rm.Interactions.of])
def test_folds_are_evaluated_and_pooled(convert):
    data = convert(one_row_per_pair(interactions()))
    for made_folds in (folds(data, KFold(3)), folds(data, Last(2), who=UserFolds(3))):
        result = rm.evaluate(popularity, made_folds, metrics="ndcg@3 recall@2")
        results_of_folds = [
            rm.evaluate(popularity(fold), fold, metrics="ndcg@3 recall@2") for fold in made_folds
        ]
        sources = [popularity(fold) for fold in made_folds]
        of_sources = rm.evaluate(sources, made_folds, metrics="ndcg@3 recall@2")
        for name in ("ndcg@3", "recall@2"):
            values = {}
            for evaluation in results_of_folds:
                for user, value in zip(evaluation.user_ids, evaluation[name], strict=True):
                    values.setdefault(user, []).append(value)
            assert result.user_ids.tolist() == sorted(values)
            defined = [[v for v in values[user] if v == v] for user in sorted(values)]
            mean = [
                sum(values_of_user) / len(values_of_user) if values_of_user else np.nan
                for values_of_user in defined
            ]
            np.testing.assert_allclose(result[name], mean, rtol=1e-14)
            np.testing.assert_array_equal(result[name], of_sources[name])
            assert result.per_fold()[name].to_list() == [e.mean()[name] for e in results_of_folds]
        assert [fold.n_users for fold in result.folds] == [e.n_users for e in results_of_folds]
        assert result.n_relevant.sum() == sum(e.n_relevant.sum() for e in results_of_folds)
        assert "fold 2: test" in str(result)


def test_pooled_folds_can_count_undefined_values_as_zero():
    data = one_row_per_pair(interactions())
    made_folds = folds(data, Last(2), who=UserFolds(3))
    plain = rm.evaluate(popularity, made_folds, metrics="rr ndcg@2")
    zeros = rm.evaluate(popularity, made_folds, metrics="rr ndcg@2", undefined=0)
    for name in ("rr", "ndcg@2"):
        np.testing.assert_array_equal(zeros[name], np.nan_to_num(plain[name]))
        np.testing.assert_array_equal(zeros.reasons[name], plain.reasons[name])


def test_metrics_over_all_users_are_averaged_over_folds(tmp_path):
    data = one_row_per_pair(interactions())
    result = rm.evaluate(popularity, folds(data, KFold(3)), metrics="coverage@2 rr")
    values_of_folds = [fold.mean()["coverage@2"] for fold in result.folds]
    assert result.mean()["coverage@2"] == pytest.approx(np.mean(values_of_folds))
    assert result.per_fold()["coverage@2"].to_list() == values_of_folds
    assert "coverage@2" in str(result)
    result.save(tmp_path / "pooled.parquet")
    assert rm.load(tmp_path / "pooled.parquet").mean() == result.mean()


def test_empty_train_gives_a_warning():
    data = interactions()
    with pytest.warns(
        DataWarning, match=r"^the training data are empty: with .*, none of the 240 .* Hint: "
    ) as caught:
        result = split(data, After(-1))
    assert result.train.is_empty()
    assert caught[0].filename == __file__
    with pytest.warns(DataWarning, match=r"^the training data are empty: .*, filters=\[KCore\("):
        split(data, After(-1), filters=KCore(2))
    with pytest.warns(DataWarning, match="^Fold 0: the training data are empty"):
        list(folds(data, Windows([-1, 20])))
    # The training part may be empty without a warning, since models are fitted to other users'
    # rows.
    split(data, Number(99), who=GivenUsers([13]), untested="apart")


def test_values_undefined_in_all_folds_have_a_reason():
    data = pl.DataFrame({"user": [1, 1, 2, 2, 3], "item": [1, 2, 1, 2, 2], "time": [1, 9, 1, 2, 9]})
    made_folds = folds(data, Windows([5, 10]))
    with pytest.raises(NoTestUsersError, match="Fold 1: no user can be tested"):
        list(made_folds)
    pooled = rm.evaluate(popularity, folds(data, Windows([5])), metrics="rr")
    made_folds = split(data, After(5))
    assert pooled.skipped("rr") == rm.evaluate(
        popularity(made_folds), made_folds, metrics="rr"
    ).skipped("rr")


# Errors

DAY = datetime.timedelta(days=1)


def with_dates(data: pl.DataFrame) -> pl.DataFrame:
    return data.with_columns(time=datetime.datetime(2024, 1, 1) + pl.col("time") * DAY)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda d: split(d.drop("time"), Last(1)), InputError, "have no times. Hint: .*time="),
        (lambda d: split(d.drop("value"), Last(1), filters=ValuesFrom(3)), InputError, "value="),
        (lambda d: split(d, After("2024-01-01")), InputError, "is a date, but the times"),
        (lambda d: split(d, After("soon")), InputError, "not a date in ISO 8601"),
        (
            lambda d: split(with_dates(d), After(2024)),
            InputError,
            "a number, but the times .* dates",
        ),
        (
            lambda d: list(folds(with_dates(d), Windows(["2024-01-05"], length=5))),
            InputError,
            "length=5 is a number, but the times of the data are dates",
        ),
        (lambda d: split(d, After(None)), InputError, r"After takes a time or a share.*share=0\.8"),
        (lambda d: split(d, After(3, share=0.8)), InputError, "After takes a time or a share"),
        (lambda d: split(d, After(share=1.0)), InputError, "share"),
        (lambda d: split(d, After([3])), InputTypeError, "must be a number or a date"),
        (lambda d: split(d, After(float("nan"))), InputError, "must not be NaN"),
        (lambda d: split(with_dates(d), After(pd.NaT)), InputError, "must not be NaN or NaT"),
        (
            lambda d: split(d, After(9, until=9)),
            InputError,
            "must be in ascending order: since < time < until",
        ),
        (
            lambda d: split(d, After(99)),
            NoTestUsersError,
            "no user can be tested: none of the 240 .* Hint",
        ),
        (lambda d: split(d, Last(1), who=GivenUsers([13, 99])), InputError, "1 of .* first: 99"),
        (lambda d: split(d, Last(1), who=GivenUsers(["a"])), InputTypeError, "of type str"),
        (lambda d: split(d, ColdItems(items=[1])), InputError, "given items are not in the data"),
        (lambda d: split(d, KFold(3)), InputTypeError, "several splits. Hint: rm.split.folds"),
        (lambda d: split(d, Last(1), who=UserFolds(2)), InputTypeError, "several splits"),
        (lambda d: folds(d, Last(1)), InputTypeError, "Either what or who must make the folds"),
        (lambda d: folds(d, KFold(2), who=UserFolds(2)), InputTypeError, "Either what or who"),
        (
            lambda d: list(folds(d, Windows([5, 3]))),
            InputError,
            "Windows.* times must be in ascending order",
        ),
        (lambda d: list(folds(d, Windows([5, 9], until=7))), InputError, "begin before until"),
        (lambda d: Windows("2024-05-31"), InputTypeError, "must be a list of times"),
        (lambda d: Windows(5), InputTypeError, "must be a list of times"),
        (lambda d: Windows([5], length="3d"), InputTypeError, "length='3d' must be"),
        (lambda d: Windows([5], length=-1), InputError, "length=-1 must be above 0"),
        (lambda d: Windows([5], length=float("nan")), InputError, "length=nan must be above 0"),
        (lambda d: ValuesFrom("4"), InputError, "threshold='4' must be a number"),
        (lambda d: ValuesFrom(float("nan")), InputError, "threshold=nan must be a number"),
        (
            lambda d: list(folds(d, Windows([9], length=datetime.timedelta(days=1)))),
            InputError,
            "is a span of dates, but the times",
        ),
        (lambda d: split(d.clear(), Last(1)), NoTestUsersError, "data have 0 interactions. Hint"),
        (lambda d: split(d, Last(1), filters=KCore(99)), NoTestUsersError, "KCore.* left out 240"),
        (
            lambda d: split(d, Number(99), filters=SeenInTrain()),
            NoTestUsersError,
            r"SeenInTrain\(users=True, items=True\) left out 240",
        ),
        (lambda d: split(d, Last), InputTypeError, r"Hint: call it: Last\(...\)"),
        (lambda d: split(d, Last(1), who="all"), InputTypeError, "Hint: .*UsersFraction"),
        (lambda d: split(d, Last(1), filters="core"), InputTypeError, "filters='core'.*KCore"),
        (
            lambda d: split(d.with_columns(pl.lit(2**63, pl.UInt64).alias("time")), Last(1)),
            InputError,
            r"must be below 2\*\*63",
        ),
        (
            lambda d: split(
                d.with_columns(value=pl.when(pl.col("row") > 5).then("value")),
                Last(1),
                filters=Duplicates("sum"),
            ),
            InputError,
            "adds up the values of user .* is missing or NaN",
        ),
        (lambda d: split(d, "last"), InputTypeError, r"what='last' .* rm.split.Last\(1\)"),
        (lambda d: split(d, Last(1), who=Last(1)), InputTypeError, r"who=Last\(number=1\)"),
        (lambda d: split(d, Last(1), filters=[Last(1)]), InputTypeError, "filters=Last"),
        (lambda d: split(d, Last(1), untested="out"), InputError, "'train' or 'apart'"),
        (lambda d: split(d, Last(1), seed=-1), InputError, "seed=-1"),
        (lambda d: split(d, Last(1), min_train=-1), InputError, "min_train=-1 must be a whole"),
        (lambda d: Last(0), InputError, "number=0 must be a whole number of at least 1"),
        (lambda d: Number(1.5), InputError, "number=1.5"),
        (lambda d: Fraction(1), InputError, "fraction=1 must lie between 0 and 1"),
        (lambda d: Fraction("a"), InputError, "fraction='a' must lie"),
        (lambda d: UsersFraction(0), InputError, "fraction=0 must lie"),
        (lambda d: KFold(1), InputError, r"Hint: KFold\(5\)"),
        (lambda d: UserFolds(1), InputError, r"Hint: UserFolds\(5\)"),
        (lambda d: KCore(0), InputError, "k=0 must be"),
        (lambda d: KCore(2, item=0), InputError, "item=0 must be"),
        (lambda d: MinCounts(user=0), InputError, "user=0 must be"),
        (lambda d: Duplicates("any"), InputError, "keep='any' must be"),
        (lambda d: LeaveOneOut("any"), InputError, "by='any' must be"),
        (lambda d: ColdItems(), InputError, r"Hint: ColdItems\(0.1\)"),
        (lambda d: folds(d, KFold(3))[3], IndexError, "no fold 3: there are 3"),
        (lambda d: folds(d, KFold(3))[0:2], InputTypeError, "A fold is selected by its number"),
        (
            lambda d: list(folds(d.head(1), Last(1), who=UserFolds(5))),
            NoTestUsersError,
            r"Fold \d: no user can be tested: .* who=UserFolds\(k=5\)",
        ),
        (lambda d: rm.evaluate([1], folds(d, KFold(3))), InputError, "1 sources for 3 folds"),
        (lambda d: rm.evaluate(1, folds(d, KFold(3))), InputTypeError, "found one of type int"),
        (lambda d: rm.evaluate([1], [split(d, Last(1))], train=d), InputError, "its own"),
        (lambda d: split(d.with_columns(user=None), Last(1)), InputError, "user ids .* no value"),
        (lambda d: split(3, Last(1)), InputTypeError, "cannot be read from int"),
    ],
)
def test_invalid_arguments_and_data_are_refused(call, error, message):
    with pytest.raises(error, match=message):
        call(interactions())


def test_fewer_test_users_than_requested_give_a_warning():
    with pytest.warns(DataWarning, match=r"UsersNumber\(number=99\): only 18 users can be tested"):
        result = split(interactions(), Last(1), who=UsersNumber(99))
    assert len(result.users) == 18


# Memory


# Every machine and every version must reproduce the recorded draws below.


def test_draws_are_the_same_on_every_platform():
    numbered = pl.DataFrame({"user": [1] * 8 + [2] * 8, "item": [*range(8)] * 2, "time": [0] * 16})
    data_with_ids = numbered.with_columns(
        pl.format("user {}", "user").alias("user"), pl.format("item {}", "item").alias("item")
    )

    def rows_in_test(data, what, **options):
        rows = split(data, what, seed=7, **options).test.rows()
        return [(int(str(user)[-1]), int(str(item)[-1])) for user, item, _ in rows]

    assert rows_in_test(numbered, Number(2)) == [(1, 3), (1, 7), (2, 0), (2, 7)]
    assert rows_in_test(data_with_ids, Number(2)) == [(1, 3), (1, 4), (2, 5), (2, 6)]
    assert rows_in_test(numbered, Last(2)) == [(1, 3), (1, 7), (2, 0), (2, 7)]
    assert rows_in_test(numbered, Fraction(0.2, per_user=False)) == [(2, 0), (2, 7)]
    assert {item for _, item in rows_in_test(numbered, ColdItems(0.3))} == {0, 1, 2}
    many_users = pl.DataFrame({"user": range(12), "item": [0] * 12})
    assert split(many_users, Number(1), who=UsersNumber(3), seed=7).users.tolist() == [1, 2, 8]
    assert split(many_users, Number(1), who=UsersFraction(0.3), seed=7).users.tolist() == [1, 2, 8]
    made_folds = folds(many_users, Number(1), who=UserFolds(3), seed=7)
    assert [fold.users.tolist() for fold in made_folds] == [
        [0, 1, 2, 8],
        [4, 6, 10, 11],
        [3, 5, 7, 9],
    ]


def test_small_integers_are_ids_even_if_their_span_is_larger_than_their_type():
    for kind, distance in ((np.int8, 100), (np.int16, 30_000), (np.int32, 30_000)):
        ids = np.array([-distance, -distance, 0, 0, distance, distance], kind)
        data = pl.DataFrame({"user": ids, "item": ids[::-1], "time": np.arange(6)})
        result = split(data, Last(1))
        assert result.users.tolist() == [-distance, 0, distance]
        assert result.test["time"].to_list() == [1, 3, 5]
        assert split(data, ColdItems(items=[distance])).test["item"].unique().to_list() == [
            distance
        ]


@pytest.mark.parametrize("ids", [[1, 1, 2], ["a", "a", "b"]])
def test_users_in_who_whom_a_filter_removes_are_not_tested(ids):
    data = pl.DataFrame({"user": ids, "item": [5, 6, 5], "time": [1, 2, 3]})
    who = GivenUsers([ids[0], ids[2]])
    assert split(data, Last(1), who=who, filters=MinCounts(user=2)).users.tolist() == ids[:1]


@pytest.mark.parametrize("who", [AllUsers(), GivenUsers([1, 2])], ids=repr)
def test_users_without_test_rows_are_separated(who):
    data = pl.DataFrame({"user": [1, 1, 2, 3], "item": [5, 6, 5, 5], "time": [1, 9, 1, 1]})
    result = split(data, After(9), who=who, untested="apart")
    assert result.users.tolist() == [1]
    assert result.train["user"].to_list() == [1]
    assert result.remainder["user"].to_list() == [2, 3]


def test_sums_only_replace_values_of_repeated_pairs_and_stay_integers(tmp_path):
    exact = 2**60 + 1  # float64 cannot represent this number
    data = pl.DataFrame(
        {"user": [1, 1, 1], "item": [1, 1, 2], "value": [1, 2, exact], "time": [1, 2, 3]}
    )
    path = tmp_path / "data.parquet"
    data.write_parquet(path)
    pandas = data.to_pandas()
    for given_data in (data, pandas, pandas.astype("Int64"), data.to_arrow(), path):
        result = split(given_data, LastFraction(0.5), filters=Duplicates("sum"))
        for part, value in ((result.train, 3), (result.test, exact)):
            frame = part.collect() if isinstance(part, pl.LazyFrame) else pl.DataFrame(part)
            assert frame["value"].to_list() == [value]
            assert frame["value"].dtype == pl.Int64


def test_boolean_values_are_summed_as_numbers():
    for values in ([True, True, False], [True, True, True]):
        data = pl.DataFrame(
            {"user": [1] * 3, "item": [1, 1, 2], "value": values, "time": [1, 2, 3]}
        )
        for given_data in (data, data.to_pandas()):
            result = split(given_data, Last(1), filters=Duplicates("sum"))
            assert list(result.train["value"]) == [2]
            assert list(result.test["value"]) == [int(values[2])]


@pytest.mark.parametrize("time", [np.datetime64("2024-01-06"), pd.Timestamp("2024-01-06")])
def test_times_of_numpy_and_pandas_are_read_as_dates(time):
    data = with_dates(interactions())
    assert (
        split(data, After(time)).protocol.counts == split(data, After("2024-01-06")).protocol.counts
    )


def test_ids_that_parquet_cannot_hold_are_rejected(tmp_path):
    ids = [uuid.UUID(int=number) for number in (1, 1, 2, 2)]
    plain = pl.DataFrame({"item": [1, 2, 3, 4], "time": [1, 2, 3, 4]})
    frames = [
        plain.to_pandas().assign(user=ids),
        plain.with_columns(pl.Series("user", ids, dtype=pl.Object)),
    ]
    if hasattr(pa, "uuid"):
        column = pa.array([uuid_of_user.bytes for uuid_of_user in ids], pa.uuid())
        frames.append(plain.to_arrow().append_column("user", column))
    for number, frame in enumerate(frames):
        result = split(frame, Last(1))
        with pytest.raises(
            InputTypeError,
            match=r"('user' contains objects|Could not convert UUID).* Hint: convert",
        ):
            result.save(tmp_path / str(number))
        assert not list((tmp_path / str(number)).glob("*"))
    saved = split(rm.Interactions.of(frames[0]), Last(1))
    saved.save(tmp_path / "interactions")
    assert rm.Split.load(tmp_path / "interactions").users.tolist() == [ids[0], ids[2]]
    mixed = plain.to_pandas().assign(user=[1, 1, 2, 2], other=[1, "a", b"b", 2.5])
    with pytest.raises(InputTypeError, match=r"cannot be written: .* Hint: convert"):
        split(mixed, Last(1)).save(tmp_path / "mixed")


@pytest.mark.parametrize("text", ["[]", '{"version": "1"}', '{"version": 1}'])
def test_invalid_header_is_reported_as_damaged(text, tmp_path):
    split(interactions(), Last(1)).save(tmp_path)
    for content in (text, seal(f'{text} "{PLACEHOLDER}"'.encode()).decode()):
        (tmp_path / "split.json").write_text(content)
        with pytest.raises(FileError, match="is damaged"):
            rm.Split.load(tmp_path)


@pytest.mark.parametrize(
    ("place", "wrong"),
    [
        (("protocol", "counts"), {}),
        (("protocol", "counts", "train"), "many"),
        (("protocol", "what"), 5),
        (("columns",), []),
    ],
)
def test_header_with_other_types_is_reported_as_damaged(place, wrong, tmp_path):
    split(interactions(), Last(1)).save(tmp_path)
    header = json.loads((tmp_path / "split.json").read_text())
    inside = header
    for key in place[:-1]:
        inside = inside[key]
    inside[place[-1]] = wrong
    (tmp_path / "split.json").write_bytes(seal(json.dumps(header).encode()))
    with pytest.raises(FileError, match="is damaged"):
        rm.Split.load(tmp_path)


def test_saved_folds_are_evaluated_together(tmp_path):
    made_folds = folds(one_row_per_pair(interactions()), KFold(3))
    scores = {item: item % 7 for item in range(100, 112)}

    def model(fold):
        ids = fold.interactions().train.item_ids
        return rm.Factors(None, None, item_bias=[float(scores[i]) for i in ids], item_ids=ids)

    for number, fold in enumerate(made_folds):
        fold.save(tmp_path / f"fold_{number}")
    with pytest.raises(FileError, match=r"contains several folds. Hint: .*fold_0"):
        rm.Split.load(tmp_path)
    loaded = [rm.Split.load(tmp_path / f"fold_{number}") for number in range(3)]
    expected = rm.evaluate(model, made_folds, metrics="rr")
    for sources in (model, [model(fold) for fold in loaded]):
        result = rm.evaluate(sources, loaded, metrics="rr")
        assert result.per_fold().equals(expected.per_fold())
        np.testing.assert_array_equal(result["rr"], expected["rr"])


@pytest.mark.parametrize("kind", [list, pl.DataFrame.to_pandas, pl.DataFrame.to_arrow, "file"])
def test_iso_8601_strings_are_read_as_dates(kind, tmp_path):
    days = [f"2024-05-{day:02}" for day in (3, 1, 2, 4)]
    frame = pl.DataFrame({"user_id": [1, 1, 2, 2], "item_id": [1, 2, 3, 4], "date": days})
    data = frame if kind is list else kind(frame) if callable(kind) else tmp_path / "d.parquet"
    frame.write_parquet(tmp_path / "d.parquet")
    for what in (After("2024-05-03"), After(share=0.5), Last(1)):
        result = split(data, what)
        test_frame = result.test.lazy().collect() if kind == "file" else pl.DataFrame(result.test)
        assert sorted(test_frame["date"]) == ["2024-05-03", "2024-05-04"]


def test_time_of_a_split_can_be_chosen_by_a_share_of_the_interactions():
    times = [5, 1, 1, 1, 2, 3, 4, 4, 4, 6]
    data = pl.DataFrame({"user_id": range(10), "item_id": range(10), "time": times})
    # For a share of 0.7, the data are split at time 4, when the eighth interaction and two others
    # occurred.
    for share, first in ((0.7, 4), (0.8, 5), (0.9, 6), (0.4, 3)):
        result = split(data, After(share=share))
        expected = sorted(times)[int(share * 10)]
        assert result.test["time"].min() == expected >= first
        assert result.train["time"].max() < expected
        assert result.test.height == sum(time >= expected for time in times)
    assert split(data, After(share=0.8, until=6)).test["time"].to_list() == [5]
    with pytest.raises(InputError, match="have the first time, 1, that none is before the split"):
        split(data, After(share=0.2))


def test_split_package_is_callable() -> None:
    data = {"ann": ["tea", "jam"], "bob": ["tea", "egg"]}
    options = {"seed": 3, "who": rm.split.GivenUsers(["bob"])}
    called, of_function = (
        function(data, rm.split.Number(1), **options) for function in (rm.split, rm.split.split)
    )
    assert repr(called) == repr(of_function)
    assert called.test.user_ids.tolist() == of_function.test.user_ids.tolist()
    np.testing.assert_array_equal(called.test.items, of_function.test.items)
    assert inspect.signature(rm.split) == inspect.signature(rm.split.split)
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'what'"):
        rm.split(data)


def test_type_declarations_cover_every_name_of_the_package() -> None:
    """For type checkers, a class declares the names of the package, such as ``rm.split.Last``."""
    tree = ast.parse(Path(calling.__file__).read_text(encoding="utf-8"))
    (declaration,) = (node for node in ast.walk(tree) if getattr(node, "name", "") == "Splitting")
    assert isinstance(declaration, ast.ClassDef)
    declared_names = {
        alias.name
        for node in declaration.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    declared_names |= {
        target.id
        for node in declaration.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    methods = [node.name for node in declaration.body if isinstance(node, ast.FunctionDef)]
    declared_names |= {name for name in methods if not name.startswith("__")}
    assert declared_names == {*rm.split.__all__}


def test_notebook_shows_the_table():
    result = split({"ann": ["a", "b", "c"], "bob": ["a", "b", "c"]}, Number(1))
    assert result.to_html() in result._repr_html_()


@pytest.mark.parametrize("data", ["ratings", "ratings/part-*.parquet", "ratings.parquet"])
def test_several_parquet_files_form_one_table(data, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    frame = pl.DataFrame(
        {
            "user": ["a", "a", "a", "b", "b"],
            "item": [1, 2, 3, 1, 2],
            "time": range(5),
            "price": [0.5, 1.5, 2.5, 3.5, 4.5],
        }
    )
    folder = tmp_path / data.split("/")[0]
    folder.mkdir()
    frame[:2].write_parquet(folder / "part-0.parquet")
    frame[2:].write_parquet(folder / "part-1.parquet")
    actual, expected = (split(source, Last(1)) for source in (data, frame))
    actual.save("made")
    for name in ("train", "test"):
        assert_frame_equal(getattr(actual, name).collect(), getattr(expected, name))
        assert_frame_equal(pl.read_parquet(f"made/{name}.parquet"), getattr(expected, name))
    with pytest.raises(FileError, match=r"No file is called none-\*\.parquet"):
        split("none-*.parquet", Last(1))


def test_error_for_a_date_suggests_its_number() -> None:
    frame = pl.DataFrame({"user": [1, 1], "item": [1, 2], "time": [1_700_000_000, 1_700_000_001]})
    with pytest.raises(InputError, match=r"Hint: pass a number in their unit, here 1675036800;"):
        split(frame, After("2023-01-30"))
    millis = frame.with_columns(pl.col("time") * 1000)
    with pytest.raises(InputError, match=r"here 1675036800000;"):
        split(millis, After("2023-01-30"))


def test_split_of_sessions_can_be_copied_and_keeps_user_names():
    frame = pl.DataFrame({"user": [*"aaab"], "session": [1, 1, 2, 1], "item": [*"wxyz"]})
    columns = {"user": ["user", "session"]}
    columns_of_split = pickle.loads(pickle.dumps(split(frame, Number(1), **columns).columns))
    assert (columns_of_split.user.parts, columns_of_split.item) == (("user", "session"), "item")
    with pytest.raises(InputError, match=r"not in the data \(the first: \('a', 7\)\)"):
        split(frame, Number(1), who=GivenUsers([("a", 7)]), **columns)


def test_printed_split_fits_the_line_width():
    data = pl.DataFrame({"user": [1, 1, 2, 2], "item": [1, 2, 1, 3]})
    result = split(data, Fraction(0.5), min_train=1, min_test=1, seed=12345)
    assert max(map(len, str(result).splitlines())) <= 100
    assert str(result).replace("\n  ", " ") == repr(result)


def test_failed_save_of_a_split_leaves_no_folder(tmp_path, monkeypatch):
    result = split(pl.DataFrame({"user": [1, 1], "item": [1, 2]}), Number(1), seed=1)

    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pl.DataFrame, "write_parquet", full)
    with pytest.raises(FileError, match="No space left"):
        result.save(tmp_path / "new" / "split")
    assert not list(tmp_path.iterdir())

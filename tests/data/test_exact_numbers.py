"""Tests that inexact numbers and times in mixed units are refused."""

from __future__ import annotations

import datetime
import decimal

import numpy as np
import polars as pl
import pytest

import recometer as rm
from recometer.split import Last

LIMITS = {np.float16: 2**11, np.float32: 2**24, np.float64: 2**53}
TEST = {1: [2**24 - 2, 2**24 - 1], 2: [2**24 - 1]}
SECONDS = 1_600_000_000


def frames(items, times=None):
    """Return one data frame per library with these items and times."""
    pd, pa = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
    columns = {"user_id": np.arange(len(items)), "item_id": items}
    if times is not None:
        columns["timestamp"] = times
    table = pa.table(columns)
    by_library = {"pandas": pd.DataFrame(columns), "Arrow": table}
    if items.dtype != np.float16 and (times is None or times.dtype != np.float16):
        by_library["Polars"] = pl.DataFrame(columns)
    return by_library


@pytest.mark.parametrize(("dtype", "limit"), LIMITS.items())
def test_float_ids_are_refused_from_the_limit_of_their_type(dtype, limit):
    below, at_limit = (np.array([1, number], dtype) for number in (limit - 1, limit))
    for frame in frames(below).values():
        assert rm.Interactions.of(frame).item_ids.tolist() == [1, limit - 1]
        assert rm.Lists(frame).facts.arrays["item_ids"].tolist()[-1] == limit - 1
    readers = {
        name: [lambda f=frame: rm.Interactions.of(f), lambda f=frame: rm.Lists(f)]
        for name, frame in frames(at_limit).items()
    }
    readers["dict"] = [
        lambda: rm.Interactions.of({1: list(at_limit)}),
        lambda: rm.Lists({1: list(at_limit)}),
        lambda: rm.Lists({1: at_limit}),
        lambda: rm.Lists({user: ["a"] for user in at_limit}),
    ]
    scores = np.eye(2)
    readers["arrays"] = [
        lambda: rm.Scores(scores, user_ids=at_limit),
        lambda: rm.Factors(scores, scores, item_ids=at_limit),
        lambda: rm.Lists(np.array([[0], [1]]), user_ids=at_limit),
        lambda: rm.Pairs.of([1, 0], [0.5, 0.4], at_limit),
        lambda: rm.Interactions.of(scores, item_ids=at_limit, user_ids=[1, 2]),
        lambda: rm.Catalogue(at_limit),
    ]
    for calls in readers.values():
        for call in calls:
            with pytest.raises(rm.InputError, match=r"holds whole numbers only up to 2\*\*"):
                call()


def test_large_float_sessions_and_negative_ids_are_refused():
    frame = pl.DataFrame({"user": [1, 2], "session": [2.0**53, 1.0], "item": ["a", "b"]})
    with pytest.raises(rm.InputError, match="'session'"):
        rm.Interactions.of(frame, user=["user", "session"])
    with pytest.raises(rm.InputError, match="has -9007199254740992"):
        rm.Interactions.of({1: [-(2.0**53), 1.0]})


def test_train_items_stored_as_floats_are_removed_or_refused():
    lists = rm.Lists({1: [5, 6], 2: [6, 5]})
    train = pl.DataFrame({"user": [1.0, 2.0], "item": [5.0, 6.0]})
    result = rm.evaluate(lists, {1: [6], 2: [5]}, train=train, metrics="rr")
    assert result.mean() == {"rr": 1}
    for dtype in (pl.Float32, pl.Float64):
        large = pl.DataFrame({"user": [1, 2], "item": [2**53, 2**53 + 2]})
        with pytest.raises(rm.InputError, match="train: The item ids"):
            rm.evaluate(lists, {1: [6]}, train=large.with_columns(pl.col("item").cast(dtype)))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_float_times_that_lose_seconds_are_refused(dtype):
    times = np.array([SECONDS, SECONDS + 1]) * (10**9 if dtype == np.float64 else 1)
    for frame in frames(np.array([1, 2]), times.astype(dtype)).values():
        with pytest.raises(rm.InputError, match=r"The times .* holds whole numbers only up to"):
            rm.split(frame, Last(1))
        with pytest.raises(rm.InputError, match="Hint"):
            rm.Interactions.of(frame)
        assert rm.Interactions.of(frame, time=False).times is None
    text = "user,item,time\n1,1,1.6e18\n2,2,1.7e18\n"
    with pytest.raises(
        rm.InputError, match=r"float64, which holds whole numbers only up to 2\*\*53"
    ):
        rm.Interactions.of(pl.read_csv(text.encode()))


@pytest.mark.parametrize("factor", [10**3, 10**6, 10**9])
def test_time_column_with_mixed_units_is_refused(factor, tmp_path):
    times = SECONDS + 60 * np.arange(12)
    mixed = np.where(np.arange(12) % 5 == 0, times * factor, times)
    readers = [*frames(np.arange(12), mixed).values()]
    text = tmp_path / "rows.csv"
    pl.DataFrame(readers[-1]).write_csv(text)
    for data in [*readers, text]:
        for call in (
            lambda data=data: rm.split(data, Last(1)),
            lambda data=data: rm.audit(data, data),
            lambda data=data: rm.Interactions.of(data),
        ):
            with pytest.raises(rm.InputError, match="count in different units since 1970"):
                call()
    edges = np.array([np.zeros(12, int), np.arange(12)])
    with pytest.raises(rm.InputError, match="count in different units"):
        rm.Interactions.of(edges, n_users=1, n_items=12, time=mixed)


@pytest.mark.parametrize(
    "times",
    [
        [SECONDS, SECONDS + 10**8],
        [0, -1, SECONDS],  # some programs write -1 for missing times
        [SECONDS, 253_402_300_799],  # the year 9999
        [SECONDS * 10**3, 253_402_300_799_000],
        [1, 2, 3],
        np.arange(0, 4 * 10**12, 10**10),  # nanoseconds since the machine started
        [20240531, 20240601],
        [datetime.datetime(1970, 1, 20), datetime.datetime(2024, 5, 31)],
    ],
)
def test_times_in_a_single_unit_are_read(times):
    frame = pl.DataFrame({"user": [1] * len(times), "item": range(len(times)), "time": times})
    assert len(rm.Interactions.of(frame).times) == len(times)


def test_scores_that_float64_cannot_distinguish_are_refused():
    close_scores = [2**60 + 1, 2**60, 2**60 + 2]
    for call in (
        lambda: rm.Lists({1: dict(zip("abc", close_scores, strict=True))}),
        lambda: rm.Lists({1: {"a": 2**70, "b": 2**70 + 1}}),
        lambda: rm.Lists({1: {"a": 2**60, "b": 2**60 + 1, "c": 0.5}}),
        lambda: rm.Lists(pl.DataFrame({"user": 1, "item": [1, 2, 3], "score": close_scores})),
        lambda: rm.Lists(
            pl.DataFrame({"user": 1, "item": [1, 2, 3, 4], "score": [*close_scores, None]})
        ),
        lambda: rm.Pairs(
            pl.DataFrame({"user": 1, "item": [1, 2, 3], "score": close_scores, "label": [0, 1, 0]})
        ),
        lambda: rm.Pairs.of([0, 1, 0], close_scores),
        lambda: rm.evaluate(rm.Scores(np.array([close_scores])), np.eye(1, 3)),
        lambda: rm.evaluate(
            rm.Scores(lambda rows: np.array([close_scores])[rows], n_users=1, n_items=3),
            np.eye(1, 3),
        ),
        lambda: rm.Scores(np.ma.array([close_scores], mask=[[False, False, True]])),
    ):
        with pytest.raises(rm.InputError, match=r"cannot distinguish 1.* and 1.*: it holds"):
            call()


def test_large_scores_that_float64_can_distinguish_are_ranked():
    distant_scores = {1: {"a": 2**60 + 1, "b": 2**61 + 1, "c": 2**62 + 1}}
    assert rm.evaluate(rm.Lists(distant_scores), {1: ["c"]}, metrics="rr").mean() == {"rr": 1}
    matrix = np.array([[2**60, 2**61, 2**61, 5]])
    values = rm.evaluate(rm.Scores(matrix), np.array([[1, 0, 0, 0]]), metrics="rr").mean()
    assert values == {"rr": 1 / 3}
    masked = np.ma.array([[5, 2**60, 2**60 + 1]], mask=[[False, True, False]])
    assert rm.evaluate(rm.Scores(masked), np.array([[1, 0, 0]]), metrics="rr").mean() == {"rr": 0.5}


@pytest.mark.parametrize("low", [2**53, -(2**53) - 1, 2**60 + 200])
def test_indistinguishable_scores_in_text_or_decimals_are_refused(low, tmp_path):
    scores = [low, low + 1]
    frame = pl.DataFrame({"user": [1, 1], "item": [1, 2], "score": scores})
    table, run = tmp_path / "scores.csv", tmp_path / "scores.run"
    frame.write_csv(table)
    run.write_text("".join(f"1 Q0 {item} 0 {score} x\n" for item, score in enumerate(scores)))
    decimals = [decimal.Decimal(number) for number in scores]
    kinds = [pl.Int128, pl.Decimal(38, 0), pl.Decimal(38, 2)]
    for data in (
        table,
        run,
        {1: dict(enumerate(decimals))},
        frame.to_pandas().astype({"score": object}),
        *(frame.with_columns(pl.col("score").cast(kind)) for kind in kinds),
    ):
        with pytest.raises(
            rm.InputError, match=f"cannot distinguish {low} and {low + 1}: it holds"
        ):
            rm.Lists(data)
    with pytest.raises(rm.InputError, match="item biases"):
        rm.Factors(None, None, item_bias=scores)
    run.write_text(f"1 Q0 1 0 {low} x\n1 Q0 2 0 inf x\n1 Q0 3 0 0.5 x\n")
    assert len(rm.Lists(run).table.items) == 3

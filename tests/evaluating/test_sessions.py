"""Each session has its own values; a user's sessions share training data and form a cluster."""

from __future__ import annotations

import datetime
import pathlib
import uuid
from typing import Any

import numpy as np
import polars as pl
import pytest

import recometer as rm
from recometer.errors import ColumnError, InputTypeError

TEST = pl.DataFrame(
    {
        "user": ["ann", "ann", "ann", "bob", "bob"],
        "session": [1, 1, 2, 1, 3],
        "item": ["x", "y", "z", "x", "z"],
    }
)
RUN = TEST.with_columns(item=pl.Series(["y", "x", "z", "w", "z"]), rank=pl.Series([1, 2, 1, 1, 1]))
BOTH = ["user", "session"]
SESSIONS = [("ann", 1), ("ann", 2), ("bob", 1), ("bob", 3)]


def write_table(frame: pl.DataFrame, folder: pathlib.Path, name: str) -> str:
    path = folder / name
    frame.write_parquet(path) if path.suffix == ".parquet" else frame.write_csv(path)
    return str(path)


@pytest.mark.parametrize("form", ["polars", "lazy", "pandas", "arrow", "csv", "parquet"])
def test_sessions_can_be_passed_in_every_form(form: str, tmp_path: pathlib.Path) -> None:
    def in_form(frame: pl.DataFrame) -> Any:
        if form in ("csv", "parquet"):
            return write_table(frame, tmp_path, f"{len(frame.columns)}.{form}")
        conversions = {"pandas": frame.to_pandas, "arrow": frame.to_arrow, "lazy": frame.lazy}
        return conversions.get(form, lambda: frame)()

    test = rm.Interactions.of(in_form(TEST), user=BOTH)
    assert test.user_ids is not None
    assert test.user_ids.tolist() == SESSIONS
    assert repr(test).startswith("Interactions(4 sessions (str and int ids of column 'user, sess")
    lists = rm.Lists(in_form(RUN), user=BOTH)
    result = rm.evaluate(lists, test, metrics="rr")
    assert result["rr"].tolist() == [1, 1, 0, 1]
    assert result.per_user().columns == ["user", "session", "rr"]
    assert result.per_user()["session"].to_list() == [1, 2, 1, 3]


def test_rows_of_sessions_may_come_in_any_order() -> None:
    scored = TEST.with_columns(
        score=pl.Series([1.0, 2.0, 3.0, 4.0, 5.0]), label=pl.Series([1, 0, 1, 1, 1])
    )
    result = rm.evaluate(rm.Pairs(scored.reverse(), user=BOTH), metrics="rr")
    np.testing.assert_array_equal(result["rr"], [0.5, np.nan, np.nan, np.nan])
    shuffled = rm.Lists(RUN.sample(fraction=1.0, shuffle=True, seed=1), user=BOTH)
    test = rm.Interactions.of(TEST, user=BOTH)
    assert rm.evaluate(shuffled, test, metrics="rr")["rr"].tolist() == [1, 1, 0, 1]


def test_training_items_of_a_user_are_removed_in_all_sessions() -> None:
    test = rm.Interactions.of(TEST, user=BOTH)
    lists = rm.Lists({"ann": ["q", "z"], "bob": ["x"]})
    assert rm.evaluate(lists, test, metrics="rr")["rr"].tolist() == [0, 0.5, 1, 0]
    removed = rm.evaluate(lists, test, train={"ann": ["q"]}, metrics="rr")
    assert removed["rr"].tolist() == [0, 1, 1, 0]
    assert removed.activity is not None
    assert removed.activity.tolist() == [1, 1, 0, 0]
    factors = rm.Factors(
        np.array([[1.0], [-1.0]]),
        np.array([[1.0], [2.0], [3.0]]),
        user_ids=["ann", "bob"],
        item_ids=["x", "y", "z"],
    )
    assert rm.evaluate(factors, test, metrics="rr")["rr"].tolist() == [0.5, 1, 1, 1 / 3]
    # If the training data have sessions too, a session's rows apply only to the same session in the
    # test data.
    train_of_session = rm.Interactions.of({("ann", 2): ["q"]})
    by_session = rm.evaluate(
        rm.Lists({("ann", 2): ["q", "z"]}), test, train=train_of_session, metrics="rr"
    )
    assert by_session["rr"].tolist() == [0, 1, 0, 0]


@pytest.mark.parametrize("interval", ["t", "bca"])
def test_intervals_do_not_shrink_with_more_sessions_per_user(interval: str) -> None:
    """Eight identical sessions per user do not make the interval narrower."""
    rng = np.random.default_rng(1)
    test_of_users = {user: [f"i{rng.integers(5)}"] for user in range(60)}
    copies = {(user, number): items for user, items in test_of_users.items() for number in range(8)}
    lists = rm.Lists(
        {user: [f"i{place}" for place in rng.permutation(5)] for user in test_of_users}
    )
    rules = {"metrics": "rr coverage@1", "interval": interval, "catalogue": 5}
    users_alone = rm.evaluate(lists, test_of_users, **rules)
    sessions = rm.evaluate(lists, copies, **rules)
    assert sessions.mean() == pytest.approx(users_alone.mean())
    assert sessions.interval("rr")[:2] == pytest.approx(users_alone.interval("rr")[:2])
    assert sessions.interval("coverage@1") == users_alone.interval("coverage@1")
    assert "480 sessions of 60 users" in str(sessions)


def test_differences_are_clustered_by_user_by_default() -> None:
    rng = np.random.default_rng(2)
    users = {(user, number): ["x"] for user in range(40) for number in range(5)}
    models = {}
    for name in ("one", "two"):
        places = {user: rng.permutation(["x", "y", "z"]).tolist() for user in range(40)}
        models[name] = rm.evaluate(
            rm.Lists({session: places[session[0]] for session in users}), users, metrics="rr"
        )
    by_users = rm.compare(models)
    mapping = {session: session[0] for session in users}
    assert by_users.rows[0].interval == rm.compare(models, cluster=mapping).rows[0].interval
    unclustered = rm.compare(models, cluster=False)
    assert np.diff(unclustered.rows[0].interval[:2]) < 0.7 * np.diff(by_users.rows[0].interval[:2])
    assert "based on their 40 clusters" in str(by_users)
    assert "treated as independent" in str(unclustered)
    assert by_users.per_user("rr").columns == ["user", "session", "one", "two"]


def test_groups_of_users_apply_to_their_sessions() -> None:
    test = rm.Interactions.of(TEST, user=BOTH)
    groups = rm.evaluate(rm.Lists(RUN, user=BOTH), test, metrics="rr").by({"ann": 1, "bob": 2})
    assert [(row.group, row.users, row.mean) for row in groups.rows] == [("1", 2, 1), ("2", 2, 0.5)]


@pytest.mark.parametrize(
    ("user", "session"),
    [("ann", datetime.date(2020, 1, 2)), (2**63, "s"), (uuid.UUID(int=3), 1.5), (1, 2)],
)
def test_sessions_are_saved_and_loaded(
    user: object, session: object, tmp_path: pathlib.Path
) -> None:
    result = rm.evaluate(rm.Lists({(user, session): ["x"]}), {(user, session): ["x"]}, metrics="rr")
    result.save(tmp_path / "saved.parquet")
    session_ids = rm.load(tmp_path / "saved.parquet").user_ids
    assert session_ids is not None
    assert session_ids.tolist() == [(user, session)]
    assert result.user_ids is not None
    assert list(map(type, session_ids[0])) == list(map(type, result.user_ids[0]))


def test_invalid_session_columns_are_refused() -> None:
    with pytest.raises(ColumnError, match=r"no column 'sesion'.*'session'"):
        rm.Interactions.of(TEST, user=["user", "sesion"])
    with pytest.raises(ColumnError, match="user= names the column 'user' twice"):
        rm.Lists(RUN, user=["user", "user"])
    with pytest.raises(InputTypeError, match="or of two"):
        rm.Interactions.of(TEST, user=["user", "session", "item"])
    with pytest.raises(InputTypeError, match="item= must be the name of a column, found list"):
        rm.Interactions.of(TEST, item=["item", "session"])
    missing = TEST.with_columns(session=pl.Series([1, None, 1, 1, 1]))
    with pytest.raises(rm.InputError, match=r"'session'.* no value in row 1"):
        rm.Interactions.of(missing, user=BOTH)
    with pytest.raises(InputTypeError, match="column 'user' are of type UUID"):
        rm.Interactions.of(
            TEST.to_pandas().assign(user=[uuid.UUID(int=n) for n in range(5)]), user=BOTH
        )


def test_sessions_can_be_split(tmp_path: pathlib.Path) -> None:
    frame = TEST.with_columns(time=pl.int_range(5))
    for data in (
        frame,
        write_table(frame, tmp_path, "a.csv"),
        write_table(frame, tmp_path, "b.parquet"),
    ):
        split = rm.split(data, rm.split.Last(1), user=BOTH)
        train = split.train.lazy().collect()
        assert train.columns == frame.columns
        assert train.rows() == [("ann", 1, "x", 0)]

"""Interactions in Parquet files that are read for some users at a time are the same."""

import dataclasses
import datetime
import warnings

import numpy as np
import polars as pl
import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st

import recometer as rm
from recometer.errors import DataWarning, InputError, InputTypeError


def same(one, other):
    for field in dataclasses.fields(rm.Interactions):
        if field.name == "memory":
            continue
        left, right = getattr(one, field.name), getattr(other, field.name)
        if isinstance(right, np.ndarray):
            assert left.dtype == right.dtype, field.name
            np.testing.assert_array_equal(left, right, err_msg=field.name)
        else:
            assert left == right, field.name


def drawn(rng, n, kind):
    users, items = rng.integers(0, 12, n), rng.integers(0, 15, n)
    frame = pl.DataFrame({"user_id": users, "item_id": items})
    if kind == "texts":
        frame = frame.cast(pl.String)
    elif kind == "large":
        frame = frame.cast(pl.UInt64).with_columns(pl.col("user_id") * 2**60)
    elif kind == "dates":
        first = datetime.date(2020, 1, 1)
        frame = frame.with_columns(
            item_id=pl.Series([first + datetime.timedelta(days=int(item)) for item in items])
        )
    return frame.with_columns(
        rating=pl.Series(rng.integers(1, 9, n) / 3),
        bought=pl.Series(rng.random(n) < 0.9),
        at=pl.Series(rng.integers(0, 10**9, n)).cast(pl.Datetime("us")),
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("interactions")


@given(
    seed=st.integers(0, 2**31),
    n=st.sampled_from([1, 9, 200]),
    kind=st.sampled_from(["numbers", "texts", "large", "dates"]),
    columns=st.fixed_dictionaries(
        {
            "value": st.sampled_from([False, "rating", "bought"]),
            "time": st.sampled_from([False, "at"]),
        }
    ),
    n_files=st.sampled_from([1, 3]),
    memory=st.sampled_from([100, 2000, "1 MB"]),
)
@examples(1)
def test_parts_change_nothing(folder, seed, n, kind, columns, n_files, memory):
    frame = drawn(np.random.default_rng(seed), n, kind)
    for path in folder.glob("*.parquet"):
        path.unlink()
    for number in range(n_files):
        frame[number::n_files].write_parquet(folder / f"part-{number}.parquet")
    said = [[], []]
    found = []
    for one, budget in zip(said, (None, memory), strict=True):
        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always")
            found.append(rm.Interactions.of(folder, **columns, memory=budget))
        one += [str(warning.message) for warning in heard]
    same(found[1], found[0])
    assert said[0] == said[1]


def test_sessions_and_lists_in_cells(tmp_path):
    rng = np.random.default_rng(4)
    frame = drawn(rng, 90, "texts").unique(["user_id", "item_id"], maintain_order=True)
    frame = frame.with_columns(session=pl.Series(rng.integers(0, 3, len(frame))))
    frame.write_parquet(tmp_path / "sessions.parquet")
    options = {"user": ["user_id", "session"], "value": False, "time": False}
    path = tmp_path / "sessions.parquet"
    same(
        rm.Interactions.of(path, **options, memory=1500),
        rm.Interactions.of(path, **options),
    )
    cells = frame.group_by("user_id", maintain_order=True).agg("item_id")
    cells.write_parquet(tmp_path / "cells.parquet")
    path = tmp_path / "cells.parquet"
    same(rm.Interactions.of(path, memory=1500), rm.Interactions.of(path))


@pytest.mark.filterwarnings("ignore:.*repeat a pair:UserWarning")
def test_errors_are_those_of_the_whole(tmp_path):
    frame = drawn(np.random.default_rng(4), 50, "numbers")
    gap = frame.with_columns(
        user_id=pl.when(pl.int_range(50) == 30).then(None).otherwise("user_id")
    )
    gap.write_parquet(tmp_path / "gap.parquet")
    nan = frame.with_columns(rating=pl.Series([np.nan, *np.ones(49)]))
    nan.write_parquet(tmp_path / "nan.parquet")
    for name in ("gap", "nan"):
        said = []
        for memory in (None, 500):
            with pytest.raises(InputError) as error:
                rm.Interactions.of(
                    tmp_path / f"{name}.parquet", value="rating", time=False, memory=memory
                )
            said.append(str(error.value))
        assert said[0] == said[1]


@pytest.mark.filterwarnings("ignore:.*repeat a pair:UserWarning")
def test_what_is_not_read_in_parts_is_refused(tmp_path):
    frame = drawn(np.random.default_rng(4), 50, "numbers")
    path = tmp_path / "one.parquet"
    frame.write_parquet(path)
    frame.write_csv(tmp_path / "one.csv")
    with pytest.raises(InputTypeError, match=r"memory= is about interactions in Parquet files"):
        rm.Interactions.of(frame, memory="1GB")
    with pytest.raises(InputError, match=r"one.csv is not one. Hint: write it as Parquet"):
        rm.Interactions.of(tmp_path / "one.csv", memory="1GB")
    with pytest.raises(InputError, match="n_users= does not apply"):
        rm.Interactions.of(path, n_users=12, n_items=15, memory="1GB")
    with pytest.raises(InputError, match="memory= does not apply to Interactions"):
        rm.Interactions.of(rm.Interactions.of(path, value=False), memory="1GB")
    frame.rename({"rating": "score"}).drop("bought").write_parquet(path)
    with pytest.warns(DataWarning, match="The column 'score' was read as the relevance"):
        rm.Interactions.of(path, memory="1GB")

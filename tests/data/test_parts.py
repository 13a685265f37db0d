"""Interactions in Parquet files that are read piece by piece are the same."""

import dataclasses
import datetime
import gc
import os
import sys
import tempfile
import warnings

import numpy as np
import polars as pl
import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st

import recometer as rm
from recometer.errors import ColumnError, DataWarning, FileError, InputError, InputTypeError


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


def said_of(path, **options):
    """Return what is raised of a path in memory, and piece by piece."""
    found = []
    for memory in (None, 3000):
        with pytest.raises((InputError, InputTypeError, FileError, ColumnError)) as error:
            rm.Interactions.of(path, **options, memory=memory)
        found.append((error.type, str(error.value)))
    return found


def spoiled(folder, frame, how):
    """Write a folder of three files, the last of which is not like the others."""
    folder.mkdir()
    for number in range(3):
        frame[number::3].write_parquet(folder / f"part-{number}.parquet")
    path = folder / "part-2.parquet"
    if how == "damaged":
        content = bytearray(path.read_bytes())
        content[20:200] = bytes(180)
        path.write_bytes(content)
    elif how == "no Parquet":
        path.write_bytes(b"user_id,item_id")
    elif how == "other columns":
        frame.rename({"item_id": "product"}).write_parquet(path)
    elif how == "other types":
        frame.cast({"item_id": pl.String}).write_parquet(path)
    elif how == "texts as ratings":
        for part in folder.iterdir():
            pl.read_parquet(part).cast({"rating": pl.String}).write_parquet(part)
    elif how == "infinite":
        frame.with_columns(user_id=pl.lit(float("nan"))).write_parquet(path)
        for part in folder.iterdir():
            pl.read_parquet(part).cast({"user_id": pl.Float64}).write_parquet(part)
    elif how == "empty":
        for part in folder.iterdir():
            part.unlink()
    return folder


@pytest.mark.parametrize(
    "how",
    [
        *("damaged", "no Parquet", "other columns", "other types"),
        *("texts as ratings", "infinite", "empty"),
    ],
)
def test_what_is_wrong_in_a_folder_is_said_as_in_memory(tmp_path, how):
    frame = drawn(np.random.default_rng(4), 300, "numbers").unique(["user_id", "item_id"])
    folder = spoiled(tmp_path / "rows", frame, how)
    whole, pieces = said_of(folder, value="rating", time=False)
    assert pieces == whole
    assert "Hint: " in whole[1]


def test_floats_as_ids_are_one_kind(tmp_path):
    frame = pl.DataFrame({"user_id": [1.0, 2.0, 3.5, 4.0] * 9, "item_id": [3, 1, 2, 9] * 9})
    frame = frame.with_columns(value=pl.Series(np.arange(36.0)))
    path = tmp_path / "floats.parquet"
    frame.write_parquet(path)
    with pytest.warns(DataWarning, match="repeat a pair"):
        found = [rm.Interactions.of(path, memory=memory) for memory in (None, 200)]
    same(found[1], found[0])
    assert [type(one) for one in found[1].user_ids.tolist()] == [float] * 4


def test_files_without_rows_are_no_interactions(tmp_path):
    frame = pl.DataFrame(schema={"user_id": pl.String, "item_id": pl.Int64})
    frame.write_parquet(tmp_path / "none.parquet")
    found = [rm.Interactions.of(tmp_path / "none.parquet", memory=size) for size in (None, 99)]
    same(found[1], found[0])


def test_times_in_texts_are_refused(tmp_path):
    frame = pl.DataFrame({"user": [1, 2], "item": [3, 4], "time": ["2024-05-01", "2024-05-02"]})
    frame.write_parquet(tmp_path / "one.parquet")
    with pytest.raises(InputError, match=r"column 'time'\) are texts.*time=False"):
        rm.Interactions.of(tmp_path / "one.parquet", memory="1MB")
    found = rm.Interactions.of(tmp_path / "one.parquet", time=False, memory="1MB")
    assert found.times is None


@pytest.fixture
def temporary(tmp_path, monkeypatch):
    """A folder for temporary files."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="it is looked up as on Linux")
def test_rows_lie_in_temporary_files_of_which_nothing_is_left(tmp_path, temporary):
    frame = drawn(np.random.default_rng(4), 300, "texts").unique(["user_id", "item_id"])
    frame.write_parquet(tmp_path / "one.parquet")

    def opened():
        links = [f"/proc/self/fd/{number}" for number in os.listdir("/proc/self/fd")]
        named = [os.readlink(link) for link in links if os.path.lexists(link)]
        with open("/proc/self/maps") as file:
            return [one for one in [*named, *file.read().splitlines()] if str(temporary) in one]

    data = rm.Interactions.of(tmp_path / "one.parquet", value="rating", time=False, memory=2000)
    assert len(opened()) >= 2  # items and values
    # They have no names, so that they are gone however the process ends.
    assert os.listdir(temporary) == []
    part = data.select_users([0, 3])
    del data
    gc.collect()
    assert opened() == []
    assert len(part) > 0


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no file is always full here")
@pytest.mark.parametrize("after", [0, 3])
def test_a_full_disk_is_an_error_that_says_which(tmp_path, temporary, monkeypatch, after):
    frame = drawn(np.random.default_rng(4), 300, "numbers").unique(["user_id", "item_id"])
    frame.write_parquet(tmp_path / "one.parquet")
    opens, made = tempfile.TemporaryFile, []

    def file(**options):
        made.append(options)
        if len(made) <= after:
            return opens(**options)
        return open("/dev/full", "wb+", buffering=0)

    monkeypatch.setattr(tempfile, "TemporaryFile", file)
    with pytest.raises(FileError) as error:
        rm.Interactions.of(tmp_path / "one.parquet", value="rating", time=False, memory=2000)
    said = str(error.value)
    assert said.startswith(f"Temporary files cannot be written to {temporary}: No space left")
    assert "Hint: the environment variable TMPDIR" in said


def test_a_folder_for_temporary_files_must_be_there(tmp_path, monkeypatch):
    frame = drawn(np.random.default_rng(4), 30, "numbers").unique(["user_id", "item_id"])
    frame.write_parquet(tmp_path / "one.parquet")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "missing"))
    with pytest.raises(FileError, match=r"missing: No such file or directory\. Hint: "):
        rm.Interactions.of(tmp_path / "one.parquet", value=False, time=False, memory=2000)


def test_a_memory_that_is_far_too_small_is_refused(tmp_path):
    users = np.arange(200_000)
    pl.DataFrame({"user_id": users, "item_id": users}).write_parquet(tmp_path / "one.parquet")
    with pytest.raises(InputError, match=r"bytes are too few for 200,000 rows .* pieces: .* least"):
        rm.Interactions.of(tmp_path / "one.parquet", memory="10 kB")

"""Tests that evaluations are saved and loaded without any change."""

from __future__ import annotations

import dataclasses
import datetime
import errno
import json
import pathlib
import uuid

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from results import evaluation

import recometer as rm
from recometer.data import storage
from recometer.errors import FileError, InputTypeError


def assert_same(left_result: rm.Evaluation, right_result: rm.Evaluation) -> None:
    """Assert that two evaluations are equal bit for bit."""
    for field in dataclasses.fields(rm.Evaluation):
        if field.name.startswith("_"):
            continue
        left, right = getattr(left_result, field.name), getattr(right_result, field.name)
        if field.name in ("values", "reasons"):
            assert list(left) == list(right)
            pairs = [(left[name], right[name]) for name in left]
        elif isinstance(left, np.ndarray):
            pairs = [(left, right)]
        else:
            assert left == right, field.name
            continue
        for before, after in pairs:
            assert before.dtype == after.dtype, field.name
            if before.dtype == object:
                assert before.tolist() == after.tolist()
                assert list(map(type, before)) == list(map(type, after))
            else:
                assert before.tobytes() == after.tobytes(), field.name
    assert str(left_result) == str(right_result)
    assert left_result._repr_html_() == right_result._repr_html_()


@given(values=arrays(np.float64, st.tuples(st.integers(1, 20), st.just(2))))
def test_values_survive_saving_and_loading_bit_for_bit(
    tmp_path_factory: pytest.TempPathFactory, values: np.ndarray
) -> None:
    path = tmp_path_factory.mktemp("saved") / "result.parquet"
    before = evaluation({"ndcg@10": values[:, 0].tolist(), "rr": values[:, 1].tolist()})
    with np.errstate(all="ignore"):  # sums of huge values may overflow
        before.save(path)
        assert_same(before, rm.load(path))


@pytest.mark.parametrize(
    "ids",
    [
        np.array([1, 5, 2**62]),
        np.array([1, 2, 2**64 - 1], dtype=np.uint64),
        ["", "a'\"\n", "é😀"],
        [uuid.UUID(int=1), uuid.UUID(int=2), uuid.UUID(int=2**127)],
        [1, 2, 2**70],
        [0.1, 0.5, 1e300],
        [datetime.date(2020, 1, 1), datetime.date(2020, 1, 2), datetime.date(2021, 1, 2)],
        [datetime.datetime(2020, 1, 1, 3, 4, 5, day, datetime.timezone.utc) for day in range(3)],
        [b"", b"\x00", b"\xff"],
        [False, True, True],
        None,
    ],
    ids=lambda ids: type(None if ids is None else ids[0]).__name__,
)
def test_ids_survive_saving_and_loading(ids: object, tmp_path: pathlib.Path) -> None:
    if isinstance(ids, list):
        ids = np.fromiter(ids, object, len(ids))
    before = evaluation({"rr": [0.5, np.nan, 1.0]}, user_ids=ids)
    before.save(tmp_path / "result.parquet")
    after = rm.load(tmp_path / "result.parquet")
    assert_same(before, after)
    assert before.per_user().equals(after.per_user())


def test_ids_that_cannot_be_stored_are_refused(tmp_path: pathlib.Path) -> None:
    result = evaluation({"rr": [0.5]}, user_ids=np.fromiter([(1, 2, 3)], object, 1))
    with pytest.raises(InputTypeError, match=r"ids of type tuple cannot be stored. Hint: .*UUID"):
        result.save(tmp_path / "result.parquet")
    assert list(tmp_path.iterdir()) == []


def test_protocol_and_seed_survive_saving_and_loading(tmp_path: pathlib.Path) -> None:
    rules = {"ties": "random", "relevant_from": 0.1, "undefined": 0.0, "interval": "bca"}
    before = evaluation(
        {"ndcg@2": [0.5, 0.25], "ndcg@3": [0.5, 0.25], "rr": [1.0, 1.0]},
        protocol=rm.Protocol().replace(**rules, name="mine"),
        seed=2**62,
    )
    before.save(str(tmp_path / "result.parquet"))
    after = rm.load(str(tmp_path / "result.parquet"))
    assert_same(before, after)
    assert after.protocol == before.protocol
    assert after.summary() == before.summary()


def test_file_is_readable_without_recometer(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "result.parquet"
    users = np.array(["ann", "bob"], dtype=object)
    evaluation({"ndcg@10": [0.5, np.nan]}, user_ids=users).save(path)
    frame = pl.read_parquet(path)
    assert frame["user"].to_list() == ["ann", "bob"]
    assert frame["ndcg@10"].to_list()[0] == 0.5
    assert frame["ndcg@10: reason"].to_list() == [0, 2]
    header = json.loads(pl.read_parquet_metadata(path)["recometer"])
    assert header["version"] == 1
    assert header["protocol"]["ties"] == "expected"
    assert header["definitions"]["ndcg"]["formula"] == "Σ …"
    assert header["inputs"]["source"]["fingerprints"] == {"users": "00ff"}


def test_saving_replaces_a_file_and_leaves_no_other_file(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "result.parquet"
    evaluation({"rr": [0.5]}).save(path)
    evaluation({"rr": [0.25]}).save(path)
    assert rm.load(path)["rr"] == [0.25]
    assert [file.name for file in tmp_path.iterdir()] == ["result.parquet"]


def test_failed_save_keeps_the_earlier_file(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "result.parquet"
    evaluation({"rr": [0.5]}).save(path)

    def full(file: pathlib.Path, content: bytes) -> None:
        with file.open("wb") as opened:
            opened.write(content[:100])
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(pathlib.Path, "write_bytes", full)
    with pytest.raises(FileError, match="No space left"):
        evaluation({"rr": [0.25]}).save(path)
    assert rm.load(path)["rr"] == [0.5]
    assert [file.name for file in tmp_path.iterdir()] == ["result.parquet"]


def test_saving_to_a_missing_folder_is_refused(tmp_path: pathlib.Path) -> None:
    with pytest.raises(
        FileError, match=r"missing.* cannot be written: .*Hint: the folder must exist"
    ):
        evaluation({"rr": [0.5]}).save(tmp_path / "missing" / "result.parquet")


def test_saving_to_a_folder_is_refused(tmp_path: pathlib.Path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(FileError, match="folder' cannot be written: Is a directory"):
        evaluation({"rr": [0.5]}).save(tmp_path / "folder")
    assert [file.name for file in tmp_path.iterdir()] == ["folder"]


def test_loading_a_missing_file_is_refused(tmp_path: pathlib.Path) -> None:
    with pytest.raises(FileError, match=r"no file .*nothing\.parquet\. Hint: Relative paths"):
        rm.load(tmp_path / "nothing.parquet")
    with pytest.raises(FileError, match=r"is not a file\. Hint: name one file, not a folder"):
        rm.load(tmp_path)


def test_files_other_than_saved_evaluations_are_refused(tmp_path: pathlib.Path) -> None:
    text = tmp_path / "text.parquet"
    text.write_text("user,item\n" * 10)
    with pytest.raises(FileError, match=r"is not a Parquet file.*Hint: recometer.load"):
        rm.load(text)
    other_table = tmp_path / "other.parquet"
    pl.DataFrame({"user": [1]}).write_parquet(other_table)
    with pytest.raises(FileError, match=r"not a saved evaluation. Hint: recometer.load"):
        rm.load(other_table)
    storage.write_table(other_table, {"x": np.zeros(1)}, None, {"kind": "comparison"})
    with pytest.raises(FileError, match="contains no evaluation, but comparison"):
        rm.load(other_table)


def test_newer_format_is_refused(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(storage, "VERSION", 2)
    evaluation({"rr": [0.5]}).save(tmp_path / "result.parquet")
    monkeypatch.undo()
    with pytest.raises(FileError, match=r"newer version of recometer.*Hint: pip install --upgrade"):
        rm.load(tmp_path / "result.parquet")


def test_damaged_file_is_refused(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "result.parquet"
    evaluation({"rr": np.random.default_rng(0).random(1000).tolist()}).save(path)
    content = bytearray(path.read_bytes())
    content[4:5000] = bytes(4996)
    path.write_bytes(content)
    with pytest.raises(FileError, match="is damaged"):
        rm.load(path)


@pytest.mark.parametrize("path", [None, 3, ["a.parquet"]])
def test_paths_of_wrong_types_are_refused(path) -> None:
    with pytest.raises(InputTypeError, match=r"path of a saved evaluation is of type .*Hint: pass"):
        rm.load(path)
    with pytest.raises(InputTypeError, match=r"path of a saved evaluation is of type .*Hint: pass"):
        evaluation({"rr": [1.0]}).save(path)


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        (
            "result.csv",
            "Hint: save('result.parquet'). result.to_csv('result.csv') writes the table.",
        ),
        ("result.JSON", "result.to_json('result.JSON') writes"),
        ("result.xlsx", "Hint: save('result.parquet')."),
    ],
)
def test_file_extensions_of_other_formats_are_refused(tmp_path, name: str, hint: str) -> None:
    result = evaluation({"rr": [1.0]})
    with pytest.raises(FileError, match=r"but evaluations are saved as Parquet") as error:
        result.save(tmp_path / name)
    assert hint in str(error.value)
    assert not (tmp_path / name).exists()
    for allowed in ("result", "als.v2", "result.parquet"):
        result.save(tmp_path / allowed)
        assert rm.load(tmp_path / allowed).mean() == result.mean()

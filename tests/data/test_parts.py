"""Tests of tables in several Parquet files, with differing types or with values in folder names."""

import pathlib

import polars as pl
import pytest

import recometer as rm

LISTS = pl.DataFrame({"user_id": [1, 1], "item_id": [7, 8], "rank": [1, 2]})
OTHERS = pl.DataFrame({"user_id": [2, 2], "item_id": [9, 7], "rank": [1, 2]})
TEST = {1: [7], 2: [7]}


@pytest.fixture
def write_parts(tmp_path):
    """Return a function that writes each frame to a file in a subfolder named after its keyword."""

    def write(**frames: pl.DataFrame) -> pathlib.Path:
        for number, (name, frame) in enumerate(frames.items()):
            folder = tmp_path / "parts" / name.replace("__", "=")
            folder.mkdir(parents=True)
            frame.write_parquet(folder / f"{number}.parquet")
        return tmp_path / "parts"

    return write


def mean(lists: object) -> dict[str, float]:
    return rm.evaluate(rm.Lists(lists), TEST, metrics="rr").mean()


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (pl.Int32, pl.Int64),
        (pl.Int64, pl.Int32),
        (pl.UInt16, pl.Int64),
        (pl.Int64, pl.UInt64),
        (pl.Int64, pl.Float64),  # pandas writes integers with missing values as float64
        (pl.Float32, pl.Int64),
    ],
)
def test_parts_may_hold_numbers_of_different_types(write_parts, first, second) -> None:
    folder = write_parts(a=LISTS.cast(first), b=OTHERS.cast(second))
    assert mean(folder) == {"rr": 0.75}
    assert mean(folder / "*" / "*.parquet") == {"rr": 0.75}
    data = rm.Interactions.of(folder)
    assert (data.user_ids.tolist(), data.item_ids.tolist()) == ([1, 2], [7, 8, 9])
    assert str(data.user_ids.dtype) == "int64"


def test_parts_may_hold_text_of_different_types(write_parts) -> None:
    texts = LISTS.with_columns(pl.col("item_id").cast(pl.String))
    others = OTHERS.with_columns(pl.col("item_id").cast(pl.String).cast(pl.Categorical))
    data = rm.Interactions.of(write_parts(a=texts, b=others))
    assert data.item_ids.tolist() == ["7", "8", "9"]


def test_parts_may_differ_in_column_order_and_nulls(write_parts) -> None:
    folder = write_parts(a=LISTS.with_columns(note=None), b=OTHERS.with_columns(note=1)[:, ::-1])
    assert mean(folder) == {"rr": 0.75}


def test_parts_that_mix_numbers_and_text_are_refused(write_parts) -> None:
    folder = write_parts(a=LISTS, b=OTHERS.with_columns(pl.col("item_id").cast(pl.String)))
    with pytest.raises(rm.FileError, match=r"type mismatch for column item_id: Int64 in .*String"):
        rm.Lists(folder)


def test_runs_are_read_from_hive_folder_names(write_parts) -> None:
    folder = write_parts(
        model__als=LISTS, model__bpr=LISTS.with_columns(item_id=9 - pl.col("rank"))
    )
    for path in (folder, folder / "model=*" / "*.parquet"):
        runs = rm.Lists.each(path, by="model")
        means = {
            name: rm.evaluate(lists, {1: [7]}, metrics="rr").mean()["rr"]
            for name, lists in runs.items()
        }
        assert means == {"als": 1.0, "bpr": 0.5}
    with pytest.warns(rm.DataWarning, match="model"):
        rm.Lists(folder)  # the folder contains two runs


def test_values_in_folder_names_are_read_like_text(write_parts) -> None:
    folder = write_parts(user_id__2=OTHERS.drop("user_id"), user_id__1=LISTS.drop("user_id"))
    assert rm.Interactions.of(folder).user_ids.tolist() == [1, 2]
    assert mean(folder) == {"rr": 0.75}


def test_folder_names_are_read_as_text_or_missing_values(tmp_path) -> None:
    for name in ("a%20b", "07", "__HIVE_DEFAULT_PARTITION__"):
        (tmp_path / f"system={name}").mkdir()
        LISTS.write_parquet(tmp_path / f"system={name}" / "0.parquet")
    with pytest.raises(rm.InputError, match=r"runs \(column 'system'\) have no value in row 2"):
        rm.Lists.each(tmp_path, by="system")
    (tmp_path / "system=__HIVE_DEFAULT_PARTITION__" / "0.parquet").unlink()
    assert [*rm.Lists.each(tmp_path, by="system")] == ["07", "a b"]


def test_columns_in_files_take_precedence_over_folder_names(write_parts) -> None:
    folder = write_parts(rank__5=LISTS, rank__6=OTHERS)
    assert mean(folder) == {"rr": 0.75}


def test_parent_folders_do_not_name_columns(write_parts) -> None:
    folder = write_parts(model__als=LISTS)
    with pytest.raises(rm.ColumnError, match="There is no column 'model'"):
        rm.Lists.each(folder / "model=als", by="model")

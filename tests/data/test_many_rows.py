"""Tests of tables with lists of items in cells, and of tables spread over several files."""

import pandas as pd
import polars as pl
import pytest

import recometer as rm
from recometer.errors import FileError, InputError, InputTypeError

NESTED = {
    "user": ["ann", "bob", "cat"],
    "item": [["x", "y"], ["y"], []],
    "rating": [[5.0, 1.0], [2.0], []],
}
TEST = {"ann": ["y"], "bob": ["y"], "cat": ["x"]}


def tables(tmp_path, columns):
    frame = pl.DataFrame(columns)
    frame.write_parquet(tmp_path / "nested.parquet")
    path = tmp_path / "nested.parquet"
    return [
        frame,
        frame.lazy(),
        pd.DataFrame(columns),
        frame.to_arrow(),
        pd.read_parquet(path),
        path,
    ]


def test_cell_may_contain_all_items_of_a_user(tmp_path):
    for data in tables(tmp_path, NESTED):
        interactions = rm.Interactions.of(data)
        assert interactions.user_ids.tolist() == ["ann", "bob", "cat"]
        assert interactions.indptr.tolist() == [0, 2, 3, 3]
        assert interactions.item_ids[interactions.items].tolist() == ["x", "y", "y"]
        assert interactions.values.tolist() == [5.0, 1.0, 2.0]
    columns_with_times = {**NESTED, "rating": [4.0, 3.0, 2.0], "time": [[7, 8], [9], []]}
    for data in tables(tmp_path, columns_with_times):
        interactions = rm.Interactions.of(data)
        assert interactions.values.tolist() == [
            4.0,
            4.0,
            3.0,
        ]  # a row's value applies to all items in the row
        assert interactions.times.tolist() == [7, 8, 9]


def test_cell_may_contain_a_ranked_list(tmp_path):
    plain = {name: NESTED[name] for name in ("user", "item")}
    for columns, expected in (
        (plain, [0.5, 1.0, 0.0]),
        ({**plain, "score": [[0.1, 0.9], [0.5], []]}, [1.0, 1.0, 0.0]),
        ({**plain, "rank": [[2, 1], [1], []]}, [1.0, 1.0, 0.0]),
    ):
        for data in tables(tmp_path, columns):
            result = rm.evaluate(rm.Lists(data), TEST, metrics="rr", undefined=0)
            assert result["rr"].tolist() == expected


def test_lists_in_cells_of_different_lengths_or_types_are_refused():
    frame = pl.DataFrame(NESTED)
    with pytest.raises(InputError, match=r"Row 1 .* has 1 items .*'item'.* but 2 entries"):
        rm.Interactions.of(frame.with_columns(rating=pl.Series([[1.0, 2], [1, 2], []])))
    with pytest.raises(InputError, match=r"Row 1 .* has 1 items, but 2 scores \(column 'score'\)"):
        rm.Lists(frame.drop("rating").with_columns(score=pl.Series([[1.0, 2], [1, 2], []])))
    with pytest.raises(InputError, match="a user has several rows"):
        rm.Lists(pl.concat([frame, frame]), score=False)
    mixed = pd.DataFrame({"user": [1, 2], "item": [[1], 3]})
    with pytest.raises(
        InputTypeError,
        match=r"Only some of the items \(column 'item'\) are lists: 3 is of type int",
    ):
        rm.Interactions.of(mixed)


@pytest.fixture
def parts(tmp_path):
    folder = tmp_path / "ratings"
    (folder / "2024").mkdir(parents=True)
    frame = pl.DataFrame({"user": [1, 1, 2], "item": [5, 6, 5], "rating": [1.0, 2.0, 3.0]})
    frame[:2].write_parquet(folder / "part-0.parquet")
    frame[2:].write_parquet(folder / "2024" / "part-1.parquet")
    (folder / "_SUCCESS").touch()
    (folder / "_metadata.parquet").touch()
    return folder


def test_folders_and_patterns_of_parquet_files_are_read_as_one_table(parts):
    for data in (parts, str(parts), parts / "**/part-*.parquet"):
        assert rm.Interactions.of(data).values.tolist() == [1.0, 2.0, 3.0]
        assert rm.Lists(data).describe().startswith("Lists: 2 lists, 3 entries")
    assert len(rm.Interactions.of(parts / "part-?.parquet")) == 2


def test_folders_and_patterns_without_parquet_files_are_refused(parts):
    with pytest.raises(FileError, match=r"No file is called .*other.*Hint: relative paths"):
        rm.Interactions.of(parts / "other-*.parquet")
    (parts / "part-0.parquet").rename(parts / "part-0.csv")
    with pytest.raises(
        FileError, match=r"stands for several files, but .*part-0\.csv is not Parquet"
    ):
        rm.Interactions.of(parts / "part-*")
    (parts / "2024" / "part-1.parquet").unlink()
    with pytest.raises(FileError, match=r"is not a file\. Hint: name one file, or a folder with"):
        rm.Interactions.of(parts)

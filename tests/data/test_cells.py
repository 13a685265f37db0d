"""Tests that cells with several items are refused unless `separator` splits them."""

import json
import pathlib

import numpy as np
import pandas as pd
import polars as pl
import pytest
from command_line import run_command

import recometer as rm

TEST = {1: [93], 2: [7]}
CELLS = {
    "46;93;5": ";",
    "46; 93": ";",
    "46;93;": ";",
    "46 93 5": " ",
    "46  93": " ",
    "46|93|5": "|",
    "46,93": ",",
    "46, 93": ",",
    "[46, 93]": "json",
    "[46 93  5]": " ",
    "['46', '93']": ",",
    '["46", "93"]': ",",
    "(46, 93)": ",",
}


def frame(*cells):
    return pd.DataFrame({"user_id": [1, 2], "item_id": cells})


@pytest.mark.parametrize("cell", CELLS)
def test_cells_with_several_items_are_split_only_by_separator(cell) -> None:
    single_item = "[7]" if cell.startswith("[") else "7"
    recommended = frame(cell, single_item)
    for read in (rm.Lists, rm.Interactions.of):
        with pytest.raises(rm.InputError, match="look like several items in one cell") as error:
            read(recommended)
        if cell != '["46", "93"]':
            assert f"separator={CELLS[cell]!r} of rm.Lists" in str(error.value)
    for table in (recommended, pl.DataFrame({"user_id": [1, 2], "item_id": [cell, single_item]})):
        lists = rm.Lists(table, separator=CELLS[cell])
        assert rm.evaluate(lists, TEST, metrics="rr").mean() == {"rr": 0.75}
        data = rm.Interactions.of(table, separator=CELLS[cell])
        assert {7, 46, 93} <= {*data.item_ids.tolist()}


def test_separator_splits_strings_and_empty_cells() -> None:
    lists = rm.Lists(frame("a;b b;07", None), separator=";")
    result = rm.evaluate(lists, {1: ["b b"]}, metrics="rr")
    assert result["rr"].tolist() == [0.5]
    data = rm.Interactions.of(frame('["a", "b"]', "[]"), separator="json")
    assert (data.item_ids.tolist(), data.indptr.tolist()) == (["a", "b"], [0, 2, 2])


def test_values_apply_to_all_items_of_a_cell() -> None:
    data = rm.Interactions.of(frame("46;93", "7").assign(rating=[3, 4]), separator=";")
    assert data.to_csr().toarray().tolist() == [[0, 3, 3], [4, 0, 0]]


@pytest.mark.parametrize("content", ["1,46;93;5\n2,7\n", '1,"[46, 93]"\n2,[7]\n'])
def test_separator_splits_cells_of_files(tmp_path, content) -> None:
    path = tmp_path / "lists.csv"
    path.write_text(f"user_id,items\n{content}")
    with pytest.raises(rm.InputError, match="look like several items in one cell"):
        rm.Lists(path)
    lists = rm.Lists(path, separator="json" if "[" in content else ";")
    assert rm.evaluate(lists, TEST, metrics="rr").mean() == {"rr": 0.75}


def test_separator_splits_the_cells_of_several_runs() -> None:
    runs_in_one_frame = pd.concat([frame("46;93", "7").assign(model=name) for name in ("a", "b")])
    runs = rm.Lists.each(runs_in_one_frame, by="model", separator=";")
    assert [*runs] == ["a", "b"]
    assert rm.evaluate(runs["b"], TEST, metrics="rr").mean() == {"rr": 0.75}


def test_evaluate_refuses_test_cells_with_several_items() -> None:
    lists = rm.Lists({1: [46], 2: [7]})
    with pytest.raises(rm.InputError, match=r"test: .*'46;93;5'.*rm\.Interactions\.of"):
        rm.evaluate(lists, frame("46;93;5", "7"), metrics="rr")


@pytest.mark.parametrize(
    "cells",
    [
        ("Heat, The", "Blade Runner 2049"),
        ("2024-05-31 12:00", "2024-06-01 13:30"),
        ("Action|Comedy", "US|123"),
        ("B00X-1", "7"),
        ("Area 51", "Fantasia 2000"),
    ],
)
def test_ids_with_punctuation_are_not_split(cells) -> None:
    lists = rm.Lists(frame(*cells))
    test = {1: [cells[0]], 2: [cells[1]]}
    assert rm.evaluate(lists, test, metrics="rr").mean() == {"rr": 1.0}


def test_single_title_made_of_numbers_is_not_split() -> None:
    titles = ["1, 2", *(f"title {n}" for n in range(30))]
    data = rm.Interactions.of(pd.DataFrame({"user_id": range(31), "item_id": titles}))
    assert len(data.item_ids) == 31


def test_ids_that_look_like_lists_are_kept_without_a_separator() -> None:
    lists = rm.Lists(frame("46;93", "5;7"), separator=False)
    test = rm.Interactions.of(frame("46;93", "7;5"), separator=False)
    assert rm.evaluate(lists, test, metrics="rr")["rr"].tolist() == [1, 0]
    assert rm.Lists({1: ["46;93"]}, separator=False).table.n_lists == 1


def test_separator_is_refused_for_data_without_cells() -> None:
    for call in (
        lambda: rm.Lists(np.array([[1, 2]]), separator=";"),
        lambda: rm.Interactions.of(np.eye(2), separator=";"),
        lambda: rm.Interactions.of(np.array([[0], [1]]), n_users=2, n_items=2, separator=";"),
    ):
        with pytest.raises(rm.InputError, match="separator= does not apply to"):
            call()


def test_command_line_splits_cells_with_separator(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    pathlib.Path("run.csv").write_text("user_id,items\n1,46;93;5\n2,7\n")
    pathlib.Path("test.csv").write_text("user_id,items\n1,93;8\n2,7\n")
    arguments = ["evaluate", "--test", "test.csv", "--run", "run.csv", "-m", "rr"]
    result = run_command(arguments)
    assert result.exit_code == 1
    printed = " ".join(result.stderr.split())
    assert "Hint: --separator ';' reads such cells as lists; --separator none means" in printed
    result = run_command([*arguments, "--separator", ";", "--format", "json"])
    assert result.exit_code == 0, result.stderr
    assert json.loads(result.stdout)["models"]["run"]["metrics"]["rr"]["mean"] == 0.75


def test_deeply_nested_cell_is_refused() -> None:
    deep = frame("[" * 10**5, "[7]")
    with pytest.raises(rm.InputError, match=r"in row 0 .* which is not a JSON list"):
        rm.Lists(deep, separator="json")
    with pytest.raises(rm.InputError, match=r"look like|JSON"):
        rm.Lists(deep)

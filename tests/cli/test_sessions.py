"""Tests of ``--user user,session``, which makes commands evaluate sessions."""

from __future__ import annotations

import pathlib

import polars as pl
import pytest
from command_line import Result, run_command


def call(*arguments: str) -> Result:
    return run_command(arguments, env={"COLUMNS": "100"})


@pytest.fixture
def folder(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    test = pl.DataFrame({"user": [1, 1, 2], "session": ["a", "b", "a"], "item": [7, 8, 9]})
    test.write_csv(tmp_path / "test.csv")
    test.with_columns(item=pl.Series([5, 8, 9])).write_parquet(tmp_path / "own.parquet")
    (tmp_path / "plain.csv").write_text("user,item,rank\n1,5,1\n1,7,2\n2,9,1\n")
    (tmp_path / "train.csv").write_text("user,session,item\n1,z,5\n1,z,4\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.usefixtures("folder")
def test_sessions_can_be_combined_with_data_of_whole_users() -> None:
    result = call(
        *("evaluate", "--test", "test.csv", "--run", "own.parquet", "--run", "plain.csv"),
        *("--train", "train.csv", "--user", "user,session", "-m", "rr", "--per-user"),
        *("--format", "csv"),
    )
    assert result.exit_code == 0, result.stderr
    assert result.stdout.splitlines() == [
        *("model,user,session,rr", "own,1,a,0.0", "own,1,b,1.0", "own,2,a,1.0"),
        *("plain,1,a,1.0", "plain,1,b,0.0", "plain,2,a,1.0"),
    ]
    assert "train.csv (user 'user', item 'item')" in result.stderr


@pytest.mark.usefixtures("folder")
def test_sessions_are_supported_in_comparisons_and_splits() -> None:
    runs = ("--run", "own.parquet", "--run", "plain.csv", "--user", "user,session", "-m", "rr")
    assert call("evaluate", "--test", "test.csv", *runs, "--out", "saved").exit_code == 0
    compared = call("compare", "saved")
    assert compared.exit_code == 0, compared.stderr
    assert "based on their 2 clusters" in compared.stdout
    split = call(
        *("split", "train.csv", "--what", "number=1", "--user", "user,session", "--out", "made")
    )
    assert split.exit_code == 0, split.stderr
    result = call("evaluate", "--split", "made", *runs[2:])
    assert result.exit_code == 0, result.stderr
    assert "sessions of 1 users" in result.stdout
    explained = call(
        "why", "--test", "test.csv", *runs[:2], *runs[4:6], "--metric", "rr", "--to", "trec_eval"
    )
    assert explained.exit_code == 0, explained.stderr


@pytest.mark.usefixtures("folder")
def test_error_about_an_unknown_session_column_suggests_a_name() -> None:
    result = call("evaluate", "--test", "test.csv", "--run", "plain.csv", "--user", "user,sesion")
    assert result.exit_code != 0
    assert "'session'" in result.stderr

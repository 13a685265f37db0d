"""Tests of ``recometer show``, which prints saved evaluations."""

from __future__ import annotations

import json
import pathlib

import pytest
from command_line import Result, run_command

import recometer as rm

TEST = {"ann": ["song"], "bob": ["film"]}


def show(*arguments: str) -> Result:
    return run_command(["show", *arguments], env={"COLUMNS": "300"})


@pytest.fixture(autouse=True)
def results(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, rm.Evaluation]:
    monkeypatch.chdir(tmp_path)
    lists = {"als": ["song", "film"], "bpr": ["film", "game"]}
    evaluations = {
        name: rm.evaluate(
            rm.Lists({"ann": items_of_users, "bob": items_of_users[::-1]}),
            TEST,
            metrics="rr recall@2",
        )
        for name, items_of_users in lists.items()
    }
    pathlib.Path("saved").mkdir()
    for name, result in evaluations.items():
        result.save(f"saved/{name}.parquet")
    pathlib.Path("saved/notes.csv").write_text("mine\n", encoding="utf-8")
    return evaluations


def test_one_result_is_shown_as_in_python(results: dict[str, rm.Evaluation]) -> None:
    assert show("saved/als.parquet").stdout == f"{results['als']}\n"


def test_several_results_are_shown_side_by_side(results: dict[str, rm.Evaluation]) -> None:
    expected = f"{rm.Leaderboard(results)}\n"
    assert show("saved").stdout == expected
    assert show("saved/bpr.parquet", "saved/als.parquet").stdout == expected
    with_name = show("mine=saved/bpr.parquet", "saved/als.parquet", "--format", "json").stdout
    assert list(json.loads(with_name)["models"]) == ["mine", "als"]


def test_formats_and_values_of_users_match_python(results: dict[str, rm.Evaluation]) -> None:
    board = rm.Leaderboard(results)
    assert show("saved", "--format", "latex").stdout == f"{board.to_latex()}\n"
    users = rm.Leaderboard(results, with_users=True).to_csv()
    assert show("saved", "--format", "csv", "--per-user").stdout == f"{users}\n"


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ((), 2, "Missing argument"),
        (("saved/nope.parquet",), 1, "There is no file saved/nope.parquet"),
        (("saved/notes.csv",), 1, "is not a Parquet file"),
        ((".",), 1, "holds no saved evaluation"),
        (("saved", "saved/als.parquet"), 2, "are both called 'als'. Hint: write NAME=FILE"),
        (("saved/als.parquet", "other.parquet"), 1, "were evaluated with different metrics"),
    ],
)
def test_files_that_cannot_be_shown_are_refused(
    arguments: tuple[str, ...], code: int, message: str
) -> None:
    if "other.parquet" in arguments:
        rm.evaluate(rm.Lists({"ann": ["song"]}), TEST, metrics="ap").save("other.parquet")
    result = show(*arguments)
    assert (result.exit_code, result.stdout) == (code, "")
    assert message in " ".join(result.stderr.split())
    assert "rm." not in result.stderr
    assert "metrics=" not in result.stderr
    assert "result.save" not in result.stderr

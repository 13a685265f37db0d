"""Tests of ``recometer check``, which checks a model's files or the installation."""

from __future__ import annotations

import json
import pathlib

import polars as pl
import pytest
from command_line import Result, run_command

import recometer as rm
from recometer.checking import installation

TRAIN = pl.DataFrame({"user_id": ["ann", "bob"], "item_id": ["a", "b"]})
TEST = pl.DataFrame({"user_id": ["ann", "bob", "cleo"], "item_id": ["c", "a", "d"]})
LISTS = pl.DataFrame(
    {
        "user_id": ["ann", "ann", "bob", "bob"],
        "item_id": ["a", "c", "a", "d"],
        "rank": [1, 2, 1, 2],
    }
)


def check(*arguments: object) -> Result:
    return run_command(["check", *map(str, arguments)], env={"COLUMNS": "100"})


@pytest.fixture(autouse=True)
def folder(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, frame in (("train", TRAIN), ("test", TEST), ("lists", LISTS)):
        frame.write_parquet(f"{name}.parquet")
    list_of_eve = TEST.select(user_id=pl.lit("eve"), item_id=pl.col("item_id"), rank=pl.lit(1))
    list_of_eve.head(1).write_parquet("strangers.parquet")


FILES = ("--test", "test.parquet", "--train", "train.parquet", "--run", "mine=lists.parquet")


def test_findings_are_printed_as_a_table() -> None:
    result = check(*FILES)
    assert result.exit_code == 0, result.stderr
    expected = rm.check(rm.Lists(LISTS), TEST, train=TRAIN)
    assert result.stdout.splitlines()[0] == str(expected).splitlines()[0]
    assert "test_users_unknown (test users that the source does not know)" in result.stdout
    assert "mine: lists.parquet" in result.stderr
    assert check(*FILES, "--quiet").stderr == ""


def test_hints_name_options_instead_of_arguments() -> None:
    pairs = pl.DataFrame({"user_id": ["ann", "bob", "cleo"]}).join(
        pl.DataFrame({"item_id": [*"abcd"]}), how="cross"
    )
    pairs.with_columns(score=pl.Series([*"312443121324"]).cast(pl.Float64)).write_parquet(
        "all.parquet"
    )
    pairs.select("item_id").unique().write_parquet("items.parquet")
    result = check("--test", "test.parquet", "--run", "all.parquet", "--catalogue", "items.parquet")
    assert "(--users 0 checks all of them)" in " ".join(result.stdout.split())


def test_json_output_reflects_the_options() -> None:
    result = check(*FILES, "--format", "json", "-k", 1, "--users", 2, "--seed", 1)
    content = json.loads(result.stdout)
    findings = {finding["name"]: finding for finding in content["findings"]}
    assert (content["k"], content["n_checked"], content["n_users"]) == (1, 2, 3)
    assert findings["test_users_unknown"]["examples"] == ["cleo"]
    assert json.loads(check(*FILES, "--users", 0, "--format", "json").stdout)["n_checked"] == 3


def test_strict_fails_if_there_is_a_problem() -> None:
    assert check(*FILES, "--strict").exit_code == 0
    wrong = (*FILES[:4], "--run", "strangers.parquet")
    result = check(*wrong, "--strict")
    assert result.exit_code == 3
    assert result.stderr.splitlines()[-1].startswith("Problems: test_users_unknown (3)")
    assert result.stdout == check(*wrong).stdout
    assert check(*wrong).exit_code == 0


def test_rules_and_protocols_apply_to_the_check() -> None:
    result = check(*FILES, "--rule", "seen=kept", "--format", "json")
    findings = {finding["name"]: finding for finding in json.loads(result.stdout)["findings"]}
    assert "They keep their places" in findings["train_items_recommended"]["sentence"]
    assert check(*FILES, "--protocol", "lenskit").exit_code == 0
    assert check(*FILES, "--protocol", "lens").exit_code == 2


def one_line(text: str) -> str:
    return " ".join(text.replace("│", " ").split())


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ((*FILES, "--per-user"), "--per-user: recometer check does not use this option"),
        ((*FILES, "--baseline", "mine"), "No such option: --baseline"),
        ((*FILES, "--features", "x"), "--features: recometer check does not use this option"),
        ((*FILES, "--run", "lists.parquet"), "only one model can be checked at a time"),
        (("--test", "test.parquet"), "there is no model to evaluate"),
        (("--threads", "1"), "there is nothing to test on. Hint: --test or --split."),
        (("--ties", "random"), "there is nothing to test on"),
    ],
)
def test_wrong_usage_exits_with_2(arguments: tuple[str, ...], text: str) -> None:
    result = check(*arguments)
    assert result.exit_code == 2, result.output
    assert text in one_line(result.stderr)


def test_check_without_files_checks_the_installation(monkeypatch: pytest.MonkeyPatch) -> None:
    result = check()
    assert result.exit_code == 0
    assert result.stdout.splitlines()[-1] == "All is well."
    assert json.loads(check("--format", "json").stdout)["works"] is True
    monkeypatch.setitem(installation.EXPECTED, "rr", 0.5)
    result = check()
    assert result.exit_code == 1
    assert "Wrong: a known result." in result.stdout

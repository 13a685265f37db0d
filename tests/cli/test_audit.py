"""Tests of ``recometer audit``, which reads files and prints findings in several formats."""

from __future__ import annotations

import csv
import io
import json
import pathlib

import polars as pl
import pytest
from command_line import Result, run_command

import recometer as rm
from recometer.auditing import LEAKAGE

TRAIN = pl.DataFrame(
    {
        "user_id": ["ann", "ann", "bob", "bob"],
        "movieId": ["a", "b", "a", "c"],
        "rating": [5, 3, 4, 1],
        "timestamp": [10, 30, 20, 25],
    }
)
TEST = pl.DataFrame(
    {
        "user_id": ["ann", "bob", "cleo"],
        "movieId": ["c", "a", "d"],
        "rating": [4, 4, 2],
        "timestamp": [20, 50, 60],
    }
)
CLEAN = pl.DataFrame(
    {"user_id": ["ann", "bob"], "movieId": ["c", "b"], "rating": [4, 4], "timestamp": [40, 50]}
)


def audit(*arguments: object, stdin: bytes | None = None) -> Result:
    return run_command(["audit", *map(str, arguments)], input=stdin, env={"COLUMNS": "100"})


def one_line(text: str) -> str:
    return " ".join(text.split())


@pytest.fixture(autouse=True)
def folder(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, frame in (("train", TRAIN), ("test", TEST), ("clean", CLEAN)):
        frame.write_parquet(f"{name}.parquet")
        frame.write_csv(f"{name}.csv")


FILES = ("--train", "train.parquet", "--test", "test.parquet")
CLEAN_FILES = ("--train", "train.parquet", "--test", "clean.parquet")


def test_findings_are_printed_as_a_table() -> None:
    result = audit(*FILES)
    assert result.exit_code == 0
    train = rm.Interactions.of(TRAIN, value=False)
    # The findings are the same as in Python, except that they name options instead of arguments.
    assert result.stdout == f"{rm.audit(train, TEST)}\n".replace("train=,", "--train,")
    assert result.stderr.splitlines() == [
        "test: test.parquet (user 'user_id', item 'movieId', value 'rating', time 'timestamp')",
        "train: train.parquet (user 'user_id', item 'movieId', time 'timestamp')",
    ]
    assert audit(*FILES, "--quiet").stderr == ""


def test_findings_are_printed_as_json() -> None:
    content = json.loads(audit(*FILES, "--format", "json").stdout)
    findings = {finding["name"]: finding for finding in content["findings"]}
    assert content["leaks"] is True
    assert findings["overlap"]["count"] == 1
    assert findings["overlap"]["examples"] == [["bob", "a"]]
    assert findings["older_than_own_training"]["examples"] == [["ann", "c"]]
    assert findings["unseen_users"]["share"] == pytest.approx(1 / 3)


def test_findings_are_printed_as_csv() -> None:
    rows = list(csv.DictReader(io.StringIO(audit(*FILES, "--format", "csv").stdout)))
    assert rows[0]["name"] == "overlap"
    assert rows[0]["examples"] == "('bob', 'a')"
    assert {row["level"] for row in rows} == {"leakage", "warning", "fact"}


def test_findings_are_printed_as_markdown() -> None:
    lines = audit(*FILES, "--format", "markdown").stdout.splitlines()
    assert lines[0].startswith("| finding | level | count |")
    assert lines[2].startswith("| overlap | leakage | 1 | 3 | 33.3% |")


def test_relevant_from_decides_which_users_have_no_relevant_item() -> None:
    result = audit(*FILES, "--relevant-from", 3, "--format", "json")
    findings = {finding["name"]: finding for finding in json.loads(result.stdout)["findings"]}
    assert findings["users_without_relevant"]["examples"] == ["cleo"]
    assert findings["users_emptied"]["examples"] == ["bob"]


def test_strict_fails_if_there_is_leakage() -> None:
    result = audit(*FILES, "--strict")
    assert result.exit_code == 3
    assert result.stderr.splitlines()[-1] == (
        "Leakage: overlap (1), older_than_own_training (1), older_than_training (1)."
    )
    assert result.stdout == audit(*FILES).stdout
    assert audit(*CLEAN_FILES, "--strict").exit_code == 0


def test_strict_ignores_allowed_leakage() -> None:
    allowed = [argument for name in LEAKAGE[1:] for argument in ("--allow", name)]
    result = audit(*FILES, "--strict", *allowed)
    assert result.exit_code == 3
    assert result.stderr.splitlines()[-1] == "Leakage: overlap (1)."
    assert result.stdout.splitlines()[-1] == (
        "There is leakage, some of it allowed: older_than_own_training, older_than_training."
    )
    passed = audit(*FILES, "--strict", *allowed, "--allow", "overlap")
    assert passed.exit_code == 0
    assert passed.stdout.splitlines()[-1] == (
        f"There is leakage, all of it allowed: {', '.join(LEAKAGE)}."
    )
    clean = audit(*CLEAN_FILES, "--strict", "--allow", "overlap")
    assert clean.stdout == audit(*CLEAN_FILES).stdout
    without_strict = audit(*FILES, "--allow", "overlap")
    assert without_strict.exit_code == 2
    assert "it lists what --strict accepts. Hint: pass --strict" in without_strict.stderr
    wrong = audit(*FILES, "--allow", "overlaps")
    assert wrong.exit_code == 2
    assert "Did you mean 'overlap'" in " ".join(wrong.stderr.replace("│", " ").split())


def test_column_options_apply_to_files_with_these_columns() -> None:
    renamed = TRAIN.rename({"user_id": "who", "timestamp": "when"})
    renamed.write_csv("renamed.csv")
    result = audit("--train", "renamed.csv", "--test", "clean.csv", "--user", "who")
    assert result.exit_code == 0, result.stderr
    assert "train: renamed.csv (user 'who', item 'movieId')" in result.stderr
    assert "Not checked: train has no times." in one_line(result.stdout)
    renamed = CLEAN.rename({"timestamp": "when"})
    renamed.write_csv("also.csv")
    options = ("--user", "who", "--time", "when")
    result = audit("--train", "renamed.csv", "--test", "also.csv", *options, "--strict")
    assert result.exit_code == 0, result.stderr
    assert "time 'when'" in result.stderr
    wrong = audit("--train", "renamed.csv", "--test", "clean.csv", *options)
    assert wrong.exit_code == 1
    assert "clean.csv: There is no column 'when'" in wrong.stderr


def test_audit_skips_checks_of_times_that_are_not_read() -> None:
    result = audit(*FILES, "--time", "none", "--value", "none")
    assert one_line(result.stdout).count("Not checked: train and test have no times.") == 3
    assert "value" not in result.stderr


def test_test_data_is_read_from_standard_input() -> None:
    data = pathlib.Path("test.csv").read_bytes()
    result = audit("--train", "train.csv", "--test", "-", "--format-in", "csv", stdin=data)
    assert result.stdout == audit("--train", "train.csv", "--test", "test.csv").stdout
    assert "test: standard input" in result.stderr
    assert audit("--train", "-", "--test", "-", stdin=data).exit_code == 2


def test_errors_name_options_instead_of_arguments() -> None:
    missing = audit("--train", "train.parquet")
    assert missing.exit_code == 2
    assert "an audit needs --train and --test" in missing.stderr.replace("\n", " ")
    assert "There is no file tst.parquet. Hint: Did you mean 'test.parquet'" in (
        audit("--train", "train.parquet", "--test", "tst.parquet").stderr
    )
    dated = TEST.with_columns(timestamp=pl.lit("2024-05-31").str.to_date())
    dated.write_parquet("dated.parquet")
    with_other_id_type = audit("--train", "train.parquet", "--test", "dated.parquet")
    assert with_other_id_type.exit_code == 1
    assert "are of different kinds" in with_other_id_type.stderr
    assert "or pass --time none" in with_other_id_type.stderr
    TEST.with_columns(user_id=pl.Series([1, 2, 3])).write_parquet("numbers.parquet")
    with_other_id_type = audit("--train", "train.parquet", "--test", "numbers.parquet")
    assert with_other_id_type.exit_code == 1
    assert "The user ids of test are of type int (for instance 1), but" in with_other_id_type.stderr


def test_repeated_rows_are_counted() -> None:
    pl.concat([TEST, TEST.head(2)]).write_csv("twice.csv")
    result = audit("--train", "train.csv", "--test", "twice.csv", "--format", "json")
    findings = {finding["name"]: finding for finding in json.loads(result.stdout)["findings"]}
    assert findings["test_duplicates"]["count"] == 2
    assert findings["test_duplicates"]["level"] == "warning"
    assert findings["test_duplicates"]["examples"] == [["ann", "c"], ["bob", "a"]]
    assert "Warning: test: 2 of 5 interactions repeat a user-item pair" in result.stderr

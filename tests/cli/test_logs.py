"""Tests of ``recometer logs``, which prints the values of policies and the verdicts of gates."""

from __future__ import annotations

import dataclasses
import json
import pathlib

import numpy as np
import polars as pl
import pytest
from command_line import Result, run_command

import recometer as rm
from recometer.comparing.gates import junit

LOGGING = np.array([0.4, 0.3, 0.2, 0.1])
ITEM = np.random.default_rng(3).choice(4, 900, p=LOGGING)
LOG = pl.DataFrame(
    {
        "user_id": np.repeat(np.arange(300), 3),
        "item_id": ITEM,
        "reward": (np.random.default_rng(4).random(900) < 0.1 * (1 + ITEM)).astype(int),
        "propensity": LOGGING[ITEM],
        "good": LOGGING[::-1][ITEM],
        "bad": np.array([0.6, 0.2, 0.1, 0.1])[ITEM],
    }
)
POLICIES = ("--policy", "good=good", "--policy", "bad=bad", "--estimators", "snips ips")


def logs(*arguments: str) -> Result:
    return run_command(["logs", *arguments], env={"COLUMNS": "100"})


def values() -> rm.logs.PolicyValues:
    log = rm.Impressions(
        LOG, user="user_id", item="item_id", reward="reward", propensity="propensity"
    )
    return log.evaluate({"good": "good", "bad": "bad"}, estimators="snips ips")


@pytest.fixture(autouse=True)
def folder(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    LOG.write_parquet("log.parquet")
    LOG.write_csv("log.csv")


@pytest.mark.parametrize("file", ["log.parquet", "log.csv"])
def test_printed_table_matches_python(file: str) -> None:
    result = logs(file, *POLICIES)
    assert result.exit_code == 0, result.output
    assert result.stdout == f"{values().compare()}\n"


def test_gates_decide_the_exit_code() -> None:
    for gate, code in (("snips >= -90%", 0), ("snips >= 500%", 1), ("snips >= 40%", 3)):
        arguments = ("--policy", "good=good", "--estimators", "snips")
        result = logs("log.csv", *arguments, "--baseline", "logged", "--gate", gate)
        assert result.exit_code == code, result.output
    result = logs("log.csv", *POLICIES, "--costs", "--baseline", "logged", "--gate", "ips <= 0")
    assert result.exit_code == 1
    assert "good: ips <= 0: failed" in result.stdout


def test_undecided_gates_exit_with_3_or_as_requested() -> None:
    arguments = ("--policy", "good=good", "--estimators", "snips", "--baseline", "logged")
    gate = ("--gate", "snips >= 40%", "--junit", "gates.xml")
    for mapping, code in ((), 3), (("--undecided", "pass"), 0), (("--undecided", "fail"), 1):
        result = logs("log.csv", *arguments, *gate, *mapping)
        assert result.exit_code == code, result.output
        assert "good: snips >= 40%: undecided" in result.stderr
        report = values().compare(baseline="logged").gate("snips >= 40%", *mapping[1:])  # type: ignore[arg-type]
        only_good = dataclasses.replace(report, rows=report.rows[:1])
        assert pathlib.Path("gates.xml").read_text("utf-8") == junit(only_good) + "\n"
    result = logs("log.csv", *arguments, "--junit", "gates.xml")
    assert (result.exit_code, "it also needs the option --gate" in result.stderr) == (2, True)
    result = logs("log.csv", *arguments, *gate[:2], "--junit", "log.csv")
    assert result.exit_code == 1
    assert "log.csv is an input, and would be replaced" in result.stderr


def test_json_contains_all_values() -> None:
    gate = ("--baseline", "logged", "--gate", "snips >= 0%", "--format", "json")
    content = json.loads(logs("log.parquet", *POLICIES, *gate).stdout)
    assert content["weights"] == values().to_dict()["weights"]
    assert [row["verdict"] for row in content["gates"]["gates"]] == ["passed", "failed"]
    assert len(content["comparison"]["rows"]) == 4


def test_report_matches_python() -> None:
    gate = ("--baseline", "logged", "--gate", "snips >= 0%", "--report", "report.md")
    assert logs("log.parquet", *POLICIES, *gate).exit_code == 1
    versus = values().compare(baseline="logged")
    expected = versus.report("other.md", gates=versus.gate("snips >= 0%")).to_markdown()
    for name in ("report.md", "other.md"):
        assert pathlib.Path(name).read_text("utf-8") == expected
    assert "## Gates" in expected
    assert "## Gates" not in values().report().to_markdown()


def test_policy_may_be_a_file_of_candidates() -> None:
    n = len(LOG)
    pl.DataFrame(
        {
            "impression": np.repeat(np.arange(n), 4),
            "item": np.tile(np.arange(4), n),
            "target_probability": np.tile(LOGGING[::-1], n),
            "predicted_reward": np.tile([0.1, 0.2, 0.3, 0.4], n),
        }
    ).write_csv("good.csv")
    arguments = ("--policy", "good=good.csv", "--estimators", "dr snips", "--format", "json")
    content = json.loads(logs("log.csv", *arguments).stdout)
    values_by_policy = {
        (row["policy"], row["estimator"]): row["value"] for row in content["values"]
    }
    assert values_by_policy["good", "snips"] == pytest.approx(values()["good", "snips"].value)
    assert 0.25 < values_by_policy["good", "dr"] < 0.35

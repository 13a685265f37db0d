"""Tests of ``recometer compare`` and of the GitHub action that runs it."""

from __future__ import annotations

import csv
import io
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import textwrap
from xml.etree import ElementTree

import numpy as np
import polars as pl
import pytest
from command_line import Result, run_command
from results import evaluation

import recometer as rm
from recometer.cli._app import command_of

ROOT = pathlib.Path(__file__).parents[2]
OLD = np.round(np.random.default_rng(1).random(400), 2)


def run(*arguments: str) -> Result:
    return run_command(arguments, env={"COLUMNS": "300"})


def one_line(text: str) -> str:
    return " ".join(text.split())


@pytest.fixture(autouse=True)
def results(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, rm.Evaluation]:
    monkeypatch.chdir(tmp_path)
    noise = np.random.default_rng(2).normal(0, 0.1, len(OLD))
    values = {"prod": OLD, "new": np.clip(OLD + 0.05 + noise, 0, 1)}
    values |= {"bad": np.clip(OLD - 0.05 + noise, 0, 1), "same": np.clip(OLD + noise, 0, 1)}
    pathlib.Path("results").mkdir()
    evaluations = {name: evaluation({"rr": column.tolist()}) for name, column in values.items()}
    for name, result in evaluations.items():
        result.save(f"results/{name}.parquet")
    return evaluations


def test_output_matches_python(results: dict[str, rm.Evaluation]) -> None:
    result = run("compare", "results", "--baseline", "prod")
    assert result.exit_code == 0, result.stderr
    names = ("bad", "new", "prod", "same")
    assert result.stdout == f"{rm.compare({n: results[n] for n in names}, baseline='prod')}\n"
    options = ("--test", "t", "--correction", "bonferroni", "--confidence", "0.9")
    table = run("compare", "results/new.parquet", "results/prod.parquet", *options, "-m", "rr")
    expected = rm.compare(
        {n: results[n] for n in ("new", "prod")}, test="t", correction="bonferroni", confidence=0.9
    )
    assert table.stdout == f"{expected}\n"


def test_failed_gate_exits_with_1() -> None:
    gated = ("compare", "results", "--baseline", "prod", "--gate")
    result = run(*gated, "rr >= -5%", "--junit", "gates.xml")
    assert result.exit_code == 1
    assert "bad: rr >= -5%: failed" in result.stderr
    assert "new: rr" not in result.stderr
    assert "would decide" not in result.stderr
    assert "rr >= -5%" in result.stdout
    root = ElementTree.parse("gates.xml").getroot()
    assert (root.get("tests"), root.get("failures")) == ("3", "1")
    assert run(*gated, "rr >= -50%").exit_code == 0


def test_undecided_gate_exits_with_3_or_as_requested() -> None:
    pair = ("compare", "results/same.parquet", "results/prod.parquet", "--baseline", "prod")
    compared = rm.compare(["results/same.parquet", "results/prod.parquet"], baseline="prod")
    inside = f"rr >= {compared.rows[0].difference - 1e-3:.5f}"
    for mapping, code in ((), 3), (("--undecided", "pass"), 0), (("--undecided", "fail"), 1):
        result = run(*pair, "--gate", inside, *mapping, "--junit", "gates.xml")
        assert result.exit_code == code, mapping
        assert f"same: {inside}: undecided" in one_line(result.stderr)
        root = ElementTree.parse("gates.xml").getroot()
        counts = (str(int(code == 1)), str(int(code == 3)))
        assert (root.get("failures"), root.get("skipped")) == counts
        content = json.loads(run(*pair, "--gate", inside, *mapping, "--format", "json").stdout)
        assert content["gates"]["verdict"] == "undecided"
        assert content["gates"]["passed"] is (code == 0)
    failing = ("compare", "results", "--baseline", "prod", "--gate", inside)
    for mapping in ((), ("--undecided", "pass")):
        assert run(*failing, *mapping).exit_code == 1


def test_every_format_shows_the_gates() -> None:
    gated = ("compare", "results", "--baseline", "prod", "--gate", "rr >= -5%", "--format")
    content = json.loads(run(*gated, "json").stdout)
    assert content["gates"]["verdict"] == "failed"
    assert {gate["verdict"] for gate in content["gates"]["gates"]} == {"failed", "passed"}
    assert len(content["comparisons"]) == 3
    assert "| rr >= -5% | bad | failed |" in run(*gated, "markdown").stdout
    rows = list(csv.DictReader(io.StringIO(run(*gated, "csv").stdout)))
    assert [(row["gate"], row["model"], row["verdict"]) for row in rows] == [
        (row["gate"], row["model"], row["verdict"]) for row in content["gates"]["gates"]
    ]
    assert [float(row["found"]) for row in rows] == [
        row["found"] for row in content["gates"]["gates"]
    ]


def test_seeds_are_separated_by_commas(results: dict[str, rm.Evaluation]) -> None:
    result = run("compare", "als=results/new.parquet,results/same.parquet", "results/prod.parquet")
    assert result.exit_code == 0, result.stderr
    assert "Seeds: als 2." in result.stdout


def test_clusters_come_from_a_table(results: dict[str, rm.Evaluation]) -> None:
    people = np.arange(len(OLD)) // 4
    expected = rm.compare({n: results[n] for n in ("new", "prod")}, cluster=people)
    table = pl.DataFrame({"user_id": np.arange(len(OLD)), "person": people, "age": 3})
    table.reverse().write_csv("people.csv")
    table.select("person", "age").write_csv("persons.csv")
    table.drop("age").write_parquet("people.parquet")
    pair = ("compare", "results/new.parquet", "results/prod.parquet", "--cluster")
    for cluster in ("person=people.csv", "people.parquet", "person=people.parquet"):
        result = run(*pair, cluster)
        assert result.stdout == f"{expected}\n", result.output
    assert expected.rows[0].interval != rm.compare(list(results.values())).rows[0].interval
    for cluster, message in (
        ("people.csv", "--cluster people.csv: Which column holds the groups?"),
        ("people.csv", "Hint: name it before the file, as in COLUMN=FILE."),
        ("persons.csv", "--cluster persons.csv: no column could hold the users."),
        ("persn=people.csv", "Did you mean 'person'"),
        ("peple.csv", "There is no file"),
    ):
        wrong = run(*pair, cluster)
        assert wrong.exit_code != 0
        assert message in one_line(wrong.stderr)


def test_margin_adds_a_test_of_equivalence() -> None:
    pair = ("compare", "results/new.parquet", "results/prod.parquet", "--format", "json")
    row = json.loads(run(*pair, "--margin", "0.2").stdout)["comparisons"][0]
    assert row["equivalence"]["equivalent"]
    wrong = run(*pair, "--margin", "rr=0.2")
    assert wrong.exit_code == 2
    assert "Invalid value for '--margin'" in one_line(wrong.stderr)


def test_chance_is_compared_like_a_model() -> None:
    generator = np.random.default_rng(0)
    np.save("users.npy", generator.normal(size=(4, 2)))
    np.save("items.npy", generator.normal(size=(3, 2)))
    pathlib.Path("test.csv").write_text("user_id,item_id\n0,1\n1,2\n2,1\n3,0\n")
    model = ("--factors", "mine=users.npy,items.npy,positions,positions")
    options = ("--test", "test.csv", *model, "-m", "hit@1 rr")
    result = run("evaluate", *options, "--chance", "--out", "out")
    assert result.exit_code == 0, result.output
    assert "chance" in result.stdout
    assert run("evaluate", *options, "--out", "without").exit_code == 0
    pair = ("a=out/mine.parquet", "b=without/mine.parquet", "--chance")
    compared = run("compare", *pair, "--baseline", "chance", "--format", "json")
    rows = json.loads(compared.stdout)["comparisons"]
    assert [(row["model"], row["other"]) for row in rows[:2]] == [("a", "chance"), ("b", "chance")]
    assert rows[0]["mean_other"] == pytest.approx(1 / 3)
    missing = run("compare", *reversed(pair[:2]), "--chance")
    assert "which b does not" in one_line(missing.stderr)


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("results/new.parquet",), 1, "Hint: recometer compare als.parquet"),
        (("results", "--baseline", "pord"), 2, "Did you mean 'prod'"),
        (("results", "--gate", "rr >= 0"), 2, "a gate needs --baseline"),
        (("results", "--baseline", "prod", "--gate", "rr > 0"), 2, "cannot be read"),
        (("results", "--baseline", "prod", "--gate", "ap >= 0"), 2, "'ap' was not compared"),
        (("results", "--undecided", "pass"), 2, "it also needs the option --gate"),
        (("results", "--undecided", "passed"), 2, "Did you mean 'pass'"),
        (
            ("results", *("--baseline", "prod", "--gate", "rr >= -1", "--junit", "missing/a.xml")),
            1,
            "missing",
        ),
        (("results", "--test", "u"), 2, "there is no 'u'"),
        (("results", "--allow", "tets"), 2, "There is no input or rule 'tets' that may differ"),
        (("results/nope.parquet", "results/new.parquet"), 1, "There is no file"),
        (("results/new.parquet", "new=results/bad.parquet"), 2, "are both called 'new'"),
    ],
)
def test_wrong_usage_exits_with_1_or_2(arguments: tuple[str, ...], code: int, message: str) -> None:
    result = run("compare", *arguments)
    assert result.exit_code == code, result.output
    assert message in one_line(result.stderr)


def test_junit_output_does_not_replace_an_input() -> None:
    gated = ("compare", "results", "--baseline", "prod", "--gate", "rr >= -5%")
    for gates, message in (("results/new.parquet", "exists"), ("test.xml", "is an input")):
        pathlib.Path("test.xml").touch()
        result = run(*gated, "--junit", gates, "--cluster", "test.xml")
        assert result.exit_code == 1
        assert message in result.stderr


def test_error_about_different_test_data_names_the_option() -> None:
    other_test = {"test": {"description": "other rows", "fingerprints": {"items": "ff"}}}
    evaluation({"rr": OLD.tolist()}, inputs=other_test).save("other.parquet")
    result = run("compare", "results/prod.parquet", "other.parquet")
    assert result.exit_code == 1
    assert "different test data" in result.stderr
    assert "--allow test compares them" in result.stderr
    assert run("compare", "results/prod.parquet", "other.parquet", "--allow", "test").exit_code == 0


def test_github_action_uses_existing_options() -> None:
    known_options = {option for param in command_of("compare").params for option in param.opts}
    action = (ROOT / "action.yml").read_text(encoding="utf-8")
    script = action.rpartition("run: |")[2]
    used_options = set(re.findall(r"(?<![\w-])--[a-z][\w-]+", script))
    assert used_options
    assert used_options <= known_options
    inputs = set(re.findall(r"^  ([\w-]+):$", action.partition("runs:")[0], re.MULTILINE))
    example = (ROOT / "docs" / "compare-workflow.yml").read_text(encoding="utf-8")
    example_inputs = re.findall(
        r"^          ([\w-]+):",
        example.partition("recometer@")[2].partition("- if")[0],
        re.MULTILINE,
    )
    assert example_inputs
    assert set(example_inputs) <= inputs


def run_action(tmp_path: pathlib.Path, program_text: str, **changes: str) -> int:
    """Run the action's script on the evaluations in the current folder; return its exit code."""
    action = (ROOT / "action.yml").read_text(encoding="utf-8")
    script = textwrap.dedent(action.rpartition("run: |\n")[2])
    program = tmp_path / "recometer" / "bin" / "recometer"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\n{program_text}\n", encoding="utf-8")
    program.chmod(0o755)
    inputs = {
        "RESULTS": "results/bad.parquet results/prod.parquet",
        "BASELINE": "prod",
        "GATES": "rr >= -0.5%\n\nrr >= -90%\n",
        "UNDECIDED": "",
        "METRICS": "",
        "PRIMARY": "rr",
        "JUNIT": "gates.xml",
        "RUNNER_TEMP": str(tmp_path),
        "GITHUB_STEP_SUMMARY": "summary.md",
        "GITHUB_OUTPUT": "output.txt",
        "PYTHONPATH": os.pathsep.join(sys.path),
    }
    command = ["bash", "-e", "-o", "pipefail", "-c", script]
    return subprocess.run(command, env={**os.environ, **inputs, **changes}, check=False).returncode


@pytest.mark.parametrize(
    ("model", "gate", "code", "message"),
    [
        ("results/none.parquet", "rr >= -1%", 1, "none.parquet"),
        ("results/bad.parquet", "rrr >= -1%", 2, "'rrr' was not compared"),
    ],
)
def test_github_action_distinguishes_errors_from_failed_gates(
    tmp_path: pathlib.Path, model: str, gate: str, code: int, message: str
) -> None:
    # To avoid a slow second run, the action calls a script that prints the output recorded here.
    answer = run("compare", model, "results/prod.parquet", "--baseline", "prod", "--gate", gate)
    assert (answer.exit_code, answer.stdout) == (code, "")
    program = f"printf %s {shlex.quote(answer.stderr)} >&2\nexit {code}"
    assert run_action(tmp_path, program, RESULTS=f"{model} results/prod.parquet") == code
    assert "verdict=error" in pathlib.Path("output.txt").read_text(encoding="utf-8")
    summary = pathlib.Path("summary.md").read_text("utf-8")
    assert summary.startswith("**The models could not be compared**")
    assert message in one_line(summary)


def test_github_action_script_writes_verdict_and_summary(tmp_path: pathlib.Path) -> None:
    assert run_action(tmp_path, f'exec {sys.executable} -m recometer "$@"') == 1
    assert "verdict=failed" in pathlib.Path("output.txt").read_text(encoding="utf-8")
    assert "| rr >= -0.5% | bad | failed |" in pathlib.Path("summary.md").read_text("utf-8")
    assert ElementTree.parse("gates.xml").getroot().get("tests") == "2"


@pytest.mark.parametrize(
    ("undecided", "code", "verdict"),
    [("", 3, "undecided"), ("pass", 0, "passed"), ("fail", 1, "failed")],
)
def test_github_action_maps_undecided_gates(
    tmp_path: pathlib.Path, undecided: str, code: int, verdict: str
) -> None:
    inside = "rr >= -0.2%"
    mapping = ("--undecided", undecided) if undecided else ()
    pair = ("results/same.parquet", "results/prod.parquet", "--baseline", "prod")
    answer = run("compare", *pair, "--gate", inside, *mapping, "--format", "markdown")
    assert answer.exit_code == code
    program = f'echo "$*" > arguments.txt; echo "$0 was called"; exit {code}'
    assert run_action(tmp_path, program, UNDECIDED=undecided) == code
    assert f"verdict={verdict}" in pathlib.Path("output.txt").read_text(encoding="utf-8")
    assert ("--undecided" in pathlib.Path("arguments.txt").read_text("utf-8")) == bool(undecided)


@pytest.mark.parametrize("form", ["table", "markdown", "json"])
def test_notes_name_options_instead_of_arguments(form: str, tmp_path: pathlib.Path) -> None:
    for name in ("one", "two"):
        evaluation({"rr": OLD.tolist(), "ndcg@5": OLD.tolist()}).save(tmp_path / f"{name}.parquet")
    result = run("compare", "one.parquet", "two.parquet", "--format", form)
    assert result.exit_code == 0, result.stderr
    assert "primary=" not in result.stdout
    if form != "json":
        assert "Hint: --primary selects the one that decides." in one_line(result.stdout)

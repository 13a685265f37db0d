"""Tests of the conventions that every command follows, including commands added later."""

from __future__ import annotations

import inspect
import pathlib
import re

import polars as pl
import pytest
import typer
from command_line import run_command

import recometer as rm
from recometer.cli import _app, _messages
from recometer.cli._app import command_of
from recometer.rendering import FORMATS

COMMANDS = {
    name: inspect.signature(command_of(name).callback, eval_str=True).parameters
    for name in _app.COMMANDS
}
# The options of `evaluate` that `why` does not have, and the reason for each.
NOT_IN_WHY = {
    "metric": "its --metric takes a single metric",
    "protocol": "its protocols are called --from and --to",
    "chance": "a random order has no steps from one rule to the next",
    "out": "it evaluates nothing that could be saved",
    "flat": "it evaluates nothing that could be saved",
    "by": "it explains one mean",
    "by_items": "it explains one mean",
}
OUTPUT_OPTIONS = ("out", "flat", "form", "report")  # these options name output files
PAGE_COMMANDS = ("report",)  # these commands write a page and print no table
# For each metavar, an argument that makes an option read the output file; {} is the file's name.
OUTPUT_ARGUMENTS = {
    "FILE": "{}",
    "N|FILE": "{}",
    "NAME|FILE": "{}",
    "[NAME=]FILE": "x={}",
    "[NAME=]FILES": "x=users.npy,{}",
    "NAME=COLUMN|FILE": "x={}",
    "GROUPS": "age={}",
    "[COLUMN=]FILE": "age={}",
    "FOLDER": "{folder}",
    "WHO": "users={}",
    "WHAT": "cold_items={}",
}


def option(parameter: inspect.Parameter) -> typer.models.ParameterInfo:
    """Return the Typer declaration of a parameter."""
    return next(
        mark
        for mark in parameter.annotation.__metadata__
        if isinstance(mark, typer.models.ParameterInfo)
    )


def names_a_file(parameter: inspect.Parameter) -> bool:
    """Return whether an option's help says that the option names an input file or folder."""
    declared = option(parameter)
    description = f"{declared.metavar or ''} {declared.help or ''}"
    return (
        bool(re.search(r"FILE|FOLDER|\.npy", description)) and parameter.name not in OUTPUT_OPTIONS
    )


FILE_OPTIONS = [
    (command, name)
    for command, parameters in COMMANDS.items()
    for name, parameter in parameters.items()
    if names_a_file(parameter)
]


def test_why_has_every_option_of_evaluate() -> None:
    assert COMMANDS["evaluate"].keys() - COMMANDS["why"].keys() == NOT_IN_WHY.keys()
    for name in COMMANDS["evaluate"].keys() & COMMANDS["why"].keys():
        assert COMMANDS["evaluate"][name] == COMMANDS["why"][name]


def test_compare_has_an_option_for_every_argument_in_python() -> None:
    not_options = {"models", "progress"}
    parameters = inspect.signature(rm.compare).parameters.keys() - not_options
    assert parameters - COMMANDS["compare"].keys() == set()


def test_options_that_name_files_are_found() -> None:
    assert {("evaluate", "catalogue"), ("split", "who"), ("why", "to")} <= set(FILE_OPTIONS)


@pytest.mark.parametrize(
    ("command", "name"),
    [
        command_and_option
        for command_and_option in FILE_OPTIONS
        if "out" in COMMANDS[command_and_option[0]] and command_and_option[0] not in PAGE_COMMANDS
    ],
)
def test_output_does_not_replace_an_input_file(
    command: str, name: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A command must fail if the file that it would write is also one of its inputs."""
    monkeypatch.chdir(tmp_path)
    rows = pl.DataFrame({"user_id": [1, 1, 1, 2, 2, 2], "item_id": [1, 2, 3, 1, 2, 3]})
    for path in ("rows.parquet", "lists.parquet"):
        rows.with_columns(rank=pl.col("item_id")).write_parquet(path)
    out = tmp_path / "out"
    parameter = COMMANDS[command][name]
    made_by_split = command == "split" or name == "split"
    output_file = out / ("train.parquet" if made_by_split else "mine.parquet")
    if made_by_split:  # a split may replace an earlier split, but not one that it reads
        rm.split.split(rows, rm.split.Fraction(0.5), user="user_id", item="item_id").save(out)
    else:
        out.mkdir()
        rm.evaluate(rm.Lists("lists.parquet"), "rows.parquet", metrics="rr").save(output_file)
    before = output_file.read_bytes()
    text = OUTPUT_ARGUMENTS[str(option(parameter).metavar)].format(output_file, folder=out)
    arguments = ["split", "rows.parquet", "--what", "fraction=0.5"]
    if command == "evaluate":
        arguments = ["evaluate", "--run", f"{output_file.stem}=lists.parquet", "-m", "rr"]
        arguments += [] if name == "split" else ["--test", "rows.parquet"]
    if name == "data":
        arguments[1] = text
    else:
        arguments += [f"--{name.replace('_', '-')}", text]
    result = run_command([*arguments, "--out", str(out)])
    assert result.exit_code == 1, result.output
    assert "is an input" in result.stderr or "was not written by recometer" in result.stderr
    assert output_file.read_bytes() == before


def test_every_table_command_supports_all_formats() -> None:
    assert {name for name, options in COMMANDS.items() if "form" not in options} == set(
        PAGE_COMMANDS
    )
    for command in COMMANDS.keys() - set(PAGE_COMMANDS):
        help_text = str(option(COMMANDS[command]["form"]).help)
        assert all(form in help_text for form in FORMATS), command


@pytest.mark.parametrize("command", [name for name in COMMANDS if name not in PAGE_COMMANDS])
def test_unknown_format_exits_with_2(command: str) -> None:
    result = run_command([command, "--format", "yaml"], env={"COLUMNS": "300"})
    assert result.exit_code == 2
    assert "there is no format 'yaml'" in result.stderr


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_every_command_lists_its_exit_codes(command: str) -> None:
    result = run_command([command, "--help"], env={"COLUMNS": "100"})
    text = " ".join(result.stdout.split())
    for code, meaning in _messages.MEANINGS.items():
        assert f"{code:d} {meaning}" in text


def test_help_of_evaluate_fits_two_screens() -> None:
    result = run_command(["evaluate", "--help"], env={"COLUMNS": "80"})
    lines = result.stdout.splitlines()
    assert len(lines) <= 100
    assert max(map(len, lines)) <= 80


def test_documentation_lists_formats() -> None:
    page = pathlib.Path(__file__).parents[2] / "docs" / "command-line.md"
    (table,) = re.findall(
        r"\| format \| output \|\n((?:\|.*\n)+)", page.read_text(encoding="utf-8")
    )
    assert set(re.findall(r"`(\w+)`(?=.*?\|)", table)) >= FORMATS.keys()


def test_documentation_lists_exit_codes() -> None:
    page = pathlib.Path(__file__).parents[2] / "docs" / "command-line.md"
    text = page.read_text(encoding="utf-8")
    for code, meaning in _messages.MEANINGS.items():
        assert f"| {code:d} | {meaning} |" in text

"""Tests that bad input, listed in tests/bad_input.toml, raises the expected errors."""

from __future__ import annotations

import inspect
import os
import pathlib
import re
import shlex
import sys
import warnings

import pytest
from command_line import run_command

import recometer as rm
from recometer.cli import _app

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

TABLE = tomllib.loads(
    pathlib.Path(__file__).with_suffix(".toml").with_stem("bad_input").read_text("utf-8")
)
PYTHON, COMMANDS = TABLE["python"], TABLE["commands"]
CALLED = (rm.evaluate, rm.compare, rm.audit, rm.split, rm.Lists, rm.Pairs, rm.Interactions.of)
ARGUMENTS = {name for call in CALLED for name in inspect.signature(call).parameters}
# This pattern matches Python arguments such as k=, but not option values such as "user=5" or
# "--rule seen=kept".
IN_PYTHON = re.compile(rf"\brm\.|(?<!--rule )\b({'|'.join(ARGUMENTS)})=(?!\d)")
OPTION = re.compile(r"(?<!\w)--[a-z]")
# Every message must contain one of these words, which say what is expected or what to do.
ADVICE = re.compile(r"Hint|must|expected|needs?\b|cannot|takes|[Tt]here (is|are)|has no|no(ne)? ")


@pytest.fixture(scope="module")
def names(tmp_path_factory):
    """Create the objects that the calls in the TOML file use."""
    objects = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec(TABLE["setup"], objects)
    return objects


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Work in an empty folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def fault_in_error(call, expected, text, names):
    """Describe how a call's error differs from the expected error; return "" if it does not."""
    try:
        value = eval(call, names)
    except rm.RecometerError as error:
        message = str(error)
        if OPTION.search(message):
            return f"names an option: {message}"
        if type(error).__name__ != expected:
            return f"is a {type(error).__name__}: {message}"
        if text not in message or not ADVICE.search(message):
            return f"says: {message}"
        return ""
    except Exception as error:
        return f"raised {error!r}"
    return f"returned {value!r}"


@pytest.mark.filterwarnings("ignore::recometer.DataWarning")
@pytest.mark.parametrize("section", PYTHON)
def test_every_call_raises_the_expected_error(section, names, folder):
    faults = {}
    for number, (call, expected, text) in enumerate(PYTHON[section]["cases"]):
        names["folder"] = folder / str(number)
        names["folder"].mkdir()
        wrong = fault_in_error(call, expected, text, names)
        if wrong:
            faults[call] = wrong
    assert faults == {}


def test_every_command_prints_the_expected_error(folder):
    exec(COMMANDS["setup"], {"folder": folder})
    before = sorted(folder.rglob("*"))
    failed = {}
    for case, command, code, text in COMMANDS["cases"]:
        result = run_command(shlex.split(command), env={"COLUMNS": "200"})
        message = " ".join(re.sub("[│╭╮╰╯─]", " ", result.stderr).split())
        ours = isinstance(result.exception, SystemExit)
        if result.exit_code != code or not ours or text not in message or IN_PYTHON.search(message):
            failed[command] = case, result.exit_code, result.exception, message
    assert failed == {}
    assert sorted(folder.rglob("*")) == before, "a command left files behind"


def test_no_partial_output_remains(names, folder):
    tried = 0
    for section in PYTHON.values():
        for call, *_ in section["cases"]:
            if call.startswith(("result.save", "result.to_csv")):
                names["folder"] = folder
                with pytest.raises(rm.RecometerError):
                    eval(call, names)
                tried += 1
    assert tried > 10
    assert [path for path in folder.rglob("*") if path.is_file()] == []


def test_table_contains_every_public_name():
    calls = "\n".join(case[0] for section in PYTHON.values() for case in section["cases"])
    calls += TABLE["setup"]
    made_by_others = {
        *("Audit", "Comparison", "Convention", "DataWarning", "Evaluation", "Folds", "Leaderboard"),
        *("Fairness", "Preflight", "Ranks", "Reason", "TopLists", "UserFlag", "conventions"),
    }
    errors = {name for name in rm.__all__ if name.endswith("Error")}
    names_in_table = {name for name in rm.__all__ if f"rm.{name}" in calls}
    assert set(rm.__all__) - names_in_table - errors == made_by_others | {"__version__"}
    commands = {shlex.split(case[1])[0] for case in COMMANDS["cases"]}
    assert set(_app.COMMANDS) <= commands


def test_expected_messages_are_long_enough():
    """Short fragments of a message would also match other errors."""
    cases = [case for section in PYTHON.values() for case in section["cases"]]
    assert len(cases) >= 300
    assert [case for case in cases if len(case[-1]) < 12] == []
    assert len({case[0] for case in cases}) == len(cases)


def test_errors_have_a_reason_and_a_hint():
    with pytest.raises(rm.InputError) as caught:
        rm.evaluate(rm.Factors([[1.0]], [[1.0]]), None)
    error = caught.value
    assert f"{error.reason} Hint: {error.hint}" == str(error)
    assert error.hint.startswith("rm.evaluate(source, test)")
    assert rm.InputError("Nothing is left.").hint == ""


def test_long_values_are_truncated():
    for long in ({"ann": ["a" * 10**6 + "\ud800"]}, {"ann": ["a" * 10**6, 3]}):
        with pytest.raises(rm.RecometerError, match=r"aaa\.\.\.aaa") as caught:
            rm.Interactions.of(long)
        assert len(str(caught.value)) < 500


def test_maximum_length_file_name_leaves_no_temporary_file(names, folder):
    longest = "x" * (255 - len(".parquet")) + ".parquet"
    names["result"].save(longest)
    assert os.listdir(folder) == [longest]
    assert rm.load(longest)["rr"].tolist() == names["result"]["rr"].tolist()

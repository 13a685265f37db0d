"""Tests that commands exit with the documented codes and print to the right stream."""

from __future__ import annotations

import os
import runpy
import signal
import subprocess
import sys
import warnings

import pytest
from command_line import run_command

import recometer
from recometer import DataWarning, InputError
from recometer.cli import main

# Children of a background job ignore Ctrl-C, so this code restores the Ctrl-C handler.
INTERRUPTIBLE = (
    "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
    "from recometer.cli import main; main()"
)


def run(*arguments: str, module: str = "recometer") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", module, *arguments],
        capture_output=True,
        text=True,
        encoding="utf-8",
        env={**os.environ, "PYTHONIOENCODING": "utf-8"},
        check=False,
    )


def test_version_option_prints_the_version() -> None:
    result = run_command(["--version"])
    assert (result.exit_code, result.stdout) == (0, f"recometer {recometer.__version__}\n")


def test_help_lists_the_commands() -> None:
    result = run_command(["--help"])
    assert result.exit_code == 0
    assert "demo" in result.stdout
    assert "--data" in run_command(["demo", "--help"]).stdout


@pytest.mark.parametrize(
    "arguments", [[], ["nope"], ["--nope"], ["demo", "--nope"], ["demo", "--seed", "x"]]
)
def test_wrong_usage_exits_with_2(arguments: list[str]) -> None:
    assert run_command(arguments).exit_code == 2


def test_module_prints_errors_to_standard_error() -> None:
    """The module prints one line on standard error, and nothing on standard output."""
    result = run("show", "missing.parquet")
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr.startswith("Error: There is no file missing.parquet. Hint: ")
    assert len(result.stderr.splitlines()) == 1


def test_check_runs_as_a_module() -> None:
    result = run(module="recometer.check")
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.splitlines()[-1] == "All is well."


def test_check_module_accepts_the_options_of_the_command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["check.py", "--test", "test.csv"])
    with pytest.raises(SystemExit, match="2"):
        runpy.run_module("recometer.check", run_name="__main__")
    assert "there is no model to evaluate" in capsys.readouterr().err


def test_entry_point_is_main(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["recometer", "--version"])
    with pytest.raises(SystemExit, match="0"):
        main()
    assert capsys.readouterr().out == f"recometer {recometer.__version__}\n"


@pytest.mark.parametrize(
    ("raised", "code", "stderr"),
    [
        (InputError("Wrong. Hint: right."), 1, "Error: Wrong. Hint: right.\n"),
        (KeyboardInterrupt(), 130, "Interrupted.\n"),
    ],
)
def test_raised_errors_determine_the_exit_code(
    monkeypatch: pytest.MonkeyPatch, raised: BaseException, code: int, stderr: str
) -> None:
    def fails(*_: object) -> None:
        raise raised

    monkeypatch.setattr("recometer.cli.demo.resolve_threads", fails)
    result = run_command(["demo"])
    assert (result.exit_code, result.stdout, result.stderr) == (code, "", stderr)


def test_unexpected_errors_are_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("recometer.cli.demo.resolve_threads", fails)
    assert isinstance(run_command(["demo"]).exception, ZeroDivisionError)


def test_warnings_are_printed_to_standard_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def warns(*_: object) -> None:
        warnings.warn("Three rows repeat.", DataWarning, stacklevel=1)
        raise InputError("Wrong.")

    monkeypatch.setattr("recometer.cli.demo.resolve_threads", warns)
    result = run_command(["demo"])
    assert result.stderr == "Warning: Three rows repeat.\nError: Wrong.\n"


@pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX signals")
def test_ctrl_c_ends_the_demo_without_a_traceback() -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", INTERRUPTIBLE, "demo", "--metrics", "ndcg@1..50"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        env={**os.environ, "PYTHONIOENCODING": "utf-8"},
    )
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith("Ranking"):
            process.send_signal(signal.SIGINT)
            break
    _, stderr = process.communicate(timeout=20)
    assert process.returncode == 130
    assert stderr.endswith("Interrupted.\n")
    assert "Traceback" not in stderr


def test_only_the_requested_command_is_imported() -> None:
    script = """
import sys, recometer.cli
print({"typer", "rich"} & set(sys.modules))
try:
    recometer.cli.main(["--version"])
except SystemExit:
    commands = {f"recometer.cli.{name}" for name in sys.modules["recometer.cli._app"].COMMANDS}
    print(commands & set(sys.modules), "numpy" in sys.modules)
"""
    result = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert result.stdout == f"set()\nrecometer {recometer.__version__}\nset() False\n"


# A script that runs commands with standard output on a full device, first unbuffered (as with
# PYTHONUNBUFFERED) and then buffered.
FULL = """
import io, sys
from recometer.cli import main

for arguments, unbuffered in ((["metrics"], True), (["--help"], False), (["--version"], False)):
    full = open("/dev/full", "wb", buffering=0 if unbuffered else -1)
    sys.stdout = io.TextIOWrapper(full, "utf-8", write_through=unbuffered)
    try:
        main(arguments)
    except SystemExit as ended:
        sys.stderr.write(f"{ended.code}\\n")
"""


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_full_standard_output_exits_with_1() -> None:
    result = subprocess.run(
        [sys.executable, "-c", FULL], capture_output=True, text=True, encoding="utf-8", check=False
    )
    assert result.returncode == 0
    message = "Error: standard output cannot be written: No space left on device.\n1\n"
    assert result.stderr == 3 * message

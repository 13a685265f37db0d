"""Files that can be read only once: pipes, ``<(command)`` and /dev/stdin."""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess
import sys

import numpy as np
import pytest

from recometer.cli._app import app  # noqa: F401  (what is missing should fail here, not in bash)

pytestmark = pytest.mark.skipif(shutil.which("bash") is None, reason="<(command) is bash's")
METRICS = ("-m", "rr@2", "--format", "csv", "--quiet")


@pytest.fixture(autouse=True)
def folder(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    texts = {"test": "user,item\n0,1\n1,2\n", "run": "user,item,rank\n0,2,1\n0,1,2\n1,2,1\n1,0,2\n"}
    for name, text in texts.items():
        pathlib.Path(f"{name}.csv").write_text(text, encoding="utf-8")
    np.save("users.npy", np.eye(2))
    np.save("items.npy", np.eye(3)[:, :2])
    np.save("user_ids.npy", np.arange(2))
    np.save("item_ids.npy", np.arange(3))


def bash(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = " ".join([sys.executable, "-m", "recometer", "evaluate", *arguments])
    return subprocess.run(
        ["bash", "-c", command],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONIOENCODING": "utf-8", "COLUMNS": "300"},
    )


@pytest.mark.parametrize(
    "arguments",
    [
        ("--test", "<(cat test.csv)", "--run", "x=<(cat run.csv)"),
        ("--test", "<(gzip -c test.csv)", "--run", "x=run.csv"),
        ("--test", "/dev/stdin", "--run", "x=run.csv", "< test.csv"),
        ("--test", "-", "--run", "x=<(cat run.csv)", "< test.csv"),
    ],
)
def test_pipes_give_what_files_give(arguments: tuple[str, ...]) -> None:
    expected = bash("--test", "test.csv", "--run", "x=run.csv", *METRICS)
    found = bash(*arguments[:4], *METRICS, *arguments[4:])
    assert (found.returncode, found.stderr) == (0, "")
    assert found.stdout == expected.stdout


def test_factors_of_pipes_and_what_is_said() -> None:
    rest = "items.npy,user_ids.npy,item_ids.npy"
    expected = bash("--test", "test.csv", "--factors", f"x=users.npy,{rest}", *METRICS)
    given = ("--test", "<(cat test.csv)", "--factors", f"x=<(cat users.npy),{rest}")
    found = bash(*given, *METRICS)
    assert expected.returncode == 0, expected.stderr
    assert (found.returncode, found.stdout) == (0, expected.stdout)
    said = bash(*given, *METRICS[:-1]).stderr
    assert "test: /dev/fd/" in said
    assert "recometer-" not in said  # no copies


def test_pipes_that_cannot_be_read() -> None:
    empty = bash("--test", "<(true)", "--run", "run.csv", *METRICS)
    assert empty.returncode == 1
    assert "is empty. Hint: does the command that writes it fail?" in empty.stderr
    twice = bash("--test", "-", "--run", "/dev/stdin", *METRICS, "< test.csv")
    assert twice.returncode == 2
    assert "can be read only once" in twice.stderr

"""Tests of inputs that can be read only once: pipes, ``<(command)`` and /dev/stdin."""

from __future__ import annotations

import contextlib
import gzip
import os
import pathlib
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from xml.etree import ElementTree

import numpy as np
import pytest
from command_line import Result, run_command

import recometer as rm

pytestmark = pytest.mark.skipif(not os.path.exists("/dev/fd"), reason="needs /dev/fd")
METRICS = ("-m", "rr@2", "--format", "csv", "--quiet")
CSV = ("--format-in", "csv")


@pytest.fixture(autouse=True)
def folder(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    texts = {"test": "user,item\n0,1\n1,2\n", "run": "user,item,rank\n0,2,1\n0,1,2\n1,2,1\n1,0,2\n"}
    for name, text in texts.items():
        pathlib.Path(f"{name}.csv").write_text(text, encoding="utf-8")
    pathlib.Path("test.csv.gz").write_bytes(gzip.compress(texts["test"].encode()))
    pathlib.Path("nothing").write_bytes(b"")
    np.save("users.npy", np.eye(2))
    np.save("items.npy", np.eye(3)[:, :2])
    np.save("user_ids.npy", np.arange(2))
    np.save("item_ids.npy", np.arange(3))


def evaluate(*arguments: str, stdin: str | None = None) -> Result:
    content = None if stdin is None else pathlib.Path(stdin).read_bytes()
    command = ["evaluate", *arguments]
    return run_command(command, input=content, env={"COLUMNS": "300"})


@contextlib.contextmanager
def pipe(file: str) -> Iterator[str]:
    """Yield the name of a pipe with the contents of a small file, like ``<(cat file)``."""
    reading, writing = os.pipe()
    with open(writing, "wb") as stream:
        stream.write(pathlib.Path(file).read_bytes())
    try:
        yield f"/dev/fd/{reading}"
    finally:
        os.close(reading)


@contextlib.contextmanager
def named_pipe(file: str) -> Iterator[str]:
    """Yield the name of a pipe with a file's contents and extension."""
    path = pathlib.Path(f"piped_{file}")
    os.mkfifo(path)
    copy = threading.Thread(target=lambda: path.write_bytes(pathlib.Path(file).read_bytes()))
    copy.start()
    try:
        yield str(path)
    finally:
        copy.join()
        path.unlink()


@pytest.fixture
def expected() -> str:
    result = evaluate("--test", "test.csv", "--run", "x=run.csv", *METRICS)
    assert result.exit_code == 0, result.stderr
    return result.stdout


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_shell_pipes_give_the_same_output_as_files(expected: str) -> None:
    command = [sys.executable, "-m", "recometer", "evaluate", *METRICS, *CSV]
    command += ["--test", "<(gzip -c test.csv)", "--run", "x=-", "< run.csv"]
    result = subprocess.run(
        ["bash", "-c", " ".join(command)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONIOENCODING": "utf-8"},
    )
    assert (result.returncode, result.stderr, result.stdout) == (0, "", expected)


@pytest.mark.parametrize(
    ("test", "run", "stdin"),
    [
        ("test.csv", "run.csv", None),
        ("test.csv.gz", None, None),
        (None, None, "/dev/stdin"),
        (None, "run.csv", "-"),
    ],
)
def test_pipes_give_the_same_output_as_files(
    test: str | None, run: str | None, stdin: str | None, expected: str
) -> None:
    with contextlib.ExitStack() as opened:
        tests = stdin if test is None else opened.enter_context(pipe(test))
        runs = "run.csv" if run is None else opened.enter_context(pipe(run))
        arguments = ("--test", str(tests), "--run", f"x={runs}")
        result = evaluate(*arguments, *METRICS, *CSV, stdin=None if stdin is None else "test.csv")
    assert (result.exit_code, result.stderr, result.stdout) == (0, "", expected)


def test_factors_are_read_from_pipes() -> None:
    rest = "items.npy,user_ids.npy,item_ids.npy"
    expected = evaluate("--test", "test.csv", "--factors", f"x=users.npy,{rest}", *METRICS)
    assert expected.exit_code == 0, expected.stderr
    messages = []
    for options in (METRICS, METRICS[:-1]):
        with pipe("test.csv") as test, named_pipe("users.npy") as users:
            result = evaluate("--test", test, "--factors", f"x={users},{rest}", *options, *CSV)
        assert (result.exit_code, result.stdout) == (0, expected.stdout)
        messages.append(result.stderr)
    assert "test: /dev/fd/" in messages[1]
    assert "recometer-" not in messages[1]  # messages do not show the names of temporary copies


def test_empty_and_reused_pipes_are_refused() -> None:
    with pipe("nothing") as empty_pipe:
        empty = evaluate("--test", empty_pipe, "--run", "run.csv", *METRICS, *CSV)
    assert empty.exit_code == 1
    assert "is empty. Hint: did the command that writes it fail?" in empty.stderr
    result = evaluate("--test", "-", "--run", "/dev/stdin", *METRICS, *CSV, stdin="test.csv")
    assert result.exit_code == 2
    assert "can be read only once" in result.stderr


def test_pipes_without_an_extension_require_a_format(expected: str) -> None:
    with pipe("test.csv") as test:
        refused = evaluate("--test", test, "--run", "run.csv", *METRICS)
    assert refused.exit_code == 2
    assert f"--format-in: it is required, because the format of {test} cannot" in refused.stderr
    with named_pipe("test.csv") as test:
        result = evaluate("--test", test, "--run", "x=run.csv", *METRICS)
    assert (result.exit_code, result.stderr, result.stdout) == (0, "", expected)
    with pipe("users.npy") as users:
        model = f"x={users},items.npy,user_ids.npy,item_ids.npy"
        form = ("--format-in", "npy")
        result = evaluate("--test", "test.csv", "--factors", model, *METRICS, *form)
    assert result.exit_code == 0, result.stderr
    with named_pipe("test.csv") as test:
        without_option = evaluate("--test", test, "--run", "run.csv", *METRICS, *CSV)
        pathlib.Path(test).read_bytes()
    assert without_option.exit_code == 2
    assert "a file's name shows its format" in without_option.stderr
    wrong = evaluate("--test", "-", "--run", "run.csv", *METRICS, *CSV, stdin="users.npy")
    assert wrong.exit_code == 1


def test_saved_evaluations_in_pipes_are_refused() -> None:
    rm.evaluate(rm.Scores(np.eye(3)), np.eye(3), metrics="rr").save("a.parquet")
    with pipe("a.parquet") as path:
        result = run_command(["show", path])
    assert result.exit_code == 1
    assert "it is a pipe or a device; copy its contents to a file." in result.stderr


def test_factor_archive_is_read_from_a_pipe() -> None:
    np.savez("f.npz", user_factors=np.eye(2), item_factors=np.eye(3)[:, :2])
    id_files = "user_ids.npy,item_ids.npy"
    expected = evaluate("--test", "test.csv", "--factors", f"m=f.npz,{id_files}", *METRICS)
    with pipe("f.npz") as path:
        arguments = ("--test", "test.csv", "--factors", f"m={path},{id_files}", *METRICS)
        refused = evaluate(*arguments)
        result = evaluate(*arguments, "--format-in", "npz")
    assert refused.exit_code == 2
    assert "--format-in npz" in refused.stderr
    assert (result.exit_code, result.stdout) == (0, expected.stdout)


@pytest.mark.skipif(sys.platform != "linux", reason="needs file names that are not UTF-8")
def test_file_names_need_not_be_utf8() -> None:
    folder = os.fsdecode(b"f\xff")
    os.mkdir(folder)
    shutil.copy("run.csv", os.path.join(folder, os.fsdecode(b"m\xe9.csv")))
    run, saved, other_saved = (
        os.path.join(folder, os.fsdecode(name))
        for name in (b"m\xe9.csv", b"m\xe9.parquet", b"\xe8.parquet")
    )

    def run_command(*arguments: str, **environment: str) -> str:
        code = "from recometer.cli import main; main()"
        process = subprocess.run(
            [sys.executable, "-c", code, *arguments],
            capture_output=True,
            check=False,
            env={**os.environ, **environment},
        )
        assert process.returncode == 0, process.stderr
        return (process.stdout + process.stderr).decode()

    message = run_command(
        "evaluate", "--test", "test.csv", "--run", run, "-m", "rr", "--out", folder
    )
    assert r"written: f\udcff: m\udce9.parquet" in message
    shutil.copy(saved, other_saved)
    names = (saved, other_saved)
    for form in ("table", "json", "csv", "markdown", "html", "latex"):
        assert "udce9" in run_command("compare", *names, "--format", form)
    run_command("show", saved, PYTHONIOENCODING="ascii")
    run_command("report", *names, "--out", os.path.join(folder, "r.html"))
    run_command("report", *names, "--out", os.path.join(folder, "r.md"))
    gate = ("--baseline", os.fsdecode(b"\xe8"), "--gate", "rr >= -100%", "--undecided", "pass")
    run_command("compare", *names, *gate, "--junit", os.path.join(folder, os.fsdecode(b"\xe7.xml")))
    ElementTree.parse(os.path.join(folder, os.fsdecode(b"\xe7.xml")))
    split_folder = os.path.join(folder, os.fsdecode(b"s\xff"))
    run_command("split", run, "--what", "number=1", "--out", split_folder)
    assert "interactions" in run_command("audit", split_folder)

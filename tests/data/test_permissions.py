"""Tests of the errors for unreadable files and inaccessible folders."""

from __future__ import annotations

import contextlib
import os
import re
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from command_line import run_command

import recometer as rm

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX permissions")

NOBODY = 65534
TABLE = pl.DataFrame({"user_id": [1, 1, 2], "item_id": [2, 3, 2]})
Call = Callable[[Path], object]


@contextlib.contextmanager
def unprivileged() -> Iterator[None]:
    """Switch to an unprivileged user inside the block, because root can read every file."""
    user = os.geteuid()
    if user == 0:
        os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(user)


@pytest.fixture
def folder() -> Iterator[Path]:
    """Make a folder with files that every user can read, unlike pytest's temporary folders."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        TABLE.write_csv(folder / "x.csv")
        TABLE.write_parquet(folder / "x.parquet")
        np.save(folder / "x.npy", np.eye(2))
        (folder / "x.run").write_text("1 Q0 a 1 2.5 mine\n")
        result = rm.evaluate(rm.Lists({1: [2]}), {1: [2]}, metrics="rr")
        result.save(folder / "result.parquet")
        rm.split(TABLE, rm.split.Fraction(0.5)).save(folder / "split")
        (folder / "parts" / "more").mkdir(parents=True)
        TABLE.write_parquet(folder / "parts" / "one.parquet")
        TABLE.write_parquet(folder / "parts" / "more" / "two.parquet")
        yield folder


READERS: dict[str, tuple[str, Call]] = {
    "text": ("x.csv", rm.Interactions.of),
    "Parquet": ("x.parquet", rm.Interactions.of),
    "lists": ("x.parquet", rm.Lists),
    "scores": ("x.npy", rm.Scores),
    "a run": ("x.run", rm.Lists),
    "a result": ("result.parquet", rm.load),
}


@pytest.mark.parametrize("kind", READERS)
def test_unreadable_file_is_reported(folder: Path, kind: str) -> None:
    name, read = READERS[kind]
    read(folder / name)
    (folder / name).chmod(0)
    with unprivileged(), pytest.raises(rm.FileError, match=rf"{name} cannot be read.*chmod \+r\)"):
        read(folder / name)


@pytest.mark.parametrize("kind", READERS)
def test_folder_without_access_is_reported(folder: Path, kind: str) -> None:
    name, read = READERS[kind]
    closed = folder / "parts"
    (closed / name).write_bytes((folder / name).read_bytes())
    read(closed / name)
    closed.chmod(0)
    match = r"leads through a folder that you may not enter: .*chmod \+x\)"
    with unprivileged(), pytest.raises(rm.FileError, match=match):
        read(closed / name)
    closed.chmod(0o755)


def test_split_in_a_folder_without_access_is_reported(folder: Path) -> None:
    rm.Split.load(folder / "split")
    (folder / "split").chmod(0)
    with unprivileged(), pytest.raises(rm.FileError, match="that you may not enter"):
        rm.Split.load(folder / "split")
    (folder / "split").chmod(0o755)


@pytest.mark.parametrize("name", ["split.json", "train.parquet"])
def test_unreadable_file_of_a_split_is_reported(folder: Path, name: str) -> None:
    (folder / "split" / name).chmod(0)
    with unprivileged(), pytest.raises(rm.FileError, match=rf"{name} cannot be read.*chmod \+r\)"):
        rm.Split.load(folder / "split")


def test_missing_file_in_an_unlistable_folder_is_reported(folder: Path) -> None:
    (folder / "parts").chmod(0o711)
    with unprivileged(), pytest.raises(rm.FileError, match=r"no file .*none\.csv"):
        rm.Interactions.of(folder / "parts" / "none.csv")
    (folder / "parts").chmod(0o755)


def test_pattern_in_an_unlistable_folder_is_reported(folder: Path) -> None:
    (folder / "parts").chmod(0o711)
    with unprivileged(), pytest.raises(rm.FileError, match=r"parts cannot be listed: .*chmod \+rx"):
        rm.Interactions.of(folder / "parts" / "*.parquet")
    (folder / "parts").chmod(0o755)


@pytest.mark.parametrize(
    ("command", "match"),
    [
        (["evaluate", "--test", "{closed}", "--run", "m={folder}/x.csv"], r"listed: .*\+rx"),
        (["show", "{closed}"], r"listed: .*\+rx"),
        (["audit", "{closed}/split"], r"cannot be reached: .*chmod \+x"),
        (["show", "{closed}/result.parquet"], r"cannot be reached: .*chmod \+x"),
    ],
)
def test_commands_report_a_folder_without_access(
    folder: Path, command: list[str], match: str
) -> None:
    closed = folder / "parts"
    words = [word.format(closed=closed, folder=folder) for word in command]
    run_command(["show", str(folder / "x.csv")])  # import all modules while still root
    closed.chmod(0)
    with unprivileged():
        result = run_command(words)
    closed.chmod(0o755)
    assert isinstance(result.exception, SystemExit)
    assert re.search(match, result.output)


def test_unreadable_part_of_a_table_is_reported(folder: Path) -> None:
    with pytest.warns(rm.DataWarning, match="repeat a user-item pair"):
        assert len(rm.Interactions.of(folder / "parts").items) == 3
    (folder / "parts" / "more").chmod(0)
    with unprivileged(), pytest.raises(rm.FileError, match=r"more cannot be listed.*chmod \+rx\)"):
        rm.Interactions.of(folder / "parts")
    (folder / "parts" / "more").chmod(0o755)


@pytest.mark.skipif(not Path("/proc/self/mem").exists(), reason="needs /proc of Linux")
def test_error_while_reading_a_file_is_reported() -> None:
    with pytest.raises(rm.FileError, match="/proc/self/mem cannot be read: "):
        rm.Interactions.of("/proc/self/mem")

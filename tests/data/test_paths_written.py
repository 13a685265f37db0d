"""Texts that are written are there whole, or what was there before stays."""

from __future__ import annotations

import contextlib
import errno
import pathlib
import sys
from collections.abc import Callable, Iterator

import numpy as np
import pytest

import recometer as rm

RESULT = rm.evaluate(rm.Scores(np.eye(200)), np.eye(200), metrics="ndcg@1..5")
WRITERS: dict[str, Callable[[pathlib.Path], object]] = {
    "result": lambda folder: RESULT.save(folder / "result.parquet"),
    "table": lambda folder: RESULT.to_csv(folder / "table.csv"),
    "values": lambda folder: RESULT.to_json(folder / "values.json"),
    "split": lambda folder: rm.split(np.ones((200, 4)), rm.split.Fraction(0.5)).save(
        folder / "split"
    ),
}


@pytest.fixture
def board() -> rm.Leaderboard:
    result = rm.evaluate(rm.Lists({"ann": ["a"]}), {"ann": ["a"]}, metrics="recall@1")
    return rm.Leaderboard({"mine": result})


def test_a_disk_that_is_full_leaves_what_was_there(
    board: rm.Leaderboard, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "table.csv"
    board.to_csv(path)
    before = path.read_bytes()

    def half(self: pathlib.Path, content: bytes) -> int:
        with self.open("wb") as file:
            file.write(content[: len(content) // 2])
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(pathlib.Path, "write_bytes", half)
    with pytest.raises(rm.FileError, match="cannot be written: No space left on device"):
        board.to_csv(path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_a_long_name_is_written_and_a_device_is_not_replaced(
    board: rm.Leaderboard, tmp_path: pathlib.Path
) -> None:
    path = tmp_path / ("x" * 250 + ".csv")
    board.to_csv(path)
    assert list(tmp_path.iterdir()) == [path]
    board.to_csv("/dev/null")
    assert pathlib.Path("/dev/null").is_char_device()


@contextlib.contextmanager
def full_disk() -> Iterator[None]:
    """Let the system refuse all but small files."""
    import resource  # which Windows lacks

    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.skipif(sys.platform == "win32", reason="limits of processes")
@pytest.mark.parametrize("what", WRITERS)
def test_what_does_not_fit_on_the_disk_leaves_what_was_there(
    what: str, tmp_path: pathlib.Path
) -> None:
    def files() -> dict[pathlib.Path, bytes]:
        return {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}

    write = WRITERS[what]
    write(tmp_path)
    before = files()
    with full_disk(), pytest.raises(rm.FileError, match=r"(?i)cannot (be )?writ.*File too large"):
        write(tmp_path)
    assert files() == before
    write(tmp_path)

"""Texts that are written are there whole, or what was there before stays."""

from __future__ import annotations

import errno
import pathlib

import pytest

import recometer as rm


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

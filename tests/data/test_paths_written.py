"""Tests that output is written completely, or leaves an existing file unchanged."""

from __future__ import annotations

import contextlib
import errno
import os
import pathlib
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import polars as pl
import pytest

import recometer as rm
from recometer.comparing.gates import junit
from recometer.data import paths

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


def test_full_disk_leaves_the_earlier_file_unchanged(
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


def test_long_file_names_are_written_and_devices_are_not_replaced(
    board: rm.Leaderboard, tmp_path: pathlib.Path
) -> None:
    path = tmp_path / ("x" * 250 + ".csv")
    board.to_csv(path)
    assert list(tmp_path.iterdir()) == [path]
    board.to_csv("/dev/null")
    assert pathlib.Path("/dev/null").is_char_device()


POSIX = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs POSIX pipes and devices")
# Methods that write a single file, each with the extension that its file name needs.
ONE_FILE: dict[str, tuple[str, Callable[[pathlib.Path], object]]] = {
    "save": ("", RESULT.save),
    "to_csv": ("", RESULT.to_csv),
    "to_json": ("", RESULT.to_json),
    "flat": ("", RESULT.flat),
    "page": (".html", RESULT.report),
    "Markdown": (".md", RESULT.report),
    "chart": (".svg", lambda path: RESULT.report().save_chart(path, RESULT.report().charts[0])),
    "gates": (
        "",
        lambda path: junit(
            rm.compare({"a": RESULT, "b": RESULT}, baseline="a").gate("ndcg@1 >= -1"), path
        ),
    ),
}


@POSIX
@pytest.mark.parametrize("kind", ONE_FILE)
def test_output_can_be_a_pipe(kind: str, tmp_path: pathlib.Path) -> None:
    end, write = ONE_FILE[kind]
    path, plain = tmp_path / f"pipe{end}", tmp_path / f"plain{end}"
    os.mkfifo(path)
    received: list[bytes] = []
    reader = threading.Thread(target=lambda: received.append(path.read_bytes()))
    reader.start()
    write(path)
    reader.join()
    assert path.is_fifo()
    write(plain)
    # A report contains the time at which it was written, so the sizes may differ by two bytes.
    assert len(received[0]) == pytest.approx(plain.stat().st_size, abs=2)


@POSIX
@pytest.mark.parametrize("kind", ONE_FILE)
def test_pipe_without_a_reader_does_not_block(
    kind: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paths, "PATIENCE", 0.1)
    end, write = ONE_FILE[kind]
    path = tmp_path / f"pipe{end}"
    os.mkfifo(path)
    with pytest.raises(rm.FileError, match=r"no other program reads this pipe\. Hint: start"):
        write(path)
    assert list(tmp_path.iterdir()) == [path]
    assert path.is_fifo()


@POSIX
@pytest.mark.parametrize("kind", ONE_FILE)
def test_device_is_not_replaced(kind: str, tmp_path: pathlib.Path) -> None:
    end, write = ONE_FILE[kind]
    path = tmp_path / f"null{end}"
    try:
        os.mknod(path, 0o666 | stat.S_IFCHR, os.makedev(1, 3))
    except PermissionError:  # only root can create devices
        path.symlink_to("/dev/null")
    write(path)
    assert path.is_char_device()
    assert pathlib.Path("/dev/null").is_char_device()


@POSIX
@pytest.mark.parametrize("name", ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"])
def test_standard_output_may_be_a_file(name: str, tmp_path: pathlib.Path) -> None:
    if not os.path.exists(name):
        return  # only Linux has these paths
    code = (
        "import numpy as np, recometer as rm\n"
        "result = rm.evaluate(rm.Scores(np.eye(2)), np.eye(2), metrics='rr')\n"
        f"print('before'); result.to_csv({name!r}); print('after')"
    )
    out = tmp_path / "out.txt"
    with out.open("wb") as file:
        subprocess.run([sys.executable, "-c", code], stdout=file, check=True)
    lines = out.read_text().splitlines()
    assert (lines[0], lines[-1]) == ("before", "after")
    assert lines[1].startswith("metric,")
    assert list(tmp_path.iterdir()) == [out]


@POSIX
def test_split_does_not_replace_a_pipe(tmp_path: pathlib.Path) -> None:
    split = rm.split(np.ones((20, 4)), rm.split.Fraction(0.5))
    split.save(tmp_path)
    (tmp_path / "train.parquet").unlink()
    os.mkfifo(tmp_path / "train.parquet")
    with pytest.raises(
        rm.FileError, match=r"train\.parquet is not a regular file, so it is not replaced"
    ):
        split.save(tmp_path)
    assert (tmp_path / "train.parquet").is_fifo()


@contextlib.contextmanager
def full_disk() -> Iterator[None]:
    """Limit the size of files, so that writes fail as on a full disk."""
    import resource  # Windows does not have this module

    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.skipif(sys.platform == "win32", reason="needs limits on processes")
@pytest.mark.parametrize("kind", WRITERS)
def test_failed_write_leaves_every_earlier_file_unchanged(
    kind: str, tmp_path: pathlib.Path
) -> None:
    def files() -> dict[pathlib.Path, bytes]:
        return {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}

    write = WRITERS[kind]
    write(tmp_path)
    before = files()
    with full_disk(), pytest.raises(rm.FileError, match=r"(?i)cannot (be )?writ.*File too large"):
        write(tmp_path)
    assert files() == before
    write(tmp_path)


@pytest.mark.parametrize("kind", ONE_FILE)
def test_paths_may_be_bytes_that_are_not_utf8(kind: str, tmp_path: pathlib.Path) -> None:
    end, write = ONE_FILE[kind]
    name = b"\xff" if sys.platform == "linux" else b"x"
    path = os.fsencode(tmp_path) + b"/" + name + end.encode()
    write(path)  # type: ignore[arg-type]
    assert os.path.getsize(path) > 0
    if kind == "save":
        assert rm.load(path).mean() == RESULT.mean()  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", ["frame", "lazy", "interactions"])
def test_split_may_be_saved_in_a_folder_whose_name_is_not_utf8(
    kind: str, tmp_path: pathlib.Path
) -> None:
    folder = os.fsencode(tmp_path) + (b"/\xff" if sys.platform == "linux" else b"/x")
    table = pl.DataFrame({"user": [1, 1, 2, 2], "item": [1, 2, 1, 2], "time": [1, 2, 3, 4]})
    data: object = table
    if kind == "lazy":
        data = tmp_path / "data.parquet"
        table.write_parquet(tmp_path / "data.parquet")
    elif kind == "interactions":
        data = rm.Interactions.of(table)
    split = rm.split(data, rm.split.Last(1))  # type: ignore[call-overload]
    split.save(folder)
    loaded = rm.Split.load(folder)  # type: ignore[arg-type]
    assert loaded.table().records() == split.table().records()


class Elsewhere:
    """A path object whose `__fspath__` returns `answer`, or raises it if it is an exception."""

    def __init__(self, answer: object) -> None:
        self.answer = answer

    def __fspath__(self) -> object:
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


@pytest.mark.parametrize("answer", [3, TypeError("no"), ValueError("no"), OSError("no")])
def test_path_object_without_a_path_is_refused(answer: object) -> None:
    path: Any = Elsewhere(answer)
    for use in (
        rm.load, rm.Scores, rm.Interactions.of, rm.Lists, rm.Split.load, rm.Catalogue,
        RESULT.save, RESULT.to_csv, RESULT.report, RESULT.flat,
        lambda path: rm.Factors(path, np.eye(2)),
    ):  # fmt: skip
        with pytest.raises(rm.InputTypeError, match=r"path of .* is of type Elsewhere.* Hint"):
            use(path)


@POSIX
def test_errors_about_files_name_links_and_pipes(tmp_path: pathlib.Path) -> None:
    link, pipe = tmp_path / "link.csv", tmp_path / "pipe.csv"
    link.symlink_to(link)
    os.mkfifo(pipe)
    with pytest.raises(rm.FileError, match=r"it is a link to .*link\.csv', which does not exist"):
        rm.Interactions.of(link)
    for read in (rm.Interactions.of, rm.load):
        with pytest.raises(rm.FileError, match="a pipe or a device"):
            read(pipe)


def test_path_passed_as_biases_is_refused() -> None:
    with pytest.raises(rm.InputTypeError, match=r"item_bias of Factors is a path \('b\.npy'\)"):
        rm.Factors(np.eye(2), np.eye(2), item_bias="b.npy")  # type: ignore[arg-type]

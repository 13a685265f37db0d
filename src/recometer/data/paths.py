"""Checks the user's paths before reading or writing."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import sys
import time
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

from recometer.errors import FileError, InputTypeError, brief

PATIENCE = 5.0  # seconds to wait for another program to read a pipe
# The scheme of a URL. `Path` turns two slashes into one. A single letter is a Windows drive.
ADDRESS = re.compile(r"([a-z][a-z0-9+.-]+):/", re.IGNORECASE)


def as_path(path: str | bytes | os.PathLike[Any], noun: str) -> Path:
    """Return a path that the system can look up; the file need not exist.

    Bytes that are not UTF-8 are kept, as in `os.fsdecode`. `noun` names the file in messages, for
    instance ``"a saved evaluation"``. A path is refused if it is empty or impossible (with a NUL, a
    lone surrogate, or a part that is too long), if it leads through a folder that the user may not
    enter, or if it is an address on another system, such as ``s3://...``.
    """
    try:
        text = os.fsdecode(path)
    except Exception as error:  # `__fspath__` may raise anything
        failed = f", which cannot be converted to a path: {error!r}"
        note = "" if isinstance(error, TypeError) else failed
        raise InputTypeError(
            f"The path of {noun} is of type {type(path).__name__}{note}. Hint: pass a string or a "
            "pathlib.Path."
        ) from error
    if not text:
        raise FileError(f"The path of {noun} is empty. Hint: name a file or a folder.")
    try:
        os.stat(text)
    except ValueError as error:
        char = "a lone surrogate" if isinstance(error, UnicodeError) else "a NUL"
        raise FileError(
            f"The path of {noun} contains {char}, which no path can contain: {brief(text)}. Hint: "
            "use letters, digits and punctuation."
        ) from None
    except (FileNotFoundError, NotADirectoryError):
        # The caller reports a missing file.
        if address := ADDRESS.match(text):
            _refuse_address(address[1].lower(), text, noun)
    except PermissionError:
        raise FileError(
            f"The path of {noun} leads through a folder that you may not enter: {brief(text)}. "
            "Hint: ask its owner for permission to execute it (chmod +x)."
        ) from None
    except OSError as error:
        if error.errno == errno.ELOOP:
            return Path(text)  # the caller reports the error
        raise FileError(
            f"The path of {noun}, {brief(text)}, cannot be used: {error.strerror}. Hint: choose a "
            "shorter name, of at most 255 bytes."
        ) from None
    return Path(text)


def _refuse_address(scheme: str, text: str, noun: str) -> NoReturn:
    hint = {
        "file": f"leave out {scheme}://.",
        "dbfs": "write /dbfs/ in place of dbfs:/.",
    }.get(
        scheme,
        "copy the files to or from this machine; or pass a data frame: "
        f"polars.scan_parquet({text!r}) and pandas read such URLs.",
    )
    raise FileError(
        f"The path of {noun} is a URL, {brief(text)}, not the path of a file on this machine. "
        f"Hint: {hint}"
    )


def check_file(path: Path) -> None:
    """Raise an error if a file does not exist, or if its permissions forbid reading."""
    if path.is_file():
        check_readable(path)
        return
    import difflib  # only needed for messages

    if path.is_dir():
        raise FileError(f"{path} is not a file. Hint: name one file, not a folder.")
    if path.exists():
        raise FileError(
            f"{path} is not a file. Hint: it is a pipe or a device; copy its contents to a file."
        )
    if path.is_symlink():
        raise FileError(
            f"There is no file {path}: it is a link to {brief(os.readlink(path))}, which does not "
            "exist. Hint: remove the link, or create it again."
        )
    folder = path.parent
    names: list[str] = []
    with contextlib.suppress(OSError):
        names = os.listdir(folder)
    matches = difflib.get_close_matches(path.name, names, n=3)
    hint = (
        f"Did you mean {' or '.join(map(repr, matches))}?"
        if matches
        else f"Relative paths start at {Path.cwd()}."
    )
    raise FileError(f"There is no file {path}. Hint: {hint}")


def check_readable(path: Path) -> None:
    """Raise FileError if the permissions of an existing file forbid reading."""
    try:
        path.open("rb").close()
    except PermissionError as error:
        raise FileError(
            f"{path} cannot be read: {error.strerror}. Hint: ask its owner for permission to read "
            "it (chmod +r)."
        ) from None


def check_no_link(folder: Path) -> None:
    """Raise FileError if a folder inside the output folder is a link."""
    if folder.is_symlink():
        raise FileError(
            f"{folder} is a link to {brief(os.readlink(folder))}: nothing is written outside "
            f"{folder.parent}. Hint: remove the link, or choose an empty folder."
        )


def is_replaced(path: Path) -> bool:
    """Return whether writing to a path replaces the file.

    Pipes and devices are written to, not replaced. The same holds for files that are already open,
    such as those that ``/dev/stdout`` and ``/dev/fd/3`` stand for.
    """
    return _descriptor(path) is None and (path.is_file() or not path.exists())


def _descriptor(path: Path) -> int | None:
    """Return the descriptor of the open file that a path stands for, or None."""
    for _ in range(40):  # follow one link at a time
        path = Path(os.path.realpath(path.parent), path.name)
        if str(path.parent) in (f"/proc/{os.getpid()}/fd", "/dev/fd") and path.name.isdecimal():
            return int(path.name)
        try:
            path = path.parent / os.readlink(path)
        except OSError:
            return None
    return None


def write_atomic(path: Path, content: bytes) -> None:
    """Write a file completely, or leave an existing file unchanged.

    Pipes and devices are written to directly; see `is_replaced`.
    """
    replaces = is_replaced(path)
    # The temporary name is short, because the file's name may already have the maximum length.
    target = path.with_name(f".recometer-{os.urandom(8).hex()}") if replaces else path
    try:
        if replaces:
            target.write_bytes(content)
            target.replace(path)
        else:
            with _stream_to(path) as stream:
                stream.write(content)
    except OSError as error:
        has_no_reader = not replaces and error.errno == errno.ENXIO
        reason = "no other program reads this pipe" if has_no_reader else error.strerror
        raise FileError(
            f"{os.fspath(path)!r} cannot be written: {reason}. Hint: {_write_hint(error)}."
        ) from error
    finally:
        if replaces:
            with contextlib.suppress(OSError):
                target.unlink(missing_ok=True)


def _stream_to(path: Path) -> BinaryIO:
    """Open a pipe or a device; wait a few seconds for another program to read a pipe."""
    number = _descriptor(path)
    if number is not None:
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()  # so that earlier output comes first
        return os.fdopen(os.dup(number), "wb")
    end = time.monotonic() + PATIENCE
    while True:
        try:
            # Without O_NONBLOCK, opening a pipe without a reader would block forever.
            opened = os.open(path, os.O_WRONLY | getattr(os, "O_NONBLOCK", 0))
        except OSError as error:
            if error.errno != errno.ENXIO or time.monotonic() > end:
                raise
            time.sleep(0.02)
        else:
            break
    os.set_blocking(opened, True)
    return os.fdopen(opened, "wb")


def _write_hint(error: OSError) -> str:
    """Return a hint on what to do if a file cannot be written."""
    if error.errno in (errno.ENXIO, errno.EPIPE):
        return "start the program that reads the pipe first, and let it read everything"
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return "make room there, or choose another folder"
    return "the folder must exist and be writable, and the path must not be a folder"


def unreadable() -> tuple[type[BaseException], ...]:
    """Return the exceptions that reading may raise, including Polars' panic on damaged Parquet."""
    import polars as pl

    return OSError, pl.exceptions.PolarsError, pl.exceptions.PanicException

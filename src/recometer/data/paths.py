"""Paths that users give: checked before anything is read or written there."""

from __future__ import annotations

import errno
import os
import re
from pathlib import Path
from typing import NoReturn

from recometer.errors import FileError, InputTypeError, brief

# What a scheme stands before; a path makes one slash of two. One letter is a drive of Windows.
ADDRESS = re.compile(r"([a-z][a-z0-9+.-]+):/", re.IGNORECASE)


def as_path(path: str | os.PathLike[str], what: str) -> Path:
    """Return a path that the system can look up, whether there is a file or not.

    Parameters
    ----------
    path
    what
        What it is the path of, for messages: ``"a saved evaluation"``.

    Raises
    ------
    InputTypeError
        If it is not a path.
    FileError
        If the path is empty, or one that no file can have: with a NUL, a lone surrogate, or a part
        that is too long; if it leads through a folder that may not be entered; or if it is an
        address elsewhere, such as ``s3://...``.
    """
    if not isinstance(path, str | os.PathLike) or not isinstance(os.fspath(path), str):
        raise InputTypeError(
            f"The path of {what} is of type {type(path).__name__}. Hint: pass a string or a "
            "pathlib.Path."
        )
    text = os.fspath(path)
    if not text:
        raise FileError(f"The path of {what} is empty. Hint: name a file or a folder.")
    try:
        os.stat(text)
    except ValueError as error:
        why = "a lone surrogate" if isinstance(error, UnicodeError) else "a NUL"
        raise FileError(
            f"The path of {what} holds {why}, as no path can: {brief(text)}. Hint: use letters, "
            "digits and punctuation."
        ) from None
    except (FileNotFoundError, NotADirectoryError):
        # Whoever reads or writes says that there is no file.
        if address := ADDRESS.match(text):
            _refuse_address(address[1].lower(), text, what)
    except PermissionError:
        raise FileError(
            f"The path of {what} leads through a folder that you may not enter: {brief(text)}. "
            "Hint: ask its owner for the permission to execute it (chmod +x)."
        ) from None
    except OSError as error:
        if error.errno == errno.ELOOP:
            return Path(path)  # whoever reads or writes says so
        raise FileError(
            f"The path of {what} is {brief(text)}: {error.strerror}. Hint: choose a shorter name, "
            "of at most 255 bytes."
        ) from None
    return Path(path)


def _refuse_address(scheme: str, text: str, what: str) -> NoReturn:
    way_out = {
        "file": f"leave out {scheme}://.",
        "dbfs": "write /dbfs/ in place of dbfs:/.",
    }.get(
        scheme,
        f"copy the file to this machine, or pass a data frame: polars.scan_parquet({text!r}) and "
        "pandas read such addresses.",
    )
    raise FileError(
        f"The path of {what} is an address, {brief(text)}, and not that of a file on this machine. "
        f"Hint: {way_out}"
    )


def check_readable(path: Path) -> None:
    """Raise FileError if a file that is there may not be read."""
    try:
        path.open("rb").close()
    except PermissionError as error:
        raise FileError(
            f"{path} cannot be read: {error.strerror}. Hint: ask its owner for the permission to "
            "read it (chmod +r)."
        ) from None


def check_no_link(folder: Path) -> None:
    """Raise FileError if a folder inside of the one that was named for output is a link."""
    if folder.is_symlink():
        raise FileError(
            f"{folder} is a link to {brief(os.readlink(folder))}: nothing is written outside of "
            f"{folder.parent}. Hint: remove the link, or choose an empty folder."
        )


def write_whole(path: Path, content: bytes) -> None:
    """Write a file that is there whole or not at all, and replaces another one only then.

    Raises
    ------
    FileError
        If the file cannot be written.
    """
    # What is not a file, such as a pipe or /dev/stdout, is written to, not replaced.
    replaces = path.is_file() or not path.exists()
    # A name of its own: that of the file may be as long as names can be.
    written = path.with_name(f".recometer-{os.urandom(8).hex()}") if replaces else path
    try:
        written.write_bytes(content)
        if replaces:
            written.replace(path)
    except OSError as error:
        raise FileError(
            f"{os.fspath(path)!r} cannot be written: {error.strerror}. Hint: the folder must exist "
            "and be writable."
        ) from error
    finally:
        if replaces:
            written.unlink(missing_ok=True)


def unreadable() -> tuple[type[BaseException], ...]:
    """Return the exceptions of reading, including a panic, which damaged Parquet may cause."""
    import polars as pl

    return OSError, pl.exceptions.PolarsError, pl.exceptions.PanicException

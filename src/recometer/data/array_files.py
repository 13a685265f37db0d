"""Opens NumPy files as memory-mapped arrays, and SciPy files as sparse matrices."""

from __future__ import annotations

import contextlib
import mmap
import os
import sys
import tokenize
import zipfile
import zlib
from collections.abc import Iterable
from typing import Any

import numpy as np

from recometer.arrays import Array
from recometer.data.paths import as_path, check_file
from recometer.data.unpacking import check_archive
from recometer.errors import FileError

# Exceptions that NumPy and zipfile raise for files that are encrypted or hold no array.
DAMAGED: tuple[type[Exception], ...] = (OSError, EOFError, LookupError, RuntimeError, SyntaxError)
DAMAGED += (ArithmeticError, AttributeError, TypeError, ValueError)
DAMAGED += (zipfile.BadZipFile, zlib.error, tokenize.TokenError)


def open_path(array: Any, noun: str) -> Any:
    """Open the array file if a path is passed; return any other argument unchanged."""
    return open_array(array, noun) if isinstance(array, str | os.PathLike) else array


def open_array(path: str | os.PathLike[str], noun: str) -> Array:
    """Map the array in a .npy file into memory; `noun` names the array in messages."""
    file = as_path(path, noun)
    check_file(file)
    name = file.name.lower()
    if name.endswith(".npz"):
        raise FileError(
            f"{file} is an archive of arrays, which cannot be mapped into memory. Hint: "
            f"numpy.save({file.with_suffix('.npy').name!r}, numpy.load({file.name!r})[name]) "
            "writes one of them to a separate file."
        )
    if not name.endswith(".npy"):
        raise FileError(
            f"{file} is not a .npy file, but {noun} must be in one. Hint: numpy.save(path, array) "
            "writes one."
        )
    try:
        with np.errstate(over="ignore"):  # the shape in a damaged file may overflow
            array: Array = np.load(file, mmap_mode="r", allow_pickle=False)
    except DAMAGED as error:
        reason = str(error).rstrip(".")
        if "pickle" in reason:  # following NumPy's advice would run code in the file
            reason = "it is not in NumPy's .npy format"
        raise FileError(
            f"{file} cannot be read as a NumPy array: {reason}. Hint: numpy.save(path, array) "
            "writes one; arrays of Python objects are not read: numpy.save(path, array.tolist()) "
            "writes strings."
        ) from error
    if not isinstance(array, np.ndarray):  # the file is an archive despite its name
        raise FileError(
            f"{file} is an archive of arrays. Hint: rename it to {file.with_suffix('.npz').name}, "
            "or write a single array with numpy.save."
        )
    if array.dtype.kind == "U" and array.nbytes:
        # NumPy loads invalid characters from damaged files, and fails only when they are used.
        codes = array.ravel(order="K").view(array.dtype.byteorder + "u4")
        if codes.max() > sys.maxunicode:
            raise FileError(
                f"{file} cannot be read as a NumPy array of strings: it has the character "
                f"{codes.max():,}, but Unicode ends at {sys.maxunicode:,}. Hint: write the file "
                "again with numpy.save(path, array)."
            )
    return array


def open_sparse(path: str | os.PathLike[str]) -> Any:
    """Load a sparse matrix that was saved with ``scipy.sparse.save_npz``."""
    import scipy.sparse

    file = as_path(path, "data")
    check_file(file)
    try:
        check_archive(file)
        return scipy.sparse.load_npz(file)
    except FileError:
        raise
    except DAMAGED as error:
        raise FileError(
            f"{file} cannot be read as a sparse matrix: {str(error).rstrip('.')}. Hint: "
            "scipy.sparse.save_npz(path, matrix) writes one."
        ) from error


def lies_in_file(array: Array) -> bool:
    """Return whether an array is a memory-mapped file or part of one."""
    return _mapping(array) is not None


def _mapping(array: object) -> tuple[mmap.mmap, np.memmap[Any, Any] | None] | None:
    """Return the mapping behind an array and its np.memmap, if any; None for arrays in memory."""
    base: Any = array
    memmap = None
    while isinstance(base, np.ndarray | memoryview):
        memmap = base if isinstance(base, np.memmap) else memmap
        base = base.obj if isinstance(base, memoryview) else base.base
    return (base, memmap) if isinstance(base, mmap.mmap) else None


class MappedFiles:
    """Files that are mapped into memory as arrays and must not change while they are read.

    If a file shrinks, the system kills any process that reads beyond its new end. Changes are
    detected when a ``with`` block is entered or left, and whenever `check` is called. A check takes
    a few microseconds per file, and no time for arrays in memory.
    """

    def __init__(self, arrays: Iterable[object]) -> None:
        mappings = filter(None, map(_mapping, arrays))
        files = {id(mapped): _MappedFile(mapped, memmap) for mapped, memmap in mappings}
        self._files = list(files.values())

    def __reduce__(self) -> tuple[type[MappedFiles], tuple[tuple[()]]]:
        return MappedFiles, ((),)  # pickling for another process copies the arrays into memory

    def check(self, *_: object) -> None:
        """Raise FileError if any of the files has changed."""
        for file in self._files:
            if file.state() != file.before:
                raise FileError(
                    f"{file.name or 'A file'} was written to, or shrank, after it was mapped into "
                    "memory: its contents have changed. Hint: create the source again. Save a new "
                    "model under a new name, or delete the old file first: the system keeps its "
                    "contents for processes that still use it."
                )

    __enter__ = __exit__ = check


class _MappedFile:
    """A file that is mapped into memory, and its state when this object was created."""

    def __init__(self, mapped: mmap.mmap, memmap: np.memmap[Any, Any] | None) -> None:
        path = None if memmap is None else memmap.filename
        self.name = os.fspath(path) if isinstance(path, str | os.PathLike) else ""
        # If the mapping is writable, the modification time is unreliable, because data written to
        # the mapping reach the file late.
        self._timed = bool(self.name) and memmap is not None and memmap.mode in ("r", "c")
        self._mapped = mapped
        self.before: tuple[int, tuple[tuple[int, int], int] | None] = sys.maxsize, None
        self.before = self.state()

    def state(self) -> tuple[int, tuple[tuple[int, int], int] | None]:
        """Return the file's size and, if known, its identity and modification time."""
        size, changed = self.before
        with contextlib.suppress(OSError, ValueError):  # the mapping may have no file descriptor
            size = min(self._mapped.size(), size)
        if self._timed:
            with contextlib.suppress(OSError, ValueError):
                status = os.stat(self.name)
                file = status.st_dev, status.st_ino
                # Ignore the name if it now belongs to another file, or to none.
                if changed is None or changed[0] == file:
                    changed = file, status.st_mtime_ns
        return size, changed

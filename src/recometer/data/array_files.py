"""Arrays in NumPy's files, which are mapped into memory, and sparse matrices in SciPy's."""

from __future__ import annotations

import mmap
import os
import tokenize
import zipfile
import zlib
from typing import Any

import numpy as np

from recometer.arrays import Array
from recometer.data.files import check_file
from recometer.data.paths import as_path
from recometer.data.unpacking import check_archive
from recometer.errors import FileError

# What NumPy and zipfile raise for files that are not arrays, or are locked.
DAMAGED: tuple[type[Exception], ...] = (OSError, EOFError, LookupError, RuntimeError, SyntaxError)
DAMAGED += (TypeError, ValueError, zipfile.BadZipFile, zlib.error, tokenize.TokenError)


def in_place(given: Any, what: str) -> Any:
    """Return the array in the file that a path names; anything else is returned as it is.

    `what` it is stands in messages.
    """
    return open_array(given, what) if isinstance(given, str | os.PathLike) else given


def open_array(path: str | os.PathLike[str], what: str) -> Array:
    """Return the array in a .npy file, mapped into memory.

    Raises
    ------
    FileError
        If there is no such file, or it is not an array that can be mapped.
    """
    found = as_path(path, what)
    check_file(found)
    name = found.name.lower()
    if name.endswith(".npz"):
        raise FileError(
            f"{found} is an archive of arrays, which cannot be mapped into memory. Hint: "
            f"numpy.save({found.with_suffix('.npy').name!r}, numpy.load({found.name!r})[name]) "
            "writes one of them as a file of its own."
        )
    if not name.endswith(".npy"):
        raise FileError(
            f"{found} is not a .npy file, and {what} are read from these. Hint: numpy.save(path, "
            "array) writes one."
        )
    try:
        with np.errstate(over="ignore"):  # of a shape that no file has room for
            array: Array = np.load(found, mmap_mode="r", allow_pickle=False)
    except DAMAGED as error:
        raise FileError(
            f"{found} cannot be read as a NumPy array: {str(error).rstrip('.')}. Hint: "
            "numpy.save(path, array) writes one; arrays of Python objects are not read: "
            "numpy.save(path, array.tolist()) writes texts."
        ) from error
    if not isinstance(array, np.ndarray):  # of what is inside, not of the name
        raise FileError(
            f"{found} is an archive of arrays. Hint: call it {found.with_suffix('.npz').name}, or "
            "write a single array with numpy.save."
        )
    return array


def open_sparse(path: str | os.PathLike[str]) -> Any:
    """Return the sparse matrix that ``scipy.sparse.save_npz`` wrote.

    Raises
    ------
    FileError
        If there is no such file, or it holds something else.
    """
    import scipy.sparse

    found = as_path(path, "data")
    check_file(found)
    try:
        check_archive(found)
        return scipy.sparse.load_npz(found)
    except FileError:
        raise
    except DAMAGED as error:
        raise FileError(
            f"{found} cannot be read as a sparse matrix: {str(error).rstrip('.')}. Hint: "
            "scipy.sparse.save_npz(path, matrix) writes one."
        ) from error


def lies_in_file(array: Array) -> bool:
    """Tell whether an array is a memory-mapped file, or a part of one."""
    one: Any = array
    while isinstance(one, np.ndarray | memoryview):
        if isinstance(one, np.memmap):
            return True
        one = one.obj if isinstance(one, memoryview) else one.base
    return isinstance(one, mmap.mmap)

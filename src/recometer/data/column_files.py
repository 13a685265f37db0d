"""Columns of numbers in temporary files: what is larger than memory, and is mapped into it."""

from __future__ import annotations

import contextlib
import tempfile
import weakref
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from recometer.arrays import Array
from recometer.errors import FileError


class ColumnFile:
    """A column of numbers in a temporary file, in the folder that `tempfile` chooses.

    The file has no name where the system allows that, so that nothing is left of it however the
    process ends.

    Raises
    ------
    FileError
        If there is no such folder, or no space in it.
    """

    def __init__(self, dtype: npt.DTypeLike) -> None:
        self.dtype = np.dtype(dtype)
        self._end = 0  # in numbers
        with _said():
            self._file = tempfile.TemporaryFile(prefix="recometer-", buffering=0)  # noqa: SIM115
        self._close = weakref.finalize(self, self._file.close)

    def __len__(self) -> int:
        return self._end

    def add(self, numbers: Array) -> None:
        """Write numbers after those that are there."""
        self.write(self._end, numbers)

    def write(self, first: int, numbers: Array) -> None:
        """Write numbers from a place on."""
        self._end = max(self._end, first + len(numbers))
        if not len(numbers):
            return
        left = np.ascontiguousarray(numbers, self.dtype).data.cast("B")
        with _said():
            self._file.seek(first * self.dtype.itemsize)
            while left:
                left = left[self._file.write(left) :]

    def read(self, first: int, n: int) -> Array:
        """Return `n` numbers, beginning with the number at `first`, in memory."""
        found = np.empty(min(n, self._end - first), self.dtype)
        if len(found):
            left = found.data.cast("B")
            with _said():
                self._file.seek(first * self.dtype.itemsize)
                while left:
                    left = left[self._file.readinto(left) :]
        return found

    def mapped(self) -> Array:
        """Return all numbers as an array that lies in the file, which lasts as long as it."""
        if not self._end:
            return np.empty(0, self.dtype)
        with _said():
            return np.memmap(self._file, self.dtype, mode="r").view(np.ndarray)

    def close(self) -> None:
        """Remove the file; arrays that were mapped stay."""
        self._close()


@contextlib.contextmanager
def _said() -> Iterator[None]:
    """Say which folder has no space, or cannot be written to."""
    try:
        yield
    except OSError as error:
        raise FileError(
            f"Temporary files cannot be written to {_folder()}: {error.strerror or error}. Hint: "
            "the environment variable TMPDIR, or tempfile.tempdir, names a folder on a disk with "
            "more space."
        ) from error


def _folder() -> str:
    try:
        return tempfile.gettempdir()
    except OSError:
        return "any folder"

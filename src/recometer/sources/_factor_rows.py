"""Rows of factors that are brought into memory some at a time."""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from recometer.arrays import Array, Int64, slices

PIECE = 2**20  # bytes that are read at once where all rows pass by


class Rows:
    """Rows of a matrix, which may lie in a file: some at a time, in one dtype.

    Parameters
    ----------
    given : [n_rows, n_columns]
        Numbers of any dtype and strides.
    dtype
        What they are read as.
    """

    def __init__(self, given: Array, dtype: npt.DTypeLike) -> None:
        self._given = np.asarray(given)
        self.dtype: np.dtype[Any] = np.dtype(dtype)
        self.shape: tuple[int, ...] = given.shape
        self.ndim = given.ndim
        self.itemsize = self.dtype.itemsize

    def __len__(self) -> int:
        return len(self._given)

    def __getitem__(self, which: slice | Int64) -> Array:
        """Return some rows, as the kernel reads them; the same memory where that is possible."""
        return readable(self._given[which].astype(self.dtype, copy=False))

    @property
    def row_bytes(self) -> int:
        """The memory of a row in this dtype."""
        return self.shape[1] * self.itemsize

    @property
    def as_given(self) -> bool:
        """Whether rows that lie together need no copy to be read."""
        some = self._given[:1]
        return some.dtype == self.dtype and readable(some) is some

    @property
    def resident(self) -> bool:
        """Whether, besides, they are in memory and not in a file."""
        return self.as_given and not lies_in_file(self._given)

    def plain(self) -> Rows | Array:
        """Return the array where it needs no conversion, for what reads any array in place."""
        return self._given if self.as_given else self

    def pieces(self) -> Iterator[Array]:
        """Yield all rows in their order, some at a time, contiguous."""
        for piece in slices(len(self), PIECE // max(1, self.row_bytes)):
            yield np.ascontiguousarray(self[piece])


def readable(array: Array) -> Array:
    """Copy what the kernel cannot read as it lies: strides that are not whole elements."""
    strides_fit = all(stride % array.itemsize == 0 for stride in array.strides)
    return array if strides_fit and array.flags.aligned else array.copy()


def lies_in_file(array: Array) -> bool:
    """Tell whether an array is a memory-mapped file, or a part of one."""
    one: Any = array
    while isinstance(one, np.ndarray | memoryview):
        if isinstance(one, np.memmap):
            return True
        one = one.obj if isinstance(one, memoryview) else one.base
    return isinstance(one, mmap.mmap)

"""Ragged tables: the rows of user u are indptr[u]:indptr[u + 1]."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from recometer.arrays import Bool, Int64


def take(indptr: Int64, users: Int64) -> tuple[Int64, Int64]:
    """Return the table of some users alone.

    Parameters
    ----------
    indptr : int64 [n_users + 1]
    users : int64 [n_taken]
        -1 stands for a user without rows.

    Returns
    -------
    taken_indptr : int64 [n_taken + 1]
    rows : int64 [taken_indptr[-1]]
        Where the rows of these users lie in the whole table.
    """
    lengths = np.where(users < 0, 0, indptr[users + 1] - indptr[users])
    taken = np.zeros(len(users) + 1, np.int64)
    np.cumsum(lengths, out=taken[1:])
    rows: Int64 = np.repeat(indptr[users] - taken[:-1], lengths) + np.arange(taken[-1])
    return taken, rows


def users_of(indptr: Int64) -> Int64:
    """Return the user of each row."""
    return np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))


def offsets(keep: Bool, indptr: Int64) -> Int64:
    """Return the indptr of the rows that are kept."""
    if keep.all():
        return indptr
    kept = np.zeros(len(keep) + 1, np.int64)
    np.cumsum(keep, out=kept[1:])
    remaining: Int64 = kept[indptr]
    return remaining


def pairs(users: Int64, items: npt.NDArray[np.integer], n_items: int) -> Int64:
    """Return a number for each pair of a user and an item, ascending as the pairs do."""
    numbers: Int64 = users * np.int64(n_items) + items
    return numbers


def among(numbers: Int64, ascending: Int64) -> Bool:
    """Return which numbers are among others, which ascend."""
    if not len(ascending):
        return np.zeros(numbers.shape, bool)
    at = np.minimum(np.searchsorted(ascending, numbers), len(ascending) - 1)
    found: Bool = ascending[at] == numbers
    return found

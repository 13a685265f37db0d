"""Ragged tables: the rows of user u are indptr[u]:indptr[u + 1]."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from recometer.arrays import Bool, Int32, Int64

ROWS_AT_ONCE = 2**16  # that are looked through: they stay in the caches
FEW_ITEMS = 2**20


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
    lengths = _lengths(indptr, users)
    taken = indptr_of(lengths)
    rows: Int64 = np.repeat(indptr[users] - taken[:-1], lengths) + np.arange(taken[-1])
    return taken, rows


def _lengths(indptr: Int64, users: Int64) -> Int64:
    return np.where(users < 0, 0, indptr[users + 1] - indptr[users])


def indptr_of(lengths: Int64 | Bool) -> Int64:
    """Return the indptr of a table whose users have so many rows each."""
    indptr = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=indptr[1:])
    return indptr


def blocks(indptr: Int64, n_rows: int, n_users: int) -> list[slice]:
    """Cut the users into blocks of at most so many rows (or one user) and so many users."""
    found, start, end = [], 0, len(indptr) - 1
    while start < end:
        most = int(np.searchsorted(indptr, indptr[start] + n_rows, side="right")) - 1
        found.append(slice(start, min(end, start + n_users, max(start + 1, most))))
        start = found[-1].stop
    return found


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


def numbered(indptr: Int64, items: npt.NDArray[np.integer], n_items: int) -> Int64:
    """Return the number of the pair that each row of a table is; see `pairs`."""
    return pairs(users_of(indptr), items, n_items)


def find(
    indptr: Int64,
    items: npt.NDArray[np.integer],
    other_indptr: Int64,
    other_items: Int32,
    n_items: int,
    users: Int64 | None = None,
) -> Int64:
    """Find the rows of a table in another one: those of the same user and item.

    Parameters
    ----------
    indptr : int64 [n_users + 1]
    items : [n_rows]
        -1 for an item that the other table does not have.
    other_indptr, other_items
        The other table; items ascend within a user.
    n_items
        More than any item.
    users : int64 [n_users] or None
        Who each user is in the other table, -1 for nobody; None: the same.

    Returns
    -------
    int64 [n_rows]
        The row of the other table, -1 where there is none.
    """
    found = np.full(len(items), -1, np.int64)
    if not len(items) or not len(other_items):
        return found
    lengths = other_indptr if users is None else indptr_of(_lengths(other_indptr, users))
    # Pairs of few users are small numbers, which are searched faster.
    small = n_items < FEW_ITEMS
    number = np.dtype(np.int32 if small else np.int64)
    for block in blocks(lengths, ROWS_AT_ONCE, (2**31 - 1) // n_items if small else ROWS_AT_ONCE):
        rows = slice(indptr[block.start], indptr[block.stop])
        if users is None:
            there = other_indptr[block.start : block.stop + 1]
            taken, first = other_items[there[0] : there[-1]], int(there[0])
        else:
            there, at = take(other_indptr, users[block])
            taken = other_items[at]
        if not len(taken):
            continue
        user = np.arange(block.stop - block.start, dtype=number) * number.type(n_items)
        numbers = np.repeat(user, np.diff(there)) + taken
        wanted = np.repeat(user, np.diff(indptr[block.start : block.stop + 1]))
        wanted += items[rows].astype(number, copy=False)
        place = np.searchsorted(numbers, wanted)
        np.minimum(place, len(numbers) - 1, out=place)
        hit = (numbers[place] == wanted) & (items[rows] >= 0)
        found[rows] = np.where(hit, place + first if users is None else at[place], -1)
    return found

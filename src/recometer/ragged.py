"""Ragged tables: the rows of user u are indptr[u]:indptr[u + 1]."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

__all__ = ["take"]

Int64 = npt.NDArray[np.int64]


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

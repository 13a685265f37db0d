"""Passes over long columns: by blocks that stay in the caches, on all processors."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from recometer import _kernel
from recometer.errors import InternalError
from recometer.tasks import ROWS_PER_TASK, each_block, on_all_threads, resolve_threads

__all__ = ["chunks_of", "group", "narrow", "ordered", "place", "runs"]

Array = npt.NDArray[Any]
Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]
Float64 = npt.NDArray[np.float64]


def chunks_of(column: Any) -> list[Array] | None:
    """Return an integer column without missing entries piece by piece; None: it is none.

    In one piece, a column from a file would be in memory twice.
    """
    polars = sys.modules.get("polars")
    if polars is not None and isinstance(column, polars.Series):
        if not column.dtype.is_integer() or column.null_count():
            return None
        return [chunk.to_numpy() for chunk in column.get_chunks()]
    if isinstance(column, np.ndarray) and column.dtype.kind in "iu":
        return [column]
    return None


def narrow(chunks: Sequence[Array], n: int) -> tuple[Int32, int, int]:
    """Return integers as int32, with the lowest and the highest of them (0 and -1 of none).

    Where these do not fit into int32, the integers returned mean nothing.

    Parameters
    ----------
    chunks
        Their lengths add up to n. Of a single one that is int32 nothing is copied.
    """
    kept = len(chunks) == 1 and chunks[0].dtype == np.int32 and chunks[0].flags.c_contiguous
    out = chunks[0] if kept else np.empty(n, np.int32)
    start, ranges = 0, []
    for chunk in chunks:
        part = out[start : start + len(chunk)]

        def one(block: slice, chunk: Array = chunk, part: Int32 = part) -> tuple[int, int]:
            given = chunk[block]
            if not kept:
                part[block] = given
            return int(given.min()), int(given.max())

        ranges += each_block(len(chunk), one)
        start += len(chunk)
    lowest, highest = (low for low, _ in ranges), (high for _, high in ranges)
    return out, min(lowest, default=0), max(highest, default=-1)


def runs(array: Any) -> Int64:
    """Return where each run of equal values begins.

    Parameters
    ----------
    array : array or Polars series [n]
    """

    def one(block: slice) -> Int64:
        begin = max(block.start, 1)
        before, here = array[begin - 1 : block.stop - 1], array[begin : block.stop]
        new = before != here
        found: Int64 = np.flatnonzero(new if isinstance(new, np.ndarray) else new.to_numpy())
        found += begin
        return found

    first = np.zeros(min(len(array), 1), np.int64)
    starts: Int64 = np.concatenate([first, *each_block(len(array), one)])
    return starts


def ordered(column: Array, indptr: Int64, falling: bool) -> bool:
    """Return whether the values within each list strictly rise, or fall."""
    compare = np.less if falling else np.greater

    def one(block: slice) -> bool:
        begin = max(block.start, 1)
        holds: npt.NDArray[np.bool_] = compare(
            column[begin : block.stop], column[begin - 1 : block.stop - 1]
        )
        if holds.all():
            return True
        first, last = np.searchsorted(indptr, [begin, block.stop])
        holds[indptr[first:last] - begin] = True
        return bool(holds.all())

    return all(each_block(len(column), one))


def group(
    lists: Int32, n_lists: int, items: Int32, scores: Float64 | None
) -> tuple[Int64, Int32, Float64 | None]:
    """Bring the rows of each list together, in the order given.

    Parameters
    ----------
    lists : int32 [n]
        The list of each row.

    Returns
    -------
    indptr : int64 [n_lists + 1]
    items, scores : [n]
    """
    parts, counts, indptr = _count(lists, n_lists)
    next = np.cumsum(counts, axis=0) - counts + indptr[:-1]  # of each part, in every list
    grouped = np.empty_like(items)
    grouped_scores = None if scores is None else np.empty_like(scores)

    def one(number: int) -> None:
        rows = parts[number]
        own = None if scores is None else scores[rows]
        _kernel.group_rows(lists[rows], items[rows], own, next[number], grouped, grouped_scores)

    on_all_threads(one, range(len(parts)))
    return indptr, grouped, grouped_scores


def place(
    lists: Int32, n_lists: int, items: Int32, ranks: Int32, first: int
) -> tuple[Int64, Int32] | None:
    """Bring the rows of each list together, ordered by rank; cheaper than to group and sort.

    Returns
    -------
    indptr : int64 [n_lists + 1]
    items : int32 [n]
        Or None: the ranks of some list are not `first`, first + 1, and so on.
    """
    parts, _, indptr = _count(lists, n_lists)
    placed = np.full_like(items, -1)

    def one(rows: slice) -> bool:
        return _kernel.place_rows(lists[rows], items[rows], ranks[rows], first, indptr, placed)

    # A rank that is there twice leaves another place empty.
    fits = all(on_all_threads(one, parts)) and placed.min(initial=0) >= 0
    return (indptr, placed) if fits else None


def _count(lists: Int32, n_lists: int) -> tuple[list[slice], Int64, Int64]:
    """Cut the rows into a part per thread; return how many of each part are in each list."""
    n_parts = max(1, min(resolve_threads(None), len(lists) // max(n_lists, ROWS_PER_TASK)))
    bounds = [len(lists) * part // n_parts for part in range(n_parts + 1)]
    parts = [slice(begin, end) for begin, end in itertools.pairwise(bounds)]
    counts = np.zeros((n_parts, n_lists), np.int64)
    if not all(
        on_all_threads(lambda at: _kernel.count_rows(lists[parts[at]], counts[at]), range(n_parts))
    ):
        raise InternalError("A row belongs to no list.")
    indptr = np.zeros(n_lists + 1, np.int64)
    np.cumsum(counts.sum(0), out=indptr[1:])
    return parts, counts, indptr

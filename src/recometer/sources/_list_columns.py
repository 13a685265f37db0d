"""Passes over long columns: by blocks that stay in the caches, on all processors."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from recometer import _kernel, ragged
from recometer.arrays import Array, Bool, Int32, Int64, laid_out
from recometer.data.files import FileColumn
from recometer.data.tensors import is_a
from recometer.errors import InternalError
from recometer.tasks import ROWS_PER_TASK, a_part_each, each_block, on_all_threads


def chunks_of(column: Any) -> Iterable[Array]:
    """Return a column of numbers piece by piece; no piece if it holds no numbers.

    As a single piece, a column from a file would be in memory twice.
    """
    if isinstance(column, np.ndarray):
        return [column] if column.dtype.kind in "iuf" else []
    is_series = is_a(column, "polars", "Series")
    if not (is_series or isinstance(column, FileColumn)):
        return []
    # NumPy has no integers of 128 bits.
    wide = str(column.dtype).endswith("128")
    if wide or not (column.dtype.is_integer() or column.dtype.is_float()):
        return []
    pieces = column.get_chunks() if is_series else column.pieces()
    return (piece.to_numpy() for piece in pieces)


def narrow(column: Any) -> tuple[Int32, int, int] | None:
    """Return integers as int32, with the lowest and the highest of them (0 and -1 if empty).

    If they do not fit into int32, the returned integers have no meaning. An array that is
    int32 already is not copied. None if the column holds no integers, or entries are missing.
    """
    if isinstance(column, np.ndarray) and column.dtype == np.int32 and column.flags.c_contiguous:
        out, kept = column, True
    else:
        out, kept = np.empty(len(column), np.int32), False
    start, ranges = 0, []
    for chunk in chunks_of(column):
        if chunk.dtype.kind not in "iu":
            return None
        part = out[start : start + len(chunk)]

        def one(block: slice, chunk: Array = chunk, part: Int32 = part) -> tuple[int, int]:
            given = chunk[block]
            if not kept:
                part[block] = given
            return int(given.min()), int(given.max())

        ranges += each_block(len(chunk), one)
        start += len(chunk)
    if start < len(column):
        return None
    lowest, highest = (low for low, _ in ranges), (high for _, high in ranges)
    return out, min(lowest, default=0), max(highest, default=-1)


def runs(array: Any) -> Int64:
    """Return where each run of equal values of an array or a Polars series begins."""

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
        holds: Bool = compare(column[begin : block.stop], column[begin - 1 : block.stop - 1])
        if holds.all():
            return True
        first, last = np.searchsorted(indptr, [begin, block.stop])
        holds[indptr[first:last] - begin] = True
        return bool(holds.all())

    return all(each_block(len(column), one))


def group(lists: Int32, n_lists: int, pieces: Iterable[Array], dtype: type) -> tuple[Int64, Array]:
    """Bring the rows of each list together, in the order given.

    `lists` is the list that each row belongs to, `pieces` are the parts of a column, and `dtype`
    (int32 or float64) is the dtype of the result. Returns indptr and the grouped column.
    """
    indptr = ragged.indptr_of(_count(lists, n_lists)[1].sum(0))
    grouped: Array = np.empty(len(lists), dtype)
    start, first = 0, indptr[:-1]
    for piece in pieces:
        values: Array = laid_out(piece, dtype)
        first = _group_piece(lists[start : start + len(values)], values, first, grouped)
        start += len(values)
    return indptr, grouped


def _group_piece(lists: Int32, values: Array, first: Int64, out: Array) -> Int64:
    """Write some rows into their lists, from `first` on; return where the next rows go."""
    parts, counts = _count(lists, len(first))
    next = np.cumsum(counts, axis=0) - counts + first  # where each part begins in every list

    def one(part: int) -> None:
        rows = parts[part]
        _kernel.group_rows(lists[rows], values[rows], next[part], out)

    on_all_threads(one, range(len(parts)))
    after: Int64 = next[-1]
    return after


def join(pieces: Iterable[Array], n: int) -> Array:
    """Join pieces of n rows into one float64 array; return a single piece unchanged."""
    if isinstance(pieces, list):
        whole: Array = pieces[0]
        return whole
    joined, start = np.empty(n), 0
    for piece in pieces:
        joined[start : start + len(piece)] = piece
        start += len(piece)
    return joined


def place(
    lists: Int32, n_lists: int, items: Int32, ranks: Int32, first: int
) -> tuple[Int64, Int32] | None:
    """Bring the rows of each list together, ordered by rank; cheaper than to group and sort.

    Returns indptr and items, or None if the ranks of a list are not `first`, first + 1, and so on.
    """
    parts, counts = _count(lists, n_lists)
    indptr = ragged.indptr_of(counts.sum(0))
    placed = np.empty_like(items)
    each_block(len(placed), lambda block: placed[block].fill(-1))

    def one(rows: slice) -> None:
        _kernel.place_rows(
            list=lists[rows],
            items=items[rows],
            places=ranks[rows],
            first=first,
            indptr=indptr,
            sorted_items=placed,
        )

    on_all_threads(one, parts)
    # A rank that is repeated or out of range leaves a place empty.
    fits = placed.min(initial=0) >= 0
    return (indptr, placed) if fits else None


def _count(lists: Int32, n_lists: int) -> tuple[list[slice], Int64]:
    """Cut the rows into a part per thread; return how many of each part are in each list."""
    parts = a_part_each(len(lists), max(n_lists, ROWS_PER_TASK))
    counts = np.zeros((len(parts), n_lists), np.int64)

    def one(part: int) -> bool:
        return _kernel.count_rows(lists[parts[part]], counts[part])

    if not all(on_all_threads(one, range(len(parts)))):
        raise InternalError("A row belongs to no list.")
    return parts, counts

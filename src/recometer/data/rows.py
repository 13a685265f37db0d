"""Reads rows of interactions from any kind of data."""

from __future__ import annotations

import copy
import dataclasses
import itertools
import os
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from recometer import _kernel
from recometer.arrays import Array, Float64, Int64
from recometer.data import files
from recometer.data.array_files import open_sparse
from recometer.data.cells import Separator, check_separator, check_single, split_cells
from recometer.data.columns import Columns, find_columns, refuse_columns, warn_of_values
from recometer.data.frames import (
    flat_dict,
    flatten,
    holds_lists,
    is_array,
    is_column,
    is_frame,
    numeric_columns,
    open_frame,
    rereadable,
    times,
)
from recometer.data.ids import as_ids, encode, encode_distinct, show
from recometer.data.numbers import as_array, extent, numbers, plain
from recometer.data.tensors import is_a, is_sparse, is_tensor, to_scipy
from recometer.errors import FileError, InputError, InputTypeError, argument_text, brief, warn
from recometer.ragged import users_of
from recometer.tasks import on_all_threads

LARGEST_RATING = 10  # two rows of larger integers are probably an edge_index, not a matrix

COLUMNS = ("user", "item", "separator")  # options that only apply to tables
MAX_NUMBER = 2**31 - 1  # the maximum number of users, and of items
ROWS_AT_ONCE = 2**22  # rows that a thread checks at once, which takes a millisecond

SUPPORTED = (
    "a SciPy sparse matrix, a NumPy array of shape [n_users, n_items], a data frame (Polars, "
    "pandas, Arrow, DuckDB), a dict {user: {item: value}} or {user: [items]}, an edge_index of "
    "shape [2, n_edges] with n_users= and n_items=, or the path of a Parquet, CSV, TSV, TREC qrels "
    "or .npz file"
)


class Options(NamedTuple):
    """The options of `Interactions.of` that say how to read the data."""

    user: object = None
    item: object = None
    value: Any = None
    time: Any = None
    n_users: int | None = None
    n_items: int | None = None
    item_offset: int = 0
    user_ids: object = None
    item_ids: object = None
    separator: Separator = None
    argument: str | None = ""  # see `warn_of_values`; None suppresses its warnings
    warn_sums: bool = True  # whether to warn that the values of repeated pairs were summed

    def refuse(self, noun: str, *names: str) -> None:
        """Refuse options that do not apply to the data."""
        for name in names:
            if getattr(self, name) is not None and (name != "item_offset" or self.item_offset):
                raise InputError(f"{name}= does not apply to {noun}. Hint: leave it out.")

    def size(self) -> tuple[int, int] | None:
        """Return (n_users, n_items) if users and items are positions, otherwise None."""
        if self.n_users is None and self.n_items is None:
            self.refuse("data whose items are ids (no n_users= and n_items=)", "item_offset")
            return None
        if self.n_users is None or self.n_items is None:
            raise InputError("n_users= and n_items= go together. Hint: pass both, or neither.")
        for name in ("n_users", "n_items", "item_offset"):
            number = getattr(self, name)
            is_integer = isinstance(number, int | np.integer) and not isinstance(number, bool)
            if not is_integer or not 0 <= number <= MAX_NUMBER:
                raise InputError(
                    f"{name}={brief(number)} must be a whole number from 0 to {MAX_NUMBER:,}."
                )
        return int(self.n_users), int(self.n_items)


OPTIONS = tuple(name for name in Options._fields if name not in ("argument", "warn_sums"))


@dataclasses.dataclass
class Rows:
    """Rows of interactions. If `indptr` is set, the rows are sorted and `users` is not needed."""

    users: Array | None
    items: Array
    n_users: int
    n_items: int
    values: Float64 | None = None
    times: Array | None = None
    user_ids: Array | None = None
    item_ids: Array | None = None
    indptr: Int64 | None = None
    columns: Columns | None = None
    value_range: tuple[float, float] | None = None  # range of the values, if it is known

    def unsorted(self) -> Rows:
        """Return the same rows with `users` instead of `indptr`."""
        if self.indptr is None:
            return self
        return dataclasses.replace(self, users=users_of(self.indptr), indptr=None)


def read_rows(data: object, options: Options) -> Rows:
    """Read data of any kind that `Interactions.of` accepts, except `Interactions` objects."""
    rows = _read(data, options)
    if rows.user_ids is not None:
        options.refuse("data with ids", "user_ids", "item_ids")
    sides = (("user", options.user_ids, rows.n_users), ("item", options.item_ids, rows.n_items))
    for name, ids, n in sides:
        if ids is None:
            continue
        codes, distinct = encode_distinct(ids, n, name)
        changes = {f"{name}_ids": distinct}
        if not (codes[1:] > codes[:-1]).all():
            rows = rows.unsorted()
            changes[f"{name}s"] = codes[getattr(rows, f"{name}s")]
        rows = dataclasses.replace(rows, **changes)  # type: ignore[arg-type]
    return rows


def _read(data: Any, options: Options) -> Rows:
    if type(data) is np.ndarray and data.dtype.kind != "V":  # other kinds need no conversion
        return _from_array(data, options)
    if isinstance(data, str | os.PathLike):
        if str(data).lower().endswith(".npz"):
            return _from_sparse(open_sparse(data), options)
        trec_kind = files.kind_of(data)
        if trec_kind == "run":
            raise FileError(
                f"{os.fspath(data)} is a TREC run, which contains recommendations. Hint: "
                "rm.Lists(path) reads it; interactions are qrels, with four fields."
            )
        if trec_kind == "qrels":
            options.refuse("qrels", *COLUMNS, "value", "time")
            rows = _from_frame(files.read_qrels(data), options)
            return dataclasses.replace(rows, columns=None)
        columns = {name: getattr(options, name) for name in ("user", "item", "value", "time")}
        chosen, frame = files.read_file(data, **columns, argument=options.argument)
        changes: dict[str, Any] = {key: name or False for key, name in chosen._asdict().items()}
        return _from_frame(frame, options._replace(**changes))
    if is_tensor(data) and is_sparse(data):
        return _from_sparse(to_scipy(data), options)
    if is_a(data, "scipy.sparse", "sparray", "spmatrix"):
        return _from_sparse(data, options)
    if isinstance(data, Mapping):
        return _from_dict(data, options)
    if is_array(data):
        # A masked entry is not an interaction.
        return _from_array(np.asarray(np.ma.filled(as_array(data, "The matrix"), 0)), options)
    if is_frame(data):
        return _from_frame(data, options)
    if is_column(data):
        raise InputTypeError(
            f"Interactions cannot be read from one column ({type(data).__name__}). Hint: pass a "
            "data frame with a column of users and one of items; series.reset_index() converts a "
            "pandas Series whose index holds them."
        )
    raise InputTypeError(
        f"Interactions cannot be read from {type(data).__name__}. Hint: pass {SUPPORTED}."
    )


def _from_frame(data: Any, options: Options) -> Rows:
    check_separator(options.separator)
    data = rereadable(data)
    names, fetch = open_frame(data)
    columns = find_columns(
        names, user=options.user, item=options.item, value=options.value, time=options.time
    )
    if options.argument is not None and options.value is None:
        warn_of_values(columns, lambda: numeric_columns(data, booleans=True), options.argument)
    subset = [name for name in columns if name is not None]
    series = dict(zip(subset, fetch(subset), strict=True))
    item_noun = f"item ids (column {columns.item!r})"
    series[columns.item] = split_cells(series[columns.item], options.separator, item_noun)
    lengths = flatten(series, columns) if holds_lists(series[columns.item]) else None
    values = moments = None
    if columns.value is not None:
        hint = f"or pass {argument_text('value', False)} if it contains something else"
        values = numbers(plain(series[columns.value]), f"values (column {columns.value!r})", hint)
    if columns.time is not None:
        moments = times(series[columns.time], f"times (column {columns.time!r})")[0]
    user_noun = f"user ids (column {columns.user!r})"
    rows = _numbered(series[columns.user], user_noun, series[columns.item], item_noun, options)
    if lengths is not None:
        assert rows.users is not None
        rows.users = np.repeat(rows.users, lengths)
    rows.values, rows.times, rows.columns = values, moments, columns
    return rows


def _numbered(users: Any, user_noun: str, items: Any, item_noun: str, options: Options) -> Rows:
    """Return rows without values; users and items are ids, or positions if `n_users` is passed."""
    size = options.size()
    if size is None:
        users, user_ids = encode(users, user_noun)
        items, item_ids = encode(items, item_noun)
        check_single(item_ids, item_noun, options.separator)
        sizes = len(user_ids), len(item_ids)
        return Rows(users, items, *sizes, user_ids=user_ids, item_ids=item_ids)
    return Rows(
        as_positions(as_ids(users, user_noun), size[0], 0, "user"),
        as_positions(as_ids(items, item_noun), size[1], options.item_offset, "item"),
        *size,
    )


def _from_dict(data: Mapping[Any, Any], options: Options) -> Rows:
    refuse_columns(data)
    options.refuse("a dict of users", "user", "item", "value", "time")
    expected = "a dict {item: value} for every user, or a list, set or array of items"
    keys, flat, lengths, entries = flat_dict(data, (str, bytes), "items", expected)
    values = None if entries is None else numbers(entries, "values")
    rows = _numbered(keys, "user ids", flat, "item ids", options)
    assert rows.users is not None
    rows.users, rows.values = np.repeat(rows.users, lengths), values
    return rows


def _from_sparse(matrix: Any, options: Options) -> Rows:
    options.refuse("a sparse matrix", *COLUMNS, "value", "time", "item_offset")
    n_users, n_items = _matrix_shape(matrix.shape, options)
    noun = "values of the sparse matrix"
    if matrix.format == "csr":
        indptr = matrix.indptr.astype(np.int64, copy=False)
        _check_csr(matrix, indptr)
        n = int(indptr[-1])
        items, entries = matrix.indices[:n], matrix.data[:n]
        values = numbers(entries, noun)
        rows = Rows(None, items, n_users, n_items, values, indptr=indptr)
        if values is not None and entries.dtype != object:
            rows.value_range = extent(entries)  # `entries` usually take half the memory of `values`
        if ascending(indptr, items, n_items):
            return rows
        _check_range(items, n_items, 0, "item", "entry")
        return rows.unsorted()
    if matrix.format in ("csc", "bsr", "dia") and matrix.data.dtype == object:
        # SciPy cannot convert object matrices to another format.
        matrix = copy.copy(matrix)
        matrix.data = numbers(matrix.data, noun)
    if matrix.format == "lil" and [*map(len, matrix.rows)] != [*map(len, matrix.data)]:
        raise _corrupt(matrix, "a row has different numbers of columns and values")
    try:
        coo = matrix.tocoo(copy=False)
        users, items, entries = coo.row, coo.col, coo.data
    except (IndexError, ValueError) as error:
        raise _corrupt(matrix, str(error)) from error
    if not len(users) == len(items) == len(entries):
        raise _corrupt(
            matrix,
            f"{len(users):,} rows, {len(items):,} columns and {len(entries):,} values",
        )
    _check_range(users, n_users, 0, "user", "entry")
    _check_range(items, n_items, 0, "item", "entry")
    if matrix.format in ("bsr", "dia"):
        # These formats pad with zeros, which cannot be distinguished from stored zeros.
        stored = entries != 0
        users, items, entries = users[stored], items[stored], entries[stored]
    return Rows(users, items, n_users, n_items, numbers(entries, noun))


def _check_csr(matrix: Any, indptr: Int64) -> None:
    """Refuse a matrix with inconsistent arrays; SciPy checks matrices only when it creates them."""
    indices, data = matrix.indices, matrix.data
    if not indices.ndim == data.ndim == indptr.ndim == 1:
        raise _corrupt(matrix, "arrays of several dimensions")
    if len(indptr) != matrix.shape[0] + 1 or indptr[0] != 0 or (np.diff(indptr) < 0).any():
        raise _corrupt(
            matrix,
            f"indptr must have {matrix.shape[0] + 1:,} entries that start at 0 and do not decrease",
        )
    if indptr[-1] > min(len(indices), len(data)):
        raise _corrupt(
            matrix,
            f"indptr ends with {indptr[-1]:,}, but there are {len(indices):,} indices and "
            f"{len(data):,} values",
        )


def _corrupt(matrix: Any, reason: str) -> InputError:
    return InputError(
        f"The arrays of the sparse matrix ({type(matrix).__name__}) do not fit together: {reason}. "
        "Hint: create the matrix again, for instance with scipy.sparse.coo_array((values, (rows, "
        "columns)), shape)."
    )


def _from_array(array: Array, options: Options) -> Rows:
    has_size = options.n_users is not None or options.n_items is not None
    if has_size and array.ndim == 2 and len(array) == 2 and array.dtype.kind in "iu":
        return _from_edges(array, options)
    if array.dtype.names is not None:
        raise InputTypeError(
            f"A structured array of shape {array.shape} cannot be read. Hint: array.ravel() turns "
            "it into a table with one row per record."
        )
    options.refuse("a dense matrix", *COLUMNS, "value", "time", "item_offset")
    n_users, n_items = _matrix_shape(array.shape, options)
    if n_users == 2 and array.dtype.kind in "iu" and array.max(initial=0) > LARGEST_RATING:
        warn(
            f"An array of integers of shape [2, {n_items:,}], with values up to {array.max():,}, "
            "was read as a matrix of 2 users. Hint: if it is an edge_index, pass n_users= and "
            "n_items=; if it is a matrix, pass array.astype(float)."
        )
    flat = array.reshape(-1)
    entries = np.flatnonzero(flat)  # many times faster than `nonzero` in two dimensions
    starts = np.arange(n_users + 1) * n_items
    indptr = np.searchsorted(entries, starts)
    items = entries - np.repeat(starts[:-1], np.diff(indptr))
    values = None if flat.dtype == bool else numbers(flat[entries], "values of the matrix")
    return Rows(None, items, n_users, n_items, values, indptr=indptr)


def _from_edges(index: Array, options: Options) -> Rows:
    options.refuse("an edge_index", *COLUMNS)
    size = options.size()
    assert size is not None
    users = as_positions(index[0], size[0], 0, "user", "edge")
    items = as_positions(index[1], size[1], options.item_offset, "item", "edge")
    rows = Rows(users, items, *size)
    if options.value is not None:
        rows.values = numbers(_per_edge("value", options.value, users.shape), "entries of value=")
    if options.time is not None:
        rows.times = times(_per_edge("time", options.time, users.shape), "entries of time=")[0]
    return rows


def _per_edge(name: str, entries: Any, shape: tuple[int, ...]) -> Array:
    array = as_array(entries, f"{name}=")
    if array.shape != shape:
        raise InputError(
            f"{name}= must be an array with an entry per edge, of shape {shape}, "
            f"found shape {array.shape}."
        )
    return array


def ascending(indptr: Int64, items: Array, n_items: int) -> bool:
    """Return whether each user's items are strictly ascending and between 0 and n_items - 1.

    `indptr` must start at 0 and never decrease.
    """
    if items.dtype not in (np.int32, np.int64) or not items.flags.c_contiguous:
        items = np.ascontiguousarray(items, np.int64)
    ends = np.searchsorted(indptr, np.arange(ROWS_AT_ONCE, len(items), ROWS_AT_ONCE))

    def ascend(users: tuple[int, int]) -> bool:
        first, last = users
        return _kernel.rows_ascend(
            indptr=indptr, items=items, n_items=n_items, first=first, last=last
        )

    parts = itertools.pairwise([0, *ends.tolist(), len(indptr) - 1])
    return all(on_all_threads(ascend, list(parts)))


def user_positions(positions: npt.ArrayLike, n_users: int) -> Int64:
    """Check a selection of users (positions, or a mask of all users); return their positions."""
    chosen = np.asarray(as_array(positions, "Positions of users"))
    if chosen.dtype == bool and chosen.ndim:
        if chosen.shape != (n_users,):
            raise InputError(
                f"A mask of users must have the shape ({n_users},), found {chosen.shape}. Hint: "
                "pass True or False for each user."
            )
        return np.flatnonzero(chosen)
    if chosen.ndim != 1 or (chosen.size and chosen.dtype.kind not in "iu"):
        large = chosen.dtype == object and all(
            isinstance(position, int) for position in chosen.flat
        )
        raise InputTypeError(
            "Positions of users must be integers in one dimension, found "
            + ("integers beyond 64 bits" if large else f"{chosen.dtype} of shape {chosen.shape}")
            + f" ({brief(positions)}). Hint: numpy.flatnonzero(numpy.isin(user_ids, ids)) "
            "returns the positions of ids."
        )
    return as_positions(chosen, n_users, 0, "user")


def as_positions(array: Array, n: int, offset: int, kind: str, place: str = "row") -> Int64:
    """Check that positions exist, and return them as int64 with the offset subtracted."""
    if array.ndim != 1 or (len(array) and array.dtype.kind not in "iu"):
        raise InputTypeError(
            f"Positions of {kind}s must be integers in one dimension, found {array.dtype} of "
            f"shape {array.shape}"
            + (f" (for instance {show(array, 0)})" if array.ndim == 1 else "")
            + ". Hint: leave out n_users= and n_items= if they are ids."
        )
    _check_range(array, n, offset, kind, place)
    array = array.astype(np.int64, copy=False)
    return array - offset if offset else array


def _check_range(array: Array, n: int, offset: int, kind: str, place: str) -> None:
    if len(array) and not offset <= array.min() <= array.max() < n + offset:
        row = int(np.argmax((array < offset) | (array >= n + offset)))
        small = array[row] < offset
        raise InputError(
            f"The {kind} index {array[row]} in {place} {row} (counted from 0) is "
            f"{('negative' if not offset else 'below item_offset') if small else 'too large'}: "
            f"there are {n:,} {kind}s, so indices go from {offset} to {n + offset - 1}."
        )


def _matrix_shape(shape: tuple[int, ...], options: Options) -> tuple[int, int]:
    size = options.size()
    if len(shape) == 2 and size in (None, shape):
        return shape
    expected = "[n_users, n_items]" if size is None else f"{size} = (n_users, n_items)"
    raise InputError(
        f"A matrix of shape {shape} does not fit: expected {expected}. Hint: an edge_index has "
        "the shape [2, n_edges], holds integers, and needs n_users= and n_items=."
    )

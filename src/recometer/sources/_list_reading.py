"""Reads lists of recommendations from any kind of data, including tables of several runs."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from recometer import _kernel, ragged
from recometer.arrays import Array, Bool, Float64, Int32, Int64, follow, laid_out
from recometer.data import files, frames, ids
from recometer.data.cells import Separator, check_separator, check_single, split_cells
from recometer.data.columns import (
    check_column,
    choose_columns,
    common_names,
    rank_candidates,
    refuse_columns,
    single_names,
)
from recometer.data.files import FileColumn, in_memory, open_file
from recometer.data.frames import is_frame, open_frame
from recometer.data.numbers import all_numbers, as_array
from recometer.data.tensors import is_a
from recometer.errors import (
    FileError,
    InputError,
    InputTypeError,
    InternalError,
    argument_text,
    python_or_command,
    warn,
)
from recometer.sources._list_table import ListTable
from recometer.tasks import ROWS_PER_TASK, each_block, even_parts, on_all_threads

if TYPE_CHECKING:
    import polars as pl

PROBE = 4096  # number of rows that are checked first
MAX_POSITION = 2**31 - 2

UNDERSTOOD = (
    "a data frame (user, item, and a rank or a score), a dict {user: [items]} or {user: {item: "
    "score}}, an array of item indices (a row per user, padded with -1), or the path of a Parquet, "
    "CSV, TSV or TREC run file"
)


def read_lists(
    data: Any,
    columns: Mapping[str, object],
    positions: Mapping[str, Any],
    separator: Separator,
) -> ListTable:
    """Read lists of any kind; see `recometer.Lists`.

    `columns` holds the arguments `user`, `item`, `rank` and `score`; `positions` holds the ids and
    the item offset, which only lists of positions have.
    """
    check_separator(separator)
    score = columns["score"]
    if columns["rank"] not in (None, False) and score not in (None, False):
        raise InputError(
            f"Both {argument_text('rank')} and {argument_text('score')} were passed. Hint: pass "
            "only the one to rank by."
        )
    if isinstance(score, str):
        columns = {**columns, "rank": False}
    if isinstance(data, str | os.PathLike):
        _refuse(positions, "files, which contain ids")
        return _from_path(data, columns, separator)
    if isinstance(data, Mapping):
        refuse_columns(data)
        _refuse({**columns, **positions}, "a dict, which already has ids")
        return _from_dict(data, separator)
    if frames.is_array(data):
        data = as_array(data, "The lists")
        _refuse({**columns, "separator": separator}, "an array")
        if isinstance(data, np.ma.MaskedArray):
            signed: Any = data.astype(np.int64) if data.dtype.kind == "u" else data
            data = signed.filled(-1)
        return _from_array(np.asarray(data), **positions)
    if frames.is_frame(data):
        _refuse(positions, "a data frame, which already has ids")
        return _from_frame(data, columns, separator)
    if frames.is_column(data):
        raise InputTypeError(
            f"Lists cannot be read from one column ({type(data).__name__}). Hint: for a pandas "
            "Series of lists whose index holds the users, pass series.to_dict(); if its index "
            "holds users and items, pass series.reset_index(). Otherwise pass a data frame with a "
            "column of users and one of items."
        )
    if isinstance(data, list | tuple):
        raise InputTypeError(
            f"Lists cannot be read from {type(data).__name__}. Hint: pass rows of item indices as "
            f"np.array(...), padded with -1, and lists of ids as a dict {{user: [items]}}."
        )
    raise InputTypeError(
        f"Lists cannot be read from {type(data).__name__}. Hint: pass {UNDERSTOOD}."
    )


def _from_frame(data: Any, options: Mapping[str, object], separator: Separator) -> ListTable:
    data = frames.rereadable(data)
    names, fetch = frames.open_frame(data)
    columns = choose_columns(names, options)
    if _is_by_rows(columns) and options["score"] is None:
        _warn_of_ignored(columns, frames.numeric_columns(data))
    # Fetch all columns in one call, because a lazy frame may return its rows in a different order
    # next time.
    chosen = {option: str(name) for option, name in columns.items() if name is not None}
    series = dict(zip(chosen, fetch(list(chosen.values())), strict=True))
    table = _from_columns(columns, series.pop, separator)
    warn_of_runs(table, columns, names, fetch)
    return table


def _refuse(options: Mapping[str, object], kind: str) -> None:
    """Refuse options that do not apply to the data."""
    for name, value in options.items():
        if value is not None and value is not False:
            raise InputError(f"{name}= does not apply to {kind}. Hint: leave it out.")


def _from_path(
    path: str | os.PathLike[str], options: Mapping[str, object], separator: Separator
) -> ListTable:
    kind = files.kind_of(path)
    if kind == "qrels":
        raise FileError(
            f"{os.fspath(path)} looks like TREC qrels, which contain relevance judgements. Hint: "
            "pass it as test; a run has six fields: topic Q0 document rank score run."
        )
    if kind == "run":
        _refuse({**options, "separator": separator}, "a TREC run")
        frame = files.read_run(path)
        run_columns = {"user": "user", "item": "item", "rank": None, "score": "score"}
        return _from_columns(run_columns, frame.get_column, False)
    columns, fetch = open_file(path, options)
    if _is_by_rows(columns) and options["score"] is None:
        _warn_of_ignored(columns, files.numeric_columns(path))
    table = _from_columns(columns, fetch, separator)
    warn_of_runs(
        table,
        columns,
        files.column_names(path),
        lambda names: files.read_columns(path, names).get_columns(),
    )
    return table


def _is_by_rows(columns: Mapping[str, str | None]) -> bool:
    return columns["rank"] is None and columns["score"] is None


def _warn_of_ignored(columns: Mapping[str, str | None], numeric: Sequence[str]) -> None:
    """Warn if there is no rank or score column, but another numeric column may hold the scores."""
    read = single_names(columns.values())
    ignored = [name for name in numeric if name not in read]
    for kind in ("time", "relevance"):
        ignored = [name for name in ignored if name not in common_names(kind, ignored)]
    if not ignored:
        return
    places = rank_candidates(ignored)
    ranked_by = (
        f"{argument_text('rank', places[0])} ranks by that column, lowest first"
        if places
        else f"{argument_text('score', ignored[0])} ranks by that column, highest first"
    )
    warn(
        "No column has a common name for ranks or scores: the order of the rows is taken as the "
        f"ranking, ignoring {', '.join(map(repr, ignored))}. Hint: {ranked_by}; "
        f"{argument_text('rank', False)}, {argument_text('score', False)} confirms that this is "
        "intended."
    )


def _from_columns(
    columns: dict[str, str | None], fetch: Callable[[str], Any], separator: Separator
) -> ListTable:
    """Read columns one by one, so that few of them are in memory at the same time."""
    column = fetch("item")
    if separator:
        column = split_cells(in_memory(column), separator, f"items (column {columns['item']!r})")
    if frames.holds_lists(column):
        return _from_list_column(columns, column, fetch, separator)
    nouns = {option: f"{option}s (column {name!r})" for option, name in columns.items()}
    lists, indptr, user_ids = _lists_of(fetch("user"), f"user ids (column {columns['user']!r})")
    items, item_ids = _encode(column, f"item ids (column {columns['item']!r})", separator)
    n_items, scores = len(item_ids), None
    pieces: Iterable[Array] | None = None
    if columns["rank"] is not None:
        column = fetch("rank")
        narrowed = narrow(column)
        if narrowed is not None and -MAX_POSITION <= narrowed[1] <= narrowed[2] <= MAX_POSITION:
            placed = None
            if lists is not None:
                placed = place(lists, len(user_ids), items, *narrowed[:2])
            elif is_ordered(narrowed[0], indptr, falling=False):
                placed = indptr, items
            if placed is not None:
                return ListTable(*placed, n_items, None, user_ids, item_ids)
        pieces = [_ranks(in_memory(column), nouns["rank"])]
    elif columns["score"] is not None:
        column = fetch("score")
        if isinstance(column, FileColumn) and column.dtype.is_float():
            pieces = chunks_of(column)
        else:
            pieces = [all_numbers(in_memory(column), nouns["score"])]
    if lists is not None:
        indptr, items = group(lists, len(user_ids), [items], np.int32)
    if pieces is not None and lists is not None:
        _, scores = group(lists, len(user_ids), pieces, np.float64)
    elif pieces is not None:
        scores = join(pieces, len(items))
    needed = _unless_ordered(scores, indptr)
    real = scores if columns["rank"] is None else None
    return ListTable(
        indptr, items, n_items, needed, user_ids, item_ids, given=real, by_rows=_is_by_rows(columns)
    )


def _from_list_column(
    columns: Mapping[str, str | None],
    lists: Any,
    fetch: Callable[[str], Any],
    separator: Separator,
) -> ListTable:
    """Read a table that has one row per user, with the whole list in one cell."""
    user_noun = f"user ids (column {columns['user']!r})"
    user_ids = ids.as_ids(in_memory(fetch("user")), user_noun)
    if not _are_distinct(user_ids, user_noun):
        raise InputError(
            f"Column {columns['item']!r} holds lists, but a user has several rows. Hint: use one "
            "row per user, or one item per row."
        )
    item_noun = f"item ids (column {columns['item']!r})"
    entries, lengths = frames.flat(in_memory(lists), item_noun)
    indptr = ragged.indptr_of(lengths)
    items, item_ids = _encode(entries, item_noun, False if separator else separator)
    scores = None
    option = "rank" if columns["rank"] is not None else "score"
    if columns[option] is not None:
        noun = f"{option}s (column {columns[option]!r})"
        column, score_lengths = frames.flat(in_memory(fetch(option)), noun)
        if not np.array_equal(lengths, score_lengths):
            row = int(np.flatnonzero(lengths != score_lengths)[0])
            raise InputError(
                f"Row {row} (counted from 0) has {lengths[row]} items, but {score_lengths[row]} "
                f"{noun}. Hint: pass one for each item."
            )
        scores = (_ranks if option == "rank" else all_numbers)(column, noun)
    needed = _unless_ordered(scores, indptr)
    given = scores if option == "score" else None
    return ListTable(indptr, items, len(item_ids), needed, user_ids, item_ids, given=given)


def _from_dict(data: Mapping[Any, Any], separator: Separator) -> ListTable:
    expected = "a list or array of items, best first, for every user, or a dict {item: score}"
    unordered = (str, bytes, set, frozenset)
    keys, flat, lengths, entries = frames.flat_dict(data, unordered, "list", expected)
    indptr = ragged.indptr_of(lengths)
    scores = None if entries is None else all_numbers(entries, "scores")
    first = flat[0] if flat and scores is None else None
    if isinstance(first, tuple) and len(first) == 2 and isinstance(first[1], float | np.floating):
        raise InputTypeError(
            f"The dict of lists holds pairs of an item and a score, such as {first!r}. Hint: "
            "write {user: {item: score}}, for instance {user: dict(pairs)}."
        )
    items, item_ids = _encode(flat, "item ids", separator)
    user_ids = ids.as_ids(keys, "user ids")
    needed = _unless_ordered(scores, indptr)
    return ListTable(indptr, items, len(item_ids), needed, user_ids, item_ids, given=scores)


def _from_array(
    array: Array, user_ids: object = None, item_ids: object = None, item_offset: int | None = None
) -> ListTable:
    if array.ndim != 2 or array.dtype.kind not in "iu":
        raise InputTypeError(
            "An array of lists must hold item indices, as integers [n_users, k], found "
            f"{array.dtype} of shape {array.shape}. Hint: pass one row per user, best item first, "
            "padded with -1; item ids go into item_ids=."
        )
    array = _without_offset(array, item_offset or 0)
    narrowed = narrow(array.ravel())
    assert narrowed is not None
    items, low, high = narrowed
    if np.shares_memory(items, array):
        items = items.copy()  # later changes to the array must not affect the results
    names = None if item_ids is None else ids.as_ids(item_ids, "item ids of the lists")
    largest = MAX_POSITION if names is None else len(names) - 1
    if low < -1 or high > largest:
        row, column = np.argwhere((array < -1) | (array > largest))[0]
        bound = "" if names is None else ", as there are item_ids"
        raise InputError(
            f"Row {row} of the lists holds the item index {array[row, column]:,}. Hint: indices go "
            f"from 0 to {largest:,}{bound}; -1 marks a missing item. Item ids go into a dict "
            "{user: [items]} or a data frame."
        )
    n_items = high + 1
    if names is not None:
        places, names = ids.encode(names, "item ids of the lists")
        if len(names) < len(places):
            raise InputError("The item_ids of the lists must be distinct.")
        n_items = len(names)
        if not follow(places):
            items = np.append(places, -1).astype(np.int32)[items]
    users = None
    if user_ids is not None:
        users = np.array(ids.as_ids(user_ids, "user ids of the lists"))  # likewise copied
        if len(users) != len(array):
            raise InputError(
                f"There are {len(array):,} lists, but {len(users):,} user_ids. Hint: user_ids "
                "names the user of each row."
            )
    indptr = np.arange(len(array) + 1, dtype=np.int64) * array.shape[1]
    return ListTable(indptr, items, n_items, None, users, names, padded=True)


def _without_offset(array: Array, offset: int) -> Array:
    """Subtract the offset from item indices; -1 stays -1."""
    if isinstance(offset, bool) or not isinstance(offset, int | np.integer) or offset < 0:
        raise InputError(f"item_offset={offset!r} must be a whole number, 0 or more.")
    if not offset:
        return array
    below = (array < offset) & (array != -1)
    if below.any():
        row, column = np.argwhere(below)[0]
        raise InputError(
            f"Row {row} of the lists holds the item index {array[row, column]}, which is below "
            f"item_offset={offset}. Hint: items are numbered from the offset on; -1 marks a "
            "missing item."
        )
    return np.where(array == -1, -1, array.astype(np.int64) - offset)


def _lists_of(column: Any, noun: str) -> tuple[Int32 | None, Int64, Array]:
    """Return each row's list (as a number), the indptr, and the user ids.

    If the rows of every user are adjacent, the first result is None; otherwise, indptr contains
    only zeros.
    """
    positions = _positions(column)
    rows = column = ids.many_strings(in_memory(column)) if positions is None else positions[0]
    # Check the first rows. If the rows are unordered, users recur after others there, or hardly any
    # user occurs twice.
    probed = _group_adjacent(rows[:PROBE], noun)
    if probed is not None and 2 * len(probed[1]) <= min(len(rows), PROBE):
        grouped = _group_adjacent(rows, noun)
        if grouped is not None:
            return None, *grouped
    codes, names = ids.encode(column, noun, np.int32) if positions is None else positions
    return codes, np.zeros(len(names) + 1, np.int64), names


def _group_adjacent(column: Any, noun: str) -> tuple[Int64, Array] | None:
    """Return the indptr and users of the lists if each user's rows are adjacent; otherwise None."""
    starts, heads = _runs(column)
    if starts is None:
        return None
    names = ids.as_ids(heads, noun)
    if not _are_distinct(names, noun):
        return None
    return np.append(starts, len(column)).astype(np.int64), names


def _runs(column: Any) -> tuple[Int64 | None, Any]:
    """Return the first row of each run of equal ids (None if an id is missing), and the ids."""
    if is_a(column, "polars", "Series"):
        if column.null_count() or column.dtype.is_float() or str(column.dtype) == "Object":
            return None, None
        if not column.dtype.is_integer():
            starts = runs(column)
            return starts, column.gather(starts)
        column = ids.as_ids(column, "user ids")
    array: Array = np.asarray(column)
    if array.dtype.kind not in "iu":
        return None, None
    starts = runs(array)
    return starts, array[starts]


def _are_distinct(names: Array, noun: str) -> bool:
    if names.dtype == object:
        try:
            return len(set(names.tolist())) == len(names)
        except TypeError:  # ids that cannot be hashed, such as lists
            return len(ids.encode(names, noun)[1]) == len(names)  # refuses the invalid id
    return bool((names[1:] > names[:-1]).all()) or len(np.unique(names)) == len(names)


def _encode(column: Any, noun: str, separator: Separator) -> tuple[Int32, Array]:
    """Encode ids as positions in a sorted array of distinct ids, some of which may be unused."""
    column = ids.many_strings(column)
    if not hasattr(column, "dtype"):
        column = ids.as_ids(column, noun)
    encoding = _positions(column)
    if encoding is None:
        encoding = ids.encode(in_memory(column), noun, np.int32)
        check_single(encoding[1], noun, separator)
    return encoding


def _positions(column: Any) -> tuple[Int32, Array] | None:
    """Use integer ids themselves as codes if their range is small; this saves a lookup."""
    narrowed = narrow(column) if len(column) else None
    if narrowed is None:
        return None
    codes, low, high = narrowed
    if low < 0 or high >= min(4 * len(column) + 1024, MAX_POSITION):
        return None
    return codes, np.arange(high + 1)


def _ranks(column: Any, noun: str) -> Float64:
    ranks = all_numbers(column, noun)
    if np.isnan(ranks).any():
        ids.missing(noun, int(np.isnan(ranks).argmax()), "every row needs a rank")
    return -ranks


def _unless_ordered(scores: Float64 | None, indptr: Int64) -> Float64 | None:
    """Drop scores if the order of the entries conveys the same information."""
    if scores is None or not len(scores):
        return None
    lists = np.flatnonzero(np.diff(indptr))
    ends = scores[indptr[lists]], scores[indptr[lists + 1] - 1]
    plain = np.isfinite(ends).all() and is_ordered(scores, indptr, falling=True)
    return None if plain else laid_out(scores)


def chunks_of(column: Any) -> Iterable[Array]:
    """Return the pieces of a column, or no pieces if it is not numeric.

    A column from a file is read piece by piece, so that it is never in memory twice.
    """
    if isinstance(column, np.ndarray):
        return [column] if column.dtype.kind in "iuf" else []
    is_series = is_a(column, "polars", "Series")
    if not (is_series or isinstance(column, FileColumn)):
        return []
    # NumPy has no 128-bit integers.
    wide = str(column.dtype).endswith("128")
    if wide or not (column.dtype.is_integer() or column.dtype.is_float()):
        return []
    pieces = column.get_chunks() if is_series else column.pieces()
    return (piece.to_numpy() for piece in pieces)


def narrow(column: Any) -> tuple[Int32, int, int] | None:
    """Return integers as int32, and the lowest and highest of them (0 and -1 if there are none).

    If they do not fit into int32, the returned integers are meaningless. An int32 array is not
    copied. Returns None if the column does not contain integers, or if entries are missing.
    """
    if isinstance(column, np.ndarray) and 0 < len(column) <= ROWS_PER_TASK:
        if column.dtype.kind not in "iu":
            return None
        return laid_out(column, np.int32), int(column.min()), int(column.max())
    if isinstance(column, np.ndarray) and column.dtype == np.int32 and column.flags.c_contiguous:
        out, in_place = column, True
    else:
        out, in_place = np.empty(len(column), np.int32), False
    start, ranges = 0, []
    for chunk in chunks_of(column):
        if chunk.dtype.kind not in "iu":
            return None
        part = out[start : start + len(chunk)]

        def narrow_block(block: slice, chunk: Array = chunk, part: Int32 = part) -> tuple[int, int]:
            values = chunk[block]
            if not in_place:
                part[block] = values
            return int(values.min()), int(values.max())

        ranges += each_block(len(chunk), narrow_block)
        start += len(chunk)
    if start < len(column):
        return None
    lowest, highest = (low for low, _ in ranges), (high for _, high in ranges)
    return out, min(lowest, default=0), max(highest, default=-1)


def runs(array: Any) -> Int64:
    """Return where each run of equal values begins in an array or a Polars series."""

    def starts_in(block: slice) -> Int64:
        begin = max(block.start, 1)
        before, here = array[begin - 1 : block.stop - 1], array[begin : block.stop]
        new = before != here
        positions: Int64 = np.flatnonzero(new if isinstance(new, np.ndarray) else new.to_numpy())
        positions += begin
        return positions

    first = np.zeros(min(len(array), 1), np.int64)
    starts: Int64 = np.concatenate([first, *each_block(len(array), starts_in)])
    return starts


def is_ordered(column: Array, indptr: Int64, falling: bool) -> bool:
    """Return whether the values within each list are strictly ascending (or descending)."""
    compare = np.less if falling else np.greater

    def block_is_ordered(block: slice) -> bool:
        begin = max(block.start, 1)
        holds: Bool = compare(column[begin : block.stop], column[begin - 1 : block.stop - 1])
        if holds.all():
            return True
        first, last = np.searchsorted(indptr, [begin, block.stop])
        holds[indptr[first:last] - begin] = True
        return bool(holds.all())

    return all(each_block(len(column), block_is_ordered))


def group(lists: Int32, n_lists: int, pieces: Iterable[Array], dtype: type) -> tuple[Int64, Array]:
    """Group the rows by list, keeping their order.

    `lists` holds the number of each row's list, and `pieces` are the parts of the column. `dtype`
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
    """Write the given rows into their lists, starting at `first`; return the next free places."""
    parts, counts = _count(lists, len(first))
    next = np.cumsum(counts, axis=0) - counts + first  # where each part's rows begin in each list

    def group_part(part: int) -> None:
        rows = parts[part]
        _kernel.group_rows(lists[rows], values[rows], next[part], out)

    on_all_threads(group_part, range(len(parts)))
    after: Int64 = next[-1]
    return after


def join(pieces: Iterable[Array], n: int) -> Array:
    """Join pieces with n rows in total into one float64 array; return a single piece unchanged."""
    if isinstance(pieces, list):
        single: Array = pieces[0]
        return single
    joined, start = np.empty(n), 0
    for piece in pieces:
        joined[start : start + len(piece)] = piece
        start += len(piece)
    return joined


def place(
    lists: Int32, n_lists: int, items: Int32, ranks: Int32, first: int
) -> tuple[Int64, Int32] | None:
    """Group the rows by list, in rank order; this is cheaper than grouping and then sorting.

    Returns indptr and items, or None if the ranks of any list are not `first`, first + 1, and so
    on.
    """
    parts, counts = _count(lists, n_lists)
    indptr = ragged.indptr_of(counts.sum(0))
    placed = np.empty_like(items)
    each_block(len(placed), lambda block: placed[block].fill(-1))

    def place_part(rows: slice) -> None:
        _kernel.place_rows(
            list=lists[rows],
            items=items[rows],
            places=ranks[rows],
            first=first,
            indptr=indptr,
            sorted_items=placed,
        )

    on_all_threads(place_part, parts)
    # If a rank is repeated or out of range, at least one place stays empty.
    fits = placed.min(initial=0) >= 0
    return (indptr, placed) if fits else None


def _count(lists: Int32, n_lists: int) -> tuple[list[slice], Int64]:
    """Split the rows into one part per thread, and count each part's rows in each list."""
    parts = even_parts(len(lists), max(n_lists, ROWS_PER_TASK))
    counts = np.zeros((len(parts), n_lists), np.int64)

    def count_part(part: int) -> bool:
        return _kernel.count_rows(lists[parts[part]], counts[part])

    if not all(on_all_threads(count_part, range(len(parts)))):
        raise InternalError("A row belongs to no list.")
    return parts, counts


Fetch = Callable[[list[str]], list[Any]]


def warn_of_runs(
    lists: ListTable, columns: Mapping[str, str | None], names: Sequence[str], fetch: Fetch
) -> None:
    """Warn if the lists of a table seem to mix several runs.

    `columns` names the columns that were read, `names` lists all columns, and `fetch` reads further
    columns.
    """
    read = single_names(columns.values())
    runs = common_names("run", [name for name in names if name not in read])
    run_column, values = _run_column(runs, str(columns["user"]), fetch)
    column = run_column or "COLUMN"
    in_python = python_or_command("", " in Python")
    hint = f"rm.Lists.each(data, by={column!r}){in_python} separates the runs."
    repeats = None
    if columns["rank"] is not None and lists.scores is not None:
        repeats = _repeated_ranks(lists.indptr, lists.scores)
    if repeats is not None:
        n, place, rank = repeats
        user = place if lists.user_ids is None else ids.show(lists.user_ids, place)
        mixed = "if runs are mixed"
        if run_column:
            mixed = f"column {run_column!r} distinguishes {_text_of(values)}"
        warn(
            f"{n:,} rows repeat a rank of their user (the first: user {user} and rank {rank:g}), "
            f"so their items are tied. Hint: {mixed}: {hint}"
        )
    elif run_column:
        warn(
            f"According to column {run_column!r} ({_text_of(values)}), the rows of a user belong "
            f"to several runs, but they form one list here. Hint: {hint}"
        )


def split_runs(data: Any, by: str, options: Mapping[str, object]) -> dict[Any, pl.DataFrame]:
    """Split a table by the values of a column, in the order of first occurrence.

    `data` is a data frame or the path of a file, `by` is the column that names the run of each row,
    and `options` are the options for `choose_columns`. The returned frames have the columns
    ``"user"``, ``"item"``, and ``"rank"`` or ``"score"``.
    """
    import polars as pl

    if isinstance(data, str | os.PathLike):
        check_column("by", by, files.column_names(data))
        columns, fetch_column = open_file(data, options)
        read = {option: in_memory(fetch_column(option)) for option, name in columns.items() if name}
        run = files.read_columns(data, [by]).to_series()
    elif is_frame(data):
        names, fetch = open_frame(data)
        check_column("by", by, names)
        columns = choose_columns([name for name in names if name != by], options)
        read_options = [option for option, name in columns.items() if name]
        *series, run = fetch([*(str(columns[option]) for option in read_options), by])
        read = dict(zip(read_options, map(_series, series), strict=True))
        run = _series(run)
    else:
        raise InputTypeError(
            f"The runs in {type(data).__name__} cannot be separated. Hint: pass a data frame, or "
            "the path of a Parquet, CSV or TSV file, with a column that names the run of each row."
        )
    if run.null_count():
        ids.missing(f"runs (column {by!r})", int(run.is_null().arg_true()[0]), "every row has one")
    frame = pl.DataFrame([column.alias(option) for option, column in read.items()])
    parts = frame.with_columns(run.alias("run")).partition_by(
        "run", as_dict=True, include_key=False, maintain_order=True
    )
    return {key[0]: part for key, part in parts.items()}


def _series(column: Any) -> pl.Series:
    import polars as pl

    if isinstance(column, pl.Series):
        return column
    array: Array = np.asarray(column)
    return pl.Series(array.tolist() if array.dtype == object else array)


def _run_column(runs: Sequence[str], user: str, fetch: Fetch) -> tuple[str | None, list[Any]]:
    """Return the first column (or None) in which some users have several values, and its values."""
    import polars as pl

    for name in runs:
        users, column = map(_series, fetch([user, name]))
        values = column.unique(maintain_order=True)
        pairs = pl.DataFrame([users.alias("user"), column.alias("run")])
        if len(values) > 1 and pairs.unique().height > users.n_unique():
            return name, values.to_list()
    return None, []


def _text_of(values: Sequence[Any]) -> str:
    shown = ", ".join(map(repr, values[:3]))
    return shown if len(values) <= 3 else f"{shown}, ... ({len(values):,} in all)"


def _repeated_ranks(indptr: Int64, scores: Float64) -> tuple[int, int, float] | None:
    """Count the rows that repeat a rank of their list; also return the first such list and rank.

    The scores are negated ranks. If every rank reflects the number of better rows (as in
    1, 2, 2, 4), the ties are intended, and the result is None.
    """
    lists = ragged.users_of(indptr)
    order = np.lexsort((-scores, lists))
    ranks, lists = -scores[order], lists[order]
    same = (ranks[1:] == ranks[:-1]) & (lists[1:] == lists[:-1])
    if not same.any():
        return None
    starts = np.flatnonzero(np.append(True, ~same))
    group = np.cumsum(np.append(True, ~same)) - 1
    before = starts[group] - indptr[lists]
    lowest = ranks[indptr[lists]]
    if (ranks - lowest == before).all():
        return None
    row = int(np.flatnonzero(same)[0])
    return int(np.count_nonzero(same)), int(lists[row]), float(ranks[row])

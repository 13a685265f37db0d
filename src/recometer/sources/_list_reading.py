"""Lists of recommendations, read from every kind of data."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from recometer import ragged
from recometer.arrays import Array, Float64, Int32, Int64, follow, laid_out
from recometer.data import files, frames, ids, trec
from recometer.data.cells import Separator, check_separator, check_single, taken_apart
from recometer.data.columns import (
    choose_columns,
    common_names,
    could_be_places,
    refuse_columns,
    single_names,
)
from recometer.data.files import FileColumn, in_memory, open_file
from recometer.data.numbers import all_numbers, as_array
from recometer.data.tensors import is_a
from recometer.errors import FileError, InputError, InputTypeError, argument_text, warn
from recometer.sources import _list_columns, _list_runs
from recometer.sources._list_table import ListTable

PROBE = 4096  # rows
MAX_POSITION = 2**31 - 2

UNDERSTOOD = (
    "a data frame (user, item, and a rank or a score), a dict {user: [items]} or {user: {item: "
    "score}}, an array of item indices padded with -1, a row per user, or the path of a Parquet, "
    "CSV, TSV or TREC run file"
)


def read_lists(
    data: Any,
    *,
    user: object,
    item: object,
    rank: object,
    score: object,
    user_ids: object,
    item_ids: object,
    item_offset: int = 0,
    separator: Separator = None,
) -> ListTable:
    """Read lists of any kind; see `recometer.Lists`."""
    check_separator(separator)
    columns = {"user": user, "item": item, "rank": rank, "score": score}
    given_ids = {"user_ids": user_ids, "item_ids": item_ids, "item_offset": item_offset or None}
    if rank not in (None, False) and score not in (None, False):
        raise InputError(
            f"{argument_text('rank')} and {argument_text('score')} were both given. Hint: name the "
            "one to rank by."
        )
    if isinstance(score, str):
        columns["rank"] = False
    if isinstance(data, str | os.PathLike):
        _refuse(given_ids, "a file, which has ids")
        return _from_path(data, columns, separator)
    if isinstance(data, Mapping):
        refuse_columns(data)
        _refuse({**columns, **given_ids}, "a dict, which has ids")
        return _from_dict(data, separator)
    if frames.is_array(data):
        data = as_array(data, "The lists")
        _refuse({**columns, "separator": separator}, "an array")
        if isinstance(data, np.ma.MaskedArray):
            signed: Any = data.astype(np.int64) if data.dtype.kind == "u" else data
            data = signed.filled(-1)
        return _from_array(np.asarray(data), user_ids, item_ids, item_offset)
    if frames.is_frame(data):
        _refuse(given_ids, "a data frame, which has ids")
        return _from_frame(data, columns, separator)
    if frames.is_column(data):
        raise InputTypeError(
            f"Lists cannot be read from one column ({type(data).__name__}). Hint: a pandas Series "
            "of lists whose index holds the users becomes a dict: pass series.to_dict(); one whose "
            "index holds users and items becomes a data frame: series.reset_index(). Otherwise "
            "pass a data frame with a column of users and one of items."
        )
    if isinstance(data, list | tuple):
        raise InputTypeError(
            f"Lists cannot be read from {type(data).__name__}. Hint: pass rows of item indices as "
            f"np.array(...), padded with -1, and lists of ids as a dict {{user: [items]}}."
        )
    raise InputTypeError(
        f"Lists cannot be read from {type(data).__name__}. Hint: pass {UNDERSTOOD}."
    )


def _from_frame(data: Any, columns: Mapping[str, object], separator: Separator) -> ListTable:
    data = frames.twice_readable(data)
    names, fetch = frames.open_frame(data)
    found = choose_columns(names, columns)
    if _is_by_rows(found) and columns["score"] is None:
        _warn_of_others(found, frames.numeric_columns(data))
    # In one call: a lazy frame may return its rows in another order the next time.
    wanted = [option for option, name in found.items() if name is not None]
    series = dict(zip(wanted, fetch([str(found[option]) for option in wanted]), strict=True))
    table = _from_columns(found, series.pop, separator)
    _list_runs.check(table, found, names, fetch)
    return table


def _refuse(options: Mapping[str, object], what: str) -> None:
    """Refuse options that were given and do not apply."""
    for name, value in options.items():
        if value is not None and value is not False:
            raise InputError(f"{name}= does not apply to {what}. Hint: leave it out.")


def _from_path(
    path: str | os.PathLike[str], columns: Mapping[str, object], separator: Separator
) -> ListTable:
    kind = trec.kind_of(path)
    if kind == "qrels":
        raise FileError(
            f"{os.fspath(path)} looks like TREC qrels, which say what was judged. Hint: pass it "
            "as test; a run has six fields: topic Q0 document rank score run."
        )
    if kind == "run":
        _refuse({**columns, "separator": separator}, "a TREC run")
        frame = trec.read_run(path)
        named = {"user": "user", "item": "item", "rank": None, "score": "score"}
        return _from_columns(named, frame.get_column, False)
    found, fetch = open_file(path, columns)
    if _is_by_rows(found) and columns["score"] is None:
        _warn_of_others(found, files.numeric_columns(path))
    table = _from_columns(found, fetch, separator)
    _list_runs.check(
        table,
        found,
        files.column_names(path),
        lambda names: files.read_columns(path, names).get_columns(),
    )
    return table


def _is_by_rows(found: Mapping[str, str | None]) -> bool:
    return found["rank"] is None and found["score"] is None


def _warn_of_others(found: Mapping[str, str | None], numeric: Sequence[str]) -> None:
    """Warn if lists have neither rank nor score, but a column of numbers could be the score."""
    read = single_names(found.values())
    others = [name for name in numeric if name not in read]
    for kind in ("time", "relevance"):
        others = [name for name in others if name not in common_names(kind, others)]
    if not others:
        return
    places = could_be_places(others)
    by_that = (
        f"{argument_text('rank', places[0])} ranks by that column, the lowest first"
        if places
        else f"{argument_text('score', others[0])} ranks by that column, the highest first"
    )
    warn(
        "No column has a common name for ranks or scores: the order of the rows is the ranking, "
        f"and {', '.join(map(repr, others))} says nothing. Hint: {by_that}; "
        f"{argument_text('rank', False)}, {argument_text('score', False)} says that the order is "
        "meant."
    )


def _from_columns(
    found: dict[str, str | None], fetch: Callable[[str], Any], separator: Separator
) -> ListTable:
    """Read the columns one at a time, so that few are in memory at once."""
    column = fetch("item")
    if separator:
        column = taken_apart(in_memory(column), separator, f"items (column {found['item']!r})")
    if frames.holds_lists(column):
        return _from_list_column(found, column, fetch, separator)
    what = {option: f"{option}s (column {name!r})" for option, name in found.items()}
    lists, indptr, user_ids = _lists_of(fetch("user"), f"user ids (column {found['user']!r})")
    items, item_ids = _encode(column, f"item ids (column {found['item']!r})", separator)
    n_items, scores = len(item_ids), None
    pieces: Iterable[Array] | None = None
    if found["rank"] is not None:
        column = fetch("rank")
        whole = _whole_numbers(column)
        if whole is not None and lists is None:
            if _list_columns.ordered(whole[0], indptr, falling=False):
                return ListTable(indptr, items, n_items, None, user_ids, item_ids)
        elif whole is not None and lists is not None:
            placed = _list_columns.place(lists, len(user_ids), items, *whole)
            if placed is not None:
                return ListTable(*placed, n_items, None, user_ids, item_ids)
        pieces = [_ranks(in_memory(column), what["rank"])]
    elif found["score"] is not None:
        column = fetch("score")
        by_pieces = isinstance(column, FileColumn) and column.dtype.is_float()
        if by_pieces:
            pieces = _list_columns.chunks_of(column)
        else:
            pieces = [all_numbers(in_memory(column), what["score"])]
    if lists is not None:
        indptr, items = _list_columns.group(lists, len(user_ids), [items], np.int32)
    if pieces is not None and lists is not None:
        _, scores = _list_columns.group(lists, len(user_ids), pieces, np.float64)
    elif pieces is not None:
        scores = _list_columns.join(pieces, len(items))
    needed = _unless_ordered(scores, indptr)
    real = scores if found["rank"] is None else None
    return ListTable(
        indptr, items, n_items, needed, user_ids, item_ids, given=real, by_rows=_is_by_rows(found)
    )


def _from_list_column(
    found: Mapping[str, str | None],
    lists: Any,
    fetch: Callable[[str], Any],
    separator: Separator,
) -> ListTable:
    """Read a table with a row per user, and the user's list in a cell."""
    who = f"user ids (column {found['user']!r})"
    user_ids = ids.as_ids(in_memory(fetch("user")), who)
    if not _distinct(user_ids, who):
        raise InputError(
            f"Column {found['item']!r} holds lists, and a user has several rows. Hint: a row per "
            "user, or an item per row."
        )
    what = f"item ids (column {found['item']!r})"
    entries, lengths = frames.flat(in_memory(lists), what)
    indptr = ragged.indptr_of(lengths)
    items, item_ids = _encode(entries, what, False if separator else separator)
    scores = None
    by = "rank" if found["rank"] is not None else "score"
    if found[by] is not None:
        column, others = frames.flat(in_memory(fetch(by)), f"{by}s (column {found[by]!r})")
        if not np.array_equal(lengths, others):
            row = int(np.flatnonzero(lengths != others)[0])
            raise InputError(
                f"Row {row} (counted from 0) has {lengths[row]} items, but {others[row]} {by}s "
                f"(column {found[by]!r}). Hint: one for each item."
            )
        scores = (_ranks if by == "rank" else all_numbers)(column, f"{by}s (column {found[by]!r})")
    needed = _unless_ordered(scores, indptr)
    given = scores if by == "score" else None
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


def _from_array(array: Array, user_ids: object, item_ids: object, item_offset: int) -> ListTable:
    if array.ndim != 2 or array.dtype.kind not in "iu":
        raise InputTypeError(
            "An array of lists must hold item indices, as integers [n_users, k], found "
            f"{array.dtype} of shape {array.shape}. Hint: a row per user, best item first, padded "
            "with -1; ids of items go into item_ids=."
        )
    array = _without_offset(array, item_offset)
    narrowed = _list_columns.narrow(array.ravel())
    assert narrowed is not None
    items, low, high = narrowed
    if np.shares_memory(items, array):
        items = items.copy()  # a copy: later changes of the array must not change results
    names = None if item_ids is None else ids.as_ids(item_ids, "item ids of the lists")
    if low < -1 or (names is not None and high >= len(names)):
        row, column = np.argwhere((array < -1) | (array == high if low >= -1 else False))[0]
        bound = "or more" if names is None else f"to {len(names) - 1}, as there are item_ids"
        raise InputError(
            f"Row {row} of the lists holds the item index {array[row, column]}. Hint: indices go "
            f"from 0 {bound}; -1 marks a missing item."
        )
    if high > MAX_POSITION:
        row, column = np.argwhere(array == high)[0]
        raise InputError(
            f"Row {row} of the lists holds the item index {high:,}, but at most {MAX_POSITION:,} "
            "is possible. Hint: ids of items go into a dict {user: [items]} or a data frame."
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
        users = np.array(ids.as_ids(user_ids, "user ids of the lists"))  # a copy, as above
        if len(users) != len(array):
            raise InputError(
                f"There are {len(array):,} lists, but {len(users):,} user_ids. Hint: user_ids "
                "names the user of each row."
            )
    indptr = np.arange(len(array) + 1, dtype=np.int64) * array.shape[1]
    return ListTable(indptr, items, n_items, None, users, names, padded=True)


def _without_offset(array: Array, offset: int) -> Array:
    """Return item indices from 0 on; -1 stays -1."""
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


def _lists_of(column: Any, what: str) -> tuple[Int32 | None, Int64, Array]:
    """Return the list that each row belongs to, indptr, and the ids of the users.

    The first is None if the rows of every user are adjacent; only then indptr has a meaning.
    """
    positions = _positions(column)
    rows = column = ids.many_strings(in_memory(column)) if positions is None else positions[0]
    # A sample of unordered rows shows it: users come again, or have a row each.
    probed = _grouped(rows[:PROBE], what)
    if probed is not None and 2 * len(probed[1]) <= min(len(rows), PROBE):
        grouped = _grouped(rows, what)
        if grouped is not None:
            return None, *grouped
    codes, names = ids.encode(column, what, np.int32) if positions is None else positions
    return codes, np.zeros(len(names) + 1, np.int64), names


def _grouped(column: Any, what: str) -> tuple[Int64, Array] | None:
    """Return indptr and ids of the lists if the rows of every user are adjacent."""
    starts, heads = _runs(column)
    if starts is None:
        return None
    names = ids.as_ids(heads, what)
    if not _distinct(names, what):
        return None
    return np.append(starts, len(column)).astype(np.int64), names


def _runs(column: Any) -> tuple[Int64 | None, Any]:
    """Return where each run of equal ids begins, and its id; None if an id is missing."""
    if is_a(column, "polars", "Series"):
        if column.null_count() or column.dtype.is_float() or str(column.dtype) == "Object":
            return None, None
        if not column.dtype.is_integer():
            starts = _list_columns.runs(column)
            return starts, column.gather(starts)
        column = ids.as_ids(column, "user ids")
    array: Array = np.asarray(column)
    if array.dtype.kind not in "iu":
        return None, None
    starts = _list_columns.runs(array)
    return starts, array[starts]


def _distinct(names: Array, what: str) -> bool:
    if names.dtype == object:
        try:
            return len(set(names.tolist())) == len(names)
        except TypeError:  # lists, for instance
            return len(ids.encode(names, what)[1]) == len(names)  # names the invalid id
    return bool((names[1:] > names[:-1]).all()) or len(np.unique(names)) == len(names)


def _encode(column: Any, what: str, separator: Separator) -> tuple[Int32, Array]:
    """Replace ids by places among sorted distinct ids; some of these may not occur."""
    column = ids.many_strings(column)
    if not hasattr(column, "dtype"):
        column = ids.as_ids(column, what)
    found = _positions(column)
    if found is None:
        found = ids.encode(in_memory(column), what, np.int32)
        check_single(found[1], what, separator)
    return found


def _positions(column: Any) -> tuple[Int32, Array] | None:
    """Use integer ids that are nearly positions as codes, without a lookup."""
    whole = _list_columns.narrow(column) if len(column) else None
    if whole is None:
        return None
    codes, low, high = whole
    if low < 0 or high >= min(4 * len(column) + 1024, MAX_POSITION):
        return None
    return codes, np.arange(high + 1)


def _whole_numbers(column: Any) -> tuple[Int32, int] | None:
    """Return integers as int32 and the lowest of them, or None if some do not fit."""
    whole = _list_columns.narrow(column)
    if whole is None or whole[1] < -MAX_POSITION or whole[2] > MAX_POSITION:
        return None
    return whole[:2]


def _ranks(column: Any, what: str) -> Float64:
    ranks = all_numbers(column, what)
    if np.isnan(ranks).any():
        ids.missing(what, int(np.isnan(ranks).argmax()), "every row needs a rank")
    return -ranks


def _unless_ordered(scores: Float64 | None, indptr: Int64) -> Float64 | None:
    """Drop scores if the order of the entries contains the same information."""
    if scores is None or not len(scores):
        return None
    lists = np.flatnonzero(np.diff(indptr))
    ends = scores[indptr[lists]], scores[indptr[lists + 1] - 1]
    plain = np.isfinite(ends).all() and _list_columns.ordered(scores, indptr, falling=True)
    return None if plain else laid_out(scores)

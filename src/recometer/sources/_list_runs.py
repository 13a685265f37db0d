"""Detect and split tables that mix the lists of several runs."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from recometer import ragged
from recometer.arrays import Array, Float64, Int64
from recometer.data import ids
from recometer.data.columns import check_column, choose_columns, common_names, single_names
from recometer.data.files import in_memory, open_file
from recometer.data.frames import is_frame, open_frame
from recometer.errors import InputTypeError, python_or_command, warn
from recometer.sources._list_table import ListTable

if TYPE_CHECKING:
    import polars as pl

Fetch = Callable[[list[str]], list[Any]]


def check(
    lists: ListTable, found: Mapping[str, str | None], names: Sequence[str], fetch: Fetch
) -> None:
    """Warn of a table whose lists seem to mix several runs.

    `found` are the columns that were read, `names` all that there are; `fetch` returns columns.
    """
    read = single_names(found.values())
    runs = common_names("run", [name for name in names if name not in read])
    by, values = _run_column(runs, str(found["user"]), fetch)
    column = by or "COLUMN"
    each = python_or_command(f"rm.Lists.each(data, by={column!r})", f"--each {column}")
    hint = f"{each} takes the runs apart."
    twice = None
    if found["rank"] is not None and lists.scores is not None:
        twice = _repeated_ranks(lists.indptr, lists.scores)
    if twice is not None:
        n, place, rank = twice
        user = place if lists.user_ids is None else ids.show(lists.user_ids, place)
        mixed = f"column {by!r} tells {_several(values)} apart" if by else "if runs are mixed"
        warn(
            f"{n:,} rows repeat a rank of their user (the first: user {user} and rank {rank:g}), "
            f"and such items are tied. Hint: {mixed}: {hint}"
        )
    elif by:
        warn(
            f"The rows of a user belong to several runs, as column {by!r} says "
            f"({_several(values)}), and are one list here. Hint: {hint}"
        )


def take_apart(data: Any, by: str, columns: Mapping[str, object]) -> dict[Any, pl.DataFrame]:
    """Return the rows of each value of a column, in the order of the first row of each.

    `data` is a data frame or the path of a file, `by` the column that says whose a row is, and
    `columns` what `choose_columns` takes. The frames returned have the columns ``"user"``,
    ``"item"``, and ``"rank"`` or ``"score"``.
    """
    import polars as pl

    if isinstance(data, str | os.PathLike):
        from recometer.data.files import column_names, read_columns

        check_column("by", by, column_names(data))
        found, one = open_file(data, columns)
        read = {option: in_memory(one(option)) for option, name in found.items() if name}
        run = read_columns(data, [by]).to_series()
    elif is_frame(data):
        names, fetch = open_frame(data)
        check_column("by", by, names)
        found = choose_columns([name for name in names if name != by], columns)
        options = [option for option, name in found.items() if name]
        *series, run = fetch([*(str(found[option]) for option in options), by])
        read = dict(zip(options, map(_series, series), strict=True))
        run = _series(run)
    else:
        raise InputTypeError(
            f"Runs cannot be told apart in {type(data).__name__}. Hint: pass a data frame, or the "
            "path of a Parquet, CSV or TSV file, with a column that names the run of each row."
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
    """Return the first column in which users have several values, and its values; or None."""
    import polars as pl

    for name in runs:
        users, column = map(_series, fetch([user, name]))
        values = column.unique(maintain_order=True)
        pairs = pl.DataFrame([users.alias("user"), column.alias("run")])
        if len(values) > 1 and pairs.unique().height > users.n_unique():
            return name, values.to_list()
    return None, []


def _several(values: Sequence[Any]) -> str:
    shown = ", ".join(map(repr, values[:3]))
    return shown if len(values) <= 3 else f"{shown}, ... ({len(values):,} in all)"


def _repeated_ranks(indptr: Int64, scores: Float64) -> tuple[int, int, float] | None:
    """Return how many rows repeat a rank of their list, the first such list, and the rank.

    The scores are the ranks below 0. Where every rank says how many rows come before
    (1, 2, 2, 4), ties are meant.
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
    at = int(np.flatnonzero(same)[0])
    return int(np.count_nonzero(same)), int(lists[at]), float(ranks[at])

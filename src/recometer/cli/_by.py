"""Tables of users that options name: their groups, or their clusters."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from recometer.cli._factors import like
from recometer.cli._models import split_name
from recometer.data.columns import common_names
from recometer.data.files import column_names, read_columns
from recometer.errors import ColumnError, did_you_mean
from recometer.evaluation import Evaluation
from recometer.results.saved import PROFILE

if TYPE_CHECKING:
    import polars as pl


def groups_of(text: str | None, results: Mapping[str, Evaluation]) -> str | pl.DataFrame | None:
    """Return what `Evaluation.by` takes: a name of its own, or a frame of users and groups."""
    if text is None or text in PROFILE:
        return text
    return of_users(text, "--by", next(iter(results.values())))


def of_users(text: str, option: str, result: Evaluation) -> pl.DataFrame:
    """Return the users and one other column of ``[COLUMN=]FILE``, users as a result has them.

    Raises
    ------
    ColumnError
        If there is no such column, or more than one could be meant.
    """
    column, path = split_name(text, option)
    file = Path(path)
    names = column_names(file)
    users = common_names("user", names)
    if len(users) != 1:
        raise ColumnError(
            f"{option} {path}: {'several columns' if users else 'no column'} could hold the users. "
            f"Hint: call one user_id. Columns: {', '.join(names)}."
        )
    others = [name for name in names if name != users[0]]
    if column and column not in names:
        raise ColumnError(
            f"{option}: {path} has no column {column!r}. {did_you_mean(column, names)}"
        )
    if column == users[0]:
        raise ColumnError(
            f"{option}: {column!r} is the column of the users of {path}, each of whom would be a "
            f"group. Hint: name another column; there are: {', '.join(others) or 'none'}."
        )
    if not column and len(others) != 1:
        raise ColumnError(
            f"{option} {path}: which column is meant? Hint: {option} COLUMN={path}. Columns: "
            f"{', '.join(names)}."
        )
    frame = read_columns(file, [users[0], column or others[0]])
    return frame.with_columns(like(frame[users[0]], result.user_ids))

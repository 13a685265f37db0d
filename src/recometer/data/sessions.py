"""Users with sessions: their ids are pairs (user, session), which are made and split here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeGuard

import numpy as np

from recometer.arrays import Array, Int64
from recometer.data.columns import ColumnPair
from recometer.data.ids import as_column, as_ids, encode, kind
from recometer.errors import InputTypeError

if TYPE_CHECKING:
    import polars as pl


def paired(name: str, columns: Mapping[str, Any]) -> pl.Series:
    """Combine two columns into a single column of pairs, a Polars struct.

    Raises
    ------
    InputTypeError
        If Polars lacks the type of the entries.
    """
    import polars as pl

    series = []
    for part, column in columns.items():
        values = column
        if isinstance(column, np.ndarray) and column.dtype == object:
            values = column.tolist()
        try:
            series.append(pl.Series(part, values, strict=True))
        except (TypeError, ValueError, OverflowError, pl.exceptions.PolarsError) as error:
            raise InputTypeError(
                f"The entries of column {part!r} are of several types: {error}. Hint: convert them "
                "to one type, for instance all to strings."
            ) from None
        if series[-1].dtype == pl.Object:
            raise InputTypeError(
                f"The entries of column {part!r} are of type {type(values[0]).__name__}, which "
                "cannot be paired with another column. Hint: convert them to strings."
            )
    return pl.DataFrame(series).to_struct(name)


def selected(table: pl.LazyFrame, name: str) -> pl.Expr:
    """Return the expression that selects a column, or a pair of columns as a single one."""
    import polars as pl

    if isinstance(name, ColumnPair) and name not in table.collect_schema():
        return pl.struct(*name.parts).alias(name[:])
    return pl.col(name)


def are_pairs(ids: Array | None) -> TypeGuard[Array]:
    """Return whether ids are pairs of a user and a session of this user."""
    return (
        ids is not None
        and ids.dtype == object
        and len(ids) > 0
        and isinstance(ids[0], tuple)
        and len(ids[0]) == 2
    )


def split_pairs(ids: Array) -> tuple[Array, Array]:
    """Return the users and the sessions of pairs."""
    users, sessions = zip(*ids.tolist(), strict=True)
    return as_ids(users, "users of the sessions"), as_ids(sessions, "sessions")


def clusters_of(ids: Array | None) -> Int64 | None:
    """Return the number of each session's user; None if users have no sessions."""
    if not are_pairs(ids):
        return None
    codes: Int64 = encode(split_pairs(ids)[0], "users of the sessions")[0]
    return codes


def as_named_by(ids: Array, other: Array) -> Array:
    """Return ids of users; drop their sessions if the other side has none."""
    return split_pairs(ids)[0] if are_pairs(ids) and len(other) and not are_pairs(other) else ids


def id_columns(ids: Array) -> dict[str, Any]:
    """Return ids as the columns of a Polars frame: user, and session if ids have sessions."""
    if not are_pairs(ids):
        return {"user": as_column(ids)}
    users, sessions = split_pairs(ids)
    return {"user": as_column(users), "session": as_column(sessions)}


def kinds(ids: Array) -> str:
    """Return the kind of ids; for pairs, the kinds of both parts: ``"str and int"``."""
    return " and ".join(map(kind, split_pairs(ids))) if are_pairs(ids) else kind(ids)

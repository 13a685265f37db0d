"""Ids of users and items in DataFrames of a split: one column, or two of users with sessions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from recometer.data.columns import Columns, single_names
from recometer.data.ids import as_ids
from recometer.errors import InputError, InputTypeError
from recometer.spark._frames import Frame, quoted

# Types whose ids depend on what other rows hold: whole numbers count as integers if all are.
NO_IDS = ("float", "double")
NESTED = ("struct", "array", "map")


def names_of(columns: Columns) -> list[str]:
    """Return the names of all columns that are read, those of a pair one by one."""
    return single_names(columns)


def parts_of(column: str) -> list[str]:
    """Return the names of the columns that make up an id."""
    return single_names([column])


def check_ids(frame: Frame, columns: Columns) -> None:
    """Refuse columns of users and items whose entries cannot be ids.

    Raises
    ------
    InputTypeError
        If they hold numbers that are not integers, or several values.
    """
    for name in (*parts_of(columns.user), columns.item):
        kind = frame.schema[name].dataType
        if kind.typeName() in (*NO_IDS, *NESTED):
            raise InputTypeError(
                f"Column {name!r} holds {kind.simpleString()}, of which no ids are made. Hint: "
                f"cast it to bigint or to string: frame.withColumn({name!r}, "
                f'frame[{name!r}].cast("bigint")).'
            )


def distinct(table: Any, column: str) -> list[Any]:
    """Return the ids, or the pairs of ids, that an Arrow table holds, each once."""
    parts = parts_of(column)
    if len(parts) == 1:
        found: list[Any] = table[column].unique().to_pylist()
        return found
    pairs = table.select(parts).group_by(parts).aggregate([])
    return list(zip(*(pairs[part].to_pylist() for part in parts), strict=True))


def among(wanted: Any, table: Any, column: str) -> list[Any]:
    """Return the wanted ids that an Arrow table holds."""
    there = set(distinct(table, column))
    return [one for one in as_ids(wanted, "given ids").tolist() if one in there]


def check_known(wanted: Any, frame: Frame, column: str, what: str) -> None:
    """Refuse ids that are not in the data.

    Parameters
    ----------
    wanted
        Ids, or pairs of them if two columns name a user.
    frame
    column
        Names one column, or two.
    what
        What they are: ``"users"``, ``"items"``.

    Raises
    ------
    InputError
        If an id is not there.
    InputTypeError
        If pairs are given for one column, or single ids for two.
    """
    listed, parts = as_ids(wanted, f"given {what}").tolist(), parts_of(column)
    if not listed:
        return
    pairs = isinstance(listed[0], tuple)
    if pairs != (len(parts) == 2):
        both = " and ".join(map(repr, parts))
        what = f"The given {what}, for instance {listed[0]!r}, are"
        if pairs:
            raise InputTypeError(f"{what} pairs, but {both} names each of them. Hint: give ids.")
        raise InputTypeError(
            f"{what} no pairs, but {both} name each of them. Hint: give pairs, such as ('ann', 3)."
        )
    rows: Sequence[Any] = listed if pairs else [(one,) for one in listed]
    columns = [f"wanted {number}" for number in range(len(parts))]
    given = frame.sparkSession.createDataFrame(rows, columns)
    named = [f"{quoted(part)} AS {quoted(own)}" for part, own in zip(parts, columns, strict=True)]
    known = frame.selectExpr(*named).distinct()
    missing = given.join(known, columns, "left_anti").limit(1).collect()
    if missing:
        first = tuple(missing[0]) if pairs else missing[0][0]
        raise InputError(
            f"The data have no {what[:-1]} {first!r}. Hint: leave it out of {what}, or look how "
            "ids are written."
        )

"""Recognises and splits cells that hold several ids, such as ``"46;93;5"`` or ``"[46, 93]"``."""

from __future__ import annotations

import itertools
import re
from typing import TYPE_CHECKING, Any

from recometer.arrays import Array
from recometer.errors import InputError, InputTypeError, argument_text, brief, python_or_command

if TYPE_CHECKING:
    import polars as pl

Separator = str | bool | None
JSON = "json"
BLANKS, QUOTES, BRACKETS = " \t", "'\"", "[](){}"
PROBE = 1000  # approximate number of ids in the sample
SHARE = 0.1  # ids are refused if a larger share of the sample looks like lists of ids
# Whole numbers separated by commas, bars or blanks; words separated by semicolons; or a string in
# brackets.
SEVERAL = re.compile(r"\d+(?:\s*[,|\s]\s*\d+)+|[\w.-]+(?:\s*;\s*[\w.-]+)+;?|[\[({].*[\])}]")


def check_single(item_ids: Array, noun: str, separator: Separator) -> None:
    """Raise InputError if ids look like lists of ids, unless the user passes a separator.

    `item_ids` must be distinct; `noun` names them in the message. ``separator=False`` means that
    each string is a single id.
    """
    if separator is not None or not len(item_ids) or not isinstance(item_ids[0], str):
        return
    probed = item_ids[:: -(-len(item_ids) // PROBE)].tolist()
    several = [text for text in probed if SEVERAL.fullmatch(text.strip())]
    if len(several) <= SHARE * len(probed):
        return
    text = several[0]
    guessed = (
        JSON
        if _json_list(text) is not None
        else next((mark for mark in ";|," if mark in text), " ")
    )
    calls = python_or_command("of rm.Lists and rm.Interactions.of ", "")
    raise InputError(
        f"The {noun} look like several items in one cell: {brief(text)}. Hint: "
        f"{argument_text('separator', guessed)} {calls}reads such cells as lists; "
        f"{argument_text('separator', False)} means that each cell is a single id."
    )


def check_separator(separator: object) -> None:
    """Raise InputTypeError if the argument is not a valid separator."""
    passed = separator is not None and separator is not False
    if passed and not (isinstance(separator, str) and (len(separator) == 1 or separator == JSON)):
        none = python_or_command("False", "none")
        raise InputTypeError(
            f"{argument_text('separator', separator)} must be one character, 'json', or {none} for "
            "cells that hold a single id."
        )


def split_cells(column: Any, separator: Separator, noun: str) -> Any:
    """Split a column of strings into a column of lists; return any other column unchanged.

    Brackets around a cell, and blanks and quotes around its parts, are removed. The parts
    become integers if all of them are written as plain integers. A missing cell becomes an empty
    list.
    """
    if not isinstance(separator, str):
        return column
    import polars as pl

    entries = column.to_list() if isinstance(column, pl.Series) else list(column)
    if not all(entry is None or isinstance(entry, str) for entry in entries):
        return column
    if separator == JSON:
        cells = [_parse_json(text, row, noun) for row, text in enumerate(entries)]
        try:
            return pl.Series("", cells)
        except (TypeError, pl.exceptions.PolarsError) as error:
            raise InputError(
                f"The {noun} are of several types: {error}. Hint: write all as numbers, or all as "
                "strings in double quotes."
            ) from None
    cells = [
        list(filter(None, (part.strip(BLANKS + QUOTES) for part in text.split(separator))))
        for text in ((entry or "").strip(BLANKS + BRACKETS) for entry in entries)
    ]
    parts = pl.Series(list(itertools.chain.from_iterable(cells)), dtype=pl.String)
    lists = pl.Series("", cells, dtype=pl.List(pl.String))
    return lists.cast(pl.List(integers(parts).dtype))


def _parse_json(text: str | None, row: int, noun: str) -> list[Any]:
    entries = _json_list(text or "[]")
    if entries is None:
        comma = argument_text("separator", ",")
        raise InputError(
            f"The {noun} hold {brief(text)} in row {row} (counted from 0), which is not a JSON "
            f'list. Hint: expected a cell such as [46, 93] or ["a", "b"]; {comma} also reads '
            "strings in single quotes."
        )
    return entries


def _json_list(text: str) -> list[Any] | None:
    import json  # rarely needed

    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return content if isinstance(content, list) else None


def integers(text: pl.Series) -> pl.Series:
    """Return integers if every entry is written as a plain integer, otherwise the strings."""
    import polars as pl

    for dtype in (pl.Int64, pl.UInt64):
        numbers = text.cast(dtype, strict=False)
        if numbers.null_count() == text.null_count() and (numbers.cast(pl.String) == text).all():
            return numbers
    return text

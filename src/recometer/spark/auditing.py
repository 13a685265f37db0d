"""audit on Spark: the columns that an audit reads are collected, and audited as on one machine."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from recometer.auditing import Audit
from recometer.auditing import audit as audit_here
from recometer.data.columns import ColumnPair, find_columns, single_names
from recometer.data.interactions import Interactions as OneInteractions
from recometer.data.numbers import size_in_words
from recometer.errors import InputError, InputTypeError
from recometer.protocol import RelevantFrom
from recometer.spark.sources import with_columns
from recometer.spark.splitting import SparkSplit
from recometer.spark.tables import (
    Frame,
    acted,
    check_ids,
    memory,
    need_frame,
    quoted,
    without_sessions,
)

ROW_BYTES = 100  # that an audit takes on one machine


def audit(
    train: object,
    test: object = None,
    *,
    user: str | Sequence[str] | None = None,
    item: str | None = None,
    value: str | bool | None = None,
    time: str | bool | None = None,
    relevant_from: RelevantFrom = None,
    min_positives: int = 1,
    min_candidates: int = 2,
) -> Audit:
    """Look for leakage and other faults in a split into train and test, by `recometer.audit`.

    Its columns of users, items, values and times are collected, as many rows as half the memory of
    the driver holds: 100 bytes each.

    Parameters
    ----------
    train, test
        DataFrames, or `recometer.spark.Interactions`, which name their columns. Instead of both,
        you can pass a `SparkSplit` as `train`; its remainder counts as train.
    user, item, value, time, relevant_from, min_positives, min_candidates
        As in `recometer.audit`. A `SparkSplit` knows its columns.

    Raises
    ------
    InputError, InputTypeError, ColumnError
        As for `recometer.audit`; also if there are more rows.
    """
    given: dict[str, Any] = {"user": user, "item": item, "value": value, "time": time}
    sides = {"train": train, "test": test}
    if test is None:
        sides, given = _of_split(train, given)
    frames = {name: _chosen(data, name, given) for name, data in sides.items()}
    if isinstance(frames["train"][1]["user"], list) > isinstance(frames["test"][1]["user"], list):
        raise without_sessions("train")
    n_rows = sum(int(acted(frame.count)) for frame, _ in frames.values())
    if n_rows * ROW_BYTES > memory() / 2:
        raise InputError(
            f"An audit of {n_rows:,} rows takes {size_in_words(n_rows * ROW_BYTES)} on the driver, "
            "more than half of its memory. Hint: audit a sample of the users, all of whose rows "
            "are kept: frame.where('hash(user) % 10 = 0')."
        )
    here = {
        name: OneInteractions.of(acted(frame.toArrow), **columns)
        for name, (frame, columns) in frames.items()
    }
    found = audit_here(
        here["train"],
        here["test"],
        relevant_from=relevant_from,
        min_positives=min_positives,
        min_candidates=min_candidates,
    )
    described: dict[str, Any] = {
        name: f"DataFrame of Spark, columns {', '.join(frame.columns)}"
        for name, (frame, _) in frames.items()
    }
    return dataclasses.replace(found, **described)


def _of_split(split: object, given: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    if not isinstance(split, SparkSplit):
        raise InputTypeError(
            f"An audit needs train and test, or a SparkSplit, found only {type(split).__name__}. "
            "Hint: rs.audit(train, test)."
        )
    option = next((option for option, name in given.items() if name is not None), None)
    if option is not None:
        raise InputError(f"{option}= was given, but a SparkSplit knows its columns. Hint: omit it.")
    rest = split.remainder
    train = split.train if rest is None else split.train.unionByName(rest)
    columns = {name: one or False for name, one in split.columns._asdict().items()}
    return {"train": train, "test": split.test}, columns


def _chosen(data: object, what: str, given: dict[str, Any]) -> tuple[Frame, dict[str, Any]]:
    """Return the columns that are read, and by which options."""
    of = with_columns(data, **{option: given[option] for option in ("user", "item")})
    frame = need_frame(of.frame, what)
    value = given["value"] if of.value is None else of.value
    found = find_columns(frame.columns, user=of.user, item=of.item, value=value, time=given["time"])
    check_ids(frame, found)
    columns: dict[str, Any] = {name: one or False for name, one in found._asdict().items()}
    if isinstance(found.user, ColumnPair):
        columns["user"] = list(found.user.parts)
    return frame.select(*map(quoted, single_names(found))), columns

"""Read a policy's probabilities and predicted rewards for each impression of a log."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from recometer import ragged
from recometer.arrays import Bool, Float64
from recometer.data.catalogue import NamedColumns
from recometer.data.columns import check_column
from recometer.data.frames import is_array, is_column
from recometer.data.ids import encode, match, missing, show
from recometer.data.numbers import all_numbers
from recometer.errors import ColumnError, InputError, InputTypeError, did_you_mean

SUM_OF_PROBABILITIES = 1e-3  # sums may differ this much from 1, because columns may be rounded
LOGGED = "logged"  # the name of the logging policy
TARGET, PREDICTED, VALUE = "target_probability", "predicted_reward", "policy_value"
CANDIDATES = ("impression", "item", TARGET, PREDICTED, "logging_probability")


class Policy(NamedTuple):
    """A policy's numbers for each impression of a log: float64 [n], or None if unknown."""

    probability: Float64  # the probability with which the policy shows the logged item
    predicted: Float64 | None = None  # the predicted reward of the logged item
    value: Float64 | None = None  # the expected predicted reward under the policy
    # The policy's total probability of items that the logging policy never shows.
    unsupported: Float64 | None = None


class Log(NamedTuple):
    """The table of a log, the name of its column of items, and its propensities."""

    table: NamedColumns
    item: str
    propensity: Float64


def read_policy(log: Log, name: str, policy: Any, *, cascade: bool) -> Policy:
    """Read a policy in any form that `Impressions.evaluate` accepts."""
    if isinstance(policy, str | list) or is_column(policy) or is_array(policy):
        policy = {TARGET: policy}
    table = NamedColumns.of(policy)
    if table is None:
        raise InputTypeError(
            f"The policy {name!r} is of type {type(policy).__name__}. Hint: the name of a column, "
            f"an array of probabilities, or a frame with {TARGET}."
        )
    long = "impression" in table.names
    meaningful = CANDIDATES if long else (TARGET, PREDICTED, VALUE, "impression")
    for column in table.names:
        if column not in meaningful:
            raise ColumnError(
                f"The policy {name!r} has a column {column!r}, which has no meaning. "
                f"{did_you_mean(column, meaningful)}"
            )
    check_column("column", TARGET, table.names)
    if long and cascade:
        raise InputError(
            f"{name}: candidates have the probability of an item at a position, but a cascade "
            f"needs that of the item and all items above it. Hint: a frame with {TARGET}, a row "
            "for each impression."
        )
    if long:
        return _from_candidates(log, name, table)
    if (PREDICTED in table.names) != (VALUE in table.names):
        raise ColumnError(
            f"The policy {name!r} has only one of {PREDICTED} and {VALUE}. Hint: direct and doubly "
            "robust estimates need both; a table of candidates gives both."
        )
    n = len(log.propensity)
    columns = {
        column: numbers(log.table, policy[column], f"{column} of {name}", n)
        if isinstance(policy, Mapping)  # its values may name columns of the log
        else numbers(table, column, f"{column} of {name}", n)
        for column in table.names
    }
    probabilities(columns[TARGET], f"{TARGET} of {name}")
    return Policy(columns[TARGET], columns.get(PREDICTED), columns.get(VALUE))


def probabilities(values: Float64, what: str, *, above_0: bool = False) -> None:
    """Raise an error unless all values are from 0 to 1, and above 0 if `above_0`."""
    least, most = values.min(initial=1), values.max(initial=0)
    if most <= 1 and (least > 0 or (least == 0 and not above_0)):
        return
    row, value = first_of((values < 0) | (values > 1) | (above_0 & (values == 0)), values)
    if value == 0:
        hint = (
            "An item that was shown had a probability above 0, so that this one was rounded or "
            "belongs to another item; there is no estimate with it."
        )
    elif value > 0 and most <= 100:
        hint = "Percentages are divided by 100."
    else:
        hint = "Scores, counts, logarithms and inverse weights are not probabilities."
    raise InputError(
        f"The {what} in row {row} (counted from 0) is {value:g}; it must be "
        f"{'above 0 and at most 1' if above_0 else 'from 0 to 1'}. Hint: {hint}"
    )


def _from_candidates(log: Log, name: str, table: NamedColumns) -> Policy:
    """Make a policy from a table of the probabilities (and predictions) of all candidates."""
    check_column("column", "item", table.names)
    n, of = len(log.propensity), f"of the candidates of {name}"
    codes, ids = encode(table.ids("item"), f"items {of}")
    rows = numbers(table, "impression", f"impressions {of}", len(codes))
    wrong = (rows < 0) | (rows >= n) | (rows % 1 != 0)
    if wrong.any():
        raise InputError(
            f"The candidates of {name} name the impression {first_of(wrong, rows)[1]:g}, but the "
            f"log has rows 0 to {n - 1:,}. Hint: impression must be the number of a row of the log."
        )
    impression = rows.astype(np.int64)
    logged = match(log.table.ids(log.item), ids, f"items of the log ({log.item!r})", f"items {of}")
    keys = ragged.pairs(impression, codes, len(ids))
    _, first = np.unique(keys, return_index=True)
    if len(first) < len(keys):
        row = np.setdiff1d(np.arange(len(keys)), first)[0]
        raise InputError(
            f"The candidates of {name} have the item {show(ids, codes[row])} twice in "
            f"impression {impression[row]}. Hint: each item must be in one row of an impression."
        )
    is_logged = codes == logged[impression]

    def column(what: str, *, sums_to_1: bool = True) -> tuple[Float64, Float64]:
        """Return a column, and its values for the logged items."""
        values = numbers(table, what, f"{what} {of}", len(rows))
        if sums_to_1:
            probabilities(values, f"{what} {of}")
            sums = ragged.sums_of(impression, values, n)
            if (off := np.abs(sums - 1) > SUM_OF_PROBABILITIES).any():
                row, sum_of_row = first_of(off, sums)
                raise InputError(
                    f"The {what} {of} in impression {row} add up to {sum_of_row:g}, but must add "
                    "up to 1. Hint: every item with a probability above 0 needs a row, and scores "
                    "need a softmax."
                )
        of_logged = np.zeros(n)
        of_logged[impression[is_logged]] = values[is_logged]
        return values, of_logged

    target, probability = column(TARGET)
    predicted = value = unsupported = None
    if PREDICTED in table.names:
        predictions, predicted = column(PREDICTED, sums_to_1=False)
        value = ragged.sums_of(impression, target * predictions, n)
    if "logging_probability" in table.names:
        logging, own = column("logging_probability")
        off = np.abs(own - log.propensity) > SUM_OF_PROBABILITIES * np.maximum(own, 1e-3)
        if off.any():
            row, of_row = first_of(off, own)
            raise InputError(
                f"The candidates of {name} give the logged item of row {row} the "
                f"logging_probability {of_row:g}, but its propensity in the log is "
                f"{log.propensity[row]:g}. Hint: they must be equal."
            )
        unsupported = ragged.sums_of(impression, np.where(logging > 0, 0.0, target), n)
    return Policy(probability, predicted, value, unsupported)


def numbers(table: NamedColumns, column: Any, what: str, n: int) -> Float64:
    """Return a column of n finite numbers, given as an array or as the name of a column."""
    if isinstance(column, str):
        check_column("column", column, table.names)
        values = table.numbers(column, what)
        what += f" (column {column!r})"
    else:
        values = all_numbers(column, what)
    if values.shape != (n,):
        raise InputError(
            f"The {what} must have a value for each of the {n:,} rows, found the shape "
            f"{values.shape}."
        )
    if not np.isfinite(values.sum()) and not np.isfinite(values).all():
        row, value = first_of(~np.isfinite(values), values)
        if np.isnan(value):
            missing(what, row)
        raise InputError(f"The {what} must be finite, found {value} in row {row}.")
    return values


def first_of(wrong: Bool, values: Float64) -> tuple[int, float]:
    """Return the first row that is marked as wrong, and its value."""
    row = int(np.argmax(wrong))
    return row, float(values[row])

"""What a policy would have done on each impression: its probabilities and predicted rewards."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from recometer import ragged
from recometer.arrays import Bool, Float64
from recometer.data.catalogue import NamedColumns
from recometer.data.columns import check_column
from recometer.data.frames import is_array, is_column
from recometer.data.ids import as_ids, encode, kind, missing, show
from recometer.data.numbers import all_numbers
from recometer.errors import ColumnError, InputError, InputTypeError, did_you_mean

SUM_OF_PROBABILITIES = 1e-3  # how far a sum may be from 1, since columns may be rounded
LOGGED = "logged"  # the policy that wrote the log
TARGET, PREDICTED, VALUE = "target_probability", "predicted_reward", "policy_value"
CANDIDATES = ("impression", "item", TARGET, PREDICTED, "logging_probability")


@dataclasses.dataclass(frozen=True, eq=False)
class Policy:
    """A policy on the impressions of a log.

    Attributes
    ----------
    probability : float64 [n]
        The probability of the logged item.
    predicted, value : float64 [n] or None
        The predicted reward of the logged item, and the expected prediction under the policy.
    unsupported : float64 [n] or None
        The probability of items that the logged policy never shows there; None if not all of its
        probabilities are known.
    from_candidates
        Whether the probabilities come from a table of candidates.
    """

    probability: Float64
    predicted: Float64 | None = None
    value: Float64 | None = None
    unsupported: Float64 | None = None
    from_candidates: bool = False


@dataclasses.dataclass(frozen=True, eq=False)
class LogColumns:
    """The columns of a log by name, its number of rows, and the name of the column of items."""

    columns: NamedColumns
    n: int
    item: str

    def numbers(self, column: Any, what: str) -> Float64:
        """Return finite numbers, one for each row; a text names their column in the log."""
        if not isinstance(column, str):
            return finite(all_numbers(column, what), what, self.n)
        check_column("column", column, self.columns.names)
        return finite(self.columns.numbers(column, what), f"{what} (column {column!r})", self.n)


def read_policy(log: LogColumns, propensity: Float64, name: str, given: Any) -> Policy:
    """Read a policy in any form that `Impressions.evaluate` takes."""
    if isinstance(given, str | list) or is_column(given) or is_array(given):
        given = {TARGET: given}
    table = NamedColumns.of(given)
    if table is None:
        raise InputTypeError(
            f"The policy {name!r} is of type {type(given).__name__}. Hint: the name of a column, "
            f"an array of probabilities, or a frame with {TARGET}."
        )
    long = "impression" in table.names
    known = CANDIDATES if long else (TARGET, PREDICTED, VALUE, "impression")
    for column in table.names:
        if column not in known:
            raise ColumnError(
                f"The policy {name!r} has a column {column!r}, which has no meaning. "
                f"{did_you_mean(column, known)}"
            )
    check_column("column", TARGET, table.names)
    if long:
        return _from_candidates(log, propensity, name, table)
    if (PREDICTED in table.names) != (VALUE in table.names):
        raise ColumnError(
            f"The policy {name!r} has only one of {PREDICTED} and {VALUE}. Hint: direct and doubly "
            "robust estimates need both; a table of candidates gives both."
        )
    columns = {}
    for column in table.names:
        what = f"{column} of {name}"
        if isinstance(given, Mapping):  # its values may name columns of the log
            columns[column] = log.numbers(given[column], what)
        else:
            columns[column] = finite(table.numbers(column, what), what, log.n)
    probability = probabilities(columns[TARGET], f"{TARGET} of {name}")
    return Policy(probability, columns.get(PREDICTED), columns.get(VALUE))


def probabilities(values: Float64, what: str, *, above_0: bool = False) -> Float64:
    """Return values from 0 (or above 0) to 1."""
    least, most = values.min(initial=1), values.max(initial=0)
    if most <= 1 and (least > 0 or (least == 0 and not above_0)):
        return values
    row, value = first_of((values < 0) | (values > 1) | (above_0 & (values == 0)), values)
    if value == 0:
        hint = (
            "An item that was shown had a probability above 0, so that this one was rounded or "
            "belongs to another item; there is no estimate with it."
        )
    elif value < 0:
        hint = "Logarithms of probabilities are converted with exp."
    elif most <= 100:
        hint = "Percentages are divided by 100."
    else:
        hint = "Scores, counts and inverse weights are not probabilities."
    raise InputError(
        f"The {what} in row {row} (counted from 0) is {value:g}; it must be "
        f"{'above 0 and at most 1' if above_0 else 'from 0 to 1'}. Hint: {hint}"
    )


def _from_candidates(
    log: LogColumns, propensity: Float64, name: str, table: NamedColumns
) -> Policy:
    """Return a policy from the probabilities (and predictions) of all candidates."""
    check_column("column", "item", table.names)
    n, of = log.n, f"of the candidates of {name}"
    rows = table.numbers("impression", f"impressions {of}")
    rows = finite(rows, f"impressions {of}", len(rows))
    wrong = (rows < 0) | (rows >= n) | (rows % 1 != 0)
    if wrong.any():
        raise InputError(
            f"The candidates of {name} name the impression {first_of(wrong, rows)[1]:g}, but the "
            f"log has rows 0 to {n - 1:,}. Hint: impression must be the number of a row of the log."
        )
    impression = rows.astype(np.int64)
    logged = as_ids(log.columns.ids(log.item), f"item ids (column {log.item!r})")
    offered = as_ids(table.ids("item"), f"items {of}")
    if kind(logged) != kind(offered):
        raise InputError(
            f"The items of the log are of type {kind(logged)}, those of the candidates of {name} "
            f"of type {kind(offered)}. Hint: they must be the same ids."
        )
    codes, ids = encode(np.concatenate([logged, offered]), "item ids")
    keys = ragged.pairs(impression, codes[n:], len(ids))
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    twice = np.flatnonzero(ordered[1:] == ordered[:-1])
    if len(twice):
        at = order[twice[0]]
        raise InputError(
            f"The candidates of {name} have the item {show(ids, codes[n + at])} twice in "
            f"impression {impression[at]}. Hint: each item must be in one row of an impression."
        )
    wanted = ragged.pairs(np.arange(n), codes[:n], len(ids))
    there = ragged.among(wanted, ordered)
    places = order[np.searchsorted(ordered, wanted[there])]

    def column(what: str, *, sums_to_1: bool = True) -> tuple[Float64, Float64]:
        """Return a column, and its values for the logged items."""
        values = finite(table.numbers(what, f"{what} {of}"), f"{what} {of}", len(rows))
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
        of_logged[there] = values[places]
        return values, of_logged

    target, probability = column(TARGET)
    predicted = value = unsupported = None
    if PREDICTED in table.names:
        predictions, predicted = column(PREDICTED, sums_to_1=False)
        value = ragged.sums_of(impression, target * predictions, n)
    if "logging_probability" in table.names:
        logging, own = column("logging_probability")
        off = np.abs(own - propensity) > SUM_OF_PROBABILITIES * np.maximum(own, 1e-3)
        if off.any():
            row, of_row = first_of(off, own)
            raise InputError(
                f"The candidates of {name} give the logged item of row {row} the "
                f"logging_probability {of_row:g}, but its propensity in the log is "
                f"{propensity[row]:g}. Hint: they must be equal."
            )
        unsupported = ragged.sums_of(impression, np.where(logging > 0, 0.0, target), n)
    return Policy(probability, predicted, value, unsupported, from_candidates=True)


def finite(values: Float64, what: str, n: int) -> Float64:
    """Return n finite numbers."""
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
    """Return the first row where something is wrong, and its value."""
    row = int(np.argmax(wrong))
    return row, float(values[row])

"""What a policy would have done on each impression: its probabilities and predicted rewards."""

from __future__ import annotations

import dataclasses
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

    def numbers(self, given: Any, what: str) -> Float64:
        """Return finite numbers, one for each row; a text names their column in the log."""
        if isinstance(given, str):
            check_column("column", given, self.columns.names)
            given, what = self.columns.numbers(given, what), f"{what} (column {given!r})"
        return finite(all_numbers(given, what), what, self.n)


def read_policy(log: LogColumns, propensity: Float64, name: str, given: Any) -> Policy:
    """Read a policy in any form that `Impressions.evaluate` takes."""
    if isinstance(given, str) or is_column(given) or is_array(given) or isinstance(given, list):
        given = {TARGET: given}
    table = NamedColumns.of(given)
    if table is None:
        raise InputTypeError(
            f"The policy {name!r} is of type {type(given).__name__}. Hint: the name of a column, "
            f"an array of probabilities, or a frame with {TARGET}."
        )
    long = "impression" in table.names
    known = CANDIDATES if long else (TARGET, PREDICTED, VALUE, "impression")
    for one in table.names:
        if one not in known:
            raise ColumnError(
                f"The policy {name!r} has a column {one!r}, which has no meaning. "
                f"{did_you_mean(one, known)}"
            )
    check_column("column", TARGET, table.names)
    if long:
        return _from_candidates(log, propensity, name, table)
    if (PREDICTED in table.names) != (VALUE in table.names):
        raise ColumnError(
            f"The policy {name!r} has only one of {PREDICTED} and {VALUE}. Hint: direct and doubly "
            "robust estimates need both; a table of candidates gives both."
        )
    columns = {one: log.numbers(table.fetch(one), f"{one} of {name}") for one in table.names}
    probability = _probabilities(columns[TARGET], name)
    return Policy(probability, columns.get(PREDICTED), columns.get(VALUE))


def _probabilities(values: Float64, policy: str, what: str = TARGET) -> Float64:
    if values.min(initial=0) >= 0 and values.max(initial=1) <= 1:
        return values
    row, value = first_of((values < 0) | (values > 1), values)
    hint = "Percentages are divided by 100." if 1 < value <= 100 else "Scores need a softmax."
    raise InputError(
        f"The {what} of {policy} in row {row} (counted from 0) is {value:g}, but must be from 0 to "
        f"1. Hint: {hint}"
    )


def _from_candidates(
    log: LogColumns, propensity: Float64, name: str, table: NamedColumns
) -> Policy:
    """Return a policy from the probabilities (and predictions) of all candidates."""
    check_column("column", "item", table.names)
    n = log.n
    what = f"impressions of the candidates of {name}"
    rows = table.numbers("impression", what)
    rows = finite(rows, what, len(rows))
    wrong = (rows < 0) | (rows >= n) | (rows % 1 != 0)
    if wrong.any():
        raise InputError(
            f"The candidates of {name} name the impression {first_of(wrong, rows)[1]:g}, but the "
            f"log has rows 0 to {n - 1:,}. Hint: impression must be the number of a row of the log."
        )
    impression = rows.astype(np.int64)
    logged = as_ids(log.columns.ids(log.item), f"item ids (column {log.item!r})")
    offered = as_ids(table.ids("item"), f"items of the candidates of {name}")
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
    place = np.searchsorted(ordered, wanted)
    there = ragged.among(wanted, ordered)

    def column(one: str, *, probabilities: bool = True) -> tuple[Float64, Float64]:
        """Return a column, and its values for the logged items."""
        of = f"{one} of the candidates of {name}"
        values = finite(table.numbers(one, of), of, len(rows))
        if probabilities:
            _probabilities(values, name, f"{one} of the candidates")
            sums = ragged.sums_of(impression, values, n)
            if (off := np.abs(sums - 1) > SUM_OF_PROBABILITIES).any():
                row, sum_of_row = first_of(off, sums)
                raise InputError(
                    f"The {of} in impression {row} add up to {sum_of_row:g}, but must add up to 1. "
                    "Hint: every item with a probability above 0 needs a row, and scores need a "
                    "softmax."
                )
        of_logged = np.zeros(n)
        of_logged[there] = values[order[place[there]]]
        return values, of_logged

    target, probability = column(TARGET)
    predicted = value = unsupported = None
    if PREDICTED in table.names:
        predictions, predicted = column(PREDICTED, probabilities=False)
        value = ragged.sums_of(impression, target * predictions, n)
    if "logging_probability" in table.names:
        logging, found = column("logging_probability")
        off = np.abs(found - propensity) > SUM_OF_PROBABILITIES * np.maximum(found, 1e-3)
        if off.any():
            row, own = first_of(off, found)
            raise InputError(
                f"The candidates of {name} give the logged item of row {row} the "
                f"logging_probability {own:g}, but its propensity in the log is "
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

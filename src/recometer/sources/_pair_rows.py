"""Rows of scored pairs, from frames, Surprise's predictions and arrays."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from recometer.arrays import Array, Float64, Int64
from recometer.data import ids
from recometer.data.columns import choose_columns
from recometer.data.frames import is_frame, open_frame
from recometer.data.numbers import (
    all_numbers,
    are_ignored,
    as_array,
    sizes_of,
    without_mask,
)
from recometer.errors import InputError, InputTypeError, brief

Ids = Array
Truth = Literal["relevance", "rating"]

REQUIRED = ("user", "score")
TRUTHS: tuple[Truth, ...] = ("relevance", "rating")
FIELDS = ("uid", "iid", "r_ui", "est")  # of Surprise's Prediction


@dataclasses.dataclass(frozen=True)
class PairRows:
    """Scored pairs, by user, then item, then truth, then score."""

    user: Int64  # positions among the ids, or among all
    item: Int64
    score: Float64  # NaN where it is missing
    truth: Float64 | None  # relevance, or true rating
    kind: Truth | None  # which of these it is, if any
    user_ids: Ids | None  # sorted and distinct; None for positions
    item_ids: Ids | None
    n_users: int
    n_items: int
    n_without_truth: int  # rows that were left out


def are_predictions(data: object) -> bool:
    """Return whether these are Surprise's predictions, by the attributes of the first."""
    return (
        isinstance(data, Sequence)
        and len(data) > 0
        and all(hasattr(data[0], field) for field in FIELDS)
    )


def from_predictions(data: Sequence[Any]) -> PairRows:
    """Read Surprise's predictions."""
    try:
        users, items, truth, score = zip(
            *((row.uid, row.iid, row.r_ui, row.est) for row in data), strict=True
        )
    except AttributeError as error:
        raise InputTypeError(
            f"Not all of the {len(data):,} rows are predictions: {error}. Hint: expected what "
            "Surprise's algorithms return, with uid, iid, r_ui and est."
        ) from None
    return _sorted(
        ids.encode(list(users), "user ids (uid)"),
        ids.encode(list(items), "item ids (iid)"),
        _numbers(_objects(score), "predicted ratings (est)"),
        _numbers(_objects(truth), "true ratings (r_ui)"),
        "rating",
    )


def from_frame(data: Any, ignored: object = None, **given: object) -> PairRows:
    """Read a data frame; `given` are the options of `recometer.Pairs`, by name.

    Rows whose truth is among `ignored` are left out.
    """
    if not is_frame(data):
        raise InputTypeError(
            f"Pairs cannot be read from {type(data).__name__}. Hint: pass a data frame (Polars, "
            "pandas, Arrow, DuckDB; polars.DataFrame(data) makes one of a dict of columns) or "
            "Surprise's list of predictions; Pairs.of(relevance, scores) takes arrays."
        )
    names, fetch = open_frame(data)
    chosen = _choose(names, given)
    wanted = list(chosen.values())
    columns = dict(zip(wanted, fetch(wanted), strict=True))
    kind = next((option for option in TRUTHS if option in chosen), None)
    truth = None
    if kind is not None:
        truth = _numbers(columns[chosen[kind]], f"{kind}s (column {chosen[kind]!r})")
        truth = _without_ignored(truth, ignored)
    elif ignored is not None:
        raise InputError(
            "ignore_label= names values of the truth, which these rows do not have. Hint: "
            "relevance= or rating= names its column."
        )
    items = None
    if "item" in chosen:
        items = ids.encode(columns[chosen["item"]], f"item ids (column {chosen['item']!r})")
    return _sorted(
        ids.encode(columns[chosen["user"]], f"user ids (column {chosen['user']!r})"),
        items,
        _numbers(columns[chosen["score"]], f"scores (column {chosen['score']!r})"),
        truth,
        kind,
    )


def with_items(rows: PairRows, item_ids: Array) -> PairRows:
    """Return the same rows among more items, of which `item_ids` are sorted and distinct."""
    assert rows.item_ids is not None
    places = ids.match(rows.item_ids, item_ids, "item ids of Pairs")
    return dataclasses.replace(
        rows, item=places[rows.item], item_ids=item_ids, n_items=len(item_ids)
    )


def from_arrays(
    relevance: object, scores: object, groups: object, sizes: object = None, ignored: object = None
) -> PairRows:
    """Read arrays, each with an entry per row, or the number of rows of each user.

    As in `from_frame`, rows whose truth is among `ignored` are left out.
    """
    truth = _numbers(relevance, "relevance")
    truth = _without_ignored(truth, ignored)
    if sizes is not None:
        if groups is not None:
            raise InputError("Pairs.of takes groups, one for each row, or sizes=: not both.")
        rows = sizes_of(sizes, len(truth))
        groups = np.repeat(np.arange(len(rows)), rows)
    score = _numbers(scores, "scores")
    users = None if groups is None else ids.encode(groups, "groups")
    lengths = {"relevance": len(truth), "scores": len(score)}
    if users is not None:
        lengths["groups"] = len(users[0])
    if len(set(lengths.values())) > 1:
        found = ", ".join(f"{name} {length:,}" for name, length in lengths.items())
        hint = ""
        if users is not None and _add_up(groups, len(truth)):
            hint = " Hint: groups= has the user of each row; sizes= the number of rows of each."
        raise InputError(f"Pairs.of takes arrays of one length, found {found}.{hint}")
    return _sorted(users, None, score, truth, "relevance")


def _add_up(groups: object, n_rows: int) -> bool:
    """Return whether these could be the numbers of rows of groups."""
    given = np.asarray(groups)
    return given.dtype.kind in "iu" and int(given.sum()) == n_rows


def _sorted(
    users: tuple[Int64, Ids] | None,
    items: tuple[Int64, Ids] | None,
    score: Float64,
    truth: Float64 | None,
    kind: Truth | None,
) -> PairRows:
    """Leave out rows without truth, and sort: the order of the rows makes no difference."""
    n = len(score)
    user, user_ids = users if users is not None else (np.zeros(n, np.int64), None)
    # Without items each row is one, in the order given.
    item, item_ids = items if items is not None else (np.arange(n), None)
    keep = np.ones(n, bool) if truth is None else ~np.isnan(truth)
    n_items = n if item_ids is None else len(item_ids)
    key = user * n_items + item
    order = np.argsort(key, kind="stable")
    if (np.diff(key[order]) == 0).any():
        order = np.lexsort((score, key) if truth is None else (score, truth, key))
    if not keep.all():
        order = order[keep[order]]
    return PairRows(
        user=user[order],
        item=item[order],
        score=score[order],
        truth=None if truth is None else truth[order],
        kind=kind,
        user_ids=user_ids,
        item_ids=item_ids,
        n_users=1 if user_ids is None else len(user_ids),
        n_items=n_items,
        n_without_truth=int(np.count_nonzero(~keep)),
    )


def one_of_each(rows: PairRows, first: Int64, truth: Float64 | None, nan: str) -> PairRows:
    """Return rows in which each pair is there once, with its best score.

    `first` are the places where pairs begin, `truth` is that of each, and `nan` the rule for NaN.
    """
    best = np.fmax if nan == "last" else np.maximum
    return dataclasses.replace(
        rows,
        user=rows.user[first],
        item=rows.item[first],
        score=best.reduceat(rows.score, first),
        truth=truth,
    )


def check_rows(rows: PairRows) -> None:
    """Refuse pairs without rows, or without a row that has a truth."""
    if len(rows.user):
        return
    if not rows.n_without_truth:
        raise InputError("Pairs has no rows.")
    raise InputError(
        f"None of the {rows.n_without_truth:,} rows of Pairs has a true rating or relevance. Hint: "
        "is this the right column? The predictions of a test set have them, those for new items do "
        "not."
    )


def _without_ignored(truth: Float64, ignored: object) -> Float64:
    """Return NaN for labels that are to be ignored; refuse to ignore all."""
    padding = are_ignored(truth, ignored)
    if len(padding) and padding.all():
        raise InputError(
            f"All {len(padding):,} rows of Pairs have a label that ignore_label={brief(ignored)} "
            "leaves out. Hint: name only labels of padding, not those of items that were judged."
        )
    return np.where(padding, np.nan, truth)


def _choose(names: list[str], given: dict[str, object]) -> dict[str, str]:
    """Return the columns to read, by option."""
    named = [option for option in TRUTHS if isinstance(given[option], str)]
    # Where one truth is named, the other is not looked for.
    wanted = {
        option: False if named and option in TRUTHS and option not in named else name
        for option, name in given.items()
    }
    found = choose_columns(names, wanted, required=REQUIRED, strict=("score",))
    chosen = {option: name for option, name in found.items() if name is not None}
    if "relevance" in chosen and "rating" in chosen:
        raise InputError(
            f"relevance={chosen['relevance']!r} and rating={chosen['rating']!r} are two truths. "
            "Hint: name the one that counts."
        )
    return chosen


def _numbers(column: Any, what: str) -> Float64:
    array = without_mask(as_array(column, f"The {what}"))
    if array.ndim != 1:
        raise InputError(f"The {what} must have one dimension, found shape {array.shape}.")
    return all_numbers(array, what)


def _objects(values: Sequence[Any]) -> Ids:
    return np.fromiter(values, object, len(values))

"""From which truth on a pair is relevant: for all users, or for each."""

from __future__ import annotations

import math
import numbers
from collections.abc import Mapping
from typing import Any, Literal

import numpy as np

from recometer.arrays import Float64
from recometer.data import ids
from recometer.errors import InputError, InputTypeError, brief
from recometer.sources._pair_rows import PairRows

Threshold = float | Mapping[Any, float] | Literal["user_mean"] | None

PREDICTIONS_FROM = 3.5  # of Surprise, where nothing else is said


def per_user(rows: PairRows, threshold: Threshold) -> Float64:
    """Return the threshold of each user."""
    if rows.truth is None:
        raise InputError(
            "threshold= says from which truth on a row is relevant, but the scores have no truth. "
            "Hint: pass relevance= or rating=, or give evaluate relevant_from=."
        )
    if isinstance(threshold, Mapping):
        return _from_dict(rows, threshold)
    if isinstance(threshold, str) and threshold == "user_mean":
        size = np.bincount(rows.user, minlength=rows.n_users)
        total = np.bincount(rows.user, weights=rows.truth, minlength=rows.n_users)
        mean = np.divide(total, size, out=np.zeros(rows.n_users), where=size > 0)
        # Rounding must not put the mean of equal ratings above them.
        low, high = np.full(rows.n_users, np.inf), np.full(rows.n_users, -np.inf)
        np.minimum.at(low, rows.user, rows.truth)
        np.maximum.at(high, rows.user, rows.truth)
        return np.where(size > 0, np.clip(mean, low, np.maximum(low, high)), 0.0)
    return np.full(rows.n_users, _checked(threshold, "threshold"))


def _from_dict(rows: PairRows, threshold: Mapping[Any, float]) -> Float64:
    if rows.user_ids is None:
        raise InputError("A threshold for each user needs users. Hint: pass groups=.")
    found = ids.match(rows.user_ids, list(threshold), "user ids of Pairs", "keys of threshold")
    if (found < 0).any():
        lacking = ids.show(rows.user_ids, int((found < 0).argmax()))
        raise InputError(
            f"threshold= has no entry for {np.count_nonzero(found < 0):,} of the "
            f"{rows.n_users:,} users, such as {lacking}."
        )
    values = [_checked(value, f"the threshold of user {key!r}") for key, value in threshold.items()]
    return np.array(values)[found]


def _checked(threshold: object, what: str) -> float:
    if isinstance(threshold, bool) or not isinstance(threshold, numbers.Real):
        raise InputTypeError(
            f"{what}={threshold!r} must be a number, a dict {{user: number}} or 'user_mean'."
        )
    try:
        found = float(threshold)
    except OverflowError:
        found = math.inf
    if not math.isfinite(found):
        raise InputError(f"{what}={brief(threshold)} must be a finite number.")
    return found

"""Applies the rules `single_precision` and `infinite_scores` before scores are compared."""

from __future__ import annotations

import dataclasses
import sys
from typing import Any

import numpy as np

from recometer.data.tensors import is_tensor
from recometer.protocol import Protocol
from recometer.sources._list_table import ListTable


def compared(scores: Any, protocol: Protocol, *, lowest: bool = False) -> Any:
    """Return scores as the rules say: rounded, or with infinity replaced by the largest number.

    Parameters
    ----------
    scores : float array or tensor
        Not changed.
    protocol
    lowest
        Whether -inf is also a score, instead of marking an item that is not a candidate.
    """
    scores = rounded(scores, protocol)
    if protocol.infinite_scores == "undefined":
        return scores
    if is_tensor(scores):
        torch = sys.modules["torch"]
        return scores.clamp(max=torch.finfo(scores.dtype).max)
    ends = np.finfo(scores.dtype)
    infinite = np.isinf(scores) if lowest else np.isposinf(scores)
    return np.where(infinite, np.copysign(ends.max, scores), scores) if infinite.any() else scores


def rounded(scores: Any, protocol: Protocol) -> Any:
    """Return scores of the same dtype, rounded to single precision if the rule says so.

    Scores that are too large become infinite. No score becomes -inf, because -inf marks items that
    are not candidates in `Scores`.
    """
    if not protocol.single_precision:
        return scores
    if is_tensor(scores):
        return scores.float().to(scores.dtype)
    if scores.dtype == np.float32:
        return scores
    with np.errstate(over="ignore"):
        return scores.astype(np.float32).astype(scores.dtype)


def compared_in_lists(table: ListTable, protocol: Protocol) -> ListTable:
    """Return lists with scores as they are compared; ranks are not rounded."""
    scores = table.scores
    if protocol.single_precision and table.given is not None:
        scores = rounded(
            table.given, protocol
        )  # rounding may make strictly descending scores equal
    if scores is not None:
        scores = compared(scores, protocol.replace(single_precision=False), lowest=True)
    return table if scores is table.scores else dataclasses.replace(table, scores=scores)

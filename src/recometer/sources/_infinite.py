"""Infinite scores that are ranked like others, by the rule `infinite_scores`."""

from __future__ import annotations

import dataclasses
import sys
from typing import Any

import numpy as np

from recometer.data.tensors import is_tensor
from recometer.protocol import Protocol
from recometer.sources._list_table import ListTable


def ranked_infinities(scores: Any, protocol: Protocol, *, lowest: bool = False) -> Any:
    """Return scores in which infinity is the largest number that is not.

    Parameters
    ----------
    scores : float array or tensor
        Not changed.
    protocol
    lowest
        Whether -inf is a score, too, and not the mark of what is not a candidate.
    """
    if protocol.infinite_scores == "undefined":
        return scores
    if is_tensor(scores):
        torch = sys.modules["torch"]
        return scores.clamp(max=torch.finfo(scores.dtype).max)
    ends = np.finfo(scores.dtype)
    infinite = np.isinf(scores) if lowest else np.isposinf(scores)
    return np.where(infinite, np.copysign(ends.max, scores), scores) if infinite.any() else scores


def ranked_in_lists(table: ListTable, protocol: Protocol) -> ListTable:
    """Return lists in which infinite scores are numbers, by the rule."""
    if table.scores is None:
        return table
    scores = ranked_infinities(table.scores, protocol, lowest=True)
    return table if scores is table.scores else dataclasses.replace(table, scores=scores)

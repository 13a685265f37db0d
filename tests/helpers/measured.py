"""Compute metrics from records of ranks, lists or ratings, without a source or test data."""

from __future__ import annotations

from typing import Any

import recometer as rm
from recometer.measuring.compute import compute, compute_for_all
from recometer.measuring.listed import ListedUsers
from recometer.measuring.ranked import RankedUsers
from recometer.measuring.rated import RatedUsers
from recometer.metrics import ListData

__all__ = ["compute", "compute_for_all", "record_users"]


def record_users(record: Any, *arguments: Any) -> Any:
    """Convert a record to the form that `compute` and `compute_for_all` take."""
    if isinstance(record, rm.Ranks):
        return RankedUsers(record, *arguments)
    return (ListedUsers if isinstance(record, ListData) else RatedUsers)(record, *arguments)

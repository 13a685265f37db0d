"""Metrics with one value for all users that follows from sums over blocks of users."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from recometer.arrays import Float64


class Summed(NamedTuple):
    """Sums over users, for a metric with one value for all users at a cut-off."""

    items: Float64 | None  # [n_items]; None if nothing is counted by item
    totals: Float64


class AddsUp(NamedTuple):
    """How the one value of a metric for all users follows from sums over blocks of users.

    ``sums(data, cutoff, weights, **parameters)`` returns the `Summed` of some users, and
    ``value(known, summed, cutoff, **parameters)`` the value for all users; `known` are facts about
    the items that do not depend on the lists.
    """

    sums: Callable[..., Summed]
    value: Callable[..., float]

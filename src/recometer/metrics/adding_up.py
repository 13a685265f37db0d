"""Metrics with one value for all users, computed from sums over blocks of users."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from recometer.arrays import Float64


class Summed(NamedTuple):
    """Sums over users that determine a metric's value for all users at one cut-off."""

    items: Float64 | None  # a sum for each item, [n_items]; None if not needed
    totals: Float64


class AddsUp(NamedTuple):
    """The two functions behind a metric that has one value for all users.

    ``sums(data, cutoff, weights, **parameters)`` returns the `Summed` for a block of users, and
    ``value(facts, summed, cutoff, **parameters)`` returns the value for all users. `facts`
    describes the items and does not depend on the lists.
    """

    sums: Callable[..., Summed]
    value: Callable[..., float]

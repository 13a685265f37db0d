"""Values of all users that follow from sums over parts of the users."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from recometer.arrays import Float64


class Summed(NamedTuple):
    """Sums over users, for a metric with one value for all users at a cut-off."""

    items: Float64 | None  # [n_items]; None if nothing is counted by item
    totals: Float64


class AddsUp(NamedTuple):
    """How a metric with one value for all users follows from sums over parts of them.

    ``sums(data, cutoff, weights, **parameters)`` returns the `Summed` of some users, and
    ``value(known, summed, cutoff, **parameters)`` the value of all of them, `known` being what is
    known about the items, apart from the lists.
    """

    sums: Callable[..., Summed]
    value: Callable[..., float]

"""Items by the length of their factors: where users may leave before all items are scored.

By Cauchy and Schwarz no score is above the product of the lengths of the two rows of factors.
With the longest items scored first, a user leaves as soon as no item that follows can reach the
scores that still matter. The results are the same to the last bit: scores are computed as usual,
and the bounds hold for scores as they are computed, rounding included.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from recometer import _kernel
from recometer.arrays import Array, Float64, Int32
from recometer.sources._align_result import Aligned
from recometer.sources._factor_arrays import FactorArrays

# Fewer are ranked faster than they are put in order.
LEAST_ITEMS = 1024
LEAST_USERS = 16

# Where the median length of some rows is nearer to the longest, hardly a user leaves early.
MOST_ALIKE = 0.6
SAMPLE = 256


@dataclasses.dataclass(frozen=True)
class LongestFirst:
    """The order of the items, and bounds of their scores.

    Attributes
    ----------
    by_place, places : int32 [n_items]
        The item at each place, and the place of each item, in the numbering of `Aligned`.
    item_bound : float64 [n_items]
        By place, descending. No score, as it is computed, of a user and the item at a place or a
        later one is above the product of this and the user's bound.
    one : float
        The factor of each user that an item's bias is multiplied with, 0 without biases.
    """

    by_place: Int32
    places: Int32
    item_bound: Float64
    one: float

    @classmethod
    def of(cls, lengths: Float64, one: float) -> LongestFirst:
        """Put items of these lengths (float64 [n_items]) in order."""
        by_place, bounds = np.empty(len(lengths), np.int32), np.empty(len(lengths))
        _kernel.longest_first(lengths, by_place, bounds)
        places = np.empty(len(lengths), np.int32)
        places[by_place] = np.arange(len(lengths), dtype=np.int32)
        return cls(by_place, places, bounds, one)

    def native(self, users: Array) -> dict[str, Any]:
        """Return the order and the bounds for some users as the kernel's functions take them."""
        return {
            "by_place": self.by_place,
            "places": self.places,
            "item_bound": self.item_bound,
            "user_bound": length_bounds(users, self.one),
        }


OWN_ORDER: dict[str, Any] = dict.fromkeys(("by_place", "places", "item_bound", "user_bound"))


def shared_scale(factors: FactorArrays, aligned: Aligned) -> float | None:
    """Return `LongestFirst.one`, or None where no order pays."""
    if aligned.n_items < LEAST_ITEMS or aligned.n_users < LEAST_USERS:
        return None
    one, typical = 0.0, _some(factors.items)
    some_bias: Float64 | float = 0.0
    if factors.item_bias is not None:
        bias = np.maximum(factors.item_bias, 0).astype(np.float64)
        one = _balance(factors.users, typical, bias)
        some_bias = _some(bias) / one
    some_lengths = length_bounds(typical, some_bias)
    if np.median(some_lengths) > MOST_ALIKE * some_lengths.max():
        return None
    return one


def item_lengths(items: Array, bias: Array | None, one: float) -> Float64:
    """Return bounds of the lengths of items, their biases being one more factor."""
    if bias is None:
        return length_bounds(items)
    # A bias below 0 lowers scores, also where they are rounded.
    return length_bounds(items, np.maximum(bias, 0).astype(np.float64) / one)


def length_bounds(matrix: Array, more: Float64 | float = 0.0) -> Float64:
    """Return bounds of the Euclidean lengths of rows, with room for the rounding of scores.

    `more` is one more factor of each row, for the biases: their product is at least 0.

    Let u and v be rows of n factors, b the bias, e the distance from 1 to the next number of
    their dtype, and t its smallest number with full precision.

    - A score is b and n products, added up. With or without fused operations each term takes at
      most n + 1 roundings, each by a factor of at most 1 + e/2, so that the score is at most
      (1 + (n + 1) e) (b + |u| |v|), for b >= 0 and (n + 1) e <= 1. Where results are too small
      for full precision, or are flushed to 0, another n t.
    - A sum of n squares, in any order, is at least (1 - (n + 1) e/2) |u|^2 - n t, and its root
      at least (1 - (n + 2) e/2) |u| - sqrt(n t), as computed.

    Both bounds being larger by a factor of 1 + 2 (n + 4) e and then by 2 sqrt((n + 1) t), their
    product is at least the score, and there is room for the few roundings here and in the kernel.
    What is too large for its square to be a number gets an infinite bound.
    """
    n, limits = matrix.shape[1], np.finfo(matrix.dtype)
    with np.errstate(over="ignore", under="ignore"):
        lengths = np.sqrt(np.einsum("ij,ij->i", matrix, matrix)).astype(np.float64)
    room = (n + 4) * float(limits.eps)
    if room > 0.25:
        return np.full(len(matrix), np.inf)
    # Mostly there are no biases, and this function takes longer than all else here.
    bounds: Float64 = np.hypot(lengths, more) if np.any(more) else lengths
    bounds *= 1 + 2 * room
    bounds += 2 * np.sqrt((n + 1) * float(limits.tiny))
    return bounds


def _some(rows: Array) -> Array:
    """Return some of the rows, from all over."""
    return rows[:: max(1, len(rows) // SAMPLE)]


def _balance(users: Array, items: Array, bias: Float64) -> float:
    """Return the factor of users for the biases that makes bounds tight for typical rows.

    With biases as one more factor, the bound is sqrt(|u|^2 + one^2) sqrt(|v|^2 + b^2 / one^2),
    which is |u| |v| + b where one^2 = b |u| / |v|. Any positive number is right; a power of 2
    divides without rounding.
    """
    user = np.mean(length_bounds(_some(users))) if len(users) else np.float64(0)
    with np.errstate(all="ignore"):
        squared = np.mean(bias) * user / np.mean(length_bounds(items))
    if not (np.isfinite(squared) and squared > 0):
        return 1.0
    return float(2.0 ** np.clip(np.round(np.log2(squared) / 2), -30, 30))

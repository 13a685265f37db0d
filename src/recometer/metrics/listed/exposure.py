"""How much of the users' attention groups of items get."""

from __future__ import annotations

import dataclasses

import numpy as np

from recometer.arrays import Float64, Int64
from recometer.metrics.listed.data import ListData, needed
from recometer.metrics.listed.sums import exposures, places_discount
from recometer.ragged import sums_of


@dataclasses.dataclass(frozen=True, eq=False)
class GroupExposure:
    """What groups of items get, and what they make up; the last entry is items without a group.

    Attributes
    ----------
    listed : float64 [n_groups + 1]
        Places of lists that their items have.
    exposure : float64 [n_groups + 1]
        Their share of the exposure: of the discounts of these places.
    relevant : float64 [n_groups + 1] or None
        Their share of the relevant items of all users.
    """

    listed: Float64
    exposure: Float64
    relevant: Float64 | None


def exposure_of_groups(
    data: ListData, cutoff: int, discount: str = "log", patience: float = 0.85
) -> GroupExposure:
    """Add the exposure of the items of each group up.

    The exposure of an item is ``sum over the lists of d(its place)`` over the first k places. An
    item of several groups counts for each with the same share of 1.

    Parameters
    ----------
    data
        Its `categories` are the groups. With `test`, relevant items are shared out, too.
    cutoff
        k.
    discount, patience
        d(j): ``"log"`` 1 / log2(j + 1), ``"geometric"`` patience^(j - 1), or ``"none"`` 1.

    References
    ----------
    Singh & Joachims 2018, Fairness of exposure in rankings. Raj & Ekstrand 2022, Measuring
    fairness in ranked results.
    """
    width = data.first(cutoff).shape[1]
    d = places_discount(width, discount, patience)
    relevant = None
    if data.test is not None:
        items = data.test.items[needed(data.relevant)]
        relevant = _shares(data, np.bincount(items, minlength=data.lists.n_items))
    return GroupExposure(
        listed=_sums(data, exposures(data, cutoff)),
        exposure=_shares(data, exposures(data, cutoff, discount=d)),
        relevant=relevant,
    )


def _shares(data: ListData, of_items: Float64 | Int64) -> Float64:
    found = _sums(data, of_items)
    total = found.sum()
    return found / total if total else np.full(len(found), np.nan)


def _sums(data: ListData, of_items: Float64 | Int64) -> Float64:
    """Add values of items up, group by group; the last entry is items without a group."""
    groups = needed(data.categories)
    width = np.diff(groups.indptr)
    part = np.repeat(of_items / np.maximum(width, 1), width)
    found = sums_of(groups.indices, part, groups.shape[1])
    return np.append(found, of_items[width == 0].sum())

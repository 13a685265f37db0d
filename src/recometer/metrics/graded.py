"""Metrics of gain: how good an item is, its value in test."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from recometer.metrics._sums import columns, discounts, log2_of, ratio
from recometer.metrics.registry import metric
from recometer.ties import Groups, sum_by_user

__all__ = ["ndcg"]

Int64 = npt.NDArray[np.int64]
Float64 = npt.NDArray[np.float64]


@metric(
    title="Normalised discounted cumulative gain",
    formula="dcg(k) / dcg(k) of the best order; dcg(k) = sum over j <= k of gain(j) / log2(j + 1)",
    source="Järvelin & Kekäläinen 2002; ties: McSherry & Najork 2008",
    cutoff="optional",
    lower=-np.inf,
    reads="gain",
    defined_when_all_relevant=True,
)
def ndcg(groups: Groups, cutoffs: Int64) -> Float64:
    """Discounted gain, relative to that of the best possible order; at most 1.

    ``dcg(k) / ideal(k)`` with ``dcg(k) = sum over j <= k of gain(j) / log2(j + 1)``, where
    gain(j) is the value in test of the item at rank j and 0 for unjudged ones; the ideal is
    that of the positive gains, best first. Negative gains count in dcg as they are, so the
    value can be negative. Each place of a tied group has the mean gain of the group.

    References
    ----------
    Järvelin & Kekäläinen 2002, Cumulated gain-based evaluation of IR techniques. McSherry
    & Najork 2008.
    """
    with np.errstate(over="ignore", invalid="ignore"):  # such gains are undefined later
        return ratio(columns(_dcg, groups, cutoffs), columns(_ideal_dcg, groups, cutoffs))


def _dcg(groups: Groups, cutoff: int) -> Float64:
    rows, places = groups.within(cutoff)
    start, gain = groups.start[rows], groups.gain[rows]
    value = gain / log2_of(start + 2)
    if not groups.single:
        tied = np.flatnonzero(groups.size[rows] > 1)
        value[tied] = gain[tied] * discounts(start[tied], places[tied])
    return groups.total(rows, value)


def _ideal_dcg(groups: Groups, cutoff: int) -> Float64:
    user = np.repeat(np.arange(groups.n_users), np.diff(groups.ideal_indptr))
    place = np.arange(len(user)) - groups.ideal_indptr[user]
    rows = np.flatnonzero(place < cutoff)
    value = groups.ideal_gain[rows] / log2_of(place[rows] + 2)
    return sum_by_user(user[rows], value, groups.n_users)

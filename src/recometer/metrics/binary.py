"""Metrics of relevance: an item is relevant or it is not.

For one user, `rel(j)` is 1 if the item at rank j is relevant and 0 otherwise,
`h(k) = rel(1) + ... + rel(k)` counts the hits in the first k places, and `R` is the number
of relevant items. Tied items: every function returns the mean over their orders.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from recometer.metrics import _first_hit
from recometer.metrics._sums import columns, harmonic, hits, ratio, shared
from recometer.metrics.registry import metric
from recometer.ties import WHOLE, Groups

__all__ = ["ap", "hit", "precision", "recall", "rprecision", "rr", "tap", "tprecision"]

Int64 = npt.NDArray[np.int64]
Float64 = npt.NDArray[np.float64]


@metric(
    title="Precision",
    formula="hits(k) / k",
    source="Cleverdon & Keen 1966",
    cutoff="optional",
    order_free=True,
)
def precision(groups: Groups, cutoffs: Int64) -> Float64:
    """Share of the first k places that hold a relevant item: ``h(k) / k``, in [0, 1].

    Without a cut-off, k is the number of places that are known. Linear in hits, so tied items count
    with their mean.

    References
    ----------
    Cleverdon & Keen 1966, Factors Determining the Performance of Indexing Systems.
    """
    places = np.where(cutoffs == WHOLE, groups.depth[:, np.newaxis], cutoffs)
    return ratio(columns(hits, groups, cutoffs), places)


@metric(
    title="Truncated precision",
    formula="hits(k) / min(k, R)",
    source="Cortes 2021, recometrics",
    cutoff="required",
    order_free=True,
)
def tprecision(groups: Groups, cutoffs: Int64) -> Float64:
    """Hits among those that were possible: ``h(k) / min(k, R)``, in [0, 1].

    Linear in hits, so tied items count with their mean.

    References
    ----------
    Cortes 2021, recometrics ("truncated precision").
    """
    return ratio(columns(hits, groups, cutoffs), _possible(groups, cutoffs))


@metric(
    title="Recall",
    formula="hits(k) / R",
    source="Cleverdon & Keen 1966",
    cutoff="optional",
    order_free=True,
)
def recall(groups: Groups, cutoffs: Int64) -> Float64:
    """Share of the relevant items that are in the first k places: ``h(k) / R``, in [0, 1].

    Linear in hits, so tied items count with their mean.

    References
    ----------
    Cleverdon & Keen 1966, Factors Determining the Performance of Indexing Systems.
    """
    return ratio(columns(hits, groups, cutoffs), groups.n_relevant[:, np.newaxis])


@metric(
    title="Hit (its mean is the hit rate)",
    formula="1 if hits(k) > 0, else 0",
    source="Deshpande & Karypis 2004",
    cutoff="required",
    order_free=True,
)
def hit(groups: Groups, cutoffs: Int64) -> Float64:
    """Whether a relevant item is in the first k places: 1 if ``h(k) > 0``, else 0.

    With tied items it is the chance of that, in [0, 1]: ``1 - C(n-r, s) / C(n, s)`` for the
    first group with relevant items, n items of which r are relevant, and s of its places
    within k.

    References
    ----------
    Deshpande & Karypis 2004, Item-based top-N recommendation algorithms.
    """
    return columns(_chance_of_hit, groups, cutoffs)


@metric(
    title="Reciprocal rank (its mean is the MRR)",
    formula="1 / rank of the first relevant item, 0 if that is beyond k",
    source="Voorhees 1999, TREC-8 Question Answering",
    cutoff="optional",
)
def rr(groups: Groups, cutoffs: Int64) -> Float64:
    """Reciprocal of the first relevant item's rank; 0 if it is beyond k. In [0, 1].

    With tied items it is the mean over the place of the first relevant one within the first
    group that has any: the sum over i of ``C(n-i, r-1) / C(n, r) / (t+i)``, with n items, r
    of them relevant, after t others.

    References
    ----------
    Voorhees 1999, The TREC-8 Question Answering Track Report. McSherry & Najork 2008,
    Computing information retrieval performance measures efficiently in the presence of
    tied scores.
    """
    return columns(_reciprocal_rank, groups, cutoffs)


@metric(
    title="Average precision (its mean is MAP)",
    formula="(1 / R) * sum over j <= k of (hits(j) / j) * rel(j)",
    source="Buckley & Voorhees 2000; ties: McSherry & Najork 2008",
    cutoff="optional",
)
def ap(groups: Groups, cutoffs: Int64) -> Float64:
    """Mean over the R relevant items of the precision where each is found; in [0, 1].

    ``(1/R) * sum over j <= k of P(j) rel(j)``, where ``P(j) = h(j) / j``. A tied group with
    n items, r of them relevant, after t others with P relevant ones, adds
    ``(r/n) [P + 1 + (j-t-1)(r-1)/(n-1)] / j`` at each of its places j.

    References
    ----------
    Buckley & Voorhees 2000, Evaluating evaluation measure stability. McSherry & Najork
    2008.
    """
    return ratio(columns(_precision_sum, groups, cutoffs), groups.n_relevant[:, np.newaxis])


@metric(
    title="Truncated average precision",
    formula="(1 / min(k, R)) * sum over j <= k of (hits(j) / j) * rel(j)",
    source="Cortes 2021, recometrics",
    cutoff="required",
)
def tap(groups: Groups, cutoffs: Int64) -> Float64:
    """Average precision over the hits that were possible; in [0, 1].

    ``(1/min(k, R)) * sum over j <= k of P(j) rel(j)``; ties as in `ap`.

    References
    ----------
    Cortes 2021, recometrics ("truncated average precision").
    """
    return ratio(columns(_precision_sum, groups, cutoffs), _possible(groups, cutoffs))


@metric(
    title="R-precision",
    formula="hits(R) / R; with k: hits(min(k, R)) / R",
    source="Buckley & Voorhees 2000",
    cutoff="optional",
)
def rprecision(groups: Groups, cutoffs: Int64) -> Float64:
    """Precision at the number of relevant items: ``h(R) / R``, in [0, 1].

    With a cut-off, ``h(min(k, R)) / R``. Linear in hits, so tied items count with their
    mean.

    References
    ----------
    Buckley & Voorhees 2000, Evaluating evaluation measure stability.
    """
    found = np.empty((groups.n_users, len(cutoffs)))
    for column, cutoff in enumerate(cutoffs.tolist()):
        rows, places = groups.within(np.minimum(groups.n_relevant, cutoff))
        found[:, column] = groups.total(rows, places * groups.relevant[rows] / groups.size[rows])
    return ratio(found, groups.n_relevant[:, np.newaxis])


def _possible(groups: Groups, cutoffs: Int64) -> Int64:
    """Return the most hits that k places can hold, min(k, R): int64 [n_users, n_cutoffs]."""
    return np.minimum(cutoffs, groups.n_relevant[:, np.newaxis])


@shared
def _precision_sum(groups: Groups, cutoff: int) -> Float64:
    """Return the sum over j <= cutoff of P(j) rel(j)."""
    rows, places = groups.within(cutoff)
    start, before = groups.start[rows], groups.hits_before[rows]
    value = (before + 1) / (start + 1)
    if not groups.single:
        tied = np.flatnonzero(groups.size[rows] > 1)
        t, s, p = start[tied], places[tied], before[tied]
        n, r = groups.size[rows][tied], groups.relevant[rows][tied]
        others = (r - 1) / (n - 1)  # relevant among the tied items before, per place
        value[tied] = r / n * ((p + 1 - others * (t + 1)) * harmonic(t, s) + others * s)
    return groups.total(rows, value)


def _first_groups(groups: Groups, cutoff: int) -> tuple[Int64, Int64, Int64]:
    """Find each user's first group where it begins within the cut-off.

    Returns the users, the rows of the groups, and how many of their places are within.
    """
    users = np.flatnonzero(np.diff(groups.indptr))
    rows = groups.indptr[users]
    room = cutoff - groups.start[rows]
    within = room > 0
    users, rows = users[within], rows[within]
    return users, rows, np.minimum(groups.size[rows], room[within])


def _chance_of_hit(groups: Groups, cutoff: int) -> Float64:
    users, rows, places = _first_groups(groups, cutoff)
    value = np.zeros(groups.n_users)
    value[users] = 1
    open_ = np.flatnonzero(places < groups.size[rows])
    if len(open_):
        rows = rows[open_]
        value[users[open_]] = _first_hit.chance(
            groups.size[rows], groups.relevant[rows], places[open_]
        )
    return value


def _reciprocal_rank(groups: Groups, cutoff: int) -> Float64:
    users, rows, places = _first_groups(groups, cutoff)
    value = np.zeros(groups.n_users)
    value[users] = 1 / (groups.start[rows] + 1)
    tied = np.flatnonzero(groups.size[rows] > 1)
    if len(tied):
        rows = rows[tied]
        value[users[tied]] = _first_hit.reciprocal(
            groups.start[rows], groups.size[rows], groups.relevant[rows], places[tied]
        )
    return value

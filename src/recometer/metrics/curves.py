"""Areas under curves: metrics of the whole ranking."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from recometer.metrics import binary
from recometer.metrics._sums import ratio
from recometer.metrics.registry import metric
from recometer.ties import Groups

__all__ = ["pr_auc", "roc_auc"]

Int64 = npt.NDArray[np.int64]
Float64 = npt.NDArray[np.float64]


@metric(
    title="Area under the ROC curve",
    formula="share of the pairs (relevant, not relevant) in the right order; tied pairs: half",
    source="Hanley & McNeil 1982",
    cutoff="none",
    needs_whole_ranking=True,
)
def roc_auc(groups: Groups, cutoffs: Int64) -> Float64:
    """Share of the (relevant, non-relevant) pairs of items in the right order; in [0, 1].

    The non-relevant items are the candidates that are not relevant. Relevant items that
    were not ranked lie below every candidate. A tied pair counts half. Computed in whole
    numbers up to the one division.

    References
    ----------
    Hanley & McNeil 1982, The meaning and use of the area under a ROC curve.
    """
    ranked = _per_user(groups, groups.relevant)
    others = groups.n_candidates - ranked
    above = groups.start - groups.hits_before  # non-relevant items before the group
    tied = groups.size - groups.relevant
    right = _per_user(groups, groups.relevant * (2 * (others[groups.user] - above) - tied))
    value = ratio(right.astype(np.float64), 2 * groups.n_relevant * others)
    return np.repeat(value[:, np.newaxis], len(cutoffs), axis=1)


@metric(
    title="Area under the precision-recall curve",
    formula="(1 / R) * sum over all j of (hits(j) / j) * rel(j)",
    source="Davis & Goadrich 2006 (step rule)",
    cutoff="none",
    needs_whole_ranking=True,
)
def pr_auc(groups: Groups, cutoffs: Int64) -> Float64:
    """Area under the precision-recall curve by the step rule; in [0, 1].

    That is the average precision of the whole ranking, ties included: see
    `recometer.metrics.binary.ap`.

    References
    ----------
    Davis & Goadrich 2006, The relationship between precision-recall and ROC curves.
    """
    return binary.ap(groups, cutoffs)


def _per_user(groups: Groups, values: Int64) -> Int64:
    """Add whole numbers up, user by user."""
    total = np.zeros(len(values) + 1, np.int64)
    np.cumsum(values, out=total[1:])
    return np.diff(total[groups.indptr])

"""Metrics based on a confusion matrix of the candidates.

The matrix classifies each candidate by whether it is in the first k places and whether it is
relevant. Relevant items that could not be ranked are not candidates and do not count here.
"""

from __future__ import annotations

import numpy as np

from recometer.arrays import Float64, Int64
from recometer.metrics.parameters import Parameter
from recometer.metrics.ranked.facts import relevant_candidates
from recometer.metrics.registry import metric
from recometer.metrics.sums import hits_within, ratio
from recometer.ties import Groups

UNBOUNDED = Parameter(
    "The formula uses k and R unchanged, even if there are fewer than k candidates, or fewer than "
    "R relevant ones.",
    for_conventions=True,
)


@metric(
    title="Fallout",
    formula="(k - hits(k)) / candidates that are not relevant",
    source="van Rijsbergen 1979",
    cutoff="optional",
    higher_is_better=False,
    order_free=True,
    beyond_cutoff=True,
    needs_candidates=True,
)
def fallout(groups: Groups, cutoffs: Int64) -> Float64:
    """Share of the non-relevant candidates that are in the first k places; in [0, 1].

    The value is linear in hits(k), which is averaged over all orders of tied items.

    References
    ----------
    van Rijsbergen 1979, Information Retrieval.
    """
    listed, relevant = _table(groups, cutoffs)
    wrong = listed - hits_within(groups, cutoffs)
    return ratio(wrong, groups.n_candidates[:, np.newaxis] - relevant)


@metric(
    title="Accuracy",
    formula="(hits(k) + candidates beyond k that are not relevant) / n",
    source="Manning, Raghavan & Schütze 2008, Introduction to Information Retrieval, section 8.3",
    pooled="candidates",
    order_free=True,
    beyond_cutoff=True,
    needs_candidates=True,
    parameters={"unbounded": UNBOUNDED},
    when={"unbounded": {True: {"lower": -np.inf, "upper": np.inf}}},
)
def accuracy(groups: Groups, cutoffs: Int64, *, unbounded: bool = False) -> Float64:
    """Share of the candidates that are relevant and within k, or not relevant and beyond k.

    The value is in [0, 1], and linear in hits(k), which is averaged over all orders of tied items.
    """
    listed, relevant = _table(groups, cutoffs, unbounded)
    candidates = groups.n_candidates[:, np.newaxis]
    right = 2 * hits_within(groups, cutoffs) + (candidates - listed - relevant)
    return ratio(right, candidates)


@metric(
    title="Matthews correlation coefficient",
    formula="(n hits(k) - k R) / sqrt(k R (n - k) (n - R)), R: relevant candidates",
    source="Matthews 1975",
    lower=-1.0,
    order_free=True,
    beyond_cutoff=True,
    needs_candidates=True,
    parameters={"unbounded": UNBOUNDED},
    when={
        "unbounded": {
            True: {"lower": -np.inf, "upper": np.inf, "monotone": False, "may_be_nan": True}
        }
    },
)
def mcc(groups: Groups, cutoffs: Int64, *, unbounded: bool = False) -> Float64:
    """Correlation between "in the first k places" and "relevant" over the candidates; in [-1, 1].

    The value is 0 if all candidates, or none, are in the first k places, or if all or none are
    relevant. It is linear in hits(k), which is averaged over all orders of tied items.

    References
    ----------
    Matthews 1975, Comparison of the predicted and observed secondary structure of T4 phage
    lysozyme.
    """
    listed, relevant = _table(groups, cutoffs, unbounded)
    candidates = groups.n_candidates[:, np.newaxis]
    # Multiply floats, because the product of the four counts may not fit into int64.
    square = listed * relevant * (candidates - listed).astype(np.float64) * (candidates - relevant)
    above = candidates * hits_within(groups, cutoffs) - listed * relevant
    values = ratio(above, np.sqrt(np.maximum(square, 0)))
    values[square < 0] = np.nan
    return values


def _table(groups: Groups, cutoffs: Int64, unbounded: bool = False) -> tuple[Int64, Int64]:
    """Count the candidates in the first k places and the relevant candidates (0 if unknown)."""
    if unbounded:
        listed = np.repeat(cutoffs[np.newaxis], groups.n_users, axis=0)
        return listed, groups.n_relevant[:, np.newaxis]
    listed = np.minimum(cutoffs[:, np.newaxis], np.maximum(groups.n_candidates, 0)).T
    return listed, np.maximum(relevant_candidates(groups), 0)[:, np.newaxis]

"""Metrics based on the ranks of all relevant items.

The module `recometer.metrics.ranked.binary` explains the symbols in the formulas.
"""

from __future__ import annotations

import numpy as np

from recometer.arrays import Float64, Int64
from recometer.metrics.parameters import Parameter
from recometer.metrics.ranked.facts import all_gains, judged_nonrelevant, sum_per_user
from recometer.metrics.ranked.precisions import reciprocal_sum
from recometer.metrics.registry import metric
from recometer.metrics.sums import harmonic, ratio, repeated
from recometer.ties import Groups


@metric(
    title="Normalised cumulative reciprocal rank",
    formula="sum over j <= k of rel(j) / j, divided by this sum for the best order",
    source="Cornac (Salah et al. 2020)",
    cutoff="optional",
)
def ncrr(groups: Groups, cutoffs: Int64) -> Float64:
    """Sum of the relevant items' reciprocal ranks within k, divided by the largest possible sum.

    ``sum over j <= k of rel(j)/j / (1 + 1/2 + ... + 1/min(k, R))``, in [0, 1]. At each place in a
    tied group, rel(j) is replaced by the share of relevant items in the group.

    References
    ----------
    Salah et al. 2020, Cornac: a comparative framework for multimodal recommender systems.
    """
    possible = np.minimum(cutoffs[:, np.newaxis], groups.n_relevant)
    best = harmonic(np.zeros(possible.size, np.int64), possible.ravel()).reshape(possible.shape)
    return ratio(reciprocal_sum(groups, cutoffs), best.T)


@metric(
    title="Mean rank",
    formula="mean rank of the relevant items",
    source="Bordes et al. 2013",
    cutoff="none",
    pooled="relevant",
    lower=1.0,
    upper=np.inf,
    higher_is_better=False,
    needs_candidates=True,
    needs_whole_ranking=True,
)
def mean_rank(groups: Groups, cutoffs: Int64) -> Float64:
    """Mean rank of the relevant items, 1 or more; tied items share their mean rank.

    Relevant items that could not be ranked come after the last candidate.

    References
    ----------
    Bordes et al. 2013, Translating embeddings for modeling multi-relational data.
    """
    missing = groups.n_relevant - sum_per_user(groups, groups.relevant)
    # Compute twice the sum, which is an integer.
    ranks = sum_per_user(groups, groups.relevant * (2 * groups.start + groups.size + 1))
    ranks = ranks + missing * (2 * groups.n_candidates + missing + 1)
    return repeated(ratio(ranks.astype(np.float64), 2 * groups.n_relevant), cutoffs)


@metric(
    title="Percentile rank",
    formula="mean of (rank - 1) / (n - 1) over the relevant items",
    source="Hu, Koren & Volinsky 2008",
    cutoff="none",
    pooled="relevant",
    higher_is_better=False,
    needs_whole_ranking=True,
    parameters={
        "weighted": Parameter("Each relevant item with a positive gain is weighted by its gain.")
    },
    when={"weighted": {True: {"reads": "relevant_gain", "pooled": None}}},
)
def percentile_rank(groups: Groups, cutoffs: Int64, *, weighted: bool = False) -> Float64:
    """Mean relative rank of the relevant items: 0 at the top of the ranking, 1 at the bottom.

    The value is the mean of ``(rank - 1) / (n - 1)`` over the relevant items, where n is the number
    of candidates. Items that could not be ranked count as 1. Tied items share their mean rank. Hu
    et al. weight items by gain and pool all users.

    References
    ----------
    Hu, Koren & Volinsky 2008, Collaborative filtering for implicit feedback datasets.
    """
    last = (groups.n_candidates - 1).astype(np.float64)
    twice = 2 * groups.start + groups.size - 1
    if weighted:
        weight = groups.gain * groups.size
        every = all_gains(groups)
        with np.errstate(over="ignore", invalid="ignore"):  # infinite gains make a value undefined
            behind = groups.total(slice(None), weight * (twice / 2))
            missing = every - groups.total(slice(None), weight)
            # If all relevant items were ranked, `missing` is only a rounding error.
            missing = np.where(missing > 1e-9 * every, missing, 0.0)
            return repeated(ratio(ratio(behind, last) + missing, every), cutoffs)
    behind = sum_per_user(groups, groups.relevant * twice) / 2
    unranked = groups.n_relevant - sum_per_user(groups, groups.relevant)
    return repeated(ratio(ratio(behind, last) + unranked, groups.n_relevant), cutoffs)


@metric(
    title="Preference of judged items",
    formula="mean over the relevant items of 1 - (judged non-relevant items above, at most R) / "
    "min(R, all judged non-relevant items)",
    source="Buckley & Voorhees 2004",
    cutoff="none",
    reads="judgement",
    parameters={
        "negatives": Parameter(
            "How items with a test value below 0 count.",
            choices={
                "judged": "as judged, and not relevant",
                "unjudged": "as unjudged, unless they are relevant",
            },
            for_conventions=True,
        )
    },
    when={"negatives": {"unjudged": {"reads": "judgement_from_zero"}}},
)
def bpref(groups: Groups, cutoffs: Int64, *, negatives: str = "judged") -> Float64:
    """Frequency with which relevant items rank above items judged not relevant; in [0, 1].

    ``(1/R) sum over relevant r of 1 - min(judged non-relevant above r, R) / min(R, N)``, where N is
    the number of judged non-relevant items. A relevant item counts as 1 if no judged non-relevant
    item is above it, and as 0 if it was not ranked. Unjudged items do not count. If a tied group
    contains m judged non-relevant items, the number of these above a relevant item of the group is
    equally likely to be 0, 1, ..., m.

    References
    ----------
    Buckley & Voorhees 2004, Retrieval evaluation with incomplete information; as trec_eval has
    computed it since version 8.
    """
    # The gain of a judged item is 1 if it is relevant, and -1 if it is not.
    balance = np.rint(groups.gain * groups.size).astype(np.int64)
    relevant = (groups.relevant + balance) // 2
    nonrelevant = groups.relevant - relevant
    running = np.zeros(len(nonrelevant) + 1, np.int64)
    np.cumsum(nonrelevant, out=running[1:])
    above = running[:-1] - running[groups.indptr[groups.user]]
    n_relevant = groups.n_relevant[groups.user]
    # Compute the sum of min(above + x, R) over x = 0 .. nonrelevant; `free` terms are below R.
    free = np.clip(n_relevant - above, 0, nonrelevant + 1)
    wrong = free * above + free * (free - 1) // 2 + (nonrelevant + 1 - free) * n_relevant
    n_judged = judged_nonrelevant(groups, from_zero=negatives == "unjudged")
    divisor = np.minimum(n_relevant, n_judged[groups.user])
    share = ratio(wrong.astype(np.float64), divisor * (nonrelevant + 1))
    value = groups.total(slice(None), relevant * (1 - share))
    return repeated(ratio(value, groups.n_relevant), cutoffs)

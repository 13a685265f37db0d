"""Areas under curves, which are metrics of the whole ranking.

The module `recometer.metrics.ranked.binary` explains the symbols in the formulas.
"""

from __future__ import annotations

import functools

import numpy as np

from recometer.arrays import Float64, Int64, largest, steps
from recometer.metrics.parameters import Parameter
from recometer.metrics.ranked import binary
from recometer.metrics.ranked.facts import relevant_candidates, sum_per_user
from recometer.metrics.ranked.precisions import expand, hits_squared
from recometer.metrics.registry import metric
from recometer.metrics.sums import columns, hits_within, ratio, repeated
from recometer.ties import Groups, sum_by_user


@metric(
    title="Area under the ROC curve",
    formula="share of (relevant, non-relevant) pairs in the right order; tied pairs count half",
    source="Hanley & McNeil 1982",
    other_names=("auc", "auroc"),
    unclear_names={
        "gauc": "use roc_auc; result.mean(weights='relevant') weights users by their number of "
        "relevant items, as some definitions do"
    },
    cutoff="none",
    needs_whole_ranking=True,
    parameters={
        "domain": Parameter(
            "The items that are paired.",
            choices={
                "all": "all candidates",
                "list": "the items in the first k places (or in the whole list); by default, the "
                "value is 1 if all of them are relevant and 0 if none are",
                "extended": "all candidates, but only the order of the first k places is known",
            },
            for_conventions=True,
        ),
        "negatives": Parameter(
            "The items that count as not relevant.",
            choices={
                "candidates": "the other candidates",
                "all": "the other candidates and, ranked below them, the training items; a "
                "relevant item that was not ranked comes last",
                "padded": "the other candidates and, ranked below them, one padding entry that "
                "is not an item",
            },
            for_conventions=True,
        ),
        "one_kind": Parameter(
            "The value if all items of a list are relevant, or if none are.",
            choices={
                "share": "1 if all are relevant, 0 if none are",
                "zero": "0",
                "undefined": "undefined",
            },
            for_conventions=True,
        ),
    },
    when={
        "domain": {
            "list": {"cutoff": "optional", "monotone": False, "needs_whole_ranking": False},
            "extended": {
                "cutoff": "required",
                "needs_whole_ranking": False,
                "needs_candidates": True,
            },
        },
        "one_kind": {"undefined": {"may_be_nan": True}},
    },
)
def roc_auc(
    groups: Groups,
    cutoffs: Int64,
    *,
    domain: str = "all",
    negatives: str = "candidates",
    one_kind: str = "share",
) -> Float64:
    """Share of the (relevant, non-relevant) pairs of items that are in the right order; in [0, 1].

    The non-relevant items are the other candidates. Relevant items that were not ranked are misses:
    they come after every candidate and, with ``negatives=all``, after the training items. A tied
    pair counts half. All calculations use integers, except for a single division at the end.

    With ``domain=list``, the value is the mean over the possible numbers of hits in the group that
    the cut-off splits. With ``domain=extended``, only the order of the first k places is known.
    Each non-relevant item beyond them is assumed to rank below half of the relevant items there, so
    it is in ``(h(k) + R) / 2`` correct pairs.

    References
    ----------
    Hanley & McNeil 1982, The meaning and use of the area under a ROC curve.
    """
    if domain == "list":
        return columns(functools.partial(_auc_of_list, one_kind=one_kind), groups, cutoffs)
    n_items = groups.n_candidates
    if negatives == "all":
        n_items = n_items + groups.ranks.n_excluded
    elif negatives == "padded":
        n_items = n_items + 1
    n_negatives = n_items - relevant_candidates(groups)
    if domain == "extended":
        area = functools.partial(_auc_of_known, n_items=n_items, n_negatives=n_negatives)
        return columns(area, groups, cutoffs)
    # `before` is twice the number of items above the relevant items; tied items count half.
    if groups.single:
        hits, before = steps(groups.indptr), 2 * sum_per_user(groups, groups.start)
    else:
        hits = sum_per_user(groups, groups.relevant)
        before = sum_per_user(groups, groups.relevant * (2 * groups.start + groups.size - 1))
    # The sum also contains the pairs of two relevant items, so subtract them.
    wrong = before - hits * (hits - 1)
    right = 2 * hits * n_negatives - wrong
    value = ratio(right.astype(np.float64), 2 * groups.n_relevant * n_negatives)
    return repeated(value, cutoffs)


@metric(
    title="Area under the precision-recall curve",
    formula="(1 / R) * sum over all j of (hits(j) / j) * rel(j)",
    source="Davis & Goadrich 2006 (step rule)",
    other_names=("auprc",),
    cutoff="none",
    needs_whole_ranking=True,
    parameters={
        "rule": Parameter(
            "How the area is computed.",
            choices={
                "step": "one step per relevant item",
                "distinct": "one step per distinct score",
                "trapezoid": "straight lines between the points of distinct scores, starting at "
                "recall 0 and precision 1",
            },
        )
    },
    when={
        "rule": {
            "distinct": {"averages_ties": False},
            "trapezoid": {"averages_ties": False, "monotone": False},
        }
    },
)
def pr_auc(groups: Groups, cutoffs: Int64, *, rule: str = "step") -> Float64:
    """Area under the precision-recall curve; in [0, 1].

    With ``rule=step``, the value is the average precision of the whole ranking, and ties are
    treated as in `recometer.metrics.ranked.binary.ap`. With the other rules, a group of tied items
    is a single step of the curve, which ends at the precision of all places up to the end of the
    group.

    References
    ----------
    Davis & Goadrich 2006, The relationship between precision-recall and ROC curves.
    """
    if rule == "step":
        return binary.ap(groups, cutoffs)
    start, before = groups.start, groups.hits_before
    precision: Float64 = (before + groups.relevant) / (start + groups.size)
    if rule == "trapezoid":
        precision = (precision + np.where(start > 0, before / np.maximum(start, 1), 1.0)) / 2
    area = groups.total(slice(None), np.multiply(groups.relevant, precision))
    return repeated(ratio(area, groups.n_relevant), cutoffs)


@metric(
    title="Partial area under the ROC curve",
    formula="roc_auc over the relevant items and the first k non-relevant items",
    source="McClish 1989",
    beyond_cutoff=True,
    parameters={
        "denominator": Parameter(
            "The number of relevant items that are paired.",
            choices={"relevant": "R", "min": "min(k, R) items, namely those that rank first"},
            for_conventions=True,
        ),
        "negatives": Parameter(
            "The number of non-relevant items that are paired.",
            choices={"candidates": "k, or all if there are fewer", "k": "k"},
            for_conventions=True,
        ),
    },
)
def partial_auc(
    groups: Groups,
    cutoffs: Int64,
    *,
    denominator: str = "relevant",
    negatives: str = "candidates",
) -> Float64:
    """Area under the ROC curve up to k false positives, divided by its largest value; in [0, 1].

    Each relevant item is paired with each of the first k non-relevant candidates (or with all, if
    there are fewer), and the value is the share of the pairs in the right order. If r of the n
    items in a tied group are relevant, the number of non-relevant ones above a relevant item is
    equally likely to be 0, 1, ..., n - r.

    References
    ----------
    McClish 1989, Analyzing a portion of the ROC curve.
    """
    n_negatives = groups.n_candidates - relevant_candidates(groups)
    above = groups.start - groups.hits_before
    tied = groups.size - groups.relevant
    begun = np.flatnonzero(above < largest(cutoffs))
    user, above, tied = groups.user[begun], above[begun], tied[begun]
    relevant = groups.relevant[begun]
    values = np.empty((len(cutoffs), groups.n_users))
    for column, cutoff in enumerate(cutoffs.tolist()):
        # If the number of candidates is unknown, assume that at least k are not relevant.
        first = np.where(groups.n_candidates < 0, cutoff, np.minimum(n_negatives, cutoff))
        if negatives == "k":
            first = np.full(groups.n_users, cutoff)
        rows = np.flatnonzero(above < cutoff)
        if denominator == "min":
            rows = rows[groups.hits_before[begun[rows]] < cutoff]
        behind = np.maximum(first[user[rows]] - above[rows], 0)
        orders = tied[rows] + 1
        steps = np.minimum(behind, orders)
        # Multiply floats, because the product of the three integers may not fit into int64.
        product = np.multiply((2 * behind - steps + 1) * steps, relevant[rows], dtype=np.float64)
        right = product / (2 * orders)
        paired = groups.n_relevant
        if denominator == "min":
            room = cutoff - groups.hits_before[begun[rows]]
            over = relevant[rows] > room
            right[over] = _of_first_hits(groups, begun[rows[over]], room[over], behind[over])
            paired = np.minimum(paired, cutoff)
        pairs = sum_by_user(user[rows], right, groups.n_users)
        values[column] = ratio(pairs, paired * first)
    return values.T


def _of_first_hits(groups: Groups, rows: Int64, hits: Int64, behind: Int64) -> Float64:
    """Count the correctly ordered pairs of the first `hits` relevant items in the groups `rows`.

    Each of these items is in `behind` correct pairs, minus one for each non-relevant item before it
    in its group.
    """
    size, relevant = groups.size[rows], groups.relevant[rows]
    # The item at the first place of the group is relevant with probability r / n.
    total = relevant / size * behind
    # From place `behind + hits` on, either there are enough hits already, or no pair is correct.
    last = np.minimum(size, behind + hits)
    row = np.repeat(np.arange(len(rows)), last - 1)
    place = np.arange(len(row)) - np.searchsorted(row, row) + 1  # number of earlier places
    entry, n_hits, chance = expand(size[row], relevant[row], place)
    group, before = row[entry], place[entry]
    unfinished = n_hits < hits[group]
    group, before, n_hits = group[unfinished], before[unfinished], n_hits[unfinished]
    hit_chance = chance[unfinished] * (relevant[group] - n_hits) / (size[group] - before)
    pairs = np.maximum(behind[group] - (before - n_hits), 0)
    return total + sum_by_user(group, hit_chance * pairs, len(rows))


def _auc_of_list(groups: Groups, cutoff: int, one_kind: str) -> Float64:
    length = np.minimum(groups.depth, cutoff)
    start, before = groups.start, groups.hits_before
    # For each group, count the pairs of a relevant item and a non-relevant item above it.
    pairs = groups.relevant * (start - before + (groups.size - groups.relevant) / 2)
    inside = np.flatnonzero(start + groups.size <= cutoff)
    wrong = groups.total(inside, pairs[inside])
    n_hits = hits_within(groups, np.array([cutoff]))[:, 0]
    value = _share_of_pairs(n_hits, length - n_hits, wrong, one_kind)
    parted = groups.parted(cutoff)
    if len(parted):
        user, places = groups.user[parted], cutoff - start[parted]
        group, x, chance = expand(groups.size[parted], groups.relevant[parted], places)
        hits = before[parted][group] + x
        added = x * (start[parted] - before[parted] + places / 2)[group] - x * x / 2
        wrong_pairs = wrong[user[group]] + added
        shares = _share_of_pairs(hits, length[user[group]] - hits, wrong_pairs, one_kind)
        value[user] = sum_by_user(group, chance * shares, len(parted))
    return value


def _auc_of_known(groups: Groups, cutoff: int, n_items: Int64, n_negatives: Int64) -> Float64:
    """Return the area under the curve if only the order of the first places is known."""
    n_relevant = groups.n_relevant
    length = np.minimum(np.maximum(n_items, groups.depth), cutoff)
    hits = hits_within(groups, np.array([cutoff]))[:, 0]
    rows, within = groups.within(cutoff)
    start, size, relevant = groups.start[rows], groups.size[rows], groups.relevant[rows]
    # Count the non-relevant items above the hits, in earlier tie groups and in the hits' own
    # groups.
    rate = (size - relevant) / np.maximum(size - 1, 1)
    before = within * (start - groups.hits_before[rows]) + rate * (within * (within - 1) / 2)
    wrong = groups.total(rows, relevant / size * before)
    square = hits_squared(groups, cutoff)
    certain = hits * length - square - wrong
    beyond = (hits + n_relevant) * (n_negatives - length) + square + n_relevant * hits
    return ratio(certain + beyond / 2, n_relevant * n_negatives)


def _share_of_pairs(
    relevant: Int64 | Float64, negatives: Int64 | Float64, wrong: Float64, one_kind: str
) -> Float64:
    if one_kind == "share":
        without = np.greater(relevant, 0).astype(np.float64)
    else:
        without = np.full(len(wrong), 0.0 if one_kind == "zero" else np.nan)
    pairs = np.asarray(relevant * negatives, np.float64)
    return np.divide(pairs - wrong, pairs, out=without, where=pairs > 0)

"""Estimates for the whole catalogue of metrics of sampled candidates.

Krichene & Rendle 2020, On Sampled Metrics for Item Recommendation (KDD). A user's relevant item
has X of N other items above it, and x of these are among the m drawn items. Other items of test
are always candidates, so the number of those above is known exactly: the item's rank is
``head + X``. A metric that adds up ``f(rank)`` over the relevant items is corrected by replacing
each ``f(head + X)`` by an estimate that depends on x alone (`recometer.measuring.estimates`).

For tied items, the estimate is the mean over all orders of the tied candidates. roc_auc is linear
in x, so all corrections agree.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence

import numpy as np

from recometer.arrays import Bool, Float64, Int64
from recometer.errors import InputError
from recometer.measuring.estimates import estimates
from recometer.metrics.registry import Metric
from recometer.metrics.sums import log2_of, ratio
from recometer.protocol import Protocol
from recometer.ranks import Ranks
from recometer.ties import WHOLE, Groups, sum_by_user


@dataclasses.dataclass(frozen=True)
class Places:
    """Relevant items and their possible places: a row per item, or per order of tied candidates."""

    user: Int64
    hits_before: Int64  # relevant items before this one
    head: Int64  # the rank without the drawn items and those that they stand for
    sampled_before: Int64  # drawn items before it
    gain: Float64  # of the item; the mean gain of tied items
    weight: Float64  # the probability of the row

    def take(self, rows: Int64) -> Places:
        """Return some rows."""
        names = [field.name for field in dataclasses.fields(self)]
        return Places(**{name: getattr(self, name)[rows] for name in names})


def _reciprocal(rank: Float64) -> Float64:
    return 1 / rank


def _discount(rank: Float64) -> Float64:
    # math.log2, because the last bit of np.log2 differs between instruction sets.
    logs = map(math.log2, (rank + 1).ravel().tolist())
    return 1 / np.fromiter(logs, np.float64, rank.size).reshape(rank.shape)


def _no_gain(places: Places) -> Float64:
    return places.weight


def _cutoff(groups: Groups, cutoff: int) -> Int64:
    limit: Int64 = np.minimum(cutoff, groups.n_candidates)
    return limit


def _relevant(groups: Groups, cutoff: int) -> Float64:
    return groups.n_relevant.astype(np.float64)


def _possible(groups: Groups, cutoff: int) -> Float64:
    return np.minimum(groups.n_relevant, cutoff).astype(np.float64)


def _places(groups: Groups, cutoff: int) -> Float64:
    if cutoff == WHOLE:
        return groups.n_candidates.astype(np.float64)
    return np.full(groups.n_users, float(cutoff))


def _single(groups: Groups, cutoff: int) -> Float64:
    return np.ones(groups.n_users)


def _ideal(groups: Groups, cutoff: int) -> Float64:
    user = np.repeat(np.arange(groups.n_users), np.diff(groups.ideal_indptr))
    place = np.arange(len(user)) - groups.ideal_indptr[user]
    rows = np.flatnonzero(place < cutoff)
    return sum_by_user(
        user[rows], groups.ideal_gain[rows] / log2_of(place[rows] + 2), groups.n_users
    )


@dataclasses.dataclass(frozen=True)
class Sum:
    """A metric as a sum over relevant items: ``size * of_rank(rank) / divisor``.

    `divisor` and `limit` are called with the groups and the cut-off, for a number per user.
    """

    of_rank: Callable[[Float64], Float64]  # ranks begin with 1
    divisor: Callable[[Groups, int], Float64]
    size: Callable[[Places], Float64] = _no_gain  # weight times probability
    limit: Callable[[Groups, int], Int64] = _cutoff  # items beyond this rank do not count
    first: bool = False  # only the first relevant item counts


def _hits(places: Places) -> Float64:
    return places.weight * (places.hits_before + 1)


SUMS: dict[str, Sum] = {
    "precision": Sum(np.ones_like, _places),
    "tprecision": Sum(np.ones_like, _possible),
    "recall": Sum(np.ones_like, _relevant),
    "hit": Sum(np.ones_like, _single, first=True),
    "rr": Sum(_reciprocal, _single, first=True),
    "ap": Sum(_reciprocal, _relevant, _hits),
    "tap": Sum(_reciprocal, _possible, _hits),
    "pr_auc": Sum(_reciprocal, _relevant, _hits),
    "rprecision": Sum(
        np.ones_like, _relevant, limit=lambda groups, cutoff: np.minimum(groups.n_relevant, cutoff)
    ),
    "ndcg": Sum(_discount, _ideal, lambda places: places.weight * places.gain),
}
CORRECTABLE = (*SUMS, "roc_auc")


def check(metrics: Sequence[Metric], protocol: Protocol, uniform: bool | None) -> None:
    """Refuse a correction without a uniform sample, or of a metric that is not a sum over items.

    `uniform` says whether each user's candidates were drawn uniformly; None means that users have
    no candidates of their own.
    """
    if protocol.correction == "none":
        return
    found = f"correction={protocol.correction!r}"
    if uniform is None:
        raise InputError(
            f"{found} needs a sample to correct: candidates=rm.SampledCandidates(...), or a set of "
            "candidates per user. Hint: leave it out if the whole catalogue is ranked."
        )
    if not uniform:
        raise InputError(
            f"{found} holds for candidates that were drawn uniformly, found by='popularity'."
        )
    for metric in metrics:
        # Parameters would change the formula, which is repeated here.
        if metric.name not in CORRECTABLE or "(" in str(metric):
            raise InputError(
                f"{found} does not exist for {str(metric)!r}, which is not a sum over relevant "
                "items of a function of their rank that is known here. Those that are: "
                f"{', '.join(CORRECTABLE)}."
            )


def whole(ranks: Ranks) -> Ranks:
    """Return the ranks with the number of candidates in the whole catalogue.

    The rules for undefined values then read this number.
    """
    drawn, others = _drawn(ranks)
    n = ranks.n_candidates - drawn + others
    return dataclasses.replace(ranks, n_candidates=n, depth=n)


def nothing_drawn(ranks: Ranks) -> Bool:
    """Return for which users no item was drawn: bool [n_users]."""
    drawn, others = _drawn(ranks)
    nothing: Bool = (drawn == 0) & (others > 0)
    return nothing


def compute(
    metric: str, ranks: Ranks, groups: Groups, cutoffs: Int64, protocol: Protocol
) -> Float64:
    """Estimate a metric of the whole catalogue, one of `CORRECTABLE`: [n_users, n_cutoffs].

    `groups` are the tie groups of the sampled ranks under the tie rule "expected", for the property
    that the metric reads. Values can lie outside the bounds of the metric.
    """
    drawn, others = _drawn(ranks)
    groups = dataclasses.replace(groups, n_candidates=whole(ranks).n_candidates, cache={})
    places = _places_of(ranks, groups)
    if metric == "roc_auc":
        value = _roc_auc(places, groups, drawn, others)
        return np.repeat(value[:, np.newaxis], len(cutoffs), axis=1)
    added = SUMS[metric]
    if added.first:
        places = places.take(np.flatnonzero(places.hits_before == 0))
    user, asked = places.user, cutoffs.tolist()
    # All cut-offs at once: the estimate of the deepest one passes through the others.
    n = len(asked)
    estimate = estimates(
        np.tile(places.sampled_before, n),
        np.tile(drawn[user], n),
        np.tile(others[user], n),
        np.tile(places.head, n),
        np.concatenate([added.limit(groups, cutoff)[user] for cutoff in asked]),
        added.of_rank,
        protocol.correction,
        protocol.gamma,
    ).reshape(n, len(user))
    size = added.size(places)
    values = np.empty((n, groups.n_users))
    for column, cutoff in enumerate(asked):
        total = sum_by_user(user, size * estimate[column], groups.n_users)
        values[column] = ratio(total, added.divisor(groups, cutoff))
    return values.T


def _drawn(ranks: Ranks) -> tuple[Int64, Int64]:
    """Return m and N of each user: the drawn items, and all items that could be drawn."""
    assert ranks.pool is not None
    user = np.repeat(np.arange(ranks.n_users), np.diff(ranks.indptr))
    ranked = np.bincount(user[ranks.above >= 0], minlength=ranks.n_users)
    # Judged items with a NaN score are not ranked, and their users are undefined.
    return np.clip(ranks.n_candidates - ranked, 0, ranks.pool), ranks.pool


def _places_of(ranks: Ranks, groups: Groups) -> Places:
    """Return the relevant items, once for every possible number of tied items before them.

    In a group with r relevant, s drawn and j other judged items, the relevant item number q has y
    drawn and z other items of the group before it with the probability

        (q + y + z)! / (q! y! z!) * (n - 1 - q - y - z)! / ((r - 1 - q)! (s - y)! (j - z)!)
        / (n! / (r! s! j!))   where n = r + s + j
    """
    user = np.repeat(np.arange(ranks.n_users), np.diff(ranks.indptr))
    ranked = ranks.above >= 0
    base = int(ranks.above.max(initial=0)) + 1
    judged = user[ranked] * base + ranks.above[ranked]  # ascending: rows are best first
    key = groups.user * base + groups.start
    first = np.searchsorted(judged, groups.user * base)
    above = np.searchsorted(judged, key) - first
    tied = np.searchsorted(judged, key, side="right") - first - above
    r, j = groups.relevant, tied - groups.relevant
    s = groups.size - tied

    count = r * (s + 1) * (j + 1)
    group = np.repeat(np.arange(len(count)), count)
    number = np.arange(len(group)) - np.repeat(np.cumsum(count) - count, count)
    q, number = np.divmod(number, ((s + 1) * (j + 1))[group])
    y, z = np.divmod(number, (j + 1)[group])
    weight = np.ones(len(group))
    several = np.flatnonzero(groups.size[group] > 1)
    if len(several):
        at, q_, y_, z_ = group[several], q[several], y[several], z[several]
        r_, s_, j_ = r[at], s[at], j[at]
        log = _log_factorials(int(groups.size.max()) + 1)
        chance = log[q_ + y_ + z_] - log[q_] - log[y_] - log[z_]
        rest = r_ + s_ + j_ - 1 - q_ - y_ - z_
        chance += log[rest] - log[r_ - 1 - q_] - log[s_ - y_] - log[j_ - z_]
        chance -= log[r_ + s_ + j_] - log[r_] - log[s_] - log[j_]
        weight[several] = [math.exp(value) for value in chance.tolist()]
    # The mean gain of the group's items that have a gain.
    gain = groups.gain * groups.size / groups.relevant
    return Places(
        user=groups.user[group],
        hits_before=groups.hits_before[group] + q,
        head=1 + above[group] + q + z,
        sampled_before=groups.start[group] - above[group] + y,
        gain=gain[group],
        weight=weight,
    )


def _roc_auc(places: Places, groups: Groups, drawn: Int64, others: Int64) -> Float64:
    """Return the share of pairs in the right order; each drawn item stands for N / m items."""
    user = places.user
    ranked = sum_by_user(user, places.weight, groups.n_users)
    negatives = groups.n_candidates - np.rint(ranked)
    known = places.head - 1 - places.hits_before
    before = known + others[user] * places.sampled_before / np.maximum(drawn[user], 1)
    right = sum_by_user(user, places.weight * (negatives[user] - before), groups.n_users)
    return ratio(right, groups.n_relevant * negatives)


def _log_factorials(n: int) -> Float64:
    """Return the logarithms of the factorials of 0 to n - 1."""
    logs = np.fromiter(map(math.log, range(1, n)), np.float64)
    return np.append(0.0, np.cumsum(logs))

"""Estimates of metrics on the whole catalogue, from sampled candidates.

See Krichene & Rendle 2020, On Sampled Metrics for Item Recommendation (KDD). Of N other items, X
are above a user's relevant item, and x of these are among the m drawn items. Other test items
are always candidates, so their number above the item is known exactly. The item's rank is
``head + X``. A metric that adds up ``f(rank)`` over the relevant items is corrected by replacing
each ``f(head + X)`` by an estimate that depends only on x.

For tied items, the estimate is the mean over all orders of the tied candidates. roc_auc is linear
in x, so all corrections agree.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Sequence

import numpy as np

from recometer.arrays import Bool, Float64, Int64
from recometer.errors import InputError, python_or_command, rule_text
from recometer.metrics.registry import Metric
from recometer.metrics.sums import log2_of, ratio
from recometer.protocol import Protocol
from recometer.ranks import Ranks
from recometer.ties import WHOLE, Groups, sum_by_user


@dataclasses.dataclass(frozen=True)
class Places:
    """Relevant items and their possible places: a row per item, or per order of tied candidates."""

    user: Int64
    hits_before: Int64  # number of relevant items before this item
    head: Int64  # the rank among the test items only
    sampled_before: Int64  # number of drawn items before it
    gain: Float64  # gain of the item, or mean gain of tied items
    weight: Float64  # the probability of the row

    def take(self, rows: Int64) -> Places:
        """Return some rows."""
        names = [field.name for field in dataclasses.fields(self)]
        return Places(**{name: getattr(self, name)[rows] for name in names})


def _reciprocal(rank: Float64) -> Float64:
    return 1 / rank


def _discount(rank: Float64) -> Float64:
    # Use math.log2, because the last bit of np.log2 differs between instruction sets.
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

    `divisor` and `limit` take the groups and the cut-off, and return a number per user.
    """

    of_rank: Callable[[Float64], Float64]  # ranks start at 1
    divisor: Callable[[Groups, int], Float64]
    size: Callable[[Places], Float64] = _no_gain  # weight times probability of each row
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
    """Refuse a correction without a uniform sample, or for a metric that is not a sum over items.

    `uniform` says whether each user's candidates were drawn uniformly. None means that users have
    no sets of candidates.
    """
    if protocol.correction == "none":
        return
    found = rule_text("correction", protocol.correction)
    if uniform is None:
        wanted = python_or_command(
            "candidates=rm.SampledCandidates(...), or a set of candidates per user.",
            "--negatives FILE, or --candidates FILE.",
        )
        raise InputError(
            f"{found} needs a sample to correct: {wanted} Hint: leave it out if the whole "
            "catalogue is ranked."
        )
    if not uniform:
        raise InputError(
            f"{found} holds for candidates that were drawn uniformly, found by='popularity'."
        )
    for metric in metrics:
        # Parameters would change the formula, which this module repeats without them.
        if metric.name not in CORRECTABLE or "(" in str(metric):
            raise InputError(
                f"{found} does not exist for {str(metric)!r}, because only metrics that add up a "
                "known function of the relevant items' ranks can be corrected: "
                f"{', '.join(CORRECTABLE)}."
            )


def whole(ranks: Ranks) -> Ranks:
    """Return the ranks with the number of candidates in the whole catalogue.

    The rules for undefined values depend on this number.
    """
    drawn, others = _drawn(ranks)
    n = ranks.n_candidates - drawn + others
    return dataclasses.replace(ranks, n_candidates=n, depth=n)


def nothing_drawn(ranks: Ranks) -> Bool:
    """Return a mask of users for whom no item was drawn: bool [n_users]."""
    drawn, others = _drawn(ranks)
    nothing: Bool = (drawn == 0) & (others > 0)
    return nothing


def compute(
    metric: str, ranks: Ranks, groups: Groups, cutoffs: Int64, protocol: Protocol
) -> Float64:
    """Estimate a metric of `CORRECTABLE` on the whole catalogue: [n_users, n_cutoffs].

    `groups` are the tie groups of the sampled ranks under the tie rule "expected", for the property
    that the metric reads. Values can be outside the bounds of the metric.
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
    # Do all cut-offs at once: the estimate for the deepest cut-off includes the others.
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
    """Return m and N of each user: the numbers of drawn items, and of items to draw from."""
    assert ranks.pool is not None
    user = np.repeat(np.arange(ranks.n_users), np.diff(ranks.indptr))
    ranked = np.bincount(user[ranks.above >= 0], minlength=ranks.n_users)
    # Judged items with a NaN score are not ranked, and their users are undefined.
    return np.clip(ranks.n_candidates - ranked, 0, ranks.pool), ranks.pool


def _places_of(ranks: Ranks, groups: Groups) -> Places:
    """Return the relevant items, with a row for every possible number of tied items before them.

    Consider a group with r relevant, s drawn and j other judged items. Its relevant item number q
    is preceded by y drawn and z other judged items of the group with the probability

        (q + y + z)! / (q! y! z!) * (n - 1 - q - y - z)! / ((r - 1 - q)! (s - y)! (j - z)!)
        / (n! / (r! s! j!))   where n = r + s + j
    """
    user = np.repeat(np.arange(ranks.n_users), np.diff(ranks.indptr))
    ranked = ranks.above >= 0
    base = int(ranks.above.max(initial=0)) + 1
    judged = user[ranked] * base + ranks.above[ranked]  # ascending, so that rows are best first
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
    # The mean gain of the items in the group that have a gain.
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
    """Return the share of correctly ordered pairs; each drawn item counts as N / m items."""
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


# Components of the estimate below this are noise: magnified by 1 / sqrt(lambda), or by
# sqrt(lambda) / gamma, which is less than 1e-17.
LEAST_UNBIASED = 1e-12
LEAST_CV = 1e-36


def estimates(
    sampled_before: Int64,
    drawn: Int64,
    others: Int64,
    head: Int64,
    limit: Int64,
    of_rank: Callable[[Float64], Float64],
    correction: str,
    gamma: float,
) -> Float64:
    """Estimate ``of_rank(head + X)`` (0 beyond `limit`) from x of m drawn items.

    `sampled_before`, `drawn` and `others` are x, m and N; see the module's docstring. The rule
    ``"unbiased"`` is ``"cv"`` with a gamma of 0.
    """
    if correction == "plug_in":
        rank = head + others * sampled_before / np.maximum(drawn, 1)
        return np.where(rank <= limit, of_rank(rank), 0.0)
    gamma = gamma if correction == "cv" else 0.0
    result = np.zeros(len(head))
    for m in np.unique(drawn).tolist():
        rows = np.flatnonzero((drawn == m) & (head <= limit))
        if len(rows):
            result[rows] = _least_squares(
                sampled_before[rows], m, others[rows], head[rows], limit[rows], of_rank, gamma
            )
    return result


def _least_squares(
    sampled_before: Int64,
    drawn: int,
    others: Int64,
    head: Int64,
    limit: Int64,
    of_rank: Callable[[Float64], Float64],
    gamma: float,
) -> Float64:
    catalogues, which = np.unique(others, return_inverse=True)
    cases, case = np.unique(np.stack([which, head, limit]), axis=1, return_inverse=True)
    case = case.ravel()
    shrunk = _eigenvalues(drawn, catalogues, LEAST_CV if gamma else LEAST_UNBIASED)
    weight = np.sqrt((drawn + 1) / (catalogues + 1))[:, np.newaxis] * np.sqrt(shrunk)
    weight = ratio(weight, (1 - gamma) * shrunk + gamma)
    projected = _project(catalogues, cases, shrunk.shape[1], of_rank) * weight[cases[0]]
    table = _polynomials(drawn, shrunk.shape[1])
    value = np.zeros(len(sampled_before))
    for degree in range(shrunk.shape[1]):
        value += table[sampled_before, degree] * projected[case, degree]
    return value


def _eigenvalues(drawn: int, catalogues: Int64, least: float) -> Float64:
    """Return lambda_d for each N: float64 [n_catalogues, n_degrees]; small values become 0."""
    columns = [np.ones(len(catalogues))]
    for i in range(drawn):
        step = (drawn - i) * (catalogues + 2 + i) / ((catalogues - i) * (drawn + 2 + i))
        column = columns[-1] * step
        if not (column >= least).any():
            break
        columns.append(column)
    values = np.stack(columns, axis=1)
    return np.where(values >= least, values, 0.0)


def _project(
    catalogues: Int64, cases: Int64, n_degrees: int, of_rank: Callable[[Float64], Float64]
) -> Float64:
    """Return the sum over X of u_d(X) f(head + X): float64 [n_cases, n_degrees].

    `cases` are combinations of catalogue, head and limit. Since u_d is even or odd, X and N - X are
    handled together. X ascends in the direction in which u_d grows, which makes the recurrence
    stable.
    """
    which, head, limit = cases
    last = np.minimum(catalogues[which], limit - head)
    half = np.minimum(last, catalogues[which] // 2)
    order = np.argsort(-half, kind="stable")
    which, head, last, half = which[order], head[order], last[order], half[order]
    n = catalogues[which]
    sign = (-1.0) ** np.arange(n_degrees)
    total = np.zeros((len(which), n_degrees))
    steps = _Steps(catalogues, n_degrees)
    reach = np.cumsum(np.bincount(half)[::-1])[::-1]  # number of cases that reach each place
    for place, n_active in enumerate(reach.tolist()):
        active = slice(n_active)
        value = of_rank((head[active] + place).astype(np.float64))[:, np.newaxis]
        other = n[active] - place
        mirrored = (other > place) & (other <= last[active])
        if mirrored.any():
            beyond = of_rank((head[active] + other).astype(np.float64)) * mirrored
            value = value + sign * beyond[:, np.newaxis]
        total[active] += steps.current[which[active]] * value
        steps.forward()
    result = np.empty_like(total)
    result[order] = total
    return result


class _Steps:
    """Orthonormal discrete Chebyshev polynomials on 0 .. N, place by place up to the middle.

    With ``a(x) = x (N + 1 - x)``, they satisfy the difference equation
    ``a(x + 1) u(x + 1) = (a(x) + a(x + 1) - d (d + 1)) u(x) - a(x) u(x - 1)``.
    """

    def __init__(self, sizes: Int64, n_degrees: int) -> None:
        self.sizes = sizes.astype(np.float64)[:, np.newaxis]
        degree = np.arange(n_degrees, dtype=np.float64)
        self.eigenvalue = degree * (degree + 1)
        square = [1 / (self.sizes[:, 0] + 1)]
        for d in range(1, n_degrees):
            step = (2 * d + 1) / (2 * d - 1) * (self.sizes[:, 0] + 1 - d)
            square.append(square[-1] * step / (self.sizes[:, 0] + 1 + d))
        self.current = np.sqrt(np.stack(square, axis=1))
        self.earlier = np.zeros_like(self.current)
        self.place = 0

    def forward(self) -> None:
        """Advance to the next place."""
        x = self.place
        here, there = x * (self.sizes + 1 - x), (x + 1) * (self.sizes - x)
        following = (here + there - self.eigenvalue) * self.current - here * self.earlier
        self.earlier, self.current = self.current, ratio(following, there)
        self.place += 1


@functools.lru_cache(maxsize=64)
def _polynomials(size: int, n_degrees: int) -> Float64:
    """Return v_d(x) for x = 0 .. size: float64 [size + 1, n_degrees]."""
    steps = _Steps(np.array([size]), n_degrees)
    table = np.empty((size + 1, n_degrees))
    sign = (-1.0) ** np.arange(n_degrees)
    for place in range(size // 2 + 1):
        table[size - place] = sign * steps.current[0]
        table[place] = steps.current[0]
        steps.forward()
    return table

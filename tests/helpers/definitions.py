"""Direct implementations of all ranking metrics, each for a single order of the items."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from recometer.metrics import METRICS, Metric
from recometer.protocol import RelevantFrom
from recometer.testing.cases import RankingCase, is_relevant

# These metrics are undefined if all candidates are within the cut-off, since their values then do
# not depend on the ranking.
ORDER_FREE = (
    "precision", "tprecision", "recall", "f", "hit", "hits", "fallout", "accuracy", "mcc",
    "ips_recall", "snips_recall",
)  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Order:
    """One order of a user's candidates, best first, with all the data that metrics need."""

    rel: Sequence[int]  # 1 for each relevant candidate, 0 for each other candidate
    gains: Sequence[float]  # the gain of each candidate; 0 for unjudged candidates
    judged: Sequence[bool]  # whether each candidate is judged
    all_gains: Sequence[float]  # the gains of all judged items, including unranked items
    relevant_gains: Sequence[float]  # the gains of all relevant items, including unranked items
    n_relevant: int  # the number of relevant items, including unranked items
    n_excluded: int  # the number of the user's training items
    relevant_from: RelevantFrom
    negative_gains: str  # the `negative_gains` rule of `Protocol`
    whole: bool  # true if the metric has no cut-off

    @property
    def n(self) -> int:
        """Number of candidates."""
        return len(self.rel)

    def hits(self, k: int) -> int:
        """Return the number of relevant items in the first k places."""
        return sum(self.rel[:k])

    def ranks(self) -> list[int]:
        """Return the ranks of the relevant candidates."""
        return [rank for rank, hit in enumerate(self.rel, 1) if hit]


def by_definition(
    metric: Metric,
    order: Sequence[int],
    gains: Mapping[int, float],
    *,
    relevant_from: RelevantFrom = None,
    negative_gains: str = "zero",
    n_excluded: int = 0,
) -> float:
    """Compute a metric from its definition, for one order of the candidates.

    Parameters
    ----------
    metric
        The metric.
    order
        All candidates, best first.
    gains
        The values of the judged items. Items that are not in `order` were not ranked.
    relevant_from, negative_gains
        As in `Protocol`.
    n_excluded
        Number of training items.

    Returns
    -------
    float
        NaN if the metric is undefined. Every metric is undefined if no item is relevant or no item
        is ranked. Some metrics are also undefined if all candidates are relevant, if no item has a
        positive gain, or if they ignore the order within the cut-off and no candidate is beyond it.
        Other rules for undefined values are ignored.
    """
    relevant = {item for item, gain in gains.items() if is_relevant(gain, relevant_from)}
    ranking = Order(
        rel=[int(item in relevant) for item in order],
        gains=[gains.get(item, 0.0) for item in order],
        judged=[item in gains for item in order],
        all_gains=list(gains.values()),
        relevant_gains=[gains[item] for item in relevant],
        n_relevant=len(relevant),
        n_excluded=n_excluded,
        relevant_from=relevant_from,
        negative_gains=negative_gains,
        whole=metric.cutoff is None,
    )
    if not relevant or not order:
        return math.nan
    if metric.name in ORDER_FREE and (metric.cutoff is None or ranking.n <= metric.cutoff):
        return math.nan
    if all(ranking.rel) and metric.name != "ndcg":
        return math.nan
    parameters = {
        name: parameter.default for name, parameter in METRICS[metric.name].parameters.items()
    }
    parameters |= dict(metric.parameters)
    # Without a cut-off, metrics read all candidates and the unranked items after them.
    k = ranking.n + len(gains) if metric.cutoff is None else metric.cutoff
    return float(DEFINITIONS[metric.name](ranking, k, **parameters))


def judged_gains(case: RankingCase, user: int) -> dict[int, float]:
    """Return a dict of the gains of a user's judged items."""
    return {
        item: float(gain)
        for item, gain in enumerate(case.gains[user])
        if not math.isnan(gain) and not case.excluded[user, item]
    }


def mean_over_orders(metric: Metric, case: RankingCase, user: int, **rules: Any) -> float:
    """Average `by_definition` over all possible orders of tied items."""
    judged = judged_gains(case, user)
    n_excluded = int(case.excluded[user].sum())
    orders = _distinct_orders(case, user)
    values = [
        n * by_definition(metric, order, judged, n_excluded=n_excluded, **rules)
        for order, n in orders
    ]
    return math.fsum(values) / sum(n for _, n in orders)


@functools.lru_cache(maxsize=16)  # all metrics need the same orders
def _distinct_orders(case: RankingCase, user: int) -> list[tuple[list[int], int]]:
    """Return one order for each set of equivalent orders of tied items, with the size of the set.

    Orders are equivalent if they differ only in the places of items with the same gain.
    """
    judged = judged_gains(case, user)
    by_gains: dict[tuple[float | None, ...], tuple[list[int], int]] = {}
    for order in case.orders(user):
        gains = tuple(map(judged.get, order))
        first, n = by_gains.get(gains, (order, 0))
        by_gains[gains] = first, n + 1
    return list(by_gains.values())


def _ratio(numerator: float, denominator: float) -> float:
    return numerator / denominator if denominator > 0 else 0.0


def _precision(ranking: Order, k: int, denominator: str) -> float:
    denominators = {"k": k, "list": min(k, ranking.n), "min": min(k, ranking.n_relevant)}
    denominators["least"] = min(denominators["list"], denominators["min"])
    return ranking.hits(k) / denominators[denominator]


def _recall(ranking: Order, k: int, denominator: str, weighted: bool) -> float:
    positive = sorted((gain for gain in ranking.relevant_gains if gain > 0), reverse=True)
    ranked_gains = [
        gain for gain, rel in zip(ranking.gains, ranking.rel, strict=True) if rel and gain > 0
    ]
    if weighted and not positive:
        return math.nan
    if "gains" in denominator and not any(gain > 0 for gain in ranking.all_gains):
        return math.nan
    gains_of_hits = [
        gain for gain, rel in zip(ranking.gains[:k], ranking.rel, strict=False) if rel and gain > 0
    ]
    if weighted:
        best = {"min": positive[:k], "list": ranked_gains}.get(denominator, positive)
        return _ratio(sum(gains_of_hits), sum(best))
    if "gains" in denominator:
        ranked, judged = _gains(ranking, "linear")
        total = sum(judged)
        if denominator == "min_gains":
            total = min(total, ranking.n if ranking.whole else k)
        return sum(gain != 0 for gain in ranked[:k]) / total if total else 0.0
    denominators = {
        "relevant": ranking.n_relevant,
        "min": min(k, ranking.n_relevant),
        "list": sum(ranking.rel),
    }
    return _ratio(ranking.hits(k), denominators[denominator])


def _f(ranking: Order, k: int, beta: float, denominator: str, empty: str) -> float:
    places = min(k, ranking.n) if denominator == "list" else k
    precision, recall = ranking.hits(k) / places, ranking.hits(k) / ranking.n_relevant
    if not ranking.hits(k) and empty == "undefined":
        return math.nan
    return _ratio((1 + beta**2) * precision * recall, beta**2 * precision + recall)


def _rr(ranking: Order, k: int, all: bool, graded: bool) -> float:
    if graded:
        if not any(gain > 0 for gain in ranking.relevant_gains):
            return math.nan
        gains = [(rank, ranking.gains[rank - 1]) for rank in ranking.ranks() if rank <= k]
        return max((1 / (rank * gain) for rank, gain in gains if gain > 0), default=0.0)
    within = [1 / rank for rank in ranking.ranks() if rank <= k]
    if all:
        return sum(within) / ranking.n_relevant
    return max(within, default=0.0)


def _precision_sum(ranking: Order, k: int) -> float:
    return sum(ranking.hits(rank) / rank for rank in ranking.ranks() if rank <= k)


def _missing(ranking: Order, k: int) -> int:
    """Return the number of places by which the ranking falls short of k."""
    return 0 if ranking.whole else max(k - ranking.n, 0)


def _ap(ranking: Order, k: int, denominator: str, repeat_last: bool, by_place: bool) -> float:
    # `by_place` has no effect on a single order, in which no two items share a place.
    denominators = {
        "relevant": ranking.n_relevant,
        "min": min(k, ranking.n_relevant),
        "k": ranking.n if ranking.whole else k,
        "hits": ranking.hits(k),
        "list": min(ranking.n_relevant, k, ranking.n),
        "listed": sum(ranking.rel),
    }
    repeated = (
        _missing(ranking, k) * ranking.rel[-1] * ranking.hits(ranking.n) / ranking.n
        if repeat_last
        else 0.0
    )
    return _ratio(_precision_sum(ranking, k) + repeated, denominators[denominator])


def _roc_auc(ranking: Order, k: int, domain: str, negatives: str, one_kind: str) -> float:
    if domain == "list":
        rel = ranking.rel[:k]
        pairs = sum(rel) * (len(rel) - sum(rel))
        without_pairs = {"share": float(sum(rel) > 0), "zero": 0.0, "undefined": math.nan}
        return _pairs(rel) / pairs if pairs else without_pairs[one_kind]
    # Training items follow the ranked items.
    extra = {"candidates": 0, "all": ranking.n_excluded, "padded": 1}[negatives]
    if domain == "extended":
        padded = [*ranking.rel, *[0] * extra][:k]
        beyond = ranking.n + extra - sum(ranking.rel) - padded.count(0)
        right = _pairs(padded) + (sum(padded) + ranking.n_relevant) / 2 * beyond
        return _ratio(right, ranking.n_relevant * (ranking.n - sum(ranking.rel) + extra))
    right = _pairs([*ranking.rel, *[0] * extra])
    return _ratio(right, ranking.n_relevant * (ranking.n - sum(ranking.rel) + extra))


def _pairs(rel: Sequence[int]) -> int:
    n = len(rel)
    return sum(rel[above] > rel[below] for above in range(n) for below in range(above + 1, n))


def _pr_auc(ranking: Order, k: int, rule: str) -> float:
    if rule != "trapezoid":
        return _precision_sum(ranking, ranking.n) / ranking.n_relevant
    area = 0.0
    for rank in ranking.ranks():
        before = ranking.hits(rank - 1) / (rank - 1) if rank > 1 else 1.0
        area += (before + ranking.hits(rank) / rank) / 2 / ranking.n_relevant
    return area


def _partial_auc(ranking: Order, k: int, denominator: str, negatives: str) -> float:
    negative_ranks = [rank for rank, hit in enumerate(ranking.rel, 1) if not hit][:k]
    if negatives == "k":
        negative_ranks += [ranking.n + 1] * (k - len(negative_ranks))
    paired = min(k, ranking.n_relevant) if denominator == "min" else ranking.n_relevant
    right = sum(
        rank < negative_rank
        for rank in ranking.ranks()[:paired]
        for negative_rank in negative_ranks
    )
    return right / (paired * len(negative_ranks))


def _mean_precision(ranking: Order, k: int, stop: str) -> float:
    if stop == "last":
        k = max((rank for rank in ranking.ranks() if rank <= k), default=0)
    return _ratio(sum(ranking.hits(j) / j for j in range(1, k + 1)), k)


def _mean_recall(ranking: Order, k: int, over: str, repeat_last: bool) -> float:
    if over == "places":
        return sum(ranking.hits(j) for j in range(1, k + 1)) / (k * ranking.n_relevant)
    total_hits = sum(ranking.hits(rank) for rank in ranking.ranks() if rank <= k)
    repeated = (
        _missing(ranking, k) * ranking.rel[-1] * ranking.hits(ranking.n) if repeat_last else 0
    )
    n_counted = min(k, ranking.n_relevant) if over == "first" else ranking.n_relevant
    return (total_hits + repeated) / (ranking.n_relevant * n_counted)


def _ncrr(ranking: Order, k: int) -> float:
    best = sum(1 / j for j in range(1, min(k, ranking.n_relevant) + 1))
    return sum(1 / rank for rank in ranking.ranks() if rank <= k) / best


def _mean_rank(ranking: Order, k: int) -> float:
    missing = range(ranking.n + 1, ranking.n + ranking.n_relevant - sum(ranking.rel) + 1)
    return sum([*ranking.ranks(), *missing]) / ranking.n_relevant


def _percentile_rank(ranking: Order, k: int, weighted: bool) -> float:
    if not weighted:
        places = [(rank - 1) / (ranking.n - 1) for rank in ranking.ranks()]
        return (sum(places) + ranking.n_relevant - len(places)) / ranking.n_relevant
    weights = [gain for gain in ranking.relevant_gains if gain > 0]
    if not weights:
        return math.nan
    ranked = [
        (rank, ranking.gains[rank - 1]) for rank in ranking.ranks() if ranking.gains[rank - 1] > 0
    ]
    places = [gain * (rank - 1) / (ranking.n - 1) for rank, gain in ranked]
    missing = sum(weights) - sum(gain for _, gain in ranked)
    return (sum(places) + missing) / sum(weights)


def _bpref(ranking: Order, k: int, negatives: str) -> float:
    least = 0.0 if negatives == "unjudged" else -math.inf
    other_gains = list(ranking.all_gains)
    for gain in ranking.relevant_gains:
        other_gains.remove(gain)
    limit = min(ranking.n_relevant, sum(gain >= least for gain in other_gains))
    value = 0.0
    for rank in ranking.ranks():
        above = range(rank - 1)
        wrong = sum(
            ranking.judged[j] and not ranking.rel[j] and ranking.gains[j] >= least for j in above
        )
        value += 1 - (min(wrong, ranking.n_relevant) / limit if wrong else 0)
    return value / ranking.n_relevant


def _table(ranking: Order, k: int, unbounded: bool = False) -> tuple[int, int, int, int]:
    """Count true positives, false positives, false negatives and true negatives."""
    hits = ranking.hits(k)
    missed = (ranking.n_relevant if unbounded else sum(ranking.rel)) - hits
    return hits, k - hits, missed, ranking.n - k - missed


def _fallout(ranking: Order, k: int) -> float:
    _, wrong, _, right = _table(ranking, k)
    return wrong / (wrong + right)


def _accuracy(ranking: Order, k: int, unbounded: bool) -> float:
    hits, _, _, rejections = _table(ranking, k, unbounded)
    return (hits + rejections) / ranking.n


def _mcc(ranking: Order, k: int, unbounded: bool) -> float:
    tp, fp, fn, tn = _table(ranking, k, unbounded)
    square = (tp + fp) * (tp + fn) * (tn + fp) * (tn + fn)
    return _ratio(tp * tn - fp * fn, math.sqrt(square)) if square >= 0 else math.nan


def _gain(ranking: Order, kind: str, value: float, relevant: bool) -> float:
    if kind == "binary":
        return float(relevant)
    if kind == "shifted":
        threshold = ranking.relevant_from if isinstance(ranking.relevant_from, float) else 1
        return 2 ** (value - threshold + 1) - 1 if relevant else 0.0
    if kind == "positive" or ranking.negative_gains == "zero":
        value = max(value, 0.0)
    return two_to_less_one(value) if kind == "exponential" else value


def two_to_less_one(power: float) -> float:
    """Return 2^power - 1."""
    return math.expm1(power * math.log(2)) if abs(power) < 0.5 else 2**power - 1


def _discounted(gains: Sequence[float], discount: str) -> float:
    divisor: dict[str, Callable[[int, float], float]] = {
        "standard": lambda j, gain: math.log2(j + 1),
        "original": lambda j, gain: math.log2(max(j, 2)),
        "graded": lambda j, gain: _log2(j * gain + 1 if gain else j + 1),
    }
    return sum(gain / divisor[discount](j, gain) for j, gain in enumerate(gains, 1))


def _log2(value: float) -> float:
    if value > 0:
        return math.log2(value)
    return -math.inf if value == 0 else math.nan


def _gains(ranking: Order, kind: str) -> tuple[list[float], list[float]]:
    """Return the gains in the order of the ranking, and the gains of all judged items."""
    ranked = [
        _gain(ranking, kind, value, bool(rel)) if judged else 0.0
        for value, rel, judged in zip(ranking.gains, ranking.rel, ranking.judged, strict=True)
    ]
    judged = [
        _gain(ranking, kind, value, is_relevant(value, ranking.relevant_from))
        for value in ranking.all_gains
    ]
    return ranked, judged


def _dcg(ranking: Order, k: int, gain: str, discount: str) -> float:
    ranked, judged = _gains(ranking, gain)
    if not any(value > 0 for value in judged):
        return math.nan
    return _discounted(ranked[:k], discount)


def _ndcg(ranking: Order, k: int, gain: str, discount: str, ideal: str, within: str) -> float:
    if within != "k":
        k = min(k, ranking.n_relevant if within == "possible" else ranking.n)
    ranked, judged = _gains(ranking, gain)
    best = sorted((value for value in judged if value > 0), reverse=True)
    if not best:
        return math.nan
    if ideal == "k":
        best = best[:1] * k
    elif ideal == "sum":
        n = min(int(sum(judged)), ranking.n if ranking.whole else k)
        best = [1.0] * max(k + 1 + n if n < 0 else n, 1)
    elif ideal == "signed":
        best = sorted(judged, reverse=True)
    elif ideal == "list":
        best = sorted((value for value in ranked if value > 0), reverse=True)
    ideal_dcg = _discounted(best[:k], discount)
    return (
        ideal_dcg if math.isnan(ideal_dcg) else _ratio(_discounted(ranked[:k], discount), ideal_dcg)
    )


def _rbp(ranking: Order, k: int, p: float, graded: bool, max_gain: float | None) -> float:
    rates: Sequence[float] = ranking.rel
    if graded:
        if not any(gain > 0 for gain in ranking.all_gains):
            return math.nan
        largest = max(ranking.all_gains) if max_gain is None else max_gain
        rates = [min(max(gain, 0), largest) / largest for gain in ranking.gains]
    return (1 - p) * sum(rate * p ** (j - 1) for j, rate in enumerate(rates[:k], 1))


def _err(ranking: Order, k: int, max_gain: float) -> float:
    if not any(gain > 0 for gain in ranking.all_gains):
        return math.nan
    value, unsatisfied = 0.0, 1.0
    for rank, gain in enumerate(ranking.gains[:k], 1):
        content = (2 ** min(max(gain, 0), max_gain) - 1) / 2**max_gain
        value += unsatisfied * content / rank
        unsatisfied *= 1 - content
    return value


def _weights(gains: Iterable[float], propensity: str, power: float | None) -> list[float]:
    exponent = (0.5 if propensity == "popularity" else 1.0) if power is None else power
    # In the generated cases, the propensity of an item is 1 / (1 + abs(gain)).
    return [(1 + abs(gain)) ** exponent for gain in gains]


def _ips(ranking: Order, k: int, discount: bool, **parameters: Any) -> float:
    hits = zip(ranking.rel[:k], _weights(ranking.gains, **parameters), strict=False)
    return sum(
        rel * weight / (math.log2(j + 1) if discount else 1)
        for j, (rel, weight) in enumerate(hits, 1)
    )


def _snips(ranking: Order, k: int, discount: bool, **parameters: Any) -> float:
    return _ips(ranking, k, discount, **parameters) / sum(
        _weights(ranking.relevant_gains, **parameters)
    )


DEFINITIONS: dict[str, Callable[..., float]] = {
    "precision": _precision,
    "tprecision": lambda ranking, k: ranking.hits(k) / min(k, ranking.n_relevant),
    "recall": _recall,
    "f": _f,
    "hit": lambda ranking, k: float(ranking.hits(k) > 0),
    "hits": lambda ranking, k: float(ranking.hits(k)),
    "rr": _rr,
    "ap": _ap,
    "tap": lambda ranking, k: _precision_sum(ranking, k) / min(k, ranking.n_relevant),
    "mean_precision": _mean_precision,
    "mean_recall": _mean_recall,
    "rprecision": lambda ranking, k: ranking.hits(min(k, ranking.n_relevant)) / ranking.n_relevant,
    "ncrr": _ncrr,
    "dcg": _dcg,
    "ndcg": _ndcg,
    "rbp": _rbp,
    "err": _err,
    "bpref": _bpref,
    "fallout": _fallout,
    "accuracy": _accuracy,
    "mcc": _mcc,
    "mean_rank": _mean_rank,
    "percentile_rank": _percentile_rank,
    "roc_auc": _roc_auc,
    "partial_auc": _partial_auc,
    "pr_auc": _pr_auc,
    "ips_recall": lambda ranking, k, **parameters: (
        _ips(ranking, k, False, **parameters) / ranking.n_relevant
    ),
    "ips_dcg": lambda ranking, k, **parameters: _ips(ranking, k, True, **parameters),
    "snips_recall": lambda ranking, k, **parameters: _snips(ranking, k, False, **parameters),
    "snips_dcg": lambda ranking, k, **parameters: _snips(ranking, k, True, **parameters),
}

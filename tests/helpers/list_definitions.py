"""Direct implementations of the definitions of all list metrics."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from recometer.metrics import METRICS, Metric
from recometer.testing import ListCase


def list_by_definition(metric: Metric, case: ListCase, user: int | None = None) -> float:
    """Compute a list metric from its definition.

    Parameters
    ----------
    metric
        The metric.
    case
        The lists and the side data.
    user
        The user; None for a metric with a single value for all users.

    Returns
    -------
    float
        NaN if the metric is undefined.
    """
    parameters = {
        name: parameter.default for name, parameter in METRICS[metric.name].parameters.items()
    }
    parameters |= dict(metric.parameters)
    k = metric.cutoff or 0
    if user is None:
        return float(OVER_USERS[metric.name](case, k, **parameters))
    if not case.lists[user] and metric.name not in OF_EMPTY_LISTS:
        return math.nan
    return float(PER_USER[metric.name](case, user, k, **parameters))


def relevant_items(case: ListCase, user: int) -> set[int]:
    """Return the relevant items of a user."""
    return {item for item, gain in case.test[user].items() if gain != 0}


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values) if values else math.nan


# The functions below compute the metrics that have one value for all users.


def _coverage(case: ListCase, k: int, numerator: str, denominator: str, users: str) -> float:
    counted_users = [u for u in range(case.n_users) if users == "all" or relevant_items(case, u)]
    listed_items = {item for user in counted_users for item in case.lists[user][:k]}
    in_train = {item for item in range(case.n_items) if case.count(item)}
    if numerator == "trained":
        listed_items &= in_train
    listed_items = set(_catalogued(case, dict.fromkeys(listed_items, 1.0), denominator))
    denominators = {
        "catalogue": case.n_catalogue,
        "padded": case.n_catalogue + 1,
        "train": len(in_train),
        "one": 1,
    }[denominator]
    return len(listed_items) / denominators if denominators else math.nan


def _user_coverage(case: ListCase, k: int, least: str) -> float:
    least_length = k if least == "full" else 1
    return _mean([float(len(row[:k]) >= least_length) for row in case.lists])


def _catalogued(case: ListCase, exposures: dict[int, float], of: str) -> dict[int, float]:
    """Keep the exposures of catalogue items; "padded" assigns the sum of the rest to item -1."""
    if of not in ("catalogue", "padded"):
        return exposures
    inside = {item: x for item, x in exposures.items() if item not in case.uncatalogued}
    if of == "padded" and len(inside) < len(exposures):
        inside[-1] = math.fsum(x for item, x in exposures.items() if item not in inside)
    return inside


def _exposures(
    case: ListCase, k: int, patience: float | None = None, of: str = "all"
) -> list[float]:
    exposures: Counter[int] = Counter()
    for row in case.lists:
        for place, item in enumerate(row[:k]):
            exposures[item] += 1 if patience is None else patience**place  # type: ignore[assignment]
    return list(_catalogued(case, dict(exposures), of).values())


def _gini(
    case: ListCase, k: int, support: str, divisor: str, complement: bool, patience: float | None
) -> float:
    exposures = _exposures(case, k, patience, support)
    if support != "listed":
        exposures += [0.0] * (case.n_catalogue + (support == "padded") - len(exposures))
    n, total = len(exposures), math.fsum(exposures)
    if not total:
        return math.nan
    # The Gini index is half of the mean absolute difference between two items' exposures, divided
    # by the mean exposure.
    differences = math.fsum(abs(x - y) for x in exposures for y in exposures)
    below = max(n - 1, 1) if divisor == "others" else n
    index = differences / (2 * below * total)
    return 1 - index if complement else index


def _shannon(shares: Sequence[float]) -> float:
    return -math.fsum(share * math.log2(share) for share in shares if share)


def _entropy(case: ListCase, k: int, unit: str, divisor: str) -> float:
    exposures = _exposures(case, k, of="catalogue" if divisor == "largest" else "all")
    if not exposures:
        return math.nan
    bits = _shannon([x / sum(exposures) for x in exposures])
    if divisor == "largest":
        return bits / math.log2(case.n_catalogue) if case.n_catalogue > 1 else bits
    value = bits * math.log(2) if unit == "nats" else bits
    return value / len(exposures) if divisor == "listed" else value


def _personalization(case: ListCase, k: int, overlap: str) -> float:
    rows = [set(row[:k]) for row in case.lists if row]
    if len(rows) < 2:
        return math.nan

    def similarity(left: set[int], right: set[int]) -> float:
        if overlap == "cosine":
            return len(left & right) / math.sqrt(len(left) * len(right))
        return len(left & right) / k

    if overlap == "matrix":
        n = len(rows)
        similarities = math.fsum(similarity(left, right) for left in rows for right in rows)
        return 1 - (similarities - n) / (n * (n - 1))
    return 1 - _mean([similarity(left, right) for left, right in itertools.combinations(rows, 2)])


# The functions below compute a user's value; if `user` is None, some of them compute the value over
# the rows of all users.


def _over(
    case: ListCase,
    user: int | None,
    k: int,
    value: Callable[[int], float | None],
    divisor: str,
) -> float:
    rows = case.lists if user is None else [case.lists[user]]
    item_values = [value(item) for row in rows for item in row[:k]]
    defined = [value_of_item for value_of_item in item_values if value_of_item is not None]
    if divisor == "cutoff":
        return math.fsum(defined) / k if defined else math.nan
    return _mean(defined)


def _novelty(
    case: ListCase,
    user: int | None,
    k: int,
    probability: str,
    unseen: str,
    divisor: str,
    normalised: bool,
) -> float:
    users = max(case.n_train_users, 1)
    total = users if probability == "users" else max(case.n_train_interactions, 1)

    def value(item: int) -> float | None:
        count: float = case.count(item)
        if unseen == "epsilon":
            count += 1e-10
        elif not count:
            if unseen == "dropped":
                return None
            if unseen == "zero":
                return 0.0
            rarest = min([n for n in map(case.count, range(case.n_items)) if n], default=total)
            count = rarest if unseen == "largest" else 1
        # If 1e-10 was added to the count, the logarithm can be slightly negative, so the mean is
        # clipped at 0.
        bits = math.log2(total / count)
        return bits / math.log2(users) if normalised and users > 1 else bits

    mean_value = _over(case, user, k, value, divisor)
    return max(mean_value, 0.0) if not math.isnan(mean_value) else mean_value


def _epc(
    case: ListCase, user: int, k: int, discount: str, patience: float, novelty: str, any: bool
) -> float:
    relevant = relevant_items(case, user)
    if not relevant and not any:
        return math.nan
    counts = [n for n in map(case.count, range(case.n_items)) if n]
    above = below = 0.0
    for place, item in enumerate(case.lists[user][:k], 1):
        weight = {
            "none": 1.0,
            "log": 1 / math.log2(place + 1),
            "geometric": patience ** (place - 1),
        }[discount]
        worth = 1 - case.count(item) / case.n_train_users
        if novelty == "discovery":
            total = max(case.n_train_interactions, 1)
            worth = math.log2(total / (case.count(item) or min(counts, default=total)))
        below += weight
        above += weight * worth * (any or item in relevant)
    return above / below


def _popularity(
    case: ListCase, user: int | None, k: int, scale: str, unseen: str, divisor: str
) -> float:
    least = 1 if unseen == "one" else 0
    counts = [n for item in range(case.n_items) if (n := max(case.count(item), least))]

    def value(item: int) -> float | None:
        count = max(case.count(item), least)
        if not count and unseen == "dropped":
            return None
        if scale == "percentile":
            rarer, equal = sum(n < count for n in counts), sum(n == count for n in counts)
            return (rarer + (equal + 1) / 2) / len(counts) if count else 0.0
        return (
            count
            / {
                "count": 1,
                "users": max(case.n_train_users, 1),
                "interactions": max(case.n_train_interactions, 1),
                "largest": max(counts, default=1),
            }[scale]
        )

    return _over(case, user, k, value, divisor)


def _tail_share(
    case: ListCase, user: int, k: int, head: float, tail: float | None, divisor: str
) -> float:
    rising = sorted((item for item in range(case.n_items) if case.count(item)), key=case.count)
    if tail is None:
        total, so_far, least = sum(map(case.count, rising)), 0, math.inf
        for item in reversed(rising):
            if so_far < head * total:
                least = case.count(item)
            so_far += case.count(item)
        in_tail = {item for item in range(case.n_items) if case.count(item) < least}
    else:
        in_tail = set(rising[: max(int(len(rising) * tail), 1)])
    return _over(case, user, k, lambda item: float(item in in_tail), divisor)


def _distance(case: ListCase, item: int, other_item: int, kind: str) -> float:
    x, y = case.features[item], case.features[other_item]
    pairs = list(zip(x, y, strict=True))
    if kind == "cosine":
        lengths = math.hypot(*x) * math.hypot(*y)
        return 1 - math.fsum(a * b for a, b in pairs) / lengths if lengths else 1.0
    if kind == "euclidean":
        return math.dist(x, y)
    if kind in ("hamming", "differing"):
        n = sum(a != b for a, b in pairs)
        return n / len(x) if kind == "hamming" else n
    if kind == "jaccard":
        features_present = [({i for i, a in enumerate(row) if a}) for row in (x, y)]
    else:
        features_present = [set(case.categories[item]), set(case.categories[other_item])]
    either = len(features_present[0] | features_present[1])
    return 1 - len(features_present[0] & features_present[1]) / either if either else 0.0


def _ild(
    case: ListCase, user: int, k: int, distance: str, average: str, single: str, similarity: bool
) -> float:
    row = case.lists[user][:k]
    if distance == "categories":
        if not any(case.categories[item] for item in row):
            return math.nan
    elif any(math.isnan(case.features[item][0]) for item in row):
        return math.nan
    if len(row) < 2 and single == "undefined":
        return math.nan
    distances = [_distance(case, *pair, distance) for pair in itertools.combinations(row, 2)]
    if len(row) < 2:
        value = 0.0
    elif average == "items":
        value = math.fsum(distances) / len(row)
    elif average == "cutoff":
        value = 1 - math.fsum(1 - distance_of_pair for distance_of_pair in distances) / (
            k * (k - 1) / 2
        )
    else:
        value = _mean(distances)
    return 1 - value if similarity else value


def _shares(case: ListCase, items: Sequence[int]) -> dict[int, float]:
    shares: dict[int, float] = {}
    for item in items:
        for name in case.categories[item]:
            shares[name] = shares.get(name, 0.0) + 1 / len(case.categories[item])
    total = math.fsum(shares.values())
    return {name: part / total for name, part in shares.items()}


def _category_entropy(case: ListCase, user: int, k: int, unit: str, normalised: bool) -> float:
    shares = _shares(case, case.lists[user][:k])
    if not shares:
        return math.nan
    bits = _shannon(list(shares.values()))
    if normalised:
        return bits / math.log2(case.n_categories)
    return bits * math.log(2) if unit == "nats" else bits


def _share(case: ListCase, user: int, k: int) -> float:
    listed_items = case.lists[user][:k]
    return sum(bool(case.categories[item]) for item in listed_items) / len(listed_items)


def _subtopic_recall(case: ListCase, user: int, k: int, denominator: str, relevant: bool) -> float:
    listed_items = case.lists[user][:k]
    if relevant:
        if not relevant_items(case, user):
            return math.nan
        listed_items = [item for item in listed_items if item in relevant_items(case, user)]
    listed_categories = {name for item in listed_items for name in case.categories[item]}
    if denominator != "relevant":
        return len(listed_categories) / (k if denominator == "cutoff" else case.n_categories)
    relevant_categories = {
        name for item in relevant_items(case, user) for name in case.categories[item]
    }
    return (
        len(listed_categories & relevant_categories) / len(relevant_categories)
        if relevant_categories
        else math.nan
    )


def _alpha_dcg(case: ListCase, order: Sequence[int], relevant: set[int], alpha: float) -> float:
    category_counts: Counter[int] = Counter()
    total = 0.0
    for place, item in enumerate(order, 1):
        if item in relevant:
            total += _alpha_gain(case, item, category_counts, alpha) / math.log2(place + 1)
            category_counts.update(case.categories[item])
    return total


def _alpha_gain(case: ListCase, item: int, category_counts: Counter[int], alpha: float) -> float:
    return math.fsum((1 - alpha) ** category_counts[name] for name in case.categories[item])


def _alpha_ndcg(case: ListCase, user: int, k: int, alpha: float) -> float:
    relevant = relevant_items(case, user)
    left = sorted(item for item in relevant if case.categories[item])
    if not left:
        return math.nan
    best: list[int] = []
    category_counts: Counter[int] = Counter()
    while left and len(best) < k:
        item = max(left, key=lambda item: _alpha_gain(case, item, category_counts, alpha))
        left.remove(item)
        best.append(item)
        category_counts.update(case.categories[item])
    value = _alpha_dcg(case, case.lists[user][:k], relevant, alpha)
    return min(value / _alpha_dcg(case, best, relevant, alpha), 1.0)


def _miscalibration(
    case: ListCase, user: int, k: int, divergence: str, smoothing: float, unit: str
) -> float:
    p, q = _shares(case, list(case.train[user])), _shares(case, case.lists[user][:k])
    if not p or not q:
        return math.nan

    def divergence_of(p: dict[int, float], q: dict[int, float]) -> float:
        return math.fsum(x * math.log2(x / q[name]) for name, x in p.items())

    if divergence == "kl":
        bits = divergence_of(
            p, {name: (1 - smoothing) * q.get(name, 0) + smoothing * p[name] for name in p}
        )
    else:
        middle = {name: (p.get(name, 0) + q.get(name, 0)) / 2 for name in {*p, *q}}
        bits = (divergence_of(p, middle) + divergence_of(q, middle)) / 2
    return bits * math.log(2) if unit == "nats" else bits


def _overlap(case: ListCase, user: int, k: int, denominator: str) -> float:
    recommended, baseline = set(case.lists[user][:k]), set(case.baseline[user][:k])
    if not baseline:
        return math.nan
    denominators = {
        "cutoff": k,
        "shorter": min(len(recommended), len(baseline)),
        "union": len(recommended | baseline),
    }
    return len(recommended & baseline) / denominators[denominator]


def _rbo(case: ListCase, user: int, k: int, p: float, rest: str) -> float:
    recommended, baseline = case.lists[user][:k], case.baseline[user][:k]
    if not baseline:
        return math.nan
    s, n = sorted([len(recommended), len(baseline)])

    def common(depth: int) -> int:
        return len(set(recommended[:depth]) & set(baseline[:depth]))

    if rest == "nothing":
        return (1 - p) * math.fsum(p ** (d - 1) * common(d) / d for d in range(1, n + 1))
    terms = [common(d) / d * p**d for d in range(1, n + 1)]
    terms += [common(s) * (d - s) / (s * d) * p**d for d in range(s + 1, n + 1)]
    reached = (common(n) - common(s)) / n + common(s) / s
    return (1 - p) / p * math.fsum(terms) + reached * p**n


def _unexpectedness(case: ListCase, user: int, k: int, expected: str, divisor: str) -> float:
    if expected == "baseline" and not case.baseline[user]:
        return math.nan
    row = case.lists[user][:k]
    expected_items = (
        set(case.baseline[user][:k]) if expected == "baseline" else set(case.train[user])
    )
    common = len(expected_items.intersection(row))
    return 1 - common / (k if divisor == "cutoff" else len(row))


def _expectedness(case: ListCase, user: int, k: int, place: int, expected: str) -> float:
    item = case.lists[user][place - 1]
    if expected == "baseline":
        return float(item in case.baseline[user][:k])
    if expected == "popularity":
        return case.count(item) / case.n_train_users
    if expected == "similarity":
        known_items = [
            x for x in case.train[user] if not math.isnan(case.features[x][0])
        ]  # an item without features has a similarity of 0 to every item
        similarities = [
            1 - _distance(case, item, known_item, "cosine") for known_item in known_items
        ]
        return math.fsum(similarities) / len(case.train[user])
    n = case.n_catalogue
    distinct = sorted({n for n in map(case.count, range(case.n_items)) if n}, reverse=True)
    count = case.count(item)
    to_any = max(n - distinct.index(count), 0) / n if count else 0.0
    return 1 - max((n + 1 - place) / n - to_any, 0.0)


def _serendipity(
    case: ListCase, user: int, k: int, expected: str, any: bool, combine: str
) -> float:
    row, relevant = case.lists[user][:k], relevant_items(case, user)
    if (not any and not relevant) or (expected == "baseline" and not case.baseline[user]):
        return math.nan
    if expected == "similarity" and (
        not case.train[user] or math.isnan(sum(case.features[item][0] for item in row))
    ):
        return math.nan
    places = [place for place, item in enumerate(row, 1) if any or item in relevant]
    e = [_expectedness(case, user, k, place, expected) for place in places]
    if combine == "complement":
        hits = [item for item in row if item in relevant]
        return 1 - math.fsum(e) if hits else math.nan
    return math.fsum(1 - expectedness for expectedness in e) / (
        k if combine == "cutoff" else len(row)
    )


def _hits_of(case: ListCase, user: int, k: int, repeated: bool) -> float:
    """Return the share of training items among the hits or, if not `repeated`, of other items."""
    hits = [item for item in case.lists[user][:k] if item in relevant_items(case, user)]
    hits_of_kind = [item for item in hits if (item in case.train[user]) == repeated]
    return len(hits_of_kind) / len(hits) if hits else math.nan


def _unknown_items(case: ListCase, user: int, k: int) -> float:
    return _mean([float(item in case.uncatalogued) for item in case.lists[user][:k]])


def _repeated_items(case: ListCase, user: int, k: int) -> float:
    return _mean([float(item is None) for item in case.as_returned(user)[:k]])


def _valid(case: ListCase, user: int, k: int) -> float:
    places = case.as_returned(user)[:k]
    return sum(item is not None and item not in case.uncatalogued for item in places) / k


OF_EMPTY_LISTS = ("valid",)
OVER_USERS: dict[str, Callable[..., float]] = {
    "coverage": _coverage,
    "user_coverage": _user_coverage,
    "gini": _gini,
    "entropy": _entropy,
    "personalization": _personalization,
    "novelty": lambda case, k, **parameters: _novelty(case, None, k, **parameters),
    "popularity": lambda case, k, **parameters: _popularity(case, None, k, **parameters),
}
PER_USER: dict[str, Callable[..., Any]] = {
    "novelty": _novelty,
    "epc": _epc,
    "popularity": _popularity,
    "tail_share": _tail_share,
    "ild": _ild,
    "category_entropy": _category_entropy,
    "share": _share,
    "subtopic_recall": _subtopic_recall,
    "alpha_ndcg": _alpha_ndcg,
    "miscalibration": _miscalibration,
    "overlap": _overlap,
    "rbo": _rbo,
    "unexpectedness": _unexpectedness,
    "serendipity": _serendipity,
    "repeated_hits": lambda case, user, k: _hits_of(case, user, k, True),
    "new_hits": lambda case, user, k: _hits_of(case, user, k, False),
    "unknown_items": _unknown_items,
    "repeated_items": _repeated_items,
    "valid": _valid,
}

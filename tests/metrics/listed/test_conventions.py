"""recometer's formulas, with suitable parameters, reproduce other libraries' list metrics.

shared/conventions/results.json contains the values that the libraries returned for the cases in
shared/conventions/cases.json.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import math
import re
from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest
import scipy.sparse as sp
from convention_cases import TOPK
from measured import compute, compute_for_all, record_users
from shared import SHARED

import recometer as rm
from recometer.metrics import ListData, Side, parse

pytestmark = pytest.mark.shared

ABOUT_LISTS = {
    "arp", "coverage", "diversity", "entropy", "gini", "ild", "ils", "novelty", "personalization",
    "serendipity", "tail", "unexpectedness",
}  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Rule:
    """The metric, users and inputs with which recometer reproduces a library's metric.

    Attributes
    ----------
    metric
        The metric's name in recometer; ``{k}`` stands for the cut-off.
    users
        A function that selects the users whose lists the metric reads.
    absent
        The value that replaces a user's undefined value; None leaves the user out.
    features
        "items" for the features in the cases, or "train" for the training users of each item.
    last
        A function for the last step of the computation, such as rounding.
    within
        The allowed error, which is larger for libraries that compute in float32.
    """

    metric: str
    users: Callable[[str, int], bool] = lambda user, k: True
    absent: float | None = None
    features: str = "items"
    last: Callable[[float], float] = float
    within: float = 1e-9


@functools.cache
def cases():
    return json.loads((SHARED / "conventions" / "cases.json").read_text())


@functools.cache
def records():
    all_records = json.loads((SHARED / "conventions" / "results.json").read_text())["records"]
    return [
        record for record in all_records if record["metric"] in ABOUT_LISTS and record["executed"]
    ]


def relevant(user, k=0):
    return any((cases()["users"][user]["test"] or {}).values())


def lists_up_to_k(user, k):
    return len(cases()["users"][user]["ranking"]) > 0


def full(user, k):
    return len(cases()["users"][user]["ranking"]) >= k


def at_least_ten(user, k):
    return len(cases()["users"][user]["ranking"]) >= 10


def table(rows, width=None):
    """Convert lists of different lengths to an int64 array [n, width], padded with -1."""
    width = max(map(len, rows), default=0) if width is None else width
    items = np.full((len(rows), width), -1, np.int64)
    for row, values in zip(items, rows, strict=True):
        row[: len(values)] = values[:width]
    return items


def lists_of(rows, n_items):
    items = table(rows)
    return rm.TopLists(items, n_items, (items >= 0).any(axis=1), np.zeros(len(rows), bool))


def side(rows):
    """Convert the users' dicts of items and gains to a ragged table."""
    rows = [sorted(row.items()) for row in rows]
    indptr = np.concatenate([[0], np.cumsum([len(row) for row in rows])]).astype(np.int64)
    items = np.array([item for row in rows for item, _ in row], np.int64)
    return Side(indptr, items, np.array([gain for row in rows for _, gain in row], np.float64))


def data(record, users, features):
    """Return these users' data, as they were passed to the library."""
    cases_of_users, n, shift = cases()["users"], 20, 0
    rankings = [cases_of_users[user]["ranking"] for user in users]
    train = {user: cases_of_users[user]["train"] for user in cases_of_users}
    if record["source"].startswith("top10"):
        rankings = [ranking[:10] for ranking in rankings]
    elif record["source"] == "matrix":
        n, shift = 21, 1
        depth = max(json.loads(re.search(r"topk=(\[.*?\])", record["impl"])[1]))
        odd = TOPK[depth]
        rankings = [
            odd.get(user, [item + 1 for item in ranking])[:depth]
            for user, ranking in zip(users, rankings, strict=True)
        ]
    if record["library"] == "lenskit":
        train["somebody"] = LENSKIT_EXTRA
    item_users = np.bincount(
        [item + shift for items in train.values() for item in items], minlength=n
    )
    judged = side(
        [
            {int(item) + shift: gain for item, gain in (cases_of_users[user]["test"] or {}).items()}
            for user in users
        ]
    )
    columns = np.zeros((n, len(train)))
    for column, items in enumerate(train.values()):
        columns[items, column] = 1
    vectors = np.zeros((n, 4))
    kinds = np.zeros(n, np.int64)
    for item in range(20):
        vectors[item + shift] = cases()["item_features"][str(item)]
        kinds[item + shift] = cases()["item_category"][str(item)]
    return ListData(
        lists=lists_of(rankings, n),
        n_catalogue=20,
        train=side([{item + shift: 1 for item in train[user]} for user in users]),
        n_train_users=len(train),
        n_train_interactions=int(item_users.sum()),
        item_users=item_users,
        test=judged,
        relevant=judged.gain > 0,
        baseline=lists_of([list(range(10))] * len(users), n),
        categories=sp.csr_array((np.ones(n, bool), kinds, np.arange(n + 1)), shape=(n, 4)),
        features=sp.csr_array(columns) if features == "train" else vectors,
    )


# LensKit's values were recorded with an additional training row, whose item is in u4's list.
LENSKIT_EXTRA = [19]


def recommenders(record):
    # Of the two records for each k, the first results from the items' training users, and the
    # second from their features.
    twins = [
        item
        for item in records()
        if item["library"] == "recommenders"
        and (item["metric"], item["k"]) == (record["metric"], record["k"])
    ]
    return Rule("ild@{k}", features="train" if twins[0] is record else "items")


RULES: dict[tuple[str, str, str], Rule | Callable[[dict], Rule]] = {
    ("rectools", "novelty", "MeanInvUserFreq"): Rule("novelty@{k}"),
    ("rectools", "ild", "IntraListDiversity"): Rule("ild@{k}(distance=differing,single=zero)"),
    ("rectools", "serendipity", "Serendipity"): Rule(
        "serendipity@{k}(expected=rank)", users=lists_up_to_k, absent=0
    ),
    ("rectools", "arp", "AvgRecPopularity"): Rule("popularity@{k}"),
    ("rectools", "arp", "AvgRecPopularity(normalize=True)"): Rule(
        "popularity@{k}(scale=interactions)"
    ),
    ("rectools", "coverage", "CatalogCoverage(normalize=False)"): Rule(
        "coverage@{k}(denominator=one)"
    ),
    ("rectools", "coverage", "CatalogCoverage(normalize=True)"): Rule("coverage@{k}"),
    ("replay", "coverage", "Coverage"): Rule("coverage@{k}(numerator=trained,denominator=train)"),
    ("replay", "novelty", "Novelty"): Rule("unexpectedness@{k}(expected=train)", absent=1),
    ("replay", "novelty", "Surprisal"): Rule("novelty@{k}(divisor=cutoff,normalised)"),
    ("replay", "unexpectedness", "Unexpectedness"): Rule("unexpectedness@{k}(divisor=cutoff)"),
    ("replay", "diversity", "CategoricalDiversity"): Rule(
        "subtopic_recall@{k}(denominator=cutoff)"
    ),
    ("lenskit", "arp", "MeanPopRank"): Rule("popularity@{k}(scale=percentile)"),
    ("lenskit", "arp", "RunAnalysis MeanPopRank"): Rule("popularity@{k}(scale=percentile)"),
    ("lenskit", "gini", "ListGini"): Rule("gini@{k}"),
    ("lenskit", "gini", "ExposureGini"): Rule("gini@{k}(patience=0.85)", within=1e-7),
    ("pyg", "coverage", "LinkPredCoverage"): Rule("coverage@{k}", users=at_least_ten, within=1e-6),
    ("pyg", "diversity", "LinkPredDiversity"): Rule(
        "ild@{k}(distance=categories,average=cutoff)", users=at_least_ten, within=1e-6
    ),
    ("pyg", "personalization", "LinkPredPersonalization"): Rule(
        "personalization@{k}", users=at_least_ten, within=1e-6
    ),
    ("pyg", "arp", "LinkPredAveragePopularity"): Rule(
        "popularity@{k}", users=at_least_ten, within=1e-6
    ),
    ("evidently", "ild", "DiversityMetric"): Rule("ild@{k}(average=items,single=zero)"),
    ("evidently", "novelty", "NoveltyMetric"): Rule("novelty@{k}(unseen=dropped)"),
    ("evidently", "serendipity", "SerendipityMetric"): Rule(
        "serendipity@{k}(expected=similarity,combine=complement)"
    ),
    ("evidently", "personalization", "PersonalizationMetric"): Rule(
        "personalization@{k}(overlap=matrix)"
    ),
    ("evidently", "arp", "PopularityBias"): Rule("popularity@{k}(unseen=dropped)"),
    ("evidently", "coverage", "PopularityBias"): Rule(
        "coverage@{k}(numerator=trained,denominator=train)"
    ),
    ("evidently", "gini", "PopularityBias"): Rule("gini@{k}(support=listed,divisor=others)"),
    ("rexmex", "novelty", "novelty"): Rule(
        "novelty@{k}(unseen=epsilon,divisor=cutoff)", users=full
    ),
    ("rexmex", "ils", "intra_list_similarity"): Rule("ild@{k}(similarity)"),
    ("rexmex", "personalization", "personalization"): Rule("personalization@{k}(overlap=cosine)"),
    ("rexmex", "coverage", "item_coverage"): Rule(
        "coverage@{k}", last=lambda value: round(value, 3)
    ),
    ("recmetrics", "novelty", "novelty"): Rule("novelty@{k}(divisor=cutoff)"),
    ("recmetrics", "coverage", "prediction_coverage"): Rule(
        "coverage@{k}", last=lambda value: round(100 * value, 2)
    ),
    ("recmetrics", "personalization", "personalization (lists >= k)"): Rule(
        "personalization@{k}", users=full
    ),
    ("recmetrics", "personalization", "personalization (ragged lists)"): Rule(
        "personalization@{k}(overlap=cosine)"
    ),
    ("recmetrics", "ils", "intra_list_similarity"): Rule("ild@{k}(similarity)"),
    ("recommenders", "novelty", "novelty"): Rule(
        "novelty@{k}(probability=interactions,unseen=zero,divisor=rows)"
    ),
    ("recommenders", "coverage", "catalog_coverage"): Rule("coverage@{k}(denominator=train)"),
    ("recommenders", "entropy", "distributional_coverage"): Rule("entropy@{k}"),
    ("recommenders", "ild", "diversity"): recommenders,
    ("recommenders", "serendipity", "serendipity"): Rule(
        "serendipity@{k}(expected=similarity,any)", features="train"
    ),
    ("recpack", "coverage", "CoverageK"): Rule("coverage@{k}(users=relevant)"),
    ("recpack", "ild", "IntraListDiversityK"): Rule(
        "ild@{k}(distance=jaccard,single=zero)", users=relevant, absent=0
    ),
    ("recbole", "coverage", "itemcoverage"): Rule("coverage@{k}(denominator=padded)"),
    ("recbole", "arp", "averagepopularity"): Rule("popularity@{k}"),
    ("recbole", "entropy", "shannonentropy"): Rule("entropy@{k}(unit=nats,divisor=listed)"),
    ("recbole", "gini", "giniindex"): Rule("gini@{k}(support=padded)"),
    ("recbole", "tail", "tailpercentage"): Rule("tail_share@{k}(tail=0.1)"),
}


def rule_of(record):
    """Return the rule whose name is the longest prefix of the record's name."""
    fitting_rules = [
        key
        for key in RULES
        if key[:2] == (record["library"], record["metric"]) and record["impl"].startswith(key[2])
    ]
    if not fitting_rules:
        return None
    rule = RULES[max(fitting_rules, key=lambda key: len(key[2]))]
    return rule if isinstance(rule, Rule) else rule(record)


def users_of(record, rule):
    k = record["k"] or 25
    users = [user for user in cases()["users"] if rule.users(user, k)]
    if record["library"] == "recbole":  # RecBole drops users without test items
        with_all = "incl. u3" in record["impl"]
        users = [u for u in users if relevant(u) or (with_all and u == "u3")]
    return users


def computed(record, rule):
    """Return recometer's mean or value over all users, and its values per user."""
    users = users_of(record, rule)
    k = record["k"] or 25
    (metric,) = parse(rule.metric.format(k=k))
    inputs = data(record, users, rule.features)
    protocol = rm.Protocol()
    if metric.definition.over_users:
        value = compute_for_all(record_users(inputs), [metric], protocol)[str(metric)]
        by_user = {}
        if record.get("per_user"):  # the library was also called for each user separately
            for user in record["per_user"]:
                inputs_of_user = data(record, [user], rule.features)
                by_user[user] = compute_for_all(record_users(inputs_of_user), [metric], protocol)[
                    str(metric)
                ]
        return rule.last(value), by_user
    values = compute(record_users(inputs), [metric], protocol)[0][str(metric)]
    if rule.absent is not None:
        values = np.where(np.isnan(values), rule.absent, values)
    defined = ~np.isnan(values)
    mean = float(values[defined].mean()) if defined.any() else math.nan
    return rule.last(mean), dict(zip(users, values.tolist(), strict=True))


def exception(record):
    """Return why a record cannot be reproduced, or None if it can."""
    if record.get("error"):
        return "the library raised an error"
    if record["source"] == "mini:unseen":
        return "a probe whose training data were not recorded"
    return None


def number(value):
    return float(value) if value is not None else None


def check(record, rule):
    """Check the mean and the values per user of a record; return the number of checked values."""
    mean, per_user = computed(record, rule)
    n = 0
    expected = number(record["mean"])
    if expected is not None:
        assert mean == pytest.approx(expected, rel=rule.within, abs=rule.within, nan_ok=True)
        n += 1
    for user, value in (record.get("per_user") or {}).items():
        actual = per_user.get(user, math.nan)
        assert actual == pytest.approx(
            number(value), rel=rule.within, abs=max(rule.within, 1e-11), nan_ok=True
        ), user
        n += 1
    return n


# For each library, the number of list metric records that must be reproduced.
COVERED = {
    "evidently": 56, "lenskit": 44, "pyg": 16, "recbole": 70, "recmetrics": 40,
    "recommenders": 12, "recpack": 20, "rectools": 70, "replay": 50, "rexmex": 44,
}  # fmt: skip


@pytest.mark.parametrize("library", COVERED)
def test_every_record_of_a_library_is_reproduced(library):
    of_library = [record for record in records() if record["library"] == library]
    within_reach = [record for record in of_library if exception(record) is None]
    wrong = []
    for record in within_reach:
        rule = rule_of(record)
        assert rule is not None, record["impl"]
        try:
            assert check(record, rule) > 0, "nothing was compared"
        except AssertionError as error:
            wrong.append(f"{record['impl']} of {record['source']}, k={record['k']}: {error}")
    assert not wrong, "\n".join(wrong)
    assert len(within_reach) == COVERED[library]


def test_records_that_cannot_be_reproduced_are_counted():
    n_by_reason = Counter(filter(None, map(exception, records())))
    assert n_by_reason == {
        "the library raised an error": 17,
        "a probe whose training data were not recorded": 1,
    }
    assert len(records()) == sum(COVERED.values()) + n_by_reason.total()

"""Every rule changes the result, raises an error or causes a warning: none is silently ignored.

The tests cover every rule of `Protocol`, every kind of source and every kind of metric.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import json
import math
import warnings
from typing import Any

import numpy as np
import polars as pl
import pytest

import recometer as rm
from recometer.metrics import parse
from recometer.metrics.conventions import OF_THE_CALL

NAN = math.nan
NAMES = ("name", "version")  # these fields of `Protocol` identify a set of rules

# For each rule, a value other than the default.
VALUES: dict[str, Any] = {
    "ties": "item_desc",
    "relevant_from": 3.0,
    "negative_gains": "counted",
    "undefined": 0.25,
    "constant_scores": "ties",
    "nan_scores": "last",
    "infinite_scores": "ranked",
    "single_precision": True,
    "users": "positive",
    "min_positives": 3,
    "min_candidates": 5,
    "cold_start": False,
    "interval": "bca",
    "confidence": 0.5,
    "no_relevant": 0.25,
    "no_list": "undefined",
    "deep_cutoffs": "computed",
    "all_relevant": "computed",
    "missing": "zero",
    "average": "relevant",
    "decimals": 1,
    "percent": True,
    "unranked": "left_out",
    "unknown_items": "left_out",
    "score_above": 2.0,
    "duplicates": "counted",
    "repeated_test": "counted",
    "seen": "kept",
    "shifted_ids": "kept",
    "defects": True,
}
METRICS = {
    "ranks": "recall@2 recall@9 ndcg@9 ap@2",
    "ratings": "rmse rated_precision@2 rated_recall@2",
    "lists": "epc@1 novelty@2",
    "all users": "coverage@2 user_coverage@2 personalization@2",
}
# User 0 has ties, user 1 has a NaN score, user 2 has constant scores, user 3 has no training items,
# user 4 has only two candidates (which are relevant), and user 5 has no relevant items. The test
# data also contain user 8, whom the models do not know.
SCORES = np.array(
    [
        [3.0, 3, 3, 2, 1, 0],
        [1.0, 2, NAN, 4, 5, 6],
        [2.0, 2, 2, 2, 2, 2],
        [5.0, 4, 3, 2, 1, 0],
        [1.0, 5, 3, 4, 2, 6],
        [6.0, 5, 4, 3, 2, 1],
    ]
)
TEST = {0: {1: 2.0, 2: 5.0, 3: -1.0}, 1: {3: 1.0, 0: 3.0}, 2: {5: 4.0}, 3: {0: 1.0, 5: 2.0, 9: 3.0},
        4: {4: 1.0, 5: 2.0}, 5: {1: 0.0, 2: 0.0}, 8: {1: 1.0}}  # fmt: skip
CLOSE = SCORES + 1e-9 * np.arange(6)  # breaks the ties in SCORES, except in single precision
INFINITE = np.where(SCORES == 5, math.inf, SCORES)
TRAIN = {0: [5], 1: [5], 2: [0], 4: [0, 1, 2, 3], 5: [5], 9: [0]}


# This dict maps each rule that has no effect by itself to a rule that it needs.
COMPANY: dict[str, dict[str, Any]] = {
    "defects": {"protocol": "evidently"},
}


def frame(rows: list[tuple[Any, ...]], *names: str) -> pl.DataFrame:
    return pl.DataFrame(rows, names, orient="row")


def make_lists(scores: Any = SCORES) -> rm.Lists:
    """Return lists of all items; two lists repeat an item, and some contain training items."""
    rows = [(user, item, scores[user, item]) for user in range(6) for item in range(6)]
    return rm.Lists(frame([*rows, (3, 5, -1.0), (0, 1, 2.5)], "user", "item", "score"))


def make_pairs(scores: Any = SCORES, **options: Any) -> rm.Pairs:
    """Return all user-item pairs except one, with scores and true ratings."""
    rows = [
        (user, item, scores[user, item], TEST[user].get(item, 0.0))
        for user, item in itertools.product(range(6), range(6))
        if (user, item) != (3, 5)
    ]
    return rm.Pairs(frame(rows, "user", "item", "score", "rating"), **options)


def cases() -> dict[str, list[tuple[Any, dict[str, Any]]]]:
    """Return pairs of a source and arguments for `evaluate`, for each kind of source."""
    ids = {"user_ids": range(6), "item_ids": range(6)}
    arguments = {"test": rm.Interactions.of(TEST), "train": rm.Interactions.of(TRAIN)}
    trained = {"train": arguments["train"]}
    sampled = {**arguments, "candidates": rm.SampledCandidates(2, seed=1)}
    rows = [(user, item) for user, items in TEST.items() for item in items]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rm.DataWarning)
        repeated = rm.Interactions.of(frame([*rows, (0, 1), (3, 9)], "user", "item"))
    repeated_rows = {"test": repeated, "train": arguments["train"]}
    candidates = {user: [0, 1, 2, 3] for user in range(6)}
    factors = rm.Factors(SCORES, np.eye(6), **ids)
    finite = rm.Factors(np.nan_to_num(SCORES), np.eye(6), **ids)
    scores, clean = rm.Scores(SCORES, **ids), rm.Scores(np.nan_to_num(SCORES), **ids)
    return {
        "Factors": [
            (finite, arguments),
            (factors, arguments),
            (finite, sampled),
            (finite, repeated_rows),
        ],
        "Scores": [
            (scores, arguments),
            (clean, sampled),
            (clean, arguments),
            (rm.Scores(INFINITE, **ids), arguments),
            (rm.Scores(CLOSE, **ids), arguments),
            (clean, repeated_rows),
        ],
        "Lists": [
            (make_lists(), {**arguments, "catalogue": range(6)}),
            (rm.Lists({0: [1, 2]}), {**arguments, "catalogue": 6}),
            (make_lists(INFINITE), {**arguments, "catalogue": range(6)}),
            (make_lists(CLOSE), {**arguments, "catalogue": range(6)}),
            (make_lists(), {**repeated_rows, "catalogue": range(6)}),
        ],
        "Pairs": [
            (make_pairs(threshold=1), trained),
            (make_pairs(threshold=1), {**trained, "candidates": candidates}),
            (make_pairs(rating=False, relevance=False), arguments),
            (make_pairs(rating=False, relevance=False), sampled),
            (make_pairs(INFINITE, threshold=1), trained),
            (make_pairs(CLOSE, threshold=1), trained),
            (make_pairs(rating=False, relevance=False), repeated_rows),
        ],
    }


CASES = cases()


@functools.cache
def outcome_without_rule(
    kind: str, number: int, family: str, other_rules: tuple[tuple[str, Any], ...]
) -> Outcome:
    """Evaluate a case with the tested rule at its default."""
    return outcome(*CASES[kind][number], family, **dict(other_rules))


class Outcome:
    """The parts of a result that the tests compare.

    Intervals are slow to compute, so they are computed only when needed.
    """

    def __init__(self, result: rm.Evaluation) -> None:
        self._result = result
        self.numbers = (
            {name: column.tolist() for name, column in result.values.items()},
            {name: codes.tolist() for name, codes in result.reasons.items()},
            [result.mean(), dict(result.over_rows)],
        )

    @functools.cached_property
    def intervals(self) -> dict[str, Any]:
        return {name: self._result.interval(name) for name in self._result.mean()}


def outcome(source: Any, arguments: dict[str, Any], family: str, **rules: Any) -> Outcome:
    """Evaluate the metrics of a family under the given rules."""
    metrics = METRICS[family]
    if rules.get("protocol") == "evidently":
        metrics = metrics.replace("recall@2 recall@9", "MAPKMetric@9")
    return Outcome(rm.evaluate(source, metrics=metrics, seed=3, **arguments, **rules))


def differ(first: Any, second: Any) -> bool:
    return json.dumps(first, default=vars) != json.dumps(second, default=vars)  # NaN equals NaN


class Changed(Exception):
    """Raised if a rule changes a value."""


def verdict(kind: str, number: int, family: str, rule: str, other_rules: dict[str, Any]) -> Any:
    """Return "refused" if a rule raises an error, and "warned" if it causes a warning.

    Otherwise, return the outcomes with and without the rule.

    Raises
    ------
    Changed
        If the rule changes the values.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            before = outcome_without_rule(kind, number, family, tuple(other_rules.items()))
            rules = {**other_rules, rule: VALUES[rule]}
            after = outcome(*CASES[kind][number], family, **rules)
        except rm.InputError:
            return "refused"
    if differ(after.numbers, before.numbers):
        raise Changed
    messages = [str(warning.message) for warning in caught if warning.category is rm.DataWarning]
    if any(text.startswith(f"The rule {rule}=") for text in messages):
        return "warned"
    return after, before


def is_silent(kind: str, family: str, rule: str, other_rules: dict[str, Any]) -> bool:
    """Return whether a rule is silently ignored.

    This is true if the rule changes the result in no case, and if it causes neither an error nor a
    warning in at least one case.
    """
    try:
        verdicts = [
            verdict(kind, number, family, rule, other_rules)
            for number, (_, arguments) in enumerate(CASES[kind])
            if family != "ratings" or (kind == "Pairs" and "test" not in arguments)
        ]
    except Changed:
        return False
    unchanged = [pair for pair in verdicts if not isinstance(pair, str)]
    return bool(unchanged) and not any(
        differ(with_rule.intervals, without_rule.intervals) for with_rule, without_rule in unchanged
    )


RULES = [field.name for field in dataclasses.fields(rm.Protocol) if field.name not in NAMES]


def test_every_rule_has_a_value_other_than_its_default() -> None:
    assert sorted(VALUES) == sorted(RULES)
    for rule, value in VALUES.items():
        assert value != getattr(rm.Protocol(), rule)


@pytest.mark.parametrize("rule", RULES)
def test_no_rule_is_silently_ignored(rule: str) -> None:
    ignored = [
        (kind, family, other_rules)
        for kind, family in itertools.product(CASES, METRICS)
        for other_rules in [{}, *([COMPANY[rule]] if rule in COMPANY else [])]
        if is_silent(kind, family, rule, other_rules)
    ]
    assert ignored == []


@pytest.mark.filterwarnings("ignore::recometer.errors.DataWarning")
@pytest.mark.parametrize("rule", sorted({*RULES} - {*OF_THE_CALL}))
def test_rules_that_conventions_set_for_single_metrics_take_effect(rule: str) -> None:
    family = "all users" if rule == "percent" else "ranks"

    def numbers(source: Any, arguments: dict[str, Any], *rules: tuple[str, Any]) -> Any:
        metrics = [
            dataclasses.replace(metric, rules=rules, label=str(metric))
            for metric in parse(METRICS[family])
        ]
        return Outcome(rm.evaluate(source, metrics=metrics, seed=3, **arguments)).numbers

    cases = itertools.chain(CASES["Lists"], CASES["Factors"])
    changed_rule = rule, VALUES[rule]
    assert any(differ(numbers(*case), numbers(*case, changed_rule)) for case in cases)

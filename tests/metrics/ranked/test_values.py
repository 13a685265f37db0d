"""Ranking metrics match values computed by hand."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from measured import compute, record_users

import recometer as rm
from recometer.metrics import METRICS, parse
from recometer.testing import rank

NAN = math.nan


def value(name: str, ranks: rm.Ranks, **rules) -> float:
    values, _ = compute(record_users(ranks), parse(name), rm.Protocol(**rules))
    return float(values[name][0])


def log2(x: float) -> float:
    return math.log2(x)


# The relevant items are at ranks 2, 3 and 6 of 8.
SIMPLE = rank([8, 7, 6, 5, 4, 3, 2, 1], [NAN, 1, 1, NAN, NAN, 1, NAN, NAN])
# SIMPLE with an additional relevant item, which is unranked and not a candidate.
UNRANKED = rank(
    [8, 7, 6, 5, 4, 3, 2, 1, 0],
    [NAN, 1, 1, NAN, NAN, 1, NAN, NAN, 1],
    unranked=[False] * 8 + [True],
)
# The items at ranks 1, 2, 3 and 5 of 6 have the gains 1, 3, -2 and 2.
GRADED = rank([6, 5, 4, 3, 2, 1], [1, 3, -2, NAN, 2, NAN])
# Below the first item are four tied items, two of which are relevant, followed by a third relevant
# item.
TIED = rank([9, 5, 5, 5, 5, 1, 0], [NAN, 1, NAN, 1, NAN, 1, NAN])


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("precision@1", 0),
        ("precision@2", 1 / 2),
        ("precision@5", 2 / 5),
        ("precision@7", 3 / 7),
        ("tprecision@2", 1 / 2),
        ("tprecision@5", 2 / 3),
        ("recall@2", 1 / 3),
        ("recall@6", 1),
        ("hit@1", 0),
        ("hit@2", 1),
        ("rr@1", 0),
        ("rr@2", 1 / 2),
        ("rr", 1 / 2),
        ("ap@1", 0),
        ("ap@3", (1 / 2 + 2 / 3) / 3),
        ("ap", (1 / 2 + 2 / 3 + 3 / 6) / 3),
        ("ap@100", (1 / 2 + 2 / 3 + 3 / 6) / 3),
        ("tap@2", (1 / 2) / 2),
        ("tap@3", (1 / 2 + 2 / 3) / 3),
        ("pr_auc", (1 / 2 + 2 / 3 + 3 / 6) / 3),
        ("rprecision", 2 / 3),
        ("rprecision@2", 1 / 3),
        ("rprecision@5", 2 / 3),
        # The three relevant items rank above four, four and two of the five other items.
        ("roc_auc", 10 / 15),
        ("ndcg@2", (1 / log2(3)) / (1 + 1 / log2(3))),
        ("ndcg", (1 / log2(3) + 1 / log2(4) + 1 / log2(7)) / (1 + 1 / log2(3) + 1 / log2(4))),
    ],
)
def test_values_without_ties_are_exact(name, expected):
    # Without ties, the formula itself is computed, so values must be exactly equal.
    assert value(name, SIMPLE) == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("precision@3", 2 / 3),
        ("tprecision@5", 2 / 4),
        ("recall@6", 3 / 4),
        ("ap", (1 / 2 + 2 / 3 + 3 / 6) / 4),
        ("tap@3", (1 / 2 + 2 / 3) / 3),
        ("rprecision", 2 / 4),
        # The fourth relevant item is below all five irrelevant items.
        ("roc_auc", 10 / 20),
        ("rr", 1 / 2),
        ("ndcg@3", (1 / log2(3) + 1 / log2(4)) / (1 + 1 / log2(3) + 1 / log2(4))),
        ("ndcg", (1 / log2(3) + 1 / 2 + 1 / log2(7)) / (1 + 1 / log2(3) + 1 / 2 + 1 / log2(5))),
    ],
)
def test_unranked_relevant_item_comes_last(name, expected):
    assert value(name, UNRANKED) == pytest.approx(expected, rel=1e-15)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("ndcg@1", 1 / 3),
        ("ndcg@2", (1 + 3 / log2(3)) / (3 + 2 / log2(3))),
        ("ndcg@3", (1 + 3 / log2(3) - 2 / log2(4)) / (3 + 2 / log2(3) + 1 / log2(4))),
        ("ndcg", (1 + 3 / log2(3) - 2 / 2 + 2 / log2(6)) / (3 + 2 / log2(3) + 1 / 2)),
    ],
)
def test_ndcg_of_graded_gains_matches_hand_computed_values(name, expected):
    assert value(name, GRADED, negative_gains="counted") == pytest.approx(expected, rel=1e-15)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("ndcg@3", (1 + 3 / log2(3)) / (3 + 2 / log2(3) + 1 / log2(4))),
        ("ndcg", (1 + 3 / log2(3) + 2 / log2(6)) / (3 + 2 / log2(3) + 1 / 2)),
        ("dcg@3", 1 + 3 / log2(3)),
        ("dcg@3(gain=exponential)", 1 + 7 / log2(3)),
        ("err@3(max_gain=3)", 1 / 8 + 7 / 8 * 7 / 8 / 2),
        ("precision@3", 2 / 3),
        ("recall@3", 2 / 3),
        # The item with gain -2 counts as judged irrelevant, and is above one of the relevant items.
        ("bpref", (1 + 1 + 0) / 3),
    ],
)
def test_item_with_a_negative_value_is_judged_and_irrelevant(name, expected):
    assert value(name, GRADED) == pytest.approx(expected, rel=1e-15)


def test_small_exponential_gains_are_accurate():
    ranks = rank([3, 2, 1], [1e-20, 3e-20, NAN])
    actual = value("ndcg@1(gain=exponential)", ranks)
    assert actual == pytest.approx(1 / 3, rel=1e-15)
    assert value("err@1(max_gain=0.5)", ranks) == pytest.approx(
        1e-20 * math.log(2) / math.sqrt(2), rel=1e-15
    )


def test_ndcg_can_be_negative():
    ranks = rank([3, 2, 1], [-2, 1, NAN])
    assert value("ndcg@1", ranks, negative_gains="counted") == -2
    assert value("ndcg@1", ranks) == 0


def test_gains_do_not_change_with_relevant_from():
    ranks = rank([6, 5, 4, 3, 2, 1], [1, 3, -2, NAN, 2, NAN], relevant_from=2)
    assert value("ndcg@3", ranks) == value("ndcg@3", GRADED)
    assert value("recall@3", ranks) == 1 / 2
    assert value("recall@3", GRADED) == 2 / 3


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        # Two relevant items are tied at ranks 2 to 5, and the third is at rank 6.
        ("precision@3", (2 * 2 / 4) / 3),
        ("recall@5", 2 / 3),
        ("tprecision@2", (2 / 4) / 2),
        ("hit@2", 1 / 2),
        ("hit@3", 1 - 1 / 6),
        ("hit@5", 1),
        # The first tied relevant item is at place 1, 2 or 3 of the group with probability 3/6, 2/6
        # or 1/6, respectively.
        ("rr@3", (3 / 2 + 2 / 3) / 6),
        ("rr", (3 / 2 + 2 / 3 + 1 / 4) / 6),
        # Each place in the group holds a relevant item with probability 1/2. If so, each earlier
        # place in the group holds the other one with probability 1/3.
        ("ap@2", 1 / 2 * (1 / 2) / 3),
        ("ap", (1 / 2 * (1 / 2 + (4 / 3) / 3 + (5 / 3) / 4 + 2 / 5) + 3 / 6) / 3),
        ("tap@2", 1 / 2 * (1 / 2) / 2),
        ("rprecision", (2 * 2 / 4) / 3),
        # Each tied relevant item is above 1 irrelevant item, and tied with 2, which count half. The
        # third relevant item is above 1 irrelevant item.
        ("roc_auc", (2 + 2 + 1) / 12),
        ("ndcg@2", (1 / 2 / log2(3)) / (1 + 1 / log2(3))),
        (
            "ndcg",
            ((1 / log2(3) + 1 / 2 + 1 / log2(5) + 1 / log2(6)) / 2 + 1 / log2(7))
            / (1 + 1 / log2(3) + 1 / 2),
        ),
    ],
)
def test_expected_values_of_ties_match_hand_computed_values(name, expected):
    assert value(name, TIED) == pytest.approx(expected, rel=1e-15)


@pytest.mark.parametrize(
    ("rule", "ranks"),
    [
        ("optimistic", (2, 3, 6)),
        ("pessimistic", (4, 5, 6)),
        ("item", (2, 4, 6)),
        ("item_desc", (3, 5, 6)),
    ],
)
def test_other_tie_rules_order_tied_items(rule, ranks):
    gains = [1 if place in ranks else NAN for place in range(1, 8)]
    explicit = rank([7, 6, 5, 4, 3, 2, 1], gains)
    names = "precision@3 recall@3 hit@3 rr ap tap@3 rprecision roc_auc pr_auc ndcg@3 ndcg"
    for name in names.split():
        assert value(name, TIED, ties=rule) == value(name, explicit)


def test_precision_without_cutoff_counts_all_candidates():
    # `evaluate` leaves this value undefined, since it is the same for all rankings, but the
    # function must still be correct.
    from recometer.ties import WHOLE, resolve

    function = METRICS["precision"].function
    assert function(resolve(SIMPLE), np.array([WHOLE, 4])).tolist() == [[3 / 8, 2 / 4]]


@pytest.mark.parametrize("name", ["ndcg", "ap", "rr", "roc_auc", "pr_auc", "rprecision"])
def test_perfect_ranking_scores_exactly_1(name):
    gains = [5.0, 3.3, 3.3, 0.7, 0.1]
    assert value(name, rank(range(50, 0, -1), gains + [NAN] * 45)) == 1


def test_huge_catalogues_stay_exact():
    # With ten million candidates and nine million relevant items, some products are too large for
    # float64 to represent exactly.
    n, r = 10_000_000, 9_000_000
    ranks = dataclasses.replace(
        rank([1, 0], [1, NAN]),
        above=np.array([n - 2]),
        n_relevant=np.array([r]),
        n_candidates=np.array([n]),
        depth=np.array([n]),
    )
    # Only one relevant item is ranked, and a single item is below it.
    assert value("roc_auc", ranks) == 1 / (r * (n - 1))

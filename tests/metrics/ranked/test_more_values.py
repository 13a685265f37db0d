"""Metrics with parameters match values computed by hand for small rankings."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import math

import numpy as np
import pytest
from definitions import judged_gains
from hypothesis import Phase, given, settings
from measured import compute, record_users

import recometer as rm
from recometer.metrics import METRICS, Metric, metric, parse, place_sums
from recometer.metrics.ranked import stopping
from recometer.metrics.ranked.precisions import expand
from recometer.testing import cases, rank
from recometer.ties import resolve

NAN = math.nan

# The relevant items are at ranks 2, 3 and 6 of 8, and the item at rank 1 is judged irrelevant.
PLAIN = rank([8, 7, 6, 5, 4, 3, 2, 1], [0, 1, 1, NAN, NAN, 1, NAN, NAN])
# The items at ranks 1, 2 and 5 of 6 have the gains 1, 3 and 2.
GRADED = rank([6, 5, 4, 3, 2, 1], [1, 3, NAN, NAN, 2, NAN])


def value(name: str, ranks, **rules) -> float:
    values, _ = compute(record_users(ranks), parse(name), rm.Protocol(**rules))
    return float(values[name][0])


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("f@2", 2 * (1 / 2) * (1 / 3) / (1 / 2 + 1 / 3)),
        ("f@2(beta=2)", 5 * (1 / 2) * (1 / 3) / (4 * (1 / 2) + 1 / 3)),
        ("hits@3", 2),
        ("precision@5(denominator=min)", 2 / 3),
        ("recall@2(denominator=min)", 1 / 2),
        ("rr(all)", (1 / 2 + 1 / 3 + 1 / 6) / 3),
        ("rr@3(all)", (1 / 2 + 1 / 3) / 3),
        ("ap@3(denominator=hits)", (1 / 2 + 2 / 3) / 2),
        ("ap@5(denominator=k)", (1 / 2 + 2 / 3) / 5),
        ("ap@2(denominator=min)", (1 / 2) / 2),
        ("mean_precision@3", (0 + 1 / 2 + 2 / 3) / 3),
        ("mean_precision@5(stop=last)", (0 + 1 / 2 + 2 / 3) / 3),
        ("mean_recall@3(over=relevant)", (1 / 3 + 2 / 3) / 3),
        ("ncrr@3", (1 / 2 + 1 / 3) / (1 + 1 / 2 + 1 / 3)),
        ("rbp@3(p=0.5)", 0.5 * (0.5 + 0.25)),
        ("bpref", 1 - 1 / 1),
        ("fallout@2", 1 / 5),
        ("accuracy@3", (2 + 4) / 8),
        ("mcc@3", (8 * 2 - 3 * 3) / math.sqrt(3 * 3 * 5 * 5)),
        ("mean_rank", 11 / 3),
        ("percentile_rank", (1 + 2 + 5) / 7 / 3),
        ("partial_auc@1", 0),
        ("partial_auc@2", (1 + 1 + 0) / 6),
        ("roc_auc@3(domain=list)", 0),
        ("roc_auc@6(domain=list)", (2 + 2) / 9),
        ("dcg@3(gain=binary)", 1 / math.log2(3) + 1 / 2),
        ("ndcg@3(gain=binary,discount=original)", (1 + 1 / math.log2(3)) / (2 + 1 / math.log2(3))),
    ],
)
def test_metrics_of_relevance_match_hand_computed_values(name, expected):
    assert value(name, PLAIN) == pytest.approx(expected, rel=1e-15, abs=1e-15)


def test_bpref_counts_at_most_as_many_irrelevant_as_relevant_items():
    ranks = rank([9, 8, 8, 8, 7, 6, 6, 5], [0, 1, 0, 0, 0, 1, 0, NAN])
    # Depending on the order of ties, one, two or three judged irrelevant items are above the first
    # relevant item. Four or five are above the second, but bpref counts at most two of them.
    expected = (1 - (1 + 2 + 2) / 3 / 2 + 0) / 2
    assert value("bpref", ranks) == pytest.approx(expected, rel=1e-15)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("recall@2(weighted)", 4 / 6),
        ("recall@1(denominator=min,weighted)", 1 / 3),
        ("recall@2(denominator=gains)", 2 / 6),
        ("dcg@2", 1 + 3 / math.log2(3)),
        ("dcg@2(gain=exponential)", 1 + 7 / math.log2(3)),
        ("dcg@2(discount=original)", 1 + 3),
        ("ndcg@2(ideal=k)", (1 + 3 / math.log2(3)) / (3 + 3 / math.log2(3))),
        ("ndcg@2(gain=shifted)", (1 + 7 / math.log2(3)) / (7 + 3 / math.log2(3))),
        ("rbp(p=0.5,graded)", 0.5 * (1 / 3 + 1 / 2 + (2 / 3) / 16)),
        ("rbp(p=0.5,graded,max_gain=4)", 0.5 * (1 / 4 + 3 / 8 + (2 / 4) / 16)),
        ("err@2(max_gain=3)", 1 / 8 + 7 / 8 * 7 / 8 / 2),
        ("err(max_gain=3)", 1 / 8 + 7 / 8 * 7 / 8 / 2 + 7 / 8 * 1 / 8 * 3 / 8 / 5),
        ("err@1(max_gain=0.5)", (math.sqrt(2) - 1) / math.sqrt(2)),
        ("percentile_rank(weighted)", (0 + 3 * 1 / 5 + 2 * 4 / 5) / 6),
    ],
)
def test_metrics_of_gains_match_hand_computed_values(name, expected):
    assert value(name, GRADED) == pytest.approx(expected, rel=1e-15)


def test_partial_auc_pairs_the_first_relevant_items_despite_ties():
    """In any order of the ties, the first three relevant items are above the three other items."""
    ranks = rank([9, 8, 7, 7, 1, 1, 1], [1, 1, 1, 1, NAN, NAN, NAN])
    assert value("partial_auc@3(denominator=min)", ranks) == 1


def test_ideal_order_can_repeat_the_largest_gain():
    actual = value("ndcg@4(discount=graded,ideal=k)", GRADED)
    ideal = sum(3 / math.log2(3 * place + 1) for place in (1, 2, 3, 4))
    assert actual == pytest.approx((1 / math.log2(2) + 3 / math.log2(7)) / ideal, rel=1e-15)


def test_graded_discounts_of_negative_gains_are_undefined():
    name = "ndcg@2(discount=graded,ideal=signed)"
    assert value(name, rank([3, 2, 1], [0, 2, NAN])) == 2 / math.log2(5) / (2 / math.log2(3))
    names = f"{name} ndcg@2(discount=graded)"
    ranked = record_users(rank([3, 2, 1], [-2, 1, NAN]))
    values, reasons = compute(ranked, parse(names), rm.Protocol(negative_gains="counted"))
    assert np.isnan(list(values.values())).all()
    assert np.all(np.array(list(reasons.values())) != rm.Reason.DEFINED)


@pytest.mark.parametrize(
    ("gains", "ones"), [([2, 1, NAN], 3), ([1, -1, NAN], 1), ([-2, 1, NAN], 4), ([4, 9, NAN], 4)]
)
def test_ideal_order_can_replace_gains_by_as_many_ones(gains, ones):
    """The number of ones is the sum of the gains, or k + 1 plus the sum if the sum is negative."""
    actual = value("ndcg@4(ideal=sum)", rank([3, 2, 1], gains), negative_gains="counted")
    ideal = sum(1 / math.log2(place + 1) for place in range(1, ones + 1))
    assert actual == pytest.approx((gains[0] + gains[1] / math.log2(3)) / ideal, rel=1e-15)


def test_shifted_gains_begin_at_the_relevance_threshold():
    ranks = rank([6, 5, 4, 3, 2, 1], [1, 3, NAN, NAN, 2, NAN], relevant_from=2)
    name = "dcg@2(gain=shifted)"
    assert value(name, ranks, relevant_from=2) == pytest.approx(3 / math.log2(3), rel=1e-15)


@pytest.mark.parametrize("ideal", ["list", "signed"])
def test_judged_irrelevant_items_do_not_enter_the_ideal_order(ideal):
    ranks = rank([3, 2, 1], [0, 1, 1])
    actual = value(f"ndcg@3(gain=binary,ideal={ideal})", ranks)
    assert actual == pytest.approx((1 / math.log2(3) + 1 / 2) / (1 + 1 / math.log2(3)), rel=1e-15)


@pytest.mark.parametrize(
    ("one_kind", "expected"),
    [("share", [0, 1, 0, 0]), ("zero", [0, 0, 0, 0]), ("undefined", [NAN, NAN, 0, NAN])],
)
def test_parameter_one_kind_decides_the_value_of_lists_without_pairs(one_kind, expected):
    lists = rm.Lists({1: [], 2: ["a"], 3: ["b", "a"], 4: ["b"]})
    name = f"roc_auc@2(domain=list,one_kind={one_kind})"
    result = rm.evaluate(lists, {user: ["a"] for user in range(1, 5)}, metrics=name)[name]
    np.testing.assert_array_equal(result, expected)


def test_area_among_all_candidates_is_undefined_without_a_catalogue():
    name = "roc_auc@2(domain=extended)"
    result = rm.evaluate(rm.Lists({1: ["a", "b"]}), {1: ["a", "c"]}, metrics=name)
    assert math.isnan(result[name][0])
    assert result.reasons[name].tolist() == [rm.Reason.NO_CANDIDATES]


def test_metrics_with_an_unlisted_relevant_item_match_hand_computed_values():
    """The list has four items, and does not contain the relevant item with gain 5."""
    ranks = rank([4, 3, 2, 1, 0], [1, NAN, 2, NAN, 5], unranked=[False] * 4 + [True])
    ideal = 2 + 1 / math.log2(3)
    assert value("ndcg@3(ideal=list)", ranks) == pytest.approx((1 + 2 / 2) / ideal)
    assert value("recall@2(denominator=list)", ranks) == 1 / 2
    assert value("recall@2(denominator=list,weighted)", ranks) == 1 / 3
    assert value("ap@3(denominator=listed)", ranks) == (1 + 2 / 3) / 2
    assert value("mean_rank", ranks) == (1 + 3 + 5) / 3
    assert value("percentile_rank", ranks) == (0 + 2 / 3 + 1) / 3


def test_training_items_can_count_as_negatives():
    ranks = rank([4, 3, 2, 1, 9], [NAN, 1, NAN, NAN, NAN], excluded=[False] * 4 + [True])
    assert value("roc_auc", ranks) == 2 / 3
    assert value("roc_auc(negatives=all)", ranks) == 3 / 4


@pytest.mark.filterwarnings("ignore::recometer.DataWarning")
@pytest.mark.parametrize("rules", [{"ties": "random"}, {"ties": "item"}, {"relevant_from": 1}])
@pytest.mark.parametrize("n_trained", [1, 2])
def test_relevant_items_outside_the_candidates_rank_below_train_items(rules, n_trained):
    """A pair of a relevant non-candidate and a training item counts as wrong, not as half right."""
    train = np.array([[1, n_trained == 2, 0, 0]])
    test, candidates = np.array([[0, 0, 0, 1]]), np.array([[1, 1, 1, 0]])
    result = rm.evaluate(
        rm.Scores(np.array([[1.0, 2.0, 1.0, 1.0]])),
        test,
        train=train,
        candidates=rm.Interactions.of(candidates),
        metrics="roc_auc(negatives=all)",
        min_candidates=1,
        **rules,
    )
    assert result.n_excluded[0] == n_trained
    assert result["roc_auc(negatives=all)"][0] == 0
    assert (
        "below them, the training items"
        in result.definitions["roc_auc(negatives=all)"]["negatives=all"]
    )


@given(cases(max_items=8))
def test_pr_curve_has_a_point_for_every_distinct_score(case):
    """The test builds the curve from its definition, with a point for every distinct score."""
    values, _ = compute(
        record_users(case.ranks()),
        parse("pr_auc(rule=distinct) pr_auc(rule=trapezoid)"),
        rm.Protocol(constant_scores="ties"),
    )
    for user in range(case.n_users):
        relevant = {item for item, gain in judged_gains(case, user).items() if gain > 0}
        items = np.flatnonzero(~case.excluded[user] & ~case.unranked[user])
        if np.isnan(values["pr_auc(rule=distinct)"][user]):
            continue
        points = [(0.0, 1.0)]
        for threshold in sorted(set(case.scores[user][items]), reverse=True):
            retrieved = [item for item in items if case.scores[user][item] >= threshold]
            n_hits = sum(item in relevant for item in retrieved)
            points.append((n_hits / len(relevant), n_hits / len(retrieved)))
        step = sum((r - q) * p for (q, _), (r, p) in itertools.pairwise(points))
        trapezoid = sum((r - q) * (p + o) / 2 for (q, o), (r, p) in itertools.pairwise(points))
        assert values["pr_auc(rule=distinct)"][user] == pytest.approx(step)
        assert values["pr_auc(rule=trapezoid)"][user] == pytest.approx(trapezoid)


@pytest.mark.parametrize("size", [1, 2, 7, 100, 5_000, 2_000_000])
def test_probabilities_of_hits_are_hypergeometric(size):
    for relevant, places in itertools.product({1, size // 3 or 1, size}, {1, size // 2 or 1, size}):
        if min(relevant, places) > 3_000:
            continue
        _, n_hits, chance = expand(*(np.array([n]) for n in (size, relevant, places)))
        assert chance.sum() == pytest.approx(1, rel=1e-12)
        assert (chance * n_hits).sum() == pytest.approx(relevant * places / size, rel=1e-11)
        if size <= 100:
            n_choices = [
                math.comb(relevant, x) * math.comb(size - relevant, places - x) for x in n_hits
            ]
            expected = [n / math.comb(size, places) for n in n_choices]
            np.testing.assert_allclose(chance, expected, rtol=1e-12)


def test_probabilities_of_hits_do_not_depend_on_other_groups():
    groups = np.array([(9, 4, 3), (1, 1, 1), (100, 50, 50), (7, 1, 6), (30, 2, 2), (9, 9, 9)])
    group_of_row, n_hits, chance = expand(*groups.T)
    for number, group in enumerate(groups):
        _, n_hits_alone, expected = expand(*group[:, np.newaxis])
        np.testing.assert_array_equal(n_hits[group_of_row == number], n_hits_alone)
        np.testing.assert_array_equal(chance[group_of_row == number], expected)


def one_group(start: int, size: int, gains: list[float]):
    """Return the ranks of a user whose judged items are all in a single group of ties."""
    n, r = start + size + 1, len(gains)
    return dataclasses.replace(
        rank([1, 0], [1, NAN]),
        indptr=np.array([0, r]),
        item=np.arange(r),
        above=np.full(r, start),
        tied=np.full(r, size - 1),
        before=np.arange(r),
        gain=np.array(gains),
        relevant=np.ones(r, bool),
        n_relevant=np.array([r]),
        n_candidates=np.array([n]),
        depth=np.array([n]),
    )


@pytest.mark.parametrize("start", [0, 3, 5_000])
@pytest.mark.parametrize("size", [2, 50, 1_000])
def test_value_of_one_item_in_a_large_tie_is_the_mean_over_its_places(start, size):
    """The item is equally likely to be at each place of the tie."""
    ranks = one_group(start, size, [2.0])
    places = range(start + 1, start + size + 1)
    k = start + max(size // 2, 1)
    within = [j for j in places if j <= k]
    expected = {
        f"err@{k}(max_gain=3)": math.fsum(3 / 8 / j for j in within) / size,
        "err(max_gain=3)": math.fsum(3 / 8 / j for j in places) / size,
        f"rbp@{k}(p=0.999)": math.fsum(0.001 * 0.999 ** (j - 1) for j in within) / size,
        f"ap@{k}(denominator=hits)": math.fsum(1 / j for j in within) / size,
        f"ncrr@{k}": math.fsum(1 / j for j in within) / size,
        f"mean_precision@{k}": math.fsum(math.fsum(1 / i for i in range(j, k + 1)) for j in within)
        / k
        / size,
        f"mean_precision@{k}(stop=last)": math.fsum(1 / j / j for j in within) / size,
        "mean_rank": start + (size + 1) / 2,
    }
    for name, exact in expected.items():
        assert value(name, ranks) == pytest.approx(exact, rel=1e-11, abs=1e-14), name


def test_precisions_of_hits_average_over_orders_of_an_earlier_pair():
    """The pair at ranks 1 and 2 contains one hit, and two in three orders have a hit at rank 4."""
    ranks = rank([3, 3, 2, 1, 1, 1], [1, NAN, NAN, 1, 1, NAN])
    expected = (1 + 1 / 2) / 2
    expected = expected / 3 + 2 / 3 * (expected + 2 / 4) / 2
    assert value("ap@4(denominator=hits)", ranks) == pytest.approx(expected)


def test_value_of_a_large_relevant_group_equals_that_of_any_order():
    """All items in the group are relevant, so all orders have the same value."""
    gains = [1.0] * 300
    tied = one_group(2, 300, gains)
    k = 100
    for name in (
        f"ap@{k}(denominator=hits)",
        f"mean_precision@{k}(stop=last)",
        f"err@{k}(max_gain=3)",
    ):
        assert value(name, tied) == pytest.approx(value(name, tied, ties="item"), rel=1e-12), name


def test_skipping_negligible_terms_of_large_groups_changes_nothing(monkeypatch):
    """The first 100 tied items almost certainly satisfy the user, so later terms are skipped."""
    generator = np.random.default_rng(3)
    gains = np.where(generator.random(1000) < 0.6, generator.integers(1, 5, 1000), np.nan)
    ranks = rank(generator.integers(0, 2, 1000).astype(float), gains)
    names = ["err(max_gain=4)", "err@300(max_gain=4)", "err@300(max_gain=6)"]
    shortened = [value(name, ranks) for name in names]
    monkeypatch.setattr(stopping, "NEGLIGIBLE", 0.0)
    with np.errstate(divide="ignore"):
        assert shortened == pytest.approx([value(name, ranks) for name in names], rel=1e-15)


def test_huge_gains_do_not_break_ratios_of_powers():
    """If 2^gain overflows, ratios of powers are still correct, and other values are undefined."""
    ranks = rank([3, 2, 1], [5_000, 4_999, NAN])
    assert value("err(max_gain=5000)", ranks) == pytest.approx(1.0)
    assert math.isnan(value("ndcg@2(gain=exponential)", ranks))
    assert value("ndcg@2", ranks) == 1
    # If 2^gain overflows for one item, the value is undefined, even if the other powers are finite.
    assert math.isnan(value("ndcg@2(gain=exponential)", rank([3, 2, 1], [1, 1e20, 2])))


def test_err_needs_a_largest_gain():
    message = r"err needs the largest possible gain.*err@10\(max_gain=5\)"
    with pytest.raises(rm.InputError, match=message):
        value("err@2", GRADED)


def test_evaluate_states_the_largest_gain_and_the_parameters(tmp_path):
    scores = np.array([[4.0, 3.0, 2.0, 1.0], [1.0, 2.0, 3.0, 4.0]])
    test = np.array([[0.0, 3.0, 1.0, 0.0], [1.0, 0.0, 0.0, 0.0]])
    metrics = "err@2 ndcg@2(gain=exponential) f@2(beta=0.5) recall@1(denominator=list)"
    result = rm.evaluate(rm.Scores(scores), test, metrics=metrics)
    assert list(result.values) == [
        "err@2(max_gain=3)",
        "ndcg@2(gain=exponential)",
        "f@2(beta=0.5)",
        "recall@1(denominator=list)",
    ]
    assert result.definitions["ndcg(gain=exponential)"]["gain=exponential"] == "2^value - 1"
    result.save(tmp_path / "result.parquet")
    loaded = rm.load(tmp_path / "result.parquet")
    assert loaded.metrics == result.metrics
    for name in result.values:
        assert loaded[name].tobytes() == result[name].tobytes()
    assert "f@2(beta=0.5)" in result.per_user().columns


def test_metrics_request_places_beyond_the_cutoff():
    """If a metric reads relevant items beyond its cut-off, the ranking must not end there."""
    rng = np.random.default_rng(0)
    users, items = rng.normal(size=(30, 4)), rng.normal(size=(200, 4))
    test = rng.random((30, 200)) < 0.05
    for name in ("partial_auc@3", "fallout@3", "mcc@3", "ap@3(denominator=listed)"):
        assert parse(name)[0].depth is None
        without_auc = rm.evaluate(rm.Factors(users, items), test, metrics=name)
        with_auc = rm.evaluate(rm.Factors(users, items), test, metrics=[name, "roc_auc"])
        np.testing.assert_array_equal(without_auc[name], with_auc[name])


def test_threads_do_not_change_values(monkeypatch):
    monkeypatch.setattr("recometer.measuring.ranked.BLOCK_USERS", 7)
    rng = np.random.default_rng(1)
    ranks = rank(rng.integers(0, 4, (60, 12)), np.where(rng.random((60, 12)) < 0.4, 1.0, NAN))
    metrics = [
        Metric(name, None if METRICS[name].cutoff == "none" else 3) for name in ("ap", "mcc")
    ]
    single_thread, _ = compute(record_users(ranks), metrics, rm.Protocol(ties="random"))
    two_threads, _ = compute(record_users(ranks), metrics, rm.Protocol(ties="random"), threads=2)
    for name, values in single_thread.items():
        assert values.tobytes() == two_threads[name].tobytes()


def test_sums_over_places_match_dcg():
    ranks = rank([5, 5, 5, 2, 1], [NAN, 2, 1, 3, NAN])
    groups = resolve(ranks, by="gain")
    cutoffs = np.array([1, 2, 4])
    sums = place_sums(groups, cutoffs, lambda rank: 1 / np.log2(rank + 1))
    np.testing.assert_allclose(sums, METRICS["dcg"].function(groups, cutoffs), rtol=1e-14)


def test_error_for_a_broken_law_names_the_metric():
    from recometer.testing import check_laws

    @metric(formula="the number of the first user's hits, for all", upper=math.inf)
    def gossip(groups, cutoffs):
        hits = METRICS["hits"].function(groups, cutoffs)
        return np.repeat(hits[:1], len(hits), axis=0)

    # Do not shrink the counterexample, which would take far longer than finding it.
    found_only = [Phase.explicit, Phase.generate]
    settings.register_profile("found only", settings.default, phases=found_only)
    settings.load_profile("found only")
    try:
        with pytest.raises(AssertionError, match="gossip@"):
            check_laws("gossip")
    finally:
        settings.load_profile("recometer")
        del METRICS["gossip"]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("ap(denominator=min)", (1 / 2) / 3),
        ("ap(denominator=list)", (1 / 2) / 2),
        ("recall(denominator=min)", 1 / 3),
        ("precision(denominator=min)", 1 / 3),
    ],
)
def test_min_denominator_without_a_cutoff_counts_all_relevant_items(name, expected):
    """The divisor is the smaller of the cut-off and the number of relevant items."""
    lists, test = rm.Lists({"ann": ["a", "b"]}), {"ann": ["b", "c", "d"]}
    result = rm.evaluate(lists, test, metrics=name)
    assert result[name] == pytest.approx(expected, rel=1e-15)
    if "=min" in name:
        assert result.mean(weights="pooled")[name] == pytest.approx(expected, rel=1e-15)


def test_last_place_of_a_short_list_is_repeated():
    """In a list of 3 or 4 items, the last place counts again for each missing place up to 5."""
    rules = {"deep_cutoffs": "computed", "all_relevant": "computed"}
    plain, tied = rank([3, 2, 1], [0, 1, 1]), rank([3, 2, 2, 2], [1, 0, 1, 0])
    name = "mean_recall@5(over=relevant,repeat_last)"
    two_tied = rank([3, 2, 2], [0, 1, 1])  # the relevant items are tied at ranks 2 and 3
    for ranks in (plain, two_tied):
        assert value(name, ranks, **rules) == pytest.approx((1 + 3 * 2) / 2**2)
    # In two thirds of the orders, one of the two relevant items comes last, at rank 3.
    three_tied = rank([3, 2, 2, 2], [1, 1, 0, 1])
    assert value(name, three_tied, **rules) == pytest.approx((1 + 2 + 3 + 2 / 3 * 3) / 3**2)
    actual = value("ap@5(repeat_last)", three_tied, **rules)
    assert actual == pytest.approx(value("ap", three_tied) + 2 / 3 * (3 / 4) / 3)
    actual = value("ap@5(denominator=hits,repeat_last)", plain, **rules)
    assert actual == pytest.approx((1 / 2 + 3 * 2 / 3) / 2)
    # A relevant item comes last in a third of the orders, and then counts again at each missing
    # place.
    assert value(name, tied, **rules) == pytest.approx((1 + (2 + 2 + 4) / 3) / 2**2)


@pytest.mark.parametrize(
    ("name", "rules", "expected"),
    [
        ("f@9", {}, 2 * 2 / (3 + 9)),
        ("f@9(denominator=list)", {}, 2 * 2 / (3 + 5)),
        # The list repeats one of its two relevant items.
        ("ap@5(denominator=listed)", {"duplicates": "counted"}, (1 / 3 + 2 / 4 + 3 / 5) / 2),
    ],
)
def test_metrics_of_short_lists_and_repeated_items_match_hand_computed_values(
    name, rules, expected
):
    last = "a" if rules else "z"
    lists, test = rm.Lists({1: ["x", "y", "a", "c", last]}), {1: ["a", "c", "d"]}
    with pytest.warns(rm.DataWarning) if not rules else contextlib.nullcontext():
        result = rm.evaluate(lists, test, metrics=name, **rules)
    assert result[name][0] == pytest.approx(expected, rel=1e-15)


def test_hits_at_the_same_place_count_once():
    ranks = rank([3, 2, 1, 0], [1, NAN, 1, 1])
    ranks = dataclasses.replace(ranks, above=np.array([0, 2, 2]))
    assert value("ap@2(by_place)", ranks) == 1 / 3
    assert value("ap@3(by_place)", ranks) == pytest.approx((1 + 3 / 3) / 3)


def test_mcc_is_0_if_no_relevant_item_is_a_candidate():
    """The list contains one of three candidates; the four relevant items are not candidates."""
    candidates = rm.Interactions.of({1: ["a", "b", "c"]})
    lists, test = rm.Lists({1: ["a"]}), {1: ["d", "e", "f", "g"]}
    result = rm.evaluate(lists, test, candidates=candidates, metrics="mcc@1", min_candidates=1)
    assert result["mcc@1"].tolist() == [0]


def test_ideal_dcg_without_positive_gains_is_zero():
    ranks = rank([[3, 2, 1], [3, 2, 1]], [[1, NAN, NAN], [-1, NAN, NAN]])
    for name in ("ndcg@2", "ndcg@2(ideal=list)", "ndcg@1(ideal=k)"):
        values, _ = compute(record_users(ranks), parse(name), rm.Protocol(no_relevant="computed"))
        assert values[name].tolist() == [1, 0]

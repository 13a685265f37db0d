"""Metrics are undefined in the documented cases, for the right reason."""

from __future__ import annotations

import dataclasses
import itertools
import math

import numpy as np
import pytest
from drawn_metrics import metrics
from hypothesis import given
from measured import compute, record_users

import recometer as rm
from recometer.measuring.ranked import RankedUsers
from recometer.metrics import Metric, parse, reading
from recometer.testing import cases, rank, variants

METRICS = reading("ranks", side=False)

NAN = math.nan
EVERY = [
    Metric(name, None if definition.cutoff == "none" else 2, tuple(variants(name)[0].items()))
    for name, definition in METRICS.items()
]
GOOD = rank([3, 2, 1, 0], [NAN, 1, NAN, NAN])


def why(ranks, name="ap@2", **rules) -> rm.Reason:
    return rm.Reason(reasons(ranks, parse(name)[0], rm.Protocol(**rules))[0])


def reasons(ranks, metric, rules):
    return record_users(ranks).reasons(RankedUsers.variant([metric], rules), 0)[0]


def flagged(flag, ranks=GOOD):
    return dataclasses.replace(ranks, flags=ranks.flags | np.uint32(flag))


def unknown_user():
    """Return the ranks of a user whom the source does not know: all relevant items are misses."""
    ranks = rank([0, 0, 0], [1, 1, NAN], unranked=[True, True, True])
    return dataclasses.replace(ranks, flags=np.zeros(1, np.uint32))


def test_defined_values_have_no_reason():
    for metric in EVERY:
        assert why(GOOD, str(metric)) is rm.Reason.DEFINED


@pytest.mark.parametrize(
    ("ranks", "rules", "reason"),
    [
        (rank([3, 2, 1], [NAN, 0, NAN]), {}, rm.Reason.NO_RELEVANT),
        (rank([3, 2, 1], [NAN, 2, NAN], relevant_from=3), {}, rm.Reason.NO_RELEVANT),
        (rank([3, 2], [1, NAN], excluded=[False, True]), {}, rm.Reason.FEW_CANDIDATES),
        (GOOD, {"min_candidates": 5}, rm.Reason.FEW_CANDIDATES),
        (dataclasses.replace(GOOD, n_candidates=np.zeros(1, int)), {}, rm.Reason.FEW_CANDIDATES),
        (GOOD, {"min_positives": 2}, rm.Reason.FEW_RELEVANT),
        (rank([4, 3, 2, 1, 0], [NAN, 1, NAN, NAN, 1]), {"min_positives": 2}, rm.Reason.DEFINED),
        (GOOD, {"cold_start": False}, rm.Reason.COLD_START),
        (flagged(rm.UserFlag.NAN_SCORE), {}, rm.Reason.NAN_SCORE),
        (flagged(rm.UserFlag.INFINITE_SCORE), {}, rm.Reason.INFINITE_SCORE),
        (rank([1, 1, 1], [1, NAN, NAN]), {}, rm.Reason.CONSTANT_SCORES),
        (unknown_user(), {"users": "known"}, rm.Reason.UNKNOWN_USER),
    ],
)
def test_general_reasons_apply_to_all_metrics(ranks, rules, reason):
    for metric in EVERY:
        assert why(ranks, str(metric), **rules) is reason


@pytest.mark.parametrize("gain", [0, -1])
def test_ndcg_is_undefined_without_a_positive_gain(gain):
    ranks = rank([4, 3, 2, 1], [NAN, gain, NAN, gain], relevant_from=-1)
    assert why(ranks, "ndcg@2") is rm.Reason.NO_GAIN
    assert why(ranks, "ap@2") is rm.Reason.DEFINED
    assert why(rank([4, 3, 2], [gain, 1, NAN], relevant_from=-1), "ndcg@2") is rm.Reason.DEFINED


def test_users_with_training_items_are_not_cold_starts():
    ranks = rank([4, 3, 2, 1, 0], [NAN, 1, NAN, NAN, NAN], excluded=[True, *[False] * 4])
    assert why(ranks, cold_start=False) is rm.Reason.DEFINED


def test_rule_undefined_accepts_nan():
    assert rm.Protocol(undefined=math.nan) == rm.Protocol(undefined="nan") == rm.Protocol()


def test_constant_scores_can_count_as_ties():
    ranks = rank([1, 1, 1], [1, NAN, NAN])
    assert why(ranks, constant_scores="ties") is rm.Reason.DEFINED
    values, _ = compute(record_users(ranks), parse("roc_auc"), rm.Protocol(constant_scores="ties"))
    assert values["roc_auc"].tolist() == [0.5]


@pytest.mark.parametrize("name", METRICS)
def test_order_free_metrics_are_undefined_if_the_cutoff_covers_all_candidates(name):
    takes_a_cutoff = METRICS[name].cutoff != "none"
    expected = rm.Reason.CUTOFF_TOO_DEEP if METRICS[name].order_free else rm.Reason.DEFINED
    if takes_a_cutoff:
        assert why(GOOD, f"{name}@3") is rm.Reason.DEFINED
        assert why(GOOD, f"{name}@4") is expected
        assert why(GOOD, f"{name}@5") is expected
    if METRICS[name].cutoff != "required":
        assert why(GOOD, name) is expected


@pytest.mark.parametrize("name", METRICS)
def test_metrics_are_undefined_if_every_candidate_is_relevant(name):
    ranks = rank([3, 2, 1], [1, 1, 1])
    metric = name if METRICS[name].cutoff == "none" else f"{name}@2"
    assert why(ranks, metric) is (rm.Reason.DEFINED if name == "ndcg" else rm.Reason.ALL_RELEVANT)


def test_unranked_relevant_items_do_not_count_as_candidates():
    # The user has three candidates, and three relevant items, one of which is not a candidate.
    ranks = rank([3, 2, 1, 0], [1, 1, NAN, 1], unranked=[False, False, False, True])
    assert why(ranks) is rm.Reason.DEFINED
    ranks = rank([3, 2, 1, 0], [1, 1, 1, 1], unranked=[False, False, False, True])
    assert why(ranks) is rm.Reason.ALL_RELEVANT


def test_recall_is_undefined_if_every_candidate_is_relevant():
    """Relevant items outside the candidates do not count."""
    scores, test = rm.Scores([[4.0, 3.0, 2.0, 1.0]]), np.array([[1, 1, 0, 1]])
    for candidates, reason in (([0, 1], rm.Reason.ALL_RELEVANT), ([0, 1, 2], rm.Reason.DEFINED)):
        result = rm.evaluate(scores, test, metrics="recall@1", candidates=candidates)
        assert result.reasons["recall@1"].tolist() == [reason]


def test_limited_depth_does_not_hide_that_every_candidate_is_relevant():
    ranks = rank([3, 2, 1], [1, 1, 1])
    ranks = dataclasses.replace(ranks, above=np.array([0, -1, -1]), depth=np.array([1]))
    assert why(ranks, "ap@1") is rm.Reason.ALL_RELEVANT


@pytest.mark.parametrize(
    ("gains", "reason"),
    [
        ([-1, NAN, NAN], rm.Reason.NO_GAIN),
        ([math.inf, 1, NAN], rm.Reason.GAIN_NOT_FINITE),
        ([-math.inf, 1, NAN], rm.Reason.GAIN_NOT_FINITE),
        ([1e308, 1.5e308, NAN], rm.Reason.GAIN_NOT_FINITE),
    ],
)
def test_ndcg_is_undefined_without_a_finite_positive_gain(gains, reason):
    ranks = rank([3, 2, 1], gains, relevant_from="not_zero")
    assert why(ranks, "ndcg@2", negative_gains="counted") is reason
    assert why(ranks, "ap@2") is rm.Reason.DEFINED
    rules = rm.Protocol(negative_gains="counted")
    values, _ = compute(record_users(ranks), parse("ndcg@2 ndcg"), rules)
    assert np.isnan(list(values.values())).all()


def test_nan_gain_makes_ndcg_undefined():
    ranks = dataclasses.replace(GOOD, gain=np.array([NAN]))
    assert why(ranks, "ndcg") is rm.Reason.GAIN_NOT_FINITE
    for ties in ("expected", "optimistic", "pessimistic"):
        tied = rank([1, 1, 1, 0], [5, 7, 1, NAN])
        tied = dataclasses.replace(tied, gain=np.array([NAN, 7, math.inf]))
        values, _ = compute(record_users(tied), parse("ndcg@2"), rm.Protocol(ties=ties))
        assert np.isnan(values["ndcg@2"]).all()


def test_unknown_users_have_only_misses():
    ranks = unknown_user()
    values, reasons = compute(record_users(ranks), EVERY, rm.Protocol())
    for metric in EVERY:
        if metric.definition.needs_candidates:
            assert reasons[str(metric)].tolist() == [rm.Reason.NO_CANDIDATES]
            continue
        # Each metric has its worst possible value.
        worst = 1.0 if metric.name == "percentile_rank" else 0.0
        assert values[str(metric)].tolist() == [worst]
        assert reasons[str(metric)].tolist() == [rm.Reason.DEFINED]


def test_mcc_is_undefined_if_the_number_of_candidates_is_unknown():
    ranks = dataclasses.replace(GOOD, n_candidates=np.array([-1]))
    values, _ = compute(record_users(ranks), EVERY, rm.Protocol())  # a warning would fail this test
    assert np.isnan(values["mcc@2"]).all()
    ranks = dataclasses.replace(GOOD, n_candidates=np.array([0]))
    assert why(ranks, "mcc@2", min_candidates=0) is rm.Reason.NO_CANDIDATES


def test_first_reason_that_applies_is_reported():
    without_relevant = rank([1], [NAN])
    assert why(without_relevant, cold_start=False, min_positives=3) is rm.Reason.NO_RELEVANT
    assert why(flagged(rm.UserFlag.NAN_SCORE), min_candidates=9) is rm.Reason.FEW_CANDIDATES
    assert why(rank([3, 2], [1, 1]), "recall@2") is rm.Reason.CUTOFF_TOO_DEEP


@pytest.mark.parametrize("replacement", [0, 1.0, -1])
def test_undefined_values_can_be_replaced_by_a_number(replacement):
    ranks = rank([[3, 2, 1], [3, 2, 1]], [[NAN, NAN, NAN], [1, NAN, NAN]])
    values, reasons = compute(
        record_users(ranks), parse("ap roc_auc"), rm.Protocol(undefined=replacement)
    )
    for name in ("ap", "roc_auc"):
        assert values[name].tolist() == [replacement, 1.0]
        assert reasons[name].tolist() == [rm.Reason.NO_RELEVANT, rm.Reason.DEFINED]


def test_every_reason_has_a_sentence():
    sentences = [reason.sentence for reason in rm.Reason]
    assert all(sentences)
    assert len(set(sentences)) == len(sentences)
    assert rm.Reason(0) is rm.Reason.DEFINED


@given(cases(), metrics())
def test_value_is_nan_exactly_if_there_is_a_reason(case, metric):
    values, why = compute(record_users(case.ranks()), [metric], rm.Protocol())
    np.testing.assert_array_equal(np.isnan(values[str(metric)]), why[str(metric)] != 0)
    np.testing.assert_array_equal(why[str(metric)], reasons(case.ranks(), metric, rm.Protocol()))


@pytest.mark.parametrize("rules", [{}, {"ties": "item"}, {"no_relevant": 0.5, "min_positives": 2}])
def test_values_of_a_user_do_not_depend_on_other_users(rules):
    """A user's values are the same whether the user is evaluated alone or in a block of users."""
    generator = np.random.default_rng(2)
    shape = (9, 6)
    gains = np.where(generator.random(shape) < 0.5, generator.integers(-1, 3, shape), NAN)
    gains[1, :2] = [math.inf, 1e308]
    gains[8, :2] = [1, NAN]
    left_out = generator.random(shape) < np.linspace(0, 0.8, 9)[:, np.newaxis]
    left_out[8] = [False, False, True, True, True, True]
    ranks = rank(generator.integers(0, 9, shape), np.where(left_out, NAN, gains), excluded=left_out)
    together, reasons = compute(record_users(ranks), EVERY, rm.Protocol(**rules))
    for user in range(9):
        single = compute(
            record_users(ranks.users(slice(user, user + 1))), EVERY, rm.Protocol(**rules)
        )
        for name in together:
            assert (single[0][name].tobytes(), single[1][name]) == (
                together[name][[user]].tobytes(),
                reasons[name][user],
            ), name


@pytest.mark.parametrize("undefined", ["nan", 0.25])
def test_formula_without_a_value_has_a_reason(undefined):
    """ROC-AUC has no value for the first user, whose list contains only relevant items."""
    ranks = rank([[4, 3, 2, 1], [4, 2, 3, 1]], [[1, 1, NAN, NAN], [1, 1, NAN, NAN]])
    name = "roc_auc@2(domain=list,one_kind=undefined)"
    values, reasons = compute(record_users(ranks), parse(name), rm.Protocol(undefined=undefined))
    np.testing.assert_array_equal(values[name], [float(undefined), 1.0])
    assert reasons[name].tolist() == [rm.Reason.ONE_KIND, rm.Reason.DEFINED]


def test_metrics_of_no_users_are_empty():
    ranks = rank(np.empty((0, 3)), np.empty((0, 3)))
    values, reasons = compute(record_users(ranks), EVERY, rm.Protocol())
    assert list(values) == list(reasons) == [str(metric) for metric in EVERY]
    assert values["ndcg@2"].shape == (0,)


@pytest.mark.parametrize("ties", ["expected", "random"])
def test_values_do_not_depend_on_blocks(ties):
    generator = np.random.default_rng(1)
    scores = generator.integers(0, 5, (23, 20))
    gains = np.where(generator.random((23, 20)) < 0.3, generator.integers(1, 9, (23, 20)), NAN)
    ranks = rank(scores, gains)
    metrics = parse("ndcg@1..5 ap@3 ap rr hit@3 roc_auc rprecision")
    keys = generator.integers(0, 2**60, 23).astype(np.uint64)
    in_one_block, _ = compute(record_users(ranks, 3, keys), metrics, rm.Protocol(ties=ties))
    for users, judged in itertools.product((1, 2, 5), (1, 4, 12)):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("recometer.measuring.ranked.BLOCK_USERS", users)
            patch.setattr("recometer.measuring.ranked.BLOCK_JUDGED", judged)
            parts, _ = compute(record_users(ranks, 3, keys), metrics, rm.Protocol(ties=ties))
        for name, values in in_one_block.items():
            assert values.tobytes() == parts[name].tobytes()


def test_blocks_contain_each_user_once_and_few_judged_items(monkeypatch):
    monkeypatch.setattr("recometer.measuring.ranked.BLOCK_USERS", 3)
    monkeypatch.setattr("recometer.measuring.ranked.BLOCK_JUDGED", 5)
    judged = np.arange(7) < np.array([2, 3, 1, 7, 0, 0, 0, 0, 1])[:, np.newaxis]
    users = record_users(rank(np.ones((9, 7)), np.where(judged, 1.0, NAN)))
    blocks = [range(block.start, block.stop) for block in itertools.islice(users.blocks(), 9)]
    assert blocks == [range(2), range(2, 3), range(3, 4), range(4, 7), range(7, 9)]


def test_threads_compute_the_same_values_without_printing(monkeypatch, capfd):
    monkeypatch.setattr("recometer.measuring.ranked.BLOCK_USERS", 2)
    users, metrics = record_users(rank(np.eye(5) + 1, np.eye(5))), parse("rr ap@2")
    one_thread, two_threads = (
        compute(users, metrics, rm.Protocol(), threads)[0] for threads in (1, 2)
    )
    assert {name: values.tolist() for name, values in one_thread.items()} == {
        name: values.tolist() for name, values in two_threads.items()
    }
    assert capfd.readouterr().err == ""


def test_gains_count_even_if_no_item_is_relevant():
    """Metrics computed from gains are defined even if no gain reaches `relevant_from`."""
    result = rm.evaluate(
        rm.Scores([[2.0, 1.0]]), np.array([[1.0, 1.0]]), metrics="dcg@1 hits@1", relevant_from=2,
        no_relevant="computed",
    )  # fmt: skip
    assert (result["dcg@1"].tolist(), result["hits@1"].tolist()) == ([1.0], [0.0])


def test_user_with_one_candidate_is_evaluated_if_min_candidates_is_1():
    result = rm.evaluate(
        rm.Scores([[1.0]]), np.array([[1.0]]), metrics="mean_rank", min_candidates=1,
        all_relevant="computed", deep_cutoffs="computed", constant_scores="ties",
    )  # fmt: skip
    assert result["mean_rank"].tolist() == [1.0]


def test_users_left_out_by_a_rule_get_no_replacement():
    ranks = rank([[3.0, 2.0, 1.0]] * 2, [[1.0, np.nan, np.nan]] * 2)
    ranks.flags[1] = 0
    protocol = rm.Protocol(users="known", undefined=0)
    values, _ = compute(record_users(ranks), parse("rr"), protocol)
    np.testing.assert_array_equal(values["rr"], [1, np.nan])

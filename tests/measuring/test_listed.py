"""List metrics match values computed by hand, and are undefined in the documented cases."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import polars as pl
import pytest
import scipy.sparse
from measured import compute, compute_for_all, record_users

import recometer as rm
from recometer.measuring.listed import Judged
from recometer.metrics import METRICS, ListData, Side, metric, parse
from recometer.metrics.listed.whole import add_up, value_of
from recometer.testing import ListCase

ONE_USER = ListCase(
    n_items=6,
    lists=[[0, 1, 2, 3]],
    baseline=[[0, 1, 2, 3]],
    train=[{}],
    test=[{0: 1.0}],
    unlisted=[],
    categories=[frozenset({item % 3}) for item in range(6)],
    n_categories=3,
    features=[[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [0.0, 0.0], [-1.0, 0.0], [math.nan, math.nan]],
    n_catalogue=6,
)


def value(metric, protocol=None, **changes):
    """Return the first user's value, or the single value of a metric over all users."""
    return values(metric, protocol, **changes)[0]


def values(metric, protocol=None, **changes):
    data = dataclasses.replace(ONE_USER, **changes).data()
    (metric_object,) = parse(metric)
    if metric_object.definition.over_users:
        return [
            compute_for_all(record_users(data), [metric_object], protocol or rm.Protocol())[metric]
        ]
    return compute(record_users(data), [metric_object], protocol or rm.Protocol())[0][
        metric
    ].tolist()


def why(metric, protocol=None, **changes):
    data = dataclasses.replace(ONE_USER, **changes).data()
    return rm.Reason(
        int(compute(record_users(data), parse(metric), protocol or rm.Protocol())[1][metric][0])
    )


TWO_USERS = {"lists": [[0, 1], [0, 2]], "baseline": [[], []], "train": [{}, {}], "test": [{}, {}]}


def test_ranking_and_list_metrics_keep_the_requested_order():
    lists, train = rm.Lists({"ann": ["film", "song"]}), {"ann": ["book"], "ben": ["film", "song"]}
    metrics = ["novelty@1", "rr", "novelty@2", "ap"]
    result = rm.evaluate(lists, {"ann": ["song"]}, train=train, metrics=metrics)
    assert list(result.values) == list(result.reasons) == metrics


@pytest.mark.parametrize(
    ("metric", "expected"),
    [
        ("coverage@2", 3 / 6),
        ("coverage@1", 1 / 6),
        ("coverage@2(denominator=one)", 3),
        ("user_coverage@2", 1),
        ("user_coverage@3", 0),
        ("user_coverage@3(least=any)", 1),
        # The six items occur 0, 0, 0, 1, 1 and 2 times: gini is (1 * 1 + 3 * 1 + 5 * 2) / (6 * 4).
        ("gini@2", 14 / 24),
        ("gini@2(complement)", 10 / 24),
        # The listed items occur 1, 1 and 2 times: gini is (-2 * 1 + 0 * 1 + 2 * 2) / (3 * 4).
        ("gini@2(support=listed)", 2 / 12),
        # All lists contain only item 0, so gini is (n - 1) / n, or 1 with a divisor of n - 1.
        ("gini@1", 5 / 6),
        ("gini@1(divisor=others)", 1),
        ("entropy@2", 1.5),  # the listed items have the shares 1/2, 1/4 and 1/4
        ("entropy@1", 0),
        ("personalization@2", 1 / 2),
        ("personalization@1", 0),
    ],
)
def test_metrics_over_all_users_match_hand_computed_values(metric, expected):
    assert value(metric, **TWO_USERS) == pytest.approx(expected)


# In the training data, four users interacted with item 0, two with item 1, and one with item 2.
UNLISTED_TRAIN = {"unlisted": [[0, 1, 2], [0, 1], [0], [0]]}


@pytest.mark.parametrize(
    ("metric", "expected"),
    [
        ("novelty@2", math.log2(5 / 4) / 2 + math.log2(5 / 2) / 2),
        ("popularity@4", (4 + 2 + 1 + 0) / 4),
        ("popularity@4(unseen=dropped)", 7 / 3),
        ("popularity@1(scale=percentile)", 1),
        ("popularity@3(scale=percentile)", (1 + 2 / 3 + 1 / 3) / 3),
        ("tail_share@4", 2 / 4),  # items 0 and 1 are the head, with 6 of 7 interactions
        ("tail_share@3(head=0.5)", 2 / 3),
        ("epc@1", 1 - 4 / 5),
        ("epc@2", (1 - 4 / 5) / (1 + 1 / math.log2(3))),
        ("epc@1(novelty=discovery)", math.log2(7 / 4)),
    ],
)
def test_popularity_metrics_match_hand_computed_values(metric, expected):
    assert value(metric, **UNLISTED_TRAIN) == pytest.approx(expected)


def test_epc_of_discovery_depends_on_shares_of_training_interactions():
    lists, train = rm.Lists({"ann": ["b"]}), {"ann": ["a"], "bob": ["a", "b"]}
    result = rm.evaluate(lists, {"ann": ["b"]}, train=train, metrics="epc@1(novelty=discovery)")
    assert result.mean() == {"epc@1(novelty=discovery)": pytest.approx(math.log2(3))}


def test_items_missing_from_train_are_as_novel_as_the_rarest_item():
    discovery = "epc@1(novelty=discovery,any)"
    case = {"lists": [[2]], "unlisted": [[0, 1], [0, 1], [0]]}
    assert value(discovery, **case) == pytest.approx(math.log2(5 / 2))
    assert value(discovery, lists=[[2]], unlisted=[[0], [0]]) == 0
    assert value(discovery, lists=[[3]], **UNLISTED_TRAIN) == pytest.approx(math.log2(7))


def test_items_of_the_only_training_user_are_not_novel():
    single_train_user = {"train": [{0: 1.0}], "lists": [[0]]}
    assert value("epc@1", **single_train_user) == 0
    assert value("epc@1(novelty=discovery)", **single_train_user) == 0
    assert value("serendipity@1(expected=popularity)", **single_train_user) == 0
    assert value("novelty@1", **single_train_user) == 0


@pytest.mark.parametrize(
    ("metric", "expected"),
    [
        ("ild@2", 1),  # the features are orthogonal
        ("ild@3", (1 + 2 * (1 - math.sqrt(1 / 2))) / 3),
        ("ild@3(similarity)", 1 - (1 + 2 * (1 - math.sqrt(1 / 2))) / 3),
        ("ild@2(distance=euclidean)", math.sqrt(2)),
        ("ild@3(distance=jaccard)", (1 + 1 / 2 + 1 / 2) / 3),
        ("ild@3(distance=differing)", (2 + 1 + 1) / 3),
        ("ild@3(distance=hamming)", (2 + 1 + 1) / 6),
        ("ild@4(distance=categories)", 5 / 6),  # items 0 and 3 have the same categories
        ("ild@3(average=items)", (1 + 2 * (1 - math.sqrt(1 / 2))) / 3),
    ],
)
def test_feature_metrics_match_hand_computed_values(metric, expected):
    assert value(metric) == pytest.approx(expected)


def test_opposite_feature_vectors_have_distance_2():
    assert value("ild@2", lists=[[0, 4]]) == pytest.approx(2)


def test_category_metrics_match_hand_computed_values():
    # Clarke et al. (2008) define the metric; the ideal list has an item of each category, and then
    # a second item of the first category.
    changes = {"test": [{0: 1.0, 1: 1.0, 3: 1.0}], "lists": [[0, 3, 1]]}
    best = 1 + 1 / math.log2(3) + 0.5 / 2
    assert value("alpha_ndcg@3", **changes) == pytest.approx((1 + 0.5 / math.log2(3) + 0.5) / best)
    assert value("alpha_ndcg@3", **{**changes, "lists": [[0, 1, 3]]}) == pytest.approx(1)
    assert value("subtopic_recall@2", **changes) == 1 / 2
    assert value("category_entropy@4") == pytest.approx(
        1.5
    )  # the categories of the list are 0, 1, 2 and 0
    assert value("category_entropy@3(normalised)") == pytest.approx(1)


@pytest.mark.parametrize(
    "source",
    [
        rm.Lists({"ann": ["b", "c"]}),
        rm.Scores([[2.0, 1.0]], user_ids=["ann"], item_ids=["b", "c"]),
        rm.Pairs(pl.DataFrame({"user": ["ann"] * 3, "item": ["b", "c", "a"],
                               "score": [3.0, 2.0, 1.0], "relevance": [1] * 3})),
    ],
)  # fmt: skip
def test_ideal_order_prefers_the_lowest_id_among_equal_gains(source):
    """The ideal order is the same for all sources, even if a source does not know an item."""
    catalogue = rm.Catalogue(["a", "b", "c"], categories=[["w", "x"], ["x", "y"], ["y", "z"]])
    test = None if isinstance(source, rm.Pairs) else {"ann": ["a", "b", "c"]}
    result = rm.evaluate(source, test, metrics="alpha_ndcg@2", catalogue=catalogue)
    second = 1 / math.log2(3)
    assert result["alpha_ndcg@2"] == pytest.approx((2 + 1.5 * second) / (2 + 2 * second))


def test_better_order_than_the_greedy_ideal_has_value_1():
    """Both lists are better than the greedy ideal order, which begins with item 0."""
    names = [frozenset({1, 2}), frozenset({0, 1}), frozenset({2, 3}), *[frozenset()] * 3]
    changes = {"categories": names, "n_categories": 4, "test": [{0: 1.0, 1: 1.0, 2: 1.0}]}
    assert value("alpha_ndcg@3", lists=[[0, 1, 2]], **changes) == 1
    assert value("alpha_ndcg@3", lists=[[1, 2, 0]], **changes) == 1


def test_metrics_of_few_categories_match_hand_computed_values():
    two_categories = {"categories": [frozenset({item % 2}) for item in range(6)], "n_categories": 2}
    assert value("category_entropy@2(normalised)", **two_categories) == 1
    same_category = {"categories": [frozenset({0})] * 6, "n_categories": 1}
    assert value("category_entropy@2(normalised)", **same_category) == 0
    assert value("subtopic_recall@2(denominator=all)", **same_category) == 1


def test_explicit_zero_is_not_a_feature():
    features = scipy.sparse.csr_array([[1.0, 2.0], [0.0, 3.0], [4.0, 1.0]])
    features.data[[1, 3]] = 0
    catalogue = rm.Catalogue({"item": ["a", "b", "c"]}, features=features)
    metrics = [f"ild@3(distance={name})" for name in ("hamming", "differing", "jaccard")]
    lists = {"ann": ["a", "b", "c"]}
    result = rm.evaluate(rm.Lists(lists), lists, metrics=metrics, catalogue=catalogue)
    # These are the mean distances between (1, 0), (0, 3) and (0, 1).
    np.testing.assert_allclose([result[name][0] for name in metrics], [5 / 6, 5 / 3, 2 / 3])


def test_miscalibration_matches_hand_computed_values():
    # Steck (2018) defines the metric: equal shares give 0, and the shares p = (1, 0) and q = (0, 1)
    # give log2(1 / alpha), with alpha = 0.01.
    assert value("miscalibration@3", train=[{3: 1.0, 4: 1.0, 5: 1.0}]) == pytest.approx(0)
    case = {"train": [{1: 1.0}], "lists": [[0, 3]]}
    assert value("miscalibration@2", **case) == pytest.approx(math.log2(100))
    assert value("miscalibration@2(divergence=js)", **case) == pytest.approx(1)


def test_rank_biased_overlap_matches_the_published_equation():
    # This is equation 32 of Webber, Moffat & Zobel (2010), for the lists a b c d and a c e d.
    lists, baseline = [[0, 1, 2, 3]], [[0, 2, 4, 3]]
    seen_overlap = 1 * 0.5 + 1 / 2 * 0.25 + 2 / 3 * 0.125 + 3 / 4 * 0.0625
    actual = value("rbo@4(p=0.5)", lists=lists, baseline=baseline)
    assert actual == pytest.approx(seen_overlap + 3 / 4 * 0.0625)
    assert value("rbo@4(p=0.5,rest=nothing)", lists=lists, baseline=baseline) == pytest.approx(
        seen_overlap
    )
    assert value("rbo@9") == pytest.approx(1)
    assert value("overlap@4", lists=lists, baseline=baseline) == 3 / 4
    assert value("overlap@1", lists=[[0]], baseline=[[0]]) == 1
    assert value("overlap@4(denominator=union)", lists=lists, baseline=baseline) == 3 / 5


def test_unexpectedness_and_serendipity_match_hand_computed_values():
    changes = {"baseline": [[1, 0, 7, 6]], "test": [{0: 1.0, 2: 1.0, 3: 1.0}]}
    assert value("unexpectedness@1", **changes) == 1  # the baseline begins with another item
    assert value("unexpectedness@4", **changes) == 1 / 2
    assert value("serendipity@1", **changes) == 1
    assert value("serendipity@4", **changes) == 2 / 4
    assert value("unexpectedness@4(expected=train)", train=[{0: 1.0}]) == 3 / 4


@pytest.mark.parametrize(
    ("metric", "changes", "reason"),
    [
        ("novelty@2", {"lists": [[]]}, rm.Reason.NO_LIST),
        ("novelty@2(unseen=dropped)", {}, rm.Reason.NOTHING_SEEN),
        ("ild@1", {}, rm.Reason.ONE_ITEM),
        ("ild@2", {"lists": [[0, 5]]}, rm.Reason.NO_FEATURES),
        ("ild@1(single=zero)", {}, rm.Reason.DEFINED),
        ("epc@2", {"test": [{0: 0.0}]}, rm.Reason.NO_RELEVANT),
        ("epc@2(any)", {"test": [{0: 0.0}]}, rm.Reason.DEFINED),
        ("overlap@2", {"baseline": [[]]}, rm.Reason.NO_BASELINE),
        ("category_entropy@2", {"categories": [frozenset()] * 6}, rm.Reason.NO_CATEGORY),
        ("alpha_ndcg@2", {"categories": [frozenset()] * 6}, rm.Reason.NO_RELEVANT_CATEGORY),
        ("miscalibration@2", {}, rm.Reason.NO_HISTORY),
        (
            "miscalibration@2",
            {"train": [{5: 1.0}], "categories": [frozenset({0})] * 5 + [frozenset()]},
            rm.Reason.NO_HISTORY_CATEGORY,
        ),
        (
            "serendipity@1(expected=similarity,combine=complement)",
            {"train": [{1: 1.0}], "test": [{3: 1.0}]},
            rm.Reason.NO_HIT,
        ),
    ],
)
def test_undefined_list_metrics_have_a_reason(metric, changes, reason):
    assert why(metric, **changes) is reason
    assert math.isnan(value(metric, **changes)) == (reason is not rm.Reason.DEFINED)
    if reason is not rm.Reason.DEFINED:
        assert value(metric, rm.Protocol(undefined=0.25), **changes) == 0.25


def test_min_positives_matters_only_to_metrics_that_read_test():
    protocol = rm.Protocol(min_positives=2)
    assert why("epc@2", protocol) is rm.Reason.FEW_RELEVANT
    assert why("popularity@2", protocol) is rm.Reason.DEFINED


def test_metrics_over_all_users_can_be_computed_from_empty_lists():
    for name in ("gini@2", "entropy@2", "personalization@2", "novelty@2(divisor=rows)"):
        assert math.isnan(value(name, lists=[[]]))
    assert value("coverage@2", lists=[[]]) == 0
    assert value("user_coverage@2", lists=[[]]) == 0
    assert why("user_coverage@2", lists=[[]]) == rm.Reason.DEFINED


@pytest.mark.parametrize(
    ("flag", "reason"),
    [
        (rm.UserFlag.NAN_SCORE, rm.Reason.NAN_SCORE),
        (rm.UserFlag.INFINITE_SCORE, rm.Reason.INFINITE_SCORE),
        (rm.UserFlag.CONSTANT_SCORES, rm.Reason.CONSTANT_SCORES),
    ],
)
def test_list_metrics_leave_out_unranked_users(flag, reason):
    flags = np.array([rm.UserFlag.KNOWN | flag, rm.UserFlag.KNOWN], np.uint32)
    lists = rm.TopLists(np.array([[0], [1]]), 2, np.ones(2, bool), np.zeros(2, bool), flags=flags)
    data = ListData(lists, n_catalogue=2, n_train_users=2, item_users=np.array([1, 1]))
    values_of_metrics, reasons = compute(record_users(data), parse("novelty@1"), rm.Protocol())
    assert reasons["novelty@1"].tolist() == [reason, 0]
    assert values_of_metrics["novelty@1"].tolist()[1] == 1
    # A metric over all users leaves out this user, too.
    assert compute_for_all(record_users(data), parse("coverage@1"), rm.Protocol()) == {
        "coverage@1": 0.5
    }


def test_unknown_users_lower_user_coverage_unless_left_out():
    is_known = np.array([False, True])
    lists = rm.TopLists(np.array([[-1], [1]]), 2, is_known, np.zeros(2, bool))
    data = ListData(lists)
    over_all_users = compute_for_all(record_users(data), parse("user_coverage@1"), rm.Protocol())
    only_known = compute_for_all(
        record_users(data), parse("user_coverage@1"), rm.Protocol(users="known")
    )
    assert (over_all_users, only_known) == ({"user_coverage@1": 0.5}, {"user_coverage@1": 1.0})


def test_weights_of_users_who_do_not_count_have_no_effect():
    is_known = np.array([False, True, True])
    lists = rm.TopLists(np.array([[0], [1], [-1]]), 4, is_known, np.zeros(3, bool))
    users = record_users(ListData(lists, n_catalogue=4))
    metrics = parse("coverage@1 user_coverage@1")
    for weights in ([5, 1, 1], [0, 1, 1]):
        coverage = compute_for_all(users, metrics, rm.Protocol(users="known"), np.array(weights))
        assert coverage == {"coverage@1": 1 / 4, "user_coverage@1": 1 / 2}


@pytest.mark.parametrize(
    "name",
    [
        *("novelty@2(divisor=rows)", "novelty@2(unseen=dropped,divisor=rows)"),
        *("popularity@2(divisor=rows)", "coverage@2", "gini@2", "entropy@2"),
    ],
)
def test_users_count_as_often_as_they_are_resampled(name):
    is_known = np.ones(3, bool)
    lists = rm.TopLists(np.array([[0, 1], [1, 2], [2, -1]]), 3, is_known, ~is_known)
    data = ListData(lists, n_catalogue=3, n_train_users=4, item_users=np.array([4, 2, 0]))
    weights = np.array([0, 3, 2])
    repeated = record_users(data.users(np.repeat(np.arange(3), weights)))
    expected = compute_for_all(repeated, parse(name), rm.Protocol())
    assert compute_for_all(
        record_users(data), parse(name), rm.Protocol(), weights
    ) == pytest.approx(expected)
    # On several machines, the value is computed from sums, and must be the same.
    (metric,) = parse(name)
    assert value_of(metric, data, add_up(metric, data, weights)) == pytest.approx(expected[name])


def test_blocks_of_users_do_not_change_values(monkeypatch):
    monkeypatch.setattr("recometer.measuring.listed.BLOCK_PLACES", 8)
    rng = np.random.default_rng(0)
    rows = [rng.permutation(6)[: rng.integers(0, 5)].tolist() for _ in range(20)]
    many_users = {
        "lists": rows, "baseline": rows[::-1], "train": [{0: 1.0}] * 20, "test": [{1: 1.0}] * 20
    }  # fmt: skip
    for name in ("ild@3(single=zero)", "novelty@3", "overlap@3", "alpha_ndcg@3", "epc@3"):
        one_by_one = [
            value(name, lists=[row], baseline=[baseline_row], train=[{0: 1.0}], test=[{1: 1.0}],
                  unlisted=[[0]] * 19)
            for row, baseline_row in zip(rows, rows[::-1], strict=True)
        ]  # fmt: skip
        np.testing.assert_array_equal(values(name, **many_users), one_by_one)


def test_cached_results_are_not_shared_between_users():
    changes = TWO_USERS | {"lists": [[0], [1, 2]]}
    data = dataclasses.replace(ONE_USER, **changes).data()
    metrics, weights = parse("coverage@2"), np.array([1])
    values_of_users = [
        compute_for_all(
            record_users(data.users(slice(user, user + 1))), metrics, rm.Protocol(), weights
        )
        for user in (0, 1)
    ]
    assert values_of_users == [{"coverage@2": 1 / 6}, {"coverage@2": 2 / 6}]


def test_blocks_contain_each_user_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("recometer.measuring.listed.BLOCK_PLACES", 8)
    five = {name: 5 * getattr(ONE_USER, name) for name in ("lists", "baseline", "train", "test")}
    users = record_users(dataclasses.replace(ONE_USER, **five).data())
    blocks = [range(block.start, block.stop) for block in users.blocks()]
    assert blocks == [range(2), range(2, 4), range(4, 5)]


def test_items_outside_the_catalogue_have_no_features() -> None:
    frame = pl.DataFrame(
        {"item": ["a", "b", "c"], "genres": ["x", "y", "x|y"], "vector": np.eye(3).tolist()}
    )
    result = rm.evaluate(
        rm.Lists({"ann": ["new", "other"], "bob": ["c", "b"]}),
        {"ann": ["a"], "bob": ["a"]},
        metrics="category_entropy@2 ild@2",
        catalogue=rm.Catalogue(frame, features="vector"),
    )
    entropy = 2 - 0.75 * math.log2(3)  # one item is in category y, the other in x and y
    np.testing.assert_allclose(result["category_entropy@2"], [math.nan, entropy])
    np.testing.assert_allclose(result["ild@2"], [math.nan, 1.0])
    assert result.reasons["category_entropy@2"].tolist() == [rm.Reason.NO_CATEGORY, 0]
    assert result.reasons["ild@2"].tolist() == [rm.Reason.NO_FEATURES, 0]


def test_items_outside_a_single_item_catalogue_have_no_features() -> None:
    catalogue = rm.Catalogue(["a"], features=np.ones((1, 2)))
    lists = rm.Lists({"ann": ["a", "new"]})
    result = rm.evaluate(lists, {"ann": ["a"]}, metrics="ild@2", catalogue=catalogue)
    assert result.reasons["ild@2"].tolist() == [rm.Reason.NO_FEATURES]


def test_columns_that_do_not_match_the_lists_are_rejected():
    one_row = np.zeros(1, np.int64)
    with pytest.raises(rm.InternalError, match=r"Side\.items must have .* per row: 1 of 2"):
        Side(np.array([0, 2]), one_row, np.ones(2))
    with pytest.raises(rm.InternalError, match="item_users must have one entry per item: 1 of 6"):
        dataclasses.replace(ONE_USER.data(), item_users=one_row)
    with pytest.raises(rm.InternalError, match=r"Judged\.n_relevant must have .* per user: 1 of 2"):
        Judged(np.zeros(2, np.int64), one_row)


def test_custom_metric_reads_propensities():
    @metric(formula="the propensity of the first item", record="lists", side=("propensity",))
    def likely(data, cutoffs):
        """Return the propensity of each list's first item."""
        return np.repeat(data.propensity[data.lists.items[:, :1]], len(cutoffs), axis=1)

    frame = {"item_id": ["b", "a"], "propensity": [0.25, 0.5]}
    catalogue = rm.Catalogue(frame, propensity="propensity")
    lists = {"ann": ["a", "b"], "bob": ["b", "a"]}
    try:
        result = rm.evaluate(rm.Lists(lists), lists, metrics="likely@1", catalogue=catalogue)
    finally:
        del METRICS["likely"]
    assert result["likely@1"].tolist() == [0.5, 0.25]

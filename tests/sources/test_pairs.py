"""Tests of `rm.Pairs`, which contains scored user-item pairs with labels or true ratings."""

from __future__ import annotations

import collections
import itertools
import math

import numpy as np
import pandas as pd
import polars as pl
import pytest

import recometer as rm
from recometer.metrics import reading

RULES = ("expected", "optimistic", "pessimistic", "random", "item", "item_desc")
# Surprise returns predictions as objects with these fields.
Prediction = collections.namedtuple("Prediction", "uid iid r_ui est details")
PREDICTED = "rated_precision@1..4 rated_recall@1..4 rmse mae mse r2 explained_variance fcp"

# The documentation's example of rating predictions.
EXAMPLE = {
    "user": ["u"] * 6,
    "item": ["7", "5", "10", "2", "2b", "1"],
    "rating": [2, 5, 4, 2, 3, 4],
    "prediction": [4.9, 4.5, 4.3, 3.6, 3.4, 2.3],
}


def of_predictions(predictions, threshold=3.5):
    """Return Surprise's predictions as `Pairs`."""
    return rm.Pairs(pd.DataFrame(predictions), threshold=threshold)


def means(source, metrics, **rules):
    return rm.evaluate(source, metrics=metrics, **rules).mean()


# Tests of examples in the documentation


def test_example_of_rating_predictions_has_documented_values():
    pairs = rm.Pairs(pl.DataFrame(EXAMPLE), threshold=3.5)
    metrics = "rated_precision@3,5 rated_recall@3,6"
    for undefined in ("nan", math.nan, 0, 1):
        assert means(pairs, metrics, undefined=undefined) == {
            "rated_precision@3": pytest.approx(2 / 3),
            "rated_precision@5": 1 / 2,  # the model recommends only four items
            "rated_recall@3": pytest.approx(2 / 3),
            "rated_recall@6": pytest.approx(2 / 3),  # the model misses a relevant item
        }


def test_pairs_can_be_made_from_arrays():
    pairs = rm.Pairs.of([1, 1, 0, 0, 1], [0.4, 0.1, 0.2, 0.5, 0.3])
    assert means(pairs, "recall@3")["recall@3"] == pytest.approx(2 / 3)


@pytest.mark.parametrize(("undefined", "value"), [("nan", math.nan), (0, 0.0), (1, 1.0)])
def test_users_without_recommended_or_relevant_items_follow_the_rule(undefined, value):
    predictions = [
        Prediction("none recommended", "a", 4.0, 3.0, {}),
        Prediction("none recommended", "b", 2.0, 1.0, {}),
        Prediction("none relevant", "a", 3.0, 4.0, {}),
        Prediction("none relevant", "b", 2.0, 1.0, {}),
    ]
    result = rm.evaluate(
        of_predictions(predictions),
        metrics="rated_precision@2 rated_recall@2",
        undefined=undefined,
    )
    assert result.user_ids.tolist() == ["none recommended", "none relevant"]
    np.testing.assert_array_equal(result["rated_precision@2"], [value, 0])
    np.testing.assert_array_equal(result["rated_recall@2"], [0, value])
    assert result.skipped("rated_precision@2") == {rm.Reason.NOTHING_RECOMMENDED.sentence: 1}
    assert result.skipped("rated_recall@2") == {rm.Reason.NO_RELEVANT.sentence: 1}


# Cut-offs


def test_cutoffs_beyond_the_number_of_rows_cause_a_warning():
    """A cut-off equal to the number of rows causes no warning, although recall is then always 1."""
    pairs = rm.Pairs.of([1, 0, 1], [3, 2, 1])
    assert means(pairs, "recall@3 precision@3 hit@3 tprecision@3") == {
        "recall@3": 1.0,
        "precision@3": pytest.approx(2 / 3),
        "hit@3": 1.0,
        "tprecision@3": 1.0,
    }
    message = (
        r"^precision@4, ndcg@9: the cut-off is larger than any user's number of rows.* has more "
        r"than 3;"
    )
    with pytest.warns(rm.DataWarning, match=message):
        values = means(pairs, "rr@2 precision@4 ndcg@9")
    assert values["precision@4"] == 2 / 4
    assert values["ndcg@9"] == means(pairs, "ndcg")["ndcg"]
    predictions = rm.Pairs(pl.DataFrame(EXAMPLE), threshold=3.5)
    with pytest.warns(rm.DataWarning, match=r"^rated_recall@7: .*more than 6;"):
        assert means(predictions, "rated_recall@7") == {
            "rated_recall@7": means(predictions, "rated_recall@6")["rated_recall@6"]
        }


def test_deep_cutoffs_cause_a_warning_in_streams_and_conventions():
    relevance, scores, queries = [0, 0, 1, 0, 1, 0, 1], [2, 3, 5, 1, 3, 5, 2], [0, 0, 0, 1, 1, 1, 1]
    pairs = rm.Pairs.of(relevance, scores, queries)
    [right] = means(pairs, "ndcg").values()
    for protocol, metric in (
        ("recometer", "ndcg@10"),
        ("torchmetrics", "RetrievalNormalizedDCG@10"),
        ("lightgbm", "ndcg@10"),
        ("xgboost", "ndcg@10"),
    ):
        stream = rm.Evaluator(metrics=metric, protocol=protocol).stream()
        for query in (0, 1):
            rows = slice(3 * query, 3 + 4 * query)
            stream.update(scores[rows], relevance[rows], users=queries[rows])
        with pytest.warns(
            rm.DataWarning, match="the cut-off is larger than any user's number of rows"
        ):
            result = rm.evaluate(pairs, metrics=metric, protocol=protocol)
        with pytest.warns(
            rm.DataWarning, match="the cut-off is larger than any user's number of rows"
        ):
            streamed = stream.compute()
        assert result.mean()[metric] == streamed.mean()[metric] == pytest.approx(right, rel=1e-15)


def test_users_with_fewer_rows_than_the_cutoff_are_counted():
    pairs = rm.Pairs.of([1, 0, 0, 1, 0], [1, 2, 3, 2, 1], groups=["a", "a", "a", "b", "b"])
    result = rm.evaluate(pairs, metrics="precision@3 recall@3")
    np.testing.assert_allclose(result["precision@3"], [1 / 3, 1 / 3])
    assert result.counts["users_below_cutoff"] == 1
    assert "users with fewer rows than a cut-off (the missing places are misses): 1" in str(result)


# Contents of rows


def test_order_of_rows_changes_nothing():
    rng = np.random.default_rng(0)
    n = 60
    frame = pl.DataFrame(
        {
            "user": rng.integers(0, 4, n),
            "item": rng.integers(0, 12, n),  # some user-item pairs occur several times
            "rating": rng.integers(1, 6, n),
            "est": rng.integers(2, 10, n) / 2,
        }
    )
    metrics = f"{PREDICTED} ndcg@3 ap rr roc_auc"
    for ties in RULES:
        first, shuffled = (
            rm.evaluate(
                rm.Pairs(rows, threshold=3), metrics=metrics, ties=ties, duplicates="joined"
            )
            for rows in (frame, frame.sample(fraction=1, shuffle=True, seed=1))
        )
        for name in first.values:
            assert first[name].tobytes() == shuffled[name].tobytes(), (ties, name)
        assert first.inputs == shuffled.inputs
        assert first.over_rows == shuffled.over_rows


def test_order_of_repeated_rows_changes_nothing():
    """Rows with the same item and the same prediction are ordered by their ratings."""
    for rows in itertools.permutations([(5.0, 3.0), (1.0, 3.0), (5.0, 3.0), (1.0, 2.0)]):
        frame = pl.DataFrame(
            {"user": 1, "item": 7, "rating": [row[0] for row in rows]}
        ).with_columns(prediction=pl.Series([row[1] for row in rows]))
        values = means(rm.Pairs(frame, threshold=3), "rated_precision@1..2", ties="item")
        assert values == {"rated_precision@1": 0.0, "rated_precision@2": 0.5}


REPEATED = pl.DataFrame(
    {"user": [1] * 4, "item": [7, 7, 8, 9], "score": [3, 2, 1, 0], "relevant": [1, 1, 0, 1]}
)


def test_rows_that_repeat_a_pair_can_be_kept():
    result = rm.evaluate(rm.Pairs(REPEATED), metrics="recall@2 precision@3", duplicates="joined")
    np.testing.assert_allclose([result["recall@2"], result["precision@3"]], 2 / 3)
    assert result.n_candidates.tolist() == [4]
    assert result.n_relevant.tolist() == [3]


@pytest.mark.filterwarnings("ignore:.*repeat")
@pytest.mark.parametrize("duplicates", ["removed", "first", "counted"])
@pytest.mark.parametrize("repeated_test", ["once", "summed", "largest"])
def test_repeated_rows_agree_with_lists_and_test(duplicates, repeated_test):
    rng = np.random.default_rng(4)
    for _ in range(20):
        n = 24
        scores = rng.permutation(n).astype(float)
        columns = {"user": rng.integers(0, 3, n), "item": rng.integers(0, 5, n)}
        frame = pl.DataFrame({**columns, "score": scores, "label": rng.integers(-1, 4, n)})
        rules = {"duplicates": duplicates, "repeated_test": repeated_test}
        rules |= {"metrics": "ndcg@3 recall@2 ap rr", "all_relevant": "computed"}
        lists = rm.Lists(frame.select("user", "item", "score"))
        options = {"candidates": {u: range(5) for u in range(3)}, "deep_cutoffs": "computed"}
        rules |= {"no_relevant": 0, "min_candidates": 0}
        # With lists, all five items are candidates, but unlisted items rank below listed items.
        expected = rm.evaluate(
            lists, frame.select("user", "item", "label"), catalogue=5, **options, **rules
        )
        stream = rm.Evaluator(**rules).stream()
        for user in range(3):
            stream.update(frame.filter(user=user))
        for result in (rm.evaluate(rm.Pairs(frame), **rules), stream.compute()):
            assert result.n_relevant.tolist() == expected.n_relevant.tolist()
            for name, values in expected.values.items():
                np.testing.assert_allclose(result[name], values, rtol=1e-12, err_msg=name)


def test_merging_repeated_rows_causes_a_warning():
    message = r"^1 of 4 rows of Pairs repeat a user-item pair \(the first: user 1 and item 7\)"
    for evaluate in (
        lambda **rules: rm.evaluate(rm.Pairs(REPEATED), metrics="ndcg recall@1", **rules),
        lambda **rules: streamed(REPEATED, metrics="ndcg recall@1", **rules),
    ):
        with pytest.warns(rm.DataWarning, match=message):
            result = evaluate()
        assert result.n_candidates.tolist() == [3]
        assert result["recall@1"].tolist() == [1 / 2]
        gains = [2 / math.log2(2) + 1 / math.log2(4), 2 / math.log2(2) + 1 / math.log2(3)]
        assert result["ndcg"].tolist() == pytest.approx([gains[0] / gains[1]])
        assert result.counts["test_duplicates"] == 1
        for rule in ("joined", "first", "counted"):
            assert evaluate(duplicates=rule).n_candidates.tolist() == [4]
    unrepeated = rm.Pairs(REPEATED.filter(pl.col("score") != 2))
    with pytest.warns(
        rm.DataWarning, match="duplicates='first' changes nothing here: Pairs cannot repeat"
    ):
        rm.evaluate(unrepeated, metrics="rr", duplicates="first")


def streamed(frame, **options):
    stream = rm.Evaluator(**options).stream()
    stream.update(frame)
    return stream.compute()


def test_metrics_of_ratings_read_every_row():
    frame = REPEATED.rename({"relevant": "rating"})
    ratings_only = rm.evaluate(rm.Pairs(frame, threshold=1), metrics="rmse rated_recall@2")
    assert ratings_only["rmse"].tolist() == pytest.approx([math.sqrt((4 + 1 + 1 + 1) / 4)])
    with pytest.warns(rm.DataWarning, match="repeat a user-item pair"):
        with_ranks = rm.evaluate(rm.Pairs(frame), metrics="rmse rr")
    with pytest.warns(rm.DataWarning, match="repeat a user-item pair"):
        stream = streamed(frame, metrics="rmse rr")
    for result in (with_ranks, stream):
        assert result["rmse"].tolist() == ratings_only["rmse"].tolist()
        assert result.n_candidates.tolist() == [3]


def test_conventions_may_treat_every_row_as_a_separate_item():
    for protocol in ("torchmetrics", "lightgbm", "xgboost", "keras_rs"):
        result = rm.evaluate(rm.Pairs(REPEATED), metrics="recall@2", protocol=protocol)
        assert result["recall@2"].tolist() == [2 / 3]


@pytest.mark.filterwarnings("ignore:.*repeat")
def test_threshold_for_repeated_ratings_needs_a_rule():
    columns = {"user": [1] * 4, "item": [7, 7, 8, 9], "score": [3, 2, 1, 0]}
    frame = pl.DataFrame({**columns, "rating": [2.0, 2.0, 5.0, 1.0]})
    for options, rules in (({"threshold": 4}, {}), ({}, {"relevant_from": 4})):
        pairs = rm.Pairs(frame, **options)
        message = r"1 of 4 rows of test repeat a user-item pair.*'summed'.*'largest'"
        with pytest.raises(rm.InputError, match=message):
            rm.evaluate(pairs, metrics="rr", **rules)
        for rule, rr in (("summed", 1), ("largest", 1 / 2)):
            result = rm.evaluate(pairs, metrics="rr", repeated_test=rule, **rules)
            assert result["rr"].tolist() == [rr]
        assert rm.evaluate(pairs, metrics="rr", duplicates="joined", **rules)["rr"] == [1 / 3]
        evaluation = rm.evaluate(pairs, metrics="rated_recall@3 rmse", undefined=0, **rules)
        assert evaluation["rated_recall@3"].tolist() == [0]
        with pytest.raises(rm.InputError, match=message):
            streamed(pairs, metrics="rr", **rules)


def test_minus_infinity_is_not_a_candidate():
    scores, truth = np.array([[0.5, 0.4, 0.3, -np.inf]]), np.array([[0, 1, 1, 1]])
    pairs = rm.Pairs.of(truth[0], scores[0], [0] * 4)
    metrics = "rr roc_auc ap recall@3"
    expected = rm.evaluate(rm.Scores(scores), truth, metrics=metrics, deep_cutoffs="computed")
    stream = rm.Evaluator(metrics=metrics).stream()
    stream.update(scores, truth)
    for result in (rm.evaluate(pairs, metrics=metrics), stream.compute()):
        assert result.mean() == expected.mean()
        assert result.n_candidates.tolist() == [3]
        assert result.counts["rows_not_candidates"] == 1
    ranked = rm.evaluate(pairs, metrics="recall@3 roc_auc", infinite_scores="ranked")
    assert ranked.n_candidates.tolist() == [4]


def test_rows_without_a_label_are_left_out_and_counted():
    rows = [
        Prediction("u", 1, 4, 3.9, {}),
        Prediction("u", 2, None, 5.0, {}),
        Prediction("u", 3, math.nan, 5.0, {}),
        Prediction("u", 4, 3, 1.0, {}),
        Prediction("v", 5, None, 5.0, {}),
    ]
    result = rm.evaluate(of_predictions(rows), metrics="rated_precision@2 mae rr")
    assert result.counts["rows_without_truth"] == 3
    assert "without a true rating or relevance (left out): 3" in str(result)
    assert result.n_candidates.tolist() == [2, 0]
    np.testing.assert_allclose(result["mae"], [(0.1 + 2) / 2, np.nan])
    np.testing.assert_array_equal(result["rated_precision@2"], [1, np.nan])
    assert result.skipped("mae") == {rm.Reason.NO_RATINGS.sentence: 1}
    assert result.skipped("rr") == {rm.Reason.NO_RELEVANT.sentence: 1}


def test_missing_scores_follow_the_rule_for_nan(frame):
    rows = frame(
        {
            "user": ["a"] * 3 + ["b"] * 3,
            "item": list("xyz") * 2,
            "score": [None, 2.0, 1.0, 6.0, 5.0, 4.0],
            "rating": [5, 4, 1, 1, 5, 4],
        }
    )
    pairs = rm.Pairs(rows, threshold=4)
    metrics = "rr rated_precision@1,2 mae"
    result = rm.evaluate(pairs, metrics=metrics)
    for name in result.values:
        assert np.isnan(result[name]).tolist() == [True, False], name
        assert result.reasons[name][0] == rm.Reason.NAN_SCORE
    first = rm.evaluate(pairs, metrics=metrics, nan_scores="first")
    last = rm.evaluate(pairs, metrics=metrics, nan_scores="last")
    assert (first["rr"][0], last["rr"][0]) == (1, 1)
    np.testing.assert_array_equal(first["rated_precision@1,2"][0], [1, 1])
    assert last.reasons["rated_precision@1"][0] == rm.Reason.NOTHING_RECOMMENDED
    # Under any rule, error metrics are undefined if a prediction is missing.
    assert first.reasons["mae"][0] == last.reasons["mae"][0] == rm.Reason.NAN_SCORE


def test_infinite_scores_make_their_user_undefined():
    pairs = rm.Pairs.of([1, 0, 1, 0, 1], [math.inf, 1, -math.inf, 1, 0], groups=[0, 0, 1, 1, 1])
    result = rm.evaluate(pairs, metrics="rr")
    assert result.reasons["rr"].tolist() == [rm.Reason.INFINITE_SCORE, rm.Reason.DEFINED]
    assert result["rr"][1] == 1 / 2


def test_constant_scores_are_undefined_by_default():
    pairs = rm.Pairs.of([1, 0, 0], [2, 2, 2])
    assert rm.evaluate(pairs, metrics="rr").reasons["rr"] == rm.Reason.CONSTANT_SCORES
    assert means(pairs, "rr", constant_scores="ties")["rr"] == pytest.approx(11 / 18)


@pytest.mark.parametrize("ties", RULES)
def test_equal_scores_follow_the_tie_rule(ties):
    frame = pl.DataFrame(
        {
            "user": [0] * 5,
            "item": list("abcde"),
            "score": [9, 5, 5, 5, 1],
            "relevance": [0, 0, 1, 0, 0],
        }
    )
    rr = means(rm.Pairs(frame), "rr", ties=ties)["rr"]
    assert rr == pytest.approx(
        {
            "expected": (1 / 2 + 1 / 3 + 1 / 4) / 3,
            "optimistic": 1 / 2,
            "pessimistic": 1 / 4,
            "item": 1 / 3,
            "item_desc": 1 / 3,
            "random": rr,
        }[ties]
    )
    assert 1 / 4 <= rr <= 1 / 2


# Relevance


def test_labels_above_zero_are_relevant_by_default():
    pairs = rm.Pairs.of([-1, 0.5, 1, 0], [4, 3, 2, 1])
    result = rm.evaluate(pairs, metrics="rr ndcg@3")
    assert result.n_relevant.tolist() == [2]
    assert result["rr"] == [1 / 2]
    pairs = rm.Pairs.of([0.5, 2, 1], [3, 2, 1])
    assert rm.evaluate(pairs, metrics="rr", relevant_from=2)["rr"] == [1 / 2]
    assert rm.evaluate(rm.Pairs.of([0.5, 2, 1], [3, 2, 1], threshold=2), metrics="rr")["rr"] == [
        1 / 2
    ]


def test_threshold_determines_recommended_and_relevant_items():
    frame = pl.DataFrame(
        {
            "user": ["a"] * 4 + ["b"] * 4,
            "item": list("wxyz") * 2,
            "rating": [5, 4, 3, 2, 5, 4, 3, 3],
            "est": [4.5, 4.0, 3.8, 1.0, 3.0, 3.9, 2.0, 1.0],
        }
    )
    metrics = "rated_precision@4 rated_recall@4"

    def evaluate(threshold=None, **rules):
        result = rm.evaluate(rm.Pairs(frame, threshold=threshold), metrics=metrics, **rules)
        return np.column_stack(list(result.values.values())).tolist()

    np.testing.assert_array_equal(evaluate(threshold=4), [[1, 1], [np.nan, 0]])
    np.testing.assert_array_equal(evaluate(relevant_from=4), evaluate(threshold=4))
    for protocol in ("recometer", "surprise"):
        with pytest.raises(rm.InputError, match=r"Both threshold= of Pairs and relevant_from=4 "):
            evaluate(threshold=4, relevant_from=4, protocol=protocol)
    with pytest.raises(
        rm.InputError,
        match=r"'rated_precision@4' needs the smallest rating of a relevant item.*threshold=3\.5",
    ):
        evaluate()
    for wrong in ("mean", {"a": 3}, True):
        with pytest.raises(rm.InputTypeError, match=r"threshold=.* must be a number\. Hint: if"):
            evaluate(threshold=wrong)
    with pytest.raises(rm.InputError, match="must be a finite number"):
        evaluate(threshold=math.nan)


def test_values_match_the_code_in_the_faq_of_surprise():
    """Like the FAQ, the test uses a threshold of 3.5, and 0 for undefined values."""
    rng = np.random.default_rng(5)
    predictions = [
        Prediction(str(user), str(item), float(rng.integers(1, 6)), float(est), {})
        for user in range(40)
        for item, est in enumerate(rng.permutation(9)[: rng.integers(2, 9)] / 2 + 1)
    ]
    rng.shuffle(predictions)
    predictions = [Prediction(*row) for row in predictions]
    k = 4
    result = rm.evaluate(
        of_predictions(predictions), metrics=f"rated_precision@{k} rated_recall@{k}", undefined=0
    )
    by_user = collections.defaultdict(list)
    for uid, _, true, est, _ in predictions:
        by_user[uid].append((float(est), float(true)))
    for place, uid in enumerate(result.user_ids):
        rows = sorted(by_user[uid], key=lambda row: row[0], reverse=True)
        relevant = sum(true >= 3.5 for _, true in rows)
        recommended = sum(est >= 3.5 for est, _ in rows[:k])
        recommended_and_relevant = sum(true >= 3.5 and est >= 3.5 for est, true in rows[:k])
        assert result[f"rated_precision@{k}"][place] == (
            recommended_and_relevant / recommended if recommended else 0
        )
        assert result[f"rated_recall@{k}"][place] == (
            recommended_and_relevant / relevant if relevant else 0
        )


@pytest.mark.parametrize("ties", ["expected", "optimistic", "pessimistic"])
def test_rules_for_ties_combine_all_orders_of_tied_predictions(ties):
    """Each rule for ties returns the mean, maximum or minimum over all orders of the tied rows."""
    est, true = np.array([4, 4, 4, 4, 3, 3]), np.array([5, 1, 4, 1, 5, 1])
    precision, recall = [], []
    for order in itertools.permutations(range(6)):
        if (np.diff(est[list(order)]) <= 0).all():
            recommended_and_relevant = (true[list(order)][:3] >= 3.5).sum()
            precision.append(recommended_and_relevant / 3)
            recall.append(recommended_and_relevant / 3)
    best = {"expected": np.mean, "optimistic": np.max, "pessimistic": np.min}[ties]
    predictions = [
        Prediction(0, i, t, e, {}) for i, (e, t) in enumerate(zip(est, true, strict=True))
    ]
    values = means(of_predictions(predictions), "rated_precision@3 rated_recall@3", ties=ties)
    assert list(values.values()) == pytest.approx([best(precision), best(recall)])


# Frames


def test_pairs_are_read_from_any_frame(frame):
    data = {
        "user_id": ["b", "a", "b", "a", "b"],
        "movieId": [2, 2, 1, 1, 3],
        "rating": [5, 3, 1, 4, 4],
        "prediction": [4.0, 3.0, 2.0, 3.5, 1.5],
        "other": [0] * 5,
    }
    result = rm.evaluate(
        rm.Pairs(frame(data), threshold=3.5),
        metrics="rated_precision@2 rated_recall@2 rmse precision@2",
    )
    assert result.user_ids.tolist() == ["a", "b"]
    np.testing.assert_array_equal(result["rated_precision@2"], [1, 1])
    np.testing.assert_array_equal(result["rated_recall@2"], [1, 1 / 2])
    np.testing.assert_allclose(result["rmse"], [np.sqrt(0.25 / 2), np.sqrt((1 + 1 + 2.5**2) / 3)])
    assert result.inputs["source"]["description"] == (
        "Pairs: 5 rows, 2 users, 3 items, true ratings, relevant if at least 3.5"
    )


def test_columns_can_be_named_and_hold_booleans(frame):
    data = {"q": [1, 1], "a": [0.5, 0.7], "b": [True, False], "c": [True, True]}
    pairs = rm.Pairs(frame(data), user="q", score="a", relevance="b")
    assert means(pairs, "rr") == {"rr": 0.5}
    pairs = rm.Pairs(frame(data), user="q", score="a", relevance="c")
    assert pairs.facts.truth.values.tolist() == [1, 1]


@pytest.mark.parametrize(
    ("names", "options", "error", "message"),
    [
        ("user item score", {}, None, ""),
        ("user score relevance", {}, None, ""),
        ("item score relevance", {}, rm.ColumnError, "No column has a common name for users"),
        ("user item relevance", {}, rm.ColumnError, "common name for scores.*pass score="),
        ("user item score est rating", {}, rm.ColumnError, "Several columns could hold the scores"),
        (
            "user item score relevance rating",
            {},
            rm.InputError,
            "both contain labels. Hint: name only one",
        ),
        ("user item score relevance rating", {"rating": "rating"}, None, ""),
        ("user item score relevance rating", {"rating": False}, None, ""),
        (
            "user item score rating relevance",
            {"rating": "rating", "relevance": "relevance"},
            rm.InputError,
            "both contain labels",
        ),
        ("user item score", {"rating": "score"}, rm.ColumnError, "common name for scores"),
        (
            "user item score",
            {"rating": "score", "score": "score"},
            rm.ColumnError,
            "score= and rating= both name the column 'score'",
        ),
        ("user item score", {"score": "sore"}, rm.ColumnError, "Did you mean 'score'"),
        ("user item score", {"score": False}, rm.InputTypeError, "score= must be the name"),
    ],
)
def test_columns_are_recognised_by_their_names(names, options, error, message):
    frame = pl.DataFrame({name: [1] for name in names.split()})
    if error is None:
        rm.Pairs(frame, **options)
    else:
        with pytest.raises(error, match=message):
            rm.Pairs(frame, **options)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: rm.Pairs.of([1, 0], [1, 2, 3]), ValueError, "relevance 2, scores 3"),
        (lambda: rm.Pairs.of([1, 0], [1, 2], [0]), ValueError, "scores 2, groups 1"),
        (lambda: rm.Pairs.of([[1, 0]], [[1, 2]]), rm.InputError, "must have one dimension"),
        (lambda: rm.Pairs.of(["a"], [1]), rm.InputTypeError, "relevance must be numbers"),
        (lambda: rm.Pairs.of([], []), rm.InputError, "Pairs has no rows"),
        (lambda: rm.Pairs.of([math.nan], [1]), rm.InputError, "None of the 1 rows .* has a true"),
        (lambda: rm.Pairs(pl.Series([1])), rm.InputTypeError, "cannot be read from Series. Hint"),
        (lambda: rm.Pairs({"user": [1]}), rm.InputTypeError, "converts a dict of columns"),
        (lambda: rm.Pairs([]), rm.InputTypeError, "cannot be read from list"),
        (
            lambda: rm.Pairs([Prediction(1, 2, 3, 4, {})]),
            rm.InputTypeError,
            r"pandas.DataFrame\(data\) converts .* Surprise's predictions",
        ),
        (
            lambda: rm.Pairs(pl.DataFrame({"user": [1], "item": [1], "score": [1]}), threshold=2),
            rm.InputError,
            "the rows have no labels",
        ),
    ],
)
def test_mismatched_arguments_are_refused(make, error, message):
    with pytest.raises(error, match=message):
        make()


# Tests of pairs with test and training data


def test_labels_come_from_either_the_pairs_or_test():
    frame = pl.DataFrame({"user": [1, 1], "item": [1, 2], "score": [1, 2], "relevance": [1, 0]})
    with pytest.raises(rm.InputError, match=r"test was passed, but .* contains the labels"):
        rm.evaluate(rm.Pairs(frame), {1: [1]})
    unlabelled = rm.Pairs(frame, relevance=False)
    assert rm.evaluate(unlabelled, {1: [1]}, metrics="rr")["rr"] == [1 / 2]
    with pytest.raises(rm.InputError, match="test is missing, and the source"):
        rm.evaluate(unlabelled)
    with pytest.raises(rm.InputError, match="test is missing"):
        rm.evaluate(rm.Scores(np.eye(2)))


def test_train_items_are_not_candidates():
    frame = pl.DataFrame(
        {
            "user": ["a", "a", "a", "b", "b", "b"],
            "item": [1, 2, 3, 1, 2, 3],
            "score": [3, 2, 1, 3, 2, 1],
            "relevance": [1, 0, 1, 1, 0, 0],
        }
    )
    result = rm.evaluate(rm.Pairs(frame), train={"a": [1, 9]}, metrics="rr")
    assert result["rr"].tolist() == [1 / 2, 1]
    assert result.n_candidates.tolist() == [2, 3]
    assert result.n_excluded.tolist() == [1, 0]
    assert result.counts["train_test_overlap"] == 1
    with pytest.raises(rm.InputError, match=r"these Pairs have no items\. Hint: pass item="):
        rm.evaluate(rm.Pairs(frame, item=False), train={"a": [1]})


def test_relevant_items_outside_the_candidates_count_as_misses():
    frame = pl.DataFrame({"user": [1, 1, 2], "item": [1, 2, 1], "score": [1, 2, 3]})
    result = rm.evaluate(rm.Pairs(frame), {1: [1, 7], 3: [1], 2: [2]}, metrics="recall@2 rr")
    assert result.counts["relevant_not_candidates"] == 1  # this is user 2's relevant item
    assert result.counts["relevant_unranked"] == 1  # item 7
    assert result.counts["users_unknown"] == 1
    # User 2 has too few candidates for rr to be defined.
    np.testing.assert_array_equal(result["rr"], [1 / 2, np.nan, 0])
    assert result["recall@2"][0] == 1 / 2
    repeated = pl.concat([frame, frame])
    with pytest.raises(rm.InputError, match="3 of the 6 rows of Pairs repeat a user-item pair"):
        rm.evaluate(rm.Pairs(repeated), {1: [1]})


def test_rating_metrics_read_only_candidates():
    """An item that is not a candidate adds no error and is not recommended, but can be relevant."""
    frame = pl.DataFrame(EXAMPLE)
    metrics = "rated_precision@2 rated_recall@2 mae fcp rr"
    for options in ({"exclude": ["5", "7"]}, {"candidates": ["10", "2", "2b", "1"]}):
        result = rm.evaluate(rm.Pairs(frame, threshold=3.5), metrics=metrics, **options)
        assert result.mean() == {
            "rated_precision@2": 1 / 2,
            "rated_recall@2": pytest.approx(1 / 3),
            "mae": pytest.approx((0.3 + 1.6 + 0.4 + 1.7) / 4),
            "fcp": pytest.approx(2 / 5),
            "rr": 1,
        }
        assert result.counts["relevant_not_candidates"] == 1
        assert result.over_rows["mae"] == result.mean()["mae"]
    with pytest.raises(rm.InputError, match=r"exclude= names items, but these Pairs have no items"):
        rm.evaluate(rm.Pairs(frame, item=False, threshold=3.5), metrics="rr", exclude=["5"])


def test_sampled_candidates_agree_with_scores():
    rng = np.random.default_rng(6)
    shape = (20, 30)
    scores = rng.random(shape)
    test = {user: rng.choice(30, 3, replace=False).tolist() for user in range(20)}
    train = {user: [item for item in range(5) if item not in test[user]] for user in range(20)}
    users, items = np.indices(shape).reshape(2, -1)
    ids = {"user_ids": range(20), "item_ids": range(30)}
    pairs, matrix = (
        rm.evaluate(
            source,
            test,
            train=train,
            candidates=rm.SampledCandidates(8, seed=3),
            metrics="recall@5 ap@5 ndcg@5",
        )
        for source in (
            rm.Pairs(pl.DataFrame({"user": users, "item": items, "score": scores.ravel()})),
            rm.Scores(scores, **ids),
        )
    )
    for name in matrix.values:
        np.testing.assert_array_equal(pairs[name], matrix[name], err_msg=name)
        assert not np.isnan(pairs[name]).any()


# Sources without ratings


@pytest.mark.parametrize("metric", reading("ratings"))
def test_rating_metrics_need_a_source_with_ratings(metric):
    cutoff = "" if reading("ratings")[metric].cutoff == "none" else "@2"
    for source, test in (
        (rm.Factors(np.eye(2), np.eye(2)), np.eye(2)),
        (rm.Pairs.of([1, 0], [2, 1]), None),
    ):
        message = rf"'{metric}{cutoff}' needs predicted and true .*\({type(source).__name__}: "
        with pytest.raises(rm.InputError, match=message):
            rm.evaluate(source, test, metrics=f"ndcg@1 {metric}{cutoff}")


def test_of_some_users_reads_only_named_columns():
    """Columns that the caller does not name are ignored, even if their names are common."""
    frame = pl.DataFrame(EXAMPLE).with_columns(relevance=pl.lit(7.0), weight=pl.lit(1.0))
    columns = {"user": "user", "item": "item", "score": "prediction", "rating": "rating"}
    result = rm.Pairs.of_some_users(frame, **columns, threshold=3.5)
    expected = rm.Pairs(pl.DataFrame(EXAMPLE), threshold=3.5)
    assert result.describe() == expected.describe()
    assert means(result, PREDICTED) == means(expected, PREDICTED)


@pytest.mark.parametrize(("nan_scores", "expected"), [("first", 1), ("last", 1 / 3)])
def test_nan_scores_are_ranked_by_their_rule(nan_scores, expected):
    pairs = rm.Pairs.of([0, 1, 0], [1.0, np.nan, 2.0])
    result = rm.evaluate(pairs, metrics="rr", nan_scores=nan_scores)
    assert result["rr"].tolist() == [pytest.approx(expected)]


def test_train_applies_to_the_right_rows_if_a_row_is_left_out():
    """Ann's item d is a training item, and item b is excluded; Bob's row for d must remain."""
    columns = {"user": ["ann"] * 3 + ["bob"] * 3, "item": list("acdbcd")}
    frame = pl.DataFrame(
        {**columns, "score": [3.0, 1, 2, 5, 4, 3], "relevance": [1, 0, 0, 0, 1, 0]}
    )
    result = rm.evaluate(rm.Pairs(frame), train={"ann": ["d"]}, exclude=["b"], metrics="rr")
    assert result["rr"].tolist() == [1, 1]
    assert result.n_candidates.tolist() == [2, 2]
    assert result.n_excluded.tolist() == [1, 0]


def test_repeated_rows_of_pairs_without_labels_follow_the_rule_for_test():
    columns = {"user": ["ann"] * 3, "item": list("xyz"), "score": [3.0, 2.0, 1.0]}
    test = pl.DataFrame({"user": ["ann"] * 2, "item": ["y", "y"]})
    pairs = rm.Pairs(pl.DataFrame(columns))
    with pytest.warns(rm.DataWarning, match="1 of 2 interactions repeat a user-item pair"):
        result = rm.evaluate(pairs, test, metrics="rr", repeated_test="joined")
    assert result["rr"].tolist() == [1 / 2]
    assert "train_test_overlap" not in result.counts
    labelled = rm.Pairs(pl.DataFrame({**columns, "relevance": [0, 1, 0]}))
    with pytest.warns(rm.DataWarning, match="repeated_test"):
        rm.evaluate(labelled, metrics="rr", repeated_test="joined")


def test_ratings_and_predictions_relative_to_a_users_mean_are_evaluated():
    """The test subtracts each user's mean rating: 3.5 for user a, and 3.75 for user b."""
    mean_of_user = pl.col("rating").mean().over("user")
    frame = pl.DataFrame(
        {
            "user": ["a"] * 4 + ["b"] * 4,
            "item": list("wxyz") * 2,
            "rating": [5, 4, 3, 2, 5, 4, 3, 3],
            "est": [4.5, 4.0, 3.8, 1.0, 3.0, 3.9, 2.0, 1.0],
        }
    ).with_columns(pl.col("rating") - mean_of_user, pl.col("est") - mean_of_user)
    values = means(rm.Pairs(frame, threshold=0), "rated_precision@4 rated_recall@4")
    assert values == {"rated_precision@4": (2 / 3 + 1) / 2, "rated_recall@4": (1 + 1 / 2) / 2}


def test_description_states_the_threshold():
    columns = {"user": ["ann", "bob"], "item": ["x", "x"], "rating": [1, 2], "score": [1, 2]}
    pairs = rm.Pairs(pl.DataFrame(columns), threshold=2)
    assert pairs.describe().endswith("1 items, true ratings, relevant if at least 2")


def test_low_scores_count_as_misses():
    """`score_above` turns hits with low scores into misses, for rows in any order."""
    columns = {"user": ["ann"] * 3, "item": list("xyz"), "score": [0.5, 3.0, 2.0]}
    frame = pl.DataFrame(columns)
    for above, expected in ((0, 2 / 2), (1, 1 / 2), (2.5, 0)):
        result = rm.evaluate(
            rm.Pairs(frame), {"ann": ["x", "z"]}, metrics="recall@3", score_above=above
        )
        assert result["recall@3"].tolist() == [expected]
        labelled = rm.Pairs(frame.with_columns(relevance=pl.Series([1, 0, 1])))
        result = rm.evaluate(labelled, metrics="recall@3", score_above=above)
        assert result["recall@3"].tolist() == [expected]


def test_group_sizes_are_read_like_those_of_lightgbm() -> None:
    label, score = [1, 0, 1, 0, 1], [0.1, 0.9, 0.5, 0.4, 0.3]
    sized = rm.Pairs.of(label, score, sizes=[2, 0, 3])
    result = rm.evaluate(sized, metrics="rr")
    assert result["rr"].tolist() == [0.5, 1.0]
    assert result.user_ids.tolist() == [0, 2]
    with pytest.raises(rm.InputError, match="Hint: groups= takes the user of each row; sizes="):
        rm.Pairs.of(label, score, [2, 3])
    with pytest.raises(rm.InputError, match="The groups have 4 rows, but there are 5 labels"):
        rm.Pairs.of(label, score, sizes=[2, 2])
    with pytest.raises(rm.InputError, match="not both"):
        rm.Pairs.of(label, score, [0, 0, 1, 1, 1], sizes=[2, 3])


def test_mean_is_nan_if_all_scores_are_nan_and_the_rule_allows_it() -> None:
    all_nan = np.full((2, 3), np.nan)
    pairs = rm.Pairs.of([1, 0, 1, 0], [np.nan] * 4, [0, 0, 1, 1])
    for source, test in ((rm.Scores(all_nan), np.eye(2, 3)), (pairs, None)):
        with pytest.raises(rm.InputError, match="nan_scores='undefined_for_all' gives a mean of"):
            rm.evaluate(source, test, metrics="rr")
        with pytest.warns(rm.DataWarning, match="undefined for all 2 users"):
            result = rm.evaluate(source, test, metrics="rr", nan_scores="undefined_for_all")
        assert np.isnan(result.mean()["rr"])

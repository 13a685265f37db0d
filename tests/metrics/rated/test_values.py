"""Rating metrics match their formulas, and are undefined in the documented cases."""

from __future__ import annotations

import itertools
import math

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from measured import compute, record_users
from rating_definitions import rating_by_definition

import recometer as rm
from recometer.metrics import Metric, parse, reading
from recometer.testing import rank

RATINGS = reading("ratings")
EVERY = [
    metric
    for name, definition in RATINGS.items()
    if definition.needs != "probabilities"
    for metric in parse(name if definition.cutoff == "none" else f"{name}@1..4")
]
ERRORS = [
    name
    for name, definition in RATINGS.items()
    if definition.reads == "gain" and name != "log_loss"
]
STARS = [1.0, 2.0, 3.0, 4.0, 5.0]


@st.composite
def frames(draw, max_users=4, ratings=STARS, predictions=(*STARS, 3.7, -0.3)):
    """Draw rows for a few users, with ties; the last user has enough rows for all cut-offs."""
    n = draw(st.integers(0, 12))
    user = draw(st.lists(st.integers(0, max_users - 2), min_size=n, max_size=n))
    user += [max_users - 1] * draw(st.integers(4, 7))
    rows = st.lists(
        st.tuples(st.sampled_from(ratings), st.sampled_from(predictions)),
        min_size=len(user),
        max_size=len(user),
    )
    true, predicted = zip(*draw(rows), strict=True)
    return pl.DataFrame(
        {"user": user, "item": range(len(user)), "rating": true, "score": predicted}
    )


def evaluate_ratings(frame, metrics=EVERY, threshold=3.5, **rules):
    """Evaluate a data frame; to convert it only once, callers can pass it as `Pairs`."""
    pairs = frame if isinstance(frame, rm.Pairs) else rm.Pairs(frame, threshold=threshold)
    return rm.evaluate(pairs, metrics=metrics, threads=1, **rules)


def table(result):
    return np.column_stack(list(result.values.values()))


def arrays(frame):
    """Yield each user's id, true ratings and predicted ratings, in the order of the result."""
    for (user,), rows in frame.sort("user").group_by("user", maintain_order=True):
        yield user, rows["rating"].to_numpy(), rows["score"].to_numpy()


@given(frames())
def test_errors_match_their_formulas(frame):
    result = evaluate_ratings(frame, ERRORS)
    for place, (_, true, predicted) in enumerate(arrays(frame)):
        for name in ERRORS:
            expected = rating_by_definition(Metric(name), predicted, true, 3.5)
            assert result[name][place] == pytest.approx(expected, rel=1e-12, abs=1e-12, nan_ok=True)


@given(frames())
def test_errors_over_all_rows_match_their_formulas(frame):
    result = evaluate_ratings(frame, ERRORS).over_rows
    true, predicted = frame["rating"].to_numpy(), frame["score"].to_numpy()
    for name in set(ERRORS) - {"fcp"}:
        expected = rating_by_definition(Metric(name), predicted, true, 3.5)
        assert result[name] == pytest.approx(expected, rel=1e-12, abs=1e-12, nan_ok=True)
    pairs, right = 0, 0
    for _, true, predicted in arrays(frame):
        for i, j in itertools.permutations(range(len(true)), 2):
            pairs += true[i] < true[j]
            right += true[i] < true[j] and predicted[i] < predicted[j]
    assert result["fcp"] == pytest.approx(right / pairs if pairs else math.nan, nan_ok=True)


@given(frames(), st.sampled_from([0.0, 2.0, 3.7, 9.0]))
def test_precision_and_recall_are_means_over_the_orders_of_ties(frame, threshold):
    result = evaluate_ratings(frame, "rated_precision@1..4 rated_recall@1..4", threshold)
    for place, (_, true, predicted) in enumerate(arrays(frame)):
        values = []
        for order in orders(predicted):
            recommended_and_relevant = np.cumsum(
                (true >= threshold)[order] & (predicted >= threshold)[order]
            )
            recommended = np.cumsum((predicted >= threshold)[order])
            ks = np.minimum(np.arange(1, 5), len(order)) - 1
            relevant = (true >= threshold).sum()
            with np.errstate(invalid="ignore"):
                values.append(
                    np.r_[
                        recommended_and_relevant[ks] / recommended[ks],
                        recommended_and_relevant[ks] / relevant,
                    ]
                )
        np.testing.assert_allclose(
            table(result)[place], np.mean(values, axis=0), rtol=1e-12, atol=1e-12
        )


def orders(predicted):
    """Return a few orders of tied rows over which a metric has the same mean as over all orders."""
    groups = [np.flatnonzero(predicted == value) for value in sorted(set(predicted))[::-1]]
    # Rotating a group puts each row in each place equally often. Precision and recall are sums over
    # the first rows, so the mean over rotations equals the mean over all orders.
    parts = [[np.roll(group, shift) for shift in range(len(group))] for group in groups]
    n = math.lcm(*(len(part) for part in parts))
    return [np.concatenate([part[i % len(part)] for part in parts]) for i in range(n)]


@given(frames(), st.randoms(use_true_random=False))
def test_item_ids_and_order_of_rows_do_not_change_values(frame, random):
    order = list(range(len(frame)))
    random.shuffle(order)
    shuffled = frame[order]
    expected = table(evaluate_ratings(frame))
    assert table(evaluate_ratings(shuffled)).tobytes() == expected.tobytes()
    renamed = shuffled.with_columns(item=pl.col("item").reverse())
    np.testing.assert_allclose(table(evaluate_ratings(renamed)), expected, rtol=1e-14)


@given(frames())
def test_perfect_predictions_get_the_best_possible_values(frame):
    result = evaluate_ratings(frame.with_columns(score="rating"), ERRORS)
    for name in ERRORS:
        perfect = 0 if RATINGS[name].upper == math.inf else 1
        assert (np.isnan(result[name]) | (result[name] == perfect)).all()


@given(frames(), st.sampled_from([0.5, 4.0]), st.integers(-3, 3))
def test_errors_scale_with_the_ratings(frame, slope, shift):
    """Scaling and shifting the ratings and the threshold scales errors and changes nothing else."""
    scaled = frame.with_columns(pl.col("rating", "score") * slope + shift)
    before = evaluate_ratings(frame)
    after = evaluate_ratings(scaled, threshold=3.5 * slope + shift)
    power = {"rmse": 1, "mae": 1, "mse": 2}
    for metric in EVERY:
        factor = slope ** power.get(metric.name, 0)
        np.testing.assert_allclose(after[metric], before[metric] * factor, rtol=1e-10, atol=1e-10)


@given(frames(predictions=STARS), st.sampled_from([np.exp, np.cbrt]))
def test_concordance_depends_only_on_the_order(frame, change):
    changed = frame.with_columns(score=change(frame["score"].to_numpy()))
    np.testing.assert_array_equal(
        evaluate_ratings(changed, "fcp")["fcp"], evaluate_ratings(frame, "fcp")["fcp"]
    )


def test_concordance_of_many_rows_counts_all_pairs():
    rng = np.random.default_rng(3)
    n = 3_000
    true, predicted = rng.integers(0, 700, n), rng.integers(0, 900, n)
    frame = pl.DataFrame({"user": [1] * n, "item": range(n), "rating": true, "score": predicted})
    lower = true[:, None] < true
    expected = (lower & (predicted[:, None] < predicted)).sum() / lower.sum()
    assert evaluate_ratings(frame, "fcp")["fcp"] == [expected]


def rows(*pairs):
    """Return rows with these (true, predicted) ratings for one user, and fixed rows for another."""
    special, plain = list(pairs), [(5, 4), (3, 3), (1, 2), (2, 2)]
    return pl.DataFrame(
        {
            "user": ["a"] * len(special) + ["b"] * len(plain),
            "item": range(len(special) + len(plain)),
            "rating": [float(true) for true, _ in special + plain],
            "score": [float(predicted) for _, predicted in special + plain],
        }
    )


CONSTANT = {
    "rated_roc_auc": rm.Reason.ONE_KIND,
    "r2": rm.Reason.NO_VARIANCE,
    "explained_variance": rm.Reason.NO_VARIANCE,
    "fcp": rm.Reason.NO_PAIRS,
}


@pytest.mark.parametrize(
    ("frame", "reasons"),
    [
        (rows((4, 4)), CONSTANT),
        (rows((3.3, 4), (3.3, 3), (3.3, 2)), CONSTANT | {"rated_recall": rm.Reason.NO_RELEVANT}),
        (rows((4, 1), (2, 3)), {"rated_precision": rm.Reason.NOTHING_RECOMMENDED}),
        (rows((4, math.inf), (2, 3)), dict.fromkeys(RATINGS, rm.Reason.INFINITE_SCORE)),
        (rows((4, -math.inf), (2, 4)), dict.fromkeys(ERRORS, rm.Reason.INFINITE_SCORE)),
        (rows((4, math.nan), (2, 3)), dict.fromkeys(RATINGS, rm.Reason.NAN_SCORE)),
        (rows((math.inf, 4), (2, 3)), dict.fromkeys(ERRORS, rm.Reason.GAIN_NOT_FINITE)),
        (rows((1e200, 4), (2, 3)), dict.fromkeys(ERRORS, rm.Reason.GAIN_NOT_FINITE)),
        (rows((4, 1e200), (2, 3)), dict.fromkeys(ERRORS, rm.Reason.GAIN_NOT_FINITE)),
        (rows((1e120, 4), (2, 3)), {}),
        (rows((4, 1e120), (2, 3)), {}),
    ],
)
def test_undefined_rating_metrics_have_a_reason(frame, reasons):
    result = evaluate_ratings(frame)
    for metric in EVERY:
        expected_reason = reasons.get(metric.name, rm.Reason.DEFINED)
        assert result.reasons[str(metric)].tolist() == [expected_reason, 0], str(metric)
        assert np.isnan(result[metric]).tolist() == [expected_reason != 0, False], str(metric)
    assert all(math.isfinite(value) for value in result.over_rows.values())


def test_ranking_rules_do_not_apply_to_ratings():
    """Rating metrics are defined for users with a single row or with equal predictions."""
    with pytest.warns(
        rm.DataWarning, match="The rule min_.*=9 changes nothing here: rating metrics need"
    ):
        result = evaluate_ratings(
            rows((4, 4)), "mae rated_precision@1", min_candidates=9, min_positives=9
        )
    assert not np.isnan(table(result)).any()
    result = evaluate_ratings(rows((4, 4), (3, 4)), "mae rated_precision@1")
    np.testing.assert_array_equal(table(result)[0], [0.5, 0.5])


@pytest.mark.filterwarnings("ignore:None of the test users. training items is in Pairs")
def test_rule_cold_start_applies_to_rating_metrics():
    result = rm.evaluate(
        rm.Pairs(rows((4, 4), (2, 4)), threshold=3.5),
        train={"a": [99]},
        metrics="mae rated_precision@1",
        cold_start=False,
    )
    assert result.reasons["mae"].tolist() == [0, rm.Reason.COLD_START]
    assert result.reasons["rated_precision@1"].tolist() == [0, rm.Reason.COLD_START]


@pytest.mark.parametrize("threshold", [3.5, None])
def test_users_without_valid_rows_do_not_count(threshold):
    frame = pl.DataFrame({"user": [1], "item": [1], "rating": [5], "score": [math.nan]})
    extended = pl.concat(
        [frame, pl.DataFrame({"user": [2], "item": [1], "rating": [5], "score": [4.0]})]
    )
    assert evaluate_ratings(extended, "mae r2 fcp", threshold).over_rows == {
        "mae": 1.0,
        "r2": pytest.approx(math.nan, nan_ok=True),
        "fcp": pytest.approx(math.nan, nan_ok=True),
    }


def test_explained_variance_of_constant_rows_is_undefined():
    frame = pl.DataFrame(
        {"user": [1, 2, 3], "item": [1, 1, 1], "rating": [0.1] * 3, "score": [0.3, 0.2, 0.1]}
    )
    result = evaluate_ratings(frame, "r2 explained_variance", threshold=None).over_rows
    assert list(map(math.isnan, result.values())) == [True, True]
    without_predictions = evaluate_ratings(
        frame.with_columns(score=math.nan), "r2 explained_variance"
    ).over_rows
    assert list(map(math.isnan, without_predictions.values())) == [True, True]


def test_rating_metrics_are_saved_and_printed(tmp_path):
    result = evaluate_ratings(rows((4, 3.5), (2, 3)), "rmse mae ndcg@2")
    result.save(tmp_path / "ratings.parquet")
    loaded = rm.load(tmp_path / "ratings.parquet")
    assert loaded.over_rows == result.over_rows
    assert set(result.over_rows) == {"rmse", "mae"}
    users = result.mean("users")
    message = (
        f"over the rows of all users: rmse, mae (mean over users: rmse {users['rmse']:.4f} mae"
    )
    assert message in str(result)
    assert message in str(loaded)
    assert loaded.mean() == result.mean()
    assert loaded.interval("rmse") == result.interval("rmse")


def test_values_do_not_depend_on_blocks(monkeypatch):
    rng = np.random.default_rng(4)
    n = 200
    frame = pl.DataFrame(
        {
            "user": rng.integers(0, 23, n),
            "item": range(n),
            "rating": rng.integers(1, 6, n),
            "score": rng.integers(1, 6, n) / 1.1,
        }
    )
    expected = table(evaluate_ratings(frame))
    monkeypatch.setattr("recometer.measuring.ranked.BLOCK_USERS", 3)
    assert table(evaluate_ratings(frame)).tobytes() == expected.tobytes()


def test_rating_metrics_need_ratings():
    with pytest.raises(rm.InternalError, match="'mae' was requested without ratings"):
        compute(record_users(rank([2, 1], [1, math.nan])), [Metric("mae")], rm.Protocol())


def test_errors_are_averaged_over_rows():
    """One user has three rows with an error of 1, and another has one row with an error of 3."""
    frame = pl.DataFrame(
        {
            "user": ["a", "a", "a", "b"],
            "item": [1, 2, 3, 1],
            "rating": [1.0, 2.0, 3.0, 1.0],
            "score": [2.0, 3.0, 4.0, 4.0],
        }
    )
    result = evaluate_ratings(frame, "rmse mae rated_recall@1")
    assert result.mean()["mae"] == 1.5
    assert result.mean()["rmse"] == pytest.approx(math.sqrt(3))
    assert result.mean("users")["mae"] == 2.0
    assert evaluate_ratings(frame, "mae", average="users").mean() == {"mae": 2.0}
    assert [row.mean for row in result.summary()][:2] == list(result.mean().values())[:2]
    low, high = result.interval("mae")
    assert 0 <= low < 1.5 < high


def test_rows_of_users_with_undefined_values_count():
    frame = rows((4, 4))
    result = evaluate_ratings(frame, "r2")
    (row,) = result.summary()
    assert (row.counted, row.skipped, dict(row.reasons)) == (2, 0, {})
    assert row.mean == pytest.approx(
        rating_by_definition(Metric("r2"), frame["score"].to_list(), frame["rating"].to_list(), 3.5)
    )
    assert np.isnan(result["r2"][0])


def test_errors_of_groups_average_over_their_rows():
    frame = rows((5, 1), (4, 2))
    result = evaluate_ratings(frame, "rmse fcp")
    groups = result.by(["x", "y"])
    for row in groups.rows:
        separate = evaluate_ratings(frame.filter(user="a" if row.group == "x" else "b"), "rmse fcp")
        assert row.mean == pytest.approx(separate.mean()[row.metric])


def test_error_metrics_are_compared_over_rows(tmp_path):
    frame = rows((5, 1), (4, 2))
    better = frame.with_columns(score="rating")
    models = {"one": evaluate_ratings(frame, "rmse"), "two": evaluate_ratings(better, "rmse")}
    row = rm.compare(models).row("rmse", "one")
    assert row.mean == models["one"].mean()["rmse"]
    assert row.mean_other == 0
    assert [standing.model for standing in rm.compare(models).standings] == ["two", "one"]
    assert rm.compare(models).standings[1].mean == models["one"].mean()["rmse"]


def test_saved_result_reports_missing_rows(tmp_path):
    result = evaluate_ratings(rows((5, 1), (4, 2)), "rmse")
    result.save(tmp_path / "ratings.parquet")
    groups = rm.load(tmp_path / "ratings.parquet").by(["x", "y"])
    assert all(math.isnan(row.mean) for row in groups.rows)
    assert "mean(weights='users') is the mean over users" in str(groups).replace("\n  ", " ")


PROBABILITIES = [0.0, 0.125, 0.5, 0.75, 1.0]


@given(frames(ratings=[0.0, 1.0], predictions=PROBABILITIES))
def test_classification_metrics_match_their_formulas(frame):
    """As in scikit-learn, ROC-AUC counts ties half, and log loss clips probabilities of 0 and 1."""
    result = evaluate_ratings(frame, "log_loss rated_roc_auc", threshold=None)
    definitions = {name: Metric(name) for name in ("log_loss", "rated_roc_auc")}
    for name, metric in definitions.items():
        expected = [
            rating_by_definition(metric, predicted, true, 1.0)
            for _, true, predicted in arrays(frame)
        ]
        np.testing.assert_allclose(result[name], expected, rtol=1e-12, atol=1e-15)
        all_rows = frame["score"].to_list(), frame["rating"].to_list()
        pooled = rating_by_definition(metric, *all_rows, 1.0)
        assert result.mean()[name] == pytest.approx(pooled, rel=1e-12, abs=1e-15, nan_ok=True)


def test_certain_correct_predictions_have_almost_no_loss():
    """As in scikit-learn, a probability of 1 is clipped, so its loss is slightly above 0."""
    frame = pl.DataFrame({"user": [1], "item": [1], "rating": [1.0], "score": [1.0]})
    result = evaluate_ratings(frame, "log_loss", threshold=None)["log_loss"]
    assert result == pytest.approx(np.finfo(np.float64).eps, rel=1e-9, abs=0)


def test_averaged_concordance_counts_users_with_ordered_pairs():
    """User a has three concordant pairs, user b has one, and user c has one discordant pair."""
    frame = pl.DataFrame(
        {
            "user": [*"aaabbcc"],
            "item": [1, 2, 3, 1, 2, 1, 2],
            "rating": [1.0, 2.0, 3.0, 1.0, 2.0, 1.0, 2.0],
            "score": [1.0, 2.0, 3.0, 1.0, 2.0, 2.0, 1.0],
        }
    )
    assert evaluate_ratings(frame, "fcp fcp(averaged)").mean() == {
        "fcp": 4 / 5,
        "fcp(averaged)": 2 / (2 + 1),
    }


def test_log_loss_needs_probabilities():
    result = evaluate_ratings(rows((1, 0.5), (0, 1.5)), "log_loss mae", threshold=None)
    assert result.reasons["log_loss"].tolist() == [rm.Reason.NOT_PROBABILITY] * 2
    assert math.isnan(result.mean()["log_loss"])


def test_only_recall_is_computed_without_a_relevant_row():
    frame = pl.DataFrame(
        {"user": ["a", "a"], "item": [1, 2], "rating": [2.0, 3.0], "score": [1.0, 2.0]}
    )
    metrics = parse("rated_recall@2 rated_precision@2 rated_roc_auc")
    result = evaluate_ratings(frame, metrics, no_relevant="computed")
    np.testing.assert_array_equal(table(result), [[0.0, np.nan, np.nan]])
    assert [int(codes[0]) for codes in result.reasons.values()] == [
        0,
        rm.Reason.NOTHING_RECOMMENDED,
        rm.Reason.ONE_KIND,
    ]

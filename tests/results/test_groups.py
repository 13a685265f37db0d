"""Tests of `Evaluation.by`, which groups users, and of the weights of `Evaluation.mean`."""

from __future__ import annotations

import dataclasses
import math
import pathlib
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import recometer as rm
from recometer.stats import interval as interval_of

METRICS = "rr precision@2 recall@2 roc_auc"


def evaluation(seed: int = 0, n_users: int = 24, n_items: int = 9, **options: Any) -> rm.Evaluation:
    generator = np.random.default_rng(seed)
    scores = generator.random((n_users, n_items))
    test = (generator.random((n_users, n_items)) < 0.3).astype(float)
    test[0], test[1, :2] = 0, 1
    train = (generator.random((n_users, n_items)) < 0.3).astype(float)
    train[2] = 0
    return rm.evaluate(rm.Scores(scores), test, train=train, metrics=METRICS, **options)


def means_of_groups(result: rm.Evaluation, labels: list[Any], metric: str) -> dict[str, float]:
    groups: dict[str, list[float]] = {}
    for label, value in zip(labels, result[metric].tolist(), strict=True):
        if label is not None and not math.isnan(value):
            groups.setdefault(str(label), []).append(value)
    return {label: float(np.mean(values)) for label, values in groups.items()}


def forms_of_groups(labels: list[str], users: list[Any]) -> dict[str, Any]:
    return {
        "list": labels,
        "array": np.array(labels),
        "dict": dict(zip(users, labels, strict=True)),
        "reversed dict": dict(zip(users[::-1], labels[::-1], strict=True)),
        "pandas": pd.DataFrame({"user_id": users, "country": labels}),
        "polars": pl.DataFrame({"user_id": users[::-1], "country": labels[::-1]}),
        "arrow": pl.DataFrame({"user_id": users, "country": labels}).to_arrow(),
    }


@pytest.mark.parametrize("form", forms_of_groups([], []))
def test_groups_may_have_any_form(form: str) -> None:
    generator = np.random.default_rng(5)
    users = [f"u{number}" for number in range(30)]
    scores = rm.Scores(generator.random((30, 6)), user_ids=users, item_ids=list("abcdef"))
    test_items = generator.choice(list("abcdef"), 30)
    test = {user: [str(item)] for user, item in zip(users, test_items, strict=True)}
    result = rm.evaluate(scores, test, metrics="rr recall@2")
    labels = generator.choice(["no", "se", "dk"], 30).tolist()
    ids_of_users = [str(user) for user in result.user_ids]
    segments = result.by(forms_of_groups(labels, ids_of_users)[form])
    assert segments.groups == ("dk", "no", "se")
    for metric in ("rr", "recall@2"):
        means = {row.group: row.mean for row in segments.rows if row.metric == metric}
        expected = means_of_groups(result, labels, metric)
        assert means == pytest.approx(expected)
        assert segments.gap()[metric] == pytest.approx(max(means.values()) - min(means.values()))
        assert segments.ratio()[metric] == pytest.approx(min(means.values()) / max(means.values()))
    assert segments.left_out == 0


@given(st.lists(st.sampled_from([None, "x", "y", "z"]), min_size=24, max_size=24), st.booleans())
def test_values_of_a_group_equal_an_evaluation_of_its_users(
    labels: list[str | None], pooled: bool
) -> None:
    result = evaluation()
    present = sorted({label for label in labels if label is not None})
    if not present:
        with pytest.raises(rm.InputError, match="None of the 24 users has a group"):
            result.by(labels)
        return
    metrics = "precision@2 recall@2"
    result = evaluation()
    if pooled:
        result = rm.evaluate(*_inputs(), metrics=metrics, average="pooled")
    segments = result.by(labels)
    assert segments.groups == tuple(present)
    assert segments.left_out == labels.count(None)
    sizes = {row.group: row.users for row in segments.rows}
    assert sizes == {label: labels.count(label) for label in present}
    for label in present:
        places = [place for place, user_label in enumerate(labels) if user_label == label]
        rows = result.of_users(places).summary()
        rows_of_group = [row for row in segments.rows if row.group == label]
        for actual, expected in zip(rows_of_group, rows, strict=True):
            for name in ("metric", "mean", "low", "high", "counted"):
                np.testing.assert_equal(getattr(actual, name), getattr(expected, name))


def _inputs() -> tuple[rm.Scores, np.ndarray]:
    generator = np.random.default_rng(1)
    return rm.Scores(generator.random((24, 9))), (generator.random((24, 9)) < 0.3).astype(float)


def test_activity_and_popularity_are_computed_from_train() -> None:
    train = {"a": ["p", "q", "r"], "b": ["p"], "c": ["p", "q"], "stranger": ["q"]}
    test = {"a": ["s"], "b": ["s"], "c": ["s"], "new": ["s"]}
    scores = rm.Scores(np.ones((4, 4)) * [4, 3, 2, 1], user_ids=["a", "b", "c", "new"],
                       item_ids=list("pqrs"))  # fmt: skip
    result = rm.evaluate(scores, test, train=train, metrics="rr")
    assert list(result.user_ids) == ["a", "b", "c", "new"]
    np.testing.assert_array_equal(result.activity, [3, 1, 2, 0])
    np.testing.assert_allclose(result.popularity, [(3 + 3 + 1) / 3, 3, 3, np.nan])
    segments = result.by("activity", quantiles=2)
    assert segments.groups == ("activity 0 to 1", "activity 2 to 3")
    segments = result.by("popularity", quantiles=2)
    assert segments.groups == ("popularity 2.33333 to 3",)
    assert segments.left_out == 1
    assert "users without a group (left out): 1" in str(segments)


@pytest.mark.parametrize("name", ["activity", "popularity"])
@pytest.mark.parametrize("quantiles", [2, 3, 5])
def test_quantiles_keep_equal_values_together(name: str, quantiles: int) -> None:
    result = evaluation(n_users=200)
    segments = result.by(name, quantiles=quantiles)
    assert 2 <= len(segments.groups) <= quantiles
    users = sum(row.users for row in segments.rows if row.metric == "rr")
    assert users + segments.left_out == 200
    largest = max(row.users for row in segments.rows)
    values = getattr(result, name)
    assert largest <= 200 / quantiles + np.unique(values, return_counts=True)[1].max()


def test_activity_and_popularity_survive_saving(tmp_path: pathlib.Path) -> None:
    result = evaluation()
    result.save(tmp_path / "run.parquet")
    loaded = rm.load(tmp_path / "run.parquet")
    np.testing.assert_array_equal(loaded.activity, result.activity)
    np.testing.assert_array_equal(loaded.popularity, result.popularity)
    assert str(loaded.by("activity")) == str(result.by("activity"))


def test_segments_are_shown_as_text_table_and_frame() -> None:
    segments = evaluation().by(["x", "y"] * 12)
    assert "gap" in str(segments)
    assert "<table>" in segments._repr_html_()
    frame = segments.frame()
    names = ["metric", "group", "users", "mean", "low", "high", "counted", "method", "note"]
    assert frame.columns == names
    assert len(frame) == 2 * 4
    assert repr(segments) == "<Segments: 2 groups of users, 4 metrics>"


@pytest.mark.parametrize(
    ("groups", "options", "error", "message"),
    [
        (["x"] * 23, {}, rm.InputError, "groups has 23 entries, but there are 24 users"),
        ("activitty", {}, rm.InputError, "'activity', 'popularity'"),
        ("activity", {"quantiles": 1}, rm.InputError, "quantiles=1 must be a whole number"),
        (7, {}, rm.InputTypeError, "groups is of type int"),
        (["x"] * 24, {"column": "country"}, rm.InputTypeError, "columns of a data frame"),
        (
            pl.DataFrame({"user": range(24), "a": range(24), "b": range(24)}),
            {},
            rm.ColumnError,
            "Which column holds the groups.*'a', 'b'",
        ),
        (
            pl.DataFrame({"user": range(24), "a": range(24)}),
            {"column": "c"},
            rm.ColumnError,
            "There is no column 'c'",
        ),
        (pl.DataFrame({"user": [1, 1], "a": [1, 2]}), {}, rm.InputError, "1 occurs twice"),
        ({1000: "x"}, {}, rm.InputError, "None of the 24 users has a group"),
    ],
)
def test_mismatched_groups_are_refused(
    groups: Any, options: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        evaluation().by(groups, **options)


def test_activity_needs_train() -> None:
    result = rm.evaluate(*_inputs(), metrics="rr")
    assert result.activity is None
    with pytest.raises(rm.InputError, match="there are no training data"):
        result.by("activity")


def test_pooled_means_divide_sums() -> None:
    source, test = _inputs()
    names = "precision@3 precision@3(denominator=min) tprecision@3 recall@3 rprecision accuracy@3"
    result = rm.evaluate(source, test, metrics=f"{names} hits@3 ap@3(denominator=k)", ties="item")
    defined = ~np.isnan(result["hits@3"])
    hits, relevant = result["hits@3"][defined], result.n_relevant[defined]
    possible = np.minimum(relevant, 3)
    pooled = result.of_users(np.flatnonzero(defined))
    with pytest.raises(rm.InputError, match=r"There is no pooled mean of 'hits@3'.*recall"):
        pooled.mean("pooled")
    without_recall = rm.evaluate(source, test, metrics=f"{names} ap@3(denominator=k)", ties="item")
    means = without_recall.mean("pooled")
    assert means["precision@3"] == pytest.approx(hits.mean() / 3)
    assert means["recall@3"] == pytest.approx(hits.sum() / relevant.sum())
    assert means["tprecision@3"] == pytest.approx(hits.sum() / possible.sum())
    assert means["precision@3(denominator=min)"] == pytest.approx(hits.sum() / possible.sum())
    assert means["ap@3(denominator=k)"] == pytest.approx(
        without_recall.mean()["ap@3(denominator=k)"]
    )
    with pytest.raises(rm.InputError, match="no pooled mean of 'precision'"):
        rm.evaluate(source, test, metrics="precision").mean("pooled")


def test_means_accept_custom_weights() -> None:
    result = evaluation()
    weights = np.arange(24.0)
    defined = ~np.isnan(result["rr"])
    expected = np.average(result["rr"][defined], weights=weights[defined])
    assert result.mean(weights)["rr"] == pytest.approx(expected)
    assert result.mean(np.ones(24)) == pytest.approx(result.mean())
    for wrong in (np.ones(23), -np.ones(24), np.full(24, np.nan)):
        with pytest.raises(rm.InputError, match="weights must be 24 finite numbers"):
            result.mean(wrong)


@pytest.mark.parametrize("interval", ["gaffke", "t", "percentile", "bca"])
def test_intervals_of_weighted_means_ignore_the_scale_of_weights(interval: str) -> None:
    result = evaluation(interval=interval, average="relevant")
    doubled = dataclasses.replace(result, n_relevant=2 * result.n_relevant)
    lows = [row.low for row in doubled.summary()]
    np.testing.assert_allclose(lows, [row.low for row in result.summary()])
    for row in result.summary():
        assert row.low < row.mean < row.high
        assert tuple(result.interval(row.metric)) == (row.low, row.high)


def test_intervals_of_weighted_means_cover_the_true_mean() -> None:
    generator = np.random.default_rng(3)
    covered = {"t": 0, "percentile": 0}
    for _ in range(200):
        weights = generator.integers(1, 6, 80).astype(float)
        # Values are u * w with a uniform u, so the weighted mean is E[w²] E[u] / E[w] = (11 / 2) /
        # 3.
        values = generator.random(80) * weights
        for kind in covered:
            low, high = interval_of(values, kind, confidence=0.9, weights=weights)
            covered[kind] += low <= 11 / 6 <= high
    assert min(covered.values()) > 165
    assert max(covered.values()) < 195


def test_loaded_result_reports_metrics_that_it_cannot_recompute(tmp_path) -> None:
    lists, test = {"ann": ["x", "y"], "bob": ["y", "z"]}, {"ann": ["x"], "bob": ["y"]}
    result = rm.evaluate(rm.Lists(lists), test, metrics="recall@1 coverage@2", catalogue=4)
    groups = {"ann": "new", "bob": "old"}
    assert result.by(groups).not_kept == ()
    result.save(tmp_path / "result.parquet")
    saved = rm.load(tmp_path / "result.parquet").by(groups)
    assert saved.not_kept == ("coverage@2",)
    assert "left out, because there is one value for all users: coverage@2" in str(saved)


def test_popularity_needs_users_with_train_items() -> None:
    source = rm.Scores(np.arange(6.0).reshape(2, 3), user_ids=["ann", "bob"], item_ids=[1, 2, 3])
    test = {"ann": [1], "bob": [3]}
    with pytest.warns(rm.DataWarning, match="train has none of the 2 test users"):
        result = rm.evaluate(source, test, train={"eve": [2]}, metrics="rr")
    with pytest.raises(rm.InputError, match="none of the 2 users has any"):
        result.by("popularity")
    assert [row.users for row in result.by("activity").rows] == [2]


CLUSTERS = np.arange(60) // 6


def evaluate_clustered_users(**options: Any) -> rm.Evaluation:
    """Return an evaluation in which the users of a cluster have similar values."""
    generator = np.random.default_rng(3)
    test = generator.random((60, 20)) < 0.2
    strength = generator.random(10)[CLUSTERS, None]
    scores = rm.Scores(generator.random((60, 20)) + strength * test)
    return rm.evaluate(scores, test, metrics="ndcg@5 gini@5", **options)


def test_intervals_are_over_whole_clusters(tmp_path: pathlib.Path) -> None:
    result = evaluate_clustered_users()
    plain, coverage = result.summary()
    row, coverage_row = result.summary(cluster=CLUSTERS)
    defined = ~np.isnan(result["ndcg@5"])
    expected = interval_of(result["ndcg@5"][defined], clusters=CLUSTERS[defined], bounds=(0, 1))
    assert (row.low, row.high) == pytest.approx(tuple(expected))
    assert row.mean == plain.mean
    assert row.high - row.low > plain.high - plain.low
    assert (coverage_row.low, coverage_row.high) != (coverage.low, coverage.high)
    assert coverage_row.mean == coverage.mean
    for cluster_form in (
        dict(enumerate(CLUSTERS.tolist())),
        pl.DataFrame({"user_id": range(60), "person": CLUSTERS}),
    ):
        assert result.summary(cluster=cluster_form) == [row, coverage_row]
    for kind in ("t", "percentile", "bca"):
        other = dataclasses.replace(result, protocol=result.protocol.replace(interval=kind))
        requested_row = other.summary(cluster=CLUSTERS)[0]
        assert requested_row.high - requested_row.low > plain.high - plain.low
    # A loaded evaluation contains no lists, so clusters cannot be resampled. The saved interval
    # comes from resampled users, so it must not be shown instead.
    result.save(tmp_path / "result.parquet")
    loaded = rm.load(tmp_path / "result.parquet").summary(cluster=CLUSTERS)
    assert loaded[0] == row
    assert math.isnan(loaded[1].low)
    assert loaded[1].note


def test_intervals_of_groups_are_over_clusters() -> None:
    result = evaluate_clustered_users()
    groups = np.arange(60) % 2
    segments = result.by(groups, cluster=CLUSTERS)
    for row in segments.rows:
        users_of_group = np.flatnonzero(groups == int(row.group))
        rows_of_users = result.of_users(users_of_group).summary(cluster=CLUSTERS[users_of_group])
        (expected_row,) = (
            summary_row for summary_row in rows_of_users if summary_row.metric == row.metric
        )
        assert (row.mean, row.low, row.high) == (
            expected_row.mean,
            expected_row.low,
            expected_row.high,
        )
    assert str(segments) != str(result.by(groups))


def test_sessions_are_clustered_unless_declared_independent() -> None:
    result = evaluate_clustered_users()
    pairs = np.empty(60, object)
    pairs[:] = [(f"u{cluster}", place) for place, cluster in enumerate(CLUSTERS.tolist())]
    sessions = dataclasses.replace(result, user_ids=pairs)
    assert sessions.summary() == sessions.summary(cluster=CLUSTERS)
    assert sessions.summary() == result.summary(cluster=CLUSTERS)
    assert sessions.summary(cluster=False) == result.summary() == result.summary(cluster=False)
    groups = np.arange(60) % 2
    assert str(sessions.by(groups, cluster=False)) == str(result.by(groups))


def test_users_without_a_cluster_are_reported() -> None:
    result = evaluate_clustered_users()
    incomplete = dict.fromkeys(range(59), "one")
    for summarise in (result.summary, lambda **options: result.by(CLUSTERS, **options)):
        with pytest.raises(rm.InputError, match="1 of 60 users have no cluster, for instance 59"):
            summarise(cluster=incomplete)

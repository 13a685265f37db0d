"""Tests of `evaluate` and its results, using a source that ranks by sorting."""

from __future__ import annotations

import dataclasses
import hashlib
import math
import signal
import subprocess
import sys
import threading
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import kernel_twin
import numpy as np
import polars as pl
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st
from results import evaluation
from sorting import Sorting

import recometer as rm
from recometer import _kernel
from recometer.data.fingerprints import Fingerprinting, fingerprint
from recometer.errors import DataWarning, InputError, InputTypeError, UnknownNameError
from recometer.metrics import Metric
from recometer.sources.base import Request
from recometer.stats import interval


def random_case(seed: int = 0, n_users: int = 12, n_items: int = 9) -> tuple[Sorting, np.ndarray]:
    generator = np.random.default_rng(seed)
    return (
        Sorting(generator.integers(0, 5, size=(n_users, n_items))),
        (generator.random((n_users, n_items)) < 0.25).astype(float),
    )


# Tests of reading a result


class Packed(Sorting):
    """A source whose arrays are columns of a packed table, in which numbers are not aligned."""

    def rank(self, request: Request) -> rm.Ranks:
        ranks = super().rank(request)
        names = ["above", "tied", "before", "gain", "relevant"]
        kinds = [("", "i1"), *((name, getattr(ranks, name).dtype) for name in names)]
        table = np.zeros(len(ranks.above), kinds)
        for name in names:
            table[name] = getattr(ranks, name)
        return dataclasses.replace(ranks, **{name: table[name] for name in names})


@pytest.mark.parametrize("ties", ["item", "expected"])
def test_custom_source_can_return_columns_of_a_packed_table(ties: str) -> None:
    source, test = random_case()
    test *= np.arange(1, test.shape[1] + 1)
    options: dict[str, Any] = {"metrics": "ndcg@3 dcg ap rr hit@2 roc_auc rprecision", "ties": ties}
    expected = rm.evaluate(source, test, train=test[::-1] == 3, **options)
    result = rm.evaluate(Packed(source.scores), test, train=test[::-1] == 3, **options)
    for metric, values in expected.values.items():
        np.testing.assert_array_equal(result[metric], values)


def test_values_of_users_are_indexed_by_metric() -> None:
    source = Sorting([[4, 3, 2, 1], [1, 2, 3, 4], [1, 2, 3, 4]])
    test = np.array([[0, 1, 0, 0], [0, 0, 1, 1], [0, 0, 0, 0]])
    result = rm.evaluate(source, test, metrics="rr recall@1,2 precision@1..3")
    np.testing.assert_array_equal(result["rr"], [0.5, 1.0, np.nan])
    np.testing.assert_array_equal(result["recall@1,2"], [[0, 1], [0.5, 1], [np.nan, np.nan]])
    assert result["precision@1..3"].shape == (3, 3)
    np.testing.assert_array_equal(result["precision@1..1"], result["precision@1"][:, None])
    np.testing.assert_array_equal(result[Metric("rr")], result["rr"])
    assert result["rr"].dtype == np.float64
    assert len(result) == result.n_users == 3
    assert "rr" in result
    assert "recall@3" not in result
    assert list(result.values) == [str(metric) for metric in result.metrics]
    assert list(result.n_relevant) == [1, 2, 0]


def test_metric_can_be_written_with_its_defaults() -> None:
    result = rm.evaluate(Sorting([[2, 1]]), np.array([[0, 1]]), metrics="rbp f@1")
    for name in ("rbp(p=0.8)", "rbp( p = 0.80 )", "f@1(beta=1)"):
        np.testing.assert_array_equal(result[name], result[name.split("(")[0]])


def test_metric_can_be_accessed_by_names_of_other_libraries() -> None:
    source, test = random_case()
    result = rm.evaluate(source, test, metrics="NDCG@2, MRR@1..3, auc")
    assert list(result.mean()) == ["ndcg@2", "rr@1", "rr@2", "rr@3", "roc_auc"]
    for name, ours in (("NDCG@2", "ndcg@2"), ("mrr@2", "rr@2"), ("AUC", "roc_auc")):
        assert name in result
        np.testing.assert_array_equal(result[name], result[ours])
        assert result.interval(name) == result.interval(ours)
        assert result.skipped(name) == result.skipped(ours)
    np.testing.assert_array_equal(result["mrr@1..3"], result["rr@1,2,3"])
    assert "mrr@1..3" in result
    assert "mrr@1..4" not in result
    assert "gauc" not in result


def test_metric_can_be_accessed_without_the_parameter_taken_from_test() -> None:
    test = {"ann": {"a": 3, "b": 1}, "bob": {"b": 2}}
    lists = rm.Lists({"ann": ["b", "a"], "bob": ["b"]})
    result = rm.evaluate(lists, test, metrics="err@1..2 ndcg@1 err@1(max_gain=4)")
    np.testing.assert_array_equal(result["ERR@2"], result["err@2(max_gain=3)"])
    assert result["err@2..2"].shape == (2, 1)
    assert "err@2(max_gain=4)" not in result
    with pytest.raises(UnknownNameError, match=r"no metric 'err@3'"):
        result["err@3"]
    several = r"'err@1' is ambiguous: it may be err@1\(max_gain=3\) or err@1\(max_gain=4\)\. Hint"
    with pytest.raises(InputError, match=several):
        result["err@1"]


def test_cutoffs_may_be_passed_in_a_dict() -> None:
    source, test = random_case()
    result = rm.evaluate(source, test, metrics={"ndcg": [2, 3], "mrr": None})
    from_range = rm.evaluate(source, test, metrics="ndcg@2,3 rr")
    assert result.mean() == from_range.mean()


def test_intervals_of_several_cutoffs_are_returned_as_a_dict() -> None:
    source, test = random_case()
    result = rm.evaluate(source, test, metrics="ndcg@1..3")
    intervals = {f"ndcg@{k}": result.interval(f"ndcg@{k}") for k in (1, 2, 3)}
    assert result.interval("NDCG@1..3") == intervals
    assert result.interval("ndcg@1..1") == {"ndcg@1": intervals["ndcg@1"]}
    with pytest.raises(UnknownNameError, match=r"has no metric 'ndcg@4'\. .*Known: ndcg@1"):
        result.interval("ndcg@1..4")
    with pytest.raises(InputError, match="stands for several metrics: ndcg@1, ndcg@2"):
        result.skipped("ndcg@1,2")


def test_train_items_are_not_ranked() -> None:
    source = Sorting([[4, 3, 2, 1]])
    test, train = np.array([[0, 0, 1, 0]]), scipy.sparse.csr_array([[1, 0, 0, 0]])
    assert rm.evaluate(source, test, metrics="rr")["rr"] == [1 / 3]
    result = rm.evaluate(source, test, train=train, metrics="rr")
    assert result["rr"] == [1 / 2]
    assert list(result.n_excluded) == [1]
    assert list(result.n_candidates) == [3]


@pytest.mark.parametrize("name", ["ndcg@11", "recall@1..3", "roc_auc", "foo", "ndgc@10"])
def test_error_about_an_unknown_metric_lists_the_metrics(name: str) -> None:
    source, test = random_case()
    result = rm.evaluate(source, test, metrics="ndcg@2 recall@1,2")
    for method in (result.__getitem__, result.interval, result.skipped):
        with pytest.raises(UnknownNameError, match="Known: ndcg@2, recall@1, recall@2"):
            method(name)


@given(
    st.lists(
        st.tuples(st.floats(0, 1) | st.just(math.nan), st.integers(0, 9)), min_size=1, max_size=20
    )
)
def test_means_skip_undefined_users(users: list[tuple[float, int]]) -> None:
    result = evaluation(
        {"rr": [value for value, _ in users]}, n_relevant=np.array([n for _, n in users])
    )
    defined = [(value, n) for value, n in users if not math.isnan(value)]
    mean = sum(value for value, _ in defined) / len(defined) if defined else math.nan
    assert result.mean() == {"rr": pytest.approx(mean, nan_ok=True)}
    total = sum(n for _, n in defined)
    weighted = sum(value * n for value, n in defined) / total if total else math.nan
    assert result.mean(weights="relevant") == {"rr": pytest.approx(weighted, nan_ok=True)}
    (row,) = result.summary()
    assert (row.counted, row.skipped) == (len(defined), len(users) - len(defined))
    assert sum(row.reasons.values()) == row.skipped
    if len(defined) > 1:
        assert row.low - 1e-12 <= row.mean <= row.high + 1e-12
    assert (row.low, row.high) == pytest.approx(tuple(result.interval("rr")), nan_ok=True)
    assert row.method == result.interval("rr").method
    assert str(result)


def test_unknown_weights_are_refused() -> None:
    with pytest.raises(
        InputError, match=r"weights='gain' is not supported\. Hint: use 'users', 'relevant'"
    ):
        evaluation({"rr": [1.0]}).mean(weights="gain")  # type: ignore[arg-type]


def test_mean_is_nan_if_no_user_is_defined() -> None:
    result = evaluation({"rr": [math.nan, math.nan]})
    assert math.isnan(result.mean()["rr"])
    assert result.skipped("rr") == {"no relevant item to find": 2}
    assert "nan" in str(result)


def test_metrics_undefined_for_all_users_cause_one_warning() -> None:
    scores = rm.Scores([[1.0, 2.0], [2.0, 1.0], [3.0, 3.0]])
    test = np.array([[1, 0], [0, 1], [1, 0]])
    with pytest.warns(DataWarning) as caught:
        rm.evaluate(scores, test, metrics="precision@2 recall@2 rr")
    assert [str(warning.message) for warning in caught] == [
        "precision@2, recall@2: undefined for all 3 users: no more candidates than the cut-off: "
        "every ranking has the same value; or all candidates have the same score, so nothing was "
        "ranked."
    ]
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rm.evaluate(scores, test, metrics="precision@2", undefined=0)


def test_replaced_undefined_values_count_and_are_reported() -> None:
    source = Sorting([[4, 3, 2, 1], [4, 3, 2, 1]])
    test = np.array([[1, 0, 0, 0], [0, 0, 0, 0]])
    result = rm.evaluate(source, test, metrics="rr", undefined=0.0)
    assert list(result["rr"]) == [1, 0]
    assert result.mean() == {"rr": 0.5}
    (row,) = result.summary()
    assert (row.counted, row.skipped) == (2, 0)
    assert row.reasons == {"no relevant item to find": 1}
    assert "1 (counted as 0): no relevant item to find" in str(result)


def test_text_shows_means_intervals_and_counts() -> None:
    result = evaluation(
        {"ndcg@10": [0.5, 0.75, math.nan], "rr": [1.0, 0.5, 0.0]},
        counts={"users_unknown": 1234, "items_unknown": 0, "a_new_count": 7},
        protocol=rm.Protocol(ties="random", confidence=0.9),
    )
    assert str(result).splitlines() == [
        "metric     mean      90% interval  counted  skipped  why",
        "ndcg@10  0.6250  0.5000 to 0.7500        2        1  1: no relevant item to find",
        "rr       0.5000  0.0952 to 0.9048        3        0",
        "",
        "90% interval: bootstrap BCa, without resampling (ndcg@10); Gaffke's (rr)",
        "ndcg@10: The metric has no known range, so the interval is the bootstrap's (BCa), not "
        "Gaffke's.",
        "source: a <'source'>",
        "test users that the source does not know: 1,234",
        "a_new_count: 7",
        "protocol: recometer ties='random' confidence=0.9",
    ]
    assert repr(result) == "<Evaluation of 3 users: ndcg@10, rr>"


def test_html_shows_the_same_table_escaped() -> None:
    result = evaluation({"rr": [1.0, math.nan]})
    html = result.to_html()
    assert html.startswith("<table>")
    assert html in result._repr_html_()
    assert '<td style="text-align: left">rr</td>' in html
    assert "1: no relevant item to find" in html
    assert "a &lt;&#x27;source&#x27;&gt;" in html
    assert "<'" not in html


def test_text_does_not_mention_the_default_protocol() -> None:
    assert "protocol" not in str(evaluation({"rr": [1.0]}))
    with_name = evaluation({"rr": [1.0]}, protocol=rm.Protocol(name="mine"))
    assert str(with_name).endswith("protocol: mine")


def test_per_user_returns_a_frame_of_ids_and_values() -> None:
    result = evaluation({"rr": [1.0, math.nan]})
    assert result.per_user().equals(pl.DataFrame({"user": [0, 1], "rr": [1.0, math.nan]}))
    texts = evaluation({"rr": [1.0]}, user_ids=np.array(["ann"], dtype=object)).per_user()
    assert texts.schema == {"user": pl.String, "rr": pl.Float64}
    assert texts["user"].to_list() == ["ann"]


def test_arrays_of_the_result_are_read_only() -> None:
    n_relevant = np.array([5])
    result = evaluation({"rr": [0.5]}, n_relevant=n_relevant)
    for array in (result["rr"], result.reasons["rr"], result.n_relevant, result.flags):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0
    n_relevant[0] = 1


@pytest.mark.parametrize(
    ("metric", "values", "cut"),
    [
        ("rr", [1.0, 0.5, 0.0, math.nan], (0, 1)),
        ("rr", [1.0, 1.0, 0.5], (-math.inf, 1)),
        ("hits@10", [0.0, 3.0, 0.0], (0, 10)),
        ("mcc@10", [-1.0, 1.0, -1.0], (-1, 1)),
        ("mean_rank", [1.0, 1.0, 30.0], (1, math.inf)),
        ("rmse", [0.1, 5.0], (0, math.inf)),
        # Under some rules, values can lie beyond a bound of the metric, which then does not limit
        # the interval.
        ("rr", [-1.0, 1.0, 1.0], (-math.inf, 1)),
        ("precision@2", [3.0, 0.0, 0.0], (0, math.inf)),
    ],
)
@pytest.mark.parametrize("average", ["usual", "relevant"])
def test_intervals_stay_within_the_bounds(
    metric: str, values: list[float], cut: tuple[float, float], average: Any
) -> None:
    n_relevant = np.array([2, 3, 2, 2])[: len(values)]
    protocol = rm.Protocol(interval="t", average=average)
    result = evaluation({metric: values}, n_relevant=n_relevant, protocol=protocol)
    weight = None if average == "usual" else n_relevant.astype(float)
    low, high = interval(values, "t", weights=weight)
    assert tuple(result.interval(metric)) == (max(low, cut[0]), min(high, cut[1]))
    assert low < cut[0] or high > cut[1]


@pytest.mark.parametrize("discount", ["standard", "original", "graded"])
def test_dcg_is_bounded_if_gains_are_binary(discount: str) -> None:
    generator = np.random.default_rng(0)
    scores, test = generator.random((30, 12)), generator.random((30, 12)) < 0.5
    binary, linear = f"dcg@3(gain=binary,discount={discount})", f"dcg@3(discount={discount})"
    names = [binary, linear, f"dcg(discount={discount})", "hits@3"]
    result = rm.evaluate(rm.Scores(scores), test, metrics=names)
    # The upper bound is the DCG of a list whose three items are all relevant.
    best_first = np.arange(12.0)[::-1].reshape(1, 12)
    best = rm.evaluate(rm.Scores(best_first), best_first > 8, metrics=linear)[linear][0]
    assert result.bounds(linear) == pytest.approx((0, best))
    assert result.bounds(binary) == result.bounds(linear)
    assert result.bounds("hits@3") == (0, 3)
    assert result.bounds(names[2]) == (0, math.inf)
    assert [row.method for row in result.summary()] == ["gaffke", "gaffke", "bca", "gaffke"]
    grades = rm.evaluate(rm.Scores(scores), test * 2.0, metrics=[linear, binary])
    assert grades.bounds(linear) == (
        0,
        math.inf,
    )  # the largest gain is unknown, so DCG has no upper bound
    assert grades.bounds(binary) == result.bounds(binary)


def test_sums_of_gains_have_a_lower_bound_without_negative_gains() -> None:
    scores, test = np.array([[3.0, 2, 1]]), np.array([[0.0, 2, 5]])
    names = ["dcg@2", "ndcg@2", "recall@2(denominator=gains)", "recall@2(denominator=min_gains)"]
    for gains, rule, low in (
        (test, "counted", 0),
        (test * [1, 1, -1], "counted", -math.inf),
        (test * [1, 1, -1], "zero", 0),
    ):
        result = rm.evaluate(rm.Scores(scores), gains, metrics=names, negative_gains=rule)
        assert [result.bounds(name)[0] for name in names] == [low] * 4


def test_saved_results_record_binary_gains(tmp_path: Path) -> None:
    scores = np.random.default_rng(0).random((9, 12))
    result = rm.evaluate(rm.Scores(scores), scores < 0.3, metrics="dcg@3")
    result.save(tmp_path / "a.parquet")
    assert rm.load(tmp_path / "a.parquet").bounds("dcg@3") == result.bounds("dcg@3")


def test_default_interval_depends_on_the_bounds_of_the_metric() -> None:
    values = {"rr": [0.5, 0.2, 1.0], "hit@1": [0.0, 1.0, 0.0], "rmse": [1.0, 0.0, 2.0]}
    result = evaluation(values)
    for name, bounds in (("rr", (0, 1)), ("hit@1", (0, 1))):
        assert result.interval(name) == interval(values[name], bounds=bounds)
    rows = {row.metric: row for row in result.summary()}
    assert [row.method for row in rows.values()] == ["gaffke", "clopper-pearson", "bca"]
    text = str(result).replace("\n  ", " ")
    assert "95% interval: Gaffke's (rr); Clopper and Pearson's (hit@1)" in text
    assert "rmse: The metric has no known range" in text
    # The population mean is uncertain even if all three values are equal.
    constant = evaluation({"rr": [1.0, 1.0, 1.0]}).interval("rr")
    assert constant.low == pytest.approx(0.025 ** (1 / 3))
    assert constant.high == 1


def test_infinite_means_and_f_scores_of_means_have_no_interval() -> None:
    infinite = evaluation({"rmse": [0.5, math.inf]})
    assert math.isnan(infinite.interval("rmse").low)
    assert "A value is infinite" in infinite.interval("rmse").note
    parts = evaluation({"f@2": [0.5, 0.2]}, protocol=rm.Protocol(average="parts"))
    assert "mean of parts" in parts.interval("f@2").note


@pytest.mark.parametrize("kind", ["t", "percentile", "bca"])
def test_every_kind_of_interval_can_be_chosen(kind: Any) -> None:
    values = [0.5, 0.2, 1.0, 0.0, 0.3]
    result = evaluation({"rr": values}, protocol=rm.Protocol(interval=kind))
    assert tuple(result.interval("rr")) == pytest.approx(
        tuple(interval(values, kind, bounds=(0, 1)).within((0, 1)))
    )
    assert result.interval("rr").method == kind


# Tests of requests to the source, and of the contents of a result


@pytest.mark.parametrize(
    ("metrics", "depth"),
    [
        ("ndcg@10 recall@5,20", 20),
        ("rprecision@3", 3),
        ("ndcg@10 roc_auc", None),
        ("ndcg@10 rr", None),
        ("rprecision", None),
        (["hit@7", Metric("ap", 2)], 7),
    ],
)
def test_request_to_the_source_has_the_deepest_cutoff(metrics: object, depth: int | None) -> None:
    source, test = random_case()
    rm.evaluate(source, test, metrics=metrics, threads=3, progress=False)  # type: ignore[arg-type]
    (request,) = source.requests
    assert request.depth == depth
    assert request.threads == 3
    assert request.progress is False


def test_result_contains_everything_needed_to_reproduce_it() -> None:
    source, test = random_case()
    result = rm.evaluate(source, test, train=np.eye(12, 9), metrics="ndcg@2 rr", seed=5)
    assert result.seed == 5
    assert result.protocol == rm.Protocol()
    assert [str(metric) for metric in result.metrics] == ["ndcg@2", "rr"]
    assert set(result.definitions) == {"ndcg", "rr"}
    assert all(result.definitions["ndcg"][part] for part in ("title", "formula", "source"))
    assert set(result.timings) == {"reading", "ranking", "metrics", "total"}
    assert result.timings["total"] >= result.timings["ranking"] > 0
    assert {"recometer", "python", "numpy", "platform", "instruction_set"} <= set(result.versions)
    assert list(result.inputs) == ["source", "test", "train"]
    assert result.inputs["source"]["description"] == "Sorting, 12 x 9"
    assert result.inputs["source"]["fingerprints"] == {"scores": fingerprint(source.scores)}
    assert set(result.inputs["test"]["fingerprints"]) >= {"indptr", "items"}
    repeated = rm.evaluate(source, test.copy(), train=np.eye(12, 9), metrics="ndcg@2 rr")
    assert repeated.inputs == result.inputs
    changed = rm.evaluate(source, test, metrics="rr")
    assert list(changed.inputs) == ["source", "test"]
    assert changed.inputs["test"] == result.inputs["test"]


def test_protocol_of_another_evaluation_reproduces_it() -> None:
    source, test = random_case()
    rules = {"ties": "pessimistic", "min_positives": 2, "cold_start": True}
    first = rm.evaluate(source, test, metrics="ndcg@2", **rules)
    second = rm.evaluate(source, test, metrics="ndcg@2", protocol=first.protocol)
    np.testing.assert_array_equal(first["ndcg@2"], second["ndcg@2"])
    assert second.protocol == first.protocol
    mixed = rm.evaluate(source, test, metrics="ndcg@2", protocol=first.protocol, ties="optimistic")
    assert mixed.protocol == first.protocol.replace(ties="optimistic")


def test_random_ties_depend_only_on_seed_and_user() -> None:
    source = Sorting(np.zeros((40, 8)))
    test = np.tile([1, 0, 0, 0, 0, 0, 0, 0], (40, 1))
    options = {"metrics": "rr", "ties": "random", "constant_scores": "ties"}
    all_users = rm.evaluate(source, test, seed=1, **options)["rr"]
    np.testing.assert_array_equal(
        rm.evaluate(source, test[:15], seed=1, **options)["rr"], all_users[:15]
    )
    assert (rm.evaluate(source, test, seed=2, **options)["rr"] != all_users).any()
    assert len(set(all_users)) > 3


@pytest.mark.parametrize("threads", [1, 2, None])
def test_loaded_result_equals_the_saved_one(tmp_path, threads: int | None) -> None:
    source, test = random_case()
    result = rm.evaluate(source, test, train=np.eye(12, 9), threads=threads)
    result.save(tmp_path / "result.parquet")
    loaded = rm.load(tmp_path / "result.parquet")
    assert str(loaded) == str(result)
    for name in result.values:
        np.testing.assert_array_equal(loaded[name], result[name])
        np.testing.assert_array_equal(loaded.reasons[name], result.reasons[name])
        assert tuple(loaded.interval(name)) == pytest.approx(
            tuple(result.interval(name)), nan_ok=True
        )


# Wrong input


@pytest.mark.parametrize(
    ("source", "hint"),
    [
        ((np.eye(2), np.eye(2)), "Hint: rm.Factors(user_factors, item_factors)"),
        (np.eye(2), "Hint: rm.Scores(matrix)"),
        (scipy.sparse.eye_array(2), "Hint: rm.Scores(matrix)"),
        (lambda users: None, "Hint: rm.Scores(function, n_users=..., n_items=...)"),
        (Sorting, "Hint: call it with your model's output: rm.Sorting(...)"),
        (None, "found NoneType"),
    ],
)
def test_missing_source_is_refused_with_a_hint(source: object, hint: str) -> None:
    with pytest.raises(InputTypeError) as caught:
        rm.evaluate(source, np.eye(2))  # type: ignore[arg-type]
    assert hint in str(caught.value)


@pytest.mark.parametrize("test", [np.zeros((3, 4)), np.zeros((0, 4)), {}])
def test_empty_test_is_refused(test: object) -> None:
    with pytest.raises(InputError, match=r"test is empty: \d users, 0 interactions. Hint:"):
        rm.evaluate(random_case()[0], test)


def test_unknown_names_are_refused_with_a_suggestion() -> None:
    source, test = random_case()
    with pytest.raises(UnknownNameError, match=r"no metric 'ndgc'.*Did you mean 'ndcg'"):
        rm.evaluate(source, test, metrics="ndgc@10")
    with pytest.raises(UnknownNameError, match=r"no protocol 'recmeter'.*Did you mean 'recometer'"):
        rm.evaluate(source, test, protocol="recmeter")
    with pytest.raises(UnknownNameError, match=r"rule 'tie'.*Did you mean 'ties'.*min_positives"):
        rm.evaluate(source, test, tie="random")
    with pytest.raises(UnknownNameError, match=r"parameter or rule 'trian'.*Did you mean 'train'"):
        rm.evaluate(source, test, trian=test)
    with pytest.raises(UnknownNameError, match=r"rule 'k'.*cut-offs are part of metric names"):
        rm.evaluate(source, test, k=test)
    for name, column in (("user_id", "user"), ("timestamp", "time"), ("label", "value")):
        with pytest.raises(
            UnknownNameError, match=rf"{name}.*Interactions.of\(test, {column}=...\)"
        ):
            rm.evaluate(source, test, **{name: "column"})
    with pytest.raises(InputError, match="ties='best': the rule has no such value"):
        rm.evaluate(source, test, ties="best")
    with pytest.raises(InputTypeError, match=r"protocol=3 must be a name or a Protocol"):
        rm.evaluate(source, test, protocol=3)  # type: ignore[arg-type]


@pytest.mark.parametrize("seed", [-1, 2**63, 0.5, "1", True, None])
def test_invalid_seeds_are_refused(seed: object) -> None:
    with pytest.raises(InputError, match="must be a whole number, at least 0"):
        rm.evaluate(*random_case(), seed=seed)  # type: ignore[arg-type]


def test_invalid_threads_and_cutoffs_are_refused() -> None:
    with pytest.raises(InputError, match="threads=0"):
        rm.evaluate(*random_case(), threads=0)
    with pytest.raises(InputError, match=r"cut-off '0'"):
        rm.evaluate(*random_case(), metrics="ndcg@0")


def test_users_with_nan_or_infinite_scores_are_undefined() -> None:
    source, test = random_case()
    source.scores[2, 3] = np.nan
    source.scores[5, 1] = np.inf
    test[:, 2] = 1
    result = rm.evaluate(source, test, metrics="rr")
    assert np.isnan(result["rr"][[2, 5]]).all()
    assert result.skipped("rr") == {
        "a candidate's score is NaN": 1,
        "a candidate's score is infinite": 1,
    }


def test_error_is_raised_if_all_users_have_nan_or_infinite_scores() -> None:
    source, test = random_case()
    source.scores[::2, 3] = np.nan
    source.scores[1::2, 1] = np.inf
    with pytest.raises(InputError, match=r"All \d+ users have a NaN or infinite.*Sorting.*Hint:"):
        rm.evaluate(source, test)


def test_error_is_raised_if_no_test_user_is_known() -> None:
    source = Sorting(np.zeros((0, 4)))
    with pytest.raises(
        InputError, match=r"None of the 5 test users, such as 0, 1, 2, is known to the source"
    ):
        rm.evaluate(source, np.ones((5, 4)))


def test_unknown_users_are_named_by_their_ids() -> None:
    with pytest.raises(
        InputError,
        match=r"None of the 2 test users, such as 1, 2, is known to the source .*: 2 lists",
    ):
        rm.evaluate(rm.Lists({8: [3], 9: [4]}), {1: [3], 2: [4]}, metrics="ndcg@2")


# Tests of input fingerprints


def test_fingerprint_depends_on_the_values() -> None:
    array = np.random.default_rng(0).random((300, 200))
    expected = fingerprint(array)
    assert len(expected) == 64
    equal_arrays = [
        np.asfortranarray(array),
        array[::-1][::-1],
        array.astype(">f8"),
        np.repeat(array, 2, axis=1)[:, ::2],
    ]
    assert {fingerprint(array_of_values) for array_of_values in equal_arrays} == {expected}
    changed = array.copy()
    changed[-1, -1] += 1e-12
    different = [changed, array.T, array.reshape(200, 300), array.astype(np.float32), array[:-1]]
    assert expected not in {fingerprint(array_of_values) for array_of_values in different}


def test_fingerprint_matches_its_documentation(monkeypatch) -> None:
    array = np.arange(400_000)  # these bytes fill slightly more than 3 pieces
    hashes = np.zeros(4, np.uint64)
    _kernel.hash_pieces(array.view(np.uint8), 2**20, hashes)
    expected = hashlib.sha256(b"<i8 (400000,) " + hashes.astype("<u8").tobytes()).hexdigest()
    monkeypatch.setattr("recometer.data.fingerprints.AT_ONCE", 2**20)

    class Parts:
        shape, dtype = array.shape, array.dtype

        def pieces(self) -> Iterator[np.ndarray]:
            yield from np.split(array, [7, 100_000, 300_001])

    for equal_array in (array, np.repeat(array, 2)[::2], Parts()):
        assert fingerprint(equal_array) == expected
    text = hashlib.sha256(b"objects (2,) ")
    text.update(reference_hash(b"['a', 1]"))
    assert fingerprint(np.array(["a", 1], dtype=object)) == text.hexdigest()


def reference_hash(data: bytes) -> bytes:
    hashes = np.zeros(1, np.uint64)
    kernel_twin.hash_pieces(np.frombuffer(data, np.uint8), 2**20, hashes)
    return hashes.astype("<u8").tobytes()


def test_arrays_of_every_kind_have_a_fingerprint(tmp_path) -> None:
    arrays = [
        np.zeros((0, 3)),
        np.float32(3),
        np.array([True, False]),
        np.array(["2020", "2021"], dtype="datetime64[D]"),
        np.array(["2020", "2022", "2021"], dtype="datetime64[D]")[::2],
        np.array(["a", "b"], dtype=object),
        np.array(["a", "b"]),
        np.array(["a", "\ud800"], dtype=object),
    ]
    fingerprints = [fingerprint(array) for array in arrays]
    assert fingerprints[3] == fingerprints[4]
    assert fingerprints[5] == fingerprints[6]
    assert len(set(fingerprints)) == len(arrays) - 2
    mapped = np.memmap(tmp_path / "file", dtype=np.float32, mode="w+", shape=(7, 5))
    mapped[:] = np.arange(35).reshape(7, 5)
    assert fingerprint(mapped) == fingerprint(np.arange(35, dtype=np.float32).reshape(7, 5))


def test_fingerprinting_stops_when_its_block_ends() -> None:
    large = np.zeros(2**25)
    with pytest.raises(KeyError), Fingerprinting({"test": {"large": large}}):
        raise KeyError
    assert not any(thread.name.startswith("recometer") for thread in threading.enumerate())


def test_fingerprinting_raises_the_errors_of_arrays() -> None:
    class Broken:
        def __array__(self, *arguments: object, **options: object) -> np.ndarray:
            raise ZeroDivisionError("broken")

    with (
        Fingerprinting({"test": {"broken": Broken()}}) as fingerprinting,
        pytest.raises(ZeroDivisionError, match="broken"),
    ):
        fingerprinting.result()


# Complete evaluations


def test_error_of_the_source_leaves_no_thread() -> None:
    class Broken(Sorting):
        def rank_user(self, request: Request, user: int) -> tuple[list, list[int]]:
            raise ZeroDivisionError("broken")

    source, test = random_case()
    with pytest.raises(ZeroDivisionError, match="broken"):
        rm.evaluate(Broken(source.scores), test)
    assert not any(thread.name.startswith("recometer") for thread in threading.enumerate())


INTERRUPTED = """
import sys, threading
import numpy as np
from recometer.evaluation import evaluate
from sorting import Sorting

class Slow(Sorting):
    def rank(self, request):
        print("started", flush=True)
        return super().rank(request)

try:
    evaluate(Slow(np.random.default_rng(0).random((10_000, 5)), pause=0.02), np.ones((10_000, 5)))
except KeyboardInterrupt:
    print("alive", threading.active_count(), flush=True)
    sys.exit(3)
"""


def test_ctrl_c_ends_an_evaluation() -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", f"import sys; sys.path[:] = {sys.path!r}\n{INTERRUPTED}"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "started\n"
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate(timeout=5)
    assert process.returncode == 3, errors
    assert output.splitlines()[-1] == "alive 1"


def test_every_method_accepts_other_spellings_of_metrics() -> None:
    """The test writes out default parameters, and changes the order of the parameters."""
    lists = rm.Lists({"ann": ["a", "b"], "bob": ["b"]})
    metrics = "rbp f@2(beta=2,denominator=list) coverage@2(denominator=padded,users=relevant)"
    result = rm.evaluate(lists, {"ann": ["a"], "bob": ["c"]}, metrics=metrics, catalogue=5)
    otherwise = ["rbp(p=0.8)", "f@2(denominator=list,beta=2)"]
    otherwise += ["coverage@2(users=relevant,denominator=padded)"]
    for name, other_name in zip(metrics.split(), otherwise, strict=True):
        assert other_name in result
        assert result.interval(other_name) == result.interval(name)
        assert result.skipped(other_name) == result.skipped(name)
    assert "ndcg@5" not in result
    assert "nonsense" not in result


@pytest.mark.parametrize("metric", ["ndcg@2", "dcg@2", "ndcg@2(gain=exponential)"])
def test_intervals_of_gains_are_negative_only_with_negative_gains(
    metric: str, tmp_path: Path
) -> None:
    lists = rm.Lists({"a": ["x", "y"], "b": ["x", "y"]})
    lowest: dict[float | None, float] = {}
    for value in (None, 2.0, -1.0):
        test: object = {"a": ["x"], "b": ["y"]}
        if value is not None:
            test = pl.DataFrame({"user": ["a", "b", "b"], "item": ["x", "y", "z"]}).with_columns(
                value=pl.Series([1.0, 1.0, value])
            )
        result = rm.evaluate(lists, test, metrics=metric, interval="t", negative_gains="counted")
        result.save(tmp_path / "result.parquet")
        loaded = rm.load(tmp_path / "result.parquet")
        assert loaded.interval(metric) == result.interval(metric)
        lowest[value] = result.interval(metric).low
    assert lowest[None] == lowest[2.0] == 0
    assert lowest[-1.0] < 0


def test_saved_evaluation_keeps_intervals_it_cannot_recompute(tmp_path) -> None:
    generator = np.random.default_rng(0)
    test, scores = generator.random((60, 20)) < 0.2, rm.Scores(generator.random((60, 20)))
    result = rm.evaluate(scores, test, metrics="ndcg@5 gini@5")
    result.save(tmp_path / "result.parquet")
    assert rm.load(tmp_path / "result.parquet").summary() == result.summary()


def test_mean_of_finite_values_is_finite() -> None:
    scores = rm.Scores(np.array([[3.0, 2, 1], [3, 1, 2], [3, 2, 1]]))
    test = np.array([[1e308, 0, 0], [1.5e308, 0, 0], [1.7e308, 0, 0]])
    result = rm.evaluate(scores, test, metrics="dcg@1")
    assert result.mean()["dcg@1"] == pytest.approx(1.4e308, rel=1e-15)
    assert rm.Evaluator(test, metrics="dcg@1").mean(scores) == result.mean()
    assert result.mean(weights=[1e300, 1, 1])["dcg@1"] == 1e308
    assert " 1.4e+308 " in str(result)
    assert all(len(line) <= 100 for line in str(result).splitlines())
    assert result.mean(weights="relevant")["dcg@1"] == result.mean()["dcg@1"]
    assert math.isnan(result.interval("dcg@1").low)
    assert "the mean has no interval" in result.interval("dcg@1").note

"""`compare` tests each pair of models on the users who have a value from both models."""

from __future__ import annotations

import itertools
import json
import pathlib
import re
import warnings
from typing import Any

import numpy as np
import polars as pl
import pytest
import scipy
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from results import evaluation

import recometer as rm
from recometer import stats
from recometer.rendering.formats import to_text

RNG = np.random.default_rng(5)
TEST = RNG.random((120, 40)) < 0.1
TRAIN = (RNG.random((120, 40)) < 0.1) & ~TEST
NOISE = RNG.random((120, 40))
METRICS = "ndcg@5 hit@5 coverage@5"


def scores(strength: float, seed: int = 0) -> rm.Scores:
    noise_of_model = np.random.default_rng(seed).random(NOISE.shape)
    return rm.Scores(NOISE + 0.2 * noise_of_model + strength * TEST)


def evaluate(strength: float, seed: int = 0, metrics: str = METRICS) -> rm.Evaluation:
    return rm.evaluate(scores(strength, seed), TEST, train=TRAIN, metrics=metrics)


@pytest.fixture(scope="module")
def results() -> dict[str, rm.Evaluation]:
    return {"pop": evaluate(0.0), "bpr": evaluate(0.02, 1), "als": evaluate(0.4, 2)}


@pytest.fixture(scope="module")
def comparison(results: dict[str, rm.Evaluation]) -> rm.Comparison:
    return rm.compare(results, baseline="pop")


def test_row_matches_statistics_computed_from_the_values_of_users(
    results: dict[str, rm.Evaluation], comparison: rm.Comparison
) -> None:
    row = comparison.row("ndcg@5", "als")
    first, second = results["als"]["ndcg@5"], results["pop"]["ndcg@5"]
    statistics = stats.compare(first, second, bounds=(0, 1))
    assert (row.difference, row.interval, row.test) == (
        statistics.difference,
        statistics.interval,
        statistics.test,
    )
    assert (row.relative, row.relative_interval) == (
        statistics.relative,
        statistics.relative_interval,
    )
    assert row.n == np.count_nonzero(~np.isnan(first - second))
    assert row.n_better == np.count_nonzero(first > second)
    assert row.n_better + row.n_equal + row.n_worse == row.n
    assert row.standardised == pytest.approx(
        np.nanmean(first - second) / np.nanstd(first - second, ddof=1)
    )
    assert row.verdict == "better"


def test_p_equals_that_of_an_exact_enumeration() -> None:
    first = [0.5, 0.25, 1.0, 0.0, 0.6, 0.33, 0.9, 0.1]
    second = [0.1, 0.25, 0.2, 0.3, 0.5, 0.0, 0.7, 0.15]
    differences = np.subtract(first, second)
    sums = [
        abs(np.dot(signs, differences)) for signs in itertools.product([1, -1], repeat=len(first))
    ]
    share = np.mean(np.array(sums) >= abs(differences.sum()) - 1e-12)
    row = rm.compare([evaluation({"rr": first}), evaluation({"rr": second})]).rows[0]
    assert row.p_value == pytest.approx(share, rel=1e-12)
    assert row.test.exact
    assert (row.model, row.other) == ("model 1", "model 2")


@given(seed=st.integers(0, 2**32), n=st.integers(2, 30))
def test_user_order_does_not_matter_and_swapped_models_change_signs(seed: int, n: int) -> None:
    rng = np.random.default_rng(seed)
    values_of_a, values_of_b = rng.choice([0.0, 0.25, 0.5, 1.0], (2, n))
    order = rng.permutation(n)
    ids = np.arange(n) + 10

    def compared(first: np.ndarray, second: np.ndarray, *, shuffled: bool = False) -> rm.Comparison:
        positions = order if shuffled else np.arange(n)
        return rm.compare(
            {
                "a": evaluation({"rr": first.tolist()}, user_ids=ids),
                "b": evaluation({"rr": second[positions].tolist()}, user_ids=ids[positions]),
            }
        )

    (row,), (shuffled_row,), (swapped_row,) = (
        comparison.rows
        for comparison in (
            compared(values_of_a, values_of_b),
            compared(values_of_a, values_of_b, shuffled=True),
            compared(values_of_b, values_of_a),
        )
    )
    assert (row.difference, row.p_value, row.interval) == (
        shuffled_row.difference,
        shuffled_row.p_value,
        shuffled_row.interval,
    )
    assert (row.n_better, row.n_worse) == (swapped_row.n_worse, swapped_row.n_better)
    assert row.difference == -swapped_row.difference
    assert row.p_value == pytest.approx(swapped_row.p_value, rel=1e-9)
    assert (row.low, row.high) == pytest.approx((-swapped_row.high, -swapped_row.low), abs=1e-9)
    assert row.probability_better == pytest.approx(1 - swapped_row.probability_better)


def test_users_with_a_value_from_one_model_are_counted_with_a_warning() -> None:
    first = evaluation({"rr": [1.0, np.nan, 0.5, 0.25]})
    second = evaluation({"rr": [0.5, 0.5, np.nan, 0.5]})
    with pytest.warns(rm.DataWarning, match="1 user with a alone, 1 with b alone"):
        (row,) = rm.compare({"a": first, "b": second}).rows
    assert (row.n, row.n_only_model, row.n_only_other) == (2, 1, 1)
    assert row.mean == 0.625


def test_lower_errors_are_better() -> None:
    first, second = evaluation({"rmse": [1.0, 0.5, 0.5]}), evaluation({"rmse": [0.5, 0.25, 0.5]})
    (row,) = rm.compare({"a": first, "b": second}, confidence=0.4).rows
    assert row.difference == 0.25
    assert (row.n_better, row.n_equal, row.n_worse) == (0, 1, 2)
    assert row.probability_better == pytest.approx(1 / 6)
    assert row.verdict == "worse"
    compared = rm.compare({"a": first, "b": second})
    assert [standing.model for standing in compared.standings] == ["b", "a"]
    assert [change.user for change in compared.changes("rmse", "a").harmed] == [0, 1]


def test_p_is_adjusted_over_primary_metrics(results: dict[str, rm.Evaluation]) -> None:
    comparison = rm.compare(results, baseline="pop", primary="hit@5", metrics="ndcg@5 hit@5")
    primary_rows = [row for row in comparison.rows if row.metric == "hit@5"]
    expected = stats.adjust([row.p_value for row in primary_rows])
    assert [row.adjusted_p for row in primary_rows] == expected.tolist()
    assert all(np.isnan(row.adjusted_p) for row in comparison.rows if row.metric == "ndcg@5")
    assert "over 2 comparisons" in str(comparison)
    assert "Primary: hit@5; p-values of other metrics are exploratory" in str(comparison).replace(
        "\n  ", " "
    )
    all_primary = rm.compare(results, metrics="ndcg@5 hit@5", correction="bonferroni")
    assert all_primary.primary == ("ndcg@5", "hit@5")
    assert all_primary.rows[0].adjusted_p == min(1, 6 * all_primary.rows[0].p_value)
    assert "All metrics are primary" in str(all_primary).replace("\n  ", " ")


def test_per_user_has_a_row_per_user() -> None:
    ids = np.array(["ann", "bob", "cid"], dtype=object)
    first = evaluation({"rr": [1.0, 0.5, 0.0]}, user_ids=ids)
    second = evaluation({"rr": [0.5, 0.5, np.nan]}, user_ids=ids)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rm.DataWarning)
        frame = rm.compare({"a": first, "b": second}).per_user("rr")
    assert frame["user"].to_list() == ["ann", "bob", "cid"]
    assert frame.columns == ["user", "a", "b"]
    assert frame["a"].to_list() == [1.0, 0.5, 0.0]


def test_changes_and_segments_show_who_gains_and_loses(
    comparison: rm.Comparison, results: dict[str, rm.Evaluation]
) -> None:
    differences = results["als"]["ndcg@5"] - results["pop"]["ndcg@5"]
    changes = comparison.changes("ndcg@5", "als", n=3)
    assert changes.helped[0].difference == np.nanmax(differences)
    assert [change.difference for change in changes.helped] == sorted(
        differences[~np.isnan(differences)], reverse=True
    )[:3]
    assert "helped" in str(changes)
    segments = comparison.by("activity", "ndcg@5", "als")
    assert sum(row.n for row in segments.rows) == comparison.row("ndcg@5", "als").n
    assert segments.rows[0].difference == min(row.difference for row in segments.rows)
    segments_of_groups = comparison.by(["x", "y"] * 60, "ndcg@5", "als", "pop")
    assert {row.group for row in segments_of_groups.rows} == {"x", "y"}


def test_leaderboard_marks_the_best_model_and_shows_ranks(comparison: rm.Comparison) -> None:
    first = [row for row in comparison.standings if row.metric == "ndcg@5"]
    assert first[0].model == "als"
    assert [row.best for row in first] == [True, False, False]
    assert (first[0].rank_low, first[0].rank_high) == (1, 1)
    hits = [row for row in comparison.standings if row.metric == "hit@5"]
    assert [(row.rank_low, row.rank_high) for row in hits] == [(1, 1), (2, 3), (2, 3)]
    assert f"{first[0].mean:.4f}* 1" in str(comparison)


def test_leaderboard_marks_models_not_shown_to_differ_from_the_best() -> None:
    values = [0.9, 0.1, 0.5, 0.4, 0.8, 0.2]
    comparison = rm.compare(
        {
            "near": evaluation({"rr": values}),
            "best": evaluation({"rr": [value + 0.01 for value in values[:3]] + values[3:]}),
        }
    )
    assert [(row.model, row.leads, row.best) for row in comparison.standings] == [
        ("best", True, True),
        ("near", False, True),
    ]
    best_mean, near_mean = (f"{row.mean:.4f}" for row in comparison.standings)
    best, near_cell = f"{best_mean}* 1-2", f"{near_mean}≈ 1-2"
    explained = "* marks the best mean of a metric; ≈ marks means not shown to differ from it."
    assert all(part in str(comparison) for part in (best, near_cell, explained))
    markdown = comparison.to_markdown()
    assert rf"| best | **{best_mean}\* 1-2** |" in markdown
    assert f"| near | {near_cell} |" in markdown
    assert "\n\n\\" + explained in markdown
    assert f"<strong>{best}</strong>" in comparison.to_html()
    assert f">{near_cell}<" in comparison.to_html()
    board, _, after = comparison.to_latex().partition(r"\bottomrule")
    assert rf"best & \textbf{{{best}}}" in board
    assert rf"near & {near_mean}$\approx$ 1-2" in board
    within = after.split(r"\end{tabular}")[0].strip().split("\n")
    assert within == [
        r"\multicolumn{2}{l}{\footnotesize * marks the best mean of a metric; $\approx$ marks "
        r"means not shown to differ from it.} \\",
        r"\multicolumn{2}{l}{\footnotesize Each mean is followed by the model's possible "
        r"ranks.} \\",
    ]


def test_saved_evaluations_give_the_same_comparison(
    results: dict[str, rm.Evaluation], tmp_path: pathlib.Path
) -> None:
    paths = []
    for name in ("als", "pop"):
        paths.append(tmp_path / f"{name}.parquet")
        results[name].save(paths[-1])
    here = rm.compare({name: results[name] for name in ("als", "pop")})
    saved_comparison = rm.compare(paths)
    assert saved_comparison.row("ndcg@5", "als").interval == here.row("ndcg@5", "als").interval
    unpaired, paired = saved_comparison.row("coverage@5", "als"), here.row("coverage@5", "als")
    assert unpaired.difference == paired.difference
    # Without lists, the interval is derived from the models' separate intervals, and is wider.
    assert unpaired.interval.width >= paired.interval.width
    assert "The lists or rows are not in the saved file" in str(saved_comparison).replace(
        "\n  ", " "
    )


def test_metrics_with_one_value_are_resampled_over_the_same_users(
    comparison: rm.Comparison, results: dict[str, rm.Evaluation]
) -> None:
    row = comparison.row("coverage@5", "als")
    assert row.mean == results["als"].over_users["coverage@5"]
    assert row.interval.method == "bootstrap"
    assert row.for_all_users
    assert rm.compare(results, baseline="pop").row("coverage@5", "als").interval == row.interval
    with pytest.raises(rm.InputError, match="one value for all users"):
        comparison.per_user("coverage@5")


def test_variance_between_seeds_widens_the_interval(results: dict[str, rm.Evaluation]) -> None:
    als = [evaluate(0.1, seed, "ndcg@5") for seed in range(3)]
    comparison = rm.compare({"als": als, "pop": evaluate(0.0, 7, "ndcg@5")})
    (row,) = comparison.rows
    tables = [np.column_stack([run["ndcg@5"] for run in als])]
    tables.append(evaluate(0.0, 7, "ndcg@5")["ndcg@5"][:, np.newaxis])
    expected = stats.over_runs(*tables)
    assert row.runs == expected
    assert (row.p_value, row.interval) == (expected.p_value, expected.interval)
    text = str(comparison).replace("\n  ", " ")
    assert "Seeds: als 3." in text
    assert "Only one seed: pop." in text
    assert comparison.standings[0].model == "als"
    printed_without_seeds = str(
        rm.compare({"als": als[0], "pop": results["pop"]}, metrics="ndcg@5")
    )
    assert "one evaluation per model" in printed_without_seeds


def test_seeds_are_compared_on_metrics_with_one_value_for_all_users(tmp_path: pathlib.Path) -> None:
    als = [evaluate(0.1, seed, "coverage@5 gini@5") for seed in range(3)]
    pop = evaluate(0.0, 7, "coverage@5 gini@5")
    compared = rm.compare({"als": als, "pop": pop})
    for row in compared.rows:
        values = [run.over_users[row.metric] for run in als]
        assert row.mean == pytest.approx(np.mean(values))
        assert row.difference == pytest.approx(np.mean(values) - pop.over_users[row.metric])
        assert (row.test.test, row.interval.method) == ("random effects", "random effects")
        assert row.runs is not None
        assert row.runs.n_runs == (3, 1)
        assert row.runs.deviation_runs[0] <= np.std(values, ddof=1)
        assert 0 <= row.p_value <= 1
        assert (0 in row.interval) == (row.p_value > 0.05)
        assert row.relative_low < row.relative < row.relative_high
    text = str(compared).replace("\n  ", " ")
    assert "There is only one seed" in text
    assert "seeds make up" in text
    assert {row.n for row in compared.standings} == {120}
    # Passing the same run three times adds no evidence and no variance between seeds.
    repeated_run = rm.compare({"als": [als[0]] * 3, "pop": pop}).rows[0]
    single_run = rm.compare({"als": als[0], "pop": pop}).rows[0]
    assert repeated_run.runs is not None
    assert repeated_run.runs.deviation_runs[0] == 0
    assert repeated_run.interval.width == pytest.approx(single_run.interval.width, rel=0.02)
    # Saved files do not contain the lists, so the intervals of list metrics are wider.
    paths = [tmp_path / f"{number}.parquet" for number in range(3)]
    for run, path in zip(als, paths, strict=True):
        run.save(path)
    saved = rm.compare({"als": list(paths), "pop": pop})
    assert saved.rows[0].difference == compared.rows[0].difference
    assert saved.rows[0].interval.width >= compared.rows[0].interval.width
    assert "The lists or rows are not in the saved file" in str(saved).replace("\n  ", " ")


def test_folds_have_students_t_test_on_metrics_with_one_value() -> None:
    frame = pl.DataFrame({"user_id": np.repeat(np.arange(40), 6), "item_id": [*range(6)] * 40})
    folds = rm.split.folds(frame, rm.split.KFold(3))
    results_of_folds = {}
    for name, seed in (("a", 0), ("b", 1)):
        made_scores = np.random.default_rng(seed).random((3, 40, 12)) + np.arange(12) / 8
        sources = [
            rm.Scores(matrix, user_ids=range(40), item_ids=range(12)) for matrix in made_scores
        ]
        results_of_folds[name] = rm.evaluate(sources, folds, metrics="rr gini@3")
    row = rm.compare(results_of_folds).row("gini@3", "a")
    first, second = (
        [fold.over_users["gini@3"] for fold in results_of_folds[name].folds] for name in ("a", "b")
    )
    expected = scipy.stats.ttest_rel(first, second)
    assert row.difference == pytest.approx(np.mean(first) - np.mean(second))
    assert row.p_value == pytest.approx(expected.pvalue)
    assert tuple(row.interval) == pytest.approx(tuple(expected.confidence_interval(0.95)))
    assert "Computed from the differences in 3 folds" in row.notes[0]
    other_folds = rm.evaluate(
        sources[:2], rm.split.folds(frame, rm.split.KFold(2)), metrics="gini@3"
    )
    (untested,) = rm.compare(
        {"a": results_of_folds["a"], "b": other_folds},
        metrics="gini@3",
        allow="test train candidates",
    ).rows
    assert np.isnan(untested.p_value)
    assert "different numbers of folds" in untested.notes[0]


def test_folds_are_pooled_by_user_and_also_compared_over_folds() -> None:
    frame = pl.DataFrame({"user_id": np.repeat(np.arange(40), 6), "item_id": [*range(6)] * 40})
    folds = rm.split.folds(frame, rm.split.KFold(2))
    results_of_folds = {}
    for name, seed in (("a", 0), ("b", 1)):
        matrix = rm.Scores(
            np.random.default_rng(seed).random((40, 12)), user_ids=range(40), item_ids=range(12)
        )
        results_of_folds[name] = rm.evaluate([matrix, matrix], folds, metrics="rr")
    compared = rm.compare(results_of_folds)
    (row,) = compared.rows
    differences = [
        first["rr"] - second["rr"]
        for first, second in zip(
            results_of_folds["a"].folds, results_of_folds["b"].folds, strict=True
        )
    ]
    assert row.runs == stats.over_folds(differences)
    assert row.difference == pytest.approx(
        np.nanmean(results_of_folds["a"]["rr"] - results_of_folds["b"]["rr"])
    )
    assert "over 2 folds the difference is" in str(compared).replace("\n  ", " ")


def test_seeds_must_have_the_same_users() -> None:
    run = evaluation({"rr": [0.1, 0.2]}, user_ids=np.array([0, 1]))
    for ids in ([2, 3], [0, 99]):
        other_run = evaluation({"rr": [0.1, 0.2]}, user_ids=np.array(ids))
        with pytest.raises(rm.InputError, match="2 evaluations of 'a' have different users"):
            rm.compare({"a": [run, other_run], "b": run})


def test_users_of_a_cluster_change_signs_together(results: dict[str, rm.Evaluation]) -> None:
    persons = np.arange(120) // 4
    row = rm.compare(results, baseline="pop", cluster=persons).row("ndcg@5", "als")
    expected = stats.compare(
        results["als"]["ndcg@5"], results["pop"]["ndcg@5"], bounds=(0, 1), clusters=persons
    )
    assert (row.test, row.interval) == (expected.test, expected.interval)
    with pytest.raises(rm.InputError, match="119 of 120 users have no cluster, for instance 1"):
        rm.compare(results, cluster={0: "x"})


def test_metrics_with_one_value_resample_whole_clusters() -> None:
    pair = {"a": evaluate(0.05, metrics="gini@5"), "b": evaluate(0.0, metrics="gini@5")}
    unclustered = rm.compare(pair).rows[0]
    assert rm.compare(pair, cluster=np.arange(120)).rows[0].interval == unclustered.interval
    together = rm.compare(pair, cluster=np.arange(120) // 30).rows[0]
    assert together.interval.width != unclustered.interval.width
    (row,) = rm.compare(pair, cluster=np.zeros(120)).rows
    assert "Fewer than two clusters" in row.interval.note


def test_relative_intervals_include_the_variance_between_seeds() -> None:
    generator = np.random.default_rng(6)
    values = generator.random(300) / 2

    def runs(*levels: float) -> list[rm.Evaluation]:
        return [evaluation({"rr": (values * level).tolist()}) for level in levels]

    models = {"a": runs(1.0, 1.2, 1.4), "b": runs(0.95, 1.0)}
    comparison = rm.compare(models)
    (row,) = comparison.rows
    assert row.relative_interval.method == "random effects"
    assert 0.0 in row.interval
    assert 0.0 in row.relative_interval
    # The error of the baseline's mean is small compared with the differences between seeds, so the
    # relative interval is close to the absolute interval divided by this mean.
    scaled = np.array(tuple(row.interval)) / row.mean_other
    np.testing.assert_allclose(tuple(row.relative_interval), scaled, rtol=0.1)
    assert (
        row.relative_interval.width
        > 5 * rm.compare({"a": models["a"][1], "b": models["b"][0]}).rows[0].relative_interval.width
    )
    assert "apart from the variance between seeds" in str(comparison).replace("\n  ", " ")
    near_zero = rm.compare({"a": runs(0.01, 1.0), "b": runs(1.0, 1.0)}).rows[0]
    assert near_zero.relative_low == -1.0


def test_clusters_cannot_be_combined_with_seeds(results: dict[str, rm.Evaluation]) -> None:
    with pytest.raises(rm.InputError, match="als has several seeds"):
        rm.compare(
            {"als": [results["als"], results["bpr"]], "pop": results["pop"]},
            cluster=np.arange(120),
        )


def test_models_within_the_margin_are_equivalent() -> None:
    generator = np.random.default_rng(0)
    values = generator.random(400)
    first = evaluation({"rr": values.tolist()})
    second = evaluation({"rr": np.clip(values + generator.normal(0, 0.01, 400), 0, 1).tolist()})
    comparison = rm.compare({"a": first, "b": second}, margin=0.05)
    assert comparison.rows[0].verdict == "equivalent"
    assert "p equivalent" in str(comparison)
    by_metric = rm.compare({"a": first, "b": second}, margin={"rr": 1e-6})
    assert by_metric.rows[0].equivalence is not None
    assert not by_metric.rows[0].equivalence.equivalent


def test_comparisons_that_cannot_be_significant_have_a_note() -> None:
    first = evaluation({"rr": [1.0, 1.0, 1.0, 0.5, 0.5], "hit@1": [1, 1, 1, 0, 0]})
    second = evaluation({"rr": [0.5, 0.5, 0.5, 0.5, 0.5], "hit@1": [0, 0, 0, 0, 0]})
    text = str(rm.compare({"a": first, "b": second})).replace("\n  ", " ")
    assert "All comparisons: 3 users differ: p cannot fall below 0.2500" in text
    assert "(or below 0.5000 after correction for 2 comparisons), so" in text
    assert "no difference can be detected here" in text


def test_power_mentions_only_possible_differences() -> None:
    pair = {"a": evaluation({"rr": [1.0, 0.5]}), "b": evaluation({"rr": [0.5, 0.25]})}
    text = str(rm.compare(pair)).replace("\n  ", " ")
    assert "2 users differ: p cannot fall below 0.5000, so no difference can be" in text
    assert "Power" not in text
    first, second = [1.0, 1.0, 1.0, 0.0, 0.0, 1.0], [0.0, 0.0, 0.0, 1.0, 1.0, 0.0]
    pair = {"a": evaluation({"rr": first}), "b": evaluation({"rr": second})}
    text = str(rm.compare(pair)).replace("\n  ", " ")
    assert (
        "Power: with 6 users, no difference that is possible in rr would be found with 80 % power."
        in text
    )
    nearly_equal = evaluation({"rr": [0.9, 0.95, 0.8, 0.1, 0.2, 0.7]})
    text = str(rm.compare({**pair, "c": nearly_equal}, correction="none")).replace("\n  ", " ")
    assert "or more (depending on the pair; some pairs cannot differ by enough) in rr" in text


def test_invalid_confidence_and_margin_are_refused() -> None:
    pair = {"a": evaluation({"rr": [1.0, 0.5]}), "b": evaluation({"rr": [0.5, 0.25]})}
    with pytest.raises(rm.InputError, match="confidence='high' must be above 0"):
        rm.compare(pair, confidence="high")  # type: ignore[arg-type]
    with pytest.raises(rm.InputError, match="margin='little' must be above 0"):
        rm.compare(pair, margin="little")  # type: ignore[arg-type]
    with pytest.raises(rm.InputError, match=r"confidence=0.5 with margin= must be above 0.5"):
        rm.compare(pair, margin=0.1, confidence=0.5)


def test_equal_differences_of_all_users_have_gaffkes_interval() -> None:
    pair = {"a": evaluation({"rr": [1.0] * 40}), "b": evaluation({"rr": [0.5] * 40})}
    for test in ("randomisation", "t"):
        (row,) = rm.compare(pair, test=test).rows
        assert row.interval.method == "gaffke"
        assert row.low < 0.5 < row.high
        assert "exact bound" in row.interval.note


def test_equal_models_have_a_p_of_1_and_a_note() -> None:
    result = evaluation({"rr": [1.0, 0.5, 0.25]})
    comparison = rm.compare({"a": result, "b": evaluation({"rr": [1.0, 0.5, 0.25]})})
    assert comparison.rows[0].p_value == 1
    assert comparison.rows[0].interval.width > 0
    assert "None of the 3 users differs" in str(comparison)


def test_power_is_computed_from_the_differences(results: dict[str, rm.Evaluation]) -> None:
    pair = rm.compare({"als": results["als"], "pop": results["pop"]}, metrics="ndcg@5")
    differences = results["als"]["ndcg@5"] - results["pop"]["ndcg@5"]
    expected = stats.power(differences, 0.01, alpha=1 - 0.95)
    assert pair.power("ndcg@5", 0.01) == expected
    assert expected.fewest_users < expected.users_needed < expected.most_users
    users = f"{expected.fewest_users:,} to {expected.most_users:,} users"
    assert f"{users} ({expected.users_needed:,} if users vary as they do here)" in str(expected)
    line = f"Power: with {pair.rows[0].n} users, a true difference of "
    assert f"{line}{pair.rows[0].smallest_difference:.4f} in ndcg@5" in str(pair)
    with pytest.raises(rm.InputError, match="Hint: set model= to one of bpr, als"):
        rm.compare(results, baseline="pop").power("ndcg@5", 0.01)


def test_differing_inputs_are_refused_with_the_reason(results: dict[str, rm.Evaluation]) -> None:
    other_test = rm.evaluate(scores(0.1), TEST[:, ::-1].copy(), train=TRAIN, metrics=METRICS)
    with pytest.raises(rm.InputError, match=r"different test data: .* allow='test'"):
        rm.compare({"als": results["als"], "x": other_test})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rm.DataWarning)
        allowed = rm.compare({"als": results["als"], "x": other_test}, allow="test candidates")
    assert "Allowed: als and x were evaluated with different test data" in str(allowed)
    random = rm.evaluate(scores(0.1), TEST, train=TRAIN, metrics=METRICS, ties="random")
    with pytest.raises(rm.InputError, match="ties is 'expected' for als and 'random' for x"):
        rm.compare({"als": results["als"], "x": random})
    assert rm.compare({"als": results["als"], "x": random}, allow=["protocol"]).rows
    assert rm.compare({"als": results["als"], "x": random}, allow="ties").rows
    no_train = rm.evaluate(scores(0.1), TEST, metrics=METRICS)
    with pytest.raises(rm.InputError, match=r"different training data: .* and none"):
        rm.compare({"als": results["als"], "x": no_train})
    fewer_candidates = rm.evaluate(
        scores(0.1), TEST, train=TRAIN, metrics=METRICS, candidates=range(30)
    )
    with pytest.raises(rm.InputError, match="different candidates"):
        rm.compare({"als": results["als"], "x": fewer_candidates})
    different_candidates = evaluation({"rr": [1.0, 0.5]}, n_candidates=np.array([10, 12]))
    with pytest.raises(rm.InputError, match=r"for 1 user, for instance user 1: 10 .a. and 12 .x."):
        rm.compare({"a": evaluation({"rr": [1.0, 0.5]}), "x": different_candidates})
    unused = rm.compare({"als": results["als"], "pop": results["pop"]}, allow="train")
    assert "allow contains train, but the models do not differ in this respect" in str(unused)


@pytest.mark.parametrize(
    ("models", "options", "error", "message"),
    [
        ({"a": {"rr": [1.0]}}, {}, rm.InputError, "at least two models, found one, 'a'"),
        ({}, {}, rm.InputError, "found none"),
        ({"a": {"rr": [1, 1]}, "b": {"rr": [1, 0]}}, {"baseline": "c"}, rm.UnknownNameError, "'c'"),
        ({"a": {"rr": [1, 1]}, "b": {"ap": [1, 0]}}, {}, rm.InputError, "only one of them has ap"),
        (
            {"a": {"rr": [1, 1], "ap": [1, 1]}, "b": {"ap": [1, 0]}},
            {},
            rm.InputError,
            "metrics='ap' compares",
        ),
        (
            {"a": {"rr": [np.nan] * 3}, "b": {"rr": [0.5] * 3}},
            {},
            rm.InputError,
            "no user in common",
        ),
        ({"a": {"rr": [1, 1]}, "b": {"rr": [1, 0, 1]}}, {}, rm.InputError, "has 2 users and b 3"),
        (
            {"a": {"rr": [1, 1]}, "b": {"rr": [1, 0]}},
            {"test": "x"},
            rm.UnknownNameError,
            "test 'x'",
        ),
        (
            {"a": {"rr": [1, 1]}, "b": {"rr": [1, 0]}},
            {"correction": "holmes"},
            rm.UnknownNameError,
            "'holm'",
        ),
        (
            {"a": {"rr": [1, 1]}, "b": {"rr": [1, 0]}},
            {"primary": "ap"},
            rm.UnknownNameError,
            "'ap' was not compared",
        ),
        (
            {"a": {"rr": [1, 1]}, "b": {"rr": [1, 0]}},
            {"metrics": "ap"},
            rm.UnknownNameError,
            "a has no metric 'ap'",
        ),
        (
            {"a": {"rr": [1, 1]}, "b": {"rr": [1, 0]}},
            {"allow": "tets"},
            rm.UnknownNameError,
            "'test'",
        ),
        ({"a": {"rr": [1, 1]}, "b": {"rr": [1, 0]}}, {"margin": 0}, rm.InputError, "margin"),
    ],
)
def test_invalid_comparisons_are_refused(
    models: object, options: dict, error: type[Exception], message: str
) -> None:
    evaluations = {name: evaluation(values) for name, values in models.items()}  # type: ignore[attr-defined]
    with pytest.raises(error, match=message):
        rm.compare(evaluations, **options)


def test_objects_other_than_evaluations_are_refused(results: dict[str, rm.Evaluation]) -> None:
    with pytest.raises(rm.InputTypeError, match="found int"):
        rm.compare(3)  # type: ignore[arg-type]
    with pytest.raises(rm.InputTypeError, match="'b' is of type float"):
        rm.compare({"a": results["als"], "b": 0.3})  # type: ignore[dict-item]
    with pytest.raises(rm.FileError, match=r"nope\.parquet"):
        rm.compare(["nope.parquet", "nope2.parquet"])
    numbers = evaluation({"rr": [1.0, 0.5]}, user_ids=np.array([1, 2]))
    texts = evaluation({"rr": [1.0, 0.5]}, user_ids=np.array(["1", "2"], dtype=object))
    with pytest.raises(rm.InputTypeError, match=r"of type int .* of type str"):
        rm.compare({"a": numbers, "b": texts})
    with pytest.raises(rm.InputError, match="Only one of a and b has user ids"):
        rm.compare({"a": numbers, "b": evaluation({"rr": [1.0, 0.5]})})


def test_values_outside_the_range_get_a_note() -> None:
    first, second = evaluation({"rr": [2.0, 0.5, 0.1]}), evaluation({"rr": [0.5, 0.5, 0.2]})
    comparison = rm.compare({"a": first, "b": second})
    text = str(comparison).replace("\n  ", " ")
    assert "nan" not in text.lower()
    assert "The value 2 lies outside the range from 0 to 1" in text


@examples(0.2)
@given(st.sampled_from(["randomisation", "t", "wilcoxon", "sign"]))
def test_every_test_can_be_chosen(test: str) -> None:
    rng = np.random.default_rng(1)
    first, second = rng.random(50), rng.random(50)
    evaluations = {
        "a": evaluation({"rr": first.tolist()}),
        "b": evaluation({"rr": second.tolist()}),
    }
    row = rm.compare(evaluations, test=test).rows[0]  # type: ignore[arg-type]
    assert row.test == stats.compare(first, second, bounds=(0, 1), test=test).test  # type: ignore[arg-type]


def test_every_format_contains_all_rows(comparison: rm.Comparison) -> None:
    content = json.loads(comparison.to_json())
    assert len(content["comparisons"]) == len(comparison.rows) == 6
    assert content["comparisons"][0]["interval"]["method"] == "randomisation"
    frame = pl.read_csv(comparison.to_csv().encode())
    assert frame["difference"].to_list() == [row.difference for row in comparison.rows]
    assert comparison.frame()["difference"].to_list() == frame["difference"].to_list()
    assert comparison.to_markdown().count("| --- |") >= 1
    assert "toprule" in comparison.to_latex()
    assert "<table>" in comparison._repr_html_()
    assert repr(comparison) == "<Comparison of pop, bpr, als: ndcg@5, hit@5, coverage@5>"


def compare_by_tukey(results: dict[str, rm.Evaluation], **options: Any) -> rm.Comparison:
    return rm.compare(results, correction="tukey", primary="ndcg@5 hit@5", **options)


def test_tukeys_test_adjusts_p_over_all_models(results: dict[str, rm.Evaluation]) -> None:
    comparison = compare_by_tukey(results)
    names = [model.name for model in comparison.models]
    for metric in ("ndcg@5", "hit@5"):
        table = np.column_stack([result[metric] for result in results.values()])
        expected = stats.tukey(table)
        p_values = {}
        for model_name, other in itertools.combinations(names, 2):
            row = comparison.row(metric, model_name, other)
            p = max(expected.p_values[names.index(model_name), names.index(other)], row.p_value)
            assert row.adjusted_p == pytest.approx(min(1.0, 2 * p))
            p_values[model_name, other] = p
        best = {row.model for row in comparison.standings if row.metric == metric and row.best}
        first = next(row.model for row in comparison.standings if row.metric == metric)
        assert best == {first} | {
            name
            for name in names
            if max(p_values.get((name, first), 0), p_values.get((first, name), 0)) > 0.05
        }
        text = str(comparison).replace("\n  ", " ")
        assert f"Tukey's test of {metric} ({expected.method})" in text
        assert f"difference of {expected.critical_difference:.4f} between means" in text
    assert "by Tukey's test of all models by randomisation" in text
    # A baseline only changes which rows are shown, not the test.
    with_baseline = compare_by_tukey(results, baseline="pop")
    assert (
        with_baseline.row("ndcg@5", "als").adjusted_p
        == comparison.row("ndcg@5", "pop", "als").adjusted_p
    )


def test_tukeys_test_refuses_t_tests_coverage_and_seeds(results: dict[str, rm.Evaluation]) -> None:
    with pytest.raises(rm.InputError, match="cannot be combined with test='t'"):
        compare_by_tukey(results, test="t")
    with pytest.raises(rm.InputError, match="Hint: primary='ndcg@5 hit@5'"):
        rm.compare(results, correction="tukey")
    seeds = {"als": [evaluate(0.1, seed, "ndcg@5") for seed in range(2)], "pop": results["pop"]}
    with pytest.raises(rm.InputError, match="variance between seeds, but als has several"):
        rm.compare(seeds, metrics="ndcg@5", correction="tukey")


def test_tukeys_test_changes_the_signs_of_whole_clusters(results: dict[str, rm.Evaluation]) -> None:
    people = np.arange(results["pop"].n_users) // 3
    unclustered, together = (
        compare_by_tukey(results, cluster=clusters) for clusters in (None, people)
    )
    table = np.column_stack([row["hit@5"] for row in results.values()])
    expected = stats.tukey(table, clusters=people)
    assert expected.n == stats.tukey(table).n
    names = [model.name for model in together.models]
    row = next(row for row in together.rows if row.metric == "hit@5")
    p = expected.p_values[names.index(row.model), names.index(row.other)]
    assert row.adjusted_p == min(1.0, 2 * max(p, row.p_value))
    assert [row.adjusted_p for row in unclustered.rows] != [row.adjusted_p for row in together.rows]


def test_power_counts_clusters_instead_of_rows() -> None:
    rng = np.random.default_rng(4)
    first, second = rng.random(40), rng.random(40)
    evaluations = {
        "a": evaluation({"rr": first.tolist()}),
        "b": evaluation({"rr": second.tolist()}),
    }
    # Three identical rows in a cluster count as one.
    rows = {
        "a": evaluation({"rr": np.repeat(first, 3).tolist()}),
        "b": evaluation({"rr": np.repeat(second, 3).tolist()}),
    }
    unclustered = rm.compare(evaluations)
    together = rm.compare(rows, cluster=np.repeat(np.arange(40), 3))
    assert together.rows[0].error == pytest.approx(unclustered.rows[0].error)
    assert together.rows[0].smallest_difference == pytest.approx(
        unclustered.rows[0].smallest_difference
    )
    planned, expected = together.power("rr", 0.1), unclustered.power("rr", 0.1)
    assert (planned.n, planned.users_needed) == (40, expected.users_needed)
    assert planned.power == pytest.approx(expected.power)
    assert "These numbers count clusters, not users." in planned.note
    assert "Power: with 40 clusters, a true difference" in str(together).replace("\n  ", " ")


@pytest.fixture(scope="module")
def results_with_chance() -> dict[str, rm.Evaluation]:
    metrics = "ndcg@5 hit@5 coverage@5"
    return {
        name: rm.evaluate(scores(strength, seed), TEST, metrics=metrics, chance=True)
        for name, strength, seed in (("pop", 0.0, 1), ("bpr", 0.05, 2), ("als", 0.3, 3))
    }


@pytest.mark.parametrize(
    ("correction", "baseline"),
    [("holm", None), ("tukey", None), ("bonferroni", "pop"), ("benjamini-hochberg", "pop")],
)
def test_adding_chance_changes_nothing_for_other_models(
    results_with_chance: dict[str, rm.Evaluation], correction: Any, baseline: str | None
) -> None:
    options: dict[str, Any] = {
        "baseline": baseline,
        "correction": correction,
        "primary": "ndcg@5 hit@5",
    }
    without_chance = rm.compare(results_with_chance, **options)
    with_chance = rm.compare(results_with_chance, chance=True, **options)
    for row in without_chance.rows:
        same_row = with_chance.row(row.metric, row.model, row.other)
        assert (same_row.p_value, same_row.primary, same_row.verdict) == (
            row.p_value,
            row.primary,
            row.verdict,
        )
        assert same_row.adjusted_p == pytest.approx(row.adjusted_p, nan_ok=True)
        assert same_row.smallest_difference == pytest.approx(row.smallest_difference, nan_ok=True)
    other_standings = [row for row in with_chance.standings if row.model != "chance"]
    assert other_standings == list(without_chance.standings)
    added = [row for row in with_chance.rows if "chance" in (row.model, row.other)]
    assert {row.metric for row in added} == {"ndcg@5", "hit@5"}
    assert all(np.isnan(row.adjusted_p) and row.p_value > 0 for row in added)
    text = str(with_chance).replace("\n  ", " ")
    assert "chance is left out for coverage@5: a random order has no value there." in text
    assert "p of comparisons with it is neither adjusted nor counted." in text
    mean = np.nanmean(results_with_chance["pop"].chance["hit@5"])
    (chance_standing,) = (row for row in with_chance.standings_of("hit@5") if row.model == "chance")
    assert chance_standing.mean == pytest.approx(mean)
    assert f"{chance_standing.mean:.4f}  -" in text


def test_comparisons_with_chance_as_the_baseline_are_adjusted(
    results_with_chance: dict[str, rm.Evaluation],
) -> None:
    comparison = rm.compare(results_with_chance, baseline="chance", chance=True)
    assert comparison.metrics == ("ndcg@5", "hit@5")
    assert not any(np.isnan(row.adjusted_p) for row in comparison.rows)
    assert "Left out: coverage@5." in str(comparison)
    with pytest.raises(rm.InputError, match="a random order has no value for coverage@5"):
        rm.compare(results_with_chance, baseline="chance", chance=True, metrics="coverage@5")


def test_error_lists_metrics_without_chance(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # This test does not look at the charts, so leave Vega's JavaScript out of the page.
    monkeypatch.setattr("recometer.report.page.vega", lambda: "")
    metrics = "ndcg@5 novelty@5"
    train = TEST[:, ::-1]
    results = {
        name: rm.evaluate(scores(0.1, seed), TEST, train=train, metrics=metrics, chance=True)
        for seed, name in enumerate(("one", "two"))
    }
    comparison = rm.compare(results, chance=True)
    assert "novelty@5" in comparison.report(tmp_path / "report.html").to_markdown()
    assert "chance" not in comparison.per_user("novelty@5").columns
    assert "chance" in comparison.per_user("ndcg@5").columns
    with pytest.raises(rm.InputError, match="novelty@5 has no value for a random order"):
        comparison.changes("novelty@5", "one", "chance")


def test_metrics_can_be_selected_without_parameters_read_from_the_test_data() -> None:
    test = {"ann": {"a": 3, "b": 1}, "bob": {"b": 2}}
    metrics = "err@1,2 ndcg@2"
    models = {
        "one": rm.evaluate(rm.Lists({"ann": ["b", "a"], "bob": ["b"]}), test, metrics=metrics),
        "two": rm.evaluate(rm.Lists({"ann": ["a", "b"], "bob": ["a"]}), test, metrics=metrics),
    }
    comparison = rm.compare(
        models, metrics="err@1..2 ndcg@2", primary="err@1,2", margin={"err@2": 0.1}
    )
    names = ("err@1(max_gain=3)", "err@2(max_gain=3)")
    assert comparison.metrics == (*names, "ndcg@2")
    assert comparison.primary == names
    assert comparison.row("err@2", "one").metric == names[1]
    assert {standing.metric for standing in comparison.standings_of("err@1")} == {names[0]}
    with pytest.raises(rm.UnknownNameError, match=r"one has no metric 'err@1\(max_gain=2\)'"):
        rm.compare(models, metrics="err@1(max_gain=2)")


@pytest.mark.parametrize("n_users", [300, 25])
@pytest.mark.parametrize("width", [80, 100])
@pytest.mark.parametrize("baseline", [None, "gradientboost0"])
def test_five_models_by_six_metrics_fit_a_screen(n_users, width, baseline) -> None:
    rng = np.random.default_rng(0)
    test = rng.random((n_users, 80)) < 0.06
    metrics = "ndcg@10 recall@10 precision@10 ap@10 percentile_rank rprecision@100"
    models = {
        f"gradientboost{seed}": rm.evaluate(
            rm.Scores(rng.random(test.shape) * (seed + 1) + 0.3 * test), test, metrics=metrics
        )
        for seed in range(5)
    }
    lines = to_text(rm.compare(models, baseline=baseline), width).splitlines()
    assert len(lines) < 60
    assert max(map(len, lines)) <= width
    # Each pair has a line with its difference, interval, adjusted p and verdict.
    verdict = r"\d to [+-]0\.\d+  .*(no difference shown|better|worse)$"
    pairs = [line for line in lines if re.search(verdict, line)]
    assert len(pairs) == (10 if baseline is None else 4)


def test_print_shows_primary_metrics_in_full_and_others_on_one_line() -> None:
    metrics = "ndcg@5 hit@5 ndcg@1..20 recall@1..20 coverage@5"
    models = {f"m{seed}": evaluate(0.1 * seed, seed, metrics) for seed in range(6)}
    comparison = rm.compare(models, metrics=metrics, primary="hit@5")
    text = str(comparison)
    pairs = 6 * 5 // 2
    for line in (r"metric: hit@5\n.*\nm0 +m1 .*\n", r"recall@7 +best: m\d"):
        assert re.search(line, text)
    assert len(re.findall(r"(?m)^m\d +m\d ", text)) == pairs  # shown in full
    assert not re.search(r"(?m)^recall@7 +m\d +m\d ", text)
    assert "P(better)" not in text
    assert "P(better)" in str(rm.compare({n: models[n] for n in ("m0", "m1")}))
    printed_in_full = str(comparison.full())
    assert len(re.findall(r"(?m)^recall@7 +m\d +m\d ", printed_in_full)) == 2 * pairs
    assert len(re.findall(r"(?m)^coverage@5 +m\d +m\d ", printed_in_full)) == pairs
    assert "comparison.full() shows all pairs for all metrics" in text
    assert "full()" not in printed_in_full
    assert comparison.full().to_csv() == comparison.to_csv()
    assert comparison.full().to_json() == comparison.to_json()
    without_primary = str(rm.compare(models, metrics="hit@5 ndcg@5"))
    assert re.search(r"(?m)^ndcg@5 +best: ", without_primary)


def test_five_models_and_six_metrics_print_fewer_than_60_lines() -> None:
    metrics = "ndcg@10 recall@10 precision@10 ap@10 rr@10 hit@10"
    models = {f"model{seed}": evaluate(0.1 * seed, seed, metrics) for seed in range(5)}
    assert len(str(rm.compare(models)).splitlines()) < 60
    assert len(str(rm.Leaderboard(models)).splitlines()) < 60


@pytest.mark.parametrize("baseline", [None, "pop"])
@pytest.mark.parametrize("correction", ["holm", "tukey"])
def test_printing_does_not_repeat_tests(
    results: dict[str, rm.Evaluation],
    monkeypatch: pytest.MonkeyPatch,
    baseline: str | None,
    correction: str,
) -> None:
    comparison = rm.compare(results, baseline=baseline, metrics="ndcg@5", correction=correction)

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a test or an interval is computed again")

    for name in ("compare", "interval", "randomisation", "rank_intervals", "tukey"):
        monkeypatch.setattr(stats, name, refuse)
    assert "adjusted p" in str(comparison)
    assert "adjusted p" in str(comparison.full())
    assert len(comparison.standings) == 3


def test_leaderboard_tests_pairs_on_users_with_a_value_from_all_models() -> None:
    """The row of a pair, unlike the leaderboard, includes users without a value from model c."""
    values = np.random.default_rng(3).random((40, 3))
    values[:10, 2] = np.nan
    models = {name: evaluation({"rr": values[:, column]}) for column, name in enumerate("abc")}
    with pytest.warns(rm.DataWarning, match="left out"):
        comparison = rm.compare(models)
    left = {name: evaluation({"rr": values[10:, column]}) for column, name in enumerate("abc")}
    expected = rm.compare(left)
    assert comparison.row("rr", "a", "b").n == 40
    assert comparison.standings == expected.standings


def test_ranks_do_not_depend_on_the_baseline() -> None:
    generator = np.random.default_rng(0)
    old = generator.random(400)
    models = {
        f"m{number}": evaluation({"rr": np.clip(old + gain * generator.random(400), 0, 1).tolist()})
        for number, gain in enumerate([0, 0, 0.01, 0.02, 0.2, 0.4, 0.41])
    }
    comparison = rm.compare(models, baseline="m0")
    expected = rm.compare(models)
    assert comparison.standings == expected.standings
    assert {(standing.rank_low, standing.rank_high) for standing in comparison.standings} > {
        (1, 2),
        (3, 3),
    }

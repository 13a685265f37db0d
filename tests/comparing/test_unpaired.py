"""Groups of different users are compared by Welch's test, with or without weights and clusters."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import scipy.stats
from command_line import run_command
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from results import evaluation

import recometer as rm
from recometer.stats import compare_groups, sample_ratio

RANDOM = np.random.default_rng(7)
ONE, TWO = RANDOM.random(120), 0.8 * RANDOM.random(90)


def group(
    values: np.ndarray, first: int = 0, metric: str = "rr", **fields: object
) -> rm.Evaluation:
    """Return an evaluation of users with consecutive ids, starting at `first`."""
    ids = np.arange(first, first + len(values))
    return evaluation({metric: list(values)}, user_ids=ids, **fields)


def compared(first: np.ndarray, second: np.ndarray, **options: object) -> rm.Comparison:
    models = {"new": group(first), "old": group(second, 10_000)}
    return rm.compare(models, baseline="old", paired=False, **options)  # type: ignore[arg-type]


def printed_text(result: object) -> str:
    """Return a printed result without line breaks."""
    return " ".join(str(result).split())


def test_row_agrees_with_welchs_test() -> None:
    row = compared(ONE, TWO).row("rr", "new")
    expected = scipy.stats.ttest_ind(ONE, TWO, equal_var=False)
    assert row.p_value == pytest.approx(expected.pvalue, rel=1e-10)
    assert tuple(row.interval) == pytest.approx(tuple(expected.confidence_interval()), rel=1e-10)
    assert (row.test.test, row.interval.method, row.n) == ("welch", "welch", 210)
    assert row.difference == pytest.approx(ONE.mean() - TWO.mean())
    assert row.verdict == "better"


def test_groups_need_no_ids() -> None:
    plain = {"new": evaluation({"rr": list(ONE)}), "old": evaluation({"rr": list(TWO)})}
    comparison = rm.compare(plain, baseline="old", paired=False)
    assert comparison.row("rr", "new").p_value == compared(ONE, TWO).row("rr", "new").p_value
    assert comparison.users.n == 210


def test_error_of_a_ratio_of_sums_follows_the_delta_method() -> None:
    """The variance of r = Σ wx / Σ w is (Var(wx) - 2 r Cov(wx, w) + r² Var(w)) / (n · mean(w)²)."""
    weights = RANDOM.integers(1, 9, 120), RANDOM.integers(1, 9, 90)
    squares, ratios = [], []
    for x, w in zip((ONE, TWO), weights, strict=True):
        ratio = (w * x).sum() / w.sum()
        covariances = np.cov(w * x, w)
        variance = covariances[0, 0] - 2 * ratio * covariances[0, 1] + ratio**2 * covariances[1, 1]
        squares.append(variance / (len(x) * w.mean() ** 2))
        ratios.append(ratio)
    statistics = compare_groups(ONE, TWO, weights=weights)
    assert statistics.difference == pytest.approx(ratios[0] - ratios[1])
    assert statistics.error == pytest.approx(np.sqrt(sum(squares)))


def test_means_are_weighted_according_to_the_average_rule() -> None:
    protocol = rm.Protocol(average="relevant")
    numbers = RANDOM.integers(1, 9, 120), RANDOM.integers(1, 9, 90)
    models = {
        name: group(x, first, protocol=protocol, n_relevant=w)
        for name, x, first, w in zip("ab", (ONE, TWO), (0, 500), numbers, strict=True)
    }
    row = rm.compare(models, baseline="b", paired=False).row("rr", "a")
    statistics = compare_groups(ONE, TWO, weights=numbers, bounds=(0, 1))
    assert row.mean == pytest.approx(models["a"].mean()["rr"])
    assert (row.difference, *row.interval) == (statistics.difference, *statistics.interval)
    assert not any("weigh" in note for note in row.notes)


def test_welchs_test_treats_clusters_as_units_of_both_groups() -> None:
    clusters = np.arange(120) // 3, 1_000 + np.arange(90) // 3
    sums = [x.reshape(-1, 3).mean(axis=1) for x in (ONE, TWO)]
    expected = scipy.stats.ttest_ind(*sums, equal_var=False)
    row = compared(ONE, TWO, cluster=np.concatenate(clusters)).row("rr", "new")
    assert row.p_value == pytest.approx(expected.pvalue)
    assert (row.n, row.test.n) == (210, 70)


def test_several_groups_are_adjusted_by_holms_method() -> None:
    models = {
        n: group(x, 1_000 * number)
        for number, (n, x) in enumerate(zip("abc", (ONE, TWO, TWO**2), strict=True))
    }
    comparison = rm.compare(models, paired=False)
    p = [row.p_value for row in comparison.rows]
    assert [row.adjusted_p for row in comparison.rows] == pytest.approx(rm.stats.adjust(p).tolist())
    assert [standing.n for standing in comparison.standings] == [120, 90, 90]
    assert comparison.standings[0].mean == pytest.approx(ONE.mean())


@examples(2)
@given(
    st.integers(0, 2**32), st.integers(0, 60), st.integers(0, 60), st.sampled_from([1, 4, 1_000])
)
def test_verdict_interval_p_and_gates_agree(seed: int, n: int, m: int, levels: int) -> None:
    generator = np.random.default_rng(seed)
    first, second = (
        np.round(generator.random(size) ** 2 * levels) / levels for size in (n + 1, m + 1)
    )
    comparison = compared(first, second, margin=0.1, ratio=f"{n + 1}:{m + 1}")
    row = comparison.row("rr", "new")
    excludes = row.low > 0 or row.high < 0
    assert excludes == (row.p_value <= 0.05)
    assert excludes == (row.verdict in ("better", "worse"))
    if np.isfinite([row.relative_low, row.low]).all():
        assert np.sign(row.relative_low) == np.sign(row.low)
        assert row.relative_low <= row.relative <= row.relative_high
    verdict = comparison.gate("rr >= 0").rows[0].verdict
    expected = "passed" if row.low >= 0 else "failed" if row.high < 0 else "undecided"
    assert verdict == (expected if row.decides_gates else "undecided")
    models = {"old": group(second, 10_000), "new": group(first)}
    mirrored = rm.compare(models, paired=False, ratio=f"{m + 1}:{n + 1}").row("rr", "old", "new")
    assert mirrored.difference == pytest.approx(-row.difference, nan_ok=True)
    assert mirrored.p_value == pytest.approx(row.p_value, nan_ok=True)


def test_equivalence_consists_of_two_one_sided_welch_tests() -> None:
    row = compared(ONE, TWO, margin=0.2).row("rr", "new")
    lower = scipy.stats.ttest_ind(ONE + 0.2, TWO, equal_var=False, alternative="greater").pvalue
    upper = scipy.stats.ttest_ind(ONE - 0.2, TWO, equal_var=False, alternative="less").pvalue
    assert row.equivalence_p == pytest.approx(max(lower, upper))


def test_power_keeps_the_ratio_of_the_groups() -> None:
    plan = compared(ONE, TWO).power("rr", 0.1)
    variance = ONE.var(ddof=1) / 120 + TWO.var(ddof=1) / 90
    assert plan.n == 210
    assert plan.deviation == pytest.approx(np.sqrt(210 * variance), rel=0.01)
    assert "totals for both groups" in str(plan)


def test_sizes_are_tested_against_the_planned_ratio() -> None:
    comparison = compared(ONE, TWO)
    assert comparison.sample_ratio is not None
    assert comparison.sample_ratio.p_value == pytest.approx(scipy.stats.chisquare([120, 90]).pvalue)
    planned = compared(ONE, TWO, ratio="4:3").sample_ratio
    assert planned is not None
    assert planned.p_value == pytest.approx(1.0)
    assert sample_ratio({"a": 0, "b": 0}).p_value == 1.0
    with pytest.warns(rm.DataWarning, match="do not have the planned sizes"):
        mismatched = compared(ONE, TWO, ratio="9:1")
    assert "do not have the planned sizes" in printed_text(mismatched)
    assert "do not have the planned sizes" in printed_text(mismatched.gate("rr >= -5%"))
    assert json.loads(mismatched.to_json())["sample_ratio"]["counts"] == {"new": 120, "old": 90}


def test_users_in_both_groups_are_refused() -> None:
    models = {"new": group(ONE), "old": group(TWO, 119)}
    with pytest.raises(rm.InputError, match="1 users are in several groups, for instance 119"):
        rm.compare(models, paired=False)
    with pytest.raises(rm.InputError, match="clusters of users are in several groups"):
        compared(ONE, TWO, cluster=np.arange(210) % 7)


def test_error_about_different_users_suggests_unpaired_comparisons() -> None:
    with pytest.raises(rm.InputError, match="paired=False"):
        rm.compare({"new": group(ONE), "old": group(TWO, 500)})
    with pytest.raises(rm.InputError, match="paired=False"):
        rm.compare([evaluation({"rr": list(ONE)}), evaluation({"rr": list(TWO)})])
    draw = RANDOM.random((20, 10)) < 0.3
    users = [list(range(20)), list(range(50, 70))]
    results = [
        rm.evaluate(
            rm.Scores(RANDOM.random((20, 10)), user_ids=ids, item_ids=list(range(10))),
            {user: np.flatnonzero(row).tolist() for user, row in zip(ids, draw, strict=True)},
            metrics="ndcg@5 coverage@5",
        )
        for ids in users
    ]
    with pytest.raises(rm.InputError, match=r"different test data.*paired=False"):
        rm.compare(results)
    comparison = rm.compare(results, paired=False)
    assert comparison.metrics == ("ndcg@5",)
    assert any(note.startswith("Left out: coverage@5") for note in comparison.notes)
    with pytest.raises(rm.InputError, match="cannot be compared on coverage@5"):
        rm.compare(results, paired=False, metrics="coverage@5")


def test_groups_under_different_rules_are_refused() -> None:
    other_group = group(TWO, 500, protocol=rm.Protocol(undefined=0.0))
    with pytest.raises(rm.InputError, match="under different rules: undefined"):
        rm.compare({"new": group(ONE), "old": other_group}, paired=False)


def test_segments_are_compared_but_single_users_are_not() -> None:
    comparison = compared(ONE, TWO)
    sides = dict.fromkeys([*range(60), *range(10_000, 10_045)], "first")
    sides |= dict.fromkeys([*range(60, 120), *range(10_045, 10_090)], "second")
    rows = {row.group: row for row in comparison.by(sides, "rr", "new").rows}
    expected = scipy.stats.ttest_ind(ONE[:60], TWO[:45], equal_var=False).confidence_interval()
    assert (rows["first"].low, rows["first"].high) == pytest.approx(tuple(expected))
    with pytest.raises(rm.InputError, match="no user gains or loses"):
        comparison.changes("rr", "new")


def test_gates_are_undecided_if_too_few_users_differ() -> None:
    first, second = np.zeros(200), np.zeros(200)
    first[:25] = 1
    comparison = compared(first, second, ratio="1:1")
    assert comparison.gate("rr >= -5%").rows[0].verdict == "undecided"
    assert "too few to rule out a rare large loss" in printed_text(comparison.full())


def test_variances_of_errors_over_rows_add_up() -> None:
    """Each group's rows are resampled independently, so the variances of the two means add up."""
    rows = [
        {
            "user_id": np.repeat(np.arange(first, first + 40), 5),
            "item_id": np.tile(np.arange(5), 40),
            "rating": RANDOM.integers(1, 6, 200).astype(float),
            "score": RANDOM.normal(3, 1, 200),
        }
        for first in (0, 100)
    ]
    results = [
        rm.evaluate(rm.Pairs(pl.DataFrame(arm), score="score", rating="rating"), metrics="rmse")
        for arm in rows
    ]
    row = rm.compare(results, paired=False).rows[0]
    arms = [(high - low) / 2 for low, high in (evaluated.interval("rmse") for evaluated in results)]
    assert (row.high - row.low) / 2 == pytest.approx(np.hypot(*arms), rel=0.05)


def test_report_does_not_show_changes_of_single_users(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    compared(ONE, TWO).report(path)
    page = path.read_text(encoding="utf-8")
    assert "new beats old" in page
    assert "Sample ratio: new 120" in page
    assert "Who wins, who loses" not in page
    assert "better off with" not in page


def test_compare_command_accepts_different_users(tmp_path: Path) -> None:
    paths = []
    for name, group_result in (("new", group(ONE)), ("old", group(TWO, 500))):
        paths.append(str(tmp_path / f"{name}.parquet"))
        group_result.save(paths[-1])
    call = ["compare", *paths, "--baseline", "old"]
    result = run_command([*call, "--unpaired", "--ratio", "4:3", "--format", "json"])
    assert result.exit_code == 0, result.output
    content = json.loads(result.stdout)
    assert content["test"] == "welch"
    assert content["sample_ratio"]["expected"] == {"new": 120, "old": 90}
    refused = run_command(call)
    assert "--unpaired" in refused.output
    page = ["report", *call[1:], "--unpaired", "--ratio", "4:3", "--out", str(tmp_path / "page.md")]
    assert run_command(page).exit_code == 0
    assert "new beats old" in (tmp_path / "page.md").read_text("utf-8")


def test_group_of_one_user_is_not_tested() -> None:
    row = compared(ONE[:1], TWO, ratio="1:90").row("rr", "new")
    assert np.isnan(row.p_value)
    assert row.verdict == ""
    assert "two users with a value in each group" in row.test.note
    assert dataclasses.asdict(row)["test"]["method"] == "none"

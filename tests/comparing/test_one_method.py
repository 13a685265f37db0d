"""The interval, p, verdict and gates of a row come from one method and always agree."""

from __future__ import annotations

import numpy as np
import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from results import evaluation
from scipy.special import ndtr

import recometer as rm
from recometer.comparing.rows import PairRow
from recometer.stats import tests
from recometer.stats.tests import TESTS

PASSED, UNDECIDED, FAILED = "passed", "undecided", "failed"


def compared(
    first: np.ndarray, second: np.ndarray, metric: str = "rr", **options: object
) -> rm.Comparison:
    models = {"new": evaluation({metric: list(first)}), "old": evaluation({metric: list(second)})}
    return rm.compare(models, baseline="old", **options)  # type: ignore[arg-type]


def draw_models(
    seed: int, n: int, share: float, gain: float, levels: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the values of two models, which differ for the given share of users.

    Values are rounded to multiples of 1 / `levels`; with few levels, many values are equal.
    """
    generator = np.random.default_rng(seed)
    old = generator.random(n) * (generator.random(n) < 0.6)
    new = np.where(generator.random(n) < share, old + gain + generator.normal(0, 0.3, n), old)
    return tuple(np.round(np.clip(values, 0, 1) * levels) / levels for values in (new, old))


CASES = {
    "seed": st.integers(0, 10_000),
    "n": st.sampled_from([1, 2, 5, 12, 25, 50, 120]),
    "share": st.sampled_from([0.0, 0.05, 0.3, 0.6, 1.0]),
    "gain": st.sampled_from([-0.3, -0.1, 0.0, 0.1, 0.3]),
    "levels": st.sampled_from([1, 4, 1_000]),
}
METHODS = st.sampled_from([{}, {"test": "t"}, {"test": "sign"}, {"test": "wilcoxon"}])


@examples(4)
@given(options=METHODS, metric=st.sampled_from(["rr", "rmse"]), **CASES)
def test_row_never_contradicts_itself(
    seed: int, n: int, share: float, gain: float, levels: int, options: dict, metric: str
) -> None:
    comparison = compared(*draw_models(seed, n, share, gain, levels), metric, **options)
    (row,) = comparison.rows
    excludes = row.low > 0 or row.high < 0
    if options.get("test") not in ("sign", "wilcoxon"):
        assert excludes == (row.p_value <= 0.05)
        assert (row.verdict in ("better", "worse")) == excludes
    if row.verdict in ("better", "worse"):
        assert excludes
        assert (row.verdict == "better") == ((row.low > 0) == row.higher_is_better)
    sign = ">=" if row.higher_is_better else "<="
    plain, relative = (comparison.gate(f"{metric} {sign} 0{unit}").verdict for unit in ("", "%"))
    assert plain == relative or np.isnan(row.relative)
    if plain == PASSED:
        assert row.verdict != "worse"
    if plain == FAILED:
        assert row.verdict in ("worse", "no difference shown")
    for end, unit in zip(row.interval, row.relative_interval, strict=True):
        assert np.sign(end) == np.sign(unit) or np.isnan(unit)
    (standing, *_) = comparison.standings
    has_single_best = sum(standing.best for standing in comparison.standings) == 1
    if options == {}:
        assert has_single_best == (row.verdict in ("better", "worse")), standing


def compare_with_differences(
    *values: float, ties: int, metric: str = "rr"
) -> tuple[rm.Comparison, PairRow]:
    """Compare two models on users with these differences, and on `ties` users for whom they tie."""
    new = np.append(0.4 + np.array(values), np.full(ties, 0.4))
    comparison = compared(new, np.full(len(new), 0.4), metric)
    return comparison, comparison.rows[0]


def test_gaffkes_bound_decides_if_few_of_many_users_differ() -> None:
    """24 of 500 users gain 0.3. A sign test gives p = 1e-7, but cannot rule out rare large losses.

    Half of p is the level at which the lower end of the interval is 0. This level is
    P(Σ E·d ≤ E0) = (1 / 1.3)^24, where each user with a gain of d has an exponential variable E,
    and E0 belongs to an added loss of 1.
    """
    comparison, row = compare_with_differences(*[0.3] * 24, ties=476)
    assert row.test.test == row.test.method == row.interval.method == "gaffke"
    assert row.p_value == pytest.approx(2 * 1.3**-24, rel=1e-6)
    assert row.verdict == "better"
    assert "24 users differ: too few to rule out a rare large loss." in row.notes
    few_changes, of_few = compare_with_differences(*[0.1] * 24, ties=476)
    assert of_few.p_value == pytest.approx(2 * 1.1**-24, rel=1e-6)
    assert of_few.low < 0 < of_few.high
    assert of_few.verdict == "no difference shown"
    assert few_changes.gate("rr >= 0").verdict == few_changes.gate("rr >= 0%").verdict == UNDECIDED
    assert "24 users differ: too few to rule out a rare large loss." in str(few_changes)
    assert comparison.gate(["rr >= 0", "rr >= 0%"]).passed


@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.95, 0.999])
def test_p_is_the_smallest_level_at_which_the_interval_excludes_0(confidence: float) -> None:
    """At a confidence of 1 - p, one end of the interval is 0."""
    generator = np.random.default_rng(4)
    values = generator.normal(0.15, 0.2, 12).clip(-0.4, 0.5)
    new, old = np.append(0.5 + values, np.zeros(60)), np.append(np.full(12, 0.5), np.zeros(60))
    (row,) = compared(new, old).rows
    p = row.p_value
    assert row.test.test == "gaffke"
    for level, excluded in ((p * 1.001, True), (p * 0.999, False)):
        (row_at_level,) = compared(new, old, confidence=1 - level).rows
        assert (0.0 not in row_at_level.interval) == excluded
    (row,) = compared(new, old, confidence=confidence).rows
    assert row.p_value == p
    assert (0.0 not in row.interval) == (p <= 1 - confidence)


def test_p_of_hits_counts_one_more_loss() -> None:
    """For hits, p is that of a sign test that also counts the loss added by Gaffke's bound."""
    comparison = compared(
        np.repeat([1.0, 0.0, 0.0], [7, 2, 91]), np.repeat([0.0, 1.0, 0], [7, 2, 91])
    )
    # This p is twice P(Bin(9, 1/2) <= 2).
    assert comparison.rows[0].p_value == pytest.approx(2 * (1 + 9 + 36) / 2**9)


@pytest.mark.parametrize("n", [25, 50])
def test_inverted_test_decides_if_all_topics_differ(n: int) -> None:
    """Gaffke's bound would hardly detect anything with 25 or 50 topics (docs/statistics.md)."""
    generator = np.random.default_rng(n + 1)
    old = np.full(n, 0.4)
    comparison = compared((old + generator.laplace(0.1, 0.1, n)).clip(0, 1), old)
    (row,) = comparison.rows
    assert row.interval.method == row.test.test == "randomisation"
    assert row.verdict == "better"
    assert f"few users ({n})" in " ".join(row.notes)
    assert comparison.gate(["rr >= 0", "rr >= 0%"]).passed


@pytest.mark.parametrize(
    ("n_differ", "ties", "method", "note"),
    [
        (12, 12, "gaffke", "too few"),  # the models tie for half of the users
        (13, 12, "randomisation", "few users"),
        (29, 100, "gaffke", "too few"),
        (30, 100, "randomisation", ""),
    ],
)
def test_method_depends_on_how_many_users_differ(
    n_differ: int, ties: int, method: str, note: str
) -> None:
    _, row = compare_with_differences(*np.linspace(0.05, 0.4, n_differ), ties=ties)
    assert row.interval.method == row.relative_interval.method == method
    assert (note in " ".join(row.notes)) if note else (row.notes == ())


def test_few_differing_users_without_a_range_leave_gates_undecided() -> None:
    comparison, row = compare_with_differences(*[-0.3] * 12, ties=100, metric="rmse")
    assert row.interval.method == row.test.test == "randomisation"
    assert "12 users differ: too few to rule out a rare large loss." in " ".join(row.notes)
    for gate in ("rmse <= 0", "rmse <= 0%", "rmse <= 50%"):
        (gate_row,) = comparison.gate(gate).rows
        assert gate_row.verdict == UNDECIDED
        assert "Too few users differ for a decision" in gate_row.note
    enough, _ = compare_with_differences(*[-0.3] * 30, ties=100, metric="rmse")
    assert enough.gate("rmse <= 0").passed


@pytest.mark.parametrize("test", ["randomisation", "t"])
@pytest.mark.parametrize("metric", ["rr", "rmse"])
def test_equal_models_are_undecided_by_every_gate(metric: str, test: str) -> None:
    values = np.linspace(0, 1, 40)
    comparison = compared(values, values, metric, test=test)
    sign = "<=" if metric == "rmse" else ">="
    for gate in (f"{metric} {sign} 0", f"{metric} {sign} 0%"):
        assert comparison.gate(gate).verdict == UNDECIDED


def test_ratio_to_a_baseline_near_0_has_no_upper_end() -> None:
    generator = np.random.default_rng(2)
    old = np.where(np.arange(60) < 3, 0.02, 0.0)
    comparison = compared(generator.random(60), old)
    (row,) = comparison.rows
    assert row.relative_high == np.inf
    assert row.relative_low > 0
    text = " ".join(str(comparison).split())
    assert "the baseline cannot be distinguished from 0" in text
    assert "no upper end" in text
    assert comparison.gate("rr >= 0%").passed


def test_relative_differences_need_a_positive_baseline() -> None:
    (row,) = compared(np.full(40, 0.5), np.zeros(40)).rows
    assert np.isnan([row.relative, row.relative_low]).all()
    assert "is not above 0" in " ".join(row.notes)
    from recometer import stats

    statistics = stats.compare([0.5, -0.2, 0.3], [0.4, 0.1, 0.2], bounds=(-1, 1))
    assert np.isnan(statistics.relative)
    assert (
        "can be negative, so a relative difference has no meaning"
        in statistics.relative_interval.note
    )
    assert (
        "can be negative, so a relative difference has no meaning"
        in stats.compare([0.5, -0.2], [0.4, 0.1]).relative_interval.note
    )


def test_plain_and_relative_gates_agree_over_seeds() -> None:
    generator = np.random.default_rng(3)
    old = generator.random(60)
    for shift in np.linspace(-0.05, 0.05, 9):
        runs = [
            evaluation({"rr": (old + shift + generator.normal(0, 0.1, 60)).clip(0, 1).tolist()})
            for _ in range(3)
        ]
        models = {"new": runs, "old": evaluation({"rr": old.tolist()})}
        comparison = rm.compare(models, baseline="old")
        assert comparison.gate("rr >= 0").verdict == comparison.gate("rr >= 0%").verdict
        (row,) = comparison.rows
        assert -1 <= row.relative_low < row.relative < row.relative_high


@pytest.mark.parametrize("n_seeds", [2, 3, 7])
def test_equal_seeds_show_no_difference(n_seeds: int) -> None:
    run = evaluation({"rr": np.random.default_rng(n_seeds).random(80).tolist()})
    comparison = rm.compare({"new": [run] * n_seeds, "old": run}, baseline="old")
    (row,) = comparison.rows
    assert (row.difference, row.p_value, row.verdict) == (0, 1, "no difference shown")
    assert (row.n_better, row.n_equal, row.n_worse) == (0, 80, 0)
    assert comparison.gate("rr >= 0").verdict == UNDECIDED


def test_seeds_of_a_single_user_give_no_intervals() -> None:
    models = {"new": [evaluation({"rr": [value]}) for value in (0.5, 1.0)]}
    comparison = rm.compare(models | {"old": evaluation({"rr": [0.25]})}, baseline="old")
    (row,) = comparison.rows
    assert (row.difference, row.relative) == (0.5, 2)
    assert np.isnan([*row.interval, *row.relative_interval]).all()
    assert [comparison.gate(f"rr >= {bound}").verdict for bound in ("0", "0%")] == [UNDECIDED] * 2
    assert "over the 1 user with a value from every model" in " ".join(str(comparison).split())


@pytest.mark.parametrize(("value", "other_value"), [(0.5, 0.25), (1.0, 1.0), (0.5, 0.0)])
def test_row_of_a_single_user_has_both_values_but_shows_no_difference(
    value: float, other_value: float
) -> None:
    comparison = compared(np.array([value]), np.array([other_value]))
    (row,) = comparison.rows
    assert (row.mean, row.mean_other, row.n) == (value, other_value, 1)
    assert row.p_value == 1
    assert row.verdict == "no difference shown"
    assert f"{value:.4f}" in str(comparison)
    assert comparison.gate("rr >= 0").verdict == UNDECIDED


def test_row_has_a_note_if_only_the_adjustment_hides_a_difference() -> None:
    generator = np.random.default_rng(5)
    old, noise = 0.3 + 0.4 * generator.random(60), generator.normal(size=60)
    t = 2.4  # p is about 0.02
    noise += t / np.sqrt(60) * noise.std(ddof=1) - noise.mean()
    better = evaluation({"rr": (old + 0.05 * noise).tolist()})
    equal = {f"m{shift}": evaluation({"rr": np.roll(old, shift).tolist()}) for shift in range(1, 9)}
    models = {"new": better, **equal, "old": evaluation({"rr": old.tolist()})}
    row = rm.compare(models, baseline="old").row("rr", "new")
    assert row.low > 0
    assert row.p_value <= 0.05 < row.adjusted_p
    assert row.verdict == "no difference shown"
    assert "Without the adjustment of p" in " ".join(row.notes)
    (single_row,) = rm.compare({"new": better, "old": models["old"]}, baseline="old").rows
    assert single_row.verdict == "better"
    assert "adjustment" not in " ".join(single_row.notes)


def test_new_test_needs_only_an_entry_in_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    """Once a test is declared, all outputs contain its name, sentence and hypothesis."""
    monkeypatch.setitem(TESTS, "yuen", TESTS["t"])  # monkeypatch removes the test afterwards

    @tests.paired("yuen", "Yuen's test of trimmed means", "the trimmed mean difference is 0")
    def yuen(differences: np.ndarray) -> tests.Outcome:
        middle = np.sort(differences)[len(differences) // 5 : -(len(differences) // 5)]
        z = abs(middle.mean()) / middle.std(ddof=1) * np.sqrt(len(middle))
        return tests.Outcome(float(2 * ndtr(-z)), "normal")

    first, second = draw_models(0, 120, 1.0, 0.3, 1_000)
    for options in ({}, {"margin": 0.1}, {"cluster": np.arange(120) // 2}, {"correction": "none"}):
        comparison = compared(first, second, test="yuen", **options)
        (row,) = comparison.rows
        assert (row.test.test, row.verdict) == ("yuen", "better")
        assert "p: Yuen's test of trimmed means: from the normal distribution." in str(comparison)
        assert "it tests a different hypothesis" in str(comparison).replace("\n  ", " ")
        assert comparison.gate("rr >= 0").passed
        assert comparison.to_dict()["test"] == "yuen"
    assert compared(second, second, test="yuen").rows[0].p_value == 1.0

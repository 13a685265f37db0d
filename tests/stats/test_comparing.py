"""Paired tests, their intervals and effect sizes agree with enumeration, SciPy and definitions."""

from __future__ import annotations

import itertools
import math
import re

import numpy as np
import pytest
import scipy
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from recometer.errors import InputError, UnknownNameError
from recometer.stats import (
    Interval,
    compare,
    equivalence,
    most_changed,
    randomisation,
)
from recometer.stats.comparing import FEW_DIFFER, consistent
from recometer.stats.grouping import Column
from recometer.stats.saddlepoint import multiples_of_unit, of_multiples, quantile_of
from recometer.stats.tests import TESTS

Float64 = NDArray[np.float64]
UNIT = (0.0, 1.0)


def enumerated(differences: Float64) -> float:
    """Return the share of sign assignments with a sum at least as far from 0 as the actual sum."""
    sums = np.zeros(1)
    for difference in differences[differences != 0]:
        sums = np.concatenate([sums - difference, sums + difference])
    observed = abs(differences.sum())
    return float(np.mean(np.abs(sums) >= observed - 1e-9 * np.abs(differences).sum()))


def models(n: int, seed: int = 0, share: float = 0.4, gain: float = 0.0) -> tuple[Float64, Float64]:
    """Draw NDCG-like values for two models, the first of which is better by `gain`."""
    generator = np.random.default_rng(seed)
    common = generator.random(n)
    values_of_models = []
    for better in (gain, 0.0):
        value = (common + generator.random(n)) / 2 * (1 - better) + better
        values_of_models.append(value * (generator.random(n) < share + better))
    return values_of_models[0], values_of_models[1]


DIFFERENCES = {
    "continuous": lambda generator, n: generator.random(n) - 0.3,
    "heavy tails": lambda generator, n: generator.standard_cauchy(n) + 1,
    "one unit": lambda generator, n: generator.choice([-0.1, 0.0, 0.1], n, p=[0.2, 0.2, 0.6]),
    "multiples": lambda generator, n: generator.integers(-3, 6, n) / 10,
    "thirds": lambda generator, n: generator.integers(-3, 6, n) / 3 + generator.integers(0, 2, n),
    "sparse": lambda generator, n: generator.random(n) * generator.integers(-1, 2, n),
}


@pytest.mark.parametrize("kind", DIFFERENCES)
@pytest.mark.parametrize("n", [1, 2, 7, 16, 20])
def test_p_equals_enumeration_of_all_sign_assignments(kind: str, n: int) -> None:
    generator = np.random.default_rng(n)
    for _ in range(3):
        differences = DIFFERENCES[kind](generator, n)
        result = randomisation(differences)
        assert result.exact
        assert result.p_value == pytest.approx(enumerated(differences), rel=1e-9)
        assert result.smallest_p == 2.0 ** (1 - result.n_differ) if result.n_differ else 1.0
        assert result.n_differ == np.count_nonzero(np.abs(differences) > 1e-12)


@pytest.mark.parametrize("kind", ["continuous", "normal", "a far value"])
def test_saddlepoint_approximation_is_close_to_enumeration(
    monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setattr("recometer.stats.tests.ENUMERATED_UP_TO", 0)
    generator = np.random.default_rng(5)
    n_compared, tolerance = 0, 0.06 if kind == "a far value" else 0.03
    for _ in range(25):
        differences = generator.random(20) - 0.35
        if kind == "normal":
            differences = generator.normal(0.4, 1, 20)
        elif kind == "a far value":
            differences[0] = generator.choice([-3.0, 3.0])
        expected, result = enumerated(differences), randomisation(differences)
        assert result.method == "saddlepoint"
        if expected > 1e-4:
            assert result.p_value == pytest.approx(expected, rel=tolerance)
            n_compared += 1
    assert n_compared > 15


@pytest.mark.parametrize(("n", "shift"), [(400, 0.02), (1_000, 0.03), (1_000, 0.002)])
def test_exact_and_approximate_p_agree_for_many_users(n: int, shift: float) -> None:
    """p is exact if differences are multiples of a unit, and approximate with a little noise."""
    generator = np.random.default_rng(n)
    differences = np.round(generator.normal(shift, 0.3, n), 1)
    exact = randomisation(differences)
    noisy = randomisation(differences + 1e-7 * generator.random(n))
    assert (exact.method, noisy.method) == ("convolution", "saddlepoint")
    assert noisy.p_value == pytest.approx(exact.p_value, rel=0.1)


def test_p_of_equal_differences_is_binomial_far_into_the_tail() -> None:
    differences = np.repeat([0.1, -0.1, 0.0], [900, 100, 50])
    result = randomisation(differences)
    expected = scipy.stats.binomtest(900, 1_000).pvalue
    assert result.method == "binomial"
    assert expected < 1e-150
    assert result.p_value == pytest.approx(expected, rel=1e-9)
    # Two more differences, of two units each, require a convolution: they add -4, 0 or 4 to the
    # sum.
    nearly = randomisation(np.append(differences, [0.2, -0.2]))
    assert nearly.method == "convolution"
    assert nearly.p_value == pytest.approx(
        2 * scipy.stats.binom.sf([897, 899, 901], 1_000, 0.5) @ [0.25, 0.5, 0.25], rel=1e-9
    )


# With NumPy 1, SciPy emits this warning.
@pytest.mark.filterwarnings("ignore:overflow encountered in scalar power")
def test_p_of_thousands_of_users_agrees_with_resampling() -> None:
    """p is within 3 standard errors of SciPy's p from 1,000 random sign assignments."""
    first, second = models(5_000, gain=0.008)
    result = compare(first, second, bounds=UNIT)
    resampled = scipy.stats.permutation_test(
        (first - second,),
        lambda x, axis=-1: x.mean(axis=axis),
        permutation_type="samples",
        vectorized=True,
        n_resamples=1_000,
        batch=500,
        rng=np.random.default_rng(0),
    ).pvalue
    assert result.test.method == "saddlepoint"
    assert resampled == pytest.approx(result.test.p_value, abs=3 * np.sqrt(0.25 / 1_000))
    assert result.test.p_value == pytest.approx(
        scipy.stats.ttest_rel(first, second).pvalue, abs=0.002
    )


@pytest.mark.parametrize(("n", "gain"), [(60, 0.1), (400, 0.02), (6_000, 0.0)])
def test_interval_ends_where_the_test_starts_to_reject(n: int, gain: float) -> None:
    first, second = models(n, gain=gain)
    result = compare(first, second, bounds=UNIT)
    assert result.interval.method == "randomisation"
    differences = first - second
    for end, sign in zip(result.interval, (1, -1), strict=True):
        for shift_inwards, rejected in ((-0.01, True), (0.01, False)):
            moved = differences - end - sign * shift_inwards * result.interval.width
            assert (randomisation(moved).p_value < 0.05) == rejected


@pytest.mark.parametrize("clusters", [np.arange(120), np.arange(120) ** 2 // 300])
def test_skewed_differences_shifted_by_an_end_have_p_at_the_level(clusters: Float64) -> None:
    differences = np.random.default_rng(1).random(120) ** 2
    result = compare(differences, np.zeros(120), clusters=clusters, confidence=0.8)
    sums, rows = (np.bincount(clusters, weights=x) for x in (differences, np.ones(120)))
    for end in result.interval:
        assert randomisation(sums - end * rows).p_value == pytest.approx(0.2, rel=1e-4)


def test_interval_excludes_0_if_p_equals_the_level() -> None:
    """All five users differ in the same direction, so p is 1/16, which is also the level."""
    result = compare([0.1, 0.4, 0.2, 0.7, 0.3], np.zeros(5), confidence=15 / 16)
    assert result.test.p_value == 1 / 16
    assert 0 < result.interval.low < result.difference < result.interval.high < np.inf


@given(st.integers(0, 10_000), st.integers(30, 80), st.floats(0, 0.3))
def test_interval_contains_0_exactly_when_p_is_above_5_percent(
    seed: int, n: int, gain: float
) -> None:
    first, second = models(n, seed, gain=gain, share=0.9)
    for values in ((first, second), (np.round(first, 1), np.round(second, 1))):
        result = compare(*values)
        assert (0.0 in result.interval) == (result.test.p_value > 0.05)
        assert result.difference in result.interval


@given(st.integers(0, 10_000), st.integers(0, 60))
def test_user_order_changes_nothing_and_model_order_only_signs(seed: int, n: int) -> None:
    first, second = models(n, seed, gain=0.1)
    first[: n // 10] = np.nan
    result = compare(first, second, bounds=UNIT)
    order = np.random.default_rng(seed).permutation(n)
    reordered = compare(first[order], second[order], bounds=UNIT)
    swapped = compare(second, first, bounds=UNIT)

    def facts(comparison, sign: int) -> list[float]:
        ends = [comparison.interval.low, comparison.interval.high][::sign]
        shares = [comparison.probability_better, 1 - comparison.probability_better][::sign]
        counts = [comparison.n_better, comparison.n_worse][::sign]
        means = [comparison.mean, comparison.mean_other][::sign]
        moved = [sign * x for x in (comparison.difference, *ends, comparison.standardised)]
        return [
            *moved,
            *shares,
            *counts,
            *means,
            comparison.test.p_value,
            comparison.n,
            comparison.n_equal,
        ]

    np.testing.assert_allclose(facts(reordered, 1), facts(result, 1), rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(facts(swapped, -1), facts(result, 1), rtol=1e-7, atol=1e-9)
    assert (swapped.n_only_model, swapped.n_only_other) == (
        result.n_only_other,
        result.n_only_model,
    )


def test_students_t_matches_scipy() -> None:
    first, second = models(40, gain=0.1)
    result = compare(first, second, test="t")
    expected = scipy.stats.ttest_rel(first, second)
    hits = [1.0, 1.0, 0.0, 0.0, 1.0], [0.0, 1.0, 1.0, 0.0, 0.0]
    assert compare(*hits).unit == 1
    assert compare(*hits, test="t").unit == 0  # other tests use no unit
    assert result.test.p_value == pytest.approx(expected.pvalue, rel=1e-9)
    np.testing.assert_allclose(tuple(result.interval), tuple(expected.confidence_interval()))


@pytest.mark.parametrize("n", [5, 50, 51, 400])
@pytest.mark.parametrize("digits", [1, 9])
def test_wilcoxon_matches_scipy(n: int, digits: int) -> None:
    first, second = models(n, gain=0.1, share=1.0)
    first, second = np.round(first, digits), np.round(second, digits)
    differences = np.round(first - second, digits)
    result = compare(first, second, test="wilcoxon")
    method = "exact" if n <= 50 and digits == 9 else "approx"
    expected = scipy.stats.wilcoxon(differences[differences != 0], method=method).pvalue
    assert result.test.p_value == pytest.approx(max(expected, result.test.smallest_p), rel=1e-9)
    assert result.test.exact == (method == "exact")


@pytest.mark.parametrize(("n", "method"), [(30, "enumeration"), (31, "saddlepoint")])
def test_up_to_30_differences_are_enumerated(n: int, method: str) -> None:
    assert randomisation(np.random.default_rng(0).random(n)).method == method


@pytest.mark.parametrize("test", ["randomisation", "t", "wilcoxon", "sign"])
def test_p_does_not_depend_on_the_unit_of_the_values(test) -> None:
    first, second = models(45, gain=0.1, share=1.0)
    tiny = compare(first * 1e-60, second * 1e-60, test=test).test
    assert tiny.p_value == pytest.approx(compare(first, second, test=test).test.p_value, rel=1e-6)


def test_sign_test_matches_the_binomial_test_of_scipy() -> None:
    first, second = models(200, gain=0.1)
    result = compare(first, second, test="sign")
    better, worse = int((first > second).sum()), int((first < second).sum())
    expected = scipy.stats.binomtest(better, better + worse).pvalue
    assert result.test.p_value == pytest.approx(expected, rel=1e-9)
    assert result.test.note == ""
    assert compare([1.0, 0.0], [0.0, 1.0], test="sign").test.p_value == 1


@pytest.mark.parametrize("test", ["wilcoxon", "sign"])
def test_wilcoxon_and_sign_tests_add_a_note_above_3000_users(test) -> None:
    result = compare(*models(3_001), test=test)
    assert "errs more often than its p-values suggest" in result.test.note
    assert compare(*models(3_000), test=test).test.note == ""


@pytest.mark.parametrize(("n_differ", "method"), [(29, "gaffke"), (30, "randomisation")])
def test_gaffkes_interval_is_used_below_30_differing_users(n_differ: int, method: str) -> None:
    differences = np.append(np.linspace(0.1, 0.9, n_differ), np.zeros(70))
    assert compare(differences, np.zeros(n_differ + 70), bounds=UNIT).interval.method == method


def test_few_differing_users_have_gaffkes_interval_or_a_note() -> None:
    first, second = models(500, share=0.01)
    result = compare(first, second, bounds=UNIT)
    assert result.test.n_differ < FEW_DIFFER
    assert result.interval.method == "gaffke"
    moved = compare(first + 1, second + 1, bounds=(1, 2))
    assert tuple(moved.interval) == pytest.approx(tuple(result.interval))
    without_bounds = compare(first, second)
    assert without_bounds.interval.width < result.interval.width
    assert without_bounds.interval.method == "randomisation"
    assert f"{result.test.n_differ} users differ: too few" in without_bounds.interval.note
    assert "no known range" in without_bounds.interval.note


@pytest.mark.parametrize("bounds", [(1.0, 1.0), (0.0, np.inf), (-np.inf, np.inf)])
def test_gaffkes_interval_is_not_used_without_a_finite_range(bounds: tuple[float, float]) -> None:
    assert compare(np.ones(4), np.ones(4), bounds=bounds).interval.method == "randomisation"


def test_relative_difference_is_the_ratio_of_means_minus_1() -> None:
    first, second = models(200, gain=0.1)
    result = compare(first, second)
    assert result.relative == pytest.approx(first.mean() / second.mean() - 1)
    resampled = scipy.stats.bootstrap(
        (first, second),
        lambda x, y, axis=-1: x.mean(axis=axis) / y.mean(axis=axis) - 1,
        paired=True,
        n_resamples=20_000,
        batch=2_000,
        rng=np.random.default_rng(0),
    ).confidence_interval
    with_nan = compare([*first, np.nan, 1.0], [*second, 0.5, np.nan])
    assert with_nan.relative == result.relative
    assert with_nan.relative_interval == result.relative_interval
    assert (result.n_only_model, result.n_only_other) == (0, 0)
    with pytest.raises(InputError, match="have 200 and 199"):
        compare(first, second[1:])
    width = result.relative_interval.width
    np.testing.assert_allclose(tuple(result.relative_interval), tuple(resampled), atol=0.04 * width)


@pytest.mark.parametrize("n", [30, 200])
def test_t_statistic_at_the_ends_of_the_relative_interval_is_the_critical_value(n: int) -> None:
    first, second = models(n, gain=0.1)
    result = compare(first, second, test="t")
    assert result.relative_interval.method == "t"
    statistics = []
    for end in result.relative_interval:
        residuals = first - (1 + end) * second
        statistics.append(residuals.mean() / (residuals.std(ddof=1) / math.sqrt(n)))
    critical = scipy.stats.t.ppf(0.975, n - 1)
    np.testing.assert_allclose(statistics, [critical, -critical], rtol=1e-9)


def test_ratio_with_a_divisor_from_one_user_has_no_upper_end() -> None:
    """A resample without the only user whose divisor is not 0 has an unbounded ratio."""
    second = np.zeros(20)
    second[0] = 1.0
    compared = compare(np.ones(20), second)
    value, result = compared.relative, compared.relative_interval
    assert value == 19
    assert 0 < result.low < value < result.high == np.inf
    assert "the baseline cannot be distinguished from 0" in result.note


def test_effect_sizes_follow_their_definitions() -> None:
    first, second = models(150, gain=0.1)
    differences = first - second
    result = compare(first, second)
    assert result.standardised == pytest.approx(differences.mean() / differences.std(ddof=1))
    assert (result.n_better, result.n_worse) == ((differences > 0).sum(), (differences < 0).sum())
    assert result.n_equal == (differences == 0).sum()
    # One user gains more than another user loses, so the mean is not 0.
    one_each = compare([2.0, 0.0, 0.0], [0.0, 1.0, 0.0])
    assert one_each.standardised == pytest.approx((1 / 3) / np.std([2, -1, 0], ddof=1))
    better = (np.sign(differences) + 1) / 2
    assert result.probability_better == pytest.approx(better.mean())


def test_all_users_of_a_cluster_change_signs_together() -> None:
    """If each cluster contains three copies of a user, p and the interval stay the same."""
    first, second = models(40, gain=0.2, share=0.9)
    of_users = compare(first, second, bounds=UNIT)
    clusters = np.tile(np.arange(40), 3)
    three_copies = [np.tile(first, 3), np.tile(second, 3)]
    result = compare(*three_copies, bounds=UNIT, clusters=clusters)
    assert result.n == 120
    assert result.test.n == 40
    assert result.test.p_value == pytest.approx(of_users.test.p_value)
    np.testing.assert_allclose(tuple(result.interval), tuple(of_users.interval))
    np.testing.assert_allclose(tuple(result.relative_interval), tuple(of_users.relative_interval))
    assert compare(*three_copies, bounds=UNIT).interval.width < 0.7 * result.interval.width
    first_clusters = clusters < 20
    half_equal = np.where(clusters < 10, *three_copies)
    result = compare(
        half_equal[first_clusters],
        three_copies[1][first_clusters],
        bounds=UNIT,
        clusters=clusters[first_clusters],
    )
    assert (result.interval.method, result.interval.n) == ("gaffke", 20)
    uneven = compare(three_copies[0][:-7], three_copies[1][:-7], clusters=clusters[:-7])
    assert uneven.difference in uneven.interval
    assert (0.0 in uneven.interval) == (uneven.test.p_value > 0.05)
    wilcoxon = compare(*three_copies, clusters=clusters, test="wilcoxon").test
    assert wilcoxon.p_value == pytest.approx(compare(first, second, test="wilcoxon").test.p_value)


@pytest.mark.parametrize("test", ["randomisation", "sign", "wilcoxon", "t"])
def test_clusters_of_different_sizes_change_signs_together(test: str) -> None:
    first, second = models(60, gain=0.1, share=0.9)
    clusters = np.random.default_rng(3).integers(0, 16, 60)
    sums = np.array(
        [(first - second)[clusters == cluster].sum() for cluster in np.unique(clusters)]
    )
    result = compare(first, second, bounds=UNIT, clusters=clusters, test=test)
    assert result.test.n_differ == len(sums) == 16
    if test == "t":
        statistic = result.difference / result.error
        expected = 2 * scipy.stats.t.sf(abs(statistic), 15)
    else:
        expected = {
            "randomisation": enumerated(sums),
            "sign": scipy.stats.binomtest(int((sums > 0).sum()), 16).pvalue,
            "wilcoxon": scipy.stats.wilcoxon(sums, method="exact").pvalue,
        }[test]
    assert result.test.p_value == pytest.approx(expected, rel=1e-9)
    if test == "randomisation":
        assert "few clusters (16)" in result.interval.note


def test_grouping_many_users_into_cells_changes_little(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = models(9_000, gain=0.01)
    for values in ((first, second), (np.round(first, 1), np.round(second, 1))):
        in_cells = compare(*values, bounds=UNIT)
        with monkeypatch.context() as patched:
            patched.setattr("recometer.stats.grouping.SORTED_UP_TO", 10_000)
            one_by_one = compare(*values, bounds=UNIT)
        assert in_cells.test.method == one_by_one.test.method
        assert in_cells.test.p_value == pytest.approx(one_by_one.test.p_value, rel=1e-5)
        assert in_cells.n_better == one_by_one.n_better
        for name, tolerance in (("interval", 1e-6), ("relative_interval", 1e-4)):
            result, expected = getattr(in_cells, name), getattr(one_by_one, name)
            np.testing.assert_allclose(
                tuple(result), tuple(expected), atol=tolerance * expected.width
            )


def test_p_is_exact_if_few_of_many_users_differ() -> None:
    first = np.zeros(50_000)
    first[::2_500] = np.linspace(0.05, 0.9, 20)
    result = compare(first, np.zeros(50_000))
    assert (result.test.n, result.test.n_differ) == (50_000, 20)
    assert result.test.p_value == result.test.smallest_p == 2.0**-19


@pytest.mark.parametrize("test", TESTS)
@pytest.mark.parametrize("n_levels", [2, 7, 60])
@pytest.mark.parametrize("missing", [0.0, 0.1])
def test_coded_columns_give_the_same_results(test: str, n_levels: int, missing: float) -> None:
    generator = np.random.default_rng(n_levels)
    first, second = generator.integers(0, n_levels, (2, 12_000)) / (n_levels - 1)
    second = np.where(generator.random(12_000) < 0.9, first, second)
    first[generator.random(12_000) < missing] = np.nan
    coded = [Column.of(column).coded() for column in (first, second)]
    assert all(column.levels is not None for column in coded)
    result, expected = compare(*coded, test=test), compare(first, second, test=test)
    assert (result.n, result.n_only_model) == (expected.n, expected.n_only_model)
    for actual_field, expected_field in (
        (result.test.p_value, expected.test.p_value),
        (tuple(result.interval), tuple(expected.interval)),
        (tuple(result.relative_interval), tuple(expected.relative_interval)),
        (result.deviation, np.nanstd(first - second, ddof=1)),
    ):
        assert actual_field == pytest.approx(expected_field, rel=1e-9)


@pytest.mark.parametrize("levels", [[0.0, 1e-9, 1.0], [0.3], [-0.5, 0.0, 0.25], [0.0, 0.5, 7.0]])
def test_codes_restore_the_values_of_a_column(levels: list[float]) -> None:
    values = np.random.default_rng(0).choice(levels, 12_000)
    column = Column.of(values).coded()
    assert column.levels is not None
    assert column.codes is not None
    assert np.array_equal(column.levels[column.codes], values)
    for late_value in (-9.0, 0.1234, 9.0):  # a level that occurs this late gets no code
        assert Column.of(np.append(values, late_value)).coded().codes is None


def test_users_with_a_value_from_one_model_only_are_counted() -> None:
    first = [0.5, np.nan, 0.2, np.nan, 0.4, 0.1]
    second = [0.4, 0.1, np.nan, np.nan, np.nan, 0.3]
    result = compare(first, second)
    assert (result.n, result.n_only_model, result.n_only_other) == (2, 2, 1)
    assert (result.mean, result.mean_other) == (pytest.approx(0.3), pytest.approx(0.35))


@pytest.mark.parametrize("test", ["randomisation", "t", "wilcoxon", "sign"])
def test_comparisons_without_users_or_differences_get_a_note(test) -> None:
    without_users = compare([np.nan, 1.0], [1.0, np.nan], test=test, bounds=UNIT)
    assert without_users.n == 0
    assert np.isnan(without_users.test.p_value)
    assert "both values" in without_users.test.note
    assert (without_users.test.n, without_users.test.n_differ) == (0, 0)
    assert np.isnan(without_users.interval.low)
    assert without_users.interval.note
    assert without_users.relative_interval.note
    assert (without_users.n_better, without_users.n_equal, without_users.n_worse) == (0, 0, 0)
    assert without_users.relative_interval.n == 0
    equal_values = compare([0.1, 0.2, 0.3], [0.1, 0.2, 0.3], test=test, bounds=UNIT)
    assert equal_values.test.p_value == 1.0
    assert "None of the 3 users differs" in equal_values.test.note
    assert (equal_values.test.n, equal_values.test.n_differ) == (3, 0)
    assert equal_values.test.smallest_p == (0.0 if test == "t" else 1.0)
    assert 0.0 in equal_values.interval
    assert equal_values.interval.note or equal_values.interval.width > 0
    assert (equal_values.relative, equal_values.probability_better) == (0.0, 0.5)
    assert equal_values.standardised == 0.0


def test_constant_differences_have_an_exact_bound_or_a_note() -> None:
    result = compare(np.full(40, 0.75), np.full(40, 0.5), bounds=UNIT)
    # Gaffke's bound determines p and the interval: it allows for one more user, who may lose 1.
    assert result.test.p_value == pytest.approx(2 * 1.25**-40)
    assert result.interval.low < 0.25 < result.interval.high
    assert "exact bound" in result.interval.note
    result = compare(np.full(40, 0.75), np.full(40, 0.5))
    assert (result.interval.low, result.interval.high) == (0.25, 0.25)
    assert "All 40 differences are 0.25" in result.interval.note
    assert result.standardised == np.inf
    student = compare(np.full(40, 0.75), np.full(40, 0.5), test="t")
    assert np.isnan(student.test.p_value)
    assert "without variance" in student.test.note
    five_users = compare(np.full(5, 0.75), np.full(5, 0.5), bounds=UNIT)
    assert five_users.interval.method == "gaffke"
    assert five_users.interval.low < 0 < 0.25 < five_users.interval.high
    unknown = compare(np.full(5, 0.75), np.full(5, 0.5))
    assert np.isinf([unknown.interval.low, unknown.interval.high]).all()
    assert "p cannot fall below 0.0625" in unknown.interval.note


def test_relative_difference_is_undefined_for_a_baseline_of_zeros() -> None:
    result = compare([0.5, 0.1, 0.2], [0.0, 0.0, 0.0])
    assert np.isnan(result.relative)
    assert "not above 0" in result.relative_interval.note


def test_rounding_errors_are_not_differences() -> None:
    first = np.array([0.1 + 0.2, 0.7, 0.5])
    result = compare(first, [0.3, 0.1, 0.2])
    assert result.test.n_differ == 2
    assert compare(first, [0.3, 0.1, 0.2], test="wilcoxon").test.n_differ == 2
    assert result.n_equal == 1


@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e6])
def test_rounding_errors_of_many_users_are_not_differences(unit: float) -> None:
    generator = np.random.default_rng(5)
    second = unit * (0.5 + generator.random(6_000))
    first = second * (1 + 1e-14 * generator.choice([-1, 1], 6_000))
    first[:500] += unit * generator.random(500)
    assert (first == second).sum() < 100
    assert compare(first, second).n_equal == 5_500


def test_invalid_values_are_rejected() -> None:
    with pytest.raises(InputError, match="2 and 3"):
        compare([0.0, 1.0], [0.0, 1.0, 1.0])
    with pytest.raises(InputError, match=re.escape("second[0] is inf")):
        compare([0.0, 1.0], [np.inf, 1.0])
    with pytest.raises(UnknownNameError, match="Did you mean 'randomisation'"):
        compare([0.0], [1.0], test="randomization")  # type: ignore[arg-type]
    with pytest.raises(UnknownNameError, match="Did you mean 'randomisation'"):
        equivalence([0.0, 1.0], 0.5, test="randomization")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="clusters must have one entry"):
        compare([0.0, 1.0], [1.0, 1.0], clusters=["a"])
    with pytest.raises(InputError, match="confidence=1 must"):
        compare([0.0], [1.0], confidence=1)


def test_most_changed_returns_the_largest_losses_and_gains() -> None:
    differences = np.array([0.1, -0.5, np.nan, 0.0, -0.1, 0.7, -0.5, 0.2])
    harmed, helped = most_changed(differences, 2)
    assert harmed.tolist() == [1, 6]
    assert helped.tolist() == [5, 7]
    harmed, helped = most_changed(differences, 20)
    assert harmed.tolist() == [1, 6, 4]
    assert helped.tolist() == [5, 7, 0]
    assert most_changed([0.0, np.nan])[0].tolist() == []
    assert [part.tolist() for part in most_changed(differences, 0)] == [[], []]


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("rounding", [0.0, 5e-13, -5e-13])
def test_p_of_differences_in_one_direction_is_2_to_the_minus_n(sign: int, rounding: float) -> None:
    """Only one of 2^30 sign assignments gives this sum; the 7 differences of 0 have no sign."""
    sizes, counts = np.array([0.0, 1.0, 2.0, 4.0]), np.array([7.0, 10.0, 10.0, 10.0])
    result = quantile_of(sizes, counts, sign * 70.0 * (1 + rounding))
    assert result == pytest.approx(-sign * scipy.stats.norm.ppf(2.0**-30), rel=1e-12)


def test_p_is_at_most_1_despite_rounding() -> None:
    """The sum of an odd number of ±1 is never 0, so p = P(|sum| >= 1) is 1 up to rounding."""
    for n in range(1, 60, 2):
        assert 1 - 1e-12 < randomisation((-1.0) ** np.arange(n)).p_value <= 1


@pytest.mark.parametrize("total", [1.0, 3.0, 5.0, 7.0])
def test_probability_of_a_sum_of_multiples_matches_enumeration(total: float) -> None:
    """The probability is the share of the 16 sums ±1 ±1 ±2 ±3 that are at least `total`."""
    sums = np.array(
        [
            sum(signed_sizes)
            for signed_sizes in itertools.product((1, -1), (1, -1), (2, -2), (3, -3))
        ]
    )
    probability = of_multiples(np.array([1, 2, 3]), np.array([2.0, 1.0, 1.0]), total)
    assert probability == pytest.approx(np.mean(sums >= total))


@pytest.mark.parametrize(
    ("sizes", "multiples"),
    [
        ([0.2], [1]),
        ([0.1, 0.3], [1, 3]),
        ([1 / 3, 0.5, 1.0], [2, 3, 6]),
        ([0.1, 0.1 + 1e-5], None),  # a common unit would be too small
        ([1e-5, 1.0], None),
        ([1e-5, 2e-5, 1.0], None),
        ([3 + 9e-8, 151 + 45e-7, 200.0], None),  # the second size is too far from a multiple of 1
        ([1.0, math.pi], None),
        ([0.1 + 1e-11, 0.3, 0.7 - 1e-11], [1, 3, 7]),  # these are multiples of 0.1 up to rounding
        ([0.1 + 1e-7, 0.3, 0.7], None),
    ],
)
def test_common_unit_is_found_unless_it_is_too_small(
    sizes: list[float], multiples: list[int] | None
) -> None:
    common_multiples = multiples_of_unit(np.array(sizes))
    assert (None if common_multiples is None else common_multiples.tolist()) == multiples


def test_consistent_moves_an_end_of_the_interval_if_it_contradicts_p() -> None:
    def moved(low: float, high: float, p: float) -> Interval:
        return consistent(Interval(low, high, "randomisation", 0.95, 9), p)

    assert tuple(moved(-0.1, 0.3, 0.2)) == (-0.1, 0.3)
    assert tuple(moved(0.1, 0.3, 0.2)) == (0.0, 0.3)
    assert tuple(moved(-0.3, -0.1, 0.2)) == (-0.3, 0.0)
    above, below = moved(-0.1, 0.3, 0.01), moved(-0.3, 0.1, 0.01)
    assert (above.low, above.high) == (5e-324, 0.3)
    assert (below.low, below.high) == (-0.3, -5e-324)


@pytest.mark.parametrize(
    ("n", "gap", "method"),
    [
        (64, 1, "convolution"),
        (65, 1, "saddlepoint"),
        (64, 10, "convolution"),
        (64, 100, "saddlepoint"),
    ],
)
def test_p_is_exact_only_for_few_and_small_multiples_of_a_unit(
    n: int, gap: int, method: str
) -> None:
    result = randomisation((gap * np.arange(n) + 1) * np.resize([1, 1, -1], n))
    assert (result.method, result.n_differ) == (method, n)

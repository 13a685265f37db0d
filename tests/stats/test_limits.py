"""Statistics stay correct at their limits: few users, extreme units, and levels near 0 and 1/2."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pytest
import scipy
from numpy.typing import NDArray

from recometer.errors import InputError
from recometer.stats import (
    TestResult,
    compare,
    equivalence,
    interval,
    most_changed,
    over_folds,
    over_runs,
    paired_t,
    power,
    randomisation,
    tukey,
)
from recometer.stats.comparing import equivalence_over_runs
from recometer.stats.grouping import group
from recometer.stats.planning import power_of, unit_of
from recometer.stats.runs import over_values, run_moments

Float64 = NDArray[np.float64]
UNIT = (0.0, 1.0)
GRADES = np.arange(-20.0, 21.0)
SKEWED = [0.0, 0.0, 0.1, 0.02, 0.05, 0.9]


@pytest.mark.parametrize(
    ("values", "confidence"),
    [*((SKEWED, share) for share in (0.02, 0.1, 0.3, 0.9)), ([0.0] * 12 + [0.02, 0.05], 0.2)],
)
def test_gaffkes_ends_are_quantiles_of_randomly_weighted_means(
    values: list[float], confidence: float
) -> None:
    """The test draws the weights from a Dirichlet distribution."""
    draws = np.random.default_rng(0).dirichlet(np.ones(len(values) + 1), 50_000)
    result = interval(values, "gaffke", bounds=UNIT, confidence=confidence)
    for end, bound, level in (
        (result.high, 1.0, 1 + confidence),
        (result.low, 0.0, 1 - confidence),
    ):
        chance = np.mean(draws @ [*values, bound] <= end)
        assert chance == pytest.approx(level / 2, abs=0.01)


def test_bca_moves_the_levels_by_a_sixth_of_the_skewness() -> None:
    """Each of Efron's (1987) two constants is a sixth of the skewness of the mean."""
    values = np.random.default_rng(11).random(25) ** 3
    deviations = values - values.mean()
    sixth = (deviations**3).sum() / (deviations**2).sum() ** 1.5 / 6
    result = interval(values, "bca", confidence=0.9)
    for end, z, side in ((result.low, -1.0, 0), (result.high, 1.0, 1)):
        moved = sixth + z * scipy.stats.norm.ppf(0.95)
        level = scipy.stats.norm.cdf(sixth + moved / (1 - sixth * moved))
        expected = interval(values, "percentile", confidence=z * (2 * level - 1))[side]
        assert end == pytest.approx(expected, rel=1e-8)


@pytest.mark.parametrize("unit", [1e-3, 1e3])
def test_gaffkes_interval_scales_with_the_unit(unit: float) -> None:
    values = np.array([*SKEWED, 0.0004, 0.9996])  # two values are close to the ends of the range
    result = interval(values, "gaffke", bounds=UNIT, confidence=0.3)
    moved = interval(values * unit, "gaffke", bounds=(0, unit), confidence=0.3)
    assert tuple(moved) == pytest.approx((result.low * unit, result.high * unit), rel=1e-8)


def test_masked_values_are_missing() -> None:
    masked = np.ma.array([0.1, 0.9, 0.3, 0.4], mask=[0, 1, 0, 0])
    unmasked = np.array([0.1, 0.3, 0.4])
    assert interval(masked, bounds=UNIT) == interval(unmasked, bounds=UNIT)
    assert compare(masked, np.zeros(4), bounds=UNIT).n_only_other == 1
    integers_with_mask = np.ma.array([1, 0, 1], mask=[False, True, False])
    assert interval(integers_with_mask, bounds=UNIT).n == 2
    assert power(masked).n == tukey(np.ma.column_stack([masked, masked])).n == 3


def test_two_users_are_enough_for_power_and_students_test() -> None:
    assert 0 < power([0.1, 0.3]).power < 1
    assert np.isfinite(compare([0.1, 0.3], [0.0, 0.0]).standardised)
    result = paired_t([0.1, 0.3])
    assert result.p_value == pytest.approx(scipy.stats.ttest_1samp([0.1, 0.3], 0).pvalue)
    assert result.smallest_p == 0


def test_one_user_does_not_show_equivalence() -> None:
    assert not equivalence([0.01], 0.1, test="t").equivalent
    assert equivalence([0.01, 0.01], 0.1, test="t").equivalent
    assert not equivalence([0.1, 0.1], 0.1, test="t").equivalent


def test_equivalence_over_runs_refuses_a_margin_of_0() -> None:
    with pytest.raises(InputError, match="margin=0 must be above 0"):
        equivalence_over_runs([[0.1, 0.2], [0.3, 0.1]], [[0.1, 0.1], [0.2, 0.1]], 0)


def test_all_rows_may_belong_to_one_cluster() -> None:
    result = compare([0.1, 0.3], [0.0, 0.1], clusters=["a", "a"])
    assert (result.n, result.test.n) == (2, 1)
    assert result.difference == pytest.approx(0.15)


def test_relative_interval_has_no_width_if_all_ratios_are_equal() -> None:
    second = np.linspace(0.1, 0.25, 8)
    result = compare(2 * second, second)
    assert (result.relative, *result.relative_interval) == (1.0, 1.0, 1.0)
    result = compare([0.2, 0.5], [0.1, 0.25])  # with two users, no ratio can be excluded
    assert (result.relative, *result.relative_interval) == (1.0, -1.0, np.inf)


@pytest.mark.parametrize(("n", "alpha", "centre"), [(3, 1e-4, 31.0), (10, 1e-9, 35.0)])
def test_power_of_few_users_with_large_effects_matches_scipy(
    n: int, alpha: float, centre: float
) -> None:
    """For effects this large, the power is computed from a normal approximation."""
    power = power_of(centre / np.sqrt(n), 1.0, n, alpha=alpha)
    expected = scipy.stats.nct.sf(scipy.stats.t.isf(alpha / 2, n - 1), n - 1, centre)
    assert power == pytest.approx(expected, abs=0.01)


def test_numbers_beyond_doubles_are_refused() -> None:
    with pytest.raises(InputError, match="must be a finite number"):
        power([0.1, 0.3], 10**400)
    with pytest.raises(InputError, match="must be numbers, a value for each user: int too large"):
        interval([10**400, 1])


def test_two_values_are_enough_for_a_bootstrap() -> None:
    for kind in ("bca", "percentile"):
        result = interval([0.2, 0.4], kind)
        assert 0.2 <= result.low < 0.3 < result.high <= 0.4
        assert np.isnan(interval([0.2], kind).low)


def test_single_user_cannot_exclude_any_difference() -> None:
    result = compare([0.7], [0.2])
    assert tuple(result.interval) == (-np.inf, np.inf)
    assert result.interval.n == 1
    assert "With 1 user, p cannot fall below 1" in result.interval.note
    assert (result.n_better, result.probability_better) == (1, 1)


@pytest.mark.parametrize("unit", [1e-6, 1e6])
def test_p_does_not_depend_on_the_unit_if_a_few_sizes_dominate(unit: float) -> None:
    generator = np.random.default_rng(3)
    differences = np.append(generator.random(40), [20.0, 25.0, 30.1]) * generator.choice(
        [-1, 1], 43
    )
    result, scaled = randomisation(differences), randomisation(differences * unit)
    assert result.method == scaled.method == "saddlepoint"
    assert scaled.p_value == pytest.approx(result.p_value, rel=1e-9)
    few_differences, scaled = (
        randomisation(differences[20:]),
        randomisation(differences[20:] * unit),
    )
    assert few_differences.method == scaled.method == "enumeration"
    assert scaled.p_value == few_differences.p_value


def test_differences_due_to_rounding_do_not_count() -> None:
    result = randomisation([0.1] * 5 + [1e-15, -1e-15, 1e-16])
    assert (result.p_value, result.method, result.n_differ) == (2 / 2**5, "binomial", 5)


def test_p_is_1_if_the_mean_is_nearly_0() -> None:
    values = np.random.default_rng(4).normal(size=60)
    result = randomisation(values - values.mean() + 1e-7)
    assert result.method == "saddlepoint"
    assert result.p_value == pytest.approx(1.0, abs=1e-5)


@pytest.mark.parametrize("margin", [0.0055, 0.006, 0.008, 0.02])
def test_interval_at_level_p_ends_at_the_margin(margin: float) -> None:
    """If few users differ, p is the level at which Gaffke's interval ends at the margin."""
    differences = np.zeros(400)
    differences[:4] = [1.0, -0.5, 0.75, 0.1]
    result = equivalence(differences, margin, bounds=UNIT)
    assert result.method == "gaffke"
    assert 1e-4 < result.p_value < 0.5
    at_p = equivalence(differences, margin, bounds=UNIT, alpha=result.p_value)
    assert at_p.equivalent
    assert max(at_p.interval.high, -at_p.interval.low) == pytest.approx(margin, rel=1e-6)
    assert equivalence(-differences, margin, bounds=UNIT).p_value == pytest.approx(result.p_value)
    assert equivalence(differences, 0.001, bounds=UNIT).p_value == 0.5


@pytest.mark.parametrize("sign", [-1, 1])
@pytest.mark.parametrize("test", ["t", "randomisation"])
def test_mean_beyond_the_margin_has_an_equivalence_p_value_near_1(
    sign: int, test: Literal["t", "randomisation"]
) -> None:
    differences = 0.5 + np.random.default_rng(9).normal(0, 0.1, 60)
    assert 0.999 < equivalence(sign * differences, 0.2, test=test).p_value <= 1


def test_variance_between_folds_follows_dersimonian_and_laird() -> None:
    generator = np.random.default_rng(10)
    folds = [generator.normal(mean, 0.3, 20) for mean in (-0.1, 0.0, 0.05, 0.15)]
    means, weights = [fold.mean() for fold in folds], [20 / fold.var(ddof=1) for fold in folds]
    total = sum(weights)
    centre = sum(w * mean for w, mean in zip(weights, means, strict=True)) / total
    q = sum(w * (mean - centre) ** 2 for w, mean in zip(weights, means, strict=True))
    between = (q - 3) / (total - sum(w**2 for w in weights) / total)
    assert between > 0
    result = over_folds(folds)
    assert result.deviation_runs[0] == pytest.approx(np.sqrt(between))
    within = np.mean([1 / w for w in weights])
    assert result.share_of_runs == pytest.approx(between / (between + within))


def test_runs_without_variance_have_a_p_of_0_or_1() -> None:
    assert over_runs([[0.0, 0.0], [0.0, 0.0]]).p_value == 1
    result = over_runs([[1.0, 1.0], [1.0, 1.0]])
    assert (result.p_value, result.share_of_runs) == (0, 0)


def test_most_changed_returns_five_users_by_default() -> None:
    for by_default, five in zip(most_changed(GRADES), most_changed(GRADES, 5), strict=True):
        np.testing.assert_array_equal(by_default, five)


@pytest.mark.parametrize("direction", [-1, 1])
def test_cells_with_several_values_are_not_exact(direction: int) -> None:
    assert not group(np.linspace(0, 1, 5_000)[::direction] ** 2).exact


def test_groups_without_users_are_empty_and_exact() -> None:
    no_values = np.zeros(0)
    for empty_group in (group(no_values), group(no_values, no_values)):
        assert np.all(empty_group.sizes == 1.0)
        assert (
            empty_group.n,
            empty_group.n_above,
            empty_group.n_below,
            empty_group.sum_of_squares,
        ) == (0, 0, 0, 0.0)
        assert np.isnan(empty_group.estimate)
        assert empty_group.exact


def test_mean_squares_of_a_single_run_are_0() -> None:
    assert run_moments([[0.1], [0.3]]).squares == ((0.0, 0.0),)


def test_rounding_errors_near_the_ends_of_a_range_are_ignored() -> None:
    result = interval([-1 + 1e-12, 1.0, -1.0, 1 - 1e-12], bounds=(-1, 1))
    assert result.method == "clopper-pearson"
    assert interval([1 + 1e-10, 0.0, -1 - 1e-10], "gaffke", bounds=(-1, 1)).high <= 1
    assert tuple(result) == pytest.approx(tuple(interval([-1, 1, -1, 1], bounds=(-1, 1))))


@pytest.mark.parametrize("alpha", [0, 0.5])
def test_equivalence_refuses_levels_of_0_and_one_half(alpha: float) -> None:
    with pytest.raises(InputError, match=r"must be above 0 and below 0\.5"):
        equivalence(GRADES, 1.0, alpha=alpha)


@pytest.mark.parametrize("largest", [0.0, 1.0])
def test_many_equal_values_are_one_group(largest: float) -> None:
    values = np.full(5_000, largest)
    values[:10] = 1 - largest
    result = group(values)
    assert dict(zip(result.values, result.counts, strict=True)) == {largest: 4_990, 1 - largest: 10}


def test_p_agrees_only_with_the_interval_of_the_same_test() -> None:
    """p is 1/16 for all three tests, but only the randomisation test's interval must contain 0."""
    differences = [0.75, 0.0, 0.75, 0.5, 1.0, 0.25]
    lows = {
        test: compare(differences, np.zeros(6), test=test).interval.low
        for test in ("randomisation", "sign", "wilcoxon")
    }
    assert lows["randomisation"] == 0
    assert lows["sign"] == lows["wilcoxon"] > 0.1


def test_unit_of_tiny_differences_is_found() -> None:
    assert unit_of(np.array([2, 4, 6, 10]) * 1e-14) == pytest.approx(2e-14, abs=0)


def test_clusters_of_different_sizes_have_no_unit() -> None:
    assert unit_of(group([1.0, 2.0, 3.0])) == 1.0
    assert unit_of(group([1.0, 2.0, 3.0], [1.0, 2.0, 2.0])) == 0.0


def test_relative_difference_of_runs_needs_a_mean_above_0() -> None:
    result = over_values([0.5, 0.6], [0.2, 0.3], 0.01, 100, relative=True)
    assert result.mean == pytest.approx(1.2)
    assert np.isfinite([*result.interval]).all()
    for second in ([0.0, 0.0], [-0.2, -0.3]):
        assert np.isnan(over_values([0.5, 0.6], second, 0.01, 100, relative=True).mean)


def test_students_test_reports_missing_users() -> None:
    notes = [paired_t(values).note for values in ([], [0.3])]
    expected = ["No user has both values", "One user has both values"]
    assert [note.split(";")[0] for note in notes] == expected


def test_tukeys_test_draws_orders_with_seed_0_by_default() -> None:
    values = np.random.default_rng(6).random((20, 3))
    np.testing.assert_array_equal(tukey(values).p_values, tukey(values, seed=0).p_values)
    assert (tukey(values).p_values != tukey(values, seed=1).p_values).any()


@pytest.mark.parametrize(
    "method", ["binomial", "convolution", "enumeration", "saddlepoint", "normal"]
)
def test_saddlepoint_and_normal_methods_are_not_exact(method: str) -> None:
    exact = TestResult(0.5, "randomisation", method, 9, 9, 0.1).exact
    assert exact == (method not in ("saddlepoint", "normal"))

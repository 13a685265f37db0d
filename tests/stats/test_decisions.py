"""Tests of adjusted p-values, power, equivalence, and comparisons of several models."""

from __future__ import annotations

import numpy as np
import pytest
import scipy
from examples import examples
from hypothesis import given
from hypothesis import strategies as st

from recometer.errors import InputError, UnknownNameError
from recometer.stats import (
    adjust,
    compare,
    equivalence,
    over_runs,
    power,
    randomisation,
    rank_intervals,
    tukey,
)
from recometer.stats.comparing import equivalence_over_runs
from recometer.stats.planning import power_of, smallest_difference, unit_of, users_needed
from recometer.stats.several import normal_range_quantile, normal_range_tail

# statsmodels 0.15.0 returns these adjusted p-values from
# statsmodels.stats.multitest.multipletests(P, method=method)[1] for the methods holm, fdr_bh and
# bonferroni.
P = [0.01, 0.2, 0.0005, 0.04, 0.011, 0.04, 0.9, 0.03]
ADJUSTED = {
    "holm": [0.07, 0.4, 0.004, 0.16, 0.07, 0.16, 0.9, 0.15],
    "benjamini-hochberg": [
        *(0.029333333333333, 0.22857142857143, 0.004, 0.053333333333333),
        *(0.029333333333333, 0.053333333333333, 0.9, 0.053333333333333),
    ],
    "bonferroni": [0.08, 1.0, 0.004, 0.32, 0.088, 0.32, 1.0, 0.24],
}


@pytest.mark.parametrize("correction", ADJUSTED)
def test_adjusted_p_values_match_statsmodels(correction) -> None:
    np.testing.assert_allclose(adjust(P, correction), ADJUSTED[correction], rtol=1e-11)


@given(st.lists(st.floats(0, 1), max_size=12), st.floats(0.001, 0.999))
def test_holms_method_rejects_step_by_step(p_values: list[float], alpha: float) -> None:
    """In ascending order of p, Holm's method rejects while p ≤ alpha / (number of remaining p)."""
    adjusted = adjust(p_values)
    rejected = np.zeros(len(p_values), bool)
    for step, place in enumerate(np.argsort(p_values, kind="stable")):
        if p_values[place] * (len(p_values) - step) > alpha:
            break
        rejected[place] = True
    np.testing.assert_array_equal(adjusted <= alpha, rejected)
    assert (adjusted >= p_values).all()
    assert (adjusted <= adjust(p_values, "bonferroni")).all()
    assert (adjust(p_values, "benjamini-hochberg") <= adjusted).all()
    np.testing.assert_array_equal(adjust(p_values, "none"), p_values)


def test_comparisons_without_a_p_value_do_not_count() -> None:
    np.testing.assert_allclose(
        adjust([[0.01, np.nan], [0.04, np.nan]]), [[0.02, np.nan], [0.04, np.nan]]
    )
    assert adjust([]).shape == (0,)
    assert adjust([0.0, 1.0]).tolist() == [0.0, 1.0]


def test_invalid_p_values_are_rejected() -> None:
    with pytest.raises(InputError, match=r"found 1\.5"):
        adjust([0.1, 1.5])
    with pytest.raises(UnknownNameError, match="Did you mean 'bonferroni'"):
        adjust([0.1], "bonferoni")  # type: ignore[arg-type]


def test_few_differing_users_cannot_be_significant_among_many_comparisons() -> None:
    """If 12 users differ, p is at least 0.0005, or 0.02 after correction for 40 comparisons."""
    result = randomisation(np.repeat([1.0, 0.0], [12, 88]))
    assert result.p_value == result.smallest_p == pytest.approx(0.000488, rel=1e-3)
    assert adjust([result.smallest_p] * 40).min() == pytest.approx(0.0195, rel=1e-2)


# The reference values come from scipy.stats.nct, not from a simulation.
@pytest.mark.parametrize(
    ("n", "effect"), [(5, 1.0), (20, 0.5), (200, 0.1), (1_500, 0.06), (30, 1.2)]
)
@pytest.mark.parametrize("alpha", [0.05, 0.001])
def test_power_follows_the_noncentral_t_distribution(n: int, effect: float, alpha: float) -> None:
    critical = scipy.stats.t.ppf(1 - alpha / 2, n - 1)
    noncentral = scipy.stats.nct(n - 1, effect * np.sqrt(n))
    expected = noncentral.sf(critical) + noncentral.cdf(-critical)
    assert power_of(effect * 2, 2.0, n, alpha=alpha) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("n", [2, 5, 100, 1_000])
@pytest.mark.parametrize("alpha", [0.05, 0.001, 1e-6])
def test_larger_differences_have_more_power(n: int, alpha: float) -> None:
    powers = [
        power_of(centre / np.sqrt(n), 1.0, n, alpha=alpha) for centre in np.arange(0, 30, 0.37)
    ]
    assert powers[0] == alpha
    assert (np.diff(powers) >= -1e-12).all()
    assert powers[-1] <= 1


def test_power_is_continuous_at_the_normal_approximation() -> None:
    below, above = (power_of(0.06, 1.0, n) for n in (2_000, 2_001))
    assert above - below == pytest.approx(0.0002, abs=0.0002)
    # SciPy 1.17's scipy.stats.nct returns this value (both tails) for 2,000 degrees of freedom.
    assert power_of(0.01, 1.0, 2_001, alpha=0.3) == pytest.approx(0.3468187, abs=8e-5)
    # SciPy 1.17's scipy.stats.nct returns these values for 4,999 degrees of freedom and for 1.
    assert power_of(2.5 / np.sqrt(5_000), 1.0, 5_000) == pytest.approx(0.705252, abs=1e-4)
    assert power_of(31 / np.sqrt(2), 1.0, 2) == pytest.approx(0.98499, abs=0.01)


def test_users_needed_and_smallest_difference_invert_the_power() -> None:
    n = users_needed(0.02, 0.3)
    assert n is not None
    assert power_of(0.02, 0.3, n) >= 0.8 > power_of(0.02, 0.3, n - 1)
    least = smallest_difference(0.3, n)
    assert least == pytest.approx(0.02, rel=1e-3)
    assert power_of(least, 0.3, n) == pytest.approx(0.8, abs=1e-6)
    assert users_needed(0.0, 0.3) is None
    for wanted_power in (0.7, 0.75, 0.85, 0.9):
        enough = users_needed(0.02, 0.3, wanted=wanted_power)
        assert enough is not None
        assert power_of(0.02, 0.3, enough) >= wanted_power > power_of(0.02, 0.3, enough - 1)
    assert users_needed(1e-9, 1.0) is None
    # (1.96 + 0.84)² / effect² users are needed: 5e11 in the first call, and more than the limit of
    # 1e12 in the second call.
    assert users_needed(4e-6, 1.0) == pytest.approx(2.8016**2 / 1.6e-11, rel=1e-3)
    assert users_needed(2.6e-6, 1.0) is None
    assert power_of(0.0, 1.0, 50) == pytest.approx(0.05)
    assert np.isnan(smallest_difference(1.0, 1))
    assert power_of(9.0, 1.0, 1) == 0
    assert power_of(smallest_difference(1.0, 2), 1.0, 2) == pytest.approx(0.8)
    # The smallest detectable difference is proportional to the deviation, even a very large one.
    assert smallest_difference(3e6, n) == pytest.approx(1e7 * least, rel=1e-8)


def test_power_matches_simulated_rejections() -> None:
    """The power matches the share of rejected samples, whose standard error is 2 %."""
    generator = np.random.default_rng(0)
    samples = generator.random((600, 120)) * generator.choice([-1.0, 0.0, 1.0, 1.0], (600, 120))
    plan = power(samples.ravel(), 1 / 8)
    predicted = power_of(1 / 8, plan.deviation, 120)
    share_rejected = np.mean([randomisation(sample).p_value <= 0.05 for sample in samples])
    assert share_rejected == pytest.approx(predicted, abs=0.06)


@pytest.mark.parametrize(("n", "differ"), [(50, 0.4), (100, 0.16), (200, 0.16), (1_000, 0.05)])
@pytest.mark.parametrize("effect", [1.0, 2.0, 3.0])
def test_power_of_hits_matches_the_exact_test(n: int, differ: float, effect: float) -> None:
    """The numbers of users who differ and who gain are binomial, so the exact power is known."""
    difference = effect * np.sqrt(differ / (n + effect**2))
    up = (1 + difference / differ) / 2
    n_differ = np.arange(n + 1)
    # The test rejects if no more than `most_better` users are better off, or if no more than
    # `most_better` users are worse off.
    most_better = scipy.stats.binom.ppf(0.025, n_differ, 0.5)
    most_better -= 2 * scipy.stats.binom.cdf(most_better, n_differ, 0.5) > 0.05
    rejected = scipy.stats.binom.cdf(most_better, n_differ, up) + scipy.stats.binom.sf(
        n_differ - most_better - 1, n_differ, up
    )
    exact = float(
        scipy.stats.binom.pmf(n_differ, n, differ) @ np.where(most_better < 0, 0.0, rejected)
    )
    deviation = np.sqrt(differ - difference**2)
    assert power_of(difference, deviation, n, unit=1.0) == pytest.approx(exact, abs=0.04)


def test_unit_is_the_most_common_size_or_the_common_unit() -> None:
    assert unit_of([0.0, 1.0, -1.0, np.nan]) == 1.0
    assert unit_of([0.4, -0.2, 0.6000000000000001]) == pytest.approx(0.2)
    assert unit_of([0.5] * 30 + [-0.123]) == 0.5
    assert unit_of([0.25, -0.5, 1e-17]) == pytest.approx(0.25)  # 1e-17 counts as 0
    assert unit_of([1e-17] * 30 + [0.25, -0.5]) == pytest.approx(0.25)
    assert unit_of([0.5] * 9 + [0.3]) == 0.5
    assert unit_of([0.5] * 8 + [0.3]) == pytest.approx(0.1)
    for n in (100, 5_000):
        assert unit_of(np.random.default_rng(0).normal(size=n)) == 0.0
    assert unit_of([]) == unit_of([0.0]) == 0.0
    hits = np.repeat([1.0, -1.0, 0.0], [30, 10, 60])
    assert power(hits, 0.2).power < power(hits, 0.2, unit=0.0).power - 0.02


def test_power_plan_follows_from_the_differences() -> None:
    differences = np.random.default_rng(1).normal(0.01, 0.2, 500)
    plan = power(differences, 0.02)
    assert plan.deviation == pytest.approx(differences.std(ddof=1))
    assert plan.power == power_of(0.02, plan.deviation, 500)
    assert plan.users_needed == users_needed(0.02, plan.deviation)
    assert plan.smallest_difference == smallest_difference(plan.deviation, 500)
    assert power(differences).difference == pytest.approx(differences.mean())
    assert "Fewer than two users" in power([0.5]).note
    constant = power([0.5, 0.5, 0.5], 0.1)
    assert "the spread of the differences is unknown" in constant.note
    assert (constant.users_needed, constant.deviation) == (None, 0)
    with pytest.raises(InputError, match="desired power"):
        power(differences, wanted=0.01)
    for alpha in (0, 1, 1.5, 5):
        with pytest.raises(InputError, match=f"alpha={alpha} must be"):
            power(differences, alpha=alpha)
    with pytest.raises(InputError, match="difference=nan must be a finite number"):
        power(differences, np.nan)


def test_equivalence_consists_of_two_one_sided_tests() -> None:
    differences = np.random.default_rng(2).normal(0.01, 0.1, 200)
    for margin in (0.005, 0.03):  # the mean of 0.01 is between the two margins
        result = equivalence(differences, margin, test="t")
        sides = [
            scipy.stats.ttest_1samp(differences, -margin, alternative="greater").pvalue,
            scipy.stats.ttest_1samp(differences, margin, alternative="less").pvalue,
        ]
        assert result.p_value == pytest.approx(max(sides), rel=1e-9)
    by_signs = equivalence(differences, 0.03)
    assert by_signs.p_value == pytest.approx(result.p_value, rel=0.05)
    assert by_signs.equivalent
    assert not equivalence(differences, 0.005).equivalent


@pytest.mark.parametrize("test", ["randomisation", "t"])
@pytest.mark.parametrize("n", [20, 100])
@examples(0.5)
@given(st.integers(0, 1_000))
def test_models_are_equivalent_if_the_interval_is_within_the_margins(
    test, n: int, seed: int
) -> None:
    differences = np.random.default_rng(seed).normal(0.01, 0.1, n).clip(-1, 1)
    result = equivalence(differences, 0.03, test=test, bounds=(0, 1))
    inside = result.interval.low > -0.03 and result.interval.high < 0.03
    if abs(result.p_value - 0.05) > 1e-3:
        assert result.equivalent == inside == (result.p_value <= 0.05)
    assert result.interval.confidence == pytest.approx(0.9)


@pytest.mark.parametrize("test", ["randomisation", "t"])
def test_equivalence_tests_whole_clusters(test) -> None:
    """If each cluster contains three copies of a user, p stays the same."""
    differences = np.random.default_rng(2).normal(0.01, 0.1, 60)
    of_users = equivalence(differences, 0.03, test=test)
    three_copies = equivalence(
        np.tile(differences, 3), 0.03, test=test, clusters=np.tile(np.arange(60), 3)
    )
    assert three_copies.p_value == pytest.approx(of_users.p_value)
    np.testing.assert_allclose(tuple(three_copies.interval), tuple(of_users.interval))
    clusters = np.arange(60) // 4 + (np.arange(60) < 2)
    uneven = equivalence(differences, 0.03, test=test, clusters=clusters)
    shifted = [
        compare(sign * differences + 0.03, np.zeros(60), test=test, clusters=clusters).test.p_value
        for sign in (1, -1)
    ]
    assert uneven.p_value == pytest.approx(max(shifted) / 2)


@pytest.mark.parametrize("test", ["randomisation", "t"])
def test_p_equal_to_alpha_shows_equivalence(test) -> None:
    differences = np.random.default_rng(2).normal(0.001, 0.05, 60)
    p = equivalence(differences, 0.02, test=test).p_value
    assert 0 < p < 0.5
    assert equivalence(differences, 0.02, test=test, alpha=p).equivalent
    assert not equivalence(differences, 0.02, test=test, alpha=0.99 * p).equivalent


def test_equivalence_over_runs_includes_the_variance_between_runs() -> None:
    generator = np.random.default_rng(4)
    users = generator.random((200, 1))
    better_runs = users + generator.normal(0, 0.01, (200, 3)) + generator.normal(0, 0.02, 3)
    worse_runs = users + generator.normal(0, 0.01, (200, 1))
    result = equivalence_over_runs(better_runs, worse_runs, 0.05)
    inside = over_runs(better_runs, worse_runs, confidence=0.9).interval
    assert result.equivalent == (inside.low > -0.05 and inside.high < 0.05)
    assert tuple(result.interval) == tuple(inside)
    assert result.p_value > equivalence((better_runs - worse_runs).mean(axis=1), 0.05).p_value
    # The mean is far above the margin, so p must be near 1.
    far_above_margin = over_runs(better_runs + 0.3 - 0.05, worse_runs)
    p = equivalence_over_runs(better_runs + 0.3, worse_runs, 0.05).p_value
    assert p == pytest.approx(1 - far_above_margin.p_value / 2)
    tight = max(abs(end) for end in inside)
    assert equivalence_over_runs(better_runs, worse_runs, tight).p_value == pytest.approx(0.05)
    assert equivalence_over_runs(better_runs, worse_runs, 0.05, alpha=result.p_value).equivalent


def test_equivalence_of_few_differing_users_uses_gaffkes_interval() -> None:
    differences = np.zeros(400)
    differences[:4] = 0.1
    result = equivalence(differences, 0.02, bounds=(0, 1))
    assert result.method == "gaffke"
    assert result.equivalent
    tight = equivalence(differences, result.interval.high, bounds=(0, 1))
    assert tight.p_value == pytest.approx(0.05, abs=1e-3)
    without_users = equivalence([np.nan], 0.1)
    assert "No user" in without_users.note
    assert not without_users.equivalent
    assert "Student's t is undefined" in equivalence(np.full(40, 0.01), 0.02, test="t").note
    for margin in (0, np.inf):
        with pytest.raises(InputError, match=f"margin={margin} must be above 0"):
            equivalence(differences, margin)
    with pytest.raises(InputError, match=r"alpha=0\.5"):
        equivalence(differences, 0.1, alpha=0.5)
    with pytest.raises(UnknownNameError):
        equivalence(differences, 0.1, test="sign")  # type: ignore[arg-type]


@pytest.mark.parametrize("n", [2, 3, 10])
def test_studentised_range_matches_scipy(n: int) -> None:
    distances = np.array([0.5, 2.0, 3.5, 5.0])
    expected = scipy.stats.studentized_range.sf(distances, n, np.inf)
    np.testing.assert_allclose(normal_range_tail(distances, n), expected, rtol=1e-5)
    assert normal_range_quantile(0.05, n) == pytest.approx(
        scipy.stats.studentized_range.ppf(0.95, n, np.inf), rel=1e-4
    )
    np.testing.assert_allclose(normal_range_tail([0.0, 30.0], n)[1], normal_range_tail(30.0, n))
    assert normal_range_tail(0.0, n) == 1  # exactly 1, despite rounding errors
    # Some quantiles are below 1, for example the median distance between two normal numbers.
    median_range = normal_range_quantile(0.5, 2)
    assert median_range == pytest.approx(np.sqrt(2) * scipy.stats.norm.ppf(0.75), rel=1e-6)
    range_of_two = normal_range_tail(np.array([20.0]), 2)
    assert range_of_two == pytest.approx(2 * scipy.stats.norm.sf(20 / np.sqrt(2)), rel=1e-6)


def test_tukeys_test_of_two_models_equals_the_randomisation_test() -> None:
    values = np.random.default_rng(3).random((400, 2)) + np.array([0.04, 0.0])
    result = tukey(values)
    assert result.method == "studentised range"
    expected = randomisation(values[:, 0] - values[:, 1]).p_value
    # The two tests use the same variance, but Tukey's test omits small terms of higher order.
    assert result.p_values[0, 1] == pytest.approx(expected, rel=0.05)


def test_tukeys_test_without_resampling_agrees_with_resampling(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    values = np.random.default_rng(4).random((150, 4)) + np.array([0.08, 0.05, 0.0, 0.0])
    values[:20] = 0.5  # the models are equal for these users
    computed = tukey(values)
    monkeypatch.setattr("recometer.stats.several.RESAMPLED_UP_TO", 150)
    resampled = tukey(values, n_resamples=4_000)
    assert (computed.method, resampled.method) == ("studentised range", "resampled")
    np.testing.assert_allclose(resampled.p_values, computed.p_values, atol=0.035)
    assert resampled.critical_difference == pytest.approx(computed.critical_difference, rel=0.04)
    assert resampled.p_values.min() >= 1 / 4_001
    np.testing.assert_array_equal(
        tukey(values, n_resamples=500).p_values, tukey(values, n_resamples=500).p_values
    )


def test_drawing_orders_in_parts_does_not_change_the_result(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    values = np.random.default_rng(4).random((12, 3))
    expected = tukey(values, n_resamples=500)
    monkeypatch.setattr("recometer.stats.several.AT_ONCE", 7 * values.size)
    result = tukey(values, n_resamples=500)
    np.testing.assert_array_equal(result.p_values, expected.p_values)
    assert result.critical_difference == expected.critical_difference


def test_p_of_n_drawn_orders_is_at_least_1_in_n_plus_1() -> None:
    values = np.arange(3) + 0.1 * np.random.default_rng(4).random((50, 3))
    for n_resamples in (1, 99):
        p_values = tukey(values, n_resamples=n_resamples).p_values
        np.testing.assert_array_equal(p_values[~np.eye(3, dtype=bool)], 1 / (n_resamples + 1))


def test_tukeys_test_of_two_users_has_no_small_p() -> None:
    values = np.array([[0.1, 0.3, 0.2], [0.0, 0.5, 0.5], [np.nan, 1.0, 1.0]])
    result = tukey(values, n_resamples=2_000)
    assert result.n == 2
    default = tukey(values, n_resamples=10_000)
    np.testing.assert_array_equal(tukey(values).p_values, default.p_values)
    # Two users can order three models in only 36 ways, so p cannot be small.
    assert result.p_values[0, 1] > 0.1
    np.testing.assert_array_equal(result.p_values, result.p_values.T)
    with pytest.raises(InputError, match="at least two models"):
        tukey(np.zeros((5, 1)))
    with pytest.raises(InputError, match="0 users have"):
        tukey(np.full((5, 2), np.nan))
    assert (tukey(np.ones((200, 3))).p_values == 1).all()


@pytest.mark.parametrize("unit", [2.0**-30, 1.0, 2.0**30])
@pytest.mark.parametrize("n", [100, 101])
def test_tukeys_test_ignores_the_unit_and_rounding_errors(n: int, unit: float) -> None:
    values = np.random.default_rng(6).random((n + 20, 3))
    values[:20] = [0.3, 0.3, 0.1 + 0.2]
    values[19] = 0
    scaled, expected = (tukey(table, n_resamples=50) for table in (unit * values, values))
    assert (np.diag(scaled.p_values) == 1).all()
    assert scaled.method == ("resampled" if n == 100 else "studentised range")
    np.testing.assert_array_equal(scaled.p_values, expected.p_values)
    assert scaled.critical_difference == unit * expected.critical_difference


def test_ranks_follow_from_adjusted_p_values_of_pairs() -> None:
    p = np.ones((4, 4))
    p[0, 3] = p[3, 0] = p[1, 3] = p[3, 1] = 0.01
    p[0, 2] = p[2, 0] = 0.04
    result = rank_intervals([0.4, 0.35, 0.3, 0.1], p)
    assert result.low.tolist() == [1, 1, 2, 3]
    assert result.high.tolist() == [2, 3, 4, 4]
    assert result.best.tolist() == [True, True, False, False]
    lower = rank_intervals([0.1, 0.35, 0.3, 0.4], p, higher_is_better=False)
    assert lower.best.tolist() == [True, True, False, False]
    p[0, 2] = p[2, 0] = 0.06
    assert rank_intervals([0.4, 0.35, 0.3, 0.1], p).best.tolist() == [True, True, True, False]
    assert rank_intervals([0.4, 0.35, 0.3, 0.1], p, alpha=0.06).best.sum() == 2
    strict = rank_intervals([0.4, 0.35, 0.3, 0.1], p, alpha=0.001)
    assert strict.best.all()
    equal = rank_intervals([0.2, 0.2], np.zeros((2, 2)))
    assert (equal.low.tolist(), equal.high.tolist()) == ([1, 1], [2, 2])
    with pytest.raises(InputError, match=r"must have the shape \(2, 2\)"):
        rank_intervals([0.1, 0.2], p)


def test_pilot_gives_a_range_of_users_needed() -> None:
    """For about 95 of 100 pilots, the range contains the number of users needed.

    Each pilot has 100 users, and the models differ for about a fifth of these users.
    """
    generator, n_containing = np.random.default_rng(7), 0
    needed = users_needed(0.03, np.sqrt(0.2 * (0.1**2 + 0.4**2) - 0.02**2))
    for _ in range(100):
        differs = generator.random(100) < 0.2
        plan = power(np.where(differs, generator.normal(0.1, 0.4, 100), 0.0), 0.03)
        assert plan.fewest_users < plan.users_needed < plan.most_users
        n_containing += plan.fewest_users <= needed <= plan.most_users
    assert n_containing >= 85
    assert f"{plan.fewest_users:,} to {plan.most_users:,} users" in str(plan)


@pytest.mark.parametrize(
    "make",
    [
        lambda d: [0.3] * 6 + [0.0] * 60,
        lambda d: d.normal(0.05, 0.2, 40).clip(-1, 1),
        lambda d: d.normal(0.05, 0.2, 20).clip(-1, 1),
    ],
)
def test_equivalence_uses_the_same_method_as_the_comparison(make) -> None:
    differences = np.asarray(make(np.random.default_rng(8)))
    zeros = np.zeros(len(differences))
    row = compare(np.maximum(differences, 0), np.maximum(-differences, zeros), bounds=(0, 1))
    result = equivalence(differences, 0.1, bounds=(0, 1))
    assert result.method == ("gaffke" if row.interval.method == "gaffke" else "randomisation")
    assert result.interval.method == row.interval.method

"""Gaffke, Clopper-Pearson, bootstrap and Student intervals for means are correct."""

from __future__ import annotations

import math
import re
from fractions import Fraction

import numpy as np
import pytest
import scipy
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from recometer.errors import InputError, UnknownNameError
from recometer.stats import Interval, interval
from recometer.stats.grouping import (
    FAR_USERS,
    N_CELLS,
    SORTED_UP_TO,
    group,
)

Float64 = NDArray[np.float64]
UNIT = (0.0, 1.0)


def sparse(n: int, seed: int = 0, share: float = 0.4) -> Float64:
    """Draw NDCG-like values, which are between 0 and 1 and mostly 0."""
    generator = np.random.default_rng(seed)
    return generator.random(n) * (generator.random(n) < share)


def share_below(knots: Float64, c: float) -> float:
    """Return P(Σ W·knots ≤ c) for W ~ Dirichlet(1, ..., 1) and distinct knots, without rounding.

    The probability is a divided difference of the truncated power (Curry & Schoenberg, Journal
    d'Analyse Mathématique 17, 1966).
    """
    exact = [Fraction(float(knot)) for knot in knots]
    total = Fraction(0)
    for place, knot in enumerate(exact):
        if knot < c:
            product_of_gaps = math.prod(
                other_knot - knot
                for other_place, other_knot in enumerate(exact)
                if other_place != place
            )
            total += (Fraction(c) - knot) ** (len(exact) - 1) / product_of_gaps
    return float(total)


@pytest.mark.parametrize("n", [1, 2, 3, 5, 10, 19])
def test_gaffkes_ends_are_quantiles_of_dirichlet_means(n: int) -> None:
    values = np.random.default_rng(n).random(n)
    low, high = interval(values, "gaffke", bounds=UNIT)
    assert share_below(np.append(values, 1.0), high) == pytest.approx(0.975, abs=0.0015)
    assert share_below(np.append(values, 0.0), low) == pytest.approx(0.025, abs=0.0015)


@pytest.mark.parametrize("confidence", [1e-6, 0.05, 0.2, 0.5, 0.999, 1 - 1e-9])
def test_tails_beyond_gaffkes_ends_are_correct_at_any_confidence(confidence: float) -> None:
    values = np.random.default_rng(1).random(6)
    low, high = interval(values, bounds=UNIT, confidence=confidence)
    above = 1 - share_below(np.append(values, 1.0), high)
    assert above == pytest.approx((1 - confidence) / 2, abs=0.004, rel=0.2)
    below = share_below(np.append(values, 0.0), low)
    assert below == pytest.approx((1 - confidence) / 2, abs=0.004, rel=0.2)


@pytest.mark.parametrize(("k", "n"), [(0, 20), (1, 20), (3, 50), (10, 1_000), (7, 7), (1, 1)])
def test_zeros_and_ones_have_clopper_and_pearsons_interval(k: int, n: int) -> None:
    expected = scipy.stats.binomtest(k, n).proportion_ci(0.9, "exact")
    result = interval(np.repeat([0.0, 1.0], [n - k, k]), bounds=UNIT, confidence=0.9)
    assert result.method == "clopper-pearson"
    np.testing.assert_allclose(tuple(result), expected, rtol=1e-9, atol=1e-15)


def test_approximate_interval_is_close_to_the_exact_interval() -> None:
    """Replacing one 0 by 1e-6 makes the interval approximate, but must hardly change it."""
    values = np.repeat([0.0, 1.0], [997, 3])
    exact = interval(values, bounds=UNIT)
    values[0] = 1e-6
    result = interval(values, bounds=UNIT)
    assert result.method == "gaffke"
    np.testing.assert_allclose(tuple(result), tuple(exact), rtol=1e-3)


def test_bound_for_constants_is_exact_as_in_the_rule_of_three() -> None:
    result = interval(np.zeros(100), bounds=UNIT)
    assert (result.low, result.high) == pytest.approx((0.0, 1 - 0.025 ** (1 / 100)))
    between = interval(np.full(100, 0.25), bounds=UNIT)
    assert between.high == pytest.approx(0.25 + 0.75 * (1 - 0.025 ** (1 / 100)))
    assert between.low == pytest.approx(0.25 - 0.25 * (1 - 0.025 ** (1 / 100)))
    assert "All 100 values are 0.25" in between.note


@given(
    st.lists(st.integers(0, 64).map(lambda numerator: numerator / 64), min_size=1, max_size=30),
    st.floats(0.05, 20),
    st.floats(-5, 5),
    st.randoms(use_true_random=False),
)
def test_gaffkes_interval_scales_and_shifts_with_the_values(
    values: list[float], scale: float, shift: float, random
) -> None:
    """The interval is scaled and shifted like the values, and does not depend on their order."""
    low, high = interval(values, "gaffke", bounds=UNIT)
    assert 0 <= low <= np.mean(values) + 1e-12
    assert np.mean(values) - 1e-12 <= high <= 1
    random.shuffle(values)
    array = np.array(values)
    moved = interval(array * scale + shift, "gaffke", bounds=(shift, scale + shift))
    np.testing.assert_allclose(tuple(moved), (low * scale + shift, high * scale + shift), atol=2e-6)
    mirrored = interval(-array, "gaffke", bounds=(-1, 0))
    np.testing.assert_allclose(tuple(mirrored), (-high, -low), atol=1e-7)


def test_intervals_widen_with_confidence_and_fewer_users() -> None:
    values = sparse(200)
    widths = [interval(values, bounds=UNIT, confidence=c).width for c in (0.5, 0.9, 0.95, 0.999)]
    assert widths == sorted(widths)
    assert interval(values[:50], bounds=UNIT).width > interval(values, bounds=UNIT).width


# SciPy 1.17.1 returns these intervals for values = sparse(n) from bootstrap((values,), np.mean,
# n_resamples=1_000_000, method=method, batch=2_000, rng=np.random.default_rng(1)). The noise in
# their ends is about 0.2 % of the width.
RESAMPLED = {
    (50, "BCa"): (0.0943174, 0.2711452),
    (50, "percentile"): (0.0867985, 0.2595053),
    (500, "BCa"): (0.1805040, 0.2361549),
    (500, "percentile"): (0.1797430, 0.2352971),
}


@pytest.mark.parametrize(("n", "method"), RESAMPLED)
def test_bootstrap_matches_scipy_with_a_million_resamples(n: int, method: str) -> None:
    expected = RESAMPLED[n, method]
    result = interval(sparse(n), method.lower())
    assert result.method == method.lower()
    np.testing.assert_allclose(tuple(result), expected, atol=0.006 * result.width)


def test_weighted_mean_matches_scipys_bootstrap_of_a_ratio() -> None:
    values, weights = sparse(300), np.random.default_rng(1).integers(1, 9, 300).astype(float)

    def ratio(x: Float64, y: Float64, axis: int = -1) -> Float64:
        return x.sum(axis=axis) / y.sum(axis=axis)

    resampled = scipy.stats.bootstrap(
        (values * weights, weights),
        ratio,
        paired=True,
        n_resamples=20_000,
        method="BCa",
        batch=2_000,
        rng=np.random.default_rng(2),
    ).confidence_interval
    result = interval(values, weights=weights, bounds=UNIT)
    assert result.method == "bca"
    assert "weighted" in result.note
    np.testing.assert_allclose(tuple(result), tuple(resampled), atol=0.04 * result.width)
    for some_values in (values, values[:1]):
        equal_weights = interval(some_values, weights=np.full(len(some_values), 2.0), bounds=UNIT)
        np.testing.assert_allclose(tuple(equal_weights), tuple(interval(some_values, bounds=UNIT)))


def test_interval_of_groups_equals_the_interval_of_their_values() -> None:
    assert interval(group(sparse(40))) == interval(sparse(40))
    assert interval(group(sparse(40)), bounds=UNIT) == interval(sparse(40), bounds=UNIT)


def test_students_interval_matches_scipy() -> None:
    values = sparse(40)
    expected = scipy.stats.ttest_1samp(values, 0).confidence_interval(0.9)
    np.testing.assert_allclose(tuple(interval(values, "t", confidence=0.9)), tuple(expected))


@pytest.mark.parametrize("kind", ["gaffke", "bca", "percentile", "t"])
@pytest.mark.parametrize("kind_of_values", ["continuous", "few kinds", "a far value"])
def test_grouping_into_cells_changes_little(
    monkeypatch: pytest.MonkeyPatch, kind, kind_of_values: str
) -> None:
    n = 2 * SORTED_UP_TO
    values = sparse(n, share=1.0)
    if kind_of_values == "few kinds":
        values = np.round(values, 1)
    elif kind_of_values == "a far value":
        values[5] = 1e5
    high = max(1.0, float(values.max()))
    in_cells = interval(values, kind, bounds=(0, high))
    for scaled_values in np.outer([1, -1, 1e-6, -1e-6, 1e6, -1e6], values):
        grouped = group(scaled_values)
        assert len(grouped.values) <= N_CELLS[-1] + 1
        assert grouped.exact == (kind_of_values != "continuous")
        if kind_of_values == "few kinds":
            np.testing.assert_array_equal(grouped.values, np.unique(scaled_values))
        # Grouping values into cells loses little variance, even compared with the variance that
        # remains after the farthest values are clipped.
        inner = (
            np.clip(scaled_values, *np.sort(scaled_values)[[FAR_USERS, -1 - FAR_USERS]])
            - grouped.estimate
        )
        assert (
            grouped.sum_of_squares - grouped.counts @ grouped.residuals**2 <= 2e-6 * inner @ inner
        )
    monkeypatch.setattr("recometer.stats.grouping.SORTED_UP_TO", n)
    one_by_one = interval(values, kind, bounds=(0, high))
    np.testing.assert_allclose(tuple(in_cells), tuple(one_by_one), atol=1e-6 * one_by_one.width)


def test_interval_with_clusters_treats_each_cluster_as_a_unit() -> None:
    generator = np.random.default_rng(4)
    clusters = np.repeat(np.arange(100), 5)
    values = np.clip(np.repeat(generator.random(100), 5) + generator.normal(0, 0.01, 500), 0, 1)
    rows, of_clusters = (
        interval(values, bounds=UNIT),
        interval(values, bounds=UNIT, clusters=clusters),
    )
    assert of_clusters.n == 100
    assert of_clusters.method == "gaffke"
    assert of_clusters.width / rows.width == pytest.approx(np.sqrt(5), rel=0.1)
    shuffled = generator.permutation(500)
    names = np.char.add("user ", clusters.astype(str))
    reordered = interval(values[shuffled], bounds=UNIT, clusters=names[shuffled])
    np.testing.assert_allclose(tuple(reordered), tuple(of_clusters))
    uneven = interval(values[:-3], bounds=UNIT, clusters=clusters[:-3])
    assert uneven.method == "bca"
    assert "clusters differ in size" in uneven.note


def test_users_without_a_value_do_not_count_in_clusters() -> None:
    values, clusters = sparse(60), np.arange(60) // 4
    has_value = np.arange(60) % 7 > 0
    with_missing = np.where(has_value, values, np.nan)
    expected = interval(values[has_value], "bca", clusters=clusters[has_value])
    assert tuple(interval(with_missing, "bca", clusters=clusters)) == tuple(expected)
    weights = np.where(has_value, 1.0, 0.0)
    assert tuple(interval(values, "bca", clusters=clusters, weights=weights)) == tuple(expected)


@pytest.mark.parametrize("kind", ["auto", "gaffke", "t", "bca", "percentile"])
@pytest.mark.parametrize("values", [[], [np.nan, np.nan]])
def test_interval_without_users_has_a_note(kind, values: list[float]) -> None:
    result = interval(values, kind, bounds=UNIT)
    assert np.isnan([result.low, result.high]).all()
    assert result.note == "No user has a value." or "No user has a value; " in result.note


@pytest.mark.parametrize("kind", ["t", "bca", "percentile"])
def test_single_user_has_an_interval_only_with_gaffkes_method(kind) -> None:
    result = interval([np.nan, 0.5], kind)
    assert np.isnan(result.low)
    assert "One user has a value" in result.note
    low, high = interval([np.nan, 0.5], bounds=UNIT)
    assert (low, high) == pytest.approx((0.0125, 0.9875))


@pytest.mark.parametrize("kind", ["auto", "t", "bca", "percentile"])
def test_interval_without_width_has_a_note(kind) -> None:
    result = interval([0.1, 0.1, 0.1], kind)
    assert (result.low, result.high) == pytest.approx((0.1, 0.1))
    assert "All 3 values are 0.1" in result.note


@pytest.mark.parametrize("bounds", [None, (-np.inf, 1.0), (0.0, np.inf), (1.0, 1.0), (1.0, 0.0)])
def test_default_interval_without_a_range_uses_the_bootstrap(bounds) -> None:
    result = interval([0.1, 0.4, 1.0], bounds=bounds)
    assert result.method == "bca"
    assert "has no known range" in result.note
    # Bounds without a finite range do not change the interval, even if values lie outside them.
    assert tuple(interval([-0.4, 0.5, 1.4], bounds=bounds)) == tuple(interval([-0.4, 0.5, 1.4]))


@pytest.mark.parametrize("kind", ["bca", "percentile"])
def test_bootstrap_intervals_stay_within_the_values(kind) -> None:
    assert tuple(interval([0.0, 0.2, 0.3, 1.0], kind, confidence=1 - 1e-9)) == (0, 1)
    shares, weights = np.array([0.1, 0.2, 0.3, 0.9]), [1.0, 2.0, 3.0, 1.0]
    result = interval(shares, kind, weights=weights, confidence=1 - 1e-9)
    assert tuple(result) == pytest.approx((0.1, 0.9))


@pytest.mark.parametrize("kind", ["bca", "percentile"])
@pytest.mark.parametrize("confidence", [0.02, 0.2, 0.5, 0.9])
def test_resampled_means_of_symmetric_values_are_normal(kind, confidence: float) -> None:
    values = np.append(sparse(200, share=1.0), -sparse(200, share=1.0))
    low, high = interval(values, kind, confidence=confidence)
    half = scipy.stats.norm.ppf((1 + confidence) / 2) * values.std() / 20
    assert (low, high) == pytest.approx((-half, half), rel=0.01)


def test_median_of_resampled_means_of_skewed_values_is_below_their_mean() -> None:
    low, high = interval([0.0] * 19 + [1.0], "percentile", confidence=0.01)
    assert 0.03 < low < high < 0.05
    # The median of the resampled means is κ3 / 6 = 0.154 standard deviations below the mean of
    # 0.05, but the upper end of this interval is only 0.011 standard deviations below the mean.
    assert 0.049 < interval([0.0] * 19 + [1.0], "percentile", confidence=0.1137).high < 0.0499


@pytest.mark.parametrize("kind", ["bca", "percentile", "t"])
def test_interval_scales_with_the_unit_of_the_values(kind) -> None:
    values = sparse(40)
    ends = np.array(tuple(interval(values, kind)))
    for unit in (1e-60, 1e-9, 1e6, 1e15):
        assert tuple(interval(unit * values, kind)) == pytest.approx(tuple(unit * ends), rel=1e-9)


def test_skewness_of_a_sum_follows_from_squares_and_cubes() -> None:
    """For three 0s and a 1, the residuals' cubes add up to 3/8, and their squares to 3/4."""
    assert group([0.0, 0.0, 1.0, 0.0]).skewness == pytest.approx((3 / 8) / (3 / 4) ** 1.5)
    assert group([0.5, 0.5, 0.5]).skewness == 0


@pytest.mark.parametrize("n", [3, SORTED_UP_TO, SORTED_UP_TO + 1, 40_000])
@pytest.mark.parametrize("share", [0.01, 1.0])
@pytest.mark.parametrize("with_sizes", [False, True])
def test_groups_contain_every_user_once(n: int, share: float, with_sizes: bool) -> None:
    x = sparse(n, share=share) - 0.25 * (np.arange(n) % 7 == 0)
    y = np.random.default_rng(1).integers(1, 4, n).astype(float) if with_sizes else np.ones(n)
    grouped = group(x, y if with_sizes else None)
    assert grouped.n == n == grouped.counts.sum()
    assert grouped.estimate == pytest.approx(x.sum() / y.sum())
    assert grouped.counts @ grouped.values == pytest.approx(x.sum())
    assert np.sum(grouped.counts * grouped.sizes) == pytest.approx(y.sum())
    squares = float(((x - grouped.estimate * y) ** 2).sum())
    assert grouped.sum_of_squares == pytest.approx(squares)
    assert grouped.counts @ grouped.residuals**2 == pytest.approx(squares, rel=2e-6)
    if not with_sizes:
        assert (grouped.n_above, grouped.n_below) == ((x > 0).sum(), (x < 0).sum())
        assert (np.diff(grouped.values) > 0).all()


def test_groups_leave_out_users_without_a_value_or_size() -> None:
    grouped = group([0.5, np.nan, 0.25, 1.0], [2.0, 1.0, np.nan, 1.0])
    assert grouped.n == 2
    assert grouped.estimate == 0.5
    assert (grouped.n_above, grouped.n_below) == (0, 0)  # not counted if users have sizes
    assert group([0.5, np.nan, 1.0]).estimate == 0.75


@pytest.mark.parametrize("n", [3, SORTED_UP_TO + 1])
@pytest.mark.parametrize("sign", [1, -1])
def test_rounding_errors_count_as_0(n: int, sign: int) -> None:
    """Values smaller than 1e-13 times the largest value count as 0, whatever their sign."""
    x = sign * 1e3 * np.append(np.linspace(0.0, 1.0, n), [1e-13, -1e-13, -1e-3])
    grouped = group(x)
    assert (grouped.n_above, grouped.n_below) == ((n - 1, 1) if sign > 0 else (1, n - 1))


def test_group_without_values_is_empty() -> None:
    grouped = group([np.nan])
    assert (grouped.n, grouped.n_above, grouped.n_below, grouped.sum_of_squares) == (0, 0, 0, 0.0)
    assert grouped.exact
    assert grouped.sizes == 1.0
    assert np.isnan(grouped.estimate)


def test_note_states_a_value_outside_the_range() -> None:
    values = [0.0, 0.5, 1.5, 0.2]
    with pytest.raises(InputError, match=r"value 1\.5 lies outside the range from 0 to 1"):
        interval(values, "gaffke", bounds=UNIT)
    result = interval(values, bounds=UNIT)
    assert result.method == "bca"
    assert "1.5 lies outside" in result.note
    # If a value lies outside the range, the interval ignores the range.
    for values, bounds in (([0.0, 5.0, 15.0, 2.0], UNIT), ([0.0, 0.0, 2.0], (1.0, 5.0))):
        assert tuple(interval(values, "bca", bounds=bounds)) == tuple(interval(values, "bca"))
    assert interval([0.0, 0.5, 1 + 1e-12], bounds=UNIT).method == "gaffke"
    # The tolerance for rounding errors is relative to the width of the range, not to the values.
    assert interval([-5.0, -4.5, -4 + 1e-12], bounds=(-5, -4)).method == "gaffke"
    assert interval([1000.0, 1000.5, 1001 + 1e-7], bounds=(1000, 1001)).method == "bca"


def test_invalid_arguments_are_rejected() -> None:
    with pytest.raises(InputError, match=r"bounds=\(-inf, inf\) are not a range"):
        interval([0.0, 1.0], "gaffke")
    with pytest.raises(UnknownNameError, match="Did you mean 'gaffke'"):
        interval([0.0, 1.0], "gafke")  # type: ignore[arg-type]
    with pytest.raises(InputError, match=re.escape("values[1] is inf")):
        interval([0.0, np.inf])
    with pytest.raises(InputError, match="shape"):
        interval(np.zeros((2, 2)))
    with pytest.raises(InputError, match="must be numbers"):
        interval(["a"])
    with pytest.raises(InputError, match="above 0 and below 1"):
        interval([0.0, 1.0], confidence=95)
    with pytest.raises(InputError, match="clusters must have one entry"):
        interval([0.0, 1.0], clusters=[1])


def test_users_with_weight_0_are_left_out() -> None:
    """Only the two users with a weight above 0 count."""
    weights = np.zeros(60)
    weights[:2] = 1.0
    values = np.zeros(60)
    values[0] = 1.0
    result = interval(values, "bca", weights=weights)
    assert isinstance(result, Interval)
    assert result.n == 2


def test_values_with_overflowing_cubes_are_rejected():
    with pytest.raises(
        InputError,
        match=r"values\[1\] is 1e\+80, which is too large: above 1e\+75, sums of cubes may",
    ):
        interval([1.0, 1e80, np.nan])
    with pytest.raises(
        InputError, match=r"values\[2\] is -1e\+80, which is too large: .* sums of cubes"
    ):
        interval([np.nan, 1.0, -1e80])
    with pytest.raises(
        InputError, match=r"values\[1\] is -inf, so the mean has neither an interval nor a test"
    ):
        interval([1e80, -np.inf, np.nan])


@pytest.mark.parametrize("unit", [1e-150, 1e-74, 1e74])
def test_extreme_units_do_not_change_intervals(unit):
    values = np.array([0.1, 0.2, 0.2, 0.9])
    for kind in ("t", "percentile", "bca"):
        expected = np.array(interval(values, kind)[:2])
        np.testing.assert_allclose(np.array(interval(values * unit, kind)[:2]) / unit, expected)


def test_interval_behaves_like_a_tuple_of_its_ends() -> None:
    result = interval([0.5, 0.25, 1.0], bounds=UNIT)
    assert tuple(result) == (result[0], result[1]) == (result.low, result[-1])
    assert len(result) == 2
    with pytest.raises(IndexError):
        result[2]


def test_gaffkes_interval_has_a_note_only_for_constant_values() -> None:
    for values, note in (
        ([0.3], "The only value is 0.3"),
        ([0.3, 0.3], "All 2 values are 0.3"),
        ([0.3, 0.4], ""),
    ):
        result = interval(values, "gaffke", bounds=UNIT)
        assert result.note.startswith(note)
        assert bool(result.note) == bool(note)


@pytest.mark.parametrize("tail", [2**-20, 2**-40, 2**-53])
def test_gaffkes_ends_are_accurate_far_in_the_tails(tail: float) -> None:
    """The tail probability of a mean with random weights has a closed form.

    If c is above all values x, the weighted mean of the values and 1 exceeds c with probability
    Π (1 - c) / (1 - x).
    """
    low, high = interval([0.4, 0.6], "gaffke", bounds=UNIT, confidence=1 - 2 * tail)
    assert 1 - high == pytest.approx(math.sqrt(tail * 0.4 * 0.6), rel=0.05)
    assert low == pytest.approx(1 - high)


def test_interval_at_a_confidence_near_1_is_the_full_range() -> None:
    for values in ([0.4, 0.6, 0.7], [0.0, 1.0]):
        assert tuple(interval(values, "gaffke", bounds=UNIT, confidence=1 - 2**-53)) == UNIT


def test_rounding_tolerance_scales_with_the_range() -> None:
    for width in (1e-3, 1.0, 1e3):
        values = np.array([0.5, 0.2, 1 + 1e-10]) * width
        assert interval(values, "gaffke", bounds=(0, width)).high <= width * (1 + 1e-9)
        with pytest.raises(InputError, match="lies outside"):
            interval(values * (1 + 1e-8), "gaffke", bounds=(0, width))


def test_standard_error_of_a_ratio_matches_cochrans_formula() -> None:
    x, y = np.array([1.0, 2.0, 2.5, 0.5]), np.array([2.0, 3.0, 5.0, 1.0])
    residuals = x - x.sum() / y.sum() * y
    expected = np.sqrt(4 / 3 * residuals @ residuals) / y.sum()
    assert group(x, y).standard_error == pytest.approx(expected)
    assert group(x).standard_error == pytest.approx(x.std(ddof=1) / 2)
    assert np.isnan(group(x[:1]).standard_error)

"""Intervals over several runs or folds include the variance between runs or folds."""

from __future__ import annotations

import math
import statistics

import numpy as np
import pytest
import scipy
from numpy.typing import NDArray

from recometer.errors import InputError
from recometer.stats import Runs, interval, over_folds, over_runs
from recometer.stats.runs import over_values

Float64 = NDArray[np.float64]


def crossed(
    n: int, r: int, seed: int, users: float = 0.2, runs: float = 0.05, rest: float = 0.1
) -> Float64:
    generator = np.random.default_rng(seed)
    effect = generator.normal(0, users, (n, 1)) + generator.normal(0, runs, (1, r))
    return 0.5 + effect + generator.normal(0, rest, (n, r))


def test_one_run_has_students_interval_and_a_note() -> None:
    values = crossed(50, 1, 0)
    result = over_runs(values)
    np.testing.assert_allclose(tuple(result.interval), tuple(interval(values[:, 0], "t")))
    assert "There is only one seed" in result.note
    assert np.isnan(result.deviation_runs[0])
    assert result.share_of_runs == 0


def test_tiny_values_of_runs_have_an_interval_without_width() -> None:
    """The variances of such tiny values fit into doubles, but the variances' squares underflow."""
    result = over_runs((crossed(50, 3, 0) - 0.5) * 1e-100)
    assert tuple(result.interval) == (result.mean, result.mean)
    assert "so the interval has zero width" in result.note + result.interval.note


def test_two_users_are_enough_for_an_interval_over_runs() -> None:
    result = over_runs([[0.1, 0.2, 0.3], [0.5, 0.5, 0.8]])
    assert np.isfinite([result.mean, *result.interval]).all()


def test_variance_components_match_the_simulated_ones() -> None:
    values = crossed(400, 40, 1)
    result = over_runs(values)
    assert result.mean == pytest.approx(values.mean())
    assert result.deviation_runs[0] == pytest.approx(0.05, rel=0.25)
    assert result.deviation_users == pytest.approx(np.hypot(0.2, 0.1 / np.sqrt(40)), rel=0.1)
    users, runs = 0.04 / 400, 0.0025 / 40
    assert result.share_of_runs == pytest.approx(runs / (users + runs), abs=0.15)


def test_runs_that_differ_only_by_noise_add_no_variance() -> None:
    values = crossed(200, 3, 2, runs=0.0)
    result = over_runs(values)
    over_users = interval(values.mean(axis=1), "t")
    assert result.interval.width == pytest.approx(over_users.width, rel=0.1)


@pytest.mark.parametrize("compared", [False, True])
def test_intervals_over_users_and_runs_cover_the_mean(compared: bool) -> None:
    """In 300 experiments, the coverage is near 95 %; its standard error is 1.3 %.

    Intervals that ignore the variance between runs cover the mean far too rarely.
    """
    covered, of_users = [], []
    for seed in range(300):
        first = second = crossed(60, 4, seed)
        if compared:
            # The two models share users, but not runs, so only the effects of the users cancel out.
            generator = np.random.default_rng(10_000 + seed)
            user = generator.normal(0, 0.2, (60, 1))
            first, second = (
                user + generator.normal(0, 0.05, (1, r)) + generator.normal(0, 0.1, (60, r))
                for r in (4, 3)
            )
        result: Runs = over_runs(first, second if compared else None)
        difference = first.mean(axis=1) - (second.mean(axis=1) if compared else 0.0)
        true_mean = 0.0 if compared else 0.5
        covered.append(true_mean in result.interval)
        of_users.append(true_mean in interval(difference, "t"))
    assert 0.92 <= np.mean(covered) <= 0.985
    assert np.mean(of_users) < np.mean(covered)


def test_comparison_over_runs_pairs_users() -> None:
    generator = np.random.default_rng(5)
    user = generator.normal(0, 0.5, (300, 1))
    first = 0.02 + user + generator.normal(0, 0.02, (300, 3))
    second = user + generator.normal(0, 0.02, (300, 5))
    result = over_runs(first, second)
    assert result.n_runs == (3, 5)
    assert result.mean == pytest.approx(first.mean() - second.mean())
    assert result.p_value < 1e-6
    swapped = over_runs(second, first)
    np.testing.assert_allclose(
        tuple(swapped.interval), (-result.interval.high, -result.interval.low)
    )
    assert swapped.deviation_runs == result.deviation_runs[::-1]
    # Users without a value from every run of both models are left out.
    first[:2], second[2:5, 0] = np.nan, np.nan
    assert over_runs(first, second) == over_runs(first[5:], second[5:])


def test_intervals_over_folds_include_the_variance_between_folds() -> None:
    generator = np.random.default_rng(6)
    means = 0.5 + np.array([-0.2, -0.1, 0.0, 0.1, 0.2])
    folds = [generator.normal(mean, 0.1, 400) for mean in means]
    result = over_folds(folds)
    # The folds differ far more than the variance over users explains, so the interval is nearly
    # Student's interval of the 5 means.
    of_means = np.array([fold.mean() for fold in folds])
    np.testing.assert_allclose(tuple(result.interval), tuple(interval(of_means, "t")), atol=1e-3)
    assert result.deviation_runs[0] == pytest.approx(of_means.std(ddof=1), rel=0.02)
    assert result.share_of_runs > 0.99
    similar = over_folds([generator.normal(0.5, 0.1, 400) for _ in range(5)])
    error = scipy.stats.t.ppf(0.975, 4) * 0.1 / np.sqrt(2_000)
    assert similar.interval.width >= 2 * error * 0.95
    assert over_folds([[0.5, 0.5], [0.5, 0.5]]).interval.width == 0
    # The variance between folds is the variance of the three means, minus the part that the
    # variance over users explains. The first fold has no variance over users.
    distant_folds = over_folds([[0.5, 0.5], [0.1, 0.3], [0.9, 0.7]])
    within = (0 + 0.01 + 0.01) / 3  # in two folds, the variance over 2 users is 0.02
    assert distant_folds.deviation_runs[0] == pytest.approx(
        np.sqrt(np.var([0.5, 0.2, 0.8], ddof=1) - within)
    )
    between = distant_folds.deviation_runs[0] ** 2
    assert distant_folds.share_of_runs == pytest.approx(between / (between + within))
    assert over_folds([[0.5, 0.5], [0.4, 0.6], [0.3, 0.7]]).deviation_runs == (0.0,)
    # The interval is at least as wide as an interval over users in which all folds weigh the same.
    similar = over_folds([[0.5, 0.5], [0.2, 0.8], [0.4, 0.6]])
    half = scipy.stats.t.ppf(0.975, 2) * np.sqrt((0 + 0.09 + 0.01) / 9)
    assert tuple(similar.interval) == pytest.approx((0.5 - half, 0.5 + half))
    # Even if the means of all folds happen to be equal, the interval is as wide as one over users.
    equal_means = over_folds([[0.0, 1.0], [0.1, 0.9], [0.2, 0.8]])
    squares = np.array([0.25, 0.16, 0.09])
    half = scipy.stats.t.ppf(0.975, 2) * np.sqrt(1 / (1 / squares).sum())
    assert equal_means.interval.width == pytest.approx(2 * half)
    assert equal_means.share_of_runs == 0


@pytest.mark.parametrize("spread", [0.0, 0.02, 0.1])
def test_intervals_over_folds_match_hartung_and_knapps_formula(spread: float) -> None:
    generator = np.random.default_rng(1)
    floors = 0
    for _ in range(20):
        sizes = generator.integers(5, 200, 4)
        folds = [generator.normal(generator.normal(0, spread), 0.1, n) for n in sizes]
        means, squares = np.array([(fold.mean(), fold.var(ddof=1) / len(fold)) for fold in folds]).T
        weights_within_folds = 1 / squares
        excess = (
            weights_within_folds
            @ (means - weights_within_folds @ means / weights_within_folds.sum()) ** 2
            - 3
        )
        between = max(
            0.0,
            excess
            / (
                weights_within_folds.sum()
                - (weights_within_folds**2).sum() / weights_within_folds.sum()
            ),
        )
        weights = 1 / (squares + between)
        mean = weights @ means / weights.sum()
        variance, least = weights @ (means - mean) ** 2 / (3 * weights.sum()), 1 / weights.sum()
        floors += variance < least and bool((between > squares).any())
        half = scipy.stats.t.ppf(0.975, 3) * math.sqrt(max(variance, least))
        result = over_folds(folds).interval
        np.testing.assert_allclose(tuple(result), (mean - half, mean + half), rtol=1e-9)
    assert floors or not spread  # some drawn folds have the minimum variance


@pytest.mark.parametrize("shift", [0.0, 0.05, -0.3])
def test_interval_over_folds_at_level_p_ends_at_0(shift: float) -> None:
    generator = np.random.default_rng(8)
    folds = [generator.normal(mean + shift, 0.1, 30) for mean in (-0.1, 0.02, 0.05, 0.1)]
    p = over_folds(folds).p_value
    assert 0 < p < 1
    ends = over_folds(folds, confidence=1 - p).interval
    assert min(abs(ends.low), abs(ends.high)) < 1e-9
    # If the folds have no variance at all, p is 0 or 1.
    assert over_folds([[0.5, 0.5], [0.5, 0.5]]).p_value == 0
    assert over_folds([[0.0, 0.0], [0.0, 0.0]]).p_value == 1


def direct_computation(tables: list[NDArray[np.float64]], confidence: float) -> tuple[float, ...]:
    """Return the interval, p and deviations of a table's mean, or of a difference between means.

    The squared error of the mean is a sum of mean squares, whose degrees of freedom follow from the
    formula of Welch and Satterthwaite.
    """
    n = len(tables[0])
    of_users = [
        sum((1, -1)[k] * float(np.mean(t[u])) for k, t in enumerate(tables)) for u in range(n)
    ]
    parts, deviations = [(statistics.variance(of_users) / n, n - 1)], []
    for table in tables:
        r, grand = table.shape[1], float(table.mean())
        runs, users = [table[:, j].mean() for j in range(r)], [row.mean() for row in table]
        between = n * sum((run_mean - grand) ** 2 for run_mean in runs) / (r - 1)
        left = sum(
            (table[u, j] - users[u] - runs[j] + grand) ** 2 for u in range(n) for j in range(r)
        )
        rest = float(left) / ((n - 1) * (r - 1))
        deviations.append(math.sqrt(max(between - rest, 0) / n))
        if between > rest:
            parts += [(between / (n * r), r - 1), (-rest / (n * r), (n - 1) * (r - 1))]
    variance = sum(part for part, _ in parts)
    freedom = variance**2 / sum(part**2 / d for part, d in parts)
    mean, error = statistics.fmean(of_users), math.sqrt(variance)
    half = float(scipy.stats.t.ppf((1 + confidence) / 2, freedom)) * error
    p = 2 * float(scipy.stats.t.sf(abs(mean) / error, freedom))
    return mean - half, mean + half, p, *deviations


@pytest.mark.parametrize("shapes", [[(12, 3)], [(40, 2)], [(9, 3), (9, 4)], [(30, 2), (30, 5)]])
@pytest.mark.parametrize("spread", [0.0, 0.05, 0.3])
def test_intervals_of_runs_match_a_direct_computation(
    shapes: list[tuple[int, int]], spread: float
) -> None:
    generator = np.random.default_rng(len(shapes))
    tables = [
        generator.normal(0.1, 0.1, shape) + generator.normal(0, spread, shape[1])
        for shape in shapes
    ]
    result = over_runs(*tables, confidence=0.9)
    expected = direct_computation(tables, 0.9)
    ours = (*result.interval, result.p_value, *result.deviation_runs)
    assert ours == pytest.approx(expected, rel=1e-9)


def test_single_values_of_runs_give_the_same_variance_as_user_values() -> None:
    generator = np.random.default_rng(8)
    users = generator.normal(0, 0.1, (300, 1))
    first, second = (
        0.4 + shift + users + generator.normal(0, 0.02, r) + generator.normal(0, 0.1, (300, r))
        for shift, r in ((0.02, 4), (0.0, 3))
    )
    expected = over_runs(first, second)
    rests = [
        float(((table - table.mean(1, keepdims=True) - table.mean(0) + table.mean()) ** 2).sum())
        / (299 * (table.shape[1] - 1))
        for table in (first, second)
    ]
    error = (first.mean(1) - second.mean(1)).std(ddof=1) / np.sqrt(300)
    interactions = (rests[0] / 300, rests[1] / 300)
    means = first.mean(0), second.mean(0)
    result = over_values(*means, error, 300, interactions=interactions)
    assert result.mean == pytest.approx(expected.mean)
    assert result.interval.width == pytest.approx(expected.interval.width, rel=0.03)
    assert result.deviation_runs == pytest.approx(expected.deviation_runs)
    assert result.share_of_runs == pytest.approx(expected.share_of_runs)
    ratio = over_values(*means, error / 0.4, 300, relative=True)
    assert ratio.mean == pytest.approx(means[0].mean() / means[1].mean() - 1)
    # To compute the expected interval, linearise the ratio of two independent means, and take the
    # degrees of freedom from Satterthwaite's formula.
    first_means, second_means = np.array([0.5, 0.6, 0.8]), np.array([2.0, 2.5])
    parts = [
        (first_means.var(ddof=1) / second_means.mean() ** 2 / 3, 2),
        (second_means.var(ddof=1) * first_means.mean() ** 2 / second_means.mean() ** 4 / 2, 1),
    ]
    variance = sum(part for part, _ in parts)
    degrees = variance**2 / sum(part**2 / free for part, free in parts)
    ratio = over_values(first_means, second_means, 0.0, 300, relative=True)
    assert ratio.interval.width / 2 == pytest.approx(
        scipy.stats.t.ppf(0.975, degrees) * np.sqrt(variance)
    )
    # With few users, the degrees of freedom of the error over users matter.
    error = 0.05
    for n in (2, 5):
        parts = [
            (error**2, n - 1),
            (first_means.var(ddof=1) / 3, 2),
            (second_means.var(ddof=1) / 2, 1),
        ]
        variance = sum(part for part, _ in parts)
        degrees = variance**2 / sum(part**2 / free for part, free in parts)
        few_users = over_values(first_means, second_means, error, n)
        half = scipy.stats.t.ppf(0.975, degrees) * np.sqrt(variance)
        assert few_users.interval.width / 2 == pytest.approx(half)
        assert few_users.deviation_users == pytest.approx(error * np.sqrt(n))
    # A single run of each model says nothing about the variance between runs.
    single_runs = over_values([0.5], [0.4], 0.01, 10**6)
    assert tuple(single_runs.interval) == pytest.approx((0.1 - 0.0196, 0.1 + 0.0196), abs=1e-5)
    assert "only one seed" in single_runs.note
    assert "between users is unknown" in over_values([0.5, 0.6], [0.4], np.nan, 10).note


def test_invalid_arguments_of_runs_are_rejected() -> None:
    with pytest.raises(InputError, match="a column for each run"):
        over_runs([0.1, 0.2])
    with pytest.raises(InputError, match="2 and 3"):
        over_runs(np.zeros((2, 2)), np.zeros((3, 2)))
    with pytest.raises(InputError, match="user 0 in run 1 is infinite"):
        over_runs([[0.1, np.inf]])
    assert "Fewer than two users" in over_runs([[0.1, 0.2], [np.nan, 0.3]]).note
    constant = over_runs(np.full((5, 3), 0.25))
    assert "zero width" in constant.interval.note
    for function in (over_runs, over_folds):
        with pytest.raises(InputError, match="above 0 and below 1"):
            function([[0.1, 0.2], [0.3, 0.5]], confidence=95)
    with pytest.raises(InputError, match="above 0 and below 1"):
        over_values([0.1, 0.2], [0.3, 0.5], 0.01, 50, confidence=95)
    with pytest.raises(InputError, match="found: 3"):
        over_folds([[0.1, 0.2, 0.3]])
    with pytest.raises(InputError, match="found: 1, 2"):
        over_folds([[0.1], [0.1, 0.3]])


@pytest.mark.parametrize(("second", "error"), [([0.0, 0.0], 0.01), ([0.5, 0.4], np.nan)])
def test_single_values_without_an_error_or_a_ratio_have_no_interval(
    second: list[float], error: float
) -> None:
    result = over_values([0.1, 0.2], second, error, 50, relative=True)
    assert np.isnan([*result.interval, result.p_value, result.deviation_users]).all()
    assert "between users is unknown" in result.note

"""Confidence intervals for a mean over users agree with other methods or with simulations."""

from __future__ import annotations

import numpy as np
import pytest
import scipy
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from recometer.stats import interval, intervals
from recometer.stats.intervals import resampled


@given(
    st.lists(st.floats(-100, 100), min_size=2, max_size=40),
    st.floats(0.01, 0.999),
    st.integers(0, 5),
)
def test_students_interval_matches_scipy(
    values: list[float], confidence: float, n_undefined: int
) -> None:
    given_values = np.array(values + [np.nan] * n_undefined)
    low, high = interval(given_values, "t", confidence=confidence)
    error = np.std(values, ddof=1) / np.sqrt(len(values))
    if error == 0:
        assert low == high == pytest.approx(np.mean(values))
    else:
        expected = scipy.stats.t.interval(confidence, len(values) - 1, np.mean(values), error)
        np.testing.assert_allclose((low, high), expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("values", [[], [0.5], [np.nan, np.nan], [np.nan, 1.0]])
def test_fewer_than_two_values_have_no_students_interval(values: list[float]) -> None:
    assert np.isnan(tuple(interval(np.array(values, float), "t"))).all()


def test_resampled_interval_is_centred_on_the_observed_value() -> None:
    users = np.random.default_rng(6).normal(size=200)
    resampled_means: list[float] = []

    def mean(times: NDArray[np.int64]) -> dict[str, float]:
        resampled_means.append(float(times @ users) / 200)
        return {"mean": resampled_means[-1]}

    low, high = intervals.resampled(mean, {"mean": 5.0}, 200, 0.9, n_resamples=300)["mean"]
    half = scipy.stats.norm.ppf(0.95) * np.std(resampled_means, ddof=1)
    assert (low, high) == pytest.approx((5 - half, 5 + half))
    assert half == pytest.approx(scipy.stats.norm.ppf(0.95) * users.std() / np.sqrt(200), rel=0.15)
    finite = [value for number, value in enumerate(resampled_means) if number % 3]

    def sometimes(times: NDArray[np.int64]) -> dict[str, float]:
        resampled_mean = mean(times)
        return resampled_mean if len(resampled_means) % 3 != 1 else {"mean": np.nan}

    resampled_means.clear()
    low, high = intervals.resampled(sometimes, {"mean": 5.0}, 200, 0.9, n_resamples=300)["mean"]
    half = scipy.stats.norm.ppf(0.95) * np.std(finite, ddof=1)
    assert (low, high) == pytest.approx((5 - half, 5 + half))
    one_cluster = intervals.resampled(mean, {"mean": 5.0}, 200, clusters=np.zeros(200, np.int64))
    assert np.isnan(one_cluster["mean"]).all()


def test_students_interval_covers_the_mean_as_often_as_it_claims() -> None:
    generator = np.random.default_rng(3)
    samples = [generator.exponential(size=60) for _ in range(300)]
    intervals_of_samples = [interval(sample, "t", confidence=0.9) for sample in samples]
    covered = np.mean([low <= 1.0 <= high for low, high in intervals_of_samples])
    assert 0.82 < covered < 0.96


def test_resampled_interval_needs_at_least_two_users() -> None:
    def mean(times: NDArray[np.int64]) -> dict[str, float]:
        return {"mean": float(times @ np.arange(len(times)) / times.sum())}

    low, high = resampled(mean, {"mean": 0.5}, 2, n_resamples=200)["mean"]
    assert (low + high) / 2 == pytest.approx(0.5)
    assert high - low > 0.5
    plain = resampled(mean, {"mean": 0.5}, 9)
    assert plain == resampled(mean, {"mean": 0.5}, 9, 0.95, seed=0, n_resamples=200)
    for n_users in (0, 1):
        assert np.isnan(resampled(mean, {"mean": 0.0}, n_users)["mean"]).all()


def test_few_clusters_of_different_sizes_get_gaffkes_bound() -> None:
    """Gaffke's bound adds a cluster with the largest size, 6, and a sum of 0 or 6."""
    sizes = np.array([1, 2, 6, 3, 1, 2, 4, 1])
    clusters = np.repeat(np.arange(8), sizes)
    values = np.random.default_rng(0).random(len(clusters)) < 0.3
    result = interval(values, bounds=(0, 1), clusters=clusters)
    assert result.method == "gaffke"
    assert "8 clusters differ in size and count as 6 clusters of equal size" in result.note
    weights = np.random.default_rng(1).exponential(size=(200_000, 9))
    sums = np.bincount(clusters, weights=values)
    for end, bound, level in ((result.low, 0, 0.025), (result.high, 1, 0.975)):
        simulated_bounds = (weights @ [*sums, 6 * bound]) / (weights @ [*sizes, 6])
        assert np.mean(simulated_bounds <= end) == pytest.approx(level, abs=0.002)
    # If the range is unknown or if there are many clusters, the bootstrap is the default.
    assert interval(values, clusters=clusters).method == "bca"
    many_clusters = np.tile(values, 12), np.repeat(np.arange(12 * 8), np.tile(sizes, 12))
    assert interval(many_clusters[0], bounds=(0, 1), clusters=many_clusters[1]).method == "bca"


@pytest.mark.parametrize("n", [10, 20])
def test_intervals_cover_means_of_few_unequal_clusters(n: int) -> None:
    """The users of a cluster are correlated; BCa would cover the mean in only 90 % of samples."""
    generator, covered = np.random.default_rng(n), 0
    for _ in range(300):
        clusters = np.repeat(np.arange(n), generator.geometric(0.2, n))
        values = generator.random(len(clusters)) < generator.beta(0.3, 1.2, n)[clusters]
        covered += 0.2 in interval(values, bounds=(0, 1), clusters=clusters)
    assert covered >= 0.95 * 300

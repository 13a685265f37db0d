"""Confidence intervals of a mean over users have the right ends."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
import scipy
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from recometer.stats import interval, intervals
from recometer.stats.intervals import bootstrap, resampled


@given(
    st.lists(st.floats(-100, 100), min_size=2, max_size=40),
    st.floats(0.01, 0.999),
    st.integers(0, 5),
)
def test_student_is_scipys(values: list[float], confidence: float, n_undefined: int) -> None:
    given_values = np.array(values + [np.nan] * n_undefined)
    low, high = interval(given_values, "t", confidence=confidence)
    error = np.std(values, ddof=1) / np.sqrt(len(values))
    if error == 0:
        assert low == high == pytest.approx(np.mean(values))
    else:
        expected = scipy.stats.t.interval(confidence, len(values) - 1, np.mean(values), error)
        np.testing.assert_allclose((low, high), expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("values", [[], [0.5], [np.nan, np.nan], [np.nan, 1.0]])
def test_no_interval_below_two_values(values: list[float]) -> None:
    assert np.isnan(tuple(interval(np.array(values, float), "t"))).all()
    assert np.isnan(bootstrap([np.array(values, float)])).all()


def test_bootstrap_is_the_percentile_bootstrap() -> None:
    values = np.random.default_rng(1).normal(size=50)
    draws = np.random.Generator(np.random.PCG64(7)).integers(50, size=(300, 50))
    expected = np.quantile(np.sort(values)[draws].mean(axis=1), [0.05, 0.95])
    assert bootstrap([values], 0.9, seed=7, n_resamples=300)[0] == pytest.approx(tuple(expected))


@given(st.integers(0, 2**32))
def test_bootstrap_does_not_depend_on_the_order_of_users(seed: int) -> None:
    generator = np.random.default_rng(seed)
    values = generator.integers(0, 4, 30) / 3.0
    values[generator.random(30) < 0.2] = np.nan
    weights, order = generator.integers(0, 3, 30).astype(float), generator.permutation(30)
    for own in (None, [weights]):
        moved = None if own is None else [weights[order]]
        one = bootstrap([values], n_resamples=50, weights=own)
        other = bootstrap([values[order]], n_resamples=50, weights=moved)
        np.testing.assert_array_equal(one, other)


def test_users_of_several_blocks_are_drawn_with_replacement(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Every resample draws as many users as the data have, and all users are equally likely."""
    monkeypatch.setattr(intervals, "DRAWS_AT_ONCE", 4_000 * 7)
    n, n_resamples = 20, 4_000  # blocks of 7, 7 and 6
    sums = intervals._resampled_sums([np.ones(n), *np.eye(n)], 5, n_resamples)
    assert (sums[0] == n).all()
    times = sums[1:]
    assert (times.sum(axis=0) == n).all()
    # The counts follow Binomial(n, 1/n), with covariances of -1/n. Allow 5 standard errors.
    assert times.mean(axis=1) == pytest.approx(1, abs=5 / np.sqrt(n_resamples))
    covariance = np.cov(times)
    assert np.diag(covariance) == pytest.approx(1 - 1 / n, abs=0.15)
    apart = covariance[~np.eye(n, dtype=bool)]
    assert apart == pytest.approx(-1 / n, abs=5 / np.sqrt(n_resamples))


def test_sums_of_resamples_are_exact_in_any_order() -> None:
    """Sums are exact because values are first rounded to multiples of 2^-38 times the largest."""
    generator = np.random.default_rng(5)
    values = generator.normal(size=(4, 1_000)) * [[1], [1e-300], [1e300], [0]]
    values[3] = 1 - generator.random(1_000) / 50  # sums use nearly all bits of a double
    together = intervals._resampled_sums(list(values), 1, 40)
    for row, column in zip(together, values, strict=True):
        (alone,) = intervals._resampled_sums([column], 1, 40)
        np.testing.assert_array_equal(alone, row)
    times = intervals._resampled_sums(list(np.eye(1_000)), 1, 40)
    for row, column, scale in zip(together, values, [1, 1e-300, 1e300, 1], strict=True):
        exact = column / scale @ times
        np.testing.assert_allclose(row / scale, exact, atol=1_000 * 4 * 2.0**-40)


def test_resampled_interval_is_centred_on_the_value() -> None:
    users = np.random.default_rng(6).normal(size=200)
    drawn: list[float] = []

    def mean(times: NDArray[np.int64]) -> dict[str, float]:
        drawn.append(float(times @ users) / 200)
        return {"mean": drawn[-1]}

    low, high = intervals.resampled(mean, {"mean": 5.0}, 200, 0.9, n_resamples=300)["mean"]
    half = scipy.stats.norm.ppf(0.95) * np.std(drawn, ddof=1)
    assert (low, high) == pytest.approx((5 - half, 5 + half))
    assert half == pytest.approx(scipy.stats.norm.ppf(0.95) * users.std() / np.sqrt(200), rel=0.15)
    finite = [value for number, value in enumerate(drawn) if number % 3]

    def sometimes(times: NDArray[np.int64]) -> dict[str, float]:
        found = mean(times)
        return found if len(drawn) % 3 != 1 else {"mean": np.nan}

    drawn.clear()
    low, high = intervals.resampled(sometimes, {"mean": 5.0}, 200, 0.9, n_resamples=300)["mean"]
    half = scipy.stats.norm.ppf(0.95) * np.std(finite, ddof=1)
    assert (low, high) == pytest.approx((5 - half, 5 + half))
    one_cluster = intervals.resampled(mean, {"mean": 5.0}, 200, clusters=np.zeros(200, np.int64))
    assert np.isnan(one_cluster["mean"]).all()


def test_an_infinite_value_has_no_interval() -> None:
    columns = [np.array([1.0, np.inf, 2.0]), np.array([1.0, 3.0, 2.0])]
    infinite, finite = bootstrap(columns)
    assert np.isnan(infinite).all()
    assert finite == bootstrap(columns[1:])[0]


def test_weighted_bootstrap_matches_the_standard_error_of_a_ratio() -> None:
    generator = np.random.default_rng(7)
    values, weights = generator.random(300), generator.choice([0.0, 1.0, 3.0], 300)
    (found,) = bootstrap([values], 0.9, n_resamples=400, weights=[weights])
    x = values * weights
    ratio = x.sum() / weights.sum()
    error = np.sqrt(300) * (x - ratio * weights).std(ddof=1) / weights.sum()
    half = scipy.stats.norm.ppf(0.95) * error
    assert found == pytest.approx((ratio - half, ratio + half), abs=0.25 * half)
    (doubled,) = bootstrap([values], 0.9, n_resamples=400, weights=[2 * weights])
    assert doubled == pytest.approx(found)


def test_bootstrap_of_several_metrics_equals_each_alone() -> None:
    generator = np.random.default_rng(2)
    columns = [generator.random(30) for _ in range(3)]
    columns[1][::2] = np.nan
    together = bootstrap(columns, seed=3)
    assert together == bootstrap(columns, seed=3, n_resamples=2_000)
    assert together == [bootstrap([column], seed=3)[0] for column in columns]
    assert together == bootstrap(columns, seed=3)
    assert together != bootstrap(columns, seed=4)
    # All metrics use the same resamples, so shifting the values shifts the interval.
    shifted = bootstrap([columns[0] + 1], seed=3)[0]
    assert shifted == pytest.approx(np.add(together[0], 1))


def test_bootstrap_with_few_defined_users() -> None:
    values = np.full(200, np.nan)
    values[:2] = [0.0, 1.0]
    assert bootstrap([values])[0] == (0.0, 1.0)
    assert bootstrap([]) == []


def test_bootstrap_of_one_drawn_user_has_a_value() -> None:
    """If 2 of 200 users have a value, 13% of resamples contain neither, and 27% just one."""
    values = np.full(200, np.nan)
    values[:2] = [0.0, 1.0]
    found = [bootstrap([values], seed=seed, n_resamples=1)[0] for seed in range(100)]
    assert 5 <= np.isnan(found).any(axis=1).sum() <= 24


@pytest.mark.parametrize("method", ["t", "bootstrap"])
def test_coverage(method: str) -> None:
    generator = np.random.default_rng(3)
    samples = [generator.exponential(size=60) for _ in range(300)]
    if method == "t":
        found = [interval(sample, "t", confidence=0.9) for sample in samples]
    else:
        found = [bootstrap([sample], 0.9, n_resamples=400)[0] for sample in samples]
    covered = np.mean([low <= 1.0 <= high for low, high in found])
    assert 0.82 < covered < 0.96


def test_memory_of_the_bootstrap_is_bounded() -> None:
    values = np.random.default_rng(4).random(20_000)
    tracemalloc.start()
    bootstrap([values], n_resamples=200)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 4 * 8 * intervals.DRAWS_AT_ONCE


def test_a_value_of_all_users_is_resampled_from_two_users_on() -> None:
    def mean(times: NDArray[np.int64]) -> dict[str, float]:
        return {"mean": float(times @ np.arange(len(times)) / times.sum())}

    low, high = resampled(mean, {"mean": 0.5}, 2, n_resamples=200)["mean"]
    assert (low + high) / 2 == pytest.approx(0.5)
    assert high - low > 0.5
    plain = resampled(mean, {"mean": 0.5}, 9)
    assert plain == resampled(mean, {"mean": 0.5}, 9, 0.95, seed=0, n_resamples=200)
    for n_users in (0, 1):
        assert np.isnan(resampled(mean, {"mean": 0.0}, n_users)["mean"]).all()


def test_few_clusters_of_different_sizes_have_gaffkes_bound() -> None:
    """Gaffke's bound adds a cluster with the largest size, 6, and a sum of 0 or 6."""
    sizes = np.array([1, 2, 6, 3, 1, 2, 4, 1])
    clusters = np.repeat(np.arange(8), sizes)
    values = np.random.default_rng(0).random(len(clusters)) < 0.3
    found = interval(values, bounds=(0, 1), clusters=clusters)
    assert found.method == "gaffke"
    assert "8 clusters differ in size and weigh as 6 of one size" in found.note
    weights = np.random.default_rng(1).exponential(size=(200_000, 9))
    sums = np.bincount(clusters, weights=values)
    for end, bound, level in ((found.low, 0, 0.025), (found.high, 1, 0.975)):
        drawn = (weights @ [*sums, 6 * bound]) / (weights @ [*sizes, 6])
        assert np.mean(drawn <= end) == pytest.approx(level, abs=0.002)
    # The default is the bootstrap if the range is unknown or if there are many clusters.
    assert interval(values, clusters=clusters).method == "bca"
    many = np.tile(values, 12), np.repeat(np.arange(12 * 8), np.tile(sizes, 12))
    assert interval(many[0], bounds=(0, 1), clusters=many[1]).method == "bca"


@pytest.mark.parametrize("n", [10, 20])
def test_means_of_few_unequal_clusters_are_covered(n: int) -> None:
    """Users in a cluster are correlated. BCa would only cover 90% of the means of 300 samples."""
    generator, covered = np.random.default_rng(n), 0
    for _ in range(300):
        clusters = np.repeat(np.arange(n), generator.geometric(0.2, n))
        values = generator.random(len(clusters)) < generator.beta(0.3, 1.2, n)[clusters]
        covered += 0.2 in interval(values, bounds=(0, 1), clusters=clusters)
    assert covered >= 0.95 * 300

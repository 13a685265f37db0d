"""Confidence sequences cover the mean of a population whose users come in random order."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from recometer.stats import ConfidenceSequence

Float64 = NDArray[np.float64]
UNIT = (0.0, 1.0)


def excluded(x: Float64, m: float, alpha: float, n_all: int) -> bool:
    """Return whether a confidence sequence ever excluded m, by tracking its capital."""
    level = 2 * math.log(2 / alpha)
    goals = [16 * 4**k for k in range(12) if 16 * 4**k <= n_all]
    capital = {sign: [1.0] * len(goals) for sign in (1, -1)}
    values: list[float] = []
    means: list[float] = []  # running means, shrunk towards 0.5
    for place, value in enumerate(x.tolist()):
        known = len(values)
        spread = 0.25 + sum((v - c) ** 2 for v, c in zip(values, means, strict=True))
        variance = spread / (known + 1)
        drift = n_all / (n_all - place)
        blanks = place - known
        rest = (n_all * m - sum(values) - blanks * m) / (n_all - place)
        if not 0 <= rest <= 1:
            return True
        gain = (m if math.isnan(value) else value) - rest
        for sign, share in ((1, rest), (-1, 1 - rest)):
            for k, goal in enumerate(goals):
                stake = drift * math.sqrt(level / (variance * goal))
                bet = min(stake, 0.75 / share if share else math.inf)
                capital[sign][k] *= 1 + sign * bet * gain
            if np.mean(capital[sign]) >= 2 / alpha:
                return True
        if not math.isnan(value):
            values.append(value)
            means.append((0.5 + sum(values)) / (len(values) + 1))
    return False


@pytest.mark.parametrize(("undefined", "n_all"), [(0.0, 300), (0.3, 300), (0.0, 180)])
def test_ends_separate_excluded_candidates(undefined: float, n_all: int) -> None:
    generator = np.random.default_rng(0)
    x = np.where(generator.random(120) < undefined, np.nan, generator.random(120) ** 2)
    sequence = ConfidenceSequence(UNIT, 0.9, n_all, some_undefined=True)
    for batch in np.split(x, [7, 50, 90]):
        low, high = sequence.update(batch)
    assert 0.02 < low < np.nanmean(x) < high < 0.98
    for end, sign in ((low, 1), (high, -1)):
        assert excluded(x, end - sign * 1e-6, 0.1, n_all)
        assert not excluded(x, end + sign * 1e-6, 0.1, n_all)


def test_p_values_agree_with_the_interval() -> None:
    x = np.random.default_rng(1).normal(0.05, 0.2, 400).clip(-1, 1)
    sequence = ConfidenceSequence((-1, 1), 0.95, 600)
    for batch in np.split(x, [50, 120, 300]):
        found, p = sequence.update(batch), sequence.p_value()
        assert (0 not in found) == (p <= 0.05)
    assert p == pytest.approx(sequence.p_value(0.0))
    # Updating with all users at once gives the same p, and the ends of the interval have p = 0.05.
    at_once = ConfidenceSequence((-1, 1), 0.95, 600)
    at_once.update(x)
    assert at_once.p_value() == pytest.approx(p)
    for end in found:  # the ends are just excluded
        assert 0.05 * (1 - 1e-3) < at_once.p_value(end) <= 0.05
    assert at_once.p_value(-1.5) == 0


@pytest.mark.parametrize("undefined", [0.0, 0.25])
def test_the_mean_of_the_population_is_covered_at_all_times(undefined: float) -> None:
    """Check 150 populations of 150 users with many 0s: the mean must rarely be excluded."""
    generator, missed = np.random.default_rng(3), 0
    for _ in range(150):
        x = np.where(generator.random(150) < 0.3, generator.random(150), 0.0)
        x[generator.random(150) < undefined] = np.nan
        sequence = ConfidenceSequence(UNIT, 0.9, 150, some_undefined=True)
        sequence.add(x[:149])
        missed += sequence.p_value(float(np.nanmean(x))) <= 0.1
    assert missed / 150 <= 0.1


def test_all_of_the_population_leave_its_mean() -> None:
    x = np.random.default_rng(4).random(80)
    x[::9] = np.nan
    sequence = ConfidenceSequence((-1, 3), population=80, some_undefined=True)
    before = sequence.update(x[:79])
    assert float(np.nanmean(x)) in before
    assert before.width <= 4 / 70
    found = sequence.update(x[79:])
    assert tuple(found) == pytest.approx((np.nanmean(x), np.nanmean(x)), abs=1e-14)
    assert found.n == np.count_nonzero(~np.isnan(x))
    assert sequence.p_value(0.4) == 0
    nobody = ConfidenceSequence(UNIT, population=2, some_undefined=True)
    assert nobody.update([np.nan]).note == "No user has been seen yet."
    assert math.isnan(nobody.update([np.nan]).low)
    assert ConfidenceSequence(UNIT, population=3).update([0.5, 0.5, 0.5]).width == 0
    assert math.isnan(ConfidenceSequence(UNIT, population=0).interval.low)
    equal = ConfidenceSequence((-1, 1), population=2)
    equal.update([0.0, 0.0])
    assert equal.p_value() == 1


@pytest.mark.parametrize("value", [0.0, 1.0])
def test_mean_of_constant_values_stays_possible(value: float) -> None:
    sequence = ConfidenceSequence(UNIT, population=1_000)
    sequence.add(np.full(950, value))
    assert sequence.p_value(value) == 1


def test_minus_0_is_the_mean_0() -> None:
    ps = []
    for mean in (0.0, -0.0):
        sequence = ConfidenceSequence(UNIT)
        sequence.add([0.5, 0.2] * 10)
        ps.append(sequence.p_value(mean))
    assert ps[0] == ps[1] < 1e-4


@pytest.mark.parametrize(("value", "last"), [(0.1, 0.0), (0.9, 1.0)])
def test_rounding_does_not_exclude_the_mean_of_many(value: float, last: float) -> None:
    """Adding up 0.1 100,000 times gives 10,000.000000019, which exceeds the exact total."""
    x = np.full(100_000, value)
    x[-20:] = last
    for n in (99_981, 99_999):
        sequence = ConfidenceSequence(UNIT, population=len(x))
        sequence.add(x[:n])
        assert sequence.p_value(float(x.mean())) > 0


def test_interval_that_missed_the_mean_stays_valid() -> None:
    """The order is not random, so the interval misses the mean, but its ends stay in order."""
    sequence = ConfidenceSequence(UNIT, population=400)
    missed = sequence.update(np.ones(150))
    assert 0.5 not in missed
    for _ in range(49):
        found = sequence.update(np.zeros(5))
        assert found.low <= found.high
    assert 150 / 400 in sequence.update(np.zeros(4))
    assert tuple(sequence.update(np.zeros(1))) == (150 / 400, 150 / 400)
    # If the size of the population is unknown, later intervals still stay within earlier ones.
    endless = ConfidenceSequence(UNIT)
    low, high = endless.update(np.ones(100))
    found = endless.update(np.zeros(300))
    assert low - 1e-9 <= found.low <= found.high <= high


def test_a_population_of_millions_is_nearly_infinite() -> None:
    x = np.random.default_rng(6).random(3_000)
    found, expected = (ConfidenceSequence(UNIT, population=n).update(x) for n in (None, 10**8))
    np.testing.assert_allclose(tuple(found), tuple(expected), atol=1e-3 * expected.width)


def test_an_interval_takes_about_twice_the_users_of_a_single_look() -> None:
    generator = np.random.default_rng(5)
    x = np.where(generator.random(20_000) < 0.4, generator.beta(1, 3, 20_000), 0.0)
    sequence, n = ConfidenceSequence(UNIT, population=20_000), 0
    while n < len(x) and (n == 0 or sequence.interval.width > 0.012):
        sequence.update(x[n : n + 200])
        n += 200
    at_a_single_look = 1 / (1 / (1.96 * x.std() / 0.006) ** 2 + 1 / 20_000)
    assert at_a_single_look < n < 2.2 * at_a_single_look

"""The expected ERR of large groups of tied items agrees with a sum over all places."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.sparse

import recometer as rm

# Functions that draw the gains of the items in the large group, which ranks below two items with
# gain 1.
GAINS = {
    "few": lambda draw, n: draw.integers(0, 5, n).astype(float),
    "many": lambda draw, n: 4 * draw.random(n),
    "two magnitudes": lambda draw, n: np.where(
        np.arange(n) < 5, 4 + 0.05 * np.arange(n), 3 * draw.random(n)
    ),
    "much alike": lambda draw, n: (
        np.where(np.arange(n) < 5, 0.1 * np.arange(n), 3.5) + 1e-3 * draw.random(n)
    ),
}


def value(name: str, scores: np.ndarray, gains: np.ndarray) -> float:
    """Return a metric's value for one user; a gain of NaN marks an unjudged item."""
    judged = np.flatnonzero(~np.isnan(gains))
    test = scipy.sparse.csr_matrix((gains[judged], judged, [0, len(judged)]), (1, len(gains)))
    result = rm.evaluate(rm.Scores(scores[np.newaxis]), test, metrics=name)
    return float(result[result.metrics[0]][0])


def err_place_by_place(start: int, size: int, q: np.ndarray) -> np.ndarray:
    """Return each place's contribution to ERR, computed in a way that avoids cancellation."""
    n = len(q)
    come = np.arange(n + 1)
    # There are several ways to choose `come` of the first i items. `none` is the mean, over these
    # choices, of the product of 1 - q over the chosen items. `stop` is the mean of this product
    # times the q of an item that was not chosen.
    none, stop = (come == 0).astype(float), np.zeros(n + 1)
    for i, satisfaction in enumerate(q, start=1):
        last, before = np.append(0, none[:-1]), np.append(0, stop[:-1])
        stop = come * (1 - satisfaction) * before + satisfaction * none + (i - come - 1) * stop
        stop[come >= i] = 0
        stop /= i
        none = (come * (1 - satisfaction) * last + (i - come) * none) / i
    chance, added = (come == 0).astype(float), np.zeros(size)
    for place in range(size):
        coming = chance * ((n - come) / (size - place))
        added[place] = coming @ stop / (start + place + 1)
        chance = chance - coming + np.append(0, coming[:-1])
    return added


@pytest.mark.parametrize(
    ("kind", "max_gain"),
    [
        ("few", 4.5),
        ("few", 9.0),
        ("few", 80.0),
        ("many", 12.0),
        ("two magnitudes", 4.5),
        ("much alike", 4.5),
        ("much alike", 80.0),
    ],
)
def test_large_ties_are_exact_up_to_rounding(kind, max_gain):
    draw = np.random.default_rng(7)
    size, n = 3_000, 1_200
    gains = np.append([1.0, 1.0], np.full(size, np.nan))
    gains[2 : 2 + n] = GAINS[kind](draw, n)
    scores = np.append([2.0, 2.0], np.ones(size))
    above, q = (2.0 ** np.array(part) - 1 for part in ([1.0], gains[2 : 2 + n]))
    above, q = float(above[0]) / 2**max_gain, q / 2**max_gain
    first = above + (1 - above) * above / 2
    added = (1 - above) ** 2 * err_place_by_place(2, size, q)
    for cutoff in (402, 1_402, 3_001, None):
        expected = first + added[: None if cutoff is None else cutoff - 2].sum()
        name = f"err{'' if cutoff is None else f'@{cutoff}'}(max_gain={max_gain:g})"
        assert value(name, scores, gains) == pytest.approx(expected, rel=2e-12), cutoff


def test_value_of_a_huge_tie_of_equal_gains_equals_that_of_any_order():
    """All orders have the same value, since each item satisfies 1/8 of the remaining users."""
    n = 50_000
    actual = value("err(max_gain=3)", np.append(1.0, np.zeros(n)), np.append(np.nan, np.ones(n)))
    expected = math.fsum(1 / 8 * (7 / 8) ** (i - 1) / (i + 1) for i in range(1, 2_000))
    assert actual == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("err(max_gain=60)", 1 / 2),  # the probability of satisfaction rounds to 1
        ("err@2000(max_gain=60)", 1 / 2),
        ("err(max_gain=1e5)", 0.0),  # the probability of satisfaction rounds to 0
        ("err@2000(max_gain=1e5)", 0.0),
    ],
)
@pytest.mark.parametrize("size", [3, 3_000])
def test_err_is_correct_if_satisfaction_is_certain_or_impossible(name, expected, size):
    gains = np.append(np.nan, np.full(size, 60.0))
    assert value(name, np.append(2.0, np.ones(size)), gains) == pytest.approx(expected)

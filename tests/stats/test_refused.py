"""Statistical functions reject bad arguments, and add notes to results for extreme data."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from recometer.errors import InputError, InputTypeError
from recometer.stats import (
    compare,
    interval,
    most_changed,
    over_folds,
    over_runs,
    power,
    rank_intervals,
    tukey,
)
from recometer.stats.grouping import group

VALUES = [0.1, 0.5, 0.7]
UNIT = (0.0, 1.0)
REFUSED: list[tuple[Callable[[], object], str]] = [
    (lambda: interval(VALUES, weights=[1.0, 2.0]), "There are 3 values, but 2 weights"),
    (lambda: group(VALUES, [1.0]), "must have the same length, but have 3 and 1 entries"),
    (lambda: group(VALUES, [0.0, 0.0, 0.0]), "add up to 0, so there is nothing to divide"),
    (lambda: group(VALUES, [1.0, 0.0, -1.0]), "add up to 0, so there is nothing to divide"),
    (lambda: over_runs([["a"]]), "must be rows of numbers: could not convert"),
    (lambda: over_runs([0.1, 0.2]), r"must be rows of numbers, but has the shape \(2,\)"),
    (lambda: over_folds([VALUES, VALUES], confidence=1.0), "confidence"),
    (lambda: most_changed(VALUES, -1), "n=-1 must be a whole number, at least 0"),
    (lambda: most_changed(VALUES, True), "n=True must be a whole number"),
    (lambda: most_changed(VALUES, 1.5), r"n=1\.5 must be a whole number"),  # type: ignore[arg-type]
    (lambda: power([0.1], wanted=1), "desired power, 1, must be above"),
    (lambda: tukey(np.eye(3), alpha=0), "alpha=0 must be"),
    (lambda: tukey(np.eye(3), seed=-1), "seed=-1 must be a whole number, at least 0"),
    (lambda: tukey(np.eye(3), n_resamples=0), "n_resamples=0 must be a whole number, at least 1"),
    (lambda: interval(VALUES, weights=[1.0, -1.0, 1.0]), "A weight is -1, but"),
    (lambda: interval(VALUES, "gaffke", bounds=(0, math.inf)), "are not a range"),
    (lambda: interval(VALUES, "gaffke", bounds=(-math.inf, 1)), "are not a range"),
    (lambda: interval(VALUES, "gaffke", bounds=(1, 1)), "are not a range"),
    (lambda: tukey([[0.1, 0.2], [0.3, 0.1]], clusters=["a"]), "one entry for each of the 2 rows"),
    (lambda: compare(VALUES, VALUES, confidence="0.9"), "confidence='0.9' must be above 0"),  # type: ignore[arg-type]
    (
        lambda: interval(VALUES, bounds=(-1e308, 1e308)),
        "are too far apart: twice their difference exceeds the largest number",
    ),
    (lambda: compare(VALUES, VALUES, bounds=(math.nan, 1)), "are not a range"),
    (
        lambda: compare(VALUES, VALUES, clusters=np.ma.array([0, 0, 1], mask=[0, 1, 0])),
        "every row needs a cluster",
    ),
]


@pytest.mark.parametrize(("call", "message"), REFUSED, ids=[message for _, message in REFUSED])
def test_invalid_arguments_are_rejected(call: Callable[[], object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        call()


@pytest.mark.parametrize("bounds", ["ab", 1, (0, 1, 2), ("x", 1)])
def test_bounds_must_be_a_pair(bounds: object) -> None:
    with pytest.raises(InputTypeError, match="must be a pair of numbers"):
        interval(VALUES, bounds=bounds)  # type: ignore[arg-type]


def test_planned_difference_must_be_a_number() -> None:
    with pytest.raises(InputTypeError, match=r"difference='0\.1' must be a number"):
        power(VALUES, "0.1")  # type: ignore[arg-type]


def test_higher_is_better_must_be_true_or_false() -> None:
    with pytest.raises(InputTypeError, match="higher_is_better='no' must be True or False"):
        rank_intervals([0.1], [[1.0]], higher_is_better="no")  # type: ignore[arg-type]


def test_clusters_without_common_users_have_no_difference() -> None:
    result = compare([np.nan, 0.5], [0.5, np.nan], clusters=["a", "b"])
    assert (result.n, result.n_only_model, result.n_only_other) == (0, 1, 1)
    assert math.isnan(result.difference)


def test_values_too_skewed_for_bca_have_no_interval() -> None:
    """For a single 1, z0 = a = κ3/6 = 0.166, and 1 - a (z0 + z) is positive up to z = 5.86."""
    values = np.zeros(1000)
    values[0] = 1.0
    # The two-sided levels 1e-8 and 1e-9 correspond to z = 5.73 and z = 6.11.
    assert interval(values, "bca", confidence=1 - 1e-8).note == ""
    result = interval(values, "bca", confidence=1 - 1e-9)
    assert math.isnan(result.high)
    assert result.note == "The 1,000 values are too skewed for a BCa interval."


def test_interval_with_almost_no_coverage_is_the_mean() -> None:
    assert tuple(interval([0.0, 0.25, 0.5], "percentile", confidence=1e-17)) == (0.25, 0.25)

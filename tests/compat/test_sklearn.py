"""The drop-in for scikit-learn's ranking metrics returns the same values as version 1.8.0."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import recometer as rm
from recometer.compat.sklearn import ndcg_score

GAINS = np.array([[0, 1, 2, 0], [3, 0, 1, 1], [0, 0, 0, 0]])
SCORES = np.array([[0.9, 0.5, 0.5, 0.1], [0.2, 0.2, 0.2, 0.7], [1, 2, 3, 4]])


def test_values_equal_those_of_scikit_learn() -> None:
    values = [
        ndcg_score(GAINS, SCORES),
        ndcg_score(GAINS, SCORES, k=2),
        ndcg_score(GAINS, SCORES, k=2, sample_weight=[1, 2, 3]),
    ]
    # scikit-learn 1.8.0 returns these values for the same calls.
    assert values == pytest.approx(
        [
            0.46363411784664704,
            0.28893912535232347,
            0.22898600871029062,
        ],
        abs=1e-12,
    )


def test_rows_without_gains_score_the_same_as_in_scikit_learn() -> None:
    no_gains = np.zeros((2, 3))
    assert ndcg_score(no_gains, SCORES[:2, :3]) == 0.0


def test_ignored_ties_are_broken_arbitrarily() -> None:
    """With `ignore_ties`, the value is that of a single, arbitrary order of the tied items."""
    value = ndcg_score([[1, 0]], [[0.5, 0.5]], ignore_ties=True)
    assert value == pytest.approx(1.0) or value == pytest.approx(1 / np.log2(3))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((GAINS[0], SCORES[0]), r"y_true has the shape \(4,\).*Hint: \[y_true\]"),
        ((GAINS[:2], SCORES), r"y_true has the shape \(2, 4\), but y_score has \(3, 4\)"),
        ((GAINS[:, :1], SCORES[:, :1]), "a single column is meaningless"),
        ((GAINS - 1, SCORES), "gains below 0"),
        ((GAINS, SCORES * np.nan), "y_score has values that are NaN"),
    ],
)
def test_invalid_arrays_are_refused(arguments: Any, message: str) -> None:
    with pytest.raises(rm.InputError, match=message):
        ndcg_score(*arguments)


def test_invalid_options_are_refused() -> None:
    with pytest.raises(rm.InputError, match="k=0 must be a whole number of at least 1"):
        ndcg_score(GAINS, SCORES, k=0)
    with pytest.raises(rm.InputError, match=r"sample_weight has the shape \(2,\)"):
        ndcg_score(GAINS, SCORES, sample_weight=[1, 2])

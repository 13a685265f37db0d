"""`recometer.compat.surprise` gives the same values as Surprise on 10,000 random cases."""

from __future__ import annotations

import numpy as np
import pytest
from _dropins import assert_same, in_parts, numbers, outcome

from recometer.compat import surprise as ours

pytestmark = [pytest.mark.rivals, pytest.mark.filterwarnings("ignore")]
NAMES = ["rmse", "mse", "mae", "fcp"]


@in_parts
def test_dropin_values_match_surprise(part: int) -> None:
    from surprise import Prediction, accuracy

    for number, generator in numbers(part):
        n = int(generator.integers(0, 30))
        users, items = generator.integers(0, 6, n).tolist(), generator.integers(0, 9, n).tolist()
        actual = generator.integers(1, 6, n).astype(float).tolist()
        estimates = generator.normal(3, 1, n)
        estimates = np.round(estimates * 2) / 2 if number % 2 else estimates
        columns = users, items, actual, estimates.tolist()
        predictions = [Prediction(*row, {}) for row in zip(*columns, strict=True)]
        for name in NAMES:
            expected = outcome(getattr(accuracy, name), predictions, verbose=False)
            result = outcome(getattr(ours, name), predictions, verbose=False)
            assert_same(result, expected, (number, name))


def test_printed_text_matches_surprise(capsys: pytest.CaptureFixture[str]) -> None:
    from surprise import Prediction, accuracy

    rows = [("a", "x", 4.0, 3.5), ("a", "y", 2.0, 3.0), ("b", "x", 5.0, 4.0), ("b", "y", 1.0, 4.5)]
    predictions = [Prediction(*row, {}) for row in rows]
    for name in NAMES:
        getattr(accuracy, name)(predictions)
        expected = capsys.readouterr().out
        getattr(ours, name)(predictions)
        assert capsys.readouterr().out == expected

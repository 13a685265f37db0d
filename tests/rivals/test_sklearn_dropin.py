"""`recometer.compat.sklearn` gives the same values as scikit-learn on 10,000 rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from _dropins import assert_same, in_parts, numbers

from recometer.compat import sklearn as ours

pytestmark = [pytest.mark.rivals, pytest.mark.filterwarnings("ignore")]


def case(generator: np.random.Generator) -> tuple[np.ndarray, np.ndarray, dict[str, Any]]:
    """Draw gains, scores with many ties, and options."""
    shape = int(generator.integers(1, 6)), int(generator.integers(2, 30))
    gains = generator.integers(0, 5, shape) * (generator.random(shape) < generator.random())
    gains = gains * generator.choice([1.0, 0.37])
    scores = generator.normal(size=shape)
    if generator.random() < 0.5:
        scores = np.round(scores)
    if generator.random() < 0.2:
        scores = scores.astype(np.float32)
    k = None if generator.random() < 0.3 else int(generator.integers(1, shape[1] + 5))
    weights = generator.random(shape[0]) + 0.1 if generator.random() < 0.3 else None
    return gains, scores, {"k": k, "sample_weight": weights}


@in_parts
def test_dropin_values_match_scikit_learn(part: int) -> None:
    from sklearn import metrics as theirs

    for number, generator in numbers(part):
        if number % 3:
            continue
        gains, scores, options = case(generator)
        options["ignore_ties"] = bool(number % 2)
        expected = theirs.ndcg_score(gains, scores, **options)
        assert_same(ours.ndcg_score(gains, scores, **options), expected, number)

"""`recometer.compat.sklearn` gives the same values as scikit-learn on 10,000 rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
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
        ties = {"ignore_ties": bool(number % 2)}
        base = {"log_base": float(generator.choice([2, 10]))}
        calls = [
            ("ndcg_score", gains, {**options, **ties}),
            ("dcg_score", gains - (number // 3 % 3), {**options, **ties, **base}),
        ]
        weights = {"sample_weight": options["sample_weight"]}
        labels = (gains > 0).astype(int)
        if number % 5 == 0:
            calls.append(("label_ranking_average_precision_score", sp.csr_matrix(labels), weights))
        elif number % 5 == 1 and gains.shape[1] > 2:
            calls.append(("label_ranking_average_precision_score", labels, weights))
        for name, truth, arguments in calls:
            expected = getattr(theirs, name)(truth, scores, **arguments)
            assert_same(getattr(ours, name)(truth, scores, **arguments), expected, (number, name))

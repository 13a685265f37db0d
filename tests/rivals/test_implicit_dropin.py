"""`recometer.compat.implicit` gives the same values as implicit on 10,000 random cases."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from _dropins import assert_same, in_parts, numbers

from recometer.compat.implicit import AUC_at_k, precision_at_k, ranking_metrics_at_k

pytestmark = [pytest.mark.rivals, pytest.mark.filterwarnings("ignore")]


def matrices(number: int, generator: np.random.Generator) -> tuple[Any, Any]:
    """Draw training and test data, which overlap only in every fifth case."""
    shape = int(generator.integers(1, 8)), int(generator.integers(3, 25))
    share = generator.random(shape)
    train = share < generator.choice([0, 0.1, 0.4, 0.8], (shape[0], 1))
    share = share if number % 5 else generator.random(shape)
    test = share > generator.choice([0.5, 0.8, 1.0], (shape[0], 1))
    # Every user needs an irrelevant item, since implicit cannot evaluate users without one.
    test[test.all(axis=1), 0] = False
    test[0, 1] |= not test.any()
    grades = generator.integers(1, 4, shape) * test
    return sp.csr_matrix(train.astype(np.float64)), sp.csr_matrix(grades.astype(np.float64))


def model_of(number: int, generator: np.random.Generator, train: Any) -> Any:
    """Make a factor model, which often produces ties, or a neighbour model with short lists."""
    from implicit.als import AlternatingLeastSquares
    from implicit.nearest_neighbours import ItemItemRecommender

    if number % 3 == 0:
        model = ItemItemRecommender(K=int(generator.integers(2, 6)), num_threads=1)
        model.fit(train, show_progress=False)
        return model
    model = AlternatingLeastSquares(factors=4, num_threads=1)
    largest = int(generator.choice([3, 40]))
    model.user_factors, model.item_factors = (
        generator.integers(-largest, largest, (n, 4)).astype(np.float32) for n in train.shape
    )
    return model


@in_parts
def test_dropin_values_match_implicit(part: int) -> None:
    from implicit import evaluation

    for number, generator in numbers(part):
        train, test = matrices(number, generator)
        model = model_of(number, generator, train)
        k = int(generator.integers(1, train.shape[1] + 4))
        theirs = evaluation.ranking_metrics_at_k(model, train, test, K=k, show_progress=False)
        ours = ranking_metrics_at_k(model, train, test, K=k, show_progress=False)
        assert_same(ours, theirs, number)


def test_functions_of_single_metrics_match_implicit() -> None:
    from implicit import evaluation

    _, generator = next(numbers(0))
    train, test = matrices(1, generator)
    model = model_of(1, generator, train)
    for ours, name in ((precision_at_k, "precision_at_k"), (AUC_at_k, "AUC_at_k")):
        theirs = getattr(evaluation, name)(model, train, test, K=3, show_progress=False)
        assert ours(model, train, test, K=3) == pytest.approx(theirs, abs=1e-12)

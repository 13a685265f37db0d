"""The drop-in for implicit returns the same values as implicit 0.7.3, for every kind of model."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import recometer as rm
from recometer.compat import implicit

TRAIN = sp.csr_array([[0, 1, 0, 0, 0, 0], [0, 0, 1, 0, 0, 0], [0, 0, 0, 1, 0, 1.0]])
TEST = sp.csr_array([[1, 0, 0, 0, 0, 2], [0, 1, 0, 3, 0, 0], [1, 0, 0, 0, 2, 0.0]])


class AlternatingLeastSquares:
    """A stand-in for a model from implicit, with the factors and method that the drop-in uses."""

    __module__ = "implicit.als"
    user_factors = np.array([[1.0, 0.5], [0.25, -1.0], [-0.5, 0.75]], np.float32)
    item_factors = np.array(
        [[1.0, 0.0], [0.5, 1.0], [0.0, -1.0], [-1.0, 0.5], [2.0, 1.0], [0.3, 0.1]], np.float32
    )

    # The lists that implicit 0.7.3 returns for N=8; it fills unused places with item 0.
    RECOMMENDED = np.array(
        [[4, 0, 5, 2, 3, 1, 0, 0], [0, 5, 4, 3, 1, 2, 0, 0], [1, 4, 0, 2, 5, 3, 0, 0]]
    )

    def recommend(self, userid: Any, user_items: Any, N: int) -> tuple[Any, Any]:
        return self.RECOMMENDED[userid, :N], None

    recommend.__module__ = "implicit.cpu.matrix_factorization_base"


class Model:
    """A custom model whose only method is `recommend`."""

    def recommend(self, userid: Any, user_items: Any, N: int) -> tuple[Any, Any]:
        assert user_items.shape == (len(userid), 6)
        return AlternatingLeastSquares.RECOMMENDED[userid, :N], None


# For each k, the values that implicit 0.7.3 returns for ranking_metrics_at_k(..., K=k).
PRINTED = {
    2: {
        "precision": 0.3333333333333333,
        "map": 0.16666666666666666,
        "ndcg": 0.2579018714896944,
        "auc": 0.4583333333333333,
    },
    8: {
        "precision": 1.6666666666666667,
        "map": 0.8067460317460317,
        "ndcg": 0.894578748329314,
        "auc": 0.5833333333333334,
    },
}


@pytest.mark.parametrize("model", [AlternatingLeastSquares(), Model()])
@pytest.mark.parametrize("k", PRINTED)
def test_values_equal_those_of_implicit(model: Any, k: int) -> None:
    result = implicit.ranking_metrics_at_k(model, TRAIN, TEST, K=k)
    assert result == pytest.approx(PRINTED[k], abs=1e-12)
    assert list(result) == list(PRINTED[k])


def test_functions_of_single_metrics_return_the_same_values() -> None:
    arguments = (AlternatingLeastSquares(), TRAIN, TEST, 2)
    values = {
        "precision": implicit.precision_at_k(*arguments),
        "map": implicit.mean_average_precision_at_k(*arguments),
        "ndcg": implicit.ndcg_at_k(*arguments),
        "auc": implicit.AUC_at_k(*arguments),
    }
    assert values == pytest.approx(PRINTED[2], abs=1e-12)


def test_relevant_training_items_count_as_misses() -> None:
    """implicit ranks training items last, but counts those that are also test items as relevant."""
    train_and_test = sp.csr_array(TRAIN + TEST)
    result = implicit.ranking_metrics_at_k(AlternatingLeastSquares(), TRAIN, train_and_test, K=2)
    assert result["precision"] == pytest.approx(2 / 6)


def test_errors_name_the_argument() -> None:
    model = Model()
    with pytest.raises(rm.InputTypeError, match=r"test_user_items is of type ndarray"):
        implicit.ranking_metrics_at_k(model, TRAIN, TEST.toarray())
    with pytest.raises(rm.InputError, match=r"train_user_items is \(2, 6\)"):
        implicit.ranking_metrics_at_k(model, TRAIN[:2], TEST)
    with pytest.raises(rm.InputError, match="test_user_items has no entries"):
        implicit.ranking_metrics_at_k(model, TRAIN, sp.csr_array(TEST.shape))

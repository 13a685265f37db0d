"""The drop-in for Recommenders' evaluation functions returns the same values as version 1.2.1."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

import recometer as rm
from recometer.compat import recommenders

TRUE = pd.DataFrame(
    {"userID": [1, 1, 2, 3], "itemID": [7, 8, 7, 9], "rating": [5.0, 3.0, 4.0, 1.0]}
)
PREDICTED = pd.DataFrame(
    {"userID": [1, 1, 1, 2, 2], "itemID": [9, 8, 7, 7, 6], "prediction": [3.5, 3.0, 2.0, 4.5, 1.0]}
)

# The values that the functions of Recommenders 1.2.1 return for TRUE and PREDICTED.
PRINTED: list[tuple[str, dict[str, Any], float]] = [
    ("precision_at_k", {"k": 2}, 0.5),
    ("recall_at_k", {"k": 2}, 0.75),
    ("r_precision_at_k", {"k": 2}, 0.75),
    ("map", {"k": 2}, 0.625),
    ("map_at_k", {"k": 2}, 0.625),
    ("ndcg_at_k", {"k": 2}, 0.46228426907818054),
    ("ndcg_at_k", {"k": 3, "score_type": "exp"}, 0.5207836613023656),
    (
        "precision_at_k",
        {"k": 3, "relevancy_method": "by_threshold", "threshold": 2},
        0.3333333333333333,
    ),
    ("recall_at_k", {"k": 3, "relevancy_method": None}, 1.0),
    ("rmse", {}, 1.7559422921421233),
    ("mae", {}, 1.1666666666666667),
    ("rsquared", {}, -3.625),
    ("exp_var", {}, -2.5833333333333335),
]


@pytest.mark.parametrize(("name", "options", "value"), PRINTED)
def test_values_equal_those_of_recommenders(
    name: str, options: dict[str, Any], value: float
) -> None:
    actual = getattr(recommenders, name)(TRUE, PREDICTED, **options)
    assert actual == pytest.approx(value, abs=1e-12)


def test_binary_ratings_give_auc_and_log_loss() -> None:
    labels = TRUE.assign(rating=[1, 0, 1, 0])
    scores = PREDICTED.assign(prediction=[0.5, 0.4, 0.8, 0.3, 0.1])
    assert recommenders.auc(labels, scores) == pytest.approx(0.5)
    assert recommenders.logloss(labels, scores) == pytest.approx(0.6459806598020456)


def test_constant_true_ratings_give_0_or_1() -> None:
    """Recommenders calls scikit-learn, which returns these values."""
    true = TRUE.assign(rating=3.0)
    assert recommenders.rsquared(true, PREDICTED) == 0.0
    assert recommenders.exp_var(true, PREDICTED) == 0.0
    assert recommenders.rsquared(true, PREDICTED.assign(prediction=3.0)) == 1.0
    assert recommenders.exp_var(true, PREDICTED.assign(prediction=2.0)) == 1.0


def test_columns_can_be_named() -> None:
    names = {"userID": "who", "itemID": "what", "prediction": "score"}
    columns = {"col_user": "who", "col_item": "what", "col_prediction": "score"}
    frames = TRUE.rename(columns=names), PREDICTED.rename(columns=names)
    assert recommenders.recall_at_k(*frames, k=2, **columns) == 0.75
    assert recommenders.mae(*frames, **columns) == pytest.approx(1.1666666666666667)


def test_invalid_options_and_frames_are_refused() -> None:
    with pytest.raises(rm.ColumnError, match="rating_pred has no column 'prediction'"):
        recommenders.rmse(TRUE, PREDICTED.drop(columns="prediction"))
    with pytest.raises(rm.InputError, match="No user-item pair is in both"):
        recommenders.rmse(TRUE, PREDICTED.assign(itemID=0))
    with pytest.raises(rm.InputError, match="leaves lists of 3 rows, but k=2"):
        recommenders.map(TRUE, PREDICTED, relevancy_method=None, k=2)
    with pytest.raises(rm.InputError, match="relevancy_method='best' must be"):
        recommenders.map(TRUE, PREDICTED, relevancy_method="best")  # type: ignore[arg-type]
    with pytest.raises(rm.InputError, match="score_type='grade' must be one of"):
        recommenders.ndcg_at_k(TRUE, PREDICTED, score_type="grade")  # type: ignore[arg-type]
    with pytest.raises(rm.InputError, match="discfun_type='ln' must be"):
        recommenders.ndcg_at_k(TRUE, PREDICTED, discfun_type="ln")  # type: ignore[arg-type]

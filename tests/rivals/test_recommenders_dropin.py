"""`recometer.compat.recommenders` gives the same values as Recommenders on 10,000 users."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from _dropins import assert_same, in_parts, numbers

from recometer.compat import recommenders as ours

pytestmark = [pytest.mark.rivals, pytest.mark.filterwarnings("ignore")]
N_ITEMS, N_USERS = 25, 10
NAMES = ["precision_at_k", "recall_at_k", "r_precision_at_k", "map", "map_at_k", "ndcg_at_k"]


def case(generator: np.random.Generator) -> tuple[Any, Any]:
    """Draw true ratings and distinct predictions; some users may occur in only one frame."""
    truth, predictions = [], []
    for user in range(N_USERS):
        relevant = generator.permutation(N_ITEMS)[: generator.choice([0, 1, 3, 8])]
        truth += [(user, int(item), float(generator.integers(1, 6))) for item in relevant]
        items = generator.permutation(N_ITEMS)[: generator.integers(0, 14)]
        scores = generator.permutation(100)[: len(items)] / 10
        predictions += [(user, *row) for row in zip(items.tolist(), scores, strict=True)]
    truth += [(50, 1, 2.0), (0, 24, 2.0)]
    predictions += [(51, 1, 2.0), (0, 24, 99.0)]
    columns = ["userID", "itemID"]
    return (
        pd.DataFrame(truth, columns=[*columns, "rating"]).drop_duplicates(columns),
        pd.DataFrame(predictions, columns=[*columns, "prediction"]).drop_duplicates(columns),
    )


@in_parts
def test_ranking_metrics_match_recommenders(part: int) -> None:
    from recommenders.evaluation import python_evaluation as theirs

    for number, generator in numbers(part):
        if number % N_USERS:
            continue
        truth, predictions = case(generator)
        name = NAMES[number // N_USERS % len(NAMES)]
        k = int(generator.integers(1, 12))
        arguments: dict[str, Any] = {"k": k}
        if number % 30 == 0:
            arguments |= {"relevancy_method": "by_threshold", "threshold": max(1, k - 2)}
        if number % 30 == 10:
            arguments |= {"relevancy_method": None, "k": 20}
        if name == "ndcg_at_k":
            arguments["score_type"] = str(generator.choice(["binary", "raw", "exp"]))
            arguments["discfun_type"] = str(generator.choice(["loge", "log2"]))
        expected = getattr(theirs, name)(truth.copy(), predictions.copy(), **arguments)
        result = getattr(ours, name)(truth, predictions, **arguments)
        assert_same(result, expected, (number, name, arguments))


@in_parts
def test_rating_metrics_match_recommenders(part: int) -> None:
    from recommenders.evaluation import python_evaluation as theirs

    for number, generator in numbers(part):
        if number % N_USERS:
            continue
        n = int(generator.integers(3, 40))
        pairs = generator.permutation(100)[:n]
        frame = pd.DataFrame({"userID": pairs % 10, "itemID": pairs // 10})
        label = number % 20 == 0
        rating = np.arange(n) % 2 if label else generator.integers(1, 6, n)
        score = generator.random(n) if label else generator.normal(3, 1, n)
        if number % 3 == 0:
            score = np.round(score, 1)
        truth = frame.assign(rating=rating.astype(float))
        rows = generator.permutation(n)[: max(3, n - 2)]
        predictions = frame.assign(prediction=np.clip(score, 0.01, None)).iloc[rows]
        names = ["auc", "logloss"] if label else ["rmse", "mae", "rsquared", "exp_var"]
        for name in names:
            if label and truth.rating.iloc[rows].nunique() < 2:
                continue
            if label:
                predictions = predictions.assign(prediction=predictions.prediction.clip(upper=0.99))
            expected = getattr(theirs, name)(truth, predictions)
            assert_same(getattr(ours, name)(truth, predictions), expected, (number, name))

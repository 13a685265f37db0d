"""Tests of the rule `infinite_scores`, under which infinite scores can rank like finite ones."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import recometer as rm

TEST = {0: [1, 3], 1: [0], 2: [2, 4]}
SCORES = st.lists(
    st.sampled_from([math.inf, -math.inf, math.nan, 1.0, 2.0, 3.0]), min_size=15, max_size=15
)
METRICS = "rr roc_auc ndcg@2 novelty@2"


def source(kind: str, scores: np.ndarray[Any, Any]) -> Any:
    """Return a source of the given kind with these scores for three users and five items."""
    if kind == "Scores":
        # In Scores, a score of -inf means that the item is not a candidate.
        table = np.where(np.isneginf(scores), -5.0, scores)
        return rm.Scores(table, user_ids=range(3), item_ids=range(5))
    if kind == "Lists":
        return rm.Lists({user: dict(enumerate(row)) for user, row in enumerate(scores)})
    user, item = np.indices(scores.shape).reshape(2, -1)
    return rm.Pairs(pl.DataFrame({"user": user, "item": item, "score": scores.ravel()}))


@pytest.mark.parametrize("kind", ["Scores", "Lists", "Pairs"])
@pytest.mark.filterwarnings("ignore::recometer.errors.DataWarning")
@given(SCORES, st.sampled_from(["first", "last"]))
def test_infinity_ranks_like_a_large_number(
    kind: str, row_of_scores: list[float], nan: str
) -> None:
    scores = np.array(row_of_scores).reshape(3, 5)
    finite = np.where(np.isinf(scores), np.copysign(5.0, scores), scores)
    train = {0: [0], 1: [2], 2: [1]}
    options: dict[str, Any] = {
        "train": train, "metrics": METRICS, "nan_scores": nan, "constant_scores": "ties",
        "catalogue": range(5), "threads": 1,
    }  # fmt: skip
    result = rm.evaluate(source(kind, scores), TEST, infinite_scores="ranked", **options)
    expected = rm.evaluate(source(kind, finite), TEST, **options)
    for name, values in expected.values.items():
        np.testing.assert_array_equal(result[name], values)


def test_infinite_scores_are_undefined_by_default() -> None:
    scores = rm.Scores([[math.inf, 1.0, 2.0], [3.0, 1.0, 2.0]])
    test = np.array([[1, 0, 0], [1, 0, 0]])
    assert np.isnan(rm.evaluate(scores, test, metrics="rr")["rr"]).tolist() == [True, False]
    assert rm.evaluate(scores, test, metrics="rr", infinite_scores="ranked")["rr"].tolist() == [
        1,
        1,
    ]


@pytest.mark.parametrize(
    ("protocol", "place"), [("recpack", 1), ("torchmetrics", 1), ("ranx", 3), ("recommenders", 3)]
)
def test_conventions_rank_nan_like_the_original_library(protocol: str, place: int) -> None:
    """The places match recpack 0.3.6, torchmetrics 1.9.0, ranx 0.3.21 and recommenders 1.2.1."""
    lists = rm.Lists({0: {1: math.nan, 2: 3.0, 3: 1.0}, 1: {1: 3.0, 2: 2.0, 3: 1.0}})
    test = {0: {1: 1.0}, 1: {1: 1.0}}
    result = rm.evaluate(lists, test, metrics="hits@1 hits@3", protocol=protocol)
    assert result["hits@1"].tolist() == [float(place == 1), 1.0]
    assert result["hits@3"].tolist() == [1.0, 1.0]


@pytest.mark.parametrize("metrics", ["rr", "coverage@1 rr"])
def test_minus_infinity_in_scores_is_not_a_candidate(metrics: str) -> None:
    scores = rm.Scores([[1.0, -np.inf, np.inf]])
    result = rm.evaluate(scores, np.eye(1, 3), metrics=metrics, infinite_scores="ranked")
    assert result["rr"].tolist() == [0.5]
    assert result.n_candidates.tolist() == [2]

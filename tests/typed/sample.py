"""A sample program for type checkers, which report an error if an `assert_type` is wrong."""

from __future__ import annotations

import numpy as np
import polars as pl
from typing_extensions import assert_type

import recometer as rm
from recometer.baselines import most_popular
from recometer.evaluation import FoldedEvaluation
from recometer.split import After, Last

DATA = pl.DataFrame({"user": ["a", "a", "b", "b"], "item": [1, 2, 1, 2], "time": [1, 2, 3, 4]})


class Mine:
    """A custom model."""

    def recommend(self, users: list[str], k: int) -> list[list[int]]:
        return [[1, 2][:k] for _ in users]


def fitted(split: rm.Split[pl.DataFrame]) -> rm.Factors:
    return most_popular(split.train)


def lists(split: rm.Split) -> rm.Lists:
    return rm.Lists({"a": [2], "b": [1]})


def held_out(n: int) -> Last:
    return rm.split.Last(n)


parts = rm.split(DATA, rm.split.Last(1), seed=1)
assert_type(parts, rm.Split[pl.DataFrame])
assert_type(parts.train, pl.DataFrame)
assert_type(rm.split(DATA, held_out(1)).test, pl.DataFrame)
assert_type(rm.split.split(DATA, After(share=0.5)).test, pl.DataFrame)
assert_type(rm.split({"a": [1, 2]}, rm.split.Number(1)).train, rm.Interactions)
assert_type(rm.split(np.eye(3), rm.split.Fraction(0.5)).test, rm.Interactions)

result = rm.evaluate(
    most_popular(parts.train), parts, metrics="ndcg@10", ties="item", relevant_from=4
)
assert_type(result, rm.Evaluation)
assert_type(rm.evaluate(Mine(), parts.test, metrics={"ndcg": [1], "roc_auc": None}), rm.Evaluation)
folds = rm.split.folds(DATA, rm.split.KFold(2))
assert_type(rm.evaluate(fitted, folds, metrics="hit@1", ties="optimistic"), FoldedEvaluation)
assert_type(rm.evaluate(lists, folds), FoldedEvaluation)
assert_type(rm.evaluate([most_popular(fold.train) for fold in folds], folds), FoldedEvaluation)
rm.exposure(most_popular(parts.train), {1: "old"}, parts.test, k=2, ties="item")
assert_type(rm.compare({"one": result, "two": result}, cluster=False), rm.Comparison)
test = rm.Interactions.of(DATA, user=["user", "item"], item="time")

# Type checkers must report the mistakes in these calls.
rm.evaluate(most_popular(parts.train), parts, ties="first")  # type: ignore[call-overload]
rm.evaluate(most_popular(parts.train), parts, tied="item")  # type: ignore[call-overload]
rm.evaluate(fitted, folds, users=3)  # type: ignore[call-overload]
rm.split(DATA, rm.split.Last(1), sead=1)  # type: ignore[call-overload]

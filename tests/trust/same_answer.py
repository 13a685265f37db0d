"""Evaluations that `test_same_answer.py` repeats in its own process and in other processes.

Scores are small integers, so their sums are exact with every instruction set, and many scores are
tied. `python same_answer.py` prints a digest of each model's values.
"""

import hashlib
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import polars as pl

import recometer as rm

RNG = np.random.default_rng(11)
N_USERS, N_ITEMS = 60, 70
USERS = [f"user {number}" for number in RNG.permutation(1000)[:N_USERS]]
ITEMS = [f"item {number}" for number in RNG.permutation(1000)[:N_ITEMS]]
CHOSEN = RNG.random((N_USERS, N_ITEMS))
USER_FACTORS = RNG.integers(-2, 3, (N_USERS, 5)).astype(np.float32)
ITEM_FACTORS = RNG.integers(-2, 3, (N_ITEMS, 5)).astype(np.float32)
SCORES = USER_FACTORS @ ITEM_FACTORS.T
METRICS = "ndcg@1,5,20 ap rr err@10 rbp roc_auc recall@5 hit@3 coverage@5 gini@5 novelty@5"
OF_LISTS = METRICS.replace("roc_auc ", "")  # lists do not determine an AUC
OF_PAIRS = "ndcg@5 ap rr roc_auc"

Frame = Callable[[Mapping[str, Any]], Any]


def rows(where: Any, *, order: int = 0, **values: Any) -> dict[str, Any]:
    """Return the selected cells of matrices as columns, with the rows in random order."""
    users, items = np.nonzero(where)
    mixed = np.random.default_rng(order).permutation(len(users))
    columns = {"user_id": [USERS[row] for row in users[mixed]]}
    columns["item_id"] = [ITEMS[row] for row in items[mixed]]
    for name, matrix in values.items():
        columns[name] = matrix[users[mixed], items[mixed]].tolist()
    return columns


def evaluate(model: str, *, order: int = 0, frame: Frame = pl.DataFrame, **rules: Any) -> Any:
    """Evaluate a model; `order` is the seed for the order of rows, and `frame` makes frames."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ids = {"user_ids": USERS, "item_ids": ITEMS}
        values = np.round(8 * CHOSEN) / 2
        test = frame(rows(CHOSEN < 0.15, order=order, value=values))
        train = frame(rows(CHOSEN > 0.9, order=order + 1))
        if model == "pairs":
            scored = rows(CHOSEN < 0.3, order=order, score=SCORES, relevance=values)
            return rm.evaluate(rm.Pairs(frame(scored), threshold=1), metrics=OF_PAIRS, **rules)
        source: Any
        if model == "factors":
            source = rm.Factors(USER_FACTORS, ITEM_FACTORS, **ids)
        elif model == "scores":
            source = rm.Scores(SCORES, **ids)
        else:
            source = rm.Lists(frame(rows(7 * CHOSEN % 1 > 0.4, order=order, score=SCORES)))
            rules |= {"metrics": OF_LISTS, "catalogue": ITEMS}
        return rm.evaluate(source, test, train=train, **{"metrics": METRICS, **rules})


def digest(result: Any) -> str:
    """Return a digest of all bits of all values, with users sorted by id."""
    hash_of_values = hashlib.sha256(repr(sorted(result.mean().items())).encode())
    table = result.per_user().sort("user")
    for column in table:
        hash_of_values.update(column.name.encode())
        exact = column.dtype.is_numeric()
        hash_of_values.update(
            column.to_numpy().tobytes() if exact else repr(column.to_list()).encode()
        )
    return hash_of_values.hexdigest()


MODELS = ("factors", "scores", "lists", "pairs")

if __name__ == "__main__":
    for model in MODELS:
        print(model, digest(evaluate(model, ties="random", seed=3)))

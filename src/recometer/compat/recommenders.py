"""Drop-in for recommenders.evaluation.python_evaluation from Microsoft's Recommenders.

`rating_true` and `rating_pred` are data frames from any library; the ``col_...`` arguments name
their columns. Ranking metrics count every row of `rating_true` as relevant, whatever its rating,
and return the mean over the users who are in both frames. For each user, they read the best `k`
rows of `rating_pred` (``relevancy_method="top_k"``), the best `threshold` rows
(``"by_threshold"``), or all rows in the order of the frame (None). Lists longer than `k` raise an
InputError. Rating metrics compare the user-item pairs that are in both frames, and raise an
InputError if there are none. A missing column raises a ColumnError.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, TypeAlias

import numpy as np

from recometer.compat import _shared
from recometer.compat._shared import evaluated, row
from recometer.data import ids
from recometer.data.frames import is_frame, open_frame
from recometer.data.interactions import Interactions
from recometer.errors import ColumnError, InputError, InputTypeError, brief
from recometer.sources.lists import Lists
from recometer.sources.pairs import Pairs

__all__ = [
    "auc",
    "exp_var",
    "logloss",
    "mae",
    "map",
    "map_at_k",
    "ndcg_at_k",
    "precision_at_k",
    "r_precision_at_k",
    "recall_at_k",
    "rmse",
    "rsquared",
]

USER, ITEM, RATING, PREDICTION = "userID", "itemID", "rating", "prediction"
Method: TypeAlias = Literal["top_k", "by_threshold"] | None


def _ranked(name: str, doc: str) -> Callable[..., float]:
    @row(name, doc)
    def function(
        rating_true: Any,
        rating_pred: Any,
        col_user: str = USER,
        col_item: str = ITEM,
        col_prediction: str = PREDICTION,
        relevancy_method: Method = "top_k",
        k: int = 10,
        threshold: int = 10,
        **_: Any,
    ) -> float:
        columns = (col_user, col_item, col_prediction)
        arguments = (rating_true, rating_pred, columns, relevancy_method, k, threshold)
        return _mean_of_lists(name, *arguments)

    return function


def _rated(name: str, doc: str) -> Callable[..., float]:
    @row(name, doc)
    def function(
        rating_true: Any,
        rating_pred: Any,
        col_user: str = USER,
        col_item: str = ITEM,
        col_rating: str = RATING,
        col_prediction: str = PREDICTION,
    ) -> float:
        columns = {"user": col_user, "item": col_item}
        truth = _columns(rating_true, {**columns, "rating": col_rating}, "rating_true")
        predictions = _columns(rating_pred, {**columns, "score": col_prediction}, "rating_pred")
        return _of_pairs(name, _joined(truth, predictions))

    return function


precision_at_k = _ranked(
    "precision_at_k",
    """Calculate precision at k, like ``python_evaluation.precision_at_k``.

    Examples
    --------
    >>> import polars as pl
    >>> from recometer.compat.recommenders import precision_at_k
    >>> truth = pl.DataFrame({"userID": [1, 1], "itemID": [7, 8]})
    >>> lists = pl.DataFrame({"userID": [1, 1], "itemID": [7, 9], "prediction": [0.9, 0.1]})
    >>> precision_at_k(truth, lists, k=2)
    0.5
    """,
)
recall_at_k = _ranked("recall_at_k", "Calculate recall at k.")
r_precision_at_k = _ranked(
    "r_precision_at_k",
    "Calculate precision at min(k, relevant items), over the users with a hit.",
)
map = _ranked("map", "Calculate MAP, which divides by the number of relevant items.")
map_at_k = _ranked("map_at_k", "Calculate MAP, which divides by min(k, relevant items).")


def ndcg_at_k(
    rating_true: Any,
    rating_pred: Any,
    col_user: str = USER,
    col_item: str = ITEM,
    col_rating: str = RATING,
    col_prediction: str = PREDICTION,
    relevancy_method: Method = "top_k",
    k: int = 10,
    threshold: int = 10,
    score_type: Literal["binary", "raw", "exp"] = "binary",
    discfun_type: Literal["loge", "log2"] = "loge",
    **_: Any,
) -> float:
    """Calculate NDCG at k, over the users in `rating_true`.

    The gain of an item with the rating r in `col_rating` is 1 (``score_type="binary"``), r
    (``"raw"``) or 2^r - 1 (``"exp"``). `discfun_type` has no effect, because the base of the
    logarithm cancels out.
    """
    _shared.check_choice("score_type", score_type, ["binary", "raw", "exp"])
    _shared.check_choice("discfun_type", discfun_type, ["loge", "log2"])
    name = "ndcg_at_k" if score_type == "binary" else f"ndcg_at_k(score_type={score_type})"
    columns = (col_user, col_item, col_prediction)
    arguments = (rating_true, rating_pred, columns, relevancy_method, k, threshold)
    return _mean_of_lists(name, *arguments, col_rating)


rmse = _rated("rmse", "Calculate the root mean squared error.")
mae = _rated("mae", "Calculate the mean absolute error.")
rsquared = _rated("rsquared", "Calculate R squared.")
exp_var = _rated("exp_var", "Calculate the explained variance.")
auc = _rated("auc", "Calculate the area under the ROC curve of all pairs; ratings are 0 or 1.")
logloss = _rated("logloss", "Calculate the mean log loss of all pairs; ratings are 0 or 1.")


def _mean_of_lists(
    name: str, truth: Any, predictions: Any, columns: tuple[str, str, str], method: Method,
    k: int, threshold: int, value: str | Literal[False] = False,
) -> float:  # fmt: skip
    user, item, prediction = columns
    _shared.check_choice("relevancy_method", method, ["top_k", "by_threshold", None])
    score: str | Literal[False] = prediction if method else False
    depth = {"top_k": k, "by_threshold": threshold, None: None}[method]
    lists = Lists(predictions, user=user, item=item, score=score, rank=False, depth=depth)
    if method != "top_k":
        _, read = open_frame(predictions)
        lengths = np.unique(np.asarray(read([user])[0]), return_counts=True)[1]
        longest = min(int(lengths.max(initial=0)), depth or k + 1)
        if longest > k:
            raise InputError(
                f"relevancy_method={method!r} leaves lists of {longest} rows, but k={k}. Hint: the "
                "drop-in takes lists of at most k rows."
            )
    test = Interactions.of(truth, user=user, item=item, value=value, time=False)
    name = f"{name}@{k}"
    mean = evaluated("recommenders", lists, test, [name], threads=None).mean()[name]
    return 0.0 if np.isnan(mean) else float(mean)


def _joined(truth: dict[str, Any], predictions: dict[str, Any]) -> Any:
    """Return the ratings and scores of pairs that are in both frames, as rows of a single user."""
    import polars as pl

    for name, plural in (("user", "users"), ("item", "items")):
        labels = [f"{plural} of rating_true", f"{plural} of rating_pred"]
        distinct = ids.encode(predictions[name], labels[1])[1]
        truth[name] = ids.match(truth[name], distinct, *labels)
        predictions[name] = ids.match(predictions[name], distinct, labels[1])
    joined = (
        pl.DataFrame(truth)
        .filter((pl.col("user") >= 0) & (pl.col("item") >= 0))
        .join(pl.DataFrame(predictions), on=["user", "item"])
    )
    if joined.is_empty():
        raise InputError("No user-item pair is in both rating_true and rating_pred.")
    return joined.with_columns(user=pl.lit(0), item=pl.int_range(pl.len()))


def _of_pairs(name: str, frame: Any) -> float:
    pairs = Pairs(frame, user="user", item="item", score="score", rating="rating", relevance=False)
    mean = float(evaluated("recommenders", pairs, None, [name]).mean()[name])
    if not np.isnan(mean) or name not in ("rsquared", "exp_var"):
        return mean
    # Like scikit-learn, return 1 for constant ratings if all predictions are exact, otherwise 0.
    if name == "rsquared" and len(frame) < 2:
        return np.nan
    errors = frame["score"] - frame["rating"]
    wrong = errors if name == "rsquared" else errors - errors.mean()
    return float((wrong == 0).all())


def _columns(frame: Any, columns: dict[str, str], whose: str) -> dict[str, Any]:
    if not is_frame(frame):
        raise InputTypeError(f"{whose} is of type {type(frame).__name__}, expected a data frame.")
    names, read = open_frame(frame)
    for column in columns.values():
        if not isinstance(column, str) or column not in names:
            raise ColumnError(
                f"{whose} has no column {brief(column)}. Its columns are {', '.join(names)}."
            )
    return dict(zip(columns, read([*columns.values()]), strict=True))

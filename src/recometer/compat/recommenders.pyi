"""Written by tests/helpers/dropin_stubs.py from the module of the same name."""

from typing import Any, Literal, TypeAlias

Method: TypeAlias = Literal["top_k", "by_threshold"] | None

def auc(
    rating_true: Any,
    rating_pred: Any,
    col_user: str = "userID",
    col_item: str = "itemID",
    col_rating: str = "rating",
    col_prediction: str = "prediction",
) -> float:
    """Calculate the area under the ROC curve of all pairs; ratings are 0 or 1."""

def exp_var(
    rating_true: Any,
    rating_pred: Any,
    col_user: str = "userID",
    col_item: str = "itemID",
    col_rating: str = "rating",
    col_prediction: str = "prediction",
) -> float:
    """Calculate the explained variance."""

def logloss(
    rating_true: Any,
    rating_pred: Any,
    col_user: str = "userID",
    col_item: str = "itemID",
    col_rating: str = "rating",
    col_prediction: str = "prediction",
) -> float:
    """Calculate the mean log loss of all pairs; ratings are 0 or 1."""

def mae(
    rating_true: Any,
    rating_pred: Any,
    col_user: str = "userID",
    col_item: str = "itemID",
    col_rating: str = "rating",
    col_prediction: str = "prediction",
) -> float:
    """Calculate the mean absolute error."""

def map(
    rating_true: Any,
    rating_pred: Any,
    col_user: str = "userID",
    col_item: str = "itemID",
    col_prediction: str = "prediction",
    relevancy_method: Method = "top_k",
    k: int = 10,
    threshold: int = 10,
    **_: Any,
) -> float:
    """Calculate MAP, which divides by the number of relevant items."""

def map_at_k(
    rating_true: Any,
    rating_pred: Any,
    col_user: str = "userID",
    col_item: str = "itemID",
    col_prediction: str = "prediction",
    relevancy_method: Method = "top_k",
    k: int = 10,
    threshold: int = 10,
    **_: Any,
) -> float:
    """Calculate MAP, which divides by min(k, relevant items)."""

def ndcg_at_k(
    rating_true: Any,
    rating_pred: Any,
    col_user: str = "userID",
    col_item: str = "itemID",
    col_rating: str = "rating",
    col_prediction: str = "prediction",
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

def precision_at_k(
    rating_true: Any,
    rating_pred: Any,
    col_user: str = "userID",
    col_item: str = "itemID",
    col_prediction: str = "prediction",
    relevancy_method: Method = "top_k",
    k: int = 10,
    threshold: int = 10,
    **_: Any,
) -> float:
    """Calculate precision at k, like ``python_evaluation.precision_at_k``.

    Examples
    --------
    >>> import polars as pl
    >>> from recometer.compat.recommenders import precision_at_k
    >>> truth = pl.DataFrame({"userID": [1, 1], "itemID": [7, 8]})
    >>> lists = pl.DataFrame({"userID": [1, 1], "itemID": [7, 9], "prediction": [0.9, 0.1]})
    >>> precision_at_k(truth, lists, k=2)
    0.5
    """

def r_precision_at_k(
    rating_true: Any,
    rating_pred: Any,
    col_user: str = "userID",
    col_item: str = "itemID",
    col_prediction: str = "prediction",
    relevancy_method: Method = "top_k",
    k: int = 10,
    threshold: int = 10,
    **_: Any,
) -> float:
    """Calculate precision at min(k, relevant items), over the users with a hit."""

def recall_at_k(
    rating_true: Any,
    rating_pred: Any,
    col_user: str = "userID",
    col_item: str = "itemID",
    col_prediction: str = "prediction",
    relevancy_method: Method = "top_k",
    k: int = 10,
    threshold: int = 10,
    **_: Any,
) -> float:
    """Calculate recall at k."""

def rmse(
    rating_true: Any,
    rating_pred: Any,
    col_user: str = "userID",
    col_item: str = "itemID",
    col_rating: str = "rating",
    col_prediction: str = "prediction",
) -> float:
    """Calculate the root mean squared error."""

def rsquared(
    rating_true: Any,
    rating_pred: Any,
    col_user: str = "userID",
    col_item: str = "itemID",
    col_rating: str = "rating",
    col_prediction: str = "prediction",
) -> float:
    """Calculate R squared."""

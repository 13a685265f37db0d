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
    """Calculate the area under the ROC curve of all pairs, rated 0 or 1: see `rmse`."""

def exp_var(
    rating_true: Any,
    rating_pred: Any,
    col_user: str = "userID",
    col_item: str = "itemID",
    col_rating: str = "rating",
    col_prediction: str = "prediction",
) -> float:
    """Calculate the explained variance: see `rmse`."""

def logloss(
    rating_true: Any,
    rating_pred: Any,
    col_user: str = "userID",
    col_item: str = "itemID",
    col_rating: str = "rating",
    col_prediction: str = "prediction",
) -> float:
    """Calculate the mean log loss of all pairs, rated 0 or 1: see `rmse`."""

def mae(
    rating_true: Any,
    rating_pred: Any,
    col_user: str = "userID",
    col_item: str = "itemID",
    col_rating: str = "rating",
    col_prediction: str = "prediction",
) -> float:
    """Calculate the mean absolute error: see `rmse`."""

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
    """Calculate the mean average precision, divided by the relevant items: see `precision_at_k`."""

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
    """Calculate the mean average precision, divided by at most k: see `precision_at_k`."""

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
    """Calculate NDCG at k, over the users of `rating_true`: see `precision_at_k`.

    Parameters
    ----------
    score_type : {"binary", "raw", "exp"}
        Whether the gain of an item is 1, its rating r in ``col_rating``, or 2^r - 1.
    discfun_type : {"loge", "log2"}
        The base of the logarithm, which cancels out.
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
    """Calculate precision at k, as ``python_evaluation.precision_at_k`` does.

    Parameters
    ----------
    rating_true : data frame
        The items that should have been recommended. Every row is relevant, independently of its
        rating.
    rating_pred : data frame
        The recommended items, with scores.
    col_user, col_item, col_prediction : str
        The columns.
    relevancy_method : {"top_k", "by_threshold"} or None
        Whether the best `k` or the best `threshold` rows of a user count, by their scores. With
        None, all of them count, in the order of the rows. Lists longer than `k` are an error.
    k, threshold : int

    Returns
    -------
    float
        The mean over the users of both frames.

    Raises
    ------
    InputError
        If lists are longer than `k`, or numbers are out of range.
    ColumnError
        If a column does not exist.

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
    """Calculate the precision at the number of relevant items, at most k: see `precision_at_k`.

    Users without a hit there do not count.
    """

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
    """Calculate recall at k: see `precision_at_k`."""

def rmse(
    rating_true: Any,
    rating_pred: Any,
    col_user: str = "userID",
    col_item: str = "itemID",
    col_rating: str = "rating",
    col_prediction: str = "prediction",
) -> float:
    """Calculate the root of the mean squared error, as ``python_evaluation.rmse`` does.

    Parameters
    ----------
    rating_true, rating_pred : data frame
        True ratings and predictions; pairs that are in both count.
    col_user, col_item, col_rating, col_prediction : str
        The columns.

    Returns
    -------
    float

    Raises
    ------
    InputError
        If no pair is in both frames.
    ColumnError
        If a column does not exist.
    """

def rsquared(
    rating_true: Any,
    rating_pred: Any,
    col_user: str = "userID",
    col_item: str = "itemID",
    col_rating: str = "rating",
    col_prediction: str = "prediction",
) -> float:
    """Calculate R squared: see `rmse`."""

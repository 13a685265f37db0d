"""Drop-in for surprise.accuracy: errors of predicted ratings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from recometer.arrays import Float64
from recometer.compat._evaluating import evaluated
from recometer.errors import InputError, InputTypeError
from recometer.sources.pairs import Pairs

__all__ = ["fcp", "mae", "mse", "rmse"]


def rmse(predictions: Sequence[Any], verbose: bool = True) -> float:
    """Calculate the root of the mean squared error, as ``surprise.accuracy.rmse`` does.

    Parameters
    ----------
    predictions : sequence of tuple
        Of user, item, true rating, estimate and details: what ``test()`` of an algorithm of
        Surprise returns.
    verbose : bool
        Whether to print the value.

    Returns
    -------
    float

    Raises
    ------
    InputError
        There is no prediction (a ValueError).

    Examples
    --------
    >>> from recometer.compat.surprise import rmse
    >>> rmse([("ann", "film", 4.0, 3.0, {}), ("bob", "film", 2.0, 3.0, {})])
    RMSE: 1.0000
    1.0
    """
    return _printed("rmse", "RMSE: ", predictions, verbose)


def mse(predictions: Sequence[Any], verbose: bool = True) -> float:
    """Calculate the mean squared error; parameters, results and errors are those of `rmse`."""
    return _printed("mse", "MSE: ", predictions, verbose)


def mae(predictions: Sequence[Any], verbose: bool = True) -> float:
    """Calculate the mean absolute error; parameters, results and errors are those of `rmse`."""
    return _printed("mae", "MAE:  ", predictions, verbose)


def fcp(predictions: Sequence[Any], verbose: bool = True) -> float:
    """Calculate the fraction of concordant pairs, as ``surprise.accuracy.fcp`` does.

    Of the pairs of ratings of one user, whose order is right in the estimates: the mean number
    over users with a right one, divided by itself and the mean number of wrong ones over users
    with one.

    Parameters
    ----------
    predictions, verbose
        As for `rmse`.

    Returns
    -------
    float

    Raises
    ------
    InputError
        There is no prediction, or no user has two different ratings (a ValueError).
    """
    return _printed("fcp", "FCP:  ", predictions, verbose)


def _printed(metric: str, label: str, predictions: Sequence[Any], verbose: bool) -> float:
    if not len(predictions):
        raise InputError("There is no prediction: the list is empty.")
    try:
        users, items, actual, predicted, _ = zip(*predictions, strict=True)
    except (TypeError, ValueError):
        raise InputTypeError(
            "A prediction must be a tuple of user, item, true rating, estimate and details, as "
            "test() of an algorithm of Surprise returns."
        ) from None
    frame = {
        "user": _numbered(users) if metric == "fcp" else np.zeros(len(users), np.int64),
        "item": np.arange(len(items)),  # a pair may be there twice, and counts twice
        "rating": _floats(actual),
        "score": _floats(predicted),
    }
    pairs = Pairs(
        _frame(frame), user="user", item="item", score="score", rating="rating", relevance=False
    )
    value = evaluated("surprise", pairs, None, [metric], undefined="nan").mean()[metric]
    if np.isnan(value):
        raise InputError(
            f"The {metric} of these predictions is undefined. Hint: a user needs two different "
            "ratings."
        )
    if verbose:
        print(f"{label}{value:1.4f}")
    return value


def _numbered(users: Sequence[Any]) -> Any:
    numbers: dict[Any, int] = {}
    return np.array([numbers.setdefault(user, len(numbers)) for user in users], np.int64)


def _floats(ratings: Sequence[Any]) -> Float64:
    try:
        numbers = np.array(ratings, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputTypeError("Ratings and estimates must be numbers.") from None
    if np.isnan(numbers).any():
        raise InputError(
            "A rating or an estimate is missing or NaN. Hint: predict with r_ui=..., the true "
            "rating."
        )
    return numbers


def _frame(columns: dict[str, Any]) -> Any:
    import polars as pl

    return pl.DataFrame(columns)

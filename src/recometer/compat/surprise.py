"""Drop-in for surprise.accuracy, which measures errors of predicted ratings.

`predictions` are tuples of user, item, true rating, estimate and details, as returned by the
``test()`` method of Surprise's algorithms. Without predictions, the functions raise an InputError
(a ValueError).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Any

import numpy as np

from recometer.arrays import Float64
from recometer.compat import _shared
from recometer.compat._shared import convention_of, row
from recometer.errors import InputError, InputTypeError
from recometer.metrics.predictions import Predictions

__all__ = ["fcp", "mae", "mse", "rmse"]

FIELDS = ("user", "item", "true rating", "estimate", "details")


def _printed(name: str, label: str, doc: str) -> Callable[..., float]:
    @row(name, doc)
    def function(predictions: Sequence[Any], verbose: bool = True) -> float:
        predictions = _shared.members_of("predictions", predictions)
        if not len(predictions):
            raise InputError("There are no predictions: the list is empty.")
        (metric,) = convention_of("surprise").parse(name)
        over_rows = metric.definition.over_rows
        assert over_rows is not None
        rows = _read(predictions, by_user=name == "fcp")
        value = over_rows(rows, np.ones(rows.n_users), **dict(metric.parameters))
        if np.isnan(value):
            raise InputError(
                f"The {name} of these predictions is undefined. Hint: a user needs two different "
                "ratings."
            )
        if verbose:
            print(f"{label}{value:1.4f}")
        return value

    return function


rmse = _printed(
    "rmse",
    "RMSE: ",
    """Calculate the root mean squared error, like ``surprise.accuracy.rmse``.

    Examples
    --------
    >>> from recometer.compat.surprise import rmse
    >>> rmse([("ann", "film", 4.0, 3.0, {}), ("bob", "film", 2.0, 3.0, {})])
    RMSE: 1.0000
    1.0
    """,
)
mse = _printed("mse", "MSE: ", "Calculate the mean squared error.")
mae = _printed("mae", "MAE:  ", "Calculate the mean absolute error.")
fcp = _printed(
    "fcp",
    "FCP:  ",
    """Calculate the fraction of concordant pairs, like ``surprise.accuracy.fcp``.

    A pair of different ratings by the same user is right if its estimates are in the same order,
    and otherwise wrong. The value is r / (r + w), where r is the mean number of right pairs over
    the users with a right pair, and w is the mean number of wrong pairs over the users with a wrong
    pair.
    """,
)


def _read(predictions: Sequence[Any], *, by_user: bool) -> Predictions:
    """Return true ratings and estimates, either by user or as the rows of a single user.

    With `by_user`, they are sorted by user and estimate.
    """
    ends = (predictions[0], predictions[-1])
    if any(not isinstance(row, tuple) or len(row) != len(FIELDS) for row in ends):
        raise InputTypeError(
            f"A prediction must be a tuple of {', '.join(FIELDS)}, as returned by the test() "
            "method of a Surprise algorithm."
        )
    actual, estimate = (_floats(predictions, place) for place in (2, 3))
    if not by_user:
        return Predictions(np.zeros(len(actual), np.int64), estimate, actual, 1)
    numbers: dict[Any, int] = {}
    rows = (numbers.setdefault(row[0], len(numbers)) for row in predictions)
    try:
        user = np.fromiter(rows, np.int64, len(actual))
    except TypeError as error:
        raise InputTypeError(f"Users cannot be distinguished: {error}.") from None
    order = np.lexsort((-estimate, user))
    return Predictions(user[order], estimate[order], actual[order], len(numbers))


def _floats(predictions: Sequence[Any], place: int) -> Float64:
    try:
        column = map(itemgetter(place), predictions)
        numbers = np.fromiter(column, np.float64, len(predictions))
    except (TypeError, ValueError, OverflowError):
        raise InputTypeError(f"Every {FIELDS[place]} must be a number.") from None
    if np.isnan(numbers).any():
        raise InputError(
            f"The {FIELDS[place]} of a prediction is missing or NaN. Hint: predict with r_ui=..., "
            "the true rating."
        )
    return numbers

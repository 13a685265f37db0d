"""Written by tests/helpers/dropin_stubs.py from the module of the same name."""

from collections.abc import Sequence
from typing import Any

def fcp(predictions: Sequence[Any], verbose: bool = True) -> float:
    """Calculate the fraction of concordant pairs, like ``surprise.accuracy.fcp``.

    A pair of different ratings by the same user is right if its estimates are in the same order,
    and otherwise wrong. The value is r / (r + w), where r is the mean number of right pairs over
    the users with a right pair, and w is the mean number of wrong pairs over the users with a wrong
    pair.
    """

def mae(predictions: Sequence[Any], verbose: bool = True) -> float:
    """Calculate the mean absolute error."""

def mse(predictions: Sequence[Any], verbose: bool = True) -> float:
    """Calculate the mean squared error."""

def rmse(predictions: Sequence[Any], verbose: bool = True) -> float:
    """Calculate the root mean squared error, like ``surprise.accuracy.rmse``.

    Examples
    --------
    >>> from recometer.compat.surprise import rmse
    >>> rmse([("ann", "film", 4.0, 3.0, {}), ("bob", "film", 2.0, 3.0, {})])
    RMSE: 1.0000
    1.0
    """

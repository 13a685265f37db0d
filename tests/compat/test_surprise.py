"""The drop-in for `surprise.accuracy` returns and prints the same values as Surprise 1.1.5."""

from __future__ import annotations

from typing import NamedTuple

import pytest

import recometer as rm
from recometer.compat import surprise


class Prediction(NamedTuple):
    """A stand-in for Surprise's `Prediction` class."""

    uid: str
    iid: str
    r_ui: float | None
    est: float
    details: dict[str, object]


ROWS = [("a", "x", 4.0, 3.5), ("a", "y", 2.0, 3.0), ("b", "x", 5.0, 4.0), ("b", "y", 1.0, 4.5)]
PREDICTIONS = [Prediction(*row, {}) for row in [*ROWS, ("b", "z", 3.0, 2.0)]]

# For each function of Surprise 1.1.5, the number that it returns for PREDICTIONS and the line that
# it prints.
PRINTED = {
    "rmse": (1.760681686165901, "RMSE: 1.7607\n"),
    "mse": (3.1, "MSE: 3.1000\n"),
    "mae": (1.4, "MAE:  1.4000\n"),
    "fcp": (0.3333333333333333, "FCP:  0.3333\n"),
}


@pytest.mark.parametrize("name", PRINTED)
def test_functions_return_and_print_the_same_values_as_surprise(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    value, words = PRINTED[name]
    function = getattr(surprise, name)
    assert function(PREDICTIONS) == pytest.approx(value, abs=1e-12)
    assert capsys.readouterr().out == words
    assert function([*map(tuple, PREDICTIONS)], verbose=False) == pytest.approx(value, abs=1e-12)
    assert capsys.readouterr().out == ""


def test_repeated_pair_counts_twice() -> None:
    assert surprise.mae([PREDICTIONS[0], *PREDICTIONS[:2]], verbose=False) == pytest.approx(2 / 3)


def test_invalid_predictions_are_refused() -> None:
    with pytest.raises(rm.InputError, match="There are no predictions"):
        surprise.rmse([])
    with pytest.raises(rm.InputError, match="a user needs two different ratings"):
        surprise.fcp(PREDICTIONS[:1])
    for missing in (None, float("nan")):
        with pytest.raises(rm.InputError, match=r"true rating of a prediction is missing.*r_ui="):
            surprise.rmse([Prediction("a", "x", missing, 3.0, {})])
    with pytest.raises(rm.InputTypeError, match="Every estimate must be a number"):
        surprise.rmse([("a", "x", 3.0, "much", {})])
    with pytest.raises(rm.InputTypeError, match="tuple of user, item, true rating"):
        surprise.mae([("a", "x", 3.0)])

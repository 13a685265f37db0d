"""What an integration says where its library is not installed."""

from __future__ import annotations

import sys

import pytest

import recometer as rm
from recometer.integrations import optuna, sklearn, xgboost

RESULT = rm.evaluate(rm.Lists({"ann": ["film"]}), {"ann": ["film"]}, metrics="rr")


@pytest.mark.parametrize(
    ("library", "call"),
    [
        ("mlflow", RESULT.log_mlflow),
        ("optuna", lambda: optuna.report(None, RESULT, "rr", 0)),
        ("sklearn", sklearn.ranking_scorer),
        ("xgboost", lambda: xgboost.RankingMetrics("rr").early_stopping(3)),
    ],
)
def test_the_extra_to_install_is_named(library, call, monkeypatch):
    for module in [library, *(one for one in sys.modules if one.startswith(f"{library}."))]:
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(rm.MissingExtraError, match=rf'Hint: pip install "recometer\[{library}\]"'):
        call()

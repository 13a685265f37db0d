"""If an integration's library is not installed, an error says what to install."""

from __future__ import annotations

import functools
import importlib
import sys

import pytest

import recometer as rm
from recometer.integrations import optuna, sklearn, xgboost

RESULT = rm.evaluate(rm.Lists({"ann": ["film"]}), {"ann": ["film"]}, metrics="rr")


WHEN_IMPORTED = ("keras", "lightning", "sentence-transformers", "torchmetrics")


@pytest.mark.parametrize(
    ("library", "call"),
    [
        *(
            (
                name,
                functools.partial(
                    importlib.import_module, f"recometer.integrations.{name}".replace("-", "_")
                ),
            )
            for name in WHEN_IMPORTED
        ),
        ("mlflow", RESULT.log_mlflow),
        ("optuna", lambda: optuna.report(None, RESULT, "rr", 0)),
        ("sklearn", sklearn.ranking_scorer),
        ("xgboost", lambda: xgboost.RankingMetrics("rr").early_stopping(3)),
    ],
)
def test_error_names_the_extra_to_install(library, call, monkeypatch):
    package = library.replace("-", "_")
    for module in [
        package,
        *(module_name for module_name in sys.modules if module_name.startswith(f"{package}.")),
    ]:
        monkeypatch.setitem(sys.modules, module, None)
    # Integrations that subclass their library's classes raise the error on import.
    if library in WHEN_IMPORTED:
        monkeypatch.delitem(sys.modules, f"recometer.integrations.{package}", raising=False)
    with pytest.raises(rm.MissingExtraError, match=rf'Hint: pip install "recometer\[{library}\]"'):
        call()

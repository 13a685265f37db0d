"""What an integration says where its library is not installed."""

from __future__ import annotations

import sys

import pytest

import recometer as rm

RESULT = rm.evaluate(rm.Lists({"ann": ["film"]}), {"ann": ["film"]}, metrics="rr")


@pytest.mark.parametrize(("library", "call"), [("mlflow", RESULT.log_mlflow)])
def test_the_extra_to_install_is_named(library, call, monkeypatch):
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(rm.MissingExtraError, match=rf'Hint: pip install "recometer\[{library}\]"'):
        call()

"""The stub files of drop-ins, which editors and type checkers read, match the functions."""

from __future__ import annotations

import ast

import pytest
from dropin_stubs import FOLDER, names, stub_of


@pytest.mark.parametrize("name", names())
def test_a_stub_is_true(name: str) -> None:
    """If this test fails, run `python tests/helpers/dropin_stubs.py`."""
    written = (FOLDER / f"{name}.pyi").read_text(encoding="utf-8")
    assert ast.dump(ast.parse(written)) == ast.dump(ast.parse(stub_of(name)))


def test_only_these_dropins_have_stubs() -> None:
    assert sorted(path.stem for path in FOLDER.glob("*.pyi")) == names()

"""The drop-ins' stub files, which editors and type checkers read, match the code."""

from __future__ import annotations

import ast

import pytest
from dropin_stubs import FOLDER, names, stub_of


@pytest.mark.parametrize("name", names())
def test_stubs_are_up_to_date(name: str) -> None:
    """If this test fails, run `python tests/helpers/dropin_stubs.py`."""
    stub = (FOLDER / f"{name}.pyi").read_text(encoding="utf-8")
    assert ast.dump(ast.parse(stub)) == ast.dump(ast.parse(stub_of(name)))


def test_only_dropins_with_tables_have_stubs() -> None:
    assert sorted(path.stem for path in FOLDER.glob("*.pyi")) == names()

"""Tests that the package has few top-level modules, no private imports, and docstrings."""

from __future__ import annotations

import ast
import pathlib

from modules import FILES, statements_of, tree_of

MOST_AT_THE_TOP = 21


def private_imports(name: str) -> list[str]:
    """Return the private names that a module imports from other packages."""
    own_parts = ["recometer", *pathlib.PurePosixPath(name).parts[:-1]]
    imports = []
    for node in statements_of(FILES[name]):
        if not isinstance(node, ast.ImportFrom) or not str(node.module).startswith("recometer"):
            continue
        for alias in node.names:
            parts = [*str(node.module).split("."), alias.name]
            for depth, part in enumerate(parts):
                private = part.startswith("_") and not part.startswith("__") and part != "_kernel"
                if private and own_parts[:depth] != parts[:depth]:
                    imports.append(".".join(parts))
    return imports


def test_number_of_top_level_modules_is_limited() -> None:
    assert len([name for name in FILES if "/" not in name]) <= MOST_AT_THE_TOP


def test_packages_do_not_import_private_names_of_others() -> None:
    imports_by_file = {name: private_imports(name) for name in FILES}
    assert {name: imports for name, imports in imports_by_file.items() if imports} == {}


def test_every_module_has_a_docstring() -> None:
    without_docstring = [
        name for name, path in FILES.items() if not ast.get_docstring(tree_of(path))
    ]
    assert without_docstring == []

"""The tree can be read: few modules at the top, nothing borrowed, and each says what it is for."""

from __future__ import annotations

import ast
import pathlib

from modules import FILES, statements_of, tree_of

MOST_AT_THE_TOP = 21


def private_imports(name: str) -> list[str]:
    """Return what a module imports that is private to another package."""
    here = ["recometer", *pathlib.PurePosixPath(name).parts[:-1]]
    found = []
    for node in statements_of(FILES[name]):
        if not isinstance(node, ast.ImportFrom) or not str(node.module).startswith("recometer"):
            continue
        for alias in node.names:
            parts = [*str(node.module).split("."), alias.name]
            for depth, part in enumerate(parts):
                private = part.startswith("_") and not part.startswith("__") and part != "_kernel"
                if private and here[:depth] != parts[:depth]:
                    found.append(".".join(parts))
    return found


def test_few_modules_stand_at_the_top() -> None:
    assert len([name for name in FILES if "/" not in name]) <= MOST_AT_THE_TOP


def test_nothing_private_is_imported_from_another_package() -> None:
    borrowed = {name: private_imports(name) for name in FILES}
    assert {name: found for name, found in borrowed.items() if found} == {}


def test_every_folder_and_file_says_what_it_is_for() -> None:
    silent = [name for name, path in FILES.items() if not ast.get_docstring(tree_of(path))]
    assert silent == []
